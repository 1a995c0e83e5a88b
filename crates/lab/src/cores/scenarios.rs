//! Drops, cold caches and order under traffic that varies: Figures 5.7 to 5.9 of Iqbal
//! 2013, with the rates of its Table 5.1.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::rate::{RateModel, SET_1, SET_2};
use tachonym_sim::service::PATHS;

use super::bed::{self, Common, Kind, percent};
use super::published;
use crate::cache::plot::Chart;
use crate::output;

/// Simulates the scenarios T1 to T8 (Figures 5.7 to 5.9)
#[derive(Args, Clone, Debug)]
pub(super) struct ScenariosArgs {
    #[command(flatten)]
    common: Common,
    /// Factor by which rates change faster than published; a minute of traffic takes that much less
    #[arg(long, default_value_t = 30.0, value_name = "N")]
    speedup: f64,
    /// Packets in a queue of 100 at which a core counts as overloaded
    #[arg(long, default_value_t = 80, value_name = "N")]
    threshold: u32,
}

const N_CORES: usize = 16;
/// Seconds of each scenario's traffic.
const TRAFFIC_S: f64 = 60.0;

/// Tables 5.2 and 5.3.
const GROUPS: [[&str; 4]; 4] = [
    ["caida 1", "caida 2", "caida 3", "caida 4"],
    ["caida 5", "caida 6", "caida 2", "caida 3"],
    ["auckland 1", "auckland 2", "auckland 3", "auckland 4"],
    ["auckland 5", "auckland 6", "auckland 7", "auckland 8"],
];
const SETS: [[RateModel; 4]; 2] = [SET_1, SET_2];
const KINDS: [Kind; 4] = [
    Kind::Fcfs,
    Kind::Afs,
    Kind::Laps { n_tracked: 16 },
    Kind::LapsPublished { n_tracked: 16 },
];

#[derive(Serialize)]
struct Row {
    scenario: usize,
    scheduler: String,
    offered_mpps: f64,
    dropped_pct: f64,
    cold_pct: f64,
    out_of_order_pct: f64,
}

#[derive(Serialize)]
struct Report {
    speedup: f64,
    threshold: u32,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "four services on {N_CORES} cores; {TRAFFIC_S} s of traffic in {:.2} s of virtual \
             time, \
             threshold {} of 100\n\n\
             | scenario | scheduler | offered Mpps | dropped % | cold % | out of order % |\n\
             |---|---|---|---|---|---|",
            TRAFFIC_S / self.speedup,
            self.threshold
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| T{} | {} | {:.2} | {:.3} | {:.2} | {:.3} |",
                row.scenario,
                row.scheduler,
                row.offered_mpps,
                row.dropped_pct,
                row.cold_pct,
                row.out_of_order_pct
            )?;
        }
        writeln!(
            f,
            "\nPublished: FCFS and AFS drop in T1 to T4, too, where the sum is below what the \
             cores \
             do, since almost {} % of their packets meet a cold cache; LAPS drops least in all. \
             {}.",
            published::COLD_PCT,
            published::TRACES
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If a number makes no sense, or the drawing cannot be written.
pub(super) fn run(args: &ScenariosArgs) -> anyhow::Result<()> {
    let services = PATHS.to_vec();
    let config = CoresConfig::new(N_CORES, services);
    let seed = args.common.seed;
    let mut rows = Vec::new();
    for scenario in 0..8 {
        let models = SETS[scenario / 4];
        let traces = GROUPS[scenario % 4].map(|name| bed::trace(name, seed));
        for kind in KINDS {
            let traffic = models.into_iter().zip(traces.clone()).collect();
            let times = (TRAFFIC_S / args.speedup, args.speedup);
            let run = bed::simulate(&config, (kind, args.threshold), traffic, times, seed)?;
            let counts = run.counts;
            rows.push(Row {
                scenario: scenario + 1,
                scheduler: kind.label(),
                offered_mpps: run.offered_pps / 1e6,
                dropped_pct: percent(counts.n_dropped, counts.n_arrived),
                cold_pct: percent(counts.n_cold, counts.n_departed),
                out_of_order_pct: percent(counts.n_out_of_order, counts.n_departed),
            });
            eprintln!("T{} {}", scenario + 1, kind.label());
        }
    }
    let report = Report {
        speedup: args.speedup,
        threshold: args.threshold,
        rows,
    };
    let chart = |title: &str, y, value: &dyn Fn(&Row) -> f64| {
        let lines = KINDS.map(|kind| {
            let of_kind = report
                .rows
                .iter()
                .filter(|row| row.scheduler == kind.label());
            let points = of_kind.map(|row| (row.scenario as f64, value(row)));
            (kind.label(), points.collect())
        });
        Chart::of_lines(title.to_owned(), "scenario", y, lines.to_vec())
    };
    let charts = [
        chart("Figure 5.7", "dropped, %", &|row| row.dropped_pct),
        chart("Figure 5.8", "cold, %", &|row| row.cold_pct),
        chart("Figure 5.9", "out of order, %", &|row| row.out_of_order_pct),
    ];
    bed::draw(&args.common, &charts)?;
    output::print(&report, args.common.json)
}
