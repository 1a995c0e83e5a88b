//! The router's own workers between queues in memory, without sockets.
//!
//! Each thread has a worker and receives packets of its own, as by a receive queue: names
//! are at home at any worker, so that of N threads' packets all but 1/N cross a ring. All
//! Interests miss, and their Data come some bursts later.

use std::num::NonZeroU8;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use anyhow::{anyhow, ensure};
use tachonym_bench::{Context, Param, ParamKind, cpu};
use tachonym_dispatch::{DispatchBy, Laps, LapsConfig, Publisher, WorkerId};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket, relend};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashKind, HashedNames, InterestRewrite, InterestView, MonoNs, NackReason,
};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};
use tachonym_workers::{
    Batch, Dispatcher, LinkConfig, Links, Parcel, Port, Receiver, ReceiverConfig, WaitingLengths,
    Worker,
};

use super::engine::SendBuffer;
use super::engine::workload::{Burst, Workload};
use crate::choices::name_hash;

pub(crate) const CONSUMER: FaceId = FaceId(256);
pub(crate) const PRODUCER: FaceId = FaceId(257);
/// Bursts whose packets each thread has in memory, and receives again and again.
const KEPT_BURSTS: usize = 512;

/// Packets in a ring to a worker, above which a thread receives no more: more than a burst,
/// and fewer than a ring holds.
const MAX_QUEUE_PKTS: u32 = 4_096;

/// The part of the name that selects the home worker.
pub(crate) const DISPATCH: Param = Param::choice(
    "dispatch",
    "part of the name that selects the home worker: two components, or all",
    &["prefix", "name"],
    "prefix",
);
/// Prefixes in the FIB.
pub(crate) const PREFIXES: Param = Param::new(
    "prefixes",
    "prefixes in the FIB, which workers share",
    ParamKind::Count {
        min: 1,
        max: 1 << 28,
    },
    ["2k", "1M", "1M"],
);
/// Capacity of the content stores.
pub(crate) const STORE: Param = Param::new(
    "store",
    "Data in the content stores of all workers together",
    ParamKind::Count {
        min: 64,
        max: 1 << 26,
    },
    ["4096"; 3],
);
/// Packets of a burst.
pub(crate) const BURST: Param = Param::new(
    "burst",
    "packets of a burst",
    ParamKind::Count { min: 1, max: 1_024 },
    ["64"; 3],
);
/// Bursts between an Interest and its Data.
pub(crate) const LATE: Param = Param::new(
    "late",
    "bursts of Interests between a burst and its Data",
    ParamKind::Count { min: 1, max: 256 },
    ["4"; 3],
);
/// Interests of a round.
pub(crate) const REQUESTS: Param = Param::new(
    "requests",
    "Interests in a round, of all threads together",
    ParamKind::Count {
        min: 4_096,
        max: 1 << 30,
    },
    ["32768", "524288", "524288"],
);

/// Tables and packets.
#[derive(Clone, Debug)]
pub(crate) struct WorkersOptions {
    dispatch: DispatchBy,
    n_prefixes: u32,
    n_stored: usize,
    burst_pkts: u16,
    late_bursts: usize,
    n_requests: usize,
    name_hash: HashKind,
    seed: u64,
    /// The share of the Interests under one name.
    hot: f64,
}

impl WorkersOptions {
    /// What the parameters say, with this share of the Interests under one name.
    ///
    /// # Errors
    /// If there is no such hash function.
    pub(crate) fn new(context: &Context, hot: f64) -> anyhow::Result<Self> {
        let n_components = NonZeroU8::MIN.saturating_add(1);
        Ok(Self {
            dispatch: match context.text(DISPATCH.name) {
                "name" => DispatchBy::Name,
                _ => DispatchBy::Prefix { n_components },
            },
            n_prefixes: context.values.count32(PREFIXES.name),
            n_stored: context.size(STORE.name),
            burst_pkts: context.values.count32(BURST.name) as u16,
            late_bursts: context.size(LATE.name),
            n_requests: context.size(REQUESTS.name),
            name_hash: name_hash(context.text("hash")).map_err(|error| anyhow!(error))?,
            seed: context.seed(),
            hot,
        })
    }
}

/// What the threads of a bed share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They are the workers of one router: they share routes, and each name is at home at one
    /// of them.
    Router,
    /// Nothing: each is the only worker of a router.
    Nothing,
}

/// Workers, and what each of their threads receives.
pub(crate) struct Bed {
    options: WorkersOptions,
    pub(crate) key: HashKey,
    pub(crate) runners: Vec<Runner>,
}

