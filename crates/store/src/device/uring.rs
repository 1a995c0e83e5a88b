//! A device on files and block devices, by io_uring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;

use super::check::{Checked, check, complete};
use super::sys::ring::Ring;
use super::volume::Volume;
use super::{Completion, Device, Request};

/// Most requests that one may have at a time.
const MAX_REQUESTS: u32 = 32_768;

/// Reads and writes by io_uring: one system call for all requests of a [`Device::start`], none
/// while nothing happens, and no thread of its own but what the kernel uses for
/// [`Op::Sync`](super::Op::Sync).
///
/// Dropping it waits for what is under way, ten seconds at most: a disk that does not answer
/// keeps its buffers for good. What a thread has started the kernel may cancel when that
/// thread ends.
pub struct Uring {
    ring: Ring,
    volumes: Arc<[Volume]>,
    capacity: usize,
    /// What ended without the kernel.
    ended: Vec<Completion>,
}

impl Uring {
    /// One on `volumes`, for up to `n_requests` requests at a time. `buffers` are those that
    /// requests will come with: the kernel pins their memory, if it may
    /// ([`Uring::is_registered`]); others work too, slower.
    ///
    /// # Errors
    /// What the kernel says where it has no io_uring, or forbids it; then
    /// [`Threads`](super::Threads) does the same.
    pub fn new(volumes: Arc<[Volume]>, buffers: &[IoBuffer], n_requests: u32) -> io::Result<Self> {
        let n_requests = n_requests.clamp(1, MAX_REQUESTS);
        let mut ring = Ring::new(Arc::clone(&volumes), n_requests)?;
        // Refused where more would be pinned than RLIMIT_MEMLOCK allows.
        let _ = ring.register(buffers);
        Ok(Self {
            ring,
            volumes,
            capacity: n_requests as usize,
            ended: Vec::new(),
        })
    }

    /// Whether the kernel has pinned the buffers.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.ring.is_registered()
    }
}

impl Device for Uring {
    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.n_in_flight() >= self.capacity {
            return Err(request);
        }
        let volume = self.volumes.get(usize::from(request.volume));
        match check(&request, volume.map(Volume::bytes)) {
            Checked::Do(len) => self.ring.push(request, len),
            Checked::Ended(outcome) => {
                self.ended.push(complete(request, outcome));
                self.ring.wake().set();
                Ok(())
            }
        }
    }

    fn start(&mut self) {
        self.ring.start();
    }

    fn poll(&mut self, _: MonoNs, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
        self.ring.reap(completions);
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.wake().as_fd())
    }

    fn n_in_flight(&self) -> usize {
        self.ring.n_requests() + self.ended.len()
    }
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring")
            .field("capacity", &self.capacity)
            .field("is_registered", &self.is_registered())
            .field("n_in_flight", &self.n_in_flight())
            .finish_non_exhaustive()
    }
}
