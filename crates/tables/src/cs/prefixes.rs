//! The tree of names above the cached Data.
//!
//! Owns a node for each proper prefix of a cached name, with its children,
//! newest first: nodes, and Data one component longer. It answers which Data
//! lies under a name. A Data waits at first, in order of arrival, and is entered
//! when the store says so; until then it is found below no node. Nodes store no name; each points to a Data below it, of
//! whose name its own is a prefix, and is repointed when that Data goes. A node
//! without children is removed, so the Data bound the nodes. Names are at most
//! [`MAX_CS_COMPONENTS`] long, which bounds every walk.

use tachonym_packet::{HashKey, NameHash, NameHashes, NameView};

use super::entry::CsEntry;
use crate::hash_index::HashIndex;
use crate::slab::Slab;

/// Most components of a name in a [`ContentStore`](super::ContentStore).
pub const MAX_CS_COMPONENTS: usize = 64;

/// What a node costs, in bytes: slot, place in the free list, and nine bytes in
/// an index between 7/16 and 7/8 full.
pub(super) const NODE_BYTES: usize = size_of::<Node>() + 4 + 20;

/// Most children looked at in search of a fresh Data.
pub(super) const MAX_FRESH_VISITS: usize = 128;

const NIL: u32 = u32::MAX;

/// Parent of a Data that waits to be entered.
const WAITING: u32 = u32::MAX - 1;

/// A child of a node: a Data or a node, told apart by the highest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data(u32),
    Node(u32),
}

impl Child {
    pub(super) const NONE: Self = Self(NIL);
    const NODE_BIT: u32 = 1 << 31;

    pub(super) const fn data(slot: u32) -> Self {
        Self(slot)
    }

    const fn node(node: u32) -> Self {
        Self(node | Self::NODE_BIT)
    }

    const fn kind(self) -> Option<Kind> {
        match self.0 {
            NIL => None,
            id if id & Self::NODE_BIT == 0 => Some(Kind::Data(id)),
            id => Some(Kind::Node(id & !Self::NODE_BIT)),
        }
    }
}

/// Place of a child among its siblings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    parent: u32,
    newer: Child,
    older: Child,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            parent: NIL,
            newer: Child::NONE,
            older: Child::NONE,
        }
    }
}

#[derive(Debug)]
struct Node {
    hash: NameHash,
    place: Place,
    newest_child: Child,
    /// A Data below this node; of no meaning in the root.
    sample: u32,
    /// Length of this prefix in the sample's name.
    prefix_bytes: u16,
    n_components: u16,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            hash: NameHash(0),
            place: Place::default(),
            newest_child: Child::NONE,
            sample: NIL,
            prefix_bytes: 0,
            n_components: 0,
        }
    }
}

/// A search that found nothing so far and has gone on long enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchGivenUp;

/// See the module. Data are the slots of the content store, passed to each
/// call.
#[derive(Debug)]
pub(super) struct PrefixTree {
    nodes: Slab<Node>,
    index: HashIndex,
    n_nodes: usize,
    root: u32,
    key: HashKey,
    hashes: NameHashes,
    /// Ends of the list of Data that wait, which are linked as siblings are.
    oldest_waiting: Child,
    newest_waiting: Child,
}

impl PrefixTree {
    pub(super) fn new(key: HashKey) -> Self {
        let mut nodes = Slab::new();
        let root = nodes.alloc();
        Self {
            nodes,
            index: HashIndex::new(),
            n_nodes: 0,
            root,
            key,
            hashes: NameHashes::new(),
            oldest_waiting: Child::NONE,
            newest_waiting: Child::NONE,
        }
    }

