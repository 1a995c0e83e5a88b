//! SIEVE: a queue whose hand goes on where it stopped.
//!
//! Zhang et al., "SIEVE is simpler than LRU", NSDI 2024, section 3. It leaves no
//! parameter open.

use super::{Evict, MAX_STEPS};
use crate::list::{Links, List, NIL};

/// Evicts the first from the hand towards the newest that was not asked for since
/// the hand last passed.
#[derive(Clone, Debug)]
pub(crate) struct Sieve {
    links: Links,
    queue: List,
    /// By slot, one bit each: asked for since the hand passed.
    visited: Vec<u64>,
    /// Where the hand stands; [`NIL`] for the oldest.
    hand: u32,
}

impl Sieve {
    pub(crate) fn new(n_slots: usize) -> Self {
        Self {
            links: Links::new(n_slots),
            queue: List::default(),
            visited: vec![0; n_slots.div_ceil(64)],
            hand: NIL,
        }
    }
}

impl Evict for Sieve {
    fn insert(&mut self, slot: u32, _: u64) {
        self.visited[slot as usize / 64] &= !(1 << (slot % 64));
        self.queue.push_front(&mut self.links, slot);
    }

    fn hit(&mut self, slot: u32) {
        self.visited[slot as usize / 64] |= 1 << (slot % 64);
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        let oldest = self.queue.back()?;
        let mut slot = match self.hand {
            NIL => oldest,
            hand => hand,
        };
        for _ in 0..MAX_STEPS {
            let word = &mut self.visited[slot as usize / 64];
            let bit = 1 << (slot % 64);
            if *word & bit == 0 {
                self.hand = slot;
                return Some(slot);
            }
            *word &= !bit;
            slot = match self.links.before(slot) {
                NIL => oldest,
                newer => newer,
            };
        }
        self.hand = slot;
        Some(slot)
    }

    fn remove(&mut self, slot: u32) {
        if self.hand == slot {
            self.hand = self.links.before(slot);
        }
        self.queue.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        match self.hand {
            NIL => self.queue.upcoming(&self.links),
            hand => self.links.two_before(hand),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + size_of_val(&*self.visited)
    }
}
