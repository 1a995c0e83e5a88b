//! Files of a crate do not import each other in a circle.
//!
//! Checked at every level: what stands side by side in a folder, each file or folder with all
//! that is in it, has no circle. What a folder named `sys` has stands beside it instead, since
//! such a folder gathers unsafe code and is no layer. A module and what is below it may import
//! each other: the module's file often has a trait or a type that is implemented or filled in
//! by its children, and both are read together. Tests and comments may name what they like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Most re-exports on the way to what a path names; some names stand for themselves.
const MAX_ALIASES: u32 = 8;

/// The names of a path such as `crate::a::B`, without the first; a module's.
type Names = Vec<String>;

/// Modules that stand side by side, and what each of them imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// What a file names.
struct File {
    /// Names that `use` brings in, and what they stand for.
    aliases: BTreeMap<String, Names>,
    paths: Vec<Names>,
}

/// Circles in the crate in a folder.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn violations(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut codes = BTreeMap::new();
    read(&folder.join("src"), &[], &mut codes)?;
    let circles = levels(&codes)
        .into_values()
        .map(|it| circle(&it).join(", "));
    let circles = circles.filter(|circle| !circle.is_empty());
    Ok(circles
        .map(|circle| format!("modules import each other in a circle: {circle}"))
        .collect())
}

/// Reads the code in a folder, by modules.
fn read(
    folder: &Path,
    parent: &[String],
    codes: &mut BTreeMap<Names, String>,
) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut module = parent.to_vec();
        match &*stem {
            "lib" | "main" | "mod" => {}
            // Programs beside the crate, and tests.
            "bin" | "tests" => continue,
            _ => module.push(stem.into_owned()),
        }
        if path.is_dir() {
            read(&path, &module, codes)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let code = text.split("#[cfg(test)]\nmod tests").next();
            let lines = code.unwrap_or_default().lines();
            let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
            let code = codes.entry(module).or_default();
            code.extend(lines.flat_map(|line| [line, "\n"]));
        }
    }
    Ok(())
}

/// What stands side by side, by the module that it is in.
fn levels(codes: &BTreeMap<Names, String>) -> BTreeMap<Names, Imports> {
    let files = codes
        .iter()
        .map(|(module, code)| (module.clone(), File::new(module, code, codes)));
    let files: BTreeMap<Names, File> = files.collect();
    let mut levels = BTreeMap::<Names, Imports>::new();
    for (module, file) in &files {
        for path in &file.paths {
            let target = resolve(path, &files, MAX_ALIASES);
            let both = module.iter().zip(target);
            let mut n_shared = both.take_while(|(a, b)| a == b).count();
            if n_shared == module.len().min(target.len()) {
                continue;
            }
            if n_shared > 0 && module[n_shared - 1] == "sys" {
                n_shared -= 1;
            }
            let sibling = |of: &[String]| {
                let n_names = n_shared + 1 + usize::from(of[n_shared] == "sys");
                of[..n_names.min(of.len())].join("/")
            };
            let level = levels.entry(module[..n_shared].to_vec()).or_default();
            let imports = level.entry(sibling(module)).or_default();
            imports.insert(sibling(target));
        }
    }
    levels
}

/// The module that has what a path names, re-exports followed.
fn resolve<'p>(path: &'p [String], files: &'p BTreeMap<Names, File>, n_left: u32) -> &'p [String] {
    let mut modules = (0..=path.len()).rev().map(|n_names| &path[..n_names]);
    let module = modules.find(|&it| files.contains_key(it));
    let module = module.expect("a crate has a root");
    let aliases = &files[module].aliases;
    match path.get(module.len()).and_then(|name| aliases.get(name)) {
        // What is after the name is in what it stands for: a module has its own aliases.
        Some(alias) if n_left > 0 => resolve(alias, files, n_left - 1),
        _ => module,
    }
}

impl File {
    fn new(module: &[String], code: &str, codes: &BTreeMap<Names, String>) -> Self {
        let tokens = tokens(code);
        let mut file = Self {
            aliases: BTreeMap::new(),
            paths: Vec::new(),
        };
        let mut at = 0;
        while at < tokens.len() {
            let is_path = tokens.get(at + 1) == Some(&"::") && (at == 0 || tokens[at - 1] != "::");
            let (is_use, mut named) = (tokens[at] == "use", Vec::new());
            at = match tokens[at] {
                "use" => tree(&tokens, at + 1, &[], &mut named),
                "crate" | "self" | "super" if is_path => tree(&tokens, at, &[], &mut named),
                _ => at + 1,
            };
            for (name, path) in named {
                if let Some(path) = absolute(module, &path, codes) {
                    if is_use {
                        file.aliases.insert(name.to_owned(), path.clone());
                    }
                    file.paths.push(path);
                }
            }
        }
        file
    }
}

