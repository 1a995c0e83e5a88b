//! `tachonym get`: fetches a segmented object.
//!
//! The latest version is found by RDR metadata, or by prefix; segments are
//! fetched under a CUBIC window that honours congestion marks. How a file gets
//! its content, and when, is in `target`.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use tachonym_client::fetcher::FetchLimits;
use tachonym_client::{
    DiscoverError, Discovery, Endpoint, FetchError, FetchOptions, FetchProgress, FetchReport,
    Object, check_digest, discover, fetch, wall_ms,
};
use tachonym_packet::{Component, DataView, Interest, Name};
use tachonym_protocol::rdr::metadata_prefix;
use tachonym_security::{Reject, TrustPolicy};

use super::target::Target;
use super::unanswered::{self, Unanswered};
use super::{COMMON, Connection, keys, name, output, text};

const EXAMPLES: &str = "\
Examples:
  tachonym get /example/video -o video.mp4
  tachonym get /example/news/v=7 --quiet > news.txt
  tachonym get /example/news --trust editor.ndncert";

/// Fetch a segmented object, such as `put` serves, in its latest version.
///
/// The version is found by fresh metadata, then by prefix. If no producer answers, `get`
/// takes a version that a cache holds and says so on standard error.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// The name; without a version, the latest one is fetched.
    #[arg(value_parser = name::parse)]
    name: Name,
    /// Where to write; standard output without it, or with `-`. A file appears, or
    /// replaces the old one, when it is complete; a pipe, a device or a link is written as
    /// content arrives.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to find the latest version.
    #[arg(long, value_enum, default_value_t = How::Auto)]
    discover: How,
    /// Most segments requested at a time.
    #[arg(long, value_name = "N", default_value_t = 4096,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_window: u64,
    /// Retransmissions of an Interest before `get` gives up.
    #[arg(short, long, value_name = "N", default_value_t = 15)]
    retries: u32,
    /// Lifetime of Interests, in milliseconds.
    #[arg(short, long, value_name = "N", default_value_t = 4000,
          value_parser = clap::value_parser!(u64).range(1..))]
    lifetime_ms: u64,
    /// Accept only metadata and segments signed by the key of this certificate: a file, as
    /// `tachonym keys certificate` prints it, or `-`. May be repeated; one of the keys must
    /// have signed. Without this option any signer is accepted: plain digests are verified,
    /// signatures by keys are not.
    #[arg(long, value_name = "CERTIFICATE")]
    trust: Vec<PathBuf>,
    /// Print no progress.
    #[arg(short, long)]
    quiet: bool,
    /// Print a report as JSON: to standard error if the content goes to
    /// standard output.
    #[arg(long, help_heading = COMMON)]
    json: bool,
}

impl Arguments {
    /// Where to write, unless that is standard output.
    fn file(&self) -> Option<&Path> {
        let file = self.output.as_deref();
        file.filter(|file| file.as_os_str() != "-")
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    /// By fresh metadata, then by prefix, then by what caches hold.
    Auto,
    /// By an Interest for fresh metadata.
    Metadata,
    /// By an Interest for any fresh Data under the name.
    Prefix,
    /// Not at all: the name is the whole prefix of the segments.
    Exact,
}

/// Runs it.
///
/// # Errors
/// If the object is not there, or does not arrive, or cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let trusted = trusted(&arguments.trust)?;
    let mut endpoint = arguments.connection.open()?;
    let source = Source {
        arguments,
        trusted,
        endpoint: &mut endpoint,
    };
    let done = match arguments.file() {
        Some(path) => to_file(source, path)?,
        None => {
            let mut out = io::stdout().lock();
            let done = source.copy_to(&mut out)?;
            out.flush()?;
            done
        }
    };
    print_report(arguments, &done)
}

