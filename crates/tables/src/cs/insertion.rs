//! How a Data enters the content store, and what it displaces.

use tachonym_memory::copy_past_cache;
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{DataView, MonoNs, NameHash};

use super::entry::fresh_until;
use super::policies::PolicyStep;
use super::prefixes::{MAX_VERTICES_PER_DATA, VERTEX_BYTES};
use super::{Admission, CS_ENTRY_BYTES, ContentStore, MAX_CS_COMPONENTS, NotAdmitted, find_exact};
use crate::buckets::BucketIndex;
use crate::place::cached;
use crate::pool::buffer_bytes;

/// A Data that is to be cached and is not.
pub(super) struct NewData<'a> {
    pub(super) data: &'a DataView<'a>,
    /// Hashes of the prefixes of its name.
    pub(super) hashes: &'a [NameHash],
    pub(super) fresh_until: MonoNs,
    /// The word under its name whose place in the index it takes.
    pub(super) word: Option<u32>,
    pub(super) is_read_soon: bool,
}

/// What an earlier step has seen of the Data that is cached under a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Cached {
    /// The search has not come by.
    #[default]
    Unknown,
    /// The slot of the Data of this name, if there is one.
    Under(Option<u32>),
}

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
                let new = NewData {
                    data,
                    hashes,
                    fresh_until: fresh_until(data, now),
                    word,
                    is_read_soon: true,
                };
                self.insert_new(index, &new, enter);
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
        let (name_hash, fresh_until) = (entry.name_hash, entry.fresh_until);
        self.forget_digest(slot);
        let entry = &mut self.slots[slot];
        let room = self.pool.fit(&mut entry.buffer, data.wire().len());
        room.copy_from_slice(data.wire());
        entry.occupy(data, name_hash, fresh_until);
        self.counters.n_replacements += 1;
        self.evict_excess(index);
        Admission::Replaced
    }

    /// Caches a Data that is not cached, in the slot of one that it displaces if there is one.
    /// Its slot.
    #[inline]
    pub(super) fn insert_new(
        &mut self,
        index: &mut BucketIndex,
        new: &NewData<'_>,
        enter: &mut impl FnMut(PolicyStep),
    ) -> u32 {
        let (wire, name) = (new.data.wire(), new.data.name());
        let hash = new.hashes[name.len()];
        let emptied = self.make_room(index, need_bytes(new.data), hash, enter);
        let slot = emptied.unwrap_or_else(|| {
            let slot = self.slots.alloc();
            self.waiting.make_room(slot);
            slot
        });
        let entry = &mut self.slots[slot];
        let room = self.pool.fit(&mut entry.buffer, wire.len());
        if new.is_read_soon {
            room.copy_from_slice(wire);
        } else {
            copy_past_cache(room, wire);
        }
        entry.occupy(new.data, hash, new.fresh_until);
        match new.word {
            Some(word) => index.replace(hash.0, word, cached(slot)),
            None => index.insert(hash.0, cached(slot)),
        }
        self.policies.handle_insert(slot, &mut self.slots);
        self.len += 1;
        self.counters.n_inserts += 1;
        if self.n_entering == 0 {
            self.waiting.add(slot, new.hashes, new.fresh_until);
        } else {
            self.n_entering -= 1;
            self.enter(index, slot, new.hashes);
            self.enter_waiting(index, 1);
        }
        slot
    }

    /// Evicts until a Data of `need_bytes` fits whose name hashes to `hash`. The slot that was
    /// emptied last is not free: it is for this Data, and keeps its buffer.
    #[inline]
    fn make_room(
        &mut self,
        index: &mut BucketIndex,
        need_bytes: usize,
        hash: NameHash,
        enter: &mut impl FnMut(PolicyStep),
    ) -> Option<u32> {
        let mut emptied = None;
        // An eviction needs no more bytes: they are counted again only if they did not suffice.
        let mut has_bytes = self.used_bytes() + need_bytes <= self.capacity.max_bytes;
        while self.len >= self.capacity.max_pkts || !has_bytes {
            enter(PolicyStep::Eviction);
            let victim = self.policies.evict(hash, &self.slots);
            enter(PolicyStep::Store);
            let Some(victim) = victim else { break };
            if let Some(before) = emptied.replace(victim) {
                self.release(before);
            }
            self.detach(index, victim);
            self.counters.n_evictions += 1;
            if !has_bytes {
                let kept_bytes = self.slots[victim].buffer.len();
                let used_bytes = self.used_bytes() - kept_bytes;
                has_bytes = used_bytes + need_bytes <= self.capacity.max_bytes;
            }
        }
        emptied
    }

    /// Evicts what exceeds the capacity.
    pub(super) fn evict_excess(&mut self, index: &mut BucketIndex) {
        while self.len > self.capacity.max_pkts || self.used_bytes() > self.capacity.max_bytes {
            // No Data comes whose name a policy could compare.
            let victim = self.policies.evict(NameHash::default(), &self.slots);
            let Some(slot) = victim else { return };
            self.detach(index, slot);
            self.release(slot);
            self.counters.n_evictions += 1;
        }
    }

    /// Removes a Data.
    pub(super) fn remove(&mut self, index: &mut BucketIndex, slot: u32) {
        self.policies.handle_remove(slot, &self.slots);
        self.detach(index, slot);
        self.release(slot);
    }

    /// Takes a Data that no policy holds out of all by which it is found.
    #[inline]
    fn detach(&mut self, index: &mut BucketIndex, slot: u32) {
        let entry = &mut self.slots[slot];
        index.remove(entry.name_hash.0, cached(slot));
        match entry.vertex.take() {
            Some(vertex) => self.tree.remove(vertex),
            None => self.waiting.remove(slot),
        }
        self.forget_digest(slot);
        self.len -= 1;
    }

    /// Frees the slot of a Data that was detached.
    fn release(&mut self, slot: u32) {
        self.pool.give(std::mem::take(&mut self.slots[slot].buffer));
        self.slots.free(slot);
    }
}

/// Most bytes that a Data takes that is not cached yet, entered in the tree or not:
/// room is there when it is.
pub(super) fn need_bytes(data: &DataView<'_>) -> usize {
    CS_ENTRY_BYTES + buffer_bytes(data.wire().len()) + MAX_VERTICES_PER_DATA * VERTEX_BYTES
}
