//! `tachonym-lab exchange compare`: several forwarders under one load.
//!
//! Every round measures each of them once, in an order that moves on from
//! round to round, so that what else the machine does falls on all alike.
//! Figures are medians over the rounds with their spread. In the same rounds the
//! generator is measured without a forwarder over each transport in use: its
//! ceiling. Refuses to say which difference matters: a ratio whose spread holds 1 is none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tachonym_bench::machine::{Machine, version_of};
use tachonym_bench::stats::Spread;

use super::address::{Address, Transport};
use super::flow::Mode;
use super::launch::Running;
use super::measure::{Forwarder, Load, Target, measure};
use super::report::Measurement;
use crate::output;

/// Measures several forwarders under the same load, interleaved.
///
/// Ratios are against the first target. Rows in brackets are without a
/// forwarder: what the generator could do at most over that transport. The load
/// bounds each measurement, of which there are one per round, mode and row. The
/// exit code is 3 if the time cut off any of them.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// A forwarder: label=NAME,consumer=URI,producer=URI[,pid=N]
    /// [,control=URI][,binary=PATH][,start=COMMAND]; `binary` is run with --version to report the
    /// version. `start` comes last; the command that it starts is stopped at the end. Repeat the
    /// option for more forwarders
    #[arg(long = "target", required = true, value_name = "KEY=VALUE,…")]
    targets: Vec<LabelledTarget>,
    /// What to request; repeat for several
    #[arg(long = "mode", default_values = ["miss", "hit"])]
    modes: Vec<Mode>,
    /// Rounds, in each of which every forwarder is measured once
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    #[command(flatten)]
    load: Load,
    /// Prints JSON instead of a table, every round included
    #[arg(long)]
    json: bool,
}

/// A forwarder with a name for the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledTarget {
    /// Its name in the table.
    pub label: String,
    /// Where it is.
    pub forwarder: Forwarder,
    /// Asked for its `--version`.
    pub binary: Option<PathBuf>,
    /// Command line that starts it.
    pub start: Option<String>,
}

impl FromStr for LabelledTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A command line may hold commas.
        let (text, start) = match text.split_once(",start=") {
            Some((text, start)) => (text, Some(start.to_owned())),
            None => (text, None),
        };
        let mut fields = BTreeMap::new();
        for field in text.split(',') {
            let (key, value) = field
                .split_once('=')
                .ok_or_else(|| format!("`{field}` is not KEY=VALUE"))?;
            if fields.insert(key, value).is_some() {
                return Err(format!("`{key}` is given twice"));
            }
        }
        let mut take = |key: &str| fields.remove(key);
        let address = |key: &str, uri: &str| -> Result<Address, String> {
            uri.parse().map_err(|error| format!("{key}={uri}: {error}"))
        };
        let required = |key: &str, value: Option<&str>| -> Result<Address, String> {
            address(key, value.ok_or_else(|| format!("`{key}` is missing"))?)
        };
        let target = Self {
            label: take("label").ok_or("`label` is missing")?.to_owned(),
            forwarder: Forwarder {
                consumer: required("consumer", take("consumer"))?,
                producer: required("producer", take("producer"))?,
                pid: take("pid")
                    .map(|pid| {
                        pid.parse()
                            .map_err(|_| format!("pid={pid} is not a process id"))
                    })
                    .transpose()?,
                control: take("control")
                    .map(|uri| address("control", uri))
                    .transpose()?,
            },
            binary: take("binary").map(PathBuf::from),
            start,
        };
        match fields.keys().next() {
            None => Ok(target),
            Some(key) => Err(format!("`{key}` is unknown")),
        }
    }
}

