//! What markers inherit: the next hops of the longest prefix above them.
//!
//! Owns, for each marker, where a search that ends there goes on. A prefix may be above
//! very many markers, so they do not hold that themselves. Markers in the byte order of
//! their names, as far as they inherit from the same prefix, form partitions of at most
//! [`MAX_LEN`]; a marker holds the number of its partition, and one word by that number
//! is the place of the prefix (Waldvogel, Varghese, Turner and Plattner 2001, marker
//! partitioning). What is below a prefix is one stretch of that order. So a prefix that
//! comes or goes changes a word for each partition below it that inherits from it or
//! from the one above, and splits the two at the borders of the stretch.
//!
//! A search reads the number, then the word, then the number again: a marker that has
//! left a partition is never in it again while a reader may know of it, so if the
//! numbers agree, the word spoke of the marker when it was read. For that, partitions
//! only lose markers, but for new ones; two that are joined become a third.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use tachonym_memory::sync::Ordering;
use tachonym_memory::{MemoryError, PagePreference, Pages, Words};

use super::super::nodes::{NodeAllocator, NodeRef, Nodes};

/// Most markers of a partition.
const MAX_LEN: usize = 64;
/// Neighbours that together have no more than so many are joined.
const MAX_JOINED_LEN: usize = MAX_LEN / 2;
/// Number of no partition: the marker is gone.
pub(crate) const GONE: u32 = 0;
const COMMIT_WORDS: usize = if cfg!(loom) { 16 } else { 1 << 9 };

/// The words of partitions, as readers see them.
#[derive(Debug)]
pub(crate) struct Heirs {
    words: Words,
}

impl Heirs {
    /// The prefix from which the markers of a partition inherit; none if there is none.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> NodeRef {
        NodeRef(self.words.words()[number as usize].load(Ordering::Acquire))
    }

    pub(crate) fn pages(&self) -> Pages {
        self.words.pages()
    }

    fn set(&self, number: u32, prefix: NodeRef) {
        self.words.words()[number as usize].store(prefix.0, Ordering::Release);
    }
}

/// A partition.
#[derive(Debug)]
struct Partition {
    number: u32,
    prefix: NodeRef,
    /// In the order of their names.
    markers: Vec<(NodeRef, usize)>,
}

/// What the writer knows of partitions.
#[derive(Debug)]
pub(crate) struct Partitions {
    /// By a name that is not behind the first marker's, and behind all markers of the
    /// partition before.
    all: BTreeMap<Box<[u8]>, Partition>,
    next: u32,
    free: Vec<u32>,
    n_stores: u64,
}

/// The memory that a change of partitions works on.
pub(crate) type Memory<'a> = (&'a NodeAllocator, &'a Nodes, &'a Heirs);

