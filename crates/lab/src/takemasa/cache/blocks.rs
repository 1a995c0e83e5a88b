//! The numbered blocks of the packet path, measured in the engine.

use tachonym_forward::Schedule;
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

use super::cycles::Measurement;
use crate::bottleneck::{BottleneckArgs, NumberedBlock, numbered_blocks};
use crate::choices::PageChoice;

/// Sizes of the engine whose blocks are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) n_fib_prefixes: u64,
    pub(super) store_pkts: u32,
    pub(super) n_rounds: u16,
    /// Packets of each kind in a round.
    pub(super) n_packets: u32,
    pub(super) seed: u64,
}

/// Measures the blocks of Table 5.1: B1, B3 to B11.
///
/// # Errors
/// If the tables cannot be built.
pub(super) fn measure(sizes: Sizes) -> anyhow::Result<Vec<NumberedBlock>> {
    numbered_blocks(&BottleneckArgs {
        fib_prefixes: sizes.n_fib_prefixes,
        burst: 32,
        store: sizes.store_pkts,
        late: 0,
        rounds: sizes.n_rounds,
        packets: sizes.n_packets,
        name_hash: HashKind::fastest(),
        schedule: Schedule::default(),
        pit_cs: PitCsLayout::default(),
        pages: PageChoice::Auto,
        seed: sizes.seed,
        svg: None,
        no_instructions: true,
        json: false,
    })
}

/// The blocks by number in nanoseconds, without what the engine's policy has in them: it is
/// LRU, whose history update lies in B3 and whose eviction lies in B10.
///
/// # Errors
/// If LRU cannot be measured.
pub(super) fn without_policy(
    blocks: &[NumberedBlock],
    measurement: &Measurement,
) -> anyhow::Result<[f64; 14]> {
    let lru = measurement.rows(&["lru".to_owned()])?;
    let [history, evict, _] = lru[0].medians()?;
    let mut by_number = [0.0; 14];
    for block in blocks {
        by_number[usize::from(block.number)] = block.ns;
    }
    by_number[3] = (by_number[3] - history).max(0.0);
    by_number[10] = (by_number[10] - evict).max(0.0);
    Ok(by_number)
}
