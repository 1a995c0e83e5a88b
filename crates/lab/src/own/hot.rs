//! One name with most of the traffic, and what LAPS makes of it.
//!
//! Each worker's thread receives packets at a rate that does not depend on how fast they are
//! forwarded: packets that come while it is busy wait in a queue of its own, as a network
//! interface has one, and are dropped where that is full. The other names are divided
//! evenly, and no worker can have less than the large name: with two workers and 60 %, no
//! scheduler forwards more than 1.33 times what a static hash does, which gives one worker
//! 80 %.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells, cpu,
};
use tachonym_dispatch::{Laps, LapsConfig, MapKind, Publisher};
use tachonym_forward::MAX_LIFETIME_MS;
use tachonym_workers::{Dispatcher, Receiver, ReceiverConfig, Scheduler};

use crate::beds::engine::params::HASH;
use crate::beds::workers::{
    BURST, Bed, CONSUMER, DISPATCH, LATE, PREFIXES, PRODUCER, REQUESTS, Runner, STORE, Sharing,
    WorkersOptions, now,
};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/hot",
    title: "Answered Interests when one name has most of the traffic, by static hash and by LAPS",
    source: "",
    cost: Cost::minutes(0.6, 3.0),
    needs: &[Need::Cpus(2), Need::MemoryGib(1.0, 2.0)],
    params: &[
        Param::new(
            "workers",
            "workers, each a thread",
            ParamKind::Count { min: 2, max: 64 },
            ["2"; 3],
        ),
        Param::new(
            "hot",
            "share of the Interests under one name",
            ParamKind::Number,
            ["0.6"; 3],
        ),
        Param::new(
            "offered",
            "offered rates, by the rate of one worker alone",
            ParamKind::Numbers,
            ["0.5,3", "1.2,1.6,2.5", "1.2,1.6,2.5"],
        ),
        Param::new(
            "seconds",
            "length of each measurement",
            ParamKind::Number,
            ["0.2", "1", "3"],
        ),
        DISPATCH,
        PREFIXES,
        STORE,
        BURST,
        LATE,
        REQUESTS,
        HASH,
        Param::rounds(["1", "5", "11"]),
        Param::seed(),
    ],
    run,
}];

/// Packets that wait to be received by a thread.
const QUEUE_PKTS: u64 = 4_096;

/// Rounds in which one worker alone is measured.
const N_ALONE: usize = 5;

fn run(context: &Context) -> anyhow::Result<Record> {
    let hot = context.number("hot");
    ensure!(
        (0.0..=1.0).contains(&hot),
        "parameter hot: {hot} is not between 0 and 1"
    );
    let options = WorkersOptions::new(context, hot)?;
    let mut alone = Bed::new(&options, 1, Sharing::Router)?;
    alone.take()?;
    let times = (0..N_ALONE).map(|_| alone.take());
    let times = times.collect::<anyhow::Result<Vec<_>>>()?;
    drop(alone);
    let alone_ns = Spread::of(&times).context("it was measured")?.median;
    let mut bed = Bed::new(&options, context.size("workers"), Sharing::Router)?;
    let columns: [Column; 6] = [
        "offered by one worker's".into(),
        Column::fixed("answered, static hash", 3),
        Column::fixed("answered, LAPS", 3),
        "LAPS by static hash".into(),
        "dropped, by static hash".into(),
        "names migrated".into(),
    ];
    let mut table = Table::new("", columns);
    let lasting = Duration::from_secs_f64(context.number("seconds").clamp(0.01, 3_600.0));
    for factor in context.values.numbers("offered") {
        let rate_per_s = factor * 1e9 / alone_ns;
        let outcomes = rotated(2, context.rounds(), |case, _| {
            bed.offer(lasting, rate_per_s, case == 1)
        })?;
        let [fixed, laps] = [0, 1].map(|case: usize| {
            outcomes[case]
                .iter()
                .map(|it| it.answered)
                .collect::<Vec<_>>()
        });
        let n_dropped = |case: usize| outcomes[case].iter().map(|it| it.n_dropped).sum::<u64>();
        // Missing where the static hash drops nothing.
        let dropped = n_dropped(1) as f64 / n_dropped(0) as f64;
        table.row(cells![
            factor,
            median(&fixed),
            median(&laps),
            Spread::of_ratios(&laps, &fixed),
            dropped,
            outcomes[1].iter().map(|it| it.n_migrations).sum::<u64>(),
        ]);
    }
    let mut record = Record::new(Kind::Measured);
    record.tables.push(table);
    record.note(format!(
        "{} workers; {:.0} % of the Interests are below one name. One worker alone answers {:.2} \
         million Interests a second. Answered: of those offered.",
        bed.runners.len(),
        100.0 * hot,
        1e3 / alone_ns
    ));
    Ok(record)
}

