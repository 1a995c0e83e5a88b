//! `tachonym-lab workers`: what more workers gain, packets in memory.
//!
//! Each thread has the router's own worker and receives packets of its own, as by a receive
//! queue: names are at home at any worker, so that of N threads' packets all but 1/N cross a
//! ring (Takemasa 2019, section 3.1.3 and Figure 4.7, has names hashed by the network
//! interface instead, and Mansilha 2017, Figures 7 and 8, a thread that dispatches). All
//! Interests miss, and their Data come some bursts later. Numbers of workers take turns in
//! every round, on the same names.

pub mod hot;

use std::fmt;
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tachonym_dispatch::{DispatchBy, Laps, LapsConfig, Publisher, WorkerId};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashKind, InterestRewrite, InterestView, MonoNs, NackReason, PacketView,
};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};
use tachonym_workers::{
    Crossing, Dispatcher, LinkConfig, Links, Parcel, Port, WaitingLengths, Worker,
};

use crate::choices::name_hash;
use crate::engine_bed::SendBuffer;
use crate::engine_bed::workload::{Burst, Workload};
use crate::output;
use crate::stats::Spread;

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
/// Bursts whose packets each thread has in memory, and receives again and again.
const KEPT_BURSTS: usize = 512;

/// Measures the rate by the number of workers
#[derive(Args, Clone, Debug)]
pub struct WorkersArgs {
    #[command(flatten)]
    bed: BedArgs,
    /// Numbers of workers, each a thread; the others are compared with the first
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Vec<u16>,
    /// Rounds, each of which measures every number of workers
    #[arg(long, default_value_t = 15, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// Tables and packets.
#[derive(Args, Clone, Debug)]
struct BedArgs {
    /// Part of the name that selects the home worker
    #[arg(long, value_enum, default_value_t = Rule::Prefix)]
    dispatch: Rule,
    /// Prefixes in the FIB, which workers share
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    fib_prefixes: u32,
    /// Data in the content stores of all workers together
    #[arg(long, default_value_t = 4_096, value_name = "N",
          value_parser = clap::value_parser!(u32).range(64..=1 << 26))]
    store: u32,
    /// Packets of a burst
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    burst: u16,
    /// Bursts of Interests between a burst and its Data
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    late: u16,
    /// Interests in a round, of all threads together
    #[arg(long, default_value_t = 524_288, value_name = "N",
          value_parser = clap::value_parser!(u32).range(4_096..=1 << 30))]
    requests: u32,
    /// Hash function of names; auto takes the fastest on this machine
    #[arg(long, default_value = "auto", value_name = "KIND", value_parser = name_hash)]
    name_hash: HashKind,
    /// Seed of names and nonces
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rule {
    /// Their first two components
    Prefix,
    /// The whole name
    Name,
}

