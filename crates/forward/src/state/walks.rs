//! Walks over the pending Interest table that are wanted or under way.

use std::ops::Range;

use tachonym_packet::{FaceId, MonoNs};

/// Distance of two walks for faces that have gone, in milliseconds.
const SWEEP_INTERVAL_MS: u64 = 100;

/// Distance of two walks for new next hops, in milliseconds.
const RETRY_INTERVAL_MS: u64 = 10;

/// Most entries that one kind of work visits in a call; they take less than a
/// millisecond.
pub(crate) const MAX_ENTRIES_PER_CALL: usize = 1024;

/// A kind of walk: whether one is wanted, and where the one under way continues.
#[derive(Debug)]
pub(crate) struct Walk {
    interval_ms: u64,
    pub(crate) is_wanted: bool,
    next_place: Option<u32>,
    last: MonoNs,
}

impl Walk {
    const fn every(interval_ms: u64) -> Self {
        Self {
            interval_ms,
            is_wanted: false,
            next_place: None,
            last: MonoNs::ZERO,
        }
    }

    /// When the next step is due.
    pub(crate) fn due_at(&self) -> Option<MonoNs> {
        match self.next_place {
            Some(_) => Some(self.last),
            None => self.is_wanted.then(|| self.last.plus_ms(self.interval_ms)),
        }
    }

    pub(crate) fn is_due(&self, now: MonoNs) -> bool {
        self.due_at().is_some_and(|at| at <= now)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_wanted || self.is_under_way()
    }

    pub(crate) const fn is_under_way(&self) -> bool {
        self.next_place.is_some()
    }

    /// Gives up the walk under way.
    pub(crate) const fn restart(&mut self) {
        self.next_place = None;
    }

    /// The places to visit now, of `n_places`.
    pub(crate) fn step(&mut self, now: MonoNs, n_places: u32) -> Range<u32> {
        let start = self.next_place.take().unwrap_or_else(|| {
            // Events from now on may concern entries that the walk has passed.
            self.is_wanted = false;
            0
        });
        self.last = now;
        let end = start.saturating_add(MAX_ENTRIES_PER_CALL as u32);
        self.next_place = (end < n_places).then_some(end);
        start..end.min(n_places)
    }
}

/// Work put off, and when it was last done.
#[derive(Debug)]
pub(crate) struct Upkeep {
    /// For records of faces that have gone.
    pub(crate) sweep: Walk,
    /// For pending Interests that new next hops may answer, where a strategy retries them.
    pub(crate) retry: Walk,
    pub(crate) highest_face: FaceId,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            sweep: Walk::every(SWEEP_INTERVAL_MS),
            retry: Walk::every(RETRY_INTERVAL_MS),
            highest_face: FaceId::default(),
        }
    }
}
