//! Figure 3 of Mansilha et al. 2017: the speed of a content store of one level by its size,
//! alone and in the forwarding engine (a), and what of the machine it uses (b).

use std::time::Instant;

use tachonym_bench::stats::Mean;
use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind as How, Need, Param, Record, Table, cells,
};

use super::bed::{first_bytes, gbs, has_memory, log_chart};
use super::catalogue::{Bytes, Catalogue};
use super::dram::Dram;
use super::forwarder::Forwarder;
use super::published::stated;
use super::store::{Hcs, Measured, measure, warm};
use super::workload::{Kind, Requests, Settings};
use tachonym_loadgen::process::Process;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "mansilha/figure-3",
    title: "Content store of one level and forwarding, by size; page faults and processor time",
    source: "Mansilha et al. 2017, section 4.1",
    cost: Cost::minutes(0.2, 6.0),
    needs: &[Need::MemoryGib(2.0, 2.0)],
    params: &[
        gbs(
            "sizes",
            "catalogue, all of which the store holds, GB",
            ["0.01,0.02", "0.01,0.1,1", "0.01,0.1,1,2,4,8,16,22"],
        ),
        Param::count(
            "requests",
            "requests of a round, of each workload",
            ["2k", "200k", "400k"],
        ),
        Param::rounds(["1", "3", "5"]),
        Param::seed(),
    ],
    run,
}];

/// CS is the tables alone, FWD the whole engine.
const FAMILIES: [&str; 2] = ["CS", "FWD"];

fn run(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(How::Measured);
    let mut rates = Table::new(
        "(a) Throughput of one thread",
        [
            Column::new("store"),
            "catalogue, GB".into(),
            "workload".into(),
            "Gbit/s".into(),
            "million chunks/s".into(),
            Column::fixed("hits", 4),
        ],
    );
    let mut machine = Table::new(
        "(b) Use of the machine",
        [
            "store",
            "catalogue, GB",
            "processor, %",
            "major page faults",
        ],
    );
    let mut chart = log_chart("Figure 3 (a)", "catalogue, GB", "Gbit/s");
    let mut last = [None; 2];
    for gb in context.values.numbers("sizes") {
        let catalogue = Catalogue::of(Bytes::of_gb(gb)?);
        let n_chunks = catalogue.n_chunks();
        if !has_memory(first_bytes(n_chunks)) {
            record.note(format!("{gb} GB do not fit the free memory: left out."));
            continue;
        }
        let size = catalogue.size().gb();
        for (idx, family) in FAMILIES.into_iter().enumerate() {
            let faults = Process::own().major_faults()?;
            let (runs, cpu_share) = match idx {
                0 => take(context, catalogue, Dram::new(n_chunks as usize)?)?,
                _ => take(context, catalogue, Forwarder::new(n_chunks as usize)?)?,
            };
            let n_faults = Process::own().major_faults()? - faults;
            machine.row(cells![family, size, 100.0 * cpu_share, n_faults]);
            for (kind, runs) in Kind::ALL.into_iter().zip(&runs) {
                let of = |value: fn(&Measured) -> f64| {
                    Mean::of(&runs.iter().map(value).collect::<Vec<_>>())
                };
                let gbps = of(Measured::gbps);
                let hits = of(|run| run.counts.first_ratio()).map(|it| it.mean);
                let mops = of(|run| 1e3 / run.chunk_ns());
                rates.row(cells![family, size, kind.label(), gbps, mops, hits]);
                if let Some(gbps) = gbps.and_then(Mean::informed) {
                    chart.point(&format!("{family} {kind}"), size, gbps);
                    if kind == Kind::Real {
                        last[idx] = Some(gbps);
                    }
                }
            }
        }
    }
    record.tables = vec![rates, machine];
    record.charts.push(chart);
    let what = "content store alone, Real, largest size: at most";
    record.compare(what, 10.0, "Gbit/s", stated("section 7"), last[0]);
    let what = "forwarding, Real, largest size: about";
    record.compare(what, 4.0, "Gbit/s", stated("section 7"), last[1]);
    record.note(
        "CS finds the Data in bursts and reads both ends of each; FWD is the whole engine, which \
         copies the Data to send them. Each store is filled once with the whole catalogue \
         (published: ten times its size to warm); (b) is of filling and of all rounds, processor \
         time of the rounds alone. Means with 95 % confidence.",
    );
    record.note(
        "Published, of NFD 0.3.1 on a 1.9 GHz core: Seq above Real above Unif; fastest with 10 MB, \
         which fit the processor's cache, even from 1 to 20 GB, and falling beyond, where the \
         system pages. A store that leaves no memory to other programs is refused here before it \
         is filled, so there is no third mode.",
    );
    Ok(record)
}

/// Fills a store and measures each workload in each round; also the processor's time by the
/// clock's.
fn take(
    context: &Context,
    catalogue: Catalogue,
    mut store: impl Hcs,
) -> anyhow::Result<([Vec<Measured>; 3], f64)> {
    let settings = Settings::published(catalogue);
    let mut all = Requests::new(Kind::Seq, &settings, 0);
    warm(&mut store, &mut all, catalogue.n_chunks(), |_| true);
    let mut samples = Kind::ALL.map(|_| Vec::new());
    let (cpu_ns, begun) = (Process::own().cpu_ns()?, Instant::now());
    for round in 0..context.rounds() {
        let seed = context.seed().wrapping_add(round as u64);
        for turn in 0..Kind::ALL.len() {
            let case = (round + turn) % Kind::ALL.len();
            let mut requests = Requests::new(Kind::ALL[case], &settings, seed);
            let n_requests = context.count("requests");
            samples[case].push(measure(&mut store, &mut requests, n_requests, |_| true));
        }
    }
    let cpu_ns = Process::own().cpu_ns()? - cpu_ns;
    let cpu_share = cpu_ns as f64 / begun.elapsed().as_nanos().max(1) as f64;
    Ok((samples, cpu_share))
}
