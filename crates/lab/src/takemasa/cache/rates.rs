//! Insertion and hit ratios by the size of the cache, of any policies on any workload or
//! trace. Figures 5 and 6 of Takemasa et al. 2019 are in [`super::figures`].

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Serialize;
use tachonym_policy::PolicyConfig;

use super::plot::{self, Axis, Chart, Line};
use super::published;
use super::simulate::{Counts, Simulation};
pub(super) use super::sources::policy;
use super::sources::{Cell, Workload};
use crate::output;
use crate::workloads::trace::{Trace, TraceFormat};

/// What the drawings show.
const INSERTIONS: &str = "insertions by Data that arrive";
const HITS: &str = "hits by Interests";

/// Simulates any policies over cache sizes, on a workload or a trace
#[derive(Args, Clone, Debug)]
pub(super) struct RatesArgs {
    /// Workload
    #[arg(long, value_enum, default_value = "web", conflicts_with = "trace")]
    workload: Workload,
    /// Reads requests from this file instead
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_enum, default_value = "csv")]
    format: TraceFormat,
    /// Column of the name in a line, counted from 1
    #[arg(long, default_value_t = 2, value_name = "N")]
    column: usize,
    /// Sizes of the cache, in Data [default: 1 to 10 % of the objects]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "fifo,random,lfu,arc,tinylfu/random,filter/fifo,filter-auto/gclock"
    )]
    policies: Vec<String>,
    /// Requests before measurement begins; of a trace, they are counted too
    #[arg(long, default_value_t = 20_000_000, value_name = "N")]
    warm: u64,
    /// Requests that are measured
    #[arg(long, default_value_t = 30_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Writes a chart of the result to this SVG file
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

/// Runs the command.
///
/// # Errors
/// If a trace cannot be read, there is no such policy, or the drawing cannot be written.
pub(super) fn run(args: &RatesArgs) -> anyhow::Result<()> {
    let trace = match &args.trace {
        Some(path) => Some(Trace::read(path, args.format, args.column)?),
        None => None,
    };
    let (n_objects, n_cacheable) = match &trace {
        Some(trace) => (trace.n_objects(), trace.n_objects()),
        None => (args.workload.n_objects(1), args.workload.n_cacheable(1)),
    };
    let sizes: Vec<usize> = if args.sizes.is_empty() {
        let percent = n_cacheable as usize / 100;
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
    let what = match &args.trace {
        Some(path) => path.display().to_string(),
        None => args.workload.label().to_owned(),
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
            chart(&report, INSERTIONS, |row| row.insertion_ratio),
            chart(&report, HITS, |row| row.hit_ratio),
        ];
        plot::draw(&charts, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

fn chart(report: &Report, y: &str, value: impl Fn(&Row) -> f64) -> Chart {
    let mut lines: Vec<Line> = Vec::new();
    let mut published = Vec::new();
    for row in &report.rows {
        if lines.last().is_none_or(|line| line.label != row.policy) {
            lines.push(Line::new(row.policy.clone()));
        }
        let x = row.capacity as f64;
        if let Some(line) = lines.last_mut() {
            line.points.push((x, value(row)));
        }
        if let Some(ratio) = row.published_hit_ratio.filter(|_| y == HITS) {
            published.push((lines.len() - 1, (x, ratio)));
        }
    }
    Chart {
        x_axis: Axis::Linear,
        title: report.what.clone(),
        x: "Data in the cache".to_owned(),
        y: y.to_owned(),
        lines,
        published,
    }
}

fn simulate(
    args: &RatesArgs,
    trace: Option<&Trace>,
    config: &PolicyConfig,
    n_objects: u32,
) -> anyhow::Result<Counts> {
    let Some(trace) = trace else {
        let cell = Cell {
            workload: args.workload,
            shrink: 1,
            config: *config,
            n_warm: args.warm,
            n_requests: args.requests,
            seed: args.seed,
        };
        return cell.simulate();
    };
    let mut simulation = Simulation::new(config, n_objects as usize)?;
    let n_run = simulation.run(&mut trace.clone(), args.requests);
    ensure!(n_run > 0, "no request is left to measure");
    Ok(*simulation.counts())
}
