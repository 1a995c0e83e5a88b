//! The suite of real peers: installs python-ndn, NDNts and jndn at their pinned
//! versions under `target/interop`, and runs the tests of `interop/`.
//!
//! What is installed is installed once: a stamp holds the manifests that it came
//! from. Every package and jar must have its digest in a manifest; Maven's own plugin
//! and what Debian brings have none. Programs that Debian has (Python's venv, npm,
//! Java, Maven, iproute2) are installed from there if this is root; else what is
//! missing is named and the suite is skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::process::tool;
use crate::programs::{Program, install_programs, quietly};
use crate::report::{Outcome, Report};
use crate::rust_tests;
use crate::workspace::Workspace;

/// What the peers need.
const PROGRAMS: [Program; 5] = [
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
        Err(error) if error.is::<WrongFiles>() => Outcome::Failed(format!("{error:#}")),
        Err(error) => {
            let reason = format!("{error:#}");
            Outcome::Skipped(reason.lines().next().unwrap_or_default().to_owned())
        }
    });
    let Some(peers) = peers else {
        return;
    };
    let alone = ("", "");
    for (name, config) in [alone].iter().chain(&rust_tests::SEVERAL_WORKERS) {
        run_suites(workspace, &peers, name, config, report);
    }
}

/// Runs the suites against routers of this configuration, which is called `name`.
fn run_suites(workspace: &Workspace, peers: &Path, name: &str, config: &str, report: &mut Report) {
    let called = |suite: &str| match name {
        "" => suite.to_owned(),
        name => format!("{suite} {name}"),
    };
    let run = |suite_name: &str, tests: &[&str]| {
        let tests = tests.iter().flat_map(|test| ["--test", test]);
        let tests: Vec<_> = tests.collect();
        suite(workspace, peers, &called(suite_name), config, &tests)
    };
    report.step(&called("interop"), || {
        run(
            "interop",
            &["applications", "files", "management", "large_files"],
        )
    });
    report.step(&called("interop ipv6"), || {
        match TcpListener::bind("[::1]:0") {
            Ok(_) => run("interop ipv6", &["ipv6"]),
            Err(error) => Outcome::Skipped(format!("no IPv6 loopback address: {error}")),
        }
    });
    report.step(&called("interop networks"), || {
        match can_make_namespaces() {
            true => run(
                "interop networks",
                &["addresses", "chain", "group", "self_learning"],
            ),
            false => Outcome::Skipped("network namespaces need root".to_owned()),
        }
    });
}

fn suite(workspace: &Workspace, peers: &Path, name: &str, config: &str, tests: &[&str]) -> Outcome {
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
    cargo.env(rust_tests::TEST_CONFIG, config);
    let log = name.replace(", ", " ").replace(' ', "-");
    rust_tests::test_step(workspace, &log, &mut cargo)
}

/// Installs what is not installed yet, and says where.
fn install(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    install_programs(workspace, &PROGRAMS).context("the peers")?;
    let source = workspace.root.join("interop");
    let folder = workspace.target.join("interop");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    install_python(workspace, &source, &folder)?;
    install_node(workspace, &source, &folder)?;
    install_java(workspace, &source, &folder)?;
    Ok(folder)
}

fn install_python(workspace: &Workspace, source: &Path, folder: &Path) -> anyhow::Result<()> {
    let requirements = [source.join("python/requirements.txt")];
    once(folder, "python", &requirements, || {
        let venv = folder.join("python");
        let mut python = Command::new("python3");
        quietly(workspace, python.args(["-m", "venv", "--clear"]).arg(&venv))?;
        let mut pip = Command::new(venv.join("bin/pip"));
        pip.args(["install", "--quiet", "--no-deps", "--require-hashes"]);
        quietly(workspace, pip.arg("--requirement").arg(&requirements[0]))
    })?;
    // The tools of python-ndn sign with the key in their user's home.
    once(folder, "home", &requirements, || {
        let home = folder.join("home");
        make_empty(&home)?;
        for arguments in [&["init-pib"][..], &["new-item", "/interop"]] {
            let mut pyndnsec = Command::new(folder.join("python/bin/pyndnsec"));
            quietly(workspace, pyndnsec.args(arguments).env("HOME", &home))?;
        }
        Ok(())
    })
}

