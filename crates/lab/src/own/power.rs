//! Power governors of the running router under rates that change: loss, CPU time, workers.
//!
//! A step, a sine, an on-off square and a burst after a rest, as parts of the saturation that
//! was measured in the same round. Governors take turns at each of them.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use tachonym_bench::stats::{Histogram, Spread};
use tachonym_bench::{
    Bound, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table,
    cells,
};
use tachonym_loadgen::exchange::address::Transport;
use tachonym_loadgen::exchange::pace::Course;
use tachonym_loadgen::power::{Bed, LIFETIME_MS, N_WORKERS, Placement, Saturation, Take, keep_on};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/power",
    title: "Power governor of the running router under rates that change",
    source: "",
    cost: Cost::minutes(3.0, 12.0),
    needs: &[Need::Router, Need::Cpus(2)],
    params: &[
        MILLISECONDS,
        PERIOD,
        TOP,
        BURST,
        IN_FLIGHT,
        WINDOWS,
        OVER,
        PLACEMENT,
        Param::rounds(["1", "3", "5"]),
    ],
    run,
}];

const MILLISECONDS: Param = Param::new(
    "ms",
    "length of each profile; a quarter of it for the saturation",
    ParamKind::Count {
        min: 40,
        max: 600_000,
    },
    ["80", "3000", "8000"],
);
const PERIOD: Param = Param::new(
    "period-ms",
    "period of the square",
    ParamKind::Count {
        min: 2,
        max: 60_000,
    },
    ["40", "1000", "1000"],
);
const TOP: Param = Param::new(
    "top-pct",
    "highest rate, in percent of the saturation",
    ParamKind::Count { min: 1, max: 200 },
    ["90"; 3],
);
const BURST: Param = Param::new(
    "burst",
    "Interests that are due at once after the rest",
    ParamKind::Count { min: 0, max: 4_096 },
    ["512"; 3],
);
const IN_FLIGHT: Param = Param::new(
    "in-flight",
    "Interests in flight that saturate the router",
    ParamKind::Count { min: 8, max: 4_096 },
    ["256"; 3],
);
const WINDOWS: Param = Param::new(
    "windows",
    "most Interests in flight in a profile",
    ParamKind::Counts,
    ["512", "512,8192", "512,8192"],
);
const OVER: Param = Param::choice(
    "over",
    "transport of consumers and producers",
    &["unix", "udp"],
    "unix",
);
const PLACEMENT: Param = Param::choice(
    "placement",
    "whether router and generator have processors of their own",
    &["apart", "free"],
    "apart",
);

const GOVERNORS: [&str; 2] = ["none", "tap"];
const TAP: usize = 1;
const PROFILES: [&str; 4] = ["step", "sine", "square", "burst"];
/// The lowest rate of step and sine, by the saturation.
const BOTTOM: f64 = 0.01;
/// Pieces of constant rate in a period of the sine.
const SINE_PIECES: u32 = 64;
/// Readings of the workers in a profile, and the shortest time between two.
const N_READINGS: u32 = 200;
const MIN_INTERVAL: Duration = Duration::from_millis(5);
/// An Interest that is sent later than this after it was due shows that the load is not as
/// planned.
const LATE: Duration = Duration::from_millis(20);
/// The largest window.
const MAX_WINDOW: u64 = 65_536;
/// A part of a core from which on a thread is saturated.
const FULL_CORE: f64 = 0.9;

/// One round: everything with each governor, in the order of [`GOVERNORS`].
struct Round {
    saturations: Vec<Saturation>,
    /// Exchanges a second that the profiles refer to.
    full_per_s: f64,
    /// By window and profile, in the order of [`Plan::loads`].
    takes: Vec<Vec<Take>>,
}

/// What is measured.
struct Plan {
    lasting: Duration,
    period: Duration,
    top: f64,
    burst: f64,
    in_flight: usize,
    windows: Vec<usize>,
    over: Transport,
    placement: Placement,
}

