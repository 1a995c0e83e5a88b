//! Segmented objects through the router at given rates.

use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_loadgen::figures::TRANSPORTS;
use tachonym_loadgen::transfer::{self, Rate, Transfer, TransferArgs};

use super::forwarders::Forwarders;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/transfer",
    title: "Objects at rates up to 1 GB/s and without a limit: goodput and loss",
    source: "",
    cost: Cost::minutes(0.3, 2.0),
    needs: &[Need::Router, Need::Cpus(2)],
    params: &[
        Param::new(
            "rates",
            "content per second in 10⁶ bytes; 0: as fast as the window opens",
            ParamKind::Counts,
            ["50,0", "10,30,100,300,1000,0", "10,30,100,300,1000,0"],
        ),
        Param::count(
            "seconds",
            "length of a transfer that keeps its rate",
            ["1", "1", "3"],
        ),
        Param::new(
            "bytes",
            "size of each object, instead of the seconds; 0: by the seconds",
            ParamKind::Count {
                min: 0,
                max: u64::MAX,
            },
            ["400k", "0", "0"],
        ),
        Param::count(
            "segment-bytes",
            "content of a segment, up to 8,000",
            ["8000"; 3],
        ),
    ],
    run,
}];

fn rate(mb_per_s: u64) -> Rate {
    match mb_per_s {
        0 => Rate::Unlimited,
        mb => Rate::Limited(mb * 1_000_000),
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::router_only(context)?;
    let router = forwarders.router();
    let n_bytes = context.count("bytes");
    let report = transfer::measure(&TransferArgs {
        forwarder: router.to_start(),
        over: TRANSPORTS
            .map(|transport| router.address(transport))
            .to_vec(),
        rates: context
            .values
            .counts("rates")
            .into_iter()
            .map(rate)
            .collect(),
        seconds: context.count("seconds"),
        bytes: (n_bytes > 0).then_some(n_bytes),
        segment_bytes: context.count("segment-bytes").min(8_000),
        max_window: 4_096,
        max_seconds: 120,
        json: false,
    })?;
    let columns: [Column; 13] = [
        "transport".into(),
        "asked for, MB/s".into(),
        "goodput, MB/s".into(),
        "segments".into(),
        "lost".into(),
        "sent again".into(),
        "marks".into(),
        "window at the end".into(),
        "RTT, µs".into(),
        "dropped at the router".into(),
        "dropped at the generator".into(),
        "dropped on the machine".into(),
        Column::fixed("router's CPU, µs/segment", 2),
    ];
    let mut table = Table::new("", columns);
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    for transfer in &report.transfers {
        let asked = asked_for(transfer);
        if !transfer.is_complete {
            let transport = transfer.transport;
            record.note(format!(
                "{asked} MB/s over {transport}: not complete after 120 s."
            ));
        }
        table.row(cells![
            transfer.transport.to_string(),
            asked,
            transfer.goodput_mb_s,
            transfer.n_segments,
            transfer.n_lost,
            transfer.n_retransmissions,
            transfer.n_marks,
            transfer.window,
            transfer.rtt_us,
            transfer.forwarder_dropped_pkts,
            transfer.generator_dropped_pkts,
            transfer.machine_dropped_pkts,
            transfer.forwarder_cpu_us_per_segment,
        ]);
    }
    record.tables.push(table);
    record.note("One local producer, one consumer that honours congestion marks, over loopback.");
    Ok(record)
}

fn asked_for(transfer: &Transfer) -> String {
    transfer.rate.map_or_else(
        || "unlimited".to_owned(),
        |rate| format!("{:.0}", rate as f64 / 1e6),
    )
}
