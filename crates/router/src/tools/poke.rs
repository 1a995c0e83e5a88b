//! `tachonym poke`: one Data, for whoever asks first.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tachonym_client::{Controller, ExpressError, Received};
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{Component, Data, DataView, InterestView, Name};

use super::{Connection, Identity, Stop, output};

/// Publish standard input as one Data, and wait until it was asked for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    identity: Identity,
    /// The name.
    name: Name,
    /// How long it is fresh, in milliseconds.
    #[arg(short, long, value_name = "N")]
    freshness_ms: Option<u64>,
    /// Its FinalBlockId, as a name component.
    #[arg(long, value_name = "COMPONENT")]
    final_block_id: Option<Component>,
    /// Give up when nobody has asked for this long, in milliseconds.
    #[arg(short, long, value_name = "N")]
    timeout_ms: Option<u64>,
    /// Send it unasked, and end.
    #[arg(long, conflicts_with_all = ["timeout_ms", "count"])]
    unsolicited: bool,
    /// End after this many answers.
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// Print JSON for scripts.
    #[arg(long)]
    json: bool,
}

/// Runs it.
///
/// # Errors
/// If the content is too large, or nobody asked for it.
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
    let stop = Stop::on_signals()?;
    Controller::new(&mut endpoint, signer).register(&arguments.name)?;
    if arguments.json {
        output::line(json!({ "ready": true, "name": arguments.name.to_string() }))?;
    }
    let view = DataView::parse(&wire)?;
    let started = endpoint.now();
    let patience = arguments.timeout_ms.map(Duration::from_millis);
    let mut n_answered = 0;
    while n_answered < arguments.count && !stop.is_set() {
        let now = endpoint.now();
        let end = patience.map(|patience| started + patience);
        if end.is_some_and(|end| now >= end) {
            return Err(ExpressError::TimedOut.into());
        }
        let deadline = end.into_iter().chain([Stop::next_look(&endpoint)]).min();
        endpoint.poll(deadline, |link, received| {
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

fn is_asked_for(data: &DataView<'_>, interest: &InterestView<'_>) -> bool {
    data.name() == interest.name()
        || (interest.can_be_prefix() && data.name().starts_with(interest.name()))
}
