//! `tachonym-lab cache`: admission and eviction on workloads and traces.
//!
//! The evaluation of Takemasa et al. 2019 (chapter 5 of Takemasa 2019), with the
//! policies that the router runs.

mod change;
mod cycles;
mod forward;
mod model;
mod plot;
mod published;
mod rates;
pub mod simulate;
pub mod trace;
mod validate;
pub mod workload;
pub mod zipf;

use clap::{Args, Subcommand};

/// Simulates cache admission and eviction, beside published and known figures
#[derive(Args, Clone, Debug)]
pub struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum CacheCommand {
    Validate(validate::ValidateArgs),
    Rates(rates::RatesArgs),
    Model(model::ModelArgs),
    Change(change::ChangeArgs),
    Cycles(cycles::CyclesArgs),
    Forward(forward::ForwardArgs),
}

/// Runs the command.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &CacheArgs) -> anyhow::Result<()> {
    match &args.command {
        CacheCommand::Validate(args) => validate::run(args),
        CacheCommand::Rates(args) => rates::run(args),
        CacheCommand::Model(args) => model::run(args),
        CacheCommand::Change(args) => change::run(args),
        CacheCommand::Cycles(args) => cycles::run(args),
        CacheCommand::Forward(args) => forward::run(args),
    }
}
