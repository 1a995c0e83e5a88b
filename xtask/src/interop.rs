//! The suite of real peers: installs python-ndn, NDNts and jndn at their pinned
//! versions under `target/interop`, and runs the tests of `interop/`.
//!
//! What is installed is installed once: a stamp holds the manifests that it came
//! from. Programs that Debian has (Python's venv, npm, Java, Maven, iproute2) are
//! installed from there if this is root; else what is missing is named and the
//! suite is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::process::{run_well, tool};
use crate::report::{Outcome, Report};
use crate::rust_tests;
use crate::workspace::Workspace;

/// Longest that one installation may take.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What must be there, how that is seen, and the Debian package that brings it.
const PROGRAMS: [(&str, &[&str], &str); 5] = [
    ("python3", &["-c", "import venv, ensurepip"], "python3-venv"),
    ("npm", &["--version"], "npm"),
    ("javac", &["-version"], "default-jdk-headless"),
    ("mvn", &["--version"], "maven"),
    ("ip", &["-V"], "iproute2"),
];

/// Installs the peers and runs the suite against the release binaries, which
/// have been built.
pub(crate) fn run(workspace: &Workspace, report: &mut Report) {
    let mut peers = None;
    report.step("interop peers", || match install(workspace) {
        Ok(folder) => {
            peers = Some(folder);
            Outcome::Passed(1)
        }
        Err(error) => {
            let reason = format!("{error:#}");
            Outcome::Skipped(reason.lines().next().unwrap_or_default().to_owned())
        }
    });
    let Some(peers) = peers else {
        return;
    };
    report.step("interop", || {
        let tests = [
            "--test",
            "files",
            "--test",
            "management",
            "--test",
            "large_files",
        ];
        suite(workspace, &peers, "interop", &tests)
    });
    report.step("interop chain", || match can_make_namespaces() {
        true => suite(workspace, &peers, "interop-chain", &["--test", "chain"]),
        false => Outcome::Skipped("network namespaces need root".to_owned()),
    });
}

fn suite(workspace: &Workspace, peers: &Path, log: &str, tests: &[&str]) -> Outcome {
    let mut cargo = workspace.cargo();
    cargo.args([
        "test",
        "--locked",
        "--no-fail-fast",
        "-p",
        "tachonym-interop",
    ]);
    cargo.args(tests);
    cargo.env("TACHONYM_INTEROP", peers);
    cargo.env("TACHONYM_BINARIES", workspace.target.join("release"));
    rust_tests::test_step(workspace, log, &mut cargo)
}

/// Installs what is not installed yet, and says where.
fn install(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    install_programs(workspace)?;
    let source = workspace.root.join("interop");
    let folder = workspace.target.join("interop");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;

    once(
        &folder,
        "python",
        &[source.join("python/requirements.txt")],
        || {
            let venv = folder.join("python");
            let mut python = Command::new("python3");
            quietly(workspace, python.args(["-m", "venv", "--clear"]).arg(&venv))?;
            let mut pip = Command::new(venv.join("bin/pip"));
            pip.args(["install", "--quiet", "--no-deps", "--require-hashes"]);
            pip.arg("--requirement");
            quietly(workspace, pip.arg(source.join("python/requirements.txt")))
        },
    )?;
    // The tools of python-ndn sign with the key in their user's home.
    let home = folder.join("home");
    once(
        &folder,
        "home",
        &[source.join("python/requirements.txt")],
        || {
            if home.exists() {
                fs::remove_dir_all(&home).with_context(|| format!("remove {}", home.display()))?;
            }
            fs::create_dir_all(&home).with_context(|| format!("create {}", home.display()))?;
            for arguments in [&["init-pib"][..], &["new-item", "/interop"]] {
                let mut pyndnsec = Command::new(folder.join("python/bin/pyndnsec"));
                quietly(workspace, pyndnsec.args(arguments).env("HOME", &home))?;
            }
            Ok(())
        },
    )?;

    let node = folder.join("node");
    let manifests = ["package.json", "package-lock.json", ".npmrc"];
    let manifests = manifests.map(|name| source.join("node").join(name));
    copy_into(
        &node,
        manifests
            .iter()
            .cloned()
            .chain([source.join("node/peer.mjs")]),
    )?;
    once(&folder, "node", &manifests, || {
        quietly(workspace, Command::new("npm").arg("ci").current_dir(&node))
    })?;

    let java = folder.join("java");
    let program = "src/main/java/tachonym/Peer.java";
    let sources = ["pom.xml", program].map(|name| source.join("java").join(name));
    once(&folder, "java", &sources, || {
        copy_into(&java, [sources[0].clone()])?;
        let package = java.join(program);
        let package = package.parent().unwrap_or(&java);
        copy_into(package, [sources[1].clone()])?;
        let mut maven = Command::new("mvn");
        maven
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(&java);
        quietly(workspace, &mut maven)
    })?;
    Ok(folder)
}

/// Runs `install` unless the stamp `name` says that it was done with these very
/// manifests.
fn once(
    folder: &Path,
    name: &str,
    manifests: &[PathBuf],
    install: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut wanted = Vec::new();
    for manifest in manifests {
        let bytes = fs::read(manifest).with_context(|| format!("read {}", manifest.display()))?;
        wanted.extend(bytes);
    }
    let stamp = folder.join(format!("{name}.stamp"));
    if fs::read(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install().with_context(|| format!("cannot install {name} for the peers"))?;
    fs::write(&stamp, wanted).with_context(|| format!("write {}", stamp.display()))
}

fn copy_into(folder: &Path, files: impl IntoIterator<Item = PathBuf>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    for file in files {
        let name = file.file_name().context("a file has a name")?;
        fs::copy(&file, folder.join(name)).with_context(|| format!("copy {}", file.display()))?;
    }
    Ok(())
}

fn quietly(workspace: &Workspace, command: &mut Command) -> anyhow::Result<()> {
    run_well(command, &workspace.log("interop-install"), INSTALL_LIMIT).map(|_| ())
}

/// Makes sure of what the installations need.
fn install_programs(workspace: &Workspace) -> anyhow::Result<()> {
    let missing = || -> Vec<&str> {
        PROGRAMS
            .iter()
            .filter(|(program, arguments, _)| tool(Path::new(program), arguments).is_none())
            .map(|&(_, _, package)| package)
            .collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !is_root() {
        anyhow::bail!("the peers need {list}: apt-get install {list}");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        quietly(workspace, &mut command)
    };
    apt(&["update"])?;
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(&packages);
    apt(&arguments)?;
    let still = missing();
    anyhow::ensure!(still.is_empty(), "the peers need {}", still.join(" "));
    Ok(())
}

fn is_root() -> bool {
    tool(Path::new("id"), &["-u"]).is_some_and(|id| id.trim() == "0")
}

/// Whether a network namespace can be made here; one is made to see.
fn can_make_namespaces() -> bool {
    tool(Path::new("unshare"), &["--net", "true"]).is_some()
}
