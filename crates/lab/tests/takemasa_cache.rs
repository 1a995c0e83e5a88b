//! The experiments of Takemasa 2019, chapter 5, and those that share its simulator, at scale
//! tiny.

mod support;

use support::run;
use tachonym_bench::{Cell, Record, Table};

/// The numbers of a column.
fn column(table: &Table, title: &str) -> Vec<Option<f64>> {
    let at = table.column(title).expect(title);
    table.rows.iter().map(|row| row[at].number()).collect()
}

fn numbers(table: &Table, title: &str) -> Vec<f64> {
    let numbers: Option<Vec<f64>> = column(table, title).into_iter().collect();
    numbers.expect("a number in each row")
}

/// The number in a column of the first row whose first cells have these texts.
fn number(table: &Table, key: &[&str], title: &str) -> f64 {
    let number = table.number(key, title);
    number.unwrap_or_else(|| panic!("{key:?} {title}: {table:?}"))
}

/// What a record has beside a published value.
fn beside(record: &Record, what: &str) -> f64 {
    let published = record.published(what).expect(what);
    published.here.expect(what)
}

#[test]
fn figure_5_4_is_simulated_as_the_model_expects_where_it_holds() {
    let record = run("takemasa/figure-5.4", &[]);
    let table = &record.tables[0];
    // The shortest history has ten requests, and so no threshold of 15.
    assert_eq!(table.rows.len(), 4 + 5 + 5);
    let thresholds = numbers(table, "threshold");
    let pairs = numbers(table, "hit ratio, model")
        .into_iter()
        .zip(numbers(table, "hit ratio, simulated"));
    for (threshold, (model, simulated)) in thresholds.iter().zip(pairs) {
        // Higher thresholds do not fill the cache in the time that tiny has.
        assert!(
            *threshold > 2.0 || (model - simulated).abs() < 0.012,
            "{threshold}"
        );
    }
    let inserted = numbers(table, "insertion ratio, simulated").into_iter();
    for (threshold, ratio) in thresholds.iter().zip(inserted) {
        assert_eq!(*threshold == 1.0, ratio == 1.0);
    }
    for chart in &record.charts {
        let models = chart.lines.iter().filter(|line| line.model_of.is_some());
        assert_eq!((chart.lines.len(), models.count()), (6, 3));
    }
}

#[test]
fn figure_5_5_has_every_workload_policy_and_size() {
    let record = run("takemasa/figure-5.5", &[]);
    assert_eq!(record.tables[0].rows.len(), 3 * 3 * 2);
    for sizes in &record.tables[1].rows {
        let [less, more] = [&sizes[1], &sizes[2]].map(|cell| cell.number().expect("a count"));
        assert_eq!(less + more, 2.0);
    }
    let labels: Vec<_> = record.charts.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(labels, ["web", "video", "mixed"]);
}

#[test]
fn figure_5_5_reads_the_mixture_both_ways_and_repeats_a_seed() {
    let set = ["workloads=web,mixed", "percent=3", "policies=lru"];
    let mixed = |set: &[&str]| {
        let record = run("takemasa/figure-5.5", set);
        let ratio = |workload| number(&record.tables[0], &[workload], "hit ratio");
        (ratio("web"), ratio("mixed"))
    };
    let by_requests = mixed(&set);
    let by_ratio = mixed(&[set[0], set[1], set[2], "web_share=0.4118"]);
    assert_eq!(by_requests.0, by_ratio.0, "web alone does not change");
    assert!(by_requests.1 > by_ratio.1, "{by_requests:?} {by_ratio:?}");
    assert_eq!(by_requests, mixed(&set));
}

#[test]
fn figure_5_6_hits_more_with_more_data_and_compares_only_the_published_size() {
    let record = run("takemasa/figure-5.6", &[]);
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 3 * 8 * 2);
    for pair in numbers(table, "hit ratio").chunks(2) {
        assert!(pair[0] < pair[1], "{pair:?}");
    }
    assert_eq!(record.tables[1].rows.len(), 8);
    assert_eq!(record.published.len(), 7);
    assert!(record.published.iter().all(|it| it.here.is_none()));
    let published: usize = record.charts[0]
        .lines
        .iter()
        .map(|it| it.published.len())
        .sum();
    assert_eq!(published, 6);
}

