//! How often each name was asked for within the history of a Filter.
//!
//! Owns the counters; which names are within the history is the caller's affair, who
//! says of each when it comes, and gives back when it goes what he was told then: a
//! [`Token`], by which its counter is found again without a search.

use tachonym_memory::{
    MemoryError, PagePreference, Pages, PlainWords, halves, halves_mut, places_of_halves, prefetch,
};

use crate::kind::CountersKind;

/// Where a request was counted; [`NOT_COUNTED`] if it was not.
pub(super) type Token = u64;

/// The [`Token`] of a request that no counter counted.
pub(super) const NOT_COUNTED: Token = 0;

/// Counters of names, one way or another.
pub(super) trait Count {
    /// A name comes. How often it is within the history now, as [`Count::count`] tells.
    fn add(&mut self, hash: u64) -> (Token, u32);

    /// A request goes, of which [`Count::add`] gave this token.
    fn take(&mut self, token: Token);

    /// How often a name is within the history.
    fn count(&self, hash: u64) -> u32;

    /// Fetches what the methods above read of a name.
    fn prefetch(&self, hash: u64);

    /// Fetches what [`Count::take`] reads.
    fn prefetch_token(&self, token: Token);
}

/// Counters of one row, as published: 2^24 of them.
const ROW_BITS: u32 = 24;
/// Requests in the history for each group of [`Lines`], of 32 bytes: so that even if each is
/// for another name, one of a thousand finds its group full.
const REQUESTS_BY_GROUP: usize = 2;
/// The same for [`Counters::sparse`].
const SPARSE_REQUESTS_BY_GROUP: usize = 4;

/// The counters of a Filter.
#[derive(Debug)]
pub(super) enum Counters {
    Row(Row),
    Lines(Lines),
    Exact(Exact),
}

impl Counters {
    /// Counters for a history of so many requests.
    pub(super) fn new(
        kind: CountersKind,
        history_len: usize,
        pages: PagePreference,
    ) -> Result<Self, MemoryError> {
        Ok(match kind {
            CountersKind::Row => Self::Row(Row(PlainWords::new(1 << (ROW_BITS - 2), pages)?)),
            CountersKind::Lines => Self::Lines(Lines::new(history_len / REQUESTS_BY_GROUP, pages)?),
            CountersKind::Exact => Self::Exact(Exact::new(history_len, pages)?),
        })
    }

    /// Groups of half as many bytes: enough for a history in which many requests are for
    /// names that are there already. If each is for another name, one of twenty is not
    /// counted.
    pub(super) fn sparse(history_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let lines = Lines::new(history_len / SPARSE_REQUESTS_BY_GROUP, pages)?;
        Ok(Self::Lines(lines))
    }

    /// The greatest count that is told from greater ones.
    pub(super) const fn max_count(kind: CountersKind) -> u32 {
        match kind {
            CountersKind::Row => u16::MAX as u32,
            CountersKind::Lines => Lines::MAX_COUNT,
            CountersKind::Exact => u32::MAX,
        }
    }

    /// As [`Count::count`].
    #[inline]
    pub(super) fn count(&self, hash: u64) -> u32 {
        match self {
            Self::Lines(lines) => lines.count(hash),
            Self::Row(row) => row.count(hash),
            Self::Exact(exact) => exact.count(hash),
        }
    }

    /// As [`Count::prefetch`].
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        match self {
            Self::Lines(lines) => lines.prefetch(hash),
            Self::Row(row) => row.prefetch(hash),
            Self::Exact(exact) => exact.prefetch(hash),
        }
    }

    const fn words(&self) -> &PlainWords {
        match self {
            Self::Row(row) => &row.0,
            Self::Lines(lines) => &lines.words,
            Self::Exact(exact) => &exact.words,
        }
    }

    pub(super) fn pages(&self) -> Pages {
        self.words().pages()
    }

    /// Bytes of those for a history of so many requests.
    pub(super) fn bytes_for(kind: CountersKind, history_len: usize) -> u64 {
        let n_words = match kind {
            CountersKind::Row => 1 << (ROW_BITS - 2),
            CountersKind::Lines => {
                Lines::n_groups(history_len / REQUESTS_BY_GROUP).saturating_mul(GROUP_WORDS)
            }
            CountersKind::Exact => Exact::n_words(history_len),
        };
        line_bytes(n_words as u64)
    }

    /// The same of [`Counters::sparse`].
    pub(super) fn sparse_bytes_for(history_len: usize) -> u64 {
        let n_groups = Lines::n_groups(history_len / SPARSE_REQUESTS_BY_GROUP);
        line_bytes((GROUP_WORDS as u64).saturating_mul(n_groups as u64))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words().as_slice().len() * 8
    }
}

