//! Insertion and hit ratios on the three published workloads over cache sizes: Figures 5
//! and 6 of Takemasa et al. 2019.
//!
//! The text gives the hit ratios of Figure 6 (a) at one cache size in numbers, and of the
//! rest which lies above which. Only that stands beside what is simulated.

use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::plot::{self, Axis, Chart, Line};
use super::published;
use super::sources::{Cell, Workload, policy, simulate_all};
use crate::output;

/// The cache of which hit ratios are published, of the web workload.
const PUBLISHED_CACHE: usize = 100_000;

/// Insertion ratios of Filter and TinyLFU on the three workloads (figure 5), with hit ratios
#[derive(Args, Clone, Debug)]
pub(super) struct InsertionArgs {
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "filter/fifo,tinylfu/random,filter-auto/gclock"
    )]
    policies: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "web,video,mixed",
        value_name = "WORKLOAD"
    )]
    workloads: Vec<Workload>,
    #[command(flatten)]
    scale: ScaleArgs,
}

/// Hit ratios of every policy on the three workloads (figure 6), with insertion ratios
#[derive(Args, Clone, Debug)]
pub(super) struct HitArgs {
    /// Policies: an eviction policy, or an admission and an eviction policy, as in tinylfu/random
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "fifo,random,lfu,lfu-perfect,arc,tinylfu/random,filter/fifo,\
                         filter-auto/gclock"
    )]
    policies: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "web,video,mixed",
        value_name = "WORKLOAD"
    )]
    workloads: Vec<Workload>,
    #[command(flatten)]
    scale: ScaleArgs,
}

/// How large, and how long.
#[derive(Args, Clone, Debug)]
pub(super) struct ScaleArgs {
    /// Sizes of the cache, in percent of the objects [default: 1 to 10]
    #[arg(long, value_name = "N", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) percent: Vec<u32>,
    /// Published numbers of objects; takes an hour or more
    #[arg(long)]
    full: bool,
    /// Divides the numbers of objects by this, without --full
    #[arg(long, default_value_t = 20, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    shrink: u32,
    /// Requests before measurement begins, as a multiple of the size of the cache
    #[arg(long, default_value_t = 50, value_name = "N")]
    warm_by_len: u64,
    /// Requests that are measured, as a multiple of the size of the cache
    #[arg(long, default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests_by_len: u64,
    /// Requests that are measured, at least
    #[arg(long, default_value_t = 2_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    min_requests: u64,
    /// Simulations at the same time
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: u16,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) seed: u64,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What was simulated.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) workload: Workload,
    pub(super) policy: String,
    pub(super) percent: u32,
    pub(super) capacity: usize,
    /// What kept it from being simulated, if something did: then both ratios are 0.
    pub(super) failure: Option<String>,
    pub(super) hit_ratio: f64,
    /// Of the Data that arrived.
    pub(super) insertion_ratio: f64,
    /// Hit ratio of the text, of 10^7 objects.
    pub(super) published_hit_ratio: Option<f64>,
}

impl ScaleArgs {
    /// By how much the workloads are smaller than published.
    pub(super) const fn shrink(&self) -> u32 {
        if self.full { 1 } else { self.shrink }
    }

    /// Simulates policies on all workloads and at all sizes.
    ///
    /// # Errors
    /// If there is no such policy. Where memory does not suffice, the row says so.
    pub(super) fn rows(
        &self,
        workloads: &[Workload],
        policies: &[String],
    ) -> anyhow::Result<Vec<Row>> {
        let shrink = self.shrink();
        let percents = match self.percent.as_slice() {
            [] => (1..=10).collect(),
            percents => percents.to_vec(),
        };
        let mut cells = Vec::new();
        let mut rows = Vec::new();
        for &workload in workloads {
            for name in policies {
                for &percent in &percents {
                    let n_objects = u64::from(workload.n_cacheable(shrink));
                    let capacity = (n_objects * u64::from(percent) / 100) as usize;
                    let len = capacity as u64;
                    cells.push(Cell {
                        workload,
                        shrink,
                        config: policy(name, capacity)?,
                        n_warm: self.warm_by_len * len,
                        n_requests: self.min_requests.max(self.requests_by_len * len),
                        seed: self.seed,
                    });
                    rows.push(Row {
                        workload,
                        policy: name.clone(),
                        percent,
                        capacity,
                        failure: None,
                        hit_ratio: 0.0,
                        insertion_ratio: 0.0,
                        published_hit_ratio: published::web_hit_ratio(name).filter(|_| {
                            workload == Workload::Web
                                && capacity * shrink as usize == PUBLISHED_CACHE
                        }),
                    });
                }
            }
        }
        let results = simulate_all(&cells, usize::from(self.threads));
        for (row, result) in rows.iter_mut().zip(results) {
            match result {
                Ok(counts) => {
                    row.hit_ratio = counts.hit_ratio();
                    row.insertion_ratio = counts.insertion_ratio();
                }
                Err(error) => row.failure = Some(format!("{error:#}")),
            }
        }
        Ok(rows)
    }