/// A path from the crate's root, unless it is of another crate.
fn absolute(module: &[String], path: &[&str], codes: &BTreeMap<Names, String>) -> Option<Names> {
    let n_supers = path.iter().take_while(|&&it| it == "super").count();
    let from = match *path.first()? {
        "crate" => &[],
        "super" => &module[..module.len().checked_sub(n_supers)?],
        _ => module,
    };
    let n_skipped = n_supers.max(usize::from(["crate", "self"].contains(&path[0])));
    let names = path[n_skipped..].iter().map(|&it| it.to_owned());
    let whole: Names = from.iter().cloned().chain(names).collect();
    // Without one of the three words a path begins at a child.
    let is_of_crate = n_skipped > 0 || codes.contains_key(&whole[..=module.len()]);
    is_of_crate.then_some(whole)
}

/// Words and signs of a source.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let (mut tokens, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let len = match first {
            ':' if rest.starts_with("::") => 2,
            _ if is_word(first) => rest.find(|it| !is_word(it)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        tokens.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    tokens
}

/// Adds the paths of a tree such as `a::{b, c as d}` that begins at `at`, each with the name
/// that it brings in; where the tree ends.
fn tree<'c>(
    tokens: &[&'c str],
    mut at: usize,
    above: &[&'c str],
    named: &mut Vec<(&'c str, Vec<&'c str>)>,
) -> usize {
    let token = |at: usize| tokens.get(at).copied().unwrap_or(";");
    let mut path = above.to_vec();
    while token(at).starts_with(|it: char| it.is_alphanumeric() || it == '_') {
        path.push(token(at));
        at += 1;
        if token(at) != "::" {
            break;
        }
        at += 1;
    }
    if token(at) == "{" {
        while !["}", ";"].contains(&token(at)) {
            // Past the brace, or the comma before the next path.
            at = tree(tokens, at + 1, &path, named);
        }
        return at + 1;
    }
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let Some(&(mut name)) = path.last() else {
        return at;
    };
    match token(at) {
        "as" => (name, at) = (token(at + 1), at + 2),
        "*" => at += 1,
        _ => {}
    }
    named.push((name, path));
    at
}

/// Modules that import themselves through others.
fn circle(imports: &Imports) -> Vec<String> {
    let is_in_circle = |module: &&String| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![*module]);
        while let Some(next) = left.pop() {
            let imports = imports.get(next).into_iter().flatten();
            left.extend(imports.filter(|&it| seen.insert(it)));
        }
        seen.contains(module)
    };
    imports.keys().filter(is_in_circle).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [("lib.rs", "")].iter().chain(files) {
            let path = folder.path().join("src").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        violations(folder.path()).expect("files can be read")
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; mod c; pub use c::{inner::C, d};"),
            ("a.rs", "use crate::{b::{B, E as F}, d};"),
            ("b/mod.rs", "mod inner;"),
            ("b/inner.rs", "use crate::C;"),
            ("c/mod.rs", "pub mod inner;"),
            ("c/inner.rs", "fn f() { g(1, crate::a::g::<u8>()) }"),
            ("d.rs", ""),
        ]);
        let expected = "modules import each other in a circle: a, b, c";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn files_beside_each_other_in_a_folder_are_looked_at() {
        let found = circles(&[
            ("a.rs", "mod x; mod y; pub use x::X;"),
            ("a/x.rs", "use super::y::{self, Y};"),
            ("a/y.rs", "use super::X;"),
            ("b.rs", "use crate::sys::low;"),
            ("c.rs", "use crate::b::B;"),
            ("sys/low.rs", ""),
            ("sys/high.rs", "use crate::c::C;"),
        ]);
        let expected = "modules import each other in a circle: a/x, a/y";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn comments_tests_chains_and_children_are_no_circles() {
        let found = circles(&[
            ("a/mod.rs", "mod x; use crate::b::B; use x::X;"),
            ("a/x.rs", "use super::A; use std::a::{A, B};"),
            (
                "b.rs",
                "//! See crate::a.\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}",
            ),
            ("b/tests.rs", "use crate::a;"),
            ("bin/program.rs", "use crate::a; use crate::b;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
