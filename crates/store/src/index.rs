//! The index: where batches lie on SSD, held in DRAM.
//!
//! Owns a hash table of cache lines, each with six entries of ten bytes: a tag of 16 bits, and a
//! word with region, place, length, and the segments of the batch that are present. An entry may
//! stand in two lines; each of them gives the other with the tag (partial-key cuckoo hashing,
//! Fan et al. 2014). So the table may be filled to [`MAX_FILL_PCT`] percent, and a batch costs
//! 12.2 bytes: 1.2 bytes a packet at ten segments, 1.3 to 1.4 with the entries of prefixes.
//! Names are not kept. One absent name in 6,000 looks present; the record that is read shows it,
//! by the hash of the whole name and the names of its Data.
//!
//! A key may have several entries: batches that were written in parts. A bit of the mask says
//! which segments an entry has; entries of prefixes have none. Each prefix of a name has an
//! entry for the record written last below it, which is the one that is overwritten last. If
//! that record is erased, damaged or lost with its volume, Data below the prefix is found by its
//! full name only, until something below it is written again. Prefixes may use half of the
//! table, so that names with many components do not displace Data.

use tachonym_memory::{LINE_WORDS, MemoryError, PagePreference, Pages, PlainWords, prefetch};

use crate::layout::{EXTENT_BITS, Extent};

/// Entries of a line.
const LINE_ENTRIES: usize = 6;
/// Where the tags of a line begin, in words.
const TAG_WORD: usize = LINE_ENTRIES;

/// How full the table gets, in percent: beyond, entries might have to be moved far.
pub(crate) const MAX_FILL_PCT: usize = 88;

/// Entries that are looked at to find one that can be moved.
const MAX_LOOKED_AT: usize = 512;

/// Where a record lies in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Number of the region, below 2^18.
    pub region: u32,
    /// Where in it, and what chunks it has.
    pub extent: Extent,
}

impl Location {
    fn pack(self) -> u64 {
        u64::from(self.region) << EXTENT_BITS | self.extent.pack()
    }

    fn unpack(word: u64) -> Self {
        Self {
            region: (word >> EXTENT_BITS) as u32,
            extent: Extent::unpack(word),
        }
    }
}

fn is_prefix(word: u64) -> bool {
    Location::unpack(word).extent.mask == 0
}

/// See the module.
#[derive(Debug)]
pub struct Index {
    words: PlainWords,
    n_lines: usize,
    len: usize,
    /// Of these, entries of prefixes.
    n_prefixes: usize,
    /// For the search for an entry that can be moved.
    paths: Vec<Step>,
}

/// An entry that could be moved, and to make room for which other one of these.
#[derive(Clone, Copy, Debug)]
struct Step {
    line: usize,
    entry: usize,
    from: Option<usize>,
}

/// Where a key's entries are.
#[derive(Clone, Copy)]
struct Place {
    tag: u16,
    lines: [usize; 2],
}

/// Which entries of a line have a tag, not 0.
fn tagged(words: &[u64; LINE_WORDS], tag: u16) -> impl Iterator<Item = usize> + use<> {
    const ONES: u64 = 0x0001_0001_0001_0001;
    const TOPS: u64 = 0x8000_8000_8000_8000;
    // Tags that differ by nothing are those whose top bit neither a carry nor a bit sets.
    let equal = |tags: u64| {
        let differing = tags ^ (ONES * u64::from(tag));
        !(((differing & !TOPS) + !TOPS) | differing) & TOPS
    };
    let mut found = [equal(words[TAG_WORD]), equal(words[TAG_WORD + 1])];
    std::iter::from_fn(move || {
        let half = usize::from(found[0] == 0);
        let place = found[half].trailing_zeros() as usize / 16;
        // The last two of a line's eight tags are no entry's, and stay 0.
        (found[half] != 0).then(|| {
            found[half] &= found[half] - 1;
            4 * half + place
        })
    })
}

