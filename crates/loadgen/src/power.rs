//! A running router with two workers under a rate that changes, by the governor of its power.
//!
//! Owns the router's configuration and process, the processors that router and generator run
//! on, and the readings of the router's workers. Refuses to compare.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rustix::thread::{CpuSet, sched_setaffinity};
use tachonym_bench::cpu;
use tachonym_bench::random::fresh_seed;
use tachonym_bench::stats::Histogram;
use tachonym_client::{Controller, Endpoint};
use tachonym_packet::Name;
use tachonym_protocol::{FaceUri, WorkerState, WorkersStatus};
use tachonym_security::Signer;

use crate::exchange::address::{Address, Transport};
use crate::exchange::budget::{Deadline, Phase};
use crate::exchange::drive::Driver;
use crate::exchange::flow::{Flow, FlowShape};
use crate::exchange::link::Link;
use crate::exchange::measure::{Forwarder, Routes};
use crate::exchange::pace::{Course, Lateness};
use crate::figures::WorkFolder;
use crate::figures::peers::{free_port, quoted};
use crate::launch::{LOCAL_UDP, Running};
use crate::process::{MachineCpu, Process};

/// Longest wait for connections, routes and the first Data.
const SET_UP: Duration = Duration::from_secs(30);
/// An Interest's lifetime in milliseconds, after which it is lost.
pub const LIFETIME_MS: u64 = 1_000;
/// After its course a flow may go on for this time, if it is late.
const GRACE: Duration = Duration::from_secs(1);
/// Objects, each with a consumer and a producer: enough for both workers to have some.
const N_OBJECTS: usize = 8;
/// Content of each Data in bytes.
const CONTENT_BYTES: usize = 1_000;
/// Workers of the router.
pub const N_WORKERS: usize = 2;

/// Which processors the router and the generator run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Those of the router.
    pub router: Vec<usize>,
    /// That of the generator.
    pub generator: Vec<usize>,
}

impl Placement {
    /// The last processor that this process may use for the generator, the others for the
    /// router. One processor alone is shared.
    #[must_use]
    pub fn apart() -> Self {
        let cpus = cpu::available();
        match cpus.split_last() {
            Some((&last, others)) if !others.is_empty() => Self {
                router: others.to_vec(),
                generator: vec![last],
            },
            _ => Self::free(),
        }
    }

    /// All processors for both.
    #[must_use]
    pub fn free() -> Self {
        Self {
            router: cpu::available(),
            generator: cpu::available(),
        }
    }

    /// Whether they share a processor.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.generator.iter().any(|cpu| self.router.contains(cpu))
    }
}

/// Keeps the calling thread, and those that it starts from now on, on these processors.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_on(cpus: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on processors {cpus:?}"))
}

/// What the router says of its workers at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Seconds since the course began.
    pub at_s: f64,
    /// Workers that run.
    pub n_running: u32,
    /// Packets that all workers have received.
    pub n_in_pkts: u64,
}

/// What a course found.
#[derive(Clone, Debug)]
pub struct Take {
    /// Interests of the course.
    pub n_due: u64,
    /// Interests that were sent.
    pub n_sent: u64,
    /// Of these, those that were answered.
    pub n_answered: u64,
    /// Time from Interest to Data.
    pub latencies: Histogram,
    /// CPU time of the router until the course was over.
    pub router_cpu: Duration,
    /// Cores that it used in that time.
    pub router_cores: f64,
    /// Cores that neither router nor generator had in that time, and that others used or were
    /// stolen.
    pub other_cores: f64,
    /// The latest of the flows.
    pub lateness: Lateness,
    /// Packets that the router dropped, by its reasons.
    pub drops: BTreeMap<String, u64>,
    /// The router's workers over time.
    pub readings: Vec<Reading>,
}

impl Take {
    /// Interests that were sent and not answered.
    #[must_use]
    pub const fn n_lost(&self) -> u64 {
        self.n_sent - self.n_answered
    }
}

/// The highest rate that a window of Interests reaches.
#[derive(Clone, Copy, Debug)]
pub struct Saturation {
    /// Exchanges a second.
    pub exchanges_per_s: f64,
    /// Cores that the router used.
    pub router_cores: f64,
    /// Cores that this process used: the generator.
    pub generator_cores: f64,
    /// Cores that neither of them had, and that others used or were stolen.
    pub other_cores: f64,
}

/// CPU time at one moment, in nanoseconds since some start.
#[derive(Clone, Copy)]
struct CpuTimes {
    at: Instant,
    router_ns: u64,
    own_ns: u64,
    machine_ns: u64,
}

