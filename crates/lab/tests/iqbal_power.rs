//! Experiments on power of Iqbal 2013 at scale tiny.

mod support;

use support::run;
use tachonym_bench::Table;
use tachonym_bench::markdown::cell_text;

const APPLICATIONS: [&str; 6] = ["FRAG", "IPV4T", "IPV4R", "IPSEC", "MPLS", "SSLD"];

fn value(table: &Table, key: &[&str], column: &str) -> f64 {
    let found = table.number(key, column);
    found.unwrap_or_else(|| panic!("{key:?} {column}"))
}

#[test]
fn tap_takes_less_than_frequency_alone_where_cores_are_spare_and_than_no_governor() {
    let record = run("iqbal/table-6.2", &[]);
    let table = &record.tables[0];
    for trace in ["1", "2"] {
        for application in APPLICATIONS {
            let of = |policy, column| value(table, &[trace, application, policy], column);
            let [tap, ondemand, none] = ["TAP", "ondemand", "none"].map(|it| of(it, "W"));
            assert!(tap < none, "{application}: {tap} {none}");
            if ["FRAG", "IPV4T", "IPV4R"].contains(&application) {
                assert!(tap < ondemand, "{application}: {tap} {ondemand}");
            }
            assert!(of("TAP", "active") < of("none", "active"));
            assert!((of("none", "active") - 32.0).abs() < 1e-9);
        }
    }
    assert_eq!(record.published.len(), 48);
    assert_eq!(record.verdicts.len(), 1);
}

#[test]
fn powers_repeat_with_the_seed_and_change_with_it() {
    let first = |set: &[&str]| run("iqbal/figure-6.7", set).tables[0].clone();
    assert_eq!(first(&[]), first(&[]));
    assert_ne!(first(&[]), first(&["seed=9"]));
}

#[test]
fn constant_rates_take_more_power_the_higher_they_are() {
    let record = run("iqbal/figure-6.9", &[]);
    let table = &record.tables[0];
    for application in ["IPV4R", "IPSEC", "MPLS", "SSLD"] {
        let of = |by| value(table, &[application, by, "TAP"], "W");
        assert!(of("0.5") < of("1"), "{application}");
    }
}

#[test]
fn sleep_saves_more_than_frequency_alone() {
    let record = run("iqbal/figure-6.4", &[]);
    let table = &record.tables[0];
    for application in ["FRAG", "IPV4T", "IPV4R"] {
        let of = |levers| value(table, &[application, levers], "W");
        assert!(of("sleep alone") < of("frequency alone"), "{application}");
    }
}

#[test]
fn predictors_are_compared_by_their_error() {
    let record = run("iqbal/figure-6.6", &[]);
    let table = &record.tables[0];
    for trace in ["1", "2"] {
        let of = |name| value(table, &[trace, name], "NMSE");
        // The last value repeats chance, which the trained forecast smooths.
        assert!(of("DES") < of("LV"));
        assert!(of("MA") > 0.0 && of("AR") > 0.0 && of("ARMA") > 0.0 && of("ANN") > 0.0);
    }
}

#[test]
fn the_filter_smooths_the_queue_and_greedy_goes_below_what_is_needed() {
    let queue = run("iqbal/figure-6.8", &[]);
    for row in &queue.tables[0].rows {
        let number = |column: usize| row[column].number().expect("a number");
        assert!(number(4) <= number(2), "{}", cell_text(&row[0], None));
        assert!(number(5) <= 80.0);
    }
    let greedy = run("iqbal/figure-6.3", &[]);
    let of = |policy| value(&greedy.tables[0], &[policy], "mean P-state");
    assert!(of("Greedy") > 3.0, "{}", of("Greedy"));
}

#[test]
fn a_file_of_rates_takes_the_place_of_drawn_traffic() {
    let file = std::env::temp_dir().join(format!("rates-{}", std::process::id()));
    std::fs::write(&file, "50000\n100000\n").expect("a file can be written");
    let set = format!("trace={}", file.display());
    let record = run("iqbal/table-6.2", &[&set]);
    let drawn = run("iqbal/table-6.2", &[]);
    let of = |record: &tachonym_bench::Record| value(&record.tables[0], &["1", "SSLD", "TAP"], "W");
    assert!(of(&record) < of(&drawn));
    std::fs::remove_file(&file).expect("the file is there");
}
