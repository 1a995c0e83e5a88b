//! What has been erased from the devices.
//!
//! Owns prefixes by their hashes, each with the place in the log before which Data below it is
//! erased. An erasure is itself a record in the log with the same contents. The erased bytes
//! remain until they are overwritten.
//!
//! - Before the record is overwritten it is written again, as long as anything older may be on a
//!   volume, in service or not; otherwise it is forgotten. All are written again when a volume
//!   is lost.
//! - After a start, the first region to be overwritten may be the one with the erasure. Its
//!   former table of contents keeps the erasure until the next region, or a table of contents,
//!   is written. If it has none after a start, its erasures are written again at once.
//! - The number of prefixes is bounded: 65,536, or one for each KiB of the store if that is
//!   less. One more erases everything that is older than it, because erased Data must not
//!   return.
//! - A region that cannot be read at a start loses its erasures. In a store with one region
//!   left, a loss of power may undo erasures, because they are overwritten with it.

use hashbrown::HashMap;

use crate::layout::{Chunk, Extent, Position};

/// Most prefixes that are kept.
pub(crate) const MAX_ERASURES: usize = 1 << 16;

/// Bytes of a store for each prefix that is kept, so that their records are a small part of it.
const BYTES_PER_ERASURE: u64 = 1024;

const AT_BITS: u32 = 20;
const MASK_BITS: u32 = 16;
/// Regions between an erasure and its record, as far as a table of contents can tell.
const MAX_AGE: u64 = 1023 << MASK_BITS;

/// What the record of an erasure has that erases what was written before a position.
pub(crate) fn to_chunk((seq, at): Position) -> Chunk {
    Chunk {
        place: 0,
        len: 0,
        fresh_until_ms: seq << AT_BITS | u64::from(at),
    }
}

/// What a table of contents says of the record of an erasure, at `own`, with this chunk.
pub(crate) fn to_extent(own: Position, chunk: Option<Chunk>) -> Extent {
    let before = chunk.map_or(own, |it| {
        let word = it.fresh_until_ms;
        (word >> AT_BITS, (word & ((1 << AT_BITS) - 1)) as u32)
    });
    // Where it does not tell, more is erased rather than less.
    let is_told = |&before: &Position| before <= own && own.0 - before.0 < MAX_AGE;
    let before = Some(before).filter(is_told).unwrap_or(own);
    let age = own.0 - before.0;
    Extent {
        at: before.1,
        len_kib: (age >> MASK_BITS) as u16,
        mask: age as u16,
    }
}

/// The position before which an erasure erases, of whose record in a region of this number a
/// table of contents says this.
pub(crate) fn from_extent(seq: u64, extent: Extent) -> Position {
    let age = u64::from(extent.len_kib) << MASK_BITS | u64::from(extent.mask);
    (seq.saturating_sub(age), extent.at)
}

#[derive(Clone, Copy, Debug, Default)]
struct Erasure {
    before: Position,
    /// Of the region with its last record; zero before there is one.
    seq: u64,
}

/// What became of an erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is kept, or all that it erases is erased already.
    Kept,
    /// There are too many: everything before the position is erased.
    All,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Erasures {
    by_prefix: HashMap<u64, Erasure, foldhash::fast::FixedState>,
    max: usize,
    /// The hash of the empty prefix, which no record has among its own.
    empty: u64,
    /// Everything before it is erased.
    all: Erasure,
}

impl Erasures {
    /// Of a store of so many bytes; `empty` is the hash of the empty prefix.
    pub(crate) fn new(empty: u64, store_bytes: u64) -> Self {
        Self {
            by_prefix: HashMap::default(),
            max: max_of(store_bytes),
            empty,
            all: Erasure::default(),
        }
    }

    /// The store has only so many bytes left. If more prefixes are kept than it has room for,
    /// everything before `position` is erased.
    pub(crate) fn shrink(&mut self, store_bytes: u64, position: Position) -> Added {
        self.max = max_of(store_bytes);
        if self.by_prefix.len() <= self.max {
            return Added::Kept;
        }
        self.add_all(position);
        Added::All
    }

    /// Most prefixes that are kept.
    pub(crate) const fn max_len(&self) -> usize {
        self.max
    }

    /// What is below a prefix and was written before `position` is erased.
    pub(crate) fn add(&mut self, prefix: u64, position: Position) -> Added {
        if prefix == self.empty {
            self.add_all(position);
        } else if position > self.all.before {
            if self.by_prefix.len() >= self.max && !self.by_prefix.contains_key(&prefix) {
                self.add_all(position);
                return Added::All;
            }
            let erasure = self.by_prefix.entry(prefix).or_default();
            erasure.before = position.max(erasure.before);
        }
        Added::Kept
    }

    fn add_all(&mut self, position: Position) {
        self.all.before = self.all.before.max(position);
        self.by_prefix.retain(|_, it| it.before > position);
    }

    /// A region of this number has a record of the erasure of `prefix` before `position`.
    pub(crate) fn note_record(&mut self, prefix: u64, position: Position, seq: u64) {
        if let Some(erasure) = self.find_mut(prefix, position) {
            erasure.seq = erasure.seq.max(seq);
        }
    }

    /// Whether no other record says what the one does that a region of this number has.
    pub(crate) fn is_last_record(&mut self, prefix: u64, position: Position, seq: u64) -> bool {
        self.find_mut(prefix, position)
            .is_some_and(|it| it.seq <= seq)
    }

