//! Figure 4 of Mansilha et al. 2017: whether an emulated L2 is as fast as it is set to be.

use tachonym_bench::stats::Mean;
use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind as How, Need, Param, ParamKind, Record, Table, cells,
};

use super::bed::{BATCH, ROUNDS, SHRINK, Sizes, WARM, gb, log_chart};
use super::catalogue::Catalogue;
use super::emulated::{Delay, Memory};
use super::published::stated;
use super::recipe::{AHEAD, DIRECTORY, EMULATED_STORE, Needs, PENDING, Pace, Recipe, StoreArgs};
use super::store::{measure, warm};
use super::workload::{Kind, Requests};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "mansilha/figure-4",
    title: "Throughput of the emulated L2 against the configured one, by memory and delay",
    source: "Mansilha et al. 2017, section 4.2",
    cost: Cost::minutes(0.7, 20.0),
    needs: &[Need::MemoryGib(2.5, 15.0)],
    params: &[
        gb("l1", "L1, GB", "1"),
        gb("l2", "L2, which is the catalogue, GB", "10"),
        Param::new(
            "rates",
            "configured rates of L2, Gbit/s",
            ParamKind::Numbers,
            ["0.2,64", "1,2,4,8,16,32,64", "1,2,4,8,16,32,64"],
        ),
        Param::count("requests", "requests of a round", ["500", "20k", "1250k"]),
        SHRINK,
        ROUNDS,
        Param::seed(),
        WARM,
        BATCH,
        EMULATED_STORE,
        AHEAD,
        PENDING,
        DIRECTORY,
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let sizes = Sizes::of(context);
    let store_args = StoreArgs::of(context);
    let catalogue = Catalogue::of(sizes.one(context, "l2")?);
    let settings = sizes.settings(catalogue);
    let l1_chunks = sizes.one(context, "l1")?.chunks();
    let rates = context.values.numbers("rates");
    let mut record = Record::new(How::Emulated);
    let mut table = Table::new(
        "",
        [
            Column::new("memory"),
            "delay".into(),
            "configured, Gbit/s".into(),
            "observed, Gbit/s".into(),
            Column::fixed("observed / configured", 3),
            "both levels, Gbit/s".into(),
        ],
    );
    let mut most_busy = [None; 2];
    const DELAYS: [Delay; 2] = [Delay::Sleep, Delay::Busy];
    let mut charts = DELAYS.map(|delay| {
        let title = format!("Figure 4, {}", delay.label());
        log_chart(&title, "configured rate, Gbit/s", "observed rate, Gbit/s")
    });
    for (nth, memory) in [Memory::Dynamic, Memory::Static].into_iter().enumerate() {
        let needs = Needs {
            catalogue,
            l1_chunks,
            n_stores: 1,
            batch_chunks: sizes.batch_chunks,
            memory,
        };
        let recipe = Recipe::new(&store_args, &needs)?;
        let mut samples = vec![Vec::new(); DELAYS.len() * rates.len()];
        for seed in sizes.seeds() {
            for (case, samples) in samples.iter_mut().enumerate() {
                let pace = Pace {
                    delay: DELAYS[case / rates.len()],
                    rate_gbps: rates[case % rates.len()],
                };
                let mut store = recipe.make(l1_chunks as usize, pace)?;
                let mut requests = Requests::new(Kind::Real, &settings, seed);
                warm(&mut *store, &mut requests, sizes.n_warm(l1_chunks), |_| {
                    true
                });
                let n_requests = context.count("requests");
                let measured = measure(&mut *store, &mut requests, n_requests, |_| true);
                measured.counts.ensure_answered()?;
                samples.push(measured);
            }
        }
        for (case, samples) in samples.iter().enumerate() {
            let (delay, configured) = (case / rates.len(), rates[case % rates.len()]);
            let observed = samples.iter().filter_map(|it| it.counts.second_gbps());
            let observed = Mean::of(&observed.collect::<Vec<_>>());
            let gbps = samples.iter().map(|it| it.gbps());
            let gbps = Mean::of(&gbps.collect::<Vec<_>>());
            table.row(cells![
                memory.label(),
                DELAYS[delay].label(),
                configured,
                observed,
                observed.map(|it| it.mean / configured),
                gbps
            ]);
            charts[delay].point("as configured", configured, configured);
            if let Some(observed) = observed.and_then(Mean::informed) {
                charts[delay].point(memory.label(), configured, observed);
                if DELAYS[delay] == Delay::Busy {
                    let most: &mut Option<f64> = &mut most_busy[nth];
                    *most = Some(most.map_or(observed, |most| most.max(observed)));
                }
            }
        }
    }
    record.tables.push(table);
    record.charts = charts.into();
    for (what, most, here) in [
        ("most with busy waiting, dynamic memory", 4.0, most_busy[0]),
        ("most with busy waiting, static memory", 64.0, most_busy[1]),
    ] {
        record.compare(what, most, "Gbit/s", stated("section 4.2"), here);
    }
    record.note(store_args.note(None, None));
    record.note(format!(
        "|L1| = {}, |L2| = |C| = {}, Real. {}",
        sizes.one(context, "l1")?,
        catalogue.size(),
        sizes.note()
    ));
    record.note("Published: sleeping is unsatisfactory above 4 Gbit/s with either memory.");
    Ok(record)
}
