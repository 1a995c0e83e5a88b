//! Requests per second of the simulator on one core.

use rustix::time::{ClockId, clock_gettime};
use tachonym_bench::cpu::{note, on_pinned_thread};
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Bound, Context, Cost, Experiment, Kind, Need, Param, Record, Table, Values, cells,
};

use super::policies;
use super::simulate::{Drawn, Simulation};
use super::sources::{ALPHA, policy, words};
use super::workload::Independent;
use crate::workloads::Requests as _;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/cache-speed",
    title: "Requests per second of the cache simulator on one core",
    source: "",
    cost: Cost::minutes(0.2, 1.0),
    needs: &[Need::MemoryGib(0.4, 0.4)],
    params: &[
        policies(["fifo,lru,sieve,filter/fifo"; 3]),
        Param::count(
            "objects",
            "objects of Zipf popularity 0.8",
            ["5k", "10M", "10M"],
        ),
        Param::count("cache", "Data in the cache", ["100", "100k", "100k"]),
        Param::count(
            "warm",
            "requests before measurement begins",
            ["1k", "5M", "5M"],
        ),
        Param::count("requests", "requests of a round", ["20k", "2M", "2M"]),
        Param::rounds(["3", "11", "31"]),
        Param::seed(),
    ],
    run,
}];

/// Millions a second of this thread's own time, so that other threads that use the processor
/// do not count.
fn rate_of(n_requests: usize, work: impl FnOnce()) -> f64 {
    let now_ns = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let begun_ns = now_ns();
    work();
    n_requests as f64 * 1e3 / (now_ns() - begun_ns).max(1.0)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let names = words(context, "policies");
    let values = &context.values;
    let (pinned, rounds) = on_pinned_thread(|| measure(values, &names));
    let rounds = rounds?;
    let column = |rounds: &[[f64; 3]], idx: usize| {
        let rates: Vec<f64> = rounds.iter().map(|rates| rates[idx]).collect();
        Spread::of(&rates)
    };
    let columns = [
        "policy",
        "requests drawn before, M/s",
        "drawn during the run, M/s",
    ];
    let mut record = Record::new(Kind::Measured);
    let mut table = Table::new("", columns);
    for (name, rounds) in names.iter().zip(&rounds) {
        table.row(cells![name.as_str(), column(rounds, 1), column(rounds, 2)]);
        if let Some(rate) = column(rounds, 1) {
            let what = format!("requests a second of {name}, drawn before");
            record.judge(what, "M/s", Bound::AtLeast(20.0), rate);
        }
    }
    let drawing: Vec<_> = rounds.concat();
    table.row(cells!["drawing alone", None::<f64>, column(&drawing, 0)]);
    record.tables.push(table);
    record.note(note(&[pinned]));
    Ok(record)
}

/// By policy and round, the rates of drawing, of running what was drawn, and of both at once.
fn measure(values: &Values, names: &[String]) -> anyhow::Result<Vec<Vec<[f64; 3]>>> {
    let n_objects = values.count32("objects");
    let mut requests = Independent::new(n_objects, ALPHA, values.count("seed"));
    let mut simulations = Vec::new();
    for name in names {
        let config = policy(name, values.size("cache"))?;
        let mut simulation = Simulation::new(&config, n_objects as usize)?;
        simulation.run(&mut requests.clone(), values.count("warm"));
        simulations.push(simulation);
    }
    let n = values.size("requests");
    let mut drawn = vec![0; n];
    rotated(names.len(), values.size("rounds"), |case, _| {
        let simulation = &mut simulations[case];
        let drawing = rate_of(n, || _ = requests.fill(&mut drawn));
        let before = rate_of(n, || _ = simulation.run(&mut Drawn(&drawn), n as u64));
        let during = rate_of(n, || _ = simulation.run(&mut requests, n as u64));
        Ok([drawing, before, during])
    })
}
