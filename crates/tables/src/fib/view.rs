//! The FIB as a reader sees it.
//!
//! Owns the search for the longest prefix. A search has two halves, so that bursts can
//! fetch ahead between them: [`FibView::probe`] asks the hash table alone, by tags, and
//! [`FibView::confirm`] compares the name and finds the next hops (Takemasa 2019,
//! section 4.3; Yuan 2015, section 3.3.2: string matching at the end). Should the tags
//! have lied, `confirm` searches all over again, comparing every name. What a search reads
//! is counted by `traced`.

mod traced;

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tachonym_memory::Pages;
use tachonym_memory::grace::{Domain, Pin, Reader};
use tachonym_memory::sync::{AtomicU64, Ordering};
use tachonym_packet::{NameHash, NameView};

use super::MAX_PREFIX_COMPONENTS;
use super::buckets::{Buckets, Slot};
use super::engines::{
    BinarySearch, FibEngine, FibMatching, FibProbe, LongestFirst, Look, Promise, Search, Seen,
    ShortestFirst, TwoStage,
};
use super::next_hops::NextHopsView;
use super::nodes::{Level, NodeRef, Nodes};
use super::partitions::{GONE, Heirs};
use super::pulled::{Pulled, PulledId};
use super::sets::{SetId, Sets};

pub use traced::{FibFetch, FibTrace};

/// A hash table, and what a search of it has to know.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) buckets: Buckets,
    /// The middle length of a two-stage search.
    pub(crate) first: usize,
}

/// What the writer and all readers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) domain: Arc<Domain>,
    pub(crate) nodes: Nodes,
    pub(crate) sets: Sets,
    pub(crate) heirs: Heirs,
    pub(crate) engine: FibEngine,
    pub(crate) matching: FibMatching,
    /// Bit per number of components that some prefix has.
    pub(crate) lengths: AtomicU64,
    /// What is searched. Locked only when it is another one than before.
    in_force: Mutex<InForce>,
    version: AtomicU64,
}

/// What readers keep until there is another one.
#[derive(Clone, Debug)]
struct InForce {
    table: Arc<Table>,
    /// Below these, searches begin lower down.
    pulled: Arc<Pulled>,
}

impl Shared {
    pub(crate) fn new(
        (nodes, sets, heirs): (Nodes, Sets, Heirs),
        (engine, matching): (FibEngine, FibMatching),
        table: Arc<Table>,
    ) -> Self {
        Self {
            domain: Domain::new(),
            nodes,
            sets,
            heirs,
            engine,
            matching,
            lengths: AtomicU64::new(0),
            in_force: Mutex::new(InForce {
                table,
                pulled: Arc::default(),
            }),
            version: AtomicU64::new(0),
        }
    }

    pub(crate) fn publish_table(&self, table: Arc<Table>) {
        self.lock().table = table;
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn publish_pulled(&self, pulled: Arc<Pulled>) {
        self.lock().pulled = pulled;
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn pages(&self) -> Pages {
        let table = self.lock().table.buckets.pages();
        self.nodes.pages() + self.sets.pages() + self.heirs.pages() + table
    }

    fn lock(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader of a FIB. It can be sent to a thread of its own, while a [`Fib`](super::Fib)
/// changes the prefixes.
#[derive(Debug)]
pub struct FibReader {
    shared: Arc<Shared>,
    grace: Reader,
    in_force: InForce,
    version: u64,
}

impl FibReader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        // The version first: a table that is newer than its version is asked for again.
        let version = shared.version.load(Ordering::Acquire);
        let in_force = shared.lock().clone();
        Self {
            grace: shared.domain.reader(),
            in_force,
            version,
            shared,
        }
    }

    /// The pages of the FIB's memory.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.shared.pages()
    }

    /// The FIB to search. Hold it for a burst: what is removed meanwhile cannot be used
    /// again until the view is dropped. Takes no lock, unless the FIB has grown since
    /// the last time.
    pub fn pin(&mut self) -> FibView<'_> {
        let pin = self.grace.pin();
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.version {
            self.in_force = self.shared.lock().clone();
            self.version = version;
        }
        FibView {
            shared: &self.shared,
            table: &self.in_force.table,
            pulled: &self.in_force.pulled,
            _pin: pin,
        }
    }
}