/// A comparison's outcome.
#[derive(Debug, Serialize)]
pub struct Comparison {
    machine: Machine,
    command_line: String,
    load: Load,
    targets: Vec<TargetFacts>,
    /// One for each target and mode, and the generator's ceilings.
    pub rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct TargetFacts {
    label: String,
    consumer: String,
    producer: String,
    version: Option<String>,
}

/// One target in one mode, over all rounds.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What was requested.
    pub mode: Mode,
    /// The target's name; in brackets the transport, where no forwarder was between.
    pub label: String,
    /// Without a forwarder: the generator's ceiling.
    pub is_ceiling: bool,
    /// The forwarder's CPU time per exchange in nanoseconds.
    pub cpu_ns_per_exchange: Option<Spread>,
    /// That of each round over the first target's of the same round.
    pub cpu_ratio: Option<Spread>,
    /// Right Data per second.
    pub exchanges_per_s: Option<Spread>,
    /// Interests without their Data, in per cent.
    pub loss_pct: Option<Spread>,
    /// Median latency in microseconds.
    pub p50_us: Option<Spread>,
    /// 99th percentile of the latencies in microseconds.
    pub p99_us: Option<Spread>,
    /// 99.9th percentile of the latencies in microseconds.
    pub p99_9_us: Option<Spread>,
    /// Most resident memory of the forwarder in bytes.
    pub rss_peak_bytes: Option<Spread>,
    /// The generator's own CPU time per exchange in nanoseconds.
    pub generator_cpu_ns_per_exchange: Option<Spread>,
    /// CPU time of all other programs, in cores.
    pub others_cpu_cores: Option<Spread>,
    /// Time that the hypervisor gave to other machines, in cores.
    pub stolen_cpu_cores: Option<Spread>,
    /// Rounds that the time cut off.
    pub n_incomplete: usize,
    /// Measurements, by round.
    pub rounds: Vec<Measurement>,
    /// Errors of the rounds that are missing.
    pub failures: Vec<String>,
}

/// Runs the comparison and prints it.
///
/// # Errors
/// If a forwarder cannot be started, a binary has no version or every round of
/// every target failed. A failure of single rounds is part of the result.
pub fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let mut targets = args.targets.clone();
    let mut started = Vec::new();
    for target in &mut targets {
        if let Some(command) = &target.start {
            let mut running = Running::start(command)?;
            let forwarder = &mut target.forwarder;
            let control = forwarder.control.as_ref().unwrap_or(&forwarder.producer);
            running.first_exchange(control, control)?;
            forwarder.pid = Some(running.process()?.pid());
            started.push(running);
        }
    }
    let comparison = compare(&targets, &args.modes, args.rounds, &args.load)?;
    if args.json {
        println!("{}", serde_json::to_string(&comparison)?);
    } else {
        println!("{}", comparison.table());
    }
    let is_measured = |row: &Row| !row.is_ceiling && !row.rounds.is_empty();
    if !comparison.rows.iter().any(is_measured) {
        let reasons = comparison.rows.iter().flat_map(|row| row.failures.iter());
        let reason = reasons.last().map_or("no target", String::as_str);
        anyhow::bail!("nothing could be measured: {reason}");
    }
    let is_complete = comparison.rows.iter().all(|row| row.n_incomplete == 0);
    Ok(super::exit_code(is_complete))
}

/// Measures running forwarders in turn, `rounds` times in each mode.
///
/// # Errors
/// If a binary has no version. Rounds that fail are part of the result.
pub fn compare(
    targets: &[LabelledTarget],
    modes: &[Mode],
    rounds: u64,
    load: &Load,
) -> anyhow::Result<Comparison> {
    let mut facts = Vec::new();
    for target in targets {
        let version = match &target.binary {
            None => None,
            Some(binary) => Some(version_of(binary).with_context(|| target.label.clone())?),
        };
        facts.push(TargetFacts {
            label: target.label.clone(),
            consumer: target.forwarder.consumer.to_string(),
            producer: target.forwarder.producer.to_string(),
            version,
        });
    }
    let machine = Machine::read();
    let mut entrants: Vec<(String, Target)> = targets
        .iter()
        .map(|t| (t.label.clone(), Target::Forwarder(t.forwarder.clone())))
        .collect();
    let ceilings = transports_of(targets).into_iter();
    entrants.extend(ceilings.map(|t| (format!("({t})"), Target::Direct(t))));
    let mut rows = Vec::new();
    for &mode in modes {
        rows.extend(measure_mode(&entrants, mode, rounds, load));
    }
    Ok(Comparison {
        machine,
        command_line: output::command_line(),
        load: load.clone(),
        targets: facts,
        rows,
    })
}

/// Every transport that a target uses, once.
fn transports_of(targets: &[LabelledTarget]) -> Vec<Transport> {
    let mut transports = Vec::new();
    for target in targets {
        for address in [&target.forwarder.consumer, &target.forwarder.producer] {
            let transport = address.transport();
            if !transports.contains(&transport) {
                transports.push(transport);
            }
        }
    }
    transports
}

