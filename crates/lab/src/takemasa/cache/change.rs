//! How fast a cache learns that all that was popular no longer is.

use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::plot::{self, Axis, Chart, Line};
use super::simulate::Simulation;
use super::sources::{ALPHA, N_WEB, policy};
use super::workload::Independent;
use crate::output;

/// Requests of a step of the curve.
const STEP: u64 = 250_000;

/// Changes the popularity of all objects at once, and measures how soon the policies adapt
#[derive(Args, Clone, Debug)]
pub(super) struct ChangeArgs {
    /// Data in the cache
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    cache: usize,
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "filter-auto/gclock,filter/gclock,filter/clock,filter/fifo,\
                           tinylfu/random,w-tinylfu/slru,sieve,s3-fifo,lru"
    )]
    policies: Vec<String>,
    /// Requests before measurement begins
    #[arg(long, default_value_t = 20_000_000, value_name = "N")]
    warm: u64,
    /// Requests over which the steady hit ratio is measured, before the change
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    steady: u64,
    /// Requests after the change
    #[arg(long, default_value_t = 15_000_000, value_name = "N")]
    after: u64,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Number of repetitions, each with the next seed
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    seeds: u16,
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
    /// Before the change, the mean over seeds.
    hit_ratio: f64,
    insertion_ratio: f64,
    /// By seed, requests after the change until a step of so many had 0.95 of that; `None`
    /// if none had.
    requests_to_95: Vec<Option<u64>>,
    /// The hit ratio of each step after the change, the mean over seeds.
    steps: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    capacity: usize,
    n_seeds: u16,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{N_WEB} objects, Zipf {ALPHA}, cache {}; all objects change places with others, and \
             hits are counted over steps of {STEP} requests; {} seeds, means, and of the requests \
             the \
             median (least-most)\n\n\
             | policy | steady hit ratio | Data inserted | requests to 95 % | after 1 M | 2.5 M | \
             5 M |\n\
             |---|---|---|---|---|---|---|",
            self.capacity, self.n_seeds
        )?;
        for row in &self.rows {
            let at = |n: u64| match row.steps.get((n / STEP) as usize - 1) {
                Some(ratio) => format!("{ratio:.4}"),
                None => String::new(),
            };
            let mut sorted = row.requests_to_95.clone();
            // What never got there took longest.
            sorted.sort_by_key(|n| n.unwrap_or(u64::MAX));
            let said = |n: Option<&Option<u64>>| match n.copied().flatten() {
                Some(n) => format!("{:.2}", n as f64 / 1e6),
                None => "not reached".to_owned(),
            };
            let (least, most) = (said(sorted.first()), said(sorted.last()));
            let reached = format!("{} M ({least}-{most})", said(sorted.get(sorted.len() / 2)));
            writeln!(
                f,
                "| {} | {:.4} | {:.4} | {reached} | {} | {} | {} |",
                row.policy,
                row.hit_ratio,
                row.insertion_ratio,
                at(1_000_000),
                at(2_500_000),
                at(5_000_000)
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy, or the drawing cannot be written.
pub(super) fn run(args: &ChangeArgs) -> anyhow::Result<()> {
    let n_seeds = f64::from(args.seeds);
    let mut rows = Vec::new();
    for name in &args.policies {
        let mut row = Row {
            policy: name.clone(),
            hit_ratio: 0.0,
            insertion_ratio: 0.0,
            requests_to_95: Vec::new(),
            steps: vec![0.0; (args.after / STEP) as usize],
        };
        for seed in 0..u64::from(args.seeds) {
            let mut simulation = Simulation::new(&policy(name, args.cache)?, N_WEB as usize)?;
            let mut requests = Independent::new(N_WEB, ALPHA, args.seed.wrapping_add(seed));
            simulation.run(&mut requests, args.warm);
            let warm = *simulation.counts();
            simulation.run(&mut requests, args.steady);
            let steady = simulation.counts().since(&warm);
            requests.shift_popularity(N_WEB / 2);
            let mut reached = None;
            for (step, mean) in (1..).zip(&mut row.steps) {
                let before = *simulation.counts();
                simulation.run(&mut requests, STEP);
                let ratio = simulation.counts().since(&before).hit_ratio();
                *mean += ratio / n_seeds;
                if reached.is_none() && ratio >= 0.95 * steady.hit_ratio() {
                    reached = Some(step * STEP);
                }
            }
            eprintln!("{name}: {:.4}, {reached:?}", steady.hit_ratio());
            row.hit_ratio += steady.hit_ratio() / n_seeds;
            row.insertion_ratio += steady.insertion_ratio() / n_seeds;
            row.requests_to_95.push(reached);
        }
        rows.push(row);
    }
    let report = Report {
        capacity: args.cache,
        n_seeds: args.seeds,
        rows,
    };
    if let Some(path) = &args.svg {
        let lines = report.rows.iter().map(|row| {
            let points = row.steps.iter().zip(1_u32..);
            let points = points.map(|(&ratio, n)| (f64::from(n) * STEP as f64 / 1e6, ratio));
            Line {
                points: points.collect(),
                ..Line::new(row.policy.clone())
            }
        });
        let chart = Chart {
            x_axis: Axis::Linear,
            title: "After all popularity has changed".to_owned(),
            x: "million requests since".to_owned(),
            y: "hits by Interests".to_owned(),
            lines: lines.collect(),
            published: Vec::new(),
        };
        plot::draw(&[chart], path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}
