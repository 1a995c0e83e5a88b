//! The commands that take the packet path apart, run as users run them.

use std::path::Path;
use std::process::Command;

use tachonym_lab::instructions::{self, CountError, CountOptions};
use tachonym_tables::PitCsLayout;

const LAB: &str = env!("CARGO_BIN_EXE_tachonym-lab");

/// What `tachonym-lab` prints as JSON.
fn figures(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(LAB).args(arguments).output();
    let output = output.expect("the lab starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let envelope: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one line of JSON");
    envelope["figures"].clone()
}

#[test]
fn bottleneck_tells_each_block_beside_the_published_figure() {
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().join("blocks.svg");
    let figures = figures(&[
        "bottleneck",
        "--fib-prefixes=2000",
        "--store=4096",
        "--rounds=2",
        "--packets=1024",
        "--late=3",
        "--no-instructions",
        "--json",
        "--svg",
        svg.to_str().expect("text"),
    ]);
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    for label in ["I-miss, B6 FIB look-up", "(413)", "Data, whole", "(565)"] {
        assert!(drawing.contains(label), "{label}");
    }
    let kinds = figures["kinds"].as_array().expect("a list");
    let published: Vec<_> = kinds.iter().map(|k| &k["published_cycles"]).collect();
    assert_eq!(published, [1470, 860, 565]);
    let has_block = |kind: usize, block: &str| {
        let blocks = kinds[kind]["blocks"].as_array().expect("a list");
        blocks.iter().any(|b| b["block"] == block)
    };
    assert!(has_block(0, "B6 FIB look-up") && !has_block(0, "B4 store fetch"));
    assert!(has_block(1, "B4 store fetch") && !has_block(1, "B6 FIB look-up"));
    assert!(has_block(2, "B10 store insertion"));
    for kind in kinds {
        let ticks = kind["ticks"]["median"].as_f64().expect("a number");
        assert!(ticks > 0.0, "{kind}");
    }
    // There are counters, or a reason why not.
    let counters = figures["counters"].as_array().expect("a list");
    assert_eq!(counters.is_empty(), figures["no_counters"].is_string());
}

#[test]
fn instructions_are_the_same_every_time() {
    let options = CountOptions {
        n_prefixes: 50,
        burst_pkts: 2,
        store_pkts: 64,
        n_pkts: 2,
        seed: 3,
        pit_cs: PitCsLayout::default(),
    };
    let count = || instructions::count(Path::new(LAB), &options);
    let first = match count() {
        Ok(counts) => counts,
        // The step of `cargo xtask test` that counts is a skip then, and says so.
        Err(CountError::Unavailable(_)) => return,
        Err(CountError::Failed(error)) => panic!("{error:#}"),
    };
    for kind in &first {
        let in_blocks: f64 = kind.blocks.iter().map(|block| block.count.own).sum();
        let ratio = in_blocks / kind.total.own;
        assert!((0.8..1.25).contains(&ratio), "{kind:?}");
    }
    let second = count().map_err(|error| format!("{error:?}"));
    let own = |counts: &[instructions::KindCount]| -> Vec<f64> {
        let blocks = counts.iter().flat_map(|kind| &kind.blocks);
        let blocks = blocks.map(|block| block.count.own);
        counts.iter().map(|k| k.total.own).chain(blocks).collect()
    };
    assert_eq!(own(&first), own(&second.expect("it went well before")));
}

