//! Waking a face system that waits, from another thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

struct Shared {
    eventfd: OwnedFd,
    /// The eventfd has been written since the wait last ended.
    is_pending: AtomicBool,
}

/// Ends the wait of [`crate::FaceSystem::poll`], the present one or else the
/// next. Cheap to clone; may be used from any thread.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Shared {
            eventfd,
            is_pending: AtomicBool::new(false),
        })))
    }

    /// Ends the wait. Wakes between two waits are one.
    pub fn wake(&self) {
        if !self.0.is_pending.swap(true, Ordering::AcqRel) {
            // It can only fail if the counter is full, and then it is readable.
            let _ = rustix::io::write(&self.0.eventfd, &1_u64.to_ne_bytes());
        }
    }

    /// Sleeps for `duration`, or until there is a wake; it stays pending.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub(crate) fn sleep(&self, duration: Duration) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(duration.subsec_nanos()) as _,
        };
        let mut fds = [PollFd::new(&self.0.eventfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn as_fd(&self) -> impl AsFd + '_ {
        &self.0.eventfd
    }

    /// Makes ready for the next wake. What was handed over before a wake that
    /// this swallows is visible after it.
    pub(crate) fn reset(&self) {
        let _ = rustix::io::read(&self.0.eventfd, &mut [0; 8]);
        // A swap, not a store: it must see what the waker did before its own.
        self.0.is_pending.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(waker: &Waker) -> bool {
        let fd = waker.as_fd();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn a_wake_ends_a_sleep_and_stays_pending() {
        let waker = Waker::new().unwrap();
        waker.sleep(Duration::from_micros(10)).unwrap();
        assert!(!is_readable(&waker));
        waker.wake();
        // Without an end the test would never get there.
        waker.sleep(Duration::MAX).unwrap();
        assert!(is_readable(&waker));
    }

    #[test]
    fn wakes_are_remembered_once_until_reset() {
        let waker = Waker::new().unwrap();
        assert!(!is_readable(&waker));
        waker.wake();
        waker.clone().wake();
        assert!(is_readable(&waker));
        waker.reset();
        assert!(!is_readable(&waker));
        waker.wake();
        assert!(is_readable(&waker));
    }
}