impl Partitions {
    /// No partition, and room for those of so many prefixes.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn new(
        max_prefixes: usize,
        pages: PagePreference,
    ) -> Result<(Self, Heirs), MemoryError> {
        let max = max_prefixes
            .saturating_mul(8)
            .saturating_add(8 * COMMIT_WORDS);
        let words = Words::reserve(max.min(u32::MAX as usize), pages)?;
        words.commit(COMMIT_WORDS)?;
        let partitions = Self {
            all: BTreeMap::new(),
            next: GONE + 1,
            free: Vec::new(),
            n_stores: 0,
        };
        Ok((partitions, Heirs { words }))
    }

    /// Words that readers see and that were changed so far.
    pub(crate) const fn n_stores(&self) -> u64 {
        self.n_stores
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.all.keys().map(|name| name.len()).sum();
        let markers: usize = self
            .all
            .values()
            .map(|partition| partition.markers.capacity())
            .sum();
        names
            + markers * size_of::<(NodeRef, usize)>()
            + self.all.len() * size_of::<(Box<[u8]>, Partition)>()
            + self.next as usize * size_of::<u64>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Makes sure of numbers for `n_markers` new markers and a prefix.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn reserve(&self, heirs: &Heirs, n_markers: usize) -> Result<(), MemoryError> {
        let n_words = self.next as usize + 3 * n_markers + 4;
        if n_words <= heirs.words.words().len() {
            return Ok(());
        }
        heirs
            .words
            .commit(n_words + n_words / 8 + COMMIT_WORDS)
            .or_else(|_| heirs.words.commit(n_words))
    }

    /// Takes back a number that no reader knows of any more.
    pub(crate) fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Adds a new marker, which inherits from `prefix`.
    pub(crate) fn join(
        &mut self,
        memory: Memory<'_>,
        name: &[u8],
        marker: (NodeRef, usize),
        prefix: NodeRef,
    ) {
        if let Some(key) = self.key_before(name) {
            let partition = self.all.get_mut(&key).expect("its key");
            let at = place(memory, &partition.markers, name);
            if partition.prefix == prefix {
                partition.markers.insert(at, marker);
                let number = partition.number;
                self.tell(memory, marker, number);
                self.split_if_long(memory, &key);
                return;
            }
            if at < partition.markers.len() {
                self.split(memory, &key, at);
            }
        }
        let next = self
            .all
            .range::<[u8], _>((Included(name), Unbounded))
            .next();
        let next = next.map(|(key, partition)| (key.clone(), partition.prefix));
        let number = match next {
            Some((key, inherits)) if inherits == prefix => {
                let mut partition = self.all.remove(&key).expect("its key");
                partition.markers.insert(0, marker);
                let number = partition.number;
                self.all.insert(name.into(), partition);
                number
            }
            _ => self.add(memory, name.into(), prefix, vec![marker]),
        };
        self.tell(memory, marker, number);
        self.split_if_long(memory, name);
    }

    /// Removes a marker. Searches that know of it do not learn from it any more. Numbers
    /// that become free go to `retired`.
    pub(crate) fn leave(
        &mut self,
        memory: Memory<'_>,
        name: &[u8],
        marker: (NodeRef, usize),
        retired: &mut Vec<u32>,
    ) {
        self.tell(memory, marker, GONE);
        let key = self.key_before(name).expect("the marker's partition");
        let partition = self.all.get_mut(&key).expect("its key");
        let at = place(memory, &partition.markers, name);
        debug_assert_eq!(partition.markers.get(at), Some(&marker));
        partition.markers.remove(at);
        if partition.markers.is_empty() {
            retired.push(partition.number);
            self.all.remove(&key);
        } else {
            self.join_neighbours(memory, &key, retired);
        }
    }

    /// From now on what is below `name` and inherits from `old` inherits from `new`, of
    /// which one is the prefix of that name.
    pub(crate) fn replace(
        &mut self,
        memory: Memory<'_>,
        name: &[u8],
        (old, new): (NodeRef, NodeRef),
        retired: &mut Vec<u32>,
    ) {
        let mut keys: Vec<Box<[u8]>> = self.key_before(name).into_iter().collect();
        let below = self.all.range::<[u8], _>((Included(name), Unbounded));
        let below = below.take_while(|(key, _)| key.starts_with(name));
        let below = below.map(|(key, _)| key.clone());
        keys.extend(below.filter(|key| **key != *name));
        let mut changed = Vec::new();
        for key in keys {
            let partition = &self.all[&key];
            if partition.prefix != old {
                continue;
            }
            let first = place(memory, &partition.markers, name);
            let end = partition
                .markers
                .partition_point(|&marker| is_not_beyond(memory, marker, name));
            if first >= end {
                continue;
            }
            if end < partition.markers.len() {
                self.split(memory, &key, end);
            }
            let key = if first > 0 {
                self.split(memory, &key, first)
            } else {
                key
            };
            let partition = self.all.get_mut(&key).expect("its key");
            partition.prefix = new;
            memory.2.set(partition.number, new);
            self.n_stores += 1;
            changed.push(key);
        }
        if let (Some(first), Some(last)) = (changed.first(), changed.last()) {
            self.join_neighbours(memory, last, retired);
            if first != last && self.all.contains_key(first) {
                self.join_neighbours(memory, first, retired);
            }
        }
    }

    /// The key of the partition that has the marker of this name, if any has.
    fn key_before(&self, name: &[u8]) -> Option<Box<[u8]>> {
        let (key, _) = self
            .all
            .range::<[u8], _>((Unbounded, Included(name)))
            .next_back()?;
        Some(key.clone())
    }

    fn split_if_long(&mut self, memory: Memory<'_>, key: &[u8]) {
        let len = self.all[key].markers.len();
        if len > MAX_LEN {
            self.split(memory, key, len / 2);
        }
    }

    /// Moves the markers from `at` on into a partition of their own; its key.
    fn split(&mut self, memory: Memory<'_>, key: &[u8], at: usize) -> Box<[u8]> {
        let partition = self.all.get_mut(key).expect("its key");
        if at == 0 {
            // Only the key was too early.
            let partition = self.all.remove(key).expect("its key");
            let key: Box<[u8]> = name_of(memory, partition.markers[0]).into();
            self.all.insert(key.clone(), partition);
            return key;
        }
        let markers = partition.markers.split_off(at);
        let prefix = partition.prefix;
        let key: Box<[u8]> = name_of(memory, markers[0]).into();
        self.add(memory, key.clone(), prefix, markers);
        key
    }

    /// A new partition of markers that inherit from the same prefix already, or are new.
    fn add(
        &mut self,
        memory: Memory<'_>,
        key: Box<[u8]>,
        prefix: NodeRef,
        markers: Vec<(NodeRef, usize)>,
    ) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        memory.2.set(number, prefix);
        self.n_stores += 1;
        for &marker in &markers {
            self.tell(memory, marker, number);
        }
        let partition = Partition {
            number,
            prefix,
            markers,
        };
        self.all.insert(key, partition);
        number
    }

    fn tell(&mut self, (alloc, nodes, _): Memory<'_>, (node, length): (NodeRef, usize), to: u32) {
        let level = nodes.level(node, length).expect("a marker's level");
        alloc.set_level(nodes, node, level.with_info(to));
        self.n_stores += 1;
    }

    /// Joins a partition with those before and behind it, if they are short.
    fn join_neighbours(&mut self, memory: Memory<'_>, key: &[u8], retired: &mut Vec<u32>) {
        let mut key: Box<[u8]> = key.into();
        let behind = (Excluded(&*key), Unbounded);
        let next = self.all.range::<[u8], _>(behind).next();
        if let Some(next) = next.map(|(next, _)| next.clone()) {
            self.join_two(memory, &key, &next, retired);
        }
        let before = self
            .all
            .range::<[u8], _>((Unbounded, Excluded(&*key)))
            .next_back();
        if let Some(before) = before.map(|(before, _)| before.clone()) {
            self.join_two(memory, &before, &key, retired);
            key = before;
        }
        debug_assert!(self.all.contains_key(&key));
    }

    fn join_two(&mut self, memory: Memory<'_>, a: &[u8], b: &[u8], retired: &mut Vec<u32>) {
        let (left, right) = (&self.all[a], &self.all[b]);
        let is_short = left.markers.len() + right.markers.len() <= MAX_JOINED_LEN;
        // What is missing is memory for a number; then they stay apart.
        let has_number = || !self.free.is_empty() || self.reserve(memory.2, 0).is_ok();
        if left.prefix != right.prefix || !is_short || !has_number() {
            return;
        }
        let right = self.all.remove(b).expect("its key");
        let left = self.all.remove(a).expect("its key");
        let mut markers = left.markers;
        markers.extend(right.markers);
        self.add(memory, a.into(), left.prefix, markers);
        retired.extend([left.number, right.number]);
    }
}

/// Where the marker of a name is, or would be.
fn place(memory: Memory<'_>, markers: &[(NodeRef, usize)], name: &[u8]) -> usize {
    markers.partition_point(|&marker| *name_of(memory, marker) < *name)
}

/// Whether the marker is before everything behind what begins with `name`.
fn is_not_beyond(memory: Memory<'_>, marker: (NodeRef, usize), name: &[u8]) -> bool {
    let of_marker = name_of(memory, marker);
    *of_marker < *name || of_marker.starts_with(name)
}

fn name_of((_, nodes, _): Memory<'_>, (node, length): (NodeRef, usize)) -> Vec<u8> {
    let level = nodes.level(node, length).expect("a marker's level");
    let mut name = Vec::new();
    nodes.copy_name(node, &mut name);
    name.truncate(level.name_bytes());
    name
}
