//! The second level of the content store in a router that runs: on real files, through its end
//! and its sudden end. What it refuses is in `second_level_refused.rs`.

mod bed;
mod second_level_bed;

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use second_level_bed::{Process, noise};
use serde_json::Value;
use tachonym_client::{Controller, Endpoint, ExpressError, Link, Received};
use tachonym_packet::{Component, Data, DataView, Interest, Name};
use tachonym_security::Signer;

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
fn after_a_restart_get_takes_a_stale_version_and_says_so() {
    let mut router = Process::new("");
    let content = noise(9, 50_000);
    let file = router.log().with_file_name("original");
    std::fs::write(&file, &content).expect("the folder is ours");
    let file = file.to_str().expect("text");
    let put = [
        "put",
        "/doc",
        file,
        "--version",
        "7",
        "--freshness-ms",
        "1",
        "--json",
    ];
    let mut put = router.command(&put).spawn().expect("it runs");
    // Metadata and segments go to SSD as they pass.
    router.wait(|it| it.run(&["get", "/doc", "--quiet"]).stdout == content);
    put.kill().expect("it runs");
    put.wait().expect("it is ours");
    router.end(Signal::TERM);
    router.start();
    // Freshness goes on over a restart; the metadata's is a second.
    let fresh = ["peek", "/doc/32=metadata", "--prefix", "--fresh"];
    router.wait(|it| !it.run(&fresh).status.success());
    let found = router.run(&["get", "/doc", "--quiet"]);
    assert!(found.stdout == content, "{found:?}");
    let note = String::from_utf8(found.stderr).expect("text");
    let parts = [
        "no fresh metadata or Data for /doc",
        "taking /doc/v=7",
        "a newer version may exist",
    ];
    for part in parts {
        assert!(note.contains(part), "{part}: {note}");
    }
    // The ratio of both levels counts what the SSD level answered.
    let info = router.run(&["cs", "info"]).stdout;
    let info = String::from_utf8(info).expect("text");
    assert!(
        info.contains("DRAM level") && info.contains("SSD level"),
        "{info}"
    );
    let status = router.run(&["status", "--json"]).stdout;
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    let figure = |value: &Value| value.as_f64().expect("a number");
    let cs = &status["cs"];
    let n_hits = figure(&cs["hits"]) + figure(&cs["second_level"]["hits"]);
    let ratio = n_hits / (figure(&cs["hits"]) + figure(&cs["misses"]));
    // DRAM was empty: what it answered had come from SSD with the batch of another segment.
    assert!(n_hits >= 7.0, "{cs}");
    assert!((figure(&cs["hit_ratio"]) - ratio).abs() < 1e-9, "{cs}");
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
    let labels = [
        "already stored",
        "no room",
        "lost",
        "waiting",
        "batches forgotten early",
        "lookups refused",
        "reads refused",
    ];
    for label in labels {
        let row = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(label));
        assert_eq!(row.map(str::trim), Some("0"), "{label}: {text}");
    }
}

#[test]
fn what_is_asked_for_once_is_written_while_there_is_room() {
    for admission in ["tinylfu", "filter-auto"] {
        let router = Process::new(&format!("second_level.admission = \"{admission}\"\n"));
        router.publish("/once", &noise(1, 100_000));
        let stats = router.stats();
        assert!(n_of_offered(&stats) >= 12, "{admission}: {stats}");
        assert_eq!(stats["not_admitted"], 0, "{admission}: {stats}");
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

/// Data of a batch.
const BATCH: u64 = 10;

/// The Data of a number, as its producer makes it.
fn streamed(number: u64) -> Vec<u8> {
    let name: Name = "/stream/v=7".parse().expect("a literal name");
    let data = Data {
        content: noise(number, 1_000),
        ..Data::new(name.with(&Component::segment(number)))
    };
    data.encode_with_digest()
}

fn ask_for(endpoint: &mut Endpoint, number: u64) -> Result<Vec<u8>, ExpressError> {
    let wire = streamed(number);
    let name = DataView::parse(&wire).expect("a Data").name().to_name();
    let answer = endpoint.express(&Interest::new(name), 0)?;
    Ok(answer.wire().to_vec())
}

/// Makes Data of a stream as they are asked for, until the router ends.
fn produce(mut endpoint: Endpoint) {
    Controller::new(&mut endpoint, Signer::digest())
        .register(&"/stream".parse().expect("a literal name"))
        .expect("it is allowed");
    let answered = |link: &mut Link, received: Received<'_>| {
        if let Received::Interest(interest, headers) = received {
            let last = interest.name().last().and_then(|it| it.as_number());
            let wire = streamed(last.expect("a segment"));
            link.send_data(&wire, headers.pit_token);
        }
        ControlFlow::Continue(())
    };
    while endpoint.poll(None, answered).is_ok() {}
}

/// Waits until the disk has every tenth of these Data: then they are read from there, and before
/// from memory. Each is of a batch of its own, and there is no room for two of them in the first
/// level, so that none is found there.
fn wait_until_on_disk(router: &mut Process, numbers: std::ops::Range<u64>) {
    let mut endpoint = router.endpoint();
    router.wait(|it| {
        let n_read = it.count("reads");
        for number in numbers.clone().rev().step_by(BATCH as usize) {
            assert_eq!(ask_for(&mut endpoint, number).ok(), Some(streamed(number)));
        }
        it.count("reads") - n_read >= (numbers.end - numbers.start) / BATCH
    });
}

#[test]
fn what_was_on_disk_is_served_after_a_sudden_end_while_more_is_written() {
    const N_BEFORE: u64 = 300;
    // Which batches are whole and when is that of one worker.
    let mut router = Process::with_workers("", "");
    let producer = router.endpoint();
    let producer = thread::spawn(move || produce(producer));
    let mut consumer = router.endpoint();
    router.wait(|_| ask_for(&mut consumer, 0).is_ok());
    for number in 1..N_BEFORE {
        assert_eq!(ask_for(&mut consumer, number).ok(), Some(streamed(number)));
    }
    wait_until_on_disk(&mut router, 0..N_BEFORE);
    // The stream goes on until the router does not.
    let stream = thread::spawn(move || {
        let is_answered = |&number: &u64| ask_for(&mut consumer, number).is_ok();
        (N_BEFORE..).take_while(is_answered).count() as u64
    });
    wait_until_on_disk(&mut router, N_BEFORE..N_BEFORE + 10 * BATCH);
    router.end(Signal::KILL);
    let n_streamed = stream.join().expect("it ends");
    producer.join().expect("it ends");
    router.start();
    assert!(router.count("recovered") >= N_BEFORE / BATCH + 10);
    let mut consumer = router.endpoint();
    for number in 0..N_BEFORE {
        assert_eq!(ask_for(&mut consumer, number).ok(), Some(streamed(number)));
    }
    let mut n_found = 0;
    for number in N_BEFORE..N_BEFORE + n_streamed {
        if let Ok(found) = ask_for(&mut consumer, number) {
            assert!(found == streamed(number), "{number}");
            n_found += 1;
        }
    }
    assert!(n_found >= 10 * BATCH, "{n_found} of {n_streamed}");
    router.end(Signal::TERM);
}
