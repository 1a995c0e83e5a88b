//! Where the cycles of the packet path go: Takemasa 2019, sections 3.2 and 3.3, on the
//! router's own engine. Blocks have the numbers of section 5.1.

use tachonym_bench::{
    Cell, Chart, Column, Context, Cost, Experiment, Kind as RecordKind, Need, Param, ParamKind,
    Record, Reference, Scale, Table, cells,
};
use tachonym_forward::{Block, Schedule};

use super::bottleneck_counters::{self as counters, Counted};
use super::bottleneck_published as published;
use crate::beds::engine::cycles::{Cycles, TICK};
use crate::beds::engine::params::{
    BURST, HASH, LATE, PACKETS, PAGES, PIT_CS, PREFIXES, STORE, n_bursts, options, policy_of,
};
use crate::beds::engine::{Bed, BedOptions, Kind};
use crate::instructions::{self, CountError, CountOptions, KindCount};

/// The experiment.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/bottleneck",
    title: "Cycles, stalls and loads of a packet, whole and by block of the packet path",
    source: "Takemasa 2019, sections 3.2.3 and 3.3.2",
    cost: Cost::minutes(0.6, 6.0),
    needs: &[Need::Pmu, Need::MemoryGib(1.5, 8.0)],
    params: PARAMS,
    run,
}];

const PARAMS: &[Param] = &[
    PREFIXES,
    BURST,
    STORE,
    LATE,
    PACKETS,
    policy_of("fifo"),
    SCHEDULE,
    PIT_CS,
    HASH,
    PAGES,
    INSTRUCTIONS,
    Param::rounds(["2", "11", "31"]),
    Param::seed(),
];

const SCHEDULE: Param = Param::choice(
    "schedule",
    "order of work in a burst",
    &["naive", "bucket-prefetch", "pre-hash", "shtl", "burst"],
    "burst",
);
pub(super) const INSTRUCTIONS: Param = Param::new(
    "instructions",
    "whether instructions are counted, by stepping",
    ParamKind::Choice(&["yes", "no"]),
    ["no", "yes", "yes"],
);

/// Prefixes of the process whose instructions are counted, at most: their number hardly
/// changes the count, and two large tables at once need not fit.
const MAX_COUNTED_PREFIXES: u64 = 100_000;
/// Data in its content store, at most.
const MAX_COUNTED_STORE_PKTS: usize = 8_192;
/// Packets of each kind whose instructions are counted.
const N_COUNTED_PKTS: usize = 64;

fn run(context: &Context) -> anyhow::Result<Record> {
    let options = BedOptions {
        schedule: context.text("schedule").parse::<Schedule>()?,
        ..options(context)?
    };
    // Before the tables take their memory.
    let counts = count_instructions(context, &options)?;
    let mut bed = Bed::new(options)?;
    let n_bursts = n_bursts(context);
    let cycles = Cycles::measure(&mut bed, context.rounds(), n_bursts)?;
    let counted = counters::count(&mut bed, n_bursts);
    bed.check()?;
    let mut record = Record::new(RecordKind::Measured);
    record.tables.push(packets(&cycles, &counts));
    record.tables.push(blocks(&cycles, &counts));
    record.charts.push(chart(&cycles));
    if let Err(refusal) = &counted {
        record.note(format!(
            "Tables 3.2 to 3.5 stay empty: the kernel opens no counter of the processor \
             ({refusal})."
        ));
    }
    record
        .tables
        .push(counter_table(&counted.unwrap_or_default()));
    compare(&mut record, &cycles);
    add_notes(&mut record, context, &cycles);
    Ok(record)
}

/// Counts by kind; none if they were not asked for or the machine does not allow it.
pub(super) fn count_instructions(
    context: &Context,
    bed: &BedOptions,
) -> anyhow::Result<Vec<KindCount>> {
    if context.text("instructions") == "no" {
        return Ok(Vec::new());
    }
    let options = CountOptions {
        n_prefixes: bed.n_prefixes.min(MAX_COUNTED_PREFIXES),
        burst_pkts: bed.burst_pkts,
        store_pkts: bed.store_pkts.min(MAX_COUNTED_STORE_PKTS),
        n_pkts: match context.scale {
            Scale::Tiny => bed.burst_pkts,
            Scale::Quick | Scale::Full => N_COUNTED_PKTS.max(bed.burst_pkts),
        },
        seed: bed.seed,
        pit_cs: bed.pit_cs,
        name_hash: bed.name_hash,
        schedule: bed.schedule,
    };
    match instructions::count(&context.program, &options) {
        Ok(counts) => {
            context.note(format!(
                "Instructions are counted by stepping, with {} prefixes and the policy lru.",
                options.n_prefixes
            ));
            Ok(counts)
        }
        Err(CountError::Unavailable(reason)) => {
            context.note(format!("Instructions cannot be counted: {reason}."));
            Ok(Vec::new())
        }
        Err(CountError::Failed(error)) => Err(error),
    }
}

