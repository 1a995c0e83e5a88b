//! What strategies have measured, by prefix.
//!
//! Bounded in prefixes. A new one takes the place, and the memory, of one that
//! has expired; a table full of live ones replaces those that were not used lately. Nothing here needs a timer: what has expired counts as absent.
//! What is measured of a prefix is the strategy's: `next_hops` for `asf`, the
//! last working one for `access`.

use std::time::Duration;

use hashbrown::HashTable;
use tachonym_packet::{MonoNs, NameHash, NameView};
use tachonym_tables::MAX_PREFIX_COMPONENTS;

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
    /// The prefix's TLV-VALUE; its memory outlives it.
    prefix: Vec<u8>,
    n_components: usize,
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
    /// Slots by the number of components of their prefix.
    n_by_length: [u32; MAX_PREFIX_COMPONENTS + 1],
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
            n_by_length: [0; MAX_PREFIX_COMPONENTS + 1],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The namespace of `prefix`, made if it is not there, its life extended.
    ///
    /// # Panics
    /// If `prefix` has more than [`MAX_PREFIX_COMPONENTS`] components.
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

    /// The namespace of the longest prefix of `name` that is known and has not
    /// expired. `hashes[i]` is the hash of the first `i` components.
    pub(super) fn find_longest(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<&N> {
        let wire = name.value_bytes();
        let candidates = hashes.iter().zip(&self.n_by_length).enumerate().rev();
        candidates
            .filter(|(_, (_, n_slots))| **n_slots > 0)
            .find_map(|(length, (&hash, _))| {
                let found = self.by_hash.find(hash.0, |&slot| {
                    let slot = &self.slots[slot as usize];
                    // Equal bytes are equal components, and so as many of them.
                    slot.hash == hash
                        && slot.n_components == length
                        && wire.starts_with(&slot.prefix)
                })?;
                let slot = &self.slots[*found as usize];
                (slot.expiry > now).then_some(&slot.namespace)
            })
    }

    fn find_slot(&self, prefix: NameView<'_>, hash: NameHash) -> Option<u32> {
        let slots = &self.slots;
        let found = self.by_hash.find(hash.0, |&slot| {
            let slot = &slots[slot as usize];
            slot.hash == hash && slot.prefix == prefix.value_bytes()
        });
        found.copied()
    }

    fn insert(&mut self, prefix: NameView<'_>, hash: NameHash, now: MonoNs) -> u32 {
        let generation = self.next_generation;
        // 0 stands for nowhere.
        self.next_generation = generation.wrapping_add(1).max(1);
        let slot = self.vacate(now);
        let new = &mut self.slots[slot];
        new.prefix.extend_from_slice(prefix.value_bytes());
        new.n_components = prefix.len();
        new.hash = hash;
        new.generation = generation;
        new.expiry = now + self.lifetime;
        self.n_by_length[prefix.len()] += 1;
        let slot = u32::try_from(slot).expect("max_namespaces fits a u32");
        let slots = &self.slots;
        self.by_hash
            .insert_unique(hash.0, slot, |&slot| slots[slot as usize].hash.0);
        slot
    }

    /// A slot without prefix and namespace: of an expired one if one is near the
    /// hand, else a new slot, else the one at the hand.
    fn vacate(&mut self, now: MonoNs) -> usize {
        let n_slots = self.slots.len();
        let is_full = n_slots >= self.max_namespaces;
        let start = self.clock_hand;
        let n_steps = CLOCK_STEPS.min(n_slots);
        let expired = (start..start + n_steps)
            .map(|step| step % n_slots)
            .find(|&slot| self.slots[slot].expiry <= now);
        let Some(victim) = expired.or(is_full.then_some(start)) else {
            self.clock_hand = (start + n_steps) % n_slots.max(1);
            self.slots.push(Slot {
                prefix: Vec::new(),
                n_components: 0,
                hash: NameHash(0),
                generation: 0,
                expiry: now,
                namespace: N::default(),
            });
            return n_slots;
        };
        self.clock_hand = (victim + 1) % n_slots;
        let old = &mut self.slots[victim];
        let old_hash = old.hash;
        self.n_by_length[old.n_components] -= 1;
        old.prefix.clear();
        old.namespace = N::default();
        let place = self
            .by_hash
            .find_entry(old_hash.0, |&slot| slot as usize == victim);
        if let Ok(place) = place {
            place.remove();
        }
        victim
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{HashKey, Name, NameHashes};

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
    fn longest_known_prefix_is_found_until_it_expires() {
        let key = HashKey::from_u64s(1, 2);
        let mut hashes = NameHashes::new();
        let mut table = table();
        let asked: Name = "/a/b/c/d".parse().unwrap();
        let span = hashes.push_name(&key, asked.view());
        let hashes = hashes.slice(span);
        let find = |table: &Measurements<u64>, now| {
            table
                .find_longest(asked.view(), hashes, MonoNs(now))
                .copied()
        };
        assert_eq!(find(&table, 0), None);
        for (uri, at) in [("/a/b/c", 0), ("/a", 1), ("/a/b/x", 2)] {
            let prefix: Name = uri.parse().unwrap();
            let place =
                table.find_or_insert(prefix.view(), key.hash_name(prefix.view()), MonoNs(at));
            *table.get_mut(place).unwrap() = prefix.len() as u64;
        }
        let lifetime_ns = 8_000_000_000;
        assert_eq!(find(&table, 2), Some(3));
        assert_eq!(find(&table, lifetime_ns), Some(1));
        assert_eq!(find(&table, lifetime_ns + 1), None);
    }

    #[test]
    fn expired_namespaces_make_room_before_the_table_grows() {
        let mut table = Measurements::<u64>::new(1_000, Duration::from_secs(8));
        for n in 0..10_000 {
            // Twenty live at a time, and one that never expires.
            let now = MonoNs(n * 400_000_000);
            table.find_or_insert(name(0).view(), NameHash(0), now);
            table.find_or_insert(name(n).view(), NameHash(n), now);
        }
        assert!(table.len() < 60, "{}", table.len());
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
