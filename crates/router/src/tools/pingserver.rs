//! `tachonym pingserver`: answers pings, its own and those of `ndnping`.

use std::ops::ControlFlow;

use clap::Args;
use serde_json::json;
use tachonym_client::Received;
use tachonym_packet::{Data, Name};

use super::{COMMON, Connection, Identity, Registration, Stop, name, output};

const EXAMPLES: &str = "\
Examples:
  tachonym pingserver /example
  tachonym pingserver /example --size-bytes 1000 --quiet";

/// Answer pings under a prefix until a signal ends it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    identity: Identity,
    #[command(flatten)]
    registration: Registration,
    /// The prefix; Interests for `<prefix>/ping` are answered.
    #[arg(value_parser = name::parse)]
    prefix: Name,
    /// Content bytes of each answer.
    #[arg(short, long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(..=8000))]
    size_bytes: u64,
    /// How long answers are fresh, in milliseconds.
    #[arg(short, long, value_name = "N", default_value_t = 1000)]
    freshness_ms: u64,
    /// End after this many answers.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print the summary only.
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON for scripts.
    #[arg(long, help_heading = COMMON)]
    json: bool,
}

/// Runs it.
///
/// # Errors
/// If the router cannot be reached or refuses the prefix.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut endpoint = arguments.connection.open()?;
    let stop = Stop::on_signals()?;
    let signer = arguments.identity.signer()?;
    let base = arguments.prefix.clone().with("ping");
    arguments.registration.make(&base, &mut endpoint, &signer)?;
    if arguments.json {
        output::line(json!({ "ready": true, "prefix": base.to_string() }))?;
    } else {
        output::line(format_args!("answering pings under {base}"))?;
    }
    let content = vec![b'p'; usize::try_from(arguments.size_bytes).unwrap_or(0)];
    let mut n_answered = 0;
    let mut failure: Option<anyhow::Error> = None;
    let enough = |n| arguments.count.is_some_and(|count| n >= count);
    while !stop.is_set() && !enough(n_answered) && failure.is_none() {
        let deadline = Stop::next_look(&endpoint);
        endpoint.poll(Some(deadline), |link, received| {
            let Received::Interest(interest, headers) = received else {
                return ControlFlow::Continue(());
            };
            if !interest.name().starts_with(base.view()) {
                return ControlFlow::Continue(());
            }
            let data = Data {
                freshness_period_ms: Some(arguments.freshness_ms),
                content: content.clone(),
                ..Data::new(interest.name().to_name())
            };
            match signer.sign_data(&data) {
                Ok(wire) => link.send_data(&wire, headers.pit_token),
                Err(error) => {
                    failure = Some(error.into());
                    return ControlFlow::Break(());
                }
            }
            n_answered += 1;
            if !arguments.quiet
                && !arguments.json
                && let Err(error) = output::line(interest.name())
            {
                failure = Some(error.into());
                return ControlFlow::Break(());
            }
            if enough(n_answered) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if arguments.json {
        output::line(json!({ "answered": n_answered }))?;
    } else {
        output::line(format_args!("{n_answered} pings answered"))?;
    }
    Ok(())
}
