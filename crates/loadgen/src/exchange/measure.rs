//! One measurement: connect, register, warm up, measure, clean up.
//!
//! Owns the order of things; [`super::budget`] owns the time of each. Refuses to
//! compare: see [`super::compare`].

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tachonym_bench::random::{Random, fresh_seed};
use tachonym_bench::stats::Histogram;
use tachonym_packet::Name;

use super::address::{Address, Transport, UdpPeers};
use super::budget::{Budget, Deadline};
use super::control::{self, UdpFace};
use super::drive::Driver;
use super::flow::{Counters, Flow, FlowShape, Mode};
use super::link::Link;
use super::report::{ForwarderCost, Latency, Measurement};
use super::template::{InterestShape, MAX_CONTENT_BYTES, MAX_TOKEN_BYTES, Numbering};
use crate::process::{MachineCpu, Process};

/// Bounds of the command line: enough for any experiment on one machine.
const MAX_FLOWS: i64 = 1_024;
const MAX_IN_FLIGHT: i64 = 65_536;
const MAX_SECONDS: i64 = 600;
const MAX_COUNT: u64 = 1_000_000_000;
/// Of all flows together: each Interest in flight takes memory and, twenty
/// times a second, a look at its age.
const MAX_TOTAL_IN_FLIGHT: u64 = 1 << 20;
/// A year.
const MAX_FRESHNESS_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// The load: the same for every forwarder of a comparison.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Load {
    /// Content of each Data in bytes, up to 8,000
    #[arg(long, default_value_t = 1_000, value_parser = parse_content_bytes, value_name = "BYTES")]
    pub content_bytes: usize,
    /// Most Interests in flight in each flow
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=MAX_IN_FLIGHT as u64))]
    pub in_flight: u64,
    /// Flows, each with a consumer, a producer and a prefix of its own
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=MAX_FLOWS as u64))]
    pub flows: u64,
    /// Interests to send, all flows together
    #[arg(long, default_value_t = 200_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=MAX_COUNT))]
    pub count: u64,
    /// Time limit of a measurement in seconds, from connecting to the report. Warming up takes at
    /// most half of it; Interests in flight at the end are given up
    #[arg(long, default_value_t = 20, value_name = "S",
          value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS as u64))]
    pub max_seconds: u64,
    /// How consumers and producers use UDP: with segmentation offload, or each packet as a
    /// single datagram, as foreign programs do
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub udp: UdpPeers,
    /// PIT token on every Interest, 0 to 64 bytes; NDNLPv2 allows 1 to 32
    /// [default: no token]
    #[arg(long, value_parser = parse_token_bytes, value_name = "BYTES")]
    pub token_bytes: Option<usize>,
    /// InterestLifetime, after which an Interest counts as lost
    #[arg(long, default_value_t = 2_000, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub lifetime_ms: u64,
    /// Sets MustBeFresh on every Interest
    #[arg(long)]
    pub must_be_fresh: bool,
    /// FreshnessPeriod of every Data
    #[arg(long, default_value_t = 3_600_000, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(..=MAX_FRESHNESS_MS))]
    pub freshness_ms: u64,
    /// Names of each flow in hit mode; must fit the content store
    #[arg(long, default_value_t = 512, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub catalogue: u64,
    /// Interests sent before the measurement in miss mode, all flows together
    #[arg(long, default_value_t = 5_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(..=MAX_COUNT))]
    pub warm_up: u64,
    /// Polls the sockets in a loop instead of sleeping in poll(2)
    #[arg(long)]
    pub spin: bool,
    /// Keeps the generator on this CPU
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
}

