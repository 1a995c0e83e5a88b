//! An experiment by two builds of the program, in turns: what a change gains or costs.
//!
//! Owns the turns and the ratios. Refuses to judge them: a ratio whose spread holds 1 is no
//! difference.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::record::{Record, Table};
use crate::results::ResultFile;
use crate::stats::Spread;
use crate::turns::rotated;

/// Runs `own` and `other` with the same arguments, in turns, and returns the tables of `own`
/// with numbers by those of `other` in the same round. Numbers that are the same in all runs,
/// such as sizes, stay.
///
/// # Errors
/// If one of them fails, or prints no result.
pub(crate) fn compare(
    own: &Path,
    other: &Path,
    arguments: &[String],
    n_rounds: usize,
) -> anyhow::Result<Record> {
    let run = |program: &Path| -> anyhow::Result<ResultFile> {
        let mut command = Command::new(program);
        command.arg("run").args(arguments).arg("--json");
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(output.status.success(), "{} failed", program.display());
        let result = serde_json::from_slice(&output.stdout);
        result.with_context(|| format!("{} printed no result", program.display()))
    };
    let programs = [own, other];
    let results = rotated(2, n_rounds, |case, _| Ok(run(programs[case])?.record))?;
    let first = results[0].first().context("there must be a round")?;
    let mut record = Record::new(first.kind);
    let tables = first.tables.iter().enumerate();
    record.tables = tables
        .map(|(idx, table)| ratios(table, idx, &results[0], &results[1]))
        .collect();
    record.note(format!(
        "Numbers are this program's by those of {}, medians over {n_rounds} rounds in which both \
         ran; below 1 is less here. Numbers that are the same in all runs stay.",
        other.display()
    ));
    Ok(record)
}

/// A table with the ratios of the tables at `idx` of the records of each round.
fn ratios(table: &Table, idx: usize, own: &[Record], other: &[Record]) -> Table {
    let mut table = table.clone();
    for (row_idx, row) in table.rows.iter_mut().enumerate() {
        for (column_idx, cell) in row.iter_mut().enumerate() {
            let numbers = |records: &[Record]| -> Option<Vec<f64>> {
                let row = |it: &Record| it.tables.get(idx)?.rows.get(row_idx).cloned();
                let number = |it: &Record| row(it)?.get(column_idx)?.number();
                records.iter().map(number).collect()
            };
            let is_same = |numbers: &Vec<f64>| numbers.iter().all(|&it| Some(it) == cell.number());
            let (own, other) = (numbers(own), numbers(other));
            let is_fixed = [&own, &other]
                .iter()
                .all(|it| it.as_ref().is_some_and(is_same));
            if is_fixed || cell.number().is_none() {
                continue;
            }
            let ratio = own.zip(other);
            *cell = ratio
                .and_then(|(own, other)| Spread::of_ratios(&own, &other))
                .into();
            table.columns[column_idx].n_decimals = Some(3);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;
    use crate::record::{Cell, Kind};

    fn record(size: u64, ns: f64) -> Record {
        let mut table = Table::new("", ["case", "size", "time, ns"]);
        table.row(cells!["a", size, ns]);
        let mut record = Record::new(Kind::Measured);
        record.tables.push(table);
        record
    }

    #[test]
    fn measured_numbers_become_ratios_of_their_rounds() {
        let own = [record(7, 50.0), record(7, 90.0), record(7, 300.0)];
        let other = [record(7, 100.0), record(7, 100.0), record(7, 200.0)];
        let found = ratios(&own[0].tables[0], 0, &own, &other);
        assert_eq!(found.number(&["a"], "size"), Some(7.0));
        assert_eq!(found.number(&["a"], "time, ns"), Some(0.9));
        // A table that only one of them has cannot be compared.
        let empty = [(); 3].map(|()| Record::new(Kind::Measured));
        let found = ratios(&own[0].tables[0], 0, &own, &empty);
        assert_eq!(found.rows[0][2], Cell::Missing);
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let absent = Path::new("/nonexistent/tachonym-lab");
        let error = compare(absent, absent, &[], 2).expect_err("absent");
        assert!(format!("{error:#}").contains("cannot run /nonexistent"));
        let silent = Path::new("/bin/true");
        let error = compare(silent, silent, &[], 2).expect_err("no JSON");
        assert!(format!("{error:#}").contains("printed no result"));
    }
}
