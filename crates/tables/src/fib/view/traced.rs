//! What a search reads, counted: for experiments, never on the packet path.
//!
//! Takemasa 2019, section 4.1, compares searches by reads of memory that depend on each
//! other: where a read is at is known only when the one before it has arrived. Here the
//! engines search the live table with a [`Look`] that counts. A bucket is where the hash
//! says, so those of lengths that a search goes through one by one arrive together
//! ([`Look::goes_through`]); a length that is chosen by what was found comes after that.

use std::cell::{Cell, RefCell};

use tachonym_packet::{NameHash, NameView};

use super::super::MAX_PREFIX_COMPONENTS;
use super::super::buckets::Slot;
use super::super::nodes::NodeRef;
use super::super::search::{ByTags, FibProbe, Look, Promise, Seen};
use super::FibView;

/// What is fetched before a search that [`FibView::trace`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibFetch {
    /// Nothing: a bucket is fetched when the search knows that it asks for its length.
    Needed,
    /// Every bucket that [`FibView::prefetch_buckets`] fetches, as on the packet path.
    Buckets,
}

/// What a search by tags, with the comparison of the name at its end, reads. The sets of
/// next hops are not counted: many prefixes share one, so they stay in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibTrace {
    /// Lengths that the hash table is asked for: the hash lookups of Yuan 2015, section 4.1.
    pub n_lookups: usize,
    /// Buckets and names that are read.
    pub n_reads: usize,
    /// The longest chain of reads of which each waits for the one before it.
    pub n_dependent: usize,
    /// Whether the tags were right. If not, the search begins again and compares every
    /// name, which is not counted.
    pub is_right: bool,
}

impl FibView<'_> {
    /// Counts what a search for `name` reads.
    #[must_use]
    pub fn trace(&self, name: NameView<'_>, hashes: &[NameHash], fetch: FibFetch) -> FibTrace {
        let look = Traced::new(self, hashes);
        if fetch == FibFetch::Buckets {
            look.goes_through(self.fetched(hashes));
        }
        let probe = self.search(&look, hashes);
        let is_right = match probe.promise {
            Promise::Nothing => true,
            Promise::Own => {
                let length = usize::from(probe.n_components);
                let next_hops = self.prefixes.own_next_hops(probe.node, name, length);
                next_hops.is_some()
            }
            Promise::Inherited => self.heir(name, probe).is_some(),
            Promise::Unsure => false,
        };
        if probe.node != NodeRef::NONE {
            look.read_node(probe.node);
        }
        if probe.promise == Promise::Inherited {
            look.read_next();
            match self.heir(name, probe) {
                None | Some(NodeRef::NONE) => {}
                Some(heir) => look.read_node(heir),
            }
        }
        FibTrace {
            n_lookups: look.n_lookups.get(),
            n_reads: look.n_reads.get(),
            n_dependent: look.depth.get(),
            is_right,
        }
    }

    /// How many lengths a search by tags asks the hash table for.
    #[must_use]
    pub fn n_lookups(&self, hashes: &[NameHash]) -> usize {
        let look = Traced::new(self, hashes);
        self.search(&look, hashes);
        look.n_lookups.get()
    }

    fn heir(&self, name: NameView<'_>, probe: FibProbe) -> Option<NodeRef> {
        let alternative = self.alternative.as_ref()?;
        alternative.heir(&self.prefixes, name, probe)
    }
}

/// Tags, and the reads that they take.
struct Traced<'a> {
    tags: ByTags<'a>,
    /// When the bucket of a length arrives if it was fetched ahead, in reads one after the
    /// other; 0: it was not.
    arrivals: Cell<[usize; MAX_PREFIX_COMPONENTS + 1]>,
    /// Reads one after the other so far.
    depth: Cell<usize>,
    n_lookups: Cell<usize>,
    n_reads: Cell<usize>,
    /// Nodes that have arrived.
    nodes: RefCell<Vec<NodeRef>>,
}

impl<'a> Traced<'a> {
    const fn new(view: &'a FibView<'a>, hashes: &'a [NameHash]) -> Self {
        let prefixes = &view.prefixes;
        Self {
            tags: ByTags { prefixes, hashes },
            arrivals: Cell::new([0; MAX_PREFIX_COMPONENTS + 1]),
            depth: Cell::new(0),
            n_lookups: Cell::new(0),
            n_reads: Cell::new(0),
            nodes: RefCell::new(Vec::new()),
        }
    }

    /// Reads the buckets of a length up to that of `slot`, or all. A bucket after the first
    /// arrives one read after it.
    fn read_buckets(&self, length: usize, slot: Option<Slot>) {
        let buckets = self.tags.prefixes.buckets;
        let n_buckets = buckets.n_read(self.tags.hashes[length], slot);
        let arrival = match self.arrivals.get()[length] {
            0 => self.depth.get() + 1,
            ahead => ahead,
        };
        self.depth
            .set(self.depth.get().max(arrival) + n_buckets - 1);
        self.n_reads.set(self.n_reads.get() + n_buckets);
        self.n_lookups.set(self.n_lookups.get() + 1);
    }

    /// Reads a node, unless it has been read.
    fn read_node(&self, node: NodeRef) {
        let mut nodes = self.nodes.borrow_mut();
        if !nodes.contains(&node) {
            nodes.push(node);
            self.read_next();
        }
    }

    /// Reads what the last read says.
    fn read_next(&self) {
        self.depth.set(self.depth.get() + 1);
        self.n_reads.set(self.n_reads.get() + 1);
    }
}

impl Look for Traced<'_> {
    fn goes_through(&self, lengths: u64) {
        let mut arrivals = self.arrivals.get();
        for (length, arrival) in arrivals.iter_mut().enumerate() {
            if lengths >> length & 1 != 0 && *arrival == 0 {
                *arrival = self.depth.get() + 1;
            }
        }
        self.arrivals.set(arrivals);
    }

    fn own(&self, length: usize) -> Option<NodeRef> {
        let buckets = self.tags.prefixes.buckets;
        let hash = self.tags.hashes[length];
        let slot = buckets.find(hash, |slot| !slot.is_marker());
        self.read_buckets(length, slot);
        slot.map(Slot::node)
    }

    fn all(&self, length: usize) -> Seen {
        self.read_buckets(length, None);
        self.tags.all(length)
    }

    fn info(&self, marker: NodeRef, length: usize) -> Option<u32> {
        self.read_node(marker);
        self.tags.info(marker, length)
    }
}
