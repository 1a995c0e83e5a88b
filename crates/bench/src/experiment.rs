//! An experiment, and the registry of all of them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{bail, ensure};

use tachonym_memory::available_bytes;

use crate::machine::Machine;
use crate::params::{Param, Scale, Values, check_defaults};
use crate::record::Record;

/// Minutes that an experiment takes on two cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// At scale quick.
    pub quick: f64,
    /// At scale full.
    pub full: f64,
}

impl Cost {
    /// Minutes at scales quick and full.
    #[must_use]
    pub const fn minutes(quick: f64, full: f64) -> Self {
        Self { quick, full }
    }

    /// Minutes at a scale.
    #[must_use]
    pub const fn at(self, scale: Scale) -> f64 {
        match scale {
            Scale::Tiny => 0.02,
            Scale::Quick => self.quick,
            Scale::Full => self.full,
        }
    }
}

/// What an experiment needs of the machine. What is missing does not fail the experiment:
/// the record names it, as far as the experiment can do without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// This many processors; with fewer, threads share them.
    Cpus(usize),
    /// io_uring; without it, reads run on threads.
    IoUring,
    /// Performance counters of the processor; without them, their columns stay empty.
    Pmu,
    /// Huge pages; without them, tables lie on smaller ones.
    HugePages,
    /// A folder on a disk.
    Disk,
    /// GiB of memory at the scales quick and full. Without them the experiment is refused
    /// before it starts.
    MemoryGib(f64, f64),
    /// The router's program beside this one. Without it the experiment is refused.
    Router,
    /// Another program, at the path that a parameter names, and how to get it. Without it the
    /// experiment is refused.
    Program(&'static str, &'static str),
}

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name: the document and the number as printed there, `takemasa/figure-4.5`, or
    /// `own/…`.
    pub id: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// Where it is published: `Takemasa 2019, section 4.4.1`; empty for our own.
    pub source: &'static str,
    /// Minutes that it takes.
    pub cost: Cost,
    /// What it needs.
    pub needs: &'static [Need],
    /// Its parameters.
    pub params: &'static [Param],
    /// Runs it and returns its record.
    pub run: fn(&Context) -> anyhow::Result<Record>,
}

/// What a running experiment gets.
#[derive(Debug)]
pub struct Context {
    /// The scale.
    pub scale: Scale,
    /// The values of its parameters.
    pub values: Values,
    /// The program that knows all commands: this one.
    pub program: PathBuf,
    /// The router's program, if it is there.
    pub router: Option<PathBuf>,
    notes: Mutex<Vec<String>>,
}

impl Context {
    /// What an experiment gets at a scale, with parameters changed by `set`, each
    /// `NAME=VALUE`.
    ///
    /// # Errors
    /// If `set` names a parameter that is not there, or a value that it does not take.
    pub fn new(
        experiment: &Experiment,
        scale: Scale,
        set: &[String],
        program: &Path,
    ) -> anyhow::Result<Self> {
        let beside = program.with_file_name("tachonym");
        Ok(Self {
            scale,
            values: Values::new(experiment.params, scale, set)?,
            program: program.to_owned(),
            router: beside.exists().then_some(beside),
            notes: Mutex::new(Vec::new()),
        })
    }

    /// Adds a note to the record that the experiment will return, once.
    pub fn note(&self, note: impl Into<String>) {
        let note = note.into();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// A whole number; see [`Values::count`].
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.values.count(name)
    }

    /// A whole number of the platform's size.
    #[must_use]
    pub fn size(&self, name: &str) -> usize {
        self.values.size(name)
    }

    /// A number.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        self.values.number(name)
    }

    /// A word or a text.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.values.text(name)
    }

    /// The measured rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.values.size("rounds")
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.values.count("seed")
    }
}

