//! Figure 6 of Mansilha et al. 2017: throughput by the size of the second level, and by its
//! rate.

use std::fmt;

use clap::Args;
use serde::Serialize;

use super::bed::{OutputArgs, Scale, Scaled, a_rate, ensure_memory, first_bytes, log_chart};
use super::catalogue::{Bytes, CHUNK_BYTES, Catalogue};
use super::dram::Dram;
use super::emulated::{Delay, Memory};
use super::fit::Mean;
use super::model::{self, Delays};
use super::published;
use super::recipe::{Needs, Pace, Recipe, StoreArgs, Told};
use super::store::{Measured, measure, warm};
use super::workload::{Kind, Requests};

/// Measures throughput by the size of L2, up to 1 TB (figure 6 (a))
#[derive(Args, Clone, Debug)]
pub(super) struct Figure6AArgs {
    #[command(flatten)]
    scale: Scale,
    /// |L1|
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    l1: Bytes,
    /// |L2|, which is the catalogue
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE",
        default_value = "10GB,24GB,50GB,100GB,250GB,500GB,1TB"
    )]
    l2: Vec<Bytes>,
    /// Rate of L2, in Gbit/s
    #[arg(long, default_value_t = 4.0, value_name = "GBPS", value_parser = a_rate)]
    rate: f64,
    #[command(flatten)]
    common: CommonArgs,
}

/// Measures throughput by the rate of L2, up to 64 Gbit/s (figure 6 (b))
#[derive(Args, Clone, Debug)]
pub(super) struct Figure6BArgs {
    #[command(flatten)]
    scale: Scale,
    /// |L1|
    #[arg(long, default_value = "1GB", value_name = "SIZE")]
    l1: Bytes,
    /// |L2|, which is the catalogue
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    l2: Bytes,
    /// Rates of L2, in Gbit/s
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "GBPS",
        default_value = "4,8,16,32,64",
        value_parser = a_rate
    )]
    rates: Vec<f64>,
    /// Memory of the packets of L2 (published: static)
    #[arg(long, value_enum, default_value_t = Memory::Static)]
    memory: Memory,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
