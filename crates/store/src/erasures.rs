//! What has been erased from the devices.
//!
//! Owns prefixes by their hashes, each with the place in the log before which what is below
//! it is erased. An erasure is itself a record in the log, and is forgotten with it: by then
//! everything older is gone too. There may be [`MAX_ERASURES`]; one more erases everything
//! that is older than it.

use hashbrown::HashMap;

use crate::log::Position;

/// Most prefixes that are kept.
pub(crate) const MAX_ERASURES: usize = 1 << 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Erasures {
    by_prefix: HashMap<u64, Position, foldhash::fast::FixedState>,
    /// Everything before it is erased.
    all_before: Position,
}

impl Erasures {
    /// What is below a prefix and was written before `position` is erased.
    pub(crate) fn add(&mut self, prefix: u64, position: Position) {
        if self.by_prefix.len() >= MAX_ERASURES && !self.by_prefix.contains_key(&prefix) {
            return self.add_all(position);
        }
        let before = self.by_prefix.entry(prefix).or_insert(position);
        *before = position.max(*before);
    }

    /// All that was written before `position` is erased.
    pub(crate) fn add_all(&mut self, position: Position) {
        self.all_before = self.all_before.max(position);
        self.by_prefix.retain(|_, before| *before > position);
    }

    /// The record of an erasure goes, and what is older has gone.
    pub(crate) fn forget(&mut self, prefix: u64, seq: u64) {
        if self
            .by_prefix
            .get(&prefix)
            .is_some_and(|before| before.0 <= seq)
        {
            self.by_prefix.remove(&prefix);
        }
    }

    /// Whether nothing is erased.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty() && self.all_before == (0, 0)
    }

    /// Whether what has a prefix of this hash and was written at `position` is erased.
    pub(crate) fn includes(&self, prefix: u64, position: Position) -> bool {
        self.by_prefix
            .get(&prefix)
            .is_some_and(|&before| position < before)
    }

    /// Whether everything that was written at `position` is erased.
    pub(crate) fn includes_all(&self, position: Position) -> bool {
        position < self.all_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_an_erasure_is_erased_until_it_is_forgotten() {
        let mut erasures = Erasures::default();
        assert!(erasures.is_empty());
        erasures.add(7, (3, 10));
        erasures.add(7, (2, 90));
        assert!(erasures.includes(7, (3, 9)) && erasures.includes(7, (2, 99)));
        assert!(!erasures.includes(7, (3, 10)) && !erasures.includes(8, (1, 0)));
        erasures.forget(7, 2);
        assert!(erasures.includes(7, (3, 9)));
        erasures.forget(7, 3);
        assert!(erasures.is_empty());
    }

    #[test]
    fn too_many_erase_all() {
        let mut erasures = Erasures::default();
        for prefix in 0..MAX_ERASURES as u64 {
            erasures.add(prefix, (5, prefix as u32));
        }
        assert!(!erasures.includes_all((0, 1)));
        erasures.add(u64::MAX, (6, 0));
        assert!(erasures.includes_all((5, 9)) && !erasures.includes_all((6, 0)));
        assert!(erasures.by_prefix.is_empty());
    }
}