fn measure_mode(entrants: &[(String, Target)], mode: Mode, rounds: u64, load: &Load) -> Vec<Row> {
    let mut outcomes: Vec<Vec<anyhow::Result<Measurement>>> =
        entrants.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds as usize {
        for step in 0..entrants.len() {
            let idx = (round + step) % entrants.len();
            let (label, target) = &entrants[idx];
            let outcome = measure(target, mode, load);
            match &outcome {
                Ok(m) => eprintln!(
                    "round {}: {label}, {:.0} exchanges/s",
                    round + 1,
                    m.exchanges_per_s
                ),
                Err(error) => eprintln!("round {}: {label} failed: {error:#}", round + 1),
            }
            outcomes[idx].push(outcome);
        }
    }
    let baseline: Vec<Option<f64>> = outcomes
        .first()
        .map(|first| {
            first
                .iter()
                .map(|m| m.as_ref().ok().and_then(cpu_ns))
                .collect()
        })
        .unwrap_or_default();
    entrants
        .iter()
        .zip(outcomes)
        .map(|((label, target), outcomes)| {
            let is_ceiling = matches!(target, Target::Direct(_));
            row(mode, label, is_ceiling, outcomes, &baseline)
        })
        .collect()
}

fn cpu_ns(measurement: &Measurement) -> Option<f64> {
    measurement.forwarder.as_ref()?.cpu_ns_per_exchange
}

fn row(
    mode: Mode,
    label: &str,
    is_ceiling: bool,
    outcomes: Vec<anyhow::Result<Measurement>>,
    baseline: &[Option<f64>],
) -> Row {
    let ratios: Vec<f64> = outcomes
        .iter()
        .zip(baseline)
        .filter_map(|(m, baseline)| Some(cpu_ns(m.as_ref().ok()?)? / (*baseline)?))
        .collect();
    let mut rounds = Vec::new();
    let mut failures = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(measurement) => rounds.push(measurement),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    let spread = |figure: &dyn Fn(&Measurement) -> Option<f64>| {
        Spread::of(&rounds.iter().filter_map(figure).collect::<Vec<_>>())
    };
    Row {
        mode,
        label: label.to_owned(),
        is_ceiling,
        cpu_ns_per_exchange: spread(&cpu_ns),
        cpu_ratio: Spread::of(&ratios),
        exchanges_per_s: spread(&|m| Some(m.exchanges_per_s)),
        loss_pct: spread(&|m| Some(m.loss_pct)),
        p50_us: spread(&|m| Some(m.latency.p50_us)),
        p99_us: spread(&|m| Some(m.latency.p99_us)),
        p99_9_us: spread(&|m| Some(m.latency.p99_9_us)),
        rss_peak_bytes: spread(&|m| Some(m.forwarder.as_ref()?.rss_peak_bytes as f64)),
        generator_cpu_ns_per_exchange: spread(&|m| m.generator_cpu_ns_per_exchange),
        others_cpu_cores: spread(&|m| Some(m.others_cpu_cores)),
        stolen_cpu_cores: spread(&|m| Some(m.stolen_cpu_cores)),
        n_incomplete: rounds.iter().filter(|m| !m.is_complete).count(),
        rounds,
        failures,
    }
}

impl Comparison {
    /// All rows for a reader.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}\n{}", self.machine, self.command_line);
        for target in &self.targets {
            let version = target.version.as_deref().unwrap_or("version not known");
            let _ = writeln!(out, "{}: {version}", target.label);
        }
        out.push('\n');
        out.push_str(&self.rows_table());
        out
    }

    /// The rows alone, without where and how they were measured.
    #[must_use]
    pub fn rows_table(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:<4} {:<12} {:>21} {:>18} {:>22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>6}",
            "mode",
            "forwarder",
            "CPU µs/exch (p10–p90)",
            "ratio (p10–p90)",
            "1000 exch/s (p10–p90)",
            "loss %",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "RSS MiB",
            "gen µs",
            "others",
            "stolen"
        );
        for row in &self.rows {
            let mode = row.mode.to_string();
            let _ = writeln!(
                out,
                "{mode:<4} {:<12} {:>21} {:>18} {:>22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} \
                 {:>6}",
                row.label,
                with_spread(row.cpu_ns_per_exchange, 1e-3, 2),
                with_spread(row.cpu_ratio, 1.0, 3),
                with_spread(row.exchanges_per_s, 1e-3, 1),
                median(row.loss_pct, 1.0, 3),
                median(row.p50_us, 1.0, 1),
                median(row.p99_us, 1.0, 1),
                median(row.p99_9_us, 1.0, 1),
                median(row.rss_peak_bytes, 1.0 / f64::from(1 << 20), 1),
                median(row.generator_cpu_ns_per_exchange, 1e-3, 2),
                median(row.others_cpu_cores, 1.0, 2),
                median(row.stolen_cpu_cores, 1.0, 2),
            );
            if row.n_incomplete > 0 {
                let _ = writeln!(out, "     {} of its rounds cut off", row.n_incomplete);
            }
            if !row.failures.is_empty() {
                let _ = writeln!(
                    out,
                    "     {} of its rounds failed, the last: {}",
                    row.failures.len(),
                    row.failures.last().map_or("", String::as_str)
                );
            }
        }
        let _ = write!(
            out,
            "\nMedians over {} rounds, interleaved; ratio to the first of the same round; \
             in brackets: the generator\nwithout a forwarder, its ceiling; gen: its own CPU time \
             for an exchange; others: cores that neither\nit nor the forwarder used; stolen: cores \
             that the hypervisor gave to other machines.",
            self.rows
                .iter()
                .map(|row| row.rounds.len())
                .max()
                .unwrap_or(0)
        );
        out
    }
}

