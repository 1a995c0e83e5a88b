//! The figures of one measurement, as JSON and for a reader.
//!
//! Refuses to measure: see [`measure`](super::measure::measure).

use std::fmt;

use serde::Serialize;
use tachonym_bench::stats::Histogram;

use super::address::{Transport, UdpPeers};
use super::flow::{Counters, Mode};
use crate::process::Memory;

/// Everything that one run of the generator found.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The consumers' transport.
    pub consumer: Transport,
    /// The producers' transport.
    pub producer: Transport,
    /// How consumers and producers used UDP.
    pub udp: UdpPeers,
    /// Which names were requested.
    pub mode: Mode,
    /// Content of each Data in bytes.
    pub content_bytes: usize,
    /// Most Interests in flight in each flow.
    pub in_flight: usize,
    /// Flows.
    pub n_flows: usize,
    /// Length of each Interest's PIT token; `None`: no token.
    pub token_bytes: Option<usize>,
    /// Seed of names, content and nonces.
    pub seed: u64,
    /// Whether the time was enough: the warm-up was finished, all Interests
    /// were sent, and each was answered or given up after its lifetime.
    pub is_complete: bool,
    /// Interests of the warm-up that were not sent, or in hit mode names of the
    /// catalogue that were not fetched, before its time was over.
    pub n_not_warmed_up: u64,
    /// Interests that were not sent before the time was over.
    pub n_not_sent: u64,
    /// Routes that could not be taken back before the time was over.
    pub n_routes_left: u64,
    /// The whole run, from connecting to the report, in seconds.
    pub run_seconds: f64,
    /// What became of the Interests.
    pub counters: Counters,
    /// Interests without their Data, in per cent of those sent; what was cut off
    /// is among them.
    pub loss_pct: f64,
    /// Datagrams that the kernel dropped at the generator's own sockets:
    /// losses that are not the forwarder's.
    pub generator_dropped_pkts: u64,
    /// From the first Interest to the last Data, in seconds.
    pub seconds: f64,
    /// Right Data per second.
    pub exchanges_per_s: f64,
    /// Time from an Interest to its Data.
    pub latency: Latency,
    /// The forwarder's cost; `None` without a forwarder.
    pub forwarder: Option<ForwarderCost>,
    /// The generator's own CPU time per exchange, in nanoseconds; `None`
    /// without an exchange.
    pub generator_cpu_ns_per_exchange: Option<f64>,
    /// CPU time that neither of the two used meanwhile, in cores; the grain is
    /// a kernel tick, usually 10 ms.
    pub others_cpu_cores: f64,
    /// Time that the hypervisor gave to other machines, in cores.
    pub stolen_cpu_cores: f64,
}

/// Time from an Interest to its Data, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Median.
    pub p50_us: f64,
    /// 99 of 100 are faster.
    pub p99_us: f64,
    /// 999 of 1,000 are faster.
    pub p99_9_us: f64,
    /// The slowest.
    pub max_us: f64,
}

impl Latency {
    /// The latencies that were recorded.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            p50_us: us(histogram.quantile_ns(500)),
            p99_us: us(histogram.quantile_ns(990)),
            p99_9_us: us(histogram.quantile_ns(999)),
            max_us: us(histogram.max_ns()),
        }
    }
}

/// What the forwarder used during the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct ForwarderCost {
    /// Its process.
    pub pid: u32,
    /// The program's name as the kernel knows it.
    pub program: Option<String>,
    /// CPU time in nanoseconds, user and system, of all its threads.
    pub cpu_ns: u64,
    /// CPU time per exchange in nanoseconds; `None` without an exchange.
    pub cpu_ns_per_exchange: Option<f64>,
    /// CPU time in cores.
    pub cpu_cores: f64,
    /// Memory before the generator connected.
    pub memory_before: Memory,
    /// Most resident memory seen, sampled twenty times a second, in bytes.
    pub rss_peak_bytes: u64,
    /// Memory after the last Data.
    pub memory_after: Memory,
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counters;
        let token = match self.token_bytes {
            None => "no token".to_owned(),
            Some(len) => format!("{len}-byte token"),
        };
        let udp = match self.udp {
            UdpPeers::Offload => "",
            UdpPeers::Single => ", UDP without offload",
        };
        writeln!(
            f,
            "{} to {}, {}, {} bytes of content, {} in flight, {} flow(s), {token}{udp}",
            self.consumer,
            self.producer,
            self.mode,
            self.content_bytes,
            self.in_flight,
            self.n_flows
        )?;
        writeln!(
            f,
            "exchanges     {:.0}/s: {} in {:.2} s",
            self.exchanges_per_s, c.n_exchanges, self.seconds
        )?;
        write!(
            f,
            "lost          {:.4} % of {}: {} timed out, {} cut off, {} nacked",
            self.loss_pct,
            c.n_sent,
            c.n_timed_out,
            c.n_cut_off,
            c.n_nacks()
        )?;
        for (code, n_nacks) in &c.n_nacks_by_code {
            write!(f, ", {n_nacks} with reason {code}")?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "also          {} wrong data, {} wrong tokens, {} late, {} unexpected, {} marked, \
             {} dropped at the generator",
            c.n_wrong_data,
            c.n_wrong_tokens,
            c.n_late,
            c.n_unexpected,
            c.n_marked,
            self.generator_dropped_pkts
        )?;
        writeln!(f, "produced      {}", c.n_produced)?;
        if !self.is_complete {
            writeln!(
                f,
                "INCOMPLETE    time limit: {} not sent, {} cut off, {} not warmed up",
                self.n_not_sent, c.n_cut_off, self.n_not_warmed_up
            )?;
        }
        if self.n_routes_left > 0 {
            writeln!(
                f,
                "also          {} routes not unregistered",
                self.n_routes_left
            )?;
        }
        let l = self.latency;
        writeln!(
            f,
            "latency       p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.1} µs",
            l.p50_us, l.p99_us, l.p99_9_us, l.max_us
        )?;
        if let Some(cost) = &self.forwarder {
            let per_exchange = per_exchange(cost.cpu_ns_per_exchange);
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            writeln!(
                f,
                "forwarder     {per_exchange}, {:.2} cores, {} threads (pid {}, {})",
                cost.cpu_cores,
                cost.memory_after.n_threads,
                cost.pid,
                cost.program.as_deref().unwrap_or("?")
            )?;
            writeln!(
                f,
                "its memory    {:.1} MiB before, {:.1} at most, {:.1} after",
                mib(cost.memory_before.rss_bytes),
                mib(cost.rss_peak_bytes),
                mib(cost.memory_after.rss_bytes)
            )?;
        }
        write!(
            f,
            "generator     {}; others {:.2} cores, stolen {:.2} cores",
            per_exchange(self.generator_cpu_ns_per_exchange),
            self.others_cpu_cores,
            self.stolen_cpu_cores
        )
    }
}

fn per_exchange(cpu_ns: Option<f64>) -> String {
    cpu_ns.map_or_else(
        || "no exchange".to_owned(),
        |ns| format!("{:.3} µs/exchange", ns / 1e3),
    )
}
