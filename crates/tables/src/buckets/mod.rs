//! From a 64-bit keyed hash to slot numbers, one cache line a probe.
//!
//! Owns the index of the tables of packets. A line holds eight words of tag,
//! slot number and marks; equal tags are candidates, and the table that owns the
//! slots compares names by their bytes. Two ways to place a word, for
//! [`IndexKind`]; whatever finds no place in the lines where it belongs is kept
//! in a small table beside them, so that hashes of any kind are served, if
//! slowly. A filter of eight bits in each line says whether anything that belongs
//! there, by three bits of its tag, is elsewhere: a search that finds nothing
//! rarely reads more.

mod lines;

use std::fmt;
use std::str::FromStr;

use hashbrown::HashTable;
use tachonym_memory::{MemoryError, PagePreference, Pages, prefetch};

use self::lines::{DISPLACED, Lines, free_place, matching, n_free, place_of, slot_of};

/// Splits of two lines for an insertion while an index grows: it has doubled
/// before it is a tenth fuller.
const N_SPLITS_PER_INSERT: usize = 2;

/// Stashed slots for which there is room from the start.
const N_STASHED_USUALLY: usize = 14;

/// How an index chooses the line for a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// One line by the hash, and if that is full its neighbour. A probe reads
    /// one line.
    #[default]
    Single,
    /// The emptier of two lines, one on each side, the left one if they are
    /// equal (Broder and Mitzenmacher 2001; Yuan 2015, section 5.4.2). Lines can
    /// be fuller; a probe reads two, at the same time.
    DLeft,
}

impl IndexKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Single, Self::DLeft];

    /// The word for it in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::DLeft => "d-left",
        }
    }

    /// Words in a line, in the mean, at which an index grows.
    const fn words_per_line(self) -> usize {
        match self {
            Self::Single => 5,
            Self::DLeft => 6,
        }
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for IndexKind {
    type Err = UnknownIndexKind;

    fn from_str(text: &str) -> Result<Self, UnknownIndexKind> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or(UnknownIndexKind)
    }
}

/// The text names no kind of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownIndexKind;

impl fmt::Display for UnknownIndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown layout; use single or d-left")
    }
}

impl std::error::Error for UnknownIndexKind {}

/// What found no place in its lines.
#[derive(Clone, Copy, Debug)]
struct Stashed {
    hash: u64,
    slot: u32,
}

/// Multimap from hashes to slots; see the module.
#[derive(Debug)]
pub(crate) struct BucketIndex {
    left: Lines,
    /// Only of [`IndexKind::DLeft`], where it is as long as the left one.
    right: Option<Lines>,
    words_per_line: usize,
    stash: HashTable<Stashed>,
    len: usize,
}

/// What the right side sees of a hash.
const fn right_hash(hash: u64) -> u64 {
    hash.rotate_left(32)
}

