//! The Pending Interest Table.
//!
//! Owns pending Interests with their downstreams and upstreams. Two Interests
//! share an entry only if name, CanBePrefix, MustBeFresh and forwarding hint
//! agree. A Data finds every entry that it matches: one probe for its name, one
//! more for each shorter length at which a CanBePrefix entry waits, and its
//! digest only if an entry under this very name asks for one. Whether stale
//! Data answers MustBeFresh is left to the engine.
//!
//! Refuses, and counts, what would exceed its limits in entries, bytes, records
//! of an entry, and hints on one name. A face may wait at as many entries, and
//! as many bytes of them, as are still free: one alone gets half of the table,
//! and whoever comes next finds room (the dynamic threshold of Choudhury and
//! Hahne 1998, with alpha 1). Entries are reported when they expire
//! and stay until they are removed, so that their nonces can be kept.

mod counts;
mod entry;
mod records;
mod shares;

use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs, NameHash};

use self::counts::{DigestParents, LengthCounts};
pub use self::entry::{N_STRATEGY_WORDS, PitEntry};
use self::records::Record;
pub use self::records::{InRecord, OutRecord};
use self::shares::{Share, Shares};
use crate::digest;
use crate::hash_index::HashIndex;
use crate::pool::{BufferPool, buffer_bytes};
use crate::slab::Slab;
use crate::wheel::TimerWheel;

/// Most entries that differ in their forwarding hint only. Entries without a
/// hint are always let in, so hints cannot crowd a name out.
pub const MAX_HINTS_PER_NAME: usize = 32;

/// Index and timer bytes of an entry, beside its slot: nine bytes in an index
/// between 7/16 and 7/8 full, a timer and a place in the free list.
const INDEX_BYTES: usize = 20 + 24 + 4;

/// What an entry without records beyond the first costs, in bytes, beside the
/// buffer of its Interest.
pub const PIT_ENTRY_BYTES: usize = size_of::<PitEntry>() + INDEX_BYTES;

/// Tells the two classes of entries on one name apart.
const CAN_BE_PREFIX_SALT: u64 = 0xa5f1_5237_0c8d_9b6e;

/// Limits of a [`Pit`].
#[derive(Clone, Copy, Debug)]
pub struct PitConfig {
    /// Most entries.
    pub max_entries: usize,
    /// Most bytes of entries, their Interests and records.
    pub max_bytes: usize,
    /// Most downstreams, and most upstreams, of one entry.
    pub max_records_per_entry: usize,
}

impl Default for PitConfig {
    fn default() -> Self {
        Self {
            max_entries: 1 << 19,
            max_bytes: 256 << 20,
            max_records_per_entry: 512,
        }
    }
}

/// Number of an entry in its [`Pit`]. It does not outlive the entry: the number
/// of a removed entry finds nothing, even when the slot has a new tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryIdx {
    slot: u32,
    generation: u32,
}

/// What [`Pit::find_or_insert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The entry is new and has no record yet.
    New,
    /// The Interest was pending already.
    Existing,
}

/// Why the PIT did not take an Interest or a record. Each is counted in
/// [`PitRefusals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PitRefusal {
    /// [`PitConfig::max_entries`] is reached.
    TooManyEntries,
    /// [`PitConfig::max_bytes`] would be exceeded.
    TooManyBytes,
    /// [`MAX_HINTS_PER_NAME`] is reached.
    TooManyHints,
    /// [`PitConfig::max_records_per_entry`] is reached.
    TooManyRecords,
    /// The face waits for as much already as is still free.
    FaceShareUsed,
    /// The entry is gone.
    NoSuchEntry,
}

impl std::fmt::Display for PitRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooManyEntries => "the PIT holds as many entries as it may",
            Self::TooManyBytes => "the PIT holds as many bytes as it may",
            Self::TooManyHints => "too many forwarding hints on one name",
            Self::TooManyRecords => "the PIT entry has as many records as it may",
            Self::FaceShareUsed => "the face has its share of the PIT",
            Self::NoSuchEntry => "the PIT entry is gone",
        })
    }
}

impl std::error::Error for PitRefusal {}

/// How often a [`Pit`] refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PitRefusals {
    /// See [`PitRefusal::TooManyEntries`].
    pub n_too_many_entries: u64,
    /// See [`PitRefusal::TooManyBytes`].
    pub n_too_many_bytes: u64,
    /// See [`PitRefusal::TooManyHints`].
    pub n_too_many_hints: u64,
    /// See [`PitRefusal::TooManyRecords`].
    pub n_too_many_records: u64,
    /// See [`PitRefusal::FaceShareUsed`].
    pub n_face_share_used: u64,
}

