//! How long a forwarder takes from its start to the first packet.

use tachonym_bench::{Bound, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells};
use tachonym_loadgen::exchange::address::Transport;
use tachonym_loadgen::figures::peers::Program;
use tachonym_loadgen::startup::{self, StartupArgs};

use super::forwarders::{Forwarders, NDND, NFD};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/startup",
    title: "Time from the start of the program to the first Data through it",
    source: "",
    cost: Cost::minutes(0.1, 0.5),
    needs: &[Need::Router],
    params: &[
        Param::count("starts", "starts of each forwarder", ["3", "21", "101"]),
        NDND,
        NFD,
    ],
    run,
}];

/// The goal: milliseconds until the router carries packets.
const GOAL_MS: f64 = 100.0;

fn run(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::all(context)?;
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    let columns = [
        "forwarder",
        "connection accepted, ms",
        "route registered, ms",
        "first Data, ms",
        "stopped within, ms",
        "memory then, MiB",
    ];
    let mut table = Table::new("", columns);
    for peer in forwarders.peers() {
        let report = startup::measure(&StartupArgs {
            start: peer.start.clone(),
            address: peer.address(Transport::Unix),
            consumer: None,
            count: context.count("starts"),
            json: false,
        })?;
        table.row(cells![
            peer.program.label(),
            report.connected_ms,
            report.registered_ms,
            report.exchanged_ms,
            report.stopped_ms,
            report.rss_bytes.scaled(1.0 / f64::from(1 << 20)),
        ]);
        if peer.program == Program::Tachonym {
            let goal = Bound::AtMost(GOAL_MS);
            record.judge("from start to first Data", "ms", goal, report.exchanged_ms);
        }
    }
    record.tables.push(table);
    record.note("Milliseconds since the program was started, over its Unix socket.");
    Ok(record)
}
