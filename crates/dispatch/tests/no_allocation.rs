//! A decision allocates nothing, whatever it moves.

#[path = "../../memory/tests/support/allocations.rs"]
mod allocations;

use std::num::{NonZeroU8, NonZeroU32};

use allocations::n_allocations;
use tachonym_dispatch::{
    DispatchBy, Key, Laps, LapsConfig, MapKind, MoveRule, NameShape, Offer, Order, OrderConfig,
    Publisher, ServiceId, ServiceLoad,
};
use tachonym_packet::{Component, HashKey, Name, NameHashes};

#[test]
fn no_decision_allocates() {
    let table = MapKind::Buckets { n_buckets_log2: 10 };
    for (map, rule) in [
        (MapKind::Linear, MoveRule::Published),
        (table, MoveRule::EVENS),
    ] {
        let config = LapsConfig {
            worker_rates_pps: vec![1e6; 3],
            high_threshold: 8,
            n_migrations: 64,
            map,
            rule,
            ..LapsConfig::new(12)
        };
        let mut laps = Laps::new(&config).expect("a sound configuration");
        let publisher = Publisher::new(laps.homes());
        let mut reader = publisher.reader();
        let mut order = Order::new(OrderConfig::default(), 12, 0);
        let (mut queued, mut done) = ([0; 12], [0; 12]);
        let mut n_held = 0;
        let before = n_allocations();
        let mut sum = 0;
        for n in 0..300_000_u64 {
            let service = ServiceId((n % 3) as u8);
            // Others every now and then, so that moves do not come to an end.
            let key = Key(n * n % 97 + n / 5_000 * 97);
            let mut lens = [3; 12];
            lens[(n / 100 % 12) as usize] = 9;
            sum += laps.dispatch(service, key, &lens).idx();
            laps.handle_sample(service, key);
            order.adopt(laps.homes().version(), &queued);
            match order.offer(laps.homes(), (service, key), &done, n) {
                Offer::Go(_) => queued[laps.homes().home(service, key).idx()] += 1,
                Offer::Held => n_held += 1,
                Offer::NoRoom(_) => {}
            }
            if n % 500 == 0 {
                done = queued;
                order.release(laps.homes(), &done, |home, _, _, _| queued[home.idx()] += 1);
                laps.handle_in_effect(order.in_effect());
            }
            if n % 50 == 0 {
                laps.handle_queue_lengths(&lens);
                reader.refresh();
            }
            if n % 1_000 == 0 {
                let loads = [n % 7, n % 11, n % 13].map(|n_arrived| ServiceLoad {
                    n_arrived: n_arrived * 1_000,
                    n_departed: 0,
                    mean_queue: 0,
                });
                laps.handle_interval(n * 1_000, 1_000_000, &loads);
                laps.settle(laps.homes().version().saturating_sub(5));
            }
            sum += reader.homes().home(service, key).idx();
            sum += laps.homes().holders(service, key).len();
        }
        let n_allocations = n_allocations() - before;
        assert_eq!(n_allocations, 0, "{map:?}");
        assert!(sum > 0 && n_held > 30, "{n_held}");
        let counters = laps.counters();
        assert!(
            counters.n_migrations > 30 && counters.n_transfers > 10,
            "{counters:?}"
        );
    }
}

#[test]
fn no_name_allocates() {
    let name: Name = "/one/two/three".parse().expect("a name");
    let name = name.with(&Component::segment(7));
    let mut hashes = NameHashes::new();
    let span = hashes.push_name(&HashKey::from_u64s(1, 2), name.view());
    let hashes = hashes.slice(span);
    let before = n_allocations();
    let n_components = NonZeroU8::new(2).expect("above 0");
    let n_segments = NonZeroU32::new(10).expect("above 0");
    let mut sum = 0_u64;
    for by in [
        DispatchBy::Prefix { n_components },
        DispatchBy::Name,
        DispatchBy::Batch { n_segments },
    ] {
        sum ^= by.key(name.view(), hashes).0;
        sum ^= by.waiting_lengths(name.len(), 0).count() as u64;
        sum ^= NameShape::of(name.view()).segment.unwrap_or_default();
    }
    assert_eq!(n_allocations() - before, 0);
    assert_ne!(sum, 0);
}
