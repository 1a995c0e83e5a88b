//! `tachonym peek`: one Interest and its answer.

use std::io::Write as _;

use clap::Args;
use serde_json::json;
use tachonym_packet::{Interest, Name};

use super::{COMMON, Connection, name, unanswered};

const EXAMPLES: &str = "\
Examples:
  tachonym peek /example/hello
  tachonym peek /example --prefix --json
  tachonym peek /example/hello --packet | tachonym dissect";

/// Send one Interest and print the content of the Data.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// The name.
    #[arg(value_parser = name::parse)]
    name: Name,
    /// Accept Data with a longer name (CanBePrefix).
    #[arg(short = 'P', long)]
    prefix: bool,
    /// Accept only fresh Data (MustBeFresh).
    #[arg(short, long)]
    fresh: bool,
    /// Lifetime of the Interest, in milliseconds.
    #[arg(short, long, value_name = "N", default_value_t = 4000,
          value_parser = clap::value_parser!(u64).range(1..))]
    lifetime_ms: u64,
    /// Retransmissions of the Interest after a timeout.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Most hops of the Interest (HopLimit).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    hop_limit: Option<u8>,
    /// A forwarding hint; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = name::parse)]
    hint: Vec<Name>,
    /// Parameters of the Interest, as text.
    #[arg(long, value_name = "TEXT")]
    parameters: Option<String>,
    /// Write the whole packet instead of its content.
    #[arg(long)]
    packet: bool,
    /// Print name, freshness, size and round-trip time as JSON instead of the content.
    #[arg(long, conflicts_with = "packet", help_heading = COMMON)]
    json: bool,
}

/// Runs it.
///
/// # Errors
/// If there is no answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut endpoint = arguments.connection.open()?;
    let interest = Interest {
        can_be_prefix: arguments.prefix,
        must_be_fresh: arguments.fresh,
        lifetime_ms: Some(arguments.lifetime_ms),
        hop_limit: arguments.hop_limit,
        forwarding_hint: arguments.hint.clone(),
        application_parameters: arguments
            .parameters
            .as_ref()
            .map(|text| text.clone().into_bytes()),
        ..Interest::new(arguments.name.clone())
    };
    let answer = endpoint
        .express(&interest, arguments.retries)
        .map_err(|error| {
            let sent = (&interest, arguments.retries);
            unanswered::explain(&mut endpoint, sent, &arguments.name, error)
        })?;
    let data = answer.data();
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let value = json!({
            "name": data.name().to_string(),
            "content_type": data.content_type(),
            "freshness_ms": data.freshness_period_ms(),
            "final_block_id": data.final_block_id().map(|id| id.to_string()),
            "content_bytes": data.content().len(),
            "signature_type": data.signature_info().typ(),
            "rtt_ms": answer.rtt.as_secs_f64() * 1e3,
            "congestion_mark": answer.congestion_mark,
        });
        writeln!(out, "{value:#}")?;
    } else if arguments.packet {
        out.write_all(answer.wire())?;
    } else {
        out.write_all(data.content())?;
    }
    out.flush()?;
    Ok(())
}
