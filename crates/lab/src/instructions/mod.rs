//! `tachonym-lab instructions`: how many instructions the packet path takes,
//! exactly, and whether that is within the budget.
//!
//! No performance counter is needed: a process with an engine bed is stepped
//! through by `ptrace`, instruction by instruction, and leaves word of the block
//! it is in. The same build gives the same counts on any machine: keys and seeds are
//! fixed, and what counts is the program's own code. The C library's is told
//! apart, since it chooses its `memcpy` by the processor. Refuses to measure time.

mod budget;
mod counted;
mod stepper;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tachonym_forward::{Block, Schedule};
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

use self::budget::Budget;
use crate::beds::engine::{BedOptions, Kind};
use crate::choices::name_hash;
use tachonym_loadgen::output;

/// Exit code if instructions cannot be counted on this machine.
pub const EXIT_UNAVAILABLE: u8 = 3;

/// Counts the instructions of the packet path
///
/// Ends with 1 if a packet takes more than its budget, with 3 if this machine does
/// not let instructions be counted.
#[derive(Args, Clone, Debug)]
pub struct InstructionsArgs {
    /// Compares with the budget in this file
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
    /// Lowers the budget in the file to what is counted
    #[arg(long, requires = "budget")]
    pub update: bool,
    /// Writes what is counted to the file, whether lower or higher
    #[arg(long, requires = "budget")]
    pub raise: bool,
    /// Whether pending Interests and cached Data share an index: separate or composite
    #[arg(long, default_value_t, value_name = "LAYOUT")]
    pub pit_cs: PitCsLayout,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Be the process that is counted: where its page is
    #[arg(long, hide = true)]
    page: Option<PathBuf>,
    #[command(flatten)]
    counted: CountedArgs,
}

/// What the process that is counted is told.
#[derive(Args, Clone, Debug)]
struct CountedArgs {
    #[arg(long, hide = true, default_value_t = 1)]
    prefixes: u64,
    #[arg(long, hide = true, default_value_t = 1)]
    burst: usize,
    #[arg(long, hide = true, default_value_t = 4)]
    store: usize,
    #[arg(long, hide = true, default_value_t = 1)]
    packets: usize,
    #[arg(long, hide = true, default_value_t = 0)]
    seed: u64,
    #[arg(long, hide = true, default_value = "auto", value_parser = name_hash)]
    name_hash: HashKind,
    #[arg(long, hide = true, default_value_t)]
    schedule: Schedule,
}

/// What is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountOptions {
    /// Prefixes in the FIB.
    pub n_prefixes: u64,
    /// Packets of a burst.
    pub burst_pkts: usize,
    /// Capacity of the content store in Data; it is full.
    pub store_pkts: usize,
    /// Packets of each kind that are counted, twice; at least a burst.
    pub n_pkts: usize,
    /// Seed of names and nonces.
    pub seed: u64,
    /// Whether pending Interests and cached Data share an index.
    pub pit_cs: PitCsLayout,
    /// What hashes names.
    pub name_hash: HashKind,
    /// The order of work in a burst.
    pub schedule: Schedule,
}

impl CountOptions {
    fn bed(&self) -> BedOptions {
        BedOptions {
            n_prefixes: self.n_prefixes,
            burst_pkts: self.burst_pkts,
            store_pkts: self.store_pkts,
            seed: self.seed,
            pit_cs: self.pit_cs,
            name_hash: self.name_hash,
            schedule: self.schedule,
            ..BedOptions::default()
        }
    }

    fn n_rounds(&self) -> usize {
        (self.n_pkts / self.burst_pkts).max(1)
    }

    /// The command line of the process that is counted, but for its page.
    fn arguments(&self) -> Vec<String> {
        let Self {
            n_prefixes,
            burst_pkts,
            store_pkts,
            n_pkts,
            seed,
            pit_cs,
            name_hash,
            schedule,
        } = self;
        vec![
            "instructions".to_owned(),
            format!("--prefixes={n_prefixes}"),
            format!("--burst={burst_pkts}"),
            format!("--store={store_pkts}"),
            format!("--packets={n_pkts}"),
            format!("--seed={seed}"),
            format!("--pit-cs={pit_cs}"),
            format!("--name-hash={name_hash}"),
            format!("--schedule={schedule}"),
        ]
    }
}

impl From<&InstructionsArgs> for CountOptions {
    fn from(args: &InstructionsArgs) -> Self {
        let counted = &args.counted;
        Self {
            n_prefixes: counted.prefixes,
            burst_pkts: counted.burst,
            store_pkts: counted.store,
            n_pkts: counted.packets,
            seed: counted.seed,
            pit_cs: args.pit_cs,
            name_hash: counted.name_hash,
            schedule: counted.schedule,
        }
    }
}

/// Why there is no count.
#[derive(Debug)]
pub enum CountError {
    /// This machine does not allow it; why, in one line.
    Unavailable(String),
    /// Something went wrong.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for CountError {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Instructions of some part of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Of the program itself.
    pub n_own: u64,
    /// Of libraries.
    pub n_foreign: u64,
    /// How often the program has gone into a library.
    pub n_calls_out: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.n_own += other.n_own;
        self.n_foreign += other.n_foreign;
        self.n_calls_out += other.n_calls_out;
    }

    fn per_packet(self, n_pkts: usize) -> PerPacket {
        let mean = |n: u64| n as f64 / n_pkts as f64;
        PerPacket {
            own: mean(self.n_own),
            library: mean(self.n_foreign),
            library_calls: mean(self.n_calls_out),
        }
    }
}

