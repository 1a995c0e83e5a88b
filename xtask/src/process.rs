//! Running a program to its end, or to its time limit, with its output kept.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// How often a running program is asked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A program that ended by itself.
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// Both its output streams, as they were interleaved.
    pub(crate) output: String,
}

impl Finished {
    /// The last `n_lines` lines of the output, without those that only tell of progress.
    pub(crate) fn tail(&self, n_lines: usize) -> String {
        let is_progress = |line: &&str| {
            let word = line.split_whitespace().next();
            matches!(word, Some("Compiling" | "Downloaded" | "Downloading"))
        };
        let lines = self.output.lines().filter(|line| !is_progress(line));
        let lines: Vec<&str> = lines.collect();
        lines[lines.len().saturating_sub(n_lines)..].join("\n")
    }
}

/// Runs `command` without standard input and keeps its output in `log`.
///
/// # Errors
///
/// If it cannot be started, or was still running after `limit` and was killed.
pub(crate) fn run(command: &mut Command, log: &Path, limit: Duration) -> anyhow::Result<Finished> {
    let program = command.get_program().to_string_lossy().into_owned();
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let file = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("start {program}"))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!(
                "{program} still ran after {limit:?}; its output is in {}",
                log.display()
            );
        }
        thread::sleep(POLL_INTERVAL);
    };
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    Ok(Finished { status, output })
}

/// As [`run`], and an unsuccessful end is an error that carries the last lines
/// of the output.
///
/// # Errors
///
/// As for [`run`], or if the program did not end well.
pub(crate) fn run_well(
    command: &mut Command,
    log: &Path,
    limit: Duration,
) -> anyhow::Result<Finished> {
    let finished = run(command, log, limit)?;
    if !finished.status.success() {
        let program = command.get_program().to_string_lossy();
        bail!("{program}: {}\n{}", finished.status, finished.tail(60));
    }
    Ok(finished)
}

/// What `program` prints, if it can be started and ends well.
pub(crate) fn tool(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}
