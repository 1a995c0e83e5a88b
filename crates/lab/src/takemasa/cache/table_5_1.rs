//! Table 5.1: cycles of the blocks that are the same with every cache algorithm.

use tachonym_bench::{Context, Cost, Experiment, Kind, Need, Param, Record, Run, Table, cells};

use super::blocks::{self, Sizes};
use super::published::{block, stated};
use crate::sys::clock::TICK;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/table-5.1",
    title: "Cost of the blocks of the packet path",
    source: "Takemasa 2019, section 5.4.3; Takemasa et al. 2019 (JIP), Table 1",
    cost: Cost::minutes(0.3, 2.0),
    needs: &[Need::MemoryGib(0.5, 4.0)],
    params: &[
        Param::count("prefixes", "FIB prefixes", ["2k", "1M", "13548815"]),
        Param::count(
            "store",
            "Data in the content store",
            ["4096", "100k", "100k"],
        ),
        Param::count(
            "packets",
            "packets of each kind in a round",
            ["1024", "16k", "16k"],
        ),
        Param::rounds(["3", "11", "31"]),
        Param::seed(),
    ],
    run: Run::Function(run),
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let sizes = Sizes {
        n_fib_prefixes: context.count("prefixes"),
        store_pkts: context.values.count32("store"),
        n_rounds: context.rounds() as u16,
        n_packets: context.values.count32("packets"),
        seed: context.seed(),
    };
    let measured = blocks::measure(sizes)?;
    let mut record = Record::new(Kind::Measured);
    let ticks = format!("{TICK}s");
    let columns = [
        "block",
        "ns",
        "ns by kind of packet",
        &ticks,
        "published cycles",
    ];
    let mut table = Table::new("", columns);
    let is_cycles = TICK != "nanosecond";
    for of in &measured {
        let by_kind = of.ns_by_kind.iter();
        let by_kind: Vec<_> = by_kind
            .map(|(kind, ns)| format!("{kind} {ns:.0}"))
            .collect();
        let published = block(of.number);
        table.row(cells![
            of.block.clone(),
            of.ns,
            by_kind.join(", "),
            of.ticks,
            published
        ]);
        let here = is_cycles.then_some(of.ticks);
        record.compare(
            of.block.clone(),
            published,
            "cycles",
            stated("Table 5.1"),
            here,
        );
    }
    record.tables.push(table);
    record.note(
        "A block's time is the median over rounds for each kind of packet that enters it, and the \
         mean over these kinds. Cycles are those of the time-stamp counter, which ticks at the \
         processor's nominal rate.",
    );
    record.note(
        "Section 5.1.2 takes 188 cycles for B10, Table 5.1 has 329; only 329 agrees with the 2016 \
         cycles of section 3.3.2.",
    );
    Ok(record)
}
