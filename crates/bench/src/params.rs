//! Scales and parameters of an experiment.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How large an experiment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A second or two: it shows that the experiment works; its times mean nothing.
    Tiny,
    /// Minutes on two cores.
    Quick,
    /// The size that the document has, as far as the machine allows.
    Full,
}

impl Scale {
    /// Its word on the command line.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Which values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A whole number in a range. Written with an optional suffix `k`, `M` or `G` (10³, 10⁶, 10⁹).
    Count {
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// A number, not NaN.
    Number,
    /// Whole numbers with commas between them, at least one.
    Counts,
    /// Numbers with commas between them, at least one.
    Numbers,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text, such as a path; may be empty.
    Text,
}

/// A parameter of an experiment, with its value at each scale.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name in `--set NAME=VALUE`.
    pub name: &'static str,
    /// What it means, with its unit.
    pub help: &'static str,
    /// Which values it takes.
    pub kind: ParamKind,
    /// Its value at the scales tiny, quick and full.
    pub defaults: [&'static str; 3],
}

impl Param {
    /// A count from 1 on.
    #[must_use]
    pub const fn count(
        name: &'static str,
        help: &'static str,
        defaults: [&'static str; 3],
    ) -> Self {
        let kind = ParamKind::Count {
            min: 1,
            max: u64::MAX,
        };
        Self {
            name,
            help,
            kind,
            defaults,
        }
    }

    /// A parameter of another kind.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        kind: ParamKind,
        defaults: [&'static str; 3],
    ) -> Self {
        Self {
            name,
            help,
            kind,
            defaults,
        }
    }

    /// A choice of words that is the same at each scale.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        help: &'static str,
        words: &'static [&'static str],
        default: &'static str,
    ) -> Self {
        Self {
            name,
            help,
            kind: ParamKind::Choice(words),
            defaults: [default; 3],
        }
    }

    /// Measured rounds.
    #[must_use]
    pub const fn rounds(defaults: [&'static str; 3]) -> Self {
        Self {
            name: "rounds",
            help: "measured rounds",
            kind: ParamKind::Count { min: 1, max: 1_001 },
            defaults,
        }
    }

    /// The seed of everything that is drawn.
    #[must_use]
    pub const fn seed() -> Self {
        let kind = ParamKind::Count {
            min: 0,
            max: u64::MAX,
        };
        Self {
            name: "seed",
            help: "seed of what is drawn",
            kind,
            defaults: ["1"; 3],
        }
    }

    fn check(&self, value: &str) -> anyhow::Result<()> {
        match self.kind {
            ParamKind::Count { min, max } => {
                let count = parse_count(value)?;
                let is_within = (min..=max).contains(&count);
                ensure!(is_within, "{count} is not between {min} and {max}");
            }
            ParamKind::Number => _ = parse_number(value)?,
            ParamKind::Counts => _ = parse_list(value, parse_count)?,
            ParamKind::Numbers => _ = parse_list(value, parse_number)?,
            ParamKind::Choice(words) => ensure!(
                words.contains(&value),
                "`{value}` is not one of {}",
                words.join(", ")
            ),
            ParamKind::Text => {}
        }
        Ok(())
    }
}

fn parse_count(text: &str) -> anyhow::Result<u64> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let digits = digits.replace('_', "");
    let count: Option<u64> = digits.parse().ok();
    let count = count.and_then(|count| count.checked_mul(unit));
    count.with_context(|| format!("`{text}` is not a whole number"))
}

fn parse_number(text: &str) -> anyhow::Result<f64> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| !number.is_nan());
    number.with_context(|| format!("`{text}` is not a number"))
}

fn parse_list<T>(text: &str, parse: fn(&str) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    text.split(',').map(|part| parse(part.trim())).collect()
}

