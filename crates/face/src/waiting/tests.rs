//! The state machine against sources of packets on a virtual clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::monitor::tests::{Fake, Write, fake};
use super::*;

/// Time that the loop needs for a round, for a packet, and from an arrival to its wake-up.
const ROUND_NS: u64 = 1_000;
const PKT_NS: u64 = 600;
const WAKE_NS: u64 = 4_000;
/// CPU time of a wait that blocks, and of a sleep.
const BLOCK_CPU_NS: u64 = 4_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A loop, and the packets that are on their way to it.
struct Bed {
    waiting: Waiting,
    now: u64,
    cpu_ns: u64,
    sleep_cpu_ns: u64,
    n_watches: u64,
    n_pkts: u64,
    arrivals: BinaryHeap<Reverse<(u64, Source)>>,
    longest_delay_ns: u64,
    random: u64,
}

/// Where a packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// At a mean interval, whatever becomes of the packets.
    Rate(u64),
    /// A packet this long after the one before was processed.
    Window(u64),
}

impl Bed {
    fn new(max_gather_us: u64, max_spin_us: u64) -> Self {
        let limits = WaitingLimits {
            max_gather_ns: max_gather_us * 1_000,
            max_spin_ns: max_spin_us * 1_000,
        };
        Self {
            waiting: Waiting::new(limits, MonoNs(0)),
            now: 0,
            cpu_ns: 0,
            sleep_cpu_ns: BLOCK_CPU_NS,
            n_watches: 0,
            n_pkts: 0,
            arrivals: BinaryHeap::new(),
            longest_delay_ns: 0,
            random: 1,
        }
    }

    fn add(&mut self, source: Source, n_packets: u64) {
        for _ in 0..n_packets {
            self.arrivals.push(Reverse((self.now + 1, source)));
        }
    }

    /// From 0 to 2 by steps of a linear congruential generator; the mean is 1.
    fn draw(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 32) as f64 / f64::from(1_u32 << 31)
    }

    /// Packets and wake-ups within `ns`.
    fn run(&mut self, ns: u64) -> (u64, u64) {
        let (until, before, n_before) = (self.now + ns, self.waiting.status(), self.n_pkts);
        while self.now < until {
            let cpu_ns = self.cpu_ns;
            match self
                .waiting
                .next(MonoNs(self.now), self.n_pkts, true, || cpu_ns)
            {
                Wait::Poll => {}
                // A packet in a ring ends the watch, without a wake-up.
                Wait::Watch { ns } => {
                    assert!((MIN_WATCH_NS..=MAX_WATCH_NS).contains(&ns));
                    self.n_watches += 1;
                    let next = self.arrivals.peek().map_or(until, |it| it.0.0);
                    self.now = next.clamp(self.now, self.now + ns);
                }
                Wait::Gather { ns } => {
                    assert!(ns <= 100_000);
                    self.now += ns;
                    self.cpu_ns += self.sleep_cpu_ns;
                }
                Wait::Block => {
                    let next = self.arrivals.peek().map_or(until, |it| it.0.0);
                    if next > self.now {
                        self.now = next.min(until) + WAKE_NS;
                        self.cpu_ns += BLOCK_CPU_NS;
                    }
                }
            }
            self.now += ROUND_NS / 2;
            self.waiting.ended(MonoNs(self.now));
            self.now += ROUND_NS / 2;
            self.cpu_ns += ROUND_NS;
            self.take_burst();
        }
        let after = self.waiting.status();
        let n_wakeups = |status: WaitingStatus| status.n_wakeups + status.n_gathers;
        (self.n_pkts - n_before, n_wakeups(after) - n_wakeups(before))
    }

    fn take_burst(&mut self) {
        let seen_at = self.now;
        for _ in 0..64 {
            let Some(&Reverse((at, source))) = self.arrivals.peek() else {
                return;
            };
            if at > seen_at {
                return;
            }
            self.arrivals.pop();
            self.n_pkts += 1;
            self.now += PKT_NS;
            self.cpu_ns += PKT_NS;
            self.longest_delay_ns = self.longest_delay_ns.max(self.now - at);
            let next = match source {
                Source::Rate(interval_ns) => at + (self.draw() * interval_ns as f64) as u64,
                Source::Window(ns) => self.now + ns,
            };
            self.arrivals.push(Reverse((next, source)));
        }
    }
}

