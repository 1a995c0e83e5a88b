//! What the experiments share: traces, schedulers, and a run.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use tachonym_dispatch::baselines::{Fcfs, FlowShift, Grain, Scheduler, StaticHash, TopNames};
use tachonym_dispatch::{DetectorConfig, Laps, LapsConfig, MapKind, MoveRule, OrderConfig};
use tachonym_sim::cores::{Cores, CoresConfig, Counts};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::ServiceModel;
use tachonym_sim::traffic::{FlowModel, Trace, Traffic, mean_packet_bytes};

use crate::cache::plot::{self, Chart};
use crate::workloads::capture;
use crate::workloads::trace::{Trace as NameTrace, TraceFormat};

/// Buckets of the map tables of schedulers that move bundles, as a power of two.
const BUCKETS_LOG2: u8 = 10;
/// Bytes of a packet of a trace that tells none.
const BYTES_OF_RECORDED: u16 = 576;

/// What all experiments are told.
#[derive(Args, Clone, Debug)]
pub(super) struct Common {
    /// Seed of the traffic
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) seed: u64,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Packets of a file instead of drawn ones.
#[derive(Args, Clone, Debug)]
pub(super) struct FileArgs {
    /// Reads the names or flows of packets from this file instead
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_enum, default_value = "csv")]
    format: FileFormat,
    /// Column of the name in a line, counted from 1
    #[arg(long, default_value_t = 2, value_name = "N")]
    column: usize,
}

/// How a file of packets is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// Binary records as libCacheSim reads and writes them, not compressed
    OracleGeneral,
    /// Lines of fields with commas between them
    Csv,
    /// A pcap or pcapng file: names of NDN Interests
    Pcap,
    /// A pcap or pcapng file: flows of IP packets by addresses, ports and protocol, and their
    /// sizes
    Flows,
}

impl FileFormat {
    /// The format of names; `None` if there are flows.
    const fn of_names(self) -> Option<TraceFormat> {
        match self {
            Self::OracleGeneral => Some(TraceFormat::OracleGeneral),
            Self::Csv => Some(TraceFormat::Csv),
            Self::Pcap => Some(TraceFormat::Pcap),
            Self::Flows => None,
        }
    }
}

impl FileArgs {
    /// The file's trace with its name, or drawn ones with theirs.
    pub(super) fn traces(&self, drawn: &[&str], seed: u64) -> anyhow::Result<Vec<(String, Trace)>> {
        if let Some(path) = &self.trace {
            let name = path.display().to_string();
            return Ok(vec![(name, recorded(path, self.format, self.column)?)]);
        }
        let named = drawn
            .iter()
            .map(|&name| (name.to_owned(), trace(name, seed)));
        Ok(named.collect())
    }
}

/// Names or flows of a file, numbered such that 0 came most often.
fn recorded(path: &Path, format: FileFormat, column: usize) -> anyhow::Result<Trace> {
    let mut packets: Vec<(u32, u16)> = match format.of_names() {
        Some(format) => {
            let names = NameTrace::read(path, format, column)?;
            let objects = names.objects().iter();
            objects.map(|&name| (name, BYTES_OF_RECORDED)).collect()
        }
        None => {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let flows = capture::flows(&bytes).with_context(|| path.display().to_string())?;
            if flows.n_left_out > 0 {
                eprintln!(
                    "{}: {} packets are not IP and were skipped",
                    path.display(),
                    flows.n_left_out
                );
            }
            flows.packets
        }
    };
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &(name, _) in &packets {
        *counts.entry(name).or_default() += 1;
    }
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_unstable_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let rank: HashMap<u32, u32> = (ranked.iter().zip(0..))
        .map(|(it, rank)| (it.0, rank))
        .collect();
    for (name, _) in &mut packets {
        *name = rank[name];
    }
    Trace::recorded(packets).context("the capture has no packet")
}

