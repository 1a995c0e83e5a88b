//! The content store.
//!
//! Owns copies of Data packets, at most one for a name; a later one replaces an
//! earlier. It answers by exact name with one probe, by prefix with the newest
//! Data below it, by full name with the one that has this digest, and to
//! MustBeFresh only within the FreshnessPeriod since arrival. A hit borrows the
//! packet and copies nothing.
//!
//! Bounded in packets and bytes; what does not fit evicts what its policy
//! ([`Eviction`]) names. Whether Data may be cached at all (solicited, NoCache)
//! is the engine's affair. A search for fresh Data under a prefix looks at a
//! bounded number of candidates: giving up is a counted miss.

mod entry;
mod eviction;
mod prefixes;

use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{DataView, InterestView, MonoNs, NameHash, NameView};

use self::entry::CsEntry;
pub use self::eviction::{Eviction, Lru};
pub use self::prefixes::MAX_CS_COMPONENTS;
use self::prefixes::{NODE_BYTES, PrefixTree, SearchGivenUp};
use crate::digest;
use crate::hash_index::HashIndex;
use crate::pool::{BufferPool, buffer_bytes};
use crate::slab::Slab;

/// What a Data costs beside its buffer, in bytes, and beside the prefixes that
/// only it has: slot, place in the free list and in the eviction order, and
/// nine bytes in an index between 7/16 and 7/8 full.
pub const CS_ENTRY_BYTES: usize = size_of::<CsEntry>() + 4 + 8 + 20;

/// Heap bytes of a digest that was asked for.
const DIGEST_BYTES: usize = 48;

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
}

/// What [`ContentStore::insert`] did.
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
    /// Misses at which a search for fresh Data was given up.
    pub n_searches_given_up: u64,
}

/// A cached Data, borrowed from the store.
#[derive(Clone, Copy, Debug)]
pub struct DataRef<'a> {
    wire: &'a [u8],
}

impl<'a> DataRef<'a> {
    /// The packet as it arrived.
    #[must_use]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The packet as a view. Checks its bytes again.
    #[must_use]
    pub fn view(&self) -> DataView<'a> {
        DataView::parse(self.wire).expect("copied from a Data")
    }
}

/// See the module. In each method `hashes[i]` is the hash of the first `i`
/// components of the name in question; fewer of them than its components and
/// one more make it panic.
#[derive(Debug)]
pub struct ContentStore<P = Lru> {
    capacity: CsCapacity,
    admits: bool,
    serves: bool,
    slots: Slab<CsEntry>,
    len: usize,
    index: HashIndex,
    tree: PrefixTree,
    policy: P,
    pool: BufferPool,
    n_digests: usize,
    counters: CsCounters,
}

impl ContentStore<Lru> {
    /// An empty store that evicts what was used longest ago, admits and serves.
    #[must_use]
    pub fn new(capacity: CsCapacity) -> Self {
        Self::with_policy(capacity, Lru::default())
    }
}

