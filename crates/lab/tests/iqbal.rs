//! Experiments of Iqbal 2013 at scale tiny: seeded simulations come to exact numbers.

mod support;

use support::{run, run_all};
use tachonym_bench::markdown::cell_text;
use tachonym_bench::{Record, Table};

/// What a table shows in the row that begins with `key`.
fn shown(table: &Table, key: &[&str], column: &str) -> String {
    let column = table.column(column).expect(column);
    let begins = |row: &&Vec<_>| {
        let mut keys = key.iter().zip(*row);
        keys.all(|(key, cell)| cell_text(cell, None) == **key)
    };
    let row = table.rows.iter().find(begins);
    let row = row.unwrap_or_else(|| panic!("no row {key:?}"));
    cell_text(&row[column], None)
}

/// Checks what a table shows, each a key of rows with values of these columns.
fn check(table: &Table, columns: &[&str], rows: &[(&[&str], &[&str])]) {
    for (key, values) in rows {
        let found: Vec<_> = columns.iter().map(|it| shown(table, key, it)).collect();
        assert_eq!(found, *values, "{key:?} {columns:?}");
    }
}

/// All numbers of a column.
fn numbers(table: &Table, column: &str) -> Vec<f64> {
    let column = table.column(column).expect(column);
    let rows = table.rows.iter();
    rows.filter_map(|row| row[column].number()).collect()
}

#[test]
fn simulations_come_to_their_numbers() {
    run_all("iqbal", |id, record| {
        let main = &record.tables[0];
        match id {
            "iqbal/figure-4.2" => check(
                main,
                &["server's address", "XOR", "CRC16", "by chance"],
                &[
                    (&["2"], &["0.0208", "0.0072", "0.0086", "0.0071"]),
                    (&["16"], &["0.0911", "0.0241", "0.0320", "0.0274"]),
                ],
            ),
            "iqbal/figure-4.3" => check(
                main,
                &["flows", "largest, %"],
                &[
                    (&["caida 1"], &["15,312", "0.6220"]),
                    (&["auckland 1"], &["7840", "3.35"]),
                    (&["large flow"], &["13,951", "11.9"]),
                ],
            ),
            "iqbal/figure-4.6" => detector(record),
            "iqbal/figure-4.9" => balance(main),
            "iqbal/figure-4.12" => check(
                main,
                &["migrations", "flows in the queue"],
                &[
                    (&["caida 1", "LAPS as published"], &["1682", "26 (21–31.9)"]),
                    (&["auckland 1", "LAPS"], &["40", "20 (13.9–28)"]),
                ],
            ),
            "iqbal/table-4.1" => {
                // Keys of 8 bytes, counts of 4, services of 1; places of the annex have 16.
                check(main, &["bytes"], &[(&["512", "1"], &["8400"])]);
                assert_eq!(numbers(main, "packet, ns").len(), 4);
                assert!(numbers(main, "packet, ns").iter().all(|&ns| ns > 0.1));
            }
            "iqbal/dispatch-cost" => {
                assert_eq!(numbers(main, "ns").len(), 10);
                assert!(numbers(main, "ns").iter().all(|&ns| ns > 0.1));
            }
            "iqbal/figure-5.6" => check(
                main,
                &["most done, Mpps", "kept, Mpps"],
                &[
                    (&["LAPS"], &["3.94", "2"]),
                    (&["LAPS as published"], &["3.93", "2"]),
                    (&["AFS"], &["1.38", "1.25"]),
                    (&["FCFS"], &["1.28", "1.25"]),
                    (&["ideal"], &["3.54", "3.25"]),
                ],
            ),
            "iqbal/figure-5.7" => check(
                main,
                &["dropped, %", "cold, %", "out of order, %"],
                &[
                    (&["T1", "FCFS"], &["46.5", "56.0", "13.3"]),
                    (&["T1", "LAPS"], &["11.2", "0.0129", "0"]),
                    (&["T8", "AFS"], &["60.6", "63.6", "0.0215"]),
                    (&["T8", "LAPS as published"], &["15.5", "0.0114", "2.80"]),
                ],
            ),
            "iqbal/figure-5.10" => check(
                main,
                &["interval, ms", "cores off, mean", "transfers"],
                &[
                    (&["LAPS"], &["1", "1.15", "22"]),
                    (&["LAPS as published"], &["0.1000", "0.9959", "41"]),
                ],
            ),
            "iqbal/table-5.1" => rates(record),
            "iqbal/holt-winters" => forecasts(main),
            "iqbal/adaptive-hashing" => restored(main),
            "iqbal/table-6.2" | "iqbal/tap-choices" | "iqbal/figure-6.3" | "iqbal/figure-6.4"
            | "iqbal/figure-6.5" | "iqbal/figure-6.6" | "iqbal/figure-6.7" | "iqbal/figure-6.8"
            | "iqbal/figure-6.9" | "iqbal/figure-6.11" | "iqbal/figure-6.12" => {
                // Checked by iqbal_power.rs.
            }
            id => panic!("{id} is not checked"),
        }
    });
}

