//! `tachonym-lab distance`: how many packets `burst` fetches for together.
//!
//! Too few, and a step waits for the memory that the one before has asked for; too many,
//! and the processor has no room for so many fetches, or what came first has left its
//! cache again. Distances take turns in every round, with the same tables, beside `naive`,
//! which fetches nothing ahead. Takemasa 2019, section 4.3, fetches one packet ahead.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use plotters::prelude::*;
use serde::Serialize;
use tachonym_forward::{BURST_DISTANCE, MAX_BURST_DISTANCE, Schedule};

use super::{BedArgs, RoundNs, run_round};
use crate::engine_bed::Bed;
use crate::output;
use crate::stats::Spread;

/// Measures at which prefetch distance the packet path is fastest
#[derive(Args, Clone, Debug)]
pub struct DistanceArgs {
    #[command(flatten)]
    bed: BedArgs,
    /// Numbers of packets to compare
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32], value_name = "N,N,...",
          value_parser = clap::value_parser!(u16).range(1..=MAX_BURST_DISTANCE as i64))]
    pub distances: Vec<u16>,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What was measured. Times are in nanoseconds per packet.
#[derive(Clone, Debug, Serialize)]
struct DistanceReport {
    /// Prefixes in the FIB.
    n_fib_prefixes: u64,
    /// Packets of a burst.
    burst_pkts: u16,
    /// The first is `naive`.
    figures: Vec<DistanceFigures>,
}

/// One distance.
#[derive(Clone, Debug, Serialize)]
struct DistanceFigures {
    /// In packets; 0 is that of `naive`.
    distance_pkts: u16,
    /// An Interest that misses.
    miss_ns: Spread,
    /// A Data.
    data_ns: Spread,
    /// Both, by those of `naive`: the median of the rounds' ratios.
    exchange_by_naive: f64,
}

impl DistanceFigures {
    fn exchange_ns(&self) -> f64 {
        self.miss_ns.median + self.data_ns.median
    }
}

impl fmt::Display for DistanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} prefixes, bursts of {}; nanoseconds per packet, median (p10-p90); the default is \
             {BURST_DISTANCE}\n\n| prefetch distance, packets | I-miss | Data | both | relative \
             to naive |\n|---|---|---|---|---|",
            self.n_fib_prefixes, self.burst_pkts
        )?;
        for figures in &self.figures {
            let label = match figures.distance_pkts {
                0 => "naive".to_owned(),
                distance => distance.to_string(),
            };
            let spread = |s: &Spread| format!("{:.0} ({:.0}-{:.0})", s.median, s.p10, s.p90);
            writeln!(
                f,
                "| {label} | {} | {} | {:.0} | {:.3} |",
                spread(&figures.miss_ns),
                spread(&figures.data_ns),
                figures.exchange_ns(),
                figures.exchange_by_naive,
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, packets went another way than they should, or the
/// drawing cannot be written.
pub fn run(args: &DistanceArgs) -> anyhow::Result<()> {
    let mut bed = Bed::new(args.bed.options(0))?;
    let distances: Vec<u16> = [0].into_iter().chain(args.distances.clone()).collect();
    let mut rounds = vec![Vec::new(); distances.len()];
    run_round(&mut bed, args.bed.n_bursts_ahead());
    for round in 0..usize::from(args.bed.rounds) {
        for turn in 0..distances.len() {
            let idx = (turn + round) % distances.len();
            bed.set_schedule(match distances[idx] {
                0 => Schedule::Naive,
                _ => Schedule::Burst,
            });
            bed.set_burst_distance(distances[idx].into());
            rounds[idx].push(run_round(&mut bed, args.bed.n_bursts()));
        }
    }
    bed.check()?;
    let figures = distances.iter().zip(&rounds);
    let figures = figures
        .map(|(&distance, of_it)| figures_of(distance, of_it, &rounds[0]))
        .collect::<Option<_>>();
    let report = DistanceReport {
        n_fib_prefixes: args.bed.fib_prefixes,
        burst_pkts: args.bed.burst,
        figures: figures.context("no round was measured")?,
    };
    if let Some(path) = &args.svg {
        draw(&report, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

/// `None` without rounds.
fn figures_of(
    distance_pkts: u16,
    rounds: &[RoundNs],
    naive: &[RoundNs],
) -> Option<DistanceFigures> {
    let of = |value: fn(&RoundNs) -> f64| Spread::of(&rounds.iter().map(value).collect::<Vec<_>>());
    let ratios = rounds.iter().zip(naive);
    let ratios: Vec<f64> = ratios
        .map(|(round, naive)| (round.miss + round.data) / (naive.miss + naive.data))
        .collect();
    Some(DistanceFigures {
        distance_pkts,
        miss_ns: of(|round| round.miss)?,
        data_ns: of(|round| round.data)?,
        exchange_by_naive: Spread::of(&ratios)?.median,
    })
}

/// Draws the medians by distance as SVG, and the time of `naive` across.
fn draw(report: &DistanceReport, path: &Path) -> anyhow::Result<()> {
    let (naive, by_distance) = report.figures.split_first().context("nothing to draw")?;
    let last = by_distance.iter().map(|figures| figures.distance_pkts);
    let max_x = f64::from(last.max().unwrap_or(1));
    let times = report.figures.iter().map(DistanceFigures::exchange_ns);
    let max_y = times.fold(1.0, f64::max);
    let area = SVGBackend::new(path, (760, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Time by prefetch distance, packets", ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((0.8..max_x * 1.25).log_scale(), 0.0..max_y * 1.25)?;
    chart
        .configure_mesh()
        .x_desc("prefetch distance, packets")
        .y_desc("nanoseconds")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .draw()?;
    let across = vec![
        (1.0, naive.exchange_ns()),
        (max_x.max(1.1), naive.exchange_ns()),
    ];
    let points = |value: fn(&DistanceFigures) -> f64| -> Vec<(f64, f64)> {
        let figures = by_distance.iter();
        figures
            .map(|figures| (f64::from(figures.distance_pkts), value(figures)))
            .collect()
    };
    for (label, color, points) in [
        ("both, naive", BLACK, across),
        ("both", BLUE, points(DistanceFigures::exchange_ns)),
        ("I-miss", RED, points(|figures| figures.miss_ns.median)),
        ("Data", GREEN, points(|figures| figures.data_ns.median)),
    ] {
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
