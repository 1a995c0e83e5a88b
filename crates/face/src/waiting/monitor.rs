//! Watching one cache line instead of polling.
//!
//! Some processors can wait until a cache line is written: with `UMWAIT` or `MWAITX` a core
//! rests, and goes on within about a microsecond of the write. That replaces the polling of a
//! thread that takes all its packets from rings. The line is that of its [`WaitFlag`], to
//! which every thread writes that has put something into one of the rings.
//!
//! A socket writes to no line, so a thread that receives from sockets polls as before: while
//! it rested, its packets would wait. Descriptors that such a thread waits for beside its
//! rings (jobs of other threads, completions of a disk) are seen when the watch ends, after
//! the time of polling at the latest: that is not longer than a wake-up takes.
//!
//! The processor is asked once, at start. Where it has neither instruction, nothing changes.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::sys::monitor::{Instructions, Pair};

/// Longest watch, in nanoseconds: a bound, should a write be missed.
pub(super) const MAX_WATCH_NS: u64 = 100_000;
/// A shorter time is polled through: entering and leaving a watch takes about as long.
pub(super) const MIN_WATCH_NS: u64 = 1_000;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const WATCHING: u32 = 2;

/// What a thread does with its rings, for those that put packets into them.
///
/// Before it waits, a thread [notes](Self::note_asleep) that, and looks into its rings once
/// more. A sender fills a ring and then [calls](Self::call). By the two fences either the
/// thread sees the packet or the sender sees that it waits.
#[derive(Debug, Default)]
pub struct WaitFlag(AtomicU32);

/// How a thread watches a cache line, if it can.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Means);

/// Which instruction a [`Monitor`] waits with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonitorKind {
    /// None: the thread polls.
    #[default]
    None,
    /// `UMWAIT`.
    Umwait,
    /// `MWAITX`.
    Mwaitx,
}

#[derive(Clone, Debug, Default)]
enum Means {
    #[default]
    None,
    Hardware(Instructions),
    #[cfg(test)]
    Fake(std::sync::Arc<tests::Fake>),
}

impl MonitorKind {
    /// Its name: `none`, `umwait` or `mwaitx`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Umwait => "umwait",
            Self::Mwaitx => "mwaitx",
        }
    }
}

impl WaitFlag {
    /// The thread is about to wait in epoll, unless there is something in its rings by now:
    /// it has to look.
    pub fn note_asleep(&self) {
        self.note(ASLEEP);
    }

    /// The thread is about to watch this flag, unless there is something in its rings by now:
    /// it has to look.
    pub fn note_watching(&self) {
        self.note(WATCHING);
    }

    fn note(&self, state: u32) {
        self.0.store(state, Ordering::Relaxed);
        // Either the thread sees what is in its rings, or the sender sees this state.
        fence(Ordering::SeqCst);
    }

    /// The thread does not wait any more.
    pub fn note_awake(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    /// Ends a watch. Whether the thread waits in epoll instead and has to be woken there. The
    /// caller has put something into a ring of the thread, and then has had a fence.
    pub fn call(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            ASLEEP => true,
            WATCHING => {
                // If this fails, the thread has ended the watch and looks into its rings. A
                // plain store could overwrite that it sleeps by now.
                let (old, new) = (WATCHING, AWAKE);
                let relaxed = Ordering::Relaxed;
                let _ = self.0.compare_exchange(old, new, relaxed, relaxed);
                false
            }
            _ => false,
        }
    }

    fn is_watching(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WATCHING
    }
}

impl Monitor {
    /// What this processor has.
    #[must_use]
    pub fn detect() -> Self {
        Self(Instructions::detect().map_or(Means::None, Means::Hardware))
    }

    /// With which instruction it waits.
    #[must_use]
    pub fn kind(&self) -> MonitorKind {
        match &self.0 {
            Means::None => MonitorKind::None,
            Means::Hardware(instructions) => match instructions.pair() {
                Pair::Umwait => MonitorKind::Umwait,
                Pair::Mwaitx => MonitorKind::Mwaitx,
            },
            #[cfg(test)]
            Means::Fake(_) => MonitorKind::Umwait,
        }
    }

    /// Waits until another thread [calls](WaitFlag::call) the one of this flag, which has
    /// [noted](WaitFlag::note_watching) that it watches; for `ns` at most. It may return
    /// early.
    pub fn watch(&self, flag: &WaitFlag, ns: u64) {
        self.arm(flag);
        // A write from here on ends the wait; one before is seen now.
        if flag.is_watching() {
            self.wait(flag, ns.min(MAX_WATCH_NS));
        }
    }

    fn arm(&self, flag: &WaitFlag) {
        match &self.0 {
            Means::None => {}
            Means::Hardware(instructions) => instructions.arm(&flag.0),
            #[cfg(test)]
            Means::Fake(fake) => fake.arm(flag),
        }
    }

    fn wait(&self, flag: &WaitFlag, ns: u64) {
        match &self.0 {
            Means::None => {}
            Means::Hardware(instructions) => instructions.wait(ns),
            #[cfg(test)]
            Means::Fake(fake) => fake.wait(flag, ns),
        }
        #[cfg(not(test))]
        let _ = flag;
    }
}

#[cfg(test)]
pub(super) mod tests;
