//! What the scheduler moves, when, and where to.

use proptest::prelude::*;
use tachonym_dispatch::{
    DetectorConfig, DetectorScope, Key, Laps, LapsConfig, LapsError, MapError, MapKind,
    MigrationState, MoveRule, ServiceId, ServiceLoad, WorkerId, WorkerSet,
};

const ONE: ServiceId = ServiceId(0);
const TWO: ServiceId = ServiceId(1);
const KINDS: [MapKind; 2] = [MapKind::Linear, MapKind::Buckets { n_buckets_log2: 8 }];

fn config(n_workers: usize, n_services: usize) -> LapsConfig {
    LapsConfig {
        worker_rates_pps: vec![1e6; n_services],
        high_threshold: 8,
        ..LapsConfig::new(n_workers)
    }
}

/// What moves as published.
fn published(n_workers: usize, n_services: usize) -> LapsConfig {
    LapsConfig {
        rule: MoveRule::Published,
        ..config(n_workers, n_services)
    }
}

/// A key at home at a worker.
fn key_at(laps: &Laps, service: ServiceId, worker: WorkerId, nth: usize) -> Key {
    let mut here = (0..)
        .map(Key)
        .filter(|&key| laps.homes().home(service, key) == worker);
    here.nth(nth).expect("every worker has names")
}

fn make_aggressive(laps: &mut Laps, service: ServiceId, key: Key, n: usize) {
    for _ in 0..n {
        laps.handle_sample(service, key);
    }
}

#[test]
fn services_divide_the_workers_equally() {
    let laps = Laps::new(&config(8, 3)).unwrap();
    let n_workers: Vec<_> = (0..3)
        .map(|s| laps.homes().map(ServiceId(s)).workers().len())
        .collect();
    assert_eq!(n_workers, [3, 3, 2]);
    for service in (0..3).map(ServiceId) {
        for key in (0..1_000).map(Key) {
            let home = laps.homes().home(service, key);
            assert_eq!(laps.service_of(home), Some(service));
        }
    }
}

#[test]
fn only_an_aggressive_name_moves_and_only_off_an_overloaded_worker() {
    for map in KINDS {
        let mut laps = Laps::new(&LapsConfig {
            map,
            ..published(4, 1)
        })
        .unwrap();
        let big = key_at(&laps, ONE, WorkerId(2), 0);
        let small = key_at(&laps, ONE, WorkerId(2), 1);
        make_aggressive(&mut laps, ONE, big, 9);
        assert_eq!(laps.dispatch(ONE, big, &[0, 0, 7, 0]), WorkerId(2));
        assert_eq!(laps.dispatch(ONE, small, &[3, 1, 8, 2]), WorkerId(2));
        assert_eq!(laps.dispatch(ONE, big, &[3, 1, 8, 2]), WorkerId(1));
        // It stays there once the overload is over.
        assert_eq!(laps.dispatch(ONE, big, &[0; 4]), WorkerId(1));
        assert_eq!(laps.homes().home(ONE, big), WorkerId(1));
        let holders: WorkerSet = [1, 2].map(WorkerId).into_iter().collect();
        assert_eq!(laps.homes().holders(ONE, big), holders);
        assert_eq!(laps.counters().n_migrations, 1);
        // And moves on if its new worker is overloaded.
        assert_eq!(laps.dispatch(ONE, big, &[3, 8, 0, 2]), WorkerId(2));
        laps.settle(laps.homes().version());
        assert_eq!(laps.homes().holders(ONE, big), WorkerSet::only(WorkerId(2)));
    }
}

#[test]
fn names_move_within_their_service() {
    let mut laps = Laps::new(&published(4, 2)).unwrap();
    let key = key_at(&laps, TWO, WorkerId(2), 0);
    make_aggressive(&mut laps, TWO, key, 9);
    assert_eq!(laps.dispatch(TWO, key, &[0, 0, 8, 7]), WorkerId(3));
    // With nobody else of the service below the threshold it stays.
    assert_eq!(laps.dispatch(TWO, key, &[0, 0, 8, u32::MAX]), WorkerId(3));
}

#[test]
fn queues_that_are_all_full_move_nothing() {
    let mut laps = Laps::new(&published(4, 1)).unwrap();
    for n in 0..10_000 {
        laps.dispatch(ONE, Key(n % 7), &[u32::MAX; 4]);
    }
    assert_eq!(laps.counters().n_migrations, 0);
    assert_eq!(laps.counters().n_stuck, 10_000);
    assert!(laps.homes().migrations().is_empty());
}

