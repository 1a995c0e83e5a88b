//! Table 1 of Takemasa et al. 2019 (5.1 of the thesis): what each block of the packet path
//! takes, by its number.

use std::fmt;

use anyhow::Context as _;
use serde::Serialize;

use super::{BottleneckArgs, analyse, plot};
use crate::output;

/// The numbers of the table. B2, B12 and B13 are in Table 2, by policy.
const NUMBERS: [u8; 10] = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// A block, over all kinds of packets that enter it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NumberedBlock {
    /// As in the table.
    pub(crate) number: u8,
    /// What it does.
    pub(crate) block: String,
    /// Nanoseconds, by kind of packet.
    pub(crate) ns_by_kind: Vec<(&'static str, f64)>,
    /// Their mean.
    pub(crate) ns: f64,
    /// The mean, in ticks of the time-stamp counter where there is one.
    pub(crate) ticks: f64,
    /// Cycles in the table.
    pub(crate) published_cycles: Option<&'static str>,
}

/// Measures every block of the table that a packet enters here.
///
/// # Errors
/// If the tables cannot be built, or packets went another way than they should.
pub(crate) fn numbered_blocks(args: &BottleneckArgs) -> anyhow::Result<Vec<NumberedBlock>> {
    Ok(by_number(&analyse(args)?))
}

fn by_number(report: &super::BottleneckReport) -> Vec<NumberedBlock> {
    let mut blocks = Vec::new();
    for number in NUMBERS {
        let of_kinds = report.kinds.iter().flat_map(|kind| {
            let of_kind = kind
                .blocks
                .iter()
                .filter(|block| block.number == Some(number));
            of_kind.map(|block| (kind.kind, block))
        });
        let found: Vec<_> = of_kinds.collect();
        let Some((_, first)) = found.first() else {
            continue;
        };
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / found.len() as f64;
        blocks.push(NumberedBlock {
            number,
            block: first.block.clone(),
            ns: mean(&mut found.iter().map(|(_, block)| block.ns)),
            ticks: mean(&mut found.iter().map(|(_, block)| block.ticks.median)),
            ns_by_kind: found
                .iter()
                .map(|&(kind, block)| (kind, block.ns))
                .collect(),
            published_cycles: first.published_cycles,
        });
    }
    blocks
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    n_fib_prefixes: u64,
    n_store_pkts: u32,
    tick: &'static str,
    blocks: Vec<NumberedBlock>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Table 1 of Takemasa et al. 2019\n{} prefixes, content store of {}; by packet that \
             enters a block: medians, the mean over kinds of packets\n\n\
             | block | ns | by kind, ns | {}s | published cycles |\n|---|---|---|---|---|",
            self.n_fib_prefixes, self.n_store_pkts, self.tick
        )?;
        for block in &self.blocks {
            let by_kind = block
                .ns_by_kind
                .iter()
                .map(|(kind, ns)| format!("{kind} {ns:.0}"));
            let by_kind: Vec<_> = by_kind.collect();
            writeln!(
                f,
                "| {} | {:.0} | {} | {:.0} | {} |",
                block.block,
                block.ns,
                by_kind.join(", "),
                block.ticks,
                block.published_cycles.unwrap_or_default()
            )?;
        }
        Ok(())
    }
}

/// Measures the blocks and prints the table.
///
/// # Errors
/// As [`numbered_blocks`], and if the drawing cannot be written.
pub(crate) fn run_table(args: &BottleneckArgs) -> anyhow::Result<()> {
    let analysed = analyse(args)?;
    if let Some(path) = &args.svg {
        plot::draw(&analysed, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    let report = Report {
        n_fib_prefixes: args.fib_prefixes,
        n_store_pkts: args.store,
        tick: analysed.tick,
        blocks: by_number(&analysed),
    };
    output::print(&report, args.json)
}
