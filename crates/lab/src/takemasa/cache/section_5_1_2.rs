//! Section 5.1.2: cycles of ARC and TinyLFU, by equations 5.1 and 5.2.

use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Param, ParamKind, Record, Table, cells,
};

use super::published::{block, cycles, grouped, stated};

/// B10 as the section has it, where Table 5.1 has another value.
const INSERTION_CYCLES: f64 = 188.0;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/section-5.1.2",
    title: "Estimated cycles of an exchange with ARC and with TinyLFU",
    source: "Takemasa 2019, section 5.1.2; Takemasa et al. 2019 (JIP), section 3.3",
    cost: Cost::minutes(0.1, 0.01),
    needs: &[],
    params: &[
        Param::new(
            "hit_ratio",
            "hits by Interests",
            ParamKind::Number,
            ["0.3"; 3],
        ),
        Param::new(
            "insertion_ratio",
            "insertions by Data that arrive, with TinyLFU",
            ParamKind::Number,
            ["0.1"; 3],
        ),
    ],
    run,
}];

/// Cycles with ARC and with TinyLFU, if an insertion takes `insertion`.
fn estimate(insertion: f64, hit_ratio: f64, insertion_ratio: f64) -> Option<[f64; 2]> {
    let blocks = |number| {
        if number == 10 {
            insertion
        } else {
            block(number)
        }
    };
    let arc = grouped(blocks, cycles("arc")?).with_eviction(hit_ratio);
    let tiny = grouped(blocks, cycles("tinylfu/random")?);
    Some([arc, tiny.with_admission(hit_ratio, insertion_ratio)])
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let (hits, insertions) = (
        context.number("hit_ratio"),
        context.number("insertion_ratio"),
    );
    let mut record = Record::new(Kind::Computed);
    let columns = [
        "B10, cycles",
        "ARC, cycles",
        "TinyLFU, cycles",
        "difference",
    ];
    let columns = columns.map(|title| Column::fixed(title, 1));
    let mut table = Table::new("", columns);
    for insertion in [INSERTION_CYCLES, block(10)] {
        if let Some([arc, tiny]) = estimate(insertion, hits, insertions) {
            table.row(cells![insertion, arc, tiny, arc - tiny]);
        }
    }
    record.tables.push(table);
    let here = estimate(INSERTION_CYCLES, hits, insertions);
    let place = stated("section 5.1.2");
    let [arc, tiny] = [0, 1].map(|idx| here.map(|here| here[idx]));
    record.compare("cycles with ARC, B10 = 188", 1_817.0, "cycles", place, arc);
    record.compare(
        "cycles with TinyLFU, B10 = 188",
        1_705.0,
        "cycles",
        place,
        tiny,
    );
    let saved = here.map(|[arc, tiny]| arc - tiny);
    record.compare("difference, B10 = 188", 112.0, "cycles", place, saved);
    Ok(record)
}
