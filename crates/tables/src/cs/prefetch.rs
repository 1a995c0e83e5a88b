//! What a burst fetches of the content store beyond entries.
//!
//! Owns hints only: they change nothing but the time of what follows. When to give them
//! is the engine's schedule.

use tachonym_memory::prefetch;
use tachonym_packet::NameHash;

use super::ContentStore;
use super::eviction::{Lru, Policy};

/// Lines of a packet that are fetched ahead: what is beyond, hardware guesses.
const MAX_PACKET_LINES: usize = 8;
const LINE_BYTES: usize = 64;

impl ContentStore {
    /// Brings into the cache what a hit touches, if the name seems to be cached: the
    /// packet, and the entries beside it in the order of eviction. Reads where
    /// [`ContentStore::prefetch_entry`] has pointed.
    pub fn prefetch_hit(&self, name_hash: NameHash) {
        let Some(slot) = self.index.candidate(name_hash.0) else {
            return;
        };
        self.prefetch_packet(slot);
        if let Policy::Lru(_) = self.policy {
            for neighbour in Lru::neighbours(self.slots[slot].state) {
                prefetch(&self.slots[neighbour]);
            }
        }
    }

    /// Brings into the cache what the eviction after the next one touches: its packet's
    /// memory, which is the next to be written to, and its place in the index; and the
    /// entry of the one after that. To be called before every insertion, each of which
    /// then finds there what earlier calls have asked for.
    pub fn prefetch_victims(&self) {
        let Policy::Lru(lru) = &self.policy else {
            return;
        };
        let after = |slot: u32| Lru::newer(self.slots[slot].state);
        let Some(second) = lru.oldest().and_then(after) else {
            return;
        };
        self.index.prefetch(self.slots[second].name_hash.0);
        self.prefetch_packet(second);
        if let Some(third) = after(second) {
            prefetch(&self.slots[third]);
        }
    }

    fn prefetch_packet(&self, slot: u32) {
        let lines = self.slots[slot].wire().chunks(LINE_BYTES);
        for line in lines.take(MAX_PACKET_LINES) {
            prefetch(line);
        }
    }
}
