//! Doubly linked lists over numbered nodes.
//!
//! Owns the links of all nodes in one array, in which any number of lists lie side
//! by side; a node is on one list at a time. Knows nothing of what a node stands
//! for. All operations take constant time and allocate nothing.

use tachonym_memory::prefetch;

/// No node.
pub(crate) const NIL: u32 = u32::MAX;

/// The links of a node that is on no list. Only debug builds set them after a removal, to
/// notice a slot that is inserted or removed twice.
const OFF: [u32; 2] = [NIL - 1; 2];

/// The links of nodes `0..n_nodes`: of each, the next one towards the front, and
/// towards the back.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    nodes: Vec<[u32; 2]>,
}

impl Links {
    /// Nodes that are on no list.
    pub(crate) fn new(n_nodes: usize) -> Self {
        Self {
            nodes: vec![OFF; n_nodes],
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.nodes)
    }

    /// Fetches the links of a node.
    pub(crate) fn prefetch(&self, node: u32) {
        prefetch(&self.nodes[node as usize]);
    }

    /// The two nodes in front of one.
    pub(crate) fn two_before(&self, node: u32) -> [Option<u32>; 2] {
        let before = |node| (node != NIL).then(|| self.before(node));
        let next = before(node).filter(|&node| node != NIL);
        let second = next.map(|node| self.before(node));
        [next, second.filter(|&node| node != NIL)]
    }

    fn put(&mut self, node: u32, links: [u32; 2]) {
        let own = &mut self.nodes[node as usize];
        debug_assert_eq!(*own, OFF, "on a list already: {node}");
        *own = links;
    }

    fn take(&mut self, node: u32) -> [u32; 2] {
        let links = self.nodes[node as usize];
        debug_assert_ne!(links, OFF, "on no list: {node}");
        if cfg!(debug_assertions) {
            self.nodes[node as usize] = OFF;
        }
        links
    }

    /// The next node towards the front, or [`NIL`].
    pub(crate) fn before(&self, node: u32) -> u32 {
        self.nodes[node as usize][0]
    }
}

/// A list of nodes of one [`Links`]: methods take the same one each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    front: u32,
    back: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self {
            front: NIL,
            back: NIL,
            len: 0,
        }
    }
}

impl List {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn back(&self) -> Option<u32> {
        if self.back == NIL {
            None
        } else {
            Some(self.back)
        }
    }

    /// The two nodes in front of the one at the back.
    pub(crate) fn upcoming(&self, links: &Links) -> [Option<u32>; 2] {
        links.two_before(self.back)
    }

    /// Puts a node that is on no list in front of all others.
    pub(crate) fn push_front(&mut self, links: &mut Links, node: u32) {
        links.put(node, [NIL, self.front]);
        match self.front {
            NIL => self.back = node,
            front => links.nodes[front as usize][0] = node,
        }
        self.front = node;
        self.len += 1;
    }

    /// Puts a node that is on no list behind all others.
    pub(crate) fn push_back(&mut self, links: &mut Links, node: u32) {
        links.put(node, [self.back, NIL]);
        match self.back {
            NIL => self.front = node,
            back => links.nodes[back as usize][1] = node,
        }
        self.back = node;
        self.len += 1;
    }

    /// Puts a node that is on no list next to `node`, towards the front.
    pub(crate) fn insert_before(&mut self, links: &mut Links, node: u32, other: u32) {
        let [before, _] = links.nodes[node as usize];
        links.put(other, [before, node]);
        links.nodes[node as usize][0] = other;
        match before {
            NIL => self.front = other,
            before => links.nodes[before as usize][1] = other,
        }
        self.len += 1;
    }

    /// Takes out a node that is on this list.
    pub(crate) fn remove(&mut self, links: &mut Links, node: u32) {
        let [before, after] = links.take(node);
        match before {
            NIL => self.front = after,
            before => links.nodes[before as usize][1] = after,
        }
        match after {
            NIL => self.back = before,
            after => links.nodes[after as usize][0] = before,
        }
        self.len -= 1;
    }

    /// Takes out the node at the back.
    pub(crate) fn pop_back(&mut self, links: &mut Links) -> Option<u32> {
        let node = self.back()?;
        self.remove(links, node);
        Some(node)
    }

    /// Moves a node of this list in front of all others.
    pub(crate) fn move_to_front(&mut self, links: &mut Links, node: u32) {
        if self.front != node {
            self.remove(links, node);
            self.push_front(links, node);
        }
    }

    /// Puts `other`, which is on no list, in the place of `node`.
    pub(crate) fn replace(&mut self, links: &mut Links, node: u32, other: u32) {
        let [before, after] = links.take(node);
        links.put(other, [before, after]);
        match before {
            NIL => self.front = other,
            before => links.nodes[before as usize][1] = other,
        }
        match after {
            NIL => self.back = other,
            after => links.nodes[after as usize][0] = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(list: &List, links: &Links) -> Vec<u32> {
        let mut nodes = Vec::new();
        let mut at = list.front;
        while at != NIL {
            nodes.push(at);
            at = links.nodes[at as usize][1];
        }
        let mut backwards = Vec::new();
        at = list.back;
        while at != NIL {
            backwards.push(at);
            at = links.before(at);
        }
        backwards.reverse();
        assert_eq!(nodes, backwards);
        assert_eq!(nodes.len(), list.len());
        nodes
    }

    #[test]
    fn nodes_come_out_as_they_went_in() {
        let mut links = Links::new(6);
        let mut list = List::default();
        for node in 0..5 {
            list.push_front(&mut links, node);
        }
        assert_eq!(nodes(&list, &links), [4, 3, 2, 1, 0]);
        list.move_to_front(&mut links, 2);
        list.replace(&mut links, 1, 5);
        assert_eq!(nodes(&list, &links), [2, 4, 3, 5, 0]);
        list.remove(&mut links, 2);
        assert_eq!(list.pop_back(&mut links), Some(0));
        assert_eq!(nodes(&list, &links), [4, 3, 5]);
        list.replace(&mut links, 4, 0);
        list.replace(&mut links, 5, 1);
        assert_eq!(nodes(&list, &links), [0, 3, 1]);
        list.insert_before(&mut links, 1, 2);
        list.insert_before(&mut links, 0, 4);
        list.push_back(&mut links, 5);
        assert_eq!(nodes(&list, &links), [4, 0, 3, 2, 1, 5]);
        while list.pop_back(&mut links).is_some() {}
        assert!(list.is_empty() && list.front == NIL && list.back().is_none());
    }

    #[test]
    fn a_list_of_one_node_has_it_at_both_ends() {
        let mut links = Links::new(2);
        let mut list = List::default();
        list.push_front(&mut links, 1);
        list.move_to_front(&mut links, 1);
        list.replace(&mut links, 1, 0);
        assert_eq!((list.front, list.back), (0, 0));
        list.remove(&mut links, 0);
        assert_eq!((list.front, list.back, list.len()), (NIL, NIL, 0));
    }
}