/// Time and CPU time between two moments.
#[derive(Clone, Copy)]
struct Used {
    router: Duration,
    router_cores: f64,
    own_cores: f64,
    other_cores: f64,
}

impl CpuTimes {
    fn read(router: Process) -> anyhow::Result<Self> {
        let machine = MachineCpu::read()?;
        Ok(Self {
            at: Instant::now(),
            router_ns: router.cpu_ns()?,
            own_ns: Process::own().cpu_ns()?,
            machine_ns: machine.busy_ns + machine.stolen_ns,
        })
    }

    fn until(self, end: Self) -> Used {
        let seconds = (end.at - self.at).as_secs_f64();
        let cores = |after: u64, before| after.saturating_sub(before) as f64 / 1e9 / seconds;
        let (router_cores, own_cores) = (
            cores(end.router_ns, self.router_ns),
            cores(end.own_ns, self.own_ns),
        );
        let all_cores = cores(end.machine_ns, self.machine_ns);
        Used {
            router: Duration::from_nanos(end.router_ns.saturating_sub(self.router_ns)),
            router_cores,
            own_cores,
            other_cores: (all_cores - router_cores - own_cores).max(0.0),
        }
    }
}

/// A running router with two workers.
pub struct Bed {
    running: Running,
    forwarder: Forwarder,
    control: String,
    _folder: WorkFolder,
}

impl Bed {
    /// Starts `tachonym` with this `power.governor`, where the calling thread runs.
    ///
    /// # Errors
    /// If it does not start or carries nothing.
    pub fn start(tachonym: &Path, governor: &str, over: Transport) -> anyhow::Result<Self> {
        let folder = WorkFolder::new()?;
        let socket = folder.path().join("s");
        let config = folder.path().join("c");
        let port = free_port()?;
        let text = format!(
            "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:{port}\"]\n\
             faces.tcp.listen = []\nfaces.websocket.listen = []\n{LOCAL_UDP}\
             power.governor = \"{governor}\"\n\
             [workers]\nthreads = {N_WORKERS}\nprefix_components = 2\n",
            socket.display()
        );
        fs::write(&config, text)?;
        let command = format!(
            "{} run --config {} 2>/dev/null",
            quoted(tachonym),
            quoted(&config)
        );
        let mut running = Running::start(&command)?;
        let unix = Address::Unix(socket.clone());
        running.first_exchange(&unix, &unix)?;
        let address = match over {
            Transport::Udp => Address::Udp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            _ => unix.clone(),
        };
        Ok(Self {
            running,
            forwarder: Forwarder {
                consumer: address.clone(),
                producer: address,
                pid: None,
                control: Some(unix),
            },
            control: socket.display().to_string(),
            _folder: folder,
        })
    }

    /// Measures how much `in_flight` Interests in flight let through in `lasting`, after a
    /// quarter of that to warm up.
    ///
    /// # Errors
    /// If the router has ended or refuses the routes.
    pub fn saturate(&self, in_flight: usize, lasting: Duration) -> anyhow::Result<Saturation> {
        let mut driver = self.connect(in_flight.div_ceil(N_OBJECTS))?;
        let mut run = |lasting| {
            let flows = driver.flows_mut().iter_mut();
            flows.for_each(|flow| flow.allow(u64::MAX >> 1));
            let lifetime = Duration::from_millis(LIFETIME_MS);
            driver.run(Phase::lasting(Instant::now(), lasting, lifetime), || {})
        };
        run(lasting / 4)?;
        let router = self.running.process()?;
        let before = CpuTimes::read(router)?;
        let busy = run(lasting)?;
        let used = before.until(CpuTimes::read(router)?);
        let counters = driver.flows().iter().map(Flow::counters);
        let n_exchanges: u64 = counters.map(|it| it.n_exchanges).sum();
        Ok(Saturation {
            exchanges_per_s: n_exchanges as f64 / busy.as_secs_f64(),
            router_cores: used.router_cores,
            generator_cores: used.own_cores,
            other_cores: used.other_cores,
        })
    }

