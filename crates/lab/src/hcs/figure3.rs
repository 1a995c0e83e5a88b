//! Figure 3 of Mansilha et al. 2017: how fast a content store of one level is by how much it
//! has, alone and in the forwarding engine, and what of the machine that takes.

use std::fmt;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use super::bed::{OutputArgs, ensure_memory, first_bytes, log_chart};
use super::catalogue::{Bytes, Catalogue};
use super::dram::Dram;
use super::fit::Mean;
use super::forwarder::Forwarder;
use super::published;
use super::store::{Hcs, Measured, measure, warm};
use super::workload::{Kind, Requests, Settings};
use crate::process::Process;

/// Measures a one-level store that holds the whole catalogue, by its size: alone, and in the
/// forwarding engine (figure 3)
#[derive(Args, Clone, Debug)]
pub(super) struct Figure3Args {
    /// Sizes of the catalogue up to 8GB, instead of 1GB
    #[arg(long)]
    full: bool,
    /// Runs, each with a seed of its own
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    runs: u16,
    /// Seed of the first run
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Sizes of the catalogue
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE",
        conflicts_with = "full"
    )]
    sizes: Vec<Bytes>,
    /// Requests of a run, of each workload
    #[arg(long, default_value_t = 400_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1_000..))]
    requests: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Family {
    /// The tables alone.
    #[serde(rename = "CS")]
    Store,
    /// The whole engine.
    #[serde(rename = "FWD")]
    Engine,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "CS",
            Self::Engine => "FWD",
        })
    }
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    family: Family,
    size_bytes: u64,
    workload: Kind,
    gbps: Mean,
    /// Millions of chunks a second.
    mops: Mean,
    hit_ratio: f64,
    /// The processor's time by the clock's, filling not included.
    cpu_share: f64,
    /// Page faults that read a disk, of filling and of all runs.
    n_major_faults: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    n_runs: u16,
    seed: u64,
    n_requests: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Figure 3: everything fits in the store, one thread, bursts; each store is filled once \
             (published: 1 to 22 GB, ten times the size to warm and once to measure), then \
             {} requests of each workload in each of {} runs from seed {}; means with 95 % \
             confidence.\nCS finds the \
             Data and reads its ends; FWD is the engine, which copies the Data to send it\n\n\
             | | catalogue | workload | Gbit/s | million chunks/s | hits | CPU | major faults |\n\
             |---|---|---|---|---|---|---|---|",
            self.n_requests, self.n_runs, self.seed
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {:.1} | {:.3} | {:.4} | {:.0} % | {} |",
                row.family,
                Bytes(row.size_bytes),
                row.workload,
                row.gbps,
                row.mops,
                row.hit_ratio,
                row.cpu_share * 100.0,
                row.n_major_faults
            )?;
        }
        writeln!(f, "\n{}.", published::FIGURE_3)
    }
}

const PUBLISHED_HERE: [u64; 7] = [
    10_000_000,
    100_000_000,
    1_000_000_000,
    2_000_000_000,
    4_000_000_000,
    6_000_000_000,
    8_000_000_000,
];

/// Runs the command.
///
/// # Errors
/// If there is not as much memory, or the drawing cannot be written.
pub(super) fn run(args: &Figure3Args) -> anyhow::Result<()> {
    let sizes: Vec<Bytes> = match args.sizes.as_slice() {
        [] => {
            let n_sizes = if args.full { 7 } else { 3 };
            PUBLISHED_HERE[..n_sizes]
                .iter()
                .map(|&size| Bytes(size))
                .collect()
        }
        sizes => sizes.to_vec(),
    };
    let mut rows = Vec::new();
    for size in sizes {
        let catalogue = Catalogue::of(size);
        let n_chunks = catalogue.n_chunks();
        ensure_memory(first_bytes(n_chunks))?;
        for family in [Family::Store, Family::Engine] {
            eprintln!("{family} {size}");
            let faults = Process::own().major_faults()?;
            let of_size = match family {
                Family::Store => rows_of(args, family, catalogue, Dram::new(n_chunks as usize)?)?,
                Family::Engine => {
                    rows_of(args, family, catalogue, Forwarder::new(n_chunks as usize)?)?
                }
            };
            let n_major_faults = Process::own().major_faults()? - faults;
            rows.extend(of_size.into_iter().map(|row| Row {
                n_major_faults,
                ..row
            }));
        }
    }
    let report = Report {
        n_runs: args.runs,
        seed: args.seed,
        n_requests: args.requests,
        rows,
    };
    args.output.finish(&report, || {
        let of = |family: Family| {
            let lines = Kind::ALL.iter().map(|&kind| {
                let rows = report.rows.iter();
                let rows = rows.filter(|row| row.family == family && row.workload == kind);
                let points = rows.map(|row| (Bytes(row.size_bytes).gb(), row.gbps.mean));
                (format!("{family} {kind}"), points.collect())
            });
            lines.collect::<Vec<_>>()
        };
        let lines = [of(Family::Store), of(Family::Engine)].concat();
        vec![log_chart(
            "Figure 3: one level, one thread",
            "catalogue, GB",
            "Gbit/s",
            lines,
        )]
    })
}

/// The workloads take turns in each run.
fn rows_of(
    args: &Figure3Args,
    family: Family,
    catalogue: Catalogue,
    mut store: impl Hcs,
) -> anyhow::Result<Vec<Row>> {
    let settings = Settings::published(catalogue);
    let mut all = Requests::new(Kind::Seq, &settings, 0);
    warm(&mut store, &mut all, catalogue.n_chunks(), |_| true);
    let mut samples = Kind::ALL.map(|_| Vec::new());
    let (cpu_ns, begun) = (Process::own().cpu_ns()?, Instant::now());
    for run in 0..u64::from(args.runs) {
        let seed = args.seed.wrapping_add(run);
        for (kind, samples) in Kind::ALL.iter().zip(&mut samples) {
            let mut requests = Requests::new(*kind, &settings, seed);
            samples.push(measure(&mut store, &mut requests, args.requests, |_| true));
        }
    }
    let cpu_share =
        (Process::own().cpu_ns()? - cpu_ns) as f64 / begun.elapsed().as_nanos().max(1) as f64;
    let rows = Kind::ALL.iter().zip(&samples).filter_map(|(&kind, runs)| {
        let of =
            |value: fn(&Measured) -> f64| Mean::of(&runs.iter().map(value).collect::<Vec<_>>());
        Some(Row {
            family,
            size_bytes: catalogue.size().0,
            workload: kind,
            gbps: of(|run| run.gbps())?,
            mops: of(|run| 1e3 / run.chunk_ns())?,
            hit_ratio: of(|run| run.counts.first_ratio())?.mean,
            cpu_share,
            n_major_faults: 0,
        })
    });
    Ok(rows.collect())
}
