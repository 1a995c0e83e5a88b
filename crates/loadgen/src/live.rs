//! One take: a router that is started with one setting, driven, and stopped.
//!
//! Owns the router's configuration and the threads of the generator, each with consumers
//! and producers of its own. Refuses to compare.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use tachonym_bench::random::fresh_seed;
use tachonym_bench::stats::Histogram;
use tachonym_client::{Controller, Endpoint};
use tachonym_packet::Name;
use tachonym_protocol::{FaceUri, WorkersStatus};
use tachonym_security::Signer;

use crate::exchange::address::{Address, Transport};
use crate::exchange::budget::{Deadline, Phase};
use crate::exchange::drive::Driver;
use crate::exchange::flow::{Flow, FlowShape};
use crate::exchange::link::Link;
use crate::exchange::measure::{Forwarder, Routes};
use crate::figures::WorkFolder;
use crate::figures::peers::{free_port, quoted};
use crate::launch::{LOCAL_UDP, Running};
use crate::process::MachineCpu;

/// Longest wait for connections, routes and the first Data.
const SET_UP: Duration = Duration::from_secs(30);
/// An Interest's lifetime, after which it is lost: far longer than a router takes that has
/// to share its cores.
const LIFETIME_MS: u64 = 4_000;

/// The router and the load.
#[derive(Clone, Debug)]
pub struct LiveLoad {
    /// The router's program.
    pub tachonym: PathBuf,
    /// Transport between consumers, producers and the router: Unix or UDP.
    pub over: Transport,
    /// Length of each measurement, after a quarter of that to warm up.
    pub lasting: Duration,
    /// Threads that drive consumers and producers, at most as many as objects.
    pub n_generators: u16,
    /// Objects, each with a consumer and a producer.
    pub n_objects: u16,
    /// Interests in flight, of all objects together; an object has one at least.
    pub in_flight: u32,
    /// Content of each Data in bytes.
    pub content_bytes: u16,
    /// Segments of one batch, which have one home worker with [`Rule::Batch`].
    pub batch_segments: u32,
    /// Whether names migrate off overloaded workers.
    pub is_balanced: bool,
}

/// Cores that this process may use.
pub fn n_cores() -> u16 {
    thread::available_parallelism().map_or(1, |n| u16::try_from(n.get()).unwrap_or(u16::MAX))
}

/// How packets come to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Each worker receives for itself.
    RunToCompletion,
    /// An I/O thread receives for all.
    IoThreads,
}

/// The part of a name that selects its home worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The object.
    Prefix,
    /// Object and segment.
    Name,
    /// The object and some consecutive segments.
    Batch,
}

impl fmt::Display for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunToCompletion => "run-to-completion",
            Self::IoThreads => "io-threads",
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => "prefix",
            Self::Name => "name",
            Self::Batch => "batch",
        })
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How packets come to workers.
    pub feed: Feed,
    /// The part of a name that selects its home worker.
    pub dispatch: Rule,
    /// Worker threads.
    pub n_workers: u16,
}

impl Setting {
    /// Threads of the router that carry packets.
    pub fn n_threads(&self) -> u16 {
        self.n_workers + u16::from(self.feed == Feed::IoThreads)
    }

    fn configuration(&self, load: &LiveLoad, socket: &str, port: u16) -> String {
        // One worker has nothing to balance, and its configuration does not say so.
        let balance = match self.n_workers > 1 && !load.is_balanced {
            true => "balance = false\n",
            false => "",
        };
        format!(
            "faces.unix.path = \"{socket}\"\nfaces.udp.listen = [\"127.0.0.1:{port}\"]\n\
             faces.tcp.listen = []\nfaces.websocket.listen = []\n{LOCAL_UDP}\
             power.governor = \"none\"\n[workers]\nthreads = {}\nfeed = \"{}\"\nio_threads = 1\ndispatch = \"{}\"\n\
             prefix_components = 2\nbatch_segments = {}\n{balance}",
            self.n_workers, self.feed, self.dispatch, load.batch_segments
        )
    }
}