    /// What the rows are of.
    pub(super) fn describe(&self, workloads: &[Workload]) -> String {
        let mut text = String::new();
        for workload in workloads {
            let n_objects = workload.n_objects(self.shrink());
            text += &format!("{}: {n_objects} objects; ", workload.label());
        }
        text + &format!(
            "{} requests to warm and {} measured for each Data of the cache, at least {} measured",
            self.warm_by_len, self.requests_by_len, self.min_requests
        )
    }
}

/// A figure.
#[derive(Clone, Debug, Serialize)]
struct Report {
    number: u32,
    what: String,
    shrink: u32,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Figure {} of Takemasa et al. 2019\n{}\n\n\
             | workload | policy | cache, % | Data | hit ratio | published | Data inserted |\n\
             |---|---|---|---|---|---|---|",
            self.number, self.what
        )?;
        for row in &self.rows {
            write!(
                f,
                "| {} | {} | {} | {} | ",
                row.workload.label(),
                row.policy,
                row.percent,
                row.capacity
            )?;
            if let Some(failure) = &row.failure {
                writeln!(f, "not simulated: {failure} | | |")?;
                continue;
            }
            let published = row.published_hit_ratio;
            let published = published.map_or(String::new(), |ratio| format!("{ratio}"));
            writeln!(
                f,
                "{:.4} | {published} | {:.4} |",
                row.hit_ratio, row.insertion_ratio
            )?;
        }
        let of_size = if self.shrink == 1 {
            ""
        } else {
            " Published hit ratios are of 10^7 objects, and these of fewer (--full simulates as \
             many): of fewer objects, the same share is hit less often."
        };
        writeln!(
            f,
            "\nOf the figure, no other numbers are in the text.{of_size}\n{}.\n{}.",
            published::WHY_HIGHER,
            published::WHY_INSERTIONS
        )?;
        write_insertion_order(f, &self.rows)
    }
}

/// Where Filter inserts less than TinyLFU, as published of all workloads and sizes.
fn write_insertion_order(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    let find = |of: &Row, policy: &str| {
        let found = rows.iter().find(|row| {
            (row.workload, row.capacity) == (of.workload, of.capacity) && row.policy == policy
        });
        found
            .filter(|row| row.failure.is_none())
            .map(|row| row.insertion_ratio)
    };
    for workload in [Workload::Web, Workload::Video, Workload::Mixed] {
        let mut less = Vec::new();
        let mut more = Vec::new();
        for row in rows
            .iter()
            .filter(|row| row.workload == workload && row.policy == "filter/fifo")
        {
            match find(row, "filter/fifo").zip(find(row, "tinylfu/random")) {
                Some((filter, tiny)) if filter < tiny => less.push(row.percent.to_string()),
                Some(_) => more.push(row.percent.to_string()),
                None => {}
            }
        }
        if less.len() + more.len() > 0 {
            writeln!(
                f,
                "{}: Filter inserts less than TinyLFU, as published, at [{}] %, and not at [{}] %",
                workload.label(),
                less.join(", "),
                more.join(", ")
            )?;
        }
    }
    Ok(())
}

/// Figure 5.
///
/// # Errors
/// If there is no such policy, or the drawing cannot be written.
pub(super) fn run_insertion(args: &InsertionArgs) -> anyhow::Result<()> {
    run(5, &args.policies, &args.workloads, &args.scale)
}

/// Figure 6.
///
/// # Errors
/// If there is no such policy, or the drawing cannot be written.
pub(super) fn run_hit(args: &HitArgs) -> anyhow::Result<()> {
    run(6, &args.policies, &args.workloads, &args.scale)
}

fn run(
    number: u32,
    policies: &[String],
    workloads: &[Workload],
    scale: &ScaleArgs,
) -> anyhow::Result<()> {
    let report = Report {
        number,
        what: scale.describe(workloads),
        shrink: scale.shrink(),
        rows: scale.rows(workloads, policies)?,
    };
    if let Some(path) = &scale.svg {
        let charts: Vec<Chart> = workloads.iter().map(|&of| chart(&report, of)).collect();
        plot::draw(&charts, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, scale.json)
}

fn chart(report: &Report, workload: Workload) -> Chart {
    let is_hit = report.number == 6;
    let mut lines: Vec<Line> = Vec::new();
    let mut published = Vec::new();
    for row in report.rows.iter().filter(|row| row.workload == workload) {
        if lines.last().is_none_or(|line| line.label != row.policy) {
            lines.push(Line::new(row.policy.clone()));
        }
        if row.failure.is_some() {
            continue;
        }
        let x = f64::from(row.percent);
        let y = if is_hit {
            row.hit_ratio
        } else {
            row.insertion_ratio
        };
        if let Some(line) = lines.last_mut() {
            line.points.push((x, y));
        }
        if let Some(ratio) = row.published_hit_ratio.filter(|_| is_hit) {
            published.push((lines.len() - 1, (x, ratio)));
        }
    }
    Chart {
        x_axis: Axis::Linear,
        title: format!("Figure {}, {}", report.number, workload.label()),
        x: "Data in the cache, % of the objects".to_owned(),
        y: if is_hit {
            "hits by Interests"
        } else {
            "insertions by Data that arrive"
        }
        .to_owned(),
        lines,
        published,
    }
}
