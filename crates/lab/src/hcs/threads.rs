//! Several workers, each with both levels of its own and its share of the names: Figures 7,
//! 8 (b) and 9 (b) of Mansilha et al. 2017.
//!
//! As many workers as there are processors run at the same time, each on one. With more, one
//! runs after another, as if each had a processor of its own: what they would take from each
//! other of memory and bus is not in such a figure, and the report says which ones they are.
//! On a disk, which cannot be had more than once, all run at the same time, however many.
//! The throughput is that of all requests in the time of the slowest worker, as the time to
//! process a workload is what the paper measures.

use std::fmt;
use std::sync::Barrier;
use std::thread;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;

use super::bed::{OutputArgs, Scale, Scaled, a_rate, ensure_memory, first_bytes};
use super::catalogue::{Bytes, CHUNK_BYTES};
use super::division::{Division, Rule, most_by_mean};
use super::dram::{Dram, OneByOne};
use super::emulated::{Delay, Memory};
use super::fit::Mean;
use super::published;
use super::recipe::{Needs, Pace, Recipe, StoreArgs, Told};
use super::store::{Measured, measure, warm};
use super::workload::{Kind, Requests};
use crate::cache::plot::Chart;

/// Measures throughput by the number of workers, with slow and fast second levels (figure 7)
#[derive(Args, Clone, Debug)]
pub(super) struct Figure7Args {
    #[command(flatten)]
    common: CommonArgs,
    /// Workers, each a thread
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2,4,6,8,12,16",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    workers: Vec<u16>,
    /// Rates of each worker's second level, in Gbit/s
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "GBPS",
        default_value = "4,32",
        value_parser = a_rate
    )]
    rates: Vec<f64>,
}

/// Measures throughput by the part of the name that is hashed to find a worker (figure 8 (b))
#[derive(Args, Clone, Debug)]
pub(super) struct Figure8BArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Workers, each a thread
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2,4,6,8,12,16",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    workers: Vec<u16>,
    /// Rate of each worker's second level, in Gbit/s
    #[arg(long, default_value_t = 4.0, value_name = "GBPS", value_parser = a_rate)]
    rate: f64,
}

/// Measures one level, and two with one and with six workers (figure 9 (b))
#[derive(Args, Clone, Debug)]
pub(super) struct Figure9BArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Workers, each a thread
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,6",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    workers: Vec<u16>,
    /// Rate of each worker's second level, in Gbit/s
    #[arg(long, default_value_t = 4.0, value_name = "GBPS", value_parser = a_rate)]
    rate: f64,
}

#[derive(Args, Clone, Debug)]
struct CommonArgs {
    #[command(flatten)]
    scale: Scale,
    /// |L1| of all workers together
    #[arg(long, default_value = "1GB", value_name = "SIZE")]
    l1: Bytes,
    /// |L2| of all workers together, which is the catalogue
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    l2: Bytes,
    /// Memory of the packets of the second level (published: static)
    #[arg(long, value_enum, default_value_t = Memory::Static)]
    memory: Memory,
    /// How a thread waits for an emulated read (published: busy)
    #[arg(long, value_enum, default_value_t = Delay::Counted)]
    delay: Delay,
    /// Runs one worker after another even with enough processors
    #[arg(long)]
    one_by_one: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// How workers ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum How {
    /// At the same time, each on a processor, or sharing those that there are.
    Together,
    /// One after another, as if each had a processor of its own.
    OneByOne,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    n_workers: u16,
    rule: Rule,
    rate_gbps: f64,
    how: How,
    gbps: Mean,
    hit_ratio: f64,
    /// Requests of the most loaded worker by the mean, the mean of all runs.
    most_by_mean: f64,
    /// Of a second level while it was busy.
    second_gbps: Option<f64>,
    /// The time in which the second level was not busy, by all.
    own_share: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    title: &'static str,
    published: String,
    scaled: Scaled,
    l1_bytes: u64,
    l2_bytes: u64,
    told: Told,
    n_cpus: usize,
    one_level_gbps: Option<Mean>,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} (published: serial, Static, Busy); |L1| = {}, |L2| = |C| = {} of all workers \
             together, Real; each run measures |C| requests; {}; {} processors.\nWorkers that run \
             one by one do so as if each had a processor of its own: emulated\n\n| workers | \
             hashed | Gbit/s asked of each L2 | Gbit/s while it was busy | workers ran | Gbit/s | \
             by \
             the first | hits in L1 | most loaded / mean | time without a read |\n\
             |---|---|---|---|---|---|---|---|---|---|",
            self.title,
            self.told,
            Bytes(self.l1_bytes),
            Bytes(self.l2_bytes),
            self.scaled,
            self.n_cpus
        )?;
        for row in &self.rows {
            let of_line = |other: &&Row| other.is_line(row);
            let first = self.rows.iter().find(of_line).unwrap_or(row);
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {:.2} | {:.4} | {:.2} | {:.0} % |",
                row.n_workers,
                row.rule,
                self.told.rate(row.rate_gbps),
                row.second_gbps
                    .map_or(String::new(), |it| format!("{it:.2}")),
                match row.how {
                    How::Together => "together",
                    How::OneByOne => "one by one",
                },
                row.gbps,
                row.gbps.mean / first.gbps.mean,
                row.hit_ratio,
                row.most_by_mean,
                row.own_share * 100.0
            )?;
        }
        if let Some(one_level) = &self.one_level_gbps {
            writeln!(
                f,
                "| one level of {} | | | | | {one_level} | | 1 | | |",
                Bytes(self.l2_bytes)
            )?;
        }
        writeln!(f, "\n{}.", self.published)
    }
}

