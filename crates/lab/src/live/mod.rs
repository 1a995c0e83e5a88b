//! `tachonym-lab live`: the router itself with several workers, over real sockets.
//!
//! `live workers` is Takemasa 2019, Figure 4.7 (packets per second over the number of
//! threads), `live dispatch` Mansilha 2017, Figures 7 and 8 (throughput over the number of
//! threads, how packets are divided among them, and what that makes of throughput). Settings
//! take turns in every round, each on a router of its own ([`tachonym_loadgen::live`]). Beside what passes by
//! the clock stands the router's CPU time for a packet: the generator needs cores, too. For
//! packets in memory see [`workers`](crate::workers).

mod plot;
mod published;

use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;
use tachonym_loadgen::live::{BedArgs, Feed, Rule, Setting, Take, n_cores};

use crate::output;
use crate::stats::{Histogram, Spread};

/// Measures the router with several workers over real sockets
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    #[command(subcommand)]
    command: LiveCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum LiveCommand {
    /// Packets per second over the number of workers, for each feed (Takemasa 2019, Figure
    /// 4.7)
    Workers(WorkersArgs),
    /// Throughput and packets of each worker by the dispatch of names (Mansilha 2017, Figures 7 and
    /// 8)
    Dispatch(DispatchArgs),
}

#[derive(Args, Clone, Debug)]
struct WorkersArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Part of the name that selects the home worker
    #[arg(long, value_enum, default_value_t = Rule::Prefix)]
    dispatch: Rule,
}

#[derive(Args, Clone, Debug)]
struct DispatchArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Part of the name that selects the home worker; the others are compared with the first
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "prefix,name,batch"
    )]
    dispatch: Vec<Rule>,
    /// Zipf exponent of the popularity of objects
    #[arg(long, default_value_t = 1.0, value_name = "EXPONENT")]
    skew: f64,
}

#[derive(Args, Clone, Debug)]
struct CommonArgs {
    #[command(flatten)]
    bed: BedArgs,
    /// Numbers of workers; the others are compared with the first [default: 1 to the number of
    /// cores]
    #[arg(long, value_delimiter = ',', value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Vec<u16>,
    /// How workers receive packets
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "run-to-completion,io-threads"
    )]
    feed: Vec<Feed>,
    /// Rounds, each of which measures every setting
    #[arg(long, default_value_t = 11, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

impl CommonArgs {
    fn numbers(&self) -> Vec<u16> {
        if self.workers.is_empty() {
            (1..=n_cores()).collect()
        } else {
            self.workers.clone()
        }
    }

