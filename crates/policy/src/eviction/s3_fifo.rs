//! S3-FIFO: three queues.
//!
//! Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023,
//! section 4 and Algorithm 1. Of what it leaves open: the small queue has a tenth
//! of the cache, a name goes on to the main queue if it was asked for at least twice in
//! the small one (as the published code has it), and as many names are remembered as the
//! main queue holds.

use super::{Evict, MAX_STEPS};
use crate::ghosts::Ghosts;
use crate::list::{Links, List};

/// Greatest count of a slot.
const MAX_COUNT: u8 = 3;
/// Set in the state of slots of the main queue.
const IN_MAIN: u8 = 4;

/// Newcomers pass a small queue; those asked for meanwhile, and those that come
/// back while they are remembered, go to the main one, which is a CLOCK with counts.
#[derive(Clone, Debug)]
pub(crate) struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    /// By slot: its count, and whether it is in the main queue.
    states: Vec<u8>,
    ghosts: Ghosts,
    ghost_links: Links,
    ghost_queue: List,
    max_small: usize,
}

impl S3Fifo {
    pub(crate) fn new(n_slots: usize, target_len: usize) -> Self {
        let max_small = target_len / 10;
        let n_ghosts = target_len - max_small;
        Self {
            links: Links::new(n_slots),
            small: List::default(),
            main: List::default(),
            states: vec![0; n_slots],
            ghosts: Ghosts::new(n_ghosts),
            ghost_links: Links::new(n_ghosts),
            ghost_queue: List::default(),
            max_small,
        }
    }
}

impl Evict for S3Fifo {
    fn insert(&mut self, slot: u32, hash: u64) {
        if let Some(ghost) = self.ghosts.find(hash) {
            self.ghost_queue.remove(&mut self.ghost_links, ghost);
            self.ghosts.remove(ghost);
            self.states[slot as usize] = IN_MAIN;
            self.main.push_front(&mut self.links, slot);
        } else {
            self.states[slot as usize] = 0;
            self.small.push_front(&mut self.links, slot);
        }
    }

    fn hit(&mut self, slot: u32) {
        let state = &mut self.states[slot as usize];
        if *state & MAX_COUNT < MAX_COUNT {
            *state += 1;
        }
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        // A store may be full with less than was expected.
        let max_small = self.max_small.min(self.len() / 10).max(1);
        // What leaves the small queue does not return to it, and the main one loses a count
        // with each turn.
        for _ in 0..MAX_STEPS {
            let from_small = self.small.len() >= max_small || self.main.is_empty();
            if from_small && let Some(slot) = self.small.back() {
                if self.states[slot as usize] <= 1 {
                    return Some(slot);
                }
                self.small.remove(&mut self.links, slot);
                self.states[slot as usize] = IN_MAIN;
                self.main.push_front(&mut self.links, slot);
                continue;
            }
            let slot = self.main.back()?;
            if self.states[slot as usize] == IN_MAIN {
                return Some(slot);
            }
            self.states[slot as usize] -= 1;
            self.main.move_to_front(&mut self.links, slot);
        }
        self.main.back().or(self.small.back())
    }

    fn evict(&mut self, slot: u32, hash: u64) {
        let was_small = self.states[slot as usize] & IN_MAIN == 0;
        self.remove(slot);
        if !was_small || self.ghosts.find(hash).is_some() {
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
        let list = if self.states[slot as usize] & IN_MAIN == 0 {
            &mut self.small
        } else {
            &mut self.main
        };
        list.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    fn prefetch_incoming(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        self.small.upcoming(&self.links)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
            + size_of_val(&*self.states)
            + self.ghosts.memory_bytes()
            + self.ghost_links.memory_bytes()
    }
}
