//! The schedulers that LAPS is compared with.

use tachonym_dispatch::baselines::{
    ExactTop, Fcfs, FlowShift, Grain, RoundRobin, Scheduler, StaticHash, TopNames,
};
use tachonym_dispatch::{Key, ServiceId, WorkerId};

const ONE: ServiceId = ServiceId(0);

#[test]
fn fcfs_takes_the_shortest_queue_and_turns_among_equals() {
    let mut fcfs = Fcfs::new(3).unwrap();
    assert_eq!(fcfs.dispatch(ONE, Key(1), &[2, 1, 5]), WorkerId(1));
    let turns: Vec<_> = (0..4)
        .map(|_| fcfs.dispatch(ONE, Key(1), &[0; 3]).0)
        .collect();
    assert_eq!(turns, [2, 0, 1, 2]);
    assert!(Fcfs::new(0).is_err());
}

#[test]
fn batches_go_to_one_worker_after_another() {
    let mut batches = RoundRobin::new(3, 2).unwrap();
    let workers: Vec<_> = (0..8)
        .map(|key| batches.dispatch(ONE, Key(key), &[9, 0, 0]).0)
        .collect();
    assert_eq!(workers, [0, 0, 1, 1, 2, 2, 0, 0]);
    assert!(RoundRobin::new(3, 0).is_err());
}

#[test]
fn a_static_hash_moves_nothing() {
    let mut hash = StaticHash::new(4, 8).unwrap();
    for key in (0..100).map(Key) {
        let home = hash.dispatch(ONE, key, &[0; 4]);
        assert_eq!(hash.dispatch(ONE, key, &[u32::MAX; 4]), home);
    }
    assert_eq!(hash.n_shifts(), 0);
}

#[test]
fn flow_shift_moves_whatever_arrives() {
    for grain in [Grain::Name, Grain::Bundle] {
        let mut shift = FlowShift::new(4, 4, grain, 8).unwrap();
        let home = shift.dispatch(ONE, Key(1), &[0; 4]);
        // Another name of the same bucket.
        let mut hash = tachonym_dispatch::BucketMap::new(4, &[0, 1, 2, 3].map(WorkerId)).unwrap();
        let bucket = hash.bucket(Key(1));
        let other = (2..)
            .map(Key)
            .find(|&key| hash.bucket(key) == bucket)
            .unwrap();
        assert!(hash.assign(bucket, home).is_ok());
        let mut lens = [5, 5, 5, 5];
        let least = WorkerId((home.0 + 1) % 4);
        lens[home.idx()] = 8;
        lens[least.idx()] = 1;
        assert_eq!(shift.dispatch(ONE, Key(1), &lens), least);
        assert_eq!(shift.dispatch(ONE, Key(1), &[0; 4]), least);
        let expected = if grain == Grain::Name { home } else { least };
        assert_eq!(shift.dispatch(ONE, other, &[0; 4]), expected);
        assert_eq!(shift.n_shifts(), 1);
        assert_eq!(shift.dispatch(ONE, Key(1), &[9; 4]), least);
        assert_eq!(shift.n_shifts(), 1);
    }
}

#[test]
fn the_oracle_moves_only_what_came_most_often() {
    let mut top = TopNames::new(2, 8, 1, 8).unwrap();
    let home = top.dispatch(ONE, Key(1), &[0; 2]);
    top.dispatch(ONE, Key(1), &[0; 2]);
    let rare = (2..)
        .map(Key)
        .find(|&key| top.dispatch(ONE, key, &[0; 2]) == home)
        .unwrap();
    let mut lens = [0; 2];
    lens[home.idx()] = 8;
    assert_eq!(top.dispatch(ONE, rare, &lens), home);
    assert_ne!(top.dispatch(ONE, Key(1), &lens), home);
    assert_eq!(top.n_shifts(), 1);
}

#[test]
fn exact_top_names_are_exact() {
    let mut top = ExactTop::new(5);
    let mut counts = [0_u64; 50];
    for n in 0..20_000_u64 {
        let key = n * n % 7_919 % 50 % (1 + n % 50);
        top.handle_packet(Key(key));
        counts[key as usize] += 1;
        let mut sorted = counts;
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let mut found: Vec<_> = top.names().iter().map(|it| it.1).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(found, sorted[..found.len()]);
        assert!(top.names().iter().all(|it| counts[it.0.0 as usize] == it.1));
    }
    assert_eq!(top.n_names(), counts.iter().filter(|&&n| n > 0).count());
}
