//! `tachonym-lab exchange`: measures any running NDN forwarder on this machine
//! through its sockets and its process id.
//!
//! Entry points: [`measure::measure`] for one measurement, [`compare`] for
//! several forwarders. Below: [`drive`] is the loop, [`flow`] what a consumer
//! and its producer do, [`link`] the sockets, [`template`] the packets,
//! [`control`] the routes. Refuses other machines' addresses.

pub mod address;
pub mod budget;
pub mod compare;
pub mod control;
pub mod drive;
pub mod flow;
pub mod frame;
pub mod launch;
pub mod link;
pub mod measure;
pub mod pace;
pub mod report;
pub mod template;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde::Serialize;
use tachonym_bench::machine::Machine;

use self::address::{Address, Transport};
use self::flow::Mode;
use self::measure::{Forwarder, Load, Target, measure};
use self::report::Measurement;

/// Exit code of a run that the time limit cut short.
const INCOMPLETE_CODE: u8 = 3;

/// Measures rate, delay and CPU time of Interest–Data exchanges through a running forwarder.
///
/// Each flow's producer registers a prefix of its own by the NFD management
/// protocol and answers Interests of its consumer, which keeps a number of
/// them in flight. Only sockets of this machine are used.
///
/// A run ends after --count Interests or after --max-seconds. Exit codes: 0 if all Interests were
/// answered or lost, 3 if the time limit cut the run short (the report says what was cut off),
/// 1 if nothing could be measured.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ExchangeArgs {
    #[command(subcommand)]
    command: Option<ExchangeCommand>,
    /// Where the consumers connect: unix:///path, udp://127.0.0.1:6363 or
    /// tcp://127.0.0.1:6363
    #[arg(long, required_unless_present = "direct", value_name = "URI")]
    consumer: Option<Address>,
    /// Where the producers connect [default: as the consumers]
    #[arg(long, value_name = "URI")]
    producer: Option<Address>,
    /// Process id of the forwarder [default: of the process that owns the Unix socket]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Where UDP producers' routes are registered [default: over UDP]
    #[arg(long, value_name = "URI")]
    control: Option<Address>,
    /// Connects consumers and producers without a forwarder, which shows the limit of the generator
    #[arg(long, value_name = "TRANSPORT", conflicts_with_all = ["consumer", "producer", "pid", "control"])]
    direct: Option<Transport>,
    /// Names to request: names that never repeat, or cached ones
    #[arg(long, default_value = "miss")]
    mode: Mode,
    #[command(flatten)]
    load: Load,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ExchangeCommand {
    Compare(compare::CompareArgs),
}

#[derive(Serialize)]
struct Report<'a> {
    machine: Machine,
    command_line: String,
    measurement: &'a Measurement,
}

/// Measures what the command line names and prints the figures.
///
/// # Errors
/// If nothing could be measured. Neither loss nor a run that the time cut off is
/// an error; the exit code tells the latter.
pub fn run(args: &ExchangeArgs) -> anyhow::Result<ExitCode> {
    if let Some(ExchangeCommand::Compare(args)) = &args.command {
        return compare::run(args);
    }
    let target = match (args.direct, &args.consumer) {
        (Some(transport), _) => Target::Direct(transport),
        (None, consumer) => {
            let consumer = consumer.clone().context("--consumer is missing")?;
            Target::Forwarder(Forwarder {
                producer: args.producer.clone().unwrap_or_else(|| consumer.clone()),
                consumer,
                pid: args.pid,
                control: args.control.clone(),
            })
        }
    };
    let measurement = measure(&target, args.mode, &args.load)?;
    if args.json {
        let report = Report {
            machine: Machine::read(),
            command_line: std::env::args().collect::<Vec<_>>().join(" "),
            measurement: &measurement,
        };
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{measurement}");
    }
    Ok(exit_code(measurement.is_complete))
}

/// What the command ends with when it has figures.
fn exit_code(is_complete: bool) -> ExitCode {
    if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPLETE_CODE)
    }
}
