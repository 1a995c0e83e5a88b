//! Time per packet and packets a second of several threads, each with a bed of its own.
//!
//! The packets of a round are written before its clock starts. Threads are pinned and start
//! together; a rate is the packets of all threads by the time of the slowest. Cases (numbers
//! of threads, settings of the packet path) take turns in every round with the same tables.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow};
use tachonym_bench::cpu::{self, Pinned};
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::turns::rotated;
use tachonym_forward::{BURST_DISTANCE, Schedule};

use super::workload::Burst;
use super::{Bed, BedOptions, Kind, SendBuffer};

/// How bursts are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The order of work.
    pub schedule: Schedule,
    /// Packets that take a step of [`Schedule::Burst`] together.
    pub distance: usize,
}

impl From<Schedule> for Setting {
    fn from(schedule: Schedule) -> Self {
        Self {
            schedule,
            distance: BURST_DISTANCE,
        }
    }
}

/// What is measured, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The bed of each thread; seeds differ.
    pub bed: BedOptions,
    /// Numbers of threads.
    pub n_threads: Vec<usize>,
    /// Settings.
    pub settings: Vec<Setting>,
    /// Rounds.
    pub n_rounds: usize,
    /// Bursts of each kind in a round of a thread.
    pub n_bursts: usize,
}

/// What a number of threads reaches with a setting.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Threads.
    pub n_threads: usize,
    /// The setting.
    pub setting: Setting,
    /// Nanoseconds of an Interest that misses, by round and thread: medians over bursts.
    pub miss_ns: Vec<f64>,
    /// Nanoseconds of a Data.
    pub data_ns: Vec<f64>,
    /// Packets a second of all threads, by round.
    pub pkts_per_s: Vec<f64>,
}

impl Rate {
    /// Nanoseconds of an Interest that misses and its Data, by round and thread.
    #[must_use]
    pub fn exchange_ns(&self) -> Vec<f64> {
        let both = self.miss_ns.iter().zip(&self.data_ns);
        both.map(|(miss, data)| miss + data).collect()
    }
}

/// Rates, and where threads ran.
#[derive(Clone, Debug)]
pub struct Rates {
    /// By number of threads, then by setting.
    pub rates: Vec<Rate>,
    /// Where each thread ran.
    pub pinned: Vec<Pinned>,
    /// Data inserted into the stores by Data that came.
    pub insertion_ratio: f64,
}

impl Rates {
    /// What a number of threads reaches with a setting; `None` if it was not planned.
    #[must_use]
    pub fn of(&self, n_threads: usize, setting: Setting) -> Option<&Rate> {
        let is_it = |rate: &&Rate| rate.n_threads == n_threads && rate.setting == setting;
        self.rates.iter().find(is_it)
    }
}

/// The spread of some rounds.
///
/// # Errors
/// If there is none.
pub fn spread(values: &[f64]) -> anyhow::Result<Spread> {
    Spread::of(values).context("no round was measured")
}

/// A round of one thread.
#[derive(Clone, Copy, Debug)]
struct Lap {
    miss_ns: f64,
    data_ns: f64,
    all_ns: f64,
    n_pkts: usize,
}

/// One thread's laps, by case and round; none for cases with fewer threads.
struct Thread {
    pinned: Pinned,
    laps: Vec<Vec<Option<Lap>>>,
    n_inserts: u64,
    n_data: u64,
}

/// Measures all that is planned.
///
/// # Errors
/// If a bed cannot be built, or packets went another way than they should.
pub fn measure(plan: &Plan) -> anyhow::Result<Rates> {
    let n_threads = plan.n_threads.iter().copied().max().unwrap_or(0);
    let starts: Vec<Barrier> = plan.n_threads.iter().map(|&n| Barrier::new(n)).collect();
    let (turn, starts) = (&Barrier::new(n_threads), &starts[..]);
    let threads: Vec<Thread> = thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|idx| scope.spawn(move || run_thread(idx, plan, turn, starts)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().map_err(|_| anyhow!("a thread panicked"))?
        };
        threads.into_iter().map(join).collect::<anyhow::Result<_>>()
    })?;
    let cases = cases(plan).into_iter().enumerate();
    let rates = cases.map(|(idx, (n_threads, _, setting))| rate(&threads, idx, n_threads, setting));
    let sum = |value: fn(&Thread) -> u64| threads.iter().map(value).sum::<u64>() as f64;
    Ok(Rates {
        rates: rates.collect(),
        insertion_ratio: sum(|it| it.n_inserts) / sum(|it| it.n_data),
        pinned: threads.into_iter().map(|thread| thread.pinned).collect(),
    })
}

/// A number of threads, its index in the plan, and a setting.
fn cases(plan: &Plan) -> Vec<(usize, usize, Setting)> {
    let numbers = plan.n_threads.iter().enumerate();
    numbers
        .flat_map(|(idx, &n)| plan.settings.iter().map(move |&setting| (n, idx, setting)))
        .collect()
}

fn rate(threads: &[Thread], case: usize, n_threads: usize, setting: Setting) -> Rate {
    let laps = |round: usize| threads.iter().filter_map(move |it| it.laps[case][round]);
    let n_rounds = threads.first().map_or(0, |it| it.laps[case].len());
    let all = || (0..n_rounds).flat_map(laps);
    let pkts_per_s = (0..n_rounds).map(|round| {
        let n_pkts: usize = laps(round).map(|lap| lap.n_pkts).sum();
        let slowest_ns = laps(round).map(|lap| lap.all_ns).fold(0.0, f64::max);
        n_pkts as f64 * 1e9 / slowest_ns
    });
    Rate {
        n_threads,
        setting,
        miss_ns: all().map(|lap| lap.miss_ns).collect(),
        data_ns: all().map(|lap| lap.data_ns).collect(),
        pkts_per_s: pkts_per_s.collect(),
    }
}

