//! How fast a cache learns that all that was popular no longer is.

use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::plot::{self, Chart};
use super::rates::policy;
use super::simulate::Simulation;
use super::workload::Independent;
use crate::output;

const N_OBJECTS: u32 = 10_000_000;
const ALPHA: f64 = 0.8;
/// Requests of a step of the curve.
const STEP: u64 = 250_000;

/// Changes the popularity of all objects at once, and tells when policies have learnt it
#[derive(Args, Clone, Debug)]
pub(super) struct ChangeArgs {
    /// Data in the cache
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    cache: usize,
    /// Policies: an eviction, or an admission and an eviction as in tinylfu/random
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
    /// Before the change.
    hit_ratio: f64,
    insertion_ratio: f64,
    /// Requests after the change until a step of so many had 0.95 of that; `None` if none
    /// had.
    requests_to_95: Option<u64>,
    /// The hit ratio of each step after the change.
    steps: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    capacity: usize,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{N_OBJECTS} objects, Zipf {ALPHA}, cache {}; all objects change places with others, and \
             hits are counted over steps of {STEP} requests\n\n\
             | policy | steady hit ratio | Data inserted | requests to 95 % | after 1 M | 2.5 M | 5 M |\n\
             |---|---|---|---|---|---|---|",
            self.capacity
        )?;
        for row in &self.rows {
            let at = |n: u64| match row.steps.get((n / STEP) as usize - 1) {
                Some(ratio) => format!("{ratio:.4}"),
                None => String::new(),
            };
            let reached = match row.requests_to_95 {
                Some(n) => format!("{:.2} M", n as f64 / 1e6),
                None => "not reached".to_owned(),
            };
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
    let popular = Independent::new(N_OBJECTS, ALPHA, args.seed);
    let mut rows = Vec::new();
    for name in &args.policies {
        let mut simulation = Simulation::new(&policy(name, args.cache)?, N_OBJECTS as usize)?;
        let mut requests = popular.clone();
        simulation.run(&mut requests, args.warm);
        let warm = *simulation.counts();
        simulation.run(&mut requests, args.steady);
        let steady = simulation.counts().since(&warm);
        requests.shift_popularity(N_OBJECTS / 2);
        let mut steps = Vec::new();
        for _ in 0..args.after / STEP {
            let before = *simulation.counts();
            simulation.run(&mut requests, STEP);
            steps.push(simulation.counts().since(&before).hit_ratio());
        }
        let is_learnt = |ratio: &f64| *ratio >= 0.95 * steady.hit_ratio();
        let reached = steps.iter().position(is_learnt);
        eprintln!("{name}: {:.4}, {reached:?}", steady.hit_ratio());
        rows.push(Row {
            policy: name.clone(),
            hit_ratio: steady.hit_ratio(),
            insertion_ratio: steady.insertion_ratio(),
            requests_to_95: reached.map(|step| (step as u64 + 1) * STEP),
            steps,
        });
    }
    let report = Report {
        capacity: args.cache,
        rows,
    };
    if let Some(path) = &args.svg {
        let lines = report.rows.iter().map(|row| {
            let points = row.steps.iter().zip(1_u32..);
            let points = points.map(|(&ratio, n)| (f64::from(n) * STEP as f64 / 1e6, ratio));
            (row.policy.clone(), points.collect())
        });
        let chart = Chart {
            title: "After all popularity has changed".to_owned(),
            x: "million requests since",
            y: "hit ratio",
            lines: lines.collect(),
        };
        plot::draw(&[chart], path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}
