//! `tachonym trace`: the packets under a prefix as they pass, and what becomes of each.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tachonym_client::{CommandError, Controller};
use tachonym_packet::{FaceId, Name};
use tachonym_protocol::{
    ControlParameters, TRACE_MAX_MS, TraceDecision, TraceFace, TraceQuery, TraceRecord, status_code,
};

use super::failure::Failure;
use super::{Management, Stop, name, output, own};

/// How often the router is asked for what it has recorded.
const READ_INTERVAL: Duration = Duration::from_millis(200);
/// How often it is checked whether the user wants to end the trace.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// How long the list of faces is taken for complete.
const FACES_INTERVAL: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  tachonym trace /example                     packets under /example for 10 s
  tachonym trace /example --count 5           end after five packets
  tachonym trace / --for 1m --sample 1/100    one packet of a hundred, for a minute

Each line is a packet that the router handled: when, which kind, the face it came \
from, what the router did with it, and its name. A router shows at most 1,000 packets \
a second for each of its threads; the last line says how many were not shown.";

/// Show packets under a prefix as they pass, and what the router does with each.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    /// Show packets of this name and of names under it.
    #[arg(value_parser = name::parse)]
    prefix: Name,
    /// End after this many packets.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time: a number with ms, s, m or h; at most 1h.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Show one packet of N, written 1/N.
    #[arg(long, value_name = "1/N", default_value = "1/1", value_parser = sample)]
    sample: u64,
}

/// Why an argument is no time or no sample.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum ArgumentError {
    #[error("write a time as a number with ms, s, m or h, as in 10s")]
    NoTime,
    #[error("a trace takes from 1ms to 1h")]
    OutOfRange,
    #[error("write a sample as 1/N, as in 1/100")]
    NoSample,
}

fn duration(text: &str) -> Result<Duration, ArgumentError> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let ms_each = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(ArgumentError::NoTime),
    };
    let number: u64 = digits.parse().map_err(|_| ArgumentError::NoTime)?;
    match number.checked_mul(ms_each) {
        Some(ms @ 1..=TRACE_MAX_MS) => Ok(Duration::from_millis(ms)),
        _ => Err(ArgumentError::OutOfRange),
    }
}

fn sample(text: &str) -> Result<u64, ArgumentError> {
    let number = text.strip_prefix("1/").and_then(|text| text.parse().ok());
    number
        .filter(|&number| number > 0)
        .ok_or(ArgumentError::NoSample)
}

/// Runs it.
///
/// # Errors
/// If the router has no traces, refuses one, or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    arguments.management.with(|controller| {
        let trace_id = start(controller, arguments)?;
        let mut shown = Shown::new(arguments);
        let outcome = follow(controller, trace_id, &stop, &mut shown);
        let stopped = controller.command(
            "trace",
            "stop",
            &ControlParameters {
                trace_id: Some(trace_id),
                ..ControlParameters::default()
            },
        );
        outcome?;
        shown.print_summary()?;
        stopped?;
        Ok(())
    })
}