#[test]
fn schedules_are_measured_beside_the_published_gains() {
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().join("schedules.svg");
    let figures = figures(&[
        "schedules",
        "--fib-prefixes=2000",
        "--store=4096",
        "--rounds=2",
        "--packets=1024",
        "--threads=2",
        "--late=3",
        "--json",
        &format!("--svg={}", svg.display()),
    ]);
    let by_threads = figures["by_threads"].as_array().expect("a list");
    assert_eq!(by_threads.len(), 2);
    for schedules in by_threads {
        let schedules = schedules.as_array().expect("a list");
        let names: Vec<_> = schedules.iter().map(|s| &s["schedule"]).collect();
        let all = ["naive", "bucket-prefetch", "pre-hash", "shtl", "burst"];
        assert_eq!(names, all);
        assert_eq!(schedules[0]["exchange_by_naive"].as_f64(), Some(1.0));
        assert!(schedules[4]["pkts_per_s"].as_f64() > Some(0.0));
    }
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg") && drawing.contains("shtl"));
}

#[test]
fn distances_are_measured_beside_fetching_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().join("distance.svg");
    let figures = figures(&[
        "distance",
        "--fib-prefixes=2000",
        "--store=4096",
        "--rounds=2",
        "--packets=1024",
        "--distances=1,64",
        "--json",
        &format!("--svg={}", svg.display()),
    ]);
    let by_distance = figures["figures"].as_array().expect("a list");
    let distances: Vec<_> = by_distance.iter().map(|f| &f["distance_pkts"]).collect();
    assert_eq!(distances, [0, 1, 64]);
    assert_eq!(by_distance[0]["exchange_by_naive"].as_f64(), Some(1.0));
    assert!(by_distance[2]["miss_ns"]["median"].as_f64() > Some(0.0));
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg") && drawing.contains("prefetch distance"));
}

#[test]
fn forwarding_is_measured_with_each_policy_of_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().join("forward.svg");
    let figures = figures(&[
        "cache",
        "forward",
        "--objects=20000",
        "--store=500",
        "--fib-prefixes=1000",
        "--rounds=2",
        "--requests=20000",
        "--json",
        &format!("--svg={}", svg.display()),
    ]);
    let rows = figures["rows"].as_array().expect("a list");
    let row = |policy: &str| {
        rows.iter()
            .find(|row| row["policy"] == policy)
            .expect(policy)
    };
    let number = |policy: &str, key: &str| row(policy)[key].as_f64().expect("a number");
    assert_eq!(number("fifo", "rate_by_first"), 1.0);
    assert_eq!(number("fifo", "insertion_ratio"), 1.0);
    // What is admitted is popular.
    assert!(number("filter/fifo", "insertion_ratio") < 0.2);
    assert!(number("filter/fifo", "hit_ratio") > number("fifo", "hit_ratio"));
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg") && drawing.contains("filter/fifo"));
}

#[test]
fn workers_are_measured_and_every_interest_is_answered_by_one_of_them() {
    for rule in ["prefix", "name"] {
        let figures = figures(&[
            "workers",
            "--workers=1,3",
            "--fib-prefixes=2000",
            "--requests=98304",
            "--rounds=2",
            "--dispatch",
            rule,
            "--json",
        ]);
        let rows = figures["rows"].as_array().expect("a list");
        let shares: Vec<f64> = rows
            .iter()
            .filter_map(|row| row["crossed"].as_f64())
            .collect();
        assert_eq!(shares[0], 0.0);
        assert!((shares[1] - 2.0 / 3.0).abs() < 0.05, "{shares:?}");
        assert!(rows[1]["imbalance"].as_f64().expect("a number") < 1.1);
    }
}

#[test]
fn a_name_with_most_of_the_traffic_is_measured_with_and_without_the_scheduler() {
    let figures = figures(&[
        "hot",
        "--fib-prefixes=2000",
        "--requests=32768",
        "--rounds=1",
        "--seconds=0.2",
        "--offered=0.5,3",
        "--json",
    ]);
    let rows = figures["rows"].as_array().expect("a list");
    for row in rows {
        for share in row["answered"].as_array().expect("a list") {
            let share = share.as_f64().expect("a number");
            // What one measurement has left pending the next may answer.
            assert!(share > 0.0 && share < 1.05, "{row}");
        }
    }
    assert_eq!(rows.len(), 2);
}
