//! `tachonym-lab cache`: admission and eviction on workloads and traces.
//!
//! The evaluation of Takemasa et al. 2019 (chapter 5 of Takemasa 2019), with the
//! policies that the router runs.

mod average;
mod change;
mod cycles;
mod figures;
mod forward;
mod model;
pub(crate) mod plot;
mod published;
mod rates;
pub mod simulate;
mod sources;
mod speed;
mod tuned;
mod validate;
pub mod workload;

use clap::{Args, Subcommand};

use crate::bottleneck::{self, BottleneckArgs};

/// Simulates cache admission and eviction, and compares the results with published and known ones
#[derive(Args, Clone, Debug)]
pub struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum CacheCommand {
    Validate(validate::ValidateArgs),
    Rates(rates::RatesArgs),
    #[command(visible_alias = "figure-4")]
    Model(model::ModelArgs),
    #[command(name = "figure-5")]
    Insertion(Box<figures::InsertionArgs>),
    #[command(name = "figure-6")]
    Hit(Box<figures::HitArgs>),
    #[command(name = "figure-7")]
    Average(Box<average::AverageArgs>),
    /// Measures the blocks of the packet path, and compares them with table 1
    #[command(name = "table-1")]
    Blocks(Box<BottleneckArgs>),
    #[command(name = "auto")]
    Tuned(Box<tuned::TunedArgs>),
    Change(change::ChangeArgs),
    #[command(visible_alias = "table-2")]
    Cycles(cycles::CyclesArgs),
    #[command(visible_alias = "figure-8")]
    Forward(forward::ForwardArgs),
    Speed(speed::SpeedArgs),
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
        CacheCommand::Insertion(args) => figures::run_insertion(args),
        CacheCommand::Hit(args) => figures::run_hit(args),
        CacheCommand::Average(args) => average::run(args),
        CacheCommand::Blocks(args) => bottleneck::run_table(args),
        CacheCommand::Tuned(args) => tuned::run(args),
        CacheCommand::Change(args) => change::run(args),
        CacheCommand::Cycles(args) => cycles::run(args),
        CacheCommand::Forward(args) => forward::run(args),
        CacheCommand::Speed(args) => speed::run(args),
    }
}
