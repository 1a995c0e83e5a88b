//! Figures of a content store of two levels, at their smallest sizes: hits are compared to the
//! model, and rates to each other and to what an emulated device was told. How long anything took
//! is not.

use std::process::Command;

use serde_json::Value;

/// What a figure says of itself.
fn figures(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("hcs")
        .args(args)
        .args(["--runs", "1", "--json"])
        .output()
        .expect("the program is built");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    let line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    line["figures"].clone()
}

fn rows(figures: &Value, n_rows: usize) -> &Vec<Value> {
    let rows = figures["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), n_rows, "{figures}");
    rows
}

/// A number of a row, or the mean of several.
fn of(row: &Value, key: &str) -> f64 {
    let number = row[key].as_f64().or_else(|| row[key]["mean"].as_f64());
    number.unwrap_or_else(|| panic!("no {key} in {row}"))
}

/// Where nothing is read before it is asked for.
const SERIAL: f64 = 1.001;

/// Two levels are not faster than the second is told to give what is read of it; by this much
/// they may be, for what was read before.
fn is_as_slow_as_told(row: &Value, by_before: f64) {
    let most_gbps = of(row, "rate_gbps") / of(row, "read_by_asked");
    let gbps = of(row, "gbps");
    assert!(gbps > 0.0 && gbps < by_before * most_gbps, "{row}");
}

/// As near as the model is to a simulation of sets.
fn hits_are_near_the_model(row: &Value) {
    let apart = of(row, "hit_ratio") - of(row, "expected_hit_ratio");
    assert!(apart.abs() < 0.02, "{row}");
    // Who misses reads a batch of ten.
    let n_read = 10.0 * (1.0 - of(row, "hit_ratio"));
    assert!((of(row, "read_by_asked") - n_read).abs() < 0.02, "{row}");
}

fn grow(rows: &[Value], key: &str) {
    let all: Vec<f64> = rows.iter().map(|row| of(row, key)).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "{key}: {all:?}");
}

#[test]
fn one_level_that_has_everything_answers_everything_alone_and_in_the_engine() {
    let args = ["figure-3", "--sizes", "10MB,20MB", "--requests", "2000"];
    let figures = figures(&args);
    let rows = rows(&figures, 2 * 2 * 3);
    for row in rows {
        assert_eq!(of(row, "hit_ratio"), 1.0, "{row}");
        // A chunk has 64,000 bits.
        let by_chunks = 64.0 * of(row, "mops");
        assert!((of(row, "gbps") / by_chunks - 1.0).abs() < 1e-6, "{row}");
    }
    let n_of = |key: &str, value: &str| rows.iter().filter(|row| row[key] == value).count();
    assert_eq!((n_of("family", "CS"), n_of("family", "FWD")), (6, 6));
    assert_eq!((n_of("workload", "seq"), n_of("workload", "real")), (4, 4));
}

#[test]
fn an_emulated_second_level_is_no_faster_than_it_is_told() {
    let figures = figures(&[
        "figure-4",
        "--shrink",
        "1000",
        "--requests",
        "500",
        "--rates",
        "0.2,64",
    ]);
    for pair in rows(&figures, 2 * 2 * 2).chunks(2) {
        for row in pair {
            assert!(of(row, "observed_gbps") > 0.0, "{row}");
            assert!(of(row, "ratio") < 1.001, "{row}");
        }
        assert_eq!(pair[0]["delay"], pair[1]["delay"]);
        grow(pair, "target_gbps");
        grow(pair, "observed_gbps");
    }
}

#[test]
fn two_levels_are_slower_the_larger_the_second_is() {
    let figures = figures(&[
        "figure-6a",
        "--shrink",
        "100",
        "--l2",
        "10GB,20GB,40GB",
        "--delay",
        "counted",
    ]);
    let rows = rows(&figures, 3);
    for row in rows {
        hits_are_near_the_model(row);
        is_as_slow_as_told(row, SERIAL);
    }
    grow(rows, "l2_bytes");
    grow(rows, "read_by_asked");
    let reversed: Vec<Value> = rows.iter().rev().cloned().collect();
    grow(&reversed, "gbps");
    assert!(of(&figures, "one_level_gbps") > of(&rows[0], "gbps"));
}

#[test]
fn two_levels_are_faster_the_faster_the_second_is() {
    let figures = figures(&[
        "figure-6b",
        "--shrink",
        "100",
        "--rates",
        "1,8,64",
        "--delay",
        "counted",
    ]);
    let rows = rows(&figures, 3);
    for row in rows {
        hits_are_near_the_model(row);
        is_as_slow_as_told(row, SERIAL);
    }
    grow(rows, "rate_gbps");
    grow(rows, "gbps");
}

