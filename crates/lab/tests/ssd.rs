//! The second level on a disk, at sizes that take no time: what is counted, not what is timed.

use std::process::{Command, Output};

use serde_json::Value;

fn lab(args: &[&str]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("ssd")
        .args(args)
        .arg("--json")
        .arg("--directory")
        .arg(folder.path())
        .output()
        .expect("the program is built");
    (output, folder)
}

/// What a command prints; it leaves nothing behind.
fn figures(args: &[&str]) -> Value {
    let (output, folder) = lab(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "the folder is as it was");
    let line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    line["figures"].clone()
}

fn of_promise(figures: &Value, what: &str) -> Value {
    let promises = figures["promises"].as_array().expect("promises");
    let is_it = |it: &&Value| it["what"].as_str().is_some_and(|it| it.starts_with(what));
    let found = promises.iter().find(is_it);
    found
        .unwrap_or_else(|| panic!("no {what} in {figures}"))
        .clone()
}

#[test]
fn objects_are_served_from_the_disk_in_batches_and_one_by_one() {
    let figures = figures(&[
        "serve",
        "--store-mib",
        "160",
        "--rounds",
        "2",
        "--slot-ms",
        "60",
        "--window",
        "320",
        "--no-fio",
    ]);
    let rate = of_promise(&figures, "rate by that of batches of one");
    assert!(rate["spread"]["median"].as_f64() > Some(0.0));
    assert_eq!(rate["spread"]["n_rounds"], 2);
}

fn latency(of: &str) -> Value {
    figures(&[
        "latency",
        "--of",
        of,
        "--store-mib",
        "32",
        "--rounds",
        "1",
        "--slot-ms",
        "60",
        "--load-pct",
        "2",
    ])
}

#[test]
fn interests_for_batches_drawn_are_timed() {
    for (of, said) in [
        ("hits", "2 % of the {} that are answered at most"),
        ("disk", "2 % of the {} that the disk reads at most"),
    ] {
        let figures = latency(of);
        let above = of_promise(&figures, "p99 above");
        assert!(above["spread"]["median"].is_number(), "{figures}");
        let title = figures["title"].as_str().expect("text");
        let (before, behind) = said.split_once("{}").expect("a number's place");
        let rate = title
            .split_once(before)
            .and_then(|it| it.1.split_once(behind));
        let rate = rate.and_then(|it| it.0.parse::<u64>().ok());
        assert!(rate > Some(0), "{title}");
    }
}

#[test]
fn answers_from_memory_are_timed_with_one_level_and_with_two() {
    let figures = figures(&[
        "hit-path",
        "--cached",
        "256",
        "--rounds",
        "2",
        "--requests",
        "1024",
    ]);
    let ratio = of_promise(&figures, "two levels by one, names drawn");
    assert!(ratio["spread"]["median"].as_f64() > Some(0.0));
}

#[test]
fn hardly_more_is_written_than_data_have() {
    let figures = figures(&[
        "amplification",
        "--store-mib",
        "64",
        "--packet-bytes",
        "1100",
    ]);
    let share = of_promise(&figures, "written by Data as the store counts");
    let median = share["spread"]["median"].as_f64().expect("a number");
    assert!((1.0..1.05).contains(&median), "{median}");
    assert_eq!(share["is_kept"], true);
}

#[test]
fn what_was_flushed_is_served_after_both_ends() {
    let figures = figures(&[
        "recovery",
        "--store-mib",
        "64",
        "--rounds",
        "1",
        "--sample",
        "200",
    ]);
    for label in ["after a flush", "without"] {
        let found = of_promise(&figures, &format!("of what was flushed, served, {label}"));
        assert_eq!(found["is_kept"], true, "{figures}");
    }
}

#[test]
fn an_index_is_weighed() {
    let figures = figures(&[
        "index",
        "--store-mib",
        "64",
        "--packet-bytes",
        "1100",
        "--absent",
        "1000",
    ]);
    let bytes = of_promise(&figures, "DRAM of a stored packet");
    let median = bytes["spread"]["median"].as_f64().expect("a number");
    // 1.28, of which 0.02 are room for a few batches more, which a larger store has for nothing.
    assert!((1.2..1.3).contains(&median), "{median}");
    assert_eq!(bytes["is_kept"], true);
}

#[test]
fn a_disk_without_room_and_a_program_that_is_not_there_are_told_of() {
    let (output, _) = lab(&["index", "--store-mib", "16777216"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--store-mib"), "{said}");
    let (output, _) = lab(&["foyer", "--program", "/nowhere"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cargo build"), "{said}");
}
