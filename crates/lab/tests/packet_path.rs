//! The count of instructions of the packet path.

use std::path::Path;

use tachonym_forward::Schedule;
use tachonym_lab::instructions::{self, CountError, CountOptions};
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

const LAB: &str = env!("CARGO_BIN_EXE_tachonym-lab");

#[test]
fn instructions_are_the_same_every_time() {
    let options = CountOptions {
        n_prefixes: 50,
        burst_pkts: 2,
        store_pkts: 64,
        n_pkts: 2,
        seed: 3,
        pit_cs: PitCsLayout::default(),
        name_hash: HashKind::SipHash13,
        schedule: Schedule::default(),
    };
    let count = || instructions::count(Path::new(LAB), &options);
    let first = match count() {
        Ok(counts) => counts,
        // The step of `cargo xtask test` that counts is a skip then, and says so.
        Err(CountError::Unavailable(_)) => return,
        Err(CountError::Failed(error)) => panic!("{error:#}"),
    };
    for kind in &first {
        let in_blocks: f64 = kind.blocks.iter().map(|block| block.count.own).sum();
        let ratio = in_blocks / kind.total.own;
        assert!((0.8..1.25).contains(&ratio), "{kind:?}");
    }
    let second = count().map_err(|error| format!("{error:?}"));
    let own = |counts: &[instructions::KindCount]| -> Vec<f64> {
        let blocks = counts.iter().flat_map(|kind| &kind.blocks);
        let blocks = blocks.map(|block| block.count.own);
        counts.iter().map(|k| k.total.own).chain(blocks).collect()
    };
    assert_eq!(own(&first), own(&second.expect("it went well before")));
}
