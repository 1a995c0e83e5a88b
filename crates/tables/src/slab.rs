//! Slots that never move: the storage behind every table of this crate.
//!
//! Owns fixed-size chunks of default-constructed slots and a free list. A slot
//! that is given back keeps its contents, so a table may reuse the buffers in
//! it; the most recently freed slot, whose lines are warm, is handed out first.
//! Growing adds a chunk and moves nothing, so no packet pays for a copy of the
//! whole table. It does not know which slots are live: its tables do.

use std::ops::{Index, IndexMut};

const CHUNK_BITS: u32 = 9;
const CHUNK_LEN: usize = 1 << CHUNK_BITS;

/// Chunks of a fixed length: where a slot is in its chunk needs no check, and a
/// million slots have sixteen kilobytes of chunk addresses.
type Chunk<T> = Box<[T; CHUNK_LEN]>;

/// A growing array of slots with stable indices.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Chunk<T>>,
    free: Vec<u32>,
    /// Slots below this one have been handed out at least once.
    n_touched: u32,
}

impl<T: Default> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            n_touched: 0,
        }
    }

    /// Hands out a slot. Its contents are those it was freed with, or the
    /// default. The caller bounds the number of live slots below `u32::MAX`.
    #[inline]
    pub(crate) fn alloc(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        let slot = self.n_touched;
        if slot as usize == self.chunks.len() * CHUNK_LEN {
            let chunk: Box<[T]> = (0..CHUNK_LEN).map(|_| T::default()).collect();
            let chunk = chunk.try_into().ok().expect("collected as many");
            self.chunks.push(chunk);
        }
        self.n_touched += 1;
        slot
    }

    /// Takes back a slot that [`Slab::alloc`] handed out and nobody uses now.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        let chunk = self.chunks.get((slot >> CHUNK_BITS) as usize)?;
        Some(&chunk[slot as usize % CHUNK_LEN])
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut((slot >> CHUNK_BITS) as usize)?;
        Some(&mut chunk[slot as usize % CHUNK_LEN])
    }

    /// Every slot that was ever handed out, free ones included.
    pub(crate) fn iter_touched(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.chunks.iter().flat_map(|chunk| chunk.iter());
        (0..self.n_touched).zip(slots)
    }

    /// Number of slots that [`Slab::iter_touched`] visits.
    pub(crate) const fn n_touched(&self) -> u32 {
        self.n_touched
    }

    /// Heap memory of the slots themselves, without what they point to.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.len() * CHUNK_LEN * size_of::<T>()
            + self.chunks.capacity() * size_of::<Chunk<T>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    /// # Panics
    /// If the slot was never handed out.
    fn index(&self, slot: u32) -> &T {
        &self.chunks[(slot >> CHUNK_BITS) as usize][slot as usize % CHUNK_LEN]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.chunks[(slot >> CHUNK_BITS) as usize][slot as usize % CHUNK_LEN]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_freed_last_is_handed_out_first_with_its_contents() {
        let mut slab = Slab::<u64>::new();
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
        let slab = Slab::<u64>::new();
        assert!(slab.get(0).is_none());
    }
}
