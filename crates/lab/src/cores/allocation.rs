//! How cores follow traffic that varies: Figure 5.10 of Iqbal 2013.

use std::fmt;

use anyhow::ensure;
use clap::Args;
use serde::Serialize;
use tachonym_sim::cores::{Cores, CoresConfig};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::PATHS;
use tachonym_sim::traffic::{Traffic, mean_packet_bytes};

use super::bed::{self, Common, Kind, percent};
use super::published;
use crate::cache::plot::Chart;
use crate::output;

/// Simulates how cores are reassigned between two services as their traffic varies (Figure 5.10)
#[derive(Args, Clone, Debug)]
pub(super) struct AllocationArgs {
    #[command(flatten)]
    common: Common,
    /// Factor by which rates change faster than in their models of a minute
    #[arg(long, default_value_t = 20.0, value_name = "N")]
    speedup: f64,
    /// Cores
    #[arg(long, default_value_t = 16, value_name = "N",
          value_parser = clap::value_parser!(u16).range(2..=128))]
    cores: u16,
}

const TRAFFIC_S: f64 = 60.0;

#[derive(Serialize)]
struct Row {
    at_s: f64,
    rates_mpps: [f64; 2],
    /// What the rates need, by the cores' profiled rates.
    needed: [f64; 2],
    n_cores: [u32; 2],
}

#[derive(Serialize)]
struct Report {
    n_cores: u16,
    speedup: f64,
    n_transfers: u64,
    dropped_pct: f64,
    cold_pct: f64,
    /// Mean distance between cores needed and had, where both needs together can be met.
    mean_off: f64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "VPN out (1) and scan (2) on {} cores; {TRAFFIC_S} s of traffic in {:.2} s of virtual \
             time\n\n\
             | s | Mpps 1 | Mpps 2 | needed 1 | needed 2 | cores 1 | cores 2 |\n\
             |---|---|---|---|---|---|---|",
            self.n_cores,
            TRAFFIC_S / self.speedup
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {:.0} | {:.2} | {:.2} | {:.1} | {:.1} | {} | {} |",
                row.at_s,
                row.rates_mpps[0],
                row.rates_mpps[1],
                row.needed[0],
                row.needed[1],
                row.n_cores[0],
                row.n_cores[1]
            )?;
        }
        writeln!(
            f,
            "\n{} transfers; {:.3} % dropped, {:.2} % cold; assigned cores differ by {:.2} from \
             those needed on \
             average, while both needs can be met. Published: a drawing of cores that follow the \
             traffic; it states no rates, those here are assumed. {}.",
            self.n_transfers,
            self.dropped_pct,
            self.cold_pct,
            self.mean_off,
            published::TRACES
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If a number makes no sense, or the drawing cannot be written.
pub(super) fn run(args: &AllocationArgs) -> anyhow::Result<()> {
    ensure!(args.speedup > 0.0, "a speedup is above 0");
    let services = vec![PATHS[0].clone(), PATHS[2].clone()];
    let n_cores = usize::from(args.cores);
    let profiled = [0, 1].map(|n: usize| services[n].rate_pps(mean_packet_bytes()));
    // By turns, three quarters of the cores and a fifth.
    let model = |rate_pps: f64, phase: f64| RateModel {
        a: 0.45 * rate_pps * f64::from(args.cores) / 1e6,
        b: 0.0,
        c: phase * 0.3 * rate_pps * f64::from(args.cores) / 1e6,
        m: 40.0,
        sigma: 0.03,
    };
    let traffic = vec![
        (
            model(profiled[0], 1.0),
            bed::trace("caida 1", args.common.seed),
        ),
        (
            model(profiled[1], -1.0),
            bed::trace("caida 2", args.common.seed),
        ),
    ];
    let mut traffic = Traffic::new(traffic, args.speedup, args.common.seed);
    let kind = Kind::Laps { n_tracked: 16 };
    let laps = kind.laps(n_cores, &services, 80)?;
    let config = kind.cores(&CoresConfig::new(n_cores, services));
    let mut cores = Cores::new(config, laps, traffic.n_flows());
    let mut rows: Vec<Row> = Vec::new();
    let end_ns = (TRAFFIC_S / args.speedup * 1e9) as u64;
    let step_ns = 1e9 / args.speedup;
    // In the middle of each second of traffic, when cores had time to follow.
    let mut next_ns = step_ns / 2.0;
    while let Some(packet) = traffic.next_packet().filter(|packet| packet.at_ns < end_ns) {
        if packet.at_ns as f64 >= next_ns {
            let rates = traffic.rates_pps();
            let needs = cores.scheduler().needs();
            rows.push(Row {
                at_s: next_ns * args.speedup / 1e9 - 0.5,
                rates_mpps: [rates[0] / 1e6, rates[1] / 1e6],
                needed: [rates[0] / profiled[0], rates[1] / profiled[1]],
                n_cores: [needs[0].n_workers, needs[1].n_workers],
            });
            next_ns += step_ns;
        }
        cores.handle_packet(packet);
    }
    let can_be_met = |row: &&Row| row.needed[0].round() + row.needed[1].round() <= n_cores as f64;
    let off = |row: &Row, n: usize| (f64::from(row.n_cores[n]) - row.needed[n]).abs();
    let met: Vec<_> = rows.iter().filter(can_be_met).collect();
    let sum: f64 = met.iter().map(|row| off(row, 0) + off(row, 1)).sum();
    let counts = *cores.counts();
    let report = Report {
        n_cores: args.cores,
        speedup: args.speedup,
        n_transfers: cores.scheduler().counters().n_transfers,
        dropped_pct: percent(counts.n_dropped, counts.n_arrived),
        cold_pct: percent(counts.n_cold, counts.n_departed),
        mean_off: sum / (2 * met.len().max(1)) as f64,
        rows,
    };
    let chart = |title: &str, y, value: &dyn Fn(&Row, usize) -> f64| {
        let lines = [(0, "VPN out"), (1, "scan")].map(|(n, label)| {
            let points = report.rows.iter().map(|row| (row.at_s, value(row, n)));
            (label.to_owned(), points.collect())
        });
        Chart::of_lines(title.to_owned(), "seconds of traffic", y, lines.to_vec())
    };
    let charts = [
        chart("Figure 5.10 (a)", "Mpps", &|row, n| row.rates_mpps[n]),
        chart("Figure 5.10 (b)", "cores", &|row, n| row.n_cores[n].into()),
    ];
    bed::draw(&args.common, &charts)?;
    output::print(&report, args.common.json)
}
