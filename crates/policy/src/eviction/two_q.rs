//! 2Q, the full version.
//!
//! Johnson and Shasha, "2Q: a low overhead high performance buffer management
//! replacement algorithm", VLDB 1994. Of its open parameters, newcomers have a
//! quarter of the cache (Kin) and half of its size in names is remembered (Kout),
//! as its section 2.2 proposes.

use super::Evict;
use crate::ghosts::Ghosts;
use crate::list::{Links, List};

/// Newcomers wait in a queue, and leave their name behind; what is asked for again
/// within the memory of these names goes to an LRU list.
#[derive(Clone, Debug)]
pub(crate) struct TwoQ {
    links: Links,
    /// A1in.
    newcomers: List,
    /// Am.
    frequent: List,
    /// By slot, one bit each: in `frequent`.
    is_frequent: Vec<u64>,
    /// A1out.
    ghosts: Ghosts,
    ghost_links: Links,
    ghost_queue: List,
    max_newcomers: usize,
}

impl TwoQ {
    pub(crate) fn new(n_slots: usize, target_len: usize) -> Self {
        let n_ghosts = target_len / 2;
        Self {
            links: Links::new(n_slots),
            newcomers: List::default(),
            frequent: List::default(),
            is_frequent: vec![0; n_slots.div_ceil(64)],
            ghosts: Ghosts::new(n_ghosts),
            ghost_links: Links::new(n_ghosts),
            ghost_queue: List::default(),
            max_newcomers: target_len / 4,
        }
    }

    fn is_frequent(&self, slot: u32) -> bool {
        self.is_frequent[slot as usize / 64] >> (slot % 64) & 1 != 0
    }
}

impl Evict for TwoQ {
    fn insert(&mut self, slot: u32, hash: u64) {
        let bit = 1 << (slot % 64);
        let word = &mut self.is_frequent[slot as usize / 64];
        match self.ghosts.find(hash) {
            Some(ghost) => {
                self.ghost_queue.remove(&mut self.ghost_links, ghost);
                self.ghosts.remove(ghost);
                *word |= bit;
                self.frequent.push_front(&mut self.links, slot);
            }
            None => {
                *word &= !bit;
                self.newcomers.push_front(&mut self.links, slot);
            }
        }
    }

    fn hit(&mut self, slot: u32) {
        if self.is_frequent(slot) {
            self.frequent.move_to_front(&mut self.links, slot);
        }
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        // A store may be full with less than was expected.
        if self.newcomers.len() > self.max_newcomers.min(self.len() / 4) {
            return self.newcomers.back();
        }
        self.frequent.back().or(self.newcomers.back())
    }

    fn evict(&mut self, slot: u32, hash: u64) {
        let was_newcomer = !self.is_frequent(slot);
        self.remove(slot);
        if !was_newcomer || self.ghosts.find(hash).is_some() {
            return;
        }
        if self.ghosts.is_full()
            && let Some(oldest) = self.ghost_queue.pop_back(&mut self.ghost_links)
        {
            self.ghosts.remove(oldest);
        }
        if let Some(ghost) = self.ghosts.insert(hash) {
            self.ghost_queue.push_front(&mut self.ghost_links, ghost);
        }
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.is_frequent(slot) {
            &mut self.frequent
        } else {
            &mut self.newcomers
        };
        list.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.newcomers.len() + self.frequent.len()
    }

    fn prefetch_incoming(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    fn prefetch_hit(&self, slot: u32) {
        self.links.prefetch(slot);
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        self.newcomers.upcoming(&self.links)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
            + size_of_val(&*self.is_frequent)
            + self.ghosts.memory_bytes()
            + self.ghost_links.memory_bytes()
    }
}