impl Load {
    /// The load of the project's figures: contents of 1,000 bytes, 64 in flight
    /// in one flow; `count` Interests within `max_seconds`.
    #[must_use]
    pub fn usual(count: u64, max_seconds: u64) -> Self {
        Self {
            content_bytes: 1_000,
            in_flight: 64,
            flows: 1,
            count,
            max_seconds,
            udp: UdpPeers::Offload,
            token_bytes: None,
            lifetime_ms: 2_000,
            must_be_fresh: false,
            freshness_ms: 3_600_000,
            catalogue: 512,
            warm_up: 5_000,
            spin: false,
            cpu: None,
        }
    }
}

fn parse_content_bytes(text: &str) -> Result<usize, String> {
    parse_up_to(text, MAX_CONTENT_BYTES)
}

fn parse_token_bytes(text: &str) -> Result<usize, String> {
    parse_up_to(text, MAX_TOKEN_BYTES)
}

fn parse_up_to(text: &str, max: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number <= max => Ok(number),
        _ => Err(format!("write a number up to {max}")),
    }
}

/// A forwarder to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// Where the consumers connect.
    pub consumer: Address,
    /// Where the producers connect.
    pub producer: Address,
    /// Its process; `None` asks the Unix socket whose it is.
    pub pid: Option<u32>,
    /// Where routes are registered for UDP producers, for forwarders that
    /// take no commands over UDP.
    pub control: Option<Address>,
}

/// What carries the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A running forwarder.
    Forwarder(Forwarder),
    /// None: consumers and producers are wired together, which shows what the
    /// generator could do at most.
    Direct(Transport),
}

impl Target {
    fn transports(&self) -> (Transport, Transport) {
        match self {
            Self::Forwarder(f) => (f.consumer.transport(), f.producer.transport()),
            Self::Direct(transport) => (*transport, *transport),
        }
    }
}

/// Measures `target` under `load`.
///
/// # Errors
/// If the forwarder cannot be reached, refuses the routes, brings nothing
/// through, ends meanwhile, or takes so long with it that no time is left to
/// measure. Loss is not an error but a figure.
pub fn measure(target: &Target, mode: Mode, load: &Load) -> anyhow::Result<Measurement> {
    if load.flows.saturating_mul(load.in_flight) > MAX_TOTAL_IN_FLIGHT {
        bail!("--flows times --in-flight must be at most {MAX_TOTAL_IN_FLIGHT}");
    }
    let started = Instant::now();
    let budget = Budget::new(started, Duration::from_secs(load.max_seconds));
    let mut measurement = measure_within(&budget, target, mode, load).map_err(|error| {
        if budget.set_up().is_over(Instant::now()) {
            error.context(format!(
                "the time limit of --max-seconds {} is over",
                load.max_seconds
            ))
        } else {
            error
        }
    })?;
    measurement.run_seconds = started.elapsed().as_secs_f64();
    Ok(measurement)
}

