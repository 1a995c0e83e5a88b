//! Workers pass between services as sections 5.3.2 and 5.3.3 of Iqbal 2013 say.

use proptest::prelude::*;
use tachonym_dispatch::{Laps, LapsConfig, ServiceId, ServiceLoad, Transfer, WorkerId};

const MS: u64 = 1_000_000;

/// Each worker does a million packets per second: a thousand per interval.
fn laps(n_workers: usize, n_services: usize) -> Laps {
    let config = LapsConfig {
        worker_rates_pps: vec![1e6; n_services],
        idle_ns: 2 * MS,
        ..LapsConfig::new(n_workers)
    };
    Laps::new(&config).unwrap()
}

fn loads<const N: usize>(n_arrived: [u64; N], mean_queue: [u32; N]) -> [ServiceLoad; N] {
    std::array::from_fn(|service| ServiceLoad {
        n_arrived: n_arrived[service],
        n_departed: n_arrived[service],
        mean_queue: mean_queue[service],
    })
}

fn workers<const N: usize>(laps: &Laps) -> [u32; N] {
    std::array::from_fn(|service| laps.needs()[service].n_workers)
}

#[test]
fn a_surplus_is_marked_after_a_while_and_given_to_who_asks() {
    let mut laps = laps(8, 2);
    let quiet = loads([2_000, 4_000], [0, 0]);
    assert!(laps.handle_interval(MS, MS, &quiet).is_empty());
    assert!(laps.handle_interval(2 * MS, MS, &quiet).is_empty());
    assert_eq!(laps.needs()[0].n_surplus, 0);
    assert!(laps.handle_interval(3 * MS, MS, &quiet).is_empty());
    assert_eq!(laps.needs()[0].n_surplus, 1);
    laps.handle_interval(4 * MS, MS, &quiet);
    assert_eq!(laps.needs()[0].n_surplus, 1);
    laps.handle_interval(5 * MS, MS, &quiet);
    assert_eq!(laps.needs()[0].n_surplus, 2);
    // It keeps serving as long as nobody asks.
    assert_eq!(workers(&laps), [4, 4]);
    let transfers = laps
        .handle_interval(6 * MS, MS, &loads([2_000, 5_000], [0, 0]))
        .to_vec();
    let expected = Transfer {
        worker: WorkerId(3),
        from: Some(ServiceId(0)),
        to: ServiceId(1),
    };
    assert_eq!(transfers, [expected]);
    assert_eq!(workers(&laps), [3, 5]);
    assert_eq!(laps.service_of(WorkerId(3)), Some(ServiceId(1)));
    assert_eq!(laps.needs()[0].n_surplus, 1);
}

#[test]
fn a_dip_that_is_over_soon_gives_nothing_away() {
    let mut laps = laps(8, 2);
    for n in 1..50 {
        let dips = if n % 2 == 0 { 4_000 } else { 1_000 };
        laps.handle_interval(n * MS, MS, &loads([dips, 4_000], [0, 0]));
        assert_eq!(laps.needs()[0].n_surplus, 0);
    }
}

#[test]
fn a_service_takes_its_own_surplus_back_first() {
    let mut laps = laps(8, 2);
    for n in 1..9 {
        laps.handle_interval(n * MS, MS, &loads([1_000, 4_000], [0, 0]));
    }
    assert_eq!(laps.needs()[0].n_surplus, 3);
    assert!(
        laps.handle_interval(9 * MS, MS, &loads([4_000, 4_000], [0, 0]))
            .is_empty()
    );
    assert_eq!(laps.needs()[0].n_surplus, 0);
}

#[test]
fn the_longest_surplus_gives_first() {
    let mut laps = laps(9, 3);
    // The third has a surplus before the first has.
    for n in 1..4 {
        laps.handle_interval(n * MS, MS, &loads([3_000, 3_000, 2_000], [0; 3]));
    }
    for n in 4..9 {
        laps.handle_interval(n * MS, MS, &loads([2_000, 3_000, 2_000], [0; 3]));
    }
    let transfers = laps.handle_interval(9 * MS, MS, &loads([2_000, 4_000, 2_000], [0; 3]));
    assert_eq!(transfers[0].from, Some(ServiceId(2)));
    assert_eq!(transfers.len(), 1);
}

#[test]
fn slightly_more_than_it_can_do_is_served_when_queues_have_grown() {
    let mut laps = laps(8, 2);
    for n in 1..9 {
        assert!(
            laps.handle_interval(n * MS, MS, &loads([1_000, 4_400], [0, 79]))
                .is_empty()
        );
    }
    let transfers = laps.handle_interval(9 * MS, MS, &loads([1_000, 4_400], [0, 80]));
    assert_eq!(transfers.len(), 1);
    assert_eq!(workers(&laps), [3, 5]);
}

#[test]
fn in_overload_workers_are_shared_in_proportion_and_then_stay() {
    let mut laps = laps(12, 2);
    let overload = loads([30_000, 10_000], [0, 0]);
    laps.handle_interval(MS, MS, &overload);
    assert_eq!(workers(&laps), [9, 3]);
    for n in 2..20 {
        assert!(laps.handle_interval(n * MS, MS, &overload).is_empty());
    }
}

#[test]
fn a_service_without_work_keeps_one_worker() {
    let mut laps = laps(4, 2);
    for n in 1..20 {
        laps.handle_interval(n * MS, MS, &loads([0, 50_000], [0, 100]));
    }
    assert_eq!(workers(&laps), [1, 3]);
}

#[test]
fn workers_that_nobody_has_come_first_and_a_frozen_scheduler_gives_none() {
    let mut laps = laps(4, 2);
    laps.freeze();
    assert!(
        laps.handle_interval(MS, MS, &loads([9_000, 1_000], [0, 0]))
            .is_empty()
    );
    laps.thaw();
    assert!(
        !laps
            .handle_interval(2 * MS, MS, &loads([9_000, 1_000], [0, 0]))
            .is_empty()
    );
    assert_eq!(workers(&laps), [3, 1]);
}

proptest! {
    /// Steady loads come to rest: nobody passes a worker to and fro.
    #[test]
    fn steady_loads_come_to_rest(
        n_workers in 4_usize..32,
        arrived in prop::array::uniform4(0_u64..40_000),
        queues in prop::array::uniform4(0_u32..100),
    ) {
        let mut laps = laps(n_workers, 4);
        let mut n_last = 0;
        for n in 1..400 {
            let load = loads(arrived, queues);
            n_last = if laps.handle_interval(n * MS, MS, &load).is_empty() { n_last } else { n };
            let all: [u32; 4] = workers(&laps);
            prop_assert!(all.iter().all(|&n| n >= 1));
            prop_assert_eq!(all.iter().sum::<u32>() as usize, n_workers);
        }
        // Queues that stay long whatever is given ask for ever; others are served.
        if queues.iter().all(|&queue| queue < 80) {
            prop_assert!(n_last < 200, "{n_last}");
        }
    }
}
