//! At which lengths of names Interests with CanBePrefix wait at each worker.
//!
//! A line for each worker, which it alone writes, and only when that changes.

use std::sync::atomic::{AtomicU64, Ordering};

use tachonym_dispatch::WorkerId;

/// See the module: a bit for each length, the highest for all from 63 on.
#[derive(Debug)]
pub struct WaitingLengths(Box<[Lengths]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Lengths(AtomicU64);

impl WaitingLengths {
    /// None anywhere, for so many workers.
    #[must_use]
    pub fn new(n_workers: usize) -> Self {
        Self((0..n_workers).map(|_| Lengths::default()).collect())
    }

    /// Whether there is one worker alone.
    #[inline]
    pub(crate) fn is_of_one(&self) -> bool {
        self.0.len() == 1
    }

    /// What waits at a worker; whoever gets a packet of it afterwards sees that.
    pub(crate) fn publish(&self, worker: WorkerId, lengths: u64) {
        let published = &self.0[worker.idx()].0;
        if published.load(Ordering::Relaxed) != lengths {
            published.store(lengths, Ordering::Release);
        }
    }

    /// What waits at a worker.
    pub(crate) fn of(&self, worker: WorkerId) -> u64 {
        self.0[worker.idx()].0.load(Ordering::Acquire)
    }

    /// What waits at any worker but this.
    pub(crate) fn of_others(&self, me: WorkerId) -> u64 {
        let others = self
            .0
            .iter()
            .enumerate()
            .filter(|&(idx, _)| idx != me.idx());
        others.fold(0, |all, (_, lengths)| {
            all | lengths.0.load(Ordering::Acquire)
        })
    }
}

/// The bit of a length.
pub(crate) const fn bit_of(length: usize) -> u64 {
    1 << if length < 63 { length } else { 63 }
}