/// A thread.
pub(crate) struct Runner {
    pub(crate) worker: Worker,
    pub(crate) links: Links,
    pub(crate) me: WorkerId,
    pub(crate) epoch: Instant,
    pub(crate) interests: Vec<Burst>,
    pub(crate) data: Vec<Burst>,
    pub(crate) sent: SendBuffer<()>,
    pub(crate) n_late: usize,
    /// Takes packets to their homes, unless all are at home here.
    pub(crate) receiver: Option<Receiver>,
    packets: Vec<RxPacket<'static>>,
    names: HashedNames,
    released: Batch,
    n_received: u64,
}

/// Where a worker's packets go in the bed.
pub(crate) struct Ports<'a> {
    pub(crate) sent: &'a mut SendBuffer<()>,
    pub(crate) links: &'a mut Links,
}

impl Bed {
    /// Fills the tables of `n_threads` workers.
    ///
    /// # Errors
    /// If there is no memory for the tables.
    pub(crate) fn new(
        options: &WorkersOptions,
        n_threads: usize,
        sharing: Sharing,
    ) -> anyhow::Result<Self> {
        let workload = Workload {
            seed: options.seed,
            n_prefixes: options.n_prefixes.into(),
            n_prefix_components: 4,
            n_name_components: 7,
            content_bytes: 128,
        };
        let hot_workload = Workload {
            n_prefixes: 1,
            ..workload.clone()
        };
        // Of a thousand names, this many are below the one prefix.
        let n_hot = (1_000.0 * options.hot) as u64;
        let of = |number: u64| match number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 {
            scattered if scattered % 1_000 < n_hot => &hot_workload,
            _ => &workload,
        };
        let key = HashKey::new(options.name_hash, &[7; 32]);
        let epoch = Instant::now();
        let n_workers = match sharing {
            Sharing::Router => n_threads,
            Sharing::Nothing => 1,
        };
        let mut runners = Vec::new();
        for _router in 0..n_threads / n_workers {
            let homes = Laps::new(&LapsConfig::new(n_workers))?;
            let publisher = Publisher::new(homes.homes());
            let waiting = Arc::new(WaitingLengths::new(n_workers));
            let mut routes = None;
            for links in Links::mesh(n_workers, LinkConfig::default()) {
                let thread = runners.len();
                let config = EngineConfig {
                    routes: Clone::clone(&routes),
                    ..engine_config(options, n_threads)
                };
                let mut engine = Engine::new(config, key.clone(), thread as u64)?;
                for face in [CONSUMER, PRODUCER] {
                    engine.add_face(face, FaceTraits::REMOTE);
                }
                if routes.is_none() {
                    for number in 0..options.n_prefixes {
                        let prefix = workload.prefix(number.into());
                        engine.add_next_hop(prefix.view(), NextHop::new(PRODUCER, 0))?;
                    }
                    routes = Some(engine.routes().clone());
                }
                let me = WorkerId((thread % n_workers) as u16);
                let dispatcher =
                    || Dispatcher::new(options.dispatch, key.clone(), publisher.reader());
                let receiver = (n_workers > 1).then(|| {
                    let config = ReceiverConfig {
                        max_queue_pkts: MAX_QUEUE_PKTS,
                        ..ReceiverConfig::default()
                    };
                    Receiver::new(Some(me), n_workers, dispatcher(), config).0
                });
                let first = KEPT_BURSTS / n_threads * thread;
                let bursts = |write: fn(&Workload, u64, &mut Vec<u8>)| {
                    let kept = first..first + KEPT_BURSTS / n_threads;
                    let n_pkts = u64::from(options.burst_pkts);
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
                    worker: Worker::new(me, engine, dispatcher(), waiting.clone()),
                    links,
                    me,
                    epoch,
                    interests: bursts(Workload::write_interest),
                    data: bursts(Workload::write_data),
                    sent: SendBuffer::new(()),
                    n_late: options.late_bursts,
                    receiver,
                    packets: Vec::new(),
                    names: HashedNames::new(),
                    released: Batch::new(),
                    n_received: 0,
                });
            }
        }
        Ok(Self {
            options: options.clone(),
            key,
            runners,
        })
    }

    /// The part of a name that selects its home worker.
    pub(crate) const fn dispatch(&self) -> DispatchBy {
        self.options.dispatch
    }

    /// Has all threads together take a round of exchanges; nanoseconds for each.
    ///
    /// # Errors
    /// If an Interest was not answered.
    pub(crate) fn take(&mut self) -> anyhow::Result<f64> {
        let n_threads = self.runners.len();
        let burst_pkts = usize::from(self.options.burst_pkts);
        let n_bursts = self.options.n_requests.div_ceil(burst_pkts * n_threads);
        let cpus = cpu::available();
        let barrier = Barrier::new(n_threads);
        let n_busy = AtomicUsize::new(n_threads);
        let before = self.n_satisfied();
        let elapsed_ns = thread::scope(|scope| {
            let threads: Vec<_> = self
                .runners
                .iter_mut()
                .enumerate()
                .map(|(thread, runner)| {
                    let (barrier, n_busy, cpus) = (&barrier, &n_busy, &cpus);
                    scope.spawn(move || {
                        let _ = cpu::pin(thread, cpus);
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
        let n_exchanges = n_bursts * n_threads * burst_pkts;
        let n_satisfied = self.n_satisfied() - before;
        ensure!(
            n_satisfied == n_exchanges as u64,
            "only {n_satisfied} of {n_exchanges} Interests were answered"
        );
        let slowest = elapsed_ns.into_iter().max().unwrap_or_default();
        Ok(slowest as f64 / n_exchanges as f64)
    }

    /// Interests that were answered since the start.
    pub(crate) fn n_satisfied(&self) -> u64 {
        let engines = self.runners.iter().map(|runner| runner.worker.engine());
        engines
            .map(|engine| engine.counters().n_satisfied_interests)
            .sum()
    }

    /// Packets that crossed a ring, by all received.
    pub(crate) fn crossed(&self) -> f64 {
        let receivers = self.runners.iter().filter_map(|it| it.receiver.as_ref());
        let n_crossed: u64 = receivers.map(|it| it.counters().n_crossed).sum();
        let n_received: u64 = self.runners.iter().map(|runner| runner.n_received).sum();
        n_crossed as f64 / n_received.max(1) as f64
    }

    /// Packets at home at the busiest worker, by the mean.
    pub(crate) fn imbalance(&self) -> f64 {
        let engines = self.runners.iter().map(|runner| runner.worker.engine());
        let loads: Vec<u64> = engines
            .map(|engine| engine.counters().n_in_interests)
            .collect();
        let mean = loads.iter().sum::<u64>() as f64 / loads.len() as f64;
        loads.into_iter().max().unwrap_or_default() as f64 / mean
    }
}

fn engine_config(options: &WorkersOptions, n_workers: usize) -> EngineConfig {
    let n_prefixes = options.n_prefixes as usize;
    let max_pkts = options.n_stored.div_ceil(n_workers);
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
    /// Receives `n_bursts` bursts of Interests and their Data, and works until no thread is
    /// busy any more.
    fn take(&mut self, n_bursts: usize, n_busy: &AtomicUsize) {
        let interests = std::mem::take(&mut self.interests);
        let data = std::mem::take(&mut self.data);
        for burst in 0..n_bursts + self.n_late {
            if burst < n_bursts {
                self.receive_all(&interests[burst % interests.len()], CONSUMER);
            }
            if let Some(answered) = burst.checked_sub(self.n_late) {
                self.receive_all(&data[answered % data.len()], PRODUCER);
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

    /// Takes each packet of a burst to its home; what does not fit waits where it came from.
    fn receive_all(&mut self, burst: &Burst, face: FaceId) {
        let others = (0..self.links.n_threads() as u16).map(WorkerId);
        let me = self.me;
        for other in others.filter(|&it| it != me) {
            let max_pkts = MAX_QUEUE_PKTS - burst.len() as u32;
            while self.links.n_under_way(other) > max_pkts.into() {
                self.poll();
                thread::yield_now();
                self.links.progress(other);
            }
        }
        self.receive(burst, face, 0);
    }

    /// Takes each packet of a burst to its home, or drops it. Of others, `n_unread` wait.
    pub(crate) fn receive(&mut self, burst: &Burst, face: FaceId, n_unread: u32) {
        let headers = Headers::default();
        let mut packets = relend(std::mem::take(&mut self.packets));
        packets.extend(burst.iter().map(|wire| {
            RxPacket::parse(face, &headers, wire).expect("the workload is well-formed")
        }));
        self.n_received += packets.len() as u64;
        let now = now(self.epoch);
        let mut ports = Ports {
            sent: &mut self.sent,
            links: &mut self.links,
        };
        if let Some(receiver) = &mut self.receiver {
            let released = &mut self.released;
            receiver.begin(ports.links, n_unread, |parcel| released.push(parcel));
            receiver.take(&mut packets, &mut self.names, ports.links, |_| true);
            self.worker.handle_batch(now, released, &mut ports);
            released.clear();
            let names = &mut self.names;
            self.worker
                .handle_hashed_burst(now, &packets, names, &mut ports);
        } else {
            self.worker.handle_burst(now, &packets, &mut ports);
        }
        self.packets = relend(packets);
        self.links.flush();
    }

    /// Handles the packets that other threads have sent.
    pub(crate) fn poll(&mut self) {
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
pub(crate) fn now(epoch: Instant) -> MonoNs {
    MonoNs(1_000_000_000 + u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
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
