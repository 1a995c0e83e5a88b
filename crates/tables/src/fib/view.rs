//! The FIB as a reader sees it.
//!
//! Owns what writer and readers share, and a burst's view of it. A search has two halves, so
//! that bursts can fetch ahead between them: [`FibView::probe`] asks the hash table alone, by
//! tags, and [`FibView::confirm`] compares the name and finds the next hops (Takemasa 2019,
//! section 4.3; Yuan 2015, section 3.3.2: string matching at the end). Which engine searches
//! is asked once, by [`FibReader::pin`]. What a search reads is counted by `traced`.

mod traced;

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tachonym_memory::Pages;
use tachonym_memory::grace::{Domain, Pin, Reader};
use tachonym_memory::sync::{AtomicU64, Ordering};
use tachonym_packet::{NameHash, NameView};

use super::alternatives::partitions::Heirs;
use super::alternatives::pulled::Pulled;
use super::alternatives::{Alternative, FibEngine, FibMatching};
use super::buckets::Buckets;
use super::nodes::{NodeRef, Nodes};
use super::search::{ByTags, FibMatch, FibProbe, Look, Prefixes, Seen, longest_first};
use super::sets::Sets;

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

    /// How these are searched; `None`: as by default.
    fn alternative<'a>(&'a self, table: &Table, pulled: &'a Pulled) -> Option<Alternative<'a>> {
        let is_default = self.engine == FibEngine::LongestFirst
            && self.matching == FibMatching::AtEnd
            && pulled.len() == 0;
        (!is_default).then_some(Alternative {
            engine: self.engine,
            matching: self.matching,
            first: table.first,
            pulled,
            heirs: &self.heirs,
        })
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
        let InForce { table, pulled } = &self.in_force;
        FibView {
            prefixes: Prefixes {
                buckets: &table.buckets,
                nodes: &self.shared.nodes,
                sets: &self.shared.sets,
                lengths: &self.shared.lengths,
            },
            alternative: self.shared.alternative(table, pulled),
            _pin: pin,
        }
    }
}

/// A FIB during a burst; see [`FibReader::pin`]. In each method `hashes[i]` is the hash
/// of the first `i` components of `name`; there is one more of them than components.
#[derive(Debug)]
pub struct FibView<'r> {
    prefixes: Prefixes<'r>,
    /// `None`: the longest prefix first, and names compared at the end.
    alternative: Option<Alternative<'r>>,
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
            self.prefixes.buckets.prefetch(hashes[length]);
            lengths &= lengths - 1;
        }
    }

    /// A bit for each length whose bucket is fetched ahead.
    #[inline]
    fn fetched(&self, hashes: &[NameHash]) -> u64 {
        let lengths = self.prefixes.lengths_of(hashes);
        match &self.alternative {
            None => lengths,
            Some(alternative) => alternative.fetched(lengths, hashes),
        }
    }

    /// Fetches only the bucket that [`FibView::probe`] will read first (Yuan 2015, section
    /// 3.4.1, compares that with fetching all).
    #[inline]
    pub fn prefetch_first_bucket(&self, hashes: &[NameHash]) {
        let look = FirstAsked(Cell::new(None));
        self.search(&look, hashes);
        if let Some(length) = look.0.get() {
            self.prefixes.buckets.prefetch(hashes[length]);
        }
    }

    /// Fetches what [`FibView::confirm`] will read.
    #[inline]
    pub fn prefetch_node(&self, name: NameView<'_>, probe: FibProbe) {
        if probe.node != NodeRef::NONE {
            // The node holds the prefix, which is mostly far shorter than the name. A walk
            // to its end would cost more than a line too many: its components are taken to
            // be as long as the others.
            let n_bytes = name.value_bytes().len() * usize::from(probe.n_components);
            let n_bytes = n_bytes / name.len().max(1);
            self.prefixes.nodes.prefetch(probe.node, n_bytes);
        }
    }

    /// What tags promise.
    #[inline]
    #[must_use]
    pub fn probe(&self, hashes: &[NameHash]) -> FibProbe {
        let prefixes = &self.prefixes;
        match &self.alternative {
            None => longest_first(&ByTags { prefixes, hashes }, prefixes.lengths_of(hashes)),
            Some(alternative) => alternative.probe(prefixes, hashes),
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
        match &self.alternative {
            None => self.prefixes.keep(name, hashes, probe),
            Some(alternative) => alternative.confirm(&self.prefixes, name, hashes, probe),
        }
    }

    /// As [`FibView::probe`], but asks `look`.
    fn search(&self, look: &impl Look, hashes: &[NameHash]) -> FibProbe {
        let lengths = self.prefixes.lengths_of(hashes);
        match &self.alternative {
            None => longest_first(look, lengths),
            Some(alternative) => alternative.search(look, lengths, hashes),
        }
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
