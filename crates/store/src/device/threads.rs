//! A device on files and block devices, by threads that wait for each request.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::fs::fdatasync;
use rustix::io::{Errno, pread, pwrite};
use tachonym_packet::MonoNs;

use super::check::{Checked, check, complete};
use super::volume::Volume;
use super::wake::Wake;
use super::{Completion, Device, Op, Request};

/// Reads and writes by a pool of threads, for kernels without io_uring: as many requests are
/// under way at a time as there are threads. Dropping it waits for all that was started.
pub struct Threads {
    volumes: Arc<[Volume]>,
    /// Taken, but not started.
    queued: Vec<(Request, u32)>,
    /// `None` once the threads are to end.
    sender: Option<Sender<(Request, u32)>>,
    pool: Vec<JoinHandle<()>>,
    ended: Arc<Ended>,
    capacity: usize,
    n_in_flight: usize,
}

/// What has ended, and is to be polled.
struct Ended {
    /// The event is set and cleared under the lock: it is set if, and only if, there are some.
    completions: Mutex<Vec<Completion>>,
    wake: Wake,
}

impl Ended {
    fn lock(&self) -> MutexGuard<'_, Vec<Completion>> {
        // Nothing panics while it is held.
        self.completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, completion: Completion) {
        let mut completions = self.lock();
        completions.push(completion);
        if completions.len() == 1 {
            self.wake.set();
        }
    }
}

impl Threads {
    /// One on `volumes`, with `n_threads` threads, at least one, for up to `n_requests`
    /// requests at a time.
    ///
    /// # Errors
    /// What the system says if it has no more threads or file descriptors.
    pub fn new(volumes: Arc<[Volume]>, n_threads: usize, n_requests: u32) -> io::Result<Self> {
        let (sender, receiver) = unbounded();
        let ended = Ended {
            completions: Mutex::new(Vec::new()),
            wake: Wake::new()?,
        };
        let mut device = Self {
            volumes,
            queued: Vec::new(),
            sender: Some(sender),
            pool: Vec::new(),
            ended: Arc::new(ended),
            capacity: n_requests.max(1) as usize,
            n_in_flight: 0,
        };
        for i in 0..n_threads.max(1) {
            let volumes = Arc::clone(&device.volumes);
            let ended = Arc::clone(&device.ended);
            let receiver = receiver.clone();
            let thread = thread::Builder::new().name(format!("tachonym-disk-{i}"));
            let thread = thread.spawn(move || work(&volumes, &receiver, &ended))?;
            device.pool.push(thread);
        }
        Ok(device)
    }
}

impl Device for Threads {
    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.n_in_flight >= self.capacity {
            return Err(request);
        }
        self.n_in_flight += 1;
        let volume = self.volumes.get(usize::from(request.volume));
        match check(&request, volume.map(Volume::bytes)) {
            Checked::Do(len) => self.queued.push((request, len)),
            Checked::Ended(outcome) => self.ended.push(complete(request, outcome)),
        }
        Ok(())
    }

    fn start(&mut self) {
        let sender = self.sender.as_ref().expect("it goes with the device");
        for started in self.queued.drain(..) {
            let sent = sender.send(started);
            sent.expect("the threads live as long as the device");
        }
    }

    fn poll(&mut self, _: MonoNs, completions: &mut Vec<Completion>) {
        let mut ended = self.ended.lock();
        if !ended.is_empty() {
            self.n_in_flight -= ended.len();
            completions.append(&mut ended);
            self.ended.wake.clear();
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ended.wake.as_fd())
    }

    fn n_in_flight(&self) -> usize {
        self.n_in_flight
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.pool.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads")
            .field("n_threads", &self.pool.len())
            .field("capacity", &self.capacity)
            .field("n_in_flight", &self.n_in_flight)
            .finish_non_exhaustive()
    }
}

fn work(volumes: &[Volume], receiver: &Receiver<(Request, u32)>, ended: &Ended) {
    for (mut request, len) in receiver {
        let volume = &volumes[usize::from(request.volume)];
        let outcome = carry_out(volume, &mut request, len as usize);
        ended.push(complete(request, outcome));
    }
}

/// Does what a request says, once: a short count is the caller's to see.
fn carry_out(volume: &Volume, request: &mut Request, len: usize) -> io::Result<u32> {
    // A sync has no place.
    let at = volume.offset().wrapping_add(request.offset);
    loop {
        let done = match (request.op, &mut request.buffer) {
            (Op::Read, Some(buffer)) => pread(volume, &mut buffer.as_mut_slice()[..len], at),
            (Op::Write, Some(buffer)) => pwrite(volume, &buffer.as_slice()[..len], at),
            (Op::Sync, _) => fdatasync(volume).map(|()| 0),
            (Op::Read | Op::Write, None) => Err(Errno::INVAL),
        };
        match done {
            Err(Errno::INTR) => {}
            // No more than `len`, which was a `u32`.
            done => return Ok(done.map(|n_bytes| n_bytes as u32)?),
        }
    }
}