fn packets(cycles: &Cycles, counts: &[KindCount]) -> Table {
    let ticks = format!("{TICK}s");
    let mut table = Table::new(
        "A packet (Table 3.1)",
        [
            Column::new("packet"),
            Column::fixed(ticks, 0),
            Column::fixed("ns", 0),
            Column::fixed("published cycles", 0),
            Column::fixed("instructions", 0),
            Column::fixed("of the C library", 0),
            Column::fixed("memory traffic, bytes", 0),
            Column::fixed("published bytes", 0),
        ],
    );
    for (idx, kind) in Kind::ALL.into_iter().enumerate() {
        let whole = cycles.of(kind).whole;
        let count = counts.get(idx).map(|count| count.total);
        table.row(cells![
            kind.label(),
            whole,
            whole.median * cycles.clock.tick_ns,
            published::CYCLES.values[idx],
            count.map(|count| count.own),
            count.map(|count| count.library),
            Cell::Missing,
            published::MEMORY_BYTES.values[idx],
        ]);
    }
    table
}

/// The blocks, in the order of their numbers, with what no figure has at the end.
fn blocks(cycles: &Cycles, counts: &[KindCount]) -> Table {
    let title = format!("Blocks of the packet path, {TICK}s per packet");
    let kinds = Kind::ALL.map(Kind::label);
    let counted = kinds.map(|kind| Column::fixed(format!("{kind}, instructions"), 0));
    let columns = [Column::new("block"), Column::new("in Figure 3.3")];
    let columns = columns
        .into_iter()
        .chain(kinds.map(|kind| Column::fixed(kind, 0)))
        .chain([Column::fixed("published cycles (Table 5.1)", 0)])
        .chain(counted);
    let mut table = Table::new(title, columns);
    for block in Block::ALL {
        let of_kinds = Kind::ALL.map(|kind| cycles.of(kind).block(block));
        if of_kinds.iter().all(Option::is_none) {
            continue;
        }
        let in_figure = block.number_in_figure_3_3();
        let mut row = vec![
            Cell::from(instructions::title(block)),
            Cell::from(in_figure.map(|number| format!("B{number}"))),
        ];
        row.extend(of_kinds.map(Cell::from));
        row.push(published::block(block).into());
        let counted = |idx: usize| -> Option<f64> {
            let of_kind = counts.get(idx)?;
            let found = of_kind.blocks.iter().find(|it| it.block == block)?;
            Some(found.count.own)
        };
        row.extend((0..kinds.len()).map(|idx| Cell::from(counted(idx))));
        table.row(row);
    }
    let whole = Kind::ALL.map(|kind| cycles.of(kind).all_blocks);
    let mut row = vec![Cell::from("all, with borders"), Cell::Missing];
    row.extend(whole.map(Cell::from));
    row.extend([const { Cell::Missing }; 4]);
    table.row(row);
    table
}

fn counter_table(counted: &[Counted; 3]) -> Table {
    let kinds = Kind::ALL.map(Kind::label);
    let columns = ["table", "per packet"].map(Column::new);
    let columns = columns
        .into_iter()
        .chain(kinds.map(|kind| Column::fixed(kind, 1)))
        .chain(kinds.map(|kind| Column::fixed(format!("{kind}, published"), 0)));
    let mut table = Table::new("Counters of the processor (Tables 3.2 to 3.5)", columns);
    for row in published::COUNTERS {
        let here = counted.map(|it| -> Option<f64> {
            let [l1d, l2, l3, dram] = it.loads_by_level();
            match row.what {
                "total" => it.cycles,
                "front end" => it.frontend,
                "back end" => it.backend,
                "loads" => it.loads,
                "loads from L1D" => l1d,
                "loads from L2" => l2,
                "loads from L3" => l3,
                "loads from DRAM" => dram,
                _ => None,
            }
        });
        let mut cells = vec![Cell::from(row.place), Cell::from(row.what)];
        cells.extend(here.map(Cell::from));
        cells.extend(row.values.map(Cell::from));
        table.row(cells);
    }
    type Figure = fn(&Counted) -> Option<f64>;
    let ours: [(&str, Figure); 4] = [
        ("speculation and retirement", Counted::busy),
        ("instructions", |it| it.instructions),
        ("instructions a cycle", |it| {
            Some(it.instructions? / it.cycles?)
        }),
        ("branch misses", |it| it.branch_misses),
    ];
    for (what, figure) in ours {
        let mut cells = vec![Cell::from("not published"), Cell::from(what)];
        cells.extend(counted.each_ref().map(|it| Cell::from(figure(it))));
        cells.extend([const { Cell::Missing }; 3]);
        table.row(cells);
    }
    table
}