impl Plan {
    fn new(context: &Context) -> anyhow::Result<Self> {
        let ms = |name| Duration::from_millis(context.count(name));
        let window = |window: u64| {
            ensure!(
                (1..=MAX_WINDOW).contains(&window),
                "a window of {window} Interests is not 1 to {MAX_WINDOW}"
            );
            Ok(window as usize)
        };
        let windows = context.values.counts(WINDOWS.name).into_iter().map(window);
        let windows = windows.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            lasting: ms(MILLISECONDS.name),
            period: ms(PERIOD.name),
            top: context.count(TOP.name) as f64 / 100.0,
            burst: context.count(BURST.name) as f64,
            in_flight: context.values.size(IN_FLIGHT.name),
            windows,
            over: match context.text(OVER.name) {
                "udp" => Transport::Udp,
                _ => Transport::Unix,
            },
            placement: match context.text(PLACEMENT.name) {
                "free" => Placement::free(),
                _ => Placement::apart(),
            },
        })
    }

    /// The profiles, in the order of [`PROFILES`].
    fn courses(&self, full_per_s: f64) -> Vec<Course> {
        let (bottom, top) = (BOTTOM * full_per_s, self.top * full_per_s);
        let quarter = self.lasting / 4;
        let step = Course::default()
            .hold(quarter, bottom)
            .hold(2 * quarter, top)
            .hold(quarter, bottom);
        let piece = self.lasting / 2 / SINE_PIECES;
        let sine = (0..2 * SINE_PIECES).fold(Course::default(), |course, idx| {
            let turn = (f64::from(idx) + 0.5) / f64::from(SINE_PIECES);
            let part = (1.0 - (TAU * turn).cos()) / 2.0;
            course.hold(piece, bottom + part * (top - bottom))
        });
        let n_periods = (self.lasting.as_secs_f64() / self.period.as_secs_f64()).round();
        let square = (0..n_periods.max(1.0) as u32).fold(Course::default(), |course, _| {
            let half = self.period / 2;
            course.hold(half, top).hold(half, 0.0)
        });
        let burst = Course::default()
            .hold(2 * quarter, 0.0)
            .at_once(self.burst)
            .hold(quarter, top)
            .hold(quarter, 0.0);
        vec![step, sine, square, burst]
    }

    /// The window and the profile of each measurement of a round.
    fn loads(&self) -> Vec<(usize, usize)> {
        let windows = self.windows.iter();
        let profiles = |&window| (0..PROFILES.len()).map(move |profile| (window, profile));
        windows.flat_map(profiles).collect()
    }

    fn interval(&self) -> Duration {
        (self.lasting / N_READINGS).max(MIN_INTERVAL)
    }

    fn round(&self, beds: &[Bed], round: usize) -> anyhow::Result<Round> {
        let order = || (0..beds.len()).map(|turn| (round + turn) % beds.len());
        let mut saturations = vec![None; beds.len()];
        for case in order() {
            let saturation = beds[case].saturate(self.in_flight, self.lasting / 4)?;
            saturations[case] = Some(saturation);
        }
        let saturations: Vec<_> = saturations.into_iter().flatten().collect();
        // That of the slower one: it is to carry each profile, too.
        let rates = saturations.iter().map(|it| it.exchanges_per_s);
        let full_per_s = rates.fold(f64::INFINITY, f64::min);
        ensure!(full_per_s > 0.0, "the router forwarded no packet");
        let mut takes = Vec::new();
        let courses = self.courses(full_per_s);
        for (window, profile) in self.loads() {
            let mut by_case = vec![None; beds.len()];
            for case in order() {
                by_case[case] =
                    Some(beds[case].follow(&courses[profile], window, self.interval())?);
            }
            takes.push(by_case.into_iter().flatten().collect());
        }
        Ok(Round {
            saturations,
            full_per_s,
            takes,
        })
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let router = context.router.clone().context("the router is missing")?;
    let plan = Plan::new(context)?;
    // A thread of its own: it moves to the generator's processor.
    let measure = || {
        keep_on(&plan.placement.router)?;
        let start = |governor: &&str| Bed::start(&router, governor, plan.over);
        let beds = GOVERNORS.iter().map(start);
        let beds = beds.collect::<anyhow::Result<Vec<_>>>()?;
        keep_on(&plan.placement.generator)?;
        let rounds = (0..context.rounds()).map(|round| plan.round(&beds, round));
        let rounds = rounds.collect::<anyhow::Result<Vec<_>>>()?;
        beds.into_iter().try_for_each(Bed::stop)?;
        anyhow::Ok(rounds)
    };
    let rounds = thread::scope(|scope| scope.spawn(measure).join());
    let rounds = rounds.map_err(|_| anyhow!("the generator panicked"))??;

    let mut record = Record::new(Kind::Measured);
    record.tables.push(profiles(&plan, &rounds));
    record.tables.push(saturation(&rounds));
    if let Some(last) = rounds.last() {
        for (profile, course) in plan.courses(last.full_per_s).iter().enumerate() {
            record.charts.push(chart(last, profile, course));
        }
    }
    for (load, (window, profile)) in plan.loads().into_iter().enumerate() {
        let lost = rounds
            .iter()
            .map(|round| round.takes[load][TAP].n_lost() as f64);
        if let Some(spread) = Spread::of(&lost.collect::<Vec<_>>()) {
            let what = format!("{}, window {window}: lost with tap", PROFILES[profile]);
            record.judge(what, "Interests", Bound::AtMost(0.0), spread);
        }
    }
    notes(&plan, &rounds, &mut record);
    Ok(record)
}