impl From<Rule> for DispatchBy {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::Prefix => Self::Prefix {
                n_components: NonZeroU8::MIN.saturating_add(1),
            },
            Rule::Name => Self::Name,
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
struct Report {
    n_fib_prefixes: u32,
    rows: Vec<Row>,
}

/// One number of workers.
#[derive(Clone, Debug, Serialize)]
struct Row {
    n_workers: u16,
    /// An Interest and its Data, by the clock, of all threads; in nanoseconds.
    exchange_ns: Spread,
    /// Packets forwarded in a second, by those of the first: the median of the rounds'
    /// ratios.
    rate_by_first: f64,
    /// Millions of packets forwarded in a second.
    mpps: f64,
    /// Packets that crossed a ring, by all received.
    crossed: f64,
    /// Of the busiest worker, how much more packets were at home than the mean.
    imbalance: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} prefixes, Interests that miss and their Data, packets in memory\n\n| workers | ns \
             an exchange (p10-p90) | million packets/s | relative to the first | crossed a ring | \
             busiest / mean |\n|---|---|---|---|---|---|",
            self.n_fib_prefixes
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {:.0} ({:.0}-{:.0}) | {:.2} | {:.2} | {:.2} | {:.2} |",
                row.n_workers,
                row.exchange_ns.median,
                row.exchange_ns.p10,
                row.exchange_ns.p90,
                row.mpps,
                row.rate_by_first,
                row.crossed,
                row.imbalance,
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, or a packet was lost.
pub fn run(args: &WorkersArgs) -> anyhow::Result<()> {
    let beds = args
        .workers
        .iter()
        .map(|&n_workers| Bed::new(&args.bed, n_workers, 0.0));
    let mut beds = beds.collect::<anyhow::Result<Vec<_>>>()?;
    for bed in &mut beds {
        bed.take(&args.bed)?;
    }
    let mut rounds = vec![Vec::new(); beds.len()];
    for round in 0..usize::from(args.rounds) {
        for turn in 0..beds.len() {
            let idx = (turn + round) % beds.len();
            rounds[idx].push(beds[idx].take(&args.bed)?);
        }
    }
    let rows = beds.iter().zip(&rounds).map(|(bed, own)| {
        let ratios: Vec<f64> = rounds[0]
            .iter()
            .zip(own)
            .map(|(first, own)| first / own)
            .collect();
        let exchange_ns = Spread::of(own).context("no round was measured")?;
        Ok(Row {
            n_workers: bed.runners.len() as u16,
            rate_by_first: Spread::of(&ratios).context("no round was measured")?.median,
            mpps: 2e3 / exchange_ns.median,
            exchange_ns,
            crossed: bed.crossed(),
            imbalance: bed.imbalance(),
        })
    });
    let report = Report {
        n_fib_prefixes: args.bed.fib_prefixes,
        rows: rows.collect::<anyhow::Result<_>>()?,
    };
    output::print(&report, args.json)
}

/// Workers that share routes, and what each of their threads receives.
struct Bed {
    by: DispatchBy,
    key: HashKey,
    runners: Vec<Runner>,
}

/// A thread.
struct Runner {
    worker: Worker,
    links: Links,
    me: WorkerId,
    epoch: Instant,
    interests: Vec<Burst>,
    data: Vec<Burst>,
    sent: SendBuffer<()>,
    n_late: usize,
    n_received: u64,
    n_crossed: u64,
}

/// Where a worker's packets go in the bed.
struct Ports<'a> {
    sent: &'a mut SendBuffer<()>,
    links: &'a mut Links,
}

impl Bed {
    fn new(args: &BedArgs, n_workers: u16, hot: f64) -> anyhow::Result<Self> {
        let n_threads = usize::from(n_workers);
        let workload = Workload {
            seed: args.seed,
            n_prefixes: args.fib_prefixes.into(),
            n_prefix_components: 4,
            n_name_components: 7,
            content_bytes: 128,
        };
        let hot_workload = Workload {
            n_prefixes: 1,
            ..workload.clone()
        };
        // Which of the names are below the one prefix: so many of a thousand.
        let n_hot = (1_000.0 * hot) as u64;
        let of = |number: u64| match number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 {
            scattered if scattered % 1_000 < n_hot => &hot_workload,
            _ => &workload,
        };
        let key = HashKey::new(args.name_hash, &[7; 32]);
        let homes = Laps::new(&LapsConfig::new(n_threads))?;
        let publisher = Publisher::new(homes.homes());
        let waiting = Arc::new(WaitingLengths::new(n_threads));
        let epoch = Instant::now();
        let mut routes = None;
        let mut runners = Vec::new();
        for (idx, links) in Links::mesh(n_threads, LinkConfig::default())
            .into_iter()
            .enumerate()
        {
            let config = engine_config(args, n_threads);
            let seed = idx as u64;
            let mut engine = match &routes {
                None => Engine::new(config, key.clone(), seed)?,
                Some(routes) => Engine::sharing(config, key.clone(), seed, Clone::clone(routes))?,
            };
            for face in [CONSUMER, PRODUCER] {
                engine.add_face(face, FaceTraits::REMOTE);
            }
            if routes.is_none() {
                for number in 0..args.fib_prefixes {
                    let prefix = workload.prefix(number.into());
                    engine.add_next_hop(prefix.view(), NextHop::new(PRODUCER, 0))?;
                }
                routes = Some(engine.routes().clone());
            }
            let me = WorkerId(idx as u16);
            let dispatcher = Dispatcher::new(args.dispatch.into(), key.clone(), publisher.reader());
            let first = KEPT_BURSTS / n_threads * idx;
            let bursts = |write: fn(&Workload, u64, &mut Vec<u8>)| {
                let kept = first..first + KEPT_BURSTS / n_threads;
                let n_pkts = u64::from(args.burst);
                kept.map(|burst| {
                    let mut packets = Burst::default();
                    for number in burst as u64 * n_pkts..(burst as u64 + 1) * n_pkts {
                        packets.push(|out| write(of(number), number, out));
                    }
                    packets
                })
                .collect::<Vec<_>>()
            };
            runners.push(Runner {
                worker: Worker::new(me, engine, dispatcher, waiting.clone()),
                links,
                me,
                epoch,
                interests: bursts(Workload::write_interest),
                data: bursts(Workload::write_data),
                sent: SendBuffer::new(()),
                n_late: args.late.into(),
                n_received: 0,
                n_crossed: 0,
            });
        }
        Ok(Self {
            by: args.dispatch.into(),
            key,
            runners,
        })
    }

