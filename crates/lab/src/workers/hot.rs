//! `tachonym-lab hot`: one name with most of the traffic, and what LAPS makes of it.
//!
//! Each worker's thread receives packets at a rate that does not depend on how fast they are
//! forwarded: what comes while it is busy waits in a queue of its own, as a network
//! interface has one, and is dropped where that is full. The other names are divided
//! evenly, and no worker can have less than the large name is: with two workers and 60 %,
//! no scheduler forwards more than 1.33 times what a static hash does, which gives one
//! worker 80 %.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;
use tachonym_dispatch::{Laps, LapsConfig, MapKind, Publisher};
use tachonym_forward::{Counters, MAX_LIFETIME_MS, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, PacketView};
use tachonym_workers::{Dispatcher, Received, Receiver, ReceiverConfig, Scheduler, Taken};

use super::{Bed, BedArgs, CONSUMER, PRODUCER, Ports, Runner, now, pin};
use crate::engine_bed::workload::Burst;
use crate::output;
use crate::stats::Spread;

/// Packets that wait to be received by a thread.
const QUEUE_PKTS: u64 = 4_096;

/// Measures forwarded and dropped packets when one name has most of the traffic
#[derive(Args, Clone, Debug)]
pub struct HotArgs {
    #[command(flatten)]
    bed: BedArgs,
    /// Workers, each a thread
    #[arg(long, default_value_t = 2, value_name = "N",
          value_parser = clap::value_parser!(u16).range(2..=64))]
    workers: u16,
    /// Share of the Interests under one name
    #[arg(long, default_value_t = 0.6, value_name = "SHARE")]
    hot: f64,
    /// Offered rate, as a multiple of the rate of one worker
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1.2,1.6,2.5",
        value_name = "FACTOR"
    )]
    offered: Vec<f64>,
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds, each of which measures everything
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
struct Report {
    n_workers: u16,
    hot: f64,
    /// What one worker alone forwards, in millions of Interests a second.
    alone_mips: f64,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    /// By what one worker alone forwards.
    offered: f64,
    /// Interests answered, by those offered: with a static hash, and with LAPS.
    answered: [f64; 2],
    /// LAPS by static hash: the median of the rounds' ratios.
    answered_by_static: f64,
    /// Dropped with LAPS by dropped with a static hash, of all rounds.
    dropped_by_static: Option<f64>,
    /// Names that LAPS moved, in all rounds.
    n_moved: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} workers, {:.0} % of the Interests below one name; one worker answers {:.2} \
             million a second\n\n| offered / one worker | answered: static hash | LAPS | by static \
             hash | dropped by static hash | names migrated |\n|---|---|---|---|---|---|",
            self.n_workers,
            100.0 * self.hot,
            self.alone_mips,
        )?;
        for row in &self.rows {
            let dropped = row.dropped_by_static.map(|ratio| format!("{ratio:.2}"));
            writeln!(
                f,
                "| {:.2} | {:.3} | {:.3} | {:.2} | {} | {} |",
                row.offered,
                row.answered[0],
                row.answered[1],
                row.answered_by_static,
                dropped.unwrap_or_default(),
                row.n_moved,
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built.
pub fn run(args: &HotArgs) -> anyhow::Result<()> {
    let mut alone = Bed::new(&args.bed, 1, args.hot)?;
    alone.take(&args.bed)?;
    let times = (0..5).map(|_| alone.take(&args.bed));
    let times = times.collect::<anyhow::Result<Vec<_>>>()?;
    let alone_ns = Spread::of(&times).context("it was measured")?.median;
    drop(alone);
    let mut bed = Bed::new(&args.bed, args.workers, args.hot)?;
    let mut rows = Vec::new();
    for &factor in &args.offered {
        let rate_per_s = factor * 1e9 / alone_ns;
        let mut answered = [Vec::new(), Vec::new()];
        let (mut n_dropped, mut n_moved) = ([0, 0], 0);
        for round in 0..args.rounds {
            for turn in 0..2 {
                let with_laps = (turn + round) % 2 == 1;
                let outcome = bed.offer(args, rate_per_s, with_laps)?;
                answered[usize::from(with_laps)].push(outcome.answered);
                n_dropped[usize::from(with_laps)] += outcome.n_dropped;
                n_moved += outcome.n_moved;
            }
        }
        let ratios: Vec<f64> = answered[0]
            .iter()
            .zip(&answered[1])
            .map(|(a, b)| b / a)
            .collect();
        let median = |shares: &[f64]| Spread::of(shares).map_or(0.0, |spread| spread.median);
        rows.push(Row {
            offered: factor,
            answered: [median(&answered[0]), median(&answered[1])],
            answered_by_static: median(&ratios),
            dropped_by_static: (n_dropped[0] > 0)
                .then(|| n_dropped[1] as f64 / n_dropped[0] as f64),
            n_moved,
        });
    }
    let report = Report {
        n_workers: args.workers,
        hot: args.hot,
        alone_mips: 1e3 / alone_ns,
        rows,
    };
    output::print(&report, args.json)
}

/// What came of what was offered once.
struct Outcome {
    answered: f64,
    n_dropped: u64,
    n_moved: u64,
}

impl Bed {
    /// Offers so many Interests a second to all threads together, each as many.
    fn offer(
        &mut self,
        args: &HotArgs,
        rate_per_s: f64,
        with_laps: bool,
    ) -> anyhow::Result<Outcome> {
        let n_workers = self.runners.len();
        let laps = Laps::new(&LapsConfig {
            map: MapKind::Buckets { n_buckets_log2: 10 },
            high_threshold: 256,
            ..LapsConfig::new(n_workers)
        })?;
        let publisher = Publisher::new(laps.homes());
        let (mut receivers, mut views) = (Vec::new(), Vec::new());
        let (by, key) = (self.by, self.key.clone());
        let dispatcher_of = || Dispatcher::new(by, key.clone(), publisher.reader());
        for runner in &mut self.runners {
            runner.worker.set_dispatcher(dispatcher_of());
            let dispatcher = dispatcher_of();
            let config = ReceiverConfig::default();
            let (receiver, view) = Receiver::new(Some(runner.me), n_workers, dispatcher, config);
            receivers.push(receiver);
            views.push(view);
        }
        let mut scheduler = Scheduler::new(laps, n_workers, publisher, views, MAX_LIFETIME_MS);
        let (before, epoch) = (self.answered(), Instant::now());
        let is_over = AtomicBool::new(false);
        let rate_by_thread = rate_per_s / n_workers as f64;
        let n_offered = thread::scope(|scope| {
            let threads = self.runners.iter_mut().zip(receivers).enumerate();
            let threads: Vec<_> = threads
                .map(|(cpu, (runner, receiver))| {
                    let is_over = &is_over;
                    scope.spawn(move || {
                        pin(cpu);
                        runner.receive_at(rate_by_thread, receiver, is_over)
                    })
                })
                .collect();
            let begun = Instant::now();
            while begun.elapsed().as_secs_f64() < args.seconds {
                if with_laps {
                    scheduler.tick(now(epoch));
                }
                thread::sleep(Duration::from_millis(1));
            }
            is_over.store(true, Ordering::Release);
            let counts = threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| anyhow!("a worker panicked")));
            counts.sum::<anyhow::Result<u64>>()
        })?;
        let n_answered = self.answered() - before;
        Ok(Outcome {
            answered: n_answered as f64 / n_offered.max(1) as f64,
            n_dropped: n_offered.saturating_sub(n_answered),
            n_moved: scheduler.laps().counters().n_migrations,
        })
    }

    fn answered(&self) -> u64 {
        let engines = self.runners.iter().map(|runner| runner.worker.engine());
        let counters = engines.map(tachonym_forward::Engine::counters);
        counters
            .map(
                |Counters {
                     n_satisfied_interests,
                     ..
                 }| n_satisfied_interests,
            )
            .sum()
    }
}

