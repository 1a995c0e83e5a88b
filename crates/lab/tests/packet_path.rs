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
