//! What the markers of a FIB inherit, as prefixes come and go.
//!
//! Owns when partitions change: new markers are in one before readers see them; a new
//! prefix is found itself before it is inherited, and one that goes is inherited no more
//! before it is found no more. Only the binary search asks for any of that.

use tachonym_packet::NameView;

use super::super::alternatives::FibEngine;
use super::super::alternatives::markers::Needed;
use super::super::nodes::NodeRef;
use super::{Fib, Retired};

impl Fib {
    /// Words that readers see and that were changed so far for what markers inherit
    /// from prefixes above them; see [`FibEngine::BinarySearch`].
    #[must_use]
    pub const fn n_inheritance_stores(&self) -> u64 {
        self.partitions.n_stores()
    }

    /// The new markers at the node of the prefix that was hashed last inherit.
    pub(super) fn inherit(&mut self, node: NodeRef, prefix: NameView<'_>, needed: &[Needed]) {
        if !self.has_heirs() {
            return;
        }
        for marker in needed.iter().filter(|marker| marker.node.is_none()) {
            let above = self.longest(prefix, marker.length);
            let memory = (&self.nodes, &self.shared.nodes, &self.shared.heirs);
            let name = &prefix.value_bytes()[..marker.name_bytes];
            self.partitions
                .join(memory, name, (node, marker.length), above);
        }
    }

    /// What is below the prefix that was hashed last inherits from it.
    pub(super) fn bequeath(&mut self, node: NodeRef, prefix: NameView<'_>) {
        if self.has_heirs() {
            let above = self.longest_above(prefix);
            self.replace(prefix, (above, node));
        }
    }

    /// What is below the prefix that was hashed last inherits from the next above it.
    pub(super) fn disinherit(&mut self, node: NodeRef, prefix: NameView<'_>) {
        if self.has_heirs() {
            let above = self.longest_above(prefix);
            self.replace(prefix, (node, above));
        }
    }

    /// A marker is gone.
    pub(super) fn leave(&mut self, node: NodeRef, name: &[u8], length: usize) {
        if !self.has_heirs() {
            return;
        }
        let mut retired = Vec::new();
        let memory = (&self.nodes, &self.shared.nodes, &self.shared.heirs);
        self.partitions
            .leave(memory, name, (node, length), &mut retired);
        for number in retired {
            self.retire(Retired::Partition(number));
        }
    }

    fn replace(&mut self, prefix: NameView<'_>, change: (NodeRef, NodeRef)) {
        let mut retired = Vec::new();
        let memory = (&self.nodes, &self.shared.nodes, &self.shared.heirs);
        self.partitions
            .replace(memory, prefix.value_bytes(), change, &mut retired);
        for number in retired {
            self.retire(Retired::Partition(number));
        }
    }

    fn longest_above(&self, prefix: NameView<'_>) -> NodeRef {
        match prefix.len() {
            0 => NodeRef::NONE,
            n_components => self.longest(prefix, n_components - 1),
        }
    }

    /// The longest prefix of the name that was hashed last, of `max_length` components
    /// at most.
    fn longest(&self, name: NameView<'_>, max_length: usize) -> NodeRef {
        let lengths = (0..=max_length).rev();
        let found = lengths
            .filter(|&length| self.n_by_length[length] > 0)
            .find_map(|length| self.find_node(name.prefix(length), self.hashes[length]));
        found.map_or(NodeRef::NONE, |(node, _)| node)
    }

    fn has_heirs(&self) -> bool {
        self.shared.engine == FibEngine::BinarySearch
    }
}