fn install_node(workspace: &Workspace, source: &Path, folder: &Path) -> anyhow::Result<()> {
    let node = folder.join("node");
    let manifests = ["package.json", "package-lock.json", ".npmrc"];
    let manifests = manifests.map(|name| source.join("node").join(name));
    let program = source.join("node/peer.mjs");
    copy_into(&node, manifests.iter().cloned().chain([program]))?;
    once(folder, "node", &manifests, || {
        quietly(workspace, Command::new("npm").arg("ci").current_dir(&node))
    })
}

fn install_java(workspace: &Workspace, source: &Path, folder: &Path) -> anyhow::Result<()> {
    let source = source.join("java");
    let java = folder.join("java");
    let names = ["pom.xml", "SHA256SUMS", "src/main/java/tachonym/Peer.java"];
    let [manifest, digests, program] = names.map(|name| source.join(name));
    let sources = [manifest.clone(), digests.clone(), program.clone()];
    once(folder, "java", &sources, || {
        make_empty(&java)?;
        copy_into(&java, [manifest])?;
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "--strict-checksums"]);
        maven.arg("dependency:copy-dependencies");
        quietly(workspace, maven.current_dir(&java))?;
        let wanted =
            fs::read_to_string(&digests).with_context(|| format!("read {}", digests.display()))?;
        let wrong = differences(&wanted, &digests_in(&java.join("lib"))?);
        if !wrong.is_empty() {
            return Err(WrongFiles(wrong).into());
        }
        let mut compiler = Command::new("javac");
        compiler.args(["--release", "11", "-encoding", "UTF-8", "-proc:none"]);
        compiler
            .args(["-cp", "lib/*", "-d", "classes"])
            .arg(program);
        quietly(workspace, compiler.current_dir(&java))
    })
}

/// What was fetched is not what the list of digests says: no reason to skip.
#[derive(Debug)]
struct WrongFiles(Vec<String>);

impl fmt::Display for WrongFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for WrongFiles {}

/// SHA-256 of every file in `folder`, in hexadecimal, by its name.
fn digests_in(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?;
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let digest = Sha256::digest(bytes);
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        digests.insert(name.to_string_lossy().into_owned(), hex);
    }
    Ok(digests)
}

/// In what the files `found`, digests by name, are not those `wanted`: lines as
/// `sha256sum` writes them.
fn differences(wanted: &str, found: &BTreeMap<String, String>) -> Vec<String> {
    let wanted = wanted.lines().filter_map(|line| line.split_once("  "));
    let wanted: BTreeMap<&str, &str> = wanted.map(|(digest, name)| (name, digest)).collect();
    let mut wrong = Vec::new();
    for (name, digest) in &wanted {
        match found.get(*name) {
            None => wrong.push(format!("{name} is missing")),
            Some(other) if other != digest => wrong.push(format!("{name} has digest {other}")),
            Some(_) => {}
        }
    }
    for name in found
        .keys()
        .filter(|name| !wanted.contains_key(name.as_str()))
    {
        wrong.push(format!("{name} has no digest in the list"));
    }
    wrong
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
    // An installation that fails leaves no stamp of the one before.
    if stamp.exists() {
        fs::remove_file(&stamp).with_context(|| format!("remove {}", stamp.display()))?;
    }
    install().with_context(|| format!("cannot install {name} for the peers"))?;
    fs::write(&stamp, wanted).with_context(|| format!("write {}", stamp.display()))
}

/// Makes `folder`, without what was in it.
fn make_empty(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))
}

fn copy_into(folder: &Path, files: impl IntoIterator<Item = PathBuf>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    for file in files {
        let name = file.file_name().context("a file has a name")?;
        fs::copy(&file, folder.join(name)).with_context(|| format!("copy {}", file.display()))?;
    }
    Ok(())
}

/// Whether a network namespace can be made here; one is made to see.
fn can_make_namespaces() -> bool {
    tool(Path::new("unshare"), &["--net", "true"]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_is_not_as_listed_is_found() {
        let wanted = "aa  a.jar\nbb  b.jar\n";
        let of = |files: &[(&str, &str)]| {
            let files = files.iter();
            let found = files.map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned()));
            differences(wanted, &found.collect())
        };
        assert!(of(&[("a.jar", "aa"), ("b.jar", "bb")]).is_empty());
        assert_eq!(of(&[("a.jar", "aa")]), ["b.jar is missing"]);
        let changed = of(&[("a.jar", "aa"), ("b.jar", "cc")]);
        assert_eq!(changed, ["b.jar has digest cc"]);
        let more = of(&[("a.jar", "aa"), ("b.jar", "bb"), ("c.jar", "cc")]);
        assert_eq!(more, ["c.jar has no digest in the list"]);
    }
}
