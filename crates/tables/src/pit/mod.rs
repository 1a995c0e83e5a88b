//! The Pending Interest Table.
//!
//! Owns pending Interests with their downstreams and upstreams. Two Interests
//! share an entry only if name, CanBePrefix, MustBeFresh and forwarding hint
//! agree. A Data finds every entry that it matches: one probe for its name, one
//! more for each shorter length at which a CanBePrefix entry waits, and its
//! digest only if an entry under this very name asks for one. Whether stale
//! Data answers MustBeFresh is left to the engine. The index in which entries are
//! found by their names belongs to [`PitCs`](crate::PitCs), which may share it with
//! the content store: what needs it is a method there.
//!
//! Refuses, and counts, what would exceed its limits in entries, bytes, records
//! of an entry, and hints on one name. The faces of one source may together wait at
//! as many entries, and as many bytes of them, as are still free: one source alone
//! gets half of the table, and the next one finds room (the dynamic threshold of
//! Choudhury and Hahne 1998, with alpha 1). Entries are reported when they expire
//! and stay until they are removed, so that their nonces can be kept.

mod config;
mod counts;
mod entry;
mod idx;
mod pending;
mod records;
mod refusals;
mod shares;

use tachonym_memory::{MemoryError, Pages};
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs, NameHash, NameView, SourceId};

pub use self::config::PitConfig;
use self::counts::{DigestParents, LengthCounts};
pub use self::entry::MAX_INLINE_BYTES;
pub use self::entry::{N_STRATEGY_WORDS, PitEntry};
pub use self::idx::EntryIdx;
pub use self::pending::Pending;
use self::records::More;
pub use self::records::{InRecord, OutRecord};
pub use self::refusals::{PitRefusal, PitRefusals};
use self::shares::Shares;
use crate::buckets::BucketIndex;
use crate::digest;
use crate::hash_index::HashIndex;
use crate::place::{as_pending, pending};
use crate::pool::{BufferPool, buffer_bytes};
use crate::slab::Slab;
use crate::wheel::TimerWheel;

/// Most entries that differ in their forwarding hint only. Entries without a
/// hint are always let in, so hints cannot crowd a name out.
pub const MAX_HINTS_PER_NAME: usize = 32;

/// Bytes of an entry beside its slot: a word in an index between 5/16 and 5/8
/// full, and a place in the free list.
const INDEX_BYTES: usize = 20 + 4;

/// What an entry costs in bytes, beside the buffer of an Interest longer than
/// [`MAX_INLINE_BYTES`] and beside records beyond the first of a kind.
pub const PIT_ENTRY_BYTES: usize = size_of::<PitEntry>() + INDEX_BYTES;

/// What [`PitCs::find_or_insert`](crate::PitCs::find_or_insert) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The entry is new and has no record yet.
    New,
    /// The Interest was pending already.
    Existing,
}

/// See the module.
#[derive(Debug)]
pub struct Pit {
    config: PitConfig,
    slots: Slab<PitEntry>,
    len: usize,
    /// Entries whose last component is an implicit digest, also by that.
    by_digest: HashIndex,
    digest_parents: DigestParents,
    /// Entries with CanBePrefix, by number of components.
    n_prefix_entries: LengthCounts,
    wheel: TimerWheel,
    pool: BufferPool,
    /// Heap bytes of what entries have beyond their slots.
    more_bytes: usize,
    /// For records of entries to come, for their large Interests, and the heap
    /// bytes of both.
    #[expect(clippy::vec_box, reason = "the box is what is spared")]
    spare_for_records: Vec<Box<More>>,
    #[expect(clippy::vec_box, reason = "the box is what is spared")]
    spare_for_wires: Vec<Box<More>>,
    spare_more_bytes: usize,
    shares: Shares,
    refusals: PitRefusals,
    expired_slots: Vec<u32>,
}

fn max_slots(config: &PitConfig) -> usize {
    config.max_entries.min(config.max_bytes / PIT_ENTRY_BYTES)
}

