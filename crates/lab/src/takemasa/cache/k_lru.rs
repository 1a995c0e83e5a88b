//! k-LRU beside LRU and the other admissions of Mansilha et al. 2017, section 2.1.

use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_policy::model::{KLruModel, Popularity};

use super::grid::shrink;
use super::policies;
use super::sources::{ALPHA, Cell, Workload, policy, simulate_all, words};

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "mansilha/k-lru",
    title: "Hit ratio of k-LRU beside LRU and probabilistic admission, simulated and by a model",
    source: "Mansilha et al. 2017, section 2.1",
    cost: Cost::minutes(0.2, 10.0),
    needs: &[Need::MemoryGib(0.4, 2.0)],
    params: &[
        policies(["lru,lcp/lru,k-lru:2/lru,k-lru:3/lru,k-lru:4/lru,filter/lru"; 3]),
        Param::new(
            "permille",
            "sizes of the cache, thousandths of the objects",
            ParamKind::Counts,
            ["10,100", "1,3,10,30,100", "1,3,10,30,100"],
        ),
        shrink(["1k", "10", "1"]),
        Param::count(
            "warm",
            "requests before measurement begins, as a multiple of the cache, and no fewer than \
             the objects",
            ["100"; 3],
        ),
        Param::count(
            "requests",
            "requests that are measured",
            ["20k", "3M", "10M"],
        ),
        Param::seed(),
    ],
    run,
}];

/// The hit ratio by the model, for LRU and k-LRU.
fn modelled(name: &str, capacity: usize, popularity: &Popularity) -> Option<f64> {
    let n_stages = match name {
        "lru" => 1,
        _ => name
            .strip_prefix("k-lru:")?
            .strip_suffix("/lru")?
            .parse()
            .ok()?,
    };
    let capacity = capacity as f64;
    Some(KLruModel { capacity, n_stages }.hit_ratio(popularity))
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let shrink = context.values.count32("shrink");
    let n_objects = Workload::Web.n_objects(shrink);
    let popularity = Popularity::zipf(u64::from(n_objects), ALPHA);
    let sizes = context.values.counts("permille").into_iter();
    let sizes: Vec<usize> = sizes
        .map(|permille| (u64::from(n_objects) * permille / 1_000) as usize)
        .collect();
    let names = words(context, "policies");
    let mut cells = Vec::new();
    for name in &names {
        for &capacity in &sizes {
            let n_warm = context.count("warm") * capacity as u64;
            cells.push(Cell {
                workload: Workload::Web,
                shrink,
                config: policy(name, capacity)?,
                n_warm: n_warm.max(n_objects.into()),
                n_requests: context.count("requests"),
                web_share: 1.0,
                seed: context.seed(),
            });
        }
    }
    let counts = simulate_all(&cells)?;
    let columns: [Column; 6] = [
        "policy".into(),
        "Data in the cache".into(),
        Column::fixed("hit ratio", 4),
        Column::fixed("hit ratio, model", 4),
        Column::fixed("insertion ratio", 4),
        Column::fixed("of the best that no cache exceeds", 4),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new("", "Data in the cache", "hits by Interests");
    chart.x_axis = tachonym_bench::Axis::Log;
    let named = names
        .iter()
        .flat_map(|name| sizes.iter().map(move |_| name));
    for ((name, cell), counts) in named.zip(&cells).zip(&counts) {
        let capacity = cell.config.capacity;
        let by_model = modelled(name, capacity, &popularity);
        table.row(cells![
            name.as_str(),
            capacity,
            counts.hit_ratio(),
            by_model,
            counts.insertion_ratio(),
            counts.hit_ratio() / popularity.best_hit_ratio(capacity as f64)
        ]);
        chart.point(name, capacity as f64, counts.hit_ratio());
        if let Some(ratio) = by_model {
            let model = format!("{name}, model");
            chart.point(&model, capacity as f64, ratio);
            let simulated = chart.lines.iter().position(|line| line.label == *name);
            chart.line(&model).model_of = simulated;
        }
    }
    let mut record = Record::new(Kind::Simulated);
    record.tables.push(table);
    record.charts.push(chart);
    record.note(format!(
        "{n_objects} objects of Zipf popularity {ALPHA}, independent requests. The paper names \
         LCP and k-LRU as admissions and measures neither; it says that k-LRU comes near LFU when \
         the popularity of objects does not change, which the last column shows."
    ));
    record.note(
        "k-LRU is a chain of k caches, of which the last one holds Data and each other one as many \
         names; lcp admits with probability 0.1.",
    );
    Ok(record)
}
