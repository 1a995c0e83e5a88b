//! What an experiment returns.

use serde::{Deserialize, Serialize};

use crate::plot::Chart;
use crate::stats::{Mean, Spread};

/// How the numbers of a record came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By clocks and counters on this machine.
    Measured,
    /// By events in virtual time.
    Simulated,
    /// By the real program on a part that is imitated, such as a device.
    Emulated,
    /// By a model or arithmetic.
    Computed,
}

impl Kind {
    /// Its word.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
            Self::Emulated => "emulated",
            Self::Computed => "computed",
        }
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading, with the unit after a comma: `lookup, ns`.
    pub title: String,
    /// Digits after the point; `None`: as many as tell something.
    pub n_decimals: Option<u8>,
}

impl Column {
    /// A column that shows as many digits as tell something.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            n_decimals: None,
        }
    }

    /// A column with a fixed number of digits after the point.
    #[must_use]
    pub fn fixed(title: impl Into<String>, n_decimals: u8) -> Self {
        Self {
            title: title.into(),
            n_decimals: Some(n_decimals),
        }
    }
}

impl From<&str> for Column {
    fn from(title: &str) -> Self {
        Self::new(title)
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// A median with its spread over rounds.
    Spread(Spread),
    /// A mean with the half width of its 95 % confidence interval.
    Mean {
        /// The mean.
        mean: f64,
        /// Half of the interval's width.
        half_width: f64,
    },
    /// A word.
    Text(String),
    /// Not measured here; a note of the record says why.
    Missing,
}

impl Cell {
    /// Whether it has this text, or the number that is written so.
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Text(own) => own == text,
            _ => text.replace(',', "").parse().ok() == self.number(),
        }
    }

    /// Its number, the median or the mean; `None` if it has none.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Spread(spread) => Some(spread.median),
            Self::Mean { mean, .. } => Some(*mean),
            Self::Text(_) | Self::Missing => None,
        }
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        if number.is_finite() {
            Self::Number(number)
        } else {
            Self::Missing
        }
    }
}

macro_rules! cell_from_integer {
    ($($kind:ty)*) => {$(
        impl From<$kind> for Cell {
            fn from(number: $kind) -> Self {
                Self::Number(number as f64)
            }
        }
    )*};
}
cell_from_integer!(u8 u16 u32 u64 usize i32 i64);

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Spread> for Cell {
    fn from(spread: Spread) -> Self {
        Self::Spread(spread)
    }
}

impl From<Mean> for Cell {
    /// A mean whose interval is wider than itself is named as such: a text without a number.
    fn from(it: Mean) -> Self {
        let Mean { mean, half_width } = it;
        let Some(half_width) = half_width else {
            return Self::from(mean);
        };
        Self::Mean { mean, half_width }
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// A table of results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows; empty if the experiment's title says it.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new<C: Into<Column>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
    ) -> Self {
        Self {
            title: title.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has more or fewer cells than the table has columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<_> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// The index of a column by its title.
    #[must_use]
    pub fn column(&self, title: &str) -> Option<usize> {
        self.columns.iter().position(|it| it.title == title)
    }

    /// The number in the first row whose cells begin with `key`, in a column.
    #[must_use]
    pub fn number(&self, key: &[&str], column: &str) -> Option<f64> {
        let column = self.column(column)?;
        let is_it = |row: &&Vec<Cell>| key.iter().zip(*row).all(|(key, cell)| cell.is(key));
        self.rows.iter().find(is_it)?[column].number()
    }
}

/// Cells of a row, each from what it is made of.
///
/// ```
/// # use tachonym_bench::{Table, cells};
/// let mut table = Table::new("", ["policy", "hit ratio"]);
/// table.row(cells!["lru", 0.31]);
/// ```
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => {
        [$($crate::Cell::from($cell)),*]
    };
}

/// How firmly a document gives a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stated {
    /// In its text or a table.
    Stated,
    /// Computed from what its text says.
    Inferred,
    /// Read from a drawing, so only about right.
    ReadFromDrawing,
}

impl Stated {
    /// Its word.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Inferred => "inferred",
            Self::ReadFromDrawing => "read from a drawing",
        }
    }
}

/// Where a document gives a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The document: `Takemasa 2019`.
    pub document: &'static str,
    /// The place in it: `Table 5.2`, `section 4.4.1`.
    pub place: &'static str,
    /// How firmly.
    pub how: Stated,
}

impl Reference {
    /// A value of the text or of a table.
    #[must_use]
    pub const fn stated(document: &'static str, place: &'static str) -> Self {
        Self {
            document,
            place,
            how: Stated::Stated,
        }
    }

    /// A value computed from what the text says.
    #[must_use]
    pub const fn inferred(document: &'static str, place: &'static str) -> Self {
        Self {
            document,
            place,
            how: Stated::Inferred,
        }
    }

    /// A value read from a drawing.
    #[must_use]
    pub const fn drawn(document: &'static str, place: &'static str) -> Self {
        Self {
            document,
            place,
            how: Stated::ReadFromDrawing,
        }
    }
}

/// A published value beside the one found here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Of what.
    pub what: String,
    /// As published.
    pub value: f64,
    /// The other end, if a range is published.
    pub to: Option<f64>,
    /// Its unit; empty for counts and ratios.
    pub unit: String,
    /// The document.
    pub document: String,
    /// The place in it.
    pub place: String,
    /// How firmly.
    pub how: Stated,
    /// What this run has; `None` if it has nothing to compare.
    pub here: Option<f64>,
}

/// What a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bound {
    /// Whether a value is as required.
    #[must_use]
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

/// A target and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of what.
    pub what: String,
    /// Its unit; empty for counts and ratios.
    pub unit: String,
    /// What it has to be.
    pub bound: Bound,
    /// What it is.
    pub spread: Spread,
    /// Whether the median is as required.
    pub is_met: bool,
}

/// The results of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How its numbers came about.
    pub kind: Kind,
    /// Its tables, the main one first.
    pub tables: Vec<Table>,
    /// Its drawings.
    pub charts: Vec<Chart>,
    /// Published values beside those found here.
    pub published: Vec<Published>,
    /// Targets.
    pub verdicts: Vec<Verdict>,
    /// What a reader needs to know beside the numbers.
    pub notes: Vec<String>,
}

impl Record {
    /// A record without results.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            tables: Vec::new(),
            charts: Vec::new(),
            published: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a published value beside what this run has.
    pub fn compare(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &str,
        reference: Reference,
        here: Option<f64>,
    ) {
        self.compare_range(what, (value, None), unit, reference, here);
    }

    /// Adds a published range, or a value without other end, beside what this run has.
    pub fn compare_range(
        &mut self,
        what: impl Into<String>,
        (value, to): (f64, Option<f64>),
        unit: &str,
        reference: Reference,
        here: Option<f64>,
    ) {
        self.published.push(Published {
            what: what.into(),
            value,
            to,
            unit: unit.to_owned(),
            document: reference.document.to_owned(),
            place: reference.place.to_owned(),
            how: reference.how,
            here,
        });
    }

    /// Adds a target and judges it by the median.
    pub fn judge(&mut self, what: impl Into<String>, unit: &str, bound: Bound, spread: Spread) {
        self.verdicts.push(Verdict {
            what: what.into(),
            unit: unit.to_owned(),
            bound,
            is_met: bound.is_met(spread.median),
            spread,
        });
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The published value of something, by its name.
    #[must_use]
    pub fn published(&self, what: &str) -> Option<&Published> {
        self.published.iter().find(|it| it.what == what)
    }
}
