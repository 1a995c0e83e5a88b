//! How much of its time a thread works.

use tachonym_face::monotonic_now;
use tachonym_packet::MonoNs;

/// Over how long it is told how busy a thread is, in nanoseconds.
const BUSY_WINDOW_NS: u64 = 1_000_000_000;

/// How much of its time a thread does not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    since: MonoNs,
    waited_ns: u64,
    /// Since the thread began.
    began: MonoNs,
    all_waited_ns: u64,
    /// Of the last whole window.
    pub(crate) permille: u64,
}

impl Busy {
    /// From now on.
    pub(crate) fn new() -> Self {
        let now = monotonic_now();
        Self {
            since: now,
            waited_ns: 0,
            began: now,
            all_waited_ns: 0,
            permille: 0,
        }
    }

    /// By `now` the thread has waited for so long since it was last told.
    pub(crate) fn note(&mut self, waited_ns: u64, now: MonoNs) {
        self.waited_ns += waited_ns;
        self.all_waited_ns += waited_ns;
        let window_ns = now.saturating_since(self.since).as_nanos() as u64;
        if window_ns >= BUSY_WINDOW_NS {
            let busy_ns = window_ns.saturating_sub(self.waited_ns);
            self.permille = busy_ns.saturating_mul(1_000) / window_ns;
            (self.since, self.waited_ns) = (now, 0);
        }
    }

    /// How long the thread has not waited until `now`, since it began.
    pub(crate) const fn busy_ns(&self, now: MonoNs) -> u64 {
        now.0
            .saturating_sub(self.began.0)
            .saturating_sub(self.all_waited_ns)
    }
}
