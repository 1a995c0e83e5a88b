//! Tables 6.1 to 6.3: the largest power of a core by its frequency.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Bound, Chart, Column, Context, Cost, Experiment, Kind, Record, Reference, Table, cells,
};

use super::{DOCUMENT, servers};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/table-6.1",
    title: "Largest power of a core in each P-state by equation 6.8, of three processors",
    source: "Takemasa 2019, section 6.3, Tables 6.1 to 6.3, Figure 6.3",
    cost: Cost::minutes(0.1, 0.1),
    needs: &[],
    params: &[],
    run,
}];

/// The exponent of the Itanium 9520 that the text has; its table has 2.58.
const NU_OF_THE_TEXT: f64 = 4.22;

fn run(_: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Computed);
    let columns = ["processor", "frequency, GHz"].map(Column::new).into_iter();
    let watts = ["equation 6.8, W", "published, W", "difference, W"].map(|it| Column::fixed(it, 3));
    let mut table = Table::new("", columns.chain(watts));
    let mut chart = Chart::new("largest power of one core", "frequency by the highest", "W");
    let mut chassis = Table::new("Chassis", ["processor", "chassis, W"]);
    let mut worst: f64 = 0.0;
    for (server, place) in servers()? {
        let (cpu, processor) = (&server.cpu, &*server.processor);
        for row in &cpu.p_states {
            let (ghz, watts) = (row.frequency_hz / 1e9, cpu.largest_w(row.frequency_hz));
            let off = watts - row.max_w;
            worst = worst.max(off.abs());
            table.row(cells![processor, ghz, watts, row.max_w, off]);
            let x = row.frequency_hz / cpu.top().frequency_hz;
            chart.point(processor, x, watts);
            chart.published(processor, x, row.max_w);
            let what = format!("{processor}, {ghz} GHz");
            let reference = Reference::stated(DOCUMENT, place);
            record.compare(what, row.max_w, "W", reference, Some(watts));
        }
        chassis.row(cells![processor, server.chassis_w]);
        if processor.contains("9520") {
            let mut other = cpu.clone();
            other.nu = NU_OF_THE_TEXT;
            let row = cpu.p_states[0];
            record.note(format!(
                "With the exponent {NU_OF_THE_TEXT} of section 6.3.3 instead of the table's {}, \
                 the {processor} at {} GHz would take {:.2} W, not {} W.",
                cpu.nu,
                row.frequency_hz / 1e9,
                other.largest_w(row.frequency_hz),
                row.max_w,
            ));
        }
    }
    record.tables.extend([table, chassis]);
    record.charts.push(chart);
    if let Some(spread) = Spread::of(&[worst]) {
        let what = "equation 6.8 and the tables differ by";
        record.judge(what, "W", Bound::AtMost(0.02), spread);
    }
    record.note(
        "The highest frequency of each processor is an input of the equation, so its row agrees \
         by definition. Table 6.1 rounds frequencies; 1.733, 1.867, 2.133 and 2.267 GHz are used.",
    );
    record.note(
        "The chassis watts are published, not computed. Section 6.3.2 has 68.43, 34.20 and 117.82 \
         W as means of servers 1 to 3, then decides on 34.20, 68.90 and 117.82 W, and swaps the \
         intervals of the first two. Here the low-energy server 2 has the 34.20 W.",
    );
    Ok(record)
}