#[test]
fn the_routers_own_two_levels_are_faster_the_faster_the_second_is() {
    let figures = figures(&[
        "figure-6b",
        "--store",
        "router",
        "--shrink",
        "500",
        "--rates",
        "0.5,8",
        "--delay",
        "counted",
    ]);
    let rows = rows(&figures, 2);
    grow(rows, "gbps");
    for row in rows {
        // Eight batches ahead, and seven that are waited for, of 256.
        is_as_slow_as_told(row, 1.06);
        // What is asked for is read once, and of what is read ahead little for nothing.
        assert!(of(row, "read_by_asked") > 0.5, "{row}");
    }
}

/// A store of the router on a disk, of one Interest at a time and nothing read ahead: what the
/// models are of.
const ON_DISK: [&str; 8] = [
    "--store",
    "disk",
    "--ahead",
    "0",
    "--pending",
    "1",
    "--directory",
    env!("CARGO_TARGET_TMPDIR"),
];

/// Hits do not depend on where the second level is if each request waits for the one before.
fn hits_as_with_the_serial_algorithm(args: &[&str], n_rows: usize) -> Value {
    let serial = figures(args);
    let on_disk = figures(&[args, &ON_DISK].concat());
    let pairs = rows(&serial, n_rows).iter().zip(rows(&on_disk, n_rows));
    for (serial, on_disk) in pairs {
        assert_eq!(
            of(serial, "hit_ratio"),
            of(on_disk, "hit_ratio"),
            "{on_disk}"
        );
        assert!(of(on_disk, "gbps") > 0.0, "{on_disk}");
    }
    on_disk
}

#[test]
fn a_disk_behind_a_first_level_of_any_size_is_asked_for_the_same() {
    let args = ["figure-5", "--shrink", "200", "--l1", "1GB,4GB,10GB"];
    let figures = hits_as_with_the_serial_algorithm(&args, 9);
    for row in rows(&figures, 9) {
        let apart = of(row, "hit_ratio") - of(row, "expected_hit_ratio");
        assert!(apart.abs() < 0.03, "{row}");
    }
    let workloads = figures["summaries"].as_array().expect("one for each");
    assert_eq!(workloads.len(), 3);
    for workload in workloads {
        assert!(workload["by_time"]["lookup_ns"].is_f64(), "{workload}");
        assert!(workload["clocked_insert_ns"].is_null(), "{workload}");
    }
}

#[test]
fn a_larger_second_level_on_a_disk_is_read_more() {
    let args = ["figure-6a", "--shrink", "200", "--l2", "20GB,80GB"];
    let figures = hits_as_with_the_serial_algorithm(&args, 2);
    let rows = rows(&figures, 2);
    grow(rows, "read_by_asked");
    for row in rows {
        // A batch of ten with what is around it.
        let n_read = 10.0 * (1.0 - of(row, "hit_ratio"));
        let ratio = of(row, "read_by_asked") / n_read;
        assert!((1.0..1.1).contains(&ratio), "{row}");
        assert!(of(row, "second_gbps") > 0.0, "{row}");
    }
}

#[test]
fn workers_have_shares_of_a_disk_that_are_asked_for_alone() {
    let mut args = vec!["figure-8b", "--shrink", "200", "--workers", "1,3"];
    args.extend(ON_DISK);
    let figures = figures(&args);
    for row in rows(&figures, 4) {
        // More than there are processors of: they share these.
        assert_eq!(row["how"], "Together", "{row}");
        assert!(of(row, "hit_ratio") > 0.85, "{row}");
        assert!(of(row, "second_gbps") > 0.0, "{row}");
    }
}

#[test]
fn workers_of_the_router_are_as_many_as_an_emulated_device_has() {
    let figures = figures(&[
        "figure-7",
        "--store",
        "router",
        "--shrink",
        "500",
        "--workers",
        "1,3",
        "--rates",
        "0.5,8",
        "--memory",
        "dynamic",
    ]);
    let rows = rows(&figures, 4);
    for row in rows {
        assert!(
            of(row, "second_gbps") <= 1.01 * of(row, "rate_gbps"),
            "{row}"
        );
    }
    grow(&[rows[0].clone(), rows[2].clone()], "gbps");
}

#[test]
fn the_routers_own_second_level_is_not_faster_than_it_was_told() {
    let figures = figures(&[
        "figure-4", "--store", "router", "--shrink", "500", "--rates", "0.2,8",
    ]);
    for row in rows(&figures, 2 * 2 * 2) {
        assert!(of(row, "observed_gbps") > 0.0, "{row}");
        assert!(of(row, "ratio") < 1.001, "{row}");
    }
}

#[test]
fn a_disk_is_not_asked_to_be_as_fast_as_one_likes() {
    for figure in ["figure-4", "figure-6b"] {
        let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
            .args(["hcs", figure, "--store", "disk"])
            .output()
            .expect("the program is built");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("the rate of a disk cannot be set"),
            "{said}"
        );
    }
}
