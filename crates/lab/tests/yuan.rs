//! Each experiment of Yuan 2015 at scale tiny.

mod support;

use support::{run, run_all};
use tachonym_bench::{Cell, Record, Table};

fn number(table: &Table, row: &[Cell], column: &str) -> f64 {
    let column = table.column(column).expect(column);
    row[column].number().expect("a number")
}

/// The numbers of a column.
fn numbers(record: &Record, column: &str) -> Vec<f64> {
    let table = &record.tables[0];
    let rows = table.rows.iter();
    rows.map(|row| number(table, row, column)).collect()
}

/// What is measured of a FIB is there in each row.
fn is_measured(record: &Record, n_rows: usize) {
    assert_eq!(record.tables[0].rows.len(), n_rows);
    for ns in numbers(record, "ns a name") {
        assert!((1.0..1e7).contains(&ns), "{ns}");
    }
    for bytes in numbers(record, "bytes a rule") {
        assert!(bytes > 50.0, "{bytes}");
    }
    for rate in numbers(record, "million names/s") {
        assert!((1e-4..1e3).contains(&rate), "{rate}");
    }
}

/// What this run has is the published value, to the digits that it is printed with.
fn is_as_published(record: &Record, n_compared: usize, digits: i32) {
    assert_eq!(record.published.len(), n_compared);
    for it in &record.published {
        let here = it.here.expect("it is computed");
        let tolerance = 0.5 * 10_f64.powi(-digits) + 1e-9;
        assert!((here - it.value).abs() <= tolerance, "{}: {here}", it.what);
    }
}

#[test]
fn every_experiment_runs_and_computes_what_is_exact() {
    run_all("yuan", |id, record| match id {
        "yuan/figure-3.6" => is_measured(record, 10),
        "yuan/figure-3.7" => {
            is_measured(record, 8);
            // Two ways to prefetch, with both ways to compare.
            assert_eq!(record.published.len(), 4);
            assert!(record.published.iter().all(|it| it.here.is_some()));
        }
        "yuan/figure-3.8" => {
            is_measured(record, 20);
            assert_eq!(numbers(record, "rules")[9..11], [300.0, 600.0]);
            assert!(record.charts[0].lines[0].points.len() == 2);
        }
        "yuan/figure-3.9" => is_measured(record, 20),
        "yuan/figure-3.10" => is_measured(record, 40),
        "yuan/figure-3.11" => {
            is_measured(record, 4);
            assert_eq!(numbers(record, "threads"), [1.0, 2.0, 1.0, 2.0]);
            // Two threads are measured; four, and those of two memory nodes, are not.
            let here = record.published.iter().filter(|it| it.here.is_some());
            assert_eq!(here.count(), 2);
        }
        "yuan/table-3.2" => {
            let mpps = numbers(record, "million names/s, FIB alone");
            let gbps = numbers(record, "as packets of 256 bytes, Gbit/s");
            assert_eq!(mpps.len(), 8);
            for (mpps, gbps) in mpps.iter().zip(gbps) {
                assert!((mpps * 276.0 * 8.0 / 1e3 - gbps).abs() < 1e-9 * gbps);
            }
        }
        "yuan/table-4.2" => level_pulling(record),
        "yuan/table-5.1" => is_as_published(record, 12, 3),
        "yuan/section-6.1.1" => is_as_published(record, 3, 9),
        _ => {}
    });
}

/// Three sets, three ways to make names, four engines.
fn level_pulling(record: &Record) {
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 36);
    for row in &table.rows {
        let of = |column| number(table, row, column);
        assert!(of("prefixes pulled") > 0.0, "{row:?}");
        assert!(of("hash lookups") >= 1.0 && of("hash lookups, pulled") >= 1.0);
        if row[2] == Cell::from("binary-search") {
            assert!(of("saved, %") > 0.0, "{row:?}");
        }
    }
    // A part of the URLs: the numbers of pulled prefixes are not compared.
    assert_eq!(record.published.len(), 9);
    let notes = record.notes.join(" ");
    assert!(notes.contains("so by construction"), "{notes}");
}

#[test]
fn rows_are_labelled_by_the_hash_that_ran() {
    let record = run("yuan/figure-3.7", &[]);
    let table = &record.tables[0];
    let column = table.column("names compared, hash").expect("a column");
    let label = |row: usize| match &table.rows[row][column] {
        Cell::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let fastest = tachonym_packet::HashKind::fastest().label();
    assert_eq!(label(0), format!("always, {fastest}"));
    assert_eq!(label(7), "at the end, siphash-2-4");
}

#[test]
fn requirements_follow_their_parameters() {
    let record = run("yuan/table-5.1", &["rates=40", "rtt-ms=40"]);
    // 40 Gbit/s and half the time: twice the memory of 10 Gbit/s.
    assert_eq!(numbers(&record, "memory, MB"), [12.5, 100.0]);
    assert!(record.published.is_empty());
    let record = run("yuan/section-6.1.1", &["rates=100", "round-trips=5"]);
    assert_eq!(numbers(&record, "content store, GB"), [5.0]);
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
    let names = format!("names={}", file.display());
    let record = run("yuan/table-4.2", &[&names, "threshold=30"]);
    assert_eq!(numbers(&record, "names in the FIB"), [42.0; 12]);
    assert_eq!(numbers(&record, "prefixes pulled"), [1.0; 12]);
    assert!(
        record
            .notes
            .contains(&"1 lines are neither names nor URLs.".to_owned())
    );
}