impl Row {
    /// Whether both are on one line of the figure.
    fn is_line(&self, other: &Self) -> bool {
        self.rule == other.rule && self.rate_gbps == other.rate_gbps
    }
}

/// Runs the command.
///
/// # Errors
/// If there is not as much memory, or the drawing cannot be written.
pub(super) fn run_rates(args: &Figure7Args) -> anyhow::Result<()> {
    let bed = Bed::new(&args.common, &args.workers)?;
    let mut rows = Vec::new();
    // A disk has one.
    let n_rates = match args.common.store.is_disk() {
        true => 1,
        false => args.rates.len(),
    };
    for &rate in &args.rates[..n_rates] {
        for &n_workers in &args.workers {
            rows.extend(bed.row(Rule::Content, n_workers, rate)?);
        }
    }
    bed.finish("Figure 7", published::FIGURE_7.to_owned(), None, rows)
}

/// Runs the command.
///
/// # Errors
/// As [`run_rates`].
pub(super) fn run_rules(args: &Figure8BArgs) -> anyhow::Result<()> {
    let bed = Bed::new(&args.common, &args.workers)?;
    let mut rows = Vec::new();
    for rule in [Rule::Content, Rule::Batch] {
        for &n_workers in &args.workers {
            rows.extend(bed.row(rule, n_workers, args.rate)?);
        }
    }
    let gains: Vec<String> = rows
        .iter()
        .filter(|row| row.rule == Rule::Content)
        .filter_map(|content| {
            let same = |row: &&Row| (row.rule, row.n_workers) == (Rule::Batch, content.n_workers);
            let batch = rows.iter().find(same)?;
            let gain = 100.0 * (batch.gbps.mean / content.gbps.mean - 1.0);
            Some(format!("{gain:+.0} % with {}", content.n_workers))
        })
        .collect();
    let published = format!(
        "Batch by Content: {}. Published: about {:.0} % more with Batch; points are drawn only",
        gains.join(", "),
        published::BATCH_GAIN * 100.0
    );
    bed.finish("Figure 8 (b)", published, None, rows)
}

/// Runs the command.
///
/// # Errors
/// As [`run_rates`].
pub(super) fn run_machine(args: &Figure9BArgs) -> anyhow::Result<()> {
    let one_level = one_level(&args.common)?;
    let bed = Bed::new(&args.common, &args.workers)?;
    let mut rows = Vec::new();
    for &n_workers in &args.workers {
        rows.extend(bed.row(Rule::Content, n_workers, args.rate)?);
    }
    let published = published::FIGURE_9_B.to_owned();
    bed.finish("Figure 9 (b)", published, one_level, rows)
}

