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
    /// Packets that come, in millions per second, all services together
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MPPS",
        default_value = "0.5,0.75,1,1.25,1.5,1.75,2,2.5,3,3.5,4,4.5,5"
    )]
    rates: Vec<f64>,
    /// Packets in a queue of 100 from which on a core is overloaded
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
    cold_pct: f64,
    out_of_order_pct: f64,
}

#[derive(Serialize)]
struct Report {
    threshold: u32,
    seconds: f64,
    rows: Vec<Row>,
    /// The most that LAPS did, by the most that another did.
    by_afs: f64,
    by_dlb: f64,
    by_fcfs: f64,
    by_ideal: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "four services on {N_CORES} cores, equal shares of traffic, threshold {} of 100, \
             {} s of virtual time each\n\n\
             | scheduler | offered Mpps | done Mpps | cold % | out of order % |\n|---|---|---|---|---|",
            self.threshold, self.seconds
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {:.3} | {:.3} | {:.2} | {:.3} |",
                row.scheduler, row.offered_mpps, row.done_mpps, row.cold_pct, row.out_of_order_pct
            )?;
        }
        writeln!(
            f,
            "\nThe most of LAPS is {:.2} times that of AFS (published {}), {:.2} times that of \
             FCFS (published {}), {:.2} times that of DLB and {:.2} of the ideal. {}.",
            self.by_afs,
            published::BY_AFS,
            self.by_fcfs,
            published::BY_FCFS,
            self.by_dlb,
            self.by_ideal,
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
    let published = CoresConfig::new(N_CORES, services.clone());
    let ideal = CoresConfig {
        penalties: Penalties::NONE,
        ..published.clone()
    };
    let runs = [
        ("LAPS", Kind::Laps { n_tracked: 16 }, &published),
        ("AFS", Kind::Afs, &published),
        ("DLB", Kind::Dlb, &published),
        ("FCFS", Kind::Fcfs, &published),
        ("ideal", Kind::Fcfs, &ideal),
    ];
    let seed = args.common.seed;
    let traces = TRACES.map(|name| bed::trace(name, seed));
    let mut rows = Vec::new();
    let mut most = [0.0_f64; 5];
    for ((label, kind, config), most) in runs.iter().zip(&mut most) {
        for rate_mpps in &args.rates {
            let rate = RateModel::constant(rate_mpps * 1e6 / 4.0);
            let traffic = traces.iter().map(|trace| (rate, trace.clone())).collect();
            let scheduler = kind.scheduler(N_CORES, &services, args.threshold)?;
            let run = bed::simulate(config, scheduler, traffic, (args.seconds, 1.0), seed)?;
            *most = most.max(run.done_pps);
            rows.push(Row {
                scheduler: (*label).to_owned(),
                offered_mpps: run.offered_pps / 1e6,
                done_mpps: run.done_pps / 1e6,
                cold_pct: bed::percent(run.counts.n_cold, run.counts.n_departed),
                out_of_order_pct: bed::percent(run.counts.n_out_of_order, run.counts.n_departed),
            });
        }
    }
    let [laps, afs, dlb, fcfs, ideal] = most;
    let report = Report {
        threshold: args.threshold,
        seconds: args.seconds,
        rows,
        by_afs: laps / afs,
        by_dlb: laps / dlb,
        by_fcfs: laps / fcfs,
        by_ideal: laps / ideal,
    };
    let lines = report.rows.chunks(args.rates.len().max(1)).map(|rows| {
        let points = rows.iter().map(|row| (row.offered_mpps, row.done_mpps));
        (rows[0].scheduler.clone(), points.collect())
    });
    let chart = Chart::of_lines("Figure 5.6".to_owned(), "Mpps that come", "Mpps that are done", lines.collect());
    bed::draw(&args.common, &[chart])?;
    output::print(&report, args.common.json)
}
