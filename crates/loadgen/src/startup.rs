//! `tachonym-lab startup`: how long a forwarder takes from its start to the
//! first packet it carries.
//!
//! Starts it again and again, and each time connects a producer and a consumer,
//! registers a route and fetches one Data as soon as it lets them. Refuses to
//! start anything but the given command.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tachonym_bench::stats::Spread;

use crate::exchange::address::Address;
use crate::launch::Running;
use crate::output;

/// Measures the time from start to the first packet exchanged.
#[derive(Args, Clone, Debug)]
pub struct StartupArgs {
    /// Command line that starts the forwarder
    #[arg(long, value_name = "COMMAND")]
    pub start: String,
    /// Where it will listen
    #[arg(long = "forwarder", value_name = "URI")]
    pub address: Address,
    /// Where the consumer connects [default: as --forwarder]
    #[arg(long, value_name = "URI")]
    pub consumer: Option<Address>,
    /// Starts
    #[arg(long, default_value_t = 11, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub count: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Times from the start, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct StartupReport {
    /// The command line.
    pub start: String,
    /// Until a connection was taken; over UDP this says nothing.
    pub connected_ms: Spread,
    /// Until the command that registered a route was answered.
    pub registered_ms: Spread,
    /// Until one Data had gone from the producer to the consumer.
    pub exchanged_ms: Spread,
    /// From the request to end until the end.
    pub stopped_ms: Spread,
    /// Resident memory after the first exchange, in bytes.
    pub rss_bytes: Spread,
}

/// Runs the command.
///
/// # Errors
/// If the forwarder does not start, carries nothing or does not end.
pub fn run(args: &StartupArgs) -> anyhow::Result<()> {
    output::print(&measure(args)?, args.json)
}

/// Starts and stops the forwarder as often as asked.
///
/// # Errors
/// If the forwarder does not start, carries nothing or does not end.
pub fn measure(args: &StartupArgs) -> anyhow::Result<StartupReport> {
    let mut columns: [Vec<f64>; 5] = Default::default();
    for _ in 0..args.count {
        let mut running = Running::start(&args.start)?;
        let consumer = args.consumer.as_ref().unwrap_or(&args.address);
        let first = running.first_exchange(&args.address, consumer)?;
        let rss_bytes = running.process()?.memory()?.rss_bytes;
        let stopped = running.stop()?;
        let ms = [first.connected, first.registered, first.exchanged, stopped]
            .map(|duration| duration.as_secs_f64() * 1e3);
        for (column, value) in columns
            .iter_mut()
            .zip(ms.into_iter().chain([rss_bytes as f64]))
        {
            column.push(value);
        }
    }
    let spread = |values: &[f64]| Spread::of(values).expect("count is at least one");
    let [connected, registered, exchanged, stopped, rss] = columns;
    Ok(StartupReport {
        start: args.start.clone(),
        connected_ms: spread(&connected),
        registered_ms: spread(&registered),
        exchanged_ms: spread(&exchanged),
        stopped_ms: spread(&stopped),
        rss_bytes: spread(&rss),
    })
}

impl fmt::Display for StartupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_starts = self.exchanged_ms.n_rounds;
        writeln!(f, "`{}`, {n_starts} starts, median (p10–p90)", self.start)?;
        for (what, spread) in [
            ("connection taken", self.connected_ms),
            ("route registered", self.registered_ms),
            ("first Data", self.exchanged_ms),
            ("ended", self.stopped_ms),
        ] {
            writeln!(
                f,
                "{what:<18}{:.2} ms ({:.2}–{:.2})",
                spread.median, spread.p10, spread.p90
            )?;
        }
        let rss_mib = self.rss_bytes.median / f64::from(1 << 20);
        write!(f, "memory then       {rss_mib:.1} MiB")
    }
}
