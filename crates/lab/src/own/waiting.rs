//! CPU time of the running router by its load, with gathering of packets and without.

use std::time::Duration;

use anyhow::Context as _;
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Bound, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_loadgen::waiting::{Bed, Load, Take, sleep_cpu};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/waiting",
    title: "CPU time of the running router by its load, with gathering and without",
    source: "",
    cost: Cost::minutes(1.2, 5.0),
    needs: &[Need::Router, Need::Cpus(2)],
    params: &[
        Param::new(
            "ms",
            "length of each measurement, after a quarter of that to warm up",
            ParamKind::Count {
                min: 20,
                max: 60_000,
            },
            ["40", "1000", "3000"],
        ),
        Param::new(
            "gather-us",
            "longest time of gathering",
            ParamKind::Count { min: 1, max: 1_000 },
            ["100"; 3],
        ),
        Param::rounds(["1", "5", "11"]),
    ],
    run,
}];

/// Interests in flight that saturate the router.
const FULL_WINDOW: usize = 256;
/// Sleeps whose CPU time is measured.
const N_SLEEPS: u32 = 1_000;
/// What is measured, by the saturation of the same round or by the window.
const LOADS: [(&str, Of); 7] = [
    ("saturation", Of::Window(FULL_WINDOW)),
    ("50 %", Of::Part(0.5)),
    ("10 %", Of::Part(0.1)),
    ("1 %", Of::Part(0.01)),
    ("rest", Of::Part(0.0)),
    ("window 1", Of::Window(1)),
    ("window 8", Of::Window(8)),
];

#[derive(Clone, Copy)]
enum Of {
    Part(f64),
    Window(usize),
}

/// The measurements of one setting in one round, in the order of [`LOADS`].
fn measure(bed: &Bed, lasting: Duration) -> anyhow::Result<Vec<Take>> {
    let mut takes: Vec<Take> = Vec::new();
    for (_, of) in LOADS {
        let full = takes.first().map_or(0.0, |full| full.exchanges_per_s);
        let load = match of {
            Of::Part(0.0) => Load::Rest,
            Of::Part(part) => Load::Rate(part * full),
            Of::Window(in_flight) => Load::Window(in_flight),
        };
        takes.push(bed.take(load, lasting)?);
    }
    Ok(takes)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let router = context.router.clone().context("the router is missing")?;
    let lasting = Duration::from_millis(context.count("ms"));
    let gather_us = context.values.count32("gather-us");
    let beds = [0, gather_us].map(|max_gather_us| Bed::start(&router, max_gather_us));
    let [plain, gathering] = beds;
    let beds = [plain?, gathering?];
    let rounds = rotated(beds.len(), context.rounds(), |case, _| {
        measure(&beds[case], lasting)
    })?;
    let columns: [Column; 11] = [
        "load".into(),
        "gathering".into(),
        "thousand exchanges/s".into(),
        Column::fixed("router's cores", 4),
        "by its cores at saturation".into(),
        "by exchanges/s without".into(),
        "p50, µs".into(),
        "p99, µs".into(),
        "lost".into(),
        Column::fixed("wake-ups/s", 0),
        Column::fixed("gatherings/s", 0),
    ];
    let mut table = Table::new("", columns);
    let values = |case: usize, load: usize, of: fn(&Take) -> f64| -> Vec<f64> {
        rounds[case].iter().map(|takes| of(&takes[load])).collect()
    };
    let cores = |take: &Take| take.router_cores;
    let rate = |take: &Take| take.exchanges_per_s;
    let us = |permille| move |take: &Take| take.latencies.quantile_ns(permille) as f64 / 1e3;
    let mut record = Record::new(Kind::Measured);
    for (load, (name, _)) in LOADS.iter().enumerate() {
        for (case, gathering) in ["off", "on"].into_iter().enumerate() {
            let quantile = |permille: u64| {
                let us = us(permille);
                let all = rounds[case].iter().map(|takes| us(&takes[load]));
                Spread::of(&all.collect::<Vec<f64>>())
            };
            let by_full = Spread::of_ratios(&values(case, load, cores), &values(case, 0, cores));
            let by_plain = Spread::of_ratios(&values(case, load, rate), &values(0, load, rate));
            let has_load = *name != "rest";
            let lost: u64 = rounds[case].iter().map(|takes| takes[load].n_lost).sum();
            table.row(cells![
                *name,
                gathering,
                Spread::of(&values(case, load, |take| take.exchanges_per_s / 1e3)),
                Spread::of(&values(case, load, cores)),
                by_full,
                by_plain.filter(|_| has_load),
                quantile(500).filter(|_| has_load),
                quantile(990).filter(|_| has_load),
                lost,
                Spread::of(&values(case, load, |take| take.wakeups_per_s)),
                Spread::of(&values(case, load, |take| take.gathers_per_s)),
            ]);
        }
    }
    judge(&rounds, &mut record);
    let sleep = sleep_cpu(Duration::from_micros(u64::from(gather_us)), N_SLEEPS);
    record.note(format!(
        "A sleep of {gather_us} µs takes {:.1} µs of CPU time here: with cheap sleeps gathering \
         stays on, otherwise it is tried now and then.",
        sleep.as_secs_f64() * 1e6
    ));
    record.tables.push(table);
    record.note(
        "Over a Unix socket, one worker. Rates are parts of the exchanges at saturation in the \
         same round; the generator polls at a rate, and sleeps with a window.",
    );
    for bed in beds {
        bed.stop()?;
    }
    Ok(record)
}

/// Judges the goals.
fn judge(rounds: &[Vec<Vec<Take>>], record: &mut Record) {
    let index = |name: &str| LOADS.iter().position(|load| load.0 == name);
    let pairs = rounds[0].iter().zip(&rounds[1]);
    let mut judge = |what: String, unit: &str, bound, values: Vec<f64>| {
        if let Some(spread) = Spread::of(&values) {
            record.judge(what, unit, bound, spread);
        }
    };
    if let Some(rest) = index("rest") {
        let cores = rounds[1].iter().map(|takes| takes[rest].router_cores);
        judge(
            "at rest".into(),
            "cores",
            Bound::AtMost(0.002),
            cores.collect(),
        );
    }
    if let Some(tenth) = index("10 %") {
        let by_full = |takes: &Vec<Take>| takes[tenth].router_cores / takes[0].router_cores;
        let by_full = rounds[1].iter().map(by_full).collect();
        let what = "CPU time at 10 % by that at saturation";
        judge(what.into(), "", Bound::AtMost(0.15), by_full);
        let p99_ms = |take: &Take| take.latencies.quantile_ns(990) as f64 / 1e6;
        let added = pairs
            .clone()
            .map(|(off, on)| p99_ms(&on[tenth]) - p99_ms(&off[tenth]));
        let what = "p99 of latency added by gathering at 10 %";
        judge(what.into(), "ms", Bound::AtMost(0.5), added.collect());
        let lost = rounds[1].iter().map(|takes| takes[tenth].n_lost as f64);
        judge(
            "lost at 10 %".into(),
            "Interests",
            Bound::AtMost(0.0),
            lost.collect(),
        );
    }
    for window in ["window 1", "window 8"] {
        if let Some(load) = index(window) {
            let kept = pairs
                .clone()
                .map(|(off, on)| on[load].exchanges_per_s / off[load].exchanges_per_s);
            let what = format!("{window}: exchanges/s with gathering by those without");
            judge(what, "", Bound::AtLeast(0.9), kept.collect());
        }
    }
}
