//! Average cycles of the packet path over cache sizes, by equations 1 and 2: Figure 7 of
//! Takemasa et al. 2019.
//!
//! Hit and insertion ratios are simulated in this run. With them the published blocks
//! (Tables 1 and 2) say what the figure should show, and the blocks that are measured in
//! this run say what it is here.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tachonym_forward::Schedule;
use tachonym_packet::HashKind;
use tachonym_policy::AdmissionKind;
use tachonym_policy::model::BlockCycles;
use tachonym_tables::PitCsLayout;

use super::cycles::{self, CyclesArgs};
use super::figures::ScaleArgs;
use super::plot::{self, Axis, Chart, Line};
use super::published;
use super::sources::{Workload, policy};
use crate::bottleneck::{BottleneckArgs, NumberedBlock, numbered_blocks};
use crate::choices::PageChoice;
use crate::output;

/// Computes average cycles of the packet path from its blocks and simulated ratios (figure 7)
#[derive(Args, Clone, Debug)]
pub(super) struct AverageArgs {
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "filter/fifo,tinylfu/random,fifo,random,arc,filter-auto/gclock"
    )]
    policies: Vec<String>,
    /// Prefixes in the FIB of the blocks that are measured
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    fib_prefixes: u64,
    /// Data in the cache of the blocks that are measured
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(4_096..=1 << 28))]
    store: u32,
    /// Rounds in which blocks are measured
    #[arg(long, default_value_t = 11, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    #[command(flatten)]
    scale: ScaleArgs,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    policy: String,
    percent: u32,
    capacity: usize,
    hit_ratio: f64,
    insertion_ratio: f64,
    /// By the published blocks, where the policy has some.
    published_cycles: Option<f64>,
    /// By the blocks measured here, in nanoseconds.
    measured_ns: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    what: String,
    n_fib_prefixes: u64,
    store_pkts: u32,
    blocks: Vec<NumberedBlock>,
    policies: Vec<cycles::Row>,
    rows: Vec<Row>,
}

