//! CPU time of a running router by its load, with and without gathering of packets.
//!
//! Owns the router's configuration and process, and one consumer and one producer at a time.
//! Refuses to compare.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tachonym_bench::random::fresh_seed;
use tachonym_bench::stats::Histogram;
use tachonym_bench::turns::cpu_seconds_of;
use tachonym_client::{Controller, Endpoint};
use tachonym_packet::Name;
use tachonym_protocol::{FaceUri, WaitingStatus};
use tachonym_security::Signer;

use crate::exchange::address::Address;
use crate::exchange::budget::{Deadline, Phase};
use crate::exchange::drive::Driver;
use crate::exchange::flow::{Flow, FlowShape};
use crate::exchange::link::Link;
use crate::exchange::measure::{Forwarder, Routes};
use crate::figures::WorkFolder;
use crate::figures::peers::quoted;
use crate::launch::{LOCAL_UDP, Running};

/// Longest wait for connections, routes and the first Data.
const SET_UP: Duration = Duration::from_secs(30);
/// An Interest's lifetime, after which it is lost.
const LIFETIME_MS: u64 = 2_000;
/// Most Interests in flight at a rate.
const PLACES_AT_RATE: usize = 8_192;
/// Content of each Data in bytes.
const CONTENT_BYTES: usize = 1_000;

/// What the router has to carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Nothing.
    Rest,
    /// This number of Interests a second, whether they are answered or not.
    Rate(f64),
    /// As many exchanges as this number of Interests in flight lets through.
    Window(usize),
}

/// What one measurement found.
#[derive(Clone, Debug)]
pub struct Take {
    /// Interests that were answered, a second.
    pub exchanges_per_s: f64,
    /// Cores that the router used.
    pub router_cores: f64,
    /// Time from Interest to Data.
    pub latencies: Histogram,
    /// Interests that were sent.
    pub n_sent: u64,
    /// Of these, those that were not answered.
    pub n_lost: u64,
    /// Waits of the worker that blocked, a second.
    pub wakeups_per_s: f64,
    /// Waits of the worker that gathered packets, a second.
    pub gathers_per_s: f64,
    /// How the worker waited at the end.
    pub waiting: WaitingStatus,
}

/// A running router with one worker, over a Unix socket.
pub struct Bed {
    running: Running,
    forwarder: Forwarder,
    socket: PathBuf,
    _folder: WorkFolder,
}

impl Bed {
    /// Starts `tachonym`, with gathering for `max_gather_us` at most.
    ///
    /// # Errors
    /// If it does not start or carries nothing.
    pub fn start(tachonym: &Path, max_gather_us: u32) -> anyhow::Result<Self> {
        let folder = WorkFolder::new()?;
        let socket = folder.path().join("s");
        let config = folder.path().join("c");
        let text = format!(
            "faces.unix.path = \"{}\"\nfaces.udp.listen = []\nfaces.tcp.listen = []\n\
             faces.websocket.listen = []\n{LOCAL_UDP}\
             [workers]\nthreads = 1\nmax_gather_us = {max_gather_us}\n",
            socket.display()
        );
        fs::write(&config, text)?;
        let command = format!(
            "{} run --config {} 2>/dev/null",
            quoted(tachonym),
            quoted(&config)
        );
        let mut running = Running::start(&command)?;
        let address = Address::Unix(socket.clone());
        running.first_exchange(&address, &address)?;
        Ok(Self {
            running,
            forwarder: Forwarder {
                consumer: address.clone(),
                producer: address,
                pid: None,
                control: None,
            },
            socket,
            _folder: folder,
        })
    }

