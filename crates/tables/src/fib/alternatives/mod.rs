//! Other ways to find the longest prefix of a name than the default, each to be chosen in
//! the configuration.
//!
//! Owns which shorter prefixes stand in the table for a longer one, as markers, in which
//! order a search asks for lengths, and where it begins. A reader that pins the FIB chooses;
//! without an [`Alternative`], [`longest_first`] searches and names are compared at the end.
//! All share the table, the nodes, and the search of last resort; so answers are the same.
//!
//! | engine | begins | markers of a prefix | source |
//! |---|---|---|---|
//! | `search` | at the longest | none | Takemasa 2019, section 4.1.2 |
//! | `two_stage` | at a middle length | at that length | So et al. 2013; Takemasa 2019, section 4.1.2 |
//! | `shortest_first` | at one component | at every length | Yuan 2015, section 3.4.2 |
//! | `binary_search` | in the middle | at the lengths where a search for it goes on to longer ones | Yuan 2015, section 3.3.1 |

mod binary_search;
pub(crate) mod markers;
pub(crate) mod partitions;
pub(crate) mod pulled;
mod shortest_first;
mod two_stage;

pub(crate) use two_stage::reach_bit;

use tachonym_packet::{NameHash, NameView};

use self::partitions::{GONE, Heirs};
use self::pulled::Pulled;
use super::buckets::Slot;
use super::nodes::NodeRef;
use super::search::{
    ByTags, FibMatch, FibProbe, Look, Prefixes, Promise, PulledId, Seen, longest_first,
};

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

/// `first` is the middle length of a two-stage search. Sets of lengths are words, with a
/// bit for each.
impl FibEngine {
    /// The lengths of the markers that a prefix of `n_components` needs.
    pub(crate) fn marker_lengths(self, first: usize, n_components: usize) -> u64 {
        match self {
            Self::LongestFirst => 0,
            Self::TwoStage { .. } => u64::from(n_components > first) << first,
            Self::BinarySearch => binary_search::marker_lengths(n_components),
            Self::ShortestFirst => below(n_components) & !1,
        }
    }

    /// The lengths that are worth fetching before a search that may have `lengths`.
    fn fetched(self, lengths: u64, first: usize) -> u64 {
        match self {
            Self::LongestFirst => lengths,
            Self::TwoStage { .. } => lengths | u64::from(lengths >> first != 0) << first,
            Self::BinarySearch | Self::ShortestFirst => up_to_longest(lengths),
        }
    }

    /// The longest prefix of a name, if its prefixes can have the `lengths`.
    #[inline]
    fn search(self, look: &impl Look, lengths: u64, first: usize) -> FibProbe {
        match self {
            Self::LongestFirst => longest_first(look, lengths),
            Self::TwoStage { .. } => two_stage::search(look, lengths, first),
            Self::BinarySearch => binary_search::search(look, lengths),
            Self::ShortestFirst => shortest_first::search(look, lengths),
        }
    }

    /// As [`FibEngine::search`], but first at the length `start`, where each longer prefix
    /// of the name would have a marker (see `pulled`).
    fn search_from(self, look: &impl Look, lengths: u64, start: usize, first: usize) -> FibProbe {
        if let Self::TwoStage { .. } = self {
            // A marker tells the lengths below it, wherever it stands.
            return two_stage::search(look, lengths, start);
        }
        let seen = look.all(start);
        if seen.is_unsure {
            return FibProbe::UNSURE;
        }
        if seen.marker.is_some() {
            let longer = lengths & !below(start) & !(1 << start);
            let found = self.search(look, longer, first);
            if found.promise != Promise::Nothing {
                return found;
            }
        }
        match seen.own {
            Some(node) => FibProbe::own(node, start),
            None => self.search(look, lengths & below(start), first),
        }
    }
}

/// How a FIB is searched, if not as by default.
#[derive(Debug)]
pub(crate) struct Alternative<'r> {
    pub(crate) engine: FibEngine,
    pub(crate) matching: FibMatching,
    /// The middle length of a two-stage search.
    pub(crate) first: usize,
    /// Below these, searches begin lower down.
    pub(crate) pulled: &'r Pulled,
    pub(crate) heirs: &'r Heirs,
}

