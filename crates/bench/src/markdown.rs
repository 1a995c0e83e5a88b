//! Records as Markdown.

use std::fmt::Write as _;

use crate::record::{Bound, Cell, Published, Record, Table, Verdict};
use crate::stats::{Mean, Spread};

/// A number with three or four significant digits, and with commas from 10,000 on.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if value == 0.0 => "0".to_owned(),
        large if large >= 999.5 => grouped(value.round()),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        hundreds if hundreds >= 100.0 => format!("{value:.0}"),
        tens if tens >= 10.0 => format!("{value:.1}"),
        ones if ones >= 1.0 => format!("{value:.2}"),
        part if part >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// A whole number with a comma after each three digits if it has more than four.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value < 0.0 {
        text.push('-');
    }
    for (idx, digit) in digits.chars().enumerate() {
        if digits.len() > 4 && idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn number(value: f64, n_decimals: Option<u8>) -> String {
    match n_decimals {
        Some(n) => format!("{value:.*}", usize::from(n)),
        None => short(value),
    }
}

fn spread(spread: &Spread, n_decimals: Option<u8>) -> String {
    let [median, p10, p90] =
        [spread.median, spread.p10, spread.p90].map(|value| number(value, n_decimals));
    match spread.n_rounds {
        1 => median,
        _ => format!("{median} ({p10}–{p90})"),
    }
}

/// The text of a cell.
#[must_use]
pub fn cell_text(cell: &Cell, n_decimals: Option<u8>) -> String {
    match cell {
        Cell::Number(value) => number(*value, n_decimals),
        Cell::Spread(it) => spread(it, n_decimals),
        Cell::Mean { mean, half_width } => {
            let of = Mean {
                mean: *mean,
                half_width: Some(*half_width),
            };
            let is_informative = of.is_informative();
            let [mean, half_width] = [mean, half_width].map(|it| number(*it, n_decimals));
            match is_informative {
                true => format!("{mean} ± {half_width}"),
                false => format!("no information ({mean} ± {half_width})"),
            }
        }
        Cell::Text(text) => text.clone(),
        Cell::Missing => "–".to_owned(),
    }
}

/// A table in Markdown, without its title.
#[must_use]
pub fn table(table: &Table) -> String {
    let mut text = String::new();
    let titles: Vec<_> = table.columns.iter().map(|it| escape(&it.title)).collect();
    _ = writeln!(text, "| {} |", titles.join(" | "));
    let is_number = |idx: usize| {
        let mut cells = table.rows.iter().map(|row| &row[idx]);
        cells.all(|cell| !matches!(cell, Cell::Text(_)))
    };
    let rules: Vec<_> = (0..titles.len())
        .map(|idx| if is_number(idx) { "---:" } else { "---" })
        .collect();
    _ = writeln!(text, "|{}|", rules.join("|"));
    for row in &table.rows {
        let cells = row.iter().zip(&table.columns);
        let cells: Vec<_> = cells
            .map(|(cell, column)| escape(&cell_text(cell, column.n_decimals)))
            .collect();
        _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// A cell's text must not end the cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn with_unit(value: &str, unit: &str) -> String {
    match unit {
        "" => value.to_owned(),
        "%" => format!("{value} %"),
        unit => format!("{value} {unit}"),
    }
}

/// The table of published values beside those found here; empty if there are none.
#[must_use]
pub fn published(published: &[Published]) -> String {
    if published.is_empty() {
        return String::new();
    }
    let mut rows = Table::new("", ["", "published", "source", "here"]);
    for it in published {
        let value = match it.to {
            Some(to) => format!("{} to {}", short(it.value), short(to)),
            None => short(it.value),
        };
        let here = it.here.map_or("–".to_owned(), short);
        let source = format!("{}, {} ({})", it.document, it.place, it.how.label());
        rows.rows.push(
            [
                it.what.clone(),
                with_unit(&value, &it.unit),
                source,
                if it.here.is_some() {
                    with_unit(&here, &it.unit)
                } else {
                    here
                },
            ]
            .map(Cell::Text)
            .into(),
        );
    }
    table(&rows)
}

/// The table of targets; empty if there are none.
#[must_use]
pub fn verdicts(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut rows = Table::new("", ["target", "required", "found", "verdict"]);
    for it in verdicts {
        let required = match it.bound {
            Bound::AtLeast(bound) => format!("at least {}", short(bound)),
            Bound::AtMost(bound) => format!("at most {}", short(bound)),
        };
        let verdict = if it.is_met { "reached" } else { "missed" };
        rows.rows.push(
            [
                it.what.clone(),
                with_unit(&required, &it.unit),
                with_unit(&spread(&it.spread, None), &it.unit),
                verdict.to_owned(),
            ]
            .map(Cell::Text)
            .into(),
        );
    }
    table(&rows)
}

/// A whole record in Markdown, without drawings.
#[must_use]
pub fn record(record: &Record) -> String {
    let mut parts = Vec::new();
    for it in &record.tables {
        if !it.title.is_empty() {
            parts.push(format!("{}:\n", it.title));
        }
        parts.push(table(it));
    }
    parts.push(published(&record.published));
    parts.push(verdicts(&record.verdicts));
    parts.extend(record.notes.iter().map(|note| format!("{note}\n")));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;
    use crate::record::{Kind, Reference};

    #[test]
    fn numbers_have_as_many_digits_as_tell_something() {
        for (value, text) in [
            (0.0, "0"),
            (12.0, "12"),
            (0.123_456, "0.1235"),
            (0.000_012, "1.20e-5"),
            (3.456, "3.46"),
            (34.56, "34.6"),
            (345.6, "346"),
            (3_456.7, "3457"),
            (34_567.8, "34,568"),
            (-1_234_567.0, "-1,234,567"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_record_shows_tables_published_values_and_notes() {
        let mut it = Record::new(Kind::Measured);
        let mut rows = Table::new("hits", ["policy", "ratio"]);
        rows.row(cells!["lru", 0.25]);
        rows.row(cells!["a|b", Cell::Missing]);
        it.tables.push(rows);
        let of = Reference::stated("Takemasa 2019", "Table 5.2");
        it.compare("cycles of FIFO", 28.0, "cycles", of, Some(30.5));
        let rounds = Spread::of(&[1.0, 2.0, 3.0]).expect("rounds");
        it.judge("speed", "µs", Bound::AtMost(1.5), rounds);
        it.note("one seed");
        it.note("one seed");
        let text = record(&it);
        for line in [
            "| policy | ratio |\n|---|---:|\n| lru | 0.2500 |\n| a\\|b | – |",
            "| cycles of FIFO | 28 cycles | Takemasa 2019, Table 5.2 (stated) | 30.5 cycles |",
            "| speed | at most 1.50 µs | 2 (1.20–2.80) µs | missed |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(text.matches("one seed").count(), 1);
        assert_eq!(it.tables[0].number(&["lru"], "ratio"), Some(0.25));
        assert_eq!(it.tables[0].number(&["arc"], "ratio"), None);
    }
}
