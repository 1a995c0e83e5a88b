//! Experiments of Takemasa 2019, chapter 6, at scale tiny: a model comes to exact numbers.

mod support;

use support::run;
use tachonym_bench::Record;

/// The number of a row of the record's table `idx`.
fn number(record: &Record, idx: usize, key: &[&str], column: &str) -> f64 {
    let number = record.tables[idx].number(key, column);
    number.unwrap_or_else(|| panic!("no {column} of {key:?}"))
}

fn assert_near(value: f64, expected: f64, within: f64) {
    let is_near = (value - expected).abs() <= within;
    assert!(is_near, "{value} is not within {within} of {expected}");
}

#[test]
fn equation_6_8_comes_to_the_tables() {
    let record = run("takemasa/table-6.1", &[]);
    assert_eq!(record.tables[0].rows.len(), 7 + 8 + 3);
    for published in &record.published {
        assert_near(published.here.expect("computed"), published.value, 0.02);
    }
    assert!(record.verdicts.iter().all(|it| it.is_met) && record.verdicts.len() == 1);
    let chassis = |processor| number(&record, 1, &[processor], "chassis, W");
    assert_eq!(chassis("Intel Xeon E3-1220"), 34.20);
    assert_eq!(chassis("Intel Xeon E5620"), 68.43);
    assert!(record.notes.iter().any(|it| it.contains("take 1.00 W")));
}

#[test]
fn the_linear_approximations_come_close() {
    let record = run("takemasa/figure-6.4", &[]);
    let at_all = |processor, from| number(&record, 0, &[processor, from], "W at four cores");
    for (processor, watts, published) in [
        ("Intel Xeon E5620", 47.04, 47.10),
        ("Intel Xeon E3-1220", 28.21, 28.83),
        ("Intel Itanium 9520", 14.32, 14.75),
    ] {
        assert_near(at_all(processor, "the model"), watts, 1e-9);
        assert_near(at_all(processor, "published"), published, 1e-9);
        assert_near(at_all(processor, "1 core"), published, 0.5);
    }
    for published in record.published.iter().filter(|it| it.what.contains("R²")) {
        assert_near(published.here.expect("computed"), published.value, 0.02);
    }
    // A core at its utilization of one takes the same whatever the threshold; below it, not.
    let other = run("takemasa/figure-6.4", &["theta=0.5"]);
    let all = |record| number(record, 0, &["Intel Xeon E5620", "0 cores"], "W by core");
    assert!(all(&other) != all(&record));
}

#[test]
fn the_case_study_saves_what_its_inputs_give() {
    let record = run("takemasa/figure-6.9", &[]);
    let of = |router, column| number(&record, 0, &[router], column);
    let fifo = 769.0 + 0.238 * 72.0 + 0.762 * (918.0 + 329.0);
    assert_near(of("naive", "cycles"), fifo, 1e-9);
    assert_near(of("naive", "full at, Gbit/s"), 12.4 / fifo * 8192.0, 1e-6);
    let filter = 852.0 + 0.341 * 72.0 + 0.659 * (946.0 + 0.03 * 329.0);
    assert_near(of("Filter alone", "cycles"), filter, 1e-9);
    // Prefetching: B1 to B7, then the rest.
    let interest = 571.0 + 83.0 + 148.0 + 0.341 * 72.0 + 0.659 * (188.0 + 413.0 + 56.0);
    let rest = filter - interest;
    let optimised = interest * (1.0 - 0.2885) + rest * (1.0 - 0.1198);
    assert_near(of("optimised", "cycles"), optimised, 1e-6);
    assert_near(of("naive", "bytes"), 0.238 * 511.0 + 0.762 * 1725.0, 1e-9);
    assert_near(
        of("optimised", "bytes"),
        0.341 * 511.0 + 0.659 * 1917.0,
        1e-9,
    );
    let saved = record.published("power that the optimised router saves");
    let saved = saved.expect("it is published").here.expect("computed");
    assert!((9.0..11.3).contains(&saved), "{saved}");
    // With the chassis that the thesis ends with, less.
    let other = run("takemasa/figure-6.9", &["chassis_w=68.90"]);
    let with_other = number(&other, 0, &["optimised"], "less, %");
    assert!((6.0..7.5).contains(&with_other), "{with_other}");
}

#[test]
fn watts_by_device_and_by_block_add_up() {
    let record = run("takemasa/figure-6.10", &[]);
    let devices = ["processor, W", "memory, W", "network card, W", "chassis, W"];
    for router in ["naive", "Filter alone", "optimised"] {
        let watts = devices.map(|it| number(&record, 0, &[router], it));
        let all: f64 = watts.iter().sum();
        assert_near(number(&record, 0, &[router], "all, W"), all, 1e-9);
        let blocks = (1..=13).map(|n| number(&record, 1, &[router], &format!("B{n}")));
        assert_near(blocks.sum(), watts[0], 1e-9);
    }
    // A router that can't carry the rate has no row, and a note says so.
    let full = run("takemasa/figure-6.10", &["gbps=60"]);
    assert_eq!(full.tables[0].rows.len(), 2);
    assert!(full.notes.iter().any(|it| it.contains("naive: full at")));
}
