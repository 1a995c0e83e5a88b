//! The tree of name prefixes under the RIB.
//!
//! Owns the nodes, their places and how they hang together. A node stands where a value
//! was asked for, or where names part; what lies between two nodes is one label of several
//! components (a Patricia tree whose letters are components). So there are fewer than two
//! nodes for each prefix with a value, however long names are. A child is found by one
//! probe of a table keyed by its parent and the first component of its label: finding or
//! adding a prefix costs a probe for each node on its way, however many prefixes there
//! are. All that is below a prefix hangs below one node, by intrusive lists.
//!
//! Knows no rule about routes: see the parent module.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tachonym_packet::{Components, Name, NameView};

/// Place of a node in the tree. It stays while the node does; places of removed nodes are
/// used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeIdx(u32);

impl NodeIdx {
    /// The node of the empty name; it is always there.
    pub(super) const ROOT: Self = Self(0);
    const NONE: Self = Self(u32::MAX);

    fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// One prefix.
#[derive(Debug)]
struct Node<T> {
    /// What the name has beyond the parent's, at least one component; empty at the root
    /// and in a place that is free.
    label: Box<[u8]>,
    parent: NodeIdx,
    first_child: NodeIdx,
    prev_sibling: NodeIdx,
    /// In a free place: the next free one.
    next_sibling: NodeIdx,
    /// Components of the name.
    depth: u8,
    value: T,
}

/// A node in the table of children, with the hash that it is found under: without it
/// a table that grows would have to read every node.
#[derive(Clone, Copy, Debug)]
struct Child {
    hash: u32,
    idx: NodeIdx,
}

impl Child {
    /// The table takes its position from low bits and a tag from the highest ones.
    const fn position(&self) -> u64 {
        (self.hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    const fn part(&self) -> usize {
        (self.hash >> (u32::BITS - PART_BITS)) as usize
    }
}

/// The table of children has 256 parts, so that growing by a copy takes a moment only.
const PART_BITS: u32 = 8;

/// The nodes by parent and first component of the label.
#[derive(Debug)]
struct Children {
    parts: Box<[HashTable<Child>]>,
    hasher: RandomState,
    len: usize,
}

impl Children {
    fn new() -> Self {
        Self {
            parts: (0..1 << PART_BITS).map(|_| HashTable::new()).collect(),
            hasher: RandomState::default(),
            len: 0,
        }
    }

    fn hash(&self, parent: NodeIdx, first: &[u8]) -> u32 {
        let mut state = self.hasher.build_hasher();
        state.write_u32(parent.0);
        state.write(first);
        state.finish() as u32
    }

    /// The child of `parent` whose label begins with the component `first`.
    fn find<T>(&self, nodes: &[Node<T>], parent: NodeIdx, first: &[u8]) -> Option<NodeIdx> {
        let key = Child {
            hash: self.hash(parent, first),
            idx: NodeIdx::NONE,
        };
        let found = self.parts[key.part()].find(key.position(), |child| {
            child.hash == key.hash && nodes[child.idx.0 as usize].is_child(parent, first)
        });
        found.map(|child| child.idx)
    }

    /// The same child; if there is none, `new` is it from now on.
    fn find_or_insert<T>(
        &mut self,
        nodes: &[Node<T>],
        (parent, first): (NodeIdx, &[u8]),
        new: NodeIdx,
    ) -> Option<NodeIdx> {
        let new = Child {
            hash: self.hash(parent, first),
            idx: new,
        };
        let is_it = |child: &Child| {
            child.hash == new.hash && nodes[child.idx.0 as usize].is_child(parent, first)
        };
        match self.parts[new.part()].entry(new.position(), is_it, Child::position) {
            Entry::Occupied(entry) => Some(entry.get().idx),
            Entry::Vacant(entry) => {
                entry.insert(new);
                self.len += 1;
                None
            }
        }
    }

    /// Puts `new` in the place of `old` as a child of `parent`.
    fn replace(&mut self, (parent, first): (NodeIdx, &[u8]), old: NodeIdx, new: NodeIdx) {
        let key = Child {
            hash: self.hash(parent, first),
            idx: old,
        };
        let child = self.parts[key.part()]
            .find_mut(key.position(), |child| child.idx == old)
            .expect("every node but the root is in the table");
        child.idx = new;
    }

    /// Adds a child that is not there.
    fn insert(&mut self, (parent, first): (NodeIdx, &[u8]), idx: NodeIdx) {
        let child = Child {
            hash: self.hash(parent, first),
            idx,
        };
        self.parts[child.part()].insert_unique(child.position(), child, Child::position);
        self.len += 1;
    }

    fn remove(&mut self, (parent, first): (NodeIdx, &[u8]), idx: NodeIdx) {
        let key = Child {
            hash: self.hash(parent, first),
            idx,
        };
        let entry = self.parts[key.part()]
            .find_entry(key.position(), |child| child.idx == idx)
            .expect("every node but the root is in the table");
        entry.remove();
        self.len -= 1;
    }

    fn memory_bytes(&self) -> usize {
        let tables: usize = self.parts.iter().map(HashTable::allocation_size).sum();
        tables + size_of_val(&*self.parts)
    }
}

impl<T> Node<T> {
    fn is_child(&self, parent: NodeIdx, first: &[u8]) -> bool {
        // An encoding of a component is no prefix of another one's.
        self.parent == parent && self.label.starts_with(first)
    }
}

/// A tree of prefixes with a value each.
#[derive(Debug)]
pub(super) struct NameTree<T> {
    nodes: Vec<Node<T>>,
    children: Children,
    first_free: NodeIdx,
    /// Bytes of labels.
    label_bytes: usize,
}

impl<T: Default> NameTree<T> {
    /// A tree with nothing but the root.
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![Node {
                label: Box::default(),
                parent: NodeIdx::NONE,
                first_child: NodeIdx::NONE,
                prev_sibling: NodeIdx::NONE,
                next_sibling: NodeIdx::NONE,
                depth: 0,
                value: T::default(),
            }],
            children: Children::new(),
            first_free: NodeIdx::NONE,
            label_bytes: 0,
        }
    }

