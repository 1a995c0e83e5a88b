//! What lets a Data skip searches that cannot succeed.
//!
//! Owns counts of entries by name length and of names that digests are asked
//! under. They may say "perhaps", never "no" wrongly.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tachonym_packet::NameHash;

/// Number of entries per number of name components.
#[derive(Debug, Default)]
pub(super) struct LengthCounts {
    /// The last one is not zero. A packet's size bounds the length.
    counts: Vec<u32>,
    total: u32,
    /// See [`LengthCounts::bits`], and how many entries the highest bit stands for.
    bits: u64,
    n_long: u32,
}

/// The shortest length that shares a bit with all longer ones.
const LONG: usize = 63;

impl LengthCounts {
    pub(super) fn add(&mut self, length: usize) {
        if length >= self.counts.len() {
            self.counts.resize(length + 1, 0);
        }
        self.counts[length] += 1;
        self.total += 1;
        self.n_long += u32::from(length >= LONG);
        self.bits |= 1 << length.min(LONG);
    }

    /// Takes back an [`LengthCounts::add`].
    pub(super) fn remove(&mut self, length: usize) {
        self.counts[length] -= 1;
        self.total -= 1;
        self.n_long -= u32::from(length >= LONG);
        let is_left = match length < LONG {
            true => self.counts[length] > 0,
            false => self.n_long > 0,
        };
        if !is_left {
            self.bits &= !(1 << length.min(LONG));
        }
        while self.counts.last() == Some(&0) {
            self.counts.pop();
        }
    }

    /// A bit for each length that has an entry; the highest stands for all from 63 on. Takes
    /// constant time.
    pub(super) const fn bits(&self) -> u64 {
        self.bits
    }

    pub(super) fn has(&self, length: usize) -> bool {
        self.counts.get(length).is_some_and(|&count| count > 0)
    }

    pub(super) const fn total(&self) -> u32 {
        self.total
    }

    /// The greatest length with an entry; 0 if there is none.
    pub(super) const fn longest(&self) -> usize {
        self.counts.len().saturating_sub(1)
    }
}

/// Multiset of the names that entries with a digest ask under, by hash.
#[derive(Debug, Default)]
pub(super) struct DigestParents {
    table: HashTable<(NameHash, u32)>,
}

impl DigestParents {
    pub(super) fn add(&mut self, parent: NameHash) {
        let entry = self
            .table
            .entry(parent.0, |item| item.0 == parent, |item| item.0.0);
        match entry {
            Entry::Occupied(mut found) => found.get_mut().1 += 1,
            Entry::Vacant(vacant) => {
                vacant.insert((parent, 1));
            }
        }
    }

    /// Takes back an [`DigestParents::add`].
    pub(super) fn remove(&mut self, parent: NameHash) {
        if let Ok(mut found) = self.table.find_entry(parent.0, |item| item.0 == parent) {
            found.get_mut().1 -= 1;
            if found.get().1 == 0 {
                found.remove();
            }
        }
    }

    pub(super) fn contains(&self, parent: NameHash) -> bool {
        !self.table.is_empty() && self.table.find(parent.0, |item| item.0 == parent).is_some()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_say_which_lengths_have_entries(
            steps in prop::collection::vec((any::<bool>(), 55_usize..70), 0..60),
        ) {
            let mut counts = LengthCounts::default();
            let mut entries: Vec<usize> = Vec::new();
            for (removes, length) in steps {
                match entries.iter().position(|&it| it == length) {
                    Some(at) if removes => {
                        counts.remove(entries.swap_remove(at));
                    }
                    _ => {
                        counts.add(length);
                        entries.push(length);
                    }
                }
                let bits = entries.iter().fold(0_u64, |bits, &length| bits | 1 << length.min(63));
                prop_assert_eq!(counts.bits(), bits);
                prop_assert_eq!(counts.total() as usize, entries.len());
                prop_assert_eq!(counts.longest(), entries.iter().copied().max().unwrap_or(0));
                prop_assert!((0..80).all(|length| counts.has(length) == entries.contains(&length)));
            }
        }
    }
}
