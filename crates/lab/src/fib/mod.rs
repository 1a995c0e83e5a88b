//! `tachonym-lab fib FIGURE`: the experiments of Yuan 2015, chapters 3 and 4.1, with the
//! router's own FIB.
//!
//! Each prints what was measured, and beside it what the thesis says of its figure in
//! words or numbers; bars and lines that it only draws are not read off. Its tables had
//! 512 million rules and more on another machine, so ratios compare, and times do not.

mod bed;
mod levels;
mod plan;
mod plot;
mod urls;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tachonym_memory::{Pages, available_bytes};
use tachonym_tables::FibEngine;

use self::bed::{Bed, Table, Way};
use crate::output;
use crate::stats::Spread;

/// Memory that a rule of so many components takes at most, with markers, in bytes. Of
/// seven it is 211, of fifteen 340.
const fn max_rule_bytes(n_components: usize) -> u64 {
    100 + 20 * n_components as u64
}

/// Reproduces figures and tables of Yuan 2015 about the FIB.
#[derive(Args, Clone, Debug)]
pub struct FibArgs {
    /// Which one
    #[arg(value_enum)]
    pub figure: Figure,
    /// Rules in the FIB; of table 4.2, URLs of the first set, and of the others in
    /// proportion
    #[arg(long, value_name = "N")]
    pub rules: Option<u64>,
    /// Doubles the number of rules up to this one (figures 3.8 to 3.10)
    #[arg(long, value_name = "N")]
    pub up_to: Option<u64>,
    /// Most threads (figure 3.11, table 3.2) [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
    /// Search algorithm of the FIB, where the figure does not compare them
    #[arg(long, value_enum, default_value_t = Engine::BinarySearch)]
    pub engine: Engine,
    /// File of URLs or names, one a line, instead of synthetic ones (table 4.2)
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,
    /// Most components behind a prefix before it is pulled (table 4.2)
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub threshold: u32,
    /// Rounds, in each of which everything is measured once
    #[arg(long, default_value_t = 7, value_name = "N",
          value_parser = clap::value_parser!(u64).range(3..=1_000))]
    pub rounds: u64,
    /// Seed of the names
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// A figure or table of Yuan 2015.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Figure {
    /// Page sizes, and names hashed beforehand.
    #[value(name = "3.6")]
    Pages,
    /// What is fetched ahead.
    #[value(name = "3.7")]
    Prefetch,
    /// Sizes of the FIB, 7 components.
    #[value(name = "3.8")]
    Sizes,
    /// Sizes of the FIB, 15 components.
    #[value(name = "3.9")]
    LongNames,
    /// Linear search.
    #[value(name = "3.10")]
    Linear,
    /// Threads.
    #[value(name = "3.11")]
    Threads,
    /// Throughput by what is fetched ahead: the engine's part.
    #[value(name = "table-3.2")]
    Throughput,
    /// Level pulling.
    #[value(name = "table-4.2")]
    LevelPulling,
}

/// How a FIB is searched, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The longest prefix first.
    LongestFirst,
    /// A middle length first.
    TwoStage,
    /// By halves of the lengths.
    BinarySearch,
    /// The shortest prefix first.
    ShortestFirst,
}

impl Engine {
    const ALL: [Self; 4] = [
        Self::LongestFirst,
        Self::TwoStage,
        Self::BinarySearch,
        Self::ShortestFirst,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::LongestFirst => "longest-first",
            Self::TwoStage => "two-stage",
            Self::BinarySearch => "binary-search",
            Self::ShortestFirst => "shortest-first",
        }
    }
}

impl From<Engine> for FibEngine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::LongestFirst => Self::LongestFirst,
            Engine::TwoStage => Self::TwoStage { first: 0 },
            Engine::BinarySearch => Self::BinarySearch,
            Engine::ShortestFirst => Self::ShortestFirst,
        }
    }
}

/// What is measured: a table, and how it is searched.
#[derive(Clone, Debug)]
struct Case {
    /// What it belongs to in the drawing.
    series: String,
    table: Table,
    way: Way,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it belongs to in the drawing.
    pub series: String,
    /// The table.
    #[serde(flatten)]
    pub table: Table,
    /// How it was searched.
    #[serde(flatten)]
    pub way: Way,
    /// Pages that most of the table is on.
    pub pages: &'static str,
    /// Memory of the table for each rule, in bytes, everything included.
    pub bytes_per_rule: f64,
    /// Time that a name takes a thread, hashing included unless it was before.
    pub ns: Spread,
    /// Names that all threads together search for, in millions a second.
    pub mpps: Spread,
}

/// What the thesis says, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Of what.
    pub what: String,
    /// In the thesis.
    pub published: String,
    /// Here.
    pub measured: String,
}

/// A figure or table with its comparisons.
#[derive(Clone, Debug, Serialize)]
pub struct FibFigures {
    /// Its title.
    pub title: &'static str,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Beside what is published.
    pub comparisons: Vec<Comparison>,
    /// What could not be measured as asked.
    pub notes: Vec<String>,
}

