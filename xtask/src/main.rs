//! Everything the project's checks do: `cargo xtask check` while working,
//! `cargo xtask test` before it counts.
//!
//! Each step prints one line with its outcome; the last line adds them up.
//! A step that cannot have what it needs is a skip, never a pass, and fails
//! where `CI=true`. Start reading at [`Command`]; what a step is, is in
//! [`report`].
#![forbid(unsafe_code)]

mod circles;
mod fuzz;
mod instructions;
mod interop;
mod lint;
mod process;
mod programs;
mod report;
mod results;
mod rust_tests;
mod tidy;
mod words;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use instructions::Effort;
use report::Report;
use workspace::Workspace;

/// Checks, tests and fuzzing of Tachonym.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Format, lints, documentation and the rules of the source tree.
    Check,
    /// Everything: check, tests, release build, instruction counts, real peers, a short
    /// fuzz.
    Test,
    /// Only the tests with programs of other libraries.
    Interop,
    /// Only the fuzz targets, for as long as asked.
    Fuzz {
        /// Minutes for each target.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The target; all of them without it.
        target: Option<String>,
    },
    /// Only the count of the instructions that packets take.
    Instructions {
        /// Lower the budget to what was counted.
        #[arg(long)]
        update: bool,
        /// Write what was counted into the budget, higher numbers too.
        #[arg(long, conflicts_with = "update")]
        raise: bool,
    },
    /// Only the rules of the source tree.
    Tidy,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let workspace = match Workspace::find() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let mut report = Report::new();
    match arguments.command {
        Command::Check => lint::run(&workspace, &mut report),
        Command::Test => {
            lint::run(&workspace, &mut report);
            rust_tests::run_all(&workspace, &mut report);
            if rust_tests::build_release(&workspace, &mut report) {
                instructions::run_gate(&workspace, Effort::Compare, &mut report);
                interop::run(&workspace, &mut report);
            }
            fuzz::run(&workspace, fuzz::Effort::Short, None, &mut report);
        }
        Command::Interop => {
            if rust_tests::build_release(&workspace, &mut report) {
                interop::run(&workspace, &mut report);
            }
        }
        Command::Fuzz { minutes, target } => {
            let effort = fuzz::Effort::Minutes(minutes);
            fuzz::run(&workspace, effort, target.as_deref(), &mut report);
        }
        Command::Instructions { update, raise } => {
            let effort = match (update, raise) {
                (_, true) => Effort::Raise,
                (true, _) => Effort::Update,
                _ => Effort::Compare,
            };
            if rust_tests::build_release(&workspace, &mut report) {
                instructions::run_gate(&workspace, effort, &mut report);
            }
        }
        Command::Tidy => lint::tidy(&workspace, &mut report),
    }
    report.finish()
}