fn chart(cycles: &Cycles) -> Chart {
    let is_numbered = |block: &Block| block.number().is_some();
    let entered = |block: &Block| cycles.block(*block).is_some();
    let blocks: Vec<_> = Block::ALL
        .into_iter()
        .filter(is_numbered)
        .filter(entered)
        .collect();
    let labels = blocks
        .iter()
        .map(|it| format!("B{}", it.number().unwrap_or_default()));
    let title = "Cycles of each block; crosses: Table 5.1";
    let mut chart = Chart::bars(title, labels, format!("{TICK}s per packet"));
    for (group, &block) in blocks.iter().enumerate() {
        for kind in Kind::ALL {
            if let Some(ticks) = cycles.of(kind).block(block) {
                chart.point(kind.label(), group as f64, ticks.median);
            }
        }
        let first = Kind::ALL
            .into_iter()
            .find(|&kind| cycles.of(kind).block(block).is_some());
        if let Some((kind, cycles)) = first.zip(published::block(block)) {
            chart.published(kind.label(), group as f64, cycles.into());
        }
    }
    chart
}

fn compare(record: &mut Record, cycles: &Cycles) {
    for (idx, kind) in Kind::ALL.into_iter().enumerate() {
        let row = published::CYCLES;
        let reference = Reference::stated(published::DOCUMENT, row.place);
        let here = cycles.of(kind).whole.median;
        let what = format!("cycles of {}", kind.label());
        record.compare(
            what,
            row.values[idx].into(),
            "cycles",
            reference,
            Some(here),
        );
    }
    let reference = published::SECTION_3_3_2;
    let miss = figure_3_3(cycles, Kind::Miss) + figure_3_3(cycles, Kind::Data);
    let hit = figure_3_3(cycles, Kind::Hit);
    for (what, value, here) in [
        (
            "a miss with its Data, by blocks",
            published::MISS_CYCLES,
            miss,
        ),
        ("a hit, by blocks", published::HIT_CYCLES, hit),
    ] {
        record.compare(what, value, "cycles", reference, Some(here));
    }
}

/// Ticks of a packet in the blocks that Figure 3.3 has.
fn figure_3_3(cycles: &Cycles, kind: Kind) -> f64 {
    let blocks = cycles.of(kind).blocks.iter();
    let in_figure = blocks.filter(|(block, _)| block.number_in_figure_3_3().is_some());
    in_figure.map(|(_, ticks)| ticks.median).sum()
}

fn add_notes(record: &mut Record, context: &Context, cycles: &Cycles) {
    record.note(format!(
        "Names of 7 components, prefixes of 4, Data of 128 bytes of content; one {TICK} is {:.3} \
         ns; each border of blocks costs {:.0}, which are subtracted; {} of {} bursts were \
         interrupted and are left out.",
        cycles.clock.tick_ns, cycles.clock.border_ticks, cycles.n_bursts_left_out, cycles.n_bursts
    ));
    record.note(format!(
        "Content store with the policy {}: {:.3} Data inserted per Data. B2, B12 and B13 are \
         marked apart from B3 and B10; B2 includes the router's measurement of popularity. \
         Blocks without a number in Figure 3.3 are work that the published prototype leaves out.",
        context.text("policy"),
        cycles.insertion_ratio
    ));
    record.note(
        "Memory traffic, stalls by unit (Table 3.3) and by cache level (Table 3.4), speculation and \
         retirement apart need counters that only some processors have: they are not measured.",
    );
}
