//! Figure 6.10: power of the two routers by device, and the processor's by block.

use tachonym_bench::{Chart, Column, Context, Cost, Experiment, Kind, Record, Table, cells};

use super::case_study::{NEEDS, PARAMS, Study};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-6.10",
    title: "Power of processor, memory, network card and chassis of two routers, and by block",
    source: "Takemasa 2019, sections 6.5.3 and 6.5.4, Figure 6.10",
    cost: Cost::minutes(0.1, 0.3),
    needs: NEEDS,
    params: &PARAMS,
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Computed);
    let study = Study::new(context, &mut record)?;
    let gbps = context.number("gbps");
    let watts = [
        "processor, W",
        "memory, W",
        "network card, W",
        "chassis, W",
        "all, W",
    ];
    let columns = [Column::new("router")].into_iter();
    let mut table = Table::new("", columns.chain(watts.map(|it| Column::fixed(it, 2))));
    let devices = ["processor", "memory", "network card", "chassis"];
    let mut chart = Chart::bars(format!("power at {gbps} Gbit/s"), devices, "W");
    let columns = [Column::new("router")].into_iter();
    let blocks = (1..=13).map(|n| Column::fixed(format!("B{n}"), 2));
    let mut by_block = Table::new("Watts of the processor by block", columns.chain(blocks));
    for router in &study.routers {
        let rate = router.gbps;
        if rate < gbps {
            record.note(format!("{}: at {rate:.1} Gbit/s.", router.label));
        }
        let Some(power) = study.power(router, rate) else {
            let full = study.full_gbps(router);
            record.note(format!(
                "{}: full at {full:.1} Gbit/s, under {rate}.",
                router.label
            ));
            continue;
        };
        let parts = [power.cpu_w, power.memory_w, power.nic_w, power.chassis_w];
        let cells = parts.into_iter().chain([power.total_w()]);
        table.row(
            cells![router.label]
                .into_iter()
                .chain(cells.map(Into::into)),
        );
        for (idx, watts) in parts.into_iter().enumerate() {
            chart.point(router.label, idx as f64, watts);
        }
        let watts = router.store.watts_by_block(&router.cycles, power.cpu_w);
        let cells = watts.into_iter().map(Into::into);
        by_block.row(cells![router.label].into_iter().chain(cells));
    }
    record.tables.extend([table, by_block]);
    record.charts.push(chart);
    record.note(
        "Published in words: the processor takes most of what the load costs and has most of \
         what is saved; memory and network cards take little. Inputs are those of \
         takemasa/figure-6.9, which says where they come from.",
    );
    record.note("Watts of the processor are divided by the cycles of each block.");
    Ok(record)
}