    /// Has all threads together take so many exchanges; nanoseconds for each.
    fn take(&mut self, args: &BedArgs) -> anyhow::Result<f64> {
        let n_threads = self.runners.len();
        let n_bursts = (args.requests as usize).div_ceil(usize::from(args.burst) * n_threads);
        let barrier = Barrier::new(n_threads);
        let n_busy = AtomicUsize::new(n_threads);
        let before = self.n_satisfied();
        let elapsed_ns = thread::scope(|scope| {
            let threads: Vec<_> = self
                .runners
                .iter_mut()
                .enumerate()
                .map(|(cpu, runner)| {
                    let (barrier, n_busy) = (&barrier, &n_busy);
                    scope.spawn(move || {
                        pin(cpu);
                        barrier.wait();
                        let begun = Instant::now();
                        runner.take(n_bursts, n_busy);
                        begun.elapsed().as_nanos()
                    })
                })
                .collect();
            let times = threads.into_iter().map(|thread| {
                let ended = thread.join();
                ended.map_err(|_| anyhow!("a worker panicked"))
            });
            times.collect::<anyhow::Result<Vec<_>>>()
        })?;
        let n_exchanges = n_bursts * n_threads * usize::from(args.burst);
        let n_satisfied = self.n_satisfied() - before;
        ensure!(
            n_satisfied == n_exchanges as u64,
            "only {n_satisfied} of {n_exchanges} Interests were answered"
        );
        let slowest = elapsed_ns.into_iter().max().unwrap_or_default();
        Ok(slowest as f64 / n_exchanges as f64)
    }

    fn n_satisfied(&self) -> u64 {
        let engines = self.runners.iter().map(|runner| runner.worker.engine());
        engines
            .map(|engine| engine.counters().n_satisfied_interests)
            .sum()
    }

    fn crossed(&self) -> f64 {
        let n_crossed: u64 = self.runners.iter().map(|runner| runner.n_crossed).sum();
        let n_received: u64 = self.runners.iter().map(|runner| runner.n_received).sum();
        n_crossed as f64 / n_received.max(1) as f64
    }

    fn imbalance(&self) -> f64 {
        let engines = self.runners.iter().map(|runner| runner.worker.engine());
        let loads: Vec<u64> = engines
            .map(|engine| engine.counters().n_in_interests)
            .collect();
        let mean = loads.iter().sum::<u64>() as f64 / loads.len() as f64;
        loads.into_iter().max().unwrap_or_default() as f64 / mean
    }
}