impl Pit {
    /// An empty PIT.
    ///
    /// # Errors
    /// If there are not as many addresses as its entries may take.
    pub(crate) fn new(config: PitConfig) -> Result<Self, MemoryError> {
        let config = PitConfig {
            max_entries: config.max_entries.min((1 << 31) - 2),
            ..config
        };
        Ok(Self {
            config,
            slots: Slab::new(max_slots(&config), config.pages)?,
            len: 0,
            by_digest: HashIndex::new(),
            digest_parents: DigestParents::default(),
            n_prefix_entries: LengthCounts::default(),
            wheel: TimerWheel::new(),
            pool: BufferPool::new(config.max_bytes / 16),
            more_bytes: 0,
            spare_for_records: Vec::new(),
            spare_for_wires: Vec::new(),
            spare_more_bytes: 0,
            shares: Shares::default(),
            refusals: PitRefusals::default(),
            expired_slots: Vec::new(),
        })
    }

    /// Most entries that there can be.
    pub(crate) fn max_slots(&self) -> usize {
        max_slots(&self.config)
    }

    /// What pages the entries have.
    pub(crate) fn pages(&self) -> Pages {
        self.slots.pages()
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What was refused so far.
    #[must_use]
    pub const fn refusals(&self) -> &PitRefusals {
        &self.refusals
    }

    /// Bytes that count towards [`PitConfig::max_bytes`].
    #[must_use]
    pub const fn used_bytes(&self) -> usize {
        self.len * PIT_ENTRY_BYTES + self.pool.used_bytes() + self.more_bytes
    }

    /// Heap memory in use, spare slots and buffers included, but for the index by
    /// names.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
            + self.by_digest.memory_bytes()
            + self.wheel.memory_bytes()
            + self.pool.memory_bytes()
            + self.more_bytes
            + self.spare_more_bytes
            + (self.spare_for_records.capacity() + self.spare_for_wires.capacity())
                * size_of::<Box<More>>()
            + self.digest_parents.memory_bytes()
            + self.shares.memory_bytes()
    }

    /// As [`PitCs::find_pending_with_any_hint`](crate::PitCs::find_pending_with_any_hint).
    pub(crate) fn find_with_any_hint(
        &self,
        index: &BucketIndex,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        mut accepts: impl FnMut(&PitEntry) -> bool,
    ) -> Option<EntryIdx> {
        let name = interest.name();
        let hash = hashes[name.len()];
        let word = index.find(hash.0, |word| {
            let Some(slot) = as_pending(word) else {
                return false;
            };
            let entry = &self.slots[slot];
            entry.name_hash == hash
                && entry.can_be_prefix() == interest.can_be_prefix()
                && entry.must_be_fresh() == interest.must_be_fresh()
                && entry.name_bytes() == name.value_bytes()
                && accepts(entry)
        })?;
        as_pending(word).map(|slot| self.idx_of(slot))
    }

    /// The entry of this number, unless it was removed.
    #[must_use]
    #[inline]
    pub fn get(&self, idx: EntryIdx) -> Option<&PitEntry> {
        self.slots
            .get(idx.slot)
            .filter(|entry| entry.generation == idx.generation)
    }

    /// The entry of this number, unless it was removed.
    #[inline]
    pub fn get_mut(&mut self, idx: EntryIdx) -> Option<&mut PitEntry> {
        self.slots
            .get_mut(idx.slot)
            .filter(|entry| entry.generation == idx.generation)
    }

    /// The entry of a number that a lookup has just returned: nothing was removed since.
    #[must_use]
    #[inline]
    pub fn matched(&self, idx: EntryIdx) -> &PitEntry {
        let entry = &self.slots[idx.slot];
        debug_assert_eq!(entry.generation, idx.generation, "removed since");
        entry
    }

    /// As [`PitCs::matches_for_data`](crate::PitCs::matches_for_data). Shows each word
    /// under the whole name that is no entry's to `visit_other`.
    #[inline]
    pub(crate) fn matches_for_data(
        &self,
        index: &BucketIndex,
        data: &DataView<'_>,
        hashes: &[NameHash],
        matches: &mut Vec<EntryIdx>,
        mut visit_other: impl FnMut(u32),
    ) {
        matches.clear();
        let name = data.name();
        let hashes = &hashes[..=name.len()];
        let hash = hashes[name.len()];
        index.for_each(hash.0, |word| match as_pending(word) {
            Some(slot) => {
                let entry = &self.slots[slot];
                if entry.name_hash == hash && entry.name_bytes() == name.value_bytes() {
                    matches.push(self.idx_of(slot));
                }
            }
            None => visit_other(word),
        });
        if self.n_prefix_entries.total() > 0 {
            self.for_each_prefix_hash(hashes, |length, hash| {
                self.push_prefix_matches(index, name, (length, hash), matches);
            });
        }
        if self.digest_parents.contains(hash) {
            self.push_digest_matches(data, hash, matches);
        }
        // The order in the index depends on what else is in it; the order in which slots are
        // freed must not.
        if matches.len() > 1 {
            matches.sort_unstable();
        }
    }

