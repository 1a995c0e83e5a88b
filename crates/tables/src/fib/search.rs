//! The search for the longest prefix of a name, the longest first (Takemasa 2019, section
//! 4.1.2): whatever is found first is the answer.
//!
//! Owns what every search works on and comes to. A search has two halves: [`longest_first`],
//! or an alternative to it, asks the hash table by tags and promises a prefix;
//! [`Prefixes::keep`] compares the name. Should the tags have lied, that searches again from
//! the start, comparing every name. Refuses other orders of search: see `alternatives`.

use tachonym_memory::sync::{AtomicU64, Ordering};
use tachonym_packet::{NameHash, NameView};

use super::MAX_PREFIX_COMPONENTS;
use super::buckets::{Buckets, Slot};
use super::next_hops::NextHopsView;
use super::nodes::{Level, NodeRef, Nodes};
use super::sets::{SetId, Sets};

/// What a search asks about the prefixes of one name.
pub(crate) trait Look {
    /// The search goes through these lengths one by one until one decides: nothing that is
    /// found changes which comes next, so their buckets may be fetched together.
    #[inline]
    fn goes_through(&self, _lengths: u64) {}
    /// The prefix of `length` components that has next hops; any of them, should there be
    /// several.
    fn own(&self, length: usize) -> Option<NodeRef>;
    /// All that stands for the prefix of `length` components. Only alternatives ask.
    fn all(&self, length: usize) -> Seen;
    /// What is kept at a marker; `None`: the node has no such level, so it is not the
    /// name's. Only alternatives ask.
    fn info(&self, marker: NodeRef, length: usize) -> Option<u32>;
}

/// What stands in the table under one hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// A prefix with next hops.
    pub(crate) own: Option<NodeRef>,
    /// A marker.
    pub(crate) marker: Option<NodeRef>,
    /// There are two of a kind, so one of them is another name's.
    pub(crate) is_unsure: bool,
}

impl Seen {
    /// What stands under `hash` and `accepts` takes.
    #[inline]
    pub(crate) fn of(buckets: &Buckets, hash: NameHash, accepts: impl Fn(Slot) -> bool) -> Self {
        let mut seen = Self::default();
        buckets.find(hash, |slot| {
            if accepts(slot) {
                seen.add(slot);
            }
            false
        });
        seen
    }

    fn add(&mut self, slot: Slot) {
        let place = if slot.is_marker() {
            &mut self.marker
        } else {
            &mut self.own
        };
        self.is_unsure |= place.is_some_and(|node| node != slot.node());
        *place = Some(slot.node());
    }
}

/// What a search by tags has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// No prefix is there.
    Nothing,
    /// The node is the prefix.
    Own,
    /// The node is that of a marker, and what that inherits is the answer.
    Inherited,
    /// Tags do not tell.
    Unsure,
}

/// Which of the pulled prefixes is above a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PulledId(pub(crate) u16);

impl PulledId {
    pub(crate) const NONE: Self = Self(0);
}

/// What tags promise of a name: the longest prefix that the hash table has, unless
/// another name has the same tag.
#[derive(Clone, Copy, Debug)]
pub struct FibProbe {
    pub(crate) node: NodeRef,
    pub(crate) n_components: u8,
    pub(crate) promise: Promise,
    /// The prefix below which the search began.
    pub(crate) pulled: PulledId,
}

impl FibProbe {
    pub(crate) const NOTHING: Self = Self::new(NodeRef::NONE, 0, Promise::Nothing);
    pub(crate) const UNSURE: Self = Self::new(NodeRef::NONE, 0, Promise::Unsure);

    /// Components of the prefix that tags promise, which names have not confirmed; `None` if
    /// they promise none.
    #[must_use]
    pub fn promised_components(&self) -> Option<usize> {
        let is_promised = matches!(self.promise, Promise::Own | Promise::Inherited);
        is_promised.then(|| usize::from(self.n_components))
    }

    pub(crate) const fn own(node: NodeRef, length: usize) -> Self {
        Self::new(node, length, Promise::Own)
    }

    pub(crate) const fn new(node: NodeRef, length: usize, promise: Promise) -> Self {
        Self {
            node,
            n_components: length as u8,
            promise,
            pulled: PulledId::NONE,
        }
    }
}