#[test]
fn without_packets_the_loop_blocks() {
    let mut waiting = Bed::new(100, 20).waiting;
    for round in 0..10_000 {
        let now = MonoNs(round * 1_000_000);
        assert_eq!(waiting.next(now, 0, true, || 0), Wait::Block);
        waiting.ended(now);
    }
    assert_eq!(
        (waiting.status().spin_ns, waiting.status().gather_ns),
        (0, 0)
    );
}

#[test]
fn other_work_is_never_made_to_wait() {
    let mut waiting = Bed::new(100, 20).waiting;
    assert_eq!(waiting.next(MonoNs(1), 5, false, || 0), Wait::Poll);
}

#[test]
fn packets_at_a_rate_are_gathered_within_the_bound() {
    let mut plain = Bed::new(0, 0);
    plain.add(Source::Rate(10_000), 1);
    let (n_plain, plain_wakeups) = plain.run(2 * SECOND_NS);
    let mut gathered = Bed::new(100, 0);
    gathered.add(Source::Rate(10_000), 1);
    let (n_gathered, gathered_wakeups) = gathered.run(2 * SECOND_NS);
    assert!(gathered.waiting.status().n_gathers > 1_000);
    assert!(n_gathered as f64 > 0.98 * n_plain as f64);
    assert!(
        5 * gathered_wakeups < plain_wakeups,
        "{gathered_wakeups} of {plain_wakeups}"
    );
    assert!(gathered.longest_delay_ns < 200_000);
}

#[test]
fn a_sleep_that_costs_more_than_it_saves_ends_the_gathering() {
    let mut bed = Bed::new(100, 0);
    bed.sleep_cpu_ns = 33_000;
    bed.add(Source::Rate(10_000), 1);
    bed.run(2 * SECOND_NS);
    let n_gathers = bed.waiting.status().n_gathers;
    bed.run(2 * SECOND_NS);
    // Of 20,000 that there was time for.
    assert!(bed.waiting.status().n_gathers - n_gathers < 400);
}

#[test]
fn transfers_with_a_window_are_hardly_slowed_down() {
    for (window, answer_ns) in [
        (1, 12_000),
        (1, 60_000),
        (2, 20_000),
        (8, 12_000),
        (8, 40_000),
    ] {
        let mut plain = Bed::new(0, 0);
        plain.add(Source::Window(answer_ns), window);
        let (n_plain, _) = plain.run(SECOND_NS);
        let mut gathered = Bed::new(100, 0);
        gathered.add(Source::Window(answer_ns), window);
        let (n_gathered, _) = gathered.run(SECOND_NS);
        let kept = n_gathered as f64 / n_plain as f64;
        assert!(kept > 0.95, "window {window}, {answer_ns} ns: {kept}");
    }
}

#[test]
fn a_window_after_a_rate_ends_the_gathering() {
    let mut bed = Bed::new(100, 0);
    bed.add(Source::Rate(10_000), 1);
    bed.run(2 * SECOND_NS);
    assert!(bed.waiting.status().n_gathers > 1_000);
    bed.arrivals.clear();
    bed.add(Source::Window(20_000), 8);
    bed.run(2 * SECOND_NS);
    let (n_pkts, _) = bed.run(SECOND_NS);
    let mut plain = Bed::new(0, 0);
    plain.add(Source::Window(20_000), 8);
    let (n_plain, _) = plain.run(SECOND_NS);
    assert!(
        n_pkts as f64 > 0.95 * n_plain as f64,
        "{n_pkts} of {n_plain}"
    );
}

#[test]
fn a_full_load_is_not_gathered() {
    let mut bed = Bed::new(100, 0);
    bed.add(Source::Window(1_000), 64);
    let (n_pkts, _) = bed.run(SECOND_NS);
    let mut plain = Bed::new(0, 0);
    plain.add(Source::Window(1_000), 64);
    let (n_plain, _) = plain.run(SECOND_NS);
    assert!(
        n_pkts as f64 > 0.97 * n_plain as f64,
        "{n_pkts} of {n_plain}"
    );
}

