//! `tachonym-lab schedules`: what fetching ahead gains.
//!
//! The evaluation of Takemasa 2019, section 4.4, on the router's own engine: time per
//! packet with each schedule, with one thread (Figure 4.5) and with more (Figure 4.6),
//! and packets per second by the number of threads (Figure 4.7). All Interests miss, and
//! Data come back. Schedules take turns in every round, with the same tables, so that
//! their ratios hold on a machine that others use too.

pub mod distance;
mod plot;
pub(crate) mod published;

use std::fmt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;
use tachonym_forward::Schedule;
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

use crate::choices::{PageChoice, name_hash};
use crate::engine_bed::workload::Burst;
use crate::engine_bed::{Bed, BedOptions, Kind, Listener, SendBuffer};
use crate::output;
use crate::stats::Spread;

/// Measures each schedule of the packet path, and compares the gains with published ones
#[derive(Args, Clone, Debug)]
pub struct SchedulesArgs {
    #[command(flatten)]
    bed: BedArgs,
    /// Most threads; each number from 1 to this is measured. Each thread has its own tables
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub threads: u16,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The tables and packets to measure with.
#[derive(Args, Clone, Debug)]
struct BedArgs {
    /// Prefixes in the FIB of each thread; the published evaluation has 13548815
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    fib_prefixes: u64,
    /// Packets of a burst
    #[arg(long, default_value_t = 32, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    burst: u16,
    /// Data in the content store of each thread, which is full
    #[arg(long, default_value_t = 262_144, value_name = "N",
          value_parser = clap::value_parser!(u32).range(4_096..=1 << 28))]
    store: u32,
    /// Bursts of Interests between a burst and its Data, so that its entries have left the
    /// processor's caches; 0: none
    #[arg(long, default_value_t = 0, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=65_536))]
    late: u32,
    /// Rounds, in each of which everything is measured once
    #[arg(long, default_value_t = 15, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Packets of each kind in a round, of everything that is measured
    #[arg(long, default_value_t = 16_384, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1_024..=1 << 24))]
    packets: u32,
    /// Hash function of names; auto takes the fastest on this machine
    #[arg(long, default_value = "auto", value_name = "KIND", value_parser = name_hash)]
    name_hash: HashKind,
    /// Whether pending Interests and cached Data share an index: separate or composite
    #[arg(long, default_value_t, value_name = "LAYOUT")]
    pit_cs: PitCsLayout,
    /// Pages of the tables
    #[arg(long, value_enum, default_value_t = PageChoice::Auto)]
    pages: PageChoice,
    /// Seed of names and nonces
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

impl BedArgs {
    fn options(&self, thread: u16) -> BedOptions {
        BedOptions {
            n_prefixes: self.fib_prefixes,
            burst_pkts: usize::from(self.burst),
            store_pkts: self.store as usize,
            late_bursts: self.late as usize,
            seed: self.seed ^ u64::from(thread) << 48,
            name_hash: self.name_hash,
            schedule: Schedule::Naive,
            pit_cs: self.pit_cs,
            pages: self.pages.into(),
        }
    }

    /// Bursts of a round, of everything that is measured.
    fn n_bursts(&self) -> usize {
        (self.packets as usize).div_ceil(usize::from(self.burst))
    }

    /// Bursts that fill what comes late.
    fn n_bursts_ahead(&self) -> usize {
        self.n_bursts().max(self.late as usize + 1)
    }
}

/// What was measured. Times are in nanoseconds per packet.
#[derive(Clone, Debug, Serialize)]
struct SchedulesReport {
    /// Prefixes in the FIB of each thread.
    n_fib_prefixes: u64,
    /// Packets of a burst.
    burst_pkts: u16,
    /// Bursts of Interests that left before the Data of one came back.
    n_late_bursts: u32,
    /// Whether pending Interests and cached Data shared an index.
    pit_cs: String,
    /// By number of threads, from 1.
    by_threads: Vec<Vec<ScheduleFigures>>,
}

/// One schedule.
#[derive(Clone, Debug, Serialize)]
struct ScheduleFigures {
    schedule: String,
    /// An Interest that misses.
    miss_ns: Spread,
    /// A Data.
    data_ns: Spread,
    /// Both, by those of `naive`: the median of the rounds' ratios.
    exchange_by_naive: f64,
    /// Packets per second of all threads.
    pkts_per_s: f64,
}

impl SchedulesReport {
    fn exchange_ns(figures: &ScheduleFigures) -> f64 {
        figures.miss_ns.median + figures.data_ns.median
    }
}

