//! The content store.
//!
//! Owns copies of Data packets, at most one for a name; a later one replaces an
//! earlier. It answers by exact name with one probe, by prefix with a Data below
//! it, by full name with the one that has this digest, and to MustBeFresh only
//! within the FreshnessPeriod since arrival. A hit borrows the packet and copies
//! nothing.
//!
//! What lies below a prefix is kept in a tree only while it is asked for: Data
//! that arrive are entered if CanBePrefix Interests have searched lately, and wait
//! otherwise. Each search and each arrival then enters some of those that wait, and
//! until none does a search looks through short summaries of them, too. It finds what
//! is there at any time, unless more than 65,536 Data are cached or very many lie below
//! six components that its name begins with: then it looks at so many, and may miss
//! what is not entered yet.
//!
//! Bounded in packets and bytes; what does not fit evicts what its policy
//! ([`Policy`]) names, which may also refuse what comes. A policy can be exchanged:
//! what the former one holds goes first, unless it is asked for. Whether Data may be cached at all (solicited, NoCache)
//! is the engine's affair. The index in which Data are found by their names belongs
//! to [`PitCs`](crate::PitCs), which may share it with the PIT: what needs it is a
//! method there.

mod entry;
mod insertion;
mod policies;
mod prefetch;
mod prefixes;
mod recalled;
mod waiting;

use hashbrown::HashMap;
use tachonym_memory::{MemoryError, PagePreference, Pages};
use tachonym_packet::{DataView, InterestView, MonoNs, NameHash, NameView};
use tachonym_policy::Policy;

use self::entry::CsEntry;
pub use self::entry::{DataRef, Marks};
pub(crate) use self::insertion::Cached;
use self::policies::Policies;
pub use self::policies::PolicyStep;
pub use self::prefixes::MAX_CS_COMPONENTS;
use self::prefixes::{Newcomer, PrefixTree, VERTEX_BYTES};
pub use self::recalled::Regained;
use self::waiting::Waiting;
use crate::buckets::{BucketIndex, IndexKind};
use crate::fib::PrefixHasher;
use crate::place::{as_cached, cached};
use crate::pool::{BufferPool, buffer_bytes};
use crate::slab::Slab;

/// What a Data costs beside its buffer, in bytes, and beside what finds it by its
/// prefixes: slot, summary, place in the free list, and a word in an index between
/// 5/16 and 5/8 full.
pub const CS_ENTRY_BYTES: usize = size_of::<CsEntry>() + 16 + 4 + 20;

/// Bytes of a digest that was asked for, in a map between 7/16 and 7/8 full.
const DIGEST_BYTES: usize = 64;

/// Data that a search enters under their prefixes, at most.
const MAX_ENTERED_PER_FIND: usize = 64;

/// Limits of a [`ContentStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsCapacity {
    /// Most packets; 0 caches nothing.
    pub max_pkts: usize,
    /// Most bytes of packets and of all that is needed to find them. Freed
    /// buffers kept for later packets may take a sixteenth more.
    pub max_bytes: usize,
}

impl Default for CsCapacity {
    fn default() -> Self {
        Self {
            max_pkts: 65_536,
            max_bytes: 128 << 20,
        }
    }
}

impl CsCapacity {
    /// Slot numbers leave room for marks.
    pub(crate) fn bounded(self) -> Self {
        Self {
            max_pkts: self.max_pkts.min((1 << 31) - 2),
            ..self
        }
    }

    /// Most Data that a store of this capacity can hold.
    #[must_use]
    pub fn max_slots(self) -> usize {
        let min_bytes = CS_ENTRY_BYTES + buffer_bytes(0);
        self.max_pkts.min(self.max_bytes / min_bytes)
    }
}

/// What a [`ContentStore`] is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsConfig {
    /// The limits.
    pub capacity: CsCapacity,
    /// How Data are found.
    pub index: IndexKind,
    /// What pages the entries and the index should have.
    pub pages: PagePreference,
}

/// Why a Data was not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// Admission is switched off.
    AdmitOff,
    /// The Data alone exceeds the capacity.
    TooLarge,
    /// The name has no component, or more than [`MAX_CS_COMPONENTS`].
    NameUnsuited,
    /// The policy expects nothing of it.
    Unpromising,
}

