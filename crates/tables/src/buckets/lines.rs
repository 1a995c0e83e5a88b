//! Cache lines of eight words, which double a few lines at a time.
//!
//! Owns the words of one side of a [`BucketIndex`](super::BucketIndex) and where
//! a hash belongs among them. The number of lines doubles by linear hashing: two
//! neighbouring lines at a time are split by one more bit of the hash, which
//! their words' tags hold, so that no insertion pays for a whole table and no
//! entry is touched (Litwin 1980). Memory for the greatest number is made sure of
//! at first, and taken as it is used.

use tachonym_memory::{MemoryError, PagePreference, Pages, PlainWords};
use tachonym_memory::{places_with_lower_half, places_with_upper_half};

/// Words, and so places, in a line.
pub(super) const LINE_WORDS: usize = 8;

/// One line.
pub(super) type Line = [u64; LINE_WORDS];

/// A word: slot number and one, or zero if the place is free; the bit of the
/// line's filter that stands here whether the place is free or not; whether the
/// word belongs to the neighbouring line; tag.
const SLOT: u64 = 0xffff_ffff;
const FILTER: u64 = 1 << 32;
pub(super) const DISPLACED: u64 = 1 << 33;
const TAG_SHIFT: u32 = 34;
const TAG_BITS: u32 = 30;
/// What a probe compares.
const COMPARED: u64 = !0 << TAG_SHIFT | DISPLACED;

/// Doublings that leave sixteen bits of tag to tell hashes apart.
const MAX_DOUBLINGS: u32 = 14;

/// Doublings that a side begins below its greatest size, at most.
const USUAL_DOUBLINGS: u32 = 10;

pub(super) const fn slot_of(word: u64) -> Option<u32> {
    match word & SLOT {
        0 => None,
        slot => Some((slot - 1) as u32),
    }
}

/// The word with another slot number.
pub(super) const fn with_slot(word: u64, slot: u32) -> u64 {
    word & !SLOT | (slot as u64 + 1)
}

/// Which bit of a line's filter stands for a tag.
const fn class_of(tag: u64) -> usize {
    (tag >> (TAG_BITS - 3)) as usize % LINE_WORDS
}

/// Places of a line whose words a probe for `pattern` must look at.
pub(super) fn matching(line: &Line, pattern: u64) -> u32 {
    let pattern = (pattern & COMPARED) >> 32;
    places_with_upper_half(line, pattern as u32, (COMPARED >> 32) as u32)
}

/// The first free place of a line.
pub(super) fn free_place(line: &Line) -> Option<usize> {
    let places = places_with_lower_half(line, 0);
    (places != 0).then(|| places.trailing_zeros() as usize)
}

/// The place of a slot in a line.
pub(super) fn place_of(line: &Line, slot: u32) -> Option<usize> {
    let places = places_with_lower_half(line, slot + 1);
    (places != 0).then(|| places.trailing_zeros() as usize)
}

