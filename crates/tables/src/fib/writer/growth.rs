//! When the hash table becomes another one.
//!
//! Owns how full a table may be, and which length a two-stage search asks for first. The
//! new table is complete before any reader sees it; readers go on with the old one until
//! they begin again.

use std::sync::Arc;

use tachonym_packet::{NameHash, NameView};

use super::super::MAX_PREFIX_COMPONENTS;
use super::super::alternatives::FibEngine;
use super::super::alternatives::markers::{self, Markers};
use super::super::buckets::{Buckets, NoRoom};
use super::super::nodes::{Level, NodeRef};
use super::super::view::Table;
use super::{Fib, FibError, Retired};

/// Words of a bucket.
const SLOTS_PER_BUCKET: usize = 8;
/// The hash table is copied into a larger one when it is this full.
const MAX_LOAD_PCT: usize = 75;
/// Without memory for a larger one it may become this full.
const FULL_LOAD_PCT: usize = 85;
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

    /// Copies the hash table before it is too full for one more prefix.
    ///
    /// # Errors
    /// As [`Fib::grow_for`].
    pub(super) fn make_room(&mut self, n_components: usize) -> Result<(), FibError> {
        if self.shared.engine == (FibEngine::TwoStage { first: 0 }) && self.len >= self.replan_at {
            self.replan_at = self.len * 2;
            let _ = self.choose_first();
        }
        let markers = self
            .shared
            .engine
            .marker_lengths(self.markers.first(), n_components);
        // One marker more, if searches begin above it.
        self.grow_for(2 + markers.count_ones() as usize)
    }

    /// Copies the hash table into a larger one before so many more make it too full, or
    /// into one of its size without the marks of what has gone. Without memory for that
    /// the old one goes on for a while.
    ///
    /// # Errors
    /// If it cannot go on.
    pub(super) fn grow_for(&mut self, n_more: usize) -> Result<(), FibError> {
        let n_slots = self.n_slots() + n_more;
        let buckets = &self.table.buckets;
        if self.copy_at.is_beyond(n_slots, buckets.n_marks()) {
            return Ok(());
        }
        let load_pct = n_slots * 100 / buckets.n_slots();
        let n_buckets = if load_pct >= MAX_LOAD_PCT {
            n_buckets_for(n_slots, NEW_LOAD_PCT)
        } else {
            n_buckets_for(n_slots, EXPECTED_LOAD_PCT).max(buckets.n_buckets())
        };
        let grown = self.grow(n_buckets);
        if grown.is_err() && load_pct < FULL_LOAD_PCT {
            self.copy_at = CopyAt::later(&self.table.buckets, n_slots);
            return Ok(());
        }
        grown
    }

    /// Copies the hash table into a larger one for what found no room, though written.
    ///
    /// # Errors
    /// If that finds no room in the larger one either, or there is no memory for it.
    pub(super) fn link_in_larger(&mut self) -> Result<(), FibError> {
        let buckets = &self.table.buckets;
        // A table that is half empty does not lack room: hashes collide.
        if self.n_slots() * 100 <= buckets.n_slots() * NEW_LOAD_PCT / 2 {
            return Err(FibError::TooManyCollisions);
        }
        self.grow(buckets.n_buckets() * 2)
    }

    fn grow(&mut self, n_buckets: usize) -> Result<(), FibError> {
        let table = Buckets::new(n_buckets, self.config.pages)?;
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
        Ok(())
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
        self.copy_at = CopyAt::of(&buckets);
        self.table = Arc::new(Table { buckets, first });
        self.shared.publish_table(Arc::clone(&self.table));
    }
}

/// When the hash table is copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyAt {
    n_slots: usize,
    n_marks: usize,
}

impl CopyAt {
    /// For a table as it is after it was filled. Marks that it has then are for nodes that
    /// are there, and the others, at an eighth of all places, cost every eighth search
    /// a line.
    pub(super) fn of(buckets: &Buckets) -> Self {
        Self {
            n_slots: buckets.n_slots() * MAX_LOAD_PCT / 100,
            n_marks: buckets.n_buckets() / 2 + 2 * buckets.n_marks(),
        }
    }

    /// For a table of `n_slots` that could not be copied: to ask for memory each time
    /// would be dear.
    fn later(buckets: &Buckets, n_slots: usize) -> Self {
        Self {
            n_slots: n_slots + buckets.n_slots() / 64,
            n_marks: buckets.n_marks() + buckets.n_buckets() / 2,
        }
    }

    /// Whether a table of so many slots and marks need not be copied yet.
    const fn is_beyond(self, n_slots: usize, n_marks: usize) -> bool {
        n_slots <= self.n_slots && n_marks <= self.n_marks
    }
}

/// Adds levels of nodes to a table whose buckets have been fetched.
fn copy(table: &Buckets, batch: &mut Vec<(NameHash, NodeRef, Level)>) -> Result<(), FibError> {
    for (hash, node, level) in batch.drain(..) {
        let added = if level.is_own() {
            table.insert(hash, node)
        } else if level.is_marker() {
            table.insert_marker(hash, node)
        } else {
            Ok(())
        };
        added.map_err(|NoRoom| FibError::TooManyCollisions)?;
    }
    Ok(())
}

/// Buckets of a table that is `load_pct` full with so many nodes.
pub(super) fn n_buckets_for(n_nodes: usize, load_pct: usize) -> usize {
    (n_nodes * 100 / load_pct)
        .div_ceil(SLOTS_PER_BUCKET)
        .max(MIN_BUCKETS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use tachonym_packet::{FaceId, HashKey, Name};

    use super::super::{FibConfig, NextHop, NextHops};
    use super::*;

    fn name(number: usize) -> Name {
        let mut name = Name::new();
        name.push(number.to_string().as_str());
        name
    }

    #[test]
    fn prefixes_that_went_leave_no_longer_searches() {
        const N_PREFIXES: usize = 4_000;
        let config = FibConfig {
            expected_entries: N_PREFIXES,
            ..FibConfig::with_max_entries(2 * N_PREFIXES)
        };
        let mut fib = Fib::new(config, HashKey::from_u64s(1, 2)).expect("a small FIB");
        let hops = NextHops::new(vec![NextHop::new(FaceId(300), 1)]).expect("one");
        // Nearly as full as it may be before it grows.
        let n_kept = fib.copy_at.n_slots - 10;
        for number in 0..n_kept {
            fib.insert(name(number).view(), &hops).expect("room");
        }
        let n_buckets = fib.table.buckets.n_buckets();
        let n_marks = fib.table.buckets.n_marks();
        assert!(n_marks < n_buckets, "{n_marks} of {n_buckets}");
        for number in n_kept..20 * n_kept {
            assert!(fib.remove(name(number - n_kept).view()));
            fib.insert(name(number).view(), &hops).expect("room");
            // One in eight of the marks that there may be.
            assert!(fib.table.buckets.n_marks() < 2 * n_buckets);
        }
        assert!(fib.table.buckets.n_buckets() < 2 * n_buckets);
        assert_eq!(fib.len(), n_kept);
        assert!((19 * n_kept..20 * n_kept).all(|n| !fib.next_hops(name(n).view()).is_empty()));
    }
}
