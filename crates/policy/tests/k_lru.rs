//! k-LRU, against a chain of plain LRU caches and against its model.

use std::num::NonZeroUsize;

use lru::LruCache;
use proptest::prelude::*;
use tachonym_policy::model::{KLruModel, Popularity};
use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig, PolicyError, Random};

/// A store of names behind the policy, all of whose names have hashes of their own.
struct Store {
    policy: Policy,
    slots: Vec<u64>,
}

impl Store {
    fn new(capacity: usize, n_stages: usize) -> Self {
        let config = PolicyConfig {
            n_stages,
            ..PolicyConfig::new(AdmissionKind::KLru, EvictionKind::Lru, capacity)
        };
        Self {
            policy: Policy::new(&config).expect("a sound configuration"),
            slots: Vec::new(),
        }
    }

    fn request(&mut self, name: u64) -> bool {
        self.policy.handle_request(name + 1);
        if let Some(slot) = self.slots.iter().position(|&held| held == name) {
            self.policy.handle_hit(slot as u32);
            return true;
        }
        let is_full = self.slots.len() == self.policy.n_slots();
        let slots = &self.slots;
        let hash_of = |slot: u32| slots[slot as usize] + 1;
        if self.policy.admits(name + 1, is_full, hash_of) {
            let slot = if is_full {
                let victim = self.policy.evict(name + 1, hash_of);
                let victim = victim.expect("a full cache");
                self.slots[victim as usize] = name;
                victim
            } else {
                self.slots.push(name);
                self.slots.len() as u32 - 1
            };
            let slots = &self.slots;
            let hash_of = |slot: u32| slots[slot as usize] + 1;
            self.policy.handle_insert(slot, name + 1, hash_of);
        }
        false
    }
}

/// As published: a request enters a cache that does not hold its name if the one before
/// holds it.
fn plain_request(chain: &mut [LruCache<u64, ()>], name: u64) -> bool {
    let mut was_before = true;
    for cache in chain {
        let is_here = cache.get(&name).is_some();
        if !is_here && was_before {
            cache.put(name, ());
        }
        was_before = is_here;
    }
    was_before
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn hits_are_those_of_a_plain_chain(
        capacity in 1_usize..12,
        n_stages in 2_usize..=8,
        names in prop::collection::vec((0_u64..30, 0_u64..30), 1..400),
    ) {
        let mut store = Store::new(capacity, n_stages);
        let size = NonZeroUsize::new(capacity).expect("not 0");
        let mut chain: Vec<_> = (0..n_stages).map(|_| LruCache::new(size)).collect();
        for (a, b) in names {
            let name = a.min(b);
            prop_assert_eq!(store.request(name), plain_request(&mut chain, name));
        }
    }
}

#[test]
#[cfg(not(miri))]
fn the_model_expects_what_a_plain_chain_does() {
    const N_NAMES: u64 = 2_000;
    let popularity = Popularity::zipf(N_NAMES, 0.8);
    let weights = (1..=N_NAMES).map(|rank| (rank as f64).powf(-0.8));
    let sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let size = NonZeroUsize::new(100).expect("not 0");
    for n_stages in 1..=4 {
        let mut chain: Vec<_> = (0..n_stages).map(|_| LruCache::new(size)).collect();
        let mut random = Random::new(3);
        let mut n_hits = 0;
        for n in 0..400_000 {
            let drawn = (random.next_u64() >> 11) as f64 / 2_f64.powi(53) * sums[sums.len() - 1];
            let name = sums.partition_point(|&sum| sum < drawn) as u64;
            n_hits += u32::from(plain_request(&mut chain, name) && n >= 100_000);
        }
        let here = f64::from(n_hits) / 300_000.0;
        let model = KLruModel {
            capacity: 100.0,
            n_stages,
        };
        let expected = model.hit_ratio(&popularity);
        assert!(
            (here - expected).abs() < 0.006,
            "{n_stages}: {here} {expected}"
        );
    }
}

#[test]
fn chains_too_short_or_too_long_are_refused() {
    for n_stages in [0, 1, 9] {
        let config = PolicyConfig {
            n_stages,
            ..PolicyConfig::new(AdmissionKind::KLru, EvictionKind::Lru, 5)
        };
        let refusal = Policy::new(&config).expect_err("out of range");
        assert!(matches!(refusal, PolicyError::Stages(n) if n == n_stages));
        assert!(refusal.to_string().contains("use 2 to 8"), "{refusal}");
    }
}