    fn node(&self, idx: NodeIdx) -> &Node<T> {
        &self.nodes[idx.0 as usize]
    }

    fn node_mut(&mut self, idx: NodeIdx) -> &mut Node<T> {
        &mut self.nodes[idx.0 as usize]
    }

    /// The value of a node.
    pub(super) fn value(&self, idx: NodeIdx) -> &T {
        &self.node(idx).value
    }

    /// The value of a node, to change.
    pub(super) fn value_mut(&mut self, idx: NodeIdx) -> &mut T {
        &mut self.node_mut(idx).value
    }

    /// Number of components of the node's name.
    pub(super) fn depth(&self, idx: NodeIdx) -> u8 {
        self.node(idx).depth
    }

    /// The node above; `None` at the root.
    pub(super) fn parent(&self, idx: NodeIdx) -> Option<NodeIdx> {
        self.node(idx).parent.some()
    }

    /// The first of a node's children; the others follow by
    /// [`next_sibling`](Self::next_sibling), in no particular order.
    pub(super) fn first_child(&self, idx: NodeIdx) -> Option<NodeIdx> {
        self.node(idx).first_child.some()
    }

    /// The next child of the same parent.
    pub(super) fn next_sibling(&self, idx: NodeIdx) -> Option<NodeIdx> {
        self.node(idx).next_sibling.some()
    }

    /// Number of nodes, the root included.
    pub(super) fn len(&self) -> usize {
        self.children.len + 1
    }

    /// Bytes of nodes, labels and the table, without what the values hold elsewhere.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node<T>>() + self.label_bytes + self.children.memory_bytes()
    }

    /// The node of `name`, if it is in the tree.
    pub(super) fn find(&self, name: NameView<'_>) -> Option<NodeIdx> {
        let mut way = Way::new(name);
        while let Some(first) = way.first() {
            let child = self.children.find(&self.nodes, way.idx, first)?;
            if !way.pass(self, child) {
                return None;
            }
        }
        Some(way.idx)
    }

    /// The nodes of the prefixes of `name` that are in the tree, from the root on.
    pub(super) fn path(&self, name: NameView<'_>) -> Vec<NodeIdx> {
        let mut nodes = vec![NodeIdx::ROOT];
        let mut way = Way::new(name);
        while let Some(first) = way.first() {
            match self.children.find(&self.nodes, way.idx, first) {
                Some(child) if way.pass(self, child) => nodes.push(child),
                _ => break,
            }
        }
        nodes
    }

