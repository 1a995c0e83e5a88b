//! A policy for tests and benches: everything is admitted, what was used longest ago goes.

use tachonym_memory::{MemoryError, Pages};
use tachonym_packet::NameHash;
use tachonym_tables::CachePolicy;

const NIL: u32 = u32::MAX;
const OLDER: usize = 0;
const NEWER: usize = 1;

/// Least recently used. The place after the slots is where the circle of all that are held
/// begins and ends.
#[derive(Debug)]
pub(crate) struct Oldest {
    links: Vec<[u32; 2]>,
}

impl Oldest {
    pub(crate) fn new(n_slots: usize) -> Self {
        let mut links = vec![[NIL; 2]; n_slots + 1];
        links[n_slots] = [n_slots as u32; 2];
        Self { links }
    }

    fn end(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// What is next to a place on one of its sides; `None` if that is the end.
    fn beside(&self, place: u32, side: usize) -> Option<u32> {
        let slot = self.links[place as usize][side];
        (slot != self.end()).then_some(slot)
    }

    fn oldest(&self) -> Option<u32> {
        self.beside(self.end(), NEWER)
    }

    fn is_held(&self, slot: u32) -> bool {
        self.links[slot as usize] != [NIL; 2]
    }
}

impl CachePolicy for Oldest {
    type Refusal = MemoryError;

    fn for_capacity(&self, n_slots: usize, _: usize) -> Result<Self, MemoryError> {
        Ok(Self::new(n_slots))
    }

    fn n_slots(&self) -> usize {
        self.links.len() - 1
    }

    fn handle_request(&mut self, _: NameHash) {}

    fn handle_answered(&mut self, _: NameHash) {}

    fn take_over(&mut self, _: &mut Self) {}

    fn handle_hit(&mut self, slot: u32) {
        self.handle_remove(slot);
        self.handle_insert(slot, NameHash(0), |_| NameHash(0));
    }

    fn handle_refresh(&mut self, slot: u32) {
        self.handle_hit(slot);
    }

    fn admits_all(&self) -> bool {
        true
    }

    fn admits(&mut self, _: NameHash, _: bool, _: impl Fn(u32) -> NameHash) -> bool {
        true
    }

    fn handle_insert(&mut self, slot: u32, _: NameHash, _: impl Fn(u32) -> NameHash) {
        assert!(!self.is_held(slot), "inserted twice: {slot}");
        let end = self.end();
        let [newest, _] = self.links[end as usize];
        self.links[slot as usize] = [newest, end];
        self.links[newest as usize][NEWER] = slot;
        self.links[end as usize][OLDER] = slot;
    }

    fn handle_move(&mut self, slot: u32, hash: NameHash, hash_of: impl Fn(u32) -> NameHash) {
        self.handle_insert(slot, hash, hash_of);
    }

    fn evict(&mut self, _: NameHash, _: impl Fn(u32) -> NameHash) -> Option<u32> {
        let oldest = self.oldest()?;
        self.handle_remove(oldest);
        Some(oldest)
    }

    fn handle_remove(&mut self, slot: u32) {
        assert!(self.is_held(slot), "removed, and not held: {slot}");
        let [older, newer] = std::mem::replace(&mut self.links[slot as usize], [NIL; 2]);
        self.links[older as usize][NEWER] = newer;
        self.links[newer as usize][OLDER] = older;
    }

    fn admits_most(&self) -> bool {
        true
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        let second = self.oldest().and_then(|oldest| self.beside(oldest, NEWER));
        [second, second.and_then(|second| self.beside(second, NEWER))]
    }

    fn prefetch_request(&self, _: NameHash) {}

    fn prefetch_incoming(&self, _: NameHash) {}

    fn prefetch_hit(&self, _: u32) {}

    fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }

    fn pages(&self) -> Pages {
        Pages::default()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.links)
    }
}
