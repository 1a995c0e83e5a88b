//! How many requests a second the simulator takes on one core.

use std::fmt;

use anyhow::Context as _;
use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::simulate::{Requests, Simulation};
use super::sources::{N_WEB, policy};
use super::workload::Independent;
use crate::output;
use crate::stats::Spread;

/// Measures the requests per second of the simulator, with requests drawn before and during the run
#[derive(Args, Clone, Debug)]
pub(super) struct SpeedArgs {
    /// Objects of Zipf popularity 0.8
    #[arg(long, default_value_t = N_WEB, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    objects: u32,
    /// Data in the cache
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    cache: usize,
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "fifo,lru,sieve,filter/fifo"
    )]
    policies: Vec<String>,
    /// Requests before measurement begins
    #[arg(long, default_value_t = 5_000_000, value_name = "N")]
    warm: u64,
    /// Rounds, each of which measures every policy
    #[arg(long, default_value_t = 11, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Requests of a round, of each policy
    #[arg(long, default_value_t = 2_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    requests: u32,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// Millions of requests a second.
#[derive(Clone, Debug, Serialize)]
struct Row {
    policy: String,
    /// Of requests that lie in memory, one after the other.
    drawn_before: Spread,
    /// Drawing included.
    drawn_meanwhile: Spread,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    n_objects: u32,
    capacity: usize,
    n_requests: u32,
    /// Drawing alone.
    drawing: Spread,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spread = |s: &Spread| format!("{:.1} ({:.1}-{:.1})", s.median, s.p10, s.p90);
        writeln!(
            f,
            "{} objects, Zipf 0.8, cache {}; rounds of {} requests; million requests a second of \
             one \
             core's time, median (p10-p90)\n\n\
             | policy | requests drawn before | drawn during the run |\n|---|---|---|",
            self.n_objects, self.capacity, self.n_requests
        )?;
        for row in &self.rows {
            let (before, meanwhile) = (spread(&row.drawn_before), spread(&row.drawn_meanwhile));
            writeln!(f, "| {} | {before} | {meanwhile} |", row.policy)?;
        }
        writeln!(f, "| drawing alone | | {} |", spread(&self.drawing))
    }
}

/// Requests that were drawn before.
struct Drawn<'a>(&'a [u32]);

impl Requests for Drawn<'_> {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        let n = objects.len().min(self.0.len());
        let (here, rest) = self.0.split_at(n);
        objects[..n].copy_from_slice(here);
        self.0 = rest;
        n
    }
}

/// Millions a second of this thread's own time, in which others that want the processor do
/// not count.
fn rate_of(n_requests: u32, work: impl FnOnce()) -> f64 {
    let now_ns = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let begun_ns = now_ns();
    work();
    f64::from(n_requests) * 1e3 / (now_ns() - begun_ns).max(1.0)
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy, or not as much memory.
pub(super) fn run(args: &SpeedArgs) -> anyhow::Result<()> {
    let mut requests = Independent::new(args.objects, 0.8, args.seed);
    let mut beds = Vec::new();
    for name in &args.policies {
        let config = policy(name, args.cache)?;
        let mut simulation = Simulation::new(&config, args.objects as usize)?;
        simulation.run(&mut requests.clone(), args.warm);
        beds.push((name, simulation, [Vec::new(), Vec::new()]));
    }
    let mut drawn = vec![0; args.requests as usize];
    let mut drawing = Vec::new();
    for round in 0..usize::from(args.rounds) {
        drawing.push(rate_of(args.requests, || {
            requests.fill(&mut drawn);
        }));
        for turn in 0..beds.len() {
            let n_beds = beds.len();
            let (_, simulation, [before, meanwhile]) = &mut beds[(turn + round) % n_beds];
            before.push(rate_of(args.requests, || {
                simulation.run(&mut Drawn(&drawn), args.requests.into());
            }));
            meanwhile.push(rate_of(args.requests, || {
                simulation.run(&mut requests, args.requests.into());
            }));
        }
    }
    let mut rows = Vec::new();
    for (name, _, [before, meanwhile]) in &beds {
        rows.push(Row {
            policy: (*name).clone(),
            drawn_before: Spread::of(before).context("no round")?,
            drawn_meanwhile: Spread::of(meanwhile).context("no round")?,
        });
    }
    let report = Report {
        n_objects: args.objects,
        capacity: args.cache,
        n_requests: args.requests,
        drawing: Spread::of(&drawing).context("no round")?,
        rows,
    };
    output::print(&report, args.json)
}