/// Position in the stash, of whatever may need the same bit of the same filter.
fn stash_hash(kin: u64) -> u64 {
    kin.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl BucketIndex {
    /// An empty index, made for `max_slots` at most. More are taken, and slow it
    /// down.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(crate) fn new(
        kind: IndexKind,
        max_slots: usize,
        pages: PagePreference,
    ) -> Result<Self, MemoryError> {
        let words_per_line = kind.words_per_line();
        let max_lines = max_slots.min(1 << 31).div_ceil(words_per_line);
        let (left, right) = match kind {
            IndexKind::Single => (Lines::new(max_lines, pages)?, None),
            IndexKind::DLeft => {
                let max_lines = max_lines.div_ceil(2);
                let right = Lines::new(max_lines, pages)?;
                (Lines::new(max_lines, pages)?, Some(right))
            }
        };
        Ok(Self {
            left,
            right,
            words_per_line,
            stash: HashTable::with_capacity(N_STASHED_USUALLY),
            len: 0,
        })
    }

    /// What pages the lines have.
    pub(crate) fn pages(&self) -> Pages {
        let right = self.right.as_ref().map(Lines::pages);
        self.left.pages() + right.unwrap_or_default()
    }

    /// Slots for which there is room in the lines.
    pub(crate) fn max_slots(&self) -> usize {
        let n_sides = 1 + usize::from(self.right.is_some());
        self.left.max_lines() * n_sides * self.words_per_line
    }

    /// First slot under `hash` that `is_match` accepts. It is asked about every
    /// slot that was inserted under `hash`, and hardly any other, until then.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_match: impl FnMut(u32) -> bool) -> Option<u32> {
        let lines = &self.left;
        let pattern = lines.pattern(hash);
        let home = lines.home(hash);
        let line = lines.line(home);
        if let Some(slot) = find_in(line, pattern, &mut is_match) {
            return Some(slot);
        }
        if let Some(right) = &self.right {
            let hash = right_hash(hash);
            let line = right.line(right.home(hash));
            if let Some(slot) = find_in(line, right.pattern(hash), &mut is_match) {
                return Some(slot);
            }
        }
        if lines.may_overflow(line, pattern) {
            return self.find_elsewhere(hash, &mut is_match);
        }
        None
    }

    /// As [`BucketIndex::find`], among what is not where it belongs.
    #[cold]
    fn find_elsewhere(&self, hash: u64, is_match: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let lines = &self.left;
        if self.right.is_none() {
            let line = lines.line(lines.home(hash) ^ 1);
            let found = find_in(line, lines.pattern(hash) | DISPLACED, is_match);
            if found.is_some() {
                return found;
            }
        }
        let candidates = self.stash.iter_hash(stash_hash(lines.kin(hash)));
        candidates
            .filter(|stashed| stashed.hash == hash)
            .map(|stashed| stashed.slot)
            .find(|&slot| is_match(slot))
    }

    /// Brings the lines that a search for `hash` reads into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.left.line(self.left.home(hash)));
        if let Some(right) = &self.right {
            prefetch(right.line(right.home(right_hash(hash))));
        }
    }

    /// Calls `visit` with every slot that may have been inserted under `hash`.
    #[inline]
    pub(crate) fn for_each(&self, hash: u64, mut visit: impl FnMut(u32)) {
        self.find(hash, |slot| {
            visit(slot);
            false
        });
    }

    /// Adds a slot, which is not in the index.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        self.grow();
        self.len += 1;
        self.place(hash, slot);
    }

    #[inline]
    fn place(&mut self, hash: u64, slot: u32) {
        let lines = &self.left;
        let (home, pattern) = (lines.home(hash), lines.pattern(hash));
        let word = pattern | (u64::from(slot) + 1);
        let line = lines.line(home);
        if let Some(right) = &mut self.right {
            let hash = right_hash(hash);
            let right_home = right.home(hash);
            let right_line = right.line(right_home);
            if n_free(right_line) > n_free(line) {
                let place = free_place(right_line).expect("more than none is free");
                let word = right.pattern(hash) | (u64::from(slot) + 1);
                return right.put(right_home, place, word);
            }
        }
        if let Some(place) = free_place(line) {
            return self.left.put(home, place, word);
        }
        self.place_elsewhere(hash, slot);
    }

    #[cold]
    fn place_elsewhere(&mut self, hash: u64, slot: u32) {
        let lines = &mut self.left;
        let (home, pattern) = (lines.home(hash), lines.pattern(hash));
        lines.set_overflow(home, pattern);
        if self.right.is_none()
            && let Some(place) = free_place(lines.line(home ^ 1))
        {
            let word = pattern | (u64::from(slot) + 1) | DISPLACED;
            return lines.put(home ^ 1, place, word);
        }
        let position = stash_hash(lines.kin(hash));
        self.stash
            .insert_unique(position, Stashed { hash, slot }, |stashed| {
                stash_hash(lines.kin(stashed.hash))
            });
    }

    /// Removes a slot inserted under `hash`; `false` if there is none.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let home = self.left.home(hash);
        let is_removed = self.left.take(home, slot)
            || self.right.as_mut().is_some_and(|right| {
                let home = right.home(right_hash(hash));
                right.take(home, slot)
            })
            || self.remove_elsewhere(hash, slot);
        self.len -= usize::from(is_removed);
        is_removed
    }

    /// Puts a slot in the place of another one inserted under `hash`.
    #[inline]
    pub(crate) fn replace(&mut self, hash: u64, before: u32, after: u32) {
        let home = self.left.home(hash);
        let is_replaced = self.left.rename(home, before, after)
            || self.right.as_mut().is_some_and(|right| {
                let home = right.home(right_hash(hash));
                right.rename(home, before, after)
            });
        if !is_replaced && self.remove(hash, before) {
            self.insert(hash, after);
        }
    }

    #[cold]
    fn remove_elsewhere(&mut self, hash: u64, slot: u32) -> bool {
        let lines = &mut self.left;
        let (home, kin) = (lines.home(hash), lines.kin(hash));
        let is_displaced = self.right.is_none() && lines.take(home ^ 1, slot);
        if !is_displaced {
            let is_it = |stashed: &Stashed| stashed.slot == slot && stashed.hash == hash;
            let Ok(found) = self.stash.find_entry(stash_hash(kin), is_it) else {
                return false;
            };
            found.remove();
        }
        let is_other_stashed = self
            .stash
            .iter_hash(stash_hash(kin))
            .any(|other| lines.kin(other.hash) == kin && lines.home(other.hash) == home);
        if !is_other_stashed {
            let pattern = lines.pattern(hash);
            lines.clear_overflow(home, pattern);
        }
        true
    }

    /// Splits some lines, if there are too few.
    #[inline]
    fn grow(&mut self) {
        let n_sides = 1 + usize::from(self.right.is_some());
        let is_full = self.len >= self.left.n_lines() * n_sides * self.words_per_line;
        if self.left.is_growing(is_full) {
            self.split_some();
        }
    }

    #[cold]
    fn split_some(&mut self) {
        for _ in 0..N_SPLITS_PER_INSERT {
            let mut homeless = Vec::new();
            if !self.stash.is_empty() {
                self.unstash(&mut homeless);
            }
            self.left.split();
            if let Some(right) = &mut self.right {
                right.split();
            }
            for Stashed { hash, slot } in homeless {
                self.place(hash, slot);
            }
            if !self.left.is_growing(false) {
                return;
            }
        }
    }

    /// Takes out of the stash what belongs to the lines that are split next.
    fn unstash(&mut self, homeless: &mut Vec<Stashed>) {
        let lines = &self.left;
        for home in lines.next_to_split() {
            for kin in lines.overflown(home) {
                let is_from_there = |stashed: &Stashed| {
                    lines.kin(stashed.hash) == kin && lines.home(stashed.hash) == home
                };
                while let Ok(found) = self.stash.find_entry(stash_hash(kin), is_from_there) {
                    homeless.push(found.remove().0);
                }
            }
        }
    }

    /// Number of slots.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Slots that found no place in the lines where they belong, nor beside.
    #[cfg(test)]
    pub(crate) fn n_stashed(&self) -> usize {
        self.stash.len()
    }

    /// Memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.left.memory_bytes()
            + self.right.as_ref().map_or(0, Lines::memory_bytes)
            + self.stash.allocation_size()
    }
}

impl Lines {
    /// Puts a slot in the place of another one in a line; `false` if that has none
    /// there.
    fn rename(&mut self, line: usize, before: u32, after: u32) -> bool {
        let Some(place) = place_of(self.line(line), before) else {
            return false;
        };
        let word = &mut self.line_mut(line)[place];
        *word = lines::with_slot(*word, after);
        true
    }

    /// Frees the place that a slot has in a line; `false` if it has none there.
    fn take(&mut self, line: usize, slot: u32) -> bool {
        match place_of(self.line(line), slot) {
            Some(place) => {
                self.clear(line, place);
                true
            }
            None => false,
        }
    }
}

#[inline]
fn find_in(
    line: &lines::Line,
    pattern: u64,
    is_match: &mut impl FnMut(u32) -> bool,
) -> Option<u32> {
    let mut places = matching(line, pattern);
    while places != 0 {
        let place = places.trailing_zeros() as usize % lines::LINE_WORDS;
        places &= places - 1;
        if let Some(slot) = slot_of(line[place])
            && is_match(slot)
        {
            return Some(slot);
        }
    }
    None
}

#[cfg(test)]
mod tests;
