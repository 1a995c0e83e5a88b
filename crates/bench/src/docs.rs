//! Tables of documentation pages, generated from result files.
//!
//! A page names a result between two comments, and what lies between them is generated:
//!
//! ```text
//! <!-- result: takemasa/figure-4.5 -->
//! | … |
//! <!-- end of result -->
//! ```
//!
//! After the id may stand which parts are shown: `table 2` (the second table), `published`
//! or `targets`; without them all tables are shown. Below the parts stands where and when
//! the result was measured.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::markdown;
use crate::results::ResultFile;

const BEGIN: &str = "<!-- result: ";
const END: &str = "<!-- end of result -->";

/// The page with all generated parts written again from the results in a folder.
///
/// # Errors
/// If a comment is malformed, or a result or part is missing.
pub fn regenerate(page: &str, results: &Path) -> anyhow::Result<String> {
    let mut fresh = String::new();
    let mut rest = page;
    while let Some(start) = rest.find(BEGIN) {
        let head = &rest[start..];
        let line_end = head.find('\n').context("a result comment ends the page")?;
        let line = &head[..line_end];
        let spec = line
            .strip_prefix(BEGIN)
            .and_then(|it| it.strip_suffix(" -->"));
        let spec = spec.with_context(|| format!("malformed comment: {line}"))?;
        let end = head
            .find(END)
            .with_context(|| format!("no `{END}` after {line}"))?;
        fresh.push_str(&rest[..start]);
        _ = writeln!(fresh, "{line}");
        fresh.push_str(&part(spec, results)?);
        fresh.push_str(END);
        rest = &head[end + END.len()..];
    }
    fresh.push_str(rest);
    Ok(fresh)
}

/// The results that a page names.
pub fn ids(page: &str) -> impl Iterator<Item = &str> {
    let specs = page.split(BEGIN).skip(1);
    specs.filter_map(|spec| spec.split([' ', '\n']).next())
}

/// Lines of a page outside generated parts.
#[must_use]
pub fn n_prose_lines(page: &str) -> usize {
    let mut is_generated = false;
    let mut n_lines = 0;
    for line in page.lines() {
        is_generated |= line.starts_with(BEGIN);
        n_lines += usize::from(!is_generated);
        is_generated &= line != END;
    }
    n_lines
}

fn part(spec: &str, results: &Path) -> anyhow::Result<String> {
    let (id, parts) = spec.split_once(' ').unwrap_or((spec, ""));
    let result = ResultFile::read(&ResultFile::path_in(results, id))?;
    let record = &result.record;
    let tables = |idx: Option<usize>| -> anyhow::Result<String> {
        let chosen = match idx {
            None => record.tables.iter().collect(),
            Some(n) => {
                let table = n.checked_sub(1).and_then(|idx| record.tables.get(idx));
                vec![table.with_context(|| format!("{id} has no table {n}"))?]
            }
        };
        let texts = chosen.into_iter().map(|table| match &*table.title {
            "" => markdown::table(table),
            title => format!("{title}:\n\n{}", markdown::table(table)),
        });
        Ok(texts.collect::<Vec<_>>().join("\n"))
    };
    let mut texts = Vec::new();
    for part in parts.split(',').map(str::trim) {
        texts.push(match part {
            "" => tables(None)?,
            "published" => markdown::published(&record.published),
            "targets" => markdown::verdicts(&record.verdicts),
            "notes" => record
                .notes
                .iter()
                .map(|note| format!("{note}\n"))
                .collect(),
            other => match other.strip_prefix("table ").map(str::parse) {
                Some(Ok(n)) => tables(Some(n))?,
                _ => bail!("{id}: unknown part `{other}`"),
            },
        });
    }
    if texts.iter().all(String::is_empty) {
        bail!("{id}: the result has nothing to show for `{parts}`");
    }
    let machine = &result.machine;
    Ok(format!(
        "\n{}\n`{}`: {} on {}, {} CPUs, commit {}, {}.\n\n",
        texts.join("\n"),
        result.command,
        record.kind.label(),
        machine.cpu.as_deref().unwrap_or("unknown CPU"),
        machine.n_cpus,
        result.commit.as_deref().unwrap_or("unknown"),
        result.date.split('T').next().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;
    use crate::experiment::{Cost, Experiment};
    use crate::params::{Scale, Values};
    use crate::record::{Kind, Record, Table};

    #[test]
    fn generated_parts_follow_the_result_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let experiment = Experiment {
            id: "own/x",
            title: "x",
            source: "",
            cost: Cost::minutes(1.0, 1.0),
            needs: &[],
            params: &[],
            run: |_| Ok(Record::new(Kind::Computed)),
        };
        let mut record = Record::new(Kind::Computed);
        let mut table = Table::new("", ["policy", "hits"]);
        table.row(cells!["lru", 0.5]);
        record.tables.push(table);
        let result = ResultFile::new(&experiment, Scale::Quick, &Values::default(), 1.0, record);
        let result = result.expect("a result");
        let path = ResultFile::path_in(folder.path(), "own/x");
        result.write(&path).expect("the folder is writable");
        assert_eq!(ResultFile::read(&path).expect("it was written"), result);

        let page = format!("before\n{BEGIN}own/x -->\nold\n{END}\nafter\n");
        let fresh = regenerate(&page, folder.path()).expect("the result is there");
        assert!(fresh.contains("| lru | 0.5000 |"), "{fresh}");
        assert!(!fresh.contains("old") && fresh.ends_with("after\n"));
        assert_eq!(regenerate(&fresh, folder.path()).expect("again"), fresh);
        assert_eq!(ids(&fresh).collect::<Vec<_>>(), ["own/x"]);
        assert_eq!(n_prose_lines(&fresh), 2);
        for broken in [
            page.replace("own/x", "own/y"),
            page.replace("own/x", "own/x table 2"),
            page.replace("own/x", "own/x published"),
            page.replace(END, ""),
        ] {
            regenerate(&broken, folder.path()).expect_err(&broken);
        }
    }
}
