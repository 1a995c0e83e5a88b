//! `[forwarding]` and `[[strategy]]`: how packets are forwarded.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_forward::{BURST_DISTANCE, MAX_BURST_DISTANCE};
use tachonym_packet::DEFAULT_LIFETIME_MS;
use tachonym_tables::MAX_PREFIX_COMPONENTS;

use super::Config;
use super::faults::Faults;
use crate::strategies;

/// Which unsolicited Data is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnsolicitedData {
    /// None: unsolicited Data is dropped.
    #[default]
    DropAll,
    /// That of local applications.
    AdmitLocal,
    /// That of remote peers.
    AdmitNetwork,
    /// All of it.
    AdmitAll,
}

/// When the packets of a burst are hashed and their table entries prefetched. Results
/// are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Nothing is prefetched.
    Naive,
    /// The hash buckets of a packet are prefetched when its name is hashed.
    BucketPrefetch,
    /// The next packet is hashed, and its buckets prefetched, before a packet is forwarded.
    PreHash,
    /// As `pre-hash`; the next packet's table entries are prefetched too.
    Shtl,
    /// The whole burst is hashed first, and `burst_distance` packets are prefetched at a
    /// time.
    #[default]
    Burst,
}

/// How packets are forwarded.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Forwarding {
    /// Longest time that an Interest stays pending, in milliseconds; 4000 to 3600000. A
    /// longer InterestLifetime is cut to it, so that no peer can fill the PIT for hours.
    pub max_interest_lifetime_ms: u64,
    /// Which unsolicited Data is cached: none (`drop-all`), that of local applications
    /// (`admit-local`), that of remote peers (`admit-network`), or all (`admit-all`).
    /// Anything else than `drop-all` lets those peers fill the content store.
    pub unsolicited_data: UnsolicitedData,
    /// Name prefixes of the producer region. A forwarding hint that names one of them has
    /// reached its region and is removed from the Interest.
    #[schemars(example = ["/example/region"])]
    pub producer_region: Vec<String>,
    /// Whether Interests with parameters are dropped if the digest in their name does not
    /// match the parameters. Each check costs a SHA-256; producers check it too.
    pub verify_parameters_digest: bool,
    /// When the packets of a burst are hashed and their table entries prefetched. `burst`
    /// is the fastest; `naive` prefetches nothing. The others are for measurements.
    pub schedule: Schedule,
    /// Packets whose table entries are prefetched at the same time with `burst`, 1 to 64.
    /// With too few the processor waits for memory; with too many its cache overflows.
    /// `tachonym-lab run own/distance` measures the best number for a machine.
    pub burst_distance: u8,
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            max_interest_lifetime_ms: 60_000,
            unsolicited_data: UnsolicitedData::default(),
            producer_region: Vec::new(),
            verify_parameters_digest: false,
            schedule: Schedule::default(),
            burst_distance: BURST_DISTANCE as u8,
        }
    }
}

/// A strategy for a prefix.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrategyChoice {
    /// Name prefix.
    #[schemars(example = &"/example")]
    pub prefix: String,
    /// `best-route`, `multicast`, `random`, `asf`, `access` or `self-learning`, or a full
    /// strategy name such as `/localhost/nfd/strategy/best-route/v=5`. `self-learning`
    /// needs `management.announcements.learn = true`: without it, every Interest without a
    /// route is sent to all neighbours.
    #[schemars(example = &"best-route")]
    pub strategy: String,
}

/// Checks `[forwarding]` and `[[strategy]]`.
pub(super) fn check(config: &Config, found: &mut Faults) {
    found.range(
        "forwarding.max_interest_lifetime_ms",
        config.forwarding.max_interest_lifetime_ms,
        DEFAULT_LIFETIME_MS,
        3_600_000,
    );
    found.range(
        "forwarding.burst_distance",
        config.forwarding.burst_distance.into(),
        1,
        MAX_BURST_DISTANCE as u64,
    );
    for (i, name) in config.forwarding.producer_region.iter().enumerate() {
        let key = format!("forwarding.producer_region[{i}]");
        found.name(&key, name, usize::MAX);
    }
    let mut known = HashSet::new();
    for (i, choice) in config.strategy.iter().enumerate() {
        let key = format!("strategy[{i}].prefix");
        let prefix = found.name(&key, &choice.prefix, MAX_PREFIX_COMPONENTS);
        if let Err(e) = strategies::find(&choice.strategy) {
            found.push(
                format!("strategy[{i}].strategy"),
                format!("`{}`: {e}", choice.strategy),
                &format!("write one of {}", strategies::short_names().join(", ")),
            );
        }
        if prefix.is_some_and(|prefix| !known.insert(prefix)) {
            found.conflict(
                key,
                format!("{} already has a strategy", choice.prefix),
                "keep one [[strategy]] for each prefix",
            );
        }
    }
}
