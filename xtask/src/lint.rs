//! The steps of `cargo xtask check`: format, lints, documentation, tidy.

use std::process::Command;
use std::time::Duration;

use crate::process::run_well;
use crate::report::{Outcome, Report};
use crate::tidy as rules;
use crate::workspace::Workspace;

/// Longest that one compiling step may take.
const COMPILE_LIMIT: Duration = Duration::from_secs(40 * 60);

/// Runs every step of `check`.
pub(crate) fn run(workspace: &Workspace, report: &mut Report) {
    report.step("format", || {
        cargo_step(workspace, "format", |cargo| {
            cargo.args(["fmt", "--all", "--check"]);
        })
    });
    tidy(workspace, report);
    report.step("clippy", || {
        cargo_step(workspace, "clippy", |cargo| {
            cargo.args(["clippy", "--workspace", "--all-targets", "--locked"]);
            cargo.args(["--", "-D", "warnings"]);
        })
    });
    report.step("documentation", || {
        cargo_step(workspace, "documentation", |cargo| {
            cargo.args(["doc", "--workspace", "--no-deps", "--lib", "--locked"]);
            cargo.env("RUSTDOCFLAGS", "-D warnings");
        })
    });
}

/// Runs the rules of the source tree.
pub(crate) fn tidy(workspace: &Workspace, report: &mut Report) {
    report.step("tidy", || match rules::find_violations(workspace) {
        Ok(violations) if violations.is_empty() => Outcome::Passed(1),
        Ok(violations) => Outcome::Failed(violations.join("\n")),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    });
}

/// Runs cargo with what `arrange` adds; passes if it ends well.
pub(crate) fn cargo_step(
    workspace: &Workspace,
    name: &str,
    arrange: impl FnOnce(&mut Command),
) -> Outcome {
    let mut cargo = workspace.cargo();
    arrange(&mut cargo);
    match run_well(&mut cargo, &workspace.log(name), COMPILE_LIMIT) {
        Ok(_) => Outcome::Passed(1),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}
