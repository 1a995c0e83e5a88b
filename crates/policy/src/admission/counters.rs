//! How often each name was asked for within the history of a Filter.
//!
//! Owns the counters; which names are within the history is the caller's affair, who
//! says of each when it comes and when it goes. A counter that is at its greatest does
//! not count on; what was not counted is not taken away later either, which the caller
//! remembers for it ([`Counted`]).

use tachonym_memory::{MemoryError, PagePreference, Pages, PlainWords, prefetch};

use crate::kind::CountersKind;

/// Which of a name's counters counted it: three bits.
pub(super) type Counted = u64;

/// Bits of a hash that [`Counted`] may take the place of.
pub(super) const COUNTED: u64 = 0b111;

/// Counters of one row, as published: 2^24 of them.
const ROW_BITS: u32 = 24;
/// History entries for each line of [`Lines`]: 32 to 64 bytes an entry, as the published
/// row has for a history of a million or half of that.
const ENTRIES_BY_LINE: usize = 2;

/// The counters of a Filter.
#[derive(Debug)]
pub(super) enum Counters {
    Row(Row),
    Lines(Lines),
    Exact(Exact),
}

impl Counters {
    /// Counters for a history of so many names.
    pub(super) fn new(
        kind: CountersKind,
        history_len: usize,
        pages: PagePreference,
    ) -> Result<Self, MemoryError> {
        Ok(match kind {
            CountersKind::Row => Self::Row(Row(PlainWords::new(1 << (ROW_BITS - 2), pages)?)),
            CountersKind::Lines => Self::Lines(Lines::new(history_len / ENTRIES_BY_LINE, pages)?),
            CountersKind::Exact => Self::Exact(Exact::new(history_len, pages)?),
        })
    }

    /// Lines for half as many bytes: enough where thresholds are above 2, which hardly any
    /// name reaches by others' counts.
    pub(super) fn sparse(history_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_lines = history_len / (2 * ENTRIES_BY_LINE);
        Ok(Self::Lines(Lines::new(n_lines, pages)?))
    }

    /// The greatest count that is told from greater ones.
    pub(super) const fn max_count(kind: CountersKind) -> u32 {
        match kind {
            CountersKind::Row => u16::MAX as u32,
            CountersKind::Lines => Lines::MAX_COUNT as u32,
            CountersKind::Exact => u32::MAX,
        }
    }

    /// A name comes.
    #[inline]
    pub(super) fn add(&mut self, hash: u64) -> Counted {
        match self {
            Self::Row(row) => row.add(hash),
            Self::Lines(lines) => lines.add(hash),
            Self::Exact(exact) => exact.add(hash),
        }
    }

    /// A name goes, of which [`add`](Self::add) said that it was counted so.
    #[inline]
    pub(super) fn take(&mut self, hash: u64, counted: Counted) {
        match self {
            Self::Row(row) => row.take(hash, counted),
            Self::Lines(lines) => lines.take(hash, counted),
            Self::Exact(exact) => exact.take(hash),
        }
    }

