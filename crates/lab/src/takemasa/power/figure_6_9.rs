//! Figure 6.9: power of the naive and of the optimised router by data rate.

use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Param, Record, Reference, Table, cells,
};

use super::DOCUMENT;
use super::case_study::{FULL_GBPS, NEEDS, OPTIMISED, PARAMS, PUBLISHED_PERCENT, Study, joined};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-6.9",
    title: "Power of the naive and the optimised router by data rate",
    source: "Takemasa 2019, section 6.5, Figure 6.9",
    cost: Cost::minutes(0.1, 0.3),
    needs: NEEDS,
    params: &joined::<14>(&PARAMS, &[STEPS]),
    run,
}];

const STEPS: Param = Param::count(
    "steps",
    "data rates from 0 to that of comparisons",
    ["29", "58", "580"],
);

fn run(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Computed);
    let study = Study::new(context, &mut record)?;
    let (gbps, steps) = (context.number("gbps"), context.count("steps"));
    let columns = [
        "router",
        "cycles",
        "bytes",
        "full at, Gbit/s",
        "compared at, Gbit/s",
        "power, W",
        "less, %",
    ];
    let mut table = Table::new("", columns.map(|it| Column::fixed(it, 1)));
    let mut chart = Chart::new("power by data rate", "Gbit/s", "W");
    for router in &study.routers {
        table.row(cells![
            router.label,
            router.exchange(),
            router.store.exchange(&router.bytes),
            study.full_gbps(router),
            router.gbps,
            study.power(router, router.gbps).map(|it| it.total_w()),
            study.saved_percent(router, router.gbps),
        ]);
        for step in 0..=steps {
            let rate = gbps * step as f64 / steps as f64;
            let watts = study.power(router, rate).map(|it| it.total_w());
            chart.point(router.label, rate, watts.unwrap_or(f64::NAN));
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    let is_published = gbps == FULL_GBPS;
    let optimised = study.saved_percent(&study.routers[OPTIMISED], gbps);
    let stated = Reference::stated(DOCUMENT, "section 6.5.3");
    record.compare(
        "power that the optimised router saves",
        PUBLISHED_PERCENT,
        "%",
        stated,
        optimised.filter(|_| is_published),
    );
    record.compare(
        "last data rate of the figure, and the one that fills the naive router",
        FULL_GBPS,
        "Gbit/s",
        stated,
        Some(study.full_gbps(&study.routers[0])),
    );
    if let Some(cycles) = study.cycles_for(PUBLISHED_PERCENT, gbps) {
        let here = study.routers[OPTIMISED].exchange();
        record.note(format!(
            "An optimised router that saves the published {PUBLISHED_PERCENT} % would take \
             {cycles:.0} cycles an exchange, all else as it is here; by the tables it takes \
             {here:.0}."
        ));
    }
    record.note(
        "Cycles of the naive router are those of Tables 5.1 and 5.2 with FIFO. Those of the \
         optimised router are inferred: with Filter, and 28.85 % less in B1 to B7 and 11.98 % \
         less in the others, as section 4.4.1 has for an Interest that misses and for a Data. \
         Figures 6.7 and 6.8 have the cycles and bytes that the thesis used, as drawings only.",
    );
    record.note(
        "Memory bytes are those of Table 3.1 for an Interest that misses, one that hits and a \
         Data; prefetching adds 192 bytes to B6. Bytes that Filter saves by fewer insertions are \
         not in the tables, so they are not subtracted.",
    );
    record.note(
        "Section 6.4.4 says that B2 takes no cycles in the optimised router, Table 5.2 has 83 for \
         Filter; here it has the table's.",
    );
    Ok(record)
}