impl Index {
    /// An empty one for so many entries.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub fn new(max_entries: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let n_lines = Self::lines_for(max_entries);
        Ok(Self {
            words: PlainWords::new(n_lines * LINE_WORDS, pages)?,
            n_lines,
            len: 0,
            n_prefixes: 0,
            paths: Vec::with_capacity(MAX_LOOKED_AT),
        })
    }

    fn lines_for(max_entries: usize) -> usize {
        (max_entries.saturating_mul(100) / (LINE_ENTRIES * MAX_FILL_PCT) + 1).max(2)
    }

    /// Bytes of an index for so many entries.
    #[must_use]
    pub fn bytes_for(max_entries: usize) -> usize {
        Self::lines_for(max_entries).saturating_mul(LINE_WORDS * 8)
    }

    /// Entries for which so many bytes are enough.
    #[must_use]
    pub const fn entries_in(bytes: usize) -> usize {
        bytes / (LINE_WORDS * 8) * LINE_ENTRIES * MAX_FILL_PCT / 100
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most entries.
    #[must_use]
    pub const fn max_len(&self) -> usize {
        self.n_lines * LINE_ENTRIES * MAX_FILL_PCT / 100
    }

    /// Most entries of prefixes: names with many components shall not leave batches no room.
    const fn max_prefixes(&self) -> usize {
        self.max_len() / 2
    }

    /// What pages it is on.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.words.pages()
    }

    fn place(&self, key: u64) -> Place {
        let tag = (key as u16).max(1);
        let first = ((u128::from(key) * self.n_lines as u128) >> 64) as usize;
        Place {
            tag,
            lines: [first, self.other_line(first, tag)],
        }
    }

    /// The other line of an entry with this tag in one. Of that, it is the first again.
    fn other_line(&self, line: usize, tag: u16) -> usize {
        let spread = u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let sum = ((u128::from(spread) * self.n_lines as u128) >> 64) as usize;
        match sum.checked_sub(line) {
            Some(other) => other,
            None => sum + self.n_lines - line,
        }
    }

    fn word(&self, line: usize, entry: usize) -> u64 {
        self.words.as_slice()[line * LINE_WORDS + entry]
    }

    fn tag(&self, line: usize, entry: usize) -> u16 {
        let words = self.words.as_slice();
        let word = words[line * LINE_WORDS + TAG_WORD + entry / 4];
        (word >> (entry % 4 * 16)) as u16
    }

    fn set(&mut self, line: usize, entry: usize, tag: u16, word: u64) {
        let words = self.words.as_mut_slice();
        words[line * LINE_WORDS + entry] = word;
        let tags = &mut words[line * LINE_WORDS + TAG_WORD + entry / 4];
        let shift = entry % 4 * 16;
        *tags = *tags & !(0xFFFF << shift) | u64::from(tag) << shift;
    }

    /// Has the lines of a key fetched.
    pub fn prefetch(&self, key: u64) {
        for line in self.place(key).lines {
            prefetch(&self.words.as_slice()[line * LINE_WORDS]);
        }
    }

    fn line(&self, line: usize) -> &[u64; LINE_WORDS] {
        let (lines, _) = self.words.as_slice().as_chunks();
        &lines[line]
    }

    fn entries(&self, key: u64) -> impl Iterator<Item = (usize, usize, u64)> + use<'_> {
        let Place { tag, lines } = self.place(key);
        let n_lines = if lines[0] == lines[1] { 1 } else { 2 };
        lines.into_iter().take(n_lines).flat_map(move |line| {
            let words = self.line(line);
            tagged(words, tag).map(move |entry| (line, entry, words[entry]))
        })
    }

    /// What may be under a key, in no particular order.
    pub fn find(&self, key: u64) -> impl Iterator<Item = Location> + use<'_> {
        self.entries(key).map(|(_, _, word)| Location::unpack(word))
    }

    /// Adds an entry. False if there is no room, or half of it is of prefixes and this is one
    /// of these, too.
    #[must_use]
    pub fn insert(&mut self, key: u64, location: Location) -> bool {
        let word = location.pack();
        if self.len >= self.max_len() || is_prefix(word) && self.n_prefixes >= self.max_prefixes() {
            return false;
        }
        let place = self.place(key);
        let Some((line, entry)) = self.make_room(&place) else {
            return false;
        };
        self.set(line, entry, place.tag, word);
        self.len += 1;
        self.n_prefixes += usize::from(is_prefix(word));
        true
    }

    /// Puts another location in the place of one of the same kind. False if that is not there.
    pub fn replace(&mut self, key: u64, old: Location, new: Location) -> bool {
        debug_assert_eq!(old.extent.mask == 0, new.extent.mask == 0);
        let old = old.pack();
        let found = self.entries(key).find(|&(.., word)| word == old);
        if let Some((line, entry, _)) = found {
            let tag = self.tag(line, entry);
            self.set(line, entry, tag, new.pack());
        }
        found.is_some()
    }

    /// Removes an entry; false if it is not there.
    pub fn remove(&mut self, key: u64, location: Location) -> bool {
        let word = location.pack();
        let found = self.entries(key).find(|&(.., found)| found == word);
        if let Some((line, entry, _)) = found {
            self.forget(line, entry);
        }
        found.is_some()
    }

    /// Removes all but those that are as `is_kept` says.
    pub fn retain(&mut self, mut is_kept: impl FnMut(Location) -> bool) {
        for line in 0..self.n_lines {
            for entry in 0..LINE_ENTRIES {
                let word = self.word(line, entry);
                if word != 0 && !is_kept(Location::unpack(word)) {
                    self.forget(line, entry);
                }
            }
        }
    }

    fn forget(&mut self, line: usize, entry: usize) {
        self.n_prefixes -= usize::from(is_prefix(self.word(line, entry)));
        self.len -= 1;
        self.set(line, entry, 0, 0);
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        (self.len, self.n_prefixes) = (0, 0);
    }

    fn free_entry(&self, line: usize) -> Option<usize> {
        (0..LINE_ENTRIES).find(|&entry| self.word(line, entry) == 0)
    }

    /// A free entry in one of the lines, the emptier, after others have moved if they must.
    fn make_room(&mut self, place: &Place) -> Option<(usize, usize)> {
        let n_used = |line| {
            (0..LINE_ENTRIES)
                .filter(|&it| self.word(line, it) != 0)
                .count()
        };
        let [first, second] = place.lines;
        let line = match n_used(first) <= n_used(second) {
            true => first,
            false => second,
        };
        if let Some(entry) = self.free_entry(line) {
            return Some((line, entry));
        }
        self.paths.clear();
        for line in place.lines {
            let steps = (0..LINE_ENTRIES).map(|entry| Step {
                line,
                entry,
                from: None,
            });
            self.paths.extend(steps);
        }
        // Breadth first, so that few entries move.
        let mut looked_at = 0;
        while looked_at < self.paths.len() {
            let Step { line, entry, .. } = self.paths[looked_at];
            let other = self.other_line(line, self.tag(line, entry));
            if let Some(free) = self.free_entry(other) {
                return Some(self.move_along(looked_at, (other, free)));
            }
            if self.paths.len() + LINE_ENTRIES <= MAX_LOOKED_AT && other != line {
                let from = Some(looked_at);
                let steps = (0..LINE_ENTRIES).map(|entry| Step {
                    line: other,
                    entry,
                    from,
                });
                self.paths.extend(steps);
            }
            looked_at += 1;
        }
        None
    }

    /// Moves the entry of a step to where there is room, then the one before to its place, and
    /// so on. Which one is free in the end.
    fn move_along(&mut self, last: usize, room: (usize, usize)) -> (usize, usize) {
        let (mut step, mut room) = (Some(last), room);
        while let Some(idx) = step {
            let Step { line, entry, from } = self.paths[idx];
            let (word, tag) = (self.word(line, entry), self.tag(line, entry));
            self.set(room.0, room.1, tag, word);
            self.set(line, entry, 0, 0);
            (step, room) = (from, (line, entry));
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn mix(seed: u64) -> u64 {
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ mixed >> 31
    }

    #[test]
    fn entries_with_a_tag_are_found_in_every_place_and_no_others() {
        for tag in [1, 2, 0x7FFF, 0x8000, 0xFFFF] {
            for pattern in 0..1_u32 << LINE_ENTRIES {
                let mut words = [0; LINE_WORDS];
                let mut expected = Vec::new();
                for entry in 0..LINE_ENTRIES {
                    let has_it = pattern >> entry & 1 == 1;
                    // Those beside it differ in one bit.
                    let here = if has_it { tag } else { tag ^ 1 << (entry * 3) };
                    words[TAG_WORD + entry / 4] |= u64::from(here) << (entry % 4 * 16);
                    expected.extend(has_it.then_some(entry));
                }
                assert_eq!(tagged(&words, tag).collect::<Vec<_>>(), expected);
            }
        }
    }

    fn location(n: u64) -> Location {
        Location {
            region: (n % crate::layout::MAX_REGIONS as u64) as u32,
            extent: Extent::unpack(n | 1 << 20 | 1 << 30),
        }
    }

    #[test]
    fn a_batch_costs_little_more_than_twelve_bytes_and_is_always_found() {
        let max_entries = 100_000;
        let mut index = Index::new(max_entries, PagePreference::Auto).expect("memory");
        let by_entry = Index::bytes_for(max_entries) as f64 / max_entries as f64;
        assert!(by_entry < 12.2, "{by_entry}");
        assert!(index.max_len() >= max_entries);
        for n in 0..max_entries as u64 {
            assert!(index.insert(mix(n), location(n)), "entry {n} finds room");
        }
        for n in 0..max_entries as u64 {
            assert!(index.find(mix(n)).any(|found| found == location(n)));
        }
        let strangers = (1_000_000..1_100_000).filter(|&n| index.find(mix(n)).next().is_some());
        let n_taken_for_others = strangers.count();
        // Ten entries in two lines, one tag of 65,536.
        assert!(
            (5..40).contains(&n_taken_for_others),
            "{n_taken_for_others}"
        );
        while index.insert(mix(index.len() as u64), location(5)) {}
        assert_eq!(index.len(), index.max_len());
        for n in 0..max_entries as u64 {
            assert!(index.remove(mix(n), location(n)));
        }
    }

    #[test]
    fn prefixes_have_half_of_it_at_most() {
        let mut index = Index::new(1_000, PagePreference::Auto).expect("memory");
        let max_prefixes = index.max_len() as u64 / 2;
        let of_prefix = |n: u64| {
            let extent = Extent {
                mask: 0,
                ..location(n).extent
            };
            Location {
                extent,
                ..location(n)
            }
        };
        let n_in = (0..5_000).filter(|&n| index.insert(mix(n), of_prefix(n)));
        assert_eq!(n_in.count() as u64, max_prefixes);
        assert!((5_000..5_000 + max_prefixes).all(|n| index.insert(mix(n), location(1))));
        assert!(index.remove(mix(0), of_prefix(0)));
        assert!(!index.remove(mix(0), of_prefix(0)));
        assert!(index.insert(mix(7_000), of_prefix(1)) && !index.insert(mix(7_001), of_prefix(1)));
        index.retain(|it| it.extent.mask != 0);
        let n_in = (0..5_000).filter(|&n| index.insert(mix(n), of_prefix(n)));
        assert_eq!(n_in.count() as u64, max_prefixes);
    }

    proptest! {
        #[test]
        fn it_holds_what_was_put_in(
            steps in prop::collection::vec((0..3_u8, 0..40_u64, 0..4_u64), 1..400),
        ) {
            let mut index = Index::new(60, PagePreference::Auto).expect("memory");
            let mut oracle: HashMap<(u64, u64), usize> = HashMap::new();
            for (what, key, n) in steps {
                let held = oracle.entry((key, n)).or_default();
                match what {
                    0 | 1 => {
                        let is_in = index.insert(mix(key), location(n));
                        *held += usize::from(is_in);
                    }
                    _ => {
                        prop_assert_eq!(index.remove(mix(key), location(n)), *held > 0);
                        *held = held.saturating_sub(1);
                    }
                }
                prop_assert_eq!(index.len(), oracle.values().sum::<usize>());
            }
            for ((key, n), count) in oracle {
                let n_found = index.find(mix(key)).filter(|&it| it == location(n)).count();
                prop_assert_eq!(n_found, count);
            }
        }
    }

    #[test]
    fn an_entry_is_replaced_where_it_is() {
        let mut index = Index::new(10, PagePreference::Auto).expect("memory");
        assert!(index.insert(5, location(1)));
        assert!(!index.replace(5, location(2), location(3)));
        assert!(index.replace(5, location(1), location(3)));
        assert!(index.find(5).eq([location(3)]));
        assert_eq!(index.len(), 1);
        assert!(index.insert(6, location(1)));
        index.retain(|it| it == location(1));
        assert!(index.find(6).eq([location(1)]) && index.find(5).next().is_none());
        assert_eq!(index.len(), 1);
        index.clear();
        assert!(index.is_empty() && index.find(6).next().is_none());
    }
}
