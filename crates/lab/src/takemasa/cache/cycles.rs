//! What admission and eviction cost: blocks B2, B12 and B13 of Takemasa et al. 2019,
//! Table 2, measured on the policies alone.
//!
//! Each block is timed over all requests of a burst, on the web workload. What measuring
//! itself takes is taken off: the time of a policy that does nothing in B2 and B13.
//! Policies take turns in every round.

use std::fmt;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use super::published;
use super::simulate::{BURST, BlockTimes, Simulation};
use super::sources::{ALPHA, N_WEB, policy};
use super::workload::Independent;
use crate::output;
use crate::stats::Spread;

/// Measures history update (B2), eviction (B12) and admission (B13), and compares them with table 2
#[derive(Args, Clone, Debug)]
pub(super) struct CyclesArgs {
    /// Data in the cache
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    cache: u32,
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random;
    /// of Filter with counters by name, as in filter-row/fifo
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "fifo,random,lru,arc,tinylfu/random,filter/fifo,filter-row/fifo,\
                         filter-auto/gclock"
    )]
    policies: Vec<String>,
    /// Requests before measurement begins
    #[arg(long, default_value_t = 5_000_000, value_name = "N")]
    warm: u64,
    /// Rounds, each of which measures every policy
    #[arg(long, default_value_t = 45, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Bursts of 64 requests in a round
    #[arg(long, default_value_t = 4_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    bursts: u32,
    /// Prefetches the data that blocks read, as the router does, and includes that time
    #[arg(long)]
    ahead: bool,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// What the blocks of a policy take.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) policy: String,
    /// Hits by Interests, of the rounds.
    hit_ratio: f64,
    /// Memory of the policy, in bytes.
    memory_bytes: usize,
    /// B2, nanoseconds for each Interest.
    pub(super) history_ns: Spread,
    /// B12, nanoseconds for each Data that is inserted; the insertion itself included.
    pub(super) evict_ns: Spread,
    /// B13, nanoseconds for each Data that arrives.
    pub(super) admit_ns: Spread,
    /// B2 for each Interest, and B12 and B13 where they come, for each Interest.
    all_ns: Spread,
    /// B2, B13, and all by those of the first Filter, the median of the rounds' ratios.
    by_filter: Option<[f64; 3]>,
    published_cycles: Option<[f64; 3]>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    capacity: u32,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "web workload, cache {}; nanoseconds, median (p10-p90); published in cycles at 2.2 \
             GHz\n\n\
             | policy | B2 by Interest | published | B12 by insertion | published | B13 by Data | \
             published | all by Interest | hits | memory, MiB | B2, B13, all by Filter's |\n\
             |---|---|---|---|---|---|---|---|---|---|---|",
            self.capacity
        )?;
        for row in &self.rows {
            let spread = |s: &Spread| format!("{:.1} ({:.1}-{:.1})", s.median, s.p10, s.p90);
            let published = |block: usize| match row.published_cycles {
                Some(cycles) => format!("{:.0}", cycles[block]),
                None => String::new(),
            };
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {:.4} | {:.1} | {} |",
                row.policy,
                spread(&row.history_ns),
                published(0),
                spread(&row.evict_ns),
                published(1),
                spread(&row.admit_ns),
                published(2),
                spread(&row.all_ns),
                row.hit_ratio,
                output::mib(row.memory_bytes as u64),
                row.by_filter
                    .map_or(String::new(), |[b2, b13, all]| format!(
                        "{b2:.2}, {b13:.2}, {all:.2}"
                    ))
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy.
pub(super) fn run(args: &CyclesArgs) -> anyhow::Result<()> {
    let report = Report {
        capacity: args.cache,
        rows: measure(args)?,
    };
    output::print(&report, args.json)
}

impl CyclesArgs {
    /// For other commands: warm after 50 times as many requests as the cache has Data, with
    /// what blocks read fetched ahead.
    pub(super) fn of(policies: &[String], cache: u32, seed: u64, rounds: u16) -> Self {
        Self {
            cache,
            policies: policies.to_vec(),
            warm: 50 * u64::from(cache),
            rounds,
            bursts: 4_000,
            ahead: true,
            seed,
            json: false,
        }
    }
}

/// Measures what the blocks of each policy take.
///
/// # Errors
/// If there is no such policy.
pub(super) fn measure(args: &CyclesArgs) -> anyhow::Result<Vec<Row>> {
    let bed = |name: &str| {
        let config = policy(name, args.cache as usize)?;
        let mut simulation = Simulation::new(&config, N_WEB as usize)?;
        let mut requests = Independent::new(N_WEB, ALPHA, args.seed);
        simulation.run(&mut requests, args.warm);
        anyhow::Ok((simulation, requests))
    };
    let (mut idle, mut idle_requests) = bed(IDLE)?;
    let mut beds = Vec::new();
    for name in &args.policies {
        let (simulation, requests) = bed(name)?;
        let before = *simulation.counts();
        beds.push((name, simulation, requests, vec![Vec::new(); 4], before));
    }
    let clock_ns = clock_ns();
    for round in 0..usize::from(args.rounds) {
        let measuring = Taken::of(&mut idle, &mut idle_requests, args, clock_ns);
        for turn in 0..beds.len() {
            let n_beds = beds.len();
            let (_, simulation, requests, samples, _) = &mut beds[(turn + round) % n_beds];
            let taken = Taken::of(simulation, requests, args, clock_ns);
            let history_ns = (taken.history_ns - measuring.history_ns).max(0.0);
            let admit_ns = (taken.admit_ns - measuring.admit_ns).max(0.0);
            samples[0].push(history_ns);
            samples[1].push(taken.evict_ns);
            samples[2].push(admit_ns);
            samples[3].push(
                history_ns
                    + admit_ns * taken.n_data_by_request
                    + taken.evict_ns * taken.n_evicts_by_request,
            );
        }
    }
    let filter = beds.iter().find(|(name, ..)| name.starts_with("filter/"));
    let filter = filter.map(|(_, _, _, samples, _)| samples.clone());
    let mut rows = Vec::new();
    for (name, simulation, _, samples, before) in &beds {
        let spreads: Option<Vec<Spread>> = samples.iter().map(|s| Spread::of(s)).collect();
        let Some([history_ns, evict_ns, admit_ns, all_ns]) =
            spreads.and_then(|spreads| <[Spread; 4]>::try_from(spreads).ok())
        else {
            continue;
        };
        let by_filter = filter.as_ref().and_then(|filter| {
            let ratio = |block: usize| {
                let pairs = samples[block].iter().zip(&filter[block]);
                let ratios: Vec<f64> = pairs.map(|(own, filter)| own / filter).collect();
                Spread::of(&ratios).map(|spread| spread.median)
            };
            Some([ratio(0)?, ratio(2)?, ratio(3)?])
        });
        rows.push(Row {
            policy: (*name).clone(),
            hit_ratio: simulation.counts().since(before).hit_ratio(),
            memory_bytes: simulation.policy().memory_bytes(),
            history_ns,
            evict_ns,
            admit_ns,
            all_ns,
            by_filter,
            published_cycles: published::cycles(name),
        });
    }
    Ok(rows)
}

/// A policy that has nothing to do in B2 and B13: what these take with it is measuring.
const IDLE: &str = "fifo";

/// What the blocks of a policy took in a round, measuring included but for the clock.
struct Taken {
    history_ns: f64,
    evict_ns: f64,
    admit_ns: f64,
    n_data_by_request: f64,
    n_evicts_by_request: f64,
}

impl Taken {
    fn of(
        simulation: &mut Simulation,
        requests: &mut Independent,
        args: &CyclesArgs,
        clock_ns: f64,
    ) -> Self {
        let mut times = BlockTimes::default();
        let before = *simulation.counts();
        for _ in 0..args.bursts {
            simulation.run_burst_timed(requests, &mut times, args.ahead);
        }
        let counts = simulation.counts().since(&before);
        let n_clocks = f64::from(args.bursts) * clock_ns;
        let per = |ns: u64, n: u64, clocks: f64| {
            (ns as f64 - clocks * n_clocks).max(0.0) / n.max(1) as f64
        };
        let n_requests = u64::from(args.bursts) * BURST as u64;
        let n_data = counts.n_requests - counts.n_hits;
        Self {
            history_ns: per(times.history_ns, n_requests, 2.0),
            evict_ns: per(times.evict_ns, times.n_evicts, 1.0),
            admit_ns: per(times.admit_ns, n_data, 1.0),
            n_data_by_request: n_data as f64 / n_requests as f64,
            n_evicts_by_request: times.n_evicts as f64 / n_requests as f64,
        }
    }
}

/// What reading the clock itself takes.
fn clock_ns() -> f64 {
    let begun = Instant::now();
    let mut last = begun;
    for _ in 0..10_000 {
        last = Instant::now();
    }
    (last - begun).as_nanos() as f64 / 10_000.0
}