    /// Follows a course with at most `window` Interests in flight, and reads meanwhile every
    /// `interval` how the workers stand.
    ///
    /// # Errors
    /// If the router has ended or refuses the routes.
    pub fn follow(
        &self,
        course: &Course,
        window: usize,
        interval: Duration,
    ) -> anyhow::Result<Take> {
        let mut driver = self.connect(window.div_ceil(N_OBJECTS))?;
        for (idx, flow) in driver.flows_mut().iter_mut().enumerate() {
            flow.follow(course.share(idx, N_OBJECTS));
        }
        let drops_before = self.drops()?;
        let process = self.running.process()?;
        let is_over = AtomicBool::new(false);
        let (before, started) = (CpuTimes::read(process)?, Instant::now());
        let (readings, used) = thread::scope(|scope| {
            let reader = scope.spawn(|| self.read(started, interval, &is_over));
            let lasting = course.lasting();
            let lifetime = Duration::from_millis(LIFETIME_MS);
            let phase = Phase::lasting(started, lasting + GRACE, lifetime);
            // The last answer may come after the end of the course, or before it if nothing is
            // due at the end.
            let read = || CpuTimes::read(process);
            let mut at_end = None;
            let ran = driver.run(phase, || {
                if at_end.is_none() && started.elapsed() >= lasting {
                    at_end = Some(read());
                }
            });
            thread::sleep(lasting.saturating_sub(started.elapsed()));
            let at_end = at_end.unwrap_or_else(read);
            is_over.store(true, Ordering::Relaxed);
            let readings = reader
                .join()
                .map_err(|_| anyhow!("the reader panicked"))??;
            ran?;
            anyhow::Ok((readings, before.until(at_end?)))
        })?;
        let mut taken = Take {
            n_due: course.n_interests(),
            n_sent: 0,
            n_answered: 0,
            latencies: Histogram::default(),
            router_cpu: used.router,
            router_cores: used.router_cores,
            other_cores: used.other_cores,
            lateness: Lateness::default(),
            drops: self.drops()?,
            readings,
        };
        for (reason, n_before) in drops_before {
            if let Some(n_dropped) = taken.drops.get_mut(&reason) {
                *n_dropped -= n_before.min(*n_dropped);
            }
        }
        taken.drops.retain(|_, n_dropped| *n_dropped > 0);
        for flow in driver.flows() {
            taken.n_sent += flow.counters().n_sent;
            taken.n_answered += flow.counters().n_exchanges;
            taken.latencies.merge(flow.latencies());
            let lateness = flow.lateness().unwrap_or_default();
            taken.lateness.longest = taken.lateness.longest.max(lateness.longest);
            taken.lateness.was_full |= lateness.was_full;
        }
        Ok(taken)
    }

    /// Packets that the router has dropped since its start.
    fn drops(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let mut endpoint = self.control()?;
        let all = Controller::new(&mut endpoint, Signer::digest()).drops()?;
        let of_router = all.into_iter().filter(|it| it.face_id.is_none());
        Ok(of_router.map(|it| (it.reason, it.n_dropped)).collect())
    }

    fn control(&self) -> anyhow::Result<Endpoint> {
        Ok(Endpoint::connect(&FaceUri::Unix(self.control.clone()))?)
    }

    /// How the workers stand, from now until it is over.
    fn read(
        &self,
        started: Instant,
        interval: Duration,
        is_over: &AtomicBool,
    ) -> anyhow::Result<Vec<Reading>> {
        let mut endpoint = self.control()?;
        let mut readings = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let status = Controller::new(&mut endpoint, Signer::digest()).workers()?;
            readings.push(reading(&status, started.elapsed()));
            thread::sleep(interval);
        }
        Ok(readings)
    }

    fn connect(&self, in_flight: usize) -> anyhow::Result<Driver> {
        let deadline = Deadline::at(Instant::now() + SET_UP);
        let seed = fresh_seed();
        let shape = FlowShape::misses(in_flight.max(1), CONTENT_BYTES, LIFETIME_MS);
        let flow = |idx: usize| {
            let prefix = Name::new()
                .with(format!("tachonym-lab-{seed:016x}").as_str())
                .with(format!("{idx}").as_str());
            let consumer = Link::connect_by(&self.forwarder.consumer, deadline)?;
            let producer = Link::connect_by(&self.forwarder.producer, deadline)?;
            let seed = seed ^ idx as u64;
            anyhow::Ok(Flow::new(prefix, consumer, producer, &shape, seed))
        };
        let mut flows = (0..N_OBJECTS)
            .map(flow)
            .collect::<anyhow::Result<Vec<_>>>()?;
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

fn reading(status: &WorkersStatus, after: Duration) -> Reading {
    let is_running = |state| state == WorkerState::Running;
    let running = status.workers.iter().filter(|it| is_running(it.state));
    Reading {
        at_s: after.as_secs_f64(),
        n_running: running.count() as u32,
        n_in_pkts: status.workers.iter().map(|it| it.n_in_pkts).sum(),
    }
}
