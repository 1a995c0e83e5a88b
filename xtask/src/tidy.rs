//! Rules of the source tree that no compiler checks: module headers, file
//! length, the direction of crate dependencies, where `unsafe` may stand, and
//! the [word list](crate::words).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::circles;
use crate::words;
use crate::workspace::{Member, Workspace};

/// Longest a source file may be; past it, split along an invariant.
const MAX_LINES: usize = 700;

/// Longest a file of [`LONG`] may be.
const MAX_LONG_LINES: usize = 800;

/// Files that were longer than [`MAX_LINES`] before it was the limit. The list only shrinks.
const LONG: &[&str] = &[
    "crates/face/src/system/lifecycle.rs",
    "crates/forward/tests/interest_rules.rs",
    "crates/loadgen/src/exchange/flow.rs",
    "crates/manage/src/rib/tree.rs",
    "crates/manage/tests/authorization.rs",
    "crates/router/src/control.rs",
    "crates/router/src/plane.rs",
    "crates/router/src/second_level.rs",
    "crates/router/src/tools/dissect/tree.rs",
    "crates/security/src/key.rs",
    "crates/security/src/keystore.rs",
    "crates/store/src/log.rs",
    "crates/store/tests/second_level.rs",
    "crates/tables/src/fib/writer.rs",
    "crates/tables/tests/pit.rs",
];

/// Crates by floor: a crate may depend on lower floors only.
const FLOORS: &[(&str, u32)] = &[
    ("tachonym-memory", 1),
    ("tachonym-packet", 1),
    ("tachonym-security", 2),
    ("tachonym-protocol", 2),
    ("tachonym-policy", 2),
    ("tachonym-tables", 3),
    ("tachonym-dispatch", 3),
    ("tachonym-store", 3),
    ("tachonym-forward", 4),
    ("tachonym-workers", 5),
    ("tachonym-face", 5),
    ("tachonym-manage", 6),
    ("tachonym-client", 6),
    ("tachonym-router", 7),
    ("tachonym-sim", 7),
    ("tachonym-bench", 7),
    ("tachonym-loadgen", 8),
    ("tachonym-lab", 9),
    ("tachonym-interop", 9),
    ("xtask", 9),
];

/// Crates that may hold `unsafe`, in modules named `sys` only, and what for.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[
    (
        "tachonym-memory",
        "memory that the tables share with readers, on pages of their choice",
    ),
    (
        "tachonym-face",
        "system calls that move many datagrams at once",
    ),
    (
        "tachonym-store",
        "memory that the kernel reads into, and rings shared with it",
    ),
    (
        "tachonym-lab",
        "performance counters, and stepping through another process",
    ),
    (
        "tachonym-loadgen",
        "batches of datagrams, and clocks of other processes",
    ),
];

/// Files outside `sys` that may hold `unsafe`, and what for.
const UNSAFE_FILES: &[(&str, &str)] = &[(
    "crates/memory/tests/support/allocations.rs",
    "an allocator that counts, which no safe code can be",
)];

/// Folders that hold no source of this project.
const NOT_SOURCE: &[&str] = &["target", "node_modules", "shared"];

/// Everything that breaks a rule, one line each.
///
/// # Errors
///
/// If a file cannot be read.
pub(crate) fn find_violations(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let mut files = Vec::new();
    collect_rust_files(&workspace.root, &mut files)?;
    files.sort();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let name = file.strip_prefix(&workspace.root).unwrap_or(file);
        let name = name.to_string_lossy();
        let found = source_violations(&name, &text);
        let found = found.chain(words::source_violations(&name, &text)?);
        violations.extend(found.map(|what| format!("{name}: {what}")));
    }
    for file in documents(&workspace.root)? {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let name = file.strip_prefix(&workspace.root).unwrap_or(&file);
        let found = words::document_violations(&text).into_iter();
        violations.extend(found.map(|what| format!("{}: {what}", name.display())));
    }
    for member in &workspace.members {
        let name = &member.name;
        violations.extend(floor_violations(member).map(|what| format!("{name}: {what}")));
        let mut what = manifest_violations(member)?;
        what.extend(circles::violations(&member.folder)?);
        violations.extend(what.into_iter().map(|what| format!("{name}: {what}")));
    }
    for package in &workspace.comparing {
        let name = &package.name;
        let what = comparing_violations(package)?;
        violations.extend(what.into_iter().map(|what| format!("{name}: {what}")));
    }
    Ok(violations)
}

