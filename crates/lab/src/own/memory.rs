//! The router's memory: for each face, pending Interest, route and cached Data, and over
//! names that never repeat.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Bound, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells,
};
use tachonym_loadgen::exchange::address::Transport;
use tachonym_loadgen::footprint::{self, Footprint, FootprintArgs};
use tachonym_loadgen::output::mib;
use tachonym_loadgen::soak::{self, SoakArgs};

use super::forwarders::Forwarders;

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "own/footprint",
        title: "Memory of the router for a face, a pending Interest, a route and a cached Data",
        source: "",
        cost: Cost::minutes(0.1, 2.0),
        needs: &[Need::Router],
        params: &[
            Param::count("faces", "faces of each transport", ["20", "2k", "10k"]),
            Param::count("pit-entries", "pending Interests", ["300", "100k", "1M"]),
            Param::count("routes", "routes", ["300", "100k", "1M"]),
            Param::count(
                "cached",
                "cached Data, which have to fit the content store",
                ["300", "50k", "50k"],
            ),
        ],
        run: measure_footprint,
    },
    Experiment {
        id: "own/soak",
        title: "Memory of the router over names that never repeat",
        source: "",
        cost: Cost::minutes(0.2, 5.0),
        needs: &[Need::Router],
        params: &[Param::count(
            "names",
            "distinct names, each an exchange through the producer",
            ["2k", "3M", "30M"],
        )],
        run: measure_soak,
    },
];

/// Content of each Data in bytes.
const CONTENT_BYTES: u64 = 1_000;
/// Steps in which items are added.
const N_STEPS: u64 = 10;

fn item(footprint: &Footprint) -> String {
    match footprint.kind {
        footprint::Kind::Face => format!("{} face", footprint.transport),
        footprint::Kind::Pit => "pending Interest".to_owned(),
        footprint::Kind::Route => "route".to_owned(),
        footprint::Kind::Cached => "cached Data".to_owned(),
    }
}

fn measure_footprint(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::router_only(context)?;
    let router = forwarders.router();
    let report = footprint::measure(&FootprintArgs {
        forwarder: router.to_start(),
        kinds: Vec::new(),
        faces_at: vec![
            router.address(Transport::Udp),
            router.address(Transport::Tcp),
        ],
        faces: context.count("faces"),
        pit_entries: context.count("pit-entries"),
        routes: context.count("routes"),
        cached: context.count("cached"),
        content_bytes: CONTENT_BYTES,
        steps: N_STEPS,
        json: false,
    })?;
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    let columns: [Column; 6] = [
        "item".into(),
        "items".into(),
        "growth, bytes/item".into(),
        "of these from outside".into(),
        Column::fixed("r²", 3),
        "first to last, bytes/item".into(),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new(
        "Memory over items",
        "items, % of the last",
        "MiB more than without",
    );
    for footprint in &report.footprints {
        let item = item(footprint);
        let (first, last) = (footprint.steps.first(), footprint.steps.last());
        table.row(cells![
            item.clone(),
            last.map(|step| step.n_items),
            footprint.rss_bytes_per_item,
            footprint.own_bytes_per_item,
            footprint.r_squared,
            footprint.mean_rss_bytes_per_item,
        ]);
        for step in &footprint.steps {
            let part = step.n_items as f64 / last.map_or(1.0, |last| last.n_items.max(1) as f64);
            let before = first.map_or(0, |first| first.rss_bytes);
            let more = mib(step.rss_bytes) - mib(before);
            chart.point(&item, 100.0 * part, more);
        }
        if let Some(limit) = &footprint.limit {
            record.note(format!("{item}: fewer than asked for: {limit}."));
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(
        "Growth of resident memory by least squares over ten steps; the kernel's memory is not \
         included. The router is started for each kind of item.",
    );
    Ok(record)
}

fn measure_soak(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::router_only(context)?;
    let report = soak::measure(&SoakArgs {
        forwarder: forwarders.router().to_start(),
        producer: None,
        names: context.count("names"),
        content_bytes: CONTENT_BYTES,
        in_flight: 64,
        json: false,
    })?;
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    let mut table = Table::new(
        "",
        ["names".into(), Column::fixed("resident memory, MiB", 2)],
    );
    let mut chart = Chart::new("Memory over names", "million names", "MiB");
    for reading in &report.readings {
        table.row(cells![reading.n_names, mib(reading.rss_bytes)]);
        chart.point(
            "resident",
            reading.n_names as f64 / 1e6,
            mib(reading.rss_bytes),
        );
    }
    record.tables.push(table);
    record.charts.push(chart);
    let columns = [
        "lost",
        "seconds",
        "CPU, µs/exchange",
        "growth since the third tenth, bytes",
        "growth, bytes/name",
    ];
    let mut totals = Table::new("All names", columns);
    totals.row(cells![
        report.n_lost,
        report.seconds,
        report.cpu_ns_per_exchange / 1e3,
        report.growth_bytes,
        report.slope_bytes_per_name,
    ]);
    record.tables.push(totals);
    let allowed = Bound::AtMost(report.allowed_growth_bytes as f64);
    if let Some(growth) = Spread::of(&[report.growth_bytes as f64]) {
        record.judge(
            "growth of memory since the third tenth",
            "bytes",
            allowed,
            growth,
        );
    }
    Ok(record)
}