fn profiles(plan: &Plan, rounds: &[Round]) -> Table {
    let columns: [Column; 17] = [
        "window".into(),
        "profile".into(),
        "governor".into(),
        "Interests sent".into(),
        "answered".into(),
        "lost".into(),
        "dropped by the router".into(),
        "due, not sent".into(),
        Column::fixed("router's cores", 3),
        "by its cores without".into(),
        Column::fixed("CPU, µs/exchange", 2),
        Column::fixed("others' cores", 2),
        "p50, µs".into(),
        "p99, µs".into(),
        Column::fixed("workers, mean", 2),
        "changes of workers".into(),
        Column::fixed("late at most, ms", 1),
    ];
    let mut table = Table::new("", columns);
    for (load, (window, profile)) in plan.loads().into_iter().enumerate() {
        for (case, governor) in GOVERNORS.iter().enumerate() {
            let takes = || rounds.iter().map(|round| &round.takes[load][case]);
            let sum = |of: fn(&Take) -> u64| takes().map(of).sum::<u64>();
            let spread =
                |of: &dyn Fn(&Take) -> f64| Spread::of(&takes().map(of).collect::<Vec<_>>());
            let pairs = rounds.iter().map(|round| &round.takes[load]);
            let by_none: Vec<_> = pairs
                .map(|takes| takes[case].router_cores / takes[0].router_cores)
                .collect();
            let us_by_exchange =
                |take: &Take| 1e6 * take.router_cpu.as_secs_f64() / take.n_answered.max(1) as f64;
            let mut latencies = Histogram::default();
            takes().for_each(|take| latencies.merge(&take.latencies));
            let us = |permille| latencies.quantile_ns(permille) as f64 / 1e3;
            let late = takes().map(|take| take.lateness.longest.as_secs_f64() * 1e3);
            table.row(cells![
                window,
                PROFILES[profile],
                *governor,
                sum(|take| take.n_sent),
                sum(|take| take.n_answered),
                sum(Take::n_lost),
                drops(takes()),
                sum(|take| take.n_due.saturating_sub(take.n_sent)),
                spread(&|take| take.router_cores),
                Spread::of(&by_none).filter(|_| case != 0),
                spread(&us_by_exchange),
                spread(&|take| take.other_cores),
                us(500),
                us(990),
                spread(&mean_workers),
                spread(&|take| n_changes(take) as f64),
                late.fold(0.0, f64::max),
            ]);
        }
    }
    table
}

/// Packets that the router dropped, by its reasons.
fn drops<'a>(takes: impl Iterator<Item = &'a Take>) -> String {
    let mut all = BTreeMap::new();
    for (reason, n_dropped) in takes.flat_map(|take| &take.drops) {
        *all.entry(reason).or_insert(0) += n_dropped;
    }
    let texts: Vec<_> = all
        .iter()
        .map(|(reason, n_dropped): (_, &u64)| format!("{n_dropped} {reason}"))
        .collect();
    match texts.is_empty() {
        true => "0".into(),
        false => texts.join(", "),
    }
}

/// Workers that ran, the mean of the readings.
fn mean_workers(take: &Take) -> f64 {
    let sum: u32 = take.readings.iter().map(|it| it.n_running).sum();
    f64::from(sum) / take.readings.len().max(1) as f64
}

/// Readings with another number of workers than the one before.
fn n_changes(take: &Take) -> usize {
    let pairs = take.readings.windows(2);
    pairs
        .filter(|pair| pair[0].n_running != pair[1].n_running)
        .count()
}

fn saturation(rounds: &[Round]) -> Table {
    let columns = [
        "governor",
        "thousand exchanges/s",
        "router's cores",
        "generator's cores",
        "others' cores",
    ];
    let mut table = Table::new("Saturation", columns);
    for (case, governor) in GOVERNORS.iter().enumerate() {
        let spread = |of: fn(&Saturation) -> f64| {
            let values = rounds.iter().map(|round| of(&round.saturations[case]));
            Spread::of(&values.collect::<Vec<_>>())
        };
        table.row(cells![
            *governor,
            spread(|it| it.exchanges_per_s / 1e3),
            spread(|it| it.router_cores),
            spread(|it| it.generator_cores),
            spread(|it| it.other_cores),
        ]);
    }
    table
}

