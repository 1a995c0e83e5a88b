//! How many packets the schedule `burst` fetches for together.
//!
//! With too few, a step waits for the memory that the one before has asked for. With too
//! many, the processor has no room for as many fetches, or the first lines have left its
//! cache again. Takemasa 2019, section 4.3, fetches one packet ahead.

use tachonym_bench::stats::{Spread, median};
use tachonym_bench::{
    Axis, Bound, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record,
    Table, cells,
};
use tachonym_forward::{BURST_DISTANCE, MAX_BURST_DISTANCE, Schedule};

use crate::beds::engine::params::{
    BURST, HASH, LATE, PACKETS, PAGES, PIT_CS, PREFIXES, STORE, n_bursts, options, policy_of,
};
use crate::beds::engine::rates::{Plan, Setting, measure, spread};

/// The experiment.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/distance",
    title: "Time of a packet by the number of packets that are fetched for together",
    source: "",
    cost: Cost::minutes(0.1, 6.0),
    needs: &[Need::MemoryGib(1.0, 8.0)],
    params: &[
        PREFIXES,
        BURST,
        STORE,
        LATE,
        PACKETS,
        policy_of("lru"),
        PIT_CS,
        HASH,
        PAGES,
        Param::new(
            "distances",
            "numbers of packets to compare",
            ParamKind::Counts,
            ["1,16,64", "1,2,4,8,16,32", "1,2,4,8,12,16,24,32,64"],
        ),
        Param::rounds(["2", "15", "31"]),
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let distances = context.values.counts("distances");
    for &distance in &distances {
        let is_known = (1..=MAX_BURST_DISTANCE as u64).contains(&distance);
        anyhow::ensure!(is_known, "a distance is from 1 to {MAX_BURST_DISTANCE}");
    }
    let burst = |&distance: &u64| Setting {
        schedule: Schedule::Burst,
        distance: distance as usize,
    };
    let settings = [Schedule::Naive.into()].into_iter();
    let rates = measure(&Plan {
        bed: options(context)?,
        n_threads: vec![1],
        settings: settings.chain(distances.iter().map(burst)).collect(),
        n_rounds: context.rounds(),
        n_bursts: n_bursts(context),
    })?;
    let mut table = Table::new(
        "",
        [
            Column::new("distance, packets"),
            Column::fixed("I-miss, ns", 0),
            Column::fixed("Data, ns", 0),
            Column::fixed("both, ns", 0),
            Column::fixed("both, by naive", 3),
        ],
    );
    let mut chart = Chart::new("Time by prefetch distance", "distance, packets", "ns");
    chart.x_axis = Axis::Log;
    let mut record = Record::new(Kind::Measured);
    let naive = rates.rates[0].exchange_ns();
    for rate in &rates.rates {
        let both = rate.exchange_ns();
        let by_naive = Spread::of_ratios(&both, &naive);
        let label = match rate.setting.schedule {
            Schedule::Naive => "naive".to_owned(),
            _ => rate.setting.distance.to_string(),
        };
        table.row(cells![
            label,
            spread(&rate.miss_ns)?,
            spread(&rate.data_ns)?,
            spread(&both)?,
            by_naive.map(|it| it.median),
        ]);
        if rate.setting.schedule == Schedule::Burst {
            let x = rate.setting.distance as f64;
            chart.point("both", x, median(&both));
            chart.point("both, naive", x, median(&naive));
            chart.point("I-miss", x, median(&rate.miss_ns));
            chart.point("Data", x, median(&rate.data_ns));
        }
        if let (true, Some(by_naive)) = (rate.setting.distance == BURST_DISTANCE, by_naive)
            && rate.setting.schedule == Schedule::Burst
        {
            let what = format!("time at the default distance {BURST_DISTANCE}, by naive");
            record.judge(what, "", Bound::AtMost(1.0), by_naive);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    Ok(record)
}
