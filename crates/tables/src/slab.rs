//! Slots that never move: the storage behind every table of this crate.
//!
//! Owns a row of default-constructed slots and a free list. A slot that is given back
//! keeps its contents, so a table may reuse the buffers in it; the most recently freed
//! slot, whose lines are warm, is handed out first. Growing moves nothing, so no packet
//! pays for a copy of the whole table. It does not know which slots are live: its tables
//! do, and bound their number.

use std::ops::{Index, IndexMut};

use tachonym_memory::{MemoryError, PagePreference, Pages, Slots};

/// A growing array of slots with stable indices.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Slots<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// Room for `max_slots` slots.
    ///
    /// # Errors
    /// If there are not as many addresses.
    pub(crate) fn new(max_slots: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        Ok(Self {
            slots: Slots::reserve(max_slots, pages)?,
            free: Vec::new(),
        })
    }

    /// Makes room for more slots.
    ///
    /// # Errors
    /// If there are not as many addresses; nothing has changed then.
    pub(crate) fn set_max_slots(&mut self, max_slots: usize) -> Result<(), MemoryError> {
        self.slots.set_max_len(max_slots)
    }

    /// Hands out a slot. Its contents are those it was freed with, or the default.
    ///
    /// # Panics
    /// If all are in use.
    #[inline]
    pub(crate) fn alloc(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        let slot = self.n_touched();
        self.slots.push(T::default());
        slot
    }

    /// Takes back a slot that [`Slab::alloc`] handed out and nobody uses now.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)
    }

    /// Every slot that was ever handed out, free ones included.
    pub(crate) fn iter_touched(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.slots.iter())
    }

    /// Number of slots that [`Slab::iter_touched`] visits.
    pub(crate) fn n_touched(&self) -> u32 {
        self.slots.len() as u32
    }

    /// What pages the slots have.
    pub(crate) fn pages(&self) -> Pages {
        self.slots.pages()
    }

    /// Memory of the slots themselves, without what they point to.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots) + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    /// # Panics
    /// If the slot was never handed out.
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_freed_last_is_handed_out_first_with_its_contents() {
        let mut slab = Slab::<u64>::new(600, PagePreference::Base).unwrap();
        let slots: Vec<u32> = (0..600).map(|_| slab.alloc()).collect();
        for &slot in &slots {
            slab[slot] = u64::from(slot) * 3;
        }
        slab.free(slots[7]);
        slab.free(slots[520]);
        let before_bytes = slab.memory_bytes();
        assert_eq!(slab.alloc(), slots[520]);
        assert_eq!(slab[slots[520]], 1560);
        assert_eq!(slab.alloc(), slots[7]);
        assert_eq!(slab.memory_bytes(), before_bytes);
        assert_eq!(slab.iter_touched().count(), 600);
    }

    #[test]
    fn a_slot_never_handed_out_is_not_found() {
        let slab = Slab::<u64>::new(1, PagePreference::Base).unwrap();
        assert!(slab.get(0).is_none());
    }
}
