//! Blocks of the packet path for the commands of `cache` that are not experiments yet.

use clap::Args;
use serde::Serialize;
use tachonym_forward::{Block, Schedule};
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

use crate::beds::engine::cycles::Cycles;
use crate::beds::engine::{Bed, BedOptions};
use crate::choices::{PageChoice, name_hash};
use crate::instructions::title;
use crate::takemasa::published_block;

/// What a measurement is of.
#[derive(Args, Clone, Debug)]
pub struct BottleneckArgs {
    /// Prefixes in the FIB
    #[arg(long, default_value_t = 1_000_000)]
    pub fib_prefixes: u64,
    /// Packets of a burst
    #[arg(long, default_value_t = 32)]
    pub burst: u16,
    /// Data in the content store
    #[arg(long, default_value_t = 262_144)]
    pub store: u32,
    /// Bursts between a burst and its Data
    #[arg(long, default_value_t = 0)]
    pub late: u32,
    /// Rounds
    #[arg(long, default_value_t = 11)]
    pub rounds: u16,
    /// Packets of each kind in a round
    #[arg(long, default_value_t = 16_384)]
    pub packets: u32,
    /// Hash function of names
    #[arg(long, default_value = "auto", value_parser = name_hash)]
    pub name_hash: HashKind,
    /// Order of work in a burst
    #[arg(long, default_value_t = Schedule::default())]
    pub schedule: Schedule,
    /// Whether pending Interests and cached Data share an index
    #[arg(long, default_value_t)]
    pub pit_cs: PitCsLayout,
    /// Pages of the tables
    #[arg(long, value_enum, default_value_t = PageChoice::Auto)]
    pub pages: PageChoice,
    /// Seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Not used
    #[arg(skip)]
    pub svg: Option<std::path::PathBuf>,
    /// Not used
    #[arg(skip)]
    pub no_instructions: bool,
    /// Not used
    #[arg(skip)]
    pub json: bool,
}

/// A block, over all kinds of packets that enter it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NumberedBlock {
    pub(crate) number: u8,
    pub(crate) block: String,
    pub(crate) ns: f64,
    pub(crate) published_cycles: Option<u32>,
}

/// Measures each numbered block but those of the policy.
pub(crate) fn numbered_blocks(args: &BottleneckArgs) -> anyhow::Result<Vec<NumberedBlock>> {
    let mut bed = Bed::new(BedOptions {
        n_prefixes: args.fib_prefixes,
        burst_pkts: args.burst.into(),
        store_pkts: args.store as usize,
        late_bursts: args.late as usize,
        seed: args.seed,
        name_hash: args.name_hash,
        schedule: args.schedule,
        pit_cs: args.pit_cs,
        pages: args.pages.into(),
        ..BedOptions::default()
    })?;
    let n_bursts = (args.packets as usize).div_ceil(args.burst.into());
    let cycles = Cycles::measure(&mut bed, args.rounds.into(), n_bursts)?;
    let blocks = Block::ALL.into_iter().filter_map(|block| {
        Some(NumberedBlock {
            number: block
                .number()
                .filter(|number| ![2, 12, 13].contains(number))?,
            block: title(block),
            ns: cycles.block(block)? * cycles.clock.tick_ns,
            published_cycles: published_block(block),
        })
    });
    Ok(blocks.collect())
}

/// Prints them.
pub(crate) fn run_table(args: &BottleneckArgs) -> anyhow::Result<()> {
    println!("| block | ns | published cycles |\n|---|---|---|");
    for block in numbered_blocks(args)? {
        let published = block.published_cycles.unwrap_or_default();
        println!("| {} | {:.0} | {published} |", block.block, block.ns);
    }
    Ok(())
}
