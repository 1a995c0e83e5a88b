//! Hit and insertion ratios of any policies, on a workload or a trace.

use std::path::Path;

use anyhow::ensure;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};

use super::grid::{WEB_SHARE, shrink};
use super::policies;
use super::simulate::{Counts, Simulation};
use super::sources::{Cell, Workload, policy, simulate_all, words};
use crate::workloads::trace::{Trace, TraceFormat};

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/cache-rates",
    title: "Hit and insertion ratios of any policies, on a workload or a trace",
    source: "",
    cost: Cost::minutes(0.2, 20.0),
    needs: &[Need::MemoryGib(0.5, 4.0)],
    params: &[
        policies(
            ["fifo,random,lru,lru-local,clock,gclock,slru,lfu,lfu-local,arc,2q,lirs,s3-fifo,sieve,\
             lcp/lru,k-lru/lru,filter/fifo,filter/lru-local,filter-auto/gclock,tinylfu/random,\
             w-tinylfu/slru"; 3],
        ),
        Param::new(
            "workload",
            "workload, if there is no trace",
            ParamKind::Text,
            ["web"; 3],
        ),
        Param::new(
            "trace",
            "file of a trace, or nothing",
            ParamKind::Text,
            [""; 3],
        ),
        Param::choice(
            "format",
            "format of the trace",
            &["csv", "oracle-general", "pcap"],
            "csv",
        ),
        Param::count(
            "column",
            "column of the name in a csv trace, from 1",
            ["2"; 3],
        ),
        Param::new(
            "sizes",
            "sizes of the cache, Data",
            ParamKind::Counts,
            ["50,250", "1k,10k", "100k,1M"],
        ),
        shrink(["2k", "10", "1"]),
        Param::count(
            "warm",
            "requests before measurement begins; of a trace, all are counted",
            ["5k", "2M", "20M"],
        ),
        Param::count(
            "requests",
            "requests that are measured",
            ["10k", "3M", "30M"],
        ),
        WEB_SHARE,
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let (sizes, names) = (context.values.counts("sizes"), words(context, "policies"));
    let mut cases = Vec::new();
    for name in &names {
        for &size in &sizes {
            cases.push((name, size, policy(name, size as usize)?));
        }
    }
    let mut record = Record::new(Kind::Simulated);
    let counts: Vec<Counts> = if context.text("trace").is_empty() {
        let workload = Workload::named(context.text("workload"))?;
        let shrink = context.values.count32("shrink");
        let n_objects = workload.n_objects(shrink);
        record.note(format!(
            "Workload {}: {n_objects} objects.",
            workload.label()
        ));
        let cells = cases.iter().map(|&(_, _, config)| Cell {
            workload,
            shrink,
            config,
            n_warm: context.count("warm"),
            n_requests: context.count("requests"),
            web_share: context.number("web_share"),
            seed: context.seed(),
        });
        simulate_all(&cells.collect::<Vec<_>>())?
    } else {
        let trace = read_trace(context)?;
        record.note(format!("Trace: {} objects.", trace.n_objects()));
        let counts = cases.iter().map(|(_, _, config)| {
            let mut simulation = Simulation::new(config, trace.n_objects() as usize)?;
            let n_run = simulation.run(&mut trace.clone(), context.count("requests"));
            ensure!(n_run > 0, "the trace has no request");
            Ok(*simulation.counts())
        });
        counts.collect::<anyhow::Result<_>>()?
    };
    let columns: [Column; 4] = [
        "policy".into(),
        "Data in the cache".into(),
        Column::fixed("hit ratio", 4),
        Column::fixed("insertion ratio", 4),
    ];
    let mut table = Table::new("", columns);
    let mut charts = ["hits by Interests", "insertions by Data that arrive"]
        .map(|y| Chart::new(y, "Data in the cache", y));
    for ((name, size, _), counts) in cases.iter().zip(&counts) {
        let ratios = [counts.hit_ratio(), counts.insertion_ratio()];
        table.row(cells![name.as_str(), *size, ratios[0], ratios[1]]);
        for (chart, ratio) in charts.iter_mut().zip(ratios) {
            chart.point(name, *size as f64, ratio);
        }
    }
    record.tables.push(table);
    record.charts.extend(charts);
    record.note(
        "lfu-perfect, which remembers a hundred names for each Data, is left out: it is \
                 in takemasa/figure-5.6.",
    );
    Ok(record)
}

fn read_trace(context: &Context) -> anyhow::Result<Trace> {
    let format = match context.text("format") {
        "oracle-general" => TraceFormat::OracleGeneral,
        "pcap" => TraceFormat::Pcap,
        _ => TraceFormat::Csv,
    };
    Trace::read(
        Path::new(context.text("trace")),
        format,
        context.size("column"),
    )
}
