//! `tachonym ping`: round-trip times to a producer.
//!
//! Speaks the protocol of the `ndnping` that operators know: Interests for
//! `<prefix>/ping/<number>`.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tachonym_client::{Endpoint, Received};
use tachonym_packet::{Component, Interest, MonoNs, NackReason, Name, NameView};

use super::unanswered::{self, Unanswered};
use super::{COMMON, Connection, Stop, name, output, text};

const EXAMPLES: &str = "\
Examples:
  tachonym pingserver /example &
  tachonym ping /example --count 5
  tachonym ping /example --interval-ms 100 --json";

/// Measure the round-trip time to a ping server, `tachonym pingserver` or ndnpingserver.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Prefix of the ping server.
    #[arg(value_parser = name::parse)]
    prefix: Name,
    /// End after this many Interests.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between Interests, in milliseconds.
    #[arg(short, long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    interval_ms: u64,
    /// Time to wait for each answer, in milliseconds.
    #[arg(short, long, value_name = "N", default_value_t = 4000,
          value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
    /// Number of the first Interest; random if not given.
    #[arg(short = 'n', long, value_name = "N")]
    start: Option<u64>,
    /// A component between `ping` and the number.
    #[arg(long, value_name = "TEXT")]
    identifier: Option<String>,
    /// Print the summary only.
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON for scripts: one line for each Interest, and a summary.
    #[arg(long, help_heading = COMMON)]
    json: bool,
}

/// Runs it.
///
/// # Errors
/// If the router cannot be reached, or there was no answer at all.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut endpoint = arguments.connection.open()?;
    let stop = Stop::on_signals()?;
    let mut pings = Pings::new(arguments)?;
    if !arguments.json {
        output::line(format_args!("PING {}", arguments.prefix))?;
    }
    let interval = Duration::from_millis(arguments.interval_ms);
    let mut next_send = endpoint.now();
    while !stop.is_set() {
        let now = endpoint.now();
        pings.give_up(now)?;
        let more = arguments.count.is_none_or(|count| pings.n_sent < count);
        if more && now >= next_send {
            pings.send(&mut endpoint, now);
            next_send = next_send + interval;
        }
        let more = arguments.count.is_none_or(|count| pings.n_sent < count);
        if !more && pings.pending.is_empty() {
            break;
        }
        let deadline = [Stop::next_look(&endpoint)]
            .into_iter()
            .chain(more.then_some(next_send))
            .chain(pings.next_timeout())
            .min();
        let mut outcome = Ok(());
        endpoint.poll(deadline, |_, received| {
            outcome = pings.receive(received);
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        outcome?;
    }
    pings.summary()?;
    if !pings.rtts_ms.is_empty() {
        return Ok(());
    }
    Err(match pings.last_nack {
        Some((number, reason)) => {
            let interest = pings.interest(number);
            unanswered::refused(&mut endpoint, &interest, &pings.base, reason).into()
        }
        None => Unanswered::TimedOut {
            name: pings.interest(pings.next_number.wrapping_sub(1)).name,
            waited: Some(pings.timeout),
        }
        .into(),
    })
}

/// The outcome of an Interest.
enum Event {
    Content { rtt_ms: f64 },
    Nack(NackReason),
    TimedOut,
}

impl Event {
    /// A line for scripts; fields that the event lacks are null.
    fn to_json(&self, number: u64) -> Value {
        let (event, rtt_ms, reason) = match self {
            Self::Content { rtt_ms } => ("content", Some(*rtt_ms), None),
            Self::Nack(reason) => ("nack", None, Some(reason.to_string())),
            Self::TimedOut => ("timeout", None, None),
        };
        json!({ "seq": number, "event": event, "reason": reason, "rtt_ms": rtt_ms })
    }
}

struct Pings<'a> {
    arguments: &'a Arguments,
    base: Name,
    next_number: u64,
    timeout: Duration,
    /// When each was sent.
    pending: BTreeMap<u64, MonoNs>,
    n_sent: u64,
    n_nacks: u64,
    /// The number of the last Interest that came back, and why.
    last_nack: Option<(u64, NackReason)>,
    rtts_ms: Vec<f64>,
}

impl<'a> Pings<'a> {
    fn new(arguments: &'a Arguments) -> anyhow::Result<Self> {
        let mut base = arguments.prefix.clone().with("ping");
        if let Some(identifier) = &arguments.identifier {
            base.push(identifier.as_str());
        }
        let next_number = match arguments.start {
            Some(start) => start,
            None => u64::from(getrandom::u32()?),
        };
        Ok(Self {
            arguments,
            base,
            next_number,
            timeout: Duration::from_millis(arguments.timeout_ms),
            pending: BTreeMap::new(),
            n_sent: 0,
            n_nacks: 0,
            last_nack: None,
            rtts_ms: Vec::new(),
        })
    }