fn measure_within(
    budget: &Budget,
    target: &Target,
    mode: Mode,
    load: &Load,
) -> anyhow::Result<Measurement> {
    if let Some(cpu) = load.cpu {
        pin_to(cpu)?;
    }
    let seed = fresh_seed();
    let lifetime = Duration::from_millis(load.lifetime_ms);
    let mut flows = connect(target, mode, load, seed, budget.set_up())?;
    let process = match target {
        Target::Direct(_) => None,
        Target::Forwarder(forwarder) => Some(find_process(forwarder, &flows)?),
    };
    let memory_before = process.map(Process::memory).transpose()?;
    let routes = match target {
        Target::Direct(_) => Routes::default(),
        Target::Forwarder(forwarder) => Routes::register(forwarder, &mut flows, budget.set_up())?,
    };
    let mut driver = Driver::new(flows, load.spin);
    driver.probe(budget.set_up())?;
    let n_not_warmed_up = warm_up(&mut driver, mode, load, budget)?;

    for (flow, quota) in driver
        .flows_mut()
        .iter_mut()
        .zip(shares(load.count, load.flows))
    {
        flow.allow(quota);
    }
    let dropped_before = dropped_pkts(driver.flows())?;
    let machine_before = MachineCpu::read()?;
    let own_before_ns = Process::own().cpu_ns()?;
    let forwarder_before_ns = process.map(Process::cpu_ns).transpose()?;
    let mut rss_peak_bytes = memory_before.map_or(0, |memory| memory.rss_bytes);
    let clock = Instant::now();
    let phase = budget.measurement(clock, lifetime);
    if phase.send_until() <= clock {
        bail!("the time limit ended before the measurement; raise --max-seconds");
    }
    let busy = driver.run(phase, || {
        if let Some(Ok(memory)) = process.map(Process::memory) {
            rss_peak_bytes = rss_peak_bytes.max(memory.rss_bytes);
        }
    })?;
    let elapsed = clock.elapsed().as_secs_f64();
    let forwarder_cpu_ns = match (process, forwarder_before_ns) {
        (Some(process), Some(before_ns)) => {
            let after_ns = process.cpu_ns().context("the forwarder has ended")?;
            Some(after_ns.saturating_sub(before_ns))
        }
        _ => None,
    };
    let own_cpu_ns = Process::own().cpu_ns()?.saturating_sub(own_before_ns);
    let machine_after = MachineCpu::read()?;
    let memory_after = process.map(Process::memory).transpose()?;

    let mut counters = Counters::default();
    let mut latencies = Histogram::default();
    for flow in driver.flows() {
        counters.add(flow.counters());
        latencies.merge(flow.latencies());
    }
    let generator_dropped_pkts = dropped_pkts(driver.flows())?.saturating_sub(dropped_before);
    let n_routes_left = routes.unregister(driver.flows_mut(), budget.end());

    let n_exchanges = counters.n_exchanges as f64;
    let has_exchanges = counters.n_exchanges > 0;
    let per_exchange = |cpu_ns: u64| has_exchanges.then(|| cpu_ns as f64 / n_exchanges);
    let cores = |cpu_ns: u64| cpu_ns as f64 / 1e9 / elapsed;
    let forwarder = match (process, forwarder_cpu_ns, memory_before, memory_after) {
        (Some(process), Some(cpu_ns), Some(memory_before), Some(memory_after)) => {
            Some(ForwarderCost {
                pid: process.pid(),
                program: process.name(),
                cpu_ns,
                cpu_ns_per_exchange: per_exchange(cpu_ns),
                cpu_cores: cores(cpu_ns),
                memory_before,
                rss_peak_bytes: rss_peak_bytes.max(memory_after.rss_bytes),
                memory_after,
            })
        }
        _ => None,
    };
    let busy_ns = machine_after.busy_ns.saturating_sub(machine_before.busy_ns);
    let others_ns = busy_ns.saturating_sub(own_cpu_ns + forwarder_cpu_ns.unwrap_or(0));
    let stolen_ns = machine_after
        .stolen_ns
        .saturating_sub(machine_before.stolen_ns);
    let (consumer, producer) = target.transports();
    Ok(Measurement {
        consumer,
        producer,
        mode,
        content_bytes: load.content_bytes,
        udp: load.udp,
        in_flight: load.in_flight as usize,
        n_flows: load.flows as usize,
        token_bytes: load.token_bytes,
        seed,
        is_complete: n_not_warmed_up == 0
            && counters.n_sent == load.count
            && counters.n_cut_off == 0,
        n_not_warmed_up,
        n_not_sent: load.count.saturating_sub(counters.n_sent),
        n_routes_left,
        run_seconds: 0.0,
        loss_pct: 100.0 * (1.0 - n_exchanges / counters.n_sent.max(1) as f64),
        generator_dropped_pkts,
        seconds: busy.as_secs_f64(),
        exchanges_per_s: n_exchanges / busy.as_secs_f64(),
        latency: Latency::of(&latencies),
        forwarder,
        generator_cpu_ns_per_exchange: per_exchange(own_cpu_ns),
        others_cpu_cores: cores(others_ns),
        stolen_cpu_cores: cores(stolen_ns),
        counters,
    })
}

