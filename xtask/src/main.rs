//! Everything the project's checks do.
//!
//! `cargo xtask check` looks at the source; `cargo xtask test` also runs every
//! test, and closes with how many passed, failed and were skipped. With `CI`
//! set to `true` a skip is a failure.
#![forbid(unsafe_code)]

mod step;
mod tidy;

use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

use crate::step::Tally;

#[derive(Parser)]
#[command(about = "The project's checks")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format, lints, documentation, house rules.
    Check,
    /// `check`, then every test.
    Test,
}

fn main() -> anyhow::Result<ExitCode> {
    let task = Arguments::parse().task;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    std::env::set_current_dir(root)?;
    let mut tally = Tally::default();
    check(&mut tally)?;
    if matches!(task, Task::Test) {
        tally.run_tests("workspace tests", cargo(&["test", "--workspace"]))?;
    }
    Ok(tally.close())
}

fn check(tally: &mut Tally) -> anyhow::Result<()> {
    tally.run("format", cargo(&["fmt", "--all", "--check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    tally.run("lints", cargo(&clippy))?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    tally.run("documentation", doc)?;
    tally.record("house rules", tidy::faults()?);
    Ok(())
}

/// The cargo that runs this.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}
