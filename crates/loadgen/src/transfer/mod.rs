//! `tachonym-lab transfer`: segmented objects through a forwarder at given
//! rates, and what gets lost on the way.
//!
//! For each address and rate one object goes from a producer to a consumer that
//! honours congestion marks. `pump` carries it, [`kernel`] tells what the
//! kernel dropped meanwhile. Refuses disks: content is made and compared in
//! memory, so that the forwarder is what limits.

pub mod kernel;
mod pump;

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tachonym_packet::Name;

use self::kernel::Drops;
use self::pump::{Plan, Pump};
use crate::exchange::address::{Address, Transport};
use crate::exchange::budget::Deadline;
use crate::exchange::control::{self, UdpFace};
use crate::exchange::link::Link;
use crate::exchange::template::MAX_CONTENT_BYTES;
use crate::launch::{ForwarderArgs, fresh_prefix};
use crate::output;
use crate::process::Process;

/// What an unlimited transfer is sized for, in bytes per second.
const UNLIMITED_SIZE_RATE: u64 = 1_000_000_000;

/// Transfers segmented objects at given rates and counts lost packets.
#[derive(Args, Clone, Debug)]
pub struct TransferArgs {
    /// The forwarder; routes of UDP producers are registered here as well.
    #[command(flatten)]
    pub forwarder: ForwarderArgs,
    /// Where consumer and producer connect; repeat for several [default: as
    /// --forwarder]
    #[arg(long = "over", value_name = "URI")]
    pub over: Vec<Address>,
    /// Content per second: 10MB, 1GB, or unlimited; repeat for several
    #[arg(long = "rate", value_name = "RATE",
          default_values = ["10MB", "30MB", "100MB", "300MB", "1GB", "unlimited"])]
    pub rates: Vec<Rate>,
    /// Length of each transfer, if it keeps its rate; an unlimited one has the size of one at 1
    /// GB/s
    #[arg(long, default_value_t = 3, value_name = "S",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Size of each object in bytes, instead of --seconds
    #[arg(long, value_name = "BYTES")]
    pub bytes: Option<u64>,
    /// Content of each segment in bytes, up to 8,000
    #[arg(long, default_value_t = 8_000, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1..=MAX_CONTENT_BYTES as u64))]
    pub segment_bytes: u64,
    /// Most segments in flight; congestion marks keep it below
    #[arg(long, default_value_t = 4_096, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub max_window: u64,
    /// Time limit of a transfer, in seconds
    #[arg(long, default_value_t = 120, value_name = "S",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub max_seconds: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Content per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bytes per second.
    Limited(u64),
    /// As fast as the window opens.
    Unlimited,
}

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let number = text.trim_end_matches('B');
        let (number, unit) = match number.char_indices().last() {
            Some((at, 'k')) => (&number[..at], 1_000),
            Some((at, 'M')) => (&number[..at], 1_000_000),
            Some((at, 'G')) => (&number[..at], 1_000_000_000),
            _ => (number, 1),
        };
        let number: u64 = number.parse().unwrap_or(0);
        match number.checked_mul(unit) {
            Some(rate) if rate > 0 => Ok(Self::Limited(rate)),
            _ => Err("write 10MB, 1GB or unlimited".to_owned()),
        }
    }
}

