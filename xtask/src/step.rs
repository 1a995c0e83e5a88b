//! Running the steps of a check and counting what came of them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;

/// How many checks and tests passed, failed and were skipped.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    n_passed: u64,
    n_failed: u64,
    n_skipped: u64,
}

impl Tally {
    /// Runs a command that passes or fails as a whole.
    pub(crate) fn run(&mut self, name: &str, mut command: Command) -> anyhow::Result<()> {
        let status = command
            .status()
            .with_context(|| format!("cannot run {name}"))?;
        let faults = if status.success() {
            Vec::new()
        } else {
            vec![status.to_string()]
        };
        self.record(name, faults);
        Ok(())
    }

    /// Runs a test command and adds up the results that its harnesses print. A
    /// failure that no harness counted, such as one to compile, counts as one.
    pub(crate) fn run_tests(&mut self, name: &str, mut command: Command) -> anyhow::Result<()> {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        let output = child.stdout.take().context("standard output is piped")?;
        let before = self.n_failed;
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            if let Some((passed, failed, ignored)) = parse_result(&line) {
                self.n_passed += passed;
                self.n_failed += failed;
                self.n_skipped += ignored;
            }
        }
        if !child.wait()?.success() && self.n_failed == before {
            self.record(name, vec!["failed without a result".into()]);
        }
        Ok(())
    }

    /// Counts a check that found `faults`.
    pub(crate) fn record(&mut self, name: &str, faults: Vec<String>) {
        if faults.is_empty() {
            self.n_passed += 1;
            println!("xtask: {name}: passed");
            return;
        }
        self.n_failed += 1;
        for fault in &faults {
            println!("xtask: {name}: {fault}");
        }
        println!("xtask: {name}: failed");
    }

    /// Prints the closing line and tells the exit code.
    pub(crate) fn close(&self) -> ExitCode {
        println!(
            "{} passed, {} failed, {} skipped",
            self.n_passed, self.n_failed, self.n_skipped
        );
        let skips_fail = std::env::var("CI").is_ok_and(|ci| ci == "true");
        if self.n_failed > 0 || (skips_fail && self.n_skipped > 0) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// Passed, failed and ignored of a test harness's closing line.
fn parse_result(line: &str) -> Option<(u64, u64, u64)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let mut numbers = counts
        .split("; ")
        .map_while(|part| part.split(' ').next()?.parse::<u64>().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_the_test_harness_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered \
                    out; finished in 0.1s";
        assert_eq!(parse_result(line), Some((12, 3, 1)));
        assert_eq!(parse_result("running 3 tests"), None);
    }
}
