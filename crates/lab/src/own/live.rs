//! The router with several workers, over real sockets.
//!
//! `own/live` is Takemasa 2019, Figure 4.7 (packets per second over the number of threads)
//! for the running router; `own/live-dispatch` is Mansilha et al. 2017, Figure 8
//! (packets of each thread by the dispatch of names, and the throughput). Settings take turns
//! in every round, each on a router of its own. Beside the packets by the clock stands the
//! router's CPU time for a packet: the load generator needs processors, too.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tachonym_bench::stats::{Histogram, Spread, median};
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Cell, Chart, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Reference, Table,
};
use tachonym_loadgen::exchange::address::Transport;
use tachonym_loadgen::live::{Feed, LiveLoad, Rule, Setting, Take, n_cores, take};

use crate::takemasa::{INFERRED_THREADS, PUBLISHED_PKTS_PER_S};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "own/live",
        title: "Packets per second of the running router by its number of workers",
        source: "",
        cost: Cost::minutes(0.4, 5.0),
        needs: &[Need::Router, Need::Cpus(4)],
        params: &[
            Param::choice(
                "dispatch",
                "part of the name that selects the home worker",
                &["prefix", "name", "batch"],
                "prefix",
            ),
            WORKERS,
            OVER,
            MILLISECONDS,
            OBJECTS,
            IN_FLIGHT,
            CONTENT_BYTES,
            GENERATORS,
            BALANCE,
            ROUNDS,
        ],
        run: by_workers,
    },
    Experiment {
        id: "own/live-dispatch",
        title: "Packets of each worker of the running router by the dispatch of names",
        source: "",
        cost: Cost::minutes(1.0, 8.0),
        needs: &[Need::Router, Need::Cpus(4)],
        params: &[
            Param::new(
                "skew",
                "popularity of objects: by rank to the power of minus this",
                ParamKind::Number,
                ["1"; 3],
            ),
            Param::count("batch-segments", "segments of a batch", ["64"; 3]),
            WORKERS,
            OVER,
            MILLISECONDS,
            OBJECTS,
            IN_FLIGHT,
            CONTENT_BYTES,
            GENERATORS,
            BALANCE,
            ROUNDS,
        ],
        run: by_dispatch,
    },
];

const WORKERS: Param = Param::new(
    "workers",
    "numbers of workers, the first for comparison",
    ParamKind::Counts,
    ["1,2", "1,2,4", "1,2,4,8,16"],
);
const OVER: Param = Param::choice(
    "over",
    "transport of consumers and producers",
    &["unix", "udp"],
    "unix",
);
const MILLISECONDS: Param = Param::new(
    "ms",
    "length of each measurement, after a quarter of that to warm up",
    ParamKind::Count {
        min: 10,
        max: 60_000,
    },
    ["20", "600", "2000"],
);
const OBJECTS: Param = Param::new(
    "objects",
    "objects, each with a consumer and a producer",
    ParamKind::Count { min: 1, max: 1_024 },
    ["6", "32", "32"],
);
const IN_FLIGHT: Param = Param::new(
    "in-flight",
    "Interests in flight, of all objects together",
    ParamKind::Count {
        min: 1,
        max: 65_536,
    },
    ["24", "512", "512"],
);
const CONTENT_BYTES: Param = Param::new(
    "content-bytes",
    "content of each Data",
    ParamKind::Count { min: 0, max: 8_000 },
    ["1000"; 3],
);
const GENERATORS: Param = Param::new(
    "generators",
    "threads that drive consumers and producers; 0: half of the processors",
    ParamKind::Count { min: 0, max: 64 },
    ["0"; 3],
);
const BALANCE: Param = Param::choice(
    "balance",
    "whether names migrate off overloaded workers",
    &["off", "on"],
    "off",
);
const ROUNDS: Param = Param::rounds(["1", "5", "11"]);

const FEEDS: [Feed; 2] = [Feed::RunToCompletion, Feed::IoThreads];
const RULES: [Rule; 3] = [Rule::Prefix, Rule::Name, Rule::Batch];

const TAKEMASA: &str = "Takemasa 2019";
const MANSILHA: &str = "Mansilha et al. 2017";

/// All that the rounds of a setting measured.
struct Measured {
    setting: Setting,
    takes: Vec<Take>,
}

fn load(context: &Context, batch_segments: u32) -> anyhow::Result<LiveLoad> {
    let small = |name: &str| u16::try_from(context.count(name)).unwrap_or(u16::MAX);
    let n_generators = match small(GENERATORS.name) {
        0 => (n_cores() / 2).max(1),
        n => n,
    };
    Ok(LiveLoad {
        tachonym: context.router.clone().context("the router is missing")?,
        over: match context.text(OVER.name) {
            "udp" => Transport::Udp,
            _ => Transport::Unix,
        },
        lasting: Duration::from_millis(context.count(MILLISECONDS.name)),
        n_generators,
        n_objects: small(OBJECTS.name),
        in_flight: context.values.count32(IN_FLIGHT.name),
        content_bytes: small(CONTENT_BYTES.name),
        batch_segments,
        is_balanced: context.text(BALANCE.name) == "on",
    })
}