fn pin_to(cpu: usize) -> anyhow::Result<()> {
    let mut cpus = rustix::thread::CpuSet::new();
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        bail!("--cpu {cpu} is not a processor of this machine");
    }
    cpus.set(cpu);
    rustix::thread::sched_setaffinity(None, &cpus)
        .with_context(|| format!("cannot run on CPU {cpu}"))
}

fn connect(
    target: &Target,
    mode: Mode,
    load: &Load,
    seed: u64,
    deadline: Deadline,
) -> anyhow::Result<Vec<Flow>> {
    let shape = FlowShape {
        mode,
        in_flight: load.in_flight as usize,
        catalogue: load.catalogue as usize,
        interest: InterestShape {
            lifetime_ms: load.lifetime_ms,
            must_be_fresh: load.must_be_fresh,
            token_bytes: load.token_bytes,
        },
        content_bytes: load.content_bytes,
        freshness_ms: load.freshness_ms,
        numbering: Numbering::Generic,
    };
    let run_id = format!("{seed:016x}");
    let mut seeds = Random::new(seed);
    (0..load.flows)
        .map(|flow_idx| {
            let prefix = Name::new()
                .with("tachonym-lab")
                .with(run_id.as_str())
                .with(flow_idx.to_string().as_str());
            let (consumer, producer) = match target {
                Target::Direct(transport) => Link::pair(*transport)?,
                Target::Forwarder(forwarder) => (
                    Link::connect_by(&forwarder.consumer, deadline)?,
                    Link::connect_by(&forwarder.producer, deadline)?,
                ),
            };
            let (consumer, producer) = match load.udp {
                UdpPeers::Offload => (consumer, producer),
                UdpPeers::Single => (consumer.without_offload()?, producer.without_offload()?),
            };
            let flow_seed = seeds.next_u64();
            Ok(Flow::new(prefix, consumer, producer, &shape, flow_seed))
        })
        .collect()
}

/// The process to measure: as given, or whose Unix socket it is.
fn find_process(forwarder: &Forwarder, flows: &[Flow]) -> anyhow::Result<Process> {
    let peer_pid = || {
        let flow = flows.first()?;
        flow.consumer().peer_pid().or(flow.producer().peer_pid())
    };
    let pid = forwarder.pid.or_else(peer_pid).context(
        "the forwarder's process is not known, so its CPU time cannot be measured; add --pid",
    )?;
    Process::find(pid).with_context(|| format!("cannot measure process {pid}"))
}

/// Registered prefixes, to be taken back at the end.
#[derive(Default)]
pub(crate) struct Routes {
    control: Option<Link>,
    /// For each flow, the face of its UDP producer if `control` was asked.
    udp_faces: Vec<UdpFace>,
    /// Streams take their routes along when they close.
    outlive_their_links: bool,
}

impl Routes {
    /// Registers the prefix of every flow for its producer.
    ///
    /// # Errors
    /// If the forwarder refuses, or does not answer by `deadline`.
    pub(crate) fn register(
        forwarder: &Forwarder,
        flows: &mut [Flow],
        deadline: Deadline,
    ) -> anyhow::Result<Self> {
        let is_udp = forwarder.producer.transport() == Transport::Udp;
        let mut routes = Self {
            control: match &forwarder.control {
                Some(address) if is_udp => Some(Link::connect_by(address, deadline)?),
                _ => None,
            },
            udp_faces: Vec::new(),
            outlive_their_links: is_udp,
        };
        for flow in flows {
            let prefix = flow.prefix().clone();
            let own_addr = flow.producer().local_udp_addr();
            match (&mut routes.control, own_addr) {
                (Some(control), Some(own_addr)) => {
                    let face = control::udp_face(control, own_addr, deadline)?;
                    control::register(control, &prefix, Some(face.id), deadline)?;
                    routes.udp_faces.push(face);
                }
                (None, Some(_)) => {
                    control::register(flow.producer_mut(), &prefix, None, deadline).context(
                        "if the forwarder accepts no commands over UDP, add --control unix:///path",
                    )?;
                }
                _ => control::register(flow.producer_mut(), &prefix, None, deadline)?,
            }
        }
        Ok(routes)
    }