#[test]
fn section_5_1_2_follows_from_equations_5_1_and_5_2() {
    let record = run("takemasa/section-5.1.2", &[]);
    // By hand from Tables 5.1 and 5.2 with 30 % hits and 10 % insertions.
    let groups = |history: f64| 571.0 + 148.0 + 50.0 + history + 0.3 * 72.0;
    let miss = 188.0 + 413.0 + 56.0 + 188.0 + 73.0;
    for (row, insertion) in record.tables[0].rows.iter().zip([188.0, 329.0]) {
        let arc = groups(173.0) + 0.7 * (miss + 202.0 + insertion);
        let tiny = groups(91.0) + 0.7 * (miss + 282.0 + 0.1 * insertion);
        let found: Vec<f64> = row.iter().filter_map(Cell::number).collect();
        for (found, expected) in found.iter().zip([insertion, arc, tiny, arc - tiny]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }
    assert!((beside(&record, "cycles with ARC, B10 = 188") - 1_879.2).abs() < 1e-9);
    assert_eq!(
        record
            .published
            .iter()
            .filter(|it| it.here.is_some())
            .count(),
        3
    );
}

#[test]
fn false_positives_are_as_many_as_the_formula_says() {
    let record = run("takemasa/false-positives", &[]);
    let formula = beside(&record, "false positives, formula");
    assert!((formula - 0.0596).abs() < 5e-5, "{formula}");
    let table = &record.tables[0];
    let shares = table
        .column("names taken for others, %")
        .expect("it is there");
    let formulas = table.column("formula, %").expect("it is there");
    for row in &table.rows {
        let share = row[shares].number().expect("measured");
        let n = row[table.column("names looked up").expect("it is there")].number();
        let n = n.expect("a count");
        match row[formulas].number() {
            // Five standard deviations of as many draws.
            Some(formula) => {
                let deviation = 100.0 * (formula / 100.0 / n).sqrt();
                assert!(
                    (share - formula).abs() < 5.0 * deviation,
                    "{share} {formula}"
                );
            }
            None => assert!(share < 0.01, "24 bits tell names apart: {share}"),
        }
    }
    let mib = beside(&record, "memory");
    assert!(
        (mib - 32.0 - 80_000.0 / f64::from(1 << 20)).abs() < 1e-3,
        "{mib}"
    );
}

#[test]
fn dependent_accesses_are_those_of_the_described_tables() {
    let record = run("takemasa/dependent-accesses-cache", &[]);
    let counted = &record.tables[0];
    // All but hits of the Data at the front, which stays where it is.
    let list = number(counted, &["LRU list"], "hit");
    assert!((3.9..=4.0).contains(&list), "{list}");
    assert_eq!(number(counted, &["CLOCK, flags in a list"], "hit"), 3.0);
    let clock = number(counted, &["CLOCK, flags in a list"], "victim or admission");
    assert!(clock > 1.0, "{clock}");
    assert_eq!(
        number(counted, &["TinyLFU before FIFO"], "victim or admission"),
        2.0
    );
    assert_eq!(
        number(counted, &["Filter before FIFO"], "victim or admission"),
        1.0
    );
    // The oldest request may be for the same name.
    let filter = number(counted, &["Filter before FIFO"], "request");
    assert!((1.95..=2.0).contains(&filter), "{filter}");
    assert_eq!(number(counted, &["FIFO"], "insertion"), 3.0);
    let clock_pro = record.published("CLOCK-Pro, eviction").expect("published");
    assert_eq!((clock_pro.value, clock_pro.here), (16.6, None));
    let timed = &record.tables[1];
    assert_eq!(timed.rows.len(), 16);
}

#[test]
fn tables_5_1_and_5_2_have_the_published_blocks_beside_those_here() {
    let record = run("takemasa/table-5.1", &[]);
    assert_eq!(record.tables[0].rows.len(), 10);
    let sum: f64 = record.published.iter().map(|it| it.value).sum();
    assert_eq!(sum, 2_088.0, "of Table 5.1");
    assert!(
        record
            .published
            .iter()
            .all(|it| it.here.is_some_and(|here| here > 0.0))
    );
    let record = run("takemasa/table-5.2", &["cache=500"]);
    let alone = &record.tables[0];
    let published = column(alone, "B13 published, cycles").into_iter().flatten();
    assert_eq!(published.collect::<Vec<_>>(), [0.0, 0.0, 0.0, 282.0, 28.0]);
    let memory = |policy: &str| number(alone, &[policy], "memory, MiB");
    assert!(memory("filter/fifo") < memory("filter-row/fifo"));
    assert!(memory("lru-local") < memory("lru"));
    let in_path = &record.tables[1];
    assert_eq!(number(in_path, &["fifo"], "insertion ratio"), 1.0);
    assert!(number(in_path, &["filter:1/fifo"], "insertion ratio") > 0.95);
    assert!(number(in_path, &["filter:1/fifo"], "B2 an Interest, ns") > 0.0);
}

#[test]
fn figure_5_7_follows_from_blocks_and_ratios() {
    let record = run("takemasa/figure-5.7", &[]);
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 12);
    assert!(numbers(table, "blocks here, ns").iter().all(|ns| *ns > 0.0));
    // Equations 5.1 and 5.2 with the published blocks.
    let hits = number(table, &["fifo"], "hit ratio");
    let cycles = 769.0 + hits * 72.0 + (1.0 - hits) * (918.0 + 329.0);
    let found = number(table, &["fifo"], "published blocks, cycles");
    assert!((found - cycles).abs() < 1e-6, "{found} {cycles}");
    let hits = number(table, &["filter/fifo"], "hit ratio");
    let inserted = number(table, &["filter/fifo"], "insertion ratio");
    let miss = 918.0 + 28.0 + inserted * 329.0;
    let cycles = 769.0 + 83.0 + hits * 72.0 + (1.0 - hits) * miss;
    let found = number(table, &["filter/fifo"], "published blocks, cycles");
    assert!((found - cycles).abs() < 1e-6, "{found} {cycles}");
    assert_eq!(
        table.number(&["filter-auto/gclock"], "published blocks, cycles"),
        None
    );
    assert_eq!(record.tables[1].rows.len(), 4);
}