/// All transfers, in the order they were made.
#[derive(Clone, Debug, Serialize)]
pub struct TransferReport {
    /// The forwarder's process.
    pub pid: u32,
    /// The program's name as the kernel knows it.
    pub program: Option<String>,
    /// Content of each segment in bytes.
    pub segment_bytes: u64,
    /// The transfers.
    pub transfers: Vec<Transfer>,
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Transfer {
    /// How both ends are connected.
    pub transport: Transport,
    /// Content bytes per second that were asked for; `None`: unlimited.
    pub rate: Option<u64>,
    /// Segments of the object.
    pub n_segments: u64,
    /// Whether all of them arrived.
    pub is_complete: bool,
    /// Time it took, in seconds.
    pub seconds: f64,
    /// Content that arrived, in 10⁶ bytes per second.
    pub goodput_mb_s: f64,
    /// Segments that were taken for lost: their time was over, or many later
    /// ones came first.
    pub n_lost: u64,
    /// Interests that were sent again.
    pub n_retransmissions: u64,
    /// Segments that came more often than needed.
    pub n_unneeded: u64,
    /// Nacks.
    pub n_nacks: u64,
    /// Frames that were nothing of the transfer.
    pub n_unexpected: u64,
    /// Data with a congestion mark.
    pub n_marks: u64,
    /// Times the window was reduced.
    pub n_reductions: u64,
    /// Segments allowed in flight at the end.
    pub window: u64,
    /// Smoothed round-trip time at the end, in microseconds.
    pub rtt_us: f64,
    /// Datagrams that the kernel dropped at the forwarder's sockets.
    pub forwarder_dropped_pkts: u64,
    /// Datagrams that the kernel dropped at the two sockets of this process.
    pub generator_dropped_pkts: u64,
    /// Datagrams that the kernel dropped anywhere on the machine.
    pub machine_dropped_pkts: u64,
    /// The forwarder's CPU time per segment in microseconds.
    pub forwarder_cpu_us_per_segment: f64,
}

/// Runs the command.
///
/// # Errors
/// If nothing could be measured. Loss is a figure.
pub fn run(args: &TransferArgs) -> anyhow::Result<()> {
    output::print(&measure(args)?, args.json)
}

/// Makes every transfer that `args` names.
///
/// # Errors
/// If the forwarder cannot be reached, refuses a route or ends.
pub fn measure(args: &TransferArgs) -> anyhow::Result<TransferReport> {
    let attached = args.forwarder.attach()?;
    let process = attached.process;
    let over = match args.over.as_slice() {
        [] => std::slice::from_ref(&args.forwarder.address),
        over => over,
    };
    let mut transfers = Vec::new();
    for address in over {
        for &rate in &args.rates {
            transfers.push(transfer(args, process, address, rate)?);
        }
    }
    Ok(TransferReport {
        pid: process.pid(),
        program: process.name(),
        segment_bytes: args.segment_bytes,
        transfers,
    })
}

fn transfer(
    args: &TransferArgs,
    process: Process,
    address: &Address,
    rate: Rate,
) -> anyhow::Result<Transfer> {
    let (size_rate, rate) = match rate {
        Rate::Limited(rate) => (rate, Some(rate)),
        Rate::Unlimited => (UNLIMITED_SIZE_RATE, None),
    };
    let n_bytes = args.bytes.unwrap_or(size_rate.saturating_mul(args.seconds));
    let (prefix, seed) = fresh_prefix();
    let plan = Plan {
        n_segments: n_bytes.div_ceil(args.segment_bytes).max(1),
        segment_bytes: args.segment_bytes as usize,
        rate,
        max_window: args.max_window as usize,
        patience: Duration::from_secs(args.max_seconds),
        seed,
    };
    let mut producer = Link::connect(address)?;
    let route = Route::register(&mut producer, &prefix, &args.forwarder.address)?;
    let mut pump = Pump::new(&prefix, Link::connect(address)?, producer, plan);
    let drops_before = Drops::read(process.pid())?;
    let own_drops_before = pump.dropped_pkts()?;
    let cpu_before_ns = process.cpu_ns()?;
    let outcome = pump.run()?;
    let cpu_ns = process.cpu_ns().context("the forwarder has ended")? - cpu_before_ns;
    let drops = Drops::read(process.pid())?.since(drops_before);
    let generator_dropped_pkts = pump.dropped_pkts()? - own_drops_before;
    route.unregister(pump.producer_mut(), &prefix);
    let c = outcome.counters;
    let seconds = outcome.elapsed.as_secs_f64();
    Ok(Transfer {
        transport: address.transport(),
        rate,
        n_segments: plan.n_segments,
        is_complete: outcome.is_complete,
        seconds,
        goodput_mb_s: (c.n_segments * args.segment_bytes) as f64 / 1e6 / seconds,
        n_lost: c.n_losses,
        n_retransmissions: c.n_retransmissions,
        n_unneeded: outcome.n_unneeded,
        n_nacks: outcome.n_nacks,
        n_unexpected: outcome.n_unexpected,
        n_marks: c.n_marks,
        n_reductions: c.n_reductions,
        window: outcome.window as u64,
        rtt_us: outcome.rtt.as_secs_f64() * 1e6,
        forwarder_dropped_pkts: drops.own_pkts,
        generator_dropped_pkts,
        machine_dropped_pkts: drops.machine_pkts,
        forwarder_cpu_us_per_segment: cpu_ns as f64 / 1e3 / c.n_segments.max(1) as f64,
    })
}

/// How the producer's route was made, and so how it goes.
enum Route {
    /// By the producer itself.
    Own,
    /// Over another connection, for a forwarder's face towards the producer.
    ForFace { control: Box<Link>, face: UdpFace },
}

impl Route {
    fn register(
        producer: &mut Link,
        prefix: &Name,
        control_address: &Address,
    ) -> anyhow::Result<Self> {
        // Some forwarders take no commands over UDP.
        let via_control = control_address.transport() != Transport::Udp;
        if let Some(own_addr) = producer.local_udp_addr().filter(|_| via_control) {
            let mut control = Box::new(Link::connect(control_address)?);
            let face = control::udp_face(&mut control, own_addr, Deadline::NONE)?;
            control::register(&mut control, prefix, Some(face.id), Deadline::NONE)?;
            return Ok(Self::ForFace { control, face });
        }
        control::register(producer, prefix, None, Deadline::NONE)?;
        Ok(Self::Own)
    }

