//! `tachonym-lab bottleneck`: where the cycles of the packet path go.
//!
//! The analysis of Takemasa 2019, sections 3.2, 3.3 and 5.1, on the router's own
//! engine: cycles per block and kind of packet, instructions, the processor's
//! counters where it lets them be read, and the packets per second that follow
//! (equation 3.1), each beside the published figure. Refuses to judge: budgets are
//! in [`crate::instructions`], and of instructions only.

mod counters;
mod cycles;
mod plot;
mod published;
mod report;
mod table;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tachonym_forward::{Block, Schedule};
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

use self::cycles::{Clock, Round, RoundTicks};
use self::report::{BlockReport, BottleneckReport, Instructions, KindReport, Throughput};
pub(crate) use self::table::{NumberedBlock, numbered_blocks, run_table};
use crate::choices::{PageChoice, name_hash};
use crate::engine_bed::{Bed, BedOptions, Kind};
use crate::instructions::{self, CountError, CountOptions, KindCount};
use crate::output;
use crate::stats::Spread;

/// Prefixes in the FIB of the process whose instructions are counted, at most: how
/// many there are hardly moves the count, and two large tables at once need not fit.
const MAX_COUNTED_PREFIXES: u64 = 100_000;
/// Data in its content store, at most.
const MAX_COUNTED_STORE_PKTS: usize = 8_192;
/// Packets of each kind whose instructions are counted.
const N_COUNTED_PKTS: usize = 64;

/// Measures the cycles of each block of the packet path
#[derive(Args, Clone, Debug)]
pub struct BottleneckArgs {
    /// Prefixes in the FIB; the published analysis has 13548815
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub fib_prefixes: u64,
    /// Packets of a burst
    #[arg(long, default_value_t = 32, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub burst: u16,
    /// Capacity of the content store in Data; it is full
    #[arg(long, default_value_t = 262_144, value_name = "N",
          value_parser = clap::value_parser!(u32).range(4_096..=1 << 28))]
    pub store: u32,
    /// Bursts of Interests between a burst and its Data, so that its entries have left the
    /// processor's caches; 0: none
    #[arg(long, default_value_t = 0, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub late: u32,
    /// Rounds
    #[arg(long, default_value_t = 11, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub rounds: u16,
    /// Packets of each kind in a round, timed as a whole; the same number again is timed block by
    /// block
    #[arg(long, default_value_t = 16_384, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1_024..=1 << 24))]
    pub packets: u32,
    /// Hash function of names; auto takes the fastest on this machine
    #[arg(long, default_value = "auto", value_name = "KIND", value_parser = name_hash)]
    pub name_hash: HashKind,
    /// Order of work in a burst
    #[arg(long, default_value_t = Schedule::default(), value_name = "SCHEDULE")]
    pub schedule: Schedule,
    /// Whether pending Interests and cached Data share an index: separate or composite
    #[arg(long, default_value_t, value_name = "LAYOUT")]
    pub pit_cs: PitCsLayout,
    /// Pages of the tables
    #[arg(long, value_enum, default_value_t = PageChoice::Auto)]
    pub pages: PageChoice,
    /// Seed of names and nonces
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Does not count instructions
    #[arg(long)]
    pub no_instructions: bool,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, packets went another way than they should, or the