impl PitRefusals {
    fn count(&mut self, refusal: PitRefusal) -> PitRefusal {
        match refusal {
            PitRefusal::TooManyEntries => self.n_too_many_entries += 1,
            PitRefusal::TooManyBytes => self.n_too_many_bytes += 1,
            PitRefusal::TooManyHints => self.n_too_many_hints += 1,
            PitRefusal::TooManyRecords => self.n_too_many_records += 1,
            PitRefusal::FaceShareUsed => self.n_face_share_used += 1,
            // The caller's slip, not a limit.
            PitRefusal::NoSuchEntry => {}
        }
        refusal
    }
}

/// See the module.
#[derive(Debug)]
pub struct Pit {
    config: PitConfig,
    slots: Slab<PitEntry>,
    len: usize,
    index: HashIndex,
    /// Entries whose last component is an implicit digest, also by that.
    by_digest: HashIndex,
    digest_parents: DigestParents,
    /// Entries with CanBePrefix, by number of components.
    n_prefix_entries: LengthCounts,
    wheel: TimerWheel,
    pool: BufferPool,
    /// Heap bytes of the records of entries.
    record_bytes: usize,
    /// The same of free slots.
    spare_record_bytes: usize,
    shares: Shares,
    refusals: PitRefusals,
    expired_slots: Vec<u32>,
}

fn index_hash(name_hash: NameHash, can_be_prefix: bool) -> u64 {
    if can_be_prefix {
        name_hash.0 ^ CAN_BE_PREFIX_SALT
    } else {
        name_hash.0
    }
}

impl Pit {
    /// An empty PIT.
    #[must_use]
    pub fn new(config: PitConfig) -> Self {
        let max_entries = config.max_entries.min(u32::MAX as usize - 1);
        Self {
            config: PitConfig {
                max_entries,
                ..config
            },
            slots: Slab::new(),
            len: 0,
            index: HashIndex::new(),
            by_digest: HashIndex::new(),
            digest_parents: DigestParents::default(),
            n_prefix_entries: LengthCounts::default(),
            wheel: TimerWheel::new(),
            pool: BufferPool::new(config.max_bytes / 16),
            record_bytes: 0,
            spare_record_bytes: 0,
            shares: Shares::default(),
            refusals: PitRefusals::default(),
            expired_slots: Vec::new(),
        }
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
        self.len * PIT_ENTRY_BYTES + self.pool.used_bytes() + self.record_bytes
    }