/// Measures every feed, number of workers and rule in turn; one worker needs one rule only.
fn measure(
    context: &Context,
    load: &LiveLoad,
    rules: &[Rule],
    skew: f64,
) -> anyhow::Result<Vec<Measured>> {
    let mut settings = Vec::new();
    for feed in FEEDS {
        for n_workers in context.values.counts(WORKERS.name) {
            ensure!(
                (1..=64).contains(&n_workers),
                "{n_workers} workers are not 1 to 64"
            );
            let n_rules = if n_workers == 1 { 1 } else { rules.len() };
            settings.extend(rules[..n_rules].iter().map(|&dispatch| Setting {
                feed,
                dispatch,
                n_workers: n_workers as u16,
            }));
        }
    }
    let rounds = rotated(settings.len(), context.rounds(), |case, _| {
        take(load, &settings[case], skew)
    })?;
    let measured = settings.into_iter().zip(rounds);
    Ok(measured
        .map(|(setting, takes)| Measured { setting, takes })
        .collect())
}

impl Measured {
    fn values(&self, of: impl Fn(&Take) -> f64) -> Vec<f64> {
        self.takes.iter().map(of).collect()
    }

    fn spread(&self, of: impl Fn(&Take) -> f64) -> Option<Spread> {
        Spread::of(&self.values(of))
    }

    /// Packets per second by those of `other` in the same round.
    fn rate_by(&self, other: &Self) -> Option<Spread> {
        let rates = |it: &Self| it.values(|take| take.pkts_per_s);
        Spread::of_ratios(&rates(self), &rates(other))
    }

    /// Packets of the busiest worker by the mean; each round has its own busiest.
    fn busiest_by_mean(&self) -> Option<Spread> {
        let busiest = |take: &Take| take.shares.iter().copied().fold(0.0, f64::max);
        self.spread(|take| busiest(take) * f64::from(self.setting.n_workers))
    }