/// A drawn trace by its name: `caida 1`, `auckland 3`, `names`.
pub(super) fn trace(name: &str, seed: u64) -> Trace {
    let (kind, number) = name.split_once(' ').unwrap_or((name, "1"));
    let number = number.parse().unwrap_or(1);
    let model = match kind {
        "caida" => FlowModel::backbone(number),
        "auckland" => FlowModel::campus(number),
        _ => FlowModel::names(100_000),
    };
    let of_name = name
        .bytes()
        .fold(seed, |sum, byte| sum.wrapping_mul(131) ^ u64::from(byte));
    Trace::drawn(&model, of_name)
}

/// A scheduler of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As a router runs it: moves even loads out and keep order; a name dispatch table.
    Laps {
        n_tracked: usize,
    },
    /// The same with linear hashing in place of the table.
    LapsLinear {
        n_tracked: usize,
    },
    /// As published: whatever aggressive flow arrives moves; linear hashing.
    LapsPublished {
        n_tracked: usize,
    },
    Dlb,
    Afs,
    Fcfs,
    Static,
    Oracle {
        n_tracked: usize,
    },
}

impl Kind {
    pub(super) fn label(self) -> String {
        match self {
            Self::Laps { n_tracked } => format!("LAPS, {n_tracked} tracked"),
            Self::LapsLinear { n_tracked } => format!("LAPS, linear, {n_tracked} tracked"),
            Self::LapsPublished { n_tracked } => format!("LAPS as published, {n_tracked} tracked"),
            Self::Dlb => "DLB".to_owned(),
            Self::Afs => "AFS".to_owned(),
            Self::Fcfs => "FCFS".to_owned(),
            Self::Static => "no migration".to_owned(),
            Self::Oracle { n_tracked } => format!("exact counts, {n_tracked} tracked"),
        }
    }

    /// For these cores and services, with this threshold.
    pub(super) fn scheduler(
        self,
        n_cores: usize,
        services: &[ServiceModel],
        high_threshold: u32,
    ) -> anyhow::Result<Box<dyn Scheduler>> {
        Ok(match self {
            Self::Laps { .. } | Self::LapsLinear { .. } | Self::LapsPublished { .. } => {
                Box::new(self.laps(n_cores, services, high_threshold)?)
            }
            Self::Dlb => {
                let grain = Grain::Name;
                Box::new(FlowShift::new(
                    n_cores,
                    BUCKETS_LOG2,
                    grain,
                    high_threshold,
                )?)
            }
            Self::Afs => {
                let grain = Grain::Bundle;
                Box::new(FlowShift::new(
                    n_cores,
                    BUCKETS_LOG2,
                    grain,
                    high_threshold,
                )?)
            }
            Self::Fcfs => Box::new(Fcfs::new(n_cores)?),
            Self::Static => Box::new(StaticHash::new(n_cores, BUCKETS_LOG2)?),
            Self::Oracle { n_tracked } => Box::new(TopNames::new(
                n_cores,
                BUCKETS_LOG2,
                n_tracked,
                high_threshold,
            )?),
        })
    }

    /// LAPS of this kind; that of a router for other kinds.
    pub(super) fn laps(
        self,
        n_cores: usize,
        services: &[ServiceModel],
        high_threshold: u32,
    ) -> anyhow::Result<Laps> {
        let n_buckets_log2 = BUCKETS_LOG2;
        let table = MapKind::Buckets { n_buckets_log2 };
        let (n_aggressive, map, rule) = match self {
            Self::Laps { n_tracked } => (n_tracked, table, MoveRule::EVENS),
            Self::LapsLinear { n_tracked } => (n_tracked, MapKind::Linear, MoveRule::EVENS),
            Self::LapsPublished { n_tracked } => (n_tracked, MapKind::Linear, MoveRule::Published),
            _ => (16, table, MoveRule::EVENS),
        };
        let rates = services
            .iter()
            .map(|service| service.rate_pps(mean_packet_bytes()));
        Ok(Laps::new(&LapsConfig {
            worker_rates_pps: rates.collect(),
            detector: DetectorConfig {
                n_aggressive,
                ..DetectorConfig::default()
            },
            map,
            rule,
            high_threshold,
            ..LapsConfig::new(n_cores)
        })?)
    }

