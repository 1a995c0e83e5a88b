//! Maps move as few names as they can, and exactly those that they say.

use std::collections::HashMap;

use proptest::prelude::*;
use tachonym_dispatch::{
    BucketMap, Key, LinearMap, MAX_WORKERS, MapError, MapKind, ServiceMap, WorkerId, WorkerSet,
};

fn workers(n: u16) -> Vec<WorkerId> {
    (0..n).map(WorkerId).collect()
}

fn count(map: &BucketMap) -> HashMap<WorkerId, usize> {
    let mut counts = HashMap::new();
    for &worker in map.buckets() {
        *counts.entry(worker).or_default() += 1;
    }
    counts
}

fn is_even(map: &BucketMap) -> bool {
    let counts = count(map);
    let (most, least) = (counts.values().max(), counts.values().min());
    counts.len() == map.workers().len()
        && most
            .zip(least)
            .is_some_and(|(most, least)| most - least <= 1)
}

#[test]
fn a_worker_that_comes_takes_its_share_and_no_more() {
    for n_before in 1..=127_u16 {
        let mut map = BucketMap::new(10, &workers(n_before)).unwrap();
        assert!(is_even(&map));
        let before = map.clone();
        let mut told = Vec::new();
        map.insert(WorkerId(n_before), |bucket, was| told.push((bucket, was)))
            .unwrap();
        let mut moved = Vec::new();
        for bucket in 0..1_024 {
            if map.buckets()[bucket] != before.buckets()[bucket] {
                assert_eq!(map.buckets()[bucket], WorkerId(n_before));
                moved.push((bucket, before.buckets()[bucket]));
            }
        }
        told.sort_unstable();
        assert_eq!(told, moved);
        // Exactly the share, which is at most 1/N.
        assert_eq!(moved.len(), 1_024 / (usize::from(n_before) + 1));
        assert!(is_even(&map));
    }
}

proptest! {
    #[test]
    fn buckets_stay_even_and_others_stay_put(
        n_at_first in 1_u16..40,
        steps in prop::collection::vec((any::<bool>(), 0_usize..128), 0..60),
    ) {
        let mut map = BucketMap::new(8, &workers(n_at_first)).unwrap();
        for (adds, pick) in steps {
            let before = map.clone();
            if adds {
                let worker = WorkerId(pick as u16);
                let is_new = !before.workers().contains(&worker);
                prop_assert_eq!(map.insert(worker, |_, _| ()).is_ok(), is_new);
            } else {
                let worker = before.workers()[pick % before.workers().len()];
                let removed = map.remove(worker, |_, _| ());
                if before.workers().len() == 1 {
                    prop_assert_eq!(removed, Err(MapError::LastWorker { worker }));
                    prop_assert_eq!(&map, &before);
                } else {
                    removed.unwrap();
                    for (now, was) in map.buckets().iter().zip(before.buckets()) {
                        prop_assert!(now == was || *was == worker);
                        prop_assert_ne!(*now, worker);
                    }
                }
            }
            prop_assert!(is_even(&map));
        }
    }

    #[test]
    fn linear_hashing_is_as_published(n_first in 1_u32..20, n_more in 0_u32..60, key: u64) {
        // Section 5.3.4 to the letter, from the number of buckets.
        let n_buckets = n_first + n_more;
        let round = (f64::from(n_buckets) / f64::from(n_first)).log2().floor() as u32;
        let n_round = n_first << round;
        let split = n_buckets - n_round;
        let k = (Key(key).spread() >> 32) as u32;
        let h = |i: u32| k % (n_first << i);
        let expected = if h(round) < split { h(round + 1) } else { h(round) };

        let mut map = LinearMap::new(&workers(n_first as u16)).unwrap();
        for worker in n_first..n_buckets {
            map.push(WorkerId(worker as u16)).unwrap();
        }
        prop_assert_eq!(map.bucket(Key(key)) as u32, expected);
        prop_assert_eq!(u32::from(map.home(Key(key)).0), expected);
    }

    #[test]
    fn former_holders_are_remembered_until_changes_settle(
        kind in prop_oneof![Just(MapKind::Linear), Just(MapKind::Buckets { n_buckets_log2: 6 })],
        n_at_first in 1_u16..6,
        steps in prop::collection::vec((0_u8..4, 0_usize..8), 0..40),
    ) {
        let mut map = ServiceMap::new(kind, &workers(n_at_first)).unwrap();
        let keys: Vec<_> = (0..400_u64).map(|n| Key(n.wrapping_mul(0x9E37_79B9))).collect();
        let mut held: Vec<Vec<(u64, WorkerId)>> =
            keys.iter().map(|&key| vec![(u64::MAX, map.home(key))]).collect();
        for (version, (what, pick)) in (1_u64..).zip(steps) {
            let before: Vec<_> = keys.iter().map(|&key| map.home(key)).collect();
            match what {
                0 => { let _ = map.insert(WorkerId(pick as u16), version); }
                1 => { let _ = map.remove(WorkerId(pick as u16), version); }
                2 => {
                    let to = map.workers()[pick % map.workers().len()];
                    let bucket = pick * 5 % map.buckets().len();
                    let _ = map.assign(bucket, to, version);
                }
                _ => {
                    let settled = version.saturating_sub(pick as u64);
                    map.settle(settled);
                    for held in &mut held {
                        held.retain(|&(until, _)| until > settled);
                    }
                }
            }
            for ((&key, held), was) in keys.iter().zip(&mut held).zip(before) {
                let home = map.home(key);
                if home != was {
                    held.last_mut().unwrap().0 = version;
                    held.push((u64::MAX, home));
                }
                let holders = map.holders(key);
                for &(_, worker) in held.iter() {
                    prop_assert!(holders.contains(worker), "{key:?} {held:?} {holders:?}");
                }
            }
        }
        map.settle(u64::MAX);
        prop_assert_eq!(map.n_unsettled(), 0);
        for &key in &keys {
            prop_assert_eq!(map.holders(key), WorkerSet::only(map.home(key)));
        }
    }
}

