//! One flow: a consumer and a producer of its own with a prefix of its own.
//!
//! Owns the Interests in flight and what became of each. An Interest's number
//! tells its place in flight (number modulo window), so a reply finds its
//! Interest without a search. Refuses clocks and waiting: see [`super::drive`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

use serde::Serialize;
use tachonym_bench::stats::Histogram;
use tachonym_packet::{MonoNs, Name, tlv, types};

use super::frame::{Frame, Reassembler};
use super::link::{Link, Outbox};
use super::pace::{Course, Lateness, Pace};
use super::template::{DataTemplate, InterestShape, InterestTemplate, Numbering, is_token_of};

/// Which names are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Names never repeat: every Interest goes to the producer.
    Miss,
    /// A catalogue of names, all fetched once before the measurement, is
    /// requested over and over: the content store can answer.
    Hit,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Miss => "miss",
            Self::Hit => "hit",
        })
    }
}

/// What became of a flow's Interests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Interests sent.
    pub n_sent: u64,
    /// Interests answered by the right Data, with the right token.
    pub n_exchanges: u64,
    /// Interests given up after their lifetime.
    pub n_timed_out: u64,
    /// Interests that were in flight when the time of the run was over, before
    /// their lifetime was.
    pub n_cut_off: u64,
    /// Nacks for Interests in flight, by the code of their reason.
    pub n_nacks_by_code: BTreeMap<u64, u64>,
    /// Data that differ from what the producer sends. The Interest goes on
    /// waiting, and is given up later.
    pub n_wrong_data: u64,
    /// Right Data or Nacks whose PIT token is not the Interest's. The Interest
    /// goes on waiting, and is given up later.
    pub n_wrong_tokens: u64,
    /// Replies to Interests no longer in flight, duplicates included.
    pub n_late: u64,
    /// Frames to either end that are malformed or neither Data nor Nack nor
    /// an Interest of the flow.
    pub n_unexpected: u64,
    /// Replies with a congestion mark.
    pub n_marked: u64,
    /// Interests that came to the producer, and so were not answered by a
    /// content store or lost before.
    pub n_produced: u64,
}

impl Counters {
    /// Nacks for Interests in flight.
    #[must_use]
    pub fn n_nacks(&self) -> u64 {
        self.n_nacks_by_code.values().sum()
    }

    /// Adds another flow's counters.
    pub fn add(&mut self, other: &Self) {
        self.n_sent += other.n_sent;
        self.n_exchanges += other.n_exchanges;
        self.n_timed_out += other.n_timed_out;
        self.n_cut_off += other.n_cut_off;
        for (&code, n_nacks) in &other.n_nacks_by_code {
            *self.n_nacks_by_code.entry(code).or_default() += n_nacks;
        }
        self.n_wrong_data += other.n_wrong_data;
        self.n_wrong_tokens += other.n_wrong_tokens;
        self.n_late += other.n_late;
        self.n_unexpected += other.n_unexpected;
        self.n_marked += other.n_marked;
        self.n_produced += other.n_produced;
    }
}

/// What a flow requests and how much of it at once.
#[derive(Clone, Debug)]
pub struct FlowShape {
    /// Which names.
    pub mode: Mode,
    /// Most Interests in flight; at least 1.
    pub in_flight: usize,
    /// Names in the catalogue in hit mode, rounded up to a multiple of
    /// `in_flight`.
    pub catalogue: usize,
    /// The Interests' lifetime, MustBeFresh and token.
    pub interest: InterestShape,
    /// Content of each Data in bytes.
    pub content_bytes: usize,
    /// FreshnessPeriod of each Data in milliseconds.
    pub freshness_ms: u64,
    /// What the names' last component is.
    pub numbering: Numbering,
}

impl FlowShape {
    /// Interests for segments that no store has, `in_flight` at a time.
    #[must_use]
    pub const fn misses(in_flight: usize, content_bytes: usize, lifetime_ms: u64) -> Self {
        Self {
            mode: Mode::Miss,
            in_flight,
            catalogue: 1,
            interest: InterestShape {
                lifetime_ms,
                must_be_fresh: false,
                token_bytes: None,
            },
            content_bytes,
            freshness_ms: 1_000,
            numbering: Numbering::Segment,
        }
    }
}

/// One place in flight. Its numbers are `round × window + place`.
#[derive(Clone, Copy)]
struct Place {
    round: u64,
    /// `None` while no Interest is in flight here.
    sent_at: Option<MonoNs>,
}

