//! The second level of the content store in a router that runs: on real files, through its end
//! and its sudden end. What it refuses is in `second_level_refused.rs`.

mod bed;
mod second_level_bed;

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use second_level_bed::{Process, noise};

/// Most chunks that come with one read in these tests.
const LONGEST_BATCH: u64 = 16;

fn served_through_ends(extra: &str) {
    let mut router = Process::new(extra);
    let objects: Vec<_> = (0..3)
        .map(|n| {
            (
                format!("/object/{n}"),
                noise(n, 400_000 + 1_000 * n as usize),
            )
        })
        .collect();
    for (name, bytes) in &objects {
        router.publish(name, bytes);
    }
    // Nobody has them but the second level.
    for (name, bytes) in &objects {
        assert_eq!(router.get(name).as_ref(), Some(bytes), "{name}");
    }
    // What was not asked for before it was there has come with a batch.
    let stats = router.stats();
    let figure = |key: &str| stats[key].as_u64().expect("a number");
    let most = figure("hits") + LONGEST_BATCH * figure("reads");
    assert!(most > 100, "{stats}");
    assert!(n_of_offered(&stats) > 100, "{stats}");
    router.end(Signal::TERM);
    router.start();
    assert!(router.stats()["recovered"].as_u64() > Some(10));
    for (name, bytes) in &objects {
        assert_eq!(
            router.get(name).as_ref(),
            Some(bytes),
            "{name} after its end"
        );
    }
    router.end(Signal::KILL);
    router.start();
    for (name, bytes) in &objects {
        assert_eq!(
            router.get(name).as_ref(),
            Some(bytes),
            "{name} after its sudden end"
        );
    }
    let erased = router.run(&["cs", "erase", "/object/1"]);
    assert!(erased.status.success(), "{erased:?}");
    assert_eq!(router.get_at_once("/object/1"), None);
    assert_eq!(router.get("/object/2").as_ref(), Some(&objects[2].1));
    router.end(Signal::TERM);
    router.start();
    assert_eq!(
        router.get_at_once("/object/1"),
        None,
        "what is erased stays so"
    );
    assert_eq!(router.get("/object/2").as_ref(), Some(&objects[2].1));
    router.end(Signal::TERM);
}

#[test]
fn what_was_cached_is_served_after_the_routers_end_and_its_sudden_end() {
    served_through_ends("");
}

#[test]
fn the_same_holds_where_threads_read_and_write() {
    served_through_ends("second_level.io = \"threads\"\nsecond_level.batch = 16\n");
}

/// Each Data is at home by its whole name at one of two workers, and so is the prefix that it is
/// asked by, mostly at the other: all are found though they are on SSD only.
fn found_by_prefix_at_any_worker(feed: &str) {
    const N: u64 = 24;
    let workers = format!("workers.threads = 2\nworkers.dispatch = \"name\"\n{feed}");
    let mut router = Process::with_workers(&workers, "");
    for n in 0..N {
        router.publish(&format!("/object/{n}"), &noise(n, 100));
    }
    router.end(Signal::TERM);
    router.start();
    for n in 0..N {
        let found = router.run(&["peek", "--prefix", &format!("/object/{n}")]);
        assert_eq!(found.stdout, noise(n, 100), "/object/{n}: {found:?}");
    }
    let stats = router.stats();
    assert_eq!(stats["hits"], N, "{stats}");
    // What none of them has goes on, and nobody serves it.
    let absent = router.run(&["peek", "--prefix", "/absent"]);
    assert!(!absent.status.success(), "{absent:?}");
    router.end(Signal::TERM);
}

#[test]
fn a_short_prefix_finds_what_is_on_the_second_levels_of_all_workers() {
    found_by_prefix_at_any_worker("");
}

#[test]
fn the_same_holds_where_io_threads_feed_the_workers() {
    found_by_prefix_at_any_worker("workers.feed = \"io-threads\"\nworkers.io_threads = 1\n");
}

/// Data that were offered: what became of each is in one row.
fn n_of_offered(stats: &Value) -> u64 {
    let figure = |key: &str| stats[key].as_u64().expect("a number");
    let rows = [
        "written",
        "known",
        "not_admitted",
        "unsuited",
        "no_room",
        "replaced",
        "erased_unwritten",
        "lost",
        "waiting",
    ];
    let sum: u64 = rows.into_iter().map(figure).sum();
    assert_eq!(sum, figure("offered"), "{stats}");
    sum
}

#[test]
fn what_is_not_asked_for_twice_is_not_written() {
    let router = Process::new("second_level.admission = \"filter\"\n");
    router.publish("/once", &noise(1, 100_000));
    let stats = router.stats();
    assert!(stats["not_admitted"].as_u64() >= Some(12), "{stats}");
    assert_eq!(stats["lost"], 0);
    n_of_offered(&stats);
    let text = router.run(&["cs", "stats"]).stdout;
    let text = String::from_utf8(text).expect("text");
    for label in ["known", "no room", "lost", "waiting", "batches crowded out"] {
        let row = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(label));
        assert_eq!(row.map(str::trim), Some("0"), "{label}: {text}");
    }
}

/// Nothing of what idle threads are asked to write is taken for late.
#[test]
fn an_erasure_costs_idle_workers_no_volume() {
    let workers = match std::env::var_os("TACHONYM_TEST_CONFIG") {
        Some(_) => "",
        None => "workers.threads = 2\n",
    };
    let router = Process::new(&format!("second_level.stall_ms = 1500\n{workers}"));
    router.publish("/object", &noise(5, 100_000));
    let erased = router.run(&["cs", "erase", "/object"]);
    assert!(erased.status.success(), "{erased:?}");
    // For so long nobody wakes them but their timers.
    thread::sleep(Duration::from_millis(2_500));
    assert_eq!(
        router.stats()["volumes_out_of_service"],
        0,
        "{}",
        router.said()
    );
    assert_eq!(router.get_at_once("/object"), None);
}
