//! Fuzzing of the decoders with cargo-fuzz: short on the committed corpus, or
//! long by one command.
//!
//! What a run discovers goes to `target/fuzz-corpus`, never into the committed
//! corpus: that one is chosen by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::{run_well, tool};
use crate::report::{Outcome, Report};
use crate::workspace::Workspace;

/// The cargo-fuzz that is installed where it is missing.
const CARGO_FUZZ_VERSION: &str = "0.13.2";
/// The compiler that is installed where no nightly is present.
const NIGHTLY: &str = "nightly-2026-05-19";
/// Runs and seconds that a short run gives to each target.
const SHORT_RUNS: u64 = 200_000;
const SHORT_SECONDS: u64 = 5;
/// Longest that an installation or the build of the targets may take.
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// How long a run takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effort {
    /// A few seconds for each target.
    Short,
    /// This many minutes for each target.
    Minutes(u64),
}

/// Fuzzes every target, or only `chosen`.
pub(crate) fn run(
    workspace: &Workspace,
    effort: Effort,
    chosen: Option<&str>,
    report: &mut Report,
) {
    let folder = workspace.root.join("fuzz");
    let fuzzer = match Fuzzer::prepare(workspace, folder) {
        Ok(fuzzer) => fuzzer,
        Err(error) => {
            let reason = format!("{error:#}")
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            report.step("fuzz", || Outcome::Skipped(reason));
            return;
        }
    };
    let targets = match fuzzer.targets() {
        Ok(targets) => targets,
        Err(error) => {
            report.step("fuzz", || Outcome::Failed(format!("{error:#}")));
            return;
        }
    };
    let chosen: Vec<_> = targets
        .into_iter()
        .filter(|name| chosen.is_none_or(|chosen| chosen == name))
        .collect();
    if chosen.is_empty() {
        report.step("fuzz", || {
            Outcome::Failed("there is no such target".to_owned())
        });
        return;
    }
    if report.step("fuzz build", || passed_if(fuzzer.build())) {
        for target in &chosen {
            report.step(&format!("fuzz {target}"), || {
                passed_if(fuzzer.fuzz(target, effort))
            });
        }
    }
}

fn passed_if(result: anyhow::Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed(1),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// A nightly compiler, cargo-fuzz and the project's targets.
struct Fuzzer<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
    toolchain: String,
    /// Folder of cargo-fuzz's program, searched first.
    tools: PathBuf,
}

impl<'a> Fuzzer<'a> {
    /// Finds what fuzzing needs, and installs what is missing.
    fn prepare(workspace: &'a Workspace, folder: PathBuf) -> anyhow::Result<Self> {
        let toolchain = find_nightly(workspace)?;
        let tools = workspace.target.join("tools");
        if !is_cargo_fuzz_installed(&tools) {
            let mut install = workspace.cargo();
            install.args([
                "install",
                "cargo-fuzz",
                "--locked",
                "--version",
                CARGO_FUZZ_VERSION,
            ]);
            install.arg("--root").arg(&tools);
            let log = workspace.log("cargo-fuzz");
            run_well(&mut install, &log, BUILD_LIMIT).context("cargo-fuzz cannot be installed")?;
        }
        Ok(Self {
            workspace,
            folder,
            toolchain,
            tools: tools.join("bin"),
        })
    }

    /// The names of the targets.
    fn targets(&self) -> anyhow::Result<Vec<String>> {
        let log = self.workspace.log("fuzz-list");
        let listed = run_well(
            self.cargo_fuzz("list")?.arg("--fuzz-dir").arg(&self.folder),
            &log,
            BUILD_LIMIT,
        )?;
        let names: Vec<String> = listed
            .output
            .lines()
            .map(|line| line.trim().to_owned())
            .collect();
        if names.is_empty() {
            bail!("{} has no target", self.folder.display());
        }
        Ok(names)
    }

    fn build(&self) -> anyhow::Result<()> {
        let mut build = self.cargo_fuzz("build")?;
        build.args(self.places());
        run_well(&mut build, &self.workspace.log("fuzz-build"), BUILD_LIMIT)?;
        Ok(())
    }

    /// Feeds `target` the committed corpus and what grows from it. A find of
    /// the fuzzer is an error that shows it.
    fn fuzz(&self, target: &str, effort: Effort) -> anyhow::Result<()> {
        let grown = self.workspace.target.join("fuzz-corpus").join(target);
        fs::create_dir_all(&grown).with_context(|| format!("create {}", grown.display()))?;
        let committed = self.folder.join("corpus").join(target);
        if !committed.is_dir() {
            bail!("no committed corpus in {}", committed.display());
        }
        let seconds = match effort {
            Effort::Short => SHORT_SECONDS,
            Effort::Minutes(minutes) => minutes * 60,
        };
        let mut command = self.cargo_fuzz("run")?;
        command
            .args(self.places())
            .arg(target)
            .args([&grown, &committed])
            .arg("--");
        command.arg(format!("-max_total_time={seconds}"));
        if matches!(effort, Effort::Short) {
            command.arg(format!("-runs={SHORT_RUNS}"));
        }
        let limit = BUILD_LIMIT + Duration::from_secs(seconds);
        run_well(
            &mut command,
            &self.workspace.log(&format!("fuzz-{target}")),
            limit,
        )?;
        Ok(())
    }

    fn places(&self) -> [PathBuf; 4] {
        let target = self.workspace.target.join("fuzz");
        [
            "--fuzz-dir".into(),
            self.folder.clone(),
            "--target-dir".into(),
            target,
        ]
    }

    fn cargo_fuzz(&self, verb: &str) -> anyhow::Result<Command> {
        let mut places = vec![self.tools.clone()];
        places.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let mut command = Command::new("cargo");
        command.current_dir(&self.workspace.root);
        // cargo sets these for its children; another toolchain must not see them.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        command.env("PATH", std::env::join_paths(places)?);
        command.args([&format!("+{}", self.toolchain), "fuzz", verb]);
        Ok(command)
    }
}

fn is_cargo_fuzz_installed(tools: &Path) -> bool {
    let version = tool(&tools.join("bin/cargo-fuzz"), &["--version"]);
    version.is_some_and(|answer| answer.contains(CARGO_FUZZ_VERSION))
}

/// The pinned nightly if it is there, else any nightly, else the pinned one
/// installed now.
fn find_nightly(workspace: &Workspace) -> anyhow::Result<String> {
    let listed = tool(Path::new("rustup"), &["toolchain", "list"])
        .context("no rustup, which fuzzing needs for a nightly compiler")?;
    let mut nightlies: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| name.starts_with("nightly"))
        .collect();
    nightlies.sort_by_key(|name| !name.starts_with(NIGHTLY));
    if let Some(name) = nightlies.first() {
        return Ok((*name).to_owned());
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]);
    run_well(&mut install, &workspace.log("nightly"), BUILD_LIMIT)
        .context("no nightly compiler, and it cannot be installed")?;
    Ok(NIGHTLY.to_owned())
}