impl<P: Eviction> ContentStore<P> {
    /// An empty store that admits and serves.
    #[must_use]
    pub fn with_policy(capacity: CsCapacity, policy: P) -> Self {
        Self {
            capacity: bounded(capacity),
            admits: true,
            serves: true,
            slots: Slab::new(),
            len: 0,
            index: HashIndex::new(),
            tree: PrefixTree::new(),
            policy,
            pool: BufferPool::new(capacity.max_bytes / 16),
            n_digests: 0,
            counters: CsCounters::default(),
        }
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

    /// Sets the limits; evicts what exceeds them.
    pub fn set_capacity(&mut self, capacity: CsCapacity) {
        self.capacity = bounded(capacity);
        self.evict_for(0, 0);
        self.pool.set_max_free_bytes(capacity.max_bytes / 16);
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
    pub const fn used_bytes(&self) -> usize {
        self.len * CS_ENTRY_BYTES
            + self.pool.used_bytes()
            + self.tree.n_nodes() * NODE_BYTES
            + self.n_digests * DIGEST_BYTES
    }

    /// Heap memory in use, spare slots and buffers included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
            + self.index.memory_bytes()
            + self.tree.memory_bytes()
            + self.policy.memory_bytes()
            + self.pool.memory_bytes()
            + self.n_digests * DIGEST_BYTES
    }

    /// A Data that answers `interest`.
    pub fn find(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<DataRef<'_>> {
        let found = if self.serves {
            self.search(interest, hashes, now)
        } else {
            None
        };
        match found {
            None => {
                self.counters.n_misses += 1;
                None
            }
            Some(slot) => {
                self.counters.n_hits += 1;
                self.policy.handle_hit(slot);
                Some(DataRef {
                    wire: self.slots[slot].wire(),
                })
            }
        }
    }

    /// Caches a copy of `data`, evicting what has to make room.
    pub fn insert(&mut self, data: &DataView<'_>, hashes: &[NameHash], now: MonoNs) -> Admission {
        let name = data.name();
        if !self.admits {
            self.counters.n_not_admitted_off += 1;
            return Admission::NotAdmitted(NotAdmitted::AdmitOff);
        }
        if name.is_empty() || name.len() > MAX_CS_COMPONENTS {
            self.counters.n_not_admitted_name += 1;
            return Admission::NotAdmitted(NotAdmitted::NameUnsuited);
        }
        let alone_bytes =
            CS_ENTRY_BYTES + buffer_bytes(data.wire().len()) + (name.len() - 1) * NODE_BYTES;
        if alone_bytes > self.capacity.max_bytes
            || self.capacity.max_pkts == 0
            || data.wire().len() > MAX_PACKET_BYTES
        {
            self.counters.n_not_admitted_size += 1;
            return Admission::NotAdmitted(NotAdmitted::TooLarge);
        }
        match self.find_exact(name, hashes[name.len()]) {
            Some(slot) => self.insert_again(slot, data, now),
            None => {
                self.insert_new(data, hashes, now);
                Admission::Inserted
            }
        }
    }

    /// Erases at most `limit` Data whose names begin with `prefix`; how many.
    pub fn erase(&mut self, prefix: NameView<'_>, hashes: &[NameHash], limit: usize) -> usize {
        let hash = hashes[prefix.len()];
        let mut n_erased = 0;
        if limit > 0
            && let Some(slot) = self.find_exact(prefix, hash)
        {
            self.remove(slot);
            n_erased += 1;
        }
        while n_erased < limit {
            // The node goes with the last Data below it.
            let node = self.tree.find(prefix, prefix.len(), hash, &self.slots);
            let Some(slot) = node.and_then(|node| self.tree.newest_below(node)) else {
                break;
            };
            self.remove(slot);
            n_erased += 1;
        }
        self.counters.n_erased += n_erased as u64;
        n_erased
    }

    /// Whether any Data has a name that begins with `prefix`. Counts as no use
    /// of it.
    #[must_use]
    pub fn has_below(&self, prefix: NameView<'_>, hashes: &[NameHash]) -> bool {
        let hash = hashes[prefix.len()];
        let node = self.tree.find(prefix, prefix.len(), hash, &self.slots);
        node.is_some_and(|node| self.tree.newest_below(node).is_some())
            || self.find_exact(prefix, hash).is_some()
    }

    /// Every Data, in no particular order. Counts as no use of them.
    pub fn iter(&self) -> impl Iterator<Item = DataRef<'_>> {
        self.slots
            .iter_touched()
            .filter(|(_, entry)| !entry.buffer.is_empty())
            .map(|(_, entry)| DataRef { wire: entry.wire() })
    }

    fn find_exact(&self, name: NameView<'_>, hash: NameHash) -> Option<u32> {
        self.index.find(hash.0, |slot| {
            let entry = &self.slots[slot];
            entry.name_hash == hash && entry.name_bytes() == name.value_bytes()
        })
    }

