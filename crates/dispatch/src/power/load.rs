//! The load of a router by its packets: equations 6.11 to 6.15 of Takemasa 2019.
//!
//! An exchange is an Interest and its Data. Blocks are those of the thesis's packet path:
//! B1, B2, B3 and B11 run for each Interest, B4 for one that hits, B5 to B9 for one that
//! misses. B10 (insertion) and B12 (eviction) run for each miss of a router that admits all
//! Data, B13 (admission) for each miss of one that does not, B10 then for what it admits.

use super::model::Load;

/// Blocks of the packet path.
pub const N_BLOCKS: usize = 13;

/// What each of B1 to B13 takes in cycles or in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks(pub [f64; N_BLOCKS]);

impl Blocks {
    /// A block by its number in the thesis, from 1; 0 for one that does not exist.
    #[must_use]
    pub fn get(&self, n: usize) -> f64 {
        let idx = n.checked_sub(1);
        idx.and_then(|it| self.0.get(it)).copied().unwrap_or(0.0)
    }
}

/// Cycles of B1, B3 to B11 (Table 5.1); those of B2, B12 and B13 depend on the policy.
const CYCLES: [f64; N_BLOCKS] = [
    571.0, 0.0, 148.0, 72.0, 188.0, 413.0, 56.0, 188.0, 73.0, 329.0, 50.0, 0.0, 0.0,
];

impl Blocks {
    /// Published cycles of a router that admits all Data, by FIFO (Tables 5.1 and 5.2).
    pub const FIFO_CYCLES: Self = Self(CYCLES);
    /// Published cycles of a router that admits some, by Filter.
    pub const FILTER_CYCLES: Self = {
        let mut cycles = CYCLES;
        cycles[1] = 83.0;
        cycles[12] = 28.0;
        Self(cycles)
    };

    /// What a block does, by its number in the thesis, from 1.
    pub const NAMES: [&str; N_BLOCKS] = [
        "Interest received and decoded",
        "popularity counted",
        "content store lookup",
        "Data sent from the content store",
        "PIT lookup and insertion",
        "FIB lookup",
        "Interest sent",
        "Data received and decoded",
        "PIT lookup and removal",
        "content store insertion",
        "Data sent",
        "eviction",
        "admission",
    ];
}

/// Which Data a store admits, and how often packets are found in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Store {
    /// All that arrive (equations 6.11 and 6.12).
    AdmitsAll {
        /// Share of Interests that hit.
        hits: f64,
    },
    /// Some, by an admission policy; its eviction costs nothing (equations 6.14 and 6.15).
    Admits {
        /// Share of Interests that hit.
        hits: f64,
        /// Share of arriving Data that are inserted.
        insertions: f64,
    },
}

impl Store {
    /// Share of Interests that hit.
    #[must_use]
    pub const fn hits(self) -> f64 {
        match self {
            Self::AdmitsAll { hits } | Self::Admits { hits, .. } => hits,
        }
    }

    /// How often each block runs in an exchange, B1 first.
    #[must_use]
    pub fn runs(self) -> [f64; N_BLOCKS] {
        let (hit, miss) = (self.hits(), 1.0 - self.hits());
        let (insertion, eviction, admission) = match self {
            Self::AdmitsAll { .. } => (miss, miss, 0.0),
            Self::Admits { insertions, .. } => (miss * insertions, 0.0, miss),
        };
        let [b1, b2, b3, b11] = [1.0; 4];
        let [b5, b6, b7, b8, b9] = [miss; 5];
        [
            b1, b2, b3, hit, b5, b6, b7, b8, b9, insertion, b11, eviction, admission,
        ]
    }

    /// What each block takes in an exchange.
    #[must_use]
    pub fn by_block(self, blocks: &Blocks) -> [f64; N_BLOCKS] {
        let mut taken = self.runs();
        for (taken, cost) in taken.iter_mut().zip(blocks.0) {
            *taken *= cost;
        }
        taken
    }

    /// What all blocks take in an exchange.
    #[must_use]
    pub fn exchange(self, blocks: &Blocks) -> f64 {
        self.by_block(blocks).iter().sum()
    }

