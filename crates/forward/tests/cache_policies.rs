//! The content store keeps what its policy says, and nothing else decides.

mod bed;

use std::collections::HashMap;

use bed::*;
use tachonym_forward::EngineConfig;
use tachonym_packet::HashKey;
use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig, senseless};
use tachonym_tables::CsCapacity;

const CAPACITY: usize = 40;

fn node(policy: PolicyConfig) -> Node {
    let mut node = Node::with(EngineConfig {
        cs: CsCapacity {
            max_pkts: CAPACITY,
            max_bytes: 1 << 20,
        },
        cs_policy: policy,
        ..EngineConfig::default()
    });
    for face in [A, B] {
        node.engine.add_face(face, REMOTE);
    }
    node.route("/", B, 0);
    node
}

fn set_policy(node: &mut Node, config: &PolicyConfig) {
    let (n_slots, capacity) = node.engine.cs().policy_size();
    let config = PolicyConfig {
        capacity,
        ..*config
    };
    let policy = Policy::with_slots(&config, n_slots).expect("little memory");
    assert!(node.engine.cs_mut().set_policy(policy));
    while node.engine.cs_mut().take_retired_policy().is_some() {}
}

fn uri(number: usize) -> String {
    format!("/object/{number}")
}

/// Whether the store answers; if not, the Data comes.
fn ask(node: &mut Node, asked: &Interest, stored: &Data) -> bool {
    let sent = node.interest(A, asked);
    match summary(&sent)[..] {
        [(A, Kind::Data)] => true,
        [(B, Kind::Interest)] => {
            assert_eq!(summary(&node.data(B, stored)), [(A, Kind::Data)]);
            false
        }
        _ => panic!("{sent:?}"),
    }
}

fn ask_number(node: &mut Node, number: usize) -> bool {
    ask(node, &interest(&uri(number)), &data(&uri(number)))
}

/// A few are asked for often, most seldom; the same ones every time.
fn numbers() -> impl Iterator<Item = usize> {
    let mut state = 7_u64;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let draw = (state >> 40) as f64 / f64::from(1 << 24);
        (600.0 * draw * draw * draw) as usize
    })
}

/// A store of hashes alone around a policy.
struct Alone {
    policy: Policy,
    slot_of: HashMap<u64, u32>,
    hash_in: Vec<u64>,
    free: Vec<u32>,
}

impl Alone {
    fn new(config: &PolicyConfig) -> Self {
        Self {
            policy: Policy::new(config).expect("a sensible one"),
            slot_of: HashMap::new(),
            hash_in: vec![0; CAPACITY],
            // Taken from the end, and given back there.
            free: (0..CAPACITY as u32).rev().collect(),
        }
    }

    fn ask(&mut self, hash: u64) -> bool {
        self.policy.handle_request(hash);
        if let Some(&slot) = self.slot_of.get(&hash) {
            self.policy.handle_hit(slot);
            return true;
        }
        let hash_of = |slot: u32| self.hash_in[slot as usize];
        if self.policy.admits(hash, self.free.is_empty(), hash_of) {
            if self.free.is_empty() {
                let slot = self.policy.evict(hash, hash_of).expect("it is full");
                self.slot_of.remove(&self.hash_in[slot as usize]);
                self.free.push(slot);
            }
            let slot = self.free.pop().expect("room was made");
            self.hash_in[slot as usize] = hash;
            self.slot_of.insert(hash, slot);
            let hash_of = |slot: u32| self.hash_in[slot as usize];
            self.policy.handle_insert(slot, hash, hash_of);
        }
        false
    }
}

#[test]
fn the_store_answers_what_its_policy_alone_would() {
    let key = HashKey::from_u64s(1, 2);
    for admission in AdmissionKind::ALL {
        for eviction in EvictionKind::ALL {
            if senseless(admission, eviction).is_some() {
                continue;
            }
            let config = PolicyConfig::new(admission, eviction, CAPACITY);
            let (mut node, mut alone) = (node(config), Alone::new(&config));
            let mut n_hits = 0;
            for number in numbers().take(4_000) {
                let hash = key.hash_name(name(&uri(number)).view());
                let is_hit = ask_number(&mut node, number);
                assert_eq!(is_hit, alone.ask(hash.0), "{admission} {eviction}");
                n_hits += usize::from(is_hit);
            }
            assert!(n_hits > 200, "{admission} {eviction}: {n_hits} hits");
            assert!(node.engine.sizes().n_cs_entries <= CAPACITY);
        }
    }
}