impl fmt::Display for FibFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\n\n| rules | components | engine | names compared | pages | prefetched | \
             hashed | threads | bytes a rule | ns a name (p10–p90) | Mpps |\n\
             |---|---|---|---|---|---|---|---|---|---|---|",
            self.title
        )?;
        for row in &self.rows {
            let hashed = if row.way.is_hashed_before {
                "before"
            } else {
                "meanwhile"
            };
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {hashed} | {} | {:.0} | {:.0} ({:.0}–{:.0}) | \
                 {:.2} |",
                row.table.n_rules,
                row.table.n_components,
                row.table.engine.label(),
                row.table.matching.label(),
                row.pages,
                row.way.fetch.label(),
                row.way.n_threads,
                row.bytes_per_rule,
                row.ns.median,
                row.ns.p10,
                row.ns.p90,
                row.mpps.median,
            )?;
        }
        write_comparisons(f, &self.comparisons)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

fn write_comparisons(f: &mut fmt::Formatter<'_>, comparisons: &[Comparison]) -> fmt::Result {
    writeln!(f, "\n| | Yuan 2015 | here |\n|---|---|---|")?;
    for comparison in comparisons {
        let Comparison {
            what,
            published,
            measured,
        } = comparison;
        writeln!(f, "| {what} | {published} | {measured} |")?;
    }
    writeln!(f)
}

/// Runs the command.
///
/// # Errors
/// If there is not as much memory as the tables need, names cannot be read, or the
/// drawing cannot be written.
pub fn run(args: &FibArgs) -> anyhow::Result<()> {
    ensure!(
        args.names.is_none() || args.figure == Figure::LevelPulling,
        "--names is for table-4.2 only; the other figures use synthetic names"
    );
    if args.figure == Figure::LevelPulling {
        let figures = levels::measure(args)?;
        if let Some(path) = &args.svg {
            let bars = figures.bars();
            plot::bars(levels::TITLE, "fewer hash lookups, %", &bars, path)
                .with_context(|| format!("cannot draw {}", path.display()))?;
        }
        return output::print(&figures, args.json);
    }
    let figures = measure(args)?;
    if let Some(path) = &args.svg {
        plot::draw(args.figure, &figures, path)
            .with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&figures, args.json)
}

fn measure(args: &FibArgs) -> anyhow::Result<FibFigures> {
    let mut rows: Vec<Row> = Vec::new();
    let mut notes = Vec::new();
    for cases in plan::cases(args)? {
        measure_together(args, &cases, &mut rows, &mut notes)?;
    }
    Ok(FibFigures {
        title: plan::title(args.figure),
        comparisons: plan::comparisons(args.figure, &rows),
        rows,
        notes,
    })
}

/// Measures cases in rounds in which they take turns.
fn measure_together(
    args: &FibArgs,
    cases: &[Case],
    rows: &mut Vec<Row>,
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    let mut tables: Vec<Table> = Vec::new();
    for case in cases {
        if !tables.contains(&case.table) {
            tables.push(case.table);
        }
    }
    let need_bytes = |table: &Table| table.n_rules * max_rule_bytes(table.n_components);
    let needed: u64 = tables.iter().map(need_bytes).sum();
    let missing = needed.saturating_sub(available_bytes());
    ensure!(
        missing == 0,
        "{missing} bytes of memory are missing for {} tables, the first of which has {} rules",
        tables.len(),
        tables.first().map_or(0, |table| table.n_rules)
    );
    let beds: Vec<Bed> = tables
        .iter()
        .map(|&table| Bed::new(table, args.seed))
        .collect::<anyhow::Result<_>>()?;
    let bed_of = |table: &Table| {
        let idx = tables.iter().position(|other| other == table);
        &beds[idx.expect("each case's table is among them")]
    };
    let mut times = vec![(Vec::new(), Vec::new()); cases.len()];
    for _ in 0..args.rounds {
        for (case, (ns, mpps)) in cases.iter().zip(&mut times) {
            let measured = bed_of(&case.table).measure(case.way);
            ns.push(measured.0);
            mpps.push(measured.1);
        }
    }
    for (case, (ns, mpps)) in cases.iter().zip(&times) {
        let bed = bed_of(&case.table);
        let pages = most_pages(bed.pages());
        if case.table.pages == crate::choices::PageChoice::Huge1G && pages != "1 GiB" {
            let note = format!("1 GiB pages were requested, but the system provided {pages} ones.");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        rows.push(Row {
            series: case.series.clone(),
            table: case.table,
            way: case.way,
            pages,
            bytes_per_rule: bed.memory_bytes() as f64 / case.table.n_rules as f64,
            ns: Spread::of(ns).context("no round")?,
            mpps: Spread::of(mpps).context("no round")?,
        });
    }
    Ok(())
}

/// The pages that most bytes are on.
fn most_pages(pages: Pages) -> &'static str {
    let kinds = [
        (pages.base_bytes, "4 KiB"),
        (pages.transparent_bytes + pages.huge_2m_bytes, "2 MiB"),
        (pages.huge_1g_bytes, "1 GiB"),
    ];
    kinds.into_iter().max().map_or("no", |(_, label)| label)
}
