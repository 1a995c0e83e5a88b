//! What each worker has to do, measured by the very samples that find aggressive names, and
//! which name's move evens it out.
//!
//! Packets of a service cost alike, so that loads of its workers compare as the numbers of
//! samples at home there do. They are halved together with the counts of names, and a name
//! that moves takes its count along: what a worker's load will be after a move is known
//! before it. A move from a worker with load `h` to one with load `t` helps if the name's
//! `s` makes `t + s < h`: the larger of the two loads then falls, and the sum of squares of
//! all, so that under the same traffic moves come to an end, and no name goes to and fro.
//!
//! This is what the thesis lacks (Iqbal 2013, section 4.4.4): there, whatever aggressive
//! name arrives at an overloaded worker moves. A name that is larger than what the others
//! have left then overloads each worker in turn, for ever.

use crate::map::ServiceMap;
use crate::{MAX_WORKERS, WorkerId};

/// Part of a load by which loads must come closer for a move to be worth it: what counts of
/// 2,000 may differ by without a cause, and a bit.
const MARGIN: u64 = 32;

/// Samples at home at each worker.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    counts: Vec<u64>,
    n_until_halving: u32,
}

impl Loads {
    /// Nothing measured.
    pub(super) fn new(halve_every: u32) -> Self {
        Self {
            counts: vec![0; MAX_WORKERS],
            n_until_halving: halve_every,
        }
    }

    /// Counts a sample, and says whether so many came that all must be halved.
    #[inline]
    pub(super) fn handle_sample(&mut self, home: WorkerId, halve_every: u32) -> bool {
        self.counts[home.idx()] += 1;
        self.n_until_halving = self.n_until_halving.saturating_sub(1);
        if self.n_until_halving > 0 {
            return false;
        }
        self.n_until_halving = halve_every;
        true
    }

    /// Halves all.
    pub(super) fn halve(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
    }

    /// The load of a worker.
    pub(super) fn of(&self, worker: WorkerId) -> u64 {
        self.counts[worker.idx()]
    }

    /// Counts a name that moves.
    pub(super) fn handle_move(&mut self, from: WorkerId, to: WorkerId, count: u64) {
        let count = count.min(self.counts[from.idx()]);
        self.counts[from.idx()] -= count;
        self.counts[to.idx()] += count;
    }

    /// Divides what a service's workers have anew after its map changed, as the map says:
    /// what they really have is to be measured.
    pub(super) fn handle_map(&mut self, map: &ServiceMap, left: Option<WorkerId>) {
        let mut sum: u64 = map.workers().iter().map(|&worker| self.of(worker)).sum();
        if let Some(left) = left {
            sum += std::mem::take(&mut self.counts[left.idx()]);
        }
        for &worker in map.workers() {
            self.counts[worker.idx()] = (sum as f64 * map.share(worker)) as u64;
        }
    }
}

/// How well the move of a name with `count` samples from a load of `from` to one of `to`
/// evens them out: more is better; `None` if it does not help. Best is what makes them
/// equal; better too little than too much, since the loads may have been measured wrongly.
pub(super) fn benefit(count: u64, from: u64, to: u64) -> Option<u64> {
    let apart = from.checked_sub(to)?;
    let after = (2 * count).abs_diff(apart);
    let gain = apart.checked_sub(after)?;
    (gain > from / MARGIN).then_some(gain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_helps_if_loads_come_closer() {
        // Equal loads are the best.
        assert!(benefit(50, 200, 100) > benefit(40, 200, 100));
        assert!(benefit(50, 200, 100) > benefit(60, 200, 100));
        // As far apart as before, or as good as.
        assert_eq!(benefit(100, 200, 100), None);
        assert_eq!(benefit(98, 200, 100), None);
        assert_eq!(benefit(1, 200, 100), None);
        assert_eq!(benefit(10, 100, 200), None);
        assert_eq!(benefit(0, 0, 0), None);
    }
}