#[test]
fn another_policy_takes_over_and_evicts_what_the_former_one_held_first() {
    let mut node = node(PolicyConfig::new(
        AdmissionKind::None,
        EvictionKind::Fifo,
        0,
    ));
    (0..CAPACITY).for_each(|number| assert!(!ask_number(&mut node, number)));
    let sieve = PolicyConfig::new(AdmissionKind::None, EvictionKind::Sieve, 0);
    set_policy(&mut node, &sieve);
    assert_eq!(node.engine.sizes().n_cs_entries, CAPACITY, "all stay");
    // Of the oldest some are asked for, and are the new policy's now.
    (0..10).for_each(|number| assert!(ask_number(&mut node, number)));
    (100..120).for_each(|number| assert!(!ask_number(&mut node, number)));
    let is_cached = |node: &mut Node, number| {
        let uri = name(&uri(number));
        node.engine.cs_mut().has_below(uri.view())
    };
    let cached: Vec<usize> = (0..200)
        .filter(|&number| is_cached(&mut node, number))
        .collect();
    let expected: Vec<usize> = (0..10).chain(30..40).chain(100..120).collect();
    assert_eq!(cached, expected, "the former one's oldest have gone");
    // Another one, while the first still holds some.
    let lru = PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0);
    set_policy(&mut node, &lru);
    (200..200 + CAPACITY).for_each(|number| assert!(!ask_number(&mut node, number)));
    (0..200).for_each(|number| assert!(!is_cached(&mut node, number), "{number}"));
    assert_eq!(node.engine.sizes().n_cs_entries, CAPACITY);
}

#[test]
fn a_policy_that_makes_no_sense_or_is_too_small_is_refused() {
    let senseless = PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Arc, 0);
    let refusal = Policy::with_slots(&senseless, CAPACITY).expect_err("refused");
    assert!(refusal.to_string().contains("filter with eviction arc"));
    let threshold = PolicyConfig {
        threshold: 0,
        ..PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, 0)
    };
    Policy::with_slots(&threshold, CAPACITY).expect_err("refused");
    let lru = PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0);
    let mut node = node(lru);
    let fifo = PolicyConfig::new(AdmissionKind::None, EvictionKind::Fifo, CAPACITY - 1);
    let small = Policy::with_slots(&fifo, CAPACITY - 1).expect("little memory");
    assert!(
        !node.engine.cs_mut().set_policy(small),
        "a Data would have no slot"
    );
    assert_eq!(
        node.engine.cs().policy().config().eviction,
        EvictionKind::Lru
    );
}

#[test]
fn popularity_is_measured_whatever_the_policy_is_and_survives_it() {
    let mut node = node(PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0));
    let mut counts = HashMap::new();
    let mut n_asked = 0;
    for (admission, eviction) in [
        (AdmissionKind::None, EvictionKind::Fifo),
        (AdmissionKind::Lcp, EvictionKind::Random),
        (AdmissionKind::Filter, EvictionKind::Lru),
        (AdmissionKind::None, EvictionKind::Arc),
    ] {
        set_policy(&mut node, &PolicyConfig::new(admission, eviction, 0));
        let mut n_hits = 0;
        let n_inserts = node.engine.cs().counters().n_inserts;
        for number in numbers().take(1_000) {
            n_hits += u64::from(ask_number(&mut node, number));
            *counts.entry(number).or_insert(0_u64) += 1;
        }
        n_asked += 1_000;
        let policy = node.engine.cs().policy();
        let outcomes = policy.outcomes();
        assert_eq!((outcomes.n_requests, outcomes.n_hits), (1_000, n_hits));
        // What a former policy holds moves to this one when it is asked for.
        let n_inserts = node.engine.cs().counters().n_inserts - n_inserts;
        assert!((n_inserts..=n_inserts + CAPACITY as u64).contains(&outcomes.n_inserts));
        let measured = policy.popularity().measured();
        assert_eq!(measured.n_requests, n_asked);
        assert_eq!(measured.n_names(), counts.len() as u64);
        let n_once = counts.values().filter(|&&count| count == 1).count() as u64;
        let once = measured
            .classes
            .iter()
            .find(|class| class.n_names == class.n_requests);
        assert_eq!(once.map_or(0, |class| class.n_names), n_once);
    }
}

