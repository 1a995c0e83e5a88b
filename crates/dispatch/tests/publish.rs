//! Receiving threads read whole versions, each no older than the one before.

use std::sync::atomic::{AtomicBool, Ordering};

use tachonym_dispatch::{Key, Laps, LapsConfig, Publisher, ServiceId, WorkerId};

const ONE: ServiceId = ServiceId(0);

#[test]
fn a_reader_has_what_was_published_when_it_asks() {
    let mut laps = Laps::new(&LapsConfig::new(4)).unwrap();
    let mut publisher = Publisher::new(laps.homes());
    let mut reader = publisher.reader();
    laps.pin(ONE, Key(1), WorkerId(3)).unwrap();
    assert!(!reader.refresh());
    publisher.publish(laps.homes());
    assert_ne!(reader.homes().version(), laps.homes().version());
    assert!(reader.refresh() && !reader.refresh());
    assert_eq!(reader.homes().home(ONE, Key(1)), WorkerId(3));
    // One that comes later begins with the latest.
    let late = publisher.reader();
    assert_eq!(late.homes().version(), laps.homes().version());
    assert_eq!(late.homes().home(ONE, Key(1)), WorkerId(3));
}

#[test]
fn threads_see_whole_versions_that_never_go_back() {
    let mut laps = Laps::new(&LapsConfig::new(16)).unwrap();
    let mut publisher = Publisher::new(laps.homes());
    let is_over = AtomicBool::new(false);
    // In every version, all these names are at one worker.
    let keys: Vec<_> = (0..20).map(Key).collect();
    let pin_all = |laps: &mut Laps, worker| {
        for &key in &keys {
            laps.pin(ONE, key, worker).unwrap();
        }
    };
    pin_all(&mut laps, WorkerId(0));
    publisher.publish(laps.homes());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut reader = publisher.reader();
            let (keys, is_over) = (&keys, &is_over);
            scope.spawn(move || {
                let mut last = 0;
                while !is_over.load(Ordering::Acquire) {
                    reader.refresh();
                    let homes = reader.homes();
                    assert!(homes.version() >= last);
                    last = homes.version();
                    let first = homes.home(ONE, keys[0]);
                    assert!(keys.iter().all(|&key| homes.home(ONE, key) == first));
                }
            });
        }
        for n in 0..2_000 {
            pin_all(&mut laps, WorkerId(n % 16));
            publisher.publish(laps.homes());
        }
        is_over.store(true, Ordering::Release);
    });
}
