//! The page of measurements follows its result files.
//!
//! The tables of `docs/performance.md` are generated from `docs/results`. The page has at
//! most [`MAX_PROSE_LINES`] lines beside them, and each result file is used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tachonym_bench::docs;

const MAX_PROSE_LINES: usize = 400;

/// What is wrong with the page and the results below a root.
pub(crate) fn faults(root: &Path) -> anyhow::Result<Vec<String>> {
    let page = root.join("docs/performance.md");
    let results = root.join("docs/results");
    let text = fs::read_to_string(&page).context("docs/performance.md")?;
    let mut faults = Vec::new();
    match docs::regenerate(&text, &results) {
        Ok(fresh) if fresh == text => {}
        Ok(_) => faults.push(
            "docs/performance.md differs from docs/results: run `tachonym-lab docs`".to_owned(),
        ),
        Err(error) => faults.push(format!("docs/performance.md: {error:#}")),
    }
    let n_prose = docs::n_prose_lines(&text);
    if n_prose > MAX_PROSE_LINES {
        faults.push(format!(
            "docs/performance.md has {n_prose} lines of prose; at most {MAX_PROSE_LINES}"
        ));
    }
    let named: BTreeSet<_> = docs::ids(&text).map(str::to_owned).collect();
    for id in ids_below(&results)? {
        if !named.contains(&id) {
            faults.push(format!("docs/results/{id}.json: no page shows it"));
        }
    }
    Ok(faults)
}

/// The ids of all result files below a folder.
fn ids_below(results: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    let mut folders: Vec<PathBuf> = Vec::from_iter(results.exists().then(|| results.to_owned()));
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let id = path.strip_prefix(results)?.with_extension("");
                ids.insert(id.display().to_string());
            }
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_differs_and_a_result_without_page_are_faults() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let docs = root.path().join("docs");
        fs::create_dir_all(docs.join("results/own")).expect("writable");
        let page = docs.join("performance.md");
        fs::write(&page, "# Performance\n").expect("writable");
        assert_eq!(faults(root.path()).expect("readable"), Vec::<String>::new());

        fs::write(docs.join("results/own/x.json"), "{}").expect("writable");
        let unused = faults(root.path()).expect("readable");
        assert_eq!(unused, ["docs/results/own/x.json: no page shows it"]);

        fs::write(&page, "<!-- result: own/x -->\n<!-- end of result -->\n").expect("writable");
        let broken = faults(root.path()).expect("readable");
        assert!(broken[0].contains("is no result"), "{broken:?}");

        fs::write(&page, "a line\n\n".repeat(MAX_PROSE_LINES)).expect("writable");
        let long = faults(root.path()).expect("readable");
        assert!(long[0].contains("has 800 lines of prose"), "{long:?}");
    }
}
