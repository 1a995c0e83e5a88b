//! The numbered blocks of the packet path, measured in the router's engine.

use tachonym_bench::{Context, Param};
use tachonym_forward::Block;
use tachonym_packet::HashKind;

use super::sources::policy;
use crate::beds::engine::cycles::Cycles;
use crate::beds::engine::{Bed, BedOptions};

/// Prefixes in the FIB of the engine.
pub(super) const PREFIXES: Param = Param::count(
    "prefixes",
    "FIB prefixes of the engine",
    ["2k", "1M", "13548815"],
);
/// Data in the content store of the engine.
pub(super) const STORE: Param = Param::count(
    "store",
    "Data in the content store of the engine, which is full",
    ["4096", "100k", "100k"],
);
/// Packets of a round.
pub(super) const PACKETS: Param = Param::count(
    "packets",
    "packets of each kind in a round, whole and by block",
    ["1024", "16384", "16384"],
);

/// Measures the blocks with a policy of the content store.
///
/// # Errors
/// If there is no such policy, or the tables cannot be built.
pub(super) fn measure(context: &Context, name: &str) -> anyhow::Result<Cycles> {
    let options = BedOptions {
        n_prefixes: context.count("prefixes"),
        store_pkts: context.size("store"),
        seed: context.seed(),
        name_hash: HashKind::fastest(),
        policy: policy(name, 0)?,
        ..BedOptions::default()
    };
    let n_bursts = context.size("packets").div_ceil(options.burst_pkts);
    Cycles::measure(&mut Bed::new(options)?, context.rounds(), n_bursts)
}

/// Nanoseconds by the number of the block; 0 for blocks that no packet enters.
pub(super) fn by_number(cycles: &Cycles) -> [f64; 14] {
    let mut by_number = [0.0; 14];
    for block in Block::ALL {
        if let Some(number) = block.number() {
            let ticks = cycles.block(block).unwrap_or(0.0);
            by_number[usize::from(number)] = ticks * cycles.clock.tick_ns;
        }
    }
    by_number
}
