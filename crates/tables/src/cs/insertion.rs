//! How a Data enters the content store, and what it displaces.

use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{DataView, MonoNs, NameHash};

use super::entry::fresh_until;
use super::policies::PolicyStep;
use super::prefixes::{MAX_VERTICES_PER_DATA, VERTEX_BYTES};
use super::{Admission, CS_ENTRY_BYTES, ContentStore, MAX_CS_COMPONENTS, NotAdmitted, find_exact};
use crate::buckets::BucketIndex;
use crate::pit_cs::Cached;
use crate::pit_cs::place::cached;
use crate::pool::buffer_bytes;

impl ContentStore {
    /// Caches a copy of `data`, evicting what has to make room. If it was not cached
    /// before, its word takes the place of `word`, which is indexed under its name; else
    /// that stays. `known` is what is cached under its name.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        index: &mut BucketIndex,
        data: &DataView<'_>,
        hashes: &[NameHash],
        (word, known): (Option<u32>, Cached),
        now: MonoNs,
        enter: &mut impl FnMut(PolicyStep),
    ) -> Admission {
        let name = data.name();
        if !self.admits {
            self.counters.n_not_admitted_off += 1;
            return Admission::NotAdmitted(NotAdmitted::AdmitOff);
        }
        if name.is_empty() || name.len() > MAX_CS_COMPONENTS {
            self.counters.n_not_admitted_name += 1;
            return Admission::NotAdmitted(NotAdmitted::NameUnsuited);
        }
        let need_bytes = need_bytes(data);
        if need_bytes > self.capacity.max_bytes
            || self.capacity.max_pkts == 0
            || data.wire().len() > MAX_PACKET_BYTES
        {
            self.counters.n_not_admitted_size += 1;
            return Admission::NotAdmitted(NotAdmitted::TooLarge);
        }
        let hash = hashes[name.len()];
        let found = match known {
            Cached::Unknown => find_exact(index, &self.slots, name, hash),
            Cached::Under(found) => found,
        };
        debug_assert_eq!(found, find_exact(index, &self.slots, name, hash));
        match found {
            Some(slot) => self.insert_again(index, slot, data, now),
            None if !self.expects(data, hashes[name.len()], enter) => {
                self.counters.n_not_admitted_policy += 1;
                Admission::NotAdmitted(NotAdmitted::Unpromising)
            }
            None => {
                self.evict_for(index, 1, need_bytes, Some(hash), enter);
                let buffer = self.pool.take_copy(data.wire());
                self.insert_new(index, (data, buffer), hashes, word, fresh_until(data, now));
                Admission::Inserted
            }
        }
    }

    /// Whether the policy wants a Data that is not cached.
    pub(super) fn expects(
        &mut self,
        data: &DataView<'_>,
        hash: NameHash,
        enter: &mut impl FnMut(PolicyStep),
    ) -> bool {
        if self.policy().admits_all() {
            return true;
        }
        let is_full = self.len == self.capacity.max_pkts
            || self.used_bytes() + need_bytes(data) > self.capacity.max_bytes;
        enter(PolicyStep::Admission);
        let is_wanted = self.policies.admits(hash, is_full, &self.slots);
        enter(PolicyStep::Store);
        is_wanted
    }

    fn insert_again(
        &mut self,
        index: &mut BucketIndex,
        slot: u32,
        data: &DataView<'_>,
        now: MonoNs,
    ) -> Admission {
        // Used now, and so the last to be evicted for its own sake.
        self.policies.handle_refresh(slot, &mut self.slots);
        let entry = &mut self.slots[slot];
        entry.fresh_until = fresh_until(data, now);
        match entry.vertex {
            Some(vertex) => self.tree.set_fresh_until(vertex, entry.fresh_until),
            None => self.waiting.set_fresh_until(slot, entry.fresh_until),
        }
        if entry.wire() == data.wire() {
            self.counters.n_refreshes += 1;
            return Admission::Refreshed;
        }
        self.pool.give(std::mem::take(&mut entry.buffer));
        self.forget_digest(slot);
        let buffer = self.pool.take_copy(data.wire());
        let entry = &mut self.slots[slot];
        let (name_hash, fresh_until) = (entry.name_hash, entry.fresh_until);
        entry.occupy(data, name_hash, buffer, fresh_until);
        self.counters.n_replacements += 1;
        self.evict_for(index, 0, 0, None, &mut |_| ());
        Admission::Replaced
    }

    /// Caches a Data that is not cached, and for which there is room, with its copy in a buffer
    /// of the pool. Its slot.
    #[inline]
    pub(super) fn insert_new(
        &mut self,
        index: &mut BucketIndex,
        (data, buffer): (&DataView<'_>, Box<[u8]>),
        hashes: &[NameHash],
        word: Option<u32>,
        fresh_until: MonoNs,
    ) -> u32 {
        let name = data.name();
        let hash = hashes[name.len()];
        let slot = self.slots.alloc();
        self.waiting.make_room(slot);
        let entry = &mut self.slots[slot];
        entry.occupy(data, hash, buffer, fresh_until);
        match word {
            Some(word) => index.replace(hash.0, word, cached(slot)),
            None => index.insert(hash.0, cached(slot)),
        }
        self.policies.handle_insert(slot, &mut self.slots);
        self.len += 1;
        self.counters.n_inserts += 1;
        if self.n_entering == 0 {
            self.waiting.add(slot, hashes, fresh_until);
        } else {
            self.n_entering -= 1;
            self.enter(index, slot, hashes);
            self.enter_waiting(index, 1);
        }
        slot
    }

    /// Evicts until so much more fits, which is to be indexed under `hash`.
    #[inline]
    pub(super) fn evict_for(
        &mut self,
        index: &mut BucketIndex,
        n_more_pkts: usize,
        more_bytes: usize,
        hash: Option<NameHash>,
        enter: &mut impl FnMut(PolicyStep),
    ) {
        while self.len + n_more_pkts > self.capacity.max_pkts
            || self.used_bytes() + more_bytes > self.capacity.max_bytes
        {
            enter(PolicyStep::Eviction);
            let victim = self.policies.evict(hash, &self.slots);
            enter(PolicyStep::Store);
            let Some(slot) = victim else {
                return;
            };
            self.vacate(index, slot);
            self.counters.n_evictions += 1;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, index: &mut BucketIndex, slot: u32) {
        self.policies.handle_remove(slot, &self.slots);
        self.vacate(index, slot);
    }

    /// Empties a slot that no policy holds.
    fn vacate(&mut self, index: &mut BucketIndex, slot: u32) {
        match self.slots[slot].vertex.take() {
            Some(vertex) => self.tree.remove(vertex),
            None => self.waiting.remove(slot),
        }
        self.forget_digest(slot);
        let entry = &mut self.slots[slot];
        index.remove(entry.name_hash.0, cached(slot));
        self.pool.give(std::mem::take(&mut entry.buffer));
        self.slots.free(slot);
        self.len -= 1;
    }
}

/// Most bytes that a Data takes that is not cached yet, entered in the tree or not:
/// room is there when it is.
pub(super) fn need_bytes(data: &DataView<'_>) -> usize {
    CS_ENTRY_BYTES + buffer_bytes(data.wire().len()) + MAX_VERTICES_PER_DATA * VERTEX_BYTES
}