#[test]
fn all_names_aggressive_or_one_name_alone_stay_within_bounds() {
    let detector = DetectorConfig {
        n_aggressive: 256,
        n_annex: 512,
        ..DetectorConfig::default()
    };
    let mut laps = Laps::new(&LapsConfig {
        detector,
        n_migrations: 16,
        ..published(4, 1)
    })
    .unwrap();
    for n in 0..200_000_u64 {
        let mut lens = [0; 4];
        lens[(n / 16 % 4) as usize] = 100;
        let worker = laps.dispatch(ONE, Key(n % 200), &lens);
        assert!(worker.idx() < 4);
    }
    assert!(laps.homes().migrations().len() <= laps.homes().migrations().capacity());
    assert!(laps.counters().n_displaced > 0);

    let mut laps = Laps::new(&published(2, 1)).unwrap();
    for n in 0..10_000_u32 {
        let home = laps.homes().home(ONE, Key(1));
        let mut lens = [0; 2];
        lens[home.idx()] = n % 16;
        laps.dispatch(ONE, Key(1), &lens);
    }
    assert_eq!(laps.homes().migrations().len(), 1);
}

#[test]
fn looking_at_queues_moves_what_evens_out() {
    let mut laps = Laps::new(&config(2, 1)).unwrap();
    let [giant, second, third] = [0, 1, 2].map(|nth| key_at(&laps, ONE, WorkerId(0), nth));
    make_aggressive(&mut laps, ONE, giant, 600);
    make_aggressive(&mut laps, ONE, second, 100);
    make_aggressive(&mut laps, ONE, third, 50);
    assert_eq!(laps.handle_queue_lengths(&[7, 0]), 0);
    // Of all moves, the giant's brings loads closest: from 750 and 0 to 150 and 600.
    assert_eq!(laps.handle_queue_lengths(&[8, 0]), 1);
    let at = |laps: &Laps| [giant, second, third].map(|key| laps.homes().home(ONE, key).0);
    assert_eq!(at(&laps), [1, 0, 0]);
    laps.handle_in_effect(laps.homes().version());
    // Alone, it does not go to and fro: that would be from 150 and 600 to 750 and 0.
    assert_eq!(laps.handle_queue_lengths(&[0, 8]), 0);
    assert_eq!(at(&laps), [1, 0, 0]);
    make_aggressive(&mut laps, ONE, second, 1_000);
    laps.freeze();
    assert_eq!(laps.handle_queue_lengths(&[8, 0]), 0);
    assert!(laps.is_frozen());
    laps.thaw();
    assert_eq!(laps.handle_queue_lengths(&[8, 0]), 1);
}

#[test]
fn looking_at_queues_moves_all_aggressive_names_as_published() {
    let mut laps = Laps::new(&published(3, 1)).unwrap();
    let here = [0, 1, 2].map(|nth| key_at(&laps, ONE, WorkerId(0), nth));
    let there = key_at(&laps, ONE, WorkerId(1), 0);
    for key in here.into_iter().chain([there]) {
        make_aggressive(&mut laps, ONE, key, 50);
    }
    assert_eq!(laps.handle_queue_lengths(&[7, 0, 0]), 0);
    assert_eq!(laps.handle_queue_lengths(&[8, 8, 8]), 0, "none is below");
    assert_eq!(laps.handle_queue_lengths(&[8, 3, 2]), 3);
    let at = |laps: &Laps, key| laps.homes().home(ONE, key).0;
    assert_eq!(here.map(|key| at(&laps, key)), [2; 3]);
    assert_eq!(at(&laps, there), 1);
    assert_eq!(laps.counters().n_migrations, 3);
    // They move on as soon as that worker is overloaded, too.
    assert_eq!(laps.handle_queue_lengths(&[0, 3, 8]), 3);
    assert_eq!(here.map(|key| at(&laps, key)), [0; 3]);
}