/// What [`PitCs::insert_data`](crate::PitCs::insert_data) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The Data is cached and was not before.
    Inserted,
    /// The very same Data was cached; it is as fresh as new.
    Refreshed,
    /// Another Data of this name gave way.
    Replaced,
    /// The Data is not cached.
    NotAdmitted(NotAdmitted),
}

/// What a [`ContentStore`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsCounters {
    /// Interests answered.
    pub n_hits: u64,
    /// Interests not answered, those included that met a store not serving.
    pub n_misses: u64,
    /// Data cached that were not before.
    pub n_inserts: u64,
    /// Data that arrived again while cached.
    pub n_refreshes: u64,
    /// Data replaced by another one of the same name.
    pub n_replacements: u64,
    /// Data evicted for want of room.
    pub n_evictions: u64,
    /// Data erased by command.
    pub n_erased: u64,
    /// See [`NotAdmitted::AdmitOff`].
    pub n_not_admitted_off: u64,
    /// See [`NotAdmitted::TooLarge`].
    pub n_not_admitted_size: u64,
    /// See [`NotAdmitted::NameUnsuited`].
    pub n_not_admitted_name: u64,
    /// See [`NotAdmitted::Unpromising`].
    pub n_not_admitted_policy: u64,
}

/// See the module. In each method `hashes[i]` is the hash of the first `i`
/// components of the name in question; fewer of them than its components and
/// one more make it panic. `index` is where all Data are indexed.
#[derive(Debug)]
pub struct ContentStore {
    capacity: CsCapacity,
    admits: bool,
    serves: bool,
    slots: Slab<CsEntry>,
    len: usize,
    index_kind: IndexKind,
    pages: PagePreference,
    tree: PrefixTree,
    waiting: Waiting,
    /// Arrivals that are still entered in the tree: as many as there were Data at
    /// the last search under a prefix.
    n_entering: usize,
    /// Of the prefixes of a Data that is entered late.
    hashes: Vec<NameHash>,
    policies: Policies,
    pool: BufferPool,
    digests: HashMap<u32, [u8; 32], foldhash::fast::FixedState>,
    counters: CsCounters,
}

impl ContentStore {
    /// An empty store that admits and serves. `hasher` makes the hashes that are
    /// passed to the store; `policy` has slots for as many Data as fit.
    ///
    /// # Errors
    /// If there is not as much memory as the tree of so many Data may take.
    pub(crate) fn new(
        config: CsConfig,
        policy: Policy,
        hasher: impl PrefixHasher + 'static,
    ) -> Result<Self, MemoryError> {
        let capacity = config.capacity.bounded();
        let (kind, pages) = (config.index, config.pages);
        let max_data = capacity.max_slots();
        Ok(Self {
            capacity,
            admits: true,
            serves: true,
            slots: Slab::new(max_data, pages)?,
            len: 0,
            index_kind: kind,
            pages,
            tree: PrefixTree::new(kind, max_data, pages, Box::new(hasher))?,
            waiting: Waiting::new(max_data, pages)?,
            n_entering: 0,
            hashes: Vec::new(),
            policies: Policies::new(policy),
            pool: BufferPool::new(capacity.max_bytes / 16),
            digests: HashMap::default(),
            counters: CsCounters::default(),
        })
    }