struct CommonArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// How a thread waits for an emulated read (published: busy)
    #[arg(long, value_enum, default_value_t = Delay::Counted)]
    delay: Delay,
    /// Most requests of a run; fewer if the catalogue has fewer chunks
    #[arg(long, default_value_t = 500_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    l2_bytes: u64,
    rate_gbps: f64,
    n_requests: u64,
    hit_ratio: Mean,
    expected_hit_ratio: f64,
    /// Bytes that were read from the second level, by those of requests.
    read_by_asked: f64,
    gbps: Mean,
    /// Of the second level while it was busy.
    second_gbps: Option<Mean>,
    /// By equations 7 to 10, with a lookup as in one level, an insertion by the clock if that
    /// is known apart, as of the serial algorithm, and the model's hit ratio.
    expected_gbps: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    title: &'static str,
    published: &'static str,
    scaled: Scaled,
    l1_bytes: u64,
    told: Told,
    max_requests: u64,
    /// One level of `one_level_bytes`, everything in it, asked one by one.
    one_level_gbps: Mean,
    one_level_bytes: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}; |L1| = {}, Real, at most {} requests a run (published: |C|); {}\n\n| L2 | \
             configured Gbit/s | Gbit/s while it was busy | requests | hits in L1 | model | reads \
             / requests | Gbit/s | by equations | by one level |\n\
             |---|---|---|---|---|---|---|---|---|---|",
            self.title,
            self.told,
            Bytes(self.l1_bytes),
            self.max_requests,
            self.scaled
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {} | {:.4} | {:.4} | {:.3} | {} | {:.2} | {:.3} |",
                Bytes(row.l2_bytes),
                self.told.rate(row.rate_gbps),
                row.second_gbps.map_or(String::new(), |it| it.to_string()),
                row.n_requests,
                row.hit_ratio,
                row.expected_hit_ratio,
                row.read_by_asked,
                row.gbps,
                row.expected_gbps,
                row.gbps.mean / self.one_level_gbps.mean
            )?;
        }
        writeln!(
            f,
            "| one level of {} | | | | 1 | | | {} | | 1 |\n\n{}.",
            Bytes(self.one_level_bytes),
            self.one_level_gbps,
            self.published
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If there is not as much memory, or the drawing cannot be written.
pub(super) fn run_sizes(args: &Figure6AArgs) -> anyhow::Result<()> {
    let scale = &args.scale;
    let cells: Vec<Cell> = args
        .l2
        .iter()
        .map(|&l2| Cell {
            catalogue: scale.catalogue(l2),
            rate_gbps: args.rate,
        })
        .collect();
    let bed = Bed {
        scale,
        l1: scale.size(args.l1),
        memory: Memory::Dynamic,
        one_level: scale.catalogue(args.l1),
        args: &args.common,
    };
    let report = bed.take("Figure 6 (a)", published::FIGURE_6_A, &cells)?;
    let x = |row: &Row| Bytes(row.l2_bytes).gb();
    args.common
        .output
        .finish(&report, || vec![chart(&report, "|L2|, GB", x)])
}

/// Runs the command.
///
/// # Errors
/// As [`run_sizes`], and if the store is a disk.
pub(super) fn run_rates(args: &Figure6BArgs) -> anyhow::Result<()> {
    let instead = "figure-6a has it by |L2|";
    args.common.store.refuse_disk(instead)?;
    let scale = &args.scale;
    let catalogue = scale.catalogue(args.l2);
    let cells: Vec<Cell> = args
        .rates
        .iter()
        .map(|&rate_gbps| Cell {
            catalogue,
            rate_gbps,
        })
        .collect();
    let bed = Bed {
        scale,
        l1: scale.size(args.l1),
        memory: args.memory,
        one_level: catalogue,
        args: &args.common,
    };
    let report = bed.take("Figure 6 (b)", published::FIGURE_6_B, &cells)?;
    args.common.output.finish(&report, || {
        vec![chart(&report, "rate of L2, Gbit/s", |row| row.rate_gbps)]
    })
}

fn chart(report: &Report, x: &str, of: impl Fn(&Row) -> f64) -> crate::cache::plot::Chart {
    let rows = || report.rows.iter();
    let one = report.one_level_gbps.mean;
    let lines = vec![
        (
            "two levels".to_owned(),
            rows().map(|row| (of(row), row.gbps.mean)).collect(),
        ),
        (
            "by equations 7 to 10".to_owned(),
            rows().map(|row| (of(row), row.expected_gbps)).collect(),
        ),
        (
            format!("one level of {}", Bytes(report.one_level_bytes)),
            rows().map(|row| (of(row), one)).collect(),
        ),
    ];
    log_chart(report.title, x, "Gbit/s", lines)
}

struct Cell {
    catalogue: Catalogue,
    rate_gbps: f64,
}

struct Bed<'a> {
    scale: &'a Scale,
    l1: Bytes,
    memory: Memory,
    /// What a store of one level is to have, for comparison.
    one_level: Catalogue,
    args: &'a CommonArgs,
}

