//! Figure 8 (a) of Mansilha et al. 2017: how evenly workers are loaded by the part of the name
//! that is hashed.

use tachonym_bench::stats::Mean;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as How, Param, ParamKind, Record, Table, cells,
};

use super::bed::{BATCH, gbs};
use super::catalogue::{Bytes, Catalogue};
use super::division::{Division, Rule, most_by_mean};
use super::published::stated;
use super::workload::{Kind, Requests, Settings};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "mansilha/figure-8a",
    title: "Load of the workers, by the hash of contents and of batches",
    source: "Mansilha et al. 2017, section 5.2",
    cost: Cost::minutes(0.1, 0.2),
    needs: &[],
    params: &[
        gbs("catalogue", "catalogue, GB", ["1", "10", "10"]),
        Param::new(
            "workers",
            "numbers of workers, at most 128 each",
            ParamKind::Counts,
            ["1,16", "1,2,4,6,8,12,16", "1,2,4,6,8,12,16"],
        ),
        Param::rounds(["2", "5", "5"]),
        Param::seed(),
        BATCH,
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let catalogue = Catalogue::of(Bytes::of_gb(context.values.numbers("catalogue")[0])?);
    let settings = Settings::published(catalogue);
    let n_requests = catalogue.n_chunks();
    let batch_chunks = context.values.count32("batch");
    let mut record = Record::new(How::Simulated);
    let mut table = Table::new(
        "Load of the most loaded worker",
        [
            "workers",
            "Content / mean",
            "Batch / mean",
            "Content / Batch",
        ],
    );
    let mut shares = Table::new(
        "Shares of the requests in the first round, the largest first",
        ["workers", "Content", "Batch"],
    );
    let mut chart = Chart::new("Figure 8 (a)", "workers", "most loaded / mean");
    let mut with_16 = None;
    for n_workers in context.values.counts("workers") {
        let n_workers = n_workers.min(128) as u16;
        let mut rounds = Vec::new();
        for round in 0..context.rounds() as u64 {
            let seed = context.seed().wrapping_add(round);
            let divide = |rule| Division::new(catalogue, rule, n_workers, batch_chunks, seed);
            let divisions = [divide(Rule::Content)?, divide(Rule::Batch)?];
            let mut loads = [(); 2].map(|()| vec![0_u64; usize::from(n_workers)]);
            let requests = Requests::new(Kind::Real, &settings, seed);
            for request in requests.take(n_requests as usize) {
                for (division, loads) in divisions.iter().zip(&mut loads) {
                    loads[usize::from(division.home(request.chunk))] += 1;
                }
            }
            rounds.push(loads);
        }
        let of = |value: &dyn Fn(&[Vec<u64>; 2]) -> f64| {
            Mean::of(&rounds.iter().map(value).collect::<Vec<_>>())
        };
        let most = |loads: &[u64]| loads.iter().max().copied().unwrap_or(0) as f64;
        let means = [0, 1].map(|rule| of(&|loads| most_by_mean(&loads[rule])));
        let ratio = of(&|loads| most(&loads[0]) / most(&loads[1]).max(1.0));
        table.row(cells![n_workers, means[0], means[1], ratio]);
        for (rule, mean) in ["Content", "Batch"].into_iter().zip(means) {
            if let Some(mean) = mean {
                chart.point(rule, n_workers.into(), mean.mean);
            }
        }
        let [content, batch] = [0, 1].map(|rule| {
            let mut loads = rounds[0][rule].clone();
            loads.sort_unstable_by(|a, b| b.cmp(a));
            let texts = loads.iter().map(|&it| it as f64 / n_requests as f64);
            let texts: Vec<_> = texts.map(|share| format!("{share:.3}")).collect();
            texts.join(" ")
        });
        shares.row(cells![n_workers, content, batch]);
        if n_workers == 16 {
            with_16 = ratio.map(|it| it.mean);
        }
    }
    record.tables = vec![table, shares];
    record.charts.push(chart);
    let what = "most loaded of 16 workers: Content by Batch";
    record.compare(what, 3.0, "", stated("section 5.2"), with_16);
    record.note(format!(
        "Real, a catalogue of {}, {n_requests} requests in each of {} rounds with seeds and hash \
         keys of their own; the router's own dispatch. Means with 95 % confidence.",
        catalogue.size(),
        context.rounds()
    ));
    Ok(record)
}