/// Instructions that a packet takes on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PerPacket {
    /// Of the program itself: the same on every machine.
    pub own: f64,
    /// Of the C library, mostly `memcpy` and `memcmp`: another processor may take
    /// others.
    pub library: f64,
    /// Calls into the library.
    pub library_calls: f64,
}

/// What was counted for packets of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct KindCount {
    /// As in [`Kind::label`].
    pub kind: &'static str,
    /// From the first look at the packet to the last byte in the send buffer,
    /// nobody listening to blocks.
    pub total: PerPacket,
    /// By block, those that have any; the word of the border costs each about one
    /// instruction more.
    pub blocks: Vec<BlockCount>,
}

/// What was counted in one block.
#[derive(Clone, Debug, Serialize)]
pub struct BlockCount {
    /// The block.
    #[serde(serialize_with = "block_label")]
    pub block: Block,
    /// Its instructions.
    pub count: PerPacket,
}

fn block_label<S: serde::Serializer>(block: &Block, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&title(*block))
}

/// A block with its number, as in "B6 FIB look-up".
#[must_use]
pub fn title(block: Block) -> String {
    match block.number() {
        Some(number) => format!("B{number} {block}"),
        None => block.to_string(),
    }
}

/// Counts what packets of each kind take in `program`, a build of this one.
///
/// # Errors
/// See [`CountError`].
pub fn count(program: &Path, options: &CountOptions) -> Result<Vec<KindCount>, CountError> {
    let tallies = stepper::count(program, options)?;
    let n_pkts = options.n_rounds() * options.burst_pkts;
    let counts = Kind::ALL.into_iter().map(|kind| {
        let at = |tells_blocks| &tallies[usize::from(counted::place(kind, tells_blocks))];
        let mut total = Tally::default();
        at(false).iter().for_each(|&tally| total.add(tally));
        let blocks = Block::ALL.into_iter().map(|block| BlockCount {
            block,
            count: at(true)[block as usize].per_packet(n_pkts),
        });
        KindCount {
            kind: kind.label(),
            total: total.per_packet(n_pkts),
            blocks: blocks.filter(|block| block.count.own > 0.0).collect(),
        }
    });
    Ok(counts.collect())
}

/// What the budget knows of, by name: the default router, packets that come alone, and the
/// hash function of processors without instructions for AES. A step takes some ten microseconds
/// on a virtual machine, which bounds how many packets are worth stepping through.
const CASES: &[(&str, CountOptions)] = &[
    ("burst-32", CASE),
    (
        "burst-1",
        CountOptions {
            burst_pkts: 1,
            n_pkts: 32,
            ..CASE
        },
    ),
    (
        "burst-32-siphash",
        CountOptions {
            name_hash: HashKind::SipHash13,
            ..CASE
        },
    ),
];

const CASE: CountOptions = CountOptions {
    n_prefixes: 20_000,
    burst_pkts: 32,
    store_pkts: 4_096,
    n_pkts: 64,
    seed: 1,
    pit_cs: PitCsLayout::Composite,
    name_hash: HashKind::MultilinearAes,
    schedule: Schedule::Burst,
};

/// Counts of one case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseCount {
    /// Its name in the budget.
    pub case: &'static str,
    /// What each kind takes.
    pub kinds: Vec<KindCount>,
}

/// Counts of all cases.
#[derive(Clone, Debug, Serialize)]
pub struct InstructionsReport {
    /// Each case.
    pub cases: Vec<CaseCount>,
}

/// Runs the command.
///
/// # Errors
/// If counting fails, or the budget cannot be read or written.
pub fn run(args: &InstructionsArgs) -> anyhow::Result<ExitCode> {
    if let Some(page) = &args.page {
        counted::run(page, &CountOptions::from(args))?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = std::env::current_exe().context("cannot find this program")?;
    // Without instructions for AES the same function takes others.
    if HashKind::fastest() != HashKind::MultilinearAes {
        eprintln!("instructions cannot be counted: this processor has none for AES");
        return Ok(ExitCode::from(EXIT_UNAVAILABLE));
    }
    let mut cases = Vec::new();
    for (case, options) in CASES {
        let options = CountOptions {
            pit_cs: args.pit_cs,
            ..*options
        };
        match count(&program, &options) {
            Ok(kinds) => cases.push(CaseCount { case, kinds }),
            Err(CountError::Failed(error)) => return Err(error),
            Err(CountError::Unavailable(reason)) => {
                eprintln!("instructions cannot be counted: {reason}");
                return Ok(ExitCode::from(EXIT_UNAVAILABLE));
            }
        }
    }
    let report = InstructionsReport { cases };
    output::print(&report, args.json)?;
    let Some(path) = &args.budget else {
        return Ok(ExitCode::SUCCESS);
    };
    if args.raise {
        Budget::of(&report).write(path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let budget = Budget::read(path)?;
    let exceeded = budget.compare(&report);
    if args.update {
        budget.lowered_by(&report).write(path)?;
    }
    for line in &exceeded {
        eprintln!("{line}");
    }
    Ok(if exceeded.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl fmt::Display for InstructionsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "instructions per packet, of the program itself; in brackets the C library's"
        )?;
        for CaseCount { case, kinds } in &self.cases {
            for kind in kinds {
                let total = kind.total;
                writeln!(
                    f,
                    "\n{case}, {}: {:.1} ({:.1} in {:.1} calls)",
                    kind.kind, total.own, total.library, total.library_calls
                )?;
                for BlockCount { block, count } in &kind.blocks {
                    let (own, library) = (count.own, count.library);
                    writeln!(f, "  {:<24}{own:>8.1} {library:>9.1}", title(*block))?;
                }
            }
        }
        Ok(())
    }
}
