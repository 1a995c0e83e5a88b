//! The tree of name prefixes under the RIB.
//!
//! Owns the nodes, their places and how they hang together: each prefix of a
//! prefix with routes is a node that knows its parent and, by an intrusive list,
//! its children. A child is found by one probe of a table keyed by parent and
//! component, so finding or adding a prefix costs a probe per component, however
//! many prefixes there are. Knows no rule about routes: see the parent module.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use tachonym_packet::{ComponentView, Name, NameView};

/// Place of a node in the tree. Places of removed nodes are used again.
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
    /// The last component, as a whole element; empty at the root and in a place
    /// that is free.
    component: Box<[u8]>,
    parent: NodeIdx,
    first_child: NodeIdx,
    prev_sibling: NodeIdx,
    /// In a free place: the next free one.
    next_sibling: NodeIdx,
    depth: u32,
    value: T,
}

/// A node in the table of components, with the hash that it is found under: without it
/// a table that grows would have to read every node.
#[derive(Clone, Copy, Debug)]
struct Child {
    hash: u32,
    idx: NodeIdx,
}

impl Child {
    /// The table takes its position from low bits and a tag from the highest ones.
    const fn position(hash: u32) -> u64 {
        (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A tree of prefixes with a value each.
#[derive(Debug)]
pub(super) struct NameTree<T> {
    nodes: Vec<Node<T>>,
    by_component: HashTable<Child>,
    hasher: RandomState,
    first_free: NodeIdx,
    /// A component's encoding while it is looked for.
    scratch: Vec<u8>,
}

impl<T: Default> NameTree<T> {
    /// A tree with nothing but the root.
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![Node {
                component: Box::default(),
                parent: NodeIdx::NONE,
                first_child: NodeIdx::NONE,
                prev_sibling: NodeIdx::NONE,
                next_sibling: NodeIdx::NONE,
                depth: 0,
                value: T::default(),
            }],
            by_component: HashTable::new(),
            hasher: RandomState::default(),
            first_free: NodeIdx::NONE,
            scratch: Vec::new(),
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
    pub(super) fn depth(&self, idx: NodeIdx) -> u32 {
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
        self.by_component.len() + 1
    }

    fn hash(hasher: &RandomState, parent: NodeIdx, component: &[u8]) -> u32 {
        let mut state = hasher.build_hasher();
        state.write_u32(parent.0);
        state.write(component);
        state.finish() as u32
    }

    fn find_child(&mut self, parent: NodeIdx, component: ComponentView<'_>) -> Option<NodeIdx> {
        self.scratch.clear();
        component.encode_into(&mut self.scratch);
        let hash = Self::hash(&self.hasher, parent, &self.scratch);
        let (nodes, wanted) = (&self.nodes, &*self.scratch);
        let found = self.by_component.find(Child::position(hash), |child| {
            child.hash == hash && {
                let node = &nodes[child.idx.0 as usize];
                node.parent == parent && *node.component == *wanted
            }
        });
        found.map(|child| child.idx)
    }

    /// The node of `name`, if it is in the tree.
    pub(super) fn find(&mut self, name: NameView<'_>) -> Option<NodeIdx> {
        name.components().try_fold(NodeIdx::ROOT, |idx, component| {
            self.find_child(idx, component)
        })
    }

    /// The nodes of the prefixes of `name` that are in the tree, from the root on.
    pub(super) fn path(&mut self, name: NameView<'_>) -> Vec<NodeIdx> {
        let mut nodes = vec![NodeIdx::ROOT];
        let mut idx = NodeIdx::ROOT;
        for component in name.components() {
            let Some(child) = self.find_child(idx, component) else {
                break;
            };
            nodes.push(child);
            idx = child;
        }
        nodes
    }

    /// The node of `name`; it and its ancestors are added where they are missing.
    pub(super) fn find_or_insert(&mut self, name: NameView<'_>) -> NodeIdx {
        name.components().fold(NodeIdx::ROOT, |idx, component| {
            match self.find_child(idx, component) {
                Some(child) => child,
                None => self.insert_child(idx),
            }
        })
    }

    /// Adds a child whose component is in `scratch`.
    fn insert_child(&mut self, parent: NodeIdx) -> NodeIdx {
        let next_sibling = self.node(parent).first_child;
        let node = Node {
            component: self.scratch.as_slice().into(),
            parent,
            first_child: NodeIdx::NONE,
            prev_sibling: NodeIdx::NONE,
            next_sibling,
            depth: self.node(parent).depth + 1,
            value: T::default(),
        };
        let idx = if let Some(free) = self.first_free.some() {
            self.first_free = self.node(free).next_sibling;
            *self.node_mut(free) = node;
            free
        } else {
            let idx = NodeIdx(u32::try_from(self.nodes.len()).expect("routes are bounded"));
            assert_ne!(idx, NodeIdx::NONE, "routes are bounded");
            self.nodes.push(node);
            idx
        };
        if next_sibling != NodeIdx::NONE {
            self.node_mut(next_sibling).prev_sibling = idx;
        }
        self.node_mut(parent).first_child = idx;
        let hash = Self::hash(&self.hasher, parent, &self.scratch);
        let child = Child { hash, idx };
        self.by_component
            .insert_unique(Child::position(hash), child, |child| {
                Child::position(child.hash)
            });
        idx
    }

    /// Removes the node and then its ancestors, up to the first that has
    /// children or that `is_needed`. The root stays.
    pub(super) fn prune(&mut self, mut idx: NodeIdx, is_needed: impl Fn(&T) -> bool) {
        while let Some(parent) = self.parent(idx) {
            let node = self.node(idx);
            if node.first_child != NodeIdx::NONE || is_needed(&node.value) {
                return;
            }
            let (prev, next) = (node.prev_sibling, node.next_sibling);
            let hash = Self::hash(&self.hasher, parent, &node.component);
            let is_it = |child: &Child| child.idx == idx;
            if let Ok(entry) = self.by_component.find_entry(Child::position(hash), is_it) {
                entry.remove();
            }
            if next != NodeIdx::NONE {
                self.node_mut(next).prev_sibling = prev;
            }
            if prev != NodeIdx::NONE {
                self.node_mut(prev).next_sibling = next;
            } else {
                self.node_mut(parent).first_child = next;
            }
            let free = self.first_free;
            let node = self.node_mut(idx);
            node.component = Box::default();
            node.value = T::default();
            // Pruning a place that is free already does nothing.
            node.parent = NodeIdx::NONE;
            node.next_sibling = free;
            self.first_free = idx;
            idx = parent;
        }
    }

    /// The name of a node.
    pub(super) fn name(&self, idx: NodeIdx) -> Name {
        let mut path = Vec::with_capacity(self.depth(idx) as usize);
        let mut at = idx;
        while let Some(parent) = self.parent(at) {
            path.push(&*self.node(at).component);
            at = parent;
        }
        let mut name = Name::new();
        for component in path.into_iter().rev() {
            let component = ComponentView::parse_element(component)
                .expect("a node holds the encoding of a component");
            name.push(component);
        }
        name
    }

    /// Bytes of the name of a node, as its TLV-VALUE.
    pub(super) fn name_bytes(&self, idx: NodeIdx) -> usize {
        let mut n_bytes = 0;
        let mut at = idx;
        while let Some(parent) = self.parent(at) {
            n_bytes += self.node(at).component.len();
            at = parent;
        }
        n_bytes
    }

    /// Calls `visit` for each node, parents before their children.
    pub(super) fn for_each<'t>(&'t self, mut visit: impl FnMut(NodeIdx, &'t T)) {
        let mut pending = vec![NodeIdx::ROOT];
        while let Some(idx) = pending.pop() {
            visit(idx, self.value(idx));
            let mut child = self.first_child(idx);
            while let Some(idx) = child {
                pending.push(idx);
                child = self.next_sibling(idx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
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
            assert_eq!(tree.depth(idx) as usize, name.len());
        }
        assert_eq!(tree.find(name("/c").view()), None);
        assert_eq!(tree.find(name("/a/b/d").view()), None);
        assert_eq!(tree.len(), 6);
    }

    #[test]
    fn pruning_keeps_needed_ancestors_and_reuses_places() {
        let mut tree = NameTree::<u32>::new();
        let a = tree.find_or_insert(name("/a").view());
        *tree.value_mut(a) = 1;
        let deep = tree.find_or_insert(name("/a/b/c/d").view());
        let side = tree.find_or_insert(name("/a/b/x").view());
        *tree.value_mut(side) = 1;
        tree.prune(deep, |&value| value != 0);
        assert_eq!(tree.find(name("/a/b/c").view()), None);
        assert_eq!(tree.find(name("/a/b/x").view()), Some(side));
        let n_places = tree.nodes.len();
        tree.find_or_insert(name("/q/r").view());
        assert_eq!(tree.nodes.len(), n_places);
        *tree.value_mut(side) = 0;
        tree.prune(side, |&value| value != 0);
        assert_eq!(tree.find(name("/a/b").view()), None);
        assert_eq!(tree.find(name("/a").view()), Some(a));
        assert_eq!(tree.len(), 4);
    }

    #[test]
    fn siblings_stay_linked_whichever_goes_first() {
        for victim in ["/a/1", "/a/2", "/a/3"] {
            let mut tree = NameTree::<u32>::new();
            for uri in ["/a/1", "/a/2", "/a/3"] {
                tree.find_or_insert(name(uri).view());
            }
            let idx = tree.find(name(victim).view()).unwrap();
            tree.prune(idx, |_| false);
            let mut left = Vec::new();
            tree.for_each(|idx, _| left.push(tree.name(idx).to_string()));
            left.sort();
            let mut wanted = vec!["/", "/a", "/a/1", "/a/2", "/a/3"];
            wanted.retain(|&uri| uri != victim);
            assert_eq!(left, wanted);
        }
    }
}