    /// Cores that keep packets of what moves in order, if this kind has that.
    pub(super) fn cores(self, config: &CoresConfig) -> CoresConfig {
        let keeps_order = matches!(self, Self::Laps { .. } | Self::LapsLinear { .. });
        CoresConfig {
            order: keeps_order.then(OrderConfig::default),
            ..config.clone()
        }
    }
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) counts: Counts,
    pub(super) n_shifts: u64,
    /// Packets per second that came and that were done.
    pub(super) offered_pps: f64,
    pub(super) done_pps: f64,
}

/// Runs traffic for so many seconds of virtual time; the first tenth is not counted.
pub(super) fn simulate(
    config: &CoresConfig,
    (kind, high_threshold): (Kind, u32),
    services: Vec<(RateModel, Trace)>,
    (seconds, speedup): (f64, f64),
    seed: u64,
) -> anyhow::Result<Outcome> {
    ensure!(seconds > 0.0 && speedup > 0.0, "a run takes time");
    let mut traffic = Traffic::new(services, speedup, seed);
    let n_flows = traffic.n_flows();
    let scheduler = kind.scheduler(config.n_cores, &config.services, high_threshold)?;
    let mut cores = Cores::new(kind.cores(config), scheduler, n_flows);
    let end_ns = (seconds * 1e9) as u64;
    let warm_ns = end_ns / 10;
    let mut warm = None;
    while let Some(packet) = traffic.next_packet() {
        if packet.at_ns >= warm_ns && warm.is_none() {
            warm = Some((*cores.counts(), cores.scheduler().n_shifts()));
        }
        if packet.at_ns >= end_ns {
            break;
        }
        cores.handle_packet(packet);
    }
    cores.depart_until(end_ns);
    let (warm, n_shifts) = warm.unwrap_or_default();
    let counts = cores.counts().since(&warm);
    let measured_s = (end_ns - warm_ns) as f64 / 1e9;
    Ok(Outcome {
        counts,
        n_shifts: cores.scheduler().n_shifts() - n_shifts,
        offered_pps: counts.n_arrived as f64 / measured_s,
        done_pps: counts.n_departed as f64 / measured_s,
    })
}

/// A part in percent of a whole; 0 of nothing.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// By how many percent a value lies below a reference; `None` without one.
pub(super) fn below_pct(value: u64, reference: u64) -> Option<f64> {
    (reference > 0).then(|| 100.0 - 100.0 * value as f64 / reference as f64)
}

/// Draws the charts if a file is named.
pub(super) fn draw(common: &Common, charts: &[Chart]) -> anyhow::Result<()> {
    let Some(path) = &common.svg else {
        return Ok(());
    };
    plot::draw(charts, path).with_context(|| format!("cannot draw {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows_of(path: &Path) -> anyhow::Result<Trace> {
        recorded(path, FileFormat::Flows, 1)
    }

    #[test]
    fn flows_of_a_capture_are_numbered_by_rank() {
        let ip = |source: u16| {
            let mut packet = Vec::new();
            etherparse::PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
                .udp(source, 53)
                .write(&mut packet, &[0; 72])
                .expect("it fits");
            (packet, 40)
        };
        let file = capture::tests::capture(101, &[ip(1), ip(2), ip(3), ip(2), ip(3), ip(3)]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("flows.pcap");
        fs::write(&path, &file).expect("it is written");
        let mut trace = flows_of(&path).expect("a sound capture");
        assert_eq!(trace.n_flows(), 3);
        let numbers: Vec<_> = (0..7).map(|_| trace.next_flow()).collect();
        assert_eq!(numbers, [2, 1, 0, 1, 0, 0, 2].map(|flow| (flow, 100)));
    }

    #[test]
    fn an_error_names_file_and_packet() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broken.pcap");
        let file = capture::tests::capture(101, &[(vec![0x45; 40], 12)]);
        fs::write(&path, &file).expect("it is written");
        let text = format!("{:#}", flows_of(&path).expect_err("a broken packet"));
        let start = format!("{}: packet 1: malformed", path.display());
        assert!(text.starts_with(&start), "{text}");
        let gone = format!(
            "{:#}",
            flows_of(&folder.path().join("gone")).expect_err("no file")
        );
        assert!(gone.starts_with("cannot read"), "{gone}");
    }
}
