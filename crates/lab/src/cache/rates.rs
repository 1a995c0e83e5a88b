//! Insertion and hit ratios by the size of the cache: Figures 5 and 6 of Takemasa et al.
//! 2019, and the same of any trace.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};

use super::plot::{self, Chart};
use super::published;
use super::simulate::{Counts, Requests, Simulation};
use super::trace::{Trace, TraceFormat};
use super::workload::{Independent, Mixed, Scans, Video};
use crate::output;

/// Objects of the web workload.
const N_WEB: u32 = 10_000_000;
/// Chunks of all videos.
const N_CHUNKS: u32 = 100_000_000;

/// What asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Workload {
    /// 10^7 objects of Zipf popularity 0.8.
    Web,
    /// 10^4 videos of 10^4 chunks.
    Video,
    /// Web with 0.7 of the requests, and video.
    Mixed,
    /// Web with 0.7 of the requests, and scans of 1000 objects that are asked for once.
    Scans,
    /// Web with 0.7 of the requests, and objects that are asked for once.
    OneTimers,
    /// Web whose objects become other ones little by little: 10^4 ranks every 2·10^5
    /// requests.
    Drift,
}

/// Simulates policies over cache sizes, beside the published figures 5 and 6
#[derive(Args, Clone, Debug)]
pub(super) struct RatesArgs {
    /// What asks for objects
    #[arg(long, value_enum, default_value = "web", conflicts_with = "trace")]
    workload: Workload,
    /// Reads requests from this file instead
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// How the file is written
    #[arg(long, value_enum, default_value = "csv")]
    format: TraceFormat,
    /// Where a line of it has the name, from 1 on
    #[arg(long, default_value_t = 2, value_name = "N")]
    column: usize,
    /// Sizes of the cache, in Data; without it, 1 to 10 % of the objects
    #[arg(long, value_name = "N", value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Policies: an eviction, or an admission and an eviction as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "fifo,random,lfu,arc,tinylfu/random,filter/fifo,filter-auto/gclock"
    )]
    policies: Vec<String>,
    /// Requests before measurement begins; of a trace, those are counted, too
    #[arg(long, default_value_t = 20_000_000, value_name = "N")]
    warm: u64,
    /// Requests that are measured
    #[arg(long, default_value_t = 30_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// What requests are drawn from
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Draws the result into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    policy: String,
    capacity: usize,
    hit_ratio: f64,
    insertion_ratio: f64,
    published_hit_ratio: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    what: String,
    n_objects: u32,
    n_warm: u64,
    n_requests: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} objects; {} requests to warm, {} measured\n\n\
             | policy | cache | hit ratio | published | Data inserted |\n|---|---|---|---|---|",
            self.what, self.n_objects, self.n_warm, self.n_requests
        )?;
        for row in &self.rows {
            let published = row.published_hit_ratio;
            writeln!(
                f,
                "| {} | {} | {:.4} | {} | {:.4} |",
                row.policy,
                row.capacity,
                row.hit_ratio,
                published.map_or(String::new(), |ratio| format!("{ratio}")),
                row.insertion_ratio
            )?;
        }
        if self
            .rows
            .iter()
            .any(|row| row.published_hit_ratio.is_some())
        {
            writeln!(
                f,
                "\n{}.\n{}.",
                published::WHY_HIGHER,
                published::WHY_INSERTIONS
            )?;
        }
        Ok(())
    }
}

/// A policy by its name: an eviction, or an admission, a slash and an eviction.
pub(super) fn policy(name: &str, capacity: usize) -> anyhow::Result<PolicyConfig> {
    let (admission, eviction) = name.split_once('/').unwrap_or(("none", name));
    let admission: AdmissionKind = admission
        .parse()
        .with_context(|| format!("admission {admission}"))?;
    let eviction: EvictionKind = eviction
        .parse()
        .with_context(|| format!("eviction {eviction}"))?;
    Ok(PolicyConfig::new(admission, eviction, capacity))
}

/// Popularity that drifts.
struct Drift {
    popular: Independent,
    n_until_shift: usize,
}

const DRIFT_EVERY: usize = 200_000;
const DRIFT_RANKS: u32 = 10_000;

impl Requests for Drift {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        if self.n_until_shift < objects.len() {
            self.popular.shift_popularity(DRIFT_RANKS);
            self.n_until_shift = DRIFT_EVERY;
        }
        self.n_until_shift -= objects.len();
        self.popular.fill(objects)
    }
}

