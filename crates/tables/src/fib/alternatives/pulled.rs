//! Level pulling: prefixes that very many next components follow, and where searches for
//! names below them begin (Yuan 2015, section 4.1).
//!
//! Owns a table of those prefixes, small enough for a processor's cache. A name below one
//! of them is looked up first one component below it, where most of what is below it
//! stands. What stands there alone is the answer; longer prefixes below have a marker
//! there, whatever the engine, so a search knows at once whether to go on to longer or
//! to shorter ones. The table never changes: the writer publishes another one.
//!
//! Names are found by their hashes here as well, and compared when the search is over.

use std::cmp::Reverse;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use tachonym_packet::{NameHash, NameView};

use super::super::hasher::PrefixHasher;
use super::super::nodes::{NodeAllocator, NodeRef, Nodes};
use super::super::search::PulledId;

/// Most prefixes that are pulled: what finds them stays in a cache. Of the URL sets of
/// Yuan 2015, table 4.2, none has half as many.
const MAX_PULLED: usize = 1 << 12;

/// A pulled prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PulledPrefix {
    pub(crate) hash: NameHash,
    pub(crate) n_components: usize,
    /// The components, encoded.
    pub(crate) name: Box<[u8]>,
}

/// See the module.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pulled {
    /// Bit per number of components that some pulled prefix has.
    lengths: u64,
    /// Numbers of prefixes, from 1, by hash; 0 is none. A power of two, and never full.
    slots: Box<[(NameHash, u16)]>,
    prefixes: Vec<PulledPrefix>,
}

impl Pulled {
    fn new(prefixes: Vec<PulledPrefix>) -> Self {
        let n_slots = (prefixes.len() * 2).next_power_of_two();
        let mut slots = vec![(NameHash(0), 0); n_slots].into_boxed_slice();
        let mut lengths = 0;
        for (idx, prefix) in prefixes.iter().enumerate() {
            lengths |= 1 << prefix.n_components;
            let mut at = place(prefix.hash, n_slots);
            while slots[at].1 != 0 {
                at = (at + 1) & (n_slots - 1);
            }
            slots[at] = (prefix.hash, idx as u16 + 1);
        }
        Self {
            lengths,
            slots,
            prefixes,
        }
    }

    /// Number of prefixes.
    pub(crate) const fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.prefixes.iter().map(|prefix| prefix.name.len()).sum();
        size_of_val(&*self.slots) + self.prefixes.capacity() * size_of::<PulledPrefix>() + names
    }

    /// Where a search for a name with these hashes begins: the longest prefix above it,
    /// and one component more than that has.
    pub(crate) fn start(&self, hashes: &[NameHash]) -> Option<(PulledId, usize)> {
        // The last component of the name is below the prefix.
        let mut lengths = self.lengths & below(hashes.len() - 1);
        while lengths != 0 {
            let length = lengths.ilog2() as usize;
            lengths &= !(1 << length);
            let id = self.find(hashes[length], length);
            if id != PulledId::NONE {
                return Some((id, length + 1));
            }
        }
        None
    }

    /// Whether `name` is below a pulled prefix.
    pub(crate) fn is_above(&self, id: PulledId, name: &[u8]) -> bool {
        name.starts_with(&self.prefixes[usize::from(id.0) - 1].name)
    }

    fn find(&self, hash: NameHash, length: usize) -> PulledId {
        let n_slots = self.slots.len();
        let mut at = place(hash, n_slots);
        loop {
            let (found, number) = self.slots[at];
            if number == 0 {
                return PulledId::NONE;
            }
            let has_length = |number: u16| {
                let prefix = &self.prefixes[usize::from(number) - 1];
                prefix.n_components == length
            };
            if found == hash && has_length(number) {
                return PulledId(number);
            }
            at = (at + 1) & (n_slots - 1);
        }
    }

    /// The length of the marker that a prefix with these hashes needs, for searches that
    /// begin there; `None`: it needs none.
    pub(crate) fn marker_length(&self, name: &[u8], hashes: &[NameHash]) -> Option<usize> {
        let (id, start) = self.start(hashes)?;
        // What stands where searches begin leads them nowhere else; and where hashes lie,
        // searches turn to names.
        (start < hashes.len() - 1 && self.is_above(id, name)).then_some(start)
    }
}

