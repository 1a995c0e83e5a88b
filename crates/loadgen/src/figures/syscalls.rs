//! System calls that the router makes for each packet.
//!
//! The router counts them and says so when it stops; so each row starts a
//! router, loads it, stops it and reads the last line of its log. Refuses other
//! forwarders: they do not count.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::TRANSPORTS;
use super::peers::Peer;
use crate::exchange::address::Transport;
use crate::exchange::flow::Mode;
use crate::exchange::measure::{Forwarder, Load, Target, measure};
use crate::launch::Running;

/// What the router's last line calls the figure.
const KEY: &str = "syscalls_per_packet=";

/// Loads that are tried over each transport: Interests in flight, and what they request.
pub const LOADS: [(u64, Mode); 4] = [
    (1, Mode::Miss),
    (1, Mode::Hit),
    (64, Mode::Miss),
    (64, Mode::Hit),
];

/// The figures of every transport.
#[derive(Debug)]
pub struct SyscallsReport {
    /// Calls per packet by transport, in the order of [`LOADS`].
    pub rows: Vec<(Transport, [f64; LOADS.len()])>,
}

/// Starts, loads and stops the router `peer` for each figure; its log goes into
/// `folder`.
///
/// # Errors
/// If it cannot be started, loaded or stopped, or does not say its figure.
pub fn measure_syscalls(peer: &Peer, folder: &Path, load: &Load) -> anyhow::Result<SyscallsReport> {
    let log = folder.join("log");
    let unix = peer.address(Transport::Unix);
    let mut rows = Vec::new();
    for transport in TRANSPORTS {
        let mut figures = [0.0; LOADS.len()];
        for (figure, (in_flight, mode)) in figures.iter_mut().zip(LOADS) {
            let mut running = Running::start(&peer.start_with_log(&log))?;
            running.first_exchange(&unix, &unix)?;
            let target = Target::Forwarder(Forwarder {
                consumer: peer.address(transport),
                producer: peer.address(transport),
                pid: Some(running.process()?.pid()),
                control: Some(unix.clone()),
            });
            let load = Load {
                in_flight,
                ..load.clone()
            };
            let measurement = measure(&target, mode, &load)?;
            if measurement.counters.n_exchanges == 0 {
                bail!("no packet arrived over {transport}");
            }
            running.stop()?;
            let text = fs::read_to_string(&log)
                .with_context(|| format!("cannot read {}", log.display()))?;
            *figure = figure_in(&text).context("the router did not log its system calls")?;
        }
        rows.push((transport, figures));
    }
    Ok(SyscallsReport { rows })
}

/// The figure of the last line that has one.
fn figure_in(log: &str) -> Option<f64> {
    let (_, rest) = log.rsplit_once(KEY)?;
    rest.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for SyscallsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}", "transport")?;
        for (in_flight, mode) in LOADS {
            write!(f, " {:>18}", format!("{in_flight} in flight, {mode}"))?;
        }
        for (transport, figures) in &self.rows {
            write!(f, "\n{:<9}", transport.to_string())?;
            for figure in figures {
                write!(f, " {figure:>18.3}")?;
            }
        }
        write!(
            f,
            "\n\nSystem calls per packet that the router received or sent, including waits."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_figure_of_a_log_counts() {
        let log = "2026-01-01T00:00:00Z  INFO tachonym: face 258 created\n\
                   2026-01-01T00:00:01Z  INFO tachonym: stopping n_kernel_drops=0 \
                   syscalls_per_packet=0.038\n";
        assert_eq!(figure_in(log), Some(0.038));
        assert_eq!(figure_in(&log.replace("0.038", "0.5 x=1")), Some(0.5));
        assert_eq!(figure_in("killed"), None);
        assert_eq!(figure_in("syscalls_per_packet="), None);
    }

    #[test]
    fn every_load_has_a_column() {
        let rows = vec![(Transport::Unix, [1.5, 1.25, 0.038, 0.024])];
        let text = SyscallsReport { rows }.to_string();
        assert!(
            text.contains("64 in flight, miss") && text.contains("0.038"),
            "{text}"
        );
    }
}
