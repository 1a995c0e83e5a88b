//! Published values of Takemasa 2019, chapters 3 and 5: cycles of a Xeon E5-2699 v4 at
//! 2.2 GHz, each for an Interest that misses, one that hits, and a Data.

use tachonym_bench::Reference;
use tachonym_forward::Block;

/// The document.
pub(super) const DOCUMENT: &str = "Takemasa 2019";

/// A row of one of Tables 3.1 to 3.5.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) place: &'static str,
    pub(super) what: &'static str,
    pub(super) values: [u32; 3],
}

const fn row(place: &'static str, what: &'static str, values: [u32; 3]) -> Row {
    Row {
        place,
        what,
        values,
    }
}

pub(super) const CYCLES: Row = row("Table 3.1", "cycles", [1470, 860, 565]);
pub(super) const MEMORY_BYTES: Row = row("Table 3.1", "memory traffic, bytes", [909, 511, 816]);

/// The rows of Tables 3.2 to 3.5, in their order.
pub(super) const COUNTERS: [Row; 17] = [
    row("Table 3.2", "total", [1470, 860, 565]),
    row("Table 3.2", "front end", [161, 40, 73]),
    row("Table 3.2", "back end", [662, 359, 220]),
    row("Table 3.2", "speculation", [161, 18, 42]),
    row("Table 3.2", "retirement", [486, 443, 230]),
    row("Table 3.3", "load", [512, 256, 146]),
    row("Table 3.3", "store", [10, 11, 14]),
    row("Table 3.3", "core", [140, 92, 60]),
    row("Table 3.4", "L1D", [33, 66, 20]),
    row("Table 3.4", "L2", [0, 0, 0]),
    row("Table 3.4", "L3", [19, 28, 32]),
    row("Table 3.4", "DRAM", [460, 162, 94]),
    row("Table 3.5", "loads", [328, 289, 127]),
    row("Table 3.5", "loads from L1D", [322, 286, 122]),
    row("Table 3.5", "loads from L2", [1, 1, 2]),
    row("Table 3.5", "loads from L3", [1, 1, 2]),
    row("Table 3.5", "loads from DRAM", [4, 1, 1]),
];

/// Cycles of a miss and of a hit, by blocks.
pub(super) const MISS_CYCLES: f64 = 2016.0;
pub(super) const HIT_CYCLES: f64 = 791.0;
pub(super) const SECTION_3_3_2: Reference = Reference::stated(DOCUMENT, "section 3.3.2");

/// Cycles of a block: Table 5.1 (B1 to B11); `None` for what is in Table 5.2 by policy.
pub(crate) const fn block(block: Block) -> Option<u32> {
    Some(match block {
        Block::InterestReception => 571,
        Block::StoreLookup => 148,
        Block::StoreFetch => 72,
        Block::PendingInsertion | Block::DataReception => 188,
        Block::FibLookup => 413,
        Block::InterestTransmission => 56,
        Block::PendingRemoval => 73,
        Block::StoreInsertion => 329,
        Block::DataTransmission => 50,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(place: &str, what: &str, kind: usize) -> u32 {
        let row = COUNTERS
            .iter()
            .find(|it| it.place == place && it.what == what);
        row.expect(what).values[kind]
    }

    #[test]
    fn published_stages_add_up() {
        for kind in 0..3 {
            let sum = |place, parts: &[&str]| -> u32 {
                parts.iter().map(|part| value(place, part, kind)).sum()
            };
            let stages = ["front end", "back end", "speculation", "retirement"];
            assert_eq!(sum("Table 3.2", &stages), CYCLES.values[kind]);
            let back_end = value("Table 3.2", "back end", kind);
            assert_eq!(sum("Table 3.3", &["load", "store", "core"]), back_end);
            let load = value("Table 3.3", "load", kind);
            let by_level = sum("Table 3.4", &["L1D", "L2", "L3", "DRAM"]);
            assert_eq!(by_level, load);
        }
    }

    #[test]
    fn published_blocks_make_the_published_miss_and_hit() {
        let sum = |blocks: &[Block]| -> u32 { blocks.iter().filter_map(|it| block(*it)).sum() };
        use Block as B;
        let miss = [
            B::InterestReception,
            B::StoreLookup,
            B::PendingInsertion,
            B::FibLookup,
            B::InterestTransmission,
            B::DataReception,
            B::PendingRemoval,
            B::StoreInsertion,
            B::DataTransmission,
        ];
        assert_eq!(f64::from(sum(&miss)), MISS_CYCLES);
        // The published sum leaves the transmission out.
        let hit = [B::InterestReception, B::StoreLookup, B::StoreFetch];
        assert_eq!(f64::from(sum(&hit)), HIT_CYCLES);
    }
}
