//! What it gains to move aggressive flows only: Figures 4.9 to 4.11 of Iqbal 2013.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::PATHS;

use super::bed::{self, Common, FileArgs, Kind, below_pct, percent};
use super::published;
use crate::cache::plot::Chart;
use crate::output;

/// Measures drops, reordering and flow shifts by the flows tracked (Figures 4.9 to 4.11)
#[derive(Args, Clone, Debug)]
pub(super) struct BalanceArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    file: FileArgs,
    /// Cores
    #[arg(long, default_value_t = 16, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    cores: u16,
    /// Traffic as a multiple of the capacity of all cores without penalties
    #[arg(long, default_value_t = 1.02, value_name = "RATIO")]
    load: f64,
    /// Packets in a queue of 100 at which a core counts as overloaded
    #[arg(long, default_value_t = 80, value_name = "N")]
    threshold: u32,
    /// Seconds of virtual time
    #[arg(long, default_value_t = 0.2, value_name = "S")]
    seconds: f64,
    /// Flows tracked
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "4,8,10,16,32,64",
        value_name = "N"
    )]
    tracked: Vec<usize>,
}

const TRACES: [&str; 4] = ["caida 1", "caida 2", "auckland 1", "auckland 2"];

#[derive(Serialize)]
struct Row {
    trace: String,
    scheduler: String,
    dropped_pct: f64,
    out_of_order_pct: f64,
    n_shifts: u64,
    /// Packets that went to another core than their flow's before.
    moved_pct: f64,
    /// Packets held until their flow's former core was done, how long on average, and those
    /// for which there was no room.
    held_pct: f64,
    mean_held_us: f64,
    n_unheld: u64,
    drops_by_dlb: Option<f64>,
    reordering_below_dlb_pct: Option<f64>,
    shifts_below_dlb_pct: Option<f64>,
    n_tracked: Option<usize>,
}

#[derive(Serialize)]
struct Report {
    n_cores: u16,
    load: f64,
    threshold: u32,
    seconds: f64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "forwarding on {} cores, {} of what they do without penalties, threshold {} of 100, \
             {} s of virtual time\n\n\
             | trace | scheduler | dropped % | out of order % | shifts | packets moved % \
             | held % | for, µs | no room | drops by DLB | reordering below DLB % | shifts below \
             DLB % |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|",
            self.n_cores, self.load, self.threshold, self.seconds
        )?;
        let or_nothing = |value: Option<f64>, places: usize| {
            value.map_or(String::new(), |value| format!("{value:.places$}"))
        };
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {:.3} | {:.4} | {} | {:.4} | {:.4} | {:.1} | {} | {} | {} | {} |",
                row.trace,
                row.scheduler,
                row.dropped_pct,
                row.out_of_order_pct,
                row.n_shifts,
                row.moved_pct,
                row.held_pct,
                row.mean_held_us,
                row.n_unheld,
                or_nothing(row.drops_by_dlb, 3),
                or_nothing(row.reordering_below_dlb_pct, 1),
                or_nothing(row.shifts_below_dlb_pct, 1)
            )?;
        }
        writeln!(
            f,
            "\nPublished, with 16 tracked: reordering {} % and shifts {} % below DLB, drops like \
             those of DLB or fewer from 10 on. {}. DLB moves whatever flow arrives, AFS its bucket \
             of 1024; the thesis says of neither which grain it has, nor how many cores, nor the \
             threshold.",
            published::REORDERING_BELOW_DLB_PCT,
            published::SHIFTS_BELOW_DLB_PCT,
            published::TRACES
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If a trace cannot be read, a size is out of its range, or the drawing cannot be written.
pub(super) fn run(args: &BalanceArgs) -> anyhow::Result<()> {
    let services = vec![PATHS[1].clone()];
    let n_cores = usize::from(args.cores);
    let rate = RateModel::constant(args.load * services[0].rate_pps(0.0) * f64::from(args.cores));
    let config = CoresConfig::new(n_cores, services.clone());
    let mut kinds = vec![Kind::Dlb, Kind::Afs, Kind::Static];
    kinds.extend(
        args.tracked
            .iter()
            .map(|&n_tracked| Kind::Laps { n_tracked }),
    );
    kinds.push(Kind::LapsLinear { n_tracked: 16 });
    kinds.push(Kind::LapsPublished { n_tracked: 16 });
    kinds.push(Kind::Oracle { n_tracked: 16 });
    let mut rows = Vec::new();
    for (name, trace) in args.file.traces(&TRACES, args.common.seed)? {
        let mut dlb = None;
        for &kind in &kinds {
            let traffic = vec![(rate, trace.clone())];
            let run = bed::simulate(
                &config,
                (kind, args.threshold),
                traffic,
                (args.seconds, 1.0),
                args.common.seed,
            )?;
            let dlb = dlb.get_or_insert(run);
            let counts = run.counts;
            let is_dlb = kind == Kind::Dlb;
            let below = |value, reference| below_pct(value, reference).filter(|_| !is_dlb);
            let n_dropped_by_dlb = dlb.counts.n_dropped;
            rows.push(Row {
                trace: name.clone(),
                scheduler: kind.label(),
                dropped_pct: percent(counts.n_dropped, counts.n_arrived),
                out_of_order_pct: percent(counts.n_out_of_order, counts.n_departed),
                n_shifts: run.n_shifts,
                moved_pct: percent(counts.n_moved, counts.n_arrived),
                held_pct: percent(counts.n_held, counts.n_arrived),
                mean_held_us: counts.held_ns as f64 / 1e3 / counts.n_held.max(1) as f64,
                n_unheld: counts.n_dropped_unheld,
                drops_by_dlb: (n_dropped_by_dlb > 0 && !is_dlb)
                    .then(|| counts.n_dropped as f64 / n_dropped_by_dlb as f64),
                reordering_below_dlb_pct: below(counts.n_out_of_order, dlb.counts.n_out_of_order),
                shifts_below_dlb_pct: below(run.n_shifts, dlb.n_shifts),
                n_tracked: match kind {
                    Kind::Laps { n_tracked } => Some(n_tracked),
                    _ => None,
                },
            });
        }
    }
    let report = Report {
        n_cores: args.cores,
        load: args.load,
        threshold: args.threshold,
        seconds: args.seconds,
        rows,
    };
    let chart = |title: &str, y, value: &dyn Fn(&Row) -> Option<f64>| {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in &report.rows {
            let Some((x, y)) = row.n_tracked.map(|n| n as f64).zip(value(row)) else {
                continue;
            };
            match lines.last_mut() {
                Some((trace, points)) if *trace == row.trace => points.push((x, y)),
                _ => lines.push((row.trace.clone(), vec![(x, y)])),
            }
        }
        Chart::of_lines(title.to_owned(), "flows tracked", y, lines)
    };
    let remains = |below: Option<f64>| below.map(|below| 1.0 - below / 100.0);
    let charts = [
        chart("Figure 4.9", "drops by DLB", &|row| row.drops_by_dlb),
        chart("Figure 4.10", "out of order by DLB", &|row| {
            remains(row.reordering_below_dlb_pct)
        }),
        chart("Figure 4.11", "flow shifts by DLB", &|row| {
            remains(row.shifts_below_dlb_pct)
        }),
    ];
    bed::draw(&args.common, &charts)?;
    output::print(&report, args.common.json)
}
