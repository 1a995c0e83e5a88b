//! The adaptive replacement cache.
//!
//! Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST
//! 2003, Figure 4. It leaves no parameter open. Names that were evicted are
//! remembered, as many as the cache has Data; which of the two lists of them a name
//! returns from tells whether recency or frequency deserves more room.

use super::Evict;
use crate::ghosts::Ghosts;
use crate::list::{Links, List};

/// Balances an LRU list of what was asked for once with one of what was asked for
/// again.
#[derive(Clone, Debug)]
pub(crate) struct Arc {
    links: Links,
    /// T1.
    once: List,
    /// T2.
    again: List,
    /// By slot, one bit each: in `again`.
    is_again: Vec<u64>,
    ghosts: Ghosts,
    ghost_links: Links,
    /// B1.
    ghosts_once: List,
    /// B2.
    ghosts_again: List,
    /// By ghost, one bit each: in `ghosts_again`.
    is_ghost_again: Vec<u64>,
    /// c.
    target_len: usize,
    /// p: the share of `once`.
    target_once: usize,
    /// The ghost that has moved `target_once` already, while its name is on its way.
    adapted: Option<u64>,
}

impl Arc {
    pub(crate) fn new(n_slots: usize, target_len: usize) -> Self {
        // Evicting comes before inserting: for a moment there is one more.
        let n_ghosts = target_len + 1;
        Self {
            links: Links::new(n_slots),
            once: List::default(),
            again: List::default(),
            is_again: vec![0; n_slots.div_ceil(64)],
            ghosts: Ghosts::new(n_ghosts),
            ghost_links: Links::new(n_ghosts),
            ghosts_once: List::default(),
            ghosts_again: List::default(),
            is_ghost_again: vec![0; n_ghosts.div_ceil(64)],
            target_len,
            target_once: 0,
            adapted: None,
        }
    }

    fn is_again(&self, slot: u32) -> bool {
        self.is_again[slot as usize / 64] >> (slot % 64) & 1 != 0
    }

    fn is_ghost_again(&self, ghost: u32) -> bool {
        self.is_ghost_again[ghost as usize / 64] >> (ghost % 64) & 1 != 0
    }

    /// A name that is a ghost returns: the list it comes from gets more room.
    fn adapt(&mut self, hash: u64, ghost: u32) {
        if self.adapted.replace(hash) == Some(hash) {
            return;
        }
        let (n_once, n_again) = (self.ghosts_once.len(), self.ghosts_again.len());
        if self.is_ghost_again(ghost) {
            let step = (n_once / n_again.max(1)).max(1);
            self.target_once = self.target_once.saturating_sub(step);
        } else {
            let step = (n_again / n_once.max(1)).max(1);
            self.target_once = (self.target_once + step).min(self.target_len);
        }
    }

    fn forget(&mut self, ghost: u32) {
        let list = if self.is_ghost_again(ghost) {
            &mut self.ghosts_again
        } else {
            &mut self.ghosts_once
        };
        list.remove(&mut self.ghost_links, ghost);
        self.ghosts.remove(ghost);
    }

    fn forget_oldest(&mut self, again: bool) -> bool {
        let list = if again {
            &mut self.ghosts_again
        } else {
            &mut self.ghosts_once
        };
        let Some(ghost) = list.pop_back(&mut self.ghost_links) else {
            return false;
        };
        self.ghosts.remove(ghost);
        true
    }

    /// Keeps the bounds of the paper: T1 and B1 have at most c, all lists 2c.
    fn bound_ghosts(&mut self) {
        while self.once.len() + self.ghosts_once.len() > self.target_len
            && self.forget_oldest(false)
        {}
        while self.len() + self.ghosts_once.len() + self.ghosts_again.len() > 2 * self.target_len
            && self.forget_oldest(true)
        {}
    }
}

impl Evict for Arc {
    fn insert(&mut self, slot: u32, hash: u64) {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        match self.ghosts.find(hash) {
            Some(ghost) => {
                self.adapt(hash, ghost);
                self.forget(ghost);
                self.is_again[word] |= bit;
                self.again.push_front(&mut self.links, slot);
            }
            None => {
                self.is_again[word] &= !bit;
                self.once.push_front(&mut self.links, slot);
            }
        }
        self.adapted = None;
        self.bound_ghosts();
    }

    fn hit(&mut self, slot: u32) {
        if self.is_again(slot) {
            self.again.move_to_front(&mut self.links, slot);
        } else {
            self.once.remove(&mut self.links, slot);
            self.again.push_front(&mut self.links, slot);
            self.is_again[slot as usize / 64] |= 1 << (slot % 64);
        }
    }

    fn victim(&mut self, incoming: u64) -> Option<u32> {
        let ghost = self.ghosts.find(incoming);
        if let Some(ghost) = ghost {
            self.adapt(incoming, ghost);
        }
        let returns_again = ghost.is_some_and(|ghost| self.is_ghost_again(ghost));
        let n_once = self.once.len();
        let from_once = n_once > self.target_once || (returns_again && n_once == self.target_once);
        if from_once {
            self.once.back().or(self.again.back())
        } else {
            self.again.back().or(self.once.back())
        }
    }

    fn evict(&mut self, slot: u32, hash: u64) {
        let was_again = self.is_again(slot);
        self.remove(slot);
        if self.ghosts.find(hash).is_some() {
            return;
        }
        if self.ghosts.is_full() && !self.forget_oldest(true) {
            self.forget_oldest(false);
        }
        let Some(ghost) = self.ghosts.insert(hash) else {
            return;
        };
        let (word, bit) = (ghost as usize / 64, 1 << (ghost % 64));
        if was_again {
            self.is_ghost_again[word] |= bit;
            self.ghosts_again.push_front(&mut self.ghost_links, ghost);
        } else {
            self.is_ghost_again[word] &= !bit;
            self.ghosts_once.push_front(&mut self.ghost_links, ghost);
        }
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.is_again(slot) {
            &mut self.again
        } else {
            &mut self.once
        };
        list.remove(&mut self.links, slot);
    }

    fn len(&self) -> usize {
        self.once.len() + self.again.len()
    }

    fn prefetch_incoming(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    fn prefetch_hit(&self, slot: u32) {
        self.links.prefetch(slot);
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
            + size_of_val(&*self.is_again)
            + self.ghosts.memory_bytes()
            + self.ghost_links.memory_bytes()
            + size_of_val(&*self.is_ghost_again)
    }
}
