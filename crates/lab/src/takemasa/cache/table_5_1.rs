//! Table 5.1: cycles of the blocks that are the same with every cache algorithm.

use tachonym_bench::{Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells};
use tachonym_forward::Block;

use super::blocks::{self, PACKETS, PREFIXES, STORE};
use super::published::{block as published, stated};
use crate::beds::engine::cycles::TICK;
use crate::instructions::title;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/table-5.1",
    title: "Cost of the blocks of the packet path",
    source: "Takemasa 2019, section 5.4.3; Takemasa et al. 2019 (JIP), Table 1",
    cost: Cost::minutes(0.1, 2.0),
    needs: &[Need::MemoryGib(0.5, 4.0)],
    params: &[
        PREFIXES,
        STORE,
        PACKETS,
        Param::rounds(["3", "11", "31"]),
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let cycles = blocks::measure(context, "fifo")?;
    let mut record = Record::new(Kind::Measured);
    let ticks = format!("{TICK}s");
    let columns: [Column; 4] = [
        "block".into(),
        Column::fixed(ticks, 0),
        Column::fixed("ns", 1),
        Column::fixed("published cycles", 0),
    ];
    let mut table = Table::new("", columns);
    for block in Block::ALL {
        let number = block.number().filter(|number| published(*number) > 0.0);
        let Some((number, here)) = number.zip(cycles.block(block)) else {
            continue;
        };
        let ns = here * cycles.clock.tick_ns;
        table.row(cells![title(block), here, ns, published(number)]);
        let place = stated("Table 5.1");
        record.compare(title(block), published(number), "cycles", place, Some(here));
    }
    record.tables.push(table);
    record.note(
        "The content store evicts first in, first out. A block's time is the median over rounds \
         for each kind of packet that enters it, and the mean over these kinds. Cycles here are \
         those of the time-stamp counter, which counts at the processor's nominal rate.",
    );
    Ok(record)
}
