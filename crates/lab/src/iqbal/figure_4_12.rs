//! What an overloaded core's queue holds when a flow moves off it: Figures 4.12 and 4.13.

use tachonym_bench::stats::Spread;
use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, Record, Reference, Table, cells,
};
use tachonym_sim::cores::{Cores, CoresConfig};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::PATHS;
use tachonym_sim::traffic::Traffic;

use super::simulation::{self, IQBAL, Kind, LapsKind};
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-4.12",
    title: "Flows in the queue of an overloaded core when one moves",
    source: "Iqbal 2013, section 4.5.3, Figures 4.12 and 4.13",
    cost: Cost::minutes(0.2, 30.0),
    needs: &[],
    params: &[
        traces::drawn("caida 1,caida 2,auckland 1,auckland 2"),
        traces::FILE,
        traces::FORMAT,
        traces::COLUMN,
        simulation::LOAD,
        simulation::THRESHOLD,
        simulation::seconds(["0.01", "0.5", "60"]),
        Param::seed(),
    ],
    run,
}];

const N_CORES: usize = 16;
/// Flows that are large: as many as are tracked.
const N_LARGE: u32 = 16;
/// Points of a line; more show no more.
const N_POINTS: usize = 500;

fn run(context: &Context) -> anyhow::Result<Record> {
    let services = vec![PATHS[1].clone()];
    let rate_pps = context.number("load") * services[0].rate_pps(0.0) * N_CORES as f64;
    let threshold = context.values.count32("threshold");
    let end_ns = (context.number("seconds") * 1e9) as u64;
    let variants = [LapsKind::published(16), LapsKind::router(16)];
    let traces = traces::all(context)?;
    let runs = in_parallel(traces.len() * variants.len(), |case| {
        let (_, trace) = &traces[case / variants.len()];
        let variant = variants[case % variants.len()];
        let laps = variant.laps(N_CORES, &services, threshold)?;
        let traffic = vec![(RateModel::constant(rate_pps), trace.clone())];
        let mut traffic = Traffic::new(traffic, 1.0, context.seed());
        let config = Kind::Laps(variant).cores(&CoresConfig::new(N_CORES, services.clone()));
        let mut cores = Cores::new(config, laps, traffic.n_flows());
        cores.watch_migrations(N_LARGE);
        while let Some(packet) = traffic.next_packet().filter(|it| it.at_ns < end_ns) {
            cores.handle_packet(packet);
        }
        Ok(cores.migrations().to_vec())
    })?;

    let mut record = Record::new(RecordKind::Simulated);
    let mut table = Table::new(
        "",
        "trace | scheduler | migrations | flows in the queue | large ones".split(" | "),
    );
    let mut flows_chart = Chart::new("Figure 4.12", "virtual time, ms", "flows in the queue");
    let mut large_chart = Chart::new(
        "Figure 4.13",
        "virtual time, ms",
        "large flows in the queue",
    );
    let mut as_published = [Vec::new(), Vec::new()];
    for (case, noted) in runs.iter().enumerate() {
        let (name, _) = &traces[case / variants.len()];
        let variant = variants[case % variants.len()];
        let flows: Vec<f64> = noted.iter().map(|it| it.n_flows.into()).collect();
        let large: Vec<f64> = noted.iter().map(|it| it.n_large.into()).collect();
        table.row(cells![
            &**name,
            Kind::Laps(variant).label(),
            noted.len(),
            Spread::of(&flows),
            Spread::of(&large),
        ]);
        if !variant.is_published {
            continue;
        }
        for it in noted.iter().step_by(noted.len().div_ceil(N_POINTS).max(1)) {
            let at_ms = it.at_ns as f64 / 1e6;
            flows_chart.point(name, at_ms, it.n_flows.into());
            large_chart.point(name, at_ms, it.n_large.into());
        }
        as_published[0].extend(flows);
        as_published[1].extend(large);
    }
    let place = Reference::stated(IQBAL, "section 4.5.3");
    let medians = as_published.map(|values| Spread::of(&values).map(|it| it.median));
    let what = "flows in the queue, LAPS as published";
    record.compare_range(what, (15.0, Some(20.0)), "", place, medians[0]);
    record.tables.push(table);
    record.charts.extend([flows_chart, large_chart]);
    record.note(
        "Published of the large ones: several. How many packets of its queue one flow has follows \
         from the trains, which have 3 packets on average here.",
    );
    traces::note(context, &mut record);
    Ok(record)
}