impl Bed<'_> {
    fn take(
        &self,
        title: &'static str,
        published: &'static str,
        cells: &[Cell],
    ) -> anyhow::Result<Report> {
        let one_level = self.one_level()?;
        let one_level_gbps: Vec<f64> = one_level.iter().map(Measured::gbps).collect();
        let lookups: Vec<f64> = one_level.iter().map(Measured::chunk_ns).collect();
        let lookup_ns = Mean::of(&lookups).map_or(0.0, |mean| mean.mean);
        let mut rows = Vec::new();
        let mut recipe: Option<Recipe> = None;
        for cell in cells {
            let catalogue = cell.catalogue;
            // The one before is given back first, unless it is the same.
            recipe = recipe.filter(|it| it.catalogue() == catalogue);
            let recipe = match &mut recipe {
                Some(recipe) => recipe,
                None => recipe.insert(self.recipe(catalogue)?),
            };
            rows.extend(self.row(cell, recipe, lookup_ns)?);
        }
        Ok(Report {
            title,
            published,
            scaled: self.scale.scaled(),
            l1_bytes: self.l1.chunks() * CHUNK_BYTES,
            told: self
                .args
                .store
                .told(Some(self.memory), Some(self.args.delay)),
            max_requests: self.args.requests,
            one_level_gbps: Mean::of(&one_level_gbps).unwrap_or(Mean {
                mean: 0.0,
                within: None,
            }),
            one_level_bytes: self.one_level.size().0,
            rows,
        })
    }

    fn recipe(&self, catalogue: Catalogue) -> anyhow::Result<Recipe> {
        let needs = Needs {
            catalogue,
            l1_chunks: self.l1.chunks(),
            n_stores: 1,
            batch_chunks: self.scale.batch_chunks(),
            memory: self.memory,
        };
        Recipe::new(&self.args.store, &needs)
    }

    /// Everything in one level, asked one by one as two levels are.
    fn one_level(&self) -> anyhow::Result<Vec<Measured>> {
        let n_chunks = self.one_level.n_chunks();
        ensure_memory(first_bytes(n_chunks))?;
        let mut store = super::dram::OneByOne::new(Dram::new(n_chunks as usize)?);
        let settings = self.scale.settings(self.one_level);
        let mut all = Requests::new(Kind::Seq, &settings, 0);
        warm(&mut store, &mut all, n_chunks, |_| true);
        let runs = self.scale.seeds().map(|seed| {
            let mut requests = Requests::new(Kind::Real, &settings, seed);
            let n_requests = n_chunks.min(self.args.requests);
            measure(&mut store, &mut requests, n_requests, |_| true)
        });
        Ok(runs.collect())
    }

    fn row(&self, cell: &Cell, recipe: &Recipe, lookup_ns: f64) -> anyhow::Result<Option<Row>> {
        let catalogue = cell.catalogue;
        let settings = self.scale.settings(catalogue);
        // What has room for everything is to have it.
        let l1_chunks = match self.l1.0 * 101 / 100 >= catalogue.size().0 {
            true => catalogue.n_chunks(),
            false => self.l1.chunks(),
        };
        let n_requests = catalogue.n_chunks().min(self.args.requests);
        let mut runs = Vec::new();
        for seed in self.scale.seeds() {
            let pace = Pace {
                delay: self.args.delay,
                rate_gbps: cell.rate_gbps,
            };
            let mut store = recipe.make(l1_chunks as usize, pace)?;
            let mut requests = Requests::new(Kind::Real, &settings, seed);
            warm(
                &mut *store,
                &mut requests,
                self.scale.n_warm(l1_chunks),
                |_| true,
            );
            let measured = measure(&mut *store, &mut requests, n_requests, |_| true);
            measured.counts.ensure_answered()?;
            runs.push(measured);
        }
        let batch_chunks = self.scale.batch_chunks();
        let expected_hit_ratio = model::hit_ratio(Kind::Real, &settings, l1_chunks, batch_chunks);
        let n_batches: u64 = runs.iter().map(|run| run.counts.n_second).sum();
        let insert_ns: u64 = runs.iter().map(|run| run.counts.insert_ns).sum();
        let second_gbps = runs.iter().filter_map(|run| run.counts.second_gbps());
        let second_gbps = Mean::of(&second_gbps.collect::<Vec<_>>());
        let read_gbps = match recipe.is_disk() {
            true => second_gbps.map_or(cell.rate_gbps, |it| it.mean),
            false => cell.rate_gbps,
        };
        let delays = Delays {
            lookup_ns,
            insert_ns: insert_ns as f64 / n_batches.max(1) as f64,
            read_ns: model::read_ns(batch_chunks, read_gbps),
        };
        let hits: Vec<f64> = runs.iter().map(|run| run.counts.first_ratio()).collect();
        let gbps: Vec<f64> = runs.iter().map(Measured::gbps).collect();
        let (Some(hit_ratio), Some(gbps)) = (Mean::of(&hits), Mean::of(&gbps)) else {
            return Ok(None);
        };
        let read: u64 = runs.iter().map(|run| run.counts.second_bytes).sum();
        let asked: u64 = runs.iter().map(|run| run.counts.n_requests).sum();
        eprintln!("{} {} Gbit/s: {gbps}", catalogue.size(), cell.rate_gbps);
        Ok(Some(Row {
            l2_bytes: catalogue.size().0,
            rate_gbps: cell.rate_gbps,
            n_requests,
            hit_ratio,
            expected_hit_ratio,
            read_by_asked: read as f64 / (asked * CHUNK_BYTES).max(1) as f64,
            gbps,
            second_gbps,
            expected_gbps: delays.serial_gbps(1.0 - expected_hit_ratio),
        }))
    }
}
