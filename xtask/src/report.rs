//! Outcomes of steps, and the line that adds them up.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How many checks or tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) n_passed: u64,
    pub(crate) n_failed: u64,
    pub(crate) n_skipped: u64,
}

/// What became of a step.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It passed, with this number of checks.
    Passed(u64),
    /// Some of its tests failed or were skipped; the text says what failed.
    Mixed(Counts, String),
    /// It failed; the text says why, and may be long.
    Failed(String),
    /// What it needs cannot be had; the text names it in one line.
    Skipped(String),
}

/// Prints a line for each step and keeps the sums.
pub(crate) struct Report {
    counts: Counts,
    skip_is_failure: bool,
}

impl Report {
    /// Begins a report; whether skips are failures is read from `CI`.
    pub(crate) fn new() -> Self {
        Self {
            counts: Counts::default(),
            skip_is_failure: std::env::var_os("CI").is_some_and(|value| value == "true"),
        }
    }

    /// Runs `step` and prints its outcome. Returns whether nothing failed.
    pub(crate) fn step(&mut self, name: &str, step: impl FnOnce() -> Outcome) -> bool {
        let begun = Instant::now();
        let outcome = step();
        let spent = begun.elapsed();
        match outcome {
            Outcome::Passed(n_checks) => {
                self.counts.n_passed += n_checks;
                line("ok", name, spent, &plural(n_checks));
                true
            }
            Outcome::Mixed(counts, details) => {
                self.counts.n_passed += counts.n_passed;
                self.counts.n_failed += counts.n_failed;
                self.counts.n_skipped += counts.n_skipped;
                let word = match counts {
                    Counts { n_failed: 1.., .. } => "FAILED",
                    Counts { n_skipped: 1.., .. } => "partly",
                    _ => "ok",
                };
                line(word, name, spent, &sums(counts));
                print_details(&details);
                counts.n_failed == 0
            }
            Outcome::Failed(details) => {
                self.counts.n_failed += 1;
                line("FAILED", name, spent, "");
                print_details(&details);
                false
            }
            Outcome::Skipped(reason) => {
                self.counts.n_skipped += 1;
                line("skipped", name, spent, &reason);
                true
            }
        }
    }

    /// Prints the sums as the last line. The exit code tells whether anything
    /// failed; under `CI=true` a skip is a failure too.
    pub(crate) fn finish(self) -> ExitCode {
        let skips_fail = self.skip_is_failure && self.counts.n_skipped > 0;
        if skips_fail {
            println!("CI=true: what was skipped counts as failed");
        }
        println!("{}", sums(self.counts));
        if self.counts.n_failed > 0 || skips_fail {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn line(word: &str, name: &str, spent: Duration, remark: &str) {
    let seconds = spent.as_secs_f64();
    let line = format!("{word:<8}{name:<34}{seconds:>7.1} s  {remark}");
    println!("{}", line.trim_end());
}

fn print_details(details: &str) {
    for detail in details.lines() {
        println!("        {detail}");
    }
}

fn plural(n_checks: u64) -> String {
    match n_checks {
        1 => String::new(),
        n => format!("{n} passed"),
    }
}

fn sums(counts: Counts) -> String {
    let Counts {
        n_passed,
        n_failed,
        n_skipped,
    } = counts;
    format!("{n_passed} passed, {n_failed} failed, {n_skipped} skipped")
}
