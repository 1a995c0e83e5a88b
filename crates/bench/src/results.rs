//! The file that keeps a result.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::machine::{Machine, commit};
use crate::params::{Scale, Values};
use crate::record::Record;

/// A record with what is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// The experiment.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it is published; empty for our own.
    pub source: String,
    /// The scale.
    pub scale: Scale,
    /// The values of its parameters.
    pub values: Values,
    /// Where it ran.
    pub machine: Machine,
    /// The commit of the source tree that it ran in, `+` if files differed; unknown
    /// outside a git repository.
    pub commit: Option<String>,
    /// When it ended, in UTC (RFC 3339).
    pub date: String,
    /// Command that repeats it.
    pub command: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// What it found.
    pub record: Record,
}

/// The command line of this process, without the folder of the program.
#[must_use]
pub fn command_line() -> String {
    let mut args = std::env::args();
    let program = PathBuf::from(args.next().unwrap_or_default());
    let program = program
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let words: Vec<_> = program.into_iter().chain(args).collect();
    words.join(" ")
}

impl ResultFile {
    /// The result of an experiment that has just ended.
    ///
    /// # Errors
    /// If the clock cannot be written as a date.
    pub fn new(
        experiment: &Experiment,
        scale: Scale,
        values: &Values,
        seconds: f64,
        record: Record,
    ) -> anyhow::Result<Self> {
        let now = time::UtcDateTime::now().replace_nanosecond(0)?;
        let mut command = format!("tachonym-lab run {} --scale {scale}", experiment.id);
        let defaults = Values::new(experiment.params, scale, &[])?;
        for ((name, value), (_, default)) in values.iter().zip(defaults.iter()) {
            if value != default {
                command.push_str(&match value.contains(char::is_whitespace) {
                    true => format!(" --set \"{name}={value}\""),
                    false => format!(" --set {name}={value}"),
                });
            }
        }
        Ok(Self {
            id: experiment.id.to_owned(),
            title: experiment.title.to_owned(),
            source: experiment.source.to_owned(),
            scale,
            values: values.clone(),
            machine: Machine::read(),
            commit: commit(),
            date: now.format(&time::format_description::well_known::Rfc3339)?,
            command,
            seconds,
            record,
        })
    }

    /// Where the result of an experiment lies in a folder of results.
    #[must_use]
    pub fn path_in(folder: &Path, id: &str) -> PathBuf {
        folder.join(format!("{id}.json"))
    }

    /// Reads a result.
    ///
    /// # Errors
    /// If the file cannot be read or is not a result.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no result", path.display()))
    }

    /// Writes the result, whole or not at all: into a new file that takes the place of the
    /// former one.
    ///
    /// # Errors
    /// If a folder or file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let write = || -> anyhow::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let partial = path.with_extension("json.partial");
            fs::write(&partial, serde_json::to_string(self)? + "\n")?;
            fs::rename(&partial, path)?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}
