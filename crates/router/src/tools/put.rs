//! `tachonym put`: serves a file in segments, with metadata.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tachonym_client::{
    Content, Endpoint, Publication, PublishError, PublishOptions, Received, wall_ms,
};
use tachonym_packet::Name;

use super::{COMMON, Connection, Identity, Registration, Stop, name, output, text};

const EXAMPLES: &str = "\
Examples:
  tachonym put /example/video video.mp4
  tachonym put /example/news - --identity /example/editor < news.txt";

/// Serve a file in segments under a name until a signal ends it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    identity: Identity,
    #[command(flatten)]
    registration: Registration,
    /// The name.
    #[arg(value_parser = name::parse)]
    name: Name,
    /// The file; `-` is standard input.
    file: PathBuf,
    /// Version of the object; without it, the time in microseconds.
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Content bytes of each segment.
    #[arg(short, long, value_name = "N", default_value_t = 8000,
          value_parser = clap::value_parser!(u64).range(1..=8800))]
    segment_bytes: u64,
    /// Freshness period of the segments, in milliseconds.
    #[arg(short, long, value_name = "N", default_value_t = 10_000)]
    freshness_ms: u64,
    /// Print JSON for scripts.
    #[arg(long, help_heading = COMMON)]
    json: bool,
}

/// Runs it.
///
/// # Errors
/// If the file cannot be read, or the router refuses the prefix.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let options = PublishOptions {
        segment_bytes: usize::try_from(arguments.segment_bytes).unwrap_or(usize::MAX),
        freshness_ms: arguments.freshness_ms,
        ..PublishOptions::new(arguments.version.unwrap_or_else(|| wall_ms() * 1000))
    };
    if arguments.file.as_os_str() == "-" {
        let mut content = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut content)
            .context("cannot read standard input")?;
        return serve(arguments, content, options);
    }
    let shown = arguments.file.display();
    let file = File::open(&arguments.file).with_context(|| format!("cannot open {shown}"))?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot read {shown}"))?;
    anyhow::ensure!(metadata.is_file(), "{shown} is not a file");
    serve(arguments, (file, metadata.len()), options)
}

fn serve<C: Content>(
    arguments: &Arguments,
    content: C,
    options: PublishOptions,
) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let signer = arguments.identity.signer()?;
    let n_bytes = content.len_bytes();
    let name = arguments.name.clone();
    let mut publication = Publication::new(name, content, options, signer.clone())?;
    let mut endpoint = arguments.connection.open()?;
    arguments
        .registration
        .make(&arguments.name, &mut endpoint, &signer)?;
    if arguments.json {
        let value = json!({
            "ready": true,
            "name": publication.versioned_name().to_string(),
            "segments": publication.n_segments(),
            "bytes": n_bytes,
        });
        output::line(value)?;
    } else {
        output::line(format_args!(
            "serving {} as {} in {}",
            text::bytes(n_bytes),
            publication.versioned_name(),
            text::segments(publication.n_segments())
        ))?;
    }
    while !stop.is_set() {
        answer_some(&mut endpoint, &mut publication)?;
    }
    if arguments.json {
        output::line(json!({ "segments_sent": publication.n_segments_sent() }))?;
    }
    Ok(())
}

/// Answers what has arrived, or waits for a while.
fn answer_some<C: Content>(
    endpoint: &mut Endpoint,
    publication: &mut Publication<C>,
) -> anyhow::Result<()> {
    let deadline = Stop::next_look(endpoint);
    let mut outcome: Result<(), PublishError> = Ok(());
    endpoint.poll(Some(deadline), |link, received| {
        if let Received::Interest(interest, headers) = received {
            match publication.answer(&interest, wall_ms()) {
                Ok(Some(wire)) => link.send_data(wire, headers.pit_token),
                Ok(None) => {}
                Err(error) => {
                    outcome = Err(error);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    outcome.context("cannot go on serving")
}
