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
    let at_all = |processor, line| number(&record, 0, &[processor, line], "W at four cores");
    for (processor, watts, published) in [
        ("Intel Xeon E5620", 47.04, 47.10),
        ("Intel Xeon E3-1220", 28.21, 28.83),
        ("Intel Itanium 9520", 14.32, 14.75),
    ] {
        assert_near(at_all(processor, "the model"), watts, 1e-9);
        assert_near(at_all(processor, "published"), published, 1e-9);
        assert_near(at_all(processor, "here"), published, 0.2);
        let compared = |what| {
            let published = record.published(&format!("{processor}, {what}"));
            let published = published.expect(what);
            (published.here.expect("computed"), published.value)
        };
        let (slope, published) = compared("W by core");
        assert_near(slope / published, 1.0, 0.02);
        let (intercept, published) = compared("W at none");
        assert_near(intercept / published, 1.0, 0.055);
        let (r2, published) = compared("R²");
        assert_near(r2, published, 0.022);
    }
    assert!(record.verdicts.iter().all(|it| it.is_met) && record.verdicts.len() == 1);
    // Of three steps of a core: by hand for the E5620.
    let thirds = "cores 2 to 4, each in steps of 1/3";
    assert!(record.notes.iter().any(|it| it.contains(thirds)));
    let off = |reading| number(&record, 1, &[reading], "Intel Xeon E5620, %");
    assert_near(off(thirds), 100.0 * (5.8125 / 5.88 - 1.0), 0.05);
    // Whole cores: (3 (47.04 - 29.22) + 40.53 - 35.16) / 10.
    let whole = off("cores 1 to 4, each in steps of 1/1");
    assert_near(whole, 100.0 * (5.883 / 5.88 - 1.0), 1e-6);
    // Loads of the first core depend on the threshold, those of two cores do not.
    let other = run("takemasa/figure-6.4", &["theta=0.5"]);
    let all = |record, reading| number(record, 1, &[reading], "worst, %");
    let first = "cores 1 to 4, each in steps of 1/10";
    assert!(all(&other, first) != all(&record, first));
    assert_eq!(all(&other, thirds), all(&record, thirds));
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
    assert_eq!(record.tables[0].rows.len(), 5);
    for router in ["naive", "Filter alone", "optimised"] {
        let watts = devices.map(|it| number(&record, 0, &[router], it));
        let all: f64 = watts.iter().sum();
        assert_near(number(&record, 0, &[router], "all, W"), all, 1e-9);
        let blocks = (1..=13).map(|n| number(&record, 1, &[router], &format!("B{n}")));
        assert_near(blocks.sum(), watts[0], 1e-9);
    }
    // A router that can't carry the rate has no row, and a note says so.
    let full = run("takemasa/figure-6.10", &["gbps=60", "cycles=published"]);
    assert_eq!(full.tables[0].rows.len(), 2);
    assert!(full.notes.iter().any(|it| it.contains("naive: full at")));
}

#[test]
fn cycles_measured_here_are_a_second_pair_of_routers() {
    let record = run("takemasa/figure-6.9", &[]);
    let of = |router, column| number(&record, 0, &[router], column);
    let pair = ["naive, cycles here", "optimised, cycles here"];
    for (router, published) in pair.into_iter().zip(["naive", "optimised"]) {
        let cycles = of(router, "cycles");
        // Debug builds are slow, a prefetching engine in small tables is fast.
        assert!((50.0..1e6).contains(&cycles), "{router}: {cycles}");
        let full = 12.4 / cycles * 8192.0;
        assert_near(of(router, "full at, Gbit/s"), full, full * 1e-9);
        assert_eq!(of(router, "bytes"), of(published, "bytes"));
        let compared = of(router, "compared at, Gbit/s");
        assert!(compared <= 58.0 && compared <= full, "{router}: {compared}");
        assert!(of(router, "power, W") > 34.20);
    }
    let [naive, optimised] = pair.map(|it| of(it, "power, W"));
    let saved = 100.0 * (1.0 - optimised / naive);
    assert_near(of(pair[1], "less, %"), saved, 1e-9);
    assert_eq!(of(pair[0], "less, %"), 0.0);
    assert!(record.notes.iter().any(|it| it.contains("GHz")));
    let published = run("takemasa/figure-6.9", &["cycles=published"]);
    assert_eq!(published.tables[0].rows.len(), 3);
    // By block they add up, too, and nothing is left of what only the other router runs.
    let record = run("takemasa/figure-6.10", &[]);
    for router in pair {
        let blocks = (1..=13).map(|n| number(&record, 1, &[router], &format!("B{n}")));
        let watts = number(&record, 0, &[router], "processor, W");
        assert_near(blocks.sum(), watts, 1e-9);
    }
    assert_eq!(number(&record, 1, &[pair[0]], "B13"), 0.0);
    assert_eq!(number(&record, 1, &[pair[1]], "B12"), 0.0);
    assert!(number(&record, 1, &[pair[1]], "B13") > 0.0);
}