    /// Calls `visit` with the lengths at which entries may wait for a Data whose name
    /// has a component less than `hashes` has hashes, the whole length first.
    #[inline]
    pub(crate) fn for_each_data_hash(
        &self,
        hashes: &[NameHash],
        mut visit: impl FnMut(usize, NameHash),
    ) {
        if let Some((&last, shorter)) = hashes.split_last() {
            visit(shorter.len(), last);
        }
        if self.n_prefix_entries.total() > 0 {
            self.for_each_prefix_hash(hashes, visit);
        }
    }

    /// At which lengths of names Interests with CanBePrefix are pending: a bit for each, the
    /// highest for all from 63 on. Takes constant time.
    #[must_use]
    pub const fn prefix_lengths(&self) -> u64 {
        self.n_prefix_entries.bits()
    }

    /// As [`Pit::for_each_data_hash`], but for the whole length.
    fn for_each_prefix_hash(&self, hashes: &[NameHash], mut visit: impl FnMut(usize, NameHash)) {
        let n_shorter = hashes.len().saturating_sub(1);
        let n_lengths = n_shorter.min(self.n_prefix_entries.longest() + 1);
        for (length, &hash) in hashes[..n_lengths].iter().enumerate().rev() {
            if self.n_prefix_entries.has(length) {
                visit(length, hash);
            }
        }
    }

