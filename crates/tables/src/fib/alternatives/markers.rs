//! Markers: the places of shorter prefixes that lead a search on to longer ones.
//!
//! Owns which prefix needs which marker, for the engine and below pulled prefixes, and how
//! many need each. A marker is a word of
//! the hash table that leads to some longer prefix whose first bytes are its own (Yuan
//! 2015, section 3.3.2), as one of the levels of that node. The levels of a node are
//! made with it and used once, so what a search knows of a marker is of that one. A
//! prefix that is removed leaves its bytes behind while markers need them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use tachonym_packet::{NameHash, NameView};

use super::super::buckets::Buckets;
use super::super::hasher::PrefixHasher;
use super::super::nodes::{Level, NodeAllocator, NodeRef, Nodes};
use super::pulled::Pulled;
use super::{FibEngine, reach_bit};

/// Whose users are counted: a marker, and for markers of the two-stage search the length
/// of the prefixes that use it, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Use(u64);

impl Use {
    const fn new(marker: NodeRef, length: usize, below: usize) -> Self {
        Self(marker.0 | (length as u64) << 48 | (below as u64) << 56)
    }
}

/// A marker that a prefix needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    pub(crate) length: usize,
    pub(crate) name_bytes: usize,
    /// Where it is; `None`: it has to be made.
    pub(crate) node: Option<NodeRef>,
}

/// What has become of a marker that one prefix less needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// Others need it.
    Needed,
    /// It is gone.
    Gone,
    /// It is gone, and nothing else needs its node; readers may know of it.
    GoneWithNode,
}

/// What the writer knows of the markers in a table.
#[derive(Debug)]
pub(crate) struct Markers {
    engine: FibEngine,
    /// The middle length of a two-stage search.
    first: usize,
    /// Below these, searches begin lower down.
    pulled: Arc<Pulled>,
    users: HashMap<Use, u32, foldhash::fast::FixedState>,
    len: usize,
}

impl Markers {
    pub(crate) fn new(engine: FibEngine, first: usize, pulled: Arc<Pulled>) -> Self {
        Self {
            engine,
            first,
            pulled,
            users: HashMap::default(),
            len: 0,
        }
    }

    /// Number of markers.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The middle length of a two-stage search.
    pub(crate) const fn first(&self) -> usize {
        self.first
    }

    /// The prefixes below which searches begin lower down.
    pub(crate) const fn pulled(&self) -> &Arc<Pulled> {
        &self.pulled
    }

    /// From now on prefixes need markers for these; those that are there need them already.
    pub(crate) fn set_pulled(&mut self, pulled: Arc<Pulled>) {
        self.pulled = pulled;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.users.allocation_size() + self.pulled.memory_bytes()
    }

    /// The lengths of the markers that a prefix needs, if these are `pulled`.
    pub(crate) fn lengths(
        &self,
        pulled: &Pulled,
        prefix: NameView<'_>,
        hashes: &[NameHash],
    ) -> u64 {
        let below_pulled = pulled.marker_length(prefix.value_bytes(), hashes);
        self.engine.marker_lengths(self.first, prefix.len())
            | below_pulled.map_or(0, |length| 1 << length)
    }

    /// The markers that a prefix needs, the longest first.
    pub(crate) fn needed(
        &self,
        nodes: &Nodes,
        table: &Buckets,
        prefix: NameView<'_>,
        hashes: &[NameHash],
    ) -> Vec<Needed> {
        needed_at(
            self.lengths(&self.pulled, prefix, hashes),
            (nodes, table),
            prefix,
            hashes,
        )
    }

    /// The levels of a new node for the prefix whose level is `own`.
    pub(crate) fn levels(&self, own: Level, needed: &[Needed]) -> Vec<Level> {
        let missing = || needed.iter().filter(|marker| marker.node.is_none());
        let n_levels = 1 + missing().count();
        let mut levels = vec![own.with_n_levels(n_levels)];
        levels.extend(missing().map(|marker| self.level(marker, own.n_components(), 1)));
        levels
    }

    /// The level of a marker that some prefix of `n_components` needs.
    pub(crate) fn level(&self, marker: &Needed, n_components: usize, n_levels: usize) -> Level {
        let info = match self.engine {
            FibEngine::TwoStage { .. } => reach_bit(marker.length, n_components),
            _ => 0,
        };
        Level::new(marker.name_bytes, marker.length, n_levels).with_marker(info)
    }

