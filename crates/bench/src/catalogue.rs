//! The catalogue: every figure, table, equation and algorithm of the source documents.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::experiment::{Experiment, Registry};

/// A row of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The document and the number as printed there: `takemasa/figure-4.5`.
    pub id: String,
    /// The same under other numbers, such as those of the journal: `jip/figure-7`.
    #[serde(default)]
    pub also: Vec<String>,
    /// What it shows.
    pub title: String,
    /// Where it stands: `Takemasa 2019, section 4.4.1`.
    #[serde(rename = "where")]
    pub place: String,
    /// The experiment that reproduces it.
    pub experiment: Option<String>,
    /// Why nothing reproduces it, ever.
    pub reason: Option<String>,
    /// What has to be built before it can be reproduced.
    pub missing: Option<String>,
}

/// What is true of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// This experiment reproduces it.
    Reproduced(&'a str),
    /// Nothing can, for this reason.
    Excluded(&'a str),
    /// Nothing does yet: this has to be built first.
    Missing(&'a str),
}

impl Row {
    /// Its state; `None` unless exactly one is given.
    #[must_use]
    pub fn state(&self) -> Option<State<'_>> {
        match (&self.experiment, &self.reason, &self.missing) {
            (Some(id), None, None) => Some(State::Reproduced(id)),
            (None, Some(reason), None) => Some(State::Excluded(reason)),
            (None, None, Some(what)) => Some(State::Missing(what)),
            _ => None,
        }
    }

    /// The document: what stands before the slash of its id.
    #[must_use]
    pub fn document(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.id).chain(self.also.iter().map(|it| &**it))
    }
}

/// All rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// In the order of the documents.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
    /// What the documents contradict themselves or each other in.
    #[serde(rename = "contradiction", default)]
    pub contradictions: Vec<Contradiction>,
}

/// A contradiction inside a document or between two.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contradiction {
    /// The places.
    #[serde(rename = "where")]
    pub place: String,
    /// What they say, and what holds here.
    pub text: String,
    /// The experiments whose results name it.
    pub experiments: Vec<String>,
    /// What has to be built before an experiment can name it.
    pub missing: Option<String>,
}

