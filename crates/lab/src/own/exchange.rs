//! What an exchange costs a running forwarder, and how many system calls a packet costs the
//! router.

use tachonym_bench::{
    Bound, Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells,
};
use tachonym_loadgen::exchange::address::Transport;
use tachonym_loadgen::exchange::compare::{Comparison, Row};
use tachonym_loadgen::exchange::measure::Load;
use tachonym_loadgen::figures::{self, Over, syscalls};

use super::forwarders::{Forwarders, NDND, NFD};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "own/exchange",
        title: "CPU time, rate and latency of an Interest and its Data through the router",
        source: "",
        cost: Cost::minutes(0.1, 15.0),
        needs: &[Need::Router, Need::Cpus(2)],
        params: &[EXCHANGES, NDND, NFD, Param::rounds(["2", "5", "11"])],
        run: exchange,
    },
    Experiment {
        id: "own/syscalls",
        title: "System calls of the router for each packet",
        source: "",
        cost: Cost::minutes(0.7, 2.0),
        needs: &[Need::Router],
        params: &[EXCHANGES],
        run: count_syscalls,
    },
];

const EXCHANGES: Param = Param::count(
    "exchanges",
    "exchanges of each measurement",
    ["200", "50k", "200k"],
);

/// Longest time of a measurement.
const MAX_SECONDS: u64 = 60;

/// Another forwarder's CPU time, by the router's, that is the least: the project's goals for
/// a miss.
const GOALS: [(&str, Transport, f64); 4] = [
    ("ndnd", Transport::Unix, 6.0),
    ("ndnd", Transport::Tcp, 5.0),
    ("ndnd", Transport::Udp, 3.0),
    ("nfd", Transport::Unix, 12.0),
];

fn load(context: &Context) -> Load {
    let usual = Load::usual(context.count(EXCHANGES.name), MAX_SECONDS);
    Load {
        warm_up: usual.warm_up.min(usual.count),
        ..usual
    }
}

fn exchange(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::all(context)?;
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    let columns: [Column; 14] = [
        "transport".into(),
        "requested".into(),
        "forwarder".into(),
        "CPU, µs/exchange".into(),
        "CPU by the router's".into(),
        "thousand exchanges/s".into(),
        "lost, %".into(),
        "p50, µs".into(),
        "p99, µs".into(),
        "p99.9, µs".into(),
        "memory, MiB".into(),
        "generator's CPU, µs".into(),
        Column::fixed("others, cores", 2),
        Column::fixed("stolen, cores", 2),
    ];
    let mut table = Table::new("", columns);
    let n_rounds = context.rounds() as u64;
    figures::exchange(
        forwarders.peers(),
        n_rounds,
        &load(context),
        |over, found| {
            add_rows(over, &found, &mut table, &mut record);
        },
    )?;
    record.tables.push(table);
    record.note(
        "64 Interests in flight, Data of 1,000 bytes of content. A miss goes to the producer \
         and back; a hit is answered by the content store. In brackets: the load generator \
         without a forwarder, which is its limit. Consumers and producers over udp send and \
         receive each packet as a datagram of its own, as foreign programs do; with offload \
         the kernel takes and gives many as one (GSO, GRO).",
    );
    Ok(record)
}

fn add_rows(over: Over, found: &Comparison, table: &mut Table, record: &mut Record) {
    for row in &found.rows {
        let us = |ns: Option<tachonym_bench::stats::Spread>| ns.map(|ns| ns.scaled(1e-3));
        let memory_bytes = row.rss_peak_bytes;
        table.row(cells![
            over.to_string(),
            row.mode.to_string(),
            row.label.clone(),
            us(row.cpu_ns_per_exchange),
            row.cpu_ratio,
            us(row.exchanges_per_s),
            row.loss_pct.map(|pct| pct.max),
            row.p50_us,
            row.p99_us,
            row.p99_9_us,
            memory_bytes.map(|bytes| bytes.median / f64::from(1 << 20)),
            us(row.generator_cpu_ns_per_exchange),
            row.others_cpu_cores.map(|cores| cores.median),
            row.stolen_cpu_cores.map(|cores| cores.median),
        ]);
        note_missing(over, row, record);
        let goal = GOALS
            .iter()
            .find(|goal| goal.0 == row.label && goal.1 == over.transport);
        if let (Some(goal), Some(ratio), "miss") = (goal, row.cpu_ratio, &*row.mode.to_string()) {
            let what = format!(
                "{}'s CPU time of a miss over {over}, by the router's",
                row.label
            );
            record.judge(what, "", Bound::AtLeast(goal.2), ratio);
        }
    }
}

/// Notes about rounds that failed or were cut off.
fn note_missing(over: Over, row: &Row, record: &mut Record) {
    let what = format!("{} of {} over {over}", row.mode, row.label);
    if row.n_incomplete > 0 {
        record.note(format!(
            "{what}: {} rounds were cut off after {MAX_SECONDS} s.",
            row.n_incomplete
        ));
    }
    if let Some(last) = row.failures.last() {
        record.note(format!(
            "{what}: {} rounds failed, the last: {last}.",
            row.failures.len()
        ));
    }
}

fn count_syscalls(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::router_only(context)?;
    let report =
        syscalls::measure_syscalls(forwarders.router(), forwarders.folder(), &load(context))?;
    let mut columns = vec![Column::new("transport")];
    for (in_flight, mode) in syscalls::LOADS {
        columns.push(Column::fixed(format!("{in_flight} in flight, {mode}"), 3));
    }
    let mut table = Table::new("", columns);
    for (over, calls) in report.rows {
        let calls = calls.into_iter().map(Into::into);
        table.row(std::iter::once(over.to_string().into()).chain(calls));
    }
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    record.tables.push(table);
    record.note("System calls for each packet that the router received or sent, waits included.");
    Ok(record)
}