    /// How often a name is within the history: not less, but for counts above the
    /// greatest.
    #[inline]
    pub(super) fn count(&self, hash: u64) -> u32 {
        match self {
            Self::Row(row) => row.count(hash),
            Self::Lines(lines) => lines.count(hash),
            Self::Exact(exact) => exact.count(hash),
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        match self {
            Self::Row(row) => prefetch(&row.0.as_slice()[Row::place(hash).0]),
            Self::Lines(lines) => prefetch(&lines.words.as_slice()[lines.first_word(hash)]),
            Self::Exact(exact) => prefetch(&exact.words.as_slice()[2 * exact.home(hash)]),
        }
    }

    pub(super) fn pages(&self) -> Pages {
        match self {
            Self::Row(row) => row.0.pages(),
            Self::Lines(lines) => lines.words.pages(),
            Self::Exact(exact) => exact.words.pages(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Row(row) => row.0.as_slice().len() * 8,
            Self::Lines(lines) => lines.words.as_slice().len() * 8,
            Self::Exact(exact) => exact.words.as_slice().len() * 8,
        }
    }
}

/// One counter of 16 bits for a name; names may share one (Takemasa et al. 2019,
/// section 4.3).
#[derive(Debug)]
pub(super) struct Row(PlainWords);

impl Row {
    /// The word of a name's counter, and the counter's place in it.
    fn place(hash: u64) -> (usize, u32) {
        let place = (hash >> (64 - ROW_BITS)) as usize;
        (place / 4, place as u32 % 4 * 16)
    }

    fn count(&self, hash: u64) -> u32 {
        let (word, shift) = Self::place(hash);
        (self.0.as_slice()[word] >> shift) as u32 & 0xFFFF
    }

    fn add(&mut self, hash: u64) -> Counted {
        let (word, shift) = Self::place(hash);
        let word = &mut self.0.as_mut_slice()[word];
        if (*word >> shift) & 0xFFFF == 0xFFFF {
            return 0;
        }
        *word += 1 << shift;
        1
    }

    fn take(&mut self, hash: u64, counted: Counted) {
        let (word, shift) = Self::place(hash);
        self.0.as_mut_slice()[word] -= (counted & 1) << shift;
    }
}

/// Three counters of 4 bits for a name, all in one cache line of 128, so that a name
/// costs one access to memory. The least of them is the count: a name is taken for
/// another one only if all of its counters are shared.
#[derive(Debug)]
pub(super) struct Lines {
    words: PlainWords,
    shift: u32,
}

impl Lines {
    const MAX_COUNT: u64 = 0xF;

    fn new(min_lines: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_lines = min_lines
            .max(64)
            .checked_next_power_of_two()
            .unwrap_or(usize::MAX / 2 + 1);
        Ok(Self {
            words: PlainWords::new(n_lines.saturating_mul(8), pages)?,
            shift: 64 - n_lines.trailing_zeros(),
        })
    }

    #[inline]
    fn first_word(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize * 8
    }

    /// Of the n-th counter of a name: its word in the line, and its place in that. They
    /// come from the low bits of the hash, the line from the high ones; the two share
    /// none, as long as there are less than 2^40 lines.
    #[inline]
    const fn place(hash: u64, n: u32) -> (usize, u32) {
        let bits = hash >> (3 + 7 * n);
        (bits as usize & 7, (bits >> 3) as u32 % 16 * 4)
    }

    #[inline]
    fn line_mut(&mut self, hash: u64) -> &mut [u64; 8] {
        let first = self.first_word(hash);
        let line = &mut self.words.as_mut_slice()[first..first + 8];
        line.try_into().expect("eight words")
    }

    #[inline]
    fn add(&mut self, hash: u64) -> Counted {
        let line = self.line_mut(hash);
        let mut counted = 0;
        for n in 0..3 {
            let (word, shift) = Self::place(hash, n);
            let room = u64::from((line[word] >> shift) & Self::MAX_COUNT != Self::MAX_COUNT);
            line[word] += room << shift;
            counted |= room << n;
        }
        counted
    }

    #[inline]
    fn take(&mut self, hash: u64, counted: Counted) {
        let line = self.line_mut(hash);
        for n in 0..3 {
            let (word, shift) = Self::place(hash, n);
            line[word] -= (counted >> n & 1) << shift;
        }
    }

    #[inline]
    fn count(&self, hash: u64) -> u32 {
        let first = self.first_word(hash);
        let line = &self.words.as_slice()[first..first + 8];
        let count = |n| {
            let (word, shift) = Self::place(hash, n);
            line[word] >> shift & Self::MAX_COUNT
        };
        count(0).min(count(1)).min(count(2)) as u32
    }
}

/// A hash table of counts with linear probing, never more than half full.
#[derive(Debug)]
pub(super) struct Exact {
    /// By place: a hash, then its count; 0 for a place that is free.
    words: PlainWords,
    mask: usize,
}

impl Exact {
    fn new(history_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_places = history_len.saturating_mul(2).max(8);
        let n_places = n_places
            .checked_next_power_of_two()
            .unwrap_or(usize::MAX / 2 + 1);
        Ok(Self {
            words: PlainWords::new(n_places.saturating_mul(2), pages)?,
            mask: n_places - 1,
        })
    }

    fn home(&self, hash: u64) -> usize {
        (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize & self.mask
    }

    /// Where a hash is, or the free place where it would be.
    fn find(&self, hash: u64) -> usize {
        let words = self.words.as_slice();
        let mut place = self.home(hash);
        while words[2 * place + 1] != 0 && words[2 * place] != hash {
            place = (place + 1) & self.mask;
        }
        place
    }

    fn count(&self, hash: u64) -> u32 {
        let place = self.find(hash & !COUNTED);
        u32::try_from(self.words.as_slice()[2 * place + 1]).unwrap_or(u32::MAX)
    }

    fn add(&mut self, hash: u64) -> Counted {
        let hash = hash & !COUNTED;
        let place = self.find(hash);
        let words = self.words.as_mut_slice();
        words[2 * place] = hash;
        words[2 * place + 1] += 1;
        1
    }

    fn take(&mut self, hash: u64) {
        let mut free = self.find(hash & !COUNTED);
        let words = self.words.as_mut_slice();
        words[2 * free + 1] -= 1;
        if words[2 * free + 1] != 0 {
            return;
        }
        // Those behind move up, unless that would put them before their home.
        let mut place = free;
        loop {
            place = (place + 1) & self.mask;
            let [hash, count] = [0, 1].map(|word| self.words.as_slice()[2 * place + word]);
            if count == 0 {
                return;
            }
            let from_home = place.wrapping_sub(self.home(hash)) & self.mask;
            if from_home >= place.wrapping_sub(free) & self.mask {
                let words = self.words.as_mut_slice();
                words[2 * free] = hash;
                words[2 * free + 1] = count;
                words[2 * place + 1] = 0;
                free = place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use proptest::prelude::*;

    use super::*;

    fn counters(kind: CountersKind, history_len: usize) -> Counters {
        Counters::new(kind, history_len, PagePreference::Base).expect("little memory")
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 2 } else { 64 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn no_count_is_too_low_and_exact_ones_are_right(
            names in prop::collection::vec(0_u64..40, 1..300), len in 1_usize..15,
        ) {
            for kind in [CountersKind::Lines, CountersKind::Exact] {
                let mut counters = counters(kind, len);
                let mut history = VecDeque::new();
                let mut oracle = BTreeMap::new();
                for name in &names {
                    // Many share a home.
                    let hash = (name / 4) << 60 | name << 3;
                    if history.len() == len {
                        let (oldest, counted) = history.pop_front().expect("not empty");
                        counters.take(oldest, counted);
                        *oracle.entry(oldest).or_insert(0) -= 1;
                    }
                    history.push_back((hash, counters.add(hash)));
                    *oracle.entry(hash).or_insert(0) += 1;
                    for (&hash, &count) in &oracle {
                        let got = counters.count(hash);
                        prop_assert!(got >= count);
                        prop_assert!(kind != CountersKind::Exact || got == count);
                    }
                }
                for (hash, counted) in history {
                    counters.take(hash, counted);
                }
                prop_assert!(oracle.keys().all(|&hash| counters.count(hash) == 0));
            }
        }
    }

    #[test]
    fn a_counter_at_its_greatest_is_not_left_too_low() {
        for (kind, max) in [(CountersKind::Row, 65_535), (CountersKind::Lines, 15)] {
            let mut counters = counters(kind, 70_000);
            let counted: Vec<_> = (0..max + 10)
                .map(|_| counters.add(0x9876_5432_1234_5678))
                .collect();
            assert_eq!(counters.count(0x9876_5432_1234_5678), max);
            for counted in counted {
                counters.take(0x9876_5432_1234_5678, counted);
            }
            assert_eq!(counters.count(0x9876_5432_1234_5678), 0);
            assert_eq!(Counters::max_count(kind), max);
        }
    }

    #[test]
    fn lines_take_no_more_memory_than_the_published_row() {
        let row = counters(CountersKind::Row, 1_000_000);
        let lines = counters(CountersKind::Lines, 1_000_000);
        assert_eq!(row.memory_bytes(), 32 << 20);
        assert!(lines.memory_bytes() <= row.memory_bytes());
    }
}