fn median(spread: Option<Spread>, scale: f64, decimals: usize) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |s| format!("{:.decimals$}", s.median * scale),
    )
}

fn with_spread(spread: Option<Spread>, scale: f64, decimals: usize) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |s| {
            format!(
                "{:.decimals$} ({:.decimals$}–{:.decimals$})",
                s.median * scale,
                s.p10 * scale,
                s.p90 * scale
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::super::address::{Transport, UdpPeers};
    use super::*;

    #[test]
    fn a_target_is_read_from_its_fields() {
        let text = "label=x,consumer=unix:///a/b.sock,producer=udp://127.0.0.1:6363,pid=7,\
                    control=unix:///c,binary=/bin/x";
        let target: LabelledTarget = text.parse().expect("complete");
        assert_eq!(target.label, "x");
        assert_eq!(target.forwarder.pid, Some(7));
        assert_eq!(target.forwarder.producer.transport(), Transport::Udp);
        assert_eq!(target.forwarder.control, "unix:///c".parse().ok());
        assert_eq!(target.binary, Some("/bin/x".into()));
    }

    #[test]
    fn the_command_that_starts_a_target_may_hold_anything() {
        let text = "label=x,consumer=unix:///a,producer=unix:///a,start=run --a=1,2 'b,start=c'";
        let target: LabelledTarget = text.parse().expect("complete");
        assert_eq!(target.start.as_deref(), Some("run --a=1,2 'b,start=c'"));
    }

    #[test]
    fn a_bad_target_names_the_field() {
        for (text, word) in [
            ("label=x,consumer=unix:///a", "producer"),
            ("label=x,label=y", "twice"),
            ("consumer", "KEY=VALUE"),
            ("label=x,consumer=unix:///a,producer=unix:///a,pod=3", "pod"),
            ("label=x,consumer=unix:///a,producer=unix:///a,pid=x", "pid"),
            (
                "label=x,consumer=tcp://10.0.0.1:1,producer=unix:///a",
                "loopback",
            ),
        ] {
            let error = text.parse::<LabelledTarget>().expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    /// No router is needed to see which rows there are.
    #[test]
    fn every_transport_in_use_has_its_ceiling_in_every_mode() {
        let absent = "label=x,consumer=unix:///nonexistent/s,producer=udp://127.0.0.1:9";
        let targets = [absent.parse().expect("complete")];
        let load = Load {
            content_bytes: 100,
            in_flight: 8,
            flows: 1,
            count: 200,
            max_seconds: 600,
            udp: UdpPeers::Single,
            token_bytes: None,
            lifetime_ms: 60_000,
            must_be_fresh: false,
            freshness_ms: 1_000,
            catalogue: 16,
            warm_up: 10,
            spin: false,
            cpu: None,
        };
        let modes = [Mode::Miss, Mode::Hit];
        let comparison = compare(&targets, &modes, 2, &load).expect("it is part of the result");
        let rows = comparison.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (row.label.as_str(), row.is_ceiling, row.rounds.len()))
            .collect();
        let of_mode = [("x", false, 0), ("(unix)", true, 2), ("(udp)", true, 2)];
        assert_eq!(rows, [of_mode, of_mode].concat());
        let table = comparison.rows_table();
        assert!(
            table.contains("others") && table.contains("(udp)"),
            "{table}"
        );
        assert!(table.contains("2 of its rounds failed"), "{table}");
    }

    #[test]
    fn spreads_are_written_with_their_median_first() {
        let spread = Spread::of(&[1_000.0, 2_000.0, 3_000.0]);
        assert_eq!(with_spread(spread, 1e-3, 1), "2.0 (1.2–2.8)");
        assert_eq!(median(None, 1.0, 1), "–");
    }
}
