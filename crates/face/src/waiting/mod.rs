//! How a receive loop waits: it polls again, gathers packets, or blocks.
//!
//! A pure state machine, one for each loop. The caller gives it the time and the number of
//! packets so far, and carries out what [`Waiting::next`] returns:
//!
//! - [`Wait::Poll`]: polls without blocking. After the last packet this lasts for about as
//!   long as a wake-up costs, where packets mostly arrive within that time.
//! - [`Wait::Watch`]: the same, but the core rests until another thread calls this one. For
//!   threads that take all their packets from rings, on processors that can: see [`Monitor`].
//! - [`Wait::Gather`]: sleeps for a given time, whatever arrives meanwhile, then polls. Under
//!   middling load one wake-up then serves many packets.
//! - [`Wait::Block`]: waits in epoll for the first packet or timer.
//!
//! Without packets the loop always ends in `Block`, so an idle loop costs no CPU time.

mod gather;
mod monitor;
mod spin;

use tachonym_packet::MonoNs;

use self::gather::Gathering;
use self::monitor::{MAX_WATCH_NS, MIN_WATCH_NS};
pub use self::monitor::{Monitor, MonitorKind, WaitFlag};
use self::spin::Spinning;

/// A wait in epoll that returns faster than this, in nanoseconds, did not block.
const IMMEDIATE_NS: u64 = 1_500;
/// One in this number of blocking waits is measured by the clock of CPU time.
const WAITS_BY_SAMPLE: u64 = 64;

/// Bounds of [`Waiting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingLimits {
    /// Longest time that packets are gathered; 0: never.
    pub max_gather_ns: u64,
    /// Longest time that the loop polls without packets before it blocks; 0: it blocks at
    /// once.
    pub max_spin_ns: u64,
}

/// What a receive loop does next when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Polls without blocking.
    Poll,
    /// Watches the thread's [`WaitFlag`] by its [`Monitor`], then polls without blocking.
    Watch {
        /// Nanoseconds after which the watch ends.
        ns: u64,
    },
    /// Sleeps for `ns`, whatever arrives meanwhile, then polls without blocking.
    Gather {
        /// Nanoseconds to sleep.
        ns: u64,
    },
    /// Blocks until something arrives or a timer is due.
    Block,
}

/// What a loop has learned, and what it has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingStatus {
    /// Time that the loop polls without packets before it blocks; 0: it blocks at once.
    pub spin_ns: u64,
    /// Time for which packets are gathered now; 0: they are not.
    pub gather_ns: u64,
    /// CPU time of one wake-up, as measured.
    pub wake_cost_ns: u64,
    /// Waits that blocked.
    pub n_wakeups: u64,
    /// Waits that gathered.
    pub n_gathers: u64,
    /// By what the loop watches its rings while it polls.
    pub monitor: MonitorKind,
}

/// The state machine of one receive loop.
#[derive(Clone, Debug)]
pub struct Waiting {
    spin: Spinning,
    gather: Gathering,
    monitor: Monitor,
    /// What the loop does at present.
    current: Wait,
    n_pkts: u64,
    /// Start of the gap without packets.
    gap_since: MonoNs,
    /// The loop has blocked in this gap.
    has_blocked: bool,
    /// The loop has polled without packets in this gap.
    has_polled: bool,
    wait_began: MonoNs,
    wait_ended: MonoNs,
    n_wakeups: u64,
    n_gathers: u64,
}

impl Waiting {
    /// A loop that starts `now` and has received nothing. It has no monitor.
    #[must_use]
    pub fn new(limits: WaitingLimits, now: MonoNs) -> Self {
        Self {
            spin: Spinning::new(limits.max_spin_ns),
            gather: Gathering::new(limits.max_gather_ns, now),
            monitor: Monitor::default(),
            current: Wait::Poll,
            n_pkts: 0,
            gap_since: now,
            has_blocked: false,
            has_polled: false,
            wait_began: now,
            wait_ended: now,
            n_wakeups: 0,
            n_gathers: 0,
        }
    }

    /// The same for a loop that takes all its packets from rings.
    #[must_use]
    pub fn with_monitor(mut self, monitor: Monitor) -> Self {
        self.monitor = monitor;
        self
    }

