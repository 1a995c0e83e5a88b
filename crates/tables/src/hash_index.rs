//! From a 64-bit keyed hash to slot numbers.
//!
//! Owns a hash table for what `buckets` does not index. It stores 32 bits of the hash beside
//! each slot number, so that a probe touches a slot only when it is almost
//! certainly the right one, and growing touches no slot at all. It decides
//! nothing: equal tags are candidates, and the table that owns the slots
//! compares names by their bytes.

use hashbrown::HashTable;

#[derive(Clone, Copy, Debug)]
struct Tagged {
    tag: u32,
    slot: u32,
}

/// Multimap from hashes to slots.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    table: HashTable<Tagged>,
}

/// Both halves of the hash in 32 bits.
const fn tag_of(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// What the table sees: it takes its position from the low bits and its control
/// byte from the high ones, so the tag has to reach both.
const fn table_hash(tag: u32) -> u64 {
    (tag as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl HashIndex {
    pub(crate) const fn new() -> Self {
        Self {
            table: HashTable::new(),
        }
    }

    /// First slot under `hash` that `is_match` accepts.
    pub(crate) fn find(&self, hash: u64, mut is_match: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = tag_of(hash);
        self.table
            .find(table_hash(tag), |item| {
                item.tag == tag && is_match(item.slot)
            })
            .map(|item| item.slot)
    }

    /// Every slot that may have been inserted under `hash`.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> {
        let tag = tag_of(hash);
        self.table
            .iter_hash(table_hash(tag))
            .filter(move |item| item.tag == tag)
            .map(|item| item.slot)
    }

    /// Adds a slot. The caller keeps slots under one hash few: they share one
    /// probe sequence.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        let tag = tag_of(hash);
        self.table
            .insert_unique(table_hash(tag), Tagged { tag, slot }, |item| {
                table_hash(item.tag)
            });
    }

    /// Removes a slot inserted under `hash`; `false` if there is none.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let tag = tag_of(hash);
        match self
            .table
            .find_entry(table_hash(tag), |item| item.slot == slot)
        {
            Ok(found) => {
                found.remove();
                true
            }
            Err(_) => false,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_under_one_hash_are_all_candidates_and_leave_one_by_one() {
        let mut index = HashIndex::new();
        for slot in 0..100 {
            index.insert(42, slot);
        }
        index.insert(43, 1000);
        let mut found: Vec<u32> = index.candidates(42).collect();
        found.sort_unstable();
        assert_eq!(found, (0..100).collect::<Vec<_>>());
        assert!(index.remove(42, 17));
        assert!(!index.remove(42, 17));
        assert_eq!(index.find(42, |slot| slot == 17), None);
        assert_eq!(index.find(42, |slot| slot == 18), Some(18));
        assert_eq!(index.len(), 100);
    }
}
