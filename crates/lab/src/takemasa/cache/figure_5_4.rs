//! What the analytical model expects of Filter, and what is simulated: Figure 4 of
//! Takemasa et al. 2019.

use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tachonym_policy::model::{EvictionModel, FilterModel, Popularity};
use tachonym_policy::{AdmissionKind, CountersKind, EvictionKind, PolicyConfig};

use super::plot::{self, Axis, Chart, Line};
use super::sources::{ALPHA, Cell, Workload, simulate_all};
use crate::output;

/// Data in the cache of the figure, of 10^7 objects.
const CACHE: usize = 100_000;

/// Computes the expected hit and insertion ratio of Filter by threshold and history, and simulates
/// it (figure 4)
#[derive(Args, Clone, Debug)]
pub(super) struct ModelArgs {
    /// Published size: 10^7 objects, and 10^5 Data in the cache; takes many minutes
    #[arg(long)]
    full: bool,
    /// Divides the numbers of objects, of Data in the cache and of requests in the history by this,
    /// without --full
    #[arg(long, default_value_t = 20, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    shrink: u32,
    /// Thresholds [default: 1 to 30]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    thresholds: Vec<u32>,
    /// Requests before measurement begins, as a multiple of the size of the cache
    #[arg(long, default_value_t = 150, value_name = "N")]
    warm_by_len: u64,
    /// Requests that are measured, as a multiple of the size of the cache
    #[arg(long, default_value_t = 100, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests_by_len: u64,
    /// Simulations at the same time
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: u16,
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
    histories: [usize; 3],
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
            "\nNo number of the figure is in the text, which says of it that few Data are inserted \
             from threshold 3 on with every history, and that threshold 2 is next to the best for \
             hits.\nThe model is for the long run: where little is inserted, a cache that begins \
             empty has not got there when measurement ends."
        )?;
        self.histories.iter().try_for_each(|&history_len| {
            let rows = self
                .rows
                .iter()
                .filter(|row| row.history_len == history_len);
            let best = |value: &dyn Fn(&Row) -> f64| {
                let best = rows.clone().max_by(|a, b| value(a).total_cmp(&value(b)));
                best.map_or(String::new(), |row| {
                    format!("{}: {:.4}", row.threshold, value(row))
                })
            };
            writeln!(
                f,
                "history {history_len}: best threshold by the model {}, simulated {}",
                best(&|row| row.expected_hit_ratio),
                best(&|row| row.hit_ratio)
            )
        })
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, or the drawing cannot be written.
pub(super) fn run(args: &ModelArgs) -> anyhow::Result<()> {
    let shrink = if args.full { 1 } else { args.shrink };
    let n_objects = Workload::Web.n_objects(shrink);
    let capacity = (CACHE / shrink as usize).max(10);
    let histories = [capacity / 10, capacity, 10 * capacity];
    let thresholds = match args.thresholds.as_slice() {
        [] => (1..=30).collect(),
        thresholds => thresholds.to_vec(),
    };
    let popularity = Popularity::zipf(u64::from(n_objects), ALPHA);
    let mut cells = Vec::new();
    let mut expected = Vec::new();
    for history_len in histories {
        // What no name can reach is no threshold.
        for &threshold in thresholds.iter().filter(|&&n| n as usize <= history_len) {
            let model = FilterModel {
                capacity: capacity as f64,
                history_len: history_len as f64,
                threshold,
                eviction: EvictionModel::FifoOrRandom,
            };
            expected.push(model.expected(&popularity));
            cells.push(Cell {
                workload: Workload::Web,
                shrink,
                config: PolicyConfig {
                    threshold,
                    history_len: Some(history_len),
                    counters: CountersKind::Exact,
                    ..PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Fifo, capacity)
                },
                n_warm: args.warm_by_len * capacity as u64,
                n_requests: args.requests_by_len * capacity as u64,
                seed: args.seed,
            });
        }
    }
    let mut rows = Vec::new();
    let results = simulate_all(&cells, usize::from(args.threads));
    for ((cell, expected), counts) in cells.iter().zip(expected).zip(results) {
        let counts = counts?;
        rows.push(Row {
            history_len: cell.config.history_len.unwrap_or(capacity),
            threshold: cell.config.threshold,
            expected_hit_ratio: expected.hit_ratio,
            hit_ratio: counts.hit_ratio(),
            expected_insertion_ratio: expected.insertion_ratio,
            insertion_ratio: counts.insertion_ratio(),
            characteristic_requests: expected.characteristic_requests,
        });
    }
    let report = Report {
        n_objects,
        capacity,
        histories,
        n_warm: args.warm_by_len * capacity as u64,
        n_requests: args.requests_by_len * capacity as u64,
        rows,
    };
    if let Some(path) = &args.svg {
        let hits = chart(&report, "hits by Interests", |row| {
            [row.expected_hit_ratio, row.hit_ratio]
        });
        let inserts = chart(&report, "insertions by Data that arrive", |row| {
            [row.expected_insertion_ratio, row.insertion_ratio]
        });
        plot::draw(&[inserts, hits], path)
            .with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

fn chart(report: &Report, y: &str, values: impl Fn(&Row) -> [f64; 2]) -> Chart {
    let mut lines: Vec<Line> = Vec::new();
    for history_len in &report.histories {
        let simulated = lines.len();
        for (idx, how) in ["model", "simulated"].into_iter().enumerate().rev() {
            let rows = report.rows.iter();
            let rows = rows.filter(|row| row.history_len == *history_len);
            let points = rows.map(|row| (f64::from(row.threshold), values(row)[idx]));
            lines.push(Line {
                label: format!("history {history_len}, {how}"),
                points: points.collect(),
                model_of: (idx == 0).then_some(simulated),
            });
        }
    }
    Chart {
        x_axis: Axis::Linear,
        title: format!("Figure 4, {y}"),
        x: "threshold".to_owned(),
        y: y.to_owned(),
        lines,
        published: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulate::Simulation;
    use super::super::workload::Independent;
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
