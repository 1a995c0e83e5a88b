//! Least frequently used among few.
//!
//! A search of bounded length in place of an order among all: of the next
//! [`N_SEARCHED`] slots after the last search, the one with the least count goes
//! (Yuan 2015, section 6.1.3, searches the bucket of a hash table likewise). Counts are
//! halved in every [`AGING_ROUNDS`]-th round over all slots, so that what was popular once
//! does not stay for ever.

use super::Evict;

/// Slots of a search: 32 counts of two bytes, that is one cache line.
const N_SEARCHED: usize = 32;
/// Rounds of the search over all slots between two halvings of the counts.
const AGING_ROUNDS: u32 = 8;

/// Evicts the one with the least count among the next few.
#[derive(Clone, Debug)]
pub(crate) struct LfuLocal {
    /// By slot: 0 if nothing is held there, else one more than the requests for it.
    counts: Vec<u16>,
    len: usize,
    next: usize,
    n_rounds: u32,
    /// What was found and not evicted yet.
    found: Option<u32>,
}

impl LfuLocal {
    pub(crate) fn new(n_slots: usize) -> Self {
        Self {
            counts: vec![0; n_slots],
            len: 0,
            next: 0,
            n_rounds: 0,
            found: None,
        }
    }
}

impl Evict for LfuLocal {
    fn insert(&mut self, slot: u32, _: u64) {
        self.counts[slot as usize] = 1;
        self.len += 1;
    }

    fn hit(&mut self, slot: u32) {
        let count = &mut self.counts[slot as usize];
        *count = count.saturating_add(1);
        if self.found == Some(slot) {
            self.found = None;
        }
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        if self.len == 0 || self.found.is_some() {
            return self.found;
        }
        while self.found.is_none() {
            if self.next >= self.counts.len() {
                self.next = 0;
                self.n_rounds = self.n_rounds.wrapping_add(1);
            }
            let end = (self.next + N_SEARCHED).min(self.counts.len());
            let searched = &mut self.counts[self.next..end];
            let held = searched
                .iter()
                .enumerate()
                .filter(|(_, count)| **count != 0);
            // Of equal ones another in each round: else what comes into a place would go
            // again, and those beside it never.
            let turn = |idx: usize| idx.wrapping_sub(self.n_rounds as usize) % N_SEARCHED;
            let least = held.min_by_key(|&(idx, count)| (*count, turn(idx)));
            self.found = least.map(|(idx, _)| (self.next + idx) as u32);
            if self.n_rounds % AGING_ROUNDS == AGING_ROUNDS - 1 {
                for count in searched {
                    *count = count.div_ceil(2);
                }
            }
            self.next = end;
        }
        self.found
    }

    fn remove(&mut self, slot: u32) {
        self.counts[slot as usize] = 0;
        self.len -= 1;
        if self.found == Some(slot) {
            self.found = None;
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }
}
