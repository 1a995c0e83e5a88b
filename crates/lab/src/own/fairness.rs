//! The rate that an honest program keeps beside others, hostile ones included.

use anyhow::anyhow;
use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_loadgen::fairness::neighbour::Kind as Neighbour;
use tachonym_loadgen::fairness::{self, FairnessArgs, label};
use tachonym_loadgen::figures::TRANSPORTS;

use super::forwarders::Forwarders;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/fairness",
    title: "Rate of an honest program beside misbehaving ones",
    source: "",
    cost: Cost::minutes(1.9, 10.0),
    needs: &[Need::Router, Need::Cpus(3)],
    params: &[
        Param::new(
            "transports",
            "transports of both programs: unix, tcp, udp, with commas",
            ParamKind::Text,
            ["unix", "unix,tcp,udp", "unix,tcp,udp"],
        ),
        Param::new(
            "beside",
            "programs beside the honest one, with commas; all: every kind",
            ParamKind::Text,
            ["honest,garbage", "all", "all"],
        ),
        Param::count("seconds", "length of each measurement", ["1", "1", "3"]),
        Param::count(
            "in-flight",
            "Interests in flight of the honest program",
            ["16", "64", "64"],
        ),
        Param::rounds(["1", "3", "5"]),
    ],
    run,
}];

fn kinds(words: &str) -> anyhow::Result<Vec<Neighbour>> {
    if words == "all" {
        return Ok(Neighbour::ALL.to_vec());
    }
    let kinds = words.split(',').map(|word| {
        let found = Neighbour::ALL.into_iter().find(|kind| kind.label() == word);
        found.ok_or_else(|| {
            let all = Neighbour::ALL.map(Neighbour::label).join(", ");
            anyhow!("parameter beside: `{word}` is not one of {all}")
        })
    });
    kinds.collect()
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::router_only(context)?;
    let router = forwarders.router();
    let over = context.text("transports").split(',').map(|word| {
        let found = TRANSPORTS.into_iter().find(|it| it.to_string() == word);
        let found = found.map(|transport| router.address(transport));
        found.ok_or_else(|| anyhow!("parameter transports: `{word}` is not unix, tcp or udp"))
    });
    let report = fairness::measure(&FairnessArgs {
        forwarder: router.to_start(),
        over: over.collect::<anyhow::Result<_>>()?,
        kinds: kinds(context.text("beside"))?,
        in_flight: context.count("in-flight"),
        rounds: context.rounds() as u64,
        seconds: context.count("seconds"),
        json: false,
    })?;
    let columns: [Column; 8] = [
        "transport".into(),
        "beside".into(),
        "thousand exchanges/s".into(),
        "by the fair share".into(),
        "lost in a round at most, %".into(),
        "p99, µs".into(),
        "neighbour's thousand packets/s".into(),
        "its connections".into(),
    ];
    let mut table = Table::new("", columns);
    for row in &report.rows {
        table.row(cells![
            row.transport.to_string(),
            label(row.beside),
            row.exchanges_per_s.scaled(1e-3),
            row.part_of_fair,
            row.max_loss_pct,
            row.p99_us,
            row.neighbour_pkts_per_s.scaled(1e-3),
            row.n_neighbour_connections,
        ]);
    }
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    record.tables.push(table);
    record.note(
        "The fair share is the rate beside a second honest program in the same round. Each \
         measurement has a router of its own.",
    );
    Ok(record)
}