    /// Best effort until `deadline`: the prefixes are never used again. Says how
    /// many routes are left.
    fn unregister(mut self, flows: &mut [Flow], deadline: Deadline) -> u64 {
        if !self.outlive_their_links {
            return 0;
        }
        let mut n_left = 0;
        for (flow_idx, flow) in flows.iter_mut().enumerate() {
            let prefix = flow.prefix().clone();
            let result = match (&mut self.control, self.udp_faces.get(flow_idx)) {
                // The route goes with its face.
                (Some(control), Some(face)) if face.is_new => {
                    control::destroy_face(control, face.id, deadline)
                }
                (Some(control), Some(face)) => {
                    control::unregister(control, &prefix, Some(face.id), deadline)
                }
                _ => control::unregister(flow.producer_mut(), &prefix, None, deadline),
            };
            n_left += u64::from(result.is_err());
        }
        n_left
    }
}

/// Brings caches, tables and buffers to life, and in hit mode the catalogue
/// into the content store. Says how many Interests of it, or names of the
/// catalogue, there was no time for.
fn warm_up(driver: &mut Driver, mode: Mode, load: &Load, budget: &Budget) -> anyhow::Result<u64> {
    let n_flows = load.flows;
    let shares: Vec<u64> = shares(load.warm_up, n_flows).collect();
    for (flow, quota) in driver.flows_mut().iter_mut().zip(shares) {
        match mode {
            Mode::Miss => flow.allow(quota),
            Mode::Hit => flow.prime(),
        }
    }
    let phase = budget.warm_up(Instant::now(), Duration::from_millis(load.lifetime_ms));
    driver.run(phase, || {})?;
    let flows = driver.flows().iter();
    Ok(match mode {
        Mode::Miss => {
            let n_sent: u64 = flows.map(|flow| flow.counters().n_sent).sum();
            load.warm_up - n_sent
        }
        Mode::Hit => {
            let missing = |flow: &Flow| flow.n_names() - flow.counters().n_exchanges;
            let n_missing: u64 = flows.map(missing).sum();
            let is_legal = load.token_bytes.is_none_or(|len| (1..=32).contains(&len));
            if n_missing > 0 && is_legal {
                bail!(
                    "{n_missing} names of the catalogue were not fetched in time; raise \
                     --max-seconds or lower --catalogue"
                );
            }
            n_missing
        }
    })
}

fn dropped_pkts(flows: &[Flow]) -> anyhow::Result<u64> {
    let mut n_dropped = 0;
    for flow in flows {
        n_dropped += flow.consumer().kernel_dropped_pkts()?;
        n_dropped += flow.producer().kernel_dropped_pkts()?;
    }
    Ok(n_dropped)
}

/// Divides `total` among `n_parts` as evenly as whole numbers allow.
fn shares(total: u64, n_parts: u64) -> impl Iterator<Item = u64> {
    (0..n_parts).map(move |part| total / n_parts + u64::from(part < total % n_parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        assert_eq!(shares(10, 4).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(shares(2, 3).collect::<Vec<_>>(), [1, 1, 0]);
    }

    #[test]
    fn lengths_beyond_the_bounds_are_refused() {
        assert_eq!(parse_token_bytes("64"), Ok(64));
        assert!(parse_token_bytes("65").is_err() && parse_token_bytes("-1").is_err());
        assert_eq!(parse_content_bytes("8000"), Ok(8_000));
        assert!(parse_content_bytes("8001").is_err());
    }
}
