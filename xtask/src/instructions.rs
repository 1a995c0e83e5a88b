//! The gate on instruction counts: the lab counts what packets take in the
//! engine, and compares with the budget that is kept beside it.
//!
//! Wall time gates nothing: it differs from run to run, counts do not.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::process::run;
use crate::report::{Outcome, Report};
use crate::workspace::Workspace;

/// Where the budget is kept.
const BUDGET: &str = "crates/lab/budgets/instructions.toml";

/// Longest that counting may take.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Exit code of the lab where instructions cannot be counted.
const EXIT_UNAVAILABLE: i32 = 3;

/// What to do with the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Compare with it.
    Compare,
    /// Lower it.
    Update,
    /// Write it again, higher where more is counted.
    Raise,
}

/// Counts with the lab's release build, which must be there.
pub(crate) fn run_gate(workspace: &Workspace, effort: Effort, report: &mut Report) {
    report.step("instructions", || {
        let mut lab = Command::new(workspace.target.join("release/tachonym-lab"));
        lab.current_dir(&workspace.root);
        lab.args(["instructions", "--budget", BUDGET]);
        match effort {
            Effort::Compare => {}
            Effort::Update => {
                lab.arg("--update");
            }
            Effort::Raise => {
                lab.arg("--raise");
            }
        }
        let log = workspace.log("instructions");
        match run(&mut lab, &log, LIMIT) {
            Ok(finished) => outcome_of(finished.status, &finished.output, &log),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    });
}

fn outcome_of(status: ExitStatus, output: &str, log: &Path) -> Outcome {
    // What is wrong is said last, after the counts.
    let last = || output.lines().next_back().unwrap_or_default();
    match status.code() {
        Some(0) => Outcome::Passed(1),
        Some(EXIT_UNAVAILABLE) => Outcome::Skipped(last().to_owned()),
        _ => {
            let told = output
                .lines()
                .rev()
                .take_while(|line| !line.is_empty() && !line.starts_with(' '));
            let mut told: Vec<&str> = told.collect();
            told.reverse();
            Outcome::Failed(format!(
                "{}\nall counts are in {}; if it is meant: cargo xtask instructions --raise",
                told.join("\n"),
                log.display()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn outcome(code: i32, output: &str) -> Outcome {
        outcome_of(ExitStatus::from_raw(code << 8), output, Path::new("/log"))
    }

    #[test]
    fn what_exceeds_the_budget_is_told_and_counts_are_not() {
        let output = "burst-1, Data: 9.0\n  checks  9.0\n\nburst-1, Data: 9.0 instead of 8.0\n";
        let Outcome::Failed(told) = outcome(1, output) else {
            panic!("it must fail");
        };
        assert!(told.starts_with("burst-1, Data: 9.0 instead of 8.0\nall counts"));
        assert!(told.contains("--raise"), "{told}");
    }

    #[test]
    fn a_machine_that_cannot_count_is_a_skip_with_its_reason() {
        let outcome = outcome(3, "instructions cannot be counted: no\n");
        let Outcome::Skipped(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(reason, "instructions cannot be counted: no");
    }

    #[test]
    fn counts_within_the_budget_pass() {
        assert!(matches!(outcome(0, ""), Outcome::Passed(1)));
    }
}
