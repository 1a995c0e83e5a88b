//! Figure 5.5: insertion ratios of Filter and TinyLFU on three workloads.

use tachonym_bench::{Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells};

use super::grid::{self, Grid, MIN_REQUESTS, REQUESTS, Row, WARM, WEB_SHARE, percent, shrink};
use super::policies;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-5.5",
    title: "Insertion ratios of Filter and TinyLFU on three workloads",
    source: "Takemasa 2019, section 5.4.2; Takemasa et al. 2019 (JIP), Figure 5",
    cost: Cost::minutes(0.4, 60.0),
    needs: &[Need::MemoryGib(0.5, 20.0)],
    params: &[
        policies(["filter/fifo,tinylfu/random,filter-auto/gclock"; 3]),
        grid::workloads("web,video,mixed"),
        percent(["1,10", "1,2,3,4,5,6,7,8,9,10", "1,2,3,4,5,6,7,8,9,10"]),
        shrink(["2k", "50", "1"]),
        WARM,
        REQUESTS,
        MIN_REQUESTS,
        WEB_SHARE,
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let grid = Grid::of(context)?;
    let rows = grid.rows()?;
    let mut record = Record::new(Kind::Simulated);
    record.tables.push(grid::table("", &rows));
    record.charts = grid::charts(&rows, "insertions by Data that arrive", |row| {
        row.insertion_ratio
    });
    let order = order(&grid, &rows);
    let is_always_less = order.rows.iter().all(|row| row[2].number() == Some(0.0));
    record.tables.push(order);
    record.note(
        "The text states no number of the figure, only that Filter inserts less than TinyLFU on \
         every workload and with every size.",
    );
    if !is_always_less {
        record.note(
            "Where TinyLFU inserts less here, ties decide: a Data that was requested as often as \
             its victim is not admitted here, and the text does not say what the published one \
             does.",
        );
    }
    record.note(grid.note());
    if let Some(readings) = grid.readings() {
        record.note(readings);
    }
    Ok(record)
}

/// At how many sizes Filter inserts less than TinyLFU.
fn order(grid: &Grid, rows: &[Row]) -> Table {
    let mut table = Table::new(
        "Sizes of the cache",
        [
            "workload",
            "Filter inserts less than TinyLFU",
            "as much or more",
        ],
    );
    for &workload in &grid.workloads {
        let ratio = |policy: &str, percent: u64| {
            let row = grid::find(rows, workload, policy, percent);
            row.map(|row| row.insertion_ratio)
        };
        let pairs = grid.percents.iter().filter_map(|&percent| {
            ratio("filter/fifo", percent).zip(ratio("tinylfu/random", percent))
        });
        let is_less: Vec<bool> = pairs.map(|(filter, tiny)| filter < tiny).collect();
        let n_less = is_less.iter().filter(|is_less| **is_less).count();
        table.row(cells![workload.label(), n_less, is_less.len() - n_less]);
    }
    table
}