/// The longest prefix of a name that the FIB has.
#[derive(Clone, Copy, Debug)]
pub struct FibMatch<'a> {
    name: NameView<'a>,
    n_components: usize,
    hash: NameHash,
    next_hops: NextHopsView<'a>,
}

impl<'a> FibMatch<'a> {
    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> NameView<'a> {
        self.name.prefix(self.n_components)
    }

    /// Components of the prefix.
    #[must_use]
    pub const fn n_components(&self) -> usize {
        self.n_components
    }

    /// Hash of the prefix.
    #[must_use]
    pub const fn prefix_hash(&self) -> NameHash {
        self.hash
    }

    /// Its next hops, the best first.
    #[must_use]
    pub const fn next_hops(&self) -> NextHopsView<'a> {
        self.next_hops
    }
}

/// A FIB during a burst; see [`FibReader::pin`]. In each method `hashes[i]` is the hash
/// of the first `i` components of `name`; there is one more of them than components.
#[derive(Debug)]
pub struct FibView<'r> {
    shared: &'r Shared,
    table: &'r Table,
    pulled: &'r Pulled,
    _pin: Pin<'r>,
}

impl FibView<'_> {
    /// The longest prefix of `name`: [`FibView::probe`] and [`FibView::confirm`] at once,
    /// for who has one name only and nothing to fetch ahead.
    #[must_use]
    pub fn find_longest<'a>(
        &'a self,
        name: NameView<'a>,
        hashes: &[NameHash],
    ) -> Option<FibMatch<'a>> {
        let probe = self.probe(hashes);
        self.confirm(name, hashes, probe)
    }

    /// Fetches what [`FibView::probe`] will read.
    #[inline]
    pub fn prefetch_buckets(&self, hashes: &[NameHash]) {
        let mut lengths = self.fetched(hashes);
        while lengths != 0 {
            let length = lengths.trailing_zeros() as usize;
            self.table.buckets.prefetch(hashes[length]);
            lengths &= lengths - 1;
        }
    }

    /// A bit for each length whose bucket is fetched ahead.
    #[inline]
    fn fetched(&self, hashes: &[NameHash]) -> u64 {
        if let Some((_, start)) = self.pulled.start(hashes) {
            // Where a pulled search begins, it mostly ends.
            return 1 << start;
        }
        let first = self.table.first;
        let lengths = self.lengths_of(hashes);
        match self.shared.engine {
            FibEngine::LongestFirst => LongestFirst::fetched(lengths, first),
            FibEngine::TwoStage { .. } => TwoStage::fetched(lengths, first),
            FibEngine::BinarySearch => BinarySearch::fetched(lengths, first),
            FibEngine::ShortestFirst => ShortestFirst::fetched(lengths, first),
        }
    }

    /// Fetches only the bucket that [`FibView::probe`] will read first (Yuan 2015, section
    /// 3.4.1, compares that with fetching all).
    #[inline]
    pub fn prefetch_first_bucket(&self, hashes: &[NameHash]) {
        let look = FirstAsked(Cell::new(None));
        self.search(&look, hashes);
        if let Some(length) = look.0.get() {
            self.table.buckets.prefetch(hashes[length]);
        }
    }

    /// Fetches what [`FibView::confirm`] will read.
    #[inline]
    pub fn prefetch_node(&self, name: NameView<'_>, probe: FibProbe) {
        if probe.node != NodeRef::NONE {
            self.shared
                .nodes
                .prefetch(probe.node, name.value_bytes().len());
        }
    }

    /// What tags promise.
    #[inline]
    #[must_use]
    pub fn probe(&self, hashes: &[NameHash]) -> FibProbe {
        match self.shared.matching {
            FibMatching::AtEnd => self.search(&ByTags { view: self, hashes }, hashes),
            FibMatching::Always => FibProbe::UNSEARCHED,
        }
    }

    /// The longest prefix of `name`, of which `probe` is what tags promised.
    #[inline]
    #[must_use]
    pub fn confirm<'a>(
        &'a self,
        name: NameView<'a>,
        hashes: &[NameHash],
        probe: FibProbe,
    ) -> Option<FibMatch<'a>> {
        let mut probe = probe;
        if probe.promise == Promise::Unsearched {
            let look = ByNames {
                tags: ByTags { view: self, hashes },
                name,
            };
            probe = self.search(&look, hashes);
        }
        if probe.pulled != PulledId::NONE && !self.pulled.is_above(probe.pulled, name.value_bytes())
        {
            return self.search_again(name, hashes);
        }
        let mut length = usize::from(probe.n_components);
        let next_hops = match probe.promise {
            Promise::Nothing => return None,
            Promise::Own => self.own_next_hops(probe.node, name, length),
            Promise::Inherited => match self.heir(probe.node, name, length) {
                Some(NodeRef::NONE) => return None,
                Some(heir) => {
                    let level = self.shared.nodes.first_level(heir);
                    length = level.n_components();
                    self.next_hops_at(level)
                }
                None => None,
            },
            Promise::Unsure | Promise::Unsearched => None,
        };
        match next_hops {
            Some(next_hops) => Some(FibMatch {
                name,
                n_components: length,
                hash: hashes[length],
                next_hops,
            }),
            None => self.search_again(name, hashes),
        }
    }

    #[inline(always)]
    fn search(&self, look: &impl Look, hashes: &[NameHash]) -> FibProbe {
        let lengths = self.lengths_of(hashes);
        let first = self.table.first;
        if let Some((pulled, start)) = self.pulled.start(hashes) {
            return FibProbe {
                pulled,
                ..self.search_from(look, lengths, start)
            };
        }
        match self.shared.engine {
            FibEngine::LongestFirst => LongestFirst::search(look, lengths, first),
            FibEngine::TwoStage { .. } => TwoStage::search(look, lengths, first),
            FibEngine::BinarySearch => BinarySearch::search(look, lengths, first),
            FibEngine::ShortestFirst => ShortestFirst::search(look, lengths, first),
        }
    }

    /// As [`FibView::search`], beginning at the length `start`.
    fn search_from(&self, look: &impl Look, lengths: u64, start: usize) -> FibProbe {
        let first = self.table.first;
        match self.shared.engine {
            FibEngine::LongestFirst => LongestFirst::search_from(look, lengths, start, first),
            FibEngine::TwoStage { .. } => TwoStage::search_from(look, lengths, start, first),
            FibEngine::BinarySearch => BinarySearch::search_from(look, lengths, start, first),
            FibEngine::ShortestFirst => ShortestFirst::search_from(look, lengths, start, first),
        }
    }

    /// Searches from the start, comparing every name: tags were equal and names are not,
    /// or the prefix has just lost its next hops.
    #[cold]
    fn search_again<'a>(&'a self, name: NameView<'a>, hashes: &[NameHash]) -> Option<FibMatch<'a>> {
        let mut lengths = self.lengths_of(hashes);
        while lengths != 0 {
            let length = lengths.ilog2() as usize;
            lengths &= !(1 << length);
            let mut next_hops = None;
            self.table.buckets.find(hashes[length], |slot| {
                next_hops = self.own_next_hops(slot.node(), name, length);
                next_hops.is_some()
            });
            if let Some(next_hops) = next_hops {
                return Some(FibMatch {
                    name,
                    n_components: length,
                    hash: hashes[length],
                    next_hops,
                });
            }
        }
        None
    }

    /// The next hops at a node, if it is the prefix of `name` of so many components and
    /// has any of its own.
    #[inline]
    fn own_next_hops(
        &self,
        node: NodeRef,
        name: NameView<'_>,
        n_components: usize,
    ) -> Option<NextHopsView<'_>> {
        let nodes = &self.shared.nodes;
        let level = nodes.level(node, n_components)?;
        // Equal bytes are equal components.
        if !level.is_own() || !nodes.is_prefix_of(node, level, name.value_bytes()) {
            return None;
        }
        self.next_hops_at(level)
    }

    /// The next hops of a prefix, if it has any left.
    #[inline]
    fn next_hops_at(&self, level: Level) -> Option<NextHopsView<'_>> {
        if !level.is_own() {
            return None;
        }
        let next_hops = self.shared.sets.get(SetId(level.info()));
        (!next_hops.is_empty()).then_some(next_hops)
    }

    /// The prefix from which a marker inherits, which may be none, if it is the prefix of
    /// `name` of so many components; `None`: it is not, or something has changed.
    fn heir(&self, marker: NodeRef, name: NameView<'_>, n_components: usize) -> Option<NodeRef> {
        let nodes = &self.shared.nodes;
        let level = nodes.level(marker, n_components)?;
        if !level.is_marker()
            || level.info() == GONE
            || !nodes.is_prefix_of(marker, level, name.value_bytes())
        {
            return None;
        }
        let heir = self.shared.heirs.get(level.info());
        // The word speaks of the marker only while that is in the partition.
        (nodes.level(marker, n_components) == Some(level)).then_some(heir)
    }

    /// A bit for each length of a prefix that these may be the hashes of.
    #[inline]
    fn lengths_of(&self, hashes: &[NameHash]) -> u64 {
        let longest = (hashes.len() - 1).min(MAX_PREFIX_COMPONENTS);
        self.shared.lengths.load(Ordering::Acquire) & (u64::MAX >> (63 - longest))
    }
}

