//! The processor's own counters for each kind of packet, where it has any.
//!
//! The kernel's generic events only: cycles, instructions, stalls of the pipeline's two
//! ends, cache accesses and misses. How stalls are divided among units and cache levels
//! takes events that differ by processor, and stays empty.

use crate::beds::engine::workload::Burst;
use crate::beds::engine::{Bed, Kind, Listener, SendBuffer};
use crate::sys::perf::{self, Counter, Event};

/// Generic events: `perf_hw_id` and `perf_hw_cache_id` of include/uapi/linux/perf_event.h.
const EVENTS: [Event; 9] = [
    Event::hardware(0),
    Event::hardware(1),
    Event::hardware(7),
    Event::hardware(8),
    Event::hardware(5),
    Event::reads(L1D),
    Event::read_misses(L1D),
    Event::reads(LAST_LEVEL),
    Event::read_misses(LAST_LEVEL),
];
const L1D: u64 = 0;
const LAST_LEVEL: u64 = 2;

/// Events per packet; `None` where the processor does not count one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) cycles: Option<f64>,
    pub(super) instructions: Option<f64>,
    pub(super) frontend: Option<f64>,
    pub(super) backend: Option<f64>,
    pub(super) branch_misses: Option<f64>,
    pub(super) loads: Option<f64>,
    pub(super) l1d_misses: Option<f64>,
    pub(super) last_level: Option<f64>,
    pub(super) dram: Option<f64>,
}

/// Starts counters with a burst and stops them with its end.
struct Switch;

impl Listener for Switch {
    fn begin(&mut self) {
        perf::switch_on();
    }

    fn end(&mut self) {
        perf::switch_off();
    }
}

/// Events of `n_bursts` of each kind, in the order of [`Kind::ALL`].
///
/// # Errors
/// The reason, in one line, if the kernel opens no counter.
pub(super) fn count(bed: &mut Bed, n_bursts: usize) -> Result<[Counted; 3], String> {
    let mut refusal = String::new();
    let mut counters: Vec<Option<Counter>> = Vec::new();
    for event in EVENTS {
        counters.push(match Counter::open(event) {
            Ok(counter) => Some(counter),
            Err(error) => {
                refusal = error.to_string();
                None
            }
        });
    }
    if counters.iter().all(Option::is_none) {
        return Err(refusal);
    }
    let mut out = SendBuffer::new(Switch);
    let mut silent = SendBuffer::new(());
    let mut burst = Burst::default();
    let mut by_kind = [Counted::default(); 3];
    for (counted, measured) in by_kind.iter_mut().zip(Kind::ALL) {
        let before = read(&mut counters);
        let mut n_pkts = 0;
        for _ in 0..n_bursts {
            for kind in [Kind::Miss, Kind::Data, Kind::Hit] {
                bed.write_burst(kind, &mut burst);
                if kind == measured {
                    n_pkts += burst.len();
                    bed.carry(kind, &burst, &mut out);
                } else {
                    bed.carry(kind, &burst, &mut silent);
                }
            }
        }
        let after = read(&mut counters);
        let of = |idx: usize| {
            let grown = after[idx]? - before[idx].unwrap_or(0.0);
            (n_pkts > 0).then(|| grown / n_pkts as f64)
        };
        *counted = Counted {
            cycles: of(0),
            instructions: of(1),
            frontend: of(2),
            backend: of(3),
            branch_misses: of(4),
            loads: of(5),
            l1d_misses: of(6),
            last_level: of(7),
            dram: of(8),
        };
    }
    Ok(by_kind)
}

fn read(counters: &mut [Option<Counter>]) -> Vec<Option<f64>> {
    let counters = counters.iter_mut();
    counters
        .map(|counter| counter.as_mut()?.read().ok().flatten())
        .collect()
}

impl Counted {
    /// Loads that the first, the second, and the last level answered, and memory.
    pub(super) fn loads_by_level(&self) -> [Option<f64>; 4] {
        let minus = |of: Option<f64>, less: Option<f64>| Some((of? - less?).max(0.0));
        [
            minus(self.loads, self.l1d_misses),
            minus(self.l1d_misses, self.last_level),
            minus(self.last_level, self.dram),
            self.dram,
        ]
    }

    /// Cycles in which the pipeline was not stalled: speculation and retirement together.
    pub(super) fn busy(&self) -> Option<f64> {
        Some(self.cycles? - self.frontend? - self.backend?)
    }
}