/// What one take found.
#[derive(Debug)]
pub struct Take {
    /// Interests and Data that went through, by the time from the first to the last.
    pub pkts_per_s: f64,
    /// The router's CPU time for each of them, in nanoseconds.
    pub cpu_ns_per_pkt: f64,
    /// Cores that the router had.
    pub router_cores: f64,
    /// Cores that neither router nor generator had, and that others used or were stolen.
    pub other_cores: f64,
    /// Of all packets, those at home at each worker; adds up to 1.
    pub shares: Vec<f64>,
    /// Of all packets, those that another thread received.
    pub crossed: f64,
    /// Time from Interest to Data.
    pub latencies: Histogram,
    /// Interests that were not answered.
    pub n_lost: u64,
    /// Interests that were sent.
    pub n_sent: u64,
}

/// Interests in flight of each object, with popularity that falls as rank to the power of
/// -`skew`: what is in flight is divided so, for an answer makes room for the next request.
#[must_use]
pub fn windows(n_objects: u16, in_flight: u32, skew: f64) -> Vec<usize> {
    let weights: Vec<f64> = (1..=n_objects)
        .map(|rank| f64::from(rank).powf(-skew))
        .collect();
    let sum: f64 = weights.iter().sum();
    let window = |weight: f64| (f64::from(in_flight) * weight / sum).round().max(1.0) as usize;
    weights.into_iter().map(window).collect()
}

/// Starts a router with `setting`, drives it and stops it.
///
/// # Errors
/// If it does not start, refuses the routes, or carries nothing.
pub fn take(load: &LiveLoad, setting: &Setting, skew: f64) -> anyhow::Result<Take> {
    ensure!(
        load.over != Transport::Tcp,
        "workers are measured over unix or udp"
    );
    let folder = WorkFolder::new()?;
    let socket = folder.path().join("s");
    let port = free_port()?;
    let config = folder.path().join("c");
    let socket_text = socket.display().to_string();
    fs::write(&config, setting.configuration(load, &socket_text, port))?;
    let command = format!(
        "{} run --config {} 2>/dev/null",
        quoted(&load.tachonym),
        quoted(&config)
    );
    let mut running = Running::start(&command)?;
    let unix = Address::Unix(socket);
    running.first_exchange(&unix, &unix)?;
    let address = match load.over {
        Transport::Udp => Address::Udp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        _ => unix.clone(),
    };
    let forwarder = Forwarder {
        consumer: address.clone(),
        producer: address,
        pid: None,
        control: Some(unix),
    };
    let mut drivers = connect(load, &forwarder, skew)?;
    let taken = measure(load, &running, &mut drivers, &socket_text)?;
    drop(drivers);
    running.stop()?;
    Ok(taken)
}

/// The generator's threads, with objects dealt out among them, connected and probed.
fn connect(load: &LiveLoad, forwarder: &Forwarder, skew: f64) -> anyhow::Result<Vec<Driver>> {
    let deadline = Deadline::at(Instant::now() + SET_UP);
    let n_generators = usize::from(load.n_generators.min(load.n_objects).max(1));
    let mut dealt: Vec<Vec<Flow>> = (0..n_generators).map(|_| Vec::new()).collect();
    let seed = fresh_seed();
    let windows = windows(load.n_objects, load.in_flight, skew);
    for (idx, in_flight) in windows.into_iter().enumerate() {
        let shape = FlowShape::misses(in_flight, load.content_bytes.into(), LIFETIME_MS);
        let object = format!("{idx}");
        let prefix = Name::new()
            .with(format!("tachonym-lab-{seed:016x}").as_str())
            .with(object.as_str());
        let consumer = Link::connect_by(&forwarder.consumer, deadline)?;
        let producer = Link::connect_by(&forwarder.producer, deadline)?;
        let flow = Flow::new(prefix, consumer, producer, &shape, seed ^ idx as u64);
        dealt[idx % n_generators].push(flow);
    }
    dealt
        .into_iter()
        .map(|mut flows| {
            // The routes end with the router.
            Routes::register(forwarder, &mut flows, deadline)?;
            let mut driver = Driver::new(flows, false);
            driver.probe(deadline)?;
            Ok(driver)
        })
        .collect()
}

