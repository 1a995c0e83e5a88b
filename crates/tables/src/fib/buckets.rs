//! The hash table of a FIB: buckets of one cache line.
//!
//! Owns where the nodes under a hash are. A bucket is 64 bytes, eight words, and a
//! word is a tag of 22 bits, two marks and the place of a node; so one line tells
//! which of eight nodes may be the one, and a node is fetched when its tag agrees
//! (So et al. 2013; Takemasa 2019, section 4.1.2; Yuan 2015, section 3.3.2). What
//! finds no room in its bucket stands in one of the next ones, and marks of the
//! bucket tell for which classes of tags that is so: a search reads a second line
//! only for those.
//!
//! One writer changes words while readers read them. Each change is the store of
//! one word, so a reader finds a node or does not, and never half of it. A table
//! never grows: the writer fills a larger one and publishes that. Nor does a mark go when
//! what it is for has gone: the writer counts them and copies the table before they make
//! searches longer.

use std::sync::atomic::AtomicUsize;

use tachonym_memory::sync::Ordering;
use tachonym_memory::{MemoryError, PagePreference, Pages, Words};
use tachonym_packet::NameHash;

use super::nodes::{NodeRef, REF_BITS};

/// Words of a bucket.
const BUCKET_LEN: usize = 8;
/// Most buckets that a search reads: names whose hashes collide beyond that are refused.
pub(crate) const MAX_RUN: usize = 64;

const REF_MASK: u64 = (1 << REF_BITS) - 1;
/// Some node whose tag is of the class that is this word's place stands further on.
const OVERFLOWN: u64 = 1 << REF_BITS;
/// The word is a marker: it leads to a longer name than its own.
const MARKER: u64 = 1 << (REF_BITS + 1);
const TAG_SHIFT: u32 = REF_BITS + 2;

/// A word of a bucket that holds a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u64);

impl Slot {
    /// Where the node is.
    pub(crate) const fn node(self) -> NodeRef {
        NodeRef(self.0 & REF_MASK)
    }

    /// Whether the name is a shorter one than the node's.
    pub(crate) const fn is_marker(self) -> bool {
        self.0 & MARKER != 0
    }
}

/// The node did not fit: too many nodes have almost the same hash, or the table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// See the module.
#[derive(Debug)]
pub(crate) struct Buckets {
    words: Words,
    n_buckets: usize,
    /// Marks that are set. The writer's own, though in shared memory.
    n_marks: AtomicUsize,
}

const fn tag_of(hash: NameHash) -> u64 {
    hash.0 & ((1 << (64 - TAG_SHIFT)) - 1)
}

/// The word whose mark says that nodes with this tag stand further on.
const fn class_of(tag: u64) -> usize {
    (tag % BUCKET_LEN as u64) as usize
}

