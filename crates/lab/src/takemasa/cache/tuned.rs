//! Filter that tunes itself beside fixed settings of Filter, on every workload here.

use std::fmt;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::figures::{Row, ScaleArgs};
use super::plot::{self, Axis, Chart, Line};
use super::sources::Workload;
use crate::output;

/// Simulates self-tuning Filter and Filter with fixed settings on every workload
#[derive(Args, Clone, Debug)]
pub(super) struct TunedArgs {
    /// Self-tuning Filter
    #[arg(long, value_name = "POLICY", default_value = "filter-auto/gclock")]
    auto: String,
    /// Fixed settings, the published one first: an admission and an eviction. The threshold, and
    /// the history as a multiple of the size of the cache, may follow, as in filter:3:2/fifo; their
    /// defaults are 2 and 1, as published
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "filter/fifo,filter/clock,filter/gclock,filter:3:1/gclock,\
                         filter:2:3/gclock,filter:3:3/gclock,filter:3:10/gclock,\
                         filter:5:10/gclock"
    )]
    fixed: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WORKLOAD",
        default_value = "web,video,mixed,drift,scans,one-timers"
    )]
    workloads: Vec<Workload>,
    // Sizes are 1, 3 and 10 % here, if none are given.
    #[command(flatten)]
    scale: ScaleArgs,
}

/// A workload and a size of the cache.
#[derive(Clone, Debug, Serialize)]
struct Comparison {
    workload: Workload,
    percent: u32,
    capacity: usize,
    auto: Row,
    /// In the order of the command line.
    fixed: Vec<Row>,
}

impl Comparison {
    /// The best of those that a test picks.
    fn best(&self, picks: impl Fn(&Row) -> bool) -> Option<&Row> {
        let rows = self
            .fixed
            .iter()
            .filter(|row| row.failure.is_none() && picks(row));
        rows.max_by(|a, b| a.hit_ratio.total_cmp(&b.hit_ratio))
    }
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    what: String,
    auto: String,
    /// Fixed settings with published threshold and history: one for each eviction.
    published: Vec<String>,
    comparisons: Vec<Comparison>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} beside Filter of fixed settings\n{}\n\n\
             | workload | cache, % | Data | hits | Data inserted | best as published | hits, \
             inserted | \
             points off | best of all settings | hits, inserted | points off |\n\
             |---|---|---|---|---|---|---|---|---|---|---|",
            self.auto, self.what
        )?;
        let mut least = f64::INFINITY;
        for comparison in &self.comparisons {
            let auto = &comparison.auto;
            write!(
                f,
                "| {} | {} | {} | {:.4} | {:.4} |",
                comparison.workload.label(),
                comparison.percent,
                comparison.capacity,
                auto.hit_ratio,
                auto.insertion_ratio
            )?;
            let published = comparison.best(|row| self.published.contains(&row.policy));
            for (idx, best) in [published, comparison.best(|_| true)]
                .into_iter()
                .enumerate()
            {
                let Some(best) = best else {
                    write!(f, " | | |")?;
                    continue;
                };
                let points = 100.0 * (auto.hit_ratio - best.hit_ratio);
                if idx == 0 {
                    least = least.min(points);
                }
                write!(
                    f,
                    " {} | {:.4}, {:.4} | {points:+.2} |",
                    best.policy, best.hit_ratio, best.insertion_ratio
                )?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\nLeast difference to the published threshold and history, whichever eviction is \
             best: \
             {least:+.2} hundredths of all requests; the aim is not below -1.\n\
             The best of all settings is known only afterwards."
        )?;
        for comparison in &self.comparisons {
            if let Some(failure) = &comparison.auto.failure {
                writeln!(f, "{}: {failure}", comparison.workload.label())?;
            }
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy, or the drawing cannot be written.
pub(super) fn run(args: &TunedArgs) -> anyhow::Result<()> {
    let mut policies = vec![args.auto.clone()];
    policies.extend(args.fixed.iter().cloned());
    let mut scale = args.scale.clone();
    if scale.percent.is_empty() {
        scale.percent = vec![1, 3, 10];
    }
    let rows = scale.rows(&args.workloads, &policies)?;
    let mut comparisons = Vec::new();
    for auto in rows.iter().filter(|row| row.policy == args.auto) {
        let is_beside = |row: &&Row| {
            (row.workload, row.percent) == (auto.workload, auto.percent) && row.policy != args.auto
        };
        comparisons.push(Comparison {
            workload: auto.workload,
            percent: auto.percent,
            capacity: auto.capacity,
            auto: auto.clone(),
            fixed: rows.iter().filter(is_beside).cloned().collect(),
        });
    }
    let report = Report {
        what: args.scale.describe(&args.workloads),
        auto: args.auto.clone(),
        published: args
            .fixed
            .iter()
            .filter(|name| !name.contains(':'))
            .cloned()
            .collect(),
        comparisons,
    };
    if let Some(path) = &args.scale.svg {
        let charts: Vec<Chart> = args
            .workloads
            .iter()
            .map(|&of| chart(&report, of))
            .collect();
        plot::draw(&charts, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.scale.json)
}

fn chart(report: &Report, workload: Workload) -> Chart {
    let mut lines: Vec<Line> = Vec::new();
    for comparison in report
        .comparisons
        .iter()
        .filter(|of| of.workload == workload)
    {
        let rows = std::iter::once(&comparison.auto).chain(&comparison.fixed);
        for row in rows.filter(|row| row.failure.is_none()) {
            let point = (f64::from(row.percent), row.hit_ratio);
            match lines.iter_mut().find(|line| line.label == row.policy) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    points: vec![point],
                    ..Line::new(row.policy.clone())
                }),
            }
        }
    }
    Chart {
        x_axis: Axis::Linear,
        title: workload.label().to_owned(),
        x: "Data in the cache, % of the objects".to_owned(),
        y: "hits by Interests".to_owned(),
        lines,
        published: Vec::new(),
    }
}