/// A consumer and a producer with the Interests in flight between them.
pub struct Flow {
    prefix: Name,
    consumer: Link,
    producer: Link,
    requests: Requests,
    data: DataTemplate,
}

/// The consumer's side, apart from its socket.
struct Requests {
    interest: InterestTemplate,
    lifetime: Duration,
    places: Vec<Place>,
    free: Vec<usize>,
    /// Rounds after which numbers repeat.
    n_rounds: u64,
    /// While the catalogue is primed a lost name is asked for again instead
    /// of the next one, and no name is asked for once more when it is there.
    is_priming: bool,
    /// Free places whose names are all there, while priming.
    primed: Vec<usize>,
    pace: Option<Pace>,
    quota: u64,
    nonce: u32,
    counters: Counters,
    latencies: Histogram,
    last_exchange: MonoNs,
    reassembler: Reassembler,
}

impl Flow {
    /// A flow between two links whose names begin with `prefix`. Nothing is
    /// sent before [`Flow::allow`].
    #[must_use]
    pub fn new(prefix: Name, consumer: Link, producer: Link, shape: &FlowShape, seed: u64) -> Self {
        let window = shape.in_flight.max(1);
        let requests = Requests {
            interest: InterestTemplate::numbered(&prefix, shape.interest, shape.numbering),
            lifetime: Duration::from_millis(shape.interest.lifetime_ms),
            places: vec![
                Place {
                    round: 0,
                    sent_at: None
                };
                window
            ],
            // The last is taken first: names come in order.
            free: (0..window).rev().collect(),
            n_rounds: match shape.mode {
                Mode::Miss => u64::MAX / window as u64,
                Mode::Hit => shape.catalogue.div_ceil(window).max(1) as u64,
            },
            is_priming: false,
            primed: Vec::new(),
            pace: None,
            quota: 0,
            nonce: seed as u32,
            counters: Counters::default(),
            latencies: Histogram::default(),
            last_exchange: MonoNs::ZERO,
            reassembler: Reassembler::default(),
        };
        Self {
            data: DataTemplate::numbered(
                &prefix,
                shape.content_bytes,
                shape.freshness_ms,
                seed,
                shape.numbering,
            ),
            prefix,
            consumer,
            producer,
            requests,
        }
    }

    /// The prefix of all names.
    #[must_use]
    pub fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// The consumer's link.
    #[must_use]
    pub fn consumer(&self) -> &Link {
        &self.consumer
    }

    /// The producer's link.
    #[must_use]
    pub fn producer(&self) -> &Link {
        &self.producer
    }

    /// The producer's link, for registering the prefix.
    pub fn producer_mut(&mut self) -> &mut Link {
        &mut self.producer
    }