    fn send(&mut self, endpoint: &mut Endpoint, now: MonoNs) {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        endpoint.link().send_interest(&mut self.interest(number));
        self.pending.insert(number, now);
        self.n_sent += 1;
    }

    fn interest(&self, number: u64) -> Interest {
        let component = Component::generic(number.to_string());
        Interest {
            must_be_fresh: true,
            lifetime_ms: Some(self.arguments.timeout_ms),
            ..Interest::new(self.base.clone().with(&component))
        }
    }

    fn next_timeout(&self) -> Option<MonoNs> {
        self.pending.values().min().map(|&sent| sent + self.timeout)
    }

    fn give_up(&mut self, now: MonoNs) -> io::Result<()> {
        let timeout = self.timeout;
        let late: Vec<u64> = self
            .pending
            .iter()
            .filter(|&(_, &sent)| now >= sent + timeout)
            .map(|(&number, _)| number)
            .collect();
        for number in late {
            self.pending.remove(&number);
            self.report(number, Event::TimedOut)?;
        }
        Ok(())
    }

    fn receive(&mut self, received: Received<'_>) -> io::Result<()> {
        let arrived = tachonym_face::monotonic_now();
        match received {
            Received::Data(data, _) => {
                if let Some((number, sent)) = self.take(data.name()) {
                    let rtt_ms = arrived.saturating_since(sent).as_secs_f64() * 1e3;
                    self.rtts_ms.push(rtt_ms);
                    return self.report(number, Event::Content { rtt_ms });
                }
            }
            Received::Nack(reason, interest, _) => {
                if let Some((number, _)) = self.take(interest.name()) {
                    self.n_nacks += 1;
                    self.last_nack = Some((number, reason));
                    return self.report(number, Event::Nack(reason));
                }
            }
            Received::Interest(..) => {}
        }
        Ok(())
    }

    fn take(&mut self, name: NameView<'_>) -> Option<(u64, MonoNs)> {
        if name.len() != self.base.len() + 1 || !name.starts_with(self.base.view()) {
            return None;
        }
        let number = std::str::from_utf8(name.last()?.value()).ok()?;
        let number: u64 = number.parse().ok()?;
        self.pending.remove(&number).map(|sent| (number, sent))
    }

    fn report(&self, number: u64, event: Event) -> io::Result<()> {
        if self.arguments.quiet {
            return Ok(());
        }
        if self.arguments.json {
            return output::line(event.to_json(number));
        }
        let (prefix, base) = (&self.arguments.prefix, &self.base);
        match event {
            Event::Content { rtt_ms } => output::line(format_args!(
                "content from {prefix}: seq={number} time={rtt_ms:.3} ms"
            )),
            Event::Nack(reason) => output::line(format_args!("nack, {reason}: {base}/{number}")),
            Event::TimedOut => {
                let waited = text::short_duration(self.timeout);
                output::line(format_args!("no answer within {waited}: {base}/{number}"))
            }
        }
    }

    fn summary(&self) -> io::Result<()> {
        let n_received = self.rtts_ms.len();
        let n_lost = self.n_sent - n_received as u64;
        let loss_pct = if self.n_sent == 0 {
            0.0
        } else {
            100.0 * n_lost as f64 / self.n_sent as f64
        };
        let mean = self.rtts_ms.iter().sum::<f64>() / n_received.max(1) as f64;
        let variance = self.rtts_ms.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
        let deviation = (variance / n_received.max(1) as f64).sqrt();
        let min = self.rtts_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let max = self.rtts_ms.iter().copied().fold(0.0, f64::max);
        let rtt = (n_received > 0).then_some([min, mean, max, deviation]);
        if self.arguments.json {
            let value = json!({
                "sent": self.n_sent,
                "received": n_received,
                "nacks": self.n_nacks,
                "loss_pct": loss_pct,
                "rtt_ms": rtt.map(|[min, mean, max, deviation]| json!({
                    "min": min, "mean": mean, "max": max, "deviation": deviation,
                })),
            });
            return output::line(value);
        }
        output::line(format_args!(
            "--- {} ping statistics ---",
            self.arguments.prefix
        ))?;
        output::line(format_args!(
            "{} Interests sent, {n_received} Data received, {} Nacks, {loss_pct:.1} % loss",
            self.n_sent, self.n_nacks
        ))?;
        match rtt {
            Some([min, mean, max, deviation]) => output::line(format_args!(
                "rtt min/mean/max/deviation = {min:.3}/{mean:.3}/{max:.3}/{deviation:.3} ms"
            )),
            None => Ok(()),
        }
    }
}
