//! The steps of `cargo xtask check`: format, lints, documentation, tidy.
//!
//! The packages in `compare` are held to format, lints and tidy, too. Lints of theirs need their
//! dependencies, which are built apart once: 24 s on two cores for foyer.

use std::process::Command;
use std::time::Duration;

use crate::process::run_well;
use crate::report::{Outcome, Report};
use crate::results;
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
    of_comparing(workspace, report, "format", |cargo| {
        cargo.args(["fmt", "--check"]);
    });
    tidy(workspace, report);
    report.step("results", || match results::faults(&workspace.root) {
        Ok(faults) if faults.is_empty() => Outcome::Passed(1),
        Ok(faults) => Outcome::Failed(faults.join("\n")),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    });
    report.step("clippy", || {
        cargo_step(workspace, "clippy", |cargo| {
            cargo.args(["clippy", "--workspace", "--all-targets", "--locked"]);
            cargo.args(["--", "-D", "warnings"]);
        })
    });
    of_comparing(workspace, report, "clippy", |cargo| {
        cargo.args(["clippy", "--all-targets", "--locked"]);
        cargo.args(["--", "-D", "warnings"]);
        cargo.env("CARGO_TARGET_DIR", workspace.target.join("compare"));
    });
    report.step("documentation", || {
        cargo_step(workspace, "documentation", |cargo| {
            cargo.args(["doc", "--workspace", "--no-deps", "--lib", "--locked"]);
            cargo.env("RUSTDOCFLAGS", "-D warnings");
        })
    });
}

/// Runs a command of cargo for each package that compares other software with the project.
fn of_comparing(
    workspace: &Workspace,
    report: &mut Report,
    name: &str,
    arrange: impl Fn(&mut Command),
) {
    for package in &workspace.comparing {
        let name = format!("{name} {}", package.name);
        report.step(&name, || {
            cargo_step(workspace, &name.replace(' ', "-"), |cargo| {
                cargo.current_dir(&package.folder);
                arrange(cargo);
            })
        });
    }
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