    /// Length of every Data packet in bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> usize {
        self.data.packet_bytes()
    }

    /// Names in hit mode's catalogue; every name there is in miss mode.
    #[must_use]
    pub fn n_names(&self) -> u64 {
        self.requests.n_rounds * self.requests.places.len() as u64
    }

    /// Allows `quota` more Interests and sets the counters to 0.
    pub fn allow(&mut self, quota: u64) {
        self.requests.begin(quota, false);
    }

    /// Allows the Interests that fetch each name of hit mode's catalogue once,
    /// and sets the counters to 0. Comes before any [`Self::allow`].
    pub fn prime(&mut self) {
        self.requests.begin(self.n_names(), true);
    }

    /// Sends `per_s` Interests a second from now on, whether they are answered or not, as
    /// long as the window has room. What a busy generator is late with, it sends at once.
    pub fn set_rate(&mut self, per_s: f64) {
        self.requests.pace = Some(Pace::rate(per_s));
    }

    /// Allows the Interests of a course, and sends them when they are due as long as the
    /// window has room. Sets the counters to 0.
    pub fn follow(&mut self, course: Course) {
        self.allow(course.n_interests());
        self.requests.pace = Some(Pace::course(course));
    }

    /// How far it was behind its course; `None` without one.
    #[must_use]
    pub fn lateness(&self) -> Option<Lateness> {
        self.requests.pace.as_ref().and_then(Pace::lateness)
    }

    /// Whether the flow has a rate of its own.
    #[must_use]
    pub fn has_rate(&self) -> bool {
        self.requests.pace.is_some()
    }

    /// Allows no further Interests.
    pub fn stop(&mut self) {
        self.requests.stop();
    }

    /// Allows no further Interests and gives up those in flight, because the
    /// time is over.
    pub fn cut_off(&mut self) {
        self.requests.cut_off();
    }

    /// Lifetime of every Interest.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.requests.lifetime
    }

    /// Whether nothing is left to send or in flight.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let n_free = self.requests.free.len() + self.requests.primed.len();
        self.requests.quota == 0 && n_free == self.requests.places.len()
    }

    /// What became of the Interests since [`Flow::allow`].
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.requests.counters
    }

    /// Times from Interest to Data since [`Flow::allow`].
    #[must_use]
    pub fn latencies(&self) -> &Histogram {
        &self.requests.latencies
    }

    /// When the latest right Data arrived.
    #[must_use]
    pub fn last_exchange(&self) -> MonoNs {
        self.requests.last_exchange
    }

    /// Sends one Interest outside all counting, to see whether the path is
    /// there; the names of probes are the last numbers there are.
    ///
    /// # Errors
    /// A failure of the link.
    pub fn send_probe(&mut self, probe: u32) -> io::Result<()> {
        let shape = InterestShape {
            lifetime_ms: 1_000,
            must_be_fresh: false,
            token_bytes: None,
        };
        let template = InterestTemplate::numbered(&self.prefix, shape, self.data.numbering());
        let number = u64::MAX - u64::from(probe);
        let outbox = self.consumer.outbox();
        outbox.push(|out| template.write(out, number, probe));
        self.consumer.flush()
    }

    /// Reads what came for the consumer while only probes are under way, and
    /// says whether one was answered.
    ///
    /// # Errors
    /// A failure of the link.
    pub fn receive_probe(&mut self) -> io::Result<bool> {
        let mut is_answered = false;
        let data = &self.data;
        let reassembler = &mut self.requests.reassembler;
        self.consumer.receive(|wire, _| {
            let Ok(frame) = Frame::parse(wire) else {
                return;
            };
            let number = if frame.frag_count > 1 {
                let whole = reassembler.accept(&frame);
                whole.and_then(|whole| data.number_of_data(&whole.packet))
            } else {
                data.number_of_data(frame.payload)
            };
            is_answered |= number.is_some();
        })?;
        Ok(is_answered)
    }

    /// Sends as many Interests as quota and window allow.
    ///
    /// # Errors
    /// A failure of the link.
    pub fn send_interests(&mut self, now: MonoNs) -> io::Result<()> {
        self.requests.fill_window(now, self.consumer.outbox());
        self.consumer.flush()
    }

    /// Reads what came for the consumer and replaces what was answered.
    ///
    /// # Errors
    /// A failure of the link.
    pub fn serve_consumer(&mut self, now: MonoNs) -> io::Result<()> {
        let (requests, data) = (&mut self.requests, &self.data);
        self.consumer
            .receive(|wire, _| requests.accept(now, data, wire))?;
        self.send_interests(now)
    }

    /// Reads Interests that came for the producer and answers them.
    ///
    /// # Errors
    /// A failure of the link.
    pub fn serve_producer(&mut self) -> io::Result<()> {
        let (data, counters) = (&self.data, &mut self.requests.counters);
        self.producer.receive(|wire, outbox| {
            let frame = Frame::parse(wire).unwrap_or_default();
            match data.number_of_interest(frame.payload) {
                Some(number) => {
                    counters.n_produced += 1;
                    outbox.push(|out| data.write(out, number, frame.token));
                }
                None => counters.n_unexpected += 1,
            }
        })?;
        self.producer.flush()
    }

    /// Gives up Interests whose lifetime has passed.
    pub fn expire(&mut self, now: MonoNs) {
        self.requests.expire(now);
    }
}

impl Requests {
    fn begin(&mut self, quota: u64, is_priming: bool) {
        self.quota = quota;
        self.is_priming = is_priming;
        self.free.append(&mut self.primed);
        self.counters = Counters::default();
        self.latencies = Histogram::default();
    }

    fn number(&self, place_idx: usize) -> u64 {
        let round = self.places[place_idx].round % self.n_rounds;
        round * self.places.len() as u64 + place_idx as u64
    }

    fn place_of(&self, number: u64) -> usize {
        (number % self.places.len() as u64) as usize
    }