    /// The node of `name`, which has at most 255 components; it is added where it is
    /// missing.
    pub(super) fn find_or_insert(&mut self, name: NameView<'_>) -> NodeIdx {
        assert!(name.len() <= usize::from(u8::MAX), "depths are bytes");
        let mut way = Way::new(name);
        while let Some(first) = way.first() {
            let new = self.free_place();
            let key = (way.idx, first);
            match self.children.find_or_insert(&self.nodes, key, new) {
                None => {
                    let depth = name.len() as u8;
                    return self.add(new, way.idx, way.rest.into(), depth);
                }
                Some(child) if way.pass(self, child) => {}
                Some(child) => {
                    let (n_bytes, n_components) = self.common(&way, child);
                    let fork = self.split(child, n_bytes, n_components);
                    way.pass(self, fork);
                }
            }
        }
        way.idx
    }

    /// Bytes and number of the components that the rest of a way and a label begin with.
    fn common(&self, way: &Way<'_>, child: NodeIdx) -> (usize, u8) {
        let label = &*self.node(child).label;
        let (mut n_bytes, mut n_components) = (0, 0);
        for component in way.components.clone() {
            let end = n_bytes + component.wire_len();
            if label.get(n_bytes..end) != Some(&way.rest[n_bytes..end]) {
                break;
            }
            n_bytes = end;
            n_components += 1;
        }
        (n_bytes, n_components)
    }

    /// Inserts a node between `lower` and its parent. Its label is the first `n_bytes` of
    /// `lower`'s, with `n_components` components.
    fn split(&mut self, lower: NodeIdx, n_bytes: usize, n_components: u8) -> NodeIdx {
        let node = self.node_mut(lower);
        let (upper_label, lower_label) = node.label.split_at(n_bytes);
        let (upper_label, lower_label) = (Box::from(upper_label), Box::from(lower_label));
        let label = std::mem::replace(&mut node.label, lower_label);
        let parent = node.parent;
        let depth = self.depth(parent) + n_components;
        let upper = self.free_place();
        self.label_bytes -= n_bytes;
        self.put(
            upper,
            Node {
                label: upper_label,
                parent,
                first_child: lower,
                prev_sibling: NodeIdx::NONE,
                next_sibling: NodeIdx::NONE,
                depth,
                value: T::default(),
            },
        );
        self.take_place_of(lower, upper);
        let node = self.node_mut(lower);
        (node.parent, node.prev_sibling, node.next_sibling) = (upper, NodeIdx::NONE, NodeIdx::NONE);
        self.children
            .replace((parent, first_component(&label)), lower, upper);
        let lower_label = &self.nodes[lower.0 as usize].label;
        self.children
            .insert((upper, first_component(lower_label)), lower);
        upper
    }

    /// Removes a node that has one child and is not the root: the child takes its place.
    fn join(&mut self, upper: NodeIdx, lower: NodeIdx) {
        let label = [&*self.node(upper).label, &*self.node(lower).label].concat();
        let label = label.into_boxed_slice();
        let parent = self.node(upper).parent;
        let first = first_component(&self.node(lower).label).to_vec();
        self.children.remove((upper, &first), lower);
        self.children
            .replace((parent, first_component(&label)), upper, lower);
        self.take_place_of(upper, lower);
        let node = self.node_mut(lower);
        node.label = label;
        node.parent = parent;
        self.label_bytes += self.node(upper).label.len();
        self.free(upper);
    }

    /// In the list of `old`'s siblings, `new` comes instead.
    fn take_place_of(&mut self, old: NodeIdx, new: NodeIdx) {
        let node = self.node(old);
        let (parent, prev, next) = (node.parent, node.prev_sibling, node.next_sibling);
        self.link(parent, prev, new);
        let node = self.node_mut(new);
        (node.prev_sibling, node.next_sibling) = (prev, next);
        if next != NodeIdx::NONE {
            self.node_mut(next).prev_sibling = new;
        }
    }

    /// After `prev`, or as first child of `parent`, comes `next`.
    fn link(&mut self, parent: NodeIdx, prev: NodeIdx, next: NodeIdx) {
        match prev.some() {
            Some(prev) => self.node_mut(prev).next_sibling = next,
            None => self.node_mut(parent).first_child = next,
        }
    }

    /// Where the next node will be.
    fn free_place(&self) -> NodeIdx {
        self.first_free.some().unwrap_or_else(|| {
            let idx = NodeIdx(u32::try_from(self.nodes.len()).expect("routes are bounded"));
            assert_ne!(idx, NodeIdx::NONE, "routes are bounded");
            idx
        })
    }

    /// Fills the place that [`free_place`](Self::free_place) has told.
    fn put(&mut self, idx: NodeIdx, node: Node<T>) {
        self.label_bytes += node.label.len();
        match self.nodes.get_mut(idx.0 as usize) {
            Some(free) => {
                self.first_free = free.next_sibling;
                *free = node;
            }
            None => self.nodes.push(node),
        }
    }