#[test]
fn moves_come_to_an_end() {
    let mut laps = Laps::new(&config(2, 1)).unwrap();
    let here = [0, 1, 2, 3].map(|nth| key_at(&laps, ONE, WorkerId(0), nth));
    for (key, n) in here.into_iter().zip([600, 300, 200, 100]) {
        make_aggressive(&mut laps, ONE, key, n);
    }
    // Both overloaded, by turns, for ever.
    for n in 0..100 {
        laps.handle_queue_lengths(&[8 * (1 - n % 2), 8 * (n % 2)]);
        laps.handle_in_effect(laps.homes().version());
    }
    let n_at: [u32; 2] = [0, 1].map(|worker| {
        let there = here.into_iter().zip([600, 300, 200, 100]);
        let there = there.filter(|it| laps.homes().home(ONE, it.0) == WorkerId(worker));
        there.map(|it| it.1).sum()
    });
    assert_eq!(n_at, [600, 600]);
    assert!(laps.counters().n_migrations <= 3, "{:?}", laps.counters());
}

#[test]
fn a_name_on_its_way_does_not_move_on() {
    let mut laps = Laps::new(&config(3, 1)).unwrap();
    let [big, beside] = [0, 1].map(|nth| key_at(&laps, ONE, WorkerId(0), nth));
    let there = key_at(&laps, ONE, WorkerId(1), 0);
    make_aggressive(&mut laps, ONE, big, 300);
    make_aggressive(&mut laps, ONE, beside, 290);
    assert_eq!(laps.dispatch(ONE, big, &[8, 0, 7]), WorkerId(1));
    let moved = laps.homes().version();
    // More comes to its new worker than to the third.
    make_aggressive(&mut laps, ONE, there, 500);
    laps.pin(ONE, there, WorkerId(1)).unwrap();
    assert_eq!(laps.handle_queue_lengths(&[0, 8, 0]), 0);
    laps.handle_in_effect(moved);
    assert_eq!(laps.handle_queue_lengths(&[0, 8, 0]), 1);
    assert_eq!(laps.homes().home(ONE, big), WorkerId(2));
}

