//! PIT and content store, and where both are found by name.
//!
//! Owns the index of either, or the one that they share ([`PitCsLayout`]). In a shared one
//! the Data and the pending Interests of a name are in one line: an Interest finds with one
//! probe the Data that answers it, the entry that it joins, or that there is neither; and a
//! Data that is cached gets the place of the entry that it ends. So et al. 2013 combine both
//! to look up less; whether it pays for the more frequent changes of one of them is the
//! question that Yuan 2015, section 7.1.1, leaves open. What happens is the same with both.
//!
//! Entries and packets are the affair of [`Pit`] and [`ContentStore`], which are reached
//! through it for whatever needs no index.

mod layout;
mod prefetch;

use tachonym_memory::{MemoryError, Pages};
use tachonym_packet::{DataView, InterestView, MonoNs, NameHash, NameView};
use tachonym_policy::{Policy, PolicyConfig, PolicyError};

pub use self::layout::{PitCsLayout, UnknownPitCsLayout};
pub use self::prefetch::Sighted;
use crate::buckets::BucketIndex;
use crate::cs::{
    Admission, Cached, ContentStore, CsCapacity, CsConfig, DataRef, Marks, PolicyStep, Regained,
};
use crate::fib::PrefixHasher;
use crate::pit::{EntryIdx, Inserted, Pending, Pit, PitConfig, PitEntry, PitRefusal};
use crate::place::{as_cached, pending};

/// What a [`PitCs`] is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct PitCsConfig {
    /// The pending Interests. Its kind of index is that of a shared one, too.
    pub pit: PitConfig,
    /// The cached Data.
    pub cs: CsConfig,
    /// Whether they share an index.
    pub layout: PitCsLayout,
}

/// Why there cannot be such tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// There is no such policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is not as much memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What a search for Data has seen of the pending Interests on its way; of use to
/// [`PitCs::find_or_insert`] if nothing has changed since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missed(Seen);

#[derive(Clone, Copy, Debug, Default)]
enum Seen {
    /// The search has not come by.
    #[default]
    Nothing,
    /// The slot of the Interest's entry.
    Pending { slot: u32 },
    /// None, but so many entries with other hints.
    Absent { n_hints: u32 },
}

/// A cached Data that answers an Interest. Of several, from stores of which each has a part
/// of the Data, the greatest is what one store with all of them would answer with: one whose
/// name, or full name, is the Interest's, or else the one that is fresh longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    slot: u32,
    is_exact: bool,
    fresh_until: MonoNs,
}

impl Offer {
    /// By what offers are compared.
    #[must_use]
    pub const fn rank(&self) -> OfferRank {
        OfferRank {
            is_in_memory: true,
            is_exact: self.is_exact,
            fresh_until: self.fresh_until,
        }
    }
}

/// See [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferRank {
    // Whatever is on a second level is asked for later.
    is_in_memory: bool,
    is_exact: bool,
    fresh_until: MonoNs,
}

impl OfferRank {
    /// Of a Data that a second level has, which counts less than any in memory. `is_exact`: its
    /// name, or full name, is the Interest's.
    #[must_use]
    pub const fn of_second_level(is_exact: bool, fresh_until: MonoNs) -> Self {
        Self {
            is_in_memory: false,
            is_exact,
            fresh_until,
        }
    }

    /// Whether the Data was in the content store, and not on a second level.
    #[must_use]
    pub const fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Whether no other can be better.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.is_in_memory && self.is_exact
    }
}

/// What a search for the entries that a Data answers has seen of the content store on its
/// way; of use to [`PitCs::insert_data`] if nothing was cached or evicted since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known(Cached);

#[derive(Debug)]
struct Indexes {
    /// Where pending Interests are found; and cached Data, if they have no other.
    pending: BucketIndex,
    cached: Option<BucketIndex>,
}

impl Indexes {
    /// Where cached Data are found.
    fn cached(&self) -> &BucketIndex {
        self.cached.as_ref().unwrap_or(&self.pending)
    }

    fn cached_mut(&mut self) -> &mut BucketIndex {
        self.cached.as_mut().unwrap_or(&mut self.pending)
    }

    fn iter(&self) -> impl Iterator<Item = &BucketIndex> {
        [&self.pending].into_iter().chain(&self.cached)
    }
}

