//! The experiments with caches at sizes that take no time.

use std::process::Command;

use serde_json::Value;

/// Runs an experiment; its figures.
fn run(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("cache")
        .args(args)
        .arg("--json")
        .output()
        .expect("the program is built");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    let mut line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    line["figures"].take()
}

/// As [`run`], and its drawing.
fn run_drawn(args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a folder for the drawing");
    let svg = folder.path().join("figure.svg");
    let mut args = args.to_vec();
    args.extend(["--svg", svg.to_str().expect("a path of letters")]);
    let figures = run(&args);
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg"), "{args:?}");
    (figures, drawing)
}

fn rows(figures: &Value) -> &[Value] {
    figures["rows"].as_array().expect("rows")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

const SMALL: [&str; 6] = [
    "--shrink",
    "2000",
    "--min-requests",
    "2000",
    "--warm-by-len",
    "20",
];

fn small<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &SMALL].concat()
}

#[test]
fn figure_4_has_every_threshold_that_a_history_reaches() {
    let args = ["figure-4", "--shrink", "1000", "--thresholds", "1,2,15"];
    let (figures, drawing) = run_drawn(&args);
    // The shortest history has ten requests.
    assert_eq!(rows(&figures).len(), 8);
    for row in rows(&figures) {
        let off = number(&row["hit_ratio"]) - number(&row["expected_hit_ratio"]);
        let is_one = row["threshold"] == 1;
        assert!(!is_one || off.abs() < 0.05, "{row}");
        assert!(!is_one || row["insertion_ratio"] == 1.0, "{row}");
    }
    assert!(drawing.contains("history 1000, model"));
}

#[test]
fn figures_5_and_6_have_every_workload_policy_and_size() {
    for (figure, n_policies, y) in [("figure-5", 3, "insertions"), ("figure-6", 8, "hits")] {
        let (figures, drawing) = run_drawn(&small(&[figure, "--percent", "1,10"]));
        assert_eq!(rows(&figures).len(), 3 * n_policies * 2, "{figure}");
        for pair in rows(&figures).chunks(2) {
            assert!(pair.iter().all(|row| row["failure"].is_null()), "{pair:?}");
            let hits = pair.iter().map(|row| number(&row["hit_ratio"]));
            assert!(hits.is_sorted(), "more Data, fewer hits: {pair:?}");
        }
        let published = rows(&figures)
            .iter()
            .filter(|row| row["published_hit_ratio"].is_f64());
        assert!(published.count() > 1, "{figure}");
        assert!(
            drawing.contains(y) && drawing.contains("filter/fifo"),
            "{figure}"
        );
    }
}

#[test]
fn simulations_at_the_same_time_come_out_as_one_after_the_other() {
    let args = small(&["figure-5", "--percent", "3", "--workloads", "web"]);
    let both = [
        args.clone(),
        [args.as_slice(), &["--threads", "3"]].concat(),
    ];
    let [alone, together] = both.map(|args| run(&args));
    assert_eq!(rows(&alone), rows(&together));
}

#[test]
fn figure_7_follows_from_blocks_and_ratios() {
    let args = [
        "figure-7",
        "--percent",
        "1,5",
        "--rounds",
        "1",
        "--store",
        "4096",
    ];
    let args = [&args[..], &["--fib-prefixes", "2000"]].concat();
    let (figures, drawing) = run_drawn(&small(&args));
    assert_eq!(rows(&figures).len(), 12);
    for row in rows(&figures) {
        assert!(number(&row["measured_ns"]) > 0.0, "{row}");
        let is_published = row["policy"] != "filter-auto/gclock";
        assert_eq!(row["published_cycles"].is_f64(), is_published, "{row}");
    }
    let fifo = rows(&figures)
        .iter()
        .find(|row| row["policy"] == "fifo")
        .expect("it is there");
    // Equation 1 with the blocks of table 1.
    let hits = number(&fifo["hit_ratio"]);
    let cycles = 769.0 + hits * 72.0 + (1.0 - hits) * (918.0 + 329.0);
    assert!(
        (number(&fifo["published_cycles"]) - cycles).abs() < 1e-6,
        "{fifo}"
    );
    assert!(drawing.contains("cycles by Interest"));
}