    /// Adds a node without children that is in the table already.
    fn add(&mut self, idx: NodeIdx, parent: NodeIdx, label: Box<[u8]>, depth: u8) -> NodeIdx {
        let next_sibling = self.node(parent).first_child;
        self.put(
            idx,
            Node {
                label,
                parent,
                first_child: NodeIdx::NONE,
                prev_sibling: NodeIdx::NONE,
                next_sibling,
                depth,
                value: T::default(),
            },
        );
        if next_sibling != NodeIdx::NONE {
            self.node_mut(next_sibling).prev_sibling = idx;
        }
        self.node_mut(parent).first_child = idx;
        idx
    }

    /// Empties the place of a node that hangs nowhere any more.
    fn free(&mut self, idx: NodeIdx) {
        let next_sibling = self.first_free;
        self.label_bytes -= self.node(idx).label.len();
        *self.node_mut(idx) = Node {
            label: Box::default(),
            // Pruning a place that is free already does nothing.
            parent: NodeIdx::NONE,
            first_child: NodeIdx::NONE,
            prev_sibling: NodeIdx::NONE,
            next_sibling,
            depth: 0,
            value: T::default(),
        };
        self.first_free = idx;
    }

    /// Removes the node unless it `is_needed` or names part there; and then its parent by
    /// the same rule. The root stays.
    pub(super) fn prune(&mut self, mut idx: NodeIdx, is_needed: impl Fn(&T) -> bool) {
        while let Some(parent) = self.parent(idx) {
            let node = &self.nodes[idx.0 as usize];
            if is_needed(&node.value) {
                return;
            }
            if let Some(child) = node.first_child.some() {
                if self.next_sibling(child).is_none() {
                    self.join(idx, child);
                }
                return;
            }
            let (prev, next) = (node.prev_sibling, node.next_sibling);
            let first = first_component(&node.label);
            self.children.remove((parent, first), idx);
            if next != NodeIdx::NONE {
                self.node_mut(next).prev_sibling = prev;
            }
            self.link(parent, prev, next);
            self.free(idx);
            idx = parent;
        }
    }

    /// The name of a node.
    pub(super) fn name(&self, idx: NodeIdx) -> Name {
        let mut value = vec![0; self.name_bytes(idx)];
        let mut end = value.len();
        let mut at = idx;
        while let Some(parent) = self.parent(at) {
            let label = &self.node(at).label;
            value[end - label.len()..end].copy_from_slice(label);
            end -= label.len();
            at = parent;
        }
        let name = NameView::parse_value(&value).expect("labels are parts of names");
        name.to_name()
    }

    /// Bytes of the name of a node, as its TLV-VALUE.
    pub(super) fn name_bytes(&self, idx: NodeIdx) -> usize {
        let mut n_bytes = 0;
        let mut at = idx;
        while let Some(parent) = self.parent(at) {
            n_bytes += self.node(at).label.len();
            at = parent;
        }
        n_bytes
    }

    /// Calls `visit` for each node with its name, in canonical order of the names.
    pub(super) fn for_each<'t>(&'t self, mut visit: impl FnMut(NameView<'_>, &'t T)) {
        let mut value = Vec::new();
        let mut pending = vec![Pending {
            start: [0; 8],
            idx: NodeIdx::ROOT,
            n_bytes_above: 0,
        }];
        while let Some(next) = pending.pop() {
            let node = self.node(next.idx);
            value.truncate(next.n_bytes_above as usize);
            value.extend_from_slice(&node.label);
            let name = NameView::parse_value(&value).expect("labels are parts of names");
            visit(name, &node.value);
            let n_pending = pending.len();
            let mut child = node.first_child;
            while let Some(idx) = child.some() {
                let node = self.node(idx);
                pending.push(Pending {
                    start: start_of(&node.label),
                    idx,
                    n_bytes_above: value.len() as u32,
                });
                child = node.next_sibling;
            }
            // The order of encodings is the canonical one (packet format, section
            // "Canonical Order"), and no sibling's label begins with another's. The least
            // is visited next.
            pending[n_pending..].sort_unstable_by(|a, b| {
                let whole = || self.node(b.idx).label.cmp(&self.node(a.idx).label);
                b.start.cmp(&a.start).then_with(whole)
            });
        }
    }
}

