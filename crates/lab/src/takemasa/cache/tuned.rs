//! Filter that tunes itself beside fixed settings of Filter, on every workload here.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Bound, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};

use super::grid::{self, Grid, MIN_REQUESTS, REQUESTS, Row, WARM, WEB_SHARE, percent, shrink};
use super::policies;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/cache-tuned",
    title: "Filter that tunes itself beside Filter with fixed settings",
    source: "",
    cost: Cost::minutes(0.3, 120.0),
    needs: &[Need::MemoryGib(0.7, 20.0)],
    params: &[
        Param::new(
            "auto",
            "Filter that tunes itself",
            ParamKind::Text,
            ["filter-auto/gclock"; 3],
        ),
        policies(
            ["filter/fifo,filter/clock,filter/gclock,filter:3:1/gclock,filter:2:3/gclock,\
             filter:3:3/gclock,filter:3:10/gclock,filter:5:10/gclock"; 3],
        ),
        grid::workloads("web,video,mixed,drift,scans,one-timers"),
        percent(["10", "1,3,10", "1,3,10"]),
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
    let mut grid = Grid::of(context)?;
    let auto = context.text("auto").to_owned();
    grid.policies.insert(0, auto.clone());
    let rows = grid.rows()?;
    let columns: [Column; 10] = [
        "workload".into(),
        "cache, %".into(),
        Column::fixed("hit ratio", 4),
        Column::fixed("insertion ratio", 4),
        "best as published".into(),
        Column::fixed("its hit ratio", 4),
        Column::fixed("points off", 2),
        "best of all settings".into(),
        Column::fixed("its own hit ratio", 4),
        Column::fixed("points off it", 2),
    ];
    let mut table = Table::new("", columns);
    let mut least = f64::INFINITY;
    for own in rows.iter().filter(|row| row.policy == auto) {
        let is_beside = |row: &&Row| {
            (row.workload, row.percent) == (own.workload, own.percent) && row.policy != auto
        };
        let beside: Vec<&Row> = rows.iter().filter(is_beside).collect();
        let best = |rows: &mut dyn Iterator<Item = &&Row>| {
            let best = rows.max_by(|a, b| a.hit_ratio.total_cmp(&b.hit_ratio));
            let points = |best: &Row| 100.0 * (own.hit_ratio - best.hit_ratio);
            best.map(|best| (best.policy.clone(), best.hit_ratio, points(best)))
        };
        // Threshold and history as published have no settings in the policy's name.
        let published = best(&mut beside.iter().filter(|row| !row.policy.contains(':')));
        let of_all = best(&mut beside.iter());
        if let Some((_, _, points)) = published {
            least = least.min(points);
        }
        let cells_of = |best: Option<(String, f64, f64)>| {
            let name = best.as_ref().map(|best| best.0.clone());
            let ratio = best.as_ref().map(|best| best.1);
            cells![name, ratio, best.map(|best| best.2)]
        };
        let own_cells = cells![
            own.workload.label(),
            own.percent,
            own.hit_ratio,
            own.insertion_ratio
        ];
        table.row(
            own_cells
                .into_iter()
                .chain(cells_of(published))
                .chain(cells_of(of_all)),
        );
    }
    let mut record = Record::new(Kind::Simulated);
    record.tables.push(table);
    record.charts = grid::charts(&rows, "hits by Interests", |row| row.hit_ratio);
    if let Some(spread) = Spread::of(&[least]) {
        let what = "least difference to Filter with the published threshold and history, with the \
                    eviction that is best";
        record.judge(
            what,
            "points of the hit ratio",
            Bound::AtLeast(-1.0),
            spread,
        );
    }
    record.note(grid.note());
    record.note(
        "The published settings are a threshold of 2 and a history as long as the cache is large; \
         the best of all settings is known only afterwards.",
    );
    Ok(record)
}
