//! The order of arming, checking and waiting, by a monitor that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// When a test writes to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// The test does so by itself, or never.
    Never,
    /// As soon as the line is watched.
    WhenArmed,
    /// While the thread waits.
    WhileWaiting,
}

/// A monitor in software.
#[derive(Debug)]
pub(crate) struct Fake {
    write: Write,
    /// Waits that nothing ends but a write.
    is_unbounded: bool,
    is_armed: AtomicBool,
    pub(crate) n_arms: AtomicU64,
    pub(crate) n_waits: AtomicU64,
    /// The longest time that was asked for.
    pub(crate) longest_ns: AtomicU64,
}

impl Fake {
    pub(crate) fn new(write: Write) -> Arc<Self> {
        Arc::new(Self {
            write,
            is_unbounded: false,
            is_armed: AtomicBool::new(false),
            n_arms: AtomicU64::new(0),
            n_waits: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        })
    }

    pub(super) fn arm(&self, flag: &WaitFlag) {
        self.is_armed.store(true, Ordering::Relaxed);
        self.n_arms.fetch_add(1, Ordering::Relaxed);
        if self.write == Write::WhenArmed {
            assert!(!flag.call());
        }
    }

    pub(super) fn wait(&self, flag: &WaitFlag, ns: u64) {
        assert!(self.is_armed.swap(false, Ordering::Relaxed), "armed first");
        self.n_waits.fetch_add(1, Ordering::Relaxed);
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
        if self.write == Write::WhileWaiting {
            assert!(!flag.call());
        }
        let began = Instant::now();
        while self.is_unbounded && flag.is_watching() {
            assert!(began.elapsed() < Duration::from_secs(30), "a lost call");
            thread::yield_now();
        }
    }

    fn counts(&self) -> (u64, u64) {
        let n_arms = self.n_arms.load(Ordering::Relaxed);
        (n_arms, self.n_waits.load(Ordering::Relaxed))
    }
}

pub(crate) fn fake(fake: &Arc<Fake>) -> Monitor {
    Monitor(Means::Fake(Arc::clone(fake)))
}

#[test]
fn a_write_before_the_wait_is_seen_by_the_check() {
    let counter = Fake::new(Write::WhenArmed);
    let flag = WaitFlag::default();
    flag.note_watching();
    fake(&counter).watch(&flag, 5_000);
    assert_eq!(counter.counts(), (1, 0));

    let counter = Fake::new(Write::Never);
    flag.note_watching();
    assert!(!flag.call());
    fake(&counter).watch(&flag, 5_000);
    assert_eq!(counter.counts(), (1, 0));
}

#[test]
fn without_a_write_the_watch_waits_within_its_bound() {
    let counter = Fake::new(Write::Never);
    let flag = WaitFlag::default();
    flag.note_watching();
    fake(&counter).watch(&flag, 5_000);
    assert_eq!(counter.counts(), (1, 1));
    assert_eq!(counter.longest_ns.load(Ordering::Relaxed), 5_000);
    fake(&counter).watch(&flag, u64::MAX);
    assert_eq!(counter.longest_ns.load(Ordering::Relaxed), MAX_WATCH_NS);
    assert!(flag.is_watching());
}

#[test]
fn a_call_writes_the_line_of_a_watch_and_wakes_a_sleeper() {
    let counter = Fake::new(Write::WhileWaiting);
    let flag = WaitFlag::default();
    assert!(!flag.call());
    flag.note_watching();
    fake(&counter).watch(&flag, 5_000);
    assert!(!flag.is_watching());
    flag.note_asleep();
    // As often as it is asked: it does not wake by itself.
    assert!(flag.call() && flag.call());
    flag.note_awake();
    assert!(!flag.call());
}

#[test]
fn no_call_is_lost_between_two_threads() {
    const N_ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let counter = Arc::new(Fake {
        is_unbounded: true,
        ..Arc::into_inner(Fake::new(Write::Never)).expect("the only one")
    });
    let (flag, ring) = (Arc::new(WaitFlag::default()), Arc::new(AtomicU64::new(0)));
    let sender = thread::spawn({
        let (flag, ring) = (Arc::clone(&flag), Arc::clone(&ring));
        move || {
            for number in 1..=N_ROUNDS {
                // The former packet was taken: the thread waits, or is about to.
                while ring.load(Ordering::Acquire) != 0 {
                    thread::yield_now();
                }
                ring.store(number, Ordering::Release);
                fence(Ordering::SeqCst);
                assert!(!flag.call(), "it watches, and does not sleep");
            }
        }
    });
    let monitor = fake(&counter);
    let mut n_taken = 0;
    while n_taken < N_ROUNDS {
        flag.note_watching();
        if ring.load(Ordering::Acquire) == 0 {
            monitor.watch(&flag, MAX_WATCH_NS);
        }
        flag.note_awake();
        let number = ring.swap(0, Ordering::AcqRel);
        if number != 0 {
            n_taken += 1;
            assert_eq!(number, n_taken);
        }
    }
    sender.join().expect("all was sent");
    assert!(counter.counts().0 > 0);
}

#[test]
fn a_watch_of_this_processor_ends_in_time() {
    let monitor = Monitor::detect();
    let flag = WaitFlag::default();
    let began = Instant::now();
    for _ in 0..20 {
        flag.note_watching();
        monitor.watch(&flag, 50_000);
    }
    // Nothing writes, so only the bound can end a watch: 1 ms in all, far from this.
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn each_kind_has_its_name() {
    let kinds = [MonitorKind::None, MonitorKind::Umwait, MonitorKind::Mwaitx];
    assert_eq!(kinds.map(MonitorKind::as_str), ["none", "umwait", "mwaitx"]);
    assert_eq!(Monitor::default().kind(), MonitorKind::None);
}
