//! What the processor's own counters say of each kind of packet, where there are
//! any.
//!
//! The kernel's generic events only: cycles, instructions, stalls of the pipeline's
//! two ends, misses. How the backend's stalls are shared out among cache levels
//! (Takemasa 2019, Table 3.4) takes events that differ by processor, and is not told.

use serde::Serialize;

use super::published;
use crate::engine_bed::workload::Burst;
use crate::engine_bed::{Bed, Kind, Listener, SendBuffer};
use crate::sys::perf::{self, Counter, Event};

/// A generic event (`perf_hw_id` and `perf_hw_cache_id` of
/// include/uapi/linux/perf_event.h), and its published counterpart.
struct Known {
    label: &'static str,
    event: Event,
    published: fn(Kind) -> Option<u32>,
}

const KNOWN: [Known; 7] = [
    Known {
        label: "cycles",
        event: Event::hardware(0),
        published: |kind| Some(published::of(kind).cycles),
    },
    Known {
        label: "instructions",
        event: Event::hardware(1),
        published: |_| None,
    },
    Known {
        label: "cycles stalled, frontend",
        event: Event::hardware(7),
        published: |kind| Some(published::of(kind).frontend),
    },
    Known {
        label: "cycles stalled, backend",
        event: Event::hardware(8),
        published: |kind| Some(published::of(kind).backend),
    },
    Known {
        label: "branch misses",
        event: Event::hardware(5),
        published: |_| None,
    },
    Known {
        label: "last-level read misses",
        event: Event::read_misses(2),
        published: |kind| Some(published::of(kind).dram_loads),
    },
    Known {
        label: "data TLB read misses",
        event: Event::read_misses(3),
        published: |_| None,
    },
];

/// One counter's figure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    /// Which counter.
    pub event: &'static str,
    /// Events per packet, as in [`Kind::ALL`]; `None` where the counter got no
    /// turn.
    pub per_packet: [Option<f64>; Kind::ALL.len()],
    /// The published figures.
    pub published: [Option<u32>; Kind::ALL.len()],
}

/// Lets counters run during bursts.
struct Switch;

impl Listener for Switch {
    fn begin(&mut self) {
        perf::switch_on();
    }

    fn end(&mut self) {
        perf::switch_off();
    }
}

/// What the counters say over `n_bursts` of each kind.
///
/// # Errors
/// The reason, in one line, if this machine has no hardware counter for this
/// program, and how many events it was asked for.
pub(super) fn run(bed: &mut Bed, n_bursts: usize) -> Result<Vec<Counted>, String> {
    let mut refusal = None;
    let mut opened = Vec::new();
    for known in &KNOWN {
        match Counter::open(known.event) {
            Ok(counter) => opened.push((known, counter)),
            Err(error) => refusal = refusal.or(Some(format!("{}: {error}", known.label))),
        }
    }
    if opened.is_empty() {
        return Err(refusal.unwrap_or_default());
    }
    let mut events = vec![[None; Kind::ALL.len()]; opened.len()];
    let mut out = SendBuffer::new(Switch);
    let mut silent = SendBuffer::new(());
    let mut burst = Burst::default();
    for (measured_idx, &measured) in Kind::ALL.iter().enumerate() {
        let before = read(&mut opened);
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
        let after = read(&mut opened);
        for (i, (before, after)) in before.into_iter().zip(after).enumerate() {
            let grown = after.map(|after| after - before.unwrap_or(0.0));
            events[i][measured_idx] = grown
                .filter(|_| n_pkts > 0)
                .map(|grown| grown / n_pkts as f64);
        }
    }
    let counted = opened.iter().zip(events);
    Ok(counted
        .map(|((known, _), per_packet)| Counted {
            event: known.label,
            per_packet,
            published: Kind::ALL.map(known.published),
        })
        .collect())
}

fn read(opened: &mut [(&Known, Counter)]) -> Vec<Option<f64>> {
    let counters = opened.iter_mut();
    counters
        .map(|(_, counter)| counter.read().ok().flatten())
        .collect()
}