/// Writes a file that appears only when it is complete; or directly to something that is
/// not a regular file.
fn to_file(source: Source<'_>, path: &Path) -> anyhow::Result<Fetched> {
    let writing = || format!("cannot write {}", path.display());
    match Target::open(path).with_context(|| format!("cannot make {}", path.display()))? {
        Target::Partial(partial, file) => {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            let done = source.copy_to(&mut out)?;
            out.flush().with_context(writing)?;
            partial.complete().with_context(writing)?;
            Ok(done)
        }
        Target::Other(file) => {
            let mut out = BufWriter::new(file);
            let done = source.copy_to(&mut out)?;
            out.flush().with_context(writing)?;
            Ok(done)
        }
    }
}

/// The keys that must have signed; `None` if any may have.
fn trusted(certificates: &[PathBuf]) -> anyhow::Result<Option<TrustPolicy>> {
    if certificates.is_empty() {
        return Ok(None);
    }
    let mut policy = TrustPolicy::new();
    for file in certificates {
        policy.add_anchor(&keys::read_certificate(file)?)?;
    }
    Ok(Some(policy))
}

/// An object that was fetched.
struct Fetched {
    /// Its name with its version.
    name: Name,
    /// How the fetch went; `None` for a single Data without segments.
    report: Option<FetchReport>,
    /// Its version may be old.
    is_stale: bool,
}

/// What to fetch, from where, and which signatures are trusted.
struct Source<'a> {
    arguments: &'a Arguments,
    trusted: Option<TrustPolicy>,
    endpoint: &'a mut Endpoint,
}

impl Source<'_> {
    /// Fetches it.
    fn copy_to(self, out: &mut dyn Write) -> anyhow::Result<Fetched> {
        let Self {
            arguments,
            trusted,
            endpoint,
        } = self;
        let verify = |data: &DataView<'_>| -> Result<(), Reject> {
            match &trusted {
                Some(policy) => policy.verify_data(data, wall_ms()).map(|_| ()),
                None => check_digest(data),
            }
        };
        let lifetime = Duration::from_millis(arguments.lifetime_ms);
        let how = match arguments.discover {
            How::Auto => Discovery::Auto,
            How::Metadata => Discovery::Metadata,
            How::Prefix => Discovery::Prefix,
            How::Exact => Discovery::Exact,
        };
        let retries = arguments.retries.min(3);
        let name = &arguments.name;
        let found = match discover(endpoint, name, how, lifetime, retries, verify) {
            Ok(found) => found,
            Err(DiscoverError::Express(error)) => {
                let question = match how {
                    Discovery::Metadata => metadata_prefix(name.view()),
                    _ => name.clone(),
                };
                let interest = Interest {
                    can_be_prefix: true,
                    must_be_fresh: true,
                    lifetime_ms: Some(arguments.lifetime_ms),
                    ..Interest::new(question)
                };
                return Err(unanswered::explain(
                    endpoint,
                    (&interest, retries),
                    name,
                    error,
                ));
            }
            Err(error) => {
                let error = anyhow::Error::new(error);
                return Err(error.context(format!("cannot find {name}")));
            }
        };
        // The report as JSON says it, and may share standard error with nothing else.
        if found.is_stale && !arguments.json {
            note_stale(name, &found.object);
        }
        let prefix = match found.object {
            Object::Segmented(prefix) => prefix,
            Object::Single(answer) => {
                let data = answer.data();
                out.write_all(data.content())?;
                return Ok(Fetched {
                    name: data.name().to_name(),
                    report: None,
                    is_stale: found.is_stale,
                });
            }
        };
        let options = FetchOptions {
            limits: FetchLimits {
                max_window: usize::try_from(arguments.max_window).unwrap_or(usize::MAX),
                max_retries: arguments.retries,
            },
            lifetime,
            ..FetchOptions::default()
        };
        let bar = Bar::new(arguments);
        let report = fetch(
            endpoint,
            &prefix,
            &options,
            verify,
            |content| out.write_all(content),
            |progress| bar.show(progress),
        );
        bar.0.finish_and_clear();
        match report {
            Ok(report) => Ok(Fetched {
                name: prefix,
                report: Some(report),
                is_stale: found.is_stale,
            }),
            Err(FetchError::GaveUp { segment, nack }) => {
                let interest = Interest {
                    lifetime_ms: Some(arguments.lifetime_ms),
                    ..Interest::new(prefix.with(&Component::segment(segment)))
                };
                Err(match nack {
                    Some(reason) => unanswered::refused(endpoint, &interest, name, reason).into(),
                    None => Unanswered::TimedOut {
                        name: interest.name,
                        waited: None,
                    }
                    .into(),
                })
            }
            Err(error) => Err(anyhow::Error::new(error).context(format!("cannot fetch {prefix}"))),
        }
    }
}