/// The values of an experiment's parameters in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// The values of `params` at `scale`, but for those that `set` changes, each
    /// `NAME=VALUE`.
    ///
    /// # Errors
    /// If there is no such parameter, or its value is none that it takes.
    pub fn new(params: &[Param], scale: Scale, set: &[String]) -> anyhow::Result<Self> {
        let at = scale as usize;
        let defaults = params
            .iter()
            .map(|param| (param.name.to_owned(), param.defaults[at].to_owned()));
        let mut values: BTreeMap<_, _> = defaults.collect();
        for assignment in set {
            let (name, value) = assignment
                .split_once('=')
                .with_context(|| format!("`{assignment}` is not NAME=VALUE"))?;
            let Some(param) = params.iter().find(|param| param.name == name) else {
                let names: Vec<_> = params.iter().map(|param| param.name).collect();
                bail!(
                    "no parameter `{name}`; parameters here: {}",
                    names.join(", ")
                );
            };
            param
                .check(value)
                .with_context(|| format!("parameter {name}"))?;
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self(values))
    }

    /// Names and values in alphabetical order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The text of a parameter.
    ///
    /// # Panics
    /// If the experiment has no such parameter, as all getters.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let value = self.0.get(name);
        value.unwrap_or_else(|| panic!("the experiment declares the parameter `{name}`"))
    }

    /// A whole number.
    ///
    /// # Panics
    /// If the parameter is not declared as one, as the other getters for theirs.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        parse_count(self.text(name)).expect("checked when it was set")
    }

    /// A whole number of the platform's size.
    #[must_use]
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.count(name)).unwrap_or(usize::MAX)
    }

    /// A whole number below 2³²; greater ones are cut to 2³² - 1.
    #[must_use]
    pub fn count32(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    /// A number.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        parse_number(self.text(name)).expect("checked when it was set")
    }

    /// Whole numbers.
    #[must_use]
    pub fn counts(&self, name: &str) -> Vec<u64> {
        parse_list(self.text(name), parse_count).expect("checked when they were set")
    }

    /// Numbers.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        parse_list(self.text(name), parse_number).expect("checked when they were set")
    }
}

/// Checks the defaults of parameters: for a test of a registry.
///
/// # Errors
/// If a default is not a value of its parameter, or a name occurs twice.
pub(crate) fn check_defaults(params: &[Param]) -> anyhow::Result<()> {
    for (idx, param) in params.iter().enumerate() {
        let is_double = params[..idx].iter().any(|other| other.name == param.name);
        ensure!(!is_double, "parameter `{}` is declared twice", param.name);
        for value in param.defaults {
            param
                .check(value)
                .with_context(|| format!("default of parameter {}", param.name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: [Param; 4] = [
        Param::count("prefixes", "FIB prefixes", ["1k", "1M", "13548815"]),
        Param::new("load", "offered load", ParamKind::Number, ["0.5"; 3]),
        Param::new("sizes", "bytes", ParamKind::Counts, ["1,2k"; 3]),
        Param::choice("policy", "eviction policy", &["lru", "fifo"], "lru"),
    ];

    fn set(assignment: &str) -> anyhow::Result<Values> {
        Values::new(&PARAMS, Scale::Quick, &[assignment.to_owned()])
    }

    #[test]
    fn values_come_from_the_scale_unless_they_are_set() {
        check_defaults(&PARAMS).expect("they are well declared");
        let values = set("load=2.5").expect("a number");
        assert_eq!(values.count("prefixes"), 1_000_000);
        assert_eq!(values.number("load"), 2.5);
        assert_eq!(values.counts("sizes"), [1, 2_000]);
        assert_eq!(values.text("policy"), "lru");
        let tiny = Values::new(&PARAMS, Scale::Tiny, &[]).expect("defaults");
        assert_eq!(tiny.count("prefixes"), 1_000);
    }

    #[test]
    fn wrong_values_are_refused_with_the_parameter_named() {
        for (assignment, part) in [
            ("prefixes=0", "not between 1 and"),
            ("prefixes=many", "not a whole number"),
            ("prefixes=99999999999G", "not a whole number"),
            ("load=nan", "not a number"),
            ("sizes=1,,2", "not a whole number"),
            ("policy=arc", "not one of lru, fifo"),
            ("prefix=3", "no parameter `prefix`"),
            ("prefixes", "not NAME=VALUE"),
        ] {
            let error = format!("{:#}", set(assignment).expect_err(assignment));
            assert!(error.contains(part), "{assignment}: {error}");
        }
    }
}
