//! Numbers of workers and services, and sets of workers.

use std::fmt;

/// Most workers that there may be: what a [`WorkerSet`] holds.
pub const MAX_WORKERS: usize = 128;

/// Most services that there may be.
pub const MAX_SERVICES: usize = 64;

/// A worker, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

impl WorkerId {
    /// Its place in arrays that have an element for each worker.
    #[must_use]
    pub const fn idx(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A service: packets that take the same processing, counted from 0.
///
/// What belongs to a service is decided by names alone, and by a prefix of them: an
/// Interest and the Data for it must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u8);

impl ServiceId {
    /// Its place in arrays that have an element for each service.
    #[must_use]
    pub const fn idx(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Some of up to [`MAX_WORKERS`] workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerSet(u128);

impl WorkerSet {
    /// None.
    pub const EMPTY: Self = Self(0);

    /// This one alone.
    ///
    /// # Panics
    /// If there can't be such a worker.
    #[must_use]
    pub const fn only(worker: WorkerId) -> Self {
        assert!(worker.idx() < MAX_WORKERS, "more workers than there may be");
        Self(1 << worker.0)
    }

    /// Adds a worker.
    ///
    /// # Panics
    /// If there can't be such a worker.
    pub const fn insert(&mut self, worker: WorkerId) {
        self.0 |= Self::only(worker).0;
    }

    /// Takes a worker out.
    pub const fn remove(&mut self, worker: WorkerId) {
        if worker.idx() < MAX_WORKERS {
            self.0 &= !(1 << worker.0);
        }
    }

    /// Those of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a worker is one of them.
    #[must_use]
    pub const fn contains(self, worker: WorkerId) -> bool {
        worker.idx() < MAX_WORKERS && self.0 >> worker.0 & 1 != 0
    }

    /// How many.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<WorkerId> for WorkerSet {
    fn from_iter<I: IntoIterator<Item = WorkerId>>(workers: I) -> Self {
        let mut set = Self::EMPTY;
        for worker in workers {
            set.insert(worker);
        }
        set
    }
}

impl IntoIterator for WorkerSet {
    type Item = WorkerId;
    type IntoIter = Workers;

    fn into_iter(self) -> Workers {
        Workers(self.0)
    }
}

/// The workers of a set, in order.
#[derive(Clone, Debug)]
pub struct Workers(u128);

impl Iterator for Workers {
    type Item = WorkerId;

    fn next(&mut self) -> Option<WorkerId> {
        let first = self.0.trailing_zeros();
        self.0 &= self.0.checked_sub(1)?;
        Some(WorkerId(first as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let mut set: WorkerSet = [3, 127, 0].map(WorkerId).into_iter().collect();
        set.insert(WorkerId(3));
        assert_eq!(set.len(), 3);
        let all: Vec<_> = set.into_iter().collect();
        assert_eq!(all, [0, 3, 127].map(WorkerId));
        set.remove(WorkerId(127));
        set.remove(WorkerId(400));
        assert!(set.contains(WorkerId(3)) && !set.contains(WorkerId(127)));
        assert!(!set.contains(WorkerId(400)));
        assert_eq!(
            set.union(WorkerSet::only(WorkerId(9))).into_iter().count(),
            3
        );
        assert!(WorkerSet::EMPTY.is_empty() && WorkerSet::EMPTY.into_iter().next().is_none());
    }
}
