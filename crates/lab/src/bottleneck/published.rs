//! The figures of Takemasa 2019, beside which ours are printed: cycles of a Xeon
//! E5-2699 v4 at 2.2 GHz.

use tachonym_forward::Block;

use crate::engine_bed::Kind;

/// Share of Interests that hit, in the thesis' estimate of packets per second.
pub(super) const HIT_SHARE: f64 = 0.3;
/// Cycles per packet at that share (section 3.2.3).
pub(super) const MEAN_CYCLES: f64 = 925.4;
/// Rate of a core of its first computer, in Hz.
pub(super) const CORE_HZ: f64 = 2.2e9;
/// Cores of its first computer.
pub(super) const N_CORES: f64 = 22.0;

/// What one packet took (Tables 3.1 to 3.5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// In all.
    pub(super) cycles: u32,
    /// Pipeline stalled for want of instructions.
    pub(super) frontend: u32,
    /// Pipeline stalled by execution units and memory.
    pub(super) backend: u32,
    /// Wasted on branches that went the other way.
    pub(super) speculation: u32,
    /// Instructions executed to the end.
    pub(super) retirement: u32,
    /// Loads that went to DRAM.
    pub(super) dram_loads: u32,
}

pub(super) const fn of(kind: Kind) -> Published {
    match kind {
        Kind::Miss => Published {
            cycles: 1470,
            frontend: 161,
            backend: 662,
            speculation: 161,
            retirement: 486,
            dram_loads: 4,
        },
        Kind::Hit => Published {
            cycles: 860,
            frontend: 40,
            backend: 359,
            speculation: 18,
            retirement: 443,
            dram_loads: 1,
        },
        Kind::Data => Published {
            cycles: 565,
            frontend: 73,
            backend: 220,
            speculation: 42,
            retirement: 230,
            dram_loads: 1,
        },
    }
}

/// Cycles of a block (Table 5.1), or their span over cache algorithms (Table 5.2).
pub(super) const fn block(block: Block) -> Option<&'static str> {
    match block {
        Block::InterestReception => Some("571"),
        Block::HistoryUpdate => Some("0-173"),
        Block::StoreLookup => Some("148"),
        Block::StoreFetch => Some("72"),
        Block::PendingInsertion => Some("188"),
        Block::FibLookup => Some("413"),
        Block::InterestTransmission => Some("56"),
        Block::DataReception => Some("188"),
        Block::PendingRemoval => Some("73"),
        Block::StoreInsertion => Some("329"),
        Block::DataTransmission => Some("50"),
        Block::Eviction => Some("0-202"),
        Block::Admission => Some("0-282"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_of_the_pipeline_add_up_to_the_whole() {
        for kind in Kind::ALL {
            let of = of(kind);
            let stages = of.frontend + of.backend + of.speculation + of.retirement;
            assert_eq!(stages, of.cycles, "{kind:?}");
        }
    }

    #[test]
    fn every_numbered_block_has_a_figure() {
        for of in Block::ALL {
            assert_eq!(block(of).is_some(), of.number().is_some(), "{of:?}");
        }
    }
}
