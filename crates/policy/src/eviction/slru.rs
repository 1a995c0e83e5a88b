//! Segmented LRU.
//!
//! Karedla, Love and Wherry, "Caching strategies to improve disk system
//! performance", IEEE Computer 1994. Open in the paper is how much is protected:
//! here four fifths, as W-TinyLFU has it (Einziger, Friedman and Manes 2017,
//! section 4.1).

use super::Evict;
use crate::list::{Links, List};

/// Evicts the least recently used of those asked for only once; those asked for
/// again are protected, as long as there is room.
#[derive(Clone, Debug)]
pub(crate) struct Slru {
    links: Links,
    probation: List,
    protected: List,
    /// By slot, one bit each.
    is_protected: Vec<u64>,
    max_protected: usize,
}

impl Slru {
    pub(crate) fn new(n_slots: usize, target_len: usize) -> Self {
        Self {
            links: Links::new(n_slots),
            probation: List::default(),
            protected: List::default(),
            is_protected: vec![0; n_slots.div_ceil(64)],
            max_protected: target_len * 4 / 5,
        }
    }

    fn is_protected(&self, slot: u32) -> bool {
        self.is_protected[slot as usize / 64] >> (slot % 64) & 1 != 0
    }
}

impl Evict for Slru {
    fn insert(&mut self, slot: u32, _: u64) {
        self.is_protected[slot as usize / 64] &= !(1 << (slot % 64));
        self.probation.push_front(&mut self.links, slot);
    }

    fn hit(&mut self, slot: u32) {
        if self.is_protected(slot) {
            self.protected.move_to_front(&mut self.links, slot);
            return;
        }
        self.probation.remove(&mut self.links, slot);
        self.protected.push_front(&mut self.links, slot);
        self.is_protected[slot as usize / 64] |= 1 << (slot % 64);
        if self.protected.len() > self.max_protected
            && let Some(demoted) = self.protected.pop_back(&mut self.links)
        {
            self.insert(demoted, 0);
        }
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        // A store may be full with less than was expected.
        if self.protected.len() > self.len() * 4 / 5
            && let Some(demoted) = self.protected.pop_back(&mut self.links)
        {
            self.insert(demoted, 0);
        }
        self.probation.back().or(self.protected.back())
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.is_protected(slot) {
            &mut self.protected
        } else {
            &mut self.probation
        };
        list.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.probation.len() + self.protected.len()
    }

    fn prefetch_hit(&self, slot: u32) {
        self.links.prefetch(slot);
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        self.probation.upcoming(&self.links)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + size_of_val(&*self.is_protected)
    }
}
