//! LRU by local search: timestamps instead of a list, Yuan 2015, section 6.1.3.

use tachonym_bench::stats::Spread;
use tachonym_bench::{Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells};

use super::cycles::{Measurement, Row};
use super::policies;
use super::sources::words;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "yuan/lru-local",
    title: "LRU and LFU by local search beside the same policies over all Data",
    source: "Yuan 2015, section 6.1.3",
    cost: Cost::minutes(0.2, 2.0),
    needs: &[Need::MemoryGib(0.5, 1.0)],
    params: &[
        policies(["lru,lru-local,lfu,lfu-local,fifo"; 3]),
        Param::count("cache", "Data in the cache", ["2k", "100k", "1M"]),
        Param::rounds(["3", "21", "45"]),
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let capacity = context.size("cache");
    let measurement = Measurement::of(capacity, context.rounds(), context.seed());
    let rows = measurement.rows(&words(context, "policies"))?;
    let columns: [Column; 6] = [
        "policy".into(),
        Column::fixed("hit ratio", 4),
        "history update an Interest, ns".into(),
        "eviction and insertion, ns".into(),
        "by the policy over all".into(),
        "bytes a Data".into(),
    ];
    let mut table = Table::new("", columns);
    for row in &rows {
        let whole = row.policy.strip_suffix("-local");
        let whole = whole.and_then(|whole| rows.iter().find(|row| row.policy == whole));
        let ratio = |whole: &Row| Spread::of_ratios(&row.all_ns, &whole.all_ns);
        table.row(cells![
            row.policy.clone(),
            row.hit_ratio,
            Spread::of(&row.history_ns),
            Spread::of(&row.evict_ns),
            whole.and_then(ratio),
            row.memory_bytes as f64 / capacity as f64
        ]);
    }
    let mut record = Record::new(Kind::Measured);
    record.tables.push(table);
    record.note(format!(
        "{} web objects, {capacity} Data in the cache. The last ratio is of both times, each as \
         often as it comes, to those of the policy without local search, by round.",
        measurement.n_objects
    ));
    record.note(
        "The thesis describes local search and measures nothing of it. It searches the entries that \
         an insertion visits, d buckets of a d-left table; here 16 (LRU) or 32 (LFU) neighbouring \
         slots are searched, which are one cache line of timestamps or counts.",
    );
    Ok(record)
}
