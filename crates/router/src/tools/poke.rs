//! `tachonym poke`: publishes one Data.
//!
//! Handles no signals: it has nothing to clean up, and the exit status of a signal says that
//! the Data was not fetched.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tachonym_client::{Controller, Received};
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{Component, Data, DataView, InterestView, Name};

use super::failure::Failure;
use super::{COMMON, Connection, Identity, name, output};

const EXAMPLES: &str = "\
Examples:
  echo hello | tachonym poke /example/hello
  tachonym poke /example/page --count 10 --freshness-ms 1000 < page.html";

/// Publish standard input as one Data, and end when it was fetched.
///
/// A signal ends it at once; a shell then shows 128 plus the number of the signal, 130 for
/// SIGINT.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    identity: Identity,
    /// The name.
    #[arg(value_parser = name::parse)]
    name: Name,
    /// Freshness period of the Data, in milliseconds.
    #[arg(short, long, value_name = "N")]
    freshness_ms: Option<u64>,
    /// FinalBlockId of the Data, as a name component.
    #[arg(long, value_name = "COMPONENT")]
    final_block_id: Option<Component>,
    /// Time for `--count` Interests to come, in milliseconds; without it, there is no
    /// limit.
    #[arg(short, long, value_name = "N")]
    timeout_ms: Option<u64>,
    /// Send the Data without an Interest, and end. Routers drop it unless configured
    /// otherwise.
    #[arg(long, conflicts_with_all = ["timeout_ms", "count"])]
    unsolicited: bool,
    /// Interests to answer before it ends.
    #[arg(short, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Print JSON for scripts.
    #[arg(long, help_heading = COMMON)]
    json: bool,
}

/// Runs it.
///
/// # Errors
/// If the content is too large, or no Interest came.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let signer = arguments.identity.signer()?;
    let mut content = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_PACKET_BYTES as u64 + 1)
        .read_to_end(&mut content)
        .context("cannot read standard input")?;
    let data = Data {
        freshness_period_ms: arguments.freshness_ms,
        final_block_id: arguments.final_block_id.clone(),
        content,
        ..Data::new(arguments.name.clone())
    };
    let wire = signer.sign_data(&data)?;
    ensure!(
        wire.len() <= MAX_PACKET_BYTES,
        "the packet would exceed {MAX_PACKET_BYTES} bytes; use `tachonym put` for larger content"
    );
    let mut endpoint = arguments.connection.open()?;
    if arguments.unsolicited {
        endpoint.link().send_data(&wire, None);
        let now = endpoint.now();
        endpoint.poll(Some(now), |_, _| ControlFlow::Continue(()))?;
        return Ok(());
    }
    Controller::new(&mut endpoint, signer).register(&arguments.name)?;
    if arguments.json {
        output::line(json!({ "ready": true, "name": arguments.name.to_string() }))?;
    }
    let view = DataView::parse(&wire)?;
    let patience = arguments.timeout_ms.map(Duration::from_millis);
    let end = patience.map(|patience| endpoint.now() + patience);
    let mut n_answered = 0;
    while n_answered < arguments.count {
        if end.is_some_and(|end| endpoint.now() >= end) {
            return Err(too_few(arguments, n_answered).into());
        }
        endpoint.poll(end, |link, received| {
            if let Received::Interest(interest, headers) = received
                && is_asked_for(&view, &interest)
            {
                link.send_data(&wire, headers.pit_token);
                n_answered += 1;
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

fn too_few(arguments: &Arguments, n_answered: u64) -> Failure {
    let name = arguments.name.clone();
    match n_answered {
        0 => Failure::NoInterest(name),
        _ => Failure::TooFewInterests {
            name,
            n_answered,
            count: arguments.count,
        },
    }
}

fn is_asked_for(data: &DataView<'_>, interest: &InterestView<'_>) -> bool {
    data.name() == interest.name()
        || (interest.can_be_prefix() && data.name().starts_with(interest.name()))
}