    /// What carries out a [`Wait::Watch`].
    #[must_use]
    pub const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// How to wait `now`, after `n_pkts` packets since the start. Without `may_wait` there is
    /// other work, and the answer is [`Wait::Poll`]. `cpu_ns` reads the CPU time of the
    /// thread; it is called every few milliseconds at most.
    pub fn next(
        &mut self,
        now: MonoNs,
        n_pkts: u64,
        may_wait: bool,
        cpu_ns: impl FnOnce() -> u64,
    ) -> Wait {
        let n_new = n_pkts.wrapping_sub(self.n_pkts);
        self.n_pkts = n_pkts;
        self.gather
            .note(now, self.wait_ended, n_new, self.current, cpu_ns);
        if n_new > 0 {
            self.note_gap();
            self.gap_since = now;
            (self.has_blocked, self.has_polled) = (false, false);
        }
        self.wait_began = now;
        self.current = match may_wait {
            false => Wait::Poll,
            true => self.decide(now, n_new),
        };
        match self.current {
            Wait::Gather { .. } => self.n_gathers += 1,
            Wait::Block => self.has_blocked = true,
            Wait::Poll | Wait::Watch { .. } => {}
        }
        self.current
    }

    fn decide(&mut self, now: MonoNs, n_new: u64) -> Wait {
        if n_new > 0
            && let Some(wait) = self.gather.plan(now, n_new)
        {
            return wait;
        }
        let elapsed_ns = now.saturating_since(self.gap_since).as_nanos() as u64;
        let left_ns = self.spin_ns().saturating_sub(elapsed_ns);
        if left_ns > 0 && !self.has_blocked {
            self.has_polled = true;
            return match self.monitor.kind() {
                MonitorKind::None => Wait::Poll,
                _ if left_ns < MIN_WATCH_NS => Wait::Poll,
                _ => Wait::Watch {
                    ns: left_ns.min(MAX_WATCH_NS),
                },
            };
        }
        Wait::Block
    }

    /// The wait that [`next`](Self::next) returned has ended.
    pub fn ended(&mut self, now: MonoNs) {
        self.wait_ended = now;
        let waited_ns = now.saturating_since(self.wait_began).as_nanos() as u64;
        if self.current == Wait::Block && waited_ns >= IMMEDIATE_NS {
            self.n_wakeups += 1;
        }
    }

    /// Whether the caller measures the CPU time of the wait that comes next.
    #[must_use]
    pub fn wants_wake_cost(&self) -> bool {
        self.current == Wait::Block && self.n_wakeups.is_multiple_of(WAITS_BY_SAMPLE)
    }

    /// The wait that has just ended took so much CPU time of the thread.
    pub fn note_wake_cost(&mut self, cpu_ns: u64) {
        let waited_ns = self.wait_ended.saturating_since(self.wait_began);
        if waited_ns.as_nanos() >= IMMEDIATE_NS.into() {
            self.spin.note_wake_cost(cpu_ns);
        }
    }

    /// Learns from the gap that the latest packets have ended.
    fn note_gap(&mut self) {
        if matches!(self.current, Wait::Gather { .. }) {
            return;
        }
        let gap_ns = self.wait_ended.saturating_since(self.gap_since);
        let gap_ns = gap_ns.as_nanos() as u64;
        if gap_ns < IMMEDIATE_NS {
            // They had arrived before the loop looked.
            return;
        }
        match self.has_blocked {
            // It polled first, and nothing came within that time.
            true if self.has_polled => self.spin.note_miss(),
            true => self
                .spin
                .note_gap(gap_ns.saturating_sub(self.spin.wake_cost_ns())),
            false => self.spin.note_gap(gap_ns),
        }
    }

    fn spin_ns(&self) -> u64 {
        match self.gather.is_on() {
            true => 0,
            false => self.spin.limit_ns(),
        }
    }

    /// What has been learned, and the counters.
    #[must_use]
    pub fn status(&self) -> WaitingStatus {
        WaitingStatus {
            spin_ns: self.spin_ns(),
            gather_ns: self.gather.gather_ns(),
            wake_cost_ns: self.spin.wake_cost_ns(),
            n_wakeups: self.n_wakeups,
            n_gathers: self.n_gathers,
            monitor: self.monitor.kind(),
        }
    }
}

#[cfg(test)]
mod tests;