/// Bytes of so many words, which come in whole cache lines.
const fn line_bytes(n_words: u64) -> u64 {
    const LINE_BYTES: u64 = 64;
    n_words.div_ceil(LINE_BYTES / 8).saturating_mul(LINE_BYTES)
}

/// One counter of 16 bits for a name; names may share one (Takemasa et al. 2019,
/// section 4.3).
#[derive(Debug)]
pub(super) struct Row(PlainWords);

impl Row {
    /// The number of a name's counter.
    const fn number(hash: u64) -> u64 {
        hash >> (64 - ROW_BITS)
    }

    /// The word of a counter, and the counter's place in it.
    const fn place(number: u64) -> (usize, u32) {
        (number as usize / 4, number as u32 % 4 * 16)
    }
}

impl Count for Row {
    #[inline]
    fn add(&mut self, hash: u64) -> (Token, u32) {
        let number = Self::number(hash);
        let (word, shift) = Self::place(number);
        let word = &mut self.0.as_mut_slice()[word];
        let count = (*word >> shift) as u32 & 0xFFFF;
        if count == 0xFFFF {
            return (NOT_COUNTED, count);
        }
        *word += 1 << shift;
        (number + 1, count + 1)
    }

    #[inline]
    fn take(&mut self, token: Token) {
        if token != NOT_COUNTED {
            let (word, shift) = Self::place(token - 1);
            self.0.as_mut_slice()[word] -= 1 << shift;
        }
    }

    #[inline]
    fn count(&self, hash: u64) -> u32 {
        let (word, shift) = Self::place(Self::number(hash));
        (self.0.as_slice()[word] >> shift) as u32 & 0xFFFF
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.prefetch_token(Self::number(hash) + 1);
    }

    #[inline]
    fn prefetch_token(&self, token: Token) {
        let (word, _) = Self::place(token.saturating_sub(1));
        prefetch(&self.0.as_slice()[word]);
    }
}

/// Cells of 32 bits in groups of eight, two to a cache line: 24 bits of a name's hash, which
/// with the group tell names apart but for one pair in millions, and a count of 8 bits. Cells
/// whose count is zero are zero. A name is counted in its group as long as there is a cell
/// for it.
#[derive(Debug)]
pub(super) struct Lines {
    words: PlainWords,
    n_groups: u64,
}

/// Cells of a group.
const N_CELLS: u32 = 8;
/// Words of a group.
const GROUP_WORDS: usize = N_CELLS as usize / 2;
/// The bits of a cell that are of the hash.
const TAG: u32 = 0x00FF_FFFF;
/// Bits of a cell below its count.
const COUNT_SHIFT: u32 = 24;

impl Lines {
    const MAX_COUNT: u32 = 0xFF;

    /// Groups that are made where so many would do.
    fn n_groups(min_groups: usize) -> usize {
        min_groups.max(8)
    }

    fn new(min_groups: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_groups = Self::n_groups(min_groups);
        Ok(Self {
            words: PlainWords::new(n_groups.saturating_mul(GROUP_WORDS), pages)?,
            n_groups: n_groups as u64,
        })
    }

    /// The group of a name, by the upper bits of its hash.
    #[inline]
    fn group_number(&self, hash: u64) -> usize {
        ((u128::from(hash) * u128::from(self.n_groups)) >> 64) as usize
    }

    #[inline]
    fn group(&self, number: usize) -> &[u64; GROUP_WORDS] {
        let group = &self.words.as_slice()[GROUP_WORDS * number..GROUP_WORDS * (number + 1)];
        group.try_into().expect("as long")
    }

    /// What stands for a name in its group: the lower bits of its hash, and never zero.
    #[inline]
    const fn tag(hash: u64) -> u32 {
        let tag = hash as u32 & TAG;
        tag | (tag == 0) as u32
    }
}

