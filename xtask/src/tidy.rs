//! House rules that no lint knows: module headers, file length, and which
//! crate may import which.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

/// Longest source file, in lines.
const MAX_LINES: usize = 800;

/// Floor of each crate; one imports only from lower floors.
const FLOORS: [(&str, u32); 9] = [
    ("tachonym-packet", 1),
    ("tachonym-protocol", 2),
    ("tachonym-tables", 2),
    ("tachonym-forward", 4),
    ("tachonym-face", 5),
    ("tachonym-manage", 6),
    ("tachonym-client", 6),
    ("tachonym-router", 7),
    ("tachonym-lab", 8),
];

/// Crates with system calls of their own, each in a `sys` module.
const MAY_BE_UNSAFE: [&str; 2] = ["crates/face", "crates/lab"];

/// Every breach of a house rule.
pub(crate) fn faults() -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for folder in ["crates", "xtask", "fuzz", "interop"] {
        source_faults(Path::new(folder), &mut faults)?;
    }
    unsafe_faults(&mut faults)?;
    floor_faults(&mut faults)?;
    Ok(faults)
}

fn source_faults(folder: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for file in rust_files(folder)? {
        let text = fs::read_to_string(&file)?;
        let n_lines = text.lines().count();
        if n_lines > MAX_LINES {
            faults.push(format!("{}: {n_lines} lines; split it", file.display()));
        }
        if !text.starts_with("//!") && !text.starts_with("#![") {
            faults.push(format!("{}: no //! header", file.display()));
        }
    }
    Ok(())
}

fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && name != "target" && name != "node_modules" {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn unsafe_faults(faults: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir("crates")? {
        let folder = entry?.path();
        if MAY_BE_UNSAFE
            .iter()
            .any(|exempt| Path::new(exempt) == folder)
        {
            continue;
        }
        for root in ["src/lib.rs", "src/main.rs"] {
            let root = folder.join(root);
            if root.exists() && !fs::read_to_string(&root)?.contains("#![forbid(unsafe_code)]") {
                faults.push(format!("{}: no #![forbid(unsafe_code)]", root.display()));
            }
        }
    }
    Ok(())
}

fn floor_faults(faults: &mut Vec<String>) -> anyhow::Result<()> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let floor_of = |name: &str| {
        FLOORS
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, floor)| *floor)
    };
    for package in metadata["packages"]
        .as_array()
        .context("cargo lists packages")?
    {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(floor) = floor_of(name) else {
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may reach up, to drive what lies above them.
            if dependency["kind"] == "dev" {
                continue;
            }
            let imported = dependency["name"].as_str().unwrap_or_default();
            if floor_of(imported).is_some_and(|other| other >= floor) {
                faults.push(format!("{name} imports {imported}, which is not below it"));
            }
        }
    }
    Ok(())
}