fn detector(record: &Record) {
    check(
        &record.tables[0],
        &["false positives", "within a quarter more"],
        &[
            (&["caida 1", "64"], &["0.3750", "0.1875"]),
            (&["caida 1", "512"], &["0.0625", "0"]),
            (&["auckland 1", "512"], &["0", "0"]),
        ],
    );
    // Sampling takes every packet here: the same as the annex cache of 512.
    check(
        &record.tables[2],
        &["false positives"],
        &[(&["caida 1", "1"], &["0.0625"])],
    );
    let published = record.published("false positives, annex cache of 512, caida 2");
    assert_eq!(published.map(|it| it.value), Some(3.0 / 16.0));
}

fn balance(main: &Table) {
    check(
        main,
        &["dropped, %", "out of order, %", "shifts"],
        &[
            (&["caida 1", "DLB"], &["6.11", "3.65", "3745"]),
            (&["caida 1", "no migration"], &["4.75", "0", "0"]),
            (&["caida 1", "LAPS"], &["2.48", "0", "20"]),
            (&["caida 1", "LAPS as published"], &["1.81", "1.08", "283"]),
            (&["auckland 1", "LAPS"], &["3.73", "0", "8"]),
            (&["large flow", "LAPS"], &["10.8", "0", "8"]),
        ],
    );
    for row in &main.rows {
        let scheduler = cell_text(&row[1], None);
        if scheduler.starts_with("LAPS") && !scheduler.contains("published") {
            assert_eq!(row[3].number(), Some(0.0), "{scheduler} keeps order");
        }
    }
}

/// Equation 3.8 by hand.
fn rates(record: &Record) {
    let at_0 = [0.6 + 0.7 + 0.3 + 0.1, 1.2 + 1.0 + 0.7 + 0.4];
    for (set, rate) in ["set 1", "set 2"].into_iter().zip(at_0) {
        let found = record.tables[0].number(&[set], "at 0 s").expect("a rate");
        assert!((found - rate).abs() < 1e-9, "{set}: {found}");
    }
    // S1 is half a season further; S2 would be below 0; S3 is where it began; S4 is a
    // tenth of its season further.
    let tenth = (std::f64::consts::TAU / 10.0).sin();
    let at_60 = (0.6 + 1.8) + 0.0 + (0.3 + 0.6) + (0.1 + 0.3 + 0.09 * tenth);
    let found = record.tables[0].number(&["set 1"], "at 60 s");
    let found = found.expect("a rate");
    assert!((found - at_60).abs() < 1e-6, "{found} instead of {at_60}");
    let t6 = shown(&record.tables[2], &["T6"], "S3");
    assert_eq!(t6, "caida 2");
}

/// No forecast is better than one that knows the rate, but for chance.
fn forecasts(main: &Table) {
    let [found, noise] = ["Holt-Winters, %", "noise, %"].map(|it| numbers(main, it));
    assert_eq!(found.len(), 8);
    for (found, noise) in found.into_iter().zip(noise) {
        assert!(
            0.9 * noise < found && found < 4.0 * noise,
            "{found} {noise}"
        );
    }
    check(main, &["season, s"], &[(&["1", "S4"], &["600"])]);
}

fn restored(main: &Table) {
    let order = "out of order, %";
    for (scheduler, waits) in [
        ("FCFS, order by flow", true),
        ("FCFS, global order", true),
        ("batches of 8, global order", true),
        ("FCFS", false),
    ] {
        for traffic in ["caida 1, load 0.9", "four services"] {
            let key = [traffic, scheduler];
            assert_eq!(shown(main, &key, order) == "0", waits, "{key:?}");
            let waited = main.number(&key, "waited to leave, %").expect("a number");
            assert_eq!(waited > 0.0, waits, "{key:?}");
        }
    }
    check(
        main,
        &["dropped, %", order, "shifts", "flows tagged"],
        &[
            (
                &["caida 1, load 0.9", "adaptive hashing"],
                &["4.37", "8.11e-4", "17", "–"],
            ),
            (
                &["caida 1, load 0.9", "FCFS, order by flow"],
                &["49.0", "0", "0", "752"],
            ),
            (
                &["four services", "FCFS, global order"],
                &["0", "0", "0", "1"],
            ),
        ],
    );
}

#[test]
fn figure_5_10_runs_as_published() {
    let both = run("iqbal/figure-5.10", &[]);
    let set = ["map=linear", "rule=published", "interval_us=100"];
    let published = run("iqbal/figure-5.10", &set);
    assert_eq!(published.tables[0].rows.len(), 1);
    assert_eq!(published.tables[0].rows[0], both.tables[0].rows[1]);
}

#[test]
fn a_capture_is_written_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.pcap").display().to_string();
    let (capture, file) = (format!("capture={path}"), format!("trace={path}"));
    let figure = "iqbal/figure-4.3";
    let drawn = run(figure, &["traces=large flow", "packets=20k", &capture]);
    let set = [&*file, "format=flows"];
    let read = run(figure, &[&set[..], &["packets=20k"]].concat());
    for column in 1..drawn.tables[0].columns.len() {
        let cells = [&drawn, &read].map(|record| &record.tables[0].rows[0][column]);
        assert_eq!(cells[0], cells[1]);
    }
    let balance = run("iqbal/figure-4.9", &[&set[..], &["tracked=16"]].concat());
    let dropped = |scheduler: &str| balance.tables[0].number(&[&path, scheduler], "dropped, %");
    // One core has the flow, and drops what it cannot do; the published rule moves it on.
    assert!(
        dropped("LAPS") > dropped("LAPS as published"),
        "{dropped:?}",
        dropped = dropped("LAPS")
    );
}
