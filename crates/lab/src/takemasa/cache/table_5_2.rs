//! Table 5.2: history update, eviction and admission by cache algorithm.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Run, Table, cells,
};
use tachonym_forward::Block;

use super::cycles::{Measurement, Row};
use super::policies;
use super::published::{cycles, inferred, stated};
use super::sources::words;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/table-5.2",
    title: "Cost of history update (B2), eviction (B12) and admission (B13) by cache algorithm",
    source: "Takemasa 2019, section 5.4.3; Takemasa et al. 2019 (JIP), Table 2",
    cost: Cost::minutes(0.7, 2.0),
    needs: &[Need::MemoryGib(0.7, 0.7)],
    params: &[
        policies(
            ["fifo,random,lru,lru-local,arc,tinylfu/random,k-lru/lru,filter/fifo,filter-row/fifo,\
             filter-auto/gclock"; 3],
        ),
        Param::count("cache", "Data in the cache", ["2k", "100k", "100k"]),
        Param::choice(
            "prefetch",
            "whether what blocks read is prefetched, as in the router, in their time",
            &["yes", "no"],
            "yes",
        ),
        Param::rounds(["3", "15", "45"]),
        Param::seed(),
    ],
    run: Run::Function(run),
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let capacity = context.size("cache");
    let measurement = Measurement {
        is_ahead: context.text("prefetch") == "yes",
        ..Measurement::of(capacity, context.rounds(), context.seed())
    };
    let rows = measurement.rows(&words(context, "policies"))?;
    let filter = rows.iter().find(|row| row.policy == "filter/fifo");
    let mut record = Record::new(Kind::Measured);
    record.tables.push(table(&rows, filter));
    let of = |name: &str| rows.iter().find(|row| row.policy == name);
    for (row, name) in [("arc", "ARC"), ("tinylfu/random", "TinyLFU")] {
        let by = |block: usize| {
            let blocks = |row: &Row| row.medians().map(|medians| medians[block]).ok();
            let (other, filter) = (of(row).and_then(blocks), filter.and_then(blocks));
            other.zip(filter).map(|(other, filter)| filter / other)
        };
        let published = cycles("filter/fifo").zip(cycles(row));
        let [history, _, admit] = published.map_or([f64::NAN; 3], |(filter, other)| {
            [0, 1, 2].map(|block| filter[block] / other[block])
        });
        let place = inferred("Table 5.2");
        record.compare(
            format!("B2 of Filter by that of {name}"),
            history,
            "",
            place,
            by(0),
        );
        if row == "tinylfu/random" {
            record.compare(
                format!("B13 of Filter by that of {name}"),
                admit,
                "",
                place,
                by(2),
            );
        }
    }
    for (name, block, value) in [("Filter", "B13", 28.0), ("TinyLFU", "B13", 282.0)] {
        let what = format!("{block} of {name}");
        record.compare(what, value, "cycles", stated("Table 5.2"), None);
    }
    record.note(format!(
        "The policies alone, on {} web objects with {capacity} Data in the cache; times in \
         nanoseconds of this machine, published cycles of a Xeon E5-2699 v4 at 2.2 GHz: ratios \
         compare, not numbers.",
        measurement.n_objects
    ));
    record.note(
        "TinyLFU's admission takes 282 cycles in Table 5.2 and 288 in section 5.2.4. Section 5.1.1 \
         has admission cheaper than eviction, which does not hold for TinyLFU (282) beside ARC \
         (202). The few tens of cycles of the text are Filter's admission alone; with its history \
         update it takes 111.",
    );
    record.note(
        "B12 here contains the insertion into the order of the policy, which the published B12 \
         leaves to B10.",
    );
    Ok(record)
}

fn table(rows: &[Row], filter: Option<&Row>) -> Table {
    let mut table = Table::new(
        "",
        [
            "policy",
            "B2 an Interest, ns",
            "B2 published, cycles",
            "B12 an insertion, ns",
            "B12 published, cycles",
            "B13 a Data, ns",
            "B13 published, cycles",
            "all an Interest, ns",
            "all by Filter's",
            "hit ratio",
            "memory, MiB",
        ],
    );
    for row in rows {
        let published = cycles(&row.policy);
        let published = |block: usize| published.map(|cycles| cycles[block]);
        let by_filter = filter.and_then(|filter| Spread::of_ratios(&row.all_ns, &filter.all_ns));
        table.row(cells![
            row.policy.clone(),
            Spread::of(&row.history_ns),
            published(0),
            Spread::of(&row.evict_ns),
            published(1),
            Spread::of(&row.admit_ns),
            published(2),
            Spread::of(&row.all_ns),
            by_filter,
            row.hit_ratio,
            row.memory_bytes as f64 / f64::from(1 << 20)
        ]);
    }
    table
}