/// Runs the command.
///
/// # Errors
/// If a trace cannot be read, there is no such policy, or the drawing cannot be written.
pub(super) fn run(args: &RatesArgs) -> anyhow::Result<()> {
    let trace = match &args.trace {
        Some(path) => Some(Trace::read(path, args.format, args.column)?),
        None => None,
    };
    let n_objects = match (&trace, args.workload) {
        (Some(trace), _) => trace.n_objects(),
        (None, Workload::Web | Workload::Drift) => N_WEB,
        (None, Workload::Video) => N_CHUNKS,
        (None, Workload::Mixed) => N_WEB + N_CHUNKS,
        (None, Workload::Scans | Workload::OneTimers) => 4 * N_WEB,
    };
    let sizes: Vec<usize> = if args.sizes.is_empty() {
        let percent = n_objects as usize / 100;
        (1..=10).map(|n| n * percent).collect()
    } else {
        args.sizes.clone()
    };
    let is_web = trace.is_none() && args.workload == Workload::Web;
    let mut rows = Vec::new();
    for name in &args.policies {
        for &capacity in &sizes {
            let config = policy(name, capacity)?;
            let counts = simulate(args, trace.as_ref(), &config, n_objects)
                .with_context(|| format!("{name} with {capacity} Data"))?;
            eprintln!("{name} {capacity}: {:.4}", counts.hit_ratio());
            let published =
                published::web_hit_ratio(name).filter(|_| is_web && capacity == 100_000);
            rows.push(Row {
                policy: name.clone(),
                capacity,
                hit_ratio: counts.hit_ratio(),
                insertion_ratio: counts.insertion_ratio(),
                published_hit_ratio: published,
            });
        }
    }
    let what = match (&args.trace, args.workload.to_possible_value()) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(value)) => value.get_name().to_owned(),
        (None, None) => String::new(),
    };
    let report = Report {
        what,
        n_objects,
        n_warm: args.warm,
        n_requests: args.requests,
        rows,
    };
    if let Some(path) = &args.svg {
        let charts = [
            chart(&report, "Data inserted", |row| row.insertion_ratio),
            chart(&report, "hit ratio", |row| row.hit_ratio),
        ];
        plot::draw(&charts, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

fn chart(report: &Report, y: &'static str, value: impl Fn(&Row) -> f64) -> Chart {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in &report.rows {
        let point = (row.capacity as f64, value(row));
        match lines.last_mut() {
            Some((policy, points)) if *policy == row.policy => points.push(point),
            _ => lines.push((row.policy.clone(), vec![point])),
        }
    }
    let published: Vec<_> = report
        .rows
        .iter()
        .filter(|row| row.published_hit_ratio.is_some())
        .collect();
    if y == "hit ratio" {
        for row in published {
            let ratio = row.published_hit_ratio.unwrap_or_default();
            lines.push((
                format!("{}, published", row.policy),
                vec![(row.capacity as f64, ratio)],
            ));
        }
    }
    Chart {
        title: format!("{}: {y}", report.what),
        x: "Data in the cache",
        y,
        lines,
    }
}

fn simulate(
    args: &RatesArgs,
    trace: Option<&Trace>,
    config: &PolicyConfig,
    n_objects: u32,
) -> anyhow::Result<Counts> {
    let seed = args.seed;
    let web = || Independent::new(N_WEB, 0.8, seed);
    if let Some(trace) = trace {
        return measure(args, trace.clone(), config, n_objects, 0);
    }
    let scans = |len| Scans::new(web(), N_WEB, 3 * N_WEB, 0.3, len, seed);
    match args.workload {
        Workload::Web => measure(args, web(), config, n_objects, args.warm),
        Workload::Video => measure(args, Video::published(seed), config, n_objects, args.warm),
        Workload::Mixed => {
            let mixed = Mixed::new(web(), N_WEB, 0.7, Video::published(seed), seed);
            measure(args, mixed, config, n_objects, args.warm)
        }
        Workload::Scans => measure(args, scans(1_000), config, n_objects, args.warm),
        Workload::OneTimers => measure(args, scans(1), config, n_objects, args.warm),
        Workload::Drift => {
            let drift = Drift {
                popular: web(),
                n_until_shift: DRIFT_EVERY,
            };
            measure(args, drift, config, n_objects, args.warm)
        }
    }
}

fn measure(
    args: &RatesArgs,
    mut requests: impl Requests,
    config: &PolicyConfig,
    n_objects: u32,
    n_warm: u64,
) -> anyhow::Result<Counts> {
    let mut simulation = Simulation::new(config, n_objects as usize)?;
    simulation.run(&mut requests, n_warm);
    let warm = *simulation.counts();
    let n_run = simulation.run(&mut requests, args.requests);
    ensure!(n_run > 0, "no request is left to measure");
    Ok(simulation.counts().since(&warm))
}
