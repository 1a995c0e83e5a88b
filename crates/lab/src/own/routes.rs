//! How fast running forwarders register routes, and whether the routes work.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Bound, Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells,
};
use tachonym_loadgen::figures::peers::Program;
use tachonym_loadgen::routes::{self, RoutesArgs, RoutesReport};

use super::forwarders::{Forwarders, NDND, NFD};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/routes",
    title: "Registration of routes by management commands",
    source: "",
    cost: Cost::minutes(0.1, 3.0),
    needs: &[Need::Router],
    params: &[
        Param::count("routes", "routes of the router", ["300", "100k", "1M"]),
        Param::count(
            "peer-routes",
            "routes of the other forwarders, which may take milliseconds for each",
            ["300", "5k", "5k"],
        ),
        Param::count("window", "commands in flight", ["32", "256", "256"]),
        Param::count("sample", "routes that are tried", ["30", "1k", "1k"]),
        NDND,
        NFD,
        Param::rounds(["1", "3", "5"]),
    ],
    run,
}];

/// The goal: seconds for 100,000 routes.
const GOAL_SECONDS: f64 = 5.0;

fn run(context: &Context) -> anyhow::Result<Record> {
    let forwarders = Forwarders::all(context)?;
    let mut record = Record::new(Kind::Measured);
    forwarders.note_versions(&mut record)?;
    let columns: [Column; 12] = [
        "forwarder".into(),
        "routes".into(),
        "refused or unanswered".into(),
        "registered in, s".into(),
        "CPU, µs/registration".into(),
        "p50, µs".into(),
        "p99, µs".into(),
        "work at once, %".into(),
        "work in the end, %".into(),
        "all work after, s".into(),
        "memory, bytes/route".into(),
        "CPU, µs/removal".into(),
    ];
    let mut table = Table::new("", columns);
    for peer in forwarders.peers() {
        let is_own = peer.program == Program::Tachonym;
        let args = RoutesArgs {
            forwarder: peer.to_start(),
            count: context.count(if is_own { "routes" } else { "peer-routes" }),
            window: context.count("window"),
            sample: context.count("sample"),
            lifetime_ms: 60_000,
            json: false,
        };
        let reports = (0..context.rounds()).map(|_| routes::measure(&args));
        let reports = reports.collect::<anyhow::Result<Vec<_>>>()?;
        let spread = |of: &dyn Fn(&RoutesReport) -> f64| {
            Spread::of(&reports.iter().map(of).collect::<Vec<_>>())
        };
        let sampled_pct = |n: u64, of: &RoutesReport| 100.0 * n as f64 / of.n_sampled as f64;
        let commands = |of: &RoutesReport| of.register.commands.clone();
        table.row(cells![
            peer.program.label(),
            args.count,
            spread(&|it| (commands(it).n_sent - commands(it).n_done) as f64).map(|it| it.max),
            spread(&|it| commands(it).seconds),
            spread(&|it| it.register.cpu_us_per_command),
            spread(&|it| commands(it).latency.p50_us),
            spread(&|it| commands(it).latency.p99_us),
            spread(&|it| sampled_pct(it.n_came_back - it.n_too_early.min(it.n_came_back), it)),
            spread(&|it| sampled_pct(it.n_came_back, it)),
            spread(&|it| it.working_seconds),
            spread(&|it| it.rss_bytes_per_route),
            spread(&|it| it.unregister.cpu_us_per_command),
        ]);
        if let (true, Some(seconds)) = (is_own, spread(&|it| commands(it).seconds)) {
            let seconds = seconds.scaled(1e5 / args.count as f64);
            let goal = Bound::AtMost(GOAL_SECONDS);
            record.judge("registration of 100,000 routes", "s", goal, seconds);
        }
    }
    record.tables.push(table);
    record.note("Each round starts a forwarder; all commands come over one Unix socket.");
    Ok(record)
}