#[test]
fn figure_5_8_sends_what_each_policy_misses() {
    let record = run("takemasa/figure-5.8", &[]);
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 4);
    assert_eq!(number(table, &["fifo"], "insertion ratio"), 1.0);
    assert_eq!(number(table, &["fifo"], "rate by FIFO's"), 1.0);
    let hits = |policy: &str| number(table, &[policy], "hit ratio");
    assert!(hits("filter/fifo") > hits("fifo"));
    let bits = 8.0 * (1_143.0 + 121.0 * (1.0 - hits("fifo")));
    let ns = number(table, &["fifo"], "request, ns");
    assert!((number(table, &["fifo"], "Gbit/s") - bits / ns).abs() < 1e-9);
    let text = record
        .published("rate with Filter by that with ARC, text")
        .expect("published");
    let numbers = record.published("rate with Filter by that with ARC, from its Gbit/s");
    assert_eq!(
        (text.value, text.here),
        (1.3, numbers.expect("published").here)
    );
}

#[test]
fn policies_agree_with_plain_simulators_and_models() {
    let record = run("own/cache-validate", &[]);
    let table = &record.tables[0];
    let more: Vec<f64> = column(table, "hits more").into_iter().flatten().collect();
    assert_eq!(more, [0.0; 6], "fifo, lru, clock, gclock, lfu, lfu-perfect");
    let (hits, models) = (numbers(table, "hit ratio"), column(table, "model"));
    let off = hits
        .iter()
        .zip(models)
        .filter_map(|(hits, model)| Some((hits - model?).abs()));
    let off: Vec<f64> = off.collect();
    assert_eq!(off.len(), 7);
    assert!(off.iter().all(|off| *off < 0.012), "{off:?}");
}