fn engine_config(args: &BedArgs, n_workers: usize) -> EngineConfig {
    let n_prefixes = args.fib_prefixes as usize;
    let max_pkts = (args.store as usize).div_ceil(n_workers);
    EngineConfig {
        cs: CsCapacity {
            max_pkts,
            // The number of packets is to be what bounds it.
            max_bytes: max_pkts * 8_192,
        },
        fib: FibConfig {
            expected_entries: n_prefixes,
            ..FibConfig::with_max_entries(n_prefixes + 1_024)
        },
        ..EngineConfig::default()
    }
}

impl Runner {
    /// Receives so many bursts of Interests and their Data, and works until no thread is
    /// busy any more.
    fn take(&mut self, n_bursts: usize, n_busy: &AtomicUsize) {
        let interests = std::mem::take(&mut self.interests);
        let data = std::mem::take(&mut self.data);
        for burst in 0..n_bursts + self.n_late {
            if burst < n_bursts {
                self.receive(&interests[burst % interests.len()], CONSUMER);
            }
            if let Some(answered) = burst.checked_sub(self.n_late) {
                self.receive(&data[answered % data.len()], PRODUCER);
            }
            self.poll();
        }
        n_busy.fetch_sub(1, Ordering::AcqRel);
        while n_busy.load(Ordering::Acquire) > 0 || !self.links.is_idle() {
            self.poll();
            thread::yield_now();
        }
        (self.interests, self.data) = (interests, data);
    }

    /// Takes each packet of a burst to its home.
    fn receive(&mut self, burst: &Burst, face: FaceId) {
        let headers = Headers::default();
        let mut own = Vec::with_capacity(burst.len());
        self.worker.dispatcher_mut().refresh();
        for wire in burst.iter() {
            let name = PacketView::name_of(wire).expect("the workload is well-formed");
            let home = match self.links.n_threads() {
                1 => self.me,
                _ => self.worker.dispatcher_mut().home(name),
            };
            self.n_received += 1;
            if home == self.me {
                let packet = PacketView::parse(wire).expect("the workload is well-formed");
                own.push(RxPacket::new(face, &headers, packet).expect("no headers"));
                continue;
            }
            self.n_crossed += 1;
            let parcel = Parcel {
                crossing: Crossing::Arrived,
                face,
                headers: &headers,
                wire,
                announcement: None,
                served: &[],
            };
            // What does not fit waits where it came from.
            while !self.links.has_room(home) {
                self.poll();
            }
            self.links.push(home, &parcel);
        }
        let mut ports = Ports {
            sent: &mut self.sent,
            links: &mut self.links,
        };
        self.worker.handle_burst(now(self.epoch), &own, &mut ports);
        self.links.flush();
    }

    /// Takes what others have sent.
    fn poll(&mut self) {
        for from in (0..self.links.n_threads() as u16).map(WorkerId) {
            while let Some(batch) = self.links.receive(from) {
                let mut ports = Ports {
                    sent: &mut self.sent,
                    links: &mut self.links,
                };
                self.worker
                    .handle_batch(now(self.epoch), &batch, &mut ports);
                self.links.give_back(from, batch);
            }
        }
        self.links.flush();
    }
}

/// The time of all workers of a bed.
fn now(epoch: Instant) -> MonoNs {
    MonoNs(1_000_000_000 + u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Has this thread stay on one processor of those that it may use.
pub(crate) fn pin(thread: usize) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    if let Some(&cpu) = cpus.get(thread % cpus.len().max(1)) {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        // It is slower where this is not allowed, and no less right.
        let _ = rustix::thread::sched_setaffinity(None, &only);
    }
}

impl Output for Ports<'_> {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        self.sent.send_interest(face, interest, rewrite, headers);
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.sent.send_data(face, data_wire, headers);
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        self.sent.send_nack(face, reason, interest_wire, headers);
    }
}

impl Port for Ports<'_> {
    fn pass(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool {
        self.links.push(to, parcel)
    }
}
