//! What an overloaded core's queue holds when a flow moves off it: Figures 4.12 and 4.13 of
//! Iqbal 2013.

use std::fmt;

use anyhow::ensure;
use clap::Args;
use serde::Serialize;
use tachonym_sim::cores::{Cores, CoresConfig};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::PATHS;
use tachonym_sim::traffic::Traffic;

use super::bed::{self, Common, FileArgs, Kind};
use super::published;
use crate::cache::plot::Chart;
use crate::output;

/// Measures the content of overloaded queues when a flow migrates (Figures 4.12 and 4.13)
#[derive(Args, Clone, Debug)]
pub(super) struct MigrationsArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    file: FileArgs,
    /// Traffic as a multiple of the capacity of all 16 cores without penalties
    #[arg(long, default_value_t = 1.02, value_name = "RATIO")]
    load: f64,
    /// Seconds of virtual time
    #[arg(long, default_value_t = 0.2, value_name = "S")]
    seconds: f64,
    /// Migrates every aggressive flow that arrives, as published
    #[arg(long)]
    published: bool,
}

impl MigrationsArgs {
    const fn kind(&self) -> Kind {
        let n_tracked = N_LARGE as usize;
        if self.published {
            Kind::LapsPublished { n_tracked }
        } else {
            Kind::Laps { n_tracked }
        }
    }
}

const TRACES: [&str; 4] = ["caida 1", "caida 2", "auckland 1", "auckland 2"];
const N_CORES: usize = 16;
/// Flows that are large: as many as are tracked.
const N_LARGE: u32 = 16;

#[derive(Serialize)]
struct Row {
    trace: String,
    n_migrations: usize,
    mean_flows: f64,
    p10_flows: u32,
    p90_flows: u32,
    mean_large: f64,
    p10_large: u32,
    p90_large: u32,
}

#[derive(Serialize)]
struct Report {
    load: f64,
    seconds: f64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "forwarding on 16 cores, {} of what they do without penalties, {} s of virtual time\n\n\
             | trace | migrations | flows in the queue | p10 | p90 | large ones | p10 | p90 |\n\
             |---|---|---|---|---|---|---|---|",
            self.load, self.seconds
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {:.1} | {} | {} | {:.2} | {} | {} |",
                row.trace,
                row.n_migrations,
                row.mean_flows,
                row.p10_flows,
                row.p90_flows,
                row.mean_large,
                row.p10_large,
                row.p90_large
            )?;
        }
        writeln!(
            f,
            "\nPublished: {} flows in the queue, several of them large. {}; how many of its \
             packets one flow has in a queue follows from their trains, 3 packets on average here.",
            published::FLOWS_AT_MIGRATION,
            published::TRACES
        )
    }
}

fn at(sorted: &[u32], part: f64) -> u32 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * part).round() as usize)
        .copied()
        .unwrap_or_default()
}

fn mean(values: &[u32]) -> f64 {
    values.iter().map(|&n| f64::from(n)).sum::<f64>() / values.len().max(1) as f64
}

/// Runs the command.
///
/// # Errors
/// If a trace cannot be read, or the drawing cannot be written.
pub(super) fn run(args: &MigrationsArgs) -> anyhow::Result<()> {
    ensure!(
        args.seconds > 0.0 && args.load > 0.0,
        "a run takes time and traffic"
    );
    let services = vec![PATHS[1].clone()];
    let rate = RateModel::constant(args.load * services[0].rate_pps(0.0) * N_CORES as f64);
    let mut rows = Vec::new();
    let mut lines = [Vec::new(), Vec::new()];
    for (name, trace) in args.file.traces(&TRACES, args.common.seed)? {
        let laps = args.kind().laps(N_CORES, &services, 80)?;
        let mut traffic = Traffic::new(vec![(rate, trace)], 1.0, args.common.seed);
        let config = args
            .kind()
            .cores(&CoresConfig::new(N_CORES, services.clone()));
        let mut cores = Cores::new(config, laps, traffic.n_flows());
        cores.watch_migrations(N_LARGE);
        let end_ns = (args.seconds * 1e9) as u64;
        while let Some(packet) = traffic.next_packet().filter(|packet| packet.at_ns < end_ns) {
            cores.handle_packet(packet);
        }
        let noted = cores.migrations();
        let mut flows: Vec<_> = noted.iter().map(|it| it.n_flows).collect();
        let mut large: Vec<_> = noted.iter().map(|it| it.n_large).collect();
        flows.sort_unstable();
        large.sort_unstable();
        // A drawing of more points shows no more.
        let drawn = || noted.iter().step_by(noted.len().div_ceil(500).max(1));
        let ms = |at_ns: u64| at_ns as f64 / 1e6;
        lines[0].push((
            name.clone(),
            drawn()
                .map(|it| (ms(it.at_ns), it.n_flows.into()))
                .collect(),
        ));
        lines[1].push((
            name.clone(),
            drawn()
                .map(|it| (ms(it.at_ns), it.n_large.into()))
                .collect(),
        ));
        rows.push(Row {
            trace: name,
            n_migrations: noted.len(),
            mean_flows: mean(&flows),
            p10_flows: at(&flows, 0.1),
            p90_flows: at(&flows, 0.9),
            mean_large: mean(&large),
            p10_large: at(&large, 0.1),
            p90_large: at(&large, 0.9),
        });
    }
    let [flows, large] = lines;
    let chart =
        |title: &str, y, lines| Chart::of_lines(title.to_owned(), "virtual time, ms", y, lines);
    let charts = [
        chart("Figure 4.12", "flows in the queue", flows),
        chart("Figure 4.13", "large flows in the queue", large),
    ];
    bed::draw(&args.common, &charts)?;
    let report = Report {
        load: args.load,
        seconds: args.seconds,
        rows,
    };
    output::print(&report, args.common.json)
}