/// See the module. In each method `hashes[i]` is the hash of the first `i` components of
/// the name in question; fewer of them than its components and one more make it panic.
#[derive(Debug)]
pub struct PitCs {
    pit: Pit,
    cs: ContentStore,
    indexes: Indexes,
    config: PitCsConfig,
}

impl PitCs {
    /// Empty tables. `hasher` makes the hashes that are passed to them; `policy` has slots
    /// for as many Data as [`CsCapacity::max_slots`] says.
    ///
    /// # Errors
    /// If there is not as much memory as the indexes of so many entries take.
    pub fn new(
        config: PitCsConfig,
        policy: Policy,
        hasher: impl PrefixHasher + 'static,
    ) -> Result<Self, MemoryError> {
        let pit = Pit::new(config.pit)?;
        let n_pending = pit.max_slots();
        let n_cached = config.cs.capacity.bounded().max_slots();
        let PitCsConfig {
            pit: of_pit,
            cs: of_cs,
            layout,
        } = config;
        let indexes = match layout {
            PitCsLayout::Separate => Indexes {
                pending: BucketIndex::new(of_pit.index, n_pending, of_pit.pages)?,
                cached: Some(BucketIndex::new(of_cs.index, n_cached, of_cs.pages)?),
            },
            PitCsLayout::Composite => {
                let n_both = n_pending.saturating_add(n_cached);
                Indexes {
                    pending: BucketIndex::new(of_pit.index, n_both, of_pit.pages)?,
                    cached: None,
                }
            }
        };
        Ok(Self {
            pit,
            cs: ContentStore::new(of_cs, policy, hasher)?,
            indexes,
            config,
        })
    }

    /// The pending Interests.
    #[must_use]
    pub const fn pit(&self) -> &Pit {
        &self.pit
    }

    /// The pending Interests, to be changed.
    pub const fn pit_mut(&mut self) -> &mut Pit {
        &mut self.pit
    }

    /// The cached Data.
    #[must_use]
    pub const fn cs(&self) -> &ContentStore {
        &self.cs
    }

    /// The cached Data, to be configured.
    pub const fn cs_mut(&mut self) -> &mut ContentStore {
        &mut self.cs
    }

    /// Whether the tables share an index.
    #[must_use]
    pub const fn layout(&self) -> PitCsLayout {
        self.config.layout
    }

