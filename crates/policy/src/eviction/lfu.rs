//! Least frequently used, exactly.
//!
//! Slots of one count share a list, and counts follow each other in order, so that a
//! hit moves a slot to its neighbour (Shah, Mitra and Matani, "An O(1) algorithm for
//! implementing the LFU cache eviction scheme", 2010). Counts never age. Among equals
//! the one that has had its count the longest goes first.
//!
//! With a memory of what was evicted, a name that returns goes on from its former
//! count; if that memory is large enough, this is the perfect LFU of the analysts.

use super::Evict;
use crate::ghosts::Ghosts;
use crate::list::{Links, List, NIL};

/// Those of one count.
#[derive(Clone, Copy, Debug)]
struct Level {
    count: u64,
    slots: List,
}

/// Evicts the one with the least count.
#[derive(Clone, Debug)]
pub(crate) struct Lfu {
    links: Links,
    /// By slot, the level it is on.
    level_of: Vec<u32>,
    levels: Vec<Level>,
    level_links: Links,
    /// Levels with slots, the least count at the back.
    by_count: List,
    free_levels: Vec<u32>,
    len: usize,
    ghosts: Ghosts,
    ghost_counts: Vec<u64>,
    ghost_links: Links,
    ghost_queue: List,
}

impl Lfu {
    /// Remembers the counts of the `n_ghosts` that were evicted last.
    pub(crate) fn new(n_slots: usize, n_ghosts: usize) -> Self {
        // A slot on its way from one level to the next may need one more.
        let n_levels = n_slots + 1;
        let none = Level {
            count: 0,
            slots: List::default(),
        };
        let last = u32::try_from(n_levels).expect("sizes are checked before");
        Self {
            links: Links::new(n_slots),
            level_of: vec![NIL; n_slots],
            levels: vec![none; n_levels],
            level_links: Links::new(n_levels),
            by_count: List::default(),
            free_levels: (0..last).rev().collect(),
            len: 0,
            ghosts: Ghosts::new(n_ghosts),
            ghost_counts: vec![0; n_ghosts],
            ghost_links: Links::new(n_ghosts),
            ghost_queue: List::default(),
        }
    }

    /// Puts a slot on the level of `count`, which lies before `below` or is found from
    /// the least count on if that is [`NIL`].
    fn enter(&mut self, slot: u32, count: u64, below: u32) {
        let mut below = below;
        let mut above = match below {
            NIL => self.by_count.back().unwrap_or(NIL),
            below => self.level_links.before(below),
        };
        while above != NIL && self.levels[above as usize].count < count {
            below = above;
            above = self.level_links.before(above);
        }
        let level = if above != NIL && self.levels[above as usize].count == count {
            above
        } else {
            let level = self
                .free_levels
                .pop()
                .expect("one level a slot, and one more");
            self.levels[level as usize].count = count;
            match below {
                NIL => self.by_count.push_back(&mut self.level_links, level),
                below => self
                    .by_count
                    .insert_before(&mut self.level_links, below, level),
            }
            level
        };
        self.level_of[slot as usize] = level;
        self.levels[level as usize]
            .slots
            .push_front(&mut self.links, slot);
    }

    /// Takes a slot off its level, which stays, and is returned.
    fn leave(&mut self, slot: u32) -> u32 {
        let level = self.level_of[slot as usize];
        self.levels[level as usize]
            .slots
            .remove(&mut self.links, slot);
        level
    }

    fn free_if_empty(&mut self, level: u32) {
        if self.levels[level as usize].slots.is_empty() {
            self.by_count.remove(&mut self.level_links, level);
            self.free_levels.push(level);
        }
    }
}

impl Evict for Lfu {
    fn insert(&mut self, slot: u32, hash: u64) {
        let mut count = 1;
        if let Some(ghost) = self.ghosts.find(hash) {
            count += self.ghost_counts[ghost as usize];
            self.ghost_queue.remove(&mut self.ghost_links, ghost);
            self.ghosts.remove(ghost);
        }
        self.enter(slot, count, NIL);
        self.len += 1;
    }

    fn hit(&mut self, slot: u32) {
        let level = self.leave(slot);
        let count = self.levels[level as usize].count + 1;
        self.enter(slot, count, level);
        self.free_if_empty(level);
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        let least = self.by_count.back()?;
        self.levels[least as usize].slots.back()
    }

    fn evict(&mut self, slot: u32, hash: u64) {
        let count = self.levels[self.level_of[slot as usize] as usize].count;
        self.remove(slot);
        if self.ghosts.find(hash).is_some() {
            return;
        }
        if self.ghosts.is_full()
            && let Some(oldest) = self.ghost_queue.pop_back(&mut self.ghost_links)
        {
            self.ghosts.remove(oldest);
        }
        if let Some(ghost) = self.ghosts.insert(hash) {
            self.ghost_counts[ghost as usize] = count;
            self.ghost_queue.push_front(&mut self.ghost_links, ghost);
        }
    }

    fn remove(&mut self, slot: u32) {
        let level = self.leave(slot);
        self.free_if_empty(level);
        self.len -= 1;
    }

    fn len(&self) -> usize {
        self.len
    }

    fn prefetch_incoming(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    fn prefetch_hit(&self, slot: u32) {
        self.links.prefetch(slot);
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
            + size_of_val(&*self.level_of)
            + size_of_val(&*self.levels)
            + self.level_links.memory_bytes()
            + self.free_levels.capacity() * size_of::<u32>()
            + self.ghosts.memory_bytes()
            + size_of_val(&*self.ghost_counts)
            + self.ghost_links.memory_bytes()
    }
}