/// All of the catalogue in one level, asked by one thread.
fn one_level(args: &CommonArgs) -> anyhow::Result<Option<Mean>> {
    let catalogue = args.scale.catalogue(args.l2);
    let (n_chunks, settings) = (catalogue.n_chunks(), args.scale.settings(catalogue));
    ensure_memory(first_bytes(n_chunks))?;
    let mut store = OneByOne::new(Dram::new(n_chunks as usize)?);
    let mut all = Requests::new(Kind::Seq, &settings, 0);
    warm(&mut store, &mut all, n_chunks, |_| true);
    let runs = args.scale.seeds().map(|seed| {
        let mut requests = Requests::new(Kind::Real, &settings, seed);
        measure(&mut store, &mut requests, n_chunks, |_| true).gbps()
    });
    Ok(Mean::of(&runs.collect::<Vec<_>>()))
}

struct Bed<'a> {
    args: &'a CommonArgs,
    recipe: Recipe,
    n_cpus: usize,
}

impl<'a> Bed<'a> {
    fn new(args: &'a CommonArgs, n_workers: &[u16]) -> anyhow::Result<Self> {
        let scale = &args.scale;
        let n_cpus = thread::available_parallelism().map_or(1, usize::from);
        let most = n_workers.iter().max().copied().unwrap_or(1).into();
        let n_together = match (args.store.is_disk(), args.one_by_one) {
            (true, _) => most,
            (false, true) => 1,
            (false, false) => most.min(n_cpus),
        };
        let needs = Needs {
            catalogue: scale.catalogue(args.l2),
            l1_chunks: scale.size(args.l1).chunks(),
            n_stores: n_together as u64,
            batch_chunks: scale.batch_chunks(),
            memory: args.memory,
        };
        Ok(Self {
            args,
            recipe: Recipe::new(&args.store, &needs)?,
            n_cpus,
        })
    }

    /// How so many workers run.
    fn how(&self, n_workers: u16) -> How {
        let has_cpus = usize::from(n_workers) <= self.n_cpus && !self.args.one_by_one;
        match has_cpus || self.recipe.is_disk() {
            true => How::Together,
            false => How::OneByOne,
        }
    }

    fn finish(
        &self,
        title: &'static str,
        published: String,
        one_level_gbps: Option<Mean>,
        rows: Vec<Row>,
    ) -> anyhow::Result<()> {
        let report = Report {
            title,
            published,
            scaled: self.args.scale.scaled(),
            l1_bytes: self.args.scale.size(self.args.l1).chunks() * CHUNK_BYTES,
            l2_bytes: self.recipe.catalogue().size().0,
            told: self
                .args
                .store
                .told(Some(self.args.memory), Some(self.args.delay)),
            n_cpus: self.n_cpus,
            one_level_gbps,
            rows,
        };
        self.args.output.finish(&report, || {
            let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
            for row in &report.rows {
                let label = format!("{}, {} Gbit/s", row.rule, report.told.rate(row.rate_gbps));
                let point = (f64::from(row.n_workers), row.gbps.mean);
                match lines.iter_mut().find(|line| line.0 == label) {
                    Some(line) => line.1.push(point),
                    None => lines.push((label, vec![point])),
                }
            }
            vec![Chart::of_lines(title, "workers", "Gbit/s", lines)]
        })
    }

    fn row(&self, rule: Rule, n_workers: u16, rate_gbps: f64) -> anyhow::Result<Option<Row>> {
        let catalogue = self.recipe.catalogue();
        let scale = &self.args.scale;
        let how = self.how(n_workers);
        let mut gbps = Vec::new();
        let mut imbalances = Vec::new();
        let mut all = Measured::default();
        for seed in scale.seeds() {
            let division = Division::new(catalogue, rule, n_workers, scale.batch_chunks(), seed)?;
            let workers = self.take(&division, how, rate_gbps, seed)?;
            let slowest = workers.iter().map(|it| it.elapsed_ns).max().unwrap_or(0);
            let n_requests: u64 = workers.iter().map(|it| it.counts.n_requests).sum();
            gbps.push((n_requests * CHUNK_BYTES * 8) as f64 / slowest.max(1) as f64);
            let loads: Vec<u64> = workers.iter().map(|it| it.counts.n_requests).collect();
            imbalances.push(most_by_mean(&loads));
            for worker in &workers {
                worker.counts.ensure_answered()?;
                all.elapsed_ns += worker.elapsed_ns;
                all.counts.n_requests += worker.counts.n_requests;
                all.counts.n_first += worker.counts.n_first;
                all.counts.second_ns += worker.counts.second_ns;
                all.counts.second_bytes += worker.counts.second_bytes;
            }
        }
        let (Some(gbps), Some(imbalance)) = (Mean::of(&gbps), Mean::of(&imbalances)) else {
            return Ok(None);
        };
        eprintln!("{rule}, {n_workers} workers, {rate_gbps} Gbit/s: {gbps}");
        Ok(Some(Row {
            n_workers,
            rule,
            rate_gbps,
            how,
            gbps,
            hit_ratio: all.counts.first_ratio(),
            most_by_mean: imbalance.mean,
            second_gbps: all.counts.second_gbps(),
            own_share: (1.0 - all.counts.second_ns as f64 / all.elapsed_ns.max(1) as f64).max(0.0),
        }))
    }