    fn fill_window(&mut self, now: MonoNs, outbox: &mut Outbox) {
        while self.quota > 0
            && !self.free.is_empty()
            && self.pace.as_mut().is_none_or(|pace| pace.take(now))
            && let Some(place_idx) = self.free.pop()
        {
            if self.is_priming && self.places[place_idx].round >= self.n_rounds {
                self.primed.push(place_idx);
                continue;
            }
            let number = self.number(place_idx);
            self.quota -= 1;
            self.counters.n_sent += 1;
            self.nonce = self.nonce.wrapping_add(1);
            self.places[place_idx].sent_at = Some(now);
            // An odd multiplier keeps 2³² nonces in a row distinct.
            let nonce = self.nonce.wrapping_mul(0x9E37_79B1);
            outbox.push(|out| self.interest.write(out, number, nonce));
        }
        if self.quota > 0
            && self.free.is_empty()
            && let Some(pace) = &mut self.pace
        {
            pace.note_full(now);
        }
    }

    fn accept(&mut self, now: MonoNs, data: &DataTemplate, wire: &[u8]) {
        // Most frames are bare Data.
        let frame = match Frame::parse(wire) {
            Ok(frame) => frame,
            Err(_) => {
                self.counters.n_unexpected += 1;
                return;
            }
        };
        if let Some(code) = frame.nack_code {
            self.accept_nack(data, &frame, code);
        } else if frame.frag_count > 1 {
            if let Some(whole) = self.reassembler.accept(&frame) {
                self.counters.n_marked += u64::from(whole.is_marked);
                self.accept_data(now, data, &whole.packet, whole.token.as_deref());
            }
        } else {
            self.counters.n_marked += u64::from(frame.is_marked);
            self.accept_data(now, data, frame.payload, frame.token);
        }
    }

    fn accept_data(
        &mut self,
        now: MonoNs,
        data: &DataTemplate,
        packet: &[u8],
        token: Option<&[u8]>,
    ) {
        let Some(number) = data.number_of_data(packet) else {
            let is_data = tlv::read_single(packet, types::DATA).is_ok();
            self.counters.n_wrong_data += u64::from(is_data);
            self.counters.n_unexpected += u64::from(!is_data);
            return;
        };
        if let Some(sent_at) = self.take_if_in_flight(number, token) {
            let place_idx = self.place_of(number);
            self.places[place_idx].round += 1;
            self.counters.n_exchanges += 1;
            let latency = now.saturating_since(sent_at);
            self.latencies.record(latency.as_nanos() as u64);
            self.last_exchange = now;
        }
    }

    fn accept_nack(&mut self, data: &DataTemplate, frame: &Frame<'_>, code: u64) {
        let Some(number) = data.number_of_interest(frame.payload) else {
            self.counters.n_unexpected += 1;
            return;
        };
        if self.take_if_in_flight(number, frame.token).is_some() {
            *self.counters.n_nacks_by_code.entry(code).or_default() += 1;
            self.leave_unanswered(self.place_of(number));
        }
    }

    /// Ends the Interest with `number`, if it is in flight and `token` is its
    /// own, and says when it was sent.
    fn take_if_in_flight(&mut self, number: u64, token: Option<&[u8]>) -> Option<MonoNs> {
        let place_idx = self.place_of(number);
        let is_current = number == self.number(place_idx);
        let place = &mut self.places[place_idx];
        if !is_current || place.sent_at.is_none() {
            self.counters.n_late += 1;
            return None;
        }
        let is_right_token = token.map(<[u8]>::len) == self.interest.token_bytes()
            && token.is_none_or(|token| is_token_of(token, number));
        if !is_right_token {
            self.counters.n_wrong_tokens += 1;
            return None;
        }
        self.free.push(place_idx);
        place.sent_at.take()
    }

    fn leave_unanswered(&mut self, place_idx: usize) {
        if self.is_priming {
            self.quota += 1;
        } else {
            self.places[place_idx].round += 1;
        }
    }

    fn expire(&mut self, now: MonoNs) {
        let lifetime = self.lifetime;
        let is_over = |sent_at: MonoNs| now.saturating_since(sent_at) >= lifetime;
        self.counters.n_timed_out += self.give_up(is_over);
    }

    fn stop(&mut self) {
        self.quota = 0;
        // What gets lost from now on is not asked for again.
        self.is_priming = false;
    }

    fn cut_off(&mut self) {
        self.stop();
        self.counters.n_cut_off += self.give_up(|_| true);
    }

