//! What stands beside LAPS in chapter 2: adaptive hashing, batches, and order restoration.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, ParamKind, Record, Table, cells,
};
use tachonym_dispatch::restoration::TagScope;
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::{PATHS, ServiceModel};
use tachonym_sim::traffic::Trace;

use super::simulation::{self, Kind, LapsKind, percent};
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/adaptive-hashing",
    title: "Adaptive hashing and order restoration beside LAPS",
    source: "Iqbal 2013, sections 2.3.1 and 2.3.2",
    cost: Cost::minutes(0.5, 65.0),
    needs: &[],
    params: &[
        traces::drawn("caida 1,auckland 1,large flow"),
        traces::FILE,
        traces::FORMAT,
        traces::COLUMN,
        Param::new(
            "loads",
            "traffic of forwarding by the capacity of all cores without penalties",
            ParamKind::Numbers,
            ["0.9", "0.9,1.02", "0.9,1.02"],
        ),
        Param::new(
            "four_services",
            "traffic of four services together, millions of packets per second",
            ParamKind::Number,
            ["1.25"; 3],
        ),
        simulation::THRESHOLD,
        simulation::seconds(["0.005", "0.2", "20"]),
        Param::seed(),
    ],
    run,
}];

const N_CORES: usize = 16;
/// Four services have fewer packets a second: they get as many seconds more.
const MORE_SECONDS: f64 = 10.0;

const KINDS: [Kind; 10] = [
    Kind::Static,
    Kind::Adaptive { migrates: false },
    Kind::Adaptive { migrates: true },
    Kind::Dlb,
    Kind::Fcfs,
    Kind::Restored(TagScope::PerName),
    Kind::Restored(TagScope::Global),
    Kind::Batches,
    Kind::Laps(LapsKind::published(16)),
    Kind::Laps(LapsKind::router(16)),
];

/// Traffic, and the services of the cores.
struct Situation {
    label: String,
    services: Vec<ServiceModel>,
    traffic: Vec<(RateModel, Trace)>,
    seconds: f64,
}

fn situations(context: &Context) -> anyhow::Result<Vec<Situation>> {
    let seconds = context.number("seconds");
    let mut situations = Vec::new();
    for (name, trace) in traces::all(context)? {
        for load in context.values.numbers("loads") {
            let services = vec![PATHS[1].clone()];
            let rate_pps = load * services[0].rate_pps(0.0) * N_CORES as f64;
            situations.push(Situation {
                label: format!("{name}, load {load}"),
                services,
                traffic: vec![(RateModel::constant(rate_pps), trace.clone())],
                seconds,
            });
        }
    }
    let rate = RateModel::constant(context.number("four_services") * 1e6 / 4.0);
    let traces = ["caida 1", "caida 2", "caida 3", "caida 4"];
    let traffic = traces.map(|name| Ok((rate, traces::trace(name, context.seed())?)));
    situations.push(Situation {
        label: "four services".to_owned(),
        services: PATHS.to_vec(),
        traffic: traffic.into_iter().collect::<anyhow::Result<_>>()?,
        seconds: seconds * MORE_SECONDS,
    });
    Ok(situations)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let situations = situations(context)?;
    let threshold = context.values.count32("threshold");
    let outcomes = in_parallel(situations.len() * KINDS.len(), |case| {
        let (situation, kind) = (&situations[case / KINDS.len()], KINDS[case % KINDS.len()]);
        let config = CoresConfig::new(N_CORES, situation.services.clone());
        let (traffic, times) = (situation.traffic.clone(), (situation.seconds, 1.0));
        simulation::simulate(&config, (kind, threshold), traffic, times, context.seed())
    })?;

    let mut record = Record::new(RecordKind::Simulated);
    let columns = "traffic | scheduler | dropped, % | out of order, % | cold, % | shifts | \
        packets moved, % | waited to leave, % | for, µs | flows tagged"
        .split(" | ");
    let mut table = Table::new("", columns);
    let labels = || situations.iter().map(|it| &*it.label);
    let mut dropped = Chart::bars("dropped", labels(), "%");
    let mut out_of_order = Chart::bars("out of order", labels(), "%");
    for (case, outcome) in outcomes.iter().enumerate() {
        let (group, kind) = (case / KINDS.len(), KINDS[case % KINDS.len()]);
        let counts = outcome.counts;
        table.row(cells![
            &*situations[group].label,
            kind.label(),
            outcome.dropped_pct(),
            outcome.out_of_order_pct(),
            outcome.cold_pct(),
            outcome.n_shifts,
            percent(counts.n_moved, counts.n_arrived),
            percent(counts.n_restored, counts.n_departed),
            counts.restored_ns as f64 / 1e3 / counts.n_restored.max(1) as f64,
            outcome.n_names_tagged,
        ]);
        dropped.point(&kind.label(), group as f64, outcome.dropped_pct());
        out_of_order.point(&kind.label(), group as f64, outcome.out_of_order_pct());
    }
    record.tables.push(table);
    record.charts.extend([dropped, out_of_order]);
    record.note(
        "Published in words: restoring order by flow needs state of each flow, restoring it among \
         all packets holds other flows up, and both lose the flow's data in the cache; adaptive \
         hashing complements migration. Adaptive hashing is that of Kencl and Le Boudec over 1024 \
         bundles, its weights changed every millisecond. A packet that is done and waits for an \
         earlier one keeps its place of its core's queue. Flows tagged: the most at the same time; \
         a flow without packets inside needs no state.",
    );
    traces::note(context, &mut record);
    Ok(record)
}
