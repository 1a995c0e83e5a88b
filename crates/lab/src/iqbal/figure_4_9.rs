//! What it gains to move aggressive flows only: Figures 4.9 to 4.11.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, ParamKind, Record, Reference,
    Table, cells,
};
use tachonym_sim::cores::CoresConfig;
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::PATHS;

use super::simulation::{self, IQBAL, Kind, LapsKind, Outcome, below_pct, percent};
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-4.9",
    title: "Drops, reordering and flow shifts by the flows tracked",
    source: "Iqbal 2013, section 4.5.2, Figures 4.9 to 4.11",
    cost: Cost::minutes(3.9, 310.0),
    needs: &[],
    params: &[
        traces::drawn("caida 1,caida 2,auckland 1,auckland 2,large flow"),
        traces::FILE,
        traces::FORMAT,
        traces::COLUMN,
        Param::count("cores", "cores; the thesis names no number", ["16"; 3]),
        simulation::LOAD,
        simulation::THRESHOLD,
        simulation::seconds(["0.003", "1", "60"]),
        Param::new(
            "tracked",
            "flows tracked",
            ParamKind::Counts,
            ["10,16", "4,8,10,16,32,64", "4,8,10,16,32,64"],
        ),
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let n_cores = context.size("cores");
    let services = vec![PATHS[1].clone()];
    let rate_pps = context.number("load") * services[0].rate_pps(0.0) * n_cores as f64;
    let config = CoresConfig::new(n_cores, services);
    let tracked = context.values.counts("tracked");
    let mut kinds = vec![Kind::Dlb, Kind::Afs, Kind::Static];
    for variant in [LapsKind::router, LapsKind::published] {
        kinds.extend(tracked.iter().map(|&n| Kind::Laps(variant(n as usize))));
    }
    kinds.push(Kind::Laps(LapsKind {
        is_linear: true,
        ..LapsKind::router(16)
    }));
    kinds.push(Kind::Oracle { n_tracked: 16 });
    let traces = traces::all(context)?;
    let threshold = context.values.count32("threshold");
    let times = (context.number("seconds"), 1.0);
    let outcomes = in_parallel(traces.len() * kinds.len(), |case| {
        let (trace, kind) = (&traces[case / kinds.len()].1, kinds[case % kinds.len()]);
        let traffic = vec![(RateModel::constant(rate_pps), trace.clone())];
        simulation::simulate(&config, (kind, threshold), traffic, times, context.seed())
    })?;

    let mut record = Record::new(RecordKind::Simulated);
    let mut table = Table::new(
        "",
        "trace | scheduler | dropped, % | out of order, % | shifts | packets moved, % | \
            held, % | held for, µs | no room | drops by DLB | reordering below DLB, % | \
            shifts below DLB, %"
            .split(" | "),
    );
    let charts = [
        ("4.9", "packets dropped"),
        ("4.10", "out of order"),
        ("4.11", "flow shifts"),
    ];
    let mut charts = charts.map(|(figure, what)| {
        Chart::new(
            format!("Figure {figure}"),
            "flows tracked",
            format!("{what}, by DLB"),
        )
    });
    for ((name, _), outcomes) in traces.iter().zip(outcomes.chunks(kinds.len())) {
        let dlb = outcomes[0];
        for (kind, outcome) in kinds.iter().zip(outcomes) {
            let by_dlb = by_dlb(outcome, &dlb).map(|it| it.filter(|_| *kind != Kind::Dlb));
            let below = |by: Option<f64>| by.map(|by| 100.0 - 100.0 * by);
            let counts = outcome.counts;
            table.row(cells![
                &**name,
                kind.label(),
                outcome.dropped_pct(),
                outcome.out_of_order_pct(),
                outcome.n_shifts,
                percent(counts.n_moved, counts.n_arrived),
                percent(counts.n_held, counts.n_arrived),
                counts.held_ns as f64 / 1e3 / counts.n_held.max(1) as f64,
                counts.n_dropped_unheld,
                by_dlb[0],
                below(by_dlb[1]),
                below(by_dlb[2]),
            ]);
            let Kind::Laps(laps) = kind else { continue };
            let label = match (laps.is_published, laps.is_linear) {
                (true, _) => format!("{name}, as published"),
                (false, false) => name.clone(),
                (false, true) => continue,
            };
            for (chart, by_dlb) in charts.iter_mut().zip(by_dlb) {
                chart.point(&label, laps.n_tracked as f64, by_dlb.unwrap_or(f64::NAN));
            }
        }
    }
    record.tables.push(table);
    let names: Vec<_> = traces.iter().map(|it| &*it.0).collect();
    compare(&mut record, &names, &kinds, &outcomes);
    record.charts.extend(charts);
    record.note(format!(
        "{} s of virtual time; published: 60 s, which `--scale full` simulates.",
        context.number("seconds")
    ));
    record.note(
        "DLB moves whatever flow arrives, AFS its bucket of 1024; the thesis says of neither which \
         grain it has. LAPS holds packets of what moves until the former core is done with the \
         flow; as published, it does not.",
    );
    traces::note(context, &mut record);
    Ok(record)
}

/// Drops, reordering and shifts by those of DLB.
fn by_dlb(outcome: &Outcome, dlb: &Outcome) -> [Option<f64>; 3] {
    let part = |value, whole| below_pct(value, whole).map(|below| 1.0 - below / 100.0);
    [
        part(outcome.counts.n_dropped, dlb.counts.n_dropped),
        part(outcome.counts.n_out_of_order, dlb.counts.n_out_of_order),
        part(outcome.n_shifts, dlb.n_shifts),
    ]
}

/// What the text says of 16 flows tracked, beside the means over the traces of one source.
fn compare(record: &mut Record, names: &[&str], kinds: &[Kind], outcomes: &[Outcome]) {
    let place = Reference::stated(IQBAL, "section 4.5.2");
    let what = [
        ("drops by DLB", 1.0, ""),
        ("reordering below DLB", 85.0, "%"),
        ("shifts below DLB", 80.0, "%"),
    ];
    for variant in [LapsKind::published(16), LapsKind::router(16)].map(Kind::Laps) {
        let Some(at) = kinds.iter().position(|&kind| kind == variant) else {
            continue;
        };
        for source in ["caida", "auckland"] {
            let of_traces = names.iter().zip(outcomes.chunks(kinds.len()));
            let of_source = of_traces.filter(|(name, _)| name.starts_with(source));
            let all: Vec<_> = of_source.map(|(_, it)| by_dlb(&it[at], &it[0])).collect();
            for (nth, (what, published, unit)) in what.into_iter().enumerate() {
                let known: Vec<f64> = all.iter().filter_map(|it| it[nth]).collect();
                if known.is_empty() {
                    continue;
                }
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                let here = match nth {
                    0 => mean,
                    _ => 100.0 - 100.0 * mean,
                };
                let what = format!("{what}, {}, {source}", variant.label());
                record.compare(what, published, unit, place, Some(here));
            }
        }
    }
}
