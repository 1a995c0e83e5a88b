//! `tachonym-lab fairness`: what an honest program keeps beside others.
//!
//! The honest program is one flow of [`crate::exchange`]. Beside it runs
//! nothing, an equal of it, or one of the hostile programs of [`neighbour`]. An
//! equal takes its share of the forwarder and of the machine; a hostile one
//! should get no more, so the rates beside it are given as parts of the rate
//! beside the equal in the same round. Refuses to judge.

pub mod neighbour;

use std::fmt;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tachonym_bench::stats::Spread;

use self::neighbour::{Kind, Neighbour};
use crate::exchange::address::{Address, Transport};
use crate::exchange::flow::Mode;
use crate::exchange::measure::{self as exchange, Forwarder, Load, Target};
use crate::launch::ForwarderArgs;
use crate::output;

/// The neighbour comes when the honest program is there already, so much later.
const COMES_AFTER: Duration = Duration::from_millis(100);
/// Exchanges before the measurement: they last until the neighbour is there, unless
/// there are a million in a second.
const WARM_UP: u64 = 100_000;
/// After this time without an answer an Interest is lost: much longer than any answer takes,
/// and short enough that many would be noticed in a measurement.
const LIFETIME_MS: u64 = 500;

/// Measures the rate of an honest program while another honest program, or a hostile one, runs.
#[derive(Args, Clone, Debug)]
pub struct FairnessArgs {
    /// The forwarder.
    #[command(flatten)]
    pub forwarder: ForwarderArgs,
    /// Where both programs connect; repeat for several [default: as
    /// --forwarder]
    #[arg(long, value_name = "URI")]
    pub over: Vec<Address>,
    /// What runs beside the honest program; repeat for several [default: all]
    #[arg(long = "beside", value_name = "KIND")]
    pub kinds: Vec<Kind>,
    /// Most Interests that the honest program has in flight
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub in_flight: u64,
    /// Rounds, each with every kind of neighbour
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub rounds: u64,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3, value_name = "S",
          value_parser = clap::value_parser!(u64).range(1..=60))]
    pub seconds: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What the honest program kept.
#[derive(Clone, Debug, Serialize)]
pub struct FairnessReport {
    /// Interests that it had in flight at most.
    pub in_flight: u64,
    /// One row for each transport and neighbour.
    pub rows: Vec<Row>,
}

/// The honest program beside one kind of neighbour.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// How both were connected.
    pub transport: Transport,
    /// What ran beside it; `None`: nothing.
    pub beside: Option<Kind>,
    /// Its exchanges per second.
    pub exchanges_per_s: Spread,
    /// That divided by the rate beside an equal in the same round; `None`
    /// unless [`Kind::Honest`] was among the neighbours.
    pub part_of_fair: Option<Spread>,
    /// Most of its Interests that were lost in a round, in per cent.
    pub max_loss_pct: f64,
    /// 99th percentile of its latencies in microseconds.
    pub p99_us: Spread,
    /// Packets per second that the neighbour sent.
    pub neighbour_pkts_per_s: Spread,
    /// Connections that the neighbour had to open, all rounds together.
    pub n_neighbour_connections: u64,
}

/// One measurement.
#[derive(Clone, Copy)]
struct Sample {
    exchanges_per_s: f64,
    loss_pct: f64,
    p99_us: f64,
    neighbour_pkts_per_s: f64,
    n_neighbour_connections: u64,
}

/// Runs the command.
///
/// # Errors
/// If nothing could be measured. A starved program is a figure.
pub fn run(args: &FairnessArgs) -> anyhow::Result<()> {
    output::print(&measure(args)?, args.json)
}

/// Measures beside each kind in turn, round for round.
///
/// # Errors
/// If the forwarder cannot be reached, refuses a route, brings nothing through
/// at all or ends.
pub fn measure(args: &FairnessArgs) -> anyhow::Result<FairnessReport> {
    let addresses = match args.over.as_slice() {
        [] => std::slice::from_ref(&args.forwarder.address),
        over => over,
    };
    let mut rows = Vec::new();
    for address in addresses {
        rows.extend(measure_over(args, address)?);
    }
    Ok(FairnessReport {
        in_flight: args.in_flight,
        rows,
    })
}

fn measure_over(args: &FairnessArgs, address: &Address) -> anyhow::Result<Vec<Row>> {
    let kinds: Vec<Option<Kind>> = match args.kinds.as_slice() {
        [] => Kind::ALL.iter().copied().map(Some).collect(),
        kinds => kinds.iter().copied().map(Some).collect(),
    };
    let kinds: Vec<Option<Kind>> = std::iter::once(None).chain(kinds).collect();
    let mut samples = vec![Vec::new(); kinds.len()];
    let transport = address.transport();
    for round in 1..=args.rounds {
        for (&kind, samples) in kinds.iter().zip(&mut samples) {
            let sample = sample(args, address, kind)?;
            eprintln!(
                "round {round}: {transport}, beside {}: {:.0} exchanges/s",
                label(kind),
                sample.exchanges_per_s
            );
            samples.push(sample);
        }
    }
    let fair_idx = kinds.iter().position(|&kind| kind == Some(Kind::Honest));
    let fair = fair_idx.map(|idx| samples[idx].clone());
    let row = |(&beside, samples): (&Option<Kind>, &Vec<Sample>)| {
        Row::of(transport, beside, samples, fair.as_deref())
    };
    Ok(kinds.iter().zip(&samples).filter_map(row).collect())
}