/// Starts the trace and returns its number.
fn start(controller: &mut Controller<'_>, arguments: &Arguments) -> anyhow::Result<u64> {
    // Some forwarders leave a command that they do not have unanswered.
    let kind = controller.general_status()?.nfd_version;
    if !own::is_own(&kind) {
        return Err(Failure::NoTrace(kind).into());
    }
    let parameters = ControlParameters {
        name: Some(arguments.prefix.clone()),
        count: arguments.count,
        expiration_period_ms: u64::try_from(arguments.duration.as_millis()).ok(),
        sample: (arguments.sample > 1).then_some(arguments.sample),
        ..ControlParameters::default()
    };
    match controller.command("trace", "start", &parameters) {
        Ok(started) => started
            .trace_id
            .ok_or_else(|| Failure::NoTrace(kind).into()),
        Err(CommandError::Refused { code, .. }) if code == status_code::NOT_IMPLEMENTED => {
            Err(Failure::NoTrace(kind).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints what the trace records until it ends or the user ends it.
fn follow(
    controller: &mut Controller<'_>,
    trace_id: u64,
    stop: &Stop,
    shown: &mut Shown<'_>,
) -> anyhow::Result<()> {
    shown.print_heading()?;
    for read in 1.. {
        // What is recorded until now is shown even if this is the end.
        let is_last = stop.is_set();
        let batch = match controller.read_trace(&TraceQuery { trace_id, read }) {
            Err(CommandError::Refused { code, .. })
                if code == status_code::NOT_FOUND && read > 1 =>
            {
                output::note(
                    "the router ended the trace, because it was not read for a while; \
                     does the output block?",
                );
                return Ok(());
            }
            batch => batch?,
        };
        shown.n_not_shown = batch.n_not_shown;
        for (idx, record) in batch.records.iter().enumerate() {
            if shown.is_complete() {
                // Each thread of the router counts to the limit by itself.
                shown.n_not_shown += (batch.records.len() - idx) as u64;
                return Ok(());
            }
            shown.print(controller, record)?;
        }
        if is_last || batch.has_ended || shown.is_complete() {
            return Ok(());
        }
        let next = Instant::now() + READ_INTERVAL;
        while Instant::now() < next && !stop.is_set() {
            std::thread::sleep(STOP_INTERVAL);
        }
    }
    Ok(())
}

/// What has been shown.
struct Shown<'a> {
    arguments: &'a Arguments,
    started: Instant,
    n_shown: u64,
    n_dropped: u64,
    n_not_shown: u64,
    /// Remote addresses.
    faces: HashMap<u64, String>,
    faces_read: Option<Instant>,
}

impl<'a> Shown<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        Self {
            arguments,
            started: Instant::now(),
            n_shown: 0,
            n_dropped: 0,
            n_not_shown: 0,
            faces: HashMap::new(),
            faces_read: None,
        }
    }

    fn is_complete(&self) -> bool {
        let count = self.arguments.count;
        count.is_some_and(|count| self.n_shown >= count)
    }

    fn print_heading(&self) -> io::Result<()> {
        match self.arguments.management.json {
            true => output::line(json!({
                "ready": true,
                "prefix": self.arguments.prefix.to_string(),
                "seconds": self.arguments.duration.as_secs_f64(),
            })),
            false => output::line(row("TIME (UTC)", "PACKET", "FROM FACE", "DECISION", "NAME")),
        }
    }

    fn print(
        &mut self,
        controller: &mut Controller<'_>,
        record: &TraceRecord,
    ) -> anyhow::Result<()> {
        self.n_shown += 1;
        self.n_dropped += u64::from(record.drop_reason.is_some());
        let remote = match (&record.remote, record.face_id) {
            (Some(remote), _) => Some(remote.clone()),
            (None, Some(face)) => self.remote(controller, face)?,
            (None, None) => None,
        };
        if self.arguments.management.json {
            output::line(record_json(record, remote.as_deref()))?;
            return Ok(());
        }
        let face = match (record.face_id, remote) {
            (Some(face), Some(remote)) => format!("{face} {remote}"),
            (Some(face), None) => face.to_string(),
            (None, _) => "-".to_owned(),
        };
        let cut = if record.is_name_cut { "/..." } else { "" };
        output::line(row(
            &time(record.at_us),
            &record.kind,
            &face,
            &decision(record),
            &format!("{}{cut}", record.name),
        ))?;
        Ok(())
    }

    /// The remote address of a face, or what the router uses it for.
    fn remote(
        &mut self,
        controller: &mut Controller<'_>,
        face: u64,
    ) -> Result<Option<String>, CommandError> {
        let purpose = match FaceId(face) {
            FaceId::INTERNAL => Some("management"),
            FaceId::CONTENT_STORE => Some("content store"),
            FaceId::NULL => Some("null face"),
            _ => None,
        };
        if let Some(purpose) = purpose {
            return Ok(Some(purpose.to_owned()));
        }
        let is_fresh = |read: Instant| read.elapsed() < FACES_INTERVAL;
        if !self.faces.contains_key(&face) && !self.faces_read.is_some_and(is_fresh) {
            let faces = controller.faces()?.into_iter();
            self.faces
                .extend(faces.map(|face| (face.face_id, face.uri)));
            self.faces_read = Some(Instant::now());
        }
        Ok(self.faces.get(&face).cloned())
    }

    fn print_summary(&self) -> io::Result<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        if self.arguments.management.json {
            return output::line(json!({
                "packets": self.n_shown,
                "seconds": (seconds * 10.0).round() / 10.0,
                "dropped": self.n_dropped,
                "not_shown": self.n_not_shown,
            }));
        }
        let packets = if self.n_shown == 1 {
            "packet"
        } else {
            "packets"
        };
        output::line(format_args!(
            "{} {packets} in {seconds:.1} s ({} dropped); {} not shown",
            self.n_shown, self.n_dropped, self.n_not_shown
        ))
    }
}

