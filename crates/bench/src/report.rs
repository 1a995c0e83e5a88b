//! All experiments in one page.
//!
//! Each experiment runs in a process of its own, so that one that fails or is killed takes
//! no other with it. Results are files beside the page; an interrupted report continues
//! with what is missing.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::catalogue::{Catalogue, State};
use crate::experiment::{Context, Experiment};
use crate::machine::commit;
use crate::markdown;
use crate::params::Scale;
use crate::plot;
use crate::results::ResultFile;

/// An experiment may take this many times its cost, and [`MIN_LIMIT`] at least.
const LIMIT_BY_COST: f64 = 6.0;
const MIN_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How often a running experiment is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What became of an experiment.
enum Outcome {
    /// It has a result, as of now or of a former run.
    Done(Box<ResultFile>),
    /// It failed or cannot run here, with the message.
    Failed(String),
    /// It has not run yet.
    Waiting,
}

/// A report in a folder.
pub struct Report {
    folder: PathBuf,
    scale: Scale,
    is_again: bool,
}

impl Report {
    /// A report of a scale in a folder. Results that are there are kept unless `is_again`.
    #[must_use]
    pub fn new(folder: &Path, scale: Scale, is_again: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            scale,
            is_again,
        }
    }

    /// Runs experiments one after another and writes the page after each. Returns how many
    /// failed.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn run(
        &mut self,
        experiments: &[&Experiment],
        catalogue: &Catalogue,
        program: &Path,
    ) -> anyhow::Result<usize> {
        let here = commit();
        let mut outcomes: Vec<_> = experiments
            .iter()
            .map(|it| self.before(it, here.as_deref(), program))
            .collect();
        let n_kept = outcomes
            .iter()
            .filter(|it| matches!(it, Outcome::Done(_)))
            .count();
        if n_kept > 0 {
            eprintln!("{n_kept} results are there already and are kept");
        }
        for (experiment, outcome) in experiments.iter().zip(&outcomes) {
            if let Outcome::Failed(why) = outcome {
                eprintln!("{} cannot run: {why}", experiment.id);
            }
        }
        self.write_page(experiments, &outcomes, catalogue)?;
        for (idx, experiment) in experiments.iter().enumerate() {
            if !matches!(outcomes[idx], Outcome::Waiting) {
                continue;
            }
            let minutes = minutes_left(self.scale, experiments, &outcomes);
            eprintln!(
                "[{}/{}] {} (about {minutes:.1} min left)",
                idx + 1,
                experiments.len(),
                experiment.id
            );
            outcomes[idx] = match self.run_one(experiment, program) {
                Ok(result) => Outcome::Done(Box::new(result)),
                Err(error) => {
                    eprintln!("    failed: {error:#}");
                    Outcome::Failed(format!("{error:#}"))
                }
            };
            self.write_page(experiments, &outcomes, catalogue)?;
        }
        let n_failed = outcomes
            .iter()
            .filter(|it| matches!(it, Outcome::Failed(_)))
            .count();
        eprintln!("{}", self.folder.join("index.html").display());
        Ok(n_failed)
    }

    fn result_path(&self, experiment: &Experiment) -> PathBuf {
        ResultFile::path_in(&self.folder.join("results"), experiment.id)
    }

    /// What is true of an experiment before anything runs: it has a result of a former run
    /// at this scale and commit, it cannot run here, or it waits.
    fn before(&self, experiment: &Experiment, commit: Option<&str>, program: &Path) -> Outcome {
        if let Ok(result) = ResultFile::read(&self.result_path(experiment))
            && !self.is_again
            && result.scale == self.scale
            && result.commit.as_deref() == commit
        {
            return Outcome::Done(Box::new(result));
        }
        let needs = Context::new(experiment, self.scale, &[], program)
            .and_then(|context| experiment.check_needs(&context));
        match needs {
            Ok(()) => Outcome::Waiting,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    fn run_one(&self, experiment: &Experiment, program: &Path) -> anyhow::Result<ResultFile> {
        let path = self.result_path(experiment);
        let log = self
            .folder
            .join("logs")
            .join(format!("{}.log", experiment.id));
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let file =
            fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = Command::new(program)
            .args(["run", experiment.id, "--scale", self.scale.label(), "--out"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let limit = Duration::from_secs_f64(experiment.cost.at(self.scale) * 60.0 * LIMIT_BY_COST);
        let deadline = Instant::now() + limit.max(MIN_LIMIT);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                anyhow::bail!(
                    "took longer than {} min",
                    limit.max(MIN_LIMIT).as_secs() / 60
                );
            }
            std::thread::sleep(LOOK_EVERY);
        };
        if !status.success() {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            anyhow::bail!("{} ({status})", last.unwrap_or("no message"));
        }
        ResultFile::read(&path)
    }

    fn write_page(
        &self,
        experiments: &[&Experiment],
        outcomes: &[Outcome],
        catalogue: &Catalogue,
    ) -> anyhow::Result<()> {
        let path = self.folder.join("index.html");
        let page = page(self.scale, experiments, outcomes, catalogue);
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            let partial = self.folder.join("index.html.partial");
            fs::File::create(&partial)?.write_all(page.as_bytes())?;
            fs::rename(&partial, &path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:2px 8px}\
th{background:#f3f3f3;text-align:left}.failed{color:#b00}.source{color:#555}\
svg{max-width:100%;height:auto}section{border-top:2px solid #ddd;margin-top:2em}";

/// What the experiments that wait take by their stated costs.
fn minutes_left(scale: Scale, experiments: &[&Experiment], outcomes: &[Outcome]) -> f64 {
    let waiting = experiments.iter().zip(outcomes);
    let waiting = waiting.filter(|(_, outcome)| matches!(outcome, Outcome::Waiting));
    waiting.map(|(it, _)| it.cost.at(scale)).sum()
}

/// One page with everything in it.
fn page(
    scale: Scale,
    experiments: &[&Experiment],
    outcomes: &[Outcome],
    catalogue: &Catalogue,
) -> String {
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|it| is(it)).count();
    let n_done = count(|it| matches!(it, Outcome::Done(_)));
    let n_failed = count(|it| matches!(it, Outcome::Failed(_)));
    let minutes = minutes_left(scale, experiments, outcomes);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>Tachonym: experiments</title><style>{STYLE}</style></head><body>\n\
         <h1>Tachonym: experiments at scale {scale}</h1>\n<p>{n_done} of {} done, {n_failed} \
         failed, about {minutes:.0} min left. Values marked as published are those of the \
         documents; all others were found in the run that their section names.</p>\n<ul>\n",
        experiments.len()
    );
    for (experiment, outcome) in experiments.iter().zip(outcomes) {
        let state = match outcome {
            Outcome::Done(_) => "",
            Outcome::Failed(_) => " <span class=\"failed\">failed</span>",
            Outcome::Waiting => " (has not run)",
        };
        let id = experiment.id;
        _ = writeln!(
            page,
            "<li><a href=\"#{id}\">{id}</a>: {}{state}</li>",
            html(experiment.title)
        );
    }
    page.push_str("</ul>\n");
    for (experiment, outcome) in experiments.iter().zip(outcomes) {
        _ = writeln!(
            page,
            "<section id=\"{0}\"><h2>{0}: {1}</h2><p class=\"source\">{2}</p>",
            experiment.id,
            html(experiment.title),
            html(experiment.source)
        );
        match outcome {
            Outcome::Done(result) => push_result(&mut page, result),
            Outcome::Failed(message) => {
                _ = writeln!(page, "<p class=\"failed\">failed: {}</p>", html(message));
            }
            Outcome::Waiting => page.push_str("<p>has not run</p>\n"),
        }
        page.push_str("</section>\n");
    }
    push_rest(&mut page, catalogue);
    page.push_str("</body></html>\n");
    page
}

fn push_result(page: &mut String, result: &ResultFile) {
    let record = &result.record;
    for chart in &record.charts {
        match plot::svg(chart) {
            Ok(drawing) => page.push_str(&drawing),
            Err(error) => {
                _ = writeln!(page, "<p>not drawn: {}</p>", html(&error.to_string()));
            }
        }
    }
    push_markdown(page, &markdown::record(record));
    let values: Vec<_> = result
        .values
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    _ = writeln!(
        page,
        "<p class=\"source\">{} on {}; commit {}; {}; {:.0} s; {}<br><code>{}</code></p>",
        record.kind.label(),
        html(&result.machine.to_string()),
        result.commit.as_deref().unwrap_or("unknown"),
        result.date,
        result.seconds,
        html(&values.join(", ")),
        html(&result.command)
    );
}

/// What the catalogue names that nothing reproduces.
fn push_rest(page: &mut String, catalogue: &Catalogue) {
    page.push_str(
        "<section><h2>Not reproduced</h2>\n<table><tr><th>row</th><th>what</th><th>why</th></tr>\n",
    );
    for row in &catalogue.rows {
        let why = match row.state() {
            Some(State::Excluded(why)) => html(why),
            Some(State::Missing(what)) => format!("not yet: {}", html(what)),
            _ => continue,
        };
        _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{why}</td></tr>",
            row.id,
            html(&row.title)
        );
    }
    page.push_str("</table></section>\n<section><h2>Contradictions in the documents</h2>\n<ul>\n");
    for it in &catalogue.contradictions {
        _ = writeln!(page, "<li>{}: {}</li>", html(&it.place), html(&it.text));
    }
    page.push_str("</ul></section>\n");
}

fn push_markdown(page: &mut String, text: &str) {
    use pulldown_cmark::{Event, Options, Parser, html};
    // Text that looks like HTML is shown, not obeyed.
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    });
    html::push_html(page, events);
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