impl fmt::Display for SchedulesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} prefixes, bursts of {}, Data {} bursts later, PIT and content store {}; \
             nanoseconds per packet, median (p10-p90)",
            self.n_fib_prefixes, self.burst_pkts, self.n_late_bursts, self.pit_cs
        )?;
        for (idx, schedules) in self.by_threads.iter().enumerate() {
            writeln!(
                f,
                "\nthreads: {}\n\n| schedule | I-miss | published; relative to naive | Data | published; \
                 relative to naive | both | relative to naive | packets/s |\n|---|---|---|---|---|---|---|---|",
                idx + 1
            )?;
            for figures in schedules {
                let published = match idx {
                    0 => published::by_naive(&figures.schedule),
                    _ => None,
                };
                let ratio = |ratio: Option<f64>| match ratio {
                    Some(ratio) => format!("{ratio:.3}"),
                    None => String::new(),
                };
                let spread = |s: &Spread| format!("{:.0} ({:.0}-{:.0})", s.median, s.p10, s.p90);
                writeln!(
                    f,
                    "| {} | {} | {} | {} | {} | {:.0} | {:.3} | {:.2} M |",
                    figures.schedule,
                    spread(&figures.miss_ns),
                    ratio(published.map(|p| p.miss)),
                    spread(&figures.data_ns),
                    ratio(published.map(|p| p.data)),
                    Self::exchange_ns(figures),
                    figures.exchange_by_naive,
                    figures.pkts_per_s / 1e6,
                )?;
            }
        }
        writeln!(
            f,
            "\npublished: {:.2} M packets/s with SHTL and {} threads of 22 cores at 2.2 GHz",
            published::PKTS_PER_S / 1e6,
            published::N_THREADS,
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, packets went another way than they should, or the
/// drawing cannot be written.
pub fn run(args: &SchedulesArgs) -> anyhow::Result<()> {
    let mut beds = (0..args.threads)
        .map(|thread| Bed::new(args.bed.options(thread)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let by_threads = (1..=beds.len())
        .map(|n_threads| measure(&mut beds[..n_threads], args))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let report = SchedulesReport {
        n_fib_prefixes: args.bed.fib_prefixes,
        burst_pkts: args.bed.burst,
        n_late_bursts: args.bed.late,
        pit_cs: args.bed.pit_cs.to_string(),
        by_threads,
    };
    if let Some(path) = &args.svg {
        plot::draw(&report, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

/// Nanoseconds per packet of one round, of an Interest and of a Data.
#[derive(Clone, Copy, Debug)]
struct RoundNs {
    miss: f64,
    data: f64,
}

/// Measures every schedule with a thread for each bed.
fn measure(beds: &mut [Bed], args: &SchedulesArgs) -> anyhow::Result<Vec<ScheduleFigures>> {
    let barrier = Barrier::new(beds.len());
    let barrier = &barrier;
    let by_thread: Vec<Vec<Vec<RoundNs>>> = thread::scope(|scope| {
        let threads: Vec<_> = beds
            .iter_mut()
            .map(|bed| scope.spawn(move || rounds_of(bed, args, barrier)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().map_err(|_| anyhow!("a thread panicked"))?
        };
        threads.into_iter().map(join).collect::<anyhow::Result<_>>()
    })?;
    let schedules = Schedule::ALL.iter().enumerate();
    schedules
        .map(|(idx, &schedule)| {
            figures_of(schedule, idx, &by_thread).context("no round was measured")
        })
        .collect()
}

/// By schedule, by round.
fn rounds_of(
    bed: &mut Bed,
    args: &SchedulesArgs,
    barrier: &Barrier,
) -> anyhow::Result<Vec<Vec<RoundNs>>> {
    let n_bursts = args.bed.n_bursts();
    let mut rounds = vec![Vec::new(); Schedule::ALL.len()];
    run_round(bed, args.bed.n_bursts_ahead());
    for round in 0..usize::from(args.bed.rounds) {
        for turn in 0..Schedule::ALL.len() {
            let idx = (turn + round) % Schedule::ALL.len();
            bed.set_schedule(Schedule::ALL[idx]);
            barrier.wait();
            rounds[idx].push(run_round(bed, n_bursts));
        }
    }
    bed.check()?;
    Ok(rounds)
}

fn run_round(bed: &mut Bed, n_bursts: usize) -> RoundNs {
    let mut out = SendBuffer::new(Timer::default());
    let mut burst = Burst::default();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..n_bursts {
        for (kind, times) in [Kind::Miss, Kind::Data].into_iter().zip(&mut times) {
            bed.write_burst(kind, &mut burst);
            if !burst.is_empty() {
                bed.carry(kind, &burst, &mut out);
                times.push(out.listener.elapsed_ns / burst.len() as f64);
            }
        }
    }
    // The median, since bursts are interrupted.
    let [miss, data] = times.map(|times| Spread::of(&times).map_or(0.0, |times| times.median));
    RoundNs { miss, data }
}

/// Times a burst.
#[derive(Default)]
struct Timer {
    begun: Option<Instant>,
    elapsed_ns: f64,
}

impl Listener for Timer {
    fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    fn end(&mut self) {
        let elapsed = self.begun.take().map(|begun| begun.elapsed());
        self.elapsed_ns = elapsed.unwrap_or_default().as_nanos() as f64;
    }
}

/// The figures of one schedule; `None` without rounds.
fn figures_of(
    schedule: Schedule,
    idx: usize,
    by_thread: &[Vec<Vec<RoundNs>>],
) -> Option<ScheduleFigures> {
    let rounds = || by_thread.iter().flat_map(|schedules| &schedules[idx]);
    let naive = by_thread.iter().flat_map(|schedules| &schedules[0]);
    let misses: Vec<f64> = rounds().map(|round| round.miss).collect();
    let data: Vec<f64> = rounds().map(|round| round.data).collect();
    let ratios: Vec<f64> = rounds()
        .zip(naive)
        .map(|(round, naive)| (round.miss + round.data) / (naive.miss + naive.data))
        .collect();
    let (miss_ns, data_ns) = (Spread::of(&misses)?, Spread::of(&data)?);
    let exchange_s = (miss_ns.median + data_ns.median) / 1e9;
    Some(ScheduleFigures {
        schedule: schedule.to_string(),
        exchange_by_naive: Spread::of(&ratios)?.median,
        pkts_per_s: 2.0 * by_thread.len() as f64 / exchange_s,
        miss_ns,
        data_ns,
    })
}