    /// What decides.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        self.policies.in_charge()
    }

    /// Number of Data.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is cached.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The limits in force.
    #[must_use]
    pub const fn capacity(&self) -> CsCapacity {
        self.capacity
    }

    /// Sets the limits; evicts what exceeds them. `policy` is another one if there is to be.
    ///
    /// # Errors
    /// If there is not as much memory as the tree of so many Data may take; the limits are
    /// then as they were.
    pub(crate) fn set_capacity(
        &mut self,
        index: &mut BucketIndex,
        capacity: CsCapacity,
        policy: Option<Policy>,
    ) -> Result<(), MemoryError> {
        let max_data = capacity.max_slots();
        self.tree
            .set_max_data(self.index_kind, max_data, self.pages)?;
        self.waiting.set_max_data(max_data)?;
        self.slots.set_max_slots(max_data)?;
        self.capacity = capacity;
        if let Some(policy) = policy {
            self.set_policy(policy);
        }
        self.evict_excess(index);
        self.pool.set_max_free_bytes(capacity.max_bytes / 16);
        Ok(())
    }

    /// Enters every Data in an index that has none of them.
    pub(crate) fn index_all(&self, index: &mut BucketIndex) {
        for (slot, entry) in live(&self.slots) {
            index.insert(entry.name_hash.0, cached(slot));
        }
    }

    /// Slots that a policy has to know for a capacity.
    pub(crate) fn n_slots(&self, capacity: CsCapacity) -> usize {
        capacity.max_slots().max(self.slots.n_touched() as usize)
    }

    /// Slots that a policy has to know, and how many of them are held at most.
    #[must_use]
    pub fn policy_size(&self) -> (usize, usize) {
        (self.n_slots(self.capacity), self.capacity.max_slots())
    }

    /// Puts a policy in charge that holds no slot, and has [`ContentStore::n_slots`]; see
    /// [`Policies`].
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policies.put_in_charge(policy, &mut self.slots);
    }

    /// Takes out a policy of which nothing is asked any more, if there is one, for its memory
    /// to be given back where that holds nobody up.
    #[inline]
    pub fn take_retired_policy(&mut self) -> Option<Policy> {
        self.policies.take_retired()
    }

    /// What pages the store has, but for its index and packets.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.slots.pages() + self.waiting.pages() + self.tree.pages() + self.policies.pages()
    }

    /// Whether new Data are cached.
    #[must_use]
    pub const fn admits(&self) -> bool {
        self.admits
    }

    /// Switches admission; what is cached stays.
    pub const fn set_admits(&mut self, admits: bool) {
        self.admits = admits;
    }

    /// Whether Interests are answered.
    #[must_use]
    pub const fn serves(&self) -> bool {
        self.serves
    }

    /// Switches serving; what is cached stays.
    pub const fn set_serves(&mut self, serves: bool) {
        self.serves = serves;
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &CsCounters {
        &self.counters
    }

    /// Bytes that count towards [`CsCapacity::max_bytes`].
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.len * CS_ENTRY_BYTES
            + self.pool.used_bytes()
            + self.tree.n_vertices() * VERTEX_BYTES
            + self.digests.len() * DIGEST_BYTES
    }

    /// Memory of the policies, of which former ones may still hold Data.
    #[must_use]
    pub fn policy_bytes(&self) -> usize {
        self.policies.memory_bytes()
    }

    /// Heap memory in use, spare slots and buffers included, but for the index by
    /// names.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
            + self.tree.memory_bytes()
            + self.waiting.memory_bytes()
            + self.pool.memory_bytes()
            + self.digests.allocation_size()
            + self.policies.memory_bytes()
    }

    /// Answers with the Data in a slot, which a search has found.
    #[inline]
    pub(crate) fn hit(&mut self, slot: u32, enter: &mut impl FnMut(PolicyStep)) -> DataRef<'_> {
        self.counters.n_hits += 1;
        enter(PolicyStep::History);
        self.policies.handle_answered(self.slots[slot].name_hash);
        self.policies.handle_hit(slot, &mut self.slots);
        self.slots[slot].answer()
    }

    /// Counts an Interest that no Data answers; `hashes` is of its name. With CanBePrefix it
    /// tells the policy nothing yet: which Data it is for is known when that comes.
    pub(crate) fn miss(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        enter: &mut impl FnMut(PolicyStep),
    ) {
        self.counters.n_misses += 1;
        if interest.can_be_prefix() {
            return;
        }
        let name = interest.name();
        let n_components = name.len() - usize::from(name.last_implicit_digest().is_some());
        enter(PolicyStep::History);
        self.policies.handle_request(hashes[n_components]);
    }

    /// A Data answers a CanBePrefix Interest that the store did not.
    pub(crate) fn asked_by_prefix(&mut self, hash: NameHash) {
        self.policies.handle_request(hash);
    }

    /// The Data in a slot, which answers an Interest of another worker's.
    pub(crate) fn lend(&mut self, slot: u32) -> DataRef<'_> {
        self.policies.handle_hit(slot, &mut self.slots);
        self.slots[slot].data()
    }

    /// Whether the name of the Data in a slot is longer than `name`.
    pub(crate) fn is_longer(&self, slot: u32, name: NameView<'_>) -> bool {
        self.slots[slot].name_bytes().len() > name.value_bytes().len()
    }

    /// Until when the Data in a slot is fresh; zero if it never is.
    pub(crate) fn fresh_until(&self, slot: u32) -> MonoNs {
        self.slots[slot].fresh_until
    }

    /// Erases at most `limit` Data whose names begin with `prefix`; how many.
    pub(crate) fn erase(
        &mut self,
        index: &mut BucketIndex,
        prefix: NameView<'_>,
        hashes: &[NameHash],
        limit: usize,
    ) -> usize {
        let hash = hashes[prefix.len()];
        let mut n_erased = 0;
        if limit > 0
            && let Some(slot) = find_exact(index, &self.slots, prefix, hash)
        {
            self.remove(index, slot);
            n_erased += 1;
        }
        while n_erased < limit {
            let found = self.tree.freshest_below(prefix, hashes, &self.slots);
            let Some(slot) = found else { break };
            self.remove(index, slot);
            n_erased += 1;
        }
        let hashes = &hashes[..=prefix.len()];
        let mut found = Vec::new();
        self.waiting.find(hashes, |slot| {
            if n_erased + found.len() < limit && self.slots[slot].is_below(prefix) {
                found.push(slot);
            }
            n_erased + found.len() == limit
        });
        n_erased += found.len();
        found.into_iter().for_each(|slot| self.remove(index, slot));
        self.counters.n_erased += n_erased as u64;
        n_erased
    }

    /// Whether any Data has a name that begins with `prefix`. Counts as no use
    /// of it.
    pub(crate) fn has_below(
        &self,
        index: &BucketIndex,
        prefix: NameView<'_>,
        hashes: &[NameHash],
    ) -> bool {
        let found = find_exact(index, &self.slots, prefix, hashes[prefix.len()]);
        let found = found.or_else(|| self.tree.freshest_below(prefix, hashes, &self.slots));
        let hashes = &hashes[..=prefix.len()];
        let found = found.or_else(|| {
            self.waiting
                .find(hashes, |slot| self.slots[slot].is_below(prefix))
        });
        found.is_some()
    }

    /// Every Data, in no particular order. Counts as no use of them.
    pub fn iter(&self) -> impl Iterator<Item = DataRef<'_>> {
        live(&self.slots).map(|(_, entry)| entry.data())
    }

    /// The Data of the name of `interest`, whose hash is `hash`, if it answers.
    #[inline]
    pub(crate) fn find_under_name(
        &self,
        index: &BucketIndex,
        interest: &InterestView<'_>,
        hash: NameHash,
        now: MonoNs,
    ) -> Option<u32> {
        let slot = find_exact(index, &self.slots, interest.name(), hash)?;
        self.suits(slot, interest, now).then_some(slot)
    }

    /// Whether the Data in a slot has this name, and its hash.
    #[inline]
    pub(crate) fn is_named(&self, slot: u32, name: NameView<'_>, hash: NameHash) -> bool {
        self.slots[slot].is_named(name, hash)
    }

    /// Whether the Data in a slot has the name of `interest`, and answers.
    #[inline]
    pub(crate) fn is_answer(
        &self,
        slot: u32,
        interest: &InterestView<'_>,
        hash: NameHash,
        now: MonoNs,
    ) -> bool {
        self.slots[slot].is_named(interest.name(), hash) && self.suits(slot, interest, now)
    }

    /// Whether the Data in a slot is as fresh as `interest` wants it.
    #[inline]
    fn suits(&self, slot: u32, interest: &InterestView<'_>, now: MonoNs) -> bool {
        !interest.must_be_fresh() || self.slots[slot].is_fresh(now)
    }

    /// A Data that answers `interest` and has another name: a full one, or a longer one.
    #[inline]
    pub(crate) fn find_beyond_name(
        &mut self,
        index: &mut BucketIndex,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<u32> {
        if let Some(digest) = interest.name().last_implicit_digest()
            && let Some(slot) = self.find_full_name(index, interest, (digest, hashes), now)
        {
            return Some(slot);
        }
        if !interest.can_be_prefix() {
            return None;
        }
        self.find_longer_name(index, interest, hashes, now)
    }

    /// The Data that answers `interest`, of its name but for the last component, which is
    /// its digest.
    #[cold]
    fn find_full_name(
        &mut self,
        index: &BucketIndex,
        interest: &InterestView<'_>,
        (digest, hashes): (&[u8; 32], &[NameHash]),
        now: MonoNs,
    ) -> Option<u32> {
        let n_components = interest.name().len() - 1;
        let parent = interest.name().prefix(n_components);
        let slot = find_exact(index, &self.slots, parent, hashes[n_components])?;
        let is_it = self.suits(slot, interest, now) && self.implicit_digest(slot) == *digest;
        is_it.then_some(slot)
    }

    /// A Data that answers `interest` and has a longer name.
    #[inline(never)]
    fn find_longer_name(
        &mut self,
        index: &mut BucketIndex,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<u32> {
        let name = interest.name();
        self.n_entering = self.len;
        self.enter_waiting(index, MAX_ENTERED_PER_FIND);
        let entered = self.tree.freshest_below(name, hashes, &self.slots);
        if let Some(slot) = entered
            && self.suits(slot, interest, now)
        {
            return Some(slot);
        }
        let fresh_at = interest.must_be_fresh().then_some(now);
        let slots = &self.slots;
        let hashes = &hashes[..=name.len()];
        self.waiting.find_quickly(hashes, fresh_at, |slot| {
            let entry = &slots[slot];
            entry.is_below(name) && (fresh_at.is_none() || entry.is_fresh(now))
        })
    }

    /// Enters up to `limit` of the Data that wait.
    fn enter_waiting(&mut self, index: &mut BucketIndex, limit: usize) {
        for _ in 0..limit {
            let Some(slot) = self.waiting.next() else {
                break;
            };
            self.waiting.remove(slot);
            let mut hashes = std::mem::take(&mut self.hashes);
            let name = self.slots[slot].name();
            self.tree.hasher().hash_prefixes(name, &mut hashes);
            self.enter(index, slot, &hashes);
            self.hashes = hashes;
        }
        // The tree takes room, too.
        self.evict_excess(index);
    }

    /// Enters a Data under its prefixes.
    fn enter(&mut self, index: &BucketIndex, slot: u32, hashes: &[NameHash]) {
        let slots = &self.slots;
        let entry = &slots[slot];
        let newcomer = Newcomer {
            slot,
            name: entry.name(),
            hashes,
            fresh_until: entry.fresh_until,
        };
        let vertex = self.tree.insert(newcomer, slots, |name, hash| {
            let found = find_exact(index, slots, name, hash)?;
            slots[found].vertex
        });
        self.slots[slot].vertex = Some(vertex);
    }

    /// The digest of a Data, which is kept if there is room: nothing gives way to it.
    fn implicit_digest(&mut self, slot: u32) -> [u8; 32] {
        if let Some(known) = self.digests.get(&slot) {
            return *known;
        }
        let data = DataView::parse(self.slots[slot].wire()).expect("copied from a Data");
        let digest = data.implicit_digest();
        if self.used_bytes() + DIGEST_BYTES <= self.capacity.max_bytes {
            self.slots[slot].has_digest = true;
            self.digests.insert(slot, digest);
        }
        digest
    }

    #[inline]
    fn forget_digest(&mut self, slot: u32) {
        if std::mem::take(&mut self.slots[slot].has_digest) {
            self.digests.remove(&slot);
        }
    }
}

#[inline]
fn find_exact(
    index: &BucketIndex,
    slots: &Slab<CsEntry>,
    name: NameView<'_>,
    hash: NameHash,
) -> Option<u32> {
    let word = index.find(hash.0, |word| {
        as_cached(word).is_some_and(|slot| slots[slot].is_named(name, hash))
    })?;
    as_cached(word)
}

fn live(slots: &Slab<CsEntry>) -> impl Iterator<Item = (u32, &CsEntry)> {
    slots.iter_touched().filter(|(_, entry)| entry.is_live())
}
