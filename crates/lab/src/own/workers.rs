//! What more workers gain, packets in memory.
//!
//! Takemasa 2019, section 3.1.3 and Figure 4.7, has names hashed by the network interface
//! instead, and Mansilha et al. 2017, Figure 8, a thread that dispatches. Numbers of workers
//! take turns in every round, on the same names, and so do as many engines that share nothing:
//! what workers of one router reach at best.

use anyhow::ensure;
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Bound, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table,
    cells,
};

use crate::beds::engine::params::HASH;
use crate::beds::workers::{
    BURST, Bed, DISPATCH, LATE, PREFIXES, REQUESTS, STORE, Sharing, WorkersOptions,
};

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

/// The goals: two workers by one, and by two engines that share nothing.
const GOAL: f64 = 1.8;
const GOAL_APART: f64 = 0.95;

fn run(context: &Context) -> anyhow::Result<Record> {
    let options = WorkersOptions::new(context, 0.0)?;
    let mut beds = Vec::new();
    for n_workers in context.values.counts("workers") {
        ensure!(
            (1..=64).contains(&n_workers),
            "{n_workers} workers are not 1 to 64"
        );
        for sharing in [Sharing::Router, Sharing::Nothing] {
            if sharing == Sharing::Router || n_workers > 1 {
                let mut bed = Bed::new(&options, n_workers as usize, sharing)?;
                bed.take()?;
                beds.push((sharing, bed));
            }
        }
    }
    let times = rotated(beds.len(), context.rounds(), |case, _| beds[case].1.take())?;
    let columns: [Column; 8] = [
        "workers".into(),
        "they share".into(),
        "ns an exchange".into(),
        "million packets/s".into(),
        "by the fewest workers".into(),
        "by as many that share nothing".into(),
        Column::fixed("crossed a ring", 2),
        Column::fixed("busiest by mean", 2),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new("Rate by workers", "workers", "by the fewest workers");
    let mut record = Record::new(Kind::Measured);
    for (case, (sharing, bed)) in beds.iter().enumerate() {
        let (own_ns, n_workers) = (&times[case], bed.runners.len());
        let rates: Vec<f64> = own_ns.iter().map(|ns| 2e3 / ns).collect();
        // The rate grows as the time shrinks.
        let by_fewest = Spread::of_ratios(&times[0], own_ns);
        // Those that share nothing follow those that do.
        let by_apart = match sharing {
            Sharing::Router if n_workers > 1 => Spread::of_ratios(&times[case + 1], own_ns),
            Sharing::Router | Sharing::Nothing => None,
        };
        let shared = match sharing {
            Sharing::Router => "one router",
            Sharing::Nothing => "nothing",
        };
        table.row(cells![
            n_workers,
            shared,
            Spread::of(own_ns),
            Spread::of(&rates),
            by_fewest,
            by_apart,
            bed.crossed(),
            bed.imbalance(),
        ]);
        if *sharing == Sharing::Nothing {
            continue;
        }
        chart.point(
            "packets per second",
            n_workers as f64,
            by_fewest.map_or(f64::NAN, |ratio| ratio.median),
        );
        if let (2, 1, Some(ratio)) = (n_workers, beds[0].1.runners.len(), by_fewest) {
            record.judge("two workers by one", "", Bound::AtLeast(GOAL), ratio);
        }
        if let (2, Some(ratio)) = (n_workers, by_apart) {
            let bound = Bound::AtLeast(GOAL_APART);
            record.judge("two workers by two that share nothing", "", bound, ratio);
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
