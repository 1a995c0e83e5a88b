//! Where the workspace and its build outputs are, and what its crates say of
//! themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// The workspace as `cargo metadata` describes it, and what stands beside it.
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// The member crates.
    pub(crate) members: Vec<Member>,
    /// Packages beside the workspace that compare other software with it. The project builds
    /// without them.
    pub(crate) comparing: Vec<Member>,
}

/// A crate.
pub(crate) struct Member {
    /// Its package name.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Names of what it depends on, in any section of its manifest.
    pub(crate) dependencies: Vec<String>,
    /// Root files of its libraries and binaries.
    pub(crate) roots: Vec<PathBuf>,
}

impl Workspace {
    /// Asks cargo about the workspace that this program was built from.
    ///
    /// # Errors
    ///
    /// If cargo cannot be run or its answer not be read.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Self::from_metadata(&metadata(&root.join("Cargo.toml"))?)?;
        let folder = found.root.join("compare");
        let packages = fs::read_dir(&folder);
        for package in packages.with_context(|| format!("list {}", folder.display()))? {
            let manifest = package?.path().join("Cargo.toml");
            if manifest.is_file() {
                let package = Self::from_metadata(&metadata(&manifest)?)?;
                found.comparing.extend(package.members);
            }
        }
        Ok(found)
    }

    fn from_metadata(json: &[u8]) -> anyhow::Result<Self> {
        let metadata: Value = serde_json::from_slice(json).context("read cargo metadata")?;
        let packages = metadata["packages"]
            .as_array()
            .context("no packages in cargo metadata")?;
        Ok(Self {
            root: path(&metadata["workspace_root"])?,
            target: path(&metadata["target_directory"])?,
            members: packages.iter().map(member).collect::<Result<_, _>>()?,
            comparing: Vec::new(),
        })
    }

    /// A command of cargo in the root folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        if std::env::var_os("CI").is_some_and(|value| value == "true") {
            // Nothing is built twice there, and what it would keep takes gigabytes.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// Where the output of the step `name` is kept.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.target.join("xtask").join(format!("{name}.log"))
    }
}

/// What cargo says of the packages of a manifest.
fn metadata(manifest: &Path) -> anyhow::Result<Vec<u8>> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn member(package: &Value) -> anyhow::Result<Member> {
    let texts = |list: &Value, key: &str| -> Vec<String> {
        let entries = list.as_array().into_iter().flatten();
        entries
            .filter_map(|entry| entry[key].as_str())
            .map(str::to_owned)
            .collect()
    };
    let targets = package["targets"].as_array().into_iter().flatten();
    let roots = targets
        .filter(|target| {
            let kinds = target["kind"].as_array().into_iter().flatten();
            kinds
                .filter_map(Value::as_str)
                .any(|kind| matches!(kind, "lib" | "bin" | "proc-macro"))
        })
        .map(|target| path(&target["src_path"]))
        .collect::<Result<_, _>>()?;
    let manifest = path(&package["manifest_path"])?;
    Ok(Member {
        name: package["name"]
            .as_str()
            .context("a package without a name")?
            .to_owned(),
        folder: manifest
            .parent()
            .context("a manifest without a folder")?
            .to_owned(),
        dependencies: texts(&package["dependencies"], "name"),
        roots,
    })
}

fn path(value: &Value) -> anyhow::Result<PathBuf> {
    Ok(value
        .as_str()
        .context("a path is missing in cargo metadata")?
        .into())
}