impl Default for FibProbe {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// The longest of some lengths that is there; sets of lengths are words, with a bit for each.
#[inline]
pub(crate) fn longest_first(look: &impl Look, lengths: u64) -> FibProbe {
    look.goes_through(lengths);
    let mut lengths = lengths;
    while lengths != 0 {
        let length = lengths.ilog2() as usize;
        if let Some(node) = look.own(length) {
            return FibProbe::own(node, length);
        }
        lengths &= !(1 << length);
    }
    FibProbe::NOTHING
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
    #[inline]
    pub(crate) fn new(
        name: NameView<'a>,
        hashes: &[NameHash],
        n_components: usize,
        next_hops: NextHopsView<'a>,
    ) -> Self {
        Self {
            name,
            n_components,
            hash: hashes[n_components],
            next_hops,
        }
    }

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

/// What a search reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixes<'r> {
    pub(crate) buckets: &'r Buckets,
    pub(crate) nodes: &'r Nodes,
    pub(crate) sets: &'r Sets,
    /// Bit per number of components that some prefix has.
    pub(crate) lengths: &'r AtomicU64,
}

impl Prefixes<'_> {
    /// A bit for each length of a prefix that these may be the hashes of.
    #[inline]
    pub(crate) fn lengths_of(&self, hashes: &[NameHash]) -> u64 {
        let longest = (hashes.len() - 1).min(MAX_PREFIX_COMPONENTS);
        self.lengths.load(Ordering::Acquire) & (u64::MAX >> (63 - longest))
    }

    /// The longest prefix of `name`, which tags have promised to be its own, or to be none.
    #[inline]
    pub(crate) fn keep<'a>(
        &'a self,
        name: NameView<'a>,
        hashes: &[NameHash],
        probe: FibProbe,
    ) -> Option<FibMatch<'a>> {
        let length = usize::from(probe.n_components);
        let next_hops = match probe.promise {
            Promise::Nothing => return None,
            Promise::Own => self.own_next_hops(probe.node, name, length),
            _ => None,
        };
        match next_hops {
            Some(next_hops) => Some(FibMatch::new(name, hashes, length, next_hops)),
            None => self.search_again(name, hashes),
        }
    }

    /// Searches from the start, comparing every name: tags were equal and names are not,
    /// or the prefix has just lost its next hops.
    #[cold]
    pub(crate) fn search_again<'a>(
        &'a self,
        name: NameView<'a>,
        hashes: &[NameHash],
    ) -> Option<FibMatch<'a>> {
        let mut lengths = self.lengths_of(hashes);
        while lengths != 0 {
            let length = lengths.ilog2() as usize;
            lengths &= !(1 << length);
            let mut next_hops = None;
            self.buckets.find(hashes[length], |slot| {
                next_hops = self.own_next_hops(slot.node(), name, length);
                next_hops.is_some()
            });
            if let Some(next_hops) = next_hops {
                return Some(FibMatch::new(name, hashes, length, next_hops));
            }
        }
        None
    }

    /// The next hops at a node, if it is the prefix of `n_components` components of `name` and
    /// has any of its own.
    #[inline]
    pub(crate) fn own_next_hops(
        &self,
        node: NodeRef,
        name: NameView<'_>,
        n_components: usize,
    ) -> Option<NextHopsView<'_>> {
        let level = self.nodes.level(node, n_components)?;
        // Equal bytes are equal components.
        if !level.is_own() || !self.nodes.is_prefix_of(node, level, name.value_bytes()) {
            return None;
        }
        self.next_hops_at(level)
    }

    /// The next hops of a prefix, if it has any left.
    #[inline]
    pub(crate) fn next_hops_at(&self, level: Level) -> Option<NextHopsView<'_>> {
        if !level.is_own() {
            return None;
        }
        let next_hops = self.sets.get(SetId(level.info()));
        (!next_hops.is_empty()).then_some(next_hops)
    }
}

/// Tags alone.
pub(crate) struct ByTags<'a> {
    pub(crate) prefixes: &'a Prefixes<'a>,
    pub(crate) hashes: &'a [NameHash],
}

impl Look for ByTags<'_> {
    #[inline]
    fn own(&self, length: usize) -> Option<NodeRef> {
        let buckets = self.prefixes.buckets;
        let slot = buckets.find(self.hashes[length], |slot| !slot.is_marker())?;
        Some(slot.node())
    }

    #[inline]
    fn all(&self, length: usize) -> Seen {
        Seen::of(self.prefixes.buckets, self.hashes[length], |_| true)
    }

    #[inline]
    fn info(&self, marker: NodeRef, length: usize) -> Option<u32> {
        Some(self.prefixes.nodes.level(marker, length)?.info())
    }
}
