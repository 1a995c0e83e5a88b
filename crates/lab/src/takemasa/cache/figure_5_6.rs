//! Figure 5.6: hit ratios of cache algorithms on three workloads.

use tachonym_bench::{Context, Cost, Experiment, Kind, Need, Param, Record};
use tachonym_policy::model::Popularity;

use super::grid::{self, Grid, MIN_REQUESTS, REQUESTS, Row, WARM, WEB_SHARE, percent, shrink};
use super::policies;
use super::published::{N_WEB, WEB_HIT_RATIOS, WEB_PERCENT, inferred, stated};
use super::sources::{ALPHA, Workload};

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-5.6",
    title: "Hit ratios of cache algorithms on three workloads",
    source: "Takemasa 2019, section 5.4.2; Takemasa et al. 2019 (JIP), Figure 6",
    cost: Cost::minutes(0.6, 120.0),
    needs: &[Need::MemoryGib(1.0, 40.0)],
    params: &[
        policies(
            ["fifo,random,lfu,lfu-perfect,arc,tinylfu/random,filter/fifo,filter-auto/gclock"; 3],
        ),
        grid::workloads("web,video,mixed"),
        percent(["1,10", "1,2,3,5,7,10", "1,2,3,4,5,6,7,8,9,10"]),
        shrink(["2k", "50", "1"]),
        Param::count(
            "point_objects",
            "web objects of the one size that is published in numbers",
            ["10k", "10M", "10M"],
        ),
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
    let n_objects = context.count("point_objects");
    let point = grid.web_point(n_objects, WEB_PERCENT).rows()?;
    let mut record = Record::new(Kind::Simulated);
    record.tables.push(grid::table("", &rows));
    record.charts = grid::charts(&rows, "hits by Interests", |row| row.hit_ratio);
    let title = format!("The published size: {n_objects} web objects");
    record.tables.push(grid::table(&title, &point));
    for (policy, value) in WEB_HIT_RATIOS {
        let of_web = record.charts.iter_mut().find(|it| it.title == "web");
        if let Some(chart) = of_web {
            chart.published(policy, WEB_PERCENT as f64, value);
        }
    }
    compare(&mut record, n_objects, &point);
    record.note(grid.note());
    if let Some(readings) = grid.readings() {
        record.note(readings);
    }
    Ok(record)
}

/// Compares the published numbers, which only the published size allows.
fn compare(record: &mut Record, n_objects: u64, point: &[Row]) {
    let here = |policy: &str| {
        let row = grid::find(point, Workload::Web, policy, WEB_PERCENT);
        row.filter(|_| n_objects == N_WEB).map(|row| row.hit_ratio)
    };
    let mut less = Vec::new();
    for (policy, value) in WEB_HIT_RATIOS {
        let what = format!("hit ratio of {policy}, web, 10^5 Data");
        record.compare(what, value, "", stated("section 5.4.2"), here(policy));
        less.extend(here(policy).map(|here| value - here));
    }
    let by_fifo = here("filter/fifo").zip(here("fifo"));
    record.compare(
        "hit ratio of Filter by that of FIFO",
        0.341 / 0.238,
        "",
        inferred("section 5.4.2"),
        by_fifo.map(|(filter, fifo)| filter / fifo),
    );
    if n_objects != N_WEB {
        record.note(format!(
            "The published numbers are of {N_WEB} objects and stand beside none of {n_objects}: \
             with fewer objects, the same share of them is hit less often."
        ));
        return;
    }
    let capacity = (n_objects * WEB_PERCENT / 100) as f64;
    let best = Popularity::zipf(n_objects, ALPHA).best_hit_ratio(capacity);
    record.note(higher(&less, best));
}

/// How the published numbers differ from those here, and which of them no cache reaches.
fn higher(less: &[f64], best: f64) -> String {
    let min = less.iter().copied().fold(f64::INFINITY, f64::min);
    let max = less.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut text = format!(
        "The published hit ratios less those here are {min:.4} to {max:.4}. The {:.0} most popular \
         objects get {best:.4} of the requests, which no cache exceeds in the long run if requests \
         are independent.",
        N_WEB as f64 / 100.0
    );
    let beyond = WEB_HIT_RATIOS.iter().filter(|(_, value)| *value > best);
    let beyond: Vec<_> = beyond
        .map(|(policy, value)| format!("{policy} ({value})"))
        .collect();
    if !beyond.is_empty() {
        text += &format!(
            " Published above that: {}. A short trace, whose own most frequent objects a cache \
             learns, or objects that are never requested would explain it; the text states neither.",
            beyond.join(", ")
        );
    }
    text
}
