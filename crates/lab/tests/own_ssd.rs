//! The SSD level on a disk, at sizes that take no time: what is counted, not what is timed.

mod support;

use std::path::Path;

use support::run;
use tachonym_bench::{Context, Record, Scale, Verdict};
use tachonym_lab::experiments;

/// The record of an experiment, which leaves nothing behind in its folder.
fn run_alone(id: &str, set: &[&str]) -> Record {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let directory = format!("directory={}", folder.path().display());
    let record = run(id, &[set, &[&directory]].concat());
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "the folder is as it was");
    record
}

fn verdict<'a>(record: &'a Record, what: &str) -> &'a Verdict {
    let mut verdicts = record.verdicts.iter();
    let found = verdicts.find(|it| it.what.starts_with(what));
    found.unwrap_or_else(|| panic!("no {what} in {:?}", record.verdicts))
}

fn figure(record: &Record, what: &str) -> f64 {
    let number = record.tables[0].number(&[what], "median (p10–p90)");
    number.unwrap_or_else(|| panic!("no {what} in {:?}", record.tables))
}

#[test]
fn objects_are_served_from_the_disk_in_batches_and_one_by_one() {
    let record = run_alone("own/ssd-serve", &[]);
    let rate = verdict(&record, "rate by that of batches of one");
    assert!(rate.spread.median > 0.0 && rate.spread.n_rounds == 2);
    // What is served was read once, with what is around it.
    let read = figure(&record, "read by served bytes");
    assert!((1.0..1.6).contains(&read), "{read}");
}

#[test]
fn interests_for_batches_drawn_are_timed() {
    for (of, most) in [
        ("of=hits", "Interests answered a second at most"),
        ("of=disk", "reads of the disk a second at most"),
    ] {
        let record = run_alone("own/ssd-latency", &[of]);
        assert!(verdict(&record, "p99 above").spread.median.is_finite());
        let load = figure(&record, "Interests a second while delays are measured");
        assert!((load / figure(&record, most) - 0.02).abs() < 1e-9);
        let [p50, p99] = ["p50 of an Interest", "p99 of an Interest"].map(|it| figure(&record, it));
        assert!(p50 > 0.0 && p50 <= p99, "{p50} {p99}");
    }
}

#[test]
fn answers_from_memory_are_timed_with_one_level_and_with_two() {
    let record = run_alone("own/ssd-hit-path", &[]);
    let ratio = verdict(&record, "two levels by one, names drawn");
    assert!(ratio.spread.median > 0.0);
    assert_eq!((record.verdicts.len(), record.tables[0].rows.len()), (4, 8));
}

#[test]
fn hardly_more_is_written_than_data_have() {
    let record = run_alone("own/ssd-amplification", &[]);
    let share = verdict(&record, "written by Data as the store counts");
    assert!((1.0..1.05).contains(&share.spread.median), "{share:?}");
    assert!(share.is_met);
}

#[test]
fn what_was_flushed_is_served_after_both_ends() {
    let record = run_alone("own/ssd-recovery", &[]);
    for label in ["after a flush", "without"] {
        let found = verdict(&record, &format!("of what was flushed, served, {label}"));
        assert!(found.is_met && found.spread.median == 1.0, "{found:?}");
    }
}

#[test]
fn an_index_is_weighed() {
    let record = run_alone("own/ssd-index", &[]);
    let bytes = verdict(&record, "DRAM of a stored packet");
    // 1.28, of which 0.02 are room for a few batches more, which a larger store has for nothing.
    assert!((1.2..1.3).contains(&bytes.spread.median), "{bytes:?}");
    assert!(bytes.is_met);
}

fn error(id: &str, set: &str) -> String {
    let registry = experiments::registry().expect("experiments are well declared");
    let experiment = registry.get(id).expect(id);
    let context = Context::new(experiment, Scale::Tiny, &[set.to_owned()], Path::new("lab"));
    let refused = experiment.run(&context.expect("it is declared"));
    format!("{:#}", refused.expect_err("it cannot run"))
}

#[test]
fn a_disk_without_room_and_a_missing_program_are_refused_with_a_remedy() {
    let room = error("own/ssd-index", "store_mib=16777216");
    assert!(room.contains("smaller store_mib"), "{room}");
    let program = error("own/ssd-foyer", "program=/nowhere");
    assert!(program.contains("cargo build"), "{program}");
}