    fn find_mut(&mut self, prefix: u64, position: Position) -> Option<&mut Erasure> {
        let found = match prefix == self.empty {
            true => Some(&mut self.all),
            false => self.by_prefix.get_mut(&prefix),
        };
        found.filter(|it| it.before == position)
    }

    /// Whether it is kept that what is below a prefix and older than `position` is erased.
    pub(crate) fn has(&self, prefix: u64, position: Position) -> bool {
        match prefix == self.empty {
            true => self.all.before == position,
            false => {
                let kept = self.by_prefix.get(&prefix);
                kept.is_some_and(|it| it.before == position)
            }
        }
    }

    /// Whether all that is below a prefix and older than `position` is erased already.
    pub(crate) fn includes_before(&self, prefix: u64, position: Position) -> bool {
        let kept = self.by_prefix.get(&prefix).map(|it| it.before);
        kept.max(Some(self.all.before)) >= Some(position)
    }

    /// What a prefix erased has gone.
    pub(crate) fn forget(&mut self, prefix: u64) {
        match prefix == self.empty {
            true => self.all = Erasure::default(),
            false => drop(self.by_prefix.remove(&prefix)),
        }
    }

    /// Those whose last record is in a region of this number.
    pub(crate) fn of_region(&self, seq: u64) -> impl Iterator<Item = (u64, Position)> {
        let all = (self.all.seq == seq).then_some((self.empty, self.all.before));
        let others = self.by_prefix.iter().filter(move |(_, it)| it.seq == seq);
        let there = all
            .into_iter()
            .chain(others.map(|(&prefix, it)| (prefix, it.before)));
        there.filter(move |_| seq > 0)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Position)> {
        let all = (self.all.before > (0, 0)).then_some((self.empty, self.all.before));
        let others = self.by_prefix.iter();
        all.into_iter()
            .chain(others.map(|(&prefix, it)| (prefix, it.before)))
    }

    /// Whether nothing is erased.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty() && self.all.before == (0, 0)
    }

    /// Whether what has a prefix of this hash and was written at `position` is erased.
    pub(crate) fn includes(&self, prefix: u64, position: Position) -> bool {
        self.by_prefix
            .get(&prefix)
            .is_some_and(|it| position < it.before)
    }

    /// Whether everything that was written at `position` is erased.
    pub(crate) fn includes_all(&self, position: Position) -> bool {
        position < self.all.before
    }
}

/// Most prefixes that a store of so many bytes keeps.
fn max_of(store_bytes: u64) -> usize {
    (store_bytes / BYTES_PER_ERASURE).clamp(1, MAX_ERASURES as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EMPTY: u64 = 99;

    #[test]
    fn what_is_older_than_an_erasure_is_erased_until_it_is_forgotten() {
        let mut erasures = Erasures::new(EMPTY, 1 << 30);
        assert!(erasures.is_empty());
        erasures.add(7, (3, 10));
        erasures.add(7, (2, 90));
        assert!(erasures.includes(7, (3, 9)) && erasures.includes(7, (2, 99)));
        assert!(!erasures.includes(7, (3, 10)) && !erasures.includes(8, (1, 0)));
        erasures.note_record(7, (3, 10), 3);
        erasures.note_record(7, (3, 10), 5);
        assert!(!erasures.is_last_record(7, (2, 90), 2) && !erasures.is_last_record(7, (3, 10), 3));
        assert!(erasures.is_last_record(7, (3, 10), 5));
        erasures.forget(7);
        assert!(erasures.is_empty());
        erasures.add(EMPTY, (4, 4));
        erasures.add(7, (4, 3));
        assert!(erasures.iter().eq([(EMPTY, (4, 4))]));
        assert!(erasures.is_last_record(EMPTY, (4, 4), 9));
        erasures.forget(EMPTY);
        assert!(erasures.is_empty());
    }

    #[test]
    fn too_many_erase_all() {
        let mut erasures = Erasures::new(EMPTY, 1 << 30);
        for prefix in 0..MAX_ERASURES as u64 {
            assert_eq!(erasures.add(prefix + 100, (5, prefix as u32)), Added::Kept);
        }
        assert!(!erasures.includes_all((0, 1)));
        assert_eq!(erasures.add(u64::MAX, (6, 0)), Added::All);
        assert!(erasures.includes_all((5, 9)) && !erasures.includes_all((6, 0)));
        assert!(erasures.by_prefix.is_empty());
        assert_eq!(Erasures::new(EMPTY, 4 << 20).max, 4 << 10);
    }

    proptest! {
        #[test]
        fn a_record_and_a_table_tell_a_position_or_a_later_one(
            seq in 1_u64..1 << 43,
            age in prop_oneof![0_u64..10, 0..MAX_AGE * 2],
            at in 0_u32..1 << 20,
        ) {
            let (own, before) = ((seq, (1 << 20) - 1), (seq.saturating_sub(age), at));
            let extent = to_extent(own, Some(to_chunk(before)));
            let told = from_extent(seq, Extent::unpack(extent.pack()));
            prop_assert_eq!(told, if age < MAX_AGE { before } else { own });
            let hostile = to_extent((seq, 1), Some(to_chunk((seq, at.max(2)))));
            prop_assert_eq!(from_extent(seq, hostile), (seq, 1));
        }
    }
}
