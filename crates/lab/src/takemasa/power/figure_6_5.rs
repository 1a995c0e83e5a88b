//! Figures 6.5 and 6.6: power of memory by bytes and of a network card by packets, fitted.

use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Record, Reference, Table, cells,
};
use tachonym_dispatch::power::fit::samples::Activity;
use tachonym_dispatch::power::fit::server::Part;
use tachonym_dispatch::power::servers::Server;

use super::DOCUMENT;
use super::meter::{Metered, PARAMS};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "takemasa/figure-6.5",
        title: "Power of memory by access rate, drawn and fitted",
        source: "Takemasa 2019, section 6.3.4, Figure 6.5",
        cost: Cost::minutes(0.1, 0.1),
        needs: &[],
        params: &PARAMS,
        run: |context| run(context, &MEMORY),
    },
    Experiment {
        id: "takemasa/figure-6.6",
        title: "Power of the network card by packet rate, drawn and fitted",
        source: "Takemasa 2019, section 6.3.5, Figure 6.6",
        cost: Cost::minutes(0.1, 0.1),
        needs: &[],
        params: &PARAMS,
        run: |context| run(context, &NIC),
    },
];

/// What an experiment is of.
struct Device {
    part: Part,
    title: &'static str,
    /// What its axis shows, in units of `unit` per second.
    axis: &'static str,
    unit: f64,
    rate: fn(Activity) -> Option<f64>,
    energy_j: fn(&Server) -> f64,
    published_j: f64,
    place: &'static str,
    note: &'static str,
}

const MEMORY: Device = Device {
    part: Part::Memory,
    title: "power of memory",
    axis: "GB/s",
    unit: 1e9,
    rate: |load| match load {
        Activity::Memory { bytes_per_s, .. } => Some(bytes_per_s),
        _ => None,
    },
    energy_j: |server| server.memory_j_per_byte,
    published_j: 0.61e-9,
    place: "section 6.3.4",
    note: "One core is fully utilized meanwhile; its watts are subtracted, as published. The \
           thesis measured the memory of server 2 only and uses its energy for all three.",
};

const NIC: Device = Device {
    part: Part::Nic,
    title: "power of the network card",
    axis: "thousand packets/s",
    unit: 1e3,
    rate: |load| match load {
        Activity::Nic { packets_per_s, .. } => Some(packets_per_s),
        _ => None,
    },
    energy_j: |server| server.nic_j_per_packet,
    published_j: 1.26e-5,
    place: "section 6.3.5",
    note: "The thesis subtracts no watts of the processor that forwards the packets, so drawn \
           samples have an idle one. A meter's table may state what it did.",
};

/// Nanojoules.
const NJ: f64 = 1e9;

fn run(context: &Context, device: &Device) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Computed);
    let columns = [
        Column::new("server"),
        Column::fixed("energy, nJ", 3),
        Column::fixed("published, nJ", 3),
        Column::fixed("R²", 3),
        Column::new("points"),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new(device.title, device.axis, "W");
    for metered in Metered::all(context, &mut record)? {
        let energy_nj = NJ * (device.energy_j)(&metered.fitted.server);
        let published = metered.origin.is_some().then_some(NJ * device.published_j);
        let fit = metered.fits().find(|it| it.part == device.part);
        let label = metered.label();
        table.row(cells![
            label,
            energy_nj,
            published,
            fit.map(|it| it.r_squared),
            fit.map(|it| it.n_points),
        ]);
        if let Some(value) = published {
            let what = format!("{label}, energy");
            let stated = Reference::stated(DOCUMENT, device.place);
            record.compare(what, value, "nJ", stated, Some(energy_nj));
        }
        let (idx, fitted) = (chart.lines.len(), format!("{label}, fitted"));
        for (rate, mean_w, fitted_w) in metered.curve(device.rate) {
            chart.point(label, rate / device.unit, mean_w);
            chart.point(&fitted, rate / device.unit, fitted_w);
        }
        chart.line(&fitted).model_of = Some(idx);
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(device.note);
    record.note("The text calls R² close to 1 and gives no number.");
    Ok(record)
}
