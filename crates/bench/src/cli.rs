//! The commands of the catalogue: `list`, `run`, `report`, `docs`.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use crate::against;
use crate::catalogue::{Catalogue, State};
use crate::docs;
use crate::experiment::{Context, Experiment, Registry};
use crate::machine::Machine;
use crate::markdown;
use crate::params::Scale;
use crate::plot;
use crate::report::Report;
use crate::results::ResultFile;
use crate::turns::seconds_of;

/// A document, or what is our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// Takemasa 2019 and Takemasa et al. 2019
    #[value(alias = "jip")]
    Takemasa,
    /// Yuan 2015
    Yuan,
    /// Mansilha et al. 2017
    Mansilha,
    /// Iqbal 2013
    Iqbal,
    /// Experiments of this project
    Own,
}

impl Document {
    fn has(self, id: &str) -> bool {
        let of = id.split('/').next().unwrap_or_default();
        match self {
            Self::Takemasa => of == "takemasa" || of == "jip",
            Self::Yuan => of == "yuan",
            Self::Mansilha => of == "mansilha",
            Self::Iqbal => of == "iqbal",
            Self::Own => of == "own",
        }
    }
}

/// Lists every figure, table, equation and algorithm of the documents, and its experiment
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Only this document
    #[arg(value_enum)]
    document: Option<Document>,
    /// Only what cannot be reproduced yet
    #[arg(long)]
    missing: bool,
    /// Experiments with their parameters instead of the rows of the documents
    #[arg(long, conflicts_with = "missing")]
    experiments: bool,
}

/// Runs one experiment, named as its figure or table is printed
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// An id of `list`, such as takemasa/figure-4.5; also `takemasa 4.5`
    #[arg(required = true, num_args = 1..=2, value_name = "ID")]
    id: Vec<String>,
    /// How large it runs
    #[arg(long, value_enum, default_value_t = Scale::Quick)]
    scale: Scale,
    /// Another value of a parameter; repeat for several
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Another build of this program: both run in turns, and the result has the numbers of
    /// this one by those of the other
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// Rounds in which both run
    #[arg(long, default_value_t = 5, value_name = "N", requires = "against",
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    /// Prints JSON instead of Markdown
    #[arg(long)]
    json: bool,
    /// Writes the result as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes the drawings into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// Runs all experiments into one page
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// How large they run
    #[arg(long, value_enum, default_value_t = Scale::Quick)]
    scale: Scale,
    /// Folder of the page and the results; results that are there already are kept
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Only experiments of this document; repeat for several
    #[arg(long = "only", value_enum, value_name = "DOCUMENT")]
    only: Vec<Document>,
    /// Measures again what is there already
    #[arg(long)]
    again: bool,
}

/// Writes the tables of a page again from the result files that it names
#[derive(Args, Clone, Debug)]
pub struct DocsArgs {
    /// The page
    #[arg(long, default_value = "docs/performance.md", value_name = "FILE")]
    page: PathBuf,
    /// Folder of the results
    #[arg(long, default_value = "docs/results", value_name = "DIR")]
    results: PathBuf,
    /// Only says what differs
    #[arg(long)]
    check: bool,
}

/// Prints the rows.
///
/// # Errors
/// If the output cannot be written.
pub fn list(args: &ListArgs, catalogue: &Catalogue, registry: &Registry) -> anyhow::Result<()> {
    let mut out = String::new();
    let is_asked = |id: &str| args.document.is_none_or(|document| document.has(id));
    if args.experiments {
        for it in registry.all().iter().filter(|it| is_asked(it.id)) {
            write_experiment(&mut out, it);
        }
        return print(&out);
    }
    let (mut n_reproduced, mut n_excluded, mut n_missing) = (0, 0, 0);
    for row in catalogue.rows.iter().filter(|row| is_asked(&row.id)) {
        let Some(state) = row.state() else { continue };
        let text = match state {
            State::Reproduced(id) => {
                n_reproduced += 1;
                let minutes = registry.get(id).map_or(0.0, |it| it.cost.quick);
                format!("run {id} (about {minutes:.1} min)")
            }
            State::Excluded(why) => {
                n_excluded += 1;
                format!("none: {why}")
            }
            State::Missing(what) => {
                n_missing += 1;
                format!("not yet: {what}")
            }
        };
        if args.missing && !matches!(state, State::Missing(_)) {
            continue;
        }
        let also = match row.also.as_slice() {
            [] => String::new(),
            also => format!(" = {}", also.join(" = ")),
        };
        _ = writeln!(out, "{}{also}: {}\n    {text}", row.id, row.title);
    }
    _ = writeln!(
        out,
        "{n_reproduced} reproduced, {n_missing} not yet, {n_excluded} not reproducible"
    );
    print(&out)
}

