//! What schedulers get out of 16 cores with four services: Figure 5.6 of Iqbal 2013.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::{PATHS, Penalties};

use super::bed::{self, Common, Kind};
use super::published;
use crate::cache::plot::Chart;
use crate::output;

/// Measures the throughput of four services on 16 cores (Figure 5.6)
#[derive(Args, Clone, Debug)]
pub(super) struct ThroughputArgs {
    #[command(flatten)]
    common: Common,
    /// Rates of arriving packets, in millions per second, all services together
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MPPS",
        default_value = "0.5,0.75,1,1.125,1.25,1.375,1.5,1.75,2,2.25,2.5,2.75,3,3.25,3.5,4,4.5,5"
    )]
    rates: Vec<f64>,
    /// Packets in a queue of 100 at which a core counts as overloaded
    #[arg(long, default_value_t = 80, value_name = "N")]
    threshold: u32,
    /// Seconds of virtual time for each rate
    #[arg(long, default_value_t = 0.5, value_name = "S")]
    seconds: f64,
}

const N_CORES: usize = 16;
const TRACES: [&str; 4] = ["caida 1", "caida 2", "caida 3", "caida 4"];

#[derive(Serialize)]
struct Row {
    scheduler: String,
    offered_mpps: f64,
    done_mpps: f64,
    dropped_pct: f64,
    cold_pct: f64,
    out_of_order_pct: f64,
    /// Dropped since they had to be held and found no room.
    unheld_pct: f64,
    /// Flows, or bundles of them, that moved off an overloaded core.
    n_shifts: u64,
}

/// How far a scheduler goes.
#[derive(Serialize)]
struct End {
    scheduler: String,
    /// The most that it did at any rate.
    most_mpps: f64,
    /// The highest rate of which it dropped no more than a hundredth.
    kept_mpps: f64,
}

/// What is still counted as kept, in percent dropped.
const KEPT_PCT: f64 = 1.0;

#[derive(Serialize)]
struct Report {
    threshold: u32,
    seconds: f64,
    rows: Vec<Row>,
    ends: Vec<End>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "four services on {N_CORES} cores, equal shares of traffic, threshold {} of 100, \
             {} s of virtual time each\n\n\
             | scheduler | offered Mpps | done Mpps | dropped % | cold % | out of order % | no \
             room to hold % | shifts |\n\
             |---|---|---|---|---|---|---|---|",
            self.threshold, self.seconds
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {:.3} | {:.3} | {:.2} | {:.2} | {:.3} | {:.3} | {} |",
                row.scheduler,
                row.offered_mpps,
                row.done_mpps,
                row.dropped_pct,
                row.cold_pct,
                row.out_of_order_pct,
                row.unheld_pct,
                row.n_shifts
            )?;
        }
        writeln!(
            f,
            "\n| scheduler | most done, Mpps | LAPS by it | kept, Mpps | LAPS by it |\n\
             |---|---|---|---|---|"
        )?;
        for end in &self.ends {
            writeln!(
                f,
                "| {} | {:.3} | {:.2} | {:.3} | {:.2} |",
                end.scheduler,
                end.most_mpps,
                self.ends[0].most_mpps / end.most_mpps,
                end.kept_mpps,
                self.ends[0].kept_mpps / end.kept_mpps
            )?;
        }
        writeln!(
            f,
            "\nPublished: LAPS does {} times what AFS does and {} times what FCFS does. Kept is \
             the \
             highest rate of which at most {KEPT_PCT} % is dropped, among those tried. Beyond it, \
             LAPS drops packets of \
             services that take long and goes on with others, so that it may do more packets than \
             the ideal, which drops all alike: what is kept tells more. {}.",
            published::BY_AFS,
            published::BY_FCFS,
            published::TRACES
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If a rate makes no sense, or the drawing cannot be written.
pub(super) fn run(args: &ThroughputArgs) -> anyhow::Result<()> {
    let services = PATHS.to_vec();
    let published = CoresConfig::new(N_CORES, services);
    let ideal = CoresConfig {
        penalties: Penalties::NONE,
        ..published.clone()
    };
    let runs = [
        ("LAPS", Kind::Laps { n_tracked: 16 }, &published),
        (
            "LAPS, linear",
            Kind::LapsLinear { n_tracked: 16 },
            &published,
        ),
        (
            "LAPS as published",
            Kind::LapsPublished { n_tracked: 16 },
            &published,
        ),
        ("AFS", Kind::Afs, &published),
        ("DLB", Kind::Dlb, &published),
        ("FCFS", Kind::Fcfs, &published),
        ("ideal", Kind::Fcfs, &ideal),
    ];
    let seed = args.common.seed;
    let traces = TRACES.map(|name| bed::trace(name, seed));
    let mut rows = Vec::new();
    let mut ends = Vec::new();
    for (label, kind, config) in &runs {
        let (mut most_pps, mut kept_pps) = (0.0_f64, 0.0_f64);
        for rate_mpps in &args.rates {
            let rate = RateModel::constant(rate_mpps * 1e6 / 4.0);
            let traffic = traces.iter().map(|trace| (rate, trace.clone())).collect();
            let run = bed::simulate(
                config,
                (*kind, args.threshold),
                traffic,
                (args.seconds, 1.0),
                seed,
            )?;
            let dropped_pct = bed::percent(run.counts.n_dropped, run.counts.n_arrived);
            most_pps = most_pps.max(run.done_pps);
            if dropped_pct <= KEPT_PCT {
                kept_pps = kept_pps.max(run.offered_pps);
            }
            rows.push(Row {
                scheduler: (*label).to_owned(),
                offered_mpps: run.offered_pps / 1e6,
                done_mpps: run.done_pps / 1e6,
                dropped_pct,
                cold_pct: bed::percent(run.counts.n_cold, run.counts.n_departed),
                out_of_order_pct: bed::percent(run.counts.n_out_of_order, run.counts.n_departed),
                unheld_pct: bed::percent(run.counts.n_dropped_unheld, run.counts.n_arrived),
                n_shifts: run.n_shifts,
            });
        }
        ends.push(End {
            scheduler: (*label).to_owned(),
            most_mpps: most_pps / 1e6,
            kept_mpps: kept_pps / 1e6,
        });
    }
    let report = Report {
        threshold: args.threshold,
        seconds: args.seconds,
        rows,
        ends,
    };
    let lines = report.rows.chunks(args.rates.len().max(1)).map(|rows| {
        let points = rows.iter().map(|row| (row.offered_mpps, row.done_mpps));
        (rows[0].scheduler.clone(), points.collect())
    });
    let chart = Chart::of_lines(
        "Figure 5.6".to_owned(),
        "Mpps that come",
        "Mpps that are done",
        lines.collect(),
    );
    bed::draw(&args.common, &[chart])?;
    output::print(&report, args.common.json)
}
