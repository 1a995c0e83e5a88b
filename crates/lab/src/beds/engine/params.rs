//! Parameters of the experiments that have a bed of the engine.

use anyhow::anyhow;
use tachonym_bench::{Context, Param, ParamKind};
use tachonym_forward::Schedule;
use tachonym_packet::HashKind;

use super::{BedOptions, policy};
pub(crate) use crate::beds::fib::PAGES_PARAM as PAGES;
use crate::beds::fib::page_choice;
use crate::choices::name_hash;

/// Prefixes in the FIB.
pub const PREFIXES: Param =
    Param::count("prefixes", "prefixes in the FIB", ["2k", "1M", "13548815"]);
/// Packets of a burst.
pub const BURST: Param = Param::new(
    "burst",
    "packets of a burst",
    ParamKind::Count { min: 1, max: 1_024 },
    ["32"; 3],
);
/// Capacity of the content store.
pub const STORE: Param = Param::new(
    "store",
    "Data in the content store, which is full",
    ParamKind::Count {
        min: 4_096,
        max: 1 << 28,
    },
    ["4096", "262144", "262144"],
);
/// Bursts between an Interest and its Data.
pub const LATE: Param = Param::new(
    "late",
    "bursts of Interests between a burst and its Data, so that its entries have left the \
     processor's caches",
    ParamKind::Count {
        min: 0,
        max: 65_536,
    },
    ["3", "0", "0"],
);
/// Packets of a round.
pub const PACKETS: Param = Param::count(
    "packets",
    "packets of each kind in a round, of everything that is measured",
    ["1024", "16384", "16384"],
);
/// Hash function of names.
pub const HASH: Param = Param::choice(
    "hash",
    "hash function of names; auto takes the fastest on this machine",
    &["auto", "siphash-2-4", "siphash-1-3", "multilinear-aes"],
    "auto",
);
/// Whether the tables share an index.
pub const PIT_CS: Param = Param::choice(
    "pit-cs",
    "whether pending Interests and cached Data share an index",
    &["separate", "composite"],
    "composite",
);
/// The policy of the content store, by default the published one.
pub const fn policy_of(default: &'static str) -> Param {
    Param::new(
        "policy",
        "eviction policy of the content store, or admission/eviction",
        ParamKind::Text,
        [default; 3],
    )
}

/// What the parameters say.
///
/// # Errors
/// If the hash function or the policy has another name.
pub fn options(context: &Context) -> anyhow::Result<BedOptions> {
    let hash: HashKind = name_hash(context.text("hash")).map_err(|error| anyhow!(error))?;
    Ok(BedOptions {
        n_prefixes: context.count("prefixes"),
        burst_pkts: context.size("burst"),
        store_pkts: context.size("store"),
        late_bursts: context.size("late"),
        seed: context.seed(),
        name_hash: hash,
        schedule: Schedule::default(),
        pit_cs: context.text("pit-cs").parse()?,
        policy: policy(context.text("policy"))?,
        pages: page_choice(context.text("pages")).into(),
    })
}

/// Bursts of a kind in a round.
#[must_use]
pub fn n_bursts(context: &Context) -> usize {
    context.size("packets").div_ceil(context.size("burst"))
}
