//! `tachonym-lab soak`: a forwarder's memory while names that never repeat go
//! through it.
//!
//! Resident memory is read at the start and after each tenth of the names. The
//! first three tenths fill tables and caches; from then on it must not grow.
//! Refuses to wait: what the forwarder frees later does not count.

use std::fmt;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tachonym_bench::stats::LineFit;

use crate::exchange::address::Address;
use crate::exchange::budget::{Deadline, Phase};
use crate::exchange::control;
use crate::exchange::drive::Driver;
use crate::exchange::flow::{Flow, FlowShape, Mode};
use crate::exchange::link::Link;
use crate::exchange::template::{InterestShape, MAX_CONTENT_BYTES, Numbering};
use crate::launch::{ForwarderArgs, fresh_prefix};
use crate::output::{self, mib};

/// Readings of the memory after the first.
const N_PARTS: u64 = 10;
/// Readings before memory is expected to stay, the first included.
const N_WARM_UP: usize = 4;
/// Growth that is still flat: one per cent and this much, in bytes.
const FLAT_SLACK_BYTES: u64 = 256 << 10;
/// Longest time for one tenth.
const PART_PATIENCE: Duration = Duration::from_secs(600);

/// Exchanges many distinct names and watches the forwarder's memory.
#[derive(Args, Clone, Debug)]
pub struct SoakArgs {
    /// The forwarder.
    #[command(flatten)]
    pub forwarder: ForwarderArgs,
    /// Where producers connect [default: as --forwarder]
    #[arg(long, value_name = "URI")]
    pub producer: Option<Address>,
    /// Distinct names
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=10_000_000_000))]
    pub names: u64,
    /// Content of each Data in bytes, up to 8,000
    #[arg(long, default_value_t = 1_000, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(0..=MAX_CONTENT_BYTES as u64))]
    pub content_bytes: u64,
    /// Most Interests in flight
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub in_flight: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Memory over names.
#[derive(Clone, Debug, Serialize)]
pub struct SoakReport {
    /// The forwarder's process.
    pub pid: u32,
    /// The program's name as the kernel knows it.
    pub program: Option<String>,
    /// Names exchanged and resident memory in bytes then, ascending.
    pub readings: Vec<Reading>,
    /// Interests without their Data.
    pub n_lost: u64,
    /// From the first Interest to the last Data, in seconds.
    pub seconds: f64,
    /// The forwarder's CPU time per exchange in nanoseconds.
    pub cpu_ns_per_exchange: f64,
    /// Growth of resident memory after the first three tenths, in bytes per
    /// name, by least squares.
    pub slope_bytes_per_name: f64,
    /// Growth of resident memory from the third tenth to the last, in bytes.
    pub growth_bytes: i64,
    /// Growth that counts as none: one per cent and 256 KiB.
    pub allowed_growth_bytes: i64,
    /// Whether memory grew by no more than that.
    pub is_flat: bool,
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Names exchanged so far.
    pub n_names: u64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// If nothing could be measured. Growth and loss are figures.
pub fn run(args: &SoakArgs) -> anyhow::Result<()> {
    output::print(&measure(args)?, args.json)
}

/// Exchanges the names.
///
/// # Errors
/// If the forwarder cannot be reached, refuses the route or ends.
pub fn measure(args: &SoakArgs) -> anyhow::Result<SoakReport> {
    let attached = args.forwarder.attach()?;
    let process = attached.process;
    let consumer = Link::connect(&args.forwarder.address)?;
    let producer = args.producer.as_ref().unwrap_or(&args.forwarder.address);
    let producer = Link::connect(producer)?;
    let shape = FlowShape {
        mode: Mode::Miss,
        in_flight: args.in_flight as usize,
        catalogue: 0,
        interest: InterestShape {
            lifetime_ms: 4_000,
            must_be_fresh: false,
            token_bytes: None,
        },
        content_bytes: args.content_bytes as usize,
        freshness_ms: 3_600_000,
        numbering: Numbering::Generic,
    };
    let (prefix, seed) = fresh_prefix();
    let mut flow = Flow::new(prefix.clone(), consumer, producer, &shape, seed);
    control::register(flow.producer_mut(), &prefix, None, Deadline::NONE)?;
    let mut driver = Driver::new(vec![flow], false);
    driver.probe(Deadline::NONE)?;

    let mut readings = vec![Reading {
        n_names: 0,
        rss_bytes: process.memory()?.rss_bytes,
    }];
    let cpu_before_ns = process.cpu_ns()?;
    let started = Instant::now();
    let (mut n_names, mut n_exchanges) = (0, 0);
    for part in 1..=N_PARTS {
        let until = (u128::from(args.names) * u128::from(part) / u128::from(N_PARTS)) as u64;
        driver.flows_mut()[0].allow(until - n_names);
        let phase = Phase::lasting(Instant::now(), PART_PATIENCE, driver.flows()[0].lifetime());
        driver.run(phase, || {})?;
        let counters = driver.flows()[0].counters();
        n_names += counters.n_sent;
        n_exchanges += counters.n_exchanges;
        readings.push(Reading {
            n_names,
            rss_bytes: process.memory()?.rss_bytes,
        });
    }
    let seconds = started.elapsed().as_secs_f64();
    let cpu_ns = process.cpu_ns()?.saturating_sub(cpu_before_ns);
    let steady = &readings[N_WARM_UP - 1..];
    let (growth_bytes, allowed_growth_bytes) = growth(steady);
    Ok(SoakReport {
        pid: process.pid(),
        program: process.name(),
        n_lost: n_names - n_exchanges,
        seconds,
        cpu_ns_per_exchange: cpu_ns as f64 / n_exchanges.max(1) as f64,
        slope_bytes_per_name: slope(steady),
        growth_bytes,
        allowed_growth_bytes,
        is_flat: growth_bytes <= allowed_growth_bytes,
        readings,
    })
}

fn slope(readings: &[Reading]) -> f64 {
    let point = |r: &Reading| (r.n_names as f64, r.rss_bytes as f64);
    let points: Vec<_> = readings.iter().map(point).collect();
    LineFit::of(&points).map_or(0.0, |line| line.slope)
}

/// Growth from the first reading to the last in bytes, and how much counts as none.
fn growth(readings: &[Reading]) -> (i64, i64) {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return (0, 0);
    };
    let growth = last.rss_bytes as i64 - first.rss_bytes as i64;
    let allowed = first.rss_bytes / 100 + FLAT_SLACK_BYTES;
    (growth, allowed as i64)
}

