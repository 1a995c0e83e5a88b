//! Least recently used.

use super::Evict;
use crate::list::{Links, List};

/// Evicts what was not asked for the longest.
#[derive(Clone, Debug)]
pub(crate) struct Lru {
    links: Links,
    recent: List,
}

impl Lru {
    pub(crate) fn new(n_slots: usize) -> Self {
        Self {
            links: Links::new(n_slots),
            recent: List::default(),
        }
    }
}

impl Evict for Lru {
    fn insert(&mut self, slot: u32, _: u64) {
        self.recent.push_front(&mut self.links, slot);
    }

    fn hit(&mut self, slot: u32) {
        self.recent.move_to_front(&mut self.links, slot);
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        self.recent.back()
    }

    fn evict_victim(&mut self, _: u64, _: impl Fn(u32) -> u64) -> Option<u32> {
        self.recent.pop_back(&mut self.links)
    }

    fn remove(&mut self, slot: u32) {
        self.recent.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.recent.len()
    }

    fn prefetch_hit(&self, slot: u32) {
        self.links.prefetch(slot);
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        self.recent.upcoming(&self.links)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
    }
}
