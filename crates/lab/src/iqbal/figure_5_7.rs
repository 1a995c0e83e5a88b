//! Drops, cold caches and order under traffic that varies: Figures 5.7 to 5.9, with the
//! rates of Table 5.1.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, ParamKind, Record, Reference,
    Table, cells,
};
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::service::PATHS;

use super::simulation::{self, IQBAL, Kind, LapsKind};
use super::table_5_1::{GROUPS, N_CORES, SETS, TRAFFIC_S};
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-5.7",
    title: "Drops, cold caches and order in the scenarios T1 to T8",
    source: "Iqbal 2013, section 5.4.2, Figures 5.7 to 5.9",
    cost: Cost::minutes(0.8, 13.0),
    needs: &[],
    params: &[
        Param::new(
            "speedup",
            "factor by which rates change faster than published; a minute takes that much less",
            ParamKind::Number,
            ["2000", "10", "1"],
        ),
        simulation::THRESHOLD,
        Param::seed(),
    ],
    run,
}];

const KINDS: [Kind; 4] = [
    Kind::Fcfs,
    Kind::Afs,
    Kind::Laps(LapsKind::router(16)),
    Kind::Laps(LapsKind::published(16)),
];

fn run(context: &Context) -> anyhow::Result<Record> {
    let config = CoresConfig::new(N_CORES, PATHS.to_vec());
    let (speedup, seed) = (context.number("speedup"), context.seed());
    let threshold = context.values.count32("threshold");
    let outcomes = in_parallel(8 * KINDS.len(), |case| {
        let (scenario, kind) = (case / KINDS.len(), KINDS[case % KINDS.len()]);
        let traces = GROUPS[scenario % 4].map(|name| traces::trace(name, seed));
        let models = SETS[scenario / 4].into_iter();
        let traffic = models.zip(traces).map(|(model, trace)| Ok((model, trace?)));
        let traffic = traffic.collect::<anyhow::Result<_>>()?;
        let times = (TRAFFIC_S / speedup, speedup);
        simulation::simulate(&config, (kind, threshold), traffic, times, seed)
    })?;

    let mut record = Record::new(RecordKind::Simulated);
    let columns = "scenario | scheduler | offered, Mpps | dropped, % | cold, % | out of order, %"
        .split(" | ");
    let mut table = Table::new("", columns);
    let mut charts = [
        ("5.7", "dropped, %"),
        ("5.8", "cold, %"),
        ("5.9", "out of order, %"),
    ]
    .map(|(figure, y)| Chart::new(format!("Figure {figure}"), "scenario", y));
    let mut cold = Vec::new();
    for (case, outcome) in outcomes.iter().enumerate() {
        let (scenario, kind) = (case / KINDS.len() + 1, KINDS[case % KINDS.len()]);
        let values = [
            outcome.dropped_pct(),
            outcome.cold_pct(),
            outcome.out_of_order_pct(),
        ];
        for (chart, value) in charts.iter_mut().zip(values) {
            chart.point(&kind.label(), scenario as f64, value);
        }
        if matches!(kind, Kind::Fcfs | Kind::Afs) {
            cold.push(values[1]);
        }
        let offered_mpps = outcome.offered_pps / 1e6;
        let [dropped, cold, out_of_order] = values;
        table.row(cells![
            format!("T{scenario}"),
            kind.label(),
            offered_mpps,
            dropped,
            cold,
            out_of_order,
        ]);
    }
    let mean_cold = cold.iter().sum::<f64>() / cold.len() as f64;
    let place = Reference::stated(IQBAL, "section 5.4.2");
    record.compare(
        "cold, FCFS and AFS, mean of T1 to T8",
        60.0,
        "%",
        place,
        Some(mean_cold),
    );
    record.tables.push(table);
    record.charts.extend(charts);
    record.note(format!(
        "{TRAFFIC_S} s of traffic in {} s of virtual time. Set 1 is an underload only on average: \
         see iqbal/table-5.1. Published: FCFS and AFS drop in T1 to T4, too; LAPS drops least in \
         all scenarios.",
        TRAFFIC_S / speedup
    ));
    record.note("The traces are drawn; iqbal/figure-4.3 shows them.");
    Ok(record)
}