#[test]
fn tables_1_and_2_have_the_published_blocks_beside_those_here() {
    let args = ["table-1", "--fib-prefixes", "2000", "--store", "4096"];
    let figures = run(&[
        &args[..],
        &["--rounds", "3", "--packets", "1024", "--no-instructions"],
    ]
    .concat());
    let blocks = figures["blocks"].as_array().expect("blocks");
    assert!(blocks.len() >= 8, "{blocks:?}");
    for block in blocks {
        assert!(
            number(&block["ns"]) > 0.0 && block["published_cycles"].is_string(),
            "{block}"
        );
    }
    let args = [
        "table-2", "--cache", "1000", "--warm", "100000", "--rounds", "3", "--bursts", "50",
    ];
    let figures = run(&args);
    let published = rows(&figures)
        .iter()
        .filter(|row| row["published_cycles"].is_array());
    assert_eq!(published.count(), 5);
    let row = |policy: &str| {
        let found = rows(&figures).iter().find(|row| row["policy"] == policy);
        found.unwrap_or_else(|| panic!("no {policy}"))
    };
    assert_eq!(row("filter/fifo")["by_filter"][0], 1.0);
    let memory = |policy: &str| number(&row(policy)["memory_bytes"]);
    assert!(memory("filter/fifo") <= memory("filter-row/fifo"));
}

#[test]
fn rates_of_the_simulator_are_measured_for_each_policy() {
    let args = [
        "speed",
        "--objects",
        "5000",
        "--cache",
        "100",
        "--rounds",
        "3",
    ];
    let figures = run(&[&args[..], &["--requests", "20000", "--warm", "1000"]].concat());
    assert_eq!(rows(&figures).len(), 4);
    for row in rows(&figures) {
        for how in ["drawn_before", "drawn_meanwhile"] {
            assert!(number(&row[how]["median"]) > 0.0, "{row}");
        }
    }
}

#[test]
fn filter_that_tunes_itself_is_beside_every_fixed_setting() {
    let args = small(&["auto", "--percent", "10"]);
    let (figures, drawing) = run_drawn(&args);
    let comparisons = figures["comparisons"].as_array().expect("comparisons");
    assert_eq!(comparisons.len(), 6);
    for comparison in comparisons {
        assert_eq!(comparison["fixed"].as_array().map(Vec::len), Some(8));
        assert!(
            number(&comparison["auto"]["hit_ratio"]) > 0.0,
            "{comparison}"
        );
    }
    assert!(drawing.contains("one-timers"));
}

#[test]
fn a_change_of_popularity_is_repeated_with_every_seed() {
    let args = [
        "change",
        "--policies",
        "lru,filter/fifo",
        "--cache",
        "500",
        "--seeds",
        "3",
    ];
    let args = [
        &args[..],
        &["--warm", "20000", "--steady", "20000", "--after", "500000"],
    ]
    .concat();
    let (figures, _) = run_drawn(&args);
    for row in rows(&figures) {
        assert_eq!(
            row["requests_to_95"].as_array().map(Vec::len),
            Some(3),
            "{row}"
        );
        assert_eq!(row["steps"].as_array().map(Vec::len), Some(2), "{row}");
    }
}

#[test]
fn figure_8_is_drawn_with_the_published_rates() {
    let args = [
        "figure-8",
        "--objects",
        "2000",
        "--store",
        "100",
        "--fib-prefixes",
        "100",
    ];
    let (figures, drawing) =
        run_drawn(&[&args[..], &["--rounds", "1", "--requests", "1024"]].concat());
    assert!(rows(&figures).len() >= 6);
    assert!(drawing.contains("published"));
}