/// The outcome of one measurement.
struct Outcome {
    /// Interests answered, by those offered.
    answered: f64,
    n_dropped: u64,
    n_migrations: u64,
}

impl Bed {
    /// Offers `rate_per_s` Interests a second, to each thread as many.
    fn offer(
        &mut self,
        lasting: Duration,
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
        let mut views = Vec::new();
        let (by, key) = (self.dispatch(), self.key.clone());
        let dispatcher_of = || Dispatcher::new(by, key.clone(), publisher.reader());
        for runner in &mut self.runners {
            runner.worker.set_dispatcher(dispatcher_of());
            let dispatcher = dispatcher_of();
            let config = ReceiverConfig::default();
            let (receiver, view) = Receiver::new(Some(runner.me), n_workers, dispatcher, config);
            runner.receiver = Some(receiver);
            views.push(view);
        }
        let mut scheduler = Scheduler::new(laps, n_workers, publisher, views, MAX_LIFETIME_MS);
        let (before, epoch) = (self.n_satisfied(), Instant::now());
        let is_over = AtomicBool::new(false);
        let rate_by_thread = rate_per_s / n_workers as f64;
        let cpus = cpu::available();
        let n_offered = thread::scope(|scope| {
            let threads = self.runners.iter_mut().enumerate();
            let threads: Vec<_> = threads
                .map(|(thread, runner)| {
                    let (is_over, cpus) = (&is_over, &cpus);
                    scope.spawn(move || {
                        let _ = cpu::pin(thread, cpus);
                        runner.receive_at(rate_by_thread, is_over)
                    })
                })
                .collect();
            let begun = Instant::now();
            while begun.elapsed() < lasting {
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
        let n_answered = self.n_satisfied() - before;
        Ok(Outcome {
            answered: n_answered as f64 / n_offered.max(1) as f64,
            n_dropped: n_offered.saturating_sub(n_answered),
            n_migrations: scheduler.laps().counters().n_migrations,
        })
    }
}

impl Runner {
    /// Receives Interests at this rate, and their Data, until it is over; returns how many
    /// were offered.
    fn receive_at(&mut self, rate_per_s: f64, is_over: &AtomicBool) -> u64 {
        let interests = std::mem::take(&mut self.interests);
        let data = std::mem::take(&mut self.data);
        let (n_by_burst, n_late) = (interests[0].len() as u64, self.n_late);
        let begun = Instant::now();
        // Bursts that were received or dropped, and the Interests in them.
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
                let n_unread = (2 * (n_waiting - n_lost) * n_by_burst) as u32;
                self.receive(&interests[burst % interests.len()], CONSUMER, n_unread);
                if let Some(answered) = burst.checked_sub(n_late) {
                    self.receive(&data[answered % data.len()], PRODUCER, n_unread);
                }
                n_taken += 1;
                n_offered += n_by_burst;
            }
            self.poll();
        }
        (self.interests, self.data) = (interests, data);
        n_offered
    }
}
