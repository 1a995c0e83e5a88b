//! Takemasa 2019, section 4.1, at scale tiny.

mod support;

use support::run;
use tachonym_bench::Record;

fn number(record: &Record, key: &[&str], column: &str) -> f64 {
    let found = record.tables[0].number(key, column);
    found.unwrap_or_else(|| panic!("{key:?}, {column}"))
}

#[test]
fn the_trie_model_reads_seven_vertices_from_dram() {
    let record = run("takemasa/trie-model", &[]);
    let depth = record.published("mean depth of the leaves").expect("it is");
    // Printed as 24.01.
    assert!((depth.here.expect("computed") - 24.0244).abs() < 1e-4);
    let vertices = record.published("vertices above the leaf that are read from DRAM");
    let vertices = vertices.expect("they are");
    assert_eq!((vertices.value, vertices.here), (7.0, Some(7.0)));
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 25);
    let mb = "MB into the cache between them";
    // 511 bytes times 2^16 and 2^17: the cache has 55 MB.
    assert!((number(&record, &["16"], mb) - 33.488896).abs() < 1e-9);
    assert!((number(&record, &["17"], mb) - 66.977792).abs() < 1e-9);
}

#[test]
fn engines_read_as_often_in_a_row_as_published() {
    let record = run("takemasa/dependent-accesses", &[]);
    let [needed, ahead] = ["dependent reads", "dependent reads, all buckets ahead"];
    // Buckets that are full take one read more now and then.
    let is_about = |value: f64, wanted: f64| (wanted - 1e-9..wanted + 0.5).contains(&value);
    for length in ["shorter than 4", "4", "longer than 4"] {
        for column in [needed, ahead] {
            let found = number(&record, &["longest-first", length], column);
            assert!(is_about(found, 2.0), "{length}, {column}: {found}");
        }
    }
    // One of eight names is the one that stands at the middle length: 3 instead of 4.
    let two_stage = |length, column| number(&record, &["two-stage", length], column);
    for (column, wanted) in [(needed, 4.0), (ahead, 3.0)] {
        let found = two_stage("longer than 4", column);
        assert!(is_about(found, wanted - 0.2), "{column}: {found}");
    }
    assert!(is_about(two_stage("4", needed), 2.0));
    // A lookup at 4, one among the shorter, and the name.
    assert!(is_about(two_stage("shorter than 4", needed), 3.0));
    assert!(is_about(two_stage("shorter than 4", ahead), 2.0));
    for it in &record.published {
        let here = it.here.expect("it is counted");
        assert!((here - it.value).abs() < 0.35, "{}: {here}", it.what);
    }
}
