//! Ways to find the longest prefix of a name in a hash table.
//!
//! Owns which shorter prefixes stand in the table for a longer one, as markers, and in
//! which order a search asks for lengths. All engines share the table, the nodes, and
//! the search of last resort, which is linear and compares every name; so an engine
//! promises, and [`FibView::confirm`](super::FibView::confirm) keeps.
//!
//! | engine | begins | markers of a prefix | source |
//! |---|---|---|---|
//! | [`LongestFirst`] | at the longest | none | Takemasa 2019, section 4.1.2 |
//! | [`TwoStage`] | at a middle length | at that length | So et al. 2013; Takemasa 2019, section 4.1.2 |
//! | [`ShortestFirst`] | at one component | at every length | Yuan 2015, section 3.4.2 |
//! | [`BinarySearch`] | in the middle | at the lengths where a search for it goes on to longer ones | Yuan 2015, section 3.3.1 |

mod binary_search;
mod longest_first;
mod shortest_first;
mod two_stage;

pub(crate) use binary_search::BinarySearch;
pub(crate) use longest_first::LongestFirst;
pub(crate) use shortest_first::ShortestFirst;
pub(crate) use two_stage::{TwoStage, reach_bit};

use super::buckets::Slot;
use super::nodes::NodeRef;
use super::pulled::PulledId;

/// How the longest prefix of a name is searched for. Answers are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FibEngine {
    /// From the longest prefix of a name down to the first that is there. Changes cost
    /// least, and all that is read can be fetched ahead.
    #[default]
    LongestFirst,
    /// First at a middle length, which tells what lengths there are below; then the
    /// longest of those first, or the longest above.
    TwoStage {
        /// The middle length in components; 0: the one that most prefixes have, chosen
        /// again whenever their number has doubled.
        first: u8,
    },
    /// By halves of the lengths that are left.
    BinarySearch,
    /// From one component up, until nothing longer is there.
    ShortestFirst,
}

/// When names are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FibMatching {
    /// Once, when tags have told the longest prefix; if they lied, another search
    /// compares every name (Yuan 2015, section 3.3.2: at the end of the search).
    #[default]
    AtEnd,
    /// Whenever a tag agrees (Yuan 2015, section 3.3.2: always).
    Always,
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
    pub(crate) fn add(&mut self, slot: Slot) {
        let place = if slot.is_marker() {
            &mut self.marker
        } else {
            &mut self.own
        };
        self.is_unsure |= place.is_some_and(|node| node != slot.node());
        *place = Some(slot.node());
    }
}

/// What an engine may ask about the prefixes of one name.
pub(crate) trait Look {
    /// The search goes through these lengths one by one until one decides: nothing that is
    /// found changes which comes next, so their buckets may be fetched together.
    #[inline]
    fn goes_through(&self, _lengths: u64) {}
    /// The prefix with next hops of so many components; some of them, should there be
    /// several.
    fn own(&self, length: usize) -> Option<NodeRef>;
    /// All that stands for the prefix of so many components.
    fn all(&self, length: usize) -> Seen;
    /// What is kept at a marker; `None`: the node has no such level, so it is not the
    /// name's.
    fn info(&self, marker: NodeRef, length: usize) -> Option<u32>;
}

/// An engine. Sets of lengths are words, with a bit for each.
pub(crate) trait Search {
    /// The lengths of the markers that a prefix of `n_components` needs. `first` is the
    /// middle length, in each of these functions.
    fn marker_lengths(first: usize, n_components: usize) -> u64;
    /// The longest prefix of a name, if its prefixes can have the `lengths`.
    fn search(look: &impl Look, lengths: u64, first: usize) -> FibProbe;
    /// As [`Search::search`], but first at the length `start`, where each longer prefix of
    /// the name would have a marker (see `pulled`).
    #[inline]
    fn search_from(look: &impl Look, lengths: u64, start: usize, first: usize) -> FibProbe {
        let seen = look.all(start);
        if seen.is_unsure {
            return FibProbe::UNSURE;
        }
        if seen.marker.is_some() {
            let longer = lengths & !below(start) & !(1 << start);
            let found = Self::search(look, longer, first);
            if found.promise != Promise::Nothing {
                return found;
            }
        }
        match seen.own {
            Some(node) => FibProbe::own(node, start),
            None => Self::search(look, lengths & below(start), first),
        }
    }
    /// The lengths that are worth fetching before a search that may have `lengths`.
    fn fetched(lengths: u64, first: usize) -> u64;
}

impl FibEngine {
    pub(crate) fn marker_lengths(self, first: usize, n_components: usize) -> u64 {
        match self {
            Self::LongestFirst => LongestFirst::marker_lengths(first, n_components),
            Self::TwoStage { .. } => TwoStage::marker_lengths(first, n_components),
            Self::BinarySearch => BinarySearch::marker_lengths(first, n_components),
            Self::ShortestFirst => ShortestFirst::marker_lengths(first, n_components),
        }
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
    /// Names have to be compared on the way.
    Unsearched,
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
    /// Components of the prefix that tags promise, which names have not confirmed; `None` if
    /// they promise none.
    #[must_use]
    pub fn promised_components(&self) -> Option<usize> {
        let is_promised = matches!(self.promise, Promise::Own | Promise::Inherited);
        is_promised.then(|| usize::from(self.n_components))
    }

    pub(crate) const NOTHING: Self = Self::without_node(Promise::Nothing);
    pub(crate) const UNSURE: Self = Self::without_node(Promise::Unsure);
    pub(crate) const UNSEARCHED: Self = Self::without_node(Promise::Unsearched);

    pub(crate) const fn own(node: NodeRef, length: usize) -> Self {
        Self {
            node,
            n_components: length as u8,
            promise: Promise::Own,
            pulled: PulledId::NONE,
        }
    }

    pub(crate) const fn inherited(marker: NodeRef, length: usize) -> Self {
        Self {
            node: marker,
            n_components: length as u8,
            promise: Promise::Inherited,
            pulled: PulledId::NONE,
        }
    }

    const fn without_node(promise: Promise) -> Self {
        Self {
            node: NodeRef::NONE,
            n_components: 0,
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

/// The lengths up to `length`, which is 63 at most.
pub(crate) const fn up_to(length: usize) -> u64 {
    u64::MAX >> (63 - length)
}

/// The lengths below `length`.
pub(crate) const fn below(length: usize) -> u64 {
    (1 << length) - 1
}
