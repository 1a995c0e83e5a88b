//! When the hash table becomes another one.
//!
//! Owns how full a table may be, and which length a two-stage search asks for first. The
//! new table is complete before any reader sees it; readers go on with the old one until
//! they begin again.

use std::sync::Arc;

use tachonym_packet::{NameHash, NameView};

use super::super::MAX_PREFIX_COMPONENTS;
use super::super::buckets::Buckets;
use super::super::engines::FibEngine;
use super::super::markers::{self, Markers};
use super::super::nodes::{Level, NodeRef};
use super::super::view::Table;
use super::{Fib, Retired};

/// Words of a bucket.
const SLOTS_PER_BUCKET: usize = 8;
/// The hash table is copied into a larger one when it is this full.
const MAX_LOAD_PCT: usize = 75;
/// How full the larger one then is, and one that is made for what is expected.
const NEW_LOAD_PCT: usize = 50;
pub(super) const EXPECTED_LOAD_PCT: usize = 68;
const MIN_BUCKETS: usize = if cfg!(loom) { 1 } else { 16 };
/// The middle length of a two-stage search of few prefixes, and how many are not few.
pub(super) const DEFAULT_FIRST: usize = 2;
pub(super) const MIN_REPLAN: usize = 64;
/// Words that are copied at once: their buckets are fetched while others' names are hashed.
const COPY_BATCH: usize = 32;

impl Fib {
    /// Slots that are taken.
    fn n_slots(&self) -> usize {
        self.len + self.n_dead + self.markers.len()
    }

    /// Copies the hash table into a larger one before it is too full for one more prefix.
    /// Without memory for that the old one goes on until nothing fits.
    pub(super) fn make_room(&mut self, n_components: usize) {
        if self.shared.engine == (FibEngine::TwoStage { first: 0 }) && self.len >= self.replan_at {
            self.replan_at = self.len * 2;
            let _ = self.choose_first();
        }
        let markers = self
            .shared
            .engine
            .marker_lengths(self.markers.first(), n_components);
        // One marker more, if searches begin above it.
        self.grow_for(2 + markers.count_ones() as usize);
    }

    /// Copies the hash table into a larger one before so many more make it too full.
    pub(super) fn grow_for(&mut self, n_more: usize) {
        let n_slots = self.n_slots() + n_more;
        if n_slots * 100 > self.table.buckets.n_slots() * MAX_LOAD_PCT {
            let _ = self.grow(n_buckets_for(n_slots, NEW_LOAD_PCT));
        }
    }

    /// Copies the hash table into a larger one for what found no room, though written.
    pub(super) fn link_in_larger(&mut self) -> bool {
        let buckets = &self.table.buckets;
        let n_buckets = buckets.n_buckets() * 2;
        // A table that is half empty does not lack room: hashes collide.
        self.n_slots() * 100 > buckets.n_slots() * NEW_LOAD_PCT / 2
            && self.grow(n_buckets).is_some()
    }

    fn grow(&mut self, n_buckets: usize) -> Option<()> {
        let table = Buckets::new(n_buckets, self.config.pages).ok()?;
        let nodes = &self.shared.nodes;
        let mut hashes = Vec::new();
        let mut name = Vec::new();
        let mut batch = Vec::with_capacity(COPY_BATCH + MAX_PREFIX_COMPONENTS);
        let mut node = NodeRef::NONE;
        while let Some(next) = self.nodes.after(nodes, node) {
            node = next;
            if !nodes.is_in_use(node) {
                continue;
            }
            name.clear();
            nodes.copy_name(node, &mut name);
            let name = NameView::parse_value(&name).expect("copied from a name");
            if nodes.first_level(node).n_levels() == 1 {
                hashes.resize(name.len() + 1, NameHash::default());
                hashes[name.len()] = self.hasher.hash_name(name);
            } else {
                self.hasher.hash_prefixes(name, &mut hashes);
            }
            for level in nodes.levels(node) {
                let hash = hashes[level.n_components()];
                table.prefetch(hash);
                batch.push((hash, node, level));
            }
            if batch.len() >= COPY_BATCH {
                copy(&table, &mut batch)?;
            }
        }
        copy(&table, &mut batch)?;
        self.publish(table, self.markers.first());
        Some(())
    }

    /// Makes markers anew for the length that most prefixes have; nothing has changed if
    /// there is no memory for that.
    fn choose_first(&mut self) -> Option<()> {
        let lengths = 1..self.n_by_length.len();
        let first = lengths.max_by_key(|&length| (self.n_by_length[length], length))?;
        if first == self.markers.first() {
            return Some(());
        }
        let buckets = Buckets::new(self.table.buckets.n_buckets(), self.config.pages).ok()?;
        let mut markers =
            Markers::new(self.shared.engine, first, Arc::clone(self.markers.pulled()));
        let mut made = Vec::new();
        let is_complete = markers::make_all(
            (&mut markers, &mut made),
            (&mut self.nodes, &self.shared.nodes, &buckets),
            &*self.hasher,
        );
        if is_complete.is_none() {
            for node in made {
                self.nodes.free(&self.shared.nodes, node);
            }
            return None;
        }
        self.publish(buckets, first);
        // Searches of the old table need the old markers.
        self.shared.domain.wait(self.shared.domain.advance());
        let old = std::mem::replace(&mut self.markers, markers);
        for (node, length) in old.all() {
            let nodes = &self.shared.nodes;
            let level = nodes.level(node, length).expect("a marker's level");
            self.nodes.set_level(nodes, node, level.without_use());
            if !nodes.is_in_use(node) {
                self.retire(Retired::Node(node));
            }
        }
        Some(())
    }

    fn publish(&mut self, buckets: Buckets, first: usize) {
        self.table = Arc::new(Table { buckets, first });
        self.shared.publish_table(Arc::clone(&self.table));
    }
}

/// Adds levels of nodes to a table whose buckets have been fetched; `None`: there is no
/// room.
fn copy(table: &Buckets, batch: &mut Vec<(NameHash, NodeRef, Level)>) -> Option<()> {
    for (hash, node, level) in batch.drain(..) {
        if level.is_own() {
            table.insert(hash, node).ok()?;
        } else if level.is_marker() {
            table.insert_marker(hash, node).ok()?;
        }
    }
    Some(())
}

/// Buckets of a table that is `load_pct` full with so many nodes.
pub(super) fn n_buckets_for(n_nodes: usize, load_pct: usize) -> usize {
    (n_nodes * 100 / load_pct)
        .div_ceil(SLOTS_PER_BUCKET)
        .max(MIN_BUCKETS)
}