/// A node that will be visited.
struct Pending {
    /// The first bytes of its label: most often they tell the order, and the node need not
    /// be read for it.
    start: [u8; 8],
    idx: NodeIdx,
    n_bytes_above: u32,
}

fn start_of(label: &[u8]) -> [u8; 8] {
    let mut start = [0; 8];
    let n_bytes = label.len().min(8);
    start[..n_bytes].copy_from_slice(&label[..n_bytes]);
    start
}

/// The first component of a label, as a whole element.
fn first_component(label: &[u8]) -> &[u8] {
    let name = NameView::parse_value(label).expect("labels are parts of names");
    let first = name.components().next().expect("labels have components");
    &label[..first.wire_len()]
}

/// A walk from the root towards a name.
struct Way<'n> {
    idx: NodeIdx,
    /// What is still to go.
    rest: &'n [u8],
    components: Components<'n>,
}

impl<'n> Way<'n> {
    fn new(name: NameView<'n>) -> Self {
        Self {
            idx: NodeIdx::ROOT,
            rest: name.value_bytes(),
            components: name.components(),
        }
    }

    /// The next component, as a whole element; `None`: this is the name.
    fn first(&self) -> Option<&'n [u8]> {
        let first = self.components.clone().next()?;
        Some(&self.rest[..first.wire_len()])
    }

    /// Goes on to a child of the node; false if that is not on the way.
    fn pass<T: Default>(&mut self, tree: &NameTree<T>, child: NodeIdx) -> bool {
        let node = tree.node(child);
        let Some(rest) = self.rest.strip_prefix(&*node.label) else {
            return false;
        };
        self.rest = rest;
        let n_components = node.depth - tree.depth(self.idx);
        self.components.nth(usize::from(n_components) - 1);
        self.idx = child;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn names<T: Default>(tree: &NameTree<T>) -> Vec<String> {
        let mut names = Vec::new();
        tree.for_each(|name, _| names.push(name.to_string()));
        names
    }

    /// Every node is needed or a fork, and the lists and the table agree.
    fn check(tree: &NameTree<u32>) {
        let mut pending = vec![NodeIdx::ROOT];
        let (mut n_nodes, mut label_bytes) = (0, 0);
        while let Some(idx) = pending.pop() {
            let node = tree.node(idx);
            n_nodes += 1;
            label_bytes += node.label.len();
            assert_eq!(tree.find(tree.name(idx).view()), Some(idx));
            assert_eq!(usize::from(node.depth), tree.name(idx).len());
            let mut n_children = 0;
            let (mut prev, mut child) = (NodeIdx::NONE, node.first_child);
            while let Some(idx) = child.some() {
                assert_eq!(tree.node(idx).prev_sibling, prev);
                pending.push(idx);
                n_children += 1;
                (prev, child) = (idx, tree.node(idx).next_sibling);
                assert_eq!(tree.parent(prev), Some(tree.find_parent_of(prev)));
            }
            assert!(idx == NodeIdx::ROOT || node.value != 0 || n_children > 1);
        }
        assert_eq!(n_nodes, tree.len());
        assert_eq!(label_bytes, tree.label_bytes);
    }

    impl NameTree<u32> {
        /// The longest proper prefix that is a node, by its name.
        fn find_parent_of(&self, idx: NodeIdx) -> NodeIdx {
            let path = self.path(self.name(idx).view());
            path[path.len() - 2]
        }
    }

    #[test]
    fn names_are_found_where_they_were_put() {
        let mut tree = NameTree::<u32>::new();
        let names = ["/", "/a", "/a/b", "/a/b/c", "/b", "/8=a/54=%01"].map(name);
        for (i, name) in names.iter().enumerate() {
            let idx = tree.find_or_insert(name.view());
            *tree.value_mut(idx) = i as u32 + 1;
        }
        for (i, name) in names.iter().enumerate() {
            let idx = tree.find(name.view()).unwrap();
            assert_eq!(*tree.value(idx), i as u32 + 1);
            assert_eq!(tree.name(idx), *name);
            assert_eq!(usize::from(tree.depth(idx)), name.len());
        }
        assert_eq!(tree.find(name("/c").view()), None);
        assert_eq!(tree.find(name("/a/b/d").view()), None);
        assert_eq!(tree.len(), 6);
        check(&tree);
    }

    #[test]
    fn a_long_name_is_one_node_until_another_parts_from_it() {
        let mut tree = NameTree::<u32>::new();
        let long = tree.find_or_insert(name("/a/b/c/d").view());
        *tree.value_mut(long) = 1;
        assert_eq!(names(&tree), ["/", "/a/b/c/d"]);
        let other = tree.find_or_insert(name("/a/b/x/y").view());
        *tree.value_mut(other) = 1;
        assert_eq!(names(&tree), ["/", "/a/b", "/a/b/c/d", "/a/b/x/y"]);
        check(&tree);
        // What is between has no node, and gets one without moving the others.
        assert_eq!(tree.find(name("/a/b/c").view()), None);
        let between = tree.find_or_insert(name("/a/b/c").view());
        *tree.value_mut(between) = 1;
        assert_eq!(tree.find(name("/a/b/c/d").view()), Some(long));
        assert_eq!(tree.parent(long), Some(between));
        assert_eq!(tree.path(name("/a/b/c/d/e").view()).len(), 4);
        check(&tree);
    }

    #[test]
    fn pruning_joins_what_no_name_parts_and_reuses_places() {
        let mut tree = NameTree::<u32>::new();
        let a = tree.find_or_insert(name("/a").view());
        let deep = tree.find_or_insert(name("/a/b/c/d").view());
        let side = tree.find_or_insert(name("/a/b/x").view());
        for idx in [a, deep, side] {
            *tree.value_mut(idx) = 1;
        }
        let n_places = tree.nodes.len();
        *tree.value_mut(deep) = 0;
        tree.prune(deep, |&value| value != 0);
        assert_eq!(names(&tree), ["/", "/a", "/a/b/x"]);
        assert_eq!(tree.find(name("/a/b/x").view()), Some(side));
        check(&tree);
        for uri in ["/q/r", "/q/s"] {
            let idx = tree.find_or_insert(name(uri).view());
            *tree.value_mut(idx) = 1;
        }
        assert_eq!(tree.nodes.len(), n_places + 1);
        for idx in [a, side] {
            *tree.value_mut(idx) = 0;
            tree.prune(idx, |&value| value != 0);
            check(&tree);
        }
        assert_eq!(names(&tree), ["/", "/q", "/q/r", "/q/s"]);
    }

    #[test]
    fn siblings_stay_linked_whichever_goes_first() {
        for victim in ["/a/1", "/a/2", "/a/3"] {
            let mut tree = NameTree::<u32>::new();
            for uri in ["/a/1", "/a/2", "/a/3"] {
                let idx = tree.find_or_insert(name(uri).view());
                *tree.value_mut(idx) = 1;
            }
            let idx = tree.find(name(victim).view()).unwrap();
            *tree.value_mut(idx) = 0;
            tree.prune(idx, |&value| value != 0);
            check(&tree);
            let mut wanted = vec!["/", "/a", "/a/1", "/a/2", "/a/3"];
            wanted.retain(|&uri| uri != victim);
            assert_eq!(names(&tree), wanted);
        }
    }

    /// Few components, of which one begins like another, so that names often part within
    /// a label; of several types and with lengths of one and three bytes.
    fn any_name() -> impl Strategy<Value = Name> {
        let component = prop_oneof![
            4 => prop::sample::select(vec!["a", "b", "aa"]).prop_map(String::from),
            1 => Just("54=a".to_owned()),
            1 => Just("x".repeat(300)),
        ];
        prop::collection::vec(component, 0..6).prop_map(|components| {
            let name = components.join("/");
            format!("/{name}").parse().unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// The tree holds what a map would hold, in the same order, and is no larger
        /// than it has to be.
        #[test]
        fn tree_is_a_map(steps in prop::collection::vec((any_name(), 0u32..3), 1..60)) {
            let mut tree = NameTree::<u32>::new();
            let mut map = BTreeMap::new();
            for (name, value) in steps {
                if value == 0 {
                    map.remove(&name);
                    if let Some(idx) = tree.find(name.view()) {
                        *tree.value_mut(idx) = 0;
                        tree.prune(idx, |&value| value != 0);
                    }
                } else {
                    let idx = tree.find_or_insert(name.view());
                    *tree.value_mut(idx) = value;
                    map.insert(name, value);
                }
                check(&tree);
                prop_assert!(tree.len() <= 2 * map.len() + 1);
                let mut listed = Vec::new();
                tree.for_each(|name, &value| {
                    if value != 0 {
                        listed.push((name.to_name(), value));
                    }
                });
                let wanted: Vec<_> = map.iter().map(|(name, &value)| (name.clone(), value)).collect();
                prop_assert_eq!(listed, wanted);
            }
        }
    }
}
