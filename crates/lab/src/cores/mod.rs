//! `tachonym-lab cores`: dispatch of packets to many cores, in virtual time.
//!
//! The evaluation of Iqbal 2013, chapters 4 and 5, with the schedulers that a router runs
//! (crate `dispatch`) on simulated cores (crate `sim`). The thesis' traces are not to be
//! had: traffic is drawn, as `sim::traffic` says, or read from a file: names, or the flows
//! of any capture of IP packets. Rates are those of the experiment, as in the thesis
//! (section 3.4.2), whatever times the file tells.
//!
//! LAPS comes as a router runs it: what moves evens loads out and keeps its packets' order,
//! and names are divided by a name dispatch table. Beside it stand the same with linear
//! hashing, and the scheduler as published.

mod allocation;
mod balance;
mod bed;
mod detector;
mod hash;
mod migrations;
mod published;
mod scenarios;
mod throughput;

use clap::{Args, Subcommand};

/// Simulates packet schedulers on many cores, and compares the results with published ones
#[derive(Args, Clone, Debug)]
pub struct CoresArgs {
    #[command(subcommand)]
    command: CoresCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum CoresCommand {
    Hash(hash::HashArgs),
    Detector(detector::DetectorArgs),
    Balance(balance::BalanceArgs),
    Migrations(migrations::MigrationsArgs),
    Throughput(throughput::ThroughputArgs),
    Scenarios(scenarios::ScenariosArgs),
    Allocation(allocation::AllocationArgs),
}

/// Runs the command.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &CoresArgs) -> anyhow::Result<()> {
    match &args.command {
        CoresCommand::Hash(args) => hash::run(args),
        CoresCommand::Detector(args) => detector::run(args),
        CoresCommand::Balance(args) => balance::run(args),
        CoresCommand::Migrations(args) => migrations::run(args),
        CoresCommand::Throughput(args) => throughput::run(args),
        CoresCommand::Scenarios(args) => scenarios::run(args),
        CoresCommand::Allocation(args) => allocation::run(args),
    }
}
