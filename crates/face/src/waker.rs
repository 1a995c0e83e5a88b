//! Waking the thread that waits in [`FaceSystem::poll`](crate::FaceSystem::poll).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes a waiting [`FaceSystem`](crate::FaceSystem) from another thread.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            event: Arc::new(event),
        })
    }

    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Makes the present wait, or the next one, return at once.
    pub fn wake(&self) {
        // A full counter means that the waiting thread has been woken already.
        let _ = rustix::io::write(&*self.event, &1_u64.to_ne_bytes());
    }

    /// Takes note of having been woken.
    pub(crate) fn reset(&self) {
        let _ = rustix::io::read(&*self.event, &mut [0_u8; 8]);
    }
}
