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
}

impl LengthCounts {
    pub(super) fn add(&mut self, length: usize) {
        if length >= self.counts.len() {
            self.counts.resize(length + 1, 0);
        }
        self.counts[length] += 1;
        self.total += 1;
    }

    /// Takes back an [`LengthCounts::add`].
    pub(super) fn remove(&mut self, length: usize) {
        self.counts[length] -= 1;
        self.total -= 1;
        while self.counts.last() == Some(&0) {
            self.counts.pop();
        }
    }

    /// A bit for each length that has an entry; the highest stands for all from 63 on.
    pub(super) fn bits(&self) -> u64 {
        let lengths = (0..self.counts.len()).filter(|&length| self.has(length));
        lengths.fold(0, |bits, length| bits | 1 << length.min(63))
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