/// One measurement, of a fresh forwarder if it is started for this: nothing is
/// left of the neighbours before.
fn sample(args: &FairnessArgs, address: &Address, kind: Option<Kind>) -> anyhow::Result<Sample> {
    let attached = args.forwarder.attach()?;
    let forwarder = Forwarder {
        consumer: address.clone(),
        producer: address.clone(),
        pid: Some(attached.process.pid()),
        control: Some(args.forwarder.address.clone()),
    };
    let load = Load {
        in_flight: args.in_flight,
        warm_up: WARM_UP,
        lifetime_ms: LIFETIME_MS,
        ..Load::usual(u64::MAX, args.seconds)
    };
    let neighbour = kind.map(|kind| Neighbour::start(kind, COMES_AFTER, &forwarder, &load));
    let measurement = exchange::measure(&Target::Forwarder(forwarder), Mode::Miss, &load);
    let activity = neighbour.map(Neighbour::stop).transpose();
    let (measurement, activity) = (measurement?, activity?);
    Ok(Sample {
        exchanges_per_s: measurement.exchanges_per_s,
        // What the end of time cut off is not lost.
        loss_pct: 100.0 * measurement.counters.n_timed_out as f64
            / measurement.counters.n_sent.max(1) as f64,
        p99_us: measurement.latency.p99_us,
        neighbour_pkts_per_s: activity.map_or(0.0, |a| a.pkts_per_s()),
        n_neighbour_connections: activity.map_or(0, |a| a.n_connections),
    })
}

/// The name of what runs beside the honest program.
#[must_use]
pub fn label(kind: Option<Kind>) -> &'static str {
    kind.map_or("nothing", Kind::label)
}

impl Row {
    /// `None` without a sample.
    fn of(
        transport: Transport,
        beside: Option<Kind>,
        samples: &[Sample],
        fair: Option<&[Sample]>,
    ) -> Option<Self> {
        let spread = |figure: fn(&Sample) -> f64| {
            let values: Vec<_> = samples.iter().map(figure).collect();
            Spread::of(&values)
        };
        let part_of_fair = fair.and_then(|fair| {
            let rounds = samples.iter().zip(fair);
            let parts: Vec<_> = rounds
                .map(|(own, fair)| own.exchanges_per_s / fair.exchanges_per_s)
                .collect();
            Spread::of(&parts)
        });
        Some(Self {
            transport,
            beside,
            exchanges_per_s: spread(|s| s.exchanges_per_s)?,
            part_of_fair,
            max_loss_pct: spread(|s| s.loss_pct)?.max,
            p99_us: spread(|s| s.p99_us)?,
            neighbour_pkts_per_s: spread(|s| s.neighbour_pkts_per_s)?,
            n_neighbour_connections: samples.iter().map(|s| s.n_neighbour_connections).sum(),
        })
    }
}

impl fmt::Display for FairnessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<9} {:<14} {:>26} {:>20} {:>8} {:>12} {:>14} {:>12}",
            "transport",
            "beside",
            "exchanges/s (p10-p90)",
            "part of fair",
            "lost, %",
            "p99, µs",
            "its packets/s",
            "connections"
        )?;
        for row in &self.rows {
            let rate = row.exchanges_per_s;
            let rate = format!("{:.0} ({:.0}-{:.0})", rate.median, rate.p10, rate.p90);
            let part = row.part_of_fair.map_or_else(String::new, |part| {
                format!("{:.2} ({:.2}-{:.2})", part.median, part.p10, part.p90)
            });
            write!(
                f,
                "\n{:<9} {:<14} {rate:>26} {part:>20} {:>8.3} {:>12.0} {:>14.0} {:>12}",
                row.transport.to_string(),
                label(row.beside),
                row.max_loss_pct,
                row.p99_us.median,
                row.neighbour_pkts_per_s.median,
                row.n_neighbour_connections
            )?;
        }
        write!(
            f,
            "\n\nRates of an honest program with {} in flight. Fair share: its rate beside this \
             neighbour divided by its rate beside an honest one in the same round.",
            self.in_flight
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(exchanges_per_s: f64) -> Sample {
        Sample {
            exchanges_per_s,
            loss_pct: exchanges_per_s / 1_000.0,
            p99_us: 5.0,
            neighbour_pkts_per_s: 7.0,
            n_neighbour_connections: 2,
        }
    }

    #[test]
    fn parts_are_taken_round_by_round() {
        let fair = [100.0, 400.0, 1_000.0].map(sample);
        let own = [50.0, 100.0, 900.0].map(sample);
        let row = Row::of(Transport::Unix, Some(Kind::Deaf), &own, Some(&fair));
        let row = row.expect("three samples");
        let part = row.part_of_fair.expect("there is an equal");
        assert!((part.min - 0.25).abs() < 1e-9 && (part.median - 0.5).abs() < 1e-9);
        assert!((row.max_loss_pct - 0.9).abs() < 1e-9);
        assert_eq!(row.n_neighbour_connections, 6);
        let text = FairnessReport {
            in_flight: 64,
            rows: vec![row],
        }
        .to_string();
        assert!(
            text.contains("deaf") && text.contains("0.50 (0.30-"),
            "{text}"
        );
    }

    #[test]
    fn without_an_equal_there_is_no_part() {
        let row = Row::of(Transport::Tcp, None, &[sample(1.0)], None);
        assert!(row.expect("a sample").part_of_fair.is_none());
        assert!(Row::of(Transport::Tcp, None, &[], None).is_none());
    }
}