    /// Heap memory in use, spare slots and buffers included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
            + self.index.memory_bytes()
            + self.by_digest.memory_bytes()
            + self.wheel.memory_bytes()
            + self.pool.memory_bytes()
            + self.record_bytes
            + self.spare_record_bytes
            + self.digest_parents.memory_bytes()
            + self.shares.memory_bytes()
    }

    /// The entry of `interest`; a new one if it is not pending, which expires
    /// a lifetime after `now` unless [`Pit::set_expiry`] says otherwise.
    /// `hashes[i]` is the hash of the first `i` components of the name.
    ///
    /// # Errors
    /// If a new entry would exceed a limit; counted.
    ///
    /// # Panics
    /// If `hashes` is shorter than that.
    pub fn find_or_insert(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Result<(EntryIdx, Inserted), PitRefusal> {
        let name_hash = hashes[interest.name().len()];
        match self.search(interest, name_hash) {
            Ok(idx) => Ok((idx, Inserted::Existing)),
            Err(n_hints) => {
                let idx = self.insert_new(interest, hashes, n_hints, now)?;
                Ok((idx, Inserted::New))
            }
        }
    }

    /// The entry of `interest`, if it is pending.
    ///
    /// # Panics
    /// If `hashes` is not as [`Pit::find_or_insert`] wants it.
    #[must_use]
    pub fn find(&self, interest: &InterestView<'_>, hashes: &[NameHash]) -> Option<EntryIdx> {
        self.search(interest, hashes[interest.name().len()]).ok()
    }

    /// An entry that differs from `interest` in its forwarding hint at most,
    /// among those that `accepts` takes.
    ///
    /// # Panics
    /// If `hashes` is not as [`Pit::find_or_insert`] wants it.
    #[must_use]
    pub fn find_with_any_hint(
        &self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        mut accepts: impl FnMut(&PitEntry) -> bool,
    ) -> Option<EntryIdx> {
        let name = interest.name();
        let hash = index_hash(hashes[name.len()], interest.can_be_prefix());
        self.index.candidates(hash).find_map(|slot| {
            let entry = &self.slots[slot];
            let is_alike = entry.can_be_prefix == interest.can_be_prefix()
                && entry.must_be_fresh == interest.must_be_fresh()
                && entry.name_bytes() == name.value_bytes();
            (is_alike && accepts(entry)).then_some(EntryIdx {
                slot,
                generation: entry.generation,
            })
        })
    }

    /// The entry of this number, unless it was removed.
    #[must_use]
    pub fn get(&self, idx: EntryIdx) -> Option<&PitEntry> {
        self.slots
            .get(idx.slot)
            .filter(|entry| entry.generation == idx.generation)
    }

    /// The entry of this number, unless it was removed.
    pub fn get_mut(&mut self, idx: EntryIdx) -> Option<&mut PitEntry> {
        self.slots
            .get_mut(idx.slot)
            .filter(|entry| entry.generation == idx.generation)
    }

    /// Replaces the contents of `matches` by every entry that `data` answers,
    /// each once. An entry may be past its expiry but not yet reported.
    /// `hashes[i]` is the hash of the first `i` components of the Data's name.
    ///
    /// # Panics
    /// If `hashes` is shorter than that.
    pub fn matches_for_data(
        &self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        matches: &mut Vec<EntryIdx>,
    ) {
        matches.clear();
        let name = data.name();
        let n_components = name.len();
        self.push_matches(name.value_bytes(), n_components, hashes, false, matches);
        if self.n_prefix_entries.total() > 0 {
            let longest = n_components.min(self.n_prefix_entries.longest());
            for length in (0..=longest).rev() {
                if self.n_prefix_entries.has(length) {
                    self.push_matches(name.value_bytes(), length, hashes, true, matches);
                }
            }
        }
        if self.digest_parents.contains(hashes[n_components]) {
            self.push_digest_matches(data, hashes[n_components], matches);
        }
    }

    /// Adds a downstream, or replaces that of the same face.
    ///
    /// # Errors
    /// If the entry is gone, or a new record would exceed a limit or the face's
    /// share; counted. A face that waits for nothing is let in in any case.
    pub fn insert_in_record(&mut self, idx: EntryIdx, record: InRecord) -> Result<(), PitRefusal> {
        let Some(entry) = self.get(idx) else {
            return Err(PitRefusal::NoSuchEntry);
        };
        if entry.in_record(record.face).is_some() {
            return self.insert_record(idx, record, |entry| &mut entry.in_records);
        }
        let n_bytes = entry.share_bytes();
        let n_free_entries = self.config.max_entries.saturating_sub(self.len);
        let n_free_bytes = self.config.max_bytes.saturating_sub(self.used_bytes());
        let allows = |held: Share| {
            held.n_entries == 0
                || held.n_entries < n_free_entries && held.n_bytes + n_bytes <= n_free_bytes
        };
        if !self.shares.add(record.face, n_bytes, allows) {
            return Err(self.refusals.count(PitRefusal::FaceShareUsed));
        }
        let inserted = self.insert_record(idx, record, |entry| &mut entry.in_records);
        if inserted.is_err() {
            self.shares.remove(record.face, n_bytes);
        }
        inserted
    }

    /// Number of entries that a face waits at.
    #[must_use]
    pub fn n_awaited_by(&self, face: FaceId) -> usize {
        self.shares.get(face).n_entries
    }

    /// Removes the downstream on `face` from an entry.
    pub fn remove_in_record(&mut self, idx: EntryIdx, face: FaceId) -> Option<InRecord> {
        let entry = self.get_mut(idx)?;
        let record = entry.in_records.remove(face)?;
        let n_bytes = entry.share_bytes();
        self.shares.remove(face, n_bytes);
        Some(record)
    }

    /// Removes the downstreams of an entry that `keep` does not accept.
    pub fn retain_in_records(&mut self, idx: EntryIdx, mut keep: impl FnMut(&InRecord) -> bool) {
        if self.get(idx).is_none() {
            return;
        }
        let (entry, shares) = (&mut self.slots[idx.slot], &mut self.shares);
        let n_bytes = entry.share_bytes();
        entry.in_records.retain(|record| {
            let is_kept = keep(record);
            if !is_kept {
                shares.remove(record.face, n_bytes);
            }
            is_kept
        });
    }

    /// Adds an upstream, or replaces that of the same face. What it costs counts
    /// to the shares of those who wait at the entry.
    ///
    /// # Errors
    /// If the entry is gone, or a new record would exceed a limit; counted.
    pub fn insert_out_record(
        &mut self,
        idx: EntryIdx,
        record: OutRecord,
    ) -> Result<(), PitRefusal> {
        let bytes_before = self.get(idx).map_or(0, PitEntry::share_bytes);
        self.insert_record(idx, record, |entry| &mut entry.out_records)?;
        let entry = &self.slots[idx.slot];
        let n_bytes = entry.share_bytes() - bytes_before;
        if n_bytes > 0 {
            for record in entry.in_records.iter() {
                self.shares.grow(record.face, n_bytes);
            }
        }
        Ok(())
    }

    /// Sets when the entry expires, sooner or later than before. Does nothing
    /// if it is gone.
    pub fn set_expiry(&mut self, idx: EntryIdx, at: MonoNs) {
        if let Some(entry) = self.get_mut(idx) {
            entry.expiry = at;
            self.wheel.schedule(idx.slot, at);
        }
    }

    /// Appends the entries that have expired to `expired`. They are not
    /// reported again, and stay until [`Pit::remove`] or a new
    /// [`Pit::set_expiry`]: the caller must do one or the other.
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
        let is_done = self
            .wheel
            .expire_some(now, max_entries, &mut self.expired_slots);
        expired.extend(self.expired_slots.iter().map(|&slot| EntryIdx {
            slot,
            generation: self.slots[slot].generation,
        }));
        is_done
    }

    /// When [`Pit::expire`] next has work.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoNs> {
        self.wheel.next_expiry()
    }

    /// Removes an entry; `false` if it was gone already.
    pub fn remove(&mut self, idx: EntryIdx) -> bool {
        if self.get(idx).is_none() {
            return false;
        }
        let slot = idx.slot;
        self.wheel.cancel(slot);
        let entry = &mut self.slots[slot];
        let can_be_prefix = entry.can_be_prefix;
        self.index
            .remove(index_hash(entry.name_hash, can_be_prefix), slot);
        if can_be_prefix {
            self.n_prefix_entries
                .remove(usize::from(entry.n_components));
        }
        if entry.digest_parent.is_some() {
            self.unlink_digest(slot);
        }
        let entry = &mut self.slots[slot];
        let share_bytes = entry.share_bytes();
        for record in entry.in_records.iter() {
            self.shares.remove(record.face, share_bytes);
        }
        let record_bytes = entry.record_bytes();
        self.record_bytes -= record_bytes;
        let keeps_vectors = self.spare_record_bytes + record_bytes <= self.config.max_bytes / 16;
        entry.clear_records(keeps_vectors);
        self.spare_record_bytes += entry.record_bytes();
        entry.generation = entry.generation.wrapping_add(1);
        let buffer = std::mem::take(&mut entry.buffer);
        self.pool.give(buffer);
        self.slots.free(slot);
        self.len -= 1;
        true
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
            entry.out_records.remove(face);
            if entry.in_records.remove(face).is_none() {
                continue;
            }
            self.shares.remove(face, entry.share_bytes());
            if entry.in_records.len() == 0 {
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
    pub const fn n_places(&self) -> u32 {
        self.slots.n_touched()
    }

    /// The entries in these places. An entry stays in its place.
    pub fn iter_places(
        &self,
        places: std::ops::Range<u32>,
    ) -> impl Iterator<Item = (EntryIdx, &PitEntry)> {
        places.filter_map(|slot| {
            let entry = self.slots.get(slot).filter(|entry| entry.is_live())?;
            let generation = entry.generation;
            Some((EntryIdx { slot, generation }, entry))
        })
    }

    /// Every entry, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (EntryIdx, &PitEntry)> {
        self.slots
            .iter_touched()
            .filter(|(_, entry)| entry.is_live())
            .map(|(slot, entry)| {
                (
                    EntryIdx {
                        slot,
                        generation: entry.generation,
                    },
                    entry,
                )
            })
    }

    /// The entry of `interest`, or the number of entries with other hints.
    fn search(&self, interest: &InterestView<'_>, name_hash: NameHash) -> Result<EntryIdx, usize> {
        let can_be_prefix = interest.can_be_prefix();
        let hint = interest.forwarding_hint_bytes();
        let mut n_hints = 0;
        for slot in self.index.candidates(index_hash(name_hash, can_be_prefix)) {
            let entry = &self.slots[slot];
            if entry.can_be_prefix != can_be_prefix
                || entry.name_bytes() != interest.name().value_bytes()
            {
                continue;
            }
            if entry.must_be_fresh == interest.must_be_fresh() && entry.hint_bytes() == hint {
                return Ok(EntryIdx {
                    slot,
                    generation: entry.generation,
                });
            }
            n_hints += usize::from(entry.has_forwarding_hint());
        }
        Err(n_hints)
    }

    fn insert_new(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        n_hints: usize,
        now: MonoNs,
    ) -> Result<EntryIdx, PitRefusal> {
        let name = interest.name();
        let wire = interest.wire();
        if self.len >= self.config.max_entries {
            return Err(self.refusals.count(PitRefusal::TooManyEntries));
        }
        if interest.forwarding_hint_bytes().is_some() && n_hints >= MAX_HINTS_PER_NAME {
            return Err(self.refusals.count(PitRefusal::TooManyHints));
        }
        let new_bytes = PIT_ENTRY_BYTES + buffer_bytes(wire.len());
        if wire.len() > MAX_PACKET_BYTES || self.used_bytes() + new_bytes > self.config.max_bytes {
            return Err(self.refusals.count(PitRefusal::TooManyBytes));
        }
        let name_hash = hashes[name.len()];
        let expiry = now.plus_ms(interest.lifetime_ms());
        let buffer = self.pool.take_copy(wire);
        let slot = self.slots.alloc();
        let entry = &mut self.slots[slot];
        entry.occupy(interest, name_hash, buffer, expiry);
        let generation = entry.generation;
        let record_bytes = entry.record_bytes();
        self.spare_record_bytes -= record_bytes;
        self.record_bytes += record_bytes;
        self.len += 1;
        self.wheel.schedule(slot, expiry);
        self.index
            .insert(index_hash(name_hash, interest.can_be_prefix()), slot);
        if interest.can_be_prefix() {
            self.n_prefix_entries.add(name.len());
        }
        if let Some(digest) = digest::last_implicit_digest(name) {
            self.link_digest(slot, hashes[name.len() - 1], &digest);
        }
        Ok(EntryIdx { slot, generation })
    }

    fn link_digest(&mut self, slot: u32, parent: NameHash, digest: &[u8; 32]) {
        self.slots[slot].digest_parent = Some(parent);
        self.by_digest
            .insert(digest::digest_hash(parent, digest), slot);
        self.digest_parents.add(parent);
    }

    fn unlink_digest(&mut self, slot: u32) {
        let entry = &mut self.slots[slot];
        let (Some(parent), Some(digest)) = (
            entry.digest_parent.take(),
            entry.name_bytes().last_chunk::<32>(),
        ) else {
            return;
        };
        self.by_digest
            .remove(digest::digest_hash(parent, digest), slot);
        self.digest_parents.remove(parent);
    }

    /// Appends the entries of one class on the first `length` components.
    fn push_matches(
        &self,
        name: &[u8],
        length: usize,
        hashes: &[NameHash],
        can_be_prefix: bool,
        matches: &mut Vec<EntryIdx>,
    ) {
        for slot in self
            .index
            .candidates(index_hash(hashes[length], can_be_prefix))
        {
            let entry = &self.slots[slot];
            // Equal bytes are equal components, and so as many of them.
            if entry.can_be_prefix == can_be_prefix
                && usize::from(entry.n_components) == length
                && name.starts_with(entry.name_bytes())
            {
                matches.push(EntryIdx {
                    slot,
                    generation: entry.generation,
                });
            }
        }
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
            let entry = &self.slots[slot];
            if digest::is_full_name(entry.name_bytes(), data.name(), &digest) {
                matches.push(EntryIdx {
                    slot,
                    generation: entry.generation,
                });
            }
        }
    }

    fn insert_record<T: Record>(
        &mut self,
        idx: EntryIdx,
        record: T,
        list: impl Fn(&mut PitEntry) -> &mut records::Records<T>,
    ) -> Result<(), PitRefusal> {
        let used_bytes = self.used_bytes();
        let PitConfig {
            max_bytes,
            max_records_per_entry,
            ..
        } = self.config;
        let Some(entry) = self.get_mut(idx) else {
            return Err(PitRefusal::NoSuchEntry);
        };
        let records = list(entry);
        if let Some(known) = records
            .iter_mut()
            .find(|known| known.face() == record.face())
        {
            *known = record;
            return Ok(());
        }
        let new_bytes = records.push_cost_bytes();
        if records.len() >= max_records_per_entry {
            return Err(self.refusals.count(PitRefusal::TooManyRecords));
        }
        if new_bytes > 0 && used_bytes + new_bytes > max_bytes {
            return Err(self.refusals.count(PitRefusal::TooManyBytes));
        }
        records.push(record);
        self.record_bytes += new_bytes;
        Ok(())
    }
}