pub(super) fn n_free(line: &Line) -> usize {
    places_with_lower_half(line, 0).count_ones() as usize
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lines {
    words: PlainWords,
    /// The bits of a hash below this one never leave the number of its line.
    base_level: u32,
    /// Lines are `1 << level`, and those split off since.
    level: u32,
    /// The bits of a hash that are the number of its line, unless that was split.
    unsplit: u64,
    max_level: u32,
    n_split: usize,
}

impl Lines {
    /// No more than `max_lines` rounded up to a power of two.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(super) fn new(max_lines: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let max_level = max_lines.max(2).next_power_of_two().ilog2();
        let base_level = max_level.saturating_sub(USUAL_DOUBLINGS).clamp(1, 16);
        let max_level = max_level.min(base_level + MAX_DOUBLINGS);
        Ok(Self {
            words: PlainWords::new(LINE_WORDS << max_level, pages)?,
            base_level,
            level: base_level,
            unsplit: (1 << base_level) - 1,
            max_level,
            n_split: 0,
        })
    }

    pub(super) fn pages(&self) -> Pages {
        self.words.pages()
    }

    pub(super) fn n_lines(&self) -> usize {
        (1 << self.level) + self.n_split
    }

    pub(super) fn max_lines(&self) -> usize {
        1 << self.max_level
    }

    /// Whether lines are being split, or `is_full` and may be.
    pub(super) fn is_growing(&self, is_full: bool) -> bool {
        self.n_split > 0 || is_full && self.level < self.max_level
    }

    /// The line that a hash belongs to.
    pub(super) fn home(&self, hash: u64) -> usize {
        let line = (hash & self.unsplit) as usize;
        if line < self.n_split {
            (hash & (2 * self.unsplit + 1)) as usize
        } else {
            line
        }
    }

    /// What a word of this hash is compared with; also that word, with neither
    /// slot nor note.
    pub(super) fn pattern(&self, hash: u64) -> u64 {
        (hash >> self.base_level) << TAG_SHIFT
    }

    /// Whether two hashes may share line and filter bit, however many lines
    /// there are.
    pub(super) fn kin(&self, hash: u64) -> u64 {
        let class = class_of(self.pattern(hash) >> TAG_SHIFT) as u64;
        hash & ((1 << self.base_level) - 1) | class << 32
    }

    pub(super) fn line(&self, line: usize) -> &Line {
        &self.words.as_slice().as_chunks().0[line]
    }

    pub(super) fn line_mut(&mut self, line: usize) -> &mut Line {
        &mut self.words.as_mut_slice().as_chunks_mut().0[line]
    }

    /// Puts a word where there is room.
    pub(super) fn put(&mut self, line: usize, place: usize, word: u64) {
        let kept = &mut self.line_mut(line)[place];
        *kept = *kept & FILTER | word;
    }

    /// Frees a place.
    pub(super) fn clear(&mut self, line: usize, place: usize) {
        self.line_mut(line)[place] &= FILTER;
    }

    /// Whether a word of this pattern may have found no place in its line.
    pub(super) fn may_overflow(&self, line: &Line, pattern: u64) -> bool {
        line[class_of(pattern >> TAG_SHIFT)] & FILTER != 0
    }

    pub(super) fn set_overflow(&mut self, line: usize, pattern: u64) {
        self.line_mut(line)[class_of(pattern >> TAG_SHIFT)] |= FILTER;
    }

    /// Takes back a [`Lines::set_overflow`], if no other word of the same class
    /// is displaced from the line.
    pub(super) fn clear_overflow(&mut self, line: usize, pattern: u64) {
        let class = class_of(pattern >> TAG_SHIFT);
        let is_other = self.line(line ^ 1).iter().any(|&word| {
            word & SLOT != 0 && word & DISPLACED != 0 && class_of(word >> TAG_SHIFT) == class
        });
        if !is_other {
            self.line_mut(line)[class] &= !FILTER;
        }
    }

    /// The lines that [`Lines::split`] takes.
    pub(super) fn next_to_split(&self) -> [usize; 2] {
        [self.n_split, self.n_split + 1]
    }

    /// The [`Lines::kin`] of whatever may have found no place in a line.
    pub(super) fn overflown(&self, line: usize) -> impl Iterator<Item = u64> {
        let low = (line & ((1 << self.base_level) - 1)) as u64;
        let classes = self.line(line).iter().enumerate();
        classes
            .filter(|(_, word)| **word & FILTER != 0)
            .map(move |(class, _)| low | (class as u64) << 32)
    }

    /// Splits the next two lines. What belongs there must be in them.
    pub(super) fn split(&mut self) {
        let (low, n_unsplit) = (self.n_split, 1_usize << self.level);
        let tag_bit = 1_u64 << (TAG_SHIFT + self.level - self.base_level);
        let before = [*self.line(low), *self.line(low + 1)];
        for line in [low, low + 1] {
            *self.line_mut(line) = [0; LINE_WORDS];
        }
        for (offset, &word) in before
            .iter()
            .enumerate()
            .flat_map(|(offset, words)| words.iter().map(move |word| (offset, word)))
            .filter(|(_, word)| **word & SLOT != 0)
        {
            let offset = offset ^ usize::from(word & DISPLACED != 0);
            let upper = if word & tag_bit == 0 { 0 } else { n_unsplit };
            let home = low + offset + upper;
            let word = word & !(DISPLACED | FILTER);
            if let Some(place) = free_place(self.line(home)) {
                self.put(home, place, word);
            } else {
                let place = free_place(self.line(home ^ 1))
                    .expect("two lines have room for what was in two");
                self.put(home ^ 1, place, word | DISPLACED);
                self.set_overflow(home, word);
            }
        }
        self.n_split += 2;
        if self.n_split == n_unsplit {
            self.level += 1;
            self.unsplit = 2 * self.unsplit + 1;
            self.n_split = 0;
        }
    }

    /// Memory of the lines in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.n_lines() * size_of::<Line>()
    }
}