/// A line of the table. Packets come one by one, so the widths are fixed; the name has no
/// bound and is last.
fn row(time: &str, kind: &str, face: &str, decision: &str, name: &str) -> String {
    format!("{time:<12}  {kind:<8}  {face:<26}  {decision:<39}  {name}")
}

/// Hour, minute, second and millisecond, UTC.
fn time(unix_us: u64) -> String {
    let ms = unix_us / 1_000;
    let (seconds, ms) = (ms / 1_000 % 86_400, ms % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}", seconds % 60)
}

fn faces(faces: &[TraceFace], n_more: u64) -> String {
    let ids: Vec<_> = faces.iter().map(|it| it.face_id.to_string()).collect();
    match n_more {
        0 => ids.join(", "),
        n_more => format!("{} and {n_more} more", ids.join(", ")),
    }
}

/// What the router did with a packet, in words.
fn decision(record: &TraceRecord) -> String {
    type D = TraceDecision;
    let to = faces(&record.to, record.n_more_faces);
    let nack = || {
        let reason = record.nack_reason.as_deref().unwrap_or("none");
        let to = faces(&record.nacked, record.n_more_nacked);
        format!("Nack {reason} to {to}")
    };
    let dropped = record.drop_reason.as_ref();
    let dropped = dropped.map(|reason| format!("dropped: {}", reason.replace(',', ", ")));
    let is_data = record.kind == "Data";
    let done = match record.decision {
        D::Forwarded => format!("forwarded to {to}"),
        D::ToManagement => "to management".to_owned(),
        D::AnsweredFromDram if is_data => format!("from DRAM level to {to}"),
        D::AnsweredFromSsd if is_data => format!("from SSD level to {to}"),
        D::AnsweredFromDram => "answered from DRAM level".to_owned(),
        D::AnsweredFromSsd => "answered from SSD level".to_owned(),
        D::WaitsForSsd => "waits for SSD level".to_owned(),
        D::AsksWorkers => "asks other workers' stores".to_owned(),
        D::Aggregated => "aggregated".to_owned(),
        D::RetransmissionSuppressed => "retransmission suppressed".to_owned(),
        D::SentAgain => format!("sent again to {to}"),
        D::Delivered => format!("Data to {to}"),
        D::CachedUnsolicited => "unsolicited, cached".to_owned(),
        D::NotAwaited => "no Interest waits for it".to_owned(),
        D::HandedOver => "handed to another worker".to_owned(),
        D::Nacked => nack(),
        D::WaitsForOthers => "waits for other next hops".to_owned(),
        D::Pending => "pending".to_owned(),
        D::Unanswered if record.to.is_empty() => "unanswered".to_owned(),
        D::Unanswered => format!("unanswered by {to}"),
        D::Dropped => dropped.clone().unwrap_or_else(|| "dropped".to_owned()),
    };
    let mut parts = vec![done];
    if record.decision != D::Dropped {
        parts.extend(dropped);
    }
    if record.decision != D::Nacked && !record.nacked.is_empty() {
        parts.push(nack());
    }
    parts.join("; ")
}