/// Which share of names moves, over all residues that a map tells apart.
fn moved_share(before: &LinearMap, after: &LinearMap, n: u64) -> f64 {
    let moved = (0..n).filter(|&key| before.home(Key(key)) != after.home(Key(key)));
    moved.count() as f64 / n as f64
}

#[test]
fn a_bucket_that_comes_moves_half_of_one_and_gives_it_back() {
    for n_first in [1, 2, 3, 4, 7] {
        let mut map = LinearMap::new(&workers(n_first)).unwrap();
        for worker in n_first..5 * n_first + 3 {
            let before = map.clone();
            map.push(WorkerId(worker)).unwrap();
            let mut n_round = n_first;
            while worker >= 2 * n_round {
                n_round *= 2;
            }
            // Half of a bucket of those not yet split in this round: at most 1/N.
            let expected = 0.5 / f64::from(n_round);
            assert!(expected <= 1.0 / f64::from(worker + 1) + 1e-12);
            let share = moved_share(&before, &map, 60_000);
            // The hash is no draw without chance: six deviations.
            let deviation = (expected * (1.0 - expected) / 60_000.0).sqrt();
            assert!(
                (share - expected).abs() < 6.0 * deviation,
                "{worker}: {share}"
            );
            let mut back = map.clone();
            assert_eq!(back.pop(), Ok(WorkerId(worker)));
            assert_eq!(back, before);
        }
    }
}

#[test]
fn names_that_move_to_a_new_bucket_come_from_the_one_that_is_split() {
    let mut map = LinearMap::new(&workers(4)).unwrap();
    let before = map.clone();
    map.push(WorkerId(4)).unwrap();
    for key in (0..10_000).map(Key) {
        let (was, is) = (before.home(key), map.home(key));
        assert!(was == is || (was, is) == (WorkerId(0), WorkerId(4)));
    }
}

#[test]
fn fewer_buckets_than_at_first_lose_only_what_goes() {
    let mut map = LinearMap::new(&workers(6)).unwrap();
    while map.workers().len() > 1 {
        let before = map.clone();
        let gone = map.pop().unwrap();
        let mut counts = HashMap::<WorkerId, u32>::new();
        for key in (0..60_000).map(Key) {
            *counts.entry(map.home(key)).or_default() += 1;
            let was = before.home(key);
            assert!(was == gone || map.home(key) == was);
        }
        let mean = 60_000 / map.workers().len() as u32;
        assert!(
            counts.values().all(|n| n.abs_diff(mean) < mean / 20),
            "{counts:?}"
        );
    }
    let only = map.workers()[0];
    assert_eq!(map.pop(), Err(MapError::LastWorker { worker: only }));
}

#[test]
fn a_worker_in_the_middle_is_replaced_by_the_last_one() {
    let mut map = LinearMap::new(&workers(5)).unwrap();
    let before = map.clone();
    map.remove(WorkerId(1)).unwrap();
    assert_eq!(map.workers(), [0, 4, 2, 3].map(WorkerId));
    for key in (0..10_000).map(Key) {
        let (was, is) = (before.home(key), map.home(key));
        assert!(was == is || was == WorkerId(1) || was == WorkerId(4));
    }
    let worker = WorkerId(1);
    assert_eq!(map.remove(worker), Err(MapError::NotThere { worker }));
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert_eq!(BucketMap::new(4, &[]), Err(MapError::NoWorker));
    assert_eq!(LinearMap::new(&[]), Err(MapError::NoWorker));
    assert!(matches!(
        BucketMap::new(1, &workers(3)),
        Err(MapError::Buckets { .. })
    ));
    assert!(matches!(
        BucketMap::new(17, &workers(3)),
        Err(MapError::Buckets { .. })
    ));
    let twice = [WorkerId(1), WorkerId(1)];
    let worker = WorkerId(1);
    assert_eq!(
        BucketMap::new(4, &twice),
        Err(MapError::AlreadyThere { worker })
    );
    assert_eq!(
        LinearMap::new(&twice),
        Err(MapError::AlreadyThere { worker })
    );
    let mut all = LinearMap::new(&workers(MAX_WORKERS as u16)).unwrap();
    assert_eq!(all.push(WorkerId(200)), Err(MapError::TooManyWorkers));
    let one = BucketMap::new(0, &workers(1)).unwrap();
    assert_eq!(one.home(Key(u64::MAX)), WorkerId(0));
    let mut linear = ServiceMap::new(MapKind::Linear, &workers(2)).unwrap();
    assert!(linear.assign(0, WorkerId(1), 1).is_err());
}