impl Buckets {
    /// An empty table of at least `n_buckets`.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(crate) fn new(n_buckets: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_buckets = n_buckets.max(1);
        let words = Words::reserve(n_buckets * BUCKET_LEN, pages)?;
        words.commit(n_buckets * BUCKET_LEN)?;
        Ok(Self {
            words,
            n_buckets,
            n_marks: AtomicUsize::new(0),
        })
    }

    /// Number of buckets.
    pub(crate) const fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    /// Number of nodes that would fill every word.
    pub(crate) const fn n_slots(&self) -> usize {
        self.n_buckets * BUCKET_LEN
    }

    /// Marks that send searches to a further bucket, of eight in each bucket.
    pub(crate) fn n_marks(&self) -> usize {
        self.n_marks.load(Ordering::Relaxed)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.committed_bytes()
    }

    pub(crate) fn pages(&self) -> Pages {
        self.words.pages()
    }

    /// The bucket of a hash: its high bits scaled, so that any number of buckets will do.
    fn home(&self, hash: NameHash) -> usize {
        ((u128::from(hash.0) * self.n_buckets as u128) >> 64) as usize
    }

    /// Fetches the bucket of a hash.
    pub(crate) fn prefetch(&self, hash: NameHash) {
        self.words.prefetch(self.home(hash) * BUCKET_LEN);
    }

    /// The first node under `hash` that `accepts` takes. Nodes of other hashes may be
    /// among those it is asked about, if their tags are equal.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: NameHash,
        mut accepts: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        let tag = tag_of(hash);
        let mut bucket = self.home(hash);
        for _ in 0..MAX_RUN {
            let line = self.words.line(bucket);
            let line: [u64; BUCKET_LEN] =
                std::array::from_fn(|place| line[place].load(Ordering::Acquire));
            // All words at once, since nothing foretells which it is.
            let mut places = 0_u32;
            for (place, word) in line.iter().enumerate() {
                places |= u32::from(word >> TAG_SHIFT == tag) << place;
            }
            while places != 0 {
                let word = line[places.trailing_zeros() as usize % BUCKET_LEN];
                places &= places - 1;
                if word & REF_MASK != 0 && accepts(Slot(word)) {
                    return Some(Slot(word));
                }
            }
            if line[class_of(tag)] & OVERFLOWN == 0 {
                return None;
            }
            bucket = self.after(bucket);
        }
        None
    }

    /// Buckets that a search for `hash` reads until it comes to `slot`, or to the end.
    pub(crate) fn n_read(&self, hash: NameHash, slot: Option<Slot>) -> usize {
        let class = class_of(tag_of(hash));
        let mut bucket = self.home(hash);
        let mut n_read = 1;
        while n_read < MAX_RUN {
            let line = self.words.line(bucket);
            let is_there = |word: u64| slot.is_some_and(|slot| (word ^ slot.0) & !OVERFLOWN == 0);
            let mut words = line.iter().map(|word| word.load(Ordering::Acquire));
            if words.any(is_there) || line[class].load(Ordering::Acquire) & OVERFLOWN == 0 {
                break;
            }
            bucket = self.after(bucket);
            n_read += 1;
        }
        n_read
    }

    /// Adds a node under `hash`. Readers find it from now on, so it must be complete.
    ///
    /// # Errors
    /// If there is no room in the run of buckets that a search reads; nothing has changed.
    pub(crate) fn insert(&self, hash: NameHash, node: NodeRef) -> Result<(), NoRoom> {
        self.insert_word(hash, node, 0)
    }

    /// Adds a marker under `hash`: as [`Buckets::insert`], but the name is a shorter one
    /// than the node's.
    ///
    /// # Errors
    /// As [`Buckets::insert`].
    pub(crate) fn insert_marker(&self, hash: NameHash, node: NodeRef) -> Result<(), NoRoom> {
        self.insert_word(hash, node, MARKER)
    }

    fn insert_word(&self, hash: NameHash, node: NodeRef, kind: u64) -> Result<(), NoRoom> {
        debug_assert!(node.0 != 0 && node.0 <= REF_MASK);
        let tag = tag_of(hash);
        let home = self.home(hash);
        let mut bucket = home;
        for n_passed in 0..MAX_RUN {
            let free = self
                .words
                .line(bucket)
                .iter()
                .find(|word| word.load(Ordering::Relaxed) & REF_MASK == 0);
            if let Some(word) = free {
                let mark = word.load(Ordering::Relaxed) & OVERFLOWN;
                word.store(tag << TAG_SHIFT | mark | kind | node.0, Ordering::Release);
                self.mark_overflown(home, n_passed, tag);
                return Ok(());
            }
            bucket = self.after(bucket);
        }
        Err(NoRoom)
    }

    /// Removes the node; `false` if it is not there under `hash`. Readers may go on
    /// reading it for a while.
    pub(crate) fn remove(&self, hash: NameHash, node: NodeRef) -> bool {
        self.remove_word(hash, node, 0)
    }

    /// Removes a marker, as [`Buckets::remove`].
    pub(crate) fn remove_marker(&self, hash: NameHash, node: NodeRef) -> bool {
        self.remove_word(hash, node, MARKER)
    }

    fn remove_word(&self, hash: NameHash, node: NodeRef, kind: u64) -> bool {
        let tag = tag_of(hash);
        let mut bucket = self.home(hash);
        for _ in 0..MAX_RUN {
            let line = self.words.line(bucket);
            for word in line {
                let old = word.load(Ordering::Relaxed);
                if old >> TAG_SHIFT == tag && old & (REF_MASK | MARKER) == kind | node.0 {
                    word.store(old & OVERFLOWN, Ordering::Release);
                    return true;
                }
            }
            if line[class_of(tag)].load(Ordering::Relaxed) & OVERFLOWN == 0 {
                return false;
            }
            bucket = self.after(bucket);
        }
        false
    }

    /// Tells searches that begin at `home` to pass `n_passed` buckets. The farthest is
    /// marked first, but a reader who sees a part of it finds nothing new at worst.
    fn mark_overflown(&self, home: usize, n_passed: usize, tag: u64) {
        let mut bucket = home;
        for _ in 0..n_passed {
            let word = &self.words.line(bucket)[class_of(tag)];
            let old = word.load(Ordering::Relaxed);
            if old & OVERFLOWN == 0 {
                word.store(old | OVERFLOWN, Ordering::Release);
                self.n_marks.fetch_add(1, Ordering::Relaxed);
            }
            bucket = self.after(bucket);
        }
    }

    fn after(&self, bucket: usize) -> usize {
        if bucket + 1 == self.n_buckets {
            0
        } else {
            bucket + 1
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn table(n_buckets: usize) -> Buckets {
        Buckets::new(n_buckets, PagePreference::Base).expect("a small table")
    }

    fn found(table: &Buckets, hash: NameHash) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        table.find(hash, |slot| {
            found.insert(slot.node().0);
            false
        });
        found
    }

    #[test]
    fn nodes_under_one_hash_fill_a_run_of_buckets_and_then_are_refused() {
        for hash in [NameHash(0), NameHash(u64::MAX), NameHash(1 << 63 | 5)] {
            let table = table(100);
            let n_fit = (MAX_RUN * BUCKET_LEN) as u64;
            for node in 1..=n_fit {
                table.insert(hash, NodeRef(node)).expect("room");
            }
            assert_eq!(table.insert(hash, NodeRef(n_fit + 1)), Err(NoRoom));
            assert_eq!(found(&table, hash), (1..=n_fit).collect());
            for node in (1..=n_fit).rev() {
                assert!(table.remove(hash, NodeRef(node)));
                assert!(!table.remove(hash, NodeRef(node)));
            }
            assert_eq!(found(&table, hash), BTreeSet::new());
        }
    }

    #[test]
    fn marks_survive_the_word_they_stand_in() {
        let table = table(2);
        // Same bucket, tags of different classes.
        let hashes: Vec<NameHash> = (0..16).map(NameHash).collect();
        for (idx, &hash) in hashes.iter().enumerate() {
            table.insert(hash, NodeRef(idx as u64 + 1)).expect("room");
        }
        for (idx, &hash) in hashes[..8].iter().enumerate() {
            assert!(table.remove(hash, NodeRef(idx as u64 + 1)));
        }
        for (idx, &hash) in hashes.iter().enumerate().skip(8) {
            assert_eq!(found(&table, hash), BTreeSet::from([idx as u64 + 1]));
        }
    }
}
