//! Many management commands, several of them under way at a time.
//!
//! Commands are encoded and signed before the clock starts, and an answer finds
//! its command by the parameters digest that ends its name. Refuses to repeat a
//! command: one without an answer is a figure.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use tachonym_bench::random::{Random, fresh_seed};
use tachonym_bench::stats::Histogram;
use tachonym_packet::tlv::{self, Reader};
use tachonym_packet::{Name, types};
use tachonym_protocol::{CommandName, ControlParameters, ControlResponse};

use crate::exchange::control;
use crate::exchange::frame::Frame;
use crate::exchange::link::{self, Link};
use crate::exchange::report::Latency;

/// Length of a ParametersSha256Digest component's value.
const DIGEST_BYTES: usize = 32;

/// Commands as they go on the wire.
pub struct Commands {
    bytes: Vec<u8>,
    items: Vec<(Range<usize>, [u8; DIGEST_BYTES])>,
    patience: Duration,
}

/// What became of some commands.
#[derive(Clone, Debug, Serialize)]
pub struct CommandReport {
    /// Commands sent.
    pub n_sent: u64,
    /// Commands that were answered with code 200.
    pub n_done: u64,
    /// Commands that were answered otherwise, by code.
    pub n_refused_by_code: BTreeMap<u64, u64>,
    /// Commands that came back as a Nack.
    pub n_nacked: u64,
    /// Commands that nothing came back for in time.
    pub n_unanswered: u64,
    /// From the first command to the last answer, in seconds.
    pub seconds: f64,
    /// Time from a command to its answer, waiting behind others included.
    pub latency: Latency,
}

impl Commands {
    /// Signs `rib/VERB` for each of `parameters`; each may take `patience`.
    #[must_use]
    pub fn rib(
        verb: &str,
        parameters: impl Iterator<Item = ControlParameters>,
        patience: Duration,
    ) -> Self {
        let mut random = Random::new(fresh_seed());
        let mut commands = Self {
            bytes: Vec::new(),
            items: Vec::new(),
            patience,
        };
        for parameters in parameters {
            let name = CommandName::local("rib", verb).with_parameters(&parameters);
            let nonce = random.next_u64();
            let time_ms = control::signature_time_ms();
            let (name, wire) = control::signed_interest(name, time_ms, nonce, patience);
            let start = commands.bytes.len();
            commands.bytes.extend_from_slice(&wire);
            let digest = digest_of(name.value_bytes()).expect("a command's name ends in a digest");
            commands.items.push((start..commands.bytes.len(), digest));
        }
        commands
    }

    /// Registers each of `prefixes` for the face that the commands come from.
    #[must_use]
    pub fn register(prefixes: &[Name], patience: Duration) -> Self {
        let parameters = prefixes.iter();
        let parameters = parameters.map(|prefix| control::route_parameters(prefix, None));
        Self::rib("register", parameters, patience)
    }

    /// Takes back what [`Commands::register`] asks for.
    #[must_use]
    pub fn unregister(prefixes: &[Name], patience: Duration) -> Self {
        let parameters = prefixes.iter().map(|prefix| ControlParameters {
            name: Some(prefix.clone()),
            ..ControlParameters::default()
        });
        Self::rib("unregister", parameters, patience)
    }

    /// Sends all, at most `window` of them unanswered at any time, and waits
    /// for the answers.
    ///
    /// # Errors
    /// A failure of the link.
    pub fn carry_out(&self, link: &mut Link, window: usize) -> anyhow::Result<CommandReport> {
        let mut tally = Tally::default();
        let mut rest = self.items.iter();
        let mut ready = Vec::new();
        let started = Instant::now();
        loop {
            let free = window.max(1).saturating_sub(tally.in_flight.len());
            let now = Instant::now();
            for (range, digest) in rest.by_ref().take(free) {
                let outbox = link.outbox();
                outbox.push(|out| out.extend_from_slice(&self.bytes[range.clone()]));
                tally.in_flight.insert(*digest, now);
                tally.order.push_back((now, *digest));
                tally.n_sent += 1;
            }
            if tally.in_flight.is_empty() {
                break;
            }
            link.flush()?;
            link::wait(
                [&*link].into_iter(),
                tally.time_left(self.patience),
                &mut ready,
            )?;
            link.receive(|wire, _| tally.accept(wire))?;
            tally.expire(self.patience);
        }
        let last = tally.last_answer.unwrap_or_else(Instant::now);
        Ok(CommandReport {
            n_sent: tally.n_sent,
            n_done: tally.n_done,
            n_refused_by_code: tally.n_refused_by_code,
            n_nacked: tally.n_nacked,
            n_unanswered: tally.n_unanswered,
            seconds: last.saturating_duration_since(started).as_secs_f64(),
            latency: Latency::of(&tally.latencies),
        })
    }
}

#[derive(Default)]
struct Tally {
    in_flight: HashMap<[u8; DIGEST_BYTES], Instant>,
    /// In the order they left; those that were answered are still here.
    order: VecDeque<(Instant, [u8; DIGEST_BYTES])>,
    n_sent: u64,
    n_done: u64,
    n_refused_by_code: BTreeMap<u64, u64>,
    n_nacked: u64,
    n_unanswered: u64,
    latencies: Histogram,
    last_answer: Option<Instant>,
}

