//! Table 5.2: history update, eviction and admission by cache algorithm.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Bound, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_forward::Block;

use super::blocks::{self, PACKETS, PREFIXES, STORE};
use super::cycles::{Measurement, Row};
use super::policies;
use super::published::{cycles, inferred};
use super::sources::words;

/// The policies of the published table.
const PUBLISHED: &str = "fifo,random,arc,tinylfu/random,filter:1/fifo";

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/table-5.2",
    title: "Cost of history update (B2), eviction (B12) and admission (B13) by cache algorithm",
    source: "Takemasa 2019, section 5.4.3; Takemasa et al. 2019 (JIP), Table 2",
    cost: Cost::minutes(1.3, 4.0),
    needs: &[Need::MemoryGib(1.0, 4.0)],
    params: &[
        policies(
            ["fifo,random,lru,lru-local,arc,tinylfu/random,k-lru/lru,filter/fifo,filter-row/fifo,\
             filter-auto/gclock"; 3],
        ),
        Param::count("cache", "Data in the cache", ["2k", "100k", "100k"]),
        Param::new(
            "engine_policies",
            "policies of the engine whose blocks are measured",
            ParamKind::Text,
            ["fifo,filter:1/fifo", PUBLISHED, PUBLISHED],
        ),
        PREFIXES,
        STORE,
        PACKETS,
        Param::choice(
            "prefetch",
            "whether what blocks read is prefetched, as in the router, in their time",
            &["yes", "no"],
            "yes",
        ),
        Param::rounds(["3", "15", "45"]),
        Param::seed(),
    ],
    run,
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
            let both = other.zip(filter).filter(|(other, _)| *other > 0.0);
            both.map(|(other, filter)| filter / other)
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
    for (name, label) in [("arc", "ARC"), ("tinylfu/random", "TinyLFU")] {
        let ratio = of(name).zip(filter);
        let ratio = ratio.and_then(|(row, filter)| Spread::of_ratios(&filter.all_ns, &row.all_ns));
        if let Some(ratio) = ratio {
            let what = format!("all blocks of Filter by those of {label}");
            record.judge(what, "", Bound::AtMost(0.25), ratio);
        }
    }
    record.tables.push(in_packet_path(context)?);
    record.note(format!(
        "The policies alone, on {} web objects with {capacity} Data in the cache; times in \
         nanoseconds of this machine, published cycles of a Xeon E5-2699 v4 at 2.2 GHz: ratios \
         compare, not numbers.",
        measurement.n_objects
    ));
    record.note(
        "In the packet path each Interest that misses has a new name. TinyLFU admits hardly any of \
         them; Filter has a threshold of 1 there, which admits all, for with 2 it would admit none \
         and the store would stay empty. What B2 and B13 do does not depend on the threshold. B2 \
         contains the router's measurement of popularity.",
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

/// The same blocks in the packet path of the engine.
fn in_packet_path(context: &Context) -> anyhow::Result<Table> {
    let columns: [Column; 6] = [
        "policy".into(),
        Column::fixed("B2 an Interest, ns", 1),
        Column::fixed("B12 an insertion, ns", 1),
        Column::fixed("B13 a Data, ns", 1),
        Column::fixed("B10 an insertion, ns", 1),
        Column::fixed("insertion ratio", 3),
    ];
    let mut table = Table::new("In the packet path of the engine", columns);
    for name in words(context, "engine_policies") {
        let cycles = blocks::measure(context, &name)?;
        let ns = |block: Block| Some(cycles.block(block)? * cycles.clock.tick_ns);
        // Blocks are per Data that comes; where hardly any is inserted, there is no cost of one.
        let ratio = cycles.insertion_ratio;
        let by_insertion = |block: Block| Some(ns(block)? / ratio).filter(|_| ratio > 0.01);
        table.row(cells![
            name,
            ns(Block::HistoryUpdate),
            by_insertion(Block::Eviction),
            ns(Block::Admission),
            by_insertion(Block::StoreInsertion),
            ratio
        ]);
    }
    Ok(table)
}