/// The documents: those of the root folder and those in `docs`.
fn documents(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut documents = Vec::new();
    for folder in [root.to_owned(), root.join("docs")] {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    Ok(documents)
}

fn collect_rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !name.starts_with('.') && !NOT_SOURCE.contains(&&*name) {
                collect_rust_files(&entry.path(), files)?;
            }
        } else if kind.is_file() && name.ends_with(".rs") {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// What is wrong in one source file.
fn source_violations(name: &str, text: &str) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let first = text.lines().find(|line| !line.trim().is_empty());
    if !first.is_some_and(|line| line.starts_with("//!")) {
        found.push("does not open with a `//!` that says what the module owns".to_owned());
    }
    let n_lines = text.lines().count();
    let is_long = LONG.contains(&name);
    let max_lines = if is_long { MAX_LONG_LINES } else { MAX_LINES };
    if n_lines > max_lines {
        found.push(format!("{n_lines} lines; {max_lines} is the most"));
    }
    if is_long && n_lines <= MAX_LINES {
        found.push("is short enough now; remove it from LONG in xtask/src/tidy.rs".to_owned());
    }
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for unfinished in ["todo", "unimplemented"] {
            if code.contains(&format!("{unfinished}!(")) {
                found.push(format!("line {}: `{unfinished}!`", i + 1));
            }
        }
        if holds_unsafe(code) && !may_hold_unsafe(name) {
            found.push(format!("line {}: `unsafe` outside a `sys` module", i + 1));
        }
    }
    found.into_iter()
}

fn holds_unsafe(code: &str) -> bool {
    ["{", "fn", "impl", "extern", "trait"].iter().any(|what| {
        let word = format!("unsafe {what}");
        code.match_indices(&word).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            before.is_none_or(|c| c.is_whitespace() || "({=,;|".contains(c))
        })
    })
}

fn may_hold_unsafe(name: &str) -> bool {
    let in_sys = name.ends_with("/sys.rs") || name.contains("/sys/");
    in_sys || UNSAFE_FILES.iter().any(|(file, _)| *file == name)
}

/// The floor of a crate, if it has one.
fn floor_of(name: &str) -> Option<u32> {
    let mut floors = FLOORS.iter();
    floors.find(|(n, _)| *n == name).map(|(_, floor)| *floor)
}

/// What a crate depends on that lies no lower than itself.
fn floor_violations(member: &Member) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    match floor_of(&member.name) {
        None => found.push("has no floor; give it one in xtask/src/tidy.rs".to_owned()),
        Some(own) => {
            for dependency in &member.dependencies {
                if floor_of(dependency).is_some_and(|floor| floor >= own) {
                    found.push(format!(
                        "depends on {dependency}, which is not on a lower floor"
                    ));
                }
            }
        }
    }
    found.into_iter()
}

/// What a crate's manifest or root files lack.
fn manifest_violations(member: &Member) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let manifest = member.folder.join("Cargo.toml");
    let manifest =
        fs::read_to_string(&manifest).with_context(|| format!("read {}", manifest.display()))?;
    if !manifest.contains("[lints]\nworkspace = true") {
        found.push("its manifest lacks `[lints] workspace = true`".to_owned());
    }
    if !UNSAFE_ALLOWED.iter().any(|(name, _)| *name == member.name) {
        found.extend(root_violations(member)?);
    }
    Ok(found)
}