impl Catalogue {
    /// Reads a catalogue.
    ///
    /// # Errors
    /// If the text is no TOML with rows.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).context("the catalogue")
    }

    /// What is wrong with the catalogue beside these experiments: a row without state, a
    /// number that occurs twice, an experiment that is not there or that no row names.
    #[must_use]
    pub fn faults(&self, registry: &Registry) -> Vec<String> {
        let mut faults = Vec::new();
        let (mut names, mut used) = (BTreeSet::new(), BTreeSet::new());
        for row in &self.rows {
            for name in row.names() {
                if !names.insert(name) {
                    faults.push(format!("{name} occurs twice"));
                }
            }
            match row.state() {
                None => faults.push(format!(
                    "{}: needs exactly one of experiment, reason and missing",
                    row.id
                )),
                Some(State::Reproduced(id)) => {
                    used.insert(id);
                    if registry.get(id).is_none() {
                        faults.push(format!("{}: there is no experiment {id}", row.id));
                    }
                }
                Some(State::Excluded(text) | State::Missing(text)) if text.trim().is_empty() => {
                    faults.push(format!("{}: the reason is empty", row.id));
                }
                Some(_) => {}
            }
        }
        for it in &self.contradictions {
            if it.experiments.is_empty() == it.missing.is_none() {
                faults.push(format!("contradiction {}: names no experiment", it.place));
            }
            for id in it
                .experiments
                .iter()
                .filter(|id| registry.get(id).is_none())
            {
                faults.push(format!(
                    "contradiction {}: there is no experiment {id}",
                    it.place
                ));
            }
        }
        for experiment in registry.all() {
            if !used.contains(experiment.id) {
                faults.push(format!("no row names the experiment {}", experiment.id));
            }
        }
        faults
    }

    /// Sentences about contradictions in what an experiment reproduces.
    pub fn contradictions_of(&self, id: &str) -> impl Iterator<Item = String> {
        let of_id = self
            .contradictions
            .iter()
            .filter(move |it| it.experiments.iter().any(|experiment| experiment == id));
        of_id.map(|it| format!("Contradiction ({}): {}", it.place, it.text))
    }

    /// The experiment behind an id or a printed number: `takemasa/figure-4.5`,
    /// `jip/figure-7`, `takemasa 4.5`, `own/lookup`.
    ///
    /// # Errors
    /// If there is no such row or experiment, with the nearest names; if the row has no
    /// experiment, with the reason; if a short form fits several rows.
    pub fn resolve<'a>(
        &self,
        registry: &'a Registry,
        query: &str,
    ) -> anyhow::Result<&'a Experiment> {
        let wanted = query.trim().to_lowercase().replace(' ', "/");
        if let Some(experiment) = registry.get(&wanted) {
            return Ok(experiment);
        }
        let is_it = |row: &&Row| row.names().any(|name| name == wanted);
        let row = match self.rows.iter().find(is_it) {
            Some(row) => row,
            None => self.by_number(query, &wanted)?,
        };
        match row.state() {
            Some(State::Reproduced(id)) => registry
                .get(id)
                .with_context(|| format!("there is no experiment {id}")),
            Some(State::Excluded(why)) => bail!("{} is not reproduced: {why}", row.id),
            Some(State::Missing(what)) => bail!(
                "{} cannot be reproduced yet; to be built first: {what}",
                row.id
            ),
            None => bail!("{} has no state in the catalogue", row.id),
        }
    }

    /// The row with a number without its kind: `takemasa/4.5`.
    fn by_number(&self, query: &str, wanted: &str) -> anyhow::Result<&Row> {
        let (document, number) = wanted.split_once('/').unwrap_or(("", wanted));
        let fits = |name: &str| {
            let parts = name.split_once('/');
            parts.is_some_and(|(of, rest)| {
                of == document && rest.split_once('-').is_some_and(|(_, it)| it == number)
            })
        };
        let rows: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.names().any(fits))
            .collect();
        match rows.as_slice() {
            [row] => Ok(row),
            [] => {
                let nearest = self.nearest(wanted);
                bail!(
                    "nothing is called `{query}`; nearest: {}; `tachonym-lab list` shows all",
                    nearest.join(", ")
                )
            }
            rows => {
                let ids: Vec<_> = rows.iter().map(|row| &*row.id).collect();
                bail!("`{query}` may be {}", ids.join(" or "))
            }
        }
    }

    /// The three names that are most like a text.
    fn nearest(&self, text: &str) -> Vec<&str> {
        let mut names: Vec<_> = self.rows.iter().flat_map(Row::names).collect();
        let distance = |name: &str| {
            let (document, rest) = name.split_once('/').unwrap_or(("", name));
            let number = rest.split_once('-').map_or(rest, |(_, number)| number);
            let short = format!("{document}/{number}");
            strsim::damerau_levenshtein(name, text).min(strsim::damerau_levenshtein(&short, text))
        };
        names.sort_by_key(|name| distance(name));
        names.truncate(3);
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Cost;
    use crate::record::{Kind, Record};

    fn experiment(id: &'static str) -> Experiment {
        Experiment {
            id,
            title: "an experiment",
            source: "",
            cost: Cost::minutes(1.0, 2.0),
            needs: &[],
            params: &[],
            run: |_| Ok(Record::new(Kind::Computed)),
        }
    }

    const TEXT: &str = r#"
        [[row]]
        id = "takemasa/figure-4.5"
        also = ["jip/figure-9"]
        title = "a"
        where = "there"
        experiment = "takemasa/figure-4.5"
        [[row]]
        id = "takemasa/table-4.6"
        title = "b"
        where = "there"
        reason = "drawing of others' data"
        [[row]]
        id = "takemasa/figure-4.6"
        title = "c"
        where = "there"
        missing = "power model"
        [[contradiction]]
        where = "there against here"
        text = "188 and 329 cycles"
        experiments = ["takemasa/figure-4.5"]
    "#;

    fn both() -> (Catalogue, Registry) {
        let registry = Registry::new(vec![experiment("takemasa/figure-4.5")]);
        (
            Catalogue::parse(TEXT).expect("three rows"),
            registry.expect("one experiment"),
        )
    }

    #[test]
    fn rows_are_found_by_each_number_that_is_printed() {
        let (catalogue, registry) = both();
        for query in [
            "takemasa/figure-4.5",
            "jip/figure-9",
            "Takemasa 4.5",
            "jip 9",
        ] {
            let found = catalogue.resolve(&registry, query).expect(query);
            assert_eq!(found.id, "takemasa/figure-4.5", "{query}");
        }
        for (query, part) in [
            ("takemasa/table-4.6", "drawing of others' data"),
            ("takemasa/figure-4.6", "power model"),
            ("takemasa 4.6", "takemasa/table-4.6 or takemasa/figure-4.6"),
            ("takemasa/figure-4.55", "nearest: takemasa/figure-4.5,"),
            ("takemasa 4.55", "nearest: takemasa/figure-4.5,"),
        ] {
            let error = catalogue.resolve(&registry, query).expect_err(query);
            assert!(error.to_string().contains(part), "{query}: {error}");
        }
        assert_eq!(catalogue.faults(&registry), Vec::<String>::new());
        let told: Vec<_> = catalogue.contradictions_of("takemasa/figure-4.5").collect();
        assert_eq!(
            told,
            ["Contradiction (there against here): 188 and 329 cycles"]
        );
        assert_eq!(catalogue.contradictions_of("own/x").count(), 0);
    }

    #[test]
    fn faults_of_rows_and_experiments_are_found() {
        let (mut catalogue, _) = both();
        let registry = Registry::new(vec![experiment("own/x")]).expect("one experiment");
        catalogue.rows[1].missing = Some("both".to_owned());
        catalogue.rows[2].id = "jip/figure-9".to_owned();
        let faults = catalogue.faults(&registry);
        assert_eq!(
            faults,
            [
                "takemasa/figure-4.5: there is no experiment takemasa/figure-4.5",
                "takemasa/table-4.6: needs exactly one of experiment, reason and missing",
                "jip/figure-9 occurs twice",
                "contradiction there against here: there is no experiment takemasa/figure-4.5",
                "no row names the experiment own/x",
            ]
        );
    }

    #[test]
    fn two_experiments_of_one_name_are_refused() {
        Registry::new(vec![experiment("own/x"), experiment("own/x")]).expect_err("the same id");
    }
}