/// drawing cannot be written.
pub fn run(args: &BottleneckArgs) -> anyhow::Result<()> {
    let report = analyse(args)?;
    if let Some(path) = &args.svg {
        plot::draw(&report, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

fn analyse(args: &BottleneckArgs) -> anyhow::Result<BottleneckReport> {
    // Before the tables take their memory.
    let (instructions, counts) = count_instructions(args)?;
    let burst_pkts = usize::from(args.burst);
    let mut bed = Bed::new(BedOptions {
        n_prefixes: args.fib_prefixes,
        burst_pkts,
        store_pkts: args.store as usize,
        late_bursts: args.late as usize,
        seed: args.seed,
        name_hash: args.name_hash,
        schedule: args.schedule,
        pit_cs: args.pit_cs,
        pages: args.pages.into(),
    })?;
    let clock = Clock::measure();
    let n_bursts = (args.packets as usize).div_ceil(burst_pkts);
    // The first fills what comes late, and is thrown away.
    cycles::run_round(&mut bed, &clock, n_bursts.max(args.late as usize));
    let rounds: Vec<Round> = (0..args.rounds)
        .map(|_| cycles::run_round(&mut bed, &clock, n_bursts))
        .collect();
    let counters = counters::run(&mut bed, n_bursts);
    bed.check()?;
    let mut kinds = Vec::new();
    for (idx, kind) in Kind::ALL.into_iter().enumerate() {
        let ticks: Vec<&RoundTicks> = rounds
            .iter()
            .filter_map(|round| round.kinds[idx].as_ref())
            .collect();
        let count = counts.get(idx);
        kinds.push(kind_report(kind, &ticks, &clock, count).context("no burst was timed")?);
    }
    Ok(BottleneckReport {
        n_fib_prefixes: args.fib_prefixes,
        burst_pkts,
        n_store_pkts: args.store,
        n_late_bursts: args.late,
        tick: crate::sys::clock::TICK,
        tick_ns: clock.tick_ns,
        border_ticks: clock.border_ticks,
        n_bursts: rounds.iter().map(|round| round.n_timed).sum(),
        n_bursts_left_out: rounds.iter().map(|round| round.n_left_out).sum(),
        throughput: Throughput::of(&kinds, clock.tick_ns),
        kinds,
        instructions,
        no_counters: counters.as_ref().err().cloned(),
        counters: counters.unwrap_or_default(),
    })
}

/// How instructions were counted, and the counts: none if they were not.
fn count_instructions(args: &BottleneckArgs) -> anyhow::Result<(Instructions, Vec<KindCount>)> {
    if args.no_instructions {
        return Ok((Instructions::NotAsked, Vec::new()));
    }
    let program: PathBuf = std::env::current_exe().context("cannot find this program")?;
    let burst_pkts = usize::from(args.burst);
    let options = CountOptions {
        n_prefixes: args.fib_prefixes.min(MAX_COUNTED_PREFIXES),
        burst_pkts,
        store_pkts: (args.store as usize).min(MAX_COUNTED_STORE_PKTS),
        n_pkts: N_COUNTED_PKTS.max(burst_pkts),
        seed: args.seed,
        pit_cs: args.pit_cs,
    };
    match instructions::count(&program, &options) {
        Ok(counts) => {
            let n_fib_prefixes = options.n_prefixes;
            Ok((Instructions::Counted { n_fib_prefixes }, counts))
        }
        Err(CountError::Unavailable(reason)) => {
            Ok((Instructions::Unavailable { reason }, Vec::new()))
        }
        Err(CountError::Failed(error)) => Err(error),
    }
}

/// `None` if there is no round.
fn kind_report(
    kind: Kind,
    rounds: &[&RoundTicks],
    clock: &Clock,
    count: Option<&KindCount>,
) -> Option<KindReport> {
    let spread_of = |figure: &dyn Fn(&RoundTicks) -> f64| {
        let figures: Vec<f64> = rounds.iter().map(|round| figure(round)).collect();
        Spread::of(&figures)
    };
    let ticks = spread_of(&|round| round.whole)?;
    let mut blocks = Vec::new();
    for block in Block::ALL {
        let ticks = spread_of(&|round| round.blocks[block as usize])?;
        let counted = count.and_then(|count| count.blocks.iter().find(|c| c.block == block));
        // A block that is never entered takes exactly nothing.
        if (ticks.min, ticks.max) != (0.0, 0.0) {
            blocks.push(BlockReport {
                number: block.number(),
                block: instructions::title(block),
                ns: ticks.median * clock.tick_ns,
                ticks,
                instructions: counted.map(|counted| counted.count),
                published_cycles: published::block(block),
            });
        }
    }
    Some(KindReport {
        kind: kind.label(),
        ns: ticks.median * clock.tick_ns,
        ticks,
        ticks_by_blocks: spread_of(&|round| round.blocks.iter().sum())?,
        blocks,
        instructions: count.map(|count| count.total),
        published_cycles: published::of(kind).cycles,
    })
}
