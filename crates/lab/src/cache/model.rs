//! What the analytical model expects of Filter, and what is simulated: Figure 4 of
//! Takemasa et al. 2019.

use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tachonym_policy::model::{EvictionModel, FilterModel, Popularity};
use tachonym_policy::{AdmissionKind, CountersKind, EvictionKind, PolicyConfig};

use super::plot::{self, Chart};
use super::simulate::Simulation;
use super::workload::Independent;
use crate::output;

const ALPHA: f64 = 0.8;
/// Histories of the figure.
const HISTORIES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Computes what Filter is expected to do by threshold and history, beside a simulation
/// (figure 4)
#[derive(Args, Clone, Debug)]
pub(super) struct ModelArgs {
    /// Objects
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    objects: u32,
    /// Data in the cache
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    cache: usize,
    /// Thresholds
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,3,4,5,7,10,15,20,30"
    )]
    thresholds: Vec<u32>,
    /// Requests before measurement begins
    #[arg(long, default_value_t = 20_000_000, value_name = "N")]
    warm: u64,
    /// Requests that are measured
    #[arg(long, default_value_t = 20_000_000, value_name = "N",
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
    history_len: usize,
    threshold: u32,
    expected_hit_ratio: f64,
    hit_ratio: f64,
    expected_insertion_ratio: f64,
    insertion_ratio: f64,
    /// How long a Data stays, in requests, as expected.
    characteristic_requests: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    n_objects: u32,
    capacity: usize,
    n_warm: u64,
    n_requests: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Filter over FIFO, exact counters: {} objects, Zipf {ALPHA}, cache {}; {} requests to \
             warm, {} measured\n\n\
             | history | threshold | hit ratio by the model | simulated | Data inserted by the \
             model | simulated | stays, requests |\n|---|---|---|---|---|---|---|",
            self.n_objects, self.capacity, self.n_warm, self.n_requests
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {:.4} | {:.4} | {:.5} | {:.5} | {:.3e} |",
                row.history_len,
                row.threshold,
                row.expected_hit_ratio,
                row.hit_ratio,
                row.expected_insertion_ratio,
                row.insertion_ratio,
                row.characteristic_requests
            )?;
        }
        writeln!(
            f,
            "\nThe model is for the long run: where little is inserted, a cache that begins empty \
             has not got there when measurement ends."
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, or the drawing cannot be written.
pub(super) fn run(args: &ModelArgs) -> anyhow::Result<()> {
    let popularity = Popularity::zipf(u64::from(args.objects), ALPHA);
    let requests = Independent::new(args.objects, ALPHA, args.seed);
    let mut rows = Vec::new();
    for history_len in HISTORIES {
        for &threshold in &args.thresholds {
            let model = FilterModel {
                capacity: args.cache as f64,
                history_len: history_len as f64,
                threshold,
                eviction: EvictionModel::FifoOrRandom,
            };
            let expected = model.expected(&popularity);
            let config = PolicyConfig {
                threshold,
                history_len: Some(history_len),
                counters: CountersKind::Exact,
                ..PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, args.cache)
            };
            let mut requests = requests.clone();
            let mut simulation = Simulation::new(&config, args.objects as usize)?;
            simulation.run(&mut requests, args.warm);
            let warm = *simulation.counts();
            simulation.run(&mut requests, args.requests);
            let counts = simulation.counts().since(&warm);
            rows.push(Row {
                history_len,
                threshold,
                expected_hit_ratio: expected.hit_ratio,
                hit_ratio: counts.hit_ratio(),
                expected_insertion_ratio: expected.insertion_ratio,
                insertion_ratio: counts.insertion_ratio(),
                characteristic_requests: expected.characteristic_requests,
            });
        }
    }
    let report = Report {
        n_objects: args.objects,
        capacity: args.cache,
        n_warm: args.warm,
        n_requests: args.requests,
        rows,
    };
    if let Some(path) = &args.svg {
        let hits = chart(&report, "hit ratio", |row| {
            [row.expected_hit_ratio, row.hit_ratio]
        });
        let inserts = chart(&report, "Data inserted", |row| {
            [row.expected_insertion_ratio, row.insertion_ratio]
        });
        plot::draw(&[inserts, hits], path)
            .with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

fn chart(report: &Report, y: &'static str, values: impl Fn(&Row) -> [f64; 2]) -> Chart {
    let mut lines = Vec::new();
    for history_len in HISTORIES {
        for (idx, how) in ["model", "simulated"].into_iter().enumerate() {
            let rows = report
                .rows
                .iter()
                .filter(|row| row.history_len == history_len);
            let points = rows.map(|row| (f64::from(row.threshold), values(row)[idx]));
            lines.push((format!("history {history_len}, {how}"), points.collect()));
        }
    }
    Chart {
        title: format!("Filter: {y}"),
        x: "threshold",
        y,
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_expects_what_is_simulated() {
        let n_objects = 20_000;
        let popularity = Popularity::zipf(u64::from(n_objects), ALPHA);
        for eviction in [EvictionModel::FifoOrRandom, EvictionModel::Lru] {
            for (history_len, threshold) in [(500, 1), (500, 2), (3_000, 2), (3_000, 4)] {
                // The LRU approximation is for admissions that do not depend on the past; a
                // history much longer than the cache is large strains that too far.
                if eviction == EvictionModel::Lru && history_len > 500 {
                    continue;
                }
                let model = FilterModel {
                    capacity: 500.0,
                    history_len: history_len as f64,
                    threshold,
                    eviction,
                };
                let expected = model.expected(&popularity);
                let kind = match eviction {
                    EvictionModel::FifoOrRandom => EvictionKind::Random,
                    EvictionModel::Lru => EvictionKind::Lru,
                };
                let config = PolicyConfig {
                    threshold,
                    history_len: Some(history_len),
                    counters: CountersKind::Exact,
                    ..PolicyConfig::new(AdmissionKind::Filter, kind, 500)
                };
                let mut requests = Independent::new(n_objects, ALPHA, 1);
                let mut simulation =
                    Simulation::new(&config, n_objects as usize).expect("a small cache");
                simulation.run(&mut requests, 400_000);
                let warm = *simulation.counts();
                simulation.run(&mut requests, 800_000);
                let counts = simulation.counts().since(&warm);
                let what = format!("{config:?}: {expected:?}, {counts:?}");
                assert!(
                    (counts.hit_ratio() - expected.hit_ratio).abs() < 0.012,
                    "{what}"
                );
                let insertion = counts.insertion_ratio();
                let off = (insertion - expected.insertion_ratio).abs();
                // The equations take requests for a name not cached for any others, though
                // none may have come for as long as it had been cached.
                assert!(off < 0.01 + 0.15 * insertion, "{what}");
            }
        }
    }
}