#[test]
fn fitted_cores_are_those_that_samples_were_drawn_from() {
    for (id, n_fits, n_published) in [
        ("takemasa/figure-6.1", 7 + 8 + 3 + 3, 8 + 3 + 2),
        ("takemasa/figure-6.2", 3 * 3, 2 * 3),
    ] {
        let record = run(id, &[]);
        assert_eq!(record.tables[0].rows.len(), n_fits, "{id}");
        assert_eq!(record.published.len(), n_published, "{id}");
        assert!(record.verdicts.len() == 1 && record.verdicts[0].is_met);
        assert!(record.notes.iter().any(|it| it.contains("No power meter")));
        // Without noise nothing is left to explain.
        let exact = run(id, &["noise_w=0,0,0", "minutes=1"]);
        let table = &exact.tables[0];
        let r2 = table.column("R²").expect("a column");
        for row in &table.rows {
            assert!(row[r2].number().expect("fitted") > 0.999, "{id} {row:?}");
        }
        assert!(exact.verdicts[0].spread.max < 0.03);
    }
    let record = run("takemasa/figure-6.1", &[]);
    let r2 = record.published("Intel Xeon E3-1220, core 1 at 1.800 GHz, R²");
    assert_eq!(r2.expect("it is published").value, 0.946);
    // The mean of what was drawn, and the curve: 28.36 W at 2.27 GHz.
    let full = ["core 1 at 2.267 GHz", "1"];
    assert_near(number(&record, 1, &full, "mean, W"), 28.36, 0.5);
    assert_near(number(&record, 1, &full, "fitted, W"), 28.36, 0.25);
    let record = run("takemasa/figure-6.2", &[]);
    let full = ["core 3 at 2.400 GHz", "1"];
    assert_near(number(&record, 1, &full, "fitted, W"), 5.37, 0.25);
}

#[test]
fn fitted_energies_are_those_that_samples_were_drawn_from() {
    for (id, nj) in [
        ("takemasa/figure-6.5", 0.61),
        ("takemasa/figure-6.6", 12_600.0),
    ] {
        let record = run(id, &[]);
        assert_eq!(record.published.len(), 3, "{id}");
        for published in &record.published {
            assert_near(published.value, nj, nj * 1e-9);
            assert_near(published.here.expect("computed"), nj, nj * 0.06);
        }
    }
}

#[test]
fn samples_of_a_meter_are_fitted_instead_of_drawn_ones() {
    let path = std::env::temp_dir().join(format!("samples-{}.csv", std::process::id()));
    let csv = "device,n_cores,frequency_hz,utilization,rate,watts
chassis,,,,,10
cpu,1,2e9,0.25,,12
cpu,1,2e9,1,,14
cpu,2,2e9,0.5,,15
cpu,2,2e9,1,,16
memory,1,2e9,1,2e9,15
nic,,,,1e6,11
";
    std::fs::write(&path, csv).expect("a folder for temporary files");
    let samples = format!("samples={}", path.display());
    let first = run("takemasa/figure-6.1", &[&samples]);
    let label = path.display().to_string();
    let full = number(&first, 0, &[&label, "core 1 at 2.000 GHz"], "full, W");
    assert_near(full, 4.0, 1e-6);
    assert_eq!((first.published.len(), first.verdicts.len()), (0, 0));
    let second = run("takemasa/figure-6.2", &[&samples]);
    let sigma = number(&second, 0, &[&label, "core 2 at 2.000 GHz"], "σ");
    assert_near(sigma, 1.0, 1e-6);
    let memory = run("takemasa/figure-6.5", &[&samples]);
    assert_near(number(&memory, 0, &[&label], "energy, nJ"), 0.5, 1e-6);
    let nic = run("takemasa/figure-6.6", &[&samples]);
    assert_near(number(&nic, 0, &[&label], "energy, nJ"), 1_000.0, 1e-3);
    std::fs::remove_file(&path).expect("it was written");
}