#[test]
fn local_search_comes_near_the_policy_over_all() {
    let record = run("own/cache-rates", &["policies=lru,lru-local", "sizes=250"]);
    let hits = numbers(&record.tables[0], "hit ratio");
    assert!((hits[0] - hits[1]).abs() < 0.01, "{hits:?}");
    let record = run("yuan/lru-local", &["cache=500"]);
    let bytes = |policy: &str| number(&record.tables[0], &[policy], "bytes a Data");
    assert_eq!(
        [bytes("lru"), bytes("lru-local"), bytes("lfu-local")],
        [8.0, 4.0, 2.0]
    );
}

#[test]
fn k_lru_is_simulated_as_its_model_expects() {
    let record = run("mansilha/k-lru", &[]);
    let table = &record.tables[0];
    let simulated = numbers(table, "hit ratio");
    for (simulated, model) in simulated.iter().zip(column(table, "hit ratio, model")) {
        let off = model.map_or(0.0, |model| (simulated - model).abs());
        assert!(off < 0.012, "{simulated} {model:?}");
    }
    // Each further cache of the chain brings it nearer to the best.
    let of_best = numbers(table, "of the best that no cache exceeds");
    let at = |policy: &str| number(table, &[policy], "of the best that no cache exceeds");
    assert!(at("lru") < at("k-lru:2/lru") && at("k-lru:2/lru") < at("k-lru:3/lru"));
    assert!(of_best.iter().all(|ratio| *ratio < 1.01), "{of_best:?}");
}

#[test]
fn a_trace_is_simulated_as_the_same_requests_in_order() {
    let folder = tempfile::tempdir().expect("a folder for the trace");
    let path = folder.path().join("trace.csv");
    // Of a cycle of three, an LRU cache of two never has the next one, and one of three
    // always.
    let lines: String = (0..30).map(|n| format!("{n},/name/{}\n", n % 3)).collect();
    std::fs::write(&path, lines).expect("the folder is writable");
    let trace = format!("trace={}", path.display());
    let record = run("own/cache-rates", &[&trace, "policies=lru", "sizes=2,3"]);
    assert_eq!(numbers(&record.tables[0], "hit ratio"), [0.0, 0.9]);
}

#[test]
fn self_tuning_filter_is_beside_every_fixed_setting() {
    let record = run("own/cache-tuned", &[]);
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 6);
    let verdict = record.verdicts[0].spread.median;
    let least = numbers(table, "points off")
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    assert_eq!(verdict, least);
    let off_all = numbers(table, "points off it");
    assert!(
        off_all
            .iter()
            .zip(numbers(table, "points off"))
            .all(|(all, some)| *all <= some)
    );
}

#[test]
fn a_change_of_popularity_costs_hits_at_first() {
    let record = run("own/cache-change", &[]);
    let steady = numbers(&record.tables[0], "steady hit ratio");
    for (line, steady) in record.charts[0].lines.iter().zip(steady) {
        assert_eq!(line.points.len(), 4);
        assert!(line.points[0].1 < steady, "{}", line.label);
        assert!(line.points[0].1 < line.points[3].1, "{}", line.label);
    }
}

#[test]
fn rates_of_the_simulator_are_measured_for_each_policy() {
    let record = run("own/cache-speed", &[]);
    let table = &record.tables[0];
    assert_eq!(table.rows.len(), 5);
    assert!(
        numbers(table, "drawn during the run, M/s")
            .iter()
            .all(|rate| *rate > 0.0)
    );
    assert_eq!(
        column(table, "requests drawn before, M/s").last(),
        Some(&None)
    );
}