impl Runner {
    /// Receives Interests at this rate, and their Data, until it is over; how many were
    /// offered.
    fn receive_at(&mut self, rate_per_s: f64, mut receiver: Receiver, is_over: &AtomicBool) -> u64 {
        let interests = std::mem::take(&mut self.interests);
        let data = std::mem::take(&mut self.data);
        let (n_by_burst, n_late) = (interests[0].len() as u64, self.n_late);
        let begun = Instant::now();
        // Bursts that have come, and those that were received or dropped.
        let (mut n_taken, mut n_offered) = (0_u64, 0);
        while !is_over.load(Ordering::Acquire) {
            let n_come = (begun.elapsed().as_secs_f64() * rate_per_s) as u64 / n_by_burst;
            // What does not fit in the queue was never received.
            let n_waiting = n_come.saturating_sub(n_taken);
            let n_lost = n_waiting.saturating_sub(QUEUE_PKTS / n_by_burst);
            n_offered += n_lost * n_by_burst;
            n_taken += n_lost;
            if n_waiting > 0 {
                let burst = n_taken as usize;
                let n_unread = 2 * (n_waiting - n_lost) * n_by_burst;
                let mut receive = |burst: &Burst, face| {
                    self.receive_by(&mut receiver, n_unread as u32, burst, face);
                };
                receive(&interests[burst % interests.len()], CONSUMER);
                if let Some(answered) = burst.checked_sub(n_late) {
                    receive(&data[answered % data.len()], PRODUCER);
                }
                n_taken += 1;
                n_offered += n_by_burst;
            }
            self.poll();
        }
        (self.interests, self.data) = (interests, data);
        n_offered
    }

    fn receive_by(&mut self, receiver: &mut Receiver, n_unread: u32, burst: &Burst, face: FaceId) {
        let headers = Headers::default();
        let mut released = Burst::default();
        let mut faces = Vec::new();
        receiver.begin(&mut self.links, n_unread, |received| {
            released.push(|out| out.extend_from_slice(received.wire));
            faces.push(received.face);
        });
        let mut own = Vec::with_capacity(burst.len());
        let packet_of = |face, wire| {
            let packet = PacketView::parse(wire).expect("the workload is well-formed");
            RxPacket::new(face, &headers, packet).expect("no headers")
        };
        own.extend(
            released
                .iter()
                .zip(&faces)
                .map(|(wire, &face)| packet_of(face, wire)),
        );
        for wire in burst.iter() {
            let received = Received {
                face,
                headers: &headers,
                wire,
                announcement: None,
            };
            if receiver.take(received, &mut self.links) == Taken::Own {
                own.push(packet_of(face, wire));
            }
        }
        let mut ports = Ports {
            sent: &mut self.sent,
            links: &mut self.links,
        };
        self.worker.handle_burst(now(self.epoch), &own, &mut ports);
        self.links.flush();
    }
}