impl Count for Lines {
    #[inline]
    fn add(&mut self, hash: u64) -> (Token, u32) {
        let (number, tag) = (self.group_number(hash), Self::tag(hash));
        let group = self.group(number);
        let known = places_of_halves(group, tag, TAG);
        let free = places_of_halves(group, 0, u32::MAX);
        let cell = if known != 0 { known } else { free }.trailing_zeros();
        if cell >= N_CELLS {
            return (NOT_COUNTED, 0);
        }
        let place = N_CELLS as usize * number + cell as usize;
        let cell = &mut halves_mut(self.words.as_mut_slice())[place];
        let count = *cell >> COUNT_SHIFT;
        if count == Self::MAX_COUNT {
            return (NOT_COUNTED, count);
        }
        *cell = (count + 1) << COUNT_SHIFT | tag;
        (place as u64 + 1, count + 1)
    }

    #[inline]
    fn take(&mut self, token: Token) {
        if token == NOT_COUNTED {
            return;
        }
        let cell = &mut halves_mut(self.words.as_mut_slice())[token as usize - 1];
        let less = cell.wrapping_sub(1 << COUNT_SHIFT);
        *cell = if less > TAG { less } else { 0 };
    }

    #[inline]
    fn count(&self, hash: u64) -> u32 {
        let number = self.group_number(hash);
        let cell = places_of_halves(self.group(number), Self::tag(hash), TAG).trailing_zeros();
        if cell >= N_CELLS {
            return 0;
        }
        halves(self.words.as_slice())[N_CELLS as usize * number + cell as usize] >> COUNT_SHIFT
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        prefetch(&self.words.as_slice()[GROUP_WORDS * self.group_number(hash)]);
    }

    #[inline]
    fn prefetch_token(&self, token: Token) {
        prefetch(&self.words.as_slice()[token.saturating_sub(1) as usize / 2]);
    }
}

/// A hash table of counts with linear probing, never more than half full.
#[derive(Debug)]
pub(super) struct Exact {
    /// By place: the [`Token`] of a name, then its count; 0 for a place that is free.
    words: PlainWords,
    mask: usize,
}

impl Exact {
    fn n_words(history_len: usize) -> usize {
        let n_places = history_len.saturating_mul(2).max(8);
        let n_places = n_places
            .checked_next_power_of_two()
            .unwrap_or(usize::MAX / 2 + 1);
        n_places.saturating_mul(2)
    }

    fn new(history_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_words = Self::n_words(history_len);
        Ok(Self {
            words: PlainWords::new(n_words, pages)?,
            mask: n_words / 2 - 1,
        })
    }

    /// What stands for a name: its hash, but for the lowest bit.
    const fn token(hash: u64) -> Token {
        hash | 1
    }

    fn home(&self, token: Token) -> usize {
        (token.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize & self.mask
    }

    /// Where a name is, or the free place where it would be.
    fn find(&self, token: Token) -> usize {
        let words = self.words.as_slice();
        let mut place = self.home(token);
        while words[2 * place + 1] != 0 && words[2 * place] != token {
            place = (place + 1) & self.mask;
        }
        place
    }
}

impl Count for Exact {
    fn add(&mut self, hash: u64) -> (Token, u32) {
        let token = Self::token(hash);
        let place = self.find(token);
        let words = self.words.as_mut_slice();
        words[2 * place] = token;
        words[2 * place + 1] += 1;
        (
            token,
            u32::try_from(words[2 * place + 1]).unwrap_or(u32::MAX),
        )
    }

    fn take(&mut self, token: Token) {
        if token == NOT_COUNTED {
            return;
        }
        let mut free = self.find(token);
        let words = self.words.as_mut_slice();
        words[2 * free + 1] -= 1;
        if words[2 * free + 1] != 0 {
            return;
        }
        // Those behind move up, unless that would put them before their home.
        let mut place = free;
        loop {
            place = (place + 1) & self.mask;
            let [moving, count] = [0, 1].map(|word| self.words.as_slice()[2 * place + word]);
            if count == 0 {
                return;
            }
            let from_home = place.wrapping_sub(self.home(moving)) & self.mask;
            if from_home >= place.wrapping_sub(free) & self.mask {
                let words = self.words.as_mut_slice();
                words[2 * free] = moving;
                words[2 * free + 1] = count;
                words[2 * place + 1] = 0;
                free = place;
            }
        }
    }

