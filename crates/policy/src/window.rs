//! The window of W-TinyLFU: where newcomers are before they have to prove themselves.
//!
//! Einziger, Friedman and Manes 2017, section 4: an LRU list of a hundredth of the
//! cache, and at least one Data, in front of the main cache.

use crate::list::{Links, List};

/// See the module. Of which slots it holds it keeps a bit each.
#[derive(Debug)]
pub(crate) struct Window {
    links: Links,
    recent: List,
    held: Vec<u64>,
    max_len: usize,
}

impl Window {
    /// A window in front of a cache of `capacity` Data in slots below `n_slots`.
    pub(crate) fn new(n_slots: usize, capacity: usize) -> Self {
        Self {
            links: Links::new(n_slots),
            recent: List::default(),
            held: vec![0; n_slots.div_ceil(64)],
            max_len: (capacity / 100).max(1).min(capacity),
        }
    }

    /// Data that it has room for.
    pub(crate) const fn max_len(&self) -> usize {
        self.max_len
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + size_of_val(&*self.held)
    }

    pub(crate) const fn len(&self) -> usize {
        self.recent.len()
    }

    pub(crate) fn holds(&self, slot: u32) -> bool {
        self.held[slot as usize / 64] >> (slot % 64) & 1 != 0
    }

    pub(crate) fn handle_insert(&mut self, slot: u32) {
        self.held[slot as usize / 64] |= 1 << (slot % 64);
        self.recent.push_front(&mut self.links, slot);
    }

    pub(crate) fn handle_hit(&mut self, slot: u32) {
        self.recent.move_to_front(&mut self.links, slot);
    }

    pub(crate) fn handle_remove(&mut self, slot: u32) {
        self.held[slot as usize / 64] &= !(1 << (slot % 64));
        self.recent.remove(&mut self.links, slot);
    }

    /// What falls out of it if another one comes; `None` as long as it has room, unless
    /// there is nothing but the window.
    pub(crate) fn candidate(&self, is_alone: bool) -> Option<u32> {
        if self.recent.len() >= self.max_len || is_alone {
            self.recent.back()
        } else {
            None
        }
    }

    /// What has no room in it.
    pub(crate) fn overflow(&self) -> Option<u32> {
        if self.recent.len() > self.max_len {
            self.recent.back()
        } else {
            None
        }
    }
}