/// Rate and workers over the time of a profile with TAP, with the first window.
fn chart(round: &Round, profile: usize, course: &Course) -> Chart {
    let title = format!("{} with tap: rate and workers", PROFILES[profile]);
    let mut chart = Chart::new(title, "time, s", "rate by saturation; workers");
    let readings = &round.takes[profile][TAP].readings;
    for pair in readings.windows(2) {
        let (from, to) = (pair[0].at_s, pair[1].at_s);
        let due = |at_s| course.due(Duration::from_secs_f64(at_s));
        let by_full = |n: f64| n / (to - from).max(f64::MIN_POSITIVE) / round.full_per_s;
        let n_in_pkts = pair[1].n_in_pkts.saturating_sub(pair[0].n_in_pkts);
        chart.point("offered", to, by_full(due(to) - due(from)));
        // An exchange is an Interest and a Data.
        chart.point("carried", to, by_full(n_in_pkts as f64 / 2.0));
        chart.point("workers", to, pair[1].n_running.into());
    }
    chart
}

fn notes(plan: &Plan, rounds: &[Round], record: &mut Record) {
    let cpus = |cpus: &[usize]| {
        let texts: Vec<_> = cpus.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    let Placement { router, generator } = &plan.placement;
    record.note(format!(
        "Over {}; {N_WORKERS} workers. The router runs on processors {}, the generator on {}{}. \
         Lost are Interests without an answer for {LIFETIME_MS} ms. Rates are parts of the saturation in the \
         same round, that of the slower governor.",
        plan.over,
        cpus(router),
        cpus(generator),
        match plan.placement.is_shared() {
            true => ": they share them",
            false => "",
        }
    ));
    if router.len() < N_WORKERS && !plan.placement.is_shared() {
        record.note(
            "The workers share one processor, so a second worker adds no rate here: the number \
             of workers shows what the governor decides, and not what that gains.",
        );
    }
    record.note(format!(
        "The workers are read every {} ms, which takes the router CPU time with each governor. \
         Charts show the last round.",
        plan.interval().as_millis()
    ));
    let saturations = rounds.iter().flat_map(|round| &round.saturations);
    let is_generators = |it: &&Saturation| {
        it.generator_cores >= FULL_CORE && it.router_cores < FULL_CORE * router.len() as f64
    };
    let (n_all, n_by_generator) = (
        saturations.clone().count(),
        saturations.filter(is_generators).count(),
    );
    if n_by_generator > 0 {
        record.note(format!(
            "In {n_by_generator} of {n_all} measurements of the saturation the generator had no \
             CPU time left and the router had: that is the generator's limit, and the router's \
             is higher.",
        ));
    }
    let windows: Vec<_> = plan.windows.iter().map(ToString::to_string).collect();
    record.note(format!(
        "At most {} Interests are in flight. If the router is slower than the rate, the generator \
         waits for answers and is late, or the queue of a worker overflows. A queue holds 1,024 \
         packets, and an Interest and its Data may both count in it. A window of 512 can hardly \
         fill it, so its rows show what workers lose that sleep and wake; rows of a wider window \
         show a load that does not wait for answers. Where workers share a processor, one fills \
         the other's queue while that one cannot run.",
        windows.join(" or ")
    ));
    late_note(plan, rounds, record);
}

/// Says which measurements had another load than planned.
fn late_note(plan: &Plan, rounds: &[Round], record: &mut Record) {
    let (mut places, mut n_late, mut n_full) = (Vec::new(), 0, 0);
    for (load, (window, profile)) in plan.loads().into_iter().enumerate() {
        for (case, governor) in GOVERNORS.iter().enumerate() {
            let takes = rounds.iter().map(|round| &round.takes[load][case]);
            let is_late = |take: &&Take| take.lateness.longest > LATE || take.n_sent < take.n_due;
            let late: Vec<_> = takes.filter(is_late).collect();
            if !late.is_empty() {
                places.push(format!(
                    "{}, window {window}, {governor}: {}",
                    PROFILES[profile],
                    late.len()
                ));
                n_late += late.len();
                n_full += late.iter().filter(|take| take.lateness.was_full).count();
            }
        }
    }
    if n_late > 0 {
        let n_all = rounds.len() * plan.loads().len() * GOVERNORS.len();
        record.note(format!(
            "In {n_late} of {n_all} measurements Interests were sent more than {} ms after they \
             were due, or not at all ({}). In {n_full} of these the window was full, because the \
             router was slower than the rate; in {} the generator had no CPU time. This machine \
             did not carry these rates together with the generator and what else ran on it, so \
             these measurements show another load than planned.",
            LATE.as_millis(),
            places.join("; "),
            n_late - n_full
        ));
    }
}
