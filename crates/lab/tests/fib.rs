//! The experiments with the FIB at sizes that take no time.

use std::process::Command;

use serde_json::Value;

/// Runs an experiment; its figures and its drawing.
fn run(figure: &str, args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a folder for the drawing");
    let svg = folder.path().join("figure.svg");
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args(["fib", figure, "--rounds", "3", "--json"])
        .args(args)
        .arg("--svg")
        .arg(&svg)
        .output()
        .expect("the program is built");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{figure}: {said}");
    let mut line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg"), "{figure}");
    (line["figures"].take(), drawing)
}

fn rows(figures: &Value) -> &[Value] {
    figures["rows"].as_array().expect("rows")
}

/// Every value at `key`, each once.
fn all<'v>(rows: &'v [Value], key: &str) -> Vec<&'v Value> {
    let mut values: Vec<&Value> = rows.iter().map(|row| &row[key]).collect();
    values.dedup();
    values
}

#[test]
fn every_row_is_measured_and_every_comparison_has_both_sides() {
    let figures = [
        ("3.6", 10),
        ("3.7", 8),
        ("3.8", 10),
        ("3.9", 20),
        ("3.10", 40),
        ("table-3.2", 8),
    ];
    for (figure, n_rows) in figures {
        let (figures, _) = run(figure, &["--rules", "600", "--threads", "1"]);
        assert_eq!(rows(&figures).len(), n_rows, "{figure}");
        for row in rows(&figures) {
            assert!(row["ns"]["median"].as_f64() > Some(0.0), "{figure}: {row}");
            assert!(
                row["bytes_per_rule"].as_f64() > Some(50.0),
                "{figure}: {row}"
            );
        }
        let comparisons = figures["comparisons"].as_array().expect("comparisons");
        assert!(comparisons.len() >= 4, "{figure}");
        for side in ["published", "measured"] {
            let is_said = |c: &Value| c[side].as_str().is_some_and(|text| !text.is_empty());
            assert!(comparisons.iter().all(is_said), "{figure}");
        }
    }
}

#[test]
fn tables_double_up_to_the_size_asked_for() {
    let (figures, drawing) = run("3.8", &["--rules", "300", "--up-to", "1200"]);
    assert_eq!(all(rows(&figures), "n_rules"), [300, 600, 1200]);
    assert!(drawing.contains("binary-search, 7 components"));
}

#[test]
fn threads_search_the_same_fib_at_once() {
    let (figures, _) = run("3.11", &["--rules", "300", "--threads", "3"]);
    let rows = rows(&figures);
    let n_threads: Vec<_> = rows.iter().map(|row| &row["n_threads"]).collect();
    assert_eq!(n_threads, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn level_pulling_saves_lookups_on_every_set_that_resembles_a_published_one() {
    let (figures, _) = run("table-4.2", &["--rules", "10000"]);
    let sets = figures["sets"].as_array().expect("sets");
    // Three sets, three ways to make names, four engines.
    assert_eq!(sets.len(), 36);
    let by = |set: &Value, key: &str| set[key].as_f64().expect("a number");
    for set in sets {
        assert!(by(set, "n_pulled") > 0.0, "{set}");
        assert!(by(set, "lookups") >= 1.0 && by(set, "lookups_pulled") >= 1.0);
        if set["engine"] == "binary-search" {
            assert!(by(set, "saved_pct") > 0.0, "{set}");
        }
    }
    let comparisons = figures["comparisons"].as_array().expect("comparisons");
    assert_eq!(comparisons.len(), 18);
}

#[test]
fn level_pulling_is_measured_on_names_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("names");
    let mut lines = String::from("/as/it/is\n\nhttp:///x\nhttp://www.example.org/a/b?c\n");
    for number in 0..40 {
        lines.push_str(&format!("http://videos.example.com/user/{number}\n"));
    }
    std::fs::write(&file, lines).expect("written");
    let path = file.to_str().expect("a path");
    let (figures, _) = run("table-4.2", &["--names", path, "--threshold", "30"]);
    assert_eq!(figures["n_refused"], 1);
    let sets = figures["sets"].as_array().expect("sets");
    assert_eq!(sets.len(), 12);
    for set in sets {
        assert_eq!((&set["n_names"], &set["n_pulled"]), (&42.into(), &1.into()));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |args: &[&str], why: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
            .arg("fib")
            .args(args)
            .output()
            .expect("the program is built");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    };
    refused(&["3.8", "--rules", "4000000000"], "missing");
    refused(&["3.8", "--rules", "8", "--up-to", "4"], "less than");
    refused(&["3.8", "--names", "x"], "--names");
    refused(&["table-4.2", "--names", "/nowhere"], "cannot read");
}
