//! Which prefixes are pulled, as the FIB grows and shrinks.
//!
//! Owns the change from one choice to another. The markers that the new one needs are
//! there before readers begin searches by it, and those that only the old one needed go
//! when no reader is left that does so by that. Markers alone change no answer.

use std::sync::Arc;

use tachonym_packet::NameView;

use super::super::alternatives::markers::{Needed, needed_at};
use super::super::alternatives::pulled::{self, Pulled};
use super::super::nodes::NodeRef;
use super::Fib;

impl Fib {
    /// Number of prefixes below which searches begin lower down; see
    /// [`FibConfig::level_pulling`](super::FibConfig::level_pulling).
    #[must_use]
    pub fn n_pulled(&self) -> usize {
        self.markers.pulled().len()
    }

    /// Chooses those prefixes anew, as the FIB does by itself whenever it has become
    /// twice as large or half as large; their number. Without memory for the choice or
    /// for what it needs, they remain.
    pub fn pull_levels(&mut self) -> usize {
        if self.config.level_pulling > 0 {
            self.repull_at = Self::next_repull(self.len, self.config.level_pulling);
            let memory = (&self.nodes, &self.shared.nodes);
            let chosen = pulled::choose(memory, &*self.hasher, self.config.level_pulling);
            if let Some(chosen) = chosen
                && chosen != **self.markers.pulled()
            {
                self.pull(Arc::new(chosen));
            }
        }
        self.n_pulled()
    }

    /// Chooses pulled prefixes anew, if the FIB is another by now.
    pub(super) fn pull_levels_in_time(&mut self) {
        if self.config.level_pulling > 0 && !self.repull_at.contains(&self.len) {
            self.pull_levels();
        }
    }

    /// The sizes of a FIB that is still much the same as with `len` prefixes.
    pub(super) fn next_repull(len: usize, level_pulling: u32) -> std::ops::Range<usize> {
        // Fewer prefixes have too few components behind any of them.
        len / 2..(len * 2).max(level_pulling as usize + 1)
    }

    fn pull(&mut self, new: Arc<Pulled>) {
        let old = Arc::clone(self.markers.pulled());
        if let Err(stopped_at) = self.add_markers(&old, &new) {
            return self.drop_markers(&new, &old, Some(stopped_at));
        }
        self.markers.set_pulled(Arc::clone(&new));
        self.shared.publish_pulled(Arc::clone(&new));
        self.shared.domain.wait(self.shared.domain.advance());
        self.drop_markers(&old, &new, None);
    }

    /// Adds the markers that prefixes need with `new` and not with `old`; if there is no
    /// room for all, the prefix that lacks one.
    fn add_markers(&mut self, old: &Pulled, new: &Pulled) -> Result<(), NodeRef> {
        let mut name = Vec::new();
        let mut node = NodeRef::NONE;
        while let Some(next) = self.prefix_after(node, &mut name) {
            node = next;
            let prefix = NameView::parse_value(&name).expect("copied from a name");
            for marker in self.needed_only_with(new, old, prefix) {
                self.add_marker(&marker, prefix).ok_or(node)?;
            }
        }
        Ok(())
    }

    /// Drops the markers that prefixes need with `old` and not with `new`, up to the
    /// prefix at `end`.
    fn drop_markers(&mut self, old: &Pulled, new: &Pulled, end: Option<NodeRef>) {
        let mut name = Vec::new();
        let mut node = NodeRef::NONE;
        while let Some(next) = self.prefix_after(node, &mut name) {
            if Some(next) == end {
                break;
            }
            node = next;
            let prefix = NameView::parse_value(&name).expect("copied from a name");
            for marker in self.needed_only_with(old, new, prefix) {
                let at = marker.node.expect("it was needed");
                self.release_marker(at, &marker, prefix);
            }
        }
    }

    /// The markers that a prefix needs with one choice and not with another; hashes it.
    fn needed_only_with(
        &mut self,
        one: &Pulled,
        other: &Pulled,
        prefix: NameView<'_>,
    ) -> Vec<Needed> {
        self.hash(prefix).expect("it was inserted");
        let with_one = self.markers.lengths(one, prefix, &self.hashes);
        let with_other = self.markers.lengths(other, prefix, &self.hashes);
        let memory = (&self.shared.nodes, &self.table.buckets);
        needed_at(with_one & !with_other, memory, prefix, &self.hashes)
    }

    /// Adds a marker for the prefix that was hashed last, which was there before.
    fn add_marker(&mut self, marker: &Needed, prefix: NameView<'_>) -> Option<()> {
        if let Some(at) = marker.node {
            let nodes = &self.shared.nodes;
            self.markers
                .acquire(&self.nodes, nodes, at, marker, prefix.len());
            return Some(());
        }
        self.grow_for(1).ok()?;
        self.partitions.reserve(&self.shared.heirs, 1).ok()?;
        let level = self.markers.level(marker, prefix.len(), 1);
        let name = &prefix.value_bytes()[..marker.name_bytes];
        let at = self.nodes.write(&self.shared.nodes, &[level], name).ok()?;
        self.inherit(at, prefix, std::slice::from_ref(marker));
        self.markers
            .acquire(&self.nodes, &self.shared.nodes, at, marker, prefix.len());
        let hash = self.hashes[marker.length];
        if self.table.buckets.insert_marker(hash, at).is_err() {
            self.release_marker(at, marker, prefix);
            return None;
        }
        Some(())
    }

    /// The prefix behind `node` in memory, and its name.
    fn prefix_after(&self, node: NodeRef, name: &mut Vec<u8>) -> Option<NodeRef> {
        let nodes = &self.shared.nodes;
        let mut node = self.nodes.after(nodes, node)?;
        while !nodes.first_level(node).is_own() {
            node = self.nodes.after(nodes, node)?;
        }
        name.clear();
        nodes.copy_name(node, name);
        Some(node)
    }
}