fn run_thread(
    thread: usize,
    plan: &Plan,
    turn: &Barrier,
    starts: &[Barrier],
) -> anyhow::Result<Thread> {
    let pinned = cpu::pin(thread, &cpu::available());
    // On this thread, so that its memory is near.
    let built = Bed::new(BedOptions {
        seed: plan.bed.seed ^ (thread as u64) << 48,
        ..plan.bed.clone()
    });
    // A thread that fails still meets the others, which would wait for it.
    let (mut bed, failure) = match built {
        Ok(bed) => (Some(bed), None),
        Err(error) => (None, Some(error)),
    };
    let mut laps = Laps::default();
    if let Some(bed) = &mut bed {
        laps.write(bed, plan.n_bursts.max(bed.n_late_bursts() + 1));
        laps.carry(bed);
    }
    let before = bed
        .as_ref()
        .map_or((0, 0), |bed| (bed.n_inserts(), bed.n_answered()));
    let cases = cases(plan);
    let laps = rotated(cases.len(), plan.n_rounds, |case, _| {
        let (n_threads, number, setting) = cases[case];
        turn.wait();
        if thread >= n_threads {
            return Ok(None);
        }
        if let Some(bed) = &mut bed {
            bed.set_schedule(setting.schedule, setting.distance);
            laps.write(bed, plan.n_bursts);
        }
        starts[number].wait();
        Ok(bed.as_mut().map(|bed| laps.carry(bed)))
    })?;
    let Some(bed) = bed else {
        return Err(failure.unwrap_or_else(|| anyhow!("there is no bed")));
    };
    bed.check()?;
    Ok(Thread {
        pinned,
        laps,
        n_inserts: bed.n_inserts() - before.0,
        n_data: bed.n_answered() - before.1,
    })
}

/// Writes and carries the bursts of a round; keeps their memory.
#[derive(Debug)]
struct Laps {
    bursts: Vec<(Kind, Burst)>,
    out: SendBuffer<()>,
    times: [Vec<f64>; 2],
}

impl Default for Laps {
    fn default() -> Self {
        Self {
            bursts: Vec::new(),
            out: SendBuffer::new(()),
            times: Default::default(),
        }
    }
}

impl Laps {
    fn write(&mut self, bed: &mut Bed, n_bursts: usize) {
        let n_all = 2 * n_bursts;
        self.bursts
            .resize_with(n_all, || (Kind::Miss, Burst::default()));
        for (idx, (kind, burst)) in self.bursts.iter_mut().enumerate() {
            *kind = [Kind::Miss, Kind::Data][idx % 2];
            bed.write_burst(*kind, burst);
        }
    }

    fn carry(&mut self, bed: &mut Bed) -> Lap {
        self.times.iter_mut().for_each(Vec::clear);
        let start = Instant::now();
        let mut since = start;
        for (idx, (kind, burst)) in self.bursts.iter().enumerate() {
            if burst.is_empty() {
                continue;
            }
            bed.carry(*kind, burst, &mut self.out);
            let now = Instant::now();
            let elapsed_ns = (now - since).as_nanos() as f64;
            self.times[idx % 2].push(elapsed_ns / burst.len() as f64);
            since = now;
        }
        Lap {
            // The median, since bursts are interrupted.
            miss_ns: median(&self.times[0]),
            data_ns: median(&self.times[1]),
            all_ns: (since - start).as_nanos() as f64,
            n_pkts: self.bursts.iter().map(|(_, burst)| burst.len()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_all_packets_by_the_slowest_thread() {
        let lap = |all_ns, n_pkts| Lap {
            miss_ns: 1.0,
            data_ns: 2.0,
            all_ns,
            n_pkts,
        };
        let thread = |lap| Thread {
            pinned: Pinned::To(0),
            laps: vec![vec![Some(lap)]],
            n_inserts: 0,
            n_data: 1,
        };
        let threads = [thread(lap(1_000.0, 10)), thread(lap(4_000.0, 10))];
        let rate = rate(&threads, 0, 2, Schedule::Shtl.into());
        assert_eq!(rate.pkts_per_s, [5e6]);
        assert_eq!(rate.exchange_ns(), [3.0, 3.0]);
    }

    #[test]
    fn each_thread_carries_what_its_cases_say() {
        let plan = Plan {
            bed: BedOptions {
                n_prefixes: 100,
                burst_pkts: 8,
                store_pkts: 256,
                late_bursts: 2,
                ..BedOptions::default()
            },
            n_threads: vec![1, 2],
            settings: vec![Schedule::Naive.into(), Schedule::Burst.into()],
            n_rounds: 3,
            n_bursts: 4,
        };
        let rates = measure(&plan).expect("it runs");
        let n_laps: Vec<_> = rates.rates.iter().map(|rate| rate.miss_ns.len()).collect();
        assert_eq!(n_laps, [3, 3, 6, 6]);
        for rate in &rates.rates {
            assert_eq!(rate.pkts_per_s.len(), 3);
            assert!(rate.pkts_per_s.iter().all(|it| it.is_finite() && *it > 0.0));
        }
        assert_eq!(rates.insertion_ratio, 1.0);
        let impossible = Plan {
            bed: BedOptions::default(),
            ..plan
        };
        let refused = Plan {
            bed: BedOptions {
                store_pkts: 1,
                ..impossible.bed.clone()
            },
            ..impossible
        };
        measure(&refused).expect_err("such a bed measures nothing");
    }
}