fn record_json(record: &TraceRecord, remote: Option<&str>) -> Value {
    let ids = |faces: &[TraceFace]| faces.iter().map(|face| face.face_id).collect::<Vec<_>>();
    let drops = record.drop_reason.as_deref().into_iter();
    let drops: Vec<_> = drops.flat_map(|reasons| reasons.split(',')).collect();
    json!({
        "time_us": record.at_us,
        "packet": record.kind,
        "name": record.name.to_string(),
        "name_cut": record.is_name_cut,
        "face": record.face_id,
        "remote": remote,
        "decision": record.decision.as_str(),
        "to": ids(&record.to),
        "more_faces": record.n_more_faces,
        "nacked": ids(&record.nacked),
        "more_nacked": record.n_more_nacked,
        "nack_reason": record.nack_reason,
        "dropped": drops,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(decision: TraceDecision) -> TraceRecord {
        TraceRecord {
            at_us: 1_000_000_000_123_456,
            kind: "Interest".into(),
            name: "/a/b".parse().expect("a name"),
            is_name_cut: false,
            face_id: Some(262),
            remote: None,
            decision,
            to: Vec::new(),
            n_more_faces: 0,
            n_more_nacked: 0,
            nacked: Vec::new(),
            nack_reason: None,
            drop_reason: None,
        }
    }

    fn to(faces: &[u64]) -> Vec<TraceFace> {
        let faces = faces.iter();
        faces.map(|&face_id| TraceFace { face_id }).collect()
    }

    #[test]
    fn a_decision_says_where_a_packet_went_and_why_it_was_dropped() {
        let forwarded = TraceRecord {
            to: to(&[263, 264]),
            n_more_faces: 2,
            drop_reason: Some("out-records-full".into()),
            ..record(TraceDecision::Forwarded)
        };
        let words = "forwarded to 263, 264 and 2 more; dropped: out-records-full";
        assert_eq!(decision(&forwarded), words);
        let refused = TraceRecord {
            nacked: to(&[262]),
            nack_reason: Some("no-route".into()),
            drop_reason: Some("no-route".into()),
            ..record(TraceDecision::Dropped)
        };
        let words = "dropped: no-route; Nack no-route to 262";
        assert_eq!(decision(&refused), words);
        let from_disk = TraceRecord {
            kind: "Data".into(),
            to: to(&[262]),
            ..record(TraceDecision::AnsweredFromSsd)
        };
        assert_eq!(decision(&from_disk), "from SSD level to 262");
        let json = record_json(&refused, Some("fd://15"));
        assert_eq!(json["decision"], "dropped");
        assert_eq!(json["dropped"], json!(["no-route"]));
        assert_eq!(json["nacked"], json!([262]));
        assert_eq!(time(1_000_000_000_123_456), "01:46:40.123");
    }

    #[test]
    fn times_and_samples_are_read_as_people_write_them() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3_600)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for text in ["0s", "2h", "99999999999999999h"] {
            assert_eq!(duration(text), Err(ArgumentError::OutOfRange), "{text}");
        }
        for text in ["", "s", "10 s", "ten", "1.5s", "99999999999999999999h"] {
            assert_eq!(duration(text), Err(ArgumentError::NoTime), "{text}");
        }
        assert_eq!(sample("1/100"), Ok(100));
        for text in ["100", "1/0", "2/3", "1/x"] {
            assert_eq!(sample(text), Err(ArgumentError::NoSample), "{text}");
        }
    }
}