    /// Ends the Interests in flight that were sent at such times; says how many
    /// they were.
    fn give_up(&mut self, is_over: impl Fn(MonoNs) -> bool) -> u64 {
        let mut n_given_up = 0;
        for place_idx in 0..self.places.len() {
            let place = &mut self.places[place_idx];
            if place.sent_at.is_some_and(&is_over) {
                place.sent_at = None;
                n_given_up += 1;
                self.free.push(place_idx);
                self.leave_unanswered(place_idx);
            }
        }
        n_given_up
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Transport;
    use super::super::link;
    use super::*;

    const WINDOW: usize = 4;

    /// A flow whose other ends are in the test's hands: what the consumer
    /// talks to, and what the producer talks to.
    fn flow(mode: Mode, token_bytes: Option<usize>) -> (Flow, Link, Link) {
        let shape = FlowShape {
            mode,
            in_flight: WINDOW,
            catalogue: 6,
            interest: InterestShape {
                lifetime_ms: 1_000,
                must_be_fresh: false,
                token_bytes,
            },
            content_bytes: 100,
            freshness_ms: 1_000,
            numbering: Numbering::Generic,
        };
        let (consumer, to_consumer) = Link::pair(Transport::Unix).expect("a pair");
        let (producer, to_producer) = Link::pair(Transport::Unix).expect("a pair");
        let prefix = Name::new().with("x");
        let flow = Flow::new(prefix, consumer, producer, &shape, 1);
        (flow, to_consumer, to_producer)
    }

    #[test]
    fn a_rate_sends_what_is_due_and_no_more() {
        let (mut flow, mut forwarder, _producer) = flow(Mode::Miss, None);
        flow.set_rate(1e6);
        flow.allow(100);
        for (now, n_due) in [(5_000, 1), (5_999, 0), (6_000, 1), (8_100, 2), (8_200, 0)] {
            flow.send_interests(MonoNs(now)).expect("open");
            assert_eq!(read_frames(&mut forwarder).len(), n_due, "at {now}");
        }
    }

    fn read_frames(link: &mut Link) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut ready = Vec::new();
        link::wait([&*link].into_iter(), Duration::ZERO, &mut ready).expect("poll works");
        if !ready.is_empty() {
            link.receive(|frame, _| frames.push(frame.to_vec()))
                .expect("open");
        }
        frames
    }

    fn send_frame(link: &mut Link, write: impl FnOnce(&mut Vec<u8>)) {
        link.outbox().push(write);
        link.flush().expect("open");
    }

    fn numbers(flow: &Flow, frames: &[Vec<u8>]) -> Vec<u64> {
        let number = |frame: &Vec<u8>| {
            let frame = Frame::parse(frame).expect("well-formed");
            flow.data
                .number_of_interest(frame.payload)
                .expect("of this flow")
        };
        frames.iter().map(number).collect()
    }

