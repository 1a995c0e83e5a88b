//! The lookup experiment at sizes that take no time.

use std::process::Command;

use serde_json::Value;

#[test]
fn lookup_measures_every_size_and_draws_it() {
    let folder = tempfile::tempdir().expect("a folder for the drawing");
    let svg = folder.path().join("lookup.svg");
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args([
            "lookup",
            "--prefixes",
            "1000",
            "--up-to",
            "4000",
            "--extra",
            "2",
        ])
        .args([
            "--rounds", "3", "--writer", "1000", "--pages", "base", "--json", "--svg",
        ])
        .arg(&svg)
        .output()
        .expect("the program is built");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let sizes = line["figures"]["sizes"]
        .as_array()
        .expect("figures by size");
    let n_prefixes: Vec<_> = sizes
        .iter()
        .map(|size| size["n_prefixes"].as_u64())
        .collect();
    assert_eq!(n_prefixes, [Some(1000), Some(2000), Some(4000)]);
    for size in sizes {
        assert!(size["burst_ns"]["median"].as_f64() > Some(0.0));
        assert!(size["with_writer"]["changes_per_s"].as_f64() > Some(0.0));
    }
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg") && drawing.contains("in bursts"));
}

#[test]
fn a_table_larger_than_memory_is_refused_before_it_is_filled() {
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args(["lookup", "--prefixes", "2000000000", "--pages", "base"])
        .output()
        .expect("the program is built");
    let said = String::from_utf8_lossy(&output.stderr);
    // A machine with as much memory would not be told.
    assert!(
        !output.status.success() && said.contains("missing"),
        "{said}"
    );
}
