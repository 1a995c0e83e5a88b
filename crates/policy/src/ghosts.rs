//! Names that were cached and are no longer.
//!
//! Owns a set of name hashes, bounded by construction, that numbers its members so
//! that lists can hold them. Which of them goes when it is full is the affair of
//! the policy. Two names of one hash are one ghost.

use tachonym_memory::prefetch;

use crate::list::NIL;

/// A bounded set of name hashes. Finding, adding and removing take constant time
/// on average and allocate nothing.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts {
    /// By bucket, its first ghost.
    buckets: Vec<u32>,
    /// Of each ghost its hash; 0 if it is free.
    hashes: Vec<u64>,
    /// Of each ghost the next one of its bucket.
    chain: Vec<u32>,
    /// Numbers in no use.
    free: Vec<u32>,
    shift: u32,
}

impl Ghosts {
    /// A set for at most `max_ghosts`, numbered from 0.
    pub(crate) fn new(max_ghosts: usize) -> Self {
        let n_buckets = max_ghosts.next_power_of_two().max(2);
        let last = u32::try_from(max_ghosts).expect("sizes are checked before");
        Self {
            buckets: vec![NIL; n_buckets],
            hashes: vec![0; max_ghosts],
            chain: vec![NIL; max_ghosts],
            free: (0..last).rev().collect(),
            shift: 64 - n_buckets.trailing_zeros(),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.buckets)
            + size_of_val(&*self.hashes)
            + size_of_val(&*self.chain)
            + self.free.capacity() * size_of::<u32>()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    fn bucket(&self, hash: u64) -> usize {
        (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Fetches what `find` will look at first.
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[self.bucket(hash)]);
    }

    /// The ghost of this hash.
    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        let mut at = self.buckets[self.bucket(hash)];
        while at != NIL {
            if self.hashes[at as usize] == hash {
                return Some(at);
            }
            at = self.chain[at as usize];
        }
        None
    }

    /// Adds a hash that is not there; `None` if there is no room.
    pub(crate) fn insert(&mut self, hash: u64) -> Option<u32> {
        let ghost = self.free.pop()?;
        let bucket = self.bucket(hash);
        self.hashes[ghost as usize] = hash;
        self.chain[ghost as usize] = self.buckets[bucket];
        self.buckets[bucket] = ghost;
        Some(ghost)
    }

    /// Removes a ghost that is there.
    pub(crate) fn remove(&mut self, ghost: u32) {
        let bucket = self.bucket(self.hashes[ghost as usize]);
        let next = self.chain[ghost as usize];
        if self.buckets[bucket] == ghost {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while self.chain[at as usize] != ghost {
                at = self.chain[at as usize];
            }
            self.chain[at as usize] = next;
        }
        self.free.push(ghost);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ghosts_agree_with_a_map(steps in prop::collection::vec((0..3, 0_u64..12), 1..200)) {
            let mut ghosts = Ghosts::new(5);
            let mut oracle = BTreeMap::new();
            for (what, hash) in steps {
                prop_assert_eq!(ghosts.find(hash), oracle.get(&hash).copied());
                match (what, oracle.get(&hash).copied()) {
                    (0, Some(ghost)) => {
                        ghosts.remove(ghost);
                        oracle.remove(&hash);
                    }
                    (1, None) => match ghosts.insert(hash) {
                        Some(ghost) => {
                            prop_assert!(oracle.values().all(|&other| other != ghost));
                            oracle.insert(hash, ghost);
                        }
                        None => prop_assert_eq!(oracle.len(), 5),
                    },
                    _ => {}
                }
                prop_assert_eq!(ghosts.is_full(), oracle.len() == 5);
            }
        }
    }

    #[test]
    fn a_set_for_none_holds_none() {
        let mut ghosts = Ghosts::new(0);
        assert!(ghosts.is_full());
        assert_eq!(ghosts.insert(1), None);
        assert_eq!(ghosts.find(1), None);
    }
}