    /// Brings into the cache what an exchange reads of the entry in a slot.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        self.slots[slot].prefetch();
    }

    /// A face exists, and counts to this source from now on, with all that it waits for
    /// already. One that was never attached is a source of its own.
    pub fn attach_face(&mut self, face: FaceId, source: SourceId) {
        self.shares.attach(face, source);
    }

    /// A face has gone. Its records count until they are removed.
    pub fn detach_face(&mut self, face: FaceId) {
        self.shares.detach(face);
    }

    /// Number of entries that the faces of this one's source wait at, each face counted.
    #[must_use]
    pub fn n_awaited_by_source(&self, face: FaceId) -> usize {
        self.shares.of_source(face).n_entries
    }

    /// The slot of the entry of this number, unless it was removed.
    pub(crate) fn live_slot(&self, idx: EntryIdx) -> Option<u32> {
        self.get(idx).map(|_| idx.slot)
    }

    /// Appends the entries that have expired to `expired`. They are not
    /// reported again, and stay until they are removed or have a new expiry
    /// ([`Pending::set_expiry`]): the caller must do one or the other.
    ///
    /// No entry is reported before its expiry, and each by the first call that
    /// comes a [tick](crate::wheel::TICK_NS) after it.
    pub fn expire(&mut self, now: MonoNs, expired: &mut Vec<EntryIdx>) {
        self.expire_some(now, usize::MAX, expired);
    }

    /// As [`Pit::expire`], but with bounded work: looks at `max_entries` at most.
    /// False if that left some; they are late until the next call.
    pub fn expire_some(
        &mut self,
        now: MonoNs,
        max_entries: usize,
        expired: &mut Vec<EntryIdx>,
    ) -> bool {
        self.expired_slots.clear();
        let is_done =
            self.wheel
                .expire_some(&mut self.slots, now, max_entries, &mut self.expired_slots);
        expired.extend(self.expired_slots.iter().map(|&slot| self.idx_of(slot)));
        is_done
    }

    /// When [`Pit::expire`] next has work.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoNs> {
        self.wheel.next_expiry()
    }

    /// Removes the entry in a slot, but for its word in the index: the hash that it is
    /// indexed under.
    #[inline]
    pub(crate) fn vacate(&mut self, slot: u32) -> NameHash {
        debug_assert!(self.slots[slot].is_live(), "removed before");
        self.wheel.cancel(&mut self.slots, slot);
        let entry = &self.slots[slot];
        if entry.can_be_prefix() {
            self.n_prefix_entries.remove(entry.n_components());
        }
        if entry.has_digest() {
            self.unlink_digest(slot);
        }
        let entry = &mut self.slots[slot];
        let share_bytes = entry.share_bytes();
        for record in entry.in_list().iter() {
            self.shares.remove(record.face, share_bytes);
        }
        let name_hash = entry.name_hash;
        if let Some(more) = entry.vacate() {
            self.keep_more(more);
        }
        self.slots.free(slot);
        self.len -= 1;
        name_hash
    }

    /// Enters every entry in an index that has none of them.
    pub(crate) fn index_all(&self, index: &mut BucketIndex) {
        for (idx, entry) in self.iter() {
            index.insert(entry.name_hash.0, pending(idx.slot));
        }
    }

    /// Removes the downstream and upstream records of a face, and appends the
    /// entries that lost their last downstream by it to `abandoned`. Visits
    /// every entry.
    pub fn remove_face(&mut self, face: FaceId, abandoned: &mut Vec<EntryIdx>) {
        let mut n_unseen = self.len;
        for slot in 0..self.slots.n_touched() {
            if n_unseen == 0 {
                return;
            }
            let entry = &mut self.slots[slot];
            if !entry.is_live() {
                continue;
            }
            n_unseen -= 1;
            entry.out_list_mut().remove(face);
            if entry.in_list_mut().remove(face).is_none() {
                continue;
            }
            self.shares.remove(face, entry.share_bytes());
            if entry.n_in_records() == 0 {
                abandoned.push(EntryIdx {
                    slot,
                    generation: entry.generation,
                });
            }
        }
    }

    /// Number of places that entries have, or have had: what is below it can be
    /// visited in parts with [`Pit::iter_places`].
    #[must_use]
    pub fn n_places(&self) -> u32 {
        self.slots.n_touched()
    }

    /// The entries in these places. An entry stays in its place.
    pub fn iter_places(
        &self,
        places: std::ops::Range<u32>,
    ) -> impl Iterator<Item = (EntryIdx, &PitEntry)> {
        places.filter_map(|slot| {
            let entry = self.slots.get(slot).filter(|entry| entry.is_live())?;
            Some((self.idx_of(slot), entry))
        })
    }

    /// Every entry, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (EntryIdx, &PitEntry)> {
        self.slots
            .iter_touched()
            .filter(|(_, entry)| entry.is_live())
            .map(|(slot, entry)| (self.idx_of(slot), entry))
    }

    #[inline]
    pub(crate) fn idx_of(&self, slot: u32) -> EntryIdx {
        EntryIdx {
            slot,
            generation: self.slots[slot].generation,
        }
    }

    /// The slot of the entry of `interest`, or the number of entries with other hints.
    pub(crate) fn search(
        &self,
        index: &BucketIndex,
        interest: &InterestView<'_>,
        name_hash: NameHash,
    ) -> Result<u32, usize> {
        let mut n_hints = 0;
        let found = index.find(name_hash.0, |word| {
            as_pending(word)
                .is_some_and(|slot| self.is_entry_of(slot, interest, name_hash, &mut n_hints))
        });
        found.and_then(as_pending).ok_or(n_hints)
    }

    /// Whether the entry in a slot is that of `interest`. Adds one to `n_hints` if it
    /// shares its name and CanBePrefix, and has a hint.
    #[inline]
    pub(crate) fn is_entry_of(
        &self,
        slot: u32,
        interest: &InterestView<'_>,
        name_hash: NameHash,
        n_hints: &mut usize,
    ) -> bool {
        let entry = &self.slots[slot];
        if entry.name_hash != name_hash
            || entry.can_be_prefix() != interest.can_be_prefix()
            || entry.name_bytes() != interest.name().value_bytes()
        {
            return false;
        }
        *n_hints += usize::from(entry.has_forwarding_hint());
        entry.must_be_fresh() == interest.must_be_fresh()
            && entry.hint_bytes() == interest.forwarding_hint_bytes()
    }

    /// Makes an entry of `interest`, which has none, and returns its slot; `n_hints` is what
    /// [`Pit::search`] has counted.
    #[inline]
    pub(crate) fn insert_new(
        &mut self,
        index: &mut BucketIndex,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        n_hints: usize,
        now: MonoNs,
    ) -> Result<u32, PitRefusal> {
        let name = interest.name();
        let wire = interest.wire();
        if self.len >= self.config.max_entries {
            return Err(self.refusals.count(PitRefusal::TooManyEntries));
        }
        if interest.forwarding_hint_bytes().is_some() && n_hints >= MAX_HINTS_PER_NAME {
            return Err(self.refusals.count(PitRefusal::TooManyHints));
        }
        let mut new_bytes = PIT_ENTRY_BYTES;
        if wire.len() > MAX_INLINE_BYTES {
            new_bytes += size_of::<More>() + buffer_bytes(wire.len());
        }
        if wire.len() > MAX_PACKET_BYTES || self.used_bytes() + new_bytes > self.config.max_bytes {
            return Err(self.refusals.count(PitRefusal::TooManyBytes));
        }
        let name_hash = hashes[name.len()];
        let expiry = now.plus_ms(interest.lifetime_ms());
        let more = if wire.len() > MAX_INLINE_BYTES {
            let mut more = self.take_more_for_wire();
            more.wire = self.pool.take_copy(wire);
            Some(more)
        } else {
            None
        };
        let slot = self.slots.alloc();
        let entry = &mut self.slots[slot];
        entry.occupy(interest, name_hash, more);
        self.len += 1;
        self.wheel.schedule(&mut self.slots, slot, expiry);
        index.insert(name_hash.0, pending(slot));
        if interest.can_be_prefix() {
            self.n_prefix_entries.add(name.len());
        }
        if let Some(digest) = name.last_implicit_digest() {
            self.link_digest(slot, hashes[name.len() - 1], digest);
        }
        Ok(slot)
    }

    #[cold]
    fn link_digest(&mut self, slot: u32, parent: NameHash, digest: &[u8; 32]) {
        let mut more = self.slots[slot].more.take();
        more.get_or_insert_with(|| self.take_more_for_wire())
            .digest_parent = Some(parent);
        self.slots[slot].more = more;
        self.slots[slot].set_has_digest();
        self.by_digest
            .insert(digest::digest_hash(parent, digest), slot);
        self.digest_parents.add(parent);
    }

    #[cold]
    fn unlink_digest(&mut self, slot: u32) {
        let entry = &self.slots[slot];
        let (Some(parent), Some(digest)) = (
            entry.more.as_ref().and_then(|more| more.digest_parent),
            entry.name_bytes().last_chunk::<32>(),
        ) else {
            return;
        };
        self.by_digest
            .remove(digest::digest_hash(parent, digest), slot);
        self.digest_parents.remove(parent);
    }

    /// Appends the entries on the first `length` components that wait for longer names
    /// too.
    #[inline(never)]
    fn push_prefix_matches(
        &self,
        index: &BucketIndex,
        name: NameView<'_>,
        (length, hash): (usize, NameHash),
        matches: &mut Vec<EntryIdx>,
    ) {
        index.for_each(hash.0, |word| {
            let Some(slot) = as_pending(word) else {
                return;
            };
            let entry = &self.slots[slot];
            // Equal bytes are equal components, and so as many of them.
            if entry.name_hash == hash
                && entry.can_be_prefix()
                && entry.n_components() == length
                && name.value_bytes().starts_with(entry.name_bytes())
            {
                matches.push(self.idx_of(slot));
            }
        });
    }

    #[cold]
    fn push_digest_matches(
        &self,
        data: &DataView<'_>,
        parent: NameHash,
        matches: &mut Vec<EntryIdx>,
    ) {
        let digest = data.implicit_digest();
        for slot in self
            .by_digest
            .candidates(digest::digest_hash(parent, &digest))
        {
            if digest::is_full_name(self.slots[slot].name_bytes(), data.name(), &digest) {
                matches.push(self.idx_of(slot));
            }
        }
    }

    fn take_more_for_wire(&mut self) -> Box<More> {
        let spare = self.spare_for_wires.pop();
        self.count_more(spare, More::default)
    }

    fn take_more_for_records(&mut self) -> Box<More> {
        let spare = self.spare_for_records.pop();
        self.count_more(spare, More::for_records)
    }

    fn count_more(&mut self, spare: Option<Box<More>>, new: fn() -> More) -> Box<More> {
        if let Some(more) = &spare {
            self.spare_more_bytes -= more.heap_bytes();
        }
        let more = spare.unwrap_or_else(|| Box::new(new()));
        self.more_bytes += more.heap_bytes();
        more
    }

    /// Takes back what an entry had.
    fn keep_more(&mut self, mut more: Box<More>) {
        self.more_bytes -= more.heap_bytes();
        let wire = std::mem::take(&mut more.wire);
        if !wire.is_empty() {
            self.pool.give(wire);
        }
        more.clear();
        if self.spare_more_bytes + more.heap_bytes() <= self.config.max_bytes / 16 {
            self.spare_more_bytes += more.heap_bytes();
            if more.is_for_records() {
                self.spare_for_records.push(more);
            } else {
                self.spare_for_wires.push(more);
            }
        }
    }
}