fn measure(
    load: &LiveLoad,
    running: &Running,
    drivers: &mut [Driver],
    socket: &str,
) -> anyhow::Result<Take> {
    let lasting = load.lasting;
    drive(drivers, lasting / 4)?;
    let process = running.process()?;
    let own = crate::process::Process::own();
    let before = workers(socket)?;
    let (cpu_before, own_before) = (process.cpu_ns()?, own.cpu_ns()?);
    let machine_before = MachineCpu::read()?;
    let started = Instant::now();
    let busy = drive(drivers, lasting)?.as_secs_f64();
    let elapsed = started.elapsed().as_secs_f64();
    let machine_after = MachineCpu::read()?;
    let cpu_ns = process.cpu_ns()?.saturating_sub(cpu_before);
    let own_ns = own.cpu_ns()?.saturating_sub(own_before);
    let after = workers(socket)?;

    let mut latencies = Histogram::default();
    let (mut n_sent, mut n_exchanges) = (0, 0);
    for flow in drivers.iter().flat_map(Driver::flows) {
        n_sent += flow.counters().n_sent;
        n_exchanges += flow.counters().n_exchanges;
        latencies.merge(flow.latencies());
    }
    ensure!(n_exchanges > 0, "the router forwarded no packet");
    let n_pkts = 2.0 * n_exchanges as f64;
    let all_ns = (machine_after.busy_ns + machine_after.stolen_ns)
        .saturating_sub(machine_before.busy_ns + machine_before.stolen_ns);
    let (shares, crossed) = divided(&before, &after)?;
    Ok(Take {
        pkts_per_s: n_pkts / busy,
        cpu_ns_per_pkt: cpu_ns as f64 / n_pkts,
        router_cores: cpu_ns as f64 / 1e9 / elapsed,
        other_cores: all_ns.saturating_sub(cpu_ns + own_ns) as f64 / 1e9 / elapsed,
        shares,
        crossed,
        latencies,
        n_lost: n_sent - n_exchanges,
        n_sent,
    })
}

/// Lets all generators ask for `lasting`; says how long it took until the last Data.
fn drive(drivers: &mut [Driver], lasting: Duration) -> anyhow::Result<Duration> {
    for flow in drivers.iter_mut().flat_map(|driver| driver.flows_mut()) {
        flow.allow(u64::MAX >> 1);
    }
    let phase = Phase::lasting(Instant::now(), lasting, Duration::from_millis(LIFETIME_MS));
    let busy = thread::scope(|scope| {
        let threads: Vec<_> = drivers
            .iter_mut()
            .map(|driver| scope.spawn(move || driver.run(phase, || {})))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            let ran = thread.join().map_err(|_| anyhow!("a generator panicked"))?;
            Ok(ran?)
        });
        joined.collect::<anyhow::Result<Vec<Duration>>>()
    })?;
    busy.into_iter().max().context("there is no generator")
}

fn workers(socket: &str) -> anyhow::Result<WorkersStatus> {
    let mut endpoint = Endpoint::connect(&FaceUri::Unix(socket.to_owned()))?;
    Ok(Controller::new(&mut endpoint, Signer::digest()).workers()?)
}

/// What each worker had of the packets between two moments, and what crossed a ring.
fn divided(before: &WorkersStatus, after: &WorkersStatus) -> anyhow::Result<(Vec<f64>, f64)> {
    let grown: Vec<(u64, u64)> = before
        .workers
        .iter()
        .zip(after.workers.iter())
        .map(|(before, after)| {
            (
                after.n_in_pkts.saturating_sub(before.n_in_pkts),
                after.n_crossed_pkts.saturating_sub(before.n_crossed_pkts),
            )
        })
        .collect();
    let n_in: u64 = grown.iter().map(|(n_in, _)| n_in).sum();
    ensure!(n_in > 0, "the router's workers counted no packet");
    let n_crossed: u64 = grown.iter().map(|(_, n_crossed)| n_crossed).sum();
    let shares = grown.iter().map(|&(own, _)| own as f64 / n_in as f64);
    Ok((shares.collect(), n_crossed as f64 / n_in as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_objects_have_more_in_flight() {
        assert_eq!(windows(4, 400, 0.0), [100; 4]);
        let skewed = windows(4, 1_000, 1.0);
        assert_eq!(skewed, [480, 240, 160, 120]);
        assert_eq!(windows(3, 1, 1.0), [1; 3]);
    }
}