impl fmt::Display for SoakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_names = self.readings.last().map_or(0, |r| r.n_names);
        writeln!(
            f,
            "{} (pid {}): {n_names} names in {:.1} s, {} lost, {:.3} µs/exchange",
            self.program.as_deref().unwrap_or("?"),
            self.pid,
            self.seconds,
            self.n_lost,
            self.cpu_ns_per_exchange / 1e3
        )?;
        for reading in &self.readings {
            let rss_mib = mib(reading.rss_bytes);
            writeln!(f, "{:>12} names {rss_mib:>9.2} MiB", reading.n_names)?;
        }
        write!(
            f,
            "{}: {} bytes since the third tenth, {:.4} bytes per name",
            if self.is_flat { "flat" } else { "GROWING" },
            self.growth_bytes,
            self.slope_bytes_per_name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(rss_bytes: impl Fn(u64) -> u64) -> Vec<Reading> {
        let reading = |n_names| Reading {
            n_names,
            rss_bytes: rss_bytes(n_names),
        };
        (0..8).map(|i| reading(i * 1_000)).collect()
    }

    #[test]
    fn a_byte_for_each_name_is_found() {
        let growing = readings(|n| (100 << 20) + 400 * n);
        assert!((slope(&growing) - 400.0).abs() < 1e-6);
        let (grown, allowed) = growth(&growing);
        assert_eq!((grown, grown > allowed), (2_800_000, true));
    }

    #[test]
    fn a_little_more_or_less_is_flat() {
        let allowed = (1 << 20) + (256 << 10);
        assert_eq!(growth(&readings(|n| (100 << 20) + n)), (7_000, allowed));
        assert_eq!(growth(&readings(|n| (100 << 20) - n)).0, -7_000);
        assert_eq!(growth(&[]), (0, 0));
    }
}
