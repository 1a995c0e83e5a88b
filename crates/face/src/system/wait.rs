//! Waits that gather packets, and what a wait costs.

use std::io;
use std::time::Duration;

use super::FaceSystem;

impl FaceSystem {
    /// Sleeps for `duration`, so that packets gather in the sockets. A [`crate::Waker`], a
    /// timer, or packets that [`poll`](Self::poll) has left over end the sleep early; a
    /// signal may.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub fn gather(&mut self, duration: Duration) -> io::Result<()> {
        let has_more =
            self.poller.has_ready() || !self.unread.is_empty() || !self.events.is_empty();
        let duration = match self.until_timer(Some(duration)) {
            Some(duration) if !has_more && !duration.is_zero() => duration,
            _ => return Ok(()),
        };
        self.counters.n_poll_syscalls += 1;
        self.waker.sleep(duration)
    }

    /// Measures the CPU time of the next wait in [`poll`](Self::poll).
    pub fn measure_next_wait(&mut self) {
        self.is_next_wait_measured = true;
    }

    /// The CPU time of the latest wait in nanoseconds, if it was measured.
    pub fn take_wait_cpu_ns(&mut self) -> Option<u64> {
        self.wait_cpu_ns.take()
    }
}