    /// What each worker took.
    fn take(
        &self,
        division: &Division,
        how: How,
        rate_gbps: f64,
        seed: u64,
    ) -> anyhow::Result<Vec<Measured>> {
        let all = 0..division.n_workers();
        if how == How::OneByOne {
            let alone = Barrier::new(1);
            let workers = all.map(|worker| self.work(division, worker, rate_gbps, seed, &alone));
            return workers.collect();
        }
        let barrier = Barrier::new(all.len());
        thread::scope(|scope| {
            let threads: Vec<_> = all
                .map(|worker| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        let _ = tachonym_bench::cpu::pin(
                            worker.into(),
                            &tachonym_bench::cpu::available(),
                        );
                        self.work(division, worker, rate_gbps, seed, barrier)
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| {
                let measured = thread.join();
                measured.map_err(|_| anyhow!("a worker panicked"))?
            });
            ended.collect()
        })
    }

    /// A worker fills its first level and takes its part of the requests.
    fn work(
        &self,
        division: &Division,
        worker: u16,
        rate_gbps: f64,
        seed: u64,
        barrier: &Barrier,
    ) -> anyhow::Result<Measured> {
        let scale = &self.args.scale;
        let l1_chunks = scale.size(self.args.l1).chunks();
        let own_chunks = l1_chunks.div_ceil(division.n_workers().into()) as usize;
        let is_here = |chunk| division.home(chunk) == worker;
        let pace = Pace {
            delay: self.args.delay,
            rate_gbps,
        };
        let store = self.recipe.make_for(worker, &is_here, own_chunks, pace);
        let store = store.with_context(|| format!("worker {worker}"));
        let settings = scale.settings(self.recipe.catalogue());
        let mut requests = Requests::new(Kind::Real, &settings, seed);
        // Nobody waits for one that failed.
        let mut store = match store {
            Ok(store) => store,
            Err(error) => {
                barrier.wait();
                return Err(error);
            }
        };
        warm(&mut *store, &mut requests, scale.n_warm(l1_chunks), is_here);
        barrier.wait();
        let n_requests = self.recipe.catalogue().n_chunks();
        Ok(measure(&mut *store, &mut requests, n_requests, is_here))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: CommonArgs,
    }

    #[test]
    fn workers_share_requests_and_find_what_one_would() {
        let words = "x --shrink 200 --runs 1 --memory dynamic --delay counted";
        let args = Cli::parse_from(words.split(' ')).args;
        let bed = Bed::new(&args, &[1, 3]).expect("small stores");
        let catalogue = bed.recipe.catalogue();
        for how in [How::Together, How::OneByOne] {
            let mut n_first = Vec::new();
            for n_workers in [1, 3] {
                let division = Division::new(catalogue, Rule::Batch, n_workers, 10, 1);
                let division = division.expect("few workers");
                let workers = bed.take(&division, how, 4.0, 1).expect("small stores");
                assert_eq!(workers.len(), usize::from(n_workers));
                let n_requests: u64 = workers.iter().map(|it| it.counts.n_requests).sum();
                assert_eq!(n_requests, catalogue.n_chunks());
                assert!(workers.iter().all(|it| it.counts.n_requests > 0));
                n_first.push(workers.iter().map(|it| it.counts.n_first).sum::<u64>());
            }
            // A third of the room for a third of the names.
            let ratio = n_first[1] as f64 / n_first[0] as f64;
            assert!((0.97..1.03).contains(&ratio), "{how:?}: {n_first:?}");
        }
        let row = bed.row(Rule::Content, 2, 4.0).expect("small stores");
        let row = row.expect("one run");
        assert!(row.gbps.mean > 0.0 && row.most_by_mean >= 1.0);
        assert!(row.own_share > 0.0 && row.own_share < 1.0, "{row:?}");
    }
}