#[test]
fn gaps_shorter_than_a_wake_up_are_polled_through() {
    let mut bed = Bed::new(0, 20);
    bed.add(Source::Window(1_600), 1);
    bed.run(SECOND_NS / 10);
    assert_eq!(bed.waiting.status().spin_ns, 5_000);
    let (_, n_wakeups) = bed.run(SECOND_NS / 10);
    assert_eq!(n_wakeups, 0);
    bed.arrivals.clear();
    bed.add(Source::Window(100_000), 1);
    bed.run(SECOND_NS / 10);
    assert_eq!(bed.waiting.status().spin_ns, 0);
}

#[test]
fn a_measured_wake_up_moves_the_learned_cost() {
    let mut waiting = Bed::new(0, 20).waiting;
    let mut now = MonoNs(0);
    for n_pkts in 0..2_000 {
        waiting.next(now, n_pkts, true, || 0);
        let is_sample = waiting.wants_wake_cost();
        now = MonoNs(now.0 + 100_000);
        waiting.ended(now);
        if is_sample {
            waiting.note_wake_cost(9_000);
        }
    }
    assert!(waiting.status().wake_cost_ns > 8_000);
}

#[test]
fn with_a_monitor_short_gaps_are_watched_through() {
    let run = |monitor: Monitor| {
        let mut bed = Bed::new(0, 20);
        bed.waiting = bed.waiting.with_monitor(monitor);
        bed.add(Source::Window(1_600), 1);
        bed.run(SECOND_NS / 10);
        bed.n_watches = 0;
        let (n_pkts, n_wakeups) = bed.run(SECOND_NS / 10);
        assert_eq!((bed.waiting.status().spin_ns, n_wakeups), (5_000, 0));
        (bed, n_pkts)
    };
    let (mut plain, n_plain) = run(Monitor::default());
    let (mut watching, n_watching) = run(fake(&Fake::new(Write::Never)));
    assert_eq!(plain.n_watches, 0);
    // One watch for each packet. It ends with the arrival, and a round follows.
    assert!(watching.n_watches.abs_diff(n_watching) <= 1);
    assert!(4 * n_watching > 3 * n_plain, "{n_watching} of {n_plain}");
    // Packets at long intervals are waited for in epoll by both.
    for bed in [&mut plain, &mut watching] {
        bed.arrivals.clear();
        bed.add(Source::Window(100_000), 1);
        bed.run(SECOND_NS / 10);
        assert_eq!(bed.waiting.status().spin_ns, 0);
        bed.n_watches = 0;
        let (n_pkts, n_wakeups) = bed.run(SECOND_NS / 10);
        assert!(bed.n_watches == 0 && n_wakeups >= n_pkts);
    }
}

#[test]
fn a_watch_ends_with_the_time_of_polling_and_blocking_follows() {
    let counter = Fake::new(Write::Never);
    let mut waiting = Bed::new(0, 20).waiting.with_monitor(fake(&counter));
    let flag = WaitFlag::default();
    let (mut now, mut n_pkts) = (0, 0);
    while waiting.status().spin_ns == 0 {
        n_pkts += 1;
        waiting.next(MonoNs(now), n_pkts, true, || 0);
        now += 2_000;
        waiting.ended(MonoNs(now));
        assert!(n_pkts < 1_000);
    }
    assert_eq!(waiting.next(MonoNs(now), n_pkts, false, || 0), Wait::Poll);
    // The gap has begun `n_pkts` packets ago, and a new one begins with this one.
    let wait = waiting.next(MonoNs(now), n_pkts + 1, true, || 0);
    assert_eq!(wait, Wait::Watch { ns: 5_000 });
    flag.note_watching();
    waiting.monitor().watch(&flag, 5_000);
    assert_eq!(
        counter.n_waits.load(std::sync::atomic::Ordering::Relaxed),
        1
    );
    now += 4_500;
    waiting.ended(MonoNs(now));
    // Too little is left to rest.
    let wait = waiting.next(MonoNs(now), n_pkts + 1, true, || 0);
    assert_eq!(wait, Wait::Poll);
    now += 500;
    waiting.ended(MonoNs(now));
    let wait = waiting.next(MonoNs(now), n_pkts + 1, true, || 0);
    assert_eq!(wait, Wait::Block);
}
