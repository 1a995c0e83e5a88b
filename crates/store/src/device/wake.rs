//! A file descriptor that is readable while something is to be fetched.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

/// An event counter of the kernel's.
#[derive(Debug)]
pub(super) struct Wake(OwnedFd);

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Makes it readable.
    pub(super) fn set(&self) {
        // It can only fail for having been set 2^64 times, and is readable then too.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable until it is set again.
    pub(super) fn clear(&self) {
        // It only fails where it is not readable.
        let _ = read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