impl Alternative<'_> {
    /// The lengths whose buckets are fetched ahead.
    #[inline(never)]
    pub(crate) fn fetched(&self, lengths: u64, hashes: &[NameHash]) -> u64 {
        match self.pulled.start(hashes) {
            // Where a pulled search begins, it mostly ends.
            Some((_, start)) => 1 << start,
            None => self.engine.fetched(lengths, self.first),
        }
    }

    /// What tags promise.
    #[inline(never)]
    pub(crate) fn probe(&self, prefixes: &Prefixes<'_>, hashes: &[NameHash]) -> FibProbe {
        let lengths = prefixes.lengths_of(hashes);
        match self.matching {
            FibMatching::AtEnd => self.search(&ByTags { prefixes, hashes }, lengths, hashes),
            // Names are compared on the way, by `confirm`.
            FibMatching::Always => FibProbe::UNSURE,
        }
    }

    #[inline]
    pub(crate) fn search(&self, look: &impl Look, lengths: u64, hashes: &[NameHash]) -> FibProbe {
        match self.pulled.start(hashes) {
            Some((pulled, start)) => FibProbe {
                pulled,
                ..self.engine.search_from(look, lengths, start, self.first)
            },
            None => self.engine.search(look, lengths, self.first),
        }
    }

    /// The longest prefix of `name`, of which `probe` is what tags promised.
    #[inline(never)]
    pub(crate) fn confirm<'a>(
        &'a self,
        prefixes: &'a Prefixes<'_>,
        name: NameView<'a>,
        hashes: &[NameHash],
        probe: FibProbe,
    ) -> Option<FibMatch<'a>> {
        let probe = match self.matching {
            FibMatching::AtEnd => probe,
            FibMatching::Always => {
                let tags = ByTags { prefixes, hashes };
                self.search(&ByNames { tags, name }, prefixes.lengths_of(hashes), hashes)
            }
        };
        if probe.pulled != PulledId::NONE && !self.pulled.is_above(probe.pulled, name.value_bytes())
        {
            return prefixes.search_again(name, hashes);
        }
        if probe.promise != Promise::Inherited {
            return prefixes.keep(name, hashes, probe);
        }
        let heir = self.heir(prefixes, name, probe);
        if heir == Some(NodeRef::NONE) {
            return None;
        }
        let level = heir.map(|heir| prefixes.nodes.first_level(heir));
        match level.and_then(|level| Some((level, prefixes.next_hops_at(level)?))) {
            Some((level, next_hops)) => {
                let n_components = level.n_components();
                Some(FibMatch::new(name, hashes, n_components, next_hops))
            }
            None => prefixes.search_again(name, hashes),
        }
    }

    /// The prefix from which the marker of a probe inherits, which may be none, if it is a
    /// prefix of `name`; `None`: it is not, or something has changed.
    pub(crate) fn heir(
        &self,
        prefixes: &Prefixes<'_>,
        name: NameView<'_>,
        probe: FibProbe,
    ) -> Option<NodeRef> {
        let (nodes, length) = (prefixes.nodes, usize::from(probe.n_components));
        let level = nodes.level(probe.node, length)?;
        if !level.is_marker()
            || level.info() == GONE
            || !nodes.is_prefix_of(probe.node, level, name.value_bytes())
        {
            return None;
        }
        let heir = self.heirs.get(level.info());
        // The word speaks of the marker only while that is in the partition.
        (nodes.level(probe.node, length) == Some(level)).then_some(heir)
    }
}

/// Tags, and then names.
struct ByNames<'a> {
    tags: ByTags<'a>,
    name: NameView<'a>,
}

impl ByNames<'_> {
    fn is_true(&self, slot: Slot, length: usize) -> bool {
        let nodes = self.tags.prefixes.nodes;
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
        let (buckets, hash) = (self.tags.prefixes.buckets, self.tags.hashes[length]);
        Seen::of(buckets, hash, |slot| self.is_true(slot, length))
    }

    fn info(&self, marker: NodeRef, length: usize) -> Option<u32> {
        self.tags.info(marker, length)
    }
}

/// The lengths up to `length`, which is 63 at most.
const fn up_to(length: usize) -> u64 {
    u64::MAX >> (63 - length)
}

/// The lengths below `length`.
const fn below(length: usize) -> u64 {
    (1 << length) - 1
}

/// All up to the longest of some lengths: those without prefixes have markers.
fn up_to_longest(lengths: u64) -> u64 {
    lengths
        .checked_ilog2()
        .map_or(0, |longest| up_to(longest as usize))
}