impl Tally {
    fn accept(&mut self, wire: &[u8]) {
        let Ok(frame) = Frame::parse(wire) else {
            return;
        };
        let typ = if frame.nack_code.is_some() {
            types::INTEREST
        } else {
            types::DATA
        };
        let Some((digest, content)) = answer(frame.payload, typ) else {
            return;
        };
        let Some(sent_at) = self.in_flight.remove(&digest) else {
            return;
        };
        let now = Instant::now();
        self.last_answer = Some(now);
        if frame.nack_code.is_some() {
            self.n_nacked += 1;
            return;
        }
        self.latencies.record((now - sent_at).as_nanos() as u64);
        match ControlResponse::decode(content).map(|response| response.code) {
            Ok(200) => self.n_done += 1,
            // What is no ControlResponse has no code.
            code => *self.n_refused_by_code.entry(code.unwrap_or(0)).or_default() += 1,
        }
    }

    /// Time until the oldest command's patience ends.
    fn time_left(&mut self, patience: Duration) -> Duration {
        while let Some((_, digest)) = self.order.front()
            && !self.in_flight.contains_key(digest)
        {
            self.order.pop_front();
        }
        let oldest = self.order.front();
        oldest.map_or(patience, |(sent_at, _)| {
            patience.saturating_sub(sent_at.elapsed())
        })
    }

    fn expire(&mut self, patience: Duration) {
        while self.time_left(patience).is_zero()
            && let Some((_, digest)) = self.order.pop_front()
        {
            self.in_flight.remove(&digest);
            self.n_unanswered += 1;
        }
    }
}

/// The last 32 bytes of a name, which in a command are its digest.
fn digest_of(name_value: &[u8]) -> Option<[u8; DIGEST_BYTES]> {
    name_value.last_chunk().copied()
}

/// Digest and Content of a packet of type `typ`; a Nack's Interest has no
/// Content.
fn answer(packet: &[u8], typ: u32) -> Option<([u8; DIGEST_BYTES], &[u8])> {
    let mut reader = Reader::new(tlv::read_single(packet, typ).ok()?);
    let digest = digest_of(reader.read_expected(types::NAME).ok()?)?;
    while !reader.is_empty() {
        let element = reader.read_element().ok()?;
        if element.typ == types::CONTENT {
            return Some((digest, element.value));
        }
    }
    Some((digest, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::address::Transport;

    fn prefixes(n: u64) -> Vec<Name> {
        let name = |i: u64| Name::new().with("x").with(i.to_string().as_str());
        (0..n).map(name).collect()
    }

    /// Answers the `i`-th command with `code(i)`; 0 stays silent, 1 is a Nack.
    fn answer_all(link: &mut Link, n_commands: usize, code: impl Fn(usize) -> u64) -> usize {
        let (mut n_seen, mut most_at_once) = (0, 0);
        let mut ready = Vec::new();
        while n_seen < n_commands {
            let patience = Duration::from_secs(20);
            link::wait([&*link].into_iter(), patience, &mut ready).expect("poll works");
            let before = n_seen;
            link.receive(|wire, outbox| {
                let code = code(n_seen);
                n_seen += 1;
                let mut reader = Reader::new(tlv::read_single(wire, types::INTEREST).expect("one"));
                let name = reader.read_expected(types::NAME).expect("a name");
                let response = ControlResponse::new(code, "");
                outbox.push(|out| match code {
                    0 => {}
                    1 => tlv::write_nested(out, types::LP_PACKET, |out| {
                        tlv::write_tlv(out, types::LP_NACK, &[]);
                        tlv::write_tlv(out, types::LP_FRAGMENT, wire);
                    }),
                    _ => tlv::write_nested(out, types::DATA, |out| {
                        tlv::write_tlv(out, types::NAME, name);
                        tlv::write_tlv(out, types::CONTENT, &response.encode());
                    }),
                });
            })
            .expect("open");
            most_at_once = most_at_once.max(n_seen - before);
            link.flush().expect("open");
        }
        most_at_once
    }

    #[test]
    fn every_command_is_counted_by_its_fate() {
        let (mut ours, mut theirs) = Link::pair(Transport::Unix).expect("a pair");
        let commands = Commands::register(&prefixes(50), Duration::from_secs(1));
        let forwarder = std::thread::spawn(move || {
            let most_at_once = answer_all(&mut theirs, 50, |i| match i {
                3 | 4 => 403,
                5 => 1,
                6 => 0,
                _ => 200,
            });
            // The link stays open until the silent command has expired.
            (most_at_once, theirs)
        });
        let report = commands.carry_out(&mut ours, 8).expect("open");
        let (most_at_once, _theirs) = forwarder.join().expect("it answers");
        assert_eq!((report.n_sent, report.n_done), (50, 46));
        assert_eq!(report.n_refused_by_code, BTreeMap::from([(403, 2)]));
        assert_eq!((report.n_nacked, report.n_unanswered), (1, 1));
        assert!(most_at_once <= 8, "{most_at_once} at once");
    }

    #[test]
    fn commands_differ_and_nothing_to_do_is_done_at_once() {
        let commands = Commands::unregister(&prefixes(3), Duration::from_secs(1));
        assert_ne!(commands.items[0].1, commands.items[1].1);
        let (mut ours, _theirs) = Link::pair(Transport::Unix).expect("a pair");
        let none = Commands::register(&[], Duration::from_secs(1));
        let report = none.carry_out(&mut ours, 1).expect("nothing is sent");
        assert_eq!((report.n_sent, report.n_done), (0, 0));
    }
}
