//! `tachonym explain`: what the router would do with an Interest, and what to try next.
//!
//! A router of this kind answers by the dataset `status/explain`. Of another forwarder, the
//! tool looks through the datasets of the standard protocol (`elsewhere`).

mod advice;
mod elsewhere;
mod report;
mod sending;

use std::process::ExitCode;

use clap::Args;
use tachonym_client::Controller;
use tachonym_packet::Name;
use tachonym_protocol::{ExplainQuery, NameExplanation, RecentDrop};

use super::hops::Hops;
use super::{FaceArgument, Management, find_face, name, output, own, text};

const EXAMPLES: &str = "\
Examples:
  tachonym explain /example/hello          why does this name get no answer?
  tachonym explain --send /example/hello   send an Interest, and report what comes back
  tachonym explain --from 262 /a/b         as if the Interest came from face 262

Exit codes: 0 explained; with --send, the code of what came: 0 Data, 3 nothing in time,
4 a Nack. 6: no router could be reached.";

/// Show what the router would do with an Interest for a name, and what to try next.
///
/// Nothing is sent and nothing changes, unless --send is given.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    /// The name.
    #[arg(value_parser = parse_name)]
    name: Name,
    /// The Interest has CanBePrefix: Data with longer names answers too.
    #[arg(long)]
    can_be_prefix: bool,
    /// The Interest has MustBeFresh: stale Data does not answer.
    #[arg(long)]
    must_be_fresh: bool,
    /// The face that the Interest comes from, by number or remote address; without it, a
    /// program on the router's machine.
    #[arg(long, value_name = "FACE")]
    from: Option<FaceArgument>,
    /// Send one Interest, and report what comes back, from where and when.
    #[arg(long, conflicts_with = "from")]
    send: bool,
    /// Lifetime of the Interest that --send sends, in milliseconds.
    #[arg(long, value_name = "N", default_value_t = 4000, requires = "send",
          value_parser = clap::value_parser!(u64).range(1..))]
    lifetime_ms: u64,
}

/// What is known about an Interest for a name.
struct Report {
    query: ExplainQuery,
    /// Its faces are in `faces`.
    explanation: NameExplanation,
    faces: Hops,
    /// Packets of the name, or of names under it, that were dropped lately, the newest first.
    drops: Vec<RecentDrop>,
    /// Whether the router explained it. Of other forwarders, content store, pending
    /// Interests and drops are unknown.
    is_whole: bool,
    /// Name and version of the forwarder's software.
    version: String,
}

/// An Interest has a name of one component at least.
fn parse_name(text: &str) -> Result<Name, Box<dyn std::error::Error + Send + Sync>> {
    let name = name::parse(text)?;
    match name.is_empty() {
        true => Err("an Interest needs a name of one component at least, like /example".into()),
        false => Ok(name),
    }
}

/// Runs it. The exit code says what came of the Interest, if one was sent.
///
/// # Errors
/// If the router refuses or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let management = &arguments.management;
    let signer = management.identity.signer()?;
    let mut endpoint = management.connection.open()?;
    let mut controller = Controller::new(&mut endpoint, signer.clone());
    let from = arguments.from.as_ref();
    let query = ExplainQuery {
        name: arguments.name.clone(),
        can_be_prefix: arguments.can_be_prefix,
        must_be_fresh: arguments.must_be_fresh,
        face_id: from
            .map(|face| find_face(&mut controller, face))
            .transpose()?,
    };
    let report = ask(&mut controller, query)?;
    if !arguments.send {
        let advice = advice::before(&report);
        let mut value = report::to_json(&report);
        value["next_step"] = advice.clone().into();
        management.print(&value, || {
            let mut rows = report::rows(&report);
            rows.push(report::row("next step", advice));
            text::columns(&rows)
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if !management.json {
        // What is known shows while the Interest is under way.
        output::text(&text::columns(&report::rows(&report)))?;
    }
    let sent = sending::send(arguments, &mut endpoint, &signer, report.is_whole)?;
    let advice = advice::after(&report, &sent);
    if management.json {
        let mut value = report::to_json(&report);
        value["sent"] = report::sent_to_json(&sent);
        value["next_step"] = advice.into();
        output::line(format_args!("{value:#}"))?;
    } else {
        let mut rows = report::rows_of_sent(&sent);
        rows.push(report::row("next step", advice));
        output::text(&text::columns(&rows))?;
    }
    Ok(ExitCode::from(sent.exit_code()))
}

/// What the forwarder behind `controller` would do.
fn ask(controller: &mut Controller<'_>, query: ExplainQuery) -> anyhow::Result<Report> {
    let version = controller.general_status()?.nfd_version;
    let is_whole = own::is_own(&version);
    let (mut explanation, drops) = match is_whole {
        true => (
            controller.explain(&query)?,
            controller.recent_drops(&query.name)?,
        ),
        false => (elsewhere::explain(controller, &query)?, Vec::new()),
    };
    let faces = Hops::of(controller, std::mem::take(&mut explanation.faces))?;
    Ok(Report {
        query,
        explanation,
        faces,
        drops,
        is_whole,
        version,
    })
}
