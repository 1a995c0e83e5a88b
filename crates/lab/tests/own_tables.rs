//! The project's own experiments with the tables, at scale tiny.

mod support;

use std::path::Path;

use support::run;
use tachonym_bench::{Cell, Context, Record, Scale};
use tachonym_lab::experiments;

/// The cells of a column of the first table.
fn column<'r>(record: &'r Record, title: &str) -> Vec<&'r Cell> {
    let table = &record.tables[0];
    let column = table.column(title).expect(title);
    table.rows.iter().map(|row| &row[column]).collect()
}

fn numbers(record: &Record, title: &str) -> Vec<f64> {
    let cells = column(record, title).into_iter();
    cells
        .map(|cell| cell.number().expect("a number in each row"))
        .collect()
}

#[test]
fn lookup_measures_every_size() {
    let record = run("own/lookup", &["extra=2", "pages=base"]);
    assert_eq!(numbers(&record, "prefixes"), [1_000.0, 2_000.0]);
    assert_eq!(numbers(&record, "on huge pages, %"), [0.0; 2]);
    for title in ["search in bursts, ns", "one by one, ns", "hashing, ns"] {
        let all = numbers(&record, title);
        assert!(all.iter().all(|ns| (1.0..1e6).contains(ns)), "{title}");
    }
    let changes = numbers(&record, "changes/s");
    assert!(changes.iter().all(|&rate| rate > 0.0), "{changes:?}");
    assert_eq!(record.charts[0].lines.len(), 4);
}

#[test]
fn without_a_writer_its_columns_are_empty() {
    let record = run("own/lookup", &["sizes=500", "writer=0"]);
    assert_eq!(column(&record, "changes/s"), [&Cell::Missing]);
}

#[test]
fn a_table_larger_than_memory_is_refused_before_it_is_filled() {
    let registry = experiments::registry().expect("experiments are well declared");
    let experiment = registry.get("own/lookup").expect("it is there");
    // Several terabytes: 2 G prefixes of 63 components.
    let set = ["sizes=2G".to_owned(), "components=63".to_owned()];
    let program = Path::new(env!("CARGO_BIN_EXE_tachonym-lab"));
    let context = Context::new(experiment, Scale::Tiny, &set, program).expect("it is allowed");
    let error = experiment.run(&context).expect_err("memory is too small");
    assert!(
        error.to_string().contains("more memory than is free"),
        "{error}"
    );
}

#[test]
fn content_table_compares_both_indexes() {
    let record = run("own/content-table", &[]);
    // Five operations with each of two indexes.
    assert_eq!(record.tables[0].rows.len(), 10);
    let sizes = &record.tables[1];
    assert_eq!(sizes.rows.len(), 5);
    for row in &sizes.rows {
        let [n_data, single, d_left] = [0, 1, 2].map(|idx| row[idx].number().expect("a number"));
        assert!((500.0..=1000.0).contains(&n_data), "{n_data}");
        // At least a word each, and less than four.
        for bytes in [single, d_left] {
            assert!((8.0..32.0).contains(&bytes), "{n_data}: {bytes}");
        }
    }
    for (ns, rate) in numbers(&record, "ns each")
        .iter()
        .zip(numbers(&record, "million/s"))
    {
        assert!(
            *ns > 1.0 && (rate * ns / 1e3 - 1.0).abs() < 1e-6,
            "{ns} {rate}"
        );
    }
    let ratios = numbers(&record, "ratio to single");
    assert!(ratios.iter().step_by(2).all(|&ratio| ratio == 1.0));
}

#[test]
fn layouts_of_pit_and_store_take_turns() {
    let record = run("own/pit-cs", &[]);
    assert_eq!(record.tables[0].rows.len(), 6);
    let layouts = column(&record, "index");
    let ratios = numbers(&record, "ratio to separate");
    for (layout, ratio) in layouts.into_iter().zip(ratios) {
        match layout {
            Cell::Text(text) if text == "separate" => assert_eq!(ratio, 1.0),
            _ => assert!((0.05..20.0).contains(&ratio), "{ratio}"),
        }
    }
}
