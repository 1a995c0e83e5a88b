//! What admission and eviction cost: blocks B2, B12 and B13 of Table 5.2, measured on the
//! policies alone.
//!
//! Each block is timed over all requests of a burst, on the web workload. What measuring
//! itself takes is taken off: the time of a policy that does nothing in B2 and B13.
//! Policies take turns in every round.

use std::time::Instant;

use anyhow::Context as _;
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;

use super::simulate::{BURST, BlockTimes, Simulation};
use super::sources::{ALPHA, N_WEB, policy};
use super::workload::Independent;

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    /// Objects of the web workload.
    pub(super) n_objects: u32,
    /// Data in the cache.
    pub(super) capacity: usize,
    /// Requests before measurement begins.
    pub(super) n_warm: u64,
    pub(super) n_rounds: usize,
    /// Bursts of [`BURST`] requests in a round.
    pub(super) n_bursts: u32,
    /// Whether data that blocks read are prefetched, as the router does, in their time.
    pub(super) is_ahead: bool,
    pub(super) seed: u64,
}

/// What the blocks of a policy take.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) policy: String,
    /// Hits by Interests, of the rounds.
    pub(super) hit_ratio: f64,
    /// Memory of the policy, in bytes.
    pub(super) memory_bytes: usize,
    /// B2, nanoseconds for each Interest, by round.
    pub(super) history_ns: Vec<f64>,
    /// B12, nanoseconds for each Data that is inserted; the insertion itself included.
    pub(super) evict_ns: Vec<f64>,
    /// B13, nanoseconds for each Data that arrives.
    pub(super) admit_ns: Vec<f64>,
    /// B2 for each Interest, and B12 and B13 where they come, for each Interest.
    pub(super) all_ns: Vec<f64>,
}

impl Measurement {
    /// A cache of `capacity` Data of the published web objects, or a hundred times as many
    /// objects as Data if that is fewer.
    pub(super) fn of(capacity: usize, n_rounds: usize, seed: u64) -> Self {
        let n_objects = u32::try_from(100 * capacity).unwrap_or(N_WEB).min(N_WEB);
        Self {
            n_objects,
            capacity,
            n_warm: 50 * capacity as u64,
            n_rounds,
            n_bursts: 4_000,
            is_ahead: true,
            seed,
        }
    }

    /// Measures what the blocks of each policy take.
    ///
    /// # Errors
    /// If there is no such policy, or not as much memory.
    pub(super) fn rows(&self, policies: &[String]) -> anyhow::Result<Vec<Row>> {
        let bed = |name: &str| {
            let config = policy(name, self.capacity)?;
            let mut simulation = Simulation::new(&config, self.n_objects as usize)?;
            let mut requests = Independent::new(self.n_objects, ALPHA, self.seed);
            simulation.run(&mut requests, self.n_warm);
            anyhow::Ok((simulation, requests))
        };
        let (mut idle, mut idle_requests) = bed(IDLE)?;
        let beds = policies.iter().map(|name| bed(name));
        let mut beds = beds.collect::<anyhow::Result<Vec<_>>>()?;
        let before: Vec<_> = beds.iter().map(|(bed, _)| *bed.counts()).collect();
        let clock_ns = clock_ns();
        let rounds = rotated(beds.len(), self.n_rounds, |case, _| {
            // What measuring takes, right before.
            let measuring = Taken::of(&mut idle, &mut idle_requests, self, clock_ns);
            let (simulation, requests) = &mut beds[case];
            let mut taken = Taken::of(simulation, requests, self, clock_ns);
            taken.history_ns = (taken.history_ns - measuring.history_ns).max(0.0);
            taken.admit_ns = (taken.admit_ns - measuring.admit_ns).max(0.0);
            Ok(taken)
        })?;
        let measured = policies.iter().zip(beds.iter().zip(before)).zip(rounds);
        let rows = measured.map(|((name, ((simulation, _), before)), rounds)| {
            let each = |value: &dyn Fn(&Taken) -> f64| rounds.iter().map(value).collect();
            Row {
                policy: name.clone(),
                hit_ratio: simulation.counts().since(&before).hit_ratio(),
                memory_bytes: simulation.policy().memory_bytes(),
                history_ns: each(&|it| it.history_ns),
                evict_ns: each(&|it| it.evict_ns),
                admit_ns: each(&|it| it.admit_ns),
                all_ns: each(&|it| {
                    it.history_ns
                        + it.admit_ns * it.n_data_by_request
                        + it.evict_ns * it.n_evicts_by_request
                }),
            }
        });
        Ok(rows.collect())
    }
}

impl Row {
    /// The medians of B2, B12 and B13.
    ///
    /// # Errors
    /// If there was no round.
    pub(super) fn medians(&self) -> anyhow::Result<[f64; 3]> {
        let [history, evict, admit] = [&self.history_ns, &self.evict_ns, &self.admit_ns]
            .map(|rounds| Spread::of(rounds).map(|spread| spread.median));
        let medians = history.zip(evict).zip(admit);
        let ((history, evict), admit) = medians.context("no round was measured")?;
        Ok([history, evict, admit])
    }
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
        measurement: &Measurement,
        clock_ns: f64,
    ) -> Self {
        let mut times = BlockTimes::default();
        let before = *simulation.counts();
        for _ in 0..measurement.n_bursts {
            simulation.run_burst_timed(requests, &mut times, measurement.is_ahead);
        }
        let counts = simulation.counts().since(&before);
        let n_clocks = f64::from(measurement.n_bursts) * clock_ns;
        let per = |ns: u64, n: u64, clocks: f64| {
            (ns as f64 - clocks * n_clocks).max(0.0) / n.max(1) as f64
        };
        let n_requests = u64::from(measurement.n_bursts) * BURST as u64;
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