    /// A prefix of `n_components` needs the marker at `node`.
    pub(crate) fn acquire(
        &mut self,
        alloc: &NodeAllocator,
        nodes: &Nodes,
        node: NodeRef,
        marker: &Needed,
        n_components: usize,
    ) {
        let key = self.key(node, marker.length, n_components);
        let n_users = self.users.entry(key).or_insert(0);
        *n_users += 1;
        if *n_users == 1 && matches!(self.engine, FibEngine::TwoStage { .. }) {
            let level = nodes.level(node, marker.length).expect("a marker's level");
            let info = level.info() | reach_bit(marker.length, n_components);
            alloc.set_level(nodes, node, level.with_marker(info));
        }
        self.len += usize::from(marker.node.is_none());
    }

    /// A prefix of `n_components` does not need the marker at `node` any more.
    pub(crate) fn release(
        &mut self,
        (alloc, nodes, table): (&NodeAllocator, &Nodes, &Buckets),
        node: NodeRef,
        (length, hash): (usize, NameHash),
        n_components: usize,
    ) -> Released {
        let key = self.key(node, length, n_components);
        let n_users = self.users.get_mut(&key).expect("a marker that is needed");
        *n_users -= 1;
        if *n_users > 0 {
            return Released::Needed;
        }
        self.users.remove(&key);
        let level = nodes.level(node, length).expect("a marker's level");
        if matches!(self.engine, FibEngine::TwoStage { .. }) {
            // Several lengths may share a bit.
            let rest =
                (length + 1..64).filter(|&n| self.users.contains_key(&self.key(node, length, n)));
            let info = rest.fold(0, |info, n| info | reach_bit(length, n));
            if info != 0 {
                alloc.set_level(nodes, node, level.with_marker(info));
                return Released::Needed;
            }
        }
        table.remove_marker(hash, node);
        self.len -= 1;
        alloc.set_level(nodes, node, level.without_use());
        if nodes.is_in_use(node) {
            Released::Gone
        } else {
            Released::GoneWithNode
        }
    }

    /// Every marker: its node and length.
    pub(crate) fn all(&self) -> BTreeSet<(NodeRef, usize)> {
        let keys = self.users.keys();
        keys.map(|key| {
            (
                NodeRef(key.0 & ((1 << 48) - 1)),
                (key.0 >> 48 & 63) as usize,
            )
        })
        .collect()
    }

    fn key(&self, node: NodeRef, length: usize, n_components: usize) -> Use {
        match self.engine {
            FibEngine::TwoStage { .. } => Use::new(node, length, n_components),
            _ => Use::new(node, length, 0),
        }
    }
}

/// The markers of a prefix at some lengths, the longest first.
pub(crate) fn needed_at(
    lengths: u64,
    (nodes, table): (&Nodes, &Buckets),
    prefix: NameView<'_>,
    hashes: &[NameHash],
) -> Vec<Needed> {
    let mut lengths = lengths;
    let mut needed = Vec::with_capacity(lengths.count_ones() as usize);
    while lengths != 0 {
        let length = lengths.ilog2() as usize;
        lengths &= !(1 << length);
        let name = prefix.prefix(length).value_bytes();
        needed.push(Needed {
            length,
            name_bytes: name.len(),
            node: find(nodes, table, name, length, hashes[length]),
        });
    }
    needed
}

/// The node of the marker of this name, which has `length` components.
pub(crate) fn find(
    nodes: &Nodes,
    table: &Buckets,
    name: &[u8],
    length: usize,
    hash: NameHash,
) -> Option<NodeRef> {
    let is_it = |node| {
        nodes.level(node, length).is_some_and(|level| {
            level.is_marker()
                && level.name_bytes() == name.len()
                && nodes.is_prefix_of(node, level, name)
        })
    };
    let slot = table.find(hash, |slot| slot.is_marker() && is_it(slot.node()))?;
    Some(slot.node())
}

/// Fills an empty table with every prefix, and with its markers, each at a node of its
/// own. The new nodes are added to `made`, and no reader knows of them; `None`: there is
/// no memory or room for all.
pub(crate) fn make_all(
    (markers, made): (&mut Markers, &mut Vec<NodeRef>),
    (alloc, nodes, table): (&mut NodeAllocator, &Nodes, &Buckets),
    hasher: &dyn PrefixHasher,
) -> Option<()> {
    let mut hashes = Vec::new();
    let mut name = Vec::new();
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
        table.insert(hashes[prefix.len()], node).ok()?;
        for marker in markers.needed(nodes, table, prefix, &hashes) {
            let at = match marker.node {
                Some(at) => at,
                None => {
                    let level = markers.level(&marker, prefix.len(), 1);
                    let at = alloc
                        .write(nodes, &[level], &name[..marker.name_bytes])
                        .ok()?;
                    made.push(at);
                    table.insert_marker(hashes[marker.length], at).ok()?;
                    at
                }
            };
            markers.acquire(alloc, nodes, at, &marker, prefix.len());
        }
    }
    Some(())
}
