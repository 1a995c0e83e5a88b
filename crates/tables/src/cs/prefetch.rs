//! What a burst fetches of the content store beyond entries.
//!
//! Owns hints only: they change nothing but the time of what follows. When to give them
//! is the engine's schedule.

use tachonym_memory::prefetch;
use tachonym_packet::NameHash;

use super::ContentStore;

/// Lines of a packet that are fetched ahead: what is beyond, hardware guesses.
const MAX_PACKET_LINES: usize = 8;
const LINE_BYTES: usize = 64;

impl ContentStore {
    /// Brings into the cache what a search reads of the Data in a slot.
    pub(crate) fn prefetch(&self, slot: u32) {
        prefetch(&self.slots[slot]);
    }

    /// Brings into the cache what a hit touches, if it is the Data in a slot: the packet,
    /// and what the policy knows of the slot. Reads where [`ContentStore::prefetch`] has
    /// pointed. The Data may have gone since.
    pub(crate) fn prefetch_hit(&self, slot: u32) {
        if !self.slots[slot].is_live() {
            return;
        }
        self.prefetch_packet(slot);
        self.policy().prefetch_hit(slot);
    }

    /// Brings into the cache what the policy reads of a name that is asked for.
    pub(crate) fn prefetch_request(&self, hash: NameHash) {
        self.policy().prefetch_request(hash.0);
    }

    /// Brings into the cache what the policy reads of the name of a Data that may be cached.
    pub(crate) fn prefetch_incoming(&self, hash: NameHash) {
        self.policy().prefetch_request(hash.0);
        self.policy().prefetch_incoming(hash.0);
    }

    /// Brings into the cache what the eviction after the next one touches, but for its
    /// place in the index, the hash for which this returns: its packet's memory, which is
    /// the next to be written to; and the entry of the one after that.
    pub(crate) fn prefetch_victims(&self) -> Option<NameHash> {
        let [second, third] = self.policies.upcoming();
        let second = second?;
        self.prefetch_packet(second);
        if let Some(third) = third {
            prefetch(&self.slots[third]);
        }
        Some(self.slots[second].name_hash)
    }

    fn prefetch_packet(&self, slot: u32) {
        let lines = self.slots[slot].wire().chunks(LINE_BYTES);
        for line in lines.take(MAX_PACKET_LINES) {
            prefetch(line);
        }
    }
}