    /// Best effort: the prefix is never used again.
    fn unregister(self, producer: &mut Link, prefix: &Name) {
        match self {
            Self::Own if producer.transport() != Transport::Udp => {}
            Self::Own => {
                let _ = control::unregister(producer, prefix, None, Deadline::NONE);
            }
            Self::ForFace { mut control, face } => {
                let _ = control::unregister(&mut control, prefix, Some(face.id), Deadline::NONE);
                if face.is_new {
                    let _ = control::destroy_face(&mut control, face.id, Deadline::NONE);
                }
            }
        }
    }
}

impl fmt::Display for TransferReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} (pid {}), segments of {} bytes",
            self.program.as_deref().unwrap_or("?"),
            self.pid,
            self.segment_bytes
        )?;
        write!(
            f,
            "{:<5} {:>9} {:>8} {:>9} {:>6} {:>7} {:>7} {:>6} {:>9} {:>8} {:>8} {:>8} {:>9}",
            "over",
            "MB/s",
            "got",
            "segments",
            "lost",
            "resent",
            "marks",
            "window",
            "RTT µs",
            "fw drop",
            "gen drop",
            "machine",
            "CPU µs"
        )?;
        for t in &self.transfers {
            let rate = t.rate.map_or_else(
                || "unlimited".to_owned(),
                |rate| format!("{:.0}", rate as f64 / 1e6),
            );
            write!(
                f,
                "\n{:<5} {rate:>9} {:>8.1} {:>9} {:>6} {:>7} {:>7} {:>6} {:>9.1} {:>8} {:>8} \
                 {:>8} {:>9.2}",
                t.transport,
                t.goodput_mb_s,
                t.n_segments,
                t.n_lost,
                t.n_retransmissions,
                t.n_marks,
                t.window,
                t.rtt_us,
                t.forwarder_dropped_pkts,
                t.generator_dropped_pkts,
                t.machine_dropped_pkts,
                t.forwarder_cpu_us_per_segment
            )?;
            if !t.is_complete {
                write!(f, "  INCOMPLETE")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_units() {
        for (text, rate) in [
            ("10MB", Rate::Limited(10_000_000)),
            ("1GB", Rate::Limited(1_000_000_000)),
            ("250k", Rate::Limited(250_000)),
            ("17", Rate::Limited(17)),
            ("unlimited", Rate::Unlimited),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
        }
        for text in [
            "",
            "MB",
            "0",
            "-1",
            "1TB",
            "99999999999999999999",
            "18446744073709551615G",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
