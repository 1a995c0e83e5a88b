//! How soon a cache learns that the popularity of all objects has changed.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells,
};

use super::policies;
use super::simulate::Simulation;
use super::sources::{ALPHA, policy, words};
use super::workload::Independent;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/cache-change",
    title: "How soon cache policies adapt when the popularity of all objects changes",
    source: "",
    cost: Cost::minutes(0.2, 15.0),
    needs: &[Need::MemoryGib(0.3, 0.7)],
    params: &[
        policies([
            "filter/fifo,lru",
            "filter-auto/gclock,filter/gclock,filter/clock,filter/fifo,k-lru/lru,tinylfu/random,\
             w-tinylfu/slru,sieve,s3-fifo,lru",
            "filter-auto/gclock,filter/gclock,filter/clock,filter/fifo,k-lru/lru,tinylfu/random,\
             w-tinylfu/slru,sieve,s3-fifo,lru",
        ]),
        Param::count(
            "objects",
            "objects of Zipf popularity 0.8",
            ["50k", "1M", "10M"],
        ),
        Param::count("cache", "Data in the cache", ["500", "10k", "100k"]),
        Param::count(
            "warm",
            "requests before measurement begins",
            ["20k", "2M", "20M"],
        ),
        Param::count("steady", "requests before the change", ["20k", "1M", "10M"]),
        Param::count(
            "step",
            "requests of a step of the curve",
            ["5k", "25k", "250k"],
        ),
        Param::count("steps", "steps after the change", ["4", "60", "60"]),
        Param::rounds(["2", "3", "3"]),
        Param::seed(),
    ],
    run,
}];

/// One policy with one seed.
struct Curve {
    hit_ratio: f64,
    insertion_ratio: f64,
    /// The hit ratio of each step after the change.
    steps: Vec<f64>,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let (step, rounds) = (context.count("step"), context.rounds());
    let columns: [Column; 5] = [
        "policy".into(),
        Column::fixed("steady hit ratio", 4),
        Column::fixed("steady insertion ratio", 4),
        "requests to 95 %, thousands".into(),
        "seeds that reached 95 %".into(),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new(
        "After the popularity of all objects has changed",
        "thousand requests since",
        "hits by Interests",
    );
    for name in words(context, "policies") {
        let curves = (0..rounds as u64).map(|seed| curve(context, &name, seed));
        let curves = curves.collect::<anyhow::Result<Vec<_>>>()?;
        let mean = |value: &dyn Fn(&Curve) -> f64| {
            curves.iter().map(value).sum::<f64>() / curves.len() as f64
        };
        for idx in 0..context.size("steps") {
            let thousands = (idx as u64 + 1) as f64 * step as f64 / 1e3;
            chart.point(&name, thousands, mean(&|curve| curve.steps[idx]));
        }
        let reached = curves.iter().filter_map(|curve| {
            let enough = |ratio: &f64| *ratio >= 0.95 * curve.hit_ratio;
            let idx = curve.steps.iter().position(enough)?;
            Some((idx as u64 + 1) as f64 * step as f64 / 1e3)
        });
        let reached: Vec<f64> = reached.collect();
        table.row(cells![
            name,
            mean(&|curve| curve.hit_ratio),
            mean(&|curve| curve.insertion_ratio),
            Spread::of(&reached),
            reached.len()
        ]);
    }
    let mut record = Record::new(Kind::Simulated);
    record.tables.push(table);
    record.charts.push(chart);
    record.note(format!(
        "{} objects, {} Data in the cache; after {} requests each object takes the rank of another \
         one. Requests to 95 %: the end of the first step of {step} requests whose hit ratio is \
         0.95 of the steady one; over {rounds} seeds, those that reached it.",
        context.count("objects"),
        context.count("cache"),
        context.count("warm") + context.count("steady")
    ));
    Ok(record)
}

fn curve(context: &Context, name: &str, seed: u64) -> anyhow::Result<Curve> {
    let n_objects = context.values.count32("objects");
    let mut simulation =
        Simulation::new(&policy(name, context.size("cache"))?, n_objects as usize)?;
    let mut requests = Independent::new(n_objects, ALPHA, context.seed().wrapping_add(seed));
    simulation.run(&mut requests, context.count("warm"));
    let warm = *simulation.counts();
    simulation.run(&mut requests, context.count("steady"));
    let steady = simulation.counts().since(&warm);
    requests.shift_popularity(n_objects / 2);
    let steps = (0..context.count("steps")).map(|_| {
        let before = *simulation.counts();
        simulation.run(&mut requests, context.count("step"));
        simulation.counts().since(&before).hit_ratio()
    });
    Ok(Curve {
        hit_ratio: steady.hit_ratio(),
        insertion_ratio: steady.insertion_ratio(),
        steps: steps.collect(),
    })
}
