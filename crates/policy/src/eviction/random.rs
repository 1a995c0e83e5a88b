//! Any, with equal chances.

use super::Evict;
use crate::random::Random;

/// Evicts one of all that are held, drawn anew for each victim.
#[derive(Clone, Debug)]
pub(crate) struct RandomSlot {
    /// All that are held, in no order.
    held: Vec<u32>,
    /// Of each slot its place in `held`.
    places: Vec<u32>,
    random: Random,
}

impl RandomSlot {
    pub(crate) fn new(n_slots: usize, seed: u64) -> Self {
        Self {
            held: Vec::with_capacity(n_slots),
            places: vec![0; n_slots],
            random: Random::new(seed),
        }
    }
}

impl Evict for RandomSlot {
    fn insert(&mut self, slot: u32, _: u64) {
        self.places[slot as usize] = self.held.len() as u32;
        self.held.push(slot);
    }

    fn hit(&mut self, _: u32) {}

    fn victim(&mut self, _: u64) -> Option<u32> {
        let drawn = self.random.below(self.held.len());
        self.held.get(drawn).copied()
    }

    fn remove(&mut self, slot: u32) {
        let place = self.places[slot as usize];
        self.held.swap_remove(place as usize);
        if let Some(&moved) = self.held.get(place as usize) {
            self.places[moved as usize] = place;
        }
    }

    fn len(&self) -> usize {
        self.held.len()
    }

    fn memory_bytes(&self) -> usize {
        self.held.capacity() * size_of::<u32>() + size_of_val(&*self.places)
    }
}
