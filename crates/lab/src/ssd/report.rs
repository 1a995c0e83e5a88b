//! Figures, and promises beside them.

use std::fmt;

use anyhow::Context as _;
use serde::Serialize;

use crate::stats::Spread;

/// What was measured over the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    what: String,
    unit: &'static str,
    spread: Spread,
}

/// What a figure is to be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "at least {bound}"),
            Self::AtMost(bound) => write!(f, "at most {bound}"),
        }
    }
}

/// A promise, and what came of it.
#[derive(Clone, Debug, Serialize)]
struct Promise {
    #[serde(flatten)]
    figure: Figure,
    promised: Bound,
    /// Whether the median is as promised.
    is_kept: bool,
}

/// What a command tells.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    title: String,
    figures: Vec<Figure>,
    promises: Vec<Promise>,
    notes: Vec<String>,
}

impl Report {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            figures: Vec::new(),
            promises: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn made(what: impl Into<String>, unit: &'static str, rounds: &[f64]) -> anyhow::Result<Figure> {
        Ok(Figure {
            what: what.into(),
            unit,
            spread: Spread::of(rounds).context("no round was measured")?,
        })
    }

    /// Adds a figure of each round.
    pub(super) fn add(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        rounds: &[f64],
    ) -> anyhow::Result<()> {
        self.figures.push(Self::made(what, unit, rounds)?);
        Ok(())
    }

    /// Adds a figure that something was promised of.
    pub(super) fn promise(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        promised: Bound,
        rounds: &[f64],
    ) -> anyhow::Result<()> {
        let figure = Self::made(what, unit, rounds)?;
        self.promises.push(Promise {
            promised,
            is_kept: promised.is_met(figure.spread.median),
            figure,
        });
        Ok(())
    }

    /// Adds what is to be known beside.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// A number with three or four digits that tell something.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        unity if unity >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn spread(figure: &Figure) -> String {
    let Spread {
        median, p10, p90, ..
    } = figure.spread;
    let unit = match figure.unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    match figure.spread.n_rounds {
        1 => format!("{}{unit}", short(median)),
        _ => format!("{}{unit} ({}-{})", short(median), short(p10), short(p90)),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        writeln!(f, "| measured | median (p10-p90) |\n|---|---|")?;
        for figure in &self.figures {
            writeln!(f, "| {} | {} |", figure.what, spread(figure))?;
        }
        if !self.promises.is_empty() {
            writeln!(
                f,
                "\n| target | required | median (p10-p90) | verdict |\n|---|---|---|---|"
            )?;
        }
        for promise in &self.promises {
            let verdict = match promise.is_kept {
                true => "kept",
                false => "missed",
            };
            let figure = &promise.figure;
            writeln!(
                f,
                "| {} | {} | {} | {verdict} |",
                figure.what,
                promise.promised,
                spread(figure)
            )?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_or_missed_by_its_median() {
        let mut report = Report::new("a store");
        let at_most = Bound::AtMost(1.05);
        report
            .promise("cost", "", at_most, &[1.0, 1.04, 9.0])
            .expect("three rounds");
        report
            .promise("rate", "MiB/s", Bound::AtLeast(900.0), &[899.0])
            .expect("a round");
        report.add("nothing", "", &[]).expect_err("no round");
        let text = report.to_string();
        assert!(
            text.contains("| cost | at most 1.05 | 1.04 (1.01-7.41) | kept |"),
            "{text}"
        );
        assert!(
            text.contains("| rate | at least 900 | 899 MiB/s | missed |"),
            "{text}"
        );
    }
}