    fn search(
        &mut self,
        interest: &InterestView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<u32> {
        let name = interest.name();
        let must_be_fresh = interest.must_be_fresh();
        let suits = |entry: &CsEntry| !must_be_fresh || entry.is_fresh(now);
        let hash = hashes[name.len()];
        if let Some(slot) = self.find_exact(name, hash)
            && suits(&self.slots[slot])
        {
            return Some(slot);
        }
        if let Some(digest) = digest::last_implicit_digest(name) {
            let n_components = name.len() - 1;
            let found = self.find_exact(name.prefix(n_components), hashes[n_components]);
            if let Some(slot) = found
                && suits(&self.slots[slot])
                && self.implicit_digest(slot) == digest
            {
                return Some(slot);
            }
        }
        if !interest.can_be_prefix() {
            return None;
        }
        let node = self.tree.find(name, name.len(), hash, &self.slots)?;
        if !must_be_fresh {
            return self.tree.newest_below(node);
        }
        match self.tree.find_below(node, &self.slots, suits) {
            Ok(found) => found,
            Err(SearchGivenUp) => {
                self.counters.n_searches_given_up += 1;
                None
            }
        }
    }

    fn implicit_digest(&mut self, slot: u32) -> [u8; 32] {
        let entry = &mut self.slots[slot];
        self.n_digests += usize::from(entry.digest.is_none());
        entry.implicit_digest()
    }

    fn insert_again(&mut self, slot: u32, data: &DataView<'_>, now: MonoNs) -> Admission {
        // Used now, and so the last to be evicted for its own sake.
        self.policy.handle_hit(slot);
        self.tree.touch(slot, &mut self.slots);
        let entry = &mut self.slots[slot];
        if entry.wire() == data.wire() {
            entry.set_arrival(data, now);
            self.counters.n_refreshes += 1;
            return Admission::Refreshed;
        }
        self.n_digests -= usize::from(entry.digest.is_some());
        self.pool.give(std::mem::take(&mut entry.buffer));
        let buffer = self.pool.take_copy(data.wire());
        let name_hash = entry.name_hash;
        entry.occupy(data, name_hash, buffer, now);
        self.counters.n_replacements += 1;
        self.evict_for(0, 0);
        Admission::Replaced
    }

    fn insert_new(&mut self, data: &DataView<'_>, hashes: &[NameHash], now: MonoNs) {
        let name = data.name();
        self.evict_for(1, CS_ENTRY_BYTES + buffer_bytes(data.wire().len()));
        let buffer = self.pool.take_copy(data.wire());
        let slot = self.slots.alloc();
        let hash = hashes[name.len()];
        self.slots[slot].occupy(data, hash, buffer, now);
        self.index.insert(hash.0, slot);
        self.tree.insert(slot, name, hashes, &mut self.slots);
        self.policy.handle_insert(slot);
        self.len += 1;
        self.counters.n_inserts += 1;
        // Its prefixes may be new too.
        self.evict_for(0, 0);
    }

    /// Evicts until so much more fits.
    fn evict_for(&mut self, n_more_pkts: usize, more_bytes: usize) {
        while self.len + n_more_pkts > self.capacity.max_pkts
            || self.used_bytes() + more_bytes > self.capacity.max_bytes
        {
            let Some(slot) = self.policy.victim() else {
                return;
            };
            self.remove(slot);
            self.counters.n_evictions += 1;
        }
    }

    fn remove(&mut self, slot: u32) {
        self.tree.remove(slot, &mut self.slots);
        self.policy.handle_remove(slot);
        let entry = &mut self.slots[slot];
        self.index.remove(entry.name_hash.0, slot);
        self.n_digests -= usize::from(entry.digest.take().is_some());
        self.pool.give(std::mem::take(&mut entry.buffer));
        self.slots.free(slot);
        self.len -= 1;
    }
}

/// Slot numbers leave room for marks.
fn bounded(capacity: CsCapacity) -> CsCapacity {
    CsCapacity {
        max_pkts: capacity.max_pkts.min((1 << 31) - 2),
        ..capacity
    }
}
