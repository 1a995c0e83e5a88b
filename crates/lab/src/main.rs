//! The `tachonym-lab` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tachonym_bench::cli::{self, DocsArgs, ListArgs, ReportArgs, RunArgs};
use tachonym_bench::{Catalogue, Registry};
use tachonym_lab::{experiments, instructions};
use tachonym_loadgen::{
    exchange, fairness, figures, footprint, impair, routes, soak, startup, transfer,
};

const EXAMPLES: &str = "\
Examples:
  tachonym-lab list takemasa                                   what Takemasa 2019 contains
  tachonym-lab run takemasa/figure-4.5                         one figure, beside the published one
  tachonym-lab report --out report                             all of them on one page
  tachonym-lab exchange --consumer unix:///run/nfd/nfd.sock    measure a running forwarder
  tachonym-lab exchange --direct unix                          measure the load generator alone
  tachonym-lab run own/cache-rates --set policies=lru,arc      simulate eviction policies
  tachonym-lab figures --tachonym target/release/tachonym      measure the running router

Exit codes: 0 success, 1 failure, 2 wrong usage; of `exchange` also 3: cut short by --max-seconds.";

/// Measurements and simulations of NDN forwarders.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(ListArgs),
    Run(RunArgs),
    Report(ReportArgs),
    Docs(DocsArgs),
    Exchange(Box<exchange::ExchangeArgs>),
    Routes(Box<routes::RoutesArgs>),
    Footprint(Box<footprint::FootprintArgs>),
    Soak(Box<soak::SoakArgs>),
    Startup(Box<startup::StartupArgs>),
    Transfer(Box<transfer::TransferArgs>),
    Fairness(Box<fairness::FairnessArgs>),
    Figures(Box<figures::FiguresArgs>),
    Impair(Box<impair::ImpairArgs>),
    Instructions(Box<instructions::InstructionsArgs>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Exchange(args) => return exit_code(exchange::run(&args)),
        Command::Instructions(args) => return exit_code(instructions::run(&args)),
        Command::List(args) => {
            catalogued(|catalogue, registry| cli::list(&args, catalogue, registry))
        }
        Command::Run(args) => {
            catalogued(|catalogue, registry| cli::run(&args, catalogue, registry))
        }
        Command::Report(args) => {
            catalogued(|catalogue, registry| cli::report(&args, catalogue, registry))
        }
        Command::Docs(args) => cli::docs(&args),
        Command::Routes(args) => routes::run(&args),
        Command::Footprint(args) => footprint::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Startup(args) => startup::run(&args),
        Command::Transfer(args) => transfer::run(&args),
        Command::Fairness(args) => fairness::run(&args),
        Command::Figures(args) => figures::run(&args),
        Command::Impair(args) => impair::run(&args),
    };
    exit_code(result.map(|()| ExitCode::SUCCESS))
}

/// Runs a command that needs the experiments.
fn catalogued(run: impl FnOnce(&Catalogue, &Registry) -> anyhow::Result<()>) -> anyhow::Result<()> {
    run(&experiments::catalogue()?, &experiments::registry()?)
}

fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tachonym-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