    /// Every feed, number of workers and rule; one worker needs no rule.
    fn settings(&self, rules: &[Rule]) -> Vec<Setting> {
        let mut settings = Vec::new();
        for &feed in &self.feed {
            for n_workers in self.numbers() {
                let n_rules = if n_workers == 1 { 1 } else { rules.len() };
                settings.extend(rules[..n_rules].iter().map(|&dispatch| Setting {
                    feed,
                    dispatch,
                    n_workers,
                }));
            }
        }
        settings
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
struct Report {
    over: String,
    n_cores: u16,
    n_generators: u16,
    n_objects: u16,
    in_flight: u32,
    skew: f64,
    /// Whether names move between workers.
    is_balanced: bool,
    rows: Vec<Row>,
    published: String,
}

/// One setting.
#[derive(Clone, Debug, Serialize)]
struct Row {
    setting: Setting,
    /// Interests and Data, by the clock.
    pkts_per_s: Spread,
    /// By those with the first number of workers and the first rule: ratios of the rounds.
    by_fewest: Spread,
    /// By those of the first rule with as many workers: ratios of the rounds.
    by_first_rule: Spread,
    /// The router's CPU time, user and system, in nanoseconds.
    cpu_ns_per_pkt: Spread,
    /// Cores that the router used.
    router_cores: f64,
    /// Cores that others used, or that were stolen.
    other_cores: f64,
    /// Packets at home at each worker, by all: medians, in the order of workers.
    shares: Vec<f64>,
    /// Of the busiest worker, packets by the mean; each round has its own busiest.
    busiest_by_mean: Spread,
    /// Packets that crossed a ring, by all.
    crossed: f64,
    /// Time from Interest to Data, all rounds together, in microseconds.
    p50_us: f64,
    p99_us: f64,
    /// Interests without an answer, by those sent, in per cent.
    lost_pct: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the router over {}, Interests that miss and their Data of {} objects, popularity by \
             rank^-{}, {} in flight; names {}",
            self.over,
            self.n_objects,
            self.skew,
            self.in_flight,
            if self.is_balanced {
                "move off busy workers"
            } else {
                "stay where they are"
            }
        )?;
        let most = self.rows.iter().map(|row| row.setting.n_threads()).max();
        let n_threads = most.unwrap_or(0) + self.n_generators;
        let is_crowded = n_threads > self.n_cores;
        writeln!(
            f,
            "{} cores for up to {n_threads} threads, {} of them the generator's{}\n",
            self.n_cores,
            self.n_generators,
            if is_crowded {
                ": router and generator SHARE CORES, so packets by the clock say little of what \
                 workers gain, and CPU time for a packet what they cost"
            } else {
                ""
            }
        )?;
        writeln!(
            f,
            "| feed | workers | dispatch | thousand packets/s (p10-p90) | relative to the fewest \
             workers \
             (p10-p90) | relative to the first rule (p10-p90) | router's CPU ns a packet \
             (p10-p90) | \
             its cores | others' | shares of packets | busiest / mean (p10-p90) | crossed | \
             p50 µs | p99 µs | lost % |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        )?;
        for row in &self.rows {
            let shares: Vec<String> = row.shares.iter().map(|s| format!("{s:.2}")).collect();
            let thousands = |value: f64| format!("{:.0}", value / 1e3);
            writeln!(
                f,
                "| {} | {} | {} | {} ({}-{}) | {} | {} | {:.0} ({:.0}-{:.0}) | {:.2} | {:.2} | \
                 {} | {} | {:.2} | {:.0} | {:.0} | {:.3} |",
                row.setting.feed,
                row.setting.n_workers,
                row.setting.dispatch,
                thousands(row.pkts_per_s.median),
                thousands(row.pkts_per_s.p10),
                thousands(row.pkts_per_s.p90),
                ratio(&row.by_fewest),
                ratio(&row.by_first_rule),
                row.cpu_ns_per_pkt.median,
                row.cpu_ns_per_pkt.p10,
                row.cpu_ns_per_pkt.p90,
                row.router_cores,
                row.other_cores,
                shares.join(" "),
                ratio(&row.busiest_by_mean),
                row.crossed,
                row.p50_us,
                row.p99_us,
                row.lost_pct,
            )?;
        }
        write!(f, "\n{}", self.published)
    }
}

fn ratio(spread: &Spread) -> String {
    format!("{:.2} ({:.2}-{:.2})", spread.median, spread.p10, spread.p90)
}

/// Runs the command.
///
/// # Errors
/// If the router cannot be started or carries nothing, or the drawing cannot be written.
pub fn run(args: &LiveArgs) -> anyhow::Result<()> {
    let (common, rules, skew, published) = match &args.command {
        LiveCommand::Workers(own) => {
            let rules = vec![own.dispatch];
            (&own.common, rules, 0.0, published::workers())
        }
        LiveCommand::Dispatch(own) => {
            let rules = own.dispatch.clone();
            (&own.common, rules, own.skew, published::dispatch())
        }
    };
    let settings = common.settings(&rules);
    let mut rounds: Vec<Vec<Take>> = settings.iter().map(|_| Vec::new()).collect();
    for round in 0..usize::from(common.rounds) {
        for turn in 0..settings.len() {
            let idx = (turn + round) % settings.len();
            rounds[idx].push(tachonym_loadgen::live::take(
                &common.bed,
                &settings[idx],
                skew,
            )?);
        }
    }
    let rows = settings.iter().zip(&rounds).map(|(setting, own)| {
        let first = |other: &dyn Fn(&Setting) -> bool| {
            let idx = settings.iter().position(other);
            &rounds[idx.expect("a setting is like itself")]
        };
        let fewest = first(&|other| other.feed == setting.feed);
        let first_rule =
            first(&|other| other.feed == setting.feed && other.n_workers == setting.n_workers);
        row(setting, own, fewest, first_rule)
    });
    let report = Report {
        over: common.bed.over.to_string(),
        n_cores: n_cores(),
        n_generators: common.bed.n_generators(),
        n_objects: common.bed.objects,
        in_flight: common.bed.in_flight,
        skew,
        is_balanced: common.bed.balance,
        rows: rows.collect::<anyhow::Result<_>>()?,
        published,
    };
    if let Some(path) = &common.svg {
        plot::draw(&report, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, common.json)
}

fn row(setting: &Setting, own: &[Take], fewest: &[Take], rule: &[Take]) -> anyhow::Result<Row> {
    let spread = |of: &dyn Fn(&Take) -> f64| {
        let values: Vec<f64> = own.iter().map(of).collect();
        Spread::of(&values).context("no round was measured")
    };
    let by = |others: &[Take]| {
        let pairs = own.iter().zip(others);
        let ratios: Vec<f64> = pairs.map(|(a, b)| a.pkts_per_s / b.pkts_per_s).collect();
        Spread::of(&ratios).context("no round was measured")
    };
    let mut latencies = Histogram::default();
    own.iter().for_each(|take| latencies.merge(&take.latencies));
    let us = |permille: u64| latencies.quantile_ns(permille) as f64 / 1e3;
    let n_sent: u64 = own.iter().map(|take| take.n_sent).sum();
    let n_lost: u64 = own.iter().map(|take| take.n_lost).sum();
    let shares = (0..usize::from(setting.n_workers))
        .map(|worker| {
            let of = |take: &Take| take.shares.get(worker).copied().unwrap_or(0.0);
            Ok(spread(&of)?.median)
        })
        .collect::<anyhow::Result<_>>()?;
    let n_workers = f64::from(setting.n_workers);
    Ok(Row {
        setting: *setting,
        pkts_per_s: spread(&|take| take.pkts_per_s)?,
        by_fewest: by(fewest)?,
        by_first_rule: by(rule)?,
        cpu_ns_per_pkt: spread(&|take| take.cpu_ns_per_pkt)?,
        router_cores: spread(&|take| take.router_cores)?.median,
        other_cores: spread(&|take| take.other_cores)?.median,
        shares,
        busiest_by_mean: spread(&|take| {
            take.shares.iter().copied().fold(0.0, f64::max) * n_workers
        })?,
        crossed: spread(&|take| take.crossed)?.median,
        p50_us: us(500),
        p99_us: us(990),
        lost_pct: 100.0 * n_lost as f64 / n_sent.max(1) as f64,
    })
}
