//! What more workers gain, packets in memory.
//!
//! Takemasa 2019, section 3.1.3 and Figure 4.7, has names hashed by the network interface
//! instead, and Mansilha et al. 2017, Figure 8, a thread that dispatches. Numbers of workers
//! take turns in every round, on the same names.

use anyhow::ensure;
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Bound, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table,
    cells,
};

use crate::beds::engine::params::HASH;
use crate::beds::workers::{BURST, Bed, DISPATCH, LATE, PREFIXES, REQUESTS, STORE, WorkersOptions};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/workers",
    title: "Packets per second by the number of workers, packets in memory",
    source: "",
    cost: Cost::minutes(0.2, 5.0),
    needs: &[Need::Cpus(2), Need::MemoryGib(1.0, 2.0)],
    params: &[
        Param::new(
            "workers",
            "numbers of workers, each a thread; the first for comparison",
            ParamKind::Counts,
            ["1,3", "1,2", "1,2,4,8,16"],
        ),
        DISPATCH,
        PREFIXES,
        STORE,
        BURST,
        LATE,
        REQUESTS,
        HASH,
        Param::rounds(["2", "15", "21"]),
        Param::seed(),
    ],
    run,
}];

/// The goal: two workers by one.
const GOAL: f64 = 1.8;

fn run(context: &Context) -> anyhow::Result<Record> {
    let options = WorkersOptions::new(context, 0.0)?;
    let mut beds = Vec::new();
    for n_workers in context.values.counts("workers") {
        ensure!(
            (1..=64).contains(&n_workers),
            "{n_workers} workers are not 1 to 64"
        );
        let mut bed = Bed::new(&options, n_workers as usize)?;
        bed.take()?;
        beds.push(bed);
    }
    let times = rotated(beds.len(), context.rounds(), |case, _| beds[case].take())?;
    let columns: [Column; 6] = [
        "workers".into(),
        "ns an exchange".into(),
        "million packets/s".into(),
        "by the fewest workers".into(),
        Column::fixed("crossed a ring", 2),
        Column::fixed("busiest by mean", 2),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new("Rate by workers", "workers", "by the fewest workers");
    let mut record = Record::new(Kind::Measured);
    for (bed, own_ns) in beds.iter().zip(&times) {
        let n_workers = bed.runners.len();
        let rates: Vec<f64> = own_ns.iter().map(|ns| 2e3 / ns).collect();
        // The rate grows as the time shrinks.
        let by_fewest = Spread::of_ratios(&times[0], own_ns);
        table.row(cells![
            n_workers,
            Spread::of(own_ns),
            Spread::of(&rates),
            by_fewest,
            bed.crossed(),
            bed.imbalance(),
        ]);
        chart.point(
            "packets per second",
            n_workers as f64,
            by_fewest.map_or(f64::NAN, |ratio| ratio.median),
        );
        if let (2, 1, Some(ratio)) = (n_workers, beds[0].runners.len(), by_fewest) {
            record.judge("two workers by one", "", Bound::AtLeast(GOAL), ratio);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(
        "Interests that miss and their Data; each thread receives as many, and all but 1/N cross \
         a ring to their home worker.",
    );
    Ok(record)
}