    fn count(&self, hash: u64) -> u32 {
        let place = self.find(Self::token(hash));
        u32::try_from(self.words.as_slice()[2 * place + 1]).unwrap_or(u32::MAX)
    }

    fn prefetch(&self, hash: u64) {
        self.prefetch_token(Self::token(hash));
    }

    fn prefetch_token(&self, token: Token) {
        prefetch(&self.words.as_slice()[2 * self.home(token)]);
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
        fn counts_are_those_of_the_history(
            names in prop::collection::vec(0_u64..40, 1..300), len in 1_usize..15,
        ) {
            for kind in [CountersKind::Lines, CountersKind::Exact] {
                let mut counters = counters(kind, len);
                let mut history = VecDeque::new();
                let mut oracle = BTreeMap::new();
                for name in &names {
                    // Many share a group.
                    let hash = (name / 4) << 60 | name << 3;
                    if history.len() == len {
                        let (oldest, token) = history.pop_front().expect("not empty");
                        take(&mut counters, token);
                        *oracle.entry(oldest).or_insert(0) -= 1;
                    }
                    let (token, count) = add(&mut counters, hash);
                    history.push_back((hash, token));
                    *oracle.entry(hash).or_insert(0) += 1;
                    prop_assert_eq!(count, oracle[&hash]);
                    for (&hash, &count) in &oracle {
                        prop_assert_eq!(counters.count(hash), count);
                    }
                }
                for (_, token) in history {
                    take(&mut counters, token);
                }
                prop_assert!(oracle.keys().all(|&hash| counters.count(hash) == 0));
                prop_assert!(kind == CountersKind::Exact
                    || counters.words().as_slice().iter().all(|&word| word == 0));
            }
        }
    }

    fn add(counters: &mut Counters, hash: u64) -> (Token, u32) {
        match counters {
            Counters::Row(row) => row.add(hash),
            Counters::Lines(lines) => lines.add(hash),
            Counters::Exact(exact) => exact.add(hash),
        }
    }

    fn take(counters: &mut Counters, token: Token) {
        match counters {
            Counters::Row(row) => row.take(token),
            Counters::Lines(lines) => lines.take(token),
            Counters::Exact(exact) => exact.take(token),
        }
    }

    #[test]
    fn a_counter_at_its_greatest_is_not_left_too_low() {
        for (kind, max) in [(CountersKind::Row, 65_535), (CountersKind::Lines, 255)] {
            let mut counters = counters(kind, 70_000);
            let hash = 0x9876_5432_1234_5678;
            let tokens: Vec<_> = (0..max + 10).map(|_| add(&mut counters, hash).0).collect();
            assert_eq!(counters.count(hash), max);
            for token in tokens {
                take(&mut counters, token);
            }
            assert_eq!(counters.count(hash), 0);
            assert_eq!(Counters::max_count(kind), max);
        }
    }

    #[test]
    fn a_full_group_counts_on_what_it_has_and_nothing_else_until_there_is_room() {
        let mut counters = counters(CountersKind::Lines, 10);
        let names = (1..=8).map(|name| name << 3);
        let tokens: Vec<_> = names.clone().map(|hash| add(&mut counters, hash)).collect();
        assert!(
            tokens
                .iter()
                .all(|&(token, count)| token != NOT_COUNTED && count == 1)
        );
        let further = 9 << 3;
        assert_eq!(add(&mut counters, further), (NOT_COUNTED, 0));
        assert_eq!(counters.count(further), 0);
        assert_eq!(add(&mut counters, 3 << 3).1, 2);
        take(&mut counters, NOT_COUNTED);
        take(&mut counters, tokens[6].0);
        assert_eq!(counters.count(7 << 3), 0);
        assert_eq!(add(&mut counters, further).1, 1);
        let still = names.filter(|&hash| hash != 7 << 3 && hash != 3 << 3);
        assert!(still.into_iter().all(|hash| counters.count(hash) == 1));
    }

    #[test]
    fn lines_take_less_memory_than_the_published_row() {
        let row = counters(CountersKind::Row, 1_000_000);
        let lines = counters(CountersKind::Lines, 1_000_000);
        assert_eq!(row.memory_bytes(), 32 << 20);
        assert!(lines.memory_bytes() < row.memory_bytes() / 2);
    }
}
