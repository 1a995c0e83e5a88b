//! What strategies have measured, by prefix.
//!
//! Bounded in prefixes; a full table replaces those that have not been used
//! for long. Nothing here needs a timer: what has expired counts as absent.
//! What is measured of a prefix is the strategy's: `next_hops` for `asf`.

use std::time::Duration;

use hashbrown::HashTable;
use tachonym_packet::{MonoNs, Name, NameHash, NameView};

/// Slots looked at for an expired one before a live one is replaced.
const CLOCK_STEPS: usize = 8;

/// Where a namespace was; checked on use, since slots are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceRef {
    pub(crate) slot: u32,
    /// 0: nowhere.
    pub(crate) generation: u32,
}

/// A prefix and what is known of it.
#[derive(Debug)]
struct Slot<N> {
    prefix: Name,
    hash: NameHash,
    generation: u32,
    expiry: MonoNs,
    namespace: N,
}

/// The table.
#[derive(Debug)]
pub(super) struct Measurements<N> {
    slots: Vec<Slot<N>>,
    by_hash: HashTable<u32>,
    clock_hand: usize,
    next_generation: u32,
    max_namespaces: usize,
    lifetime: Duration,
}

impl<N: Default> Measurements<N> {
    /// A table of at most `max_namespaces` prefixes, each forgotten when it was
    /// not used for `lifetime`.
    pub(super) fn new(max_namespaces: usize, lifetime: Duration) -> Self {
        Self {
            slots: Vec::new(),
            by_hash: HashTable::new(),
            clock_hand: 0,
            next_generation: 1,
            max_namespaces,
            lifetime,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The namespace of `prefix`, made if it is not there, its life extended.
    pub(super) fn find_or_insert(
        &mut self,
        prefix: NameView<'_>,
        hash: NameHash,
        now: MonoNs,
    ) -> NamespaceRef {
        let slot = match self.find_slot(prefix, hash) {
            Some(slot) => slot,
            None => self.insert(prefix, hash, now),
        };
        let lifetime = self.lifetime;
        let found = &mut self.slots[slot as usize];
        if found.expiry <= now {
            found.namespace = N::default();
        }
        found.expiry = now + lifetime;
        NamespaceRef {
            slot,
            generation: found.generation,
        }
    }

    /// The namespace at `place`, if it is still the same one.
    pub(super) fn get_mut(&mut self, place: NamespaceRef) -> Option<&mut N> {
        self.slots
            .get_mut(place.slot as usize)
            .filter(|slot| slot.generation == place.generation)
            .map(|slot| &mut slot.namespace)
    }

    fn find_slot(&self, prefix: NameView<'_>, hash: NameHash) -> Option<u32> {
        let slots = &self.slots;
        let found = self.by_hash.find(hash.0, |&slot| {
            let slot = &slots[slot as usize];
            slot.hash == hash && slot.prefix.view() == prefix
        });
        found.copied()
    }

    fn insert(&mut self, prefix: NameView<'_>, hash: NameHash, now: MonoNs) -> u32 {
        let generation = self.next_generation;
        // 0 stands for nowhere.
        self.next_generation = generation.wrapping_add(1).max(1);
        let new = Slot {
            prefix: prefix.to_name(),
            hash,
            generation,
            expiry: now + self.lifetime,
            namespace: N::default(),
        };
        let slot = if self.slots.len() < self.max_namespaces {
            self.slots.push(new);
            self.slots.len() - 1
        } else {
            let victim = self.pick_victim(now);
            let old_hash = self.slots[victim].hash;
            if let Ok(entry) = self
                .by_hash
                .find_entry(old_hash.0, |&slot| slot as usize == victim)
            {
                entry.remove();
            }
            self.slots[victim] = new;
            victim
        };
        let slot = u32::try_from(slot).expect("max_namespaces fits a u32");
        let slots = &self.slots;
        self.by_hash
            .insert_unique(hash.0, slot, |&slot| slots[slot as usize].hash.0);
        slot
    }

    /// An expired slot if one is near the hand, else the one at the hand.
    fn pick_victim(&mut self, now: MonoNs) -> usize {
        let n_slots = self.slots.len();
        let start = self.clock_hand;
        let victim = (0..CLOCK_STEPS)
            .map(|step| (start + step) % n_slots)
            .find(|&slot| self.slots[slot].expiry <= now)
            .unwrap_or(start % n_slots);
        self.clock_hand = (victim + 1) % n_slots;
        victim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_NAMESPACES: usize = 4;

    fn name(n: u64) -> Name {
        format!("/n/{n}").parse().unwrap()
    }

    fn table() -> Measurements<u64> {
        Measurements::new(MAX_NAMESPACES, Duration::from_secs(8))
    }

    #[test]
    fn full_table_replaces_and_stale_references_find_nothing() {
        let mut table = table();
        let first = table.find_or_insert(name(0).view(), NameHash(0), MonoNs(0));
        // All the same hash: told apart by their names.
        for n in 1..20 {
            let place = table.find_or_insert(name(n).view(), NameHash(0), MonoNs(n));
            *table.get_mut(place).unwrap() = n;
            assert!(table.len() <= MAX_NAMESPACES);
        }
        assert!(table.get_mut(first).is_none());
        let last = table.find_or_insert(name(19).view(), NameHash(0), MonoNs(20));
        assert_eq!(table.get_mut(last), Some(&mut 19));
    }

    #[test]
    fn namespace_not_used_for_its_lifetime_begins_anew() {
        let mut table = table();
        let place = table.find_or_insert(name(0).view(), NameHash(0), MonoNs(0));
        *table.get_mut(place).unwrap() = 7;
        let later = MonoNs(0) + Duration::from_secs(8);
        table.find_or_insert(name(0).view(), NameHash(0), MonoNs(later.0 - 1));
        assert_eq!(table.get_mut(place), Some(&mut 7));
        table.find_or_insert(name(0).view(), NameHash(0), later + Duration::from_secs(8));
        assert_eq!(table.get_mut(place), Some(&mut 0));
    }
}
