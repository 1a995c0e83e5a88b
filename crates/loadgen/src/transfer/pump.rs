//! One transfer: a producer that answers, and a consumer that asks as fast as
//! its window and its pace allow.
//!
//! Which segment to ask for is the client library's [`Fetcher`], with its
//! congestion window, marks and time-outs; this module adds the sockets and the
//! pace. Refuses to store anything: every segment is compared with what it must
//! be and dropped.

use std::io;
use std::time::{Duration, Instant};

use tachonym_client::fetcher::{Arrival, FetchLimits, Fetcher};
use tachonym_packet::{MonoNs, Name};

use crate::exchange::frame::{Frame, Reassembler};
use crate::exchange::link::{self, Link};
use crate::exchange::template::{DataTemplate, InterestShape, InterestTemplate};

/// A pace lets this much time's worth of segments go at once, and always
/// [`MIN_BURST`].
const MAX_BURST_TIME: Duration = Duration::from_micros(500);
const MIN_BURST: f64 = 2.0;
/// Code of a Nack for congestion (NDNLPv2).
const CONGESTION: u64 = 50;
/// Lifetime of an Interest: longer than any time-out of the fetcher, so that
/// a repeated one is a retransmission and no new request.
const LIFETIME_MS: u64 = 4_000;

/// What to transfer, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) n_segments: u64,
    /// Content of each segment in bytes.
    pub(crate) segment_bytes: usize,
    /// Content bytes per second at most; `None`: as fast as it goes.
    pub(crate) rate: Option<u64>,
    /// Most segments in flight.
    pub(crate) max_window: usize,
    /// Gives up after this time.
    pub(crate) patience: Duration,
    pub(crate) seed: u64,
}

/// A transfer under way.
pub(crate) struct Pump {
    consumer: Link,
    producer: Link,
    plan: Plan,
    producing: DataTemplate,
    asking: Asking,
}

/// The consumer apart from its socket.
struct Asking {
    interest: InterestTemplate,
    data: DataTemplate,
    fetcher: Fetcher,
    last_segment: u64,
    nonce: u32,
    reassembler: Reassembler,
    n_unneeded: u64,
    n_nacks: u64,
    n_unexpected: u64,
}

/// What became of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) is_complete: bool,
    pub(crate) elapsed: Duration,
    pub(crate) counters: tachonym_client::fetcher::FetchCounters,
    pub(crate) window: usize,
    pub(crate) rtt: Duration,
    pub(crate) n_unneeded: u64,
    pub(crate) n_nacks: u64,
    pub(crate) n_unexpected: u64,
}

impl Pump {
    pub(crate) fn new(prefix: &Name, consumer: Link, producer: Link, plan: Plan) -> Self {
        let shape = InterestShape {
            lifetime_ms: LIFETIME_MS,
            must_be_fresh: false,
            token_bytes: None,
        };
        let data = DataTemplate::new(prefix, plan.segment_bytes, 3_600_000, plan.seed);
        let limits = FetchLimits {
            max_window: plan.max_window,
            ..FetchLimits::default()
        };
        Self {
            consumer,
            producer,
            producing: data.clone(),
            asking: Asking {
                interest: InterestTemplate::new(prefix, shape),
                data,
                fetcher: Fetcher::new(limits),
                last_segment: plan.n_segments - 1,
                nonce: plan.seed as u32,
                reassembler: Reassembler::default(),
                n_unneeded: 0,
                n_nacks: 0,
                n_unexpected: 0,
            },
            plan,
        }
    }

    /// Datagrams that the kernel dropped at the two sockets.
    pub(crate) fn dropped_pkts(&self) -> io::Result<u64> {
        Ok(self.consumer.kernel_dropped_pkts()? + self.producer.kernel_dropped_pkts()?)
    }

    /// The producer's link, to take its route back.
    pub(crate) fn producer_mut(&mut self) -> &mut Link {
        &mut self.producer
    }

