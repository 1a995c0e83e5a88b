//! Modules of a crate do not import each other in a circle.
//!
//! Looked at are the modules that a crate's root declares, each with its files, and what
//! they name by `crate::`. A parent and its own child modules count as one. Tests and
//! comments may name what they like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Modules that are part of a circle from before the rule, by crate. The list only shrinks.
const OLD: &[(&str, &[&str])] = &[
    (
        "face",
        &["info", "link", "options", "share", "system", "transport"],
    ),
    ("loadgen", &["launch"]),
    ("memory", &["sync"]),
    ("packet", &["hash"]),
    (
        "router",
        &[
            "config",
            "cs_capacity",
            "drops",
            "explain_control",
            "face_jobs",
            "face_status",
            "handle",
            "manager",
            "packet_trace",
            "plane",
            "ports",
            "recent_drops",
            "run",
            "scheduling",
            "start",
            "threads",
            "trace_control",
            "verification",
            "worker",
            "workers_control",
        ],
    ),
    (
        "store",
        &["erasures", "index", "layout", "offering", "second_level"],
    ),
    ("tables", &["cs", "pit"]),
];

/// What the modules of a crate import: a name for each, and the names that it uses.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Circles in the crates of a folder, but for those of [`OLD`].
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn violations(crates: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).with_context(|| crates.display().to_string())? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let old = OLD
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(&[][..], |(_, old)| old);
        let mut imports = Imports::new();
        read(&path.join("src"), None, &mut imports)?;
        for module in old {
            if imports.remove(*module).is_none() {
                found.push(format!(
                    "crates/{name}: no module {module}; take it off the list"
                ));
            }
        }
        if let Some(circle) = circle(&imports) {
            let text = circle.join(", ");
            found.push(format!(
                "crates/{name}: modules import each other in a circle: {text}"
            ));
        }
    }
    found.sort();
    Ok(found)
}

/// Adds what the files of a folder import. They belong to `module`, or to one each.
fn read(folder: &Path, module: Option<&str>, imports: &mut Imports) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if module.is_none() && ["lib", "main", "bin"].contains(&&*stem) {
            continue;
        }
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            read(&path, Some(module), imports)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let of = imports.entry(module.to_owned()).or_default();
            of.extend(names(&text).filter(|name| name != module));
        }
    }
    Ok(())
}

/// The modules that a source names by `crate::`, outside comments and its tests.
fn names(text: &str) -> impl Iterator<Item = String> {
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let names = code.split("crate::").skip(1).flat_map(|rest| {
        let (list, separator) = match rest.strip_prefix('{') {
            Some(list) => (list.split("};").next().unwrap_or_default(), ','),
            None => (rest, '\0'),
        };
        let name = |part: &str| -> String {
            let is_word = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
            part.trim_start().chars().take_while(is_word).collect()
        };
        list.split(separator).map(name).collect::<Vec<_>>()
    });
    names.collect::<Vec<_>>().into_iter()
}

/// A circle among modules, if there is one: what remains after all that import nothing, or
/// that no module imports, are taken away.
fn circle(imports: &Imports) -> Option<Vec<&str>> {
    let mut left: BTreeSet<&str> = imports.keys().map(|name| &**name).collect();
    loop {
        let n_before = left.len();
        let imports_of = |name: &str| imports[name].iter().map(|it| &**it);
        let is_inside = |name: &&str| {
            let imports_some = imports_of(name).any(|it| left.contains(it));
            let is_imported = left.iter().any(|by| imports_of(by).any(|it| it == *name));
            imports_some && is_imported
        };
        left = left.iter().copied().filter(is_inside).collect();
        if left.len() == n_before {
            break;
        }
    }
    (!left.is_empty()).then(|| left.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            let path = folder.path().join("one/src").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        violations(folder.path()).expect("files can be read")
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let found = crates(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::B, d};"),
            ("b/mod.rs", "mod inner;"),
            ("b/inner.rs", "use crate::c::C;"),
            ("c.rs", "fn f() { crate::a::g() }"),
            ("d.rs", ""),
        ]);
        let expected = "crates/one: modules import each other in a circle: a, b, c";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn comments_tests_and_chains_are_no_circles() {
        let found = crates(&[
            ("a.rs", "use crate::b::B;"),
            (
                "b.rs",
                "//! See crate::a.\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}",
            ),
            ("main.rs", "use crate::a; use crate::b;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