    /// Nodes but the root, which is always there.
    pub(super) const fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.index.memory_bytes()
    }

    /// Node of `name`.
    pub(super) fn find(&self, name: NameView<'_>, data: &Slab<CsEntry>) -> Option<u32> {
        if name.is_empty() {
            return Some(self.root);
        }
        if self.n_nodes == 0 {
            return None;
        }
        let hash = self.key.hash_name(name);
        self.find_node(name.value_bytes(), name.len(), hash, data)
    }

    /// Node of the first `n_components` components of a name that begins with
    /// `name`.
    fn find_node(
        &self,
        name: &[u8],
        n_components: usize,
        hash: NameHash,
        data: &Slab<CsEntry>,
    ) -> Option<u32> {
        self.index.find(hash.0, |id| {
            let node = &self.nodes[id];
            usize::from(node.n_components) == n_components
                && node.hash == hash
                && name
                    .starts_with(&data[node.sample].name_bytes()[..usize::from(node.prefix_bytes)])
        })
    }

    /// Adds a Data, of at least one and at most [`MAX_CS_COMPONENTS`]
    /// components, as the newest of those that wait.
    pub(super) fn push_waiting(&mut self, slot: u32, data: &mut Slab<CsEntry>) {
        let older = std::mem::replace(&mut self.newest_waiting, Child::data(slot));
        data[slot].place = Place {
            parent: WAITING,
            newer: Child::NONE,
            older,
        };
        match older {
            Child::NONE => self.oldest_waiting = Child::data(slot),
            older => self.set_place(older, data, |place| place.newer = Child::data(slot)),
        }
    }

    fn unlink_waiting(&mut self, slot: u32, data: &mut Slab<CsEntry>) {
        let Place { newer, older, .. } = data[slot].place;
        match newer {
            Child::NONE => self.newest_waiting = older,
            newer => self.set_place(newer, data, |place| place.older = older),
        }
        match older {
            Child::NONE => self.oldest_waiting = newer,
            older => self.set_place(older, data, |place| place.newer = newer),
        }
    }

    /// Enters up to `limit` of the Data that wait, those that came first. False
    /// if more do.
    pub(super) fn enter(&mut self, limit: usize, data: &mut Slab<CsEntry>) -> bool {
        for _ in 0..limit {
            let Some(Kind::Data(slot)) = self.oldest_waiting.kind() else {
                return true;
            };
            self.unlink_waiting(slot, data);
            self.insert(slot, data);
        }
        self.oldest_waiting == Child::NONE
    }

    /// Whether a Data that waits has a name that begins with `prefix`.
    pub(super) fn is_any_waiting_below(&self, prefix: NameView<'_>, data: &Slab<CsEntry>) -> bool {
        let mut waiting = self.newest_waiting;
        while let Some(Kind::Data(slot)) = waiting.kind() {
            if data[slot].name().starts_with(prefix) {
                return true;
            }
            waiting = data[slot].place.older;
        }
        false
    }

    /// Enters a Data as the newest under all its prefixes.
    fn insert(&mut self, slot: u32, data: &mut Slab<CsEntry>) {
        let name = data[slot].name();
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        let span = hashes.push_name(&self.key, name);
        let parent = self.make_parents(slot, hashes.slice(span), data);
        self.hashes = hashes;
        self.link(Child::data(slot), parent, data);
    }

    /// The node above a Data, with all above it the newest of their siblings.
    fn make_parents(&mut self, slot: u32, hashes: &[NameHash], data: &mut Slab<CsEntry>) -> u32 {
        let name = data[slot].name();
        let n_parent = name.len() - 1;
        let (mut parent, n_known) = (1..=n_parent)
            .rev()
            .find_map(|n| Some((self.find_node(name.value_bytes(), n, hashes[n], data)?, n)))
            .unwrap_or((self.root, 0));
        self.make_newest(parent, data);
        if n_known < n_parent {
            let new_prefixes = hashes.iter().enumerate().take(n_parent + 1);
            for (n_components, &hash) in new_prefixes.skip(n_known + 1) {
                let prefix_bytes = data[slot].name().prefix(n_components).value_bytes().len();
                let node = self.nodes.alloc();
                self.nodes[node] = Node {
                    hash,
                    sample: slot,
                    prefix_bytes: prefix_bytes as u16,
                    n_components: n_components as u16,
                    ..Node::default()
                };
                self.n_nodes += 1;
                self.index.insert(hash.0, node);
                self.link(Child::node(node), parent, data);
                parent = node;
            }
        }
        parent
    }

    /// Makes a Data the newest again, under all its prefixes or of those that
    /// wait.
    pub(super) fn touch(&mut self, slot: u32, data: &mut Slab<CsEntry>) {
        if self.newest_waiting != Child::NONE {
            // Those that wait must not become newer than it.
            self.remove(slot, data);
            return self.push_waiting(slot, data);
        }
        let parent = data[slot].place.parent;
        self.raise(Child::data(slot), data);
        self.make_newest(parent, data);
    }

    /// Takes a Data out, and the nodes that have nothing below them without it.
    /// Its name must still be in its slot.
    pub(super) fn remove(&mut self, slot: u32, data: &mut Slab<CsEntry>) {
        let mut node = data[slot].place.parent;
        if node == WAITING {
            return self.unlink_waiting(slot, data);
        }
        self.unlink(Child::data(slot), data);
        while node != NIL {
            let parent = self.nodes[node].place.parent;
            match self.nodes[node].newest_child.kind() {
                None if node != self.root => {
                    self.unlink(Child::node(node), data);
                    self.index.remove(self.nodes[node].hash.0, node);
                    self.nodes.free(node);
                    self.n_nodes -= 1;
                }
                Some(child) if self.nodes[node].sample == slot => {
                    // Nodes below were repointed before.
                    self.nodes[node].sample = match child {
                        Kind::Data(other) => other,
                        Kind::Node(other) => self.nodes[other].sample,
                    };
                }
                _ => {}
            }
            node = parent;
        }
    }

    /// The newest Data below a node: the last to arrive among the newest
    /// subtrees.
    pub(super) fn newest_below(&self, node: u32) -> Option<u32> {
        let mut child = self.nodes[node].newest_child;
        loop {
            match child.kind()? {
                Kind::Data(slot) => return Some(slot),
                Kind::Node(node) => child = self.nodes[node].newest_child,
            }
        }
    }

    /// The first Data below a node, newest first, that `accepts` takes.
    ///
    /// # Errors
    /// If there is none among the first [`MAX_FRESH_VISITS`] children.
    pub(super) fn find_below(
        &self,
        node: u32,
        data: &Slab<CsEntry>,
        mut accepts: impl FnMut(&CsEntry) -> bool,
    ) -> Result<Option<u32>, SearchGivenUp> {
        let mut child = self.nodes[node].newest_child;
        for _ in 0..MAX_FRESH_VISITS {
            child = match child.kind() {
                None => return Ok(None),
                Some(Kind::Data(slot)) if accepts(&data[slot]) => return Ok(Some(slot)),
                Some(Kind::Data(_)) => self.next_below(node, child, data),
                Some(Kind::Node(inner)) => self.nodes[inner].newest_child,
            };
        }
        Err(SearchGivenUp)
    }

    /// What follows `child` and all below it, on the walk below `top`.
    fn next_below(&self, top: u32, mut child: Child, data: &Slab<CsEntry>) -> Child {
        loop {
            let place = self.place(child, data);
            if place.older != Child::NONE || place.parent == top {
                return place.older;
            }
            child = Child::node(place.parent);
        }
    }

    fn place(&self, child: Child, data: &Slab<CsEntry>) -> Place {
        match child.kind() {
            None => Place::default(),
            Some(Kind::Data(slot)) => data[slot].place,
            Some(Kind::Node(node)) => self.nodes[node].place,
        }
    }

    /// Changes the place of a child, if there is one.
    fn set_place(&mut self, child: Child, data: &mut Slab<CsEntry>, set: impl FnOnce(&mut Place)) {
        match child.kind() {
            None => {}
            Some(Kind::Data(slot)) => set(&mut data[slot].place),
            Some(Kind::Node(node)) => set(&mut self.nodes[node].place),
        }
    }

    /// Moves a node and all above it to the front of their siblings.
    fn make_newest(&mut self, mut node: u32, data: &mut Slab<CsEntry>) {
        while node != self.root {
            self.raise(Child::node(node), data);
            node = self.nodes[node].place.parent;
        }
    }

    fn raise(&mut self, child: Child, data: &mut Slab<CsEntry>) {
        let Place { parent, newer, .. } = self.place(child, data);
        if newer != Child::NONE {
            self.unlink(child, data);
            self.link(child, parent, data);
        }
    }

    /// Makes `child` the newest of `parent`.
    fn link(&mut self, child: Child, parent: u32, data: &mut Slab<CsEntry>) {
        let older = std::mem::replace(&mut self.nodes[parent].newest_child, child);
        self.set_place(older, data, |place| place.newer = child);
        self.set_place(child, data, |place| {
            *place = Place {
                parent,
                newer: Child::NONE,
                older,
            };
        });
    }

    fn unlink(&mut self, child: Child, data: &mut Slab<CsEntry>) {
        let Place {
            parent,
            newer,
            older,
        } = self.place(child, data);
        if newer == Child::NONE {
            self.nodes[parent].newest_child = older;
        }
        self.set_place(newer, data, |place| place.older = older);
        self.set_place(older, data, |place| place.newer = newer);
    }
}