/// Writes to standard output. A reader that has read enough, as in `list | head`, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn write_experiment(out: &mut String, it: &Experiment) {
    _ = writeln!(
        out,
        "{}: {} (about {:.1} min quick, {:.1} min full)",
        it.id, it.title, it.cost.quick, it.cost.full
    );
    for param in it.params {
        let [_, quick, full] = param.defaults;
        let value = match quick == full {
            true => quick.to_owned(),
            false => format!("{quick}, full {full}"),
        };
        _ = writeln!(out, "    --set {}={value}    {}", param.name, param.help);
    }
}

/// Runs one experiment and prints its result.
///
/// # Errors
/// If there is no such experiment or it fails, or a file cannot be written.
pub fn run(args: &RunArgs, catalogue: &Catalogue, registry: &Registry) -> anyhow::Result<()> {
    let experiment = catalogue.resolve(registry, &args.id.join(" "))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let context = Context::new(experiment, args.scale, &args.set, &program)?;
    experiment.check_needs(&context)?;
    if experiment.cost.at(args.scale) >= 1.0 {
        let minutes = experiment.cost.at(args.scale);
        eprintln!(
            "{}: about {minutes:.1} min at scale {}",
            experiment.id, args.scale
        );
    }
    let (seconds, record) = seconds_of(|| match &args.against {
        None => experiment.run(&context),
        Some(other) => {
            let mut arguments = vec![experiment.id.to_owned()];
            arguments.push(format!("--scale={}", args.scale));
            arguments.extend(args.set.iter().map(|set| format!("--set={set}")));
            against::compare(&program, other, &arguments, args.rounds as usize)
        }
    });
    let mut record = record?;
    for text in catalogue.contradictions_of(experiment.id) {
        record.note(text);
    }
    let result = ResultFile::new(experiment, args.scale, &context.values, seconds, record)?;
    if let Some(path) = &args.out {
        result.write(path)?;
    }
    if let Some(folder) = &args.svg {
        write_drawings(&result, folder)?;
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&result)?))
    } else {
        let source = match &*result.source {
            "" => "this project".to_owned(),
            source => source.to_owned(),
        };
        print(&format!(
            "# {}\n\n{source}; {} at scale {}; {}; {:.0} s\n\n{}\n",
            result.title,
            result.record.kind.label(),
            result.scale,
            Machine::read(),
            result.seconds,
            markdown::record(&result.record)
        ))
    }
}

fn write_drawings(result: &ResultFile, folder: &std::path::Path) -> anyhow::Result<()> {
    let name = result.id.replace('/', "-");
    let charts = result.record.charts.iter().map(plot::svg);
    for (idx, drawing) in charts.enumerate() {
        let path = folder.join(match idx {
            0 => format!("{name}.svg"),
            idx => format!("{name}-{}.svg", idx + 1),
        });
        let drawing = drawing?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, drawing))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Runs all experiments into one page.
///
/// # Errors
/// If the folder cannot be written, or an experiment failed, after all others have run.
pub fn report(args: &ReportArgs, catalogue: &Catalogue, registry: &Registry) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let is_asked =
        |id: &str| args.only.is_empty() || args.only.iter().any(|document| document.has(id));
    let experiments: Vec<_> = registry.all().iter().filter(|it| is_asked(it.id)).collect();
    let mut report = Report::new(&args.out, args.scale, args.again);
    let n_failed = report.run(&experiments, catalogue, &program)?;
    if n_failed > 0 {
        bail!(
            "{n_failed} of {} experiments failed; {} names them",
            experiments.len(),
            args.out.join("index.html").display()
        );
    }
    Ok(())
}

/// Writes the tables of a page again, or checks them.
///
/// # Errors
/// If a file cannot be read or written, or with `check` if the page differs.
pub fn docs(args: &DocsArgs) -> anyhow::Result<()> {
    let text = fs::read_to_string(&args.page)
        .with_context(|| format!("cannot read {}", args.page.display()))?;
    let fresh = docs::regenerate(&text, &args.results)?;
    if fresh == text {
        return Ok(());
    }
    if args.check {
        bail!(
            "{} differs from the results in {}; run `tachonym-lab docs`",
            args.page.display(),
            args.results.display()
        );
    }
    fs::write(&args.page, fresh).with_context(|| format!("cannot write {}", args.page.display()))
}