    /// IP packets that the network cards forward in an exchange (equation 6.13).
    #[must_use]
    pub fn packets(self) -> f64 {
        2.0 - self.hits()
    }

    /// The load of a rate of Interests.
    #[must_use]
    pub fn load(self, cycles: &Blocks, bytes: &Blocks, interests_per_s: f64) -> Load {
        Load {
            cycles_hz: interests_per_s * self.exchange(cycles),
            memory_bytes_per_s: interests_per_s * self.exchange(bytes),
            packets_per_s: interests_per_s * self.packets(),
        }
    }

    /// Divides the watts of the processors among blocks, by the cycles of each.
    #[must_use]
    pub fn watts_by_block(self, cycles: &Blocks, cpu_w: f64) -> [f64; N_BLOCKS] {
        let mut taken = self.by_block(cycles);
        let total: f64 = taken.iter().sum();
        for taken in &mut taken {
            *taken = if total > 0.0 {
                cpu_w * *taken / total
            } else {
                0.0
            };
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 5.1, with FIFO or with Filter of Table 5.2.
    fn cycles([b2, b12, b13]: [f64; 3]) -> Blocks {
        Blocks([
            571.0, b2, 148.0, 72.0, 188.0, 413.0, 56.0, 188.0, 73.0, 329.0, 50.0, b12, b13,
        ])
    }

    const FIFO: Store = Store::AdmitsAll { hits: 0.238 };
    const FILTER: Store = Store::Admits {
        hits: 0.341,
        insertions: 0.03,
    };

    #[test]
    fn an_exchange_runs_its_groups_of_blocks() {
        let fifo = FIFO.exchange(&cycles([0.0; 3]));
        let expected = 769.0 + 0.238 * 72.0 + 0.762 * (918.0 + 329.0);
        assert!((fifo - expected).abs() < 1e-9 && (fifo - 1736.0).abs() < 1.0);
        let filter = FILTER.exchange(&cycles([83.0, 0.0, 28.0]));
        let expected = 852.0 + 0.341 * 72.0 + 0.659 * (918.0 + 28.0 + 0.03 * 329.0);
        assert!((filter - expected).abs() < 1e-9 && (filter - 1506.0).abs() < 1.0);
        // Eviction is of the naive router only, admission of the optimised one.
        let only = |n: usize| Blocks(std::array::from_fn(|it| f64::from(u8::from(it + 1 == n))));
        assert!((FIFO.exchange(&only(12)) - 0.762).abs() < 1e-12);
        assert_eq!(FIFO.exchange(&only(13)), 0.0);
        assert_eq!(FILTER.exchange(&only(12)), 0.0);
        assert!((FILTER.exchange(&only(13)) - 0.659).abs() < 1e-12);
        assert_eq!(
            (only(4).get(4), only(4).get(0), only(4).get(14)),
            (1.0, 0.0, 0.0)
        );
    }

    #[test]
    fn a_hit_is_one_packet_forwarded_and_a_miss_is_two() {
        let packets = |hits| Store::AdmitsAll { hits }.packets();
        assert_eq!((packets(0.0), packets(1.0)), (2.0, 1.0));
        let (cycles, bytes) = (cycles([0.0; 3]), Blocks([1.0; N_BLOCKS]));
        let load = FIFO.load(&cycles, &bytes, 1e6);
        assert!((load.packets_per_s - 1.762e6).abs() < 1e-3);
        assert!((load.cycles_hz - 1e6 * FIFO.exchange(&cycles)).abs() < 1e-3);
        assert!((load.memory_bytes_per_s - 1e6 * (4.0 + 0.238 + 0.762 * 7.0)).abs() < 1e-3);
    }

    #[test]
    fn blocks_have_all_the_watts_by_their_cycles() {
        let cycles = cycles([83.0, 0.0, 28.0]);
        let watts = FILTER.watts_by_block(&cycles, 28.0);
        assert!((watts.iter().sum::<f64>() - 28.0).abs() < 1e-9);
        assert!((watts[0] / watts[2] - 571.0 / 148.0).abs() < 1e-9);
        let none = FILTER.watts_by_block(&Blocks([0.0; N_BLOCKS]), 28.0);
        assert_eq!(none, [0.0; N_BLOCKS]);
    }
}
