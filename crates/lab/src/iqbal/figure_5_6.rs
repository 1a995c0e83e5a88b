//! What schedulers get out of 16 cores with four services: Figure 5.6.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, ParamKind, Record, Reference,
    Table, cells,
};
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::{PATHS, Penalties};

use super::simulation::{self, IQBAL, Kind, LapsKind, percent};
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-5.6",
    title: "Throughput of four services on 16 cores",
    source: "Iqbal 2013, section 5.4.1, Figure 5.6",
    cost: Cost::minutes(0.3, 14.0),
    needs: &[],
    params: &[
        Param::new(
            "rates",
            "packets per second of all services together, millions",
            ParamKind::Numbers,
            [
                "1.25,2,3.25,5",
                "0.5,0.75,1,1.125,1.25,1.375,1.5,1.75,2,2.25,2.5,2.75,3,3.25,3.5,4,4.5,5",
                "0.5,0.75,1,1.125,1.25,1.375,1.5,1.75,2,2.25,2.5,2.75,3,3.25,3.5,4,4.5,5",
            ],
        ),
        simulation::THRESHOLD,
        simulation::seconds(["0.02", "0.5", "20"]),
        Param::seed(),
    ],
    run,
}];

const N_CORES: usize = 16;
const TRACES: [&str; 4] = ["caida 1", "caida 2", "caida 3", "caida 4"];
/// What is still counted as kept, in percent dropped.
const KEPT_PCT: f64 = 1.0;

fn run(context: &Context) -> anyhow::Result<Record> {
    let rates = context.values.numbers("rates");
    let with_penalties = CoresConfig::new(N_CORES, PATHS.to_vec());
    let ideal = CoresConfig {
        penalties: Penalties::NONE,
        ..with_penalties.clone()
    };
    let linear = LapsKind {
        is_linear: true,
        ..LapsKind::router(16)
    };
    let mut runs: Vec<_> = [
        Kind::Laps(LapsKind::router(16)),
        Kind::Laps(linear),
        Kind::Laps(LapsKind::published(16)),
        Kind::Afs,
        Kind::Dlb,
        Kind::Fcfs,
    ]
    .map(|kind| (kind.label(), kind, &with_penalties))
    .into();
    runs.push(("ideal".to_owned(), Kind::Fcfs, &ideal));
    let threshold = context.values.count32("threshold");
    let seconds = context.number("seconds");
    let traces = TRACES.map(|name| traces::trace(name, context.seed()));
    let traces = traces.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let outcomes = in_parallel(runs.len() * rates.len(), |case| {
        let (_, kind, config) = &runs[case / rates.len()];
        let rate = RateModel::constant(rates[case % rates.len()] * 1e6 / 4.0);
        let traffic = traces.iter().map(|trace| (rate, trace.clone())).collect();
        let kind = (*kind, threshold);
        simulation::simulate(config, kind, traffic, (seconds, 1.0), context.seed())
    })?;

    let mut record = Record::new(RecordKind::Simulated);
    let columns =
        "scheduler | most done, Mpps | LAPS by it | kept, Mpps | LAPS by it (kept)".split(" | ");
    let mut ends = Table::new("", columns);
    let columns = "scheduler | offered, Mpps | done, Mpps | dropped, % | cold, % | \
        out of order, % | no room to hold, % | shifts"
        .split(" | ");
    let mut table = Table::new("by rate", columns);
    let mut chart = Chart::new("Figure 5.6", "Mpps that come", "Mpps that are done");
    let mut first = None;
    for ((label, _, _), outcomes) in runs.iter().zip(outcomes.chunks(rates.len())) {
        let (mut most_mpps, mut kept_mpps) = (0.0_f64, 0.0_f64);
        for (&rate_mpps, outcome) in rates.iter().zip(outcomes) {
            let counts = outcome.counts;
            most_mpps = most_mpps.max(outcome.done_pps / 1e6);
            if outcome.dropped_pct() <= KEPT_PCT {
                kept_mpps = kept_mpps.max(rate_mpps);
            }
            table.row(cells![
                &**label,
                rate_mpps,
                outcome.done_pps / 1e6,
                outcome.dropped_pct(),
                outcome.cold_pct(),
                outcome.out_of_order_pct(),
                percent(counts.n_dropped_unheld, counts.n_arrived),
                outcome.n_shifts,
            ]);
            chart.point(label, rate_mpps, outcome.done_pps / 1e6);
        }
        let (most, kept) = *first.get_or_insert((most_mpps, kept_mpps));
        let by = [most / most_mpps, kept / kept_mpps];
        ends.row(cells![&**label, most_mpps, by[0], kept_mpps, by[1]]);
    }
    let most = |label: &str| ends.number(&[label], "most done, Mpps");
    let kept = |label: &str| {
        ends.number(&[label], "kept, Mpps")
            .filter(|&kept| kept > 0.0)
    };
    let place = Reference::stated(IQBAL, "section 5.4.1");
    for (other, published) in [("AFS", 1.56), ("FCFS", 2.0)] {
        for laps in ["LAPS as published", "LAPS"] {
            let by = |of: &dyn Fn(&str) -> Option<f64>| Some(of(laps)? / of(other)?);
            let what = format!("most done, {laps} by {other}");
            record.compare(what, published, "", place, by(&most));
            let what = format!("kept, {laps} by {other}");
            record.compare(what, published, "", place, by(&kept));
        }
    }
    record.tables.extend([ends, table]);
    record.charts.push(chart);
    record.note(format!(
        "Kept is the highest of the rates tried of which at most {KEPT_PCT} % is dropped. Beyond, \
         LAPS drops packets of services that take long and goes on with others, so that it may do \
         more packets than the ideal, which drops all alike."
    ));
    record.note("The traces are drawn; iqbal/figure-4.3 shows them.");
    Ok(record)
}
