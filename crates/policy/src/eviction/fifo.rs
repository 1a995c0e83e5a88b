//! First in, first out.

use super::Evict;
use crate::list::{Links, List};

/// Evicts what came first. A hit costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    links: Links,
    queue: List,
}

impl Fifo {
    pub(crate) fn new(n_slots: usize) -> Self {
        Self {
            links: Links::new(n_slots),
            queue: List::default(),
        }
    }
}

impl Evict for Fifo {
    fn insert(&mut self, slot: u32, _: u64) {
        self.queue.push_front(&mut self.links, slot);
    }

    fn hit(&mut self, _: u32) {}

    fn victim(&mut self, _: u64) -> Option<u32> {
        self.queue.back()
    }

    fn evict_victim(&mut self, _: u64, _: impl Fn(u32) -> u64) -> Option<u32> {
        self.queue.pop_back(&mut self.links)
    }

    fn remove(&mut self, slot: u32) {
        self.queue.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        self.queue.upcoming(&self.links)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
    }
}
