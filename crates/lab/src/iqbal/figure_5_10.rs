//! How cores follow traffic that varies: Figure 5.10.

use anyhow::ensure;
use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, ParamKind, Record, Table, cells,
};
use tachonym_sim::cores::{Cores, CoresConfig};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::PATHS;
use tachonym_sim::traffic::{Traffic, mean_packet_bytes};

use super::simulation::{self, Kind, LapsKind, percent};
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-5.10",
    title: "Cores of two services that follow their traffic",
    source: "Iqbal 2013, section 5.5, Figure 5.10",
    cost: Cost::minutes(0.1, 0.8),
    needs: &[],
    params: &[
        simulation::MAP,
        simulation::RULE,
        Param::count(
            "interval_us",
            "how often loads are looked at, µs; the thesis names no interval",
            ["1000"; 3],
        ),
        Param::new(
            "speedup",
            "factor by which rates change faster than in their models of a minute",
            ParamKind::Number,
            ["400", "10", "1"],
        ),
        Param::count("cores", "cores", ["16"; 3]),
        simulation::THRESHOLD,
        Param::seed(),
    ],
    run,
}];

const TRAFFIC_S: f64 = 60.0;
/// How often loads are looked at in the run as published.
const PUBLISHED_INTERVAL_NS: u64 = 100_000;
const SERVICES: [&str; 2] = ["VPN out", "scan"];

/// A second of traffic.
struct Second {
    rates_mpps: [f64; 2],
    /// Cores needed, by the rate and what a core does.
    needed: [f64; 2],
    n_cores: [u32; 2],
}

struct Outcome {
    seconds: Vec<Second>,
    n_transfers: u64,
    dropped_pct: f64,
    cold_pct: f64,
}

impl Outcome {
    /// Mean distance between cores needed and had, where both needs together can be met.
    fn mean_off(&self, n_cores: usize) -> f64 {
        let is_met = |it: &&Second| it.needed.map(f64::round).iter().sum::<f64>() <= n_cores as f64;
        let met = || self.seconds.iter().filter(is_met);
        let off = |it: &Second, n: usize| (f64::from(it.n_cores[n]) - it.needed[n]).abs();
        let sum: f64 = met().map(|it| off(it, 0) + off(it, 1)).sum();
        sum / (2 * met().count().max(1)) as f64
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    ensure!(context.number("speedup") > 0.0, "a speedup is above 0");
    let n_cores = context.size("cores");
    let interval_ns = context.count("interval_us") * 1_000;
    let mut variants = vec![(LapsKind::of(context), interval_ns)];
    let published = (LapsKind::published(16), PUBLISHED_INTERVAL_NS);
    variants.extend((variants[0] != published).then_some(published));
    let outcomes = in_parallel(variants.len(), |nth| simulate(context, variants[nth]))?;

    let mut record = Record::new(RecordKind::Simulated);
    let columns = "scheduler | interval, ms | cores off, mean | transfers | dropped, % | cold, %"
        .split(" | ");
    let mut summary = Table::new("", columns);
    let columns =
        "scheduler | s | Mpps 1 | Mpps 2 | needed 1 | needed 2 | cores 1 | cores 2".split(" | ");
    let mut table = Table::new("by second: VPN out (1) and scan (2)", columns);
    let mut rates = Chart::new("Figure 5.10 (a)", "seconds of traffic", "Mpps");
    let mut cores = Chart::new("Figure 5.10 (b)", "seconds of traffic", "cores");
    for (nth, ((kind, interval_ns), outcome)) in variants.iter().zip(&outcomes).enumerate() {
        let label = Kind::Laps(*kind).label();
        let off = outcome.mean_off(n_cores);
        let Outcome {
            n_transfers,
            dropped_pct,
            cold_pct,
            ..
        } = *outcome;
        let interval_ms = *interval_ns as f64 / 1e6;
        summary.row(cells![
            &*label,
            interval_ms,
            off,
            n_transfers,
            dropped_pct,
            cold_pct
        ]);
        for (at_s, second) in outcome.seconds.iter().enumerate() {
            let Second {
                rates_mpps,
                needed,
                n_cores,
            } = second;
            table.row(cells![
                &*label,
                at_s,
                rates_mpps[0],
                rates_mpps[1],
                needed[0],
                needed[1],
                n_cores[0],
                n_cores[1],
            ]);
            for (n, service) in SERVICES.iter().enumerate() {
                if nth == 0 {
                    rates.point(service, at_s as f64, rates_mpps[n]);
                    cores.point(&format!("{service}, needed"), at_s as f64, needed[n]);
                }
                cores.point(
                    &format!("{service}, {label}"),
                    at_s as f64,
                    n_cores[n].into(),
                );
            }
        }
    }
    record.tables.extend([summary, table]);
    record.charts.extend([rates, cores]);
    record.note(format!(
        "{TRAFFIC_S} s of traffic in {} s of virtual time. Figure 5.10 is a drawing of cores that \
         follow the traffic and has no rates: those here are assumed. Cores off: between those \
         needed and had, where both needs can be met together.",
        TRAFFIC_S / context.number("speedup")
    ));
    Ok(record)
}

fn simulate(context: &Context, (kind, interval_ns): (LapsKind, u64)) -> anyhow::Result<Outcome> {
    let services = vec![PATHS[0].clone(), PATHS[2].clone()];
    let (n_cores, speedup) = (context.size("cores"), context.number("speedup"));
    let core_pps = [0, 1].map(|n: usize| services[n].rate_pps(mean_packet_bytes()));
    // By turns, three quarters of the cores and a fifth.
    let model = |n: usize, phase: f64| RateModel {
        a: 0.45 * core_pps[n] * n_cores as f64 / 1e6,
        b: 0.0,
        c: phase * 0.3 * core_pps[n] * n_cores as f64 / 1e6,
        m: 40.0,
        sigma: 0.03,
    };
    let traffic = vec![
        (model(0, 1.0), traces::trace("caida 1", context.seed())?),
        (model(1, -1.0), traces::trace("caida 2", context.seed())?),
    ];
    let mut traffic = Traffic::new(traffic, speedup, context.seed());
    let laps = kind.laps(n_cores, &services, context.values.count32("threshold"))?;
    let config = CoresConfig {
        interval_ns,
        ..Kind::Laps(kind).cores(&CoresConfig::new(n_cores, services))
    };
    let mut cores = Cores::new(config, laps, traffic.n_flows());
    let end_ns = (TRAFFIC_S / speedup * 1e9) as u64;
    let step_ns = 1e9 / speedup;
    // In the middle of each second of traffic, when cores had time to follow.
    let mut next_ns = step_ns / 2.0;
    let mut seconds = Vec::new();
    while let Some(packet) = traffic.next_packet().filter(|it| it.at_ns < end_ns) {
        if packet.at_ns as f64 >= next_ns {
            let rates = traffic.rates_pps();
            let needs = cores.scheduler().needs();
            seconds.push(Second {
                rates_mpps: [0, 1].map(|n| rates[n] / 1e6),
                needed: [0, 1].map(|n| rates[n] / core_pps[n]),
                n_cores: [0, 1].map(|n| needs[n].n_workers),
            });
            next_ns += step_ns;
        }
        cores.handle_packet(packet);
    }
    let counts = *cores.counts();
    Ok(Outcome {
        seconds,
        n_transfers: cores.scheduler().counters().n_transfers,
        dropped_pct: percent(counts.n_dropped, counts.n_arrived),
        cold_pct: percent(counts.n_cold, counts.n_departed),
    })
}