/// What is wrong with a package that compares other software with the project's.
fn comparing_violations(package: &Member) -> anyhow::Result<Vec<String>> {
    let mut found = root_violations(package)?;
    if !package.folder.join("Cargo.lock").is_file() {
        found.push("lacks a `Cargo.lock`: what it compares with would not stay the same".into());
    }
    if floor_of(&package.name).is_some() {
        found.push("has a floor, and is no crate of the workspace".into());
    }
    Ok(found)
}

/// What a crate's root files lack that holds no `unsafe`.
fn root_violations(member: &Member) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for root in &member.roots {
        let text = fs::read_to_string(root).with_context(|| format!("read {}", root.display()))?;
        if !text.contains("#![forbid(unsafe_code)]") {
            found.push(format!(
                "{} lacks `#![forbid(unsafe_code)]`",
                root.display()
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_source(name: &str, text: &str) -> Vec<String> {
        source_violations(name, text).collect()
    }

    #[test]
    fn module_without_header_is_found() {
        assert!(of_source("a.rs", "//! Owns.\n\nfn f() {}\n").is_empty());
        assert_eq!(of_source("a.rs", "// Owns.\nfn f() {}\n").len(), 1);
        assert_eq!(of_source("a.rs", "").len(), 1);
    }

    #[test]
    fn long_file_is_found() {
        let text = |n_lines| format!("//! Owns.\n{}", "\n".repeat(n_lines - 1));
        assert!(of_source("a.rs", &text(MAX_LINES)).is_empty());
        assert_eq!(of_source("a.rs", &text(MAX_LINES + 1)).len(), 1);
        assert!(of_source(LONG[0], &text(MAX_LINES + 1)).is_empty());
        assert_eq!(of_source(LONG[0], &text(MAX_LINES)).len(), 1);
        assert_eq!(of_source(LONG[0], &text(MAX_LONG_LINES + 1)).len(), 1);
    }

    #[test]
    fn unsafe_is_found_outside_sys_only() {
        let text = "//! Owns.\nlet x = unsafe { f() };\n";
        assert_eq!(of_source("crates/face/src/lib.rs", text).len(), 1);
        assert!(of_source("crates/face/src/sys.rs", text).is_empty());
        assert!(of_source("crates/face/src/sys/udp.rs", text).is_empty());
        assert!(of_source("a.rs", "//! Owns.\n// unsafe { no }\n").is_empty());
        assert!(of_source("a.rs", "//! Owns.\n#![forbid(unsafe_code)]\n").is_empty());
    }

    #[test]
    fn unfinished_code_is_found() {
        let text = format!("//! Owns.\nfn f() {{ {}!() }}\n", "todo");
        assert_eq!(of_source("a.rs", &text).len(), 1);
    }

    #[test]
    fn comparing_package_without_a_lock_or_with_unsafe_code_is_found() {
        let folder = std::env::temp_dir().join(format!("tachonym-tidy-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let package = Member {
            name: "tachonym-compare-something".to_owned(),
            folder: folder.clone(),
            dependencies: Vec::new(),
            roots: vec![folder.join("main.rs")],
        };
        fs::write(&package.roots[0], "//! Compares.\n").expect("a file");
        assert_eq!(comparing_violations(&package).expect("files").len(), 2);
        fs::write(&package.roots[0], "#![forbid(unsafe_code)]\n").expect("a file");
        fs::write(folder.join("Cargo.lock"), "").expect("a file");
        assert!(comparing_violations(&package).expect("files").is_empty());
        fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn dependency_on_the_same_or_a_higher_floor_is_found() {
        let member = |name: &str, dependencies: &[&str]| Member {
            name: name.to_owned(),
            folder: PathBuf::new(),
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
            roots: Vec::new(),
        };
        let found = |member: Member| floor_violations(&member).count();
        assert_eq!(
            found(member("tachonym-tables", &["tachonym-packet", "libc"])),
            0
        );
        assert_eq!(found(member("tachonym-tables", &["tachonym-dispatch"])), 1);
        assert_eq!(found(member("tachonym-tables", &["tachonym-router"])), 1);
        assert_eq!(found(member("tachonym-unheard-of", &[])), 1);
    }
}
