//! Limits and policies of an engine.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tachonym_packet::Name;
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};
use tachonym_tables::{CsCapacity, FibConfig, MIN_DEAD_NONCE_LIFETIME, PitConfig, PitCsLayout};

use crate::faces::FaceTraits;
use crate::routes::Routes;
use crate::schedule::{BURST_DISTANCE, Schedule};

/// Longest time that an Interest stays pending unless configured otherwise, in
/// milliseconds. Longer InterestLifetimes are treated as this one.
pub const MAX_LIFETIME_MS: u64 = 60_000;

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Limits of the pending Interest table.
    pub pit: PitConfig,
    /// Limits of the content store.
    pub cs: CsCapacity,
    /// What the content store admits and evicts; the `capacity` there does not matter.
    pub cs_policy: PolicyConfig,
    /// Whether pending Interests and cached Data share an index.
    pub pit_cs: PitCsLayout,
    /// Limits and layout of the FIB.
    pub fib: FibConfig,
    /// The routes of another engine that has the same key, to share them; `fib` does not
    /// matter then. See [`sharing`](crate::sharing).
    pub routes: Option<Routes>,
    /// The order of work in a burst.
    pub schedule: Schedule,
    /// Packets that take a step of [`Schedule::Burst`] together, 1 to
    /// [`MAX_BURST_DISTANCE`](crate::MAX_BURST_DISTANCE).
    pub burst_distance: usize,
    /// Most nonces in the dead nonce list.
    pub dead_nonces_max: usize,
    /// How long a nonce stays there; at least six seconds.
    pub dead_nonce_lifetime: Duration,
    /// Longest time that an Interest stays pending, in milliseconds, whatever
    /// its InterestLifetime: else a peer could fill the table for good.
    pub max_lifetime_ms: u64,
    /// What to do with unsolicited Data.
    pub unsolicited_data: UnsolicitedDataPolicy,
    /// Names of the region this router is in. An Interest whose forwarding hint
    /// names one of them, or a prefix of one, has arrived in its producer's
    /// region and loses the hint.
    pub producer_regions: Vec<Name>,
    /// Whether an Interest with parameters is dropped unless the digest in its
    /// name is theirs (NDN Packet Format 0.3, "Interest Packet"). Costs a
    /// SHA-256 over the parameters of each such Interest; producers check it
    /// anyway.
    pub verify_parameters_digest: bool,
    /// Prefix of the management protocol, if the router has one. An Interest with
    /// CanBePrefix for a shorter name, such as `/localhost`, is forwarded by its route:
    /// management has Data that answer it.
    pub management_prefix: Option<Name>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            pit: PitConfig::default(),
            cs: CsCapacity::default(),
            cs_policy: PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0),
            pit_cs: PitCsLayout::default(),
            fib: FibConfig::with_max_entries(4 << 20),
            routes: None,
            schedule: Schedule::default(),
            burst_distance: BURST_DISTANCE,
            dead_nonces_max: 1 << 20,
            dead_nonce_lifetime: MIN_DEAD_NONCE_LIFETIME,
            max_lifetime_ms: MAX_LIFETIME_MS,
            unsolicited_data: UnsolicitedDataPolicy::DropAll,
            producer_regions: Vec::new(),
            verify_parameters_digest: false,
            management_prefix: None,
        }
    }
}

impl EngineConfig {
    /// How long a nonce stays on the dead nonce list: as configured, but at least six seconds.
    pub(crate) fn dead_nonce_lifetime(&self) -> Duration {
        self.dead_nonce_lifetime.max(MIN_DEAD_NONCE_LIFETIME)
    }
}

/// Which unsolicited Data the content store admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnsolicitedDataPolicy {
    /// None.
    #[default]
    DropAll,
    /// What programs on this host send.
    AdmitLocal,
    /// What other hosts send.
    AdmitNetwork,
    /// All.
    AdmitAll,
}

impl UnsolicitedDataPolicy {
    const LABELS: [(Self, &str); 4] = [
        (Self::DropAll, "drop-all"),
        (Self::AdmitLocal, "admit-local"),
        (Self::AdmitNetwork, "admit-network"),
        (Self::AdmitAll, "admit-all"),
    ];

    pub(crate) fn admits(self, from: FaceTraits) -> bool {
        match self {
            Self::DropAll => false,
            Self::AdmitLocal => from.is_local(),
            Self::AdmitNetwork => !from.is_local(),
            Self::AdmitAll => true,
        }
    }
}

impl fmt::Display for UnsolicitedDataPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = Self::LABELS.iter().find(|(policy, _)| policy == self);
        f.write_str(label.map_or("", |(_, label)| label))
    }
}

/// The text names no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown policy; use drop-all, admit-local, admit-network, admit-all")
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for UnsolicitedDataPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let label = Self::LABELS.iter().find(|(_, label)| *label == text);
        label.map(|(policy, _)| *policy).ok_or(UnknownPolicy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_written_as_they_are_read() {
        for (policy, label) in UnsolicitedDataPolicy::LABELS {
            assert_eq!(policy.to_string(), label);
            assert_eq!(label.parse(), Ok(policy));
        }
        assert_eq!("admit".parse::<UnsolicitedDataPolicy>(), Err(UnknownPolicy));
    }
}