impl Experiment {
    /// Checks what it cannot do without, so that it is refused before it starts.
    ///
    /// # Errors
    /// If memory or the router's program is missing.
    pub fn check_needs(&self, context: &Context) -> anyhow::Result<()> {
        for need in self.needs {
            match need {
                Need::MemoryGib(quick, full) => {
                    let gib = match context.scale {
                        Scale::Tiny => 0.0,
                        Scale::Quick => *quick,
                        Scale::Full => *full,
                    };
                    let free_gib = available_bytes() as f64 / f64::from(1 << 30);
                    // Values that were set may need more or less.
                    let defaults = Values::new(self.params, context.scale, &[])?;
                    if gib > free_gib && context.values != defaults {
                        eprintln!(
                            "{} at scale {} needs {gib:.1} GiB of memory without --set, and \
                             {free_gib:.1} GiB are free",
                            self.id, context.scale
                        );
                        continue;
                    }
                    ensure!(
                        gib <= free_gib,
                        "{} at scale {} needs {gib:.1} GiB of memory, and {free_gib:.1} GiB are \
                         free; use a smaller scale",
                        self.id,
                        context.scale
                    );
                }
                Need::Router => ensure!(
                    context.router.is_some(),
                    "{} needs the program tachonym beside {}; build it with `cargo build \
                     --release`",
                    self.id,
                    context.program.display()
                ),
                Need::Program(param, remedy) => {
                    let path = context.text(param);
                    ensure!(
                        Path::new(path).exists(),
                        "{} needs the program {path}, which does not exist: {remedy}",
                        self.id
                    );
                }
                Need::Cpus(_) | Need::IoUring | Need::Pmu | Need::HugePages | Need::Disk => {}
            }
        }
        Ok(())
    }

    /// Sentences about what the machine lacks that the experiment can do without.
    fn notes_on_needs(&self, machine: &Machine) -> Vec<String> {
        let note = |need: &Need| match need {
            Need::Cpus(n) if machine.n_cpus < *n => Some(format!(
                "The machine has {} CPUs and the experiment uses {n}: threads share them.",
                machine.n_cpus
            )),
            Need::IoUring if !machine.has_io_uring => {
                Some("The kernel does not allow io_uring: threads read the disk.".to_owned())
            }
            Need::Pmu if !machine.has_pmu => Some(
                "The machine shows no performance counters: their columns stay empty.".to_owned(),
            ),
            Need::HugePages if machine.n_huge_pages == [0, 0] => Some(
                "No huge pages are reserved: tables lie on the pages that are named.".to_owned(),
            ),
            _ => None,
        };
        self.needs.iter().filter_map(note).collect()
    }

    /// Runs it.
    ///
    /// # Errors
    /// If something is missing that it cannot do without, or it fails.
    pub fn run(&self, context: &Context) -> anyhow::Result<Record> {
        self.check_needs(context)?;
        let mut record = (self.run)(context)?;
        ensure!(
            record.tables.iter().any(|table| !table.rows.is_empty()),
            "{} returned no row",
            self.id
        );
        let mut notes = context.notes.lock().unwrap_or_else(PoisonError::into_inner);
        for note in notes.drain(..) {
            record.note(note);
        }
        for note in self.notes_on_needs(&Machine::read()) {
            record.note(note);
        }
        Ok(record)
    }
}

/// All experiments, in the order in which they are listed.
#[derive(Debug)]
pub struct Registry(Vec<Experiment>);

impl Registry {
    /// The registry of experiments.
    ///
    /// # Errors
    /// If two have the same id, or a parameter's default is not a value of it.
    pub fn new(experiments: Vec<Experiment>) -> anyhow::Result<Self> {
        for (idx, experiment) in experiments.iter().enumerate() {
            let is_double = experiments[..idx].iter().any(|it| it.id == experiment.id);
            ensure!(!is_double, "two experiments are called {}", experiment.id);
            if let Err(error) = check_defaults(experiment.params) {
                bail!("{}: {error:#}", experiment.id);
            }
        }
        Ok(Self(experiments))
    }

    /// Its experiments.
    #[must_use]
    pub fn all(&self) -> &[Experiment] {
        &self.0
    }

    /// The experiment with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Experiment> {
        self.0.iter().find(|experiment| experiment.id == id)
    }
}
