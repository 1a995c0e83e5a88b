//! The `tachonym-lab` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tachonym_lab::{exchange, impair};

/// Experiments with NDN forwarders.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Exchange(Box<exchange::ExchangeArgs>),
    Impair(Box<impair::ImpairArgs>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Exchange(args) => exchange::run(&args),
        Command::Impair(args) => impair::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tachonym-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