#[test]
fn policies_exchanged_by_the_dozen_leave_what_is_cached_and_no_more_memory() {
    let lru = PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0);
    let mut node = node(lru);
    // Nothing is held by any of them.
    let one_bytes = node.engine.cs().policy_bytes();
    for _ in 0..100 {
        set_policy(&mut node, &lru);
    }
    assert_eq!(node.engine.cs().policy_bytes(), one_bytes);
    // One Data more by each.
    for number in 0..CAPACITY {
        assert!(!ask_number(&mut node, number));
        set_policy(&mut node, &lru);
    }
    assert_eq!(node.engine.sizes().n_cs_entries, CAPACITY);
    for number in 0..CAPACITY {
        assert!(ask_number(&mut node, number), "{number}");
    }
    (100..100 + CAPACITY).for_each(|number| assert!(!ask_number(&mut node, number)));
    (100..100 + CAPACITY).for_each(|number| assert!(ask_number(&mut node, number)));
    // Nothing is freed where packets wait.
    let policy = node.engine.cs().policy();
    let table_bytes = policy.memory_bytes() - policy.meter_bytes();
    assert!(node.engine.cs().policy_bytes() > one_bytes + 10 * table_bytes);
    let n_retired = std::iter::from_fn(|| node.engine.cs_mut().take_retired_policy()).count();
    assert!(n_retired > 10, "{n_retired}");
    set_policy(&mut node, &lru);
    set_policy(&mut node, &lru);
    assert_eq!(node.engine.cs().policy_bytes(), one_bytes + table_bytes);
}

#[test]
fn a_store_grows_and_its_policy_with_it() {
    for admission in AdmissionKind::ALL {
        let config = PolicyConfig::new(admission, EvictionKind::Clock, 0);
        let mut node = node(config);
        numbers()
            .take(500)
            .for_each(|n| _ = ask_number(&mut node, n));
        for max_pkts in [4 * CAPACITY, 0, 1, CAPACITY] {
            let capacity = CsCapacity {
                max_pkts,
                max_bytes: 1 << 20,
            };
            node.engine.cs_mut().set_limits(capacity).expect("little");
            numbers()
                .take(2_000)
                .for_each(|n| _ = ask_number(&mut node, n));
            let n_cached = node.engine.sizes().n_cs_entries;
            assert!(
                n_cached <= max_pkts,
                "{admission}: {n_cached} of {max_pkts}"
            );
            assert!(
                n_cached * 10 >= max_pkts * 9,
                "{admission}: {n_cached} of {max_pkts}"
            );
        }
    }
}

#[test]
fn filter_counts_requests_by_prefix_for_the_data_that_answers_them() {
    let filter = PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, 0);
    let mut node = node(filter);
    let (by_prefix, stored) = (interest("/object").prefix(), data("/object/1"));
    assert!(!ask(&mut node, &by_prefix, &stored));
    assert_eq!(node.engine.sizes().n_cs_entries, 0, "asked for once");
    assert_eq!(node.engine.cs().counters().n_not_admitted_policy, 1);
    assert!(!ask(&mut node, &by_prefix.clone().nonce(2), &stored));
    assert_eq!(node.engine.sizes().n_cs_entries, 1, "asked for twice");
    assert!(ask(&mut node, &by_prefix.nonce(3), &stored));
    // By its full name it is the same Data.
    let other = data("/object/2");
    let full_name = Interest {
        name: other.full_name(),
        ..interest("/")
    };
    assert!(!ask(&mut node, &full_name, &other));
    assert!(!ask(&mut node, &interest("/object/2").nonce(5), &other));
    assert!(ask(&mut node, &full_name.nonce(6), &other));
}