/// Reports that a version may be old.
fn note_stale(name: &Name, object: &Object) {
    let version = match object {
        Object::Segmented(prefix) => prefix.clone(),
        Object::Single(answer) => answer.data().name().to_name(),
    };
    output::note(format_args!(
        "no fresh metadata or Data for {name}: taking {version}, which a cache holds; a newer \
         version may exist"
    ));
}

fn print_report(arguments: &Arguments, done: &Fetched) -> anyhow::Result<()> {
    let (name, report) = (&done.name, done.report.as_ref());
    let mut lines: Box<dyn Write> = match arguments.file() {
        Some(_) => Box::new(io::stdout()),
        None => Box::new(io::stderr()),
    };
    let seconds = report.map(|r| r.duration.as_secs_f64());
    if arguments.json {
        let value = json!({
            "name": name.to_string(),
            "stale": done.is_stale,
            "bytes": report.map(|r| r.n_bytes),
            "segments": report.map_or(1, |r| r.n_segments),
            "duration_s": seconds,
            "rtt_ms": report.and_then(|r| r.rtt).map(|rtt| rtt.as_secs_f64() * 1e3),
            "interests": report.map(|r| r.counters.n_interests),
            "retransmissions": report.map(|r| r.counters.n_retransmissions),
            "losses": report.map(|r| r.counters.n_losses),
            "congestion_marks": report.map(|r| r.counters.n_marks),
            "window_reductions": report.map(|r| r.counters.n_reductions),
        });
        writeln!(lines, "{value}")?;
    } else if let (Some(report), false) = (report, arguments.quiet) {
        let rate = report.n_bytes as f64 / report.duration.as_secs_f64().max(1e-9);
        writeln!(
            lines,
            "{name}: {} in {}, {:.2} s, {}/s, {} retransmissions, {} congestion marks",
            text::bytes(report.n_bytes),
            text::segments(report.n_segments),
            report.duration.as_secs_f64(),
            text::bytes(rate as u64),
            report.counters.n_retransmissions,
            report.counters.n_marks,
        )?;
    }
    Ok(())
}

/// A bar on a terminal; nothing elsewhere.
struct Bar(ProgressBar);

impl Bar {
    fn new(arguments: &Arguments) -> Self {
        let is_shown = !arguments.quiet && !arguments.json && io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            None,
            if is_shown {
                ProgressDrawTarget::stderr()
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        // Fits 60 columns; the bar takes what is left.
        let template = "{wide_bar} {percent:>3} %  {pos}/{len}  {msg}  {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, progress: &FetchProgress) {
        let seconds = self.0.elapsed().as_secs_f64().max(1e-3);
        let rate = (progress.n_bytes as f64 / seconds) as u64;
        // Each of these may draw: what is seen first must be complete.
        self.0.set_message(format!(
            "{}  {}/s",
            text::bytes(progress.n_bytes),
            text::bytes(rate)
        ));
        if let Some(of) = progress.of_segments {
            self.0.set_length(of);
        }
        self.0.set_position(progress.n_segments);
    }
}