#[test]
fn loads_follow_the_map_when_a_worker_comes() {
    for map in KINDS {
        let mut laps = Laps::new(&LapsConfig {
            map,
            ..config(1, 1)
        })
        .unwrap();
        let keys: Vec<_> = (0..4_000).map(Key).collect();
        keys.iter().for_each(|&key| laps.handle_sample(ONE, key));
        make_aggressive(&mut laps, ONE, Key(0), 400);
        laps.add_worker(WorkerId(1), ONE).unwrap();
        laps.handle_in_effect(laps.homes().version());
        // Both have 2,200 by the map: nothing that moves would even that out.
        assert_eq!(laps.handle_queue_lengths(&[8, 0]), 0);
        assert_eq!(laps.handle_queue_lengths(&[0, 8]), 0);
        let sum: f64 = [0, 1]
            .map(|w| laps.homes().map(ONE).share(WorkerId(w)))
            .iter()
            .sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}

#[test]
fn detectors_of_services_may_be_apart() {
    let apart = DetectorScope::PerService;
    let mut laps = Laps::new(&LapsConfig {
        detector_scope: apart,
        ..config(4, 2)
    })
    .unwrap();
    make_aggressive(&mut laps, TWO, Key(5), 9);
    assert_eq!(laps.detectors().len(), 2);
    assert!(!laps.detectors()[0].is_aggressive(Key(5)));
    assert!(laps.detectors()[1].is_aggressive(Key(5)));
}

#[test]
fn a_pinned_name_stays() {
    let mut laps = Laps::new(&config(4, 2)).unwrap();
    let key = key_at(&laps, ONE, WorkerId(0), 0);
    laps.pin(ONE, key, WorkerId(1)).unwrap();
    make_aggressive(&mut laps, ONE, key, 9);
    assert_eq!(laps.dispatch(ONE, key, &[0, 100, 0, 0]), WorkerId(1));
    let state = |laps: &Laps| laps.homes().migrations().find(ONE, key).map(|it| it.state);
    assert_eq!(state(&laps), Some(MigrationState::Pinned));
    let error = laps.pin(ONE, key, WorkerId(2)).unwrap_err();
    assert!(
        error.to_string().contains("does not serve service 0"),
        "{error}"
    );
    assert!(laps.pin(ServiceId(9), key, WorkerId(2)).is_err());
    assert!(laps.unpin(ONE, key) && !laps.unpin(ONE, key));
    assert_eq!(laps.homes().home(ONE, key), WorkerId(0));
    assert!(laps.homes().holders(ONE, key).contains(WorkerId(1)));
    laps.settle(laps.homes().version());
    assert_eq!(state(&laps), None);
}

#[test]
fn a_table_full_of_pins_refuses_more() {
    let mut laps = Laps::new(&LapsConfig {
        n_migrations: 8,
        ..published(2, 1)
    })
    .unwrap();
    for key in (0..8).map(Key) {
        laps.pin(ONE, key, WorkerId(0)).unwrap();
    }
    assert_eq!(laps.pin(ONE, Key(8), WorkerId(0)), Err(LapsError::Pinned));
    let key = key_at(&laps, ONE, WorkerId(0), 20);
    make_aggressive(&mut laps, ONE, key, 9);
    assert_eq!(laps.dispatch(ONE, key, &[100, 0]), WorkerId(0));
    assert_eq!(laps.counters().n_refused, 1);
}

#[test]
fn a_worker_that_leaves_sends_moved_names_home() {
    for map in KINDS {
        let mut laps = Laps::new(&LapsConfig {
            map,
            ..published(4, 1)
        })
        .unwrap();
        let key = key_at(&laps, ONE, WorkerId(0), 0);
        make_aggressive(&mut laps, ONE, key, 9);
        assert_eq!(laps.dispatch(ONE, key, &[8, 8, 8, 0]), WorkerId(3));
        laps.remove_worker(WorkerId(3)).unwrap();
        assert_eq!(laps.homes().home(ONE, key), WorkerId(0));
        // Interests may wait there as long as that has not settled.
        assert!(laps.homes().holders(ONE, key).contains(WorkerId(3)));
        assert_eq!(laps.counters().n_sent_home, 1);
        laps.forget_worker(WorkerId(3));
        assert!(!laps.homes().holders(ONE, key).contains(WorkerId(3)));
        assert!((0..5_000).all(|key| laps.homes().home(ONE, Key(key)) != WorkerId(3)));
        assert_eq!(laps.homes().workers().len(), 3);
    }
}

#[test]
fn a_service_that_loses_its_only_worker_gets_another() {
    let mut laps = Laps::new(&config(4, 3)).unwrap();
    assert_eq!(laps.homes().map(TWO).workers(), [WorkerId(2)]);
    laps.remove_worker(WorkerId(2)).unwrap();
    assert_eq!(laps.homes().map(TWO).workers(), [WorkerId(1)]);
    assert_eq!(laps.homes().map(ONE).workers(), [WorkerId(0)]);
    let before = laps.homes().map(ONE).workers().to_vec();
    let worker = WorkerId(0);
    assert_eq!(
        laps.remove_worker(worker),
        Err(MapError::LastWorker { worker }.into())
    );
    assert_eq!(laps.homes().map(ONE).workers(), before);
    let worker = WorkerId(77);
    assert_eq!(
        laps.remove_worker(worker),
        Err(MapError::NotThere { worker }.into())
    );
}

#[test]
fn a_worker_that_comes_moves_at_most_its_share() {
    for map in KINDS {
        for n in 1..12_usize {
            let mut laps = Laps::new(&LapsConfig {
                map,
                ..config(n, 1)
            })
            .unwrap();
            let before = laps.homes().clone();
            laps.add_worker(WorkerId(n as u16), ONE).unwrap();
            let keys = 40_000;
            let moved = (0..keys).map(Key).filter(|&key| {
                let (was, is) = (before.home(ONE, key), laps.homes().home(ONE, key));
                assert!(was == is || is == WorkerId(n as u16));
                was != is
            });
            // Six deviations of a draw with a probability of 1/N.
            let share = 1.0 / (n + 1) as f64;
            let deviation = (share * (1.0 - share) / keys as f64).sqrt();
            assert!((moved.count() as f64 / keys as f64) < share + 6.0 * deviation);
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let error = Laps::new(&config(2, 3)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("use more workers or fewer services"),
        "{error}"
    );
    assert_eq!(
        Laps::new(&config(2, 0)).unwrap_err(),
        LapsError::Services { n_services: 0 }
    );
    let n_workers = 200;
    assert_eq!(
        Laps::new(&config(n_workers, 1)).unwrap_err(),
        LapsError::Workers { n_workers }
    );
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let rates = LapsConfig {
            worker_rates_pps: vec![rate],
            ..config(1, 1)
        };
        assert!(matches!(Laps::new(&rates), Err(LapsError::Rate { .. })));
    }
    let no_threshold = LapsConfig {
        high_threshold: 0,
        ..config(1, 1)
    };
    assert!(Laps::new(&no_threshold).is_err());
    let mut laps = Laps::new(&config(2, 1)).unwrap();
    let worker = WorkerId(1);
    assert_eq!(
        laps.add_worker(worker, ONE),
        Err(MapError::AlreadyThere { worker }.into())
    );
    assert!(laps.add_worker(WorkerId(5), TWO).is_err());
    assert!(laps.add_worker(WorkerId(500), ONE).is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Packet {
        service: u8,
        key: u64,
        lens: [u32; 8],
    },
    Queues([u32; 8]),
    Interval([u64; 2], [u32; 2]),
    Add(u16, u8),
    Remove(u16),
    Pin(u8, u64, u16),
    Unpin(u8, u64),
    Settle(u64),
    InEffect(u64),
    Forget(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let lens = || prop::array::uniform8(0_u32..12);
    prop_oneof![
        8 => (0_u8..2, 0_u64..30, lens())
            .prop_map(|(service, key, lens)| Step::Packet { service, key, lens }),
        2 => lens().prop_map(Step::Queues),
        2 => (prop::array::uniform2(0_u64..9_000), prop::array::uniform2(0_u32..12))
            .prop_map(|(arrived, queues)| Step::Interval(arrived, queues)),
        1 => (0_u16..8, 0_u8..2).prop_map(|(worker, service)| Step::Add(worker, service)),
        1 => (0_u16..8).prop_map(Step::Remove),
        8 => (0_u8..2, 0_u64..12, 0_u16..8).prop_map(|(s, key, w)| Step::Pin(s, key, w)),
        6 => (0_u8..2, 0_u64..12).prop_map(|(s, key)| Step::Unpin(s, key)),
        1 => (0_u64..20).prop_map(Step::Settle),
        2 => (0_u64..5).prop_map(Step::InEffect),
        1 => (0_u16..8).prop_map(Step::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whoever had a name is a holder of it until the change has settled, whatever happens;
    /// and names are at home where their service is.
    #[test]
    fn nobody_who_may_have_pending_interests_is_forgotten(
        map in prop_oneof![Just(KINDS[0]), Just(KINDS[1])],
        // Room for all names, or for so few that they displace each other.
        n_migrations in prop_oneof![Just(4_096_usize), Just(8)],
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let config = LapsConfig { map, n_migrations, ..config(5, 2) };
        let mut laps = Laps::new(&config).unwrap();
        let names: Vec<_> =
            (0..2).flat_map(|service| (0..60).map(move |key| (ServiceId(service), Key(key)))).collect();
        let mut held: Vec<Vec<(u64, WorkerId)>> = (names.iter())
            .map(|&(service, key)| vec![(u64::MAX, laps.homes().home(service, key))])
            .collect();
        let mut now_ns = 0;
        // Versions that a step ended with: those that would be published.
        let mut versions = vec![0];
        for step in steps {
            let before: Vec<_> = names.iter().map(|&(s, key)| laps.homes().home(s, key)).collect();
            match step {
                Step::Packet { service, key, lens } => {
                    let service = ServiceId(service);
                    let worker = laps.dispatch(service, Key(key), &lens);
                    prop_assert_eq!(laps.homes().home(service, Key(key)), worker);
                }
                Step::Queues(lens) => { laps.handle_queue_lengths(&lens); }
                Step::Interval(arrived, queues) => {
                    now_ns += 1_000_000;
                    let loads = [0, 1].map(|s| ServiceLoad {
                        n_arrived: arrived[s],
                        n_departed: arrived[s],
                        mean_queue: queues[s],
                    });
                    laps.handle_interval(now_ns, 1_000_000, &loads);
                }
                Step::Add(worker, service) => {
                    let _ = laps.add_worker(WorkerId(worker), ServiceId(service));
                }
                Step::Remove(worker) => { let _ = laps.remove_worker(WorkerId(worker)); }
                Step::Pin(service, key, worker) => {
                    let _ = laps.pin(ServiceId(service), Key(key), WorkerId(worker));
                }
                Step::Unpin(service, key) => { laps.unpin(ServiceId(service), Key(key)); }
                Step::Settle(back) => {
                    let settled = versions[versions.len().saturating_sub(1 + back as usize)];
                    laps.settle(settled);
                    for held in &mut held {
                        held.retain(|&(until, _)| until > settled);
                    }
                }
                Step::InEffect(back) => {
                    let in_effect = versions[versions.len().saturating_sub(1 + back as usize)];
                    laps.handle_in_effect(in_effect);
                }
                Step::Forget(worker) => {
                    laps.forget_worker(WorkerId(worker));
                    for held in &mut held {
                        held.retain(|&(until, it)| until == u64::MAX || it != WorkerId(worker));
                    }
                }
            }
            versions.push(laps.homes().version());
            for ((&(service, key), held), was) in names.iter().zip(&mut held).zip(before) {
                let home = laps.homes().home(service, key);
                prop_assert_eq!(laps.service_of(home), Some(service));
                prop_assert!(laps.homes().workers().contains(home));
                if home != was {
                    held.last_mut().unwrap().0 = laps.homes().version();
                    held.push((u64::MAX, home));
                }
                let holders = laps.homes().holders(service, key);
                for &(_, worker) in held.iter() {
                    prop_assert!(holders.contains(worker), "{service} {key:?} {held:?} {holders:?}");
                }
            }
            let mut n_serving = 0;
            for (service, need) in laps.needs().iter().enumerate() {
                let workers = laps.homes().map(ServiceId(service as u8)).workers();
                prop_assert_eq!(need.n_workers as usize, workers.len());
                prop_assert!(!workers.is_empty());
                n_serving += workers.len();
            }
            prop_assert_eq!(n_serving + laps.idle_workers().len(), laps.homes().workers().len());
            if n_migrations > 8 {
                prop_assert_eq!(laps.counters().n_displaced, 0);
            }
        }
    }
}

#[test]
fn who_had_a_name_that_makes_room_is_remembered_until_that_has_settled() {
    for map in KINDS {
        let config = LapsConfig {
            map,
            n_migrations: 8,
            ..config(3, 1)
        };
        let mut laps = Laps::new(&config).unwrap();
        let [zero, one] = [0, 1].map(WorkerId);
        let keys: Vec<_> = (0..9).map(|nth| key_at(&laps, ONE, zero, nth)).collect();
        for &key in &keys[..8] {
            laps.pin(ONE, key, one).unwrap();
        }
        laps.settle(laps.homes().version());
        for &key in &keys[..8] {
            laps.unpin(ONE, key);
        }
        let left = laps.homes().version();
        laps.handle_in_effect(left);
        laps.pin(ONE, keys[8], one).unwrap();
        assert_eq!(laps.homes().migrations().len(), 8, "one has made room");
        let holders = |laps: &Laps, key| laps.homes().holders(ONE, key);
        for &key in &keys[..8] {
            assert!(holders(&laps, key).contains(one), "{map:?} {key:?}");
        }
        laps.settle(left);
        for &key in &keys[..8] {
            assert_eq!(holders(&laps, key), WorkerSet::only(zero));
        }
        assert_eq!(laps.homes().map(ONE).n_unsettled(), 0);
    }
}

#[test]
fn where_a_moved_name_was_before_counts_though_its_bucket_is_there_again() {
    let mut laps = Laps::new(&LapsConfig {
        map: MapKind::Buckets { n_buckets_log2: 6 },
        ..LapsConfig::new(3)
    })
    .expect("so many workers");
    let [zero, one, two] = [0, 1, 2].map(WorkerId);
    let service = ServiceId(0);
    let begun = laps.homes().version();
    let home = |laps: &Laps, key| laps.homes().home(service, key);
    let of_one = (0..10_000).map(Key).filter(|&key| home(&laps, key) == one);
    let of_one: Vec<Key> = of_one.collect();
    laps.remove_worker(one).expect("there are others");
    laps.add_worker(one, service).expect("it is none of them");
    let left = of_one.into_iter().filter(|&key| home(&laps, key) == two);
    let left: Vec<Key> = left.collect();
    for &key in &left[..8] {
        laps.pin(service, key, zero).expect("there is room");
    }
    laps.remove_worker(two).expect("there are others");
    for &key in &left[..8] {
        let (former, _) = laps
            .homes()
            .moved_since(service, key, begun)
            .expect("it has moved");
        assert!(former.contains(one) && former.contains(two), "{former:?}");
        assert_eq!(home(&laps, key), zero);
    }
}