impl Report {
    /// What Filter takes less than a policy at the least size of the cache, in shares of
    /// that policy's: by the published blocks, and by those here.
    fn saved(&self, of: &str) -> Option<(Option<f64>, f64)> {
        let first = |policy: &str| self.rows.iter().find(|row| row.policy == policy);
        let (filter, other) = (first("filter/fifo")?, first(of)?);
        let published = filter.published_cycles.zip(other.published_cycles);
        let saved = |(filter, other): (f64, f64)| 1.0 - filter / other;
        Some((
            published.map(saved),
            saved((filter.measured_ns, other.measured_ns)),
        ))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Figure 7 of Takemasa et al. 2019\n{}\nblocks here: {} prefixes, content store of \
             {}\n\n| block | here, ns | published cycles |\n|---|---|---|",
            self.what, self.n_fib_prefixes, self.store_pkts
        )?;
        for block in &self.blocks {
            let published = block.published_cycles.unwrap_or_default();
            writeln!(f, "| {} | {:.0} | {published} |", block.block, block.ns)?;
        }
        for row in &self.policies {
            let published = published::cycles(&row.policy);
            let published = published.map_or(String::new(), |[b2, b12, b13]| {
                format!("{b2:.0}, {b12:.0}, {b13:.0}")
            });
            writeln!(
                f,
                "| B2, B12, B13 of {} | {:.1}, {:.1}, {:.1} | {published} |",
                row.policy, row.history_ns.median, row.evict_ns.median, row.admit_ns.median
            )?;
        }
        writeln!(
            f,
            "\n| policy | cache, % | Data | hit ratio | Data inserted | cycles by the published \
             blocks | ns by the blocks here |\n|---|---|---|---|---|---|---|"
        )?;
        for row in &self.rows {
            let published = row.published_cycles;
            writeln!(
                f,
                "| {} | {} | {} | {:.4} | {:.4} | {} | {:.0} |",
                row.policy,
                row.percent,
                row.capacity,
                row.hit_ratio,
                row.insertion_ratio,
                published.map_or(String::new(), |cycles| format!("{cycles:.0}")),
                row.measured_ns
            )?;
        }
        writeln!(
            f,
            "\n| Filter takes less than | published | published blocks, ratios from here | here |\n\
             |---|---|---|---|"
        )?;
        for (policy, percent) in published::FILTER_SAVES {
            if let Some((by_published, here)) = self.saved(policy) {
                let by_published = by_published.unwrap_or_default() * 100.0;
                writeln!(
                    f,
                    "| {policy} | {percent:.0} % | {by_published:.0} % | {:.0} % |",
                    here * 100.0
                )?;
            }
        }
        writeln!(
            f,
            "\nNo cycles of the figure are in the text, only these shares at 10^5 Data. What the \
             engine here does beside the numbered blocks (strategies, checks, prefetches) is not \
             in \
             them."
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy, memory does not suffice, or the drawing cannot be written.
pub(super) fn run(args: &AverageArgs) -> anyhow::Result<()> {
    let workloads = [Workload::Web];
    let blocks = numbered_blocks(&bottleneck_args(args))?;
    let measured = cycles::measure(&CyclesArgs::of(
        &args.policies,
        args.store,
        args.scale.seed,
        args.rounds,
    ))?;
    let mut rows = Vec::new();
    for row in args.scale.rows(&workloads, &args.policies)? {
        if let Some(failure) = row.failure {
            anyhow::bail!("{} with {} Data: {failure}", row.policy, row.capacity);
        }
        let admits_all = policy(&row.policy, row.capacity)?.admission == AdmissionKind::None;
        let average = |blocks: BlockCycles| match admits_all {
            true => blocks.with_eviction(row.hit_ratio),
            false => blocks.with_admission(row.hit_ratio, row.insertion_ratio),
        };
        let of_policy = measured.iter().find(|of| of.policy == row.policy);
        let of_policy = of_policy.context("a policy was not measured")?;
        let here = [
            &of_policy.history_ns,
            &of_policy.evict_ns,
            &of_policy.admit_ns,
        ];
        let published =
            published::cycles(&row.policy).map(|own| average(grouped(published::block, own)));
        rows.push(Row {
            measured_ns: average(grouped(
                |number| {
                    let block = blocks.iter().find(|block| block.number == number);
                    block.map_or(0.0, |block| block.ns)
                },
                here.map(|spread| spread.median),
            )),
            policy: row.policy,
            percent: row.percent,
            capacity: row.capacity,
            hit_ratio: row.hit_ratio,
            insertion_ratio: row.insertion_ratio,
            published_cycles: published,
        });
    }
    let report = Report {
        what: args.scale.describe(&workloads),
        n_fib_prefixes: args.fib_prefixes,
        store_pkts: args.store,
        blocks,
        policies: measured,
        rows,
    };
    if let Some(path) = &args.scale.svg {
        draw(&report, path)?;
    }
    output::print(&report, args.scale.json)
}

/// The groups of the equations, from the blocks by number and B2, B12 and B13 of a policy.
fn grouped(block: impl Fn(u8) -> f64, [history, evict, admit]: [f64; 3]) -> BlockCycles {
    let sum = |numbers: &[u8]| numbers.iter().map(|&number| block(number)).sum::<f64>();
    BlockCycles {
        always: sum(&[1, 3, 11]) + history,
        hit: block(4),
        miss: sum(&[5, 6, 7, 8, 9]),
        insert: block(10),
        evict,
        admit,
    }
}

fn bottleneck_args(args: &AverageArgs) -> BottleneckArgs {
    BottleneckArgs {
        fib_prefixes: args.fib_prefixes,
        burst: 32,
        store: args.store,
        late: 0,
        rounds: args.rounds,
        packets: 16_384,
        name_hash: HashKind::fastest(),
        schedule: Schedule::default(),
        pit_cs: PitCsLayout::default(),
        pages: PageChoice::Auto,
        seed: args.scale.seed,
        svg: None,
        no_instructions: true,
        json: false,
    }
}

fn draw(report: &Report, path: &Path) -> anyhow::Result<()> {
    let chart = |title: &str, y: &str, value: &dyn Fn(&Row) -> Option<f64>| {
        let mut lines: Vec<Line> = Vec::new();
        for row in &report.rows {
            let Some(value) = value(row) else {
                continue;
            };
            if lines.last().is_none_or(|line| line.label != row.policy) {
                lines.push(Line::new(row.policy.clone()));
            }
            if let Some(line) = lines.last_mut() {
                line.points.push((f64::from(row.percent), value));
            }
        }
        Chart {
            x_axis: Axis::Linear,
            title: title.to_owned(),
            x: "Data in the cache, % of the objects".to_owned(),
            y: y.to_owned(),
            lines,
            published: Vec::new(),
        }
    };
    let charts = [
        chart(
            "Figure 7, by the published blocks",
            "cycles by Interest and its Data",
            &|row| row.published_cycles,
        ),
        chart(
            "Figure 7, by the blocks measured here",
            "ns by Interest and its Data",
            &|row| Some(row.measured_ns),
        ),
    ];
    plot::draw(&charts, path).with_context(|| format!("cannot draw {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_blocks_and_ratios_make_the_published_savings() {
        // The hit ratios of section 6.2; of the insertion ratios none is in the text.
        let average = |policy: &str, insertion: Option<f64>| {
            let own = published::cycles(policy).expect("published");
            let hit_ratio = published::web_hit_ratio(policy).expect("published");
            let blocks = grouped(published::block, own);
            match insertion {
                None => blocks.with_eviction(hit_ratio),
                Some(insertion) => blocks.with_admission(hit_ratio, insertion),
            }
        };
        let filter = average("filter/fifo", Some(0.03));
        for (policy, insertion) in [
            ("arc", None),
            ("fifo", None),
            ("random", None),
            ("tinylfu/random", Some(0.03)),
        ] {
            let saved = 100.0 * (1.0 - filter / average(policy, insertion));
            let published = published::FILTER_SAVES
                .iter()
                .find(|(name, _)| *name == policy);
            let published = published.expect("published").1;
            // What the text says is not exactly what its tables make.
            assert!(
                (saved - published).abs() < 5.0,
                "{policy}: {saved} {published}"
            );
        }
    }
}
