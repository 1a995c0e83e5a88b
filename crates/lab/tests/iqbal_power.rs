//! Experiments on power of Iqbal 2013 at scale tiny.

mod support;

use support::run;
use tachonym_bench::Table;
use tachonym_bench::markdown::cell_text;

const APPLICATIONS: [&str; 7] = ["FRAG", "IPV4T", "IPV4R", "IPSEC", "MPLS", "SSLD", "WFQ"];

fn value(table: &Table, key: &[&str], column: &str) -> f64 {
    let found = table.number(key, column);
    found.unwrap_or_else(|| panic!("{key:?} {column}"))
}

#[test]
fn tap_takes_less_than_frequency_alone_where_cores_are_spare_and_than_no_governor() {
    let record = run("iqbal/table-6.2", &[]);
    let table = &record.tables[1];
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
    // Watts of seven applications, active cores of six.
    assert_eq!(record.published.len(), 52);
    assert_eq!(record.verdicts.len(), 1);
}

#[test]
fn tap_is_the_least_at_equal_loss() {
    let record = run("iqbal/table-6.2", &["seconds=0.3"]);
    let least = &record.tables[0];
    assert_eq!(least.rows.len(), 2 * APPLICATIONS.len());
    for trace in ["1", "2"] {
        for application in APPLICATIONS {
            let by = value(least, &[trace, application], "TAP by it");
            assert!(by < 1.0, "{trace} {application}: {by}");
        }
    }
}

#[test]
fn what_tap_chooses_is_isolated_one_by_one() {
    let record = run("iqbal/tap-choices", &["applications=FRAG,MPLS"]);
    let table = &record.tables[0];
    let by = |key: [&str; 2]| value(table, &key, "TAP by it");
    assert!(by(["FRAG", "as it is"]) < 1.0);
    assert!(by(["FRAG", "wakes a core at each step"]) > 1.0);
    // Without static power many slow cores take less than few.
    assert!(by(["MPLS", "as it is"]) < 1.0);
    assert!(by(["MPLS", "by equation 2.1 alone"]) > 1.0);
}

#[test]
fn no_choice_takes_less_than_the_least_possible() {
    let record = run("iqbal/figure-6.5", &["loads=0.1,0.5"]);
    let table = &record.tables[0];
    for load in ["0.1", "0.5"] {
        let of = |levers, column| value(table, &[load, levers], column);
        let least = |levers| of(levers, "least possible, W");
        let [alone, each, one] = [
            "sleep alone",
            "sleep, each core's frequency",
            "sleep, one frequency",
        ];
        assert!(least(each) <= least(one) && least(one) <= least(alone));
        assert!(least(each) < of(each, "W"));
        assert!(of(each, "by sleep alone") < 1.0);
    }
    // Two of 16 cores at P0 do a tenth, or one at P0 and one at P3.
    let core_w = 25.23 / 5.5;
    let deep_w = 0.05 * core_w * 0.448;
    let expected = 2.0 * core_w + 14.0 * deep_w;
    let found = value(table, &["0.1", "sleep alone"], "least possible, W");
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
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
        let counted = |policy| value(table, &[application, "0.5", policy], "active");
        assert!(counted("TAP, cores counted at P3") > counted("TAP"));
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
fn laps_does_one_service_on_fewer_cores_than_fcfs() {
    let record = run("iqbal/figure-6.11", &[]);
    let table = &record.tables[0];
    let of = |scheduler, column| value(table, &[scheduler], column);
    for laps in ["LAPS", "LAPS as published"] {
        assert!(of(laps, "W") < of("FCFS", "W"));
        assert!(of(laps, "cores on") < of("FCFS", "cores on"));
        // A packet takes 500 ns, and 800 more where its flow moved.
        let expected = 500.0 + 8.0 * of(laps, "moved, %");
        assert!((of(laps, "busy of a packet, ns") - expected).abs() < 5.0);
    }
    assert!(of("FCFS", "busy of a packet, ns") > 1_000.0);
}

#[test]
fn laps_does_more_packets_for_the_same_energy_than_dlb_in_overload() {
    let record = run("iqbal/figure-6.12", &[]);
    let table = &record.tables[1];
    assert_eq!(table.rows.len(), 8 * 5);
    for scenario in 1..=8 {
        let name = format!("T{scenario}");
        let of = |scheduler, column| value(table, &[&name, scheduler], column);
        let share = of("DLB, all cores on", "power by all cores on");
        assert!((share - 1.0).abs() < 1e-9);
        for laps in ["LAPS", "LAPS as published"] {
            assert!(of(laps, "of a packet below DLB, %") > 0.0, "{name}");
            assert!(of(laps, "cores on") <= 16.0);
        }
        if scenario <= 4 {
            assert!(of("LAPS", "power by all cores on") < 1.0, "{name}");
        }
    }
    assert_eq!(record.published.len(), 2);
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
    // P1 would do.
    assert!(of("Greedy") > 2.0, "{}", of("Greedy"));
}

#[test]
fn a_file_of_rates_takes_the_place_of_drawn_traffic() {
    let file = std::env::temp_dir().join(format!("rates-{}", std::process::id()));
    std::fs::write(&file, "50000\n100000\n").expect("a file can be written");
    let set = format!("trace={}", file.display());
    let record = run("iqbal/table-6.2", &[&set]);
    let drawn = run("iqbal/table-6.2", &[]);
    let of = |record: &tachonym_bench::Record| value(&record.tables[1], &["1", "SSLD", "TAP"], "W");
    assert!(of(&record) < of(&drawn));
    std::fs::remove_file(&file).expect("the file is there");
}
