//! Whether the simulator is right: each policy on independent references to 10^7
//! objects of Zipf popularity 0.8, beside what independent simulators and the closed
//! form say.

use std::fmt;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use serde::Serialize;
use tachonym_policy::{AdmissionKind, CountersKind, EvictionKind, PolicyConfig};

use super::simulate::Simulation;
use super::workload::Independent;
use crate::output;

/// Simulates every policy on independent references, and compares with known hit ratios
#[derive(Args, Clone, Debug)]
pub(super) struct ValidateArgs {
    /// Requests before measurement begins
    #[arg(long, default_value_t = 20_000_000, value_name = "N")]
    warm: u64,
    /// Requests that are measured
    #[arg(long, default_value_t = 30_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Policies to simulate, by their names in the table [default: all]
    #[arg(long, value_name = "POLICY")]
    only: Vec<String>,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

const N_OBJECTS: u32 = 10_000_000;
const ALPHA: f64 = 0.8;
const CACHE: usize = 100_000;

/// One policy.
#[derive(Clone, Debug, Serialize)]
struct Row {
    policy: String,
    hit_ratio: f64,
    /// What it should be; `None` where nobody said.
    known: Option<f64>,
    insertion_ratio: f64,
    known_insertion: Option<f64>,
    /// Millions of requests per second of this process.
    requests_m_per_s: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    n_warm: u64,
    n_requests: u64,
    /// The best that a cache which never changes can do.
    static_hit_ratio: f64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{N_OBJECTS} objects, Zipf {ALPHA}, independent references, cache {CACHE}; {} requests \
             to warm, {} measured\nbest static set: {:.4} (closed form), known 0.3761\n\n\
             | policy | hit ratio | known | off by | Data inserted | known | M requests/s |\n\
             |---|---|---|---|---|---|---|",
            self.n_warm, self.n_requests, self.static_hit_ratio
        )?;
        for row in &self.rows {
            let or_none = |text: Option<String>| text.unwrap_or_default();
            writeln!(
                f,
                "| {} | {:.4} | {} | {} | {:.4} | {} | {:.1} |",
                row.policy,
                row.hit_ratio,
                or_none(row.known.map(|known| format!("{known}"))),
                or_none(
                    row.known
                        .map(|known| format!("{:+.4}", row.hit_ratio - known))
                ),
                row.insertion_ratio,
                or_none(row.known_insertion.map(|known| format!("{known}"))),
                row.requests_m_per_s,
            )?;
        }
        Ok(())
    }
}

struct Case {
    name: &'static str,
    config: PolicyConfig,
    known: Option<f64>,
    known_insertion: Option<f64>,
}

/// What is simulated, and what is known of it.
fn cases() -> Vec<Case> {
    use {AdmissionKind as A, EvictionKind as E};
    let case = |name, admission, eviction, known: &[f64]| Case {
        name,
        config: PolicyConfig::new(admission, eviction, CACHE),
        known: known.first().copied(),
        known_insertion: known.get(1).copied(),
    };
    let exact = |case: Case| Case {
        config: PolicyConfig {
            counters: CountersKind::Exact,
            ..case.config
        },
        ..case
    };
    vec![
        case("fifo", A::None, E::Fifo, &[0.2242]),
        case("random", A::None, E::Random, &[0.2242]),
        case("lru", A::None, E::Lru, &[0.2483]),
        case("clock", A::None, E::Clock, &[0.2575]),
        case("2q", A::None, E::TwoQ, &[0.338]),
        case("sieve", A::None, E::Sieve, &[0.342]),
        case("lirs", A::None, E::Lirs, &[0.349]),
        case("arc", A::None, E::Arc, &[0.350]),
        case("s3-fifo", A::None, E::S3Fifo, &[0.355]),
        case("w-tinylfu", A::WTinyLfu, E::Slru, &[0.358]),
        case("tinylfu/random", A::TinyLfu, E::Random, &[0.3655]),
        case("lfu-perfect", A::None, E::LfuPerfect, &[0.374]),
        exact(case(
            "filter-exact/fifo",
            A::Filter,
            E::Fifo,
            &[0.324, 0.029],
        )),
        exact(case(
            "filter-exact/clock",
            A::Filter,
            E::Clock,
            &[0.357, 0.020],
        )),
        case("filter/fifo", A::Filter, E::Fifo, &[]),
        case("filter/clock", A::Filter, E::Clock, &[]),
        case("filter/gclock", A::Filter, E::Gclock, &[]),
        case("filter/sieve", A::Filter, E::Sieve, &[]),
        case("filter/lfu", A::Filter, E::Lfu, &[]),
        case("filter/lfu-local", A::Filter, E::LfuLocal, &[]),
        case("lcp/lru", A::Lcp, E::Lru, &[]),
        case("gclock", A::None, E::Gclock, &[]),
        case("slru", A::None, E::Slru, &[]),
        case("lfu", A::None, E::Lfu, &[]),
        case("lfu-local", A::None, E::LfuLocal, &[]),
    ]
}

/// Runs the command.
///
/// # Errors
/// If a policy of `--only` is not known, or the tables cannot be built.
pub(super) fn run(args: &ValidateArgs) -> anyhow::Result<()> {
    let cases = cases();
    for name in &args.only {
        let names: Vec<_> = cases.iter().map(|case| case.name).collect();
        let is_known = names.iter().any(|known| known == name);
        ensure!(
            is_known,
            "unknown policy {name}; use one of {}",
            names.join(", ")
        );
    }
    let requests = Independent::new(N_OBJECTS, ALPHA, args.seed);
    let mut rows = Vec::new();
    for case in cases {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == case.name) {
            continue;
        }
        let mut requests = requests.clone();
        let mut simulation = Simulation::new(&case.config, N_OBJECTS as usize)?;
        simulation.run(&mut requests, args.warm);
        let warm = *simulation.counts();
        let begun = Instant::now();
        simulation.run(&mut requests, args.requests);
        let elapsed = begun.elapsed();
        let counts = simulation.counts().since(&warm);
        rows.push(Row {
            policy: case.name.to_owned(),
            hit_ratio: counts.hit_ratio(),
            known: case.known,
            insertion_ratio: counts.insertion_ratio(),
            known_insertion: case.known_insertion,
            requests_m_per_s: args.requests as f64 / elapsed.as_secs_f64() / 1e6,
        });
        eprintln!("{}: {:.4}", case.name, counts.hit_ratio());
    }
    let report = Report {
        n_warm: args.warm,
        n_requests: args.requests,
        static_hit_ratio: (0..CACHE as u32)
            .map(|rank| requests.probability(rank))
            .sum(),
        rows,
    };
    output::print(&report, args.json)
}