    /// The share of each worker, medians.
    fn shares(&self) -> String {
        let share = |worker: usize| {
            median(&self.values(|take| take.shares.get(worker).copied().unwrap_or(0.0)))
        };
        let shares = (0..usize::from(self.setting.n_workers)).map(share);
        shares
            .map(|share| format!("{share:.2}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A row with its headings.
fn row(of: &Measured, all: &[Measured], by_rule: bool) -> Vec<(&'static str, Cell)> {
    let like = |is_like: &dyn Fn(&Setting) -> bool| {
        all.iter()
            .find(|other| other.setting.feed == of.setting.feed && is_like(&other.setting))
    };
    let fewest = like(&|_| true);
    let same_number = like(&|other| other.n_workers == of.setting.n_workers);
    let mut latencies = Histogram::default();
    of.takes
        .iter()
        .for_each(|take| latencies.merge(&take.latencies));
    let us = |permille| latencies.quantile_ns(permille) as f64 / 1e3;
    let n_sent: u64 = of.takes.iter().map(|take| take.n_sent).sum();
    let n_lost: u64 = of.takes.iter().map(|take| take.n_lost).sum();
    let median_of = |value: fn(&Take) -> f64| median(&of.values(value));
    let mut cells: Vec<(&'static str, Cell)> = vec![
        ("feed", of.setting.feed.to_string().into()),
        ("workers", of.setting.n_workers.into()),
    ];
    if by_rule {
        cells.push(("dispatch by", of.setting.dispatch.to_string().into()));
    }
    cells.push((
        "thousand packets/s",
        of.spread(|take| take.pkts_per_s / 1e3).into(),
    ));
    cells.push((
        "by the fewest workers",
        fewest.and_then(|other| of.rate_by(other)).into(),
    ));
    if by_rule {
        let by_prefix = same_number.and_then(|other| of.rate_by(other));
        cells.push(("by dispatch by prefix", by_prefix.into()));
    }
    cells.extend([
        (
            "router's CPU, ns/packet",
            of.spread(|take| take.cpu_ns_per_pkt).into(),
        ),
        ("router's cores", median_of(|take| take.router_cores).into()),
        ("others' cores", median_of(|take| take.other_cores).into()),
        ("share of each worker", of.shares().into()),
        ("busiest by mean", of.busiest_by_mean().into()),
        ("crossed", median_of(|take| take.crossed).into()),
        ("p50, µs", us(500).into()),
        ("p99, µs", us(990).into()),
        (
            "lost, %",
            (100.0 * n_lost as f64 / n_sent.max(1) as f64).into(),
        ),
    ]);
    cells
}

fn record(load: &LiveLoad, all: &[Measured], by_rule: bool, skew: f64) -> Record {
    let rows = all.iter().map(|of| row(of, all, by_rule));
    let rows: Vec<_> = rows.collect();
    let titles = rows.first().into_iter().flatten().map(|(title, _)| *title);
    let mut table = Table::new("", titles);
    for row in rows {
        table.row(row.into_iter().map(|(_, cell)| cell));
    }
    let mut record = Record::new(Kind::Measured);
    record.tables.push(table);
    record.note(format!(
        "Over {}: {} objects with a consumer and a producer each, popularity by rank to the \
         power of -{skew}, {} Interests in flight that miss; names {}.",
        load.over,
        load.n_objects,
        load.in_flight,
        if load.is_balanced {
            "migrate off busy workers"
        } else {
            "stay where they are"
        }
    ));
    let most = all
        .iter()
        .map(|it| it.setting.n_threads())
        .max()
        .unwrap_or(0);
    let n_generators = load.n_generators.min(load.n_objects);
    if most + n_generators > n_cores() {
        record.note(format!(
            "{} processors for up to {most} threads of the router and {n_generators} of the load \
             generator: they share them, so packets per second show little of what workers gain, \
             and the CPU time for a packet shows what they cost.",
            n_cores()
        ));
    }
    record
}

fn by_workers(context: &Context) -> anyhow::Result<Record> {
    let rule = RULES
        .into_iter()
        .find(|rule| rule.to_string() == context.text("dispatch"));
    let load = load(context, 64)?;
    let all = measure(context, &load, &[rule.context("a rule of dispatch")?], 0.0)?;
    let mut record = record(&load, &all, false, 0.0);
    let mut chart = Chart::new("Packets per second", "workers", "by the fewest workers");
    for of in &all {
        let fewest = all
            .iter()
            .find(|other| other.setting.feed == of.setting.feed);
        let ratio = fewest.and_then(|fewest| of.rate_by(fewest));
        let ratio = ratio.map_or(f64::NAN, |ratio| ratio.median);
        let n_workers = f64::from(of.setting.n_workers);
        chart.point(&of.setting.feed.to_string(), n_workers, ratio);
    }
    record.charts.push(chart);
    let fastest = |by: fn(&Measured) -> f64| {
        let rates = all
            .iter()
            .map(|of| median(&of.values(|take| take.pkts_per_s)) / 1e6 / by(of));
        rates.reduce(f64::max)
    };
    record.compare(
        "packets per second at most",
        PUBLISHED_PKTS_PER_S / 1e6,
        "Mpps",
        Reference::stated(TAKEMASA, "section 4.4.3, Figure 4.7"),
        fastest(|_| 1.0),
    );
    record.compare(
        "packets per second of one thread",
        PUBLISHED_PKTS_PER_S / 1e6 / f64::from(INFERRED_THREADS),
        "Mpps",
        Reference::inferred(
            TAKEMASA,
            "section 4.4.3, by two threads on each of 20 cores",
        ),
        fastest(|of| f64::from(of.setting.n_threads())),
    );
    record.note(
        "Takemasa 2019 receives from network interfaces without a kernel and has 20 cores with \
         two threads each; there the rate grows in proportion up to 22 threads. Here each packet \
         passes the kernel's sockets.",
    );
    Ok(record)
}

fn by_dispatch(context: &Context) -> anyhow::Result<Record> {
    let skew = context.number("skew");
    let load = load(context, context.values.count32("batch-segments"))?;
    let all = measure(context, &load, &RULES, skew)?;
    let mut record = record(&load, &all, true, skew);
    let most = all.iter().map(|of| of.setting.n_workers).max();
    let with = |rule: Rule| {
        all.iter()
            .find(|of| Some(of.setting.n_workers) == most && of.setting.dispatch == rule)
    };
    let pair = with(Rule::Prefix).zip(with(Rule::Batch));
    let busiest = pair.and_then(|(prefix, batch)| {
        Some(prefix.busiest_by_mean()?.median / batch.busiest_by_mean()?.median)
    });
    record.compare(
        "packets of the busiest thread, whole objects by batches",
        3.0,
        "",
        Reference::stated(MANSILHA, "section 5.2, Figure 8a, 16 threads"),
        busiest,
    );
    let rate = pair.and_then(|(prefix, batch)| batch.rate_by(prefix));
    record.compare(
        "throughput, batches by whole objects",
        1.2,
        "",
        Reference::stated(MANSILHA, "section 5.2, Figure 8b, 16 threads"),
        rate.map(|rate| rate.median),
    );
    record.note(format!(
        "Compared with the publication: {} workers that receive for themselves. Mansilha et al. \
         2017 have a content store on an emulated disk, and 16 threads.",
        most.unwrap_or(0)
    ));
    Ok(record)
}
