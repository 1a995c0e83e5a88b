//! `tachonym-lab hcs`: a content store of two levels.
//!
//! The evaluation of Mansilha et al. 2017, one command for each of its figures. All of them
//! ask a store through the trait `Hcs` (`store`). Of one level there are the router's own tables
//! (`dram`) and its whole engine (`forwarder`). Those of two are made in `recipe`, so that every
//! curve can be had of each: the paper's serial algorithm with its emulation of the second level
//! (`emulated`), and the router's own two levels (`two_levels`) on an emulated device or a disk.

mod bed;
mod catalogue;
mod disk;
mod division;
pub(crate) mod dram;
mod emulated;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure8a;
mod figure9a;
mod fit;
mod forwarder;
mod made;
mod model;
mod paced;
mod packets;
mod published;
mod recipe;
mod store;
mod threads;
mod two_levels;
mod workload;

use clap::{Args, Subcommand};

/// Measures content stores with one and two levels, and compares the results with published ones
#[derive(Args, Clone, Debug)]
pub struct HcsArgs {
    #[command(subcommand)]
    command: HcsCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum HcsCommand {
    #[command(name = "figure-3")]
    Figure3(figure3::Figure3Args),
    #[command(name = "figure-4")]
    Figure4(figure4::Figure4Args),
    #[command(name = "figure-5", visible_alias = "table-4")]
    Figure5(figure5::Figure5Args),
    #[command(name = "figure-6a")]
    Figure6A(figure6::Figure6AArgs),
    #[command(name = "figure-6b")]
    Figure6B(figure6::Figure6BArgs),
    #[command(name = "figure-7")]
    Figure7(threads::Figure7Args),
    #[command(name = "figure-8a")]
    Figure8A(figure8a::Figure8AArgs),
    #[command(name = "figure-8b")]
    Figure8B(threads::Figure8BArgs),
    #[command(name = "figure-9a")]
    Figure9A(figure9a::Figure9AArgs),
    #[command(name = "figure-9b")]
    Figure9B(threads::Figure9BArgs),
    Disk(disk::DiskArgs),
}

/// Runs the command.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &HcsArgs) -> anyhow::Result<()> {
    match &args.command {
        HcsCommand::Figure3(args) => figure3::run(args),
        HcsCommand::Figure4(args) => figure4::run(args),
        HcsCommand::Figure5(args) => figure5::run(args),
        HcsCommand::Figure6A(args) => figure6::run_sizes(args),
        HcsCommand::Figure6B(args) => figure6::run_rates(args),
        HcsCommand::Figure7(args) => threads::run_rates(args),
        HcsCommand::Figure8A(args) => figure8a::run(args),
        HcsCommand::Figure8B(args) => threads::run_rules(args),
        HcsCommand::Figure9A(args) => figure9a::run(args),
        HcsCommand::Figure9B(args) => threads::run_machine(args),
        HcsCommand::Disk(args) => disk::run(args),
    }
}