    /// What pages the tables have, but for their packets.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.indexes
            .iter()
            .fold(self.pit.pages() + self.cs.pages(), |pages, index| {
                pages + index.pages()
            })
    }

    /// Heap memory in use, spare slots and buffers included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let indexes = self.indexes.iter();
        let index_bytes: usize = indexes.map(BucketIndex::memory_bytes).sum();
        index_bytes + self.pit.memory_bytes() + self.cs.memory_bytes()
    }

    /// Memory of the index in which cached Data are found, which may be the one of pending
    /// Interests, too.
    #[must_use]
    pub fn cs_index_bytes(&self) -> usize {
        self.indexes.cached().memory_bytes()
    }

    /// Sets the limits of the content store; evicts what exceeds them. If the policy has
    /// fewer slots than these allow, a larger one of its kind takes its place.
    ///
    /// # Errors
    /// If there is not as much memory as the index, or the policy, of so many Data takes;
    /// the limits stay as they were.
    pub fn set_cs_capacity(&mut self, capacity: CsCapacity) -> Result<(), TablesError> {
        let capacity = capacity.bounded();
        let (pit, cs) = (&self.pit, &mut self.cs);
        let n_cached = capacity.max_slots();
        let (max_slots, kind, pages) = match self.config.layout {
            PitCsLayout::Separate => (n_cached, self.config.cs.index, self.config.cs.pages),
            PitCsLayout::Composite => {
                let n_both = pit.max_slots().saturating_add(n_cached);
                (n_both, self.config.pit.index, self.config.pit.pages)
            }
        };
        let index = self.indexes.cached_mut();
        let mut larger = match max_slots <= index.max_slots() {
            true => None,
            false => Some(BucketIndex::new(kind, max_slots, pages)?),
        };
        let n_slots = cs.n_slots(capacity);
        let policy = (n_slots > cs.policy().n_slots())
            .then(|| {
                let config = PolicyConfig {
                    capacity: n_cached,
                    ..*cs.policy().config()
                };
                Policy::with_slots(&config, n_slots)
            })
            .transpose()?;
        if let Some(larger) = &mut larger {
            cs.index_all(larger);
            if self.config.layout == PitCsLayout::Composite {
                pit.index_all(larger);
            }
        }
        cs.set_capacity(larger.as_mut().unwrap_or(index), capacity, policy)?;
        if let Some(larger) = larger {
            *index = larger;
        }
        Ok(())
    }

    /// Has another policy decide from now on, made for [`ContentStore::policy_size`] and empty.
    /// What the former one holds goes first, unless it is asked for. False: the store has
    /// grown since, and nothing has changed.
    pub fn set_cs_policy(&mut self, policy: Policy) -> bool {
        let (n_slots, _) = self.cs.policy_size();
        let fits = policy.n_slots() >= n_slots;
        if fits {
            self.cs.set_policy(policy);
        }
        fits
    }

    /// A Data that answers `interest`, or what was seen of pending Interests.
    ///
    /// # Errors
    /// If none is cached.
    #[inline]
    pub fn find_data(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Result<DataRef<'_>, Missed> {
        self.find_data_by_step(interest, hashes, now, |_| ())
    }

    /// As [`PitCs::find_data`]; calls `enter` where the policy's work begins.
    ///
    /// # Errors
    /// As [`PitCs::find_data`].
    #[inline]
    pub fn find_data_by_step(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
        mut enter: impl FnMut(PolicyStep),
    ) -> Result<DataRef<'_>, Missed> {
        let mut missed = Missed::default();
        let mut found = None;
        if self.cs.serves() {
            let hash = hashes[interest.name().len()];
            found = match &self.indexes.cached {
                Some(index) => self.cs.find_under_name(index, interest, hash, now),
                None => self.find_both(interest, hash, now, &mut missed),
            };
            if found.is_none() {
                let index = self.indexes.cached_mut();
                found = self.cs.find_beyond_name(index, interest, hashes, now);
            }
        }
        match found {
            Some(slot) => Ok(self.cs.hit(slot, &mut enter)),
            None => {
                self.cs.miss(interest, hashes, &mut enter);
                Err(missed)
            }
        }
    }

    /// What the content store has to say to an Interest that several stores are asked
    /// about; counts nothing.
    #[cold]
    pub fn offer(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<Offer> {
        if !self.cs.serves() {
            return None;
        }
        let name = interest.name();
        let index = self.indexes.cached();
        let under_name = index.find(hashes[name.len()].0, |word| {
            let answers = |slot| self.cs.is_answer(slot, interest, hashes[name.len()], now);
            as_cached(word).is_some_and(answers)
        });
        let slot = match under_name.and_then(as_cached) {
            Some(slot) => slot,
            None => {
                let index = self.indexes.cached_mut();
                self.cs.find_beyond_name(index, interest, hashes, now)?
            }
        };
        Some(Offer {
            slot,
            is_exact: !self.cs.is_longer(slot, interest.name()),
            fresh_until: self.cs.fresh_until(slot),
        })
    }

    /// The Data of an offer, if nothing was cached or evicted since. Counts as a use of it,
    /// but as no hit of the store.
    pub fn lend(&mut self, offer: Offer) -> DataRef<'_> {
        self.cs.lend(offer.slot)
    }

    /// The Data of an offer, if nothing was cached or evicted since, and until when it is
    /// fresh. Counts as no use of it.
    #[must_use]
    pub fn peek(&self, offer: Offer) -> (DataRef<'_>, MonoNs) {
        (self.cs.peek(offer.slot), offer.fresh_until)
    }

    /// With one probe, the Data under the name of `interest` that answers it, and if
    /// there is none, what of the pending Interests is under that name.
    #[inline]
    fn find_both(
        &self,
        interest: &InterestView<'_>,
        hash: NameHash,
        now: MonoNs,
        missed: &mut Missed,
    ) -> Option<u32> {
        let (mut entry, mut n_hints) = (None, 0);
        let answer = self.indexes.pending.find(hash.0, |word| {
            if let Some(slot) = as_cached(word) {
                return self.cs.is_answer(slot, interest, hash, now);
            }
            if self.pit.is_entry_of(word, interest, hash, &mut n_hints) {
                entry = Some(word);
            }
            false
        });
        missed.0 = match entry {
            Some(slot) => Seen::Pending { slot },
            // Bounded by `MAX_HINTS_PER_NAME`.
            None => Seen::Absent {
                n_hints: n_hints as u32,
            },
        };
        answer.and_then(as_cached)
    }

    /// The entry of `interest`, for which [`PitCs::find_data`] has just told `missed`; a
    /// new one if it is not pending, which expires a lifetime after `now` unless
    /// [`Pending::set_expiry`] says otherwise. Without a search for Data, `missed` is the
    /// default.
    ///
    /// # Errors
    /// If a new entry would exceed a limit; counted.
    #[inline]
    pub fn find_or_insert(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        missed: Missed,
        now: MonoNs,
    ) -> Result<(Pending<'_>, Inserted), PitRefusal> {
        let index = &mut self.indexes.pending;
        let seen = match missed.0 {
            Seen::Pending { slot } => Ok(slot),
            Seen::Absent { n_hints } => Err(n_hints as usize),
            Seen::Nothing => {
                let hash = hashes[interest.name().len()];
                self.pit.search(index, interest, hash)
            }
        };
        let (slot, inserted) = match seen {
            Ok(slot) => (slot, Inserted::Existing),
            Err(n_hints) => {
                let slot = self.pit.insert_new(index, interest, hashes, n_hints, now)?;
                (slot, Inserted::New)
            }
        };
        Ok((Pending::new(&mut self.pit, index, slot), inserted))
    }

    /// The entry of a number that was kept, unless it was removed since.
    #[inline]
    pub fn pending(&mut self, idx: EntryIdx) -> Option<Pending<'_>> {
        let slot = self.pit.live_slot(idx)?;
        Some(Pending::new(&mut self.pit, &mut self.indexes.pending, slot))
    }

    /// The entry of a number that a lookup has just returned: nothing was removed since.
    #[inline]
    pub fn matched(&mut self, idx: EntryIdx) -> Pending<'_> {
        let _entry: &PitEntry = self.pit.matched(idx);
        Pending::new(&mut self.pit, &mut self.indexes.pending, idx.slot())
    }

    /// The entry of `interest`, if it is pending.
    #[must_use]
    pub fn find_pending(
        &self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
    ) -> Option<EntryIdx> {
        let hash = hashes[interest.name().len()];
        let index = &self.indexes.pending;
        let found = self.pit.search(index, interest, hash);
        found.ok().map(|slot| self.pit.idx_of(slot))
    }

    /// An entry that differs from `interest` in its forwarding hint at most, among those
    /// that `accepts` takes.
    #[must_use]
    pub fn find_pending_with_any_hint(
        &self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        accepts: impl FnMut(&PitEntry) -> bool,
    ) -> Option<EntryIdx> {
        self.pit
            .find_with_any_hint(&self.indexes.pending, interest, hashes, accepts)
    }

    /// Replaces the contents of `matches` by every entry that `data` answers, each once. An
    /// entry may be past its expiry but not yet reported.
    #[inline]
    pub fn matches_for_data(
        &self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        matches: &mut Vec<EntryIdx>,
    ) -> Known {
        let (name, hash) = (data.name(), hashes[data.name().len()]);
        let mut cached = None;
        self.pit
            .matches_for_data(&self.indexes.pending, data, hashes, matches, |word| {
                if let Some(slot) = as_cached(word)
                    && self.cs.is_named(slot, name, hash)
                {
                    cached = Some(slot);
                }
            });
        Known(match self.config.layout {
            PitCsLayout::Separate => Cached::Unknown,
            PitCsLayout::Composite => Cached::Under(cached),
        })
    }

    /// Removes an entry; `false` if it was gone already.
    pub fn remove_pending(&mut self, idx: EntryIdx) -> bool {
        self.pending(idx).map(Pending::remove).is_some()
    }

    /// Caches a copy of `data`, evicting what has to make room, and removes the entries
    /// that end with it: matches that are still there. `known` is what
    /// [`PitCs::matches_for_data`] has just told, or the default.
    #[inline]
    pub fn insert_data(
        &mut self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        (ended, known): (&[EntryIdx], Known),
        now: MonoNs,
    ) -> Admission {
        self.insert_data_by_step(data, hashes, (ended, known), now, |_| ())
    }

    /// As [`PitCs::insert_data`]; calls `enter` where the policy's work begins, and where it
    /// ends.
    #[inline]
    pub fn insert_data_by_step(
        &mut self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        (ended, known): (&[EntryIdx], Known),
        now: MonoNs,
        mut enter: impl FnMut(PolicyStep),
    ) -> Admission {
        let enter = &mut enter;
        let Some(index) = &mut self.indexes.cached else {
            return self.exchange(data, hashes, (ended, known), now, enter);
        };
        let word = (None, known.0);
        let admission = self.cs.insert(index, data, hashes, word, now, enter);
        for &idx in ended {
            self.matched(idx).remove();
        }
        admission
    }

    /// A Data that may be cached answers these entries, whether they end with it or not:
    /// counts a request for its name, the hash of which this is, if one of them waits for any
    /// Data below its name. To be told before [`PitCs::insert_data`].
    #[inline]
    pub fn note_answer(&mut self, entries: &[EntryIdx], name_hash: NameHash) {
        let mut entries = entries.iter().map(|&idx| self.pit.matched(idx));
        if entries.any(PitEntry::can_be_prefix) {
            self.cs.asked_by_prefix(name_hash);
        }
    }

    /// Counts an Interest that waited for no store, since Data has come for it meanwhile: in
    /// one table it would have been a miss, and pending. `hashes` is of its name.
    pub fn note_miss(&mut self, interest: &InterestView<'_>, hashes: &[NameHash]) {
        self.cs.miss(interest, hashes, &mut |_| ());
    }

    /// As [`PitCs::note_answer`], of an entry that waits in another PIT.
    pub fn note_far_answer(&mut self, name_hash: NameHash) {
        self.cs.asked_by_prefix(name_hash);
    }

    /// As [`PitCs::insert_data`]: in a shared index the Data gets the place of an entry
    /// under its name.
    #[inline]
    fn exchange(
        &mut self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        (ended, known): (&[EntryIdx], Known),
        now: MonoNs,
        enter: &mut impl FnMut(PolicyStep),
    ) -> Admission {
        let index = &mut self.indexes.pending;
        let data_hash = hashes[data.name().len()];
        let mut ownerless = None;
        enter(PolicyStep::PendingRemoval);
        for slot in ended.iter().map(|idx| idx.slot()) {
            let hash = self.pit.vacate(slot);
            if hash == data_hash && ownerless.is_none() {
                ownerless = Some(pending(slot));
            } else {
                index.remove(hash.0, pending(slot));
            }
        }
        enter(PolicyStep::Store);
        let word = (ownerless, known.0);
        let admission = self.cs.insert(index, data, hashes, word, now, enter);
        if let Some(word) = ownerless
            && admission != Admission::Inserted
        {
            index.remove(data_hash.0, word);
        }
        admission
    }

    /// Erases at most `limit` Data whose names begin with `prefix`; how many.
    pub fn erase_data(&mut self, prefix: NameView<'_>, hashes: &[NameHash], limit: usize) -> usize {
        let index = self.indexes.cached_mut();
        self.cs.erase(index, prefix, hashes, limit)
    }

    /// Caches a copy of a Data that was cached elsewhere, whatever the policy thinks of it; one
    /// of this name that is cached stays. Whether it is new here.
    pub fn insert_recalled(
        &mut self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        regained: Regained,
    ) -> bool {
        let index = self.indexes.cached_mut();
        self.cs.insert_recalled(index, data, hashes, regained)
    }

    /// Changes what is noted about the Data of a name, if it is cached: it comes with each
    /// answer.
    pub fn change_marks(
        &mut self,
        name: NameView<'_>,
        hash: NameHash,
        change: impl FnOnce(Marks) -> Marks,
    ) {
        let index = self.indexes.cached();
        self.cs.change_marks(index, (name, hash), change);
    }

    /// Whether a Data of this name is cached. Counts as no use of it.
    #[must_use]
    pub fn has_data_named(&self, name: NameView<'_>, hash: NameHash) -> bool {
        self.cs.has_named(self.indexes.cached(), name, hash)
    }

    /// Whether any Data has a name that begins with `prefix`. Counts as no use of it.
    #[must_use]
    pub fn has_data_below(&self, prefix: NameView<'_>, hashes: &[NameHash]) -> bool {
        self.cs.has_below(self.indexes.cached(), prefix, hashes)
    }
}