/// Tags alone.
struct ByTags<'a> {
    view: &'a FibView<'a>,
    hashes: &'a [NameHash],
}

impl Look for ByTags<'_> {
    #[inline]
    fn own(&self, length: usize) -> Option<NodeRef> {
        let buckets = &self.view.table.buckets;
        let slot = buckets.find(self.hashes[length], |slot| !slot.is_marker())?;
        Some(slot.node())
    }

    #[inline]
    fn all(&self, length: usize) -> Seen {
        self.view.table.buckets.look(self.hashes[length], |_| true)
    }

    #[inline]
    fn info(&self, marker: NodeRef, length: usize) -> Option<u32> {
        let level = self.view.shared.nodes.level(marker, length)?;
        Some(level.info())
    }
}

/// Nothing; but the length that is asked for first.
struct FirstAsked(Cell<Option<usize>>);

impl Look for FirstAsked {
    #[inline]
    fn own(&self, length: usize) -> Option<NodeRef> {
        self.0.set(self.0.get().or(Some(length)));
        None
    }

    #[inline]
    fn all(&self, length: usize) -> Seen {
        self.own(length);
        Seen::default()
    }

    fn info(&self, _marker: NodeRef, _length: usize) -> Option<u32> {
        None
    }
}

/// Tags, and then names.
struct ByNames<'a> {
    tags: ByTags<'a>,
    name: NameView<'a>,
}

impl ByNames<'_> {
    fn is_true(&self, slot: Slot, length: usize) -> bool {
        let nodes = &self.tags.view.shared.nodes;
        nodes.level(slot.node(), length).is_some_and(|level| {
            level.is_marker() == slot.is_marker()
                && nodes.is_prefix_of(slot.node(), level, self.name.value_bytes())
        })
    }
}

impl Look for ByNames<'_> {
    fn own(&self, length: usize) -> Option<NodeRef> {
        self.all(length).own
    }

    fn all(&self, length: usize) -> Seen {
        let buckets = &self.tags.view.table.buckets;
        buckets.look(self.tags.hashes[length], |slot| self.is_true(slot, length))
    }

    fn info(&self, marker: NodeRef, length: usize) -> Option<u32> {
        self.tags.info(marker, length)
    }
}