    /// Measures a load for `lasting`, after a quarter of that to warm up.
    ///
    /// # Errors
    /// If the router has ended or refuses the routes.
    pub fn take(&self, load: Load, lasting: Duration) -> anyhow::Result<Take> {
        let process = self.running.process()?;
        let mut driver = match load {
            Load::Rest => None,
            Load::Rate(per_s) => {
                let mut driver = self.connect(PLACES_AT_RATE)?;
                for flow in driver.flows_mut() {
                    flow.set_rate(per_s);
                }
                Some(driver)
            }
            Load::Window(in_flight) => Some(self.connect(in_flight)?),
        };
        run(driver.as_mut(), lasting / 4)?;
        let waiting_before = self.waiting()?;
        let (before, started) = (process.cpu_ns()?, Instant::now());
        let busy = run(driver.as_mut(), lasting)?;
        let (elapsed, after) = (started.elapsed(), process.cpu_ns()?);
        let waiting = self.waiting()?;
        let per_s = |of: fn(&WaitingStatus) -> u64| {
            of(&waiting).saturating_sub(of(&waiting_before)) as f64 / elapsed.as_secs_f64()
        };
        let mut taken = Take {
            exchanges_per_s: 0.0,
            router_cores: after.saturating_sub(before) as f64 / elapsed.as_nanos() as f64,
            latencies: Histogram::default(),
            n_sent: 0,
            n_lost: 0,
            wakeups_per_s: per_s(|waiting| waiting.n_wakeups),
            gathers_per_s: per_s(|waiting| waiting.n_gathers),
            waiting,
        };
        for flow in driver.iter().flat_map(Driver::flows) {
            let counters = flow.counters();
            taken.n_sent += counters.n_sent;
            taken.n_lost += counters.n_sent - counters.n_exchanges;
            taken.exchanges_per_s += counters.n_exchanges as f64 / busy.as_secs_f64();
            taken.latencies.merge(flow.latencies());
        }
        Ok(taken)
    }

    fn waiting(&self) -> anyhow::Result<WaitingStatus> {
        let uri = FaceUri::Unix(self.socket.display().to_string());
        let mut endpoint = Endpoint::connect(&uri)?;
        let status = Controller::new(&mut endpoint, Signer::digest()).workers()?;
        let worker = status.workers.into_iter().next();
        let waiting = worker.and_then(|worker| worker.waiting);
        waiting.context("the router does not say how it waits")
    }

    fn connect(&self, in_flight: usize) -> anyhow::Result<Driver> {
        let deadline = Deadline::at(Instant::now() + SET_UP);
        let seed = fresh_seed();
        let shape = FlowShape::misses(in_flight, CONTENT_BYTES, LIFETIME_MS);
        let prefix = Name::new().with(format!("tachonym-lab-{seed:016x}").as_str());
        let consumer = Link::connect_by(&self.forwarder.consumer, deadline)?;
        let producer = Link::connect_by(&self.forwarder.producer, deadline)?;
        let mut flows = vec![Flow::new(prefix, consumer, producer, &shape, seed)];
        Routes::register(&self.forwarder, &mut flows, deadline)?;
        let mut driver = Driver::new(flows, false);
        driver.probe(deadline)?;
        Ok(driver)
    }

    /// Ends the router.
    ///
    /// # Errors
    /// If it does not end.
    pub fn stop(self) -> anyhow::Result<()> {
        self.running.stop().map(|_| ())
    }
}

/// CPU time of one sleep of `duration` on this machine, by which gathering pays or not: the
/// mean of `n_sleeps`.
#[must_use]
pub fn sleep_cpu(duration: Duration, n_sleeps: u32) -> Duration {
    let (seconds, ()) = cpu_seconds_of(|| {
        for _ in 0..n_sleeps {
            thread::sleep(duration);
        }
    });
    Duration::from_secs_f64(seconds) / n_sleeps.max(1)
}

/// Carries the load of a driver, or none, for `lasting`; until the last Data.
fn run(driver: Option<&mut Driver>, lasting: Duration) -> anyhow::Result<Duration> {
    let Some(driver) = driver else {
        thread::sleep(lasting);
        return Ok(lasting);
    };
    for flow in driver.flows_mut() {
        flow.allow(u64::MAX >> 1);
    }
    let phase = Phase::lasting(Instant::now(), lasting, Duration::from_millis(LIFETIME_MS));
    Ok(driver.run(phase, || {})?)
}
