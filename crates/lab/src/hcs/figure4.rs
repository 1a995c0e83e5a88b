//! Figure 4 of Mansilha et al. 2017: whether an emulated second level is as fast as it is
//! told to be.

use std::fmt;

use clap::Args;
use serde::Serialize;

use super::bed::{OutputArgs, Scale, Scaled, a_rate, log_chart};
use super::catalogue::Bytes;
use super::emulated::{Delay, Memory};
use super::fit::Mean;
use super::published;
use super::recipe::{Needs, Pace, Recipe, StoreArgs, Told};
use super::store::{measure, warm};
use super::workload::{Kind, Requests};

/// Measures the rate of an emulated second level against the configured rate (figure 4)
#[derive(Args, Clone, Debug)]
pub(super) struct Figure4Args {
    #[command(flatten)]
    scale: Scale,
    /// |L1|
    #[arg(long, default_value = "1GB", value_name = "SIZE")]
    l1: Bytes,
    /// |L2|, which is the catalogue
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    l2: Bytes,
    /// Rates of the second level, in Gbit/s
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "GBPS",
        default_value = "1,2,4,8,16,32,64",
        value_parser = a_rate
    )]
    rates: Vec<f64>,
    /// Requests of a run [default: the chunks of the catalogue, at most 40,000 without --full]
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    memory: Memory,
    delay: Delay,
    target_gbps: f64,
    observed_gbps: Mean,
    /// By the target.
    ratio: f64,
    /// The rate of both levels together.
    gbps: Mean,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    scaled: Scaled,
    told: Told,
    l1_bytes: u64,
    l2_bytes: u64,
    n_requests: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Figure 4: {}, |L1| = {}, |L2| = |C| = {}, Real, {} requests a run; \
             {}\n\n| memory | delay | configured, Gbit/s | observed, Gbit/s | observed / \
             configured | both levels, Gbit/s |\n|---|---|---|---|---|---|",
            self.told,
            Bytes(self.l1_bytes),
            Bytes(self.l2_bytes),
            self.n_requests,
            self.scaled
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {:?} | {:?} | {} | {} | {:.3} | {} |",
                row.memory, row.delay, row.target_gbps, row.observed_gbps, row.ratio, row.gbps
            )?;
        }
        writeln!(f, "\n{}.", published::FIGURE_4)
    }
}

/// Runs the command.
///
/// # Errors
/// If there is not as much memory, the store is a disk, or the drawing cannot be written.
pub(super) fn run(args: &Figure4Args) -> anyhow::Result<()> {
    let instead = "`disk` and `ssd serve` measure it; this is about emulated ones";
    args.store.refuse_disk(instead)?;
    let scale = &args.scale;
    let catalogue = scale.catalogue(args.l2);
    let settings = scale.settings(catalogue);
    let l1_chunks = scale.size(args.l1).chunks();
    let most = if scale.is_full() { u64::MAX } else { 40_000 };
    let n_requests = args.requests.unwrap_or(catalogue.n_chunks().min(most));
    let mut rows = Vec::new();
    for memory in [Memory::Dynamic, Memory::Static] {
        let needs = Needs {
            catalogue,
            l1_chunks,
            n_stores: 1,
            batch_chunks: scale.batch_chunks(),
            memory,
        };
        let recipe = Recipe::new(&args.store, &needs)?;
        let mut samples = Vec::new();
        for seed in scale.seeds() {
            for delay in [Delay::Sleep, Delay::Busy] {
                for &rate_gbps in &args.rates {
                    let pace = Pace { delay, rate_gbps };
                    let mut store = recipe.make(l1_chunks as usize, pace)?;
                    let mut requests = Requests::new(Kind::Real, &settings, seed);
                    let n_warm = scale.n_warm(l1_chunks);
                    warm(&mut *store, &mut requests, n_warm, |_| true);
                    let measured = measure(&mut *store, &mut requests, n_requests, |_| true);
                    measured.counts.ensure_answered()?;
                    eprintln!(
                        "{memory:?}, {delay:?}, {rate_gbps} Gbit/s: {:?}",
                        measured.counts.second_gbps()
                    );
                    samples.push((delay, rate_gbps, measured));
                }
            }
        }
        for delay in [Delay::Sleep, Delay::Busy] {
            for &target_gbps in &args.rates {
                let of_row = samples
                    .iter()
                    .filter(|it| (it.0, it.1) == (delay, target_gbps));
                let observed = of_row.clone().filter_map(|it| it.2.counts.second_gbps());
                let gbps = of_row.map(|it| it.2.gbps());
                let observed = Mean::of(&observed.collect::<Vec<_>>());
                let gbps = Mean::of(&gbps.collect::<Vec<_>>());
                let Some((observed_gbps, gbps)) = observed.zip(gbps) else {
                    continue;
                };
                rows.push(Row {
                    memory,
                    delay,
                    target_gbps,
                    observed_gbps,
                    ratio: observed_gbps.mean / target_gbps,
                    gbps,
                });
            }
        }
    }
    let report = Report {
        scaled: scale.scaled(),
        told: args.store.told(None, None),
        l1_bytes: l1_chunks * super::catalogue::CHUNK_BYTES,
        l2_bytes: catalogue.size().0,
        n_requests,
        rows,
    };
    args.output.finish(&report, || {
        let charts = [Delay::Sleep, Delay::Busy].map(|delay| {
            let mut lines: Vec<(String, Vec<(f64, f64)>)> = [Memory::Dynamic, Memory::Static]
                .map(|memory| {
                    let rows = report.rows.iter();
                    let rows = rows.filter(|row| (row.memory, row.delay) == (memory, delay));
                    let points = rows.map(|row| (row.target_gbps, row.observed_gbps.mean));
                    (format!("{memory:?}"), points.collect())
                })
                .into();
            let identity = args.rates.iter().map(|&rate| (rate, rate));
            lines.push(("as configured".to_owned(), identity.collect()));
            log_chart(
                format!("Figure 4: {delay:?}"),
                "configured rate, Gbit/s",
                "rate observed, Gbit/s",
                lines,
            )
        });
        charts.into()
    })
}