    /// Carries the transfer to its end, or until nothing more comes.
    pub(crate) fn run(&mut self) -> io::Result<Outcome> {
        let origin = Instant::now();
        let now = || MonoNs::ZERO + origin.elapsed();
        let mut pacer = Pacer::new(self.plan.rate, self.plan.segment_bytes);
        let mut ready = Vec::new();
        while !self.asking.is_over() && origin.elapsed() < self.plan.patience {
            let at = now();
            self.asking.fetcher.handle_timeout(at);
            let wait = self.ask(at, &mut pacer);
            self.consumer.flush()?;
            self.producer.flush()?;
            let links = [&self.consumer, &self.producer].into_iter();
            link::wait(links, wait, &mut ready)?;
            if ready.contains(&1) {
                let producing = &self.producing;
                self.producer.receive(|wire, outbox| {
                    let frame = Frame::parse(wire).unwrap_or_default();
                    if let Some(number) = producing.number_of_interest(frame.payload) {
                        outbox.push(|out| producing.write(out, number, frame.token));
                    }
                })?;
                self.producer.flush()?;
            }
            if ready.contains(&0) {
                let at = now();
                let asking = &mut self.asking;
                self.consumer.receive(|wire, _| asking.accept(at, wire))?;
            }
        }
        let asking = &self.asking;
        Ok(Outcome {
            is_complete: asking.fetcher.is_done(),
            elapsed: origin.elapsed(),
            counters: *asking.fetcher.counters(),
            window: asking.fetcher.window(),
            rtt: asking.fetcher.rtt().smoothed().unwrap_or_default(),
            n_unneeded: asking.n_unneeded,
            n_nacks: asking.n_nacks,
            n_unexpected: asking.n_unexpected,
        })
    }

    /// Sends what window and pace allow, and says how long to wait at most.
    fn ask(&mut self, now: MonoNs, pacer: &mut Pacer) -> Duration {
        let asking = &mut self.asking;
        pacer.refill(now);
        let paused = loop {
            if !pacer.has_credit() {
                break Some(pacer.time_to_credit());
            }
            let Some(segment) = asking.fetcher.poll_transmit(now) else {
                break None;
            };
            pacer.spend();
            asking.nonce = asking.nonce.wrapping_add(1);
            // An odd multiplier keeps 2³² nonces in a row distinct.
            let nonce = asking.nonce.wrapping_mul(0x9E37_79B1);
            let outbox = self.consumer.outbox();
            outbox.push(|out| asking.interest.write(out, segment, nonce));
        };
        let timer = asking.fetcher.poll_timeout();
        let timer = timer.map(|at| at.saturating_since(now));
        let waits = [paused, timer, Some(Duration::from_millis(50))];
        waits.into_iter().flatten().min().unwrap_or_default()
    }
}

impl Asking {
    /// Whether everything is here, or will never be.
    fn is_over(&self) -> bool {
        self.fetcher.is_done() || self.fetcher.gave_up().is_some()
    }

    fn accept(&mut self, now: MonoNs, wire: &[u8]) {
        let Ok(frame) = Frame::parse(wire) else {
            self.n_unexpected += 1;
            return;
        };
        if let Some(code) = frame.nack_code {
            if let Some(segment) = self.data.number_of_interest(frame.payload) {
                self.n_nacks += 1;
                self.fetcher.handle_nack(segment, code == CONGESTION);
            }
        } else if frame.frag_count > 1 {
            if let Some(whole) = self.reassembler.accept(&frame) {
                self.accept_data(now, &whole.packet, whole.is_marked);
            }
        } else {
            self.accept_data(now, frame.payload, frame.is_marked);
        }
    }

    fn accept_data(&mut self, now: MonoNs, packet: &[u8], is_marked: bool) {
        let Some(segment) = self.data.number_of_data(packet) else {
            self.n_unexpected += 1;
            return;
        };
        let last = Some(self.last_segment);
        let arrival = self.fetcher.handle_data(now, segment, last, is_marked);
        self.n_unneeded += u64::from(arrival == Arrival::Unneeded);
    }
}

/// Lets segments go at an even pace.
struct Pacer {
    /// Segments per nanosecond; `None`: no pace.
    per_ns: Option<f64>,
    credit: f64,
    max_credit: f64,
    filled_at: MonoNs,
}

impl Pacer {
    fn new(rate: Option<u64>, segment_bytes: usize) -> Self {
        let per_ns = rate.map(|rate| rate as f64 / segment_bytes.max(1) as f64 / 1e9);
        let burst = per_ns.unwrap_or(0.0) * MAX_BURST_TIME.as_nanos() as f64;
        Self {
            per_ns,
            credit: 1.0,
            max_credit: burst.max(MIN_BURST),
            filled_at: MonoNs::ZERO,
        }
    }

