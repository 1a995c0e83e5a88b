//! Least recently used among few.
//!
//! Each slot has a timestamp of its latest use, and a search of bounded length stands in
//! place of a list: of the next [`N_SEARCHED`] slots after the last search, the one that was
//! not used for longest goes (Yuan 2015, section 6.1.3, searches the buckets that an
//! insertion visits likewise). A hit writes one timestamp, where a list writes four nodes.

use super::Evict;

/// Slots of a search: 16 timestamps of four bytes, which are one cache line.
const N_SEARCHED: usize = 16;

/// Evicts the one among the next few that was not used for longest.
#[derive(Clone, Debug)]
pub(crate) struct LruLocal {
    /// By slot: 0 if nothing is held there, else when it was used last.
    used: Vec<u32>,
    /// Uses so far. Time is counted in them, and comes round after 2^32.
    now: u32,
    len: usize,
    next: usize,
    /// What was found and not evicted yet.
    found: Option<u32>,
}

impl LruLocal {
    pub(crate) fn new(n_slots: usize) -> Self {
        Self {
            used: vec![0; n_slots],
            now: 0,
            len: 0,
            next: 0,
            found: None,
        }
    }

    fn touch(&mut self, slot: u32) {
        self.now = self.now.checked_add(1).unwrap_or(1);
        self.used[slot as usize] = self.now;
    }
}

impl Evict for LruLocal {
    fn insert(&mut self, slot: u32, _: u64) {
        self.touch(slot);
        self.len += 1;
    }

    fn hit(&mut self, slot: u32) {
        self.touch(slot);
        if self.found == Some(slot) {
            self.found = None;
        }
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        while self.found.is_none() {
            if self.next >= self.used.len() {
                self.next = 0;
            }
            let end = (self.next + N_SEARCHED).min(self.used.len());
            // Ages with places below them, and 0 for what is not held: a maximum without a
            // branch.
            let age = |used: u32| u64::from(self.now.wrapping_sub(used)) + 1;
            let searched = self.used[self.next..end].iter().zip(0_u64..);
            let oldest = searched
                .map(|(&used, idx)| (age(used) << 8 | idx) * u64::from(used != 0))
                .fold(0, u64::max);
            self.found = (oldest != 0).then(|| self.next as u32 + (oldest & 0xFF) as u32);
            self.next = end;
        }
        self.found
    }

    fn remove(&mut self, slot: u32) {
        self.used[slot as usize] = 0;
        self.len -= 1;
        if self.found == Some(slot) {
            self.found = None;
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_group_goes_and_groups_take_turns() {
        let mut policy = LruLocal::new(2 * N_SEARCHED);
        for slot in 0..2 * N_SEARCHED as u32 {
            policy.insert(slot, 0);
        }
        policy.hit(0);
        for expected in [1, 16, 2, 17] {
            assert_eq!(policy.victim(0), Some(expected));
            assert_eq!(policy.victim(0), Some(expected), "asking changes nothing");
            policy.evict(expected, 0);
            policy.insert(expected, 0);
        }
    }

    #[test]
    fn time_that_has_come_round_is_younger() {
        let mut policy = LruLocal::new(3);
        policy.now = u32::MAX - 1;
        (0..3).for_each(|slot| policy.insert(slot, 0));
        assert_eq!(policy.used, [u32::MAX, 1, 2]);
        assert_eq!(policy.victim(0), Some(0));
    }
}
