//! Names of Data that are cached, for Interests that are to hit.

use tachonym_policy::{AdmissionKind, EvictionKind};

use super::BedOptions;
use tachonym_bench::random::Random;

/// Draws numbers of names whose Data are cached.
///
/// A store that admits all Data and evicts by age has the youngest quarter for certain, and one
/// whose filter admits a first request nearly so. Of other policies, the store is asked about names some time before they are drawn, so that
/// asking does not bring their lines into the processor's caches right before they are used.
#[derive(Debug)]
pub(super) struct Hits {
    random: Random,
    is_by_age: bool,
    are_sure: bool,
    store_pkts: u64,
    /// Names that were cached when they were drawn last, found again by drawing.
    known: Vec<u64>,
    /// Names to hand out next.
    ready: Vec<u64>,
    /// Names that are asked about together.
    n_ready: usize,
}

impl Hits {
    pub(super) fn new(options: &BedOptions) -> Self {
        let policy = options.policy;
        // The request right before a Data is one, as many as this threshold asks for. It is
        // hardly ever not counted.
        let is_admitted_at_once = policy.admission == AdmissionKind::Filter
            && policy.threshold <= 1
            && options.late_bursts == 0;
        let is_evicted_by_age = matches!(policy.eviction, EvictionKind::Lru | EvictionKind::Fifo);
        let is_admitted = policy.admission == AdmissionKind::None;
        Self {
            random: Random::new(!options.seed),
            is_by_age: is_evicted_by_age && (is_admitted || is_admitted_at_once),
            are_sure: is_evicted_by_age && is_admitted,
            store_pkts: options.store_pkts as u64,
            known: Vec::new(),
            ready: Vec::new(),
            n_ready: (options.store_pkts / 128).max(options.burst_pkts),
        }
    }

    /// Whether each drawn name hits.
    pub(super) const fn are_sure(&self) -> bool {
        self.are_sure
    }

    /// The number of a name whose Data is cached, of those below `n_answered`.
    pub(super) fn draw(&mut self, n_answered: u64, is_cached: impl FnMut(u64) -> bool) -> u64 {
        if self.is_by_age {
            return n_answered - 1 - self.random.next_u64() % (self.store_pkts / 4);
        }
        if self.ready.is_empty() {
            self.refill(n_answered, is_cached);
        }
        self.ready.pop().unwrap_or(n_answered - 1)
    }

    fn refill(&mut self, n_answered: u64, mut is_cached: impl FnMut(u64) -> bool) {
        let max_known = (self.store_pkts / 4) as usize;
        // Bounded, should the store have hardly anything.
        for _ in 0..64 * self.n_ready {
            if self.ready.len() == self.n_ready {
                return;
            }
            let idx = self.random.next_u64() as usize % max_known;
            let number = match self.known.get(idx) {
                Some(&number) => number,
                // Data that came while the store was not full yet, or of late.
                None if self.random.next_u64().is_multiple_of(2) => {
                    self.random.next_u64() % self.store_pkts.min(n_answered)
                }
                None => n_answered - 1 - self.random.next_u64() % self.store_pkts.min(n_answered),
            };
            match is_cached(number) {
                true => {
                    self.ready.push(number);
                    if idx >= self.known.len() {
                        self.known.push(number);
                    }
                }
                false if idx < self.known.len() => _ = self.known.swap_remove(idx),
                false => {}
            }
        }
    }
}