    #[test]
    fn missed_names_never_repeat_even_when_lost() {
        let (mut flow, mut forwarder, _producer) = flow(Mode::Miss, None);
        flow.allow(12);
        let mut seen = Vec::new();
        for round in 0..3 {
            flow.send_interests(MonoNs(round * 1_000_000_000))
                .expect("open");
            seen.extend(numbers(&flow, &read_frames(&mut forwarder)));
            flow.expire(MonoNs((round + 1) * 1_000_000_000));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
        assert_eq!(flow.counters().n_timed_out, 12);
        assert!(flow.is_done());
    }

    #[test]
    fn what_the_end_of_time_cuts_off_is_neither_timed_out_nor_repeated() {
        for is_priming in [false, true] {
            let (mut flow, mut forwarder, _producer) = flow(Mode::Hit, None);
            if is_priming {
                flow.prime();
            } else {
                flow.allow(10);
            }
            flow.send_interests(MonoNs(1)).expect("open");
            let asked = numbers(&flow, &read_frames(&mut forwarder));
            assert_eq!(asked.len(), WINDOW);
            flow.cut_off();
            assert!(flow.is_done());
            flow.send_interests(MonoNs(2)).expect("open");
            assert!(read_frames(&mut forwarder).is_empty());
            let counters = flow.counters();
            assert_eq!((counters.n_cut_off, counters.n_timed_out), (4, 0));
        }
    }

    #[test]
    fn priming_repeats_what_was_lost_until_the_whole_catalogue_is_there() {
        let (mut flow, mut forwarder, _producer) = flow(Mode::Hit, None);
        assert_eq!(flow.n_names(), 8, "six names in places of four");
        flow.prime();
        let mut answered = Vec::new();
        for second in 0.. {
            let now = MonoNs(second * 1_000_000_000);
            flow.expire(now);
            flow.send_interests(now).expect("open");
            let asked = numbers(&flow, &read_frames(&mut forwarder));
            if asked.is_empty() {
                break;
            }
            // Only the first of each burst gets an answer.
            let data = flow.data.clone();
            send_frame(&mut forwarder, |out| data.write(out, asked[0], None));
            flow.serve_consumer(now).expect("open");
            answered.push(asked[0]);
            // What replaced it is lost.
            read_frames(&mut forwarder);
        }
        answered.sort_unstable();
        assert_eq!(answered, (0..8).collect::<Vec<_>>());
        assert!(flow.is_done());
    }

    #[test]
    fn every_way_to_answer_wrongly_is_counted_by_itself() {
        let (mut flow, mut forwarder, _producer) = flow(Mode::Miss, Some(3));
        flow.allow(4);
        flow.send_interests(MonoNs(1)).expect("open");
        let asked = read_frames(&mut forwarder);
        assert_eq!(numbers(&flow, &asked), [0, 1, 2, 3]);
        let token = |i: usize| Frame::parse(&asked[i]).ok().and_then(|f| f.token);
        let data = flow.data.clone();
        let mut altered = Vec::new();
        data.write(&mut altered, 0, token(0));
        let last = altered.len() - 1;
        altered[last] ^= 1;
        for frame in [altered, vec![0x64, 2, 0x50, 0], vec![0x80, 1, 1]] {
            send_frame(&mut forwarder, |out| out.extend_from_slice(&frame));
        }
        send_frame(&mut forwarder, |out| data.write(out, 0, None));
        send_frame(&mut forwarder, |out| data.write(out, 0, token(1)));
        send_frame(&mut forwarder, |out| data.write(out, 0, token(0)));
        send_frame(&mut forwarder, |out| data.write(out, 0, token(0)));
        send_frame(&mut forwarder, |out| {
            tlv::write_nested(out, types::LP_PACKET, |out| {
                tlv::write_nested(out, types::LP_NACK, |out| {
                    tlv::write_nni(out, types::LP_NACK_REASON, 50);
                });
                // The token and the fragment as they came.
                let value = tlv::read_single(&asked[1], types::LP_PACKET).expect("framed");
                out.extend_from_slice(value);
            });
        });
        flow.serve_consumer(MonoNs(101)).expect("open");
        let expected = Counters {
            n_sent: 4,
            n_exchanges: 1,
            n_nacks_by_code: BTreeMap::from([(50, 1)]),
            n_wrong_data: 1,
            n_wrong_tokens: 2,
            n_late: 1,
            n_unexpected: 2,
            ..Counters::default()
        };
        assert_eq!(*flow.counters(), expected);
        assert_eq!(flow.latencies().max_ns(), 100);
        assert!(!flow.is_done());
        flow.expire(MonoNs(1_000_000_001));
        assert_eq!(flow.counters().n_timed_out, 2);
        assert!(flow.is_done());
    }

    #[test]
    fn the_producer_answers_its_own_interests_with_their_tokens() {
        let (mut flow, _forwarder, mut upstream) = flow(Mode::Miss, None);
        let template = InterestTemplate::new(
            flow.prefix(),
            InterestShape {
                lifetime_ms: 1,
                must_be_fresh: true,
                token_bytes: Some(6),
            },
        );
        send_frame(&mut upstream, |out| template.write(out, 7, 1));
        send_frame(&mut upstream, |out| {
            out.extend_from_slice(&[5, 4, 7, 2, 8, 0])
        });
        flow.serve_producer().expect("open");
        let replies = read_frames(&mut upstream);
        assert_eq!(replies.len(), 1);
        let reply = Frame::parse(&replies[0]).expect("well-formed");
        assert_eq!(flow.data.number_of_data(reply.payload), Some(7));
        assert!(
            reply
                .token
                .is_some_and(|token| token.len() == 6 && is_token_of(token, 7))
        );
        let counters = flow.counters();
        assert_eq!((counters.n_produced, counters.n_unexpected), (1, 1));
    }
}
