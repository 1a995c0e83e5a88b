//! Every pair of admission and eviction, against a store that checks what it is told.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tachonym_policy::{
    AdmissionKind, CountersKind, EvictionKind, Policy, PolicyConfig, PolicyError, senseless,
};

/// A keyed hash, as far as policies can tell.
fn hash(name: u64) -> u64 {
    let mut z = name.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

/// A store of names.
struct Store {
    policy: Policy,
    slots: Vec<Option<u64>>,
    by_name: BTreeMap<u64, u32>,
    /// With so many it is full, whatever the policy was told.
    limit: usize,
}

impl Store {
    fn new(config: &PolicyConfig) -> Self {
        Self {
            policy: Policy::new(config).expect("a sound configuration"),
            slots: vec![None; config.capacity],
            by_name: BTreeMap::new(),
            limit: config.capacity,
        }
    }

    fn free(&self) -> Option<u32> {
        let free = self.slots.iter().position(Option::is_none)?;
        Some(free as u32)
    }

    /// Whether it was a hit.
    fn request(&mut self, name: u64) -> bool {
        self.policy.handle_request(hash(name));
        if let Some(&slot) = self.by_name.get(&name) {
            self.policy.handle_hit(slot);
            return true;
        }
        let slots = &self.slots;
        let hash_of = |slot: u32| hash(slots[slot as usize].expect("a held slot"));
        let is_full = self.by_name.len() >= self.limit;
        if self.policy.admits(hash(name), is_full, hash_of) {
            if is_full {
                let victim = self.policy.evict(hash(name), hash_of).expect("one is held");
                self.empty(victim);
            }
            self.insert(name);
        }
        false
    }

    fn insert(&mut self, name: u64) {
        let slot = self.free().expect("room");
        self.slots[slot as usize] = Some(name);
        self.by_name.insert(name, slot);
        let slots = &self.slots;
        let hash_of = |slot: u32| hash(slots[slot as usize].expect("a held slot"));
        self.policy.handle_insert(slot, hash(name), hash_of);
    }

    fn empty(&mut self, slot: u32) {
        let name = self.slots[slot as usize].take().expect("it was held");
        self.by_name.remove(&name).expect("it was found");
    }

    fn erase(&mut self, slot: u32) {
        if self.slots[slot as usize].is_some() {
            self.policy.handle_remove(slot);
            self.empty(slot);
        }
    }

    /// As a store does that has to make room in bytes.
    fn evict_one(&mut self) {
        let slots = &self.slots;
        let hash_of = |slot: u32| hash(slots[slot as usize].expect("a held slot"));
        match self.policy.evict(0, hash_of) {
            Some(victim) => self.empty(victim),
            None => assert!(self.by_name.is_empty()),
        }
    }
}

fn sensible_pairs() -> impl Iterator<Item = (AdmissionKind, EvictionKind)> {
    let pairs = AdmissionKind::ALL
        .into_iter()
        .flat_map(|admission| EvictionKind::ALL.map(|eviction| (admission, eviction)));
    pairs.filter(|&(admission, eviction)| senseless(admission, eviction).is_none())
}

fn config(admission: AdmissionKind, eviction: EvictionKind, capacity: usize) -> PolicyConfig {
    PolicyConfig {
        probability: 0.5,
        ..PolicyConfig::new(admission, eviction, capacity)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 24 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_victim_is_held_whatever_leaves_in_between(
        capacity in 0_usize..9,
        steps in prop::collection::vec((0_u8..20, 0_u64..24), 1..300),
    ) {
        for (admission, eviction) in sensible_pairs() {
            let mut store = Store::new(&config(admission, eviction, capacity));
            for &(what, name) in &steps {
                match what {
                    0 if capacity > 0 => store.erase((name % capacity as u64) as u32),
                    1 => store.evict_one(),
                    _ => {
                        store.request(name);
                    }
                }
                prop_assert_eq!(store.policy.len(), store.by_name.len());
                prop_assert_eq!(store.policy.is_empty(), store.by_name.is_empty());
            }
            while !store.by_name.is_empty() {
                store.evict_one();
            }
            prop_assert_eq!(store.policy.evict(0, |_| 0), None);
        }
    }
}

#[test]
fn a_cache_of_none_admits_nothing() {
    for (admission, eviction) in sensible_pairs() {
        let mut store = Store::new(&config(admission, eviction, 0));
        for name in 0..10 {
            assert!(!store.request(name % 2), "{admission} {eviction}");
        }
        assert!(store.policy.is_empty());
    }
}

#[test]
fn a_cache_of_one_answers_what_is_asked_for_again() {
    for (admission, eviction) in sensible_pairs() {
        let mut store = Store::new(&config(admission, eviction, 1));
        let n_hits = (0..100).filter(|_| store.request(7)).count();
        assert!(n_hits >= 90, "{admission} {eviction}: {n_hits}");
        assert_eq!(store.policy.len(), 1);
    }
}

#[test]
fn what_is_popular_stays() {
    for (admission, eviction) in sensible_pairs() {
        let mut store = Store::new(&config(admission, eviction, 40));
        let mut n_hits = 0;
        for n in 0..40_000_u64 {
            // Half of the requests are for 20 names, the others for 2,000.
            let draw = hash(n) >> 8;
            let name = match n % 2 {
                0 => draw % 20,
                _ => 100 + draw % 2_000,
            };
            n_hits += u32::from(store.request(name));
        }
        // At best a half and a hundredth of the other half.
        let hit_ratio = f64::from(n_hits) / 40_000.0;
        assert!(
            (0.29..0.52).contains(&hit_ratio),
            "{admission} {eviction}: {hit_ratio}"
        );
    }
}

/// Large packets fill a store before it has as many as it may.
#[test]
fn what_becomes_popular_stays_in_a_store_that_is_full_with_fewer_than_expected() {
    let forgets = |eviction| !matches!(eviction, EvictionKind::Lfu | EvictionKind::LfuPerfect);
    for (admission, eviction) in sensible_pairs().filter(|&(_, eviction)| forgets(eviction)) {
        let mut store = Store::new(&config(admission, eviction, 800));
        store.limit = 400;
        let mut n_hits = 0;
        for n in 0..80_000_u64 {
            let draw = hash(n) >> 8;
            let name = match n % 2 {
                0 if n < 40_000 => draw % 200,
                0 => 500 + draw % 200,
                _ => 1_000 + draw % 20_000,
            };
            n_hits += u32::from(store.request(name) && n >= 60_000);
        }
        let hit_ratio = f64::from(n_hits) / 20_000.0;
        assert!(
            (0.25..0.52).contains(&hit_ratio),
            "{admission} {eviction}: {hit_ratio}"
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let sound = PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, 100);
    let refused = |config: PolicyConfig| {
        let error = Policy::new(&config).expect_err("it makes no sense");
        error.to_string()
    };
    let arc = EvictionKind::Arc;
    let text = refused(PolicyConfig {
        eviction: arc,
        ..sound
    });
    assert!(
        text.starts_with("admission filter with eviction arc: it learns"),
        "{text}"
    );
    let text = refused(PolicyConfig {
        threshold: 0,
        ..sound
    });
    assert_eq!(
        text,
        "threshold 0 is out of range: counters of kind lines count from 1 to 255"
    );
    let text = refused(PolicyConfig {
        threshold: 256,
        ..sound
    });
    assert_eq!(
        text,
        "threshold 256 is out of range: counters of kind lines count from 1 to 255"
    );
    let row = CountersKind::Row;
    let text = refused(PolicyConfig {
        threshold: 65_536,
        counters: row,
        ..sound
    });
    assert_eq!(
        text,
        "threshold 65536 is out of range: counters of kind row count from 1 to 65535"
    );
    let text = refused(PolicyConfig {
        threshold: 9,
        history_len: Some(8),
        ..sound
    });
    assert_eq!(
        text,
        "threshold 9 is never reached in a history of 8 requests; lower it, or lengthen the history"
    );
    let text = refused(PolicyConfig {
        history_len: Some(0),
        ..sound
    });
    assert!(text.contains("needs at least one request"), "{text}");
    let lcp = PolicyConfig {
        admission: AdmissionKind::Lcp,
        ..sound
    };
    for probability in [-0.1, 1.5, f64::NAN] {
        let text = refused(PolicyConfig { probability, ..lcp });
        assert!(
            text.ends_with("is not a probability; use a number from 0 to 1"),
            "{text}"
        );
    }
    let tiny = PolicyConfig {
        admission: AdmissionKind::TinyLfu,
        ..sound
    };
    assert!(
        refused(PolicyConfig {
            window_by_len: 0,
            ..tiny
        })
        .contains("needs at least one request")
    );
    let text = refused(PolicyConfig {
        capacity: 1 << 40,
        ..sound
    });
    assert!(text.contains("more than the"), "{text}");
}

#[test]
#[cfg(not(miri))]
fn a_history_longer_than_memory_is_refused() {
    for counters in CountersKind::ALL {
        let config = PolicyConfig {
            history_len: Some(1 << 45),
            counters,
            ..PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, 100)
        };
        let error = Policy::new(&config).expect_err("there is not so much memory");
        assert!(matches!(error, PolicyError::Memory(_)), "{error}");
        assert!(error.to_string().contains("missing"), "{error}");
    }
}

#[test]
fn thresholds_and_histories_decide_what_filter_admits() {
    for counters in CountersKind::ALL {
        for (threshold, first_admitted) in [(1, 0), (2, 1), (3, 2), (30, 29)] {
            let config = PolicyConfig {
                threshold,
                history_len: Some(60),
                counters,
                ..PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, 1)
            };
            let mut policy = Policy::new(&config).expect("a sound configuration");
            for n in 0..40 {
                policy.handle_request(hash(1));
                policy.handle_request(hash(1_000 + n));
                // 30 requests of each fit into the history.
                assert_eq!(
                    policy.admits(hash(1), false, hash_of_none),
                    n >= first_admitted
                );
            }
            for n in 0..60 {
                policy.handle_request(hash(2_000 + n));
            }
            let is_admitted = policy.admits(hash(1), false, hash_of_none);
            assert!(!is_admitted, "what has left the history does not count");
        }
    }
}

#[test]
fn filter_auto_fills_a_cache_in_which_all_that_is_asked_for_has_room() {
    let config = PolicyConfig::new(AdmissionKind::FilterAuto, EvictionKind::Gclock, 1_000);
    let mut policy = Policy::new(&config).expect("a sound configuration");
    let mut held = std::collections::HashSet::new();
    for n in 0..100_000_u64 {
        let name = n * n % 977;
        policy.handle_request(hash(name));
        if held.contains(&name) {
            continue;
        }
        assert!(policy.admits(hash(name), false, hash_of_none));
        policy.handle_insert(held.len() as u32, hash(name), hash_of_none);
        held.insert(name);
    }
    assert!(held.len() > 400);
}

fn hash_of_none(_: u32) -> u64 {
    unreachable!("nothing is compared with a victim")
}

#[test]
fn no_eviction_takes_more_than_it_says_and_too_much_is_refused() {
    for eviction in EvictionKind::ALL {
        let config = PolicyConfig::new(AdmissionKind::None, eviction, 10_000);
        let policy = Policy::new(&config).expect("little memory");
        let max_bytes = eviction.max_bytes(10_000);
        let n_bytes = policy.memory_bytes() as u64;
        assert!(n_bytes <= max_bytes, "{eviction}: {n_bytes} of {max_bytes}");
    }
    // Two tebibytes.
    let perfect = PolicyConfig::new(AdmissionKind::None, EvictionKind::LfuPerfect, 1 << 29);
    let refusal = Policy::new(&perfect).expect_err("no machine has that");
    assert!(refusal.to_string().contains("missing"), "{refusal}");
}