/// The prefixes that more than `min_children` different components follow, those with
/// most of them if there are too many; `None`: there is no memory to count them.
pub(crate) fn choose(
    (alloc, nodes): (&NodeAllocator, &Nodes),
    hasher: &dyn PrefixHasher,
    min_children: u32,
) -> Option<Pulled> {
    let n_children = count_children((alloc, nodes), hasher)?;
    let mut many: Vec<(u32, NameHash)> = n_children
        .into_iter()
        .filter(|&(_, n_children)| n_children > min_children)
        .map(|(hash, n_children)| (n_children, hash))
        .collect();
    many.sort_unstable_by_key(|&(n_children, hash)| (Reverse(n_children), hash.0));
    many.truncate(MAX_PULLED);
    let mut unnamed: HashSet<NameHash, FixedState> =
        many.into_iter().map(|(_, hash)| hash).collect();
    let mut prefixes = Vec::with_capacity(unnamed.len());
    for_each_prefix((alloc, nodes), hasher, |_, prefix, hashes| {
        for (n_components, &hash) in hashes[..prefix.len()].iter().enumerate().skip(1) {
            if unnamed.remove(&hash) {
                prefixes.push(PulledPrefix {
                    hash,
                    n_components,
                    name: prefix.prefix(n_components).value_bytes().into(),
                });
            }
        }
        (!unnamed.is_empty()).then_some(())
    });
    // In an order of their own, so that equal choices are equal.
    prefixes.sort_unstable_by_key(|prefix| prefix.hash.0);
    Some(Pulled::new(prefixes))
}

/// How many different components follow each name above some prefix, by its hash.
fn count_children(
    memory: (&NodeAllocator, &Nodes),
    hasher: &dyn PrefixHasher,
) -> Option<HashMap<NameHash, u32, FixedState>> {
    let mut n_children = HashMap::<NameHash, u32, FixedState>::default();
    for_each_prefix(memory, hasher, |_, prefix, hashes| {
        n_children.try_reserve(prefix.len() + 1).ok()?;
        let mut n_new = 0;
        // What has no component is above everything, and tells nothing.
        for &hash in hashes[1..].iter().rev() {
            let is_new = !n_children.contains_key(&hash);
            *n_children.entry(hash).or_insert(0) += n_new;
            if !is_new {
                break;
            }
            n_new = 1;
        }
        Some(())
    })?;
    Some(n_children)
}

/// Calls `f` with each prefix and its hashes, until it says `None`.
pub(crate) fn for_each_prefix(
    (alloc, nodes): (&NodeAllocator, &Nodes),
    hasher: &dyn PrefixHasher,
    mut f: impl FnMut(NodeRef, NameView<'_>, &[NameHash]) -> Option<()>,
) -> Option<()> {
    let (mut name, mut hashes) = (Vec::new(), Vec::new());
    let mut node = NodeRef::NONE;
    while let Some(next) = alloc.after(nodes, node) {
        node = next;
        if !nodes.first_level(node).is_own() {
            continue;
        }
        name.clear();
        nodes.copy_name(node, &mut name);
        let prefix = NameView::parse_value(&name).expect("copied from a name");
        hasher.hash_prefixes(prefix, &mut hashes);
        f(node, prefix, &hashes)?;
    }
    Some(())
}

fn place(hash: NameHash, n_slots: usize) -> usize {
    hash.0 as usize & (n_slots - 1)
}

/// The lengths below `length`.
const fn below(length: usize) -> u64 {
    match length {
        0..64 => (1 << length) - 1,
        _ => u64::MAX,
    }
}