    fn refill(&mut self, now: MonoNs) {
        if let Some(per_ns) = self.per_ns {
            let passed_ns = now.saturating_since(self.filled_at).as_nanos() as f64;
            self.credit = (self.credit + passed_ns * per_ns).min(self.max_credit);
            self.filled_at = now;
        }
    }

    fn has_credit(&self) -> bool {
        self.per_ns.is_none() || self.credit >= 1.0
    }

    fn spend(&mut self) {
        self.credit -= 1.0;
    }

    fn time_to_credit(&self) -> Duration {
        let missing = (1.0 - self.credit).max(0.0);
        let wait_ns = self.per_ns.map_or(0.0, |per_ns| missing / per_ns);
        Duration::from_nanos(wait_ns.ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::address::Transport;

    #[test]
    fn a_pace_is_kept_over_a_second() {
        // 10 MB/s of 8,000 bytes are 1,250 segments a second.
        let mut pacer = Pacer::new(Some(10_000_000), 8_000);
        let mut n_sent = 0;
        for step_us in 0..1_000_000_u64 {
            pacer.refill(MonoNs(step_us * 1_000));
            while pacer.has_credit() {
                pacer.spend();
                n_sent += 1;
            }
        }
        assert!((1_249..=1_252).contains(&n_sent), "{n_sent}");
        assert!(pacer.time_to_credit() <= Duration::from_micros(801));
    }

    #[test]
    fn a_late_wake_up_does_not_bring_a_long_burst() {
        let mut pacer = Pacer::new(Some(1_000_000_000), 8_000);
        pacer.refill(MonoNs(60_000_000_000));
        let mut n_sent = 0;
        while pacer.has_credit() {
            pacer.spend();
            n_sent += 1;
        }
        assert_eq!(n_sent, 62);
        let mut unpaced = Pacer::new(None, 8_000);
        (0..10_000).for_each(|_| unpaced.spend());
        assert!(unpaced.has_credit());
    }

    /// Carries Interests and Data between two links, `drop` of which vanish.
    fn carry(mut a: Link, mut b: Link, mut drop: impl FnMut(usize) -> bool) {
        let mut ready = Vec::new();
        let mut n_carried = 0;
        loop {
            let patience = Duration::from_secs(20);
            if link::wait([&a, &b].into_iter(), patience, &mut ready).is_err() {
                return;
            }
            if ready.contains(&0) && pass(&mut a, &mut b, &mut n_carried, &mut drop).is_err() {
                return;
            }
            if ready.contains(&1) && pass(&mut b, &mut a, &mut n_carried, &mut drop).is_err() {
                return;
            }
        }
    }

    fn pass(
        from: &mut Link,
        to: &mut Link,
        n_carried: &mut usize,
        drop: &mut impl FnMut(usize) -> bool,
    ) -> io::Result<()> {
        from.receive(|wire, _| {
            *n_carried += 1;
            if !drop(*n_carried) {
                to.outbox().push(|out| out.extend_from_slice(wire));
            }
        })?;
        to.flush()
    }

    fn transfer(drop: impl FnMut(usize) -> bool + Send + 'static) -> Outcome {
        let (consumer, a) = Link::pair(Transport::Unix).expect("a pair");
        let (producer, b) = Link::pair(Transport::Unix).expect("a pair");
        let forwarder = std::thread::spawn(move || carry(a, b, drop));
        let plan = Plan {
            n_segments: 500,
            segment_bytes: 1_000,
            rate: None,
            max_window: 64,
            patience: Duration::from_secs(120),
            seed: 5,
        };
        let prefix = Name::new().with("x");
        let mut pump = Pump::new(&prefix, consumer, producer, plan);
        let outcome = pump.run().expect("both ends are open");
        std::mem::drop(pump);
        forwarder.join().expect("it ends with its links");
        outcome
    }

    #[test]
    fn a_clean_path_brings_each_segment_once() {
        let outcome = transfer(|_| false);
        assert!(outcome.is_complete);
        assert_eq!(outcome.counters.n_segments, 500);
        assert_eq!((outcome.n_nacks, outcome.n_unexpected), (0, 0));
    }

    #[test]
    fn what_is_lost_is_counted_and_asked_for_again() {
        // Interests 101, 102 and 103 of the burst vanish.
        let outcome = transfer(|n| (101..=103).contains(&n));
        assert!(outcome.is_complete);
        assert_eq!(outcome.counters.n_segments, 500);
        assert!(outcome.counters.n_losses >= 3);
        assert!(outcome.counters.n_retransmissions >= 3);
    }
}
