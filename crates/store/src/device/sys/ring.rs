//! An io_uring, and the buffers that the kernel has.
//!
//! [`Ring`] owns every buffer from the moment that the kernel may touch it until the kernel
//! says that it is done. Which requests make sense is decided above, in `uring`.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tachonym_memory::{IoBuffer, IoRegion};

use crate::device::check::complete;
use crate::device::volume::Volume;
use crate::device::wake::Wake;
use crate::device::{Completion, Op, Request};

/// How long a ring that goes waits for what the kernel still has. Then the buffers are the
/// kernel's for good.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// The length and place of memory that the kernel has pinned, by the number of its buffer.
#[derive(Clone, Copy)]
struct Pinned {
    addr: usize,
    len: usize,
}

/// A ring and what is in it.
///
/// Invariants:
/// - the memory that an entry pushed to the submission queue tells of belongs to the buffer of
///   the request in the slot that the entry's user data names;
/// - a slot is emptied only when the kernel has completed its entry, or when the entry can no
///   longer reach the kernel (`broken`);
/// - the file of volume `i` is file `i` of the ring, and open as long.
pub(in crate::device) struct Ring {
    ring: IoUring,
    volumes: Arc<[Volume]>,
    wake: Wake,
    /// What is pinned under which number; empty if nothing is.
    pinned: Vec<Option<Pinned>>,
    /// Keeps the addresses of what is pinned from being given to other memory.
    _regions: Vec<IoRegion>,
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    /// Slots whose entries are in the submission queue, in its order.
    queued: VecDeque<u32>,
    /// Requests that the kernel has.
    n_in_kernel: usize,
    /// How many of `queued` the kernel was given, and did not take for now.
    n_refused: usize,
    /// The ring takes nothing more, for this reason.
    broken: Option<i32>,
    /// How often in a row there was nothing to reap.
    n_idle: u32,
}

impl Ring {
    /// A ring for `n_requests` requests at a time, at most 32,768.
    ///
    /// # Errors
    /// What the kernel says, `Unsupported` or `PermissionDenied` where it has no io_uring, or
    /// not for this process.
    pub(in crate::device) fn new(volumes: Arc<[Volume]>, n_requests: u32) -> io::Result<Self> {
        let ring = build(n_requests)?;
        let wake = Wake::new()?;
        ring.submitter()
            .register_eventfd(wake.as_fd().as_raw_fd())?;
        let fds: Vec<_> = volumes
            .iter()
            .map(|volume| volume.as_fd().as_raw_fd())
            .collect();
        if !fds.is_empty() {
            ring.submitter().register_files(&fds)?;
        }
        Ok(Self {
            ring,
            volumes,
            wake,
            pinned: Vec::new(),
            _regions: Vec::new(),
            slots: (0..n_requests).map(|_| None).collect(),
            free: (0..n_requests).rev().collect(),
            queued: VecDeque::with_capacity(n_requests as usize),
            n_in_kernel: 0,
            n_refused: 0,
            broken: None,
            n_idle: 0,
        })
    }

    /// Has the kernel pin the memory of `buffers`, so that it need not look it up with every
    /// request. Once, before any request.
    ///
    /// # Errors
    /// What the kernel says; the ring works without.
    pub(in crate::device) fn register(&mut self, buffers: &[IoBuffer]) -> io::Result<()> {
        let highest = buffers
            .iter()
            .map(|buffer| usize::from(buffer.number()))
            .max();
        let Some(highest) = highest else {
            return Ok(());
        };
        let none = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        let mut vectors = vec![none; highest + 1];
        let mut pinned = vec![None; highest + 1];
        for buffer in buffers {
            let number = usize::from(buffer.number());
            let bytes = buffer.as_slice();
            let (addr, len) = (bytes.as_ptr().addr(), bytes.len());
            pinned[number] = Some(Pinned { addr, len });
            vectors[number] = libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: len,
            };
        }
        // SAFETY: the vectors tell of memory of buffers that exist. The kernel holds its pages,
        // and touches them only for requests, whose buffers the ring owns; `_regions` keeps
        // the addresses from becoming another's, which the kernel would not know of.
        unsafe { self.ring.submitter().register_buffers(&vectors) }?;
        self._regions = buffers.iter().map(IoBuffer::region).collect();
        self.pinned = pinned;
        Ok(())
    }

    /// Whether the kernel has pinned the buffers.
    pub(in crate::device) fn is_registered(&self) -> bool {
        !self.pinned.is_empty()
    }

    /// Readable when there is something to [reap](Ring::reap).
    pub(in crate::device) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Requests that have not been reaped.
    pub(in crate::device) fn n_requests(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues a request, which the kernel gets with the next [`Ring::start`]: so many bytes of
    /// its buffer, which has as many, or a sync.
    ///
    /// # Errors
    /// If all places are taken, or there is no such volume.
    pub(in crate::device) fn push(&mut self, request: Request, len: u32) -> Result<(), Request> {
        let fits = match &request.buffer {
            Some(buffer) => len as usize <= buffer.as_slice().len(),
            None => request.op == Op::Sync,
        };
        let Some(volume) = self.volumes.get(usize::from(request.volume)) else {
            return Err(request);
        };
        if !fits {
            return Err(request);
        }
        // A sync has no place.
        let at = volume.offset().wrapping_add(request.offset);
        let Some(slot_idx) = self.free.pop() else {
            return Err(request);
        };
        let request = self.slots[slot_idx as usize].insert(request);
        let entry = entry(request, at, len, &self.pinned).user_data(slot_idx.into());
        self.queued.push_back(slot_idx);
        if self.broken.is_none() {
            // SAFETY: the buffer has `len` bytes (`fits`), and stays in its slot until the
            // completion, as the first two invariants say.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.expect("it has as many places as there are slots");
        }
        Ok(())
    }

    /// Gives the kernel what was queued.
    pub(in crate::device) fn start(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        if self.broken.is_some() {
            // What is queued comes back with the next poll.
            self.wake.set();
            return;
        }
        self.enter(self.queued.len() as u32);
    }

    /// Appends what has ended to `completions`.
    pub(in crate::device) fn reap(&mut self, completions: &mut Vec<Completion>) {
        loop {
            let n_before = completions.len();
            let has_work = self.ring.submission().taskrun();
            if self.broken.is_some() {
                self.fail_queued(completions);
            }
            if has_work || self.n_refused > 0 {
                self.enter(self.n_refused as u32);
            }
            self.drain_completed(completions);
            if completions.len() > n_before {
                self.n_idle = 0;
            } else {
                // The kernel says that there is something before it sets the event, so that
                // one may be set late, for what was reaped already. Looking for it costs a
                // system call: less and less often.
                self.n_idle = self.n_idle.saturating_add(1);
                if self.n_idle == 1 || !self.n_idle.is_power_of_two() {
                    return;
                }
            }
            // What comes after this sets it again; what came before is seen next time round.
            self.wake.clear();
        }
    }

    /// Calls the kernel once: it takes up to `n_entries` entries, none of a broken ring, and
    /// completes what has ended.
    fn enter(&mut self, n_entries: u32) {
        assert!(n_entries == 0 || self.broken.is_none());
        let n_before = self.ring.submission().len();
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: the entries in the submission queue are as `push` made them, and those of a
        // broken ring, whose buffers are given back, are not taken; no argument is passed.
        let entered = unsafe {
            let submitter = self.ring.submitter();
            submitter.enter::<libc::sigset_t>(n_entries, 0, flags, None)
        };
        let n_taken = n_before - self.ring.submission().len();
        self.queued.drain(..n_taken);
        self.n_in_kernel += n_taken;
        self.n_refused = n_entries as usize - n_taken;
        match entered.map_err(|error| (Errno::from_io_error(&error), error)) {
            // Not all of it, or nothing for now: the next poll tries again.
            Ok(_) | Err((Some(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM), _)) => {}
            Err((_, error)) => self.breaks(&error),
        }
        if self.n_refused > 0 {
            self.wake.set();
        }
    }

    /// Nothing reaches the kernel any more.
    fn breaks(&mut self, error: &io::Error) {
        self.broken = Some(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()));
        self.n_refused = 0;
        self.wake.set();
    }

    /// Gives back what the kernel will never see.
    fn fail_queued(&mut self, completions: &mut Vec<Completion>) {
        let reason = self.broken.expect("checked by the caller");
        for slot_idx in self.queued.drain(..) {
            let request = self.slots[slot_idx as usize].take();
            let request = request.expect("a queued slot is taken");
            self.free.push(slot_idx);
            completions.push(complete(request, Err(io::Error::from_raw_os_error(reason))));
        }
    }

    /// Appends what the completion queue has.
    fn drain_completed(&mut self, completions: &mut Vec<Completion>) {
        for entry in self.ring.completion() {
            let slot_idx = entry.user_data() as u32;
            let request = self.slots[slot_idx as usize].take();
            let request = request.expect("a completed slot was taken");
            self.free.push(slot_idx);
            completions.push(complete(request, outcome(&entry)));
            self.n_in_kernel -= 1;
        }
    }

    /// Waits until the kernel has nothing more, or [`DRAIN_LIMIT`] is over.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN_LIMIT;
        let mut ended = Vec::new();
        // From here on the entries in the queue never reach the kernel: no call takes any.
        while self.n_in_kernel > 0 && Instant::now() < until {
            self.enter(0);
            self.drain_completed(&mut ended);
            if ended.is_empty() {
                let pause = Timespec {
                    tv_sec: 0,
                    tv_nsec: 10_000_000,
                };
                self.wake.clear();
                let _ = poll(&mut [PollFd::new(&self.wake, PollFlags::IN)], Some(&pause));
            }
            ended.clear();
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.n_in_kernel > 0 {
            self.drain();
        }
        if self.n_in_kernel > 0 {
            // The kernel may still write to them.
            mem::forget(mem::take(&mut self.slots));
        }
    }
}

/// A ring for any thread.
///
/// The kernel may complete at any time: with `IORING_SETUP_COOP_TASKRUN` it waits for the next
/// system call of the thread, and while that is busy, at half the disk's rate, the median read
/// takes 300 us longer. One that belongs to a single thread, which alone completes requests
/// (`IORING_SETUP_DEFER_TASKRUN`), takes no less time of the CPU for reads of 8 or 80 KiB, and
/// completes nothing once that thread is gone.
fn build(n_requests: u32) -> io::Result<IoUring> {
    // Since Linux 5.18.
    let mut builder = IoUring::builder();
    builder.setup_submit_all();
    match builder.build(n_requests) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => IoUring::new(n_requests),
        built => built,
    }
}

/// The entry of a request: for so many bytes at `at` of the file.
fn entry(request: &mut Request, at: u64, len: u32, pinned: &[Option<Pinned>]) -> squeue::Entry {
    let file = types::Fixed(request.volume.into());
    let sync = || {
        opcode::Fsync::new(file)
            .flags(types::FsyncFlags::DATASYNC)
            .build()
    };
    let Some(buffer) = &mut request.buffer else {
        return sync();
    };
    let number = buffer.number();
    let bytes = buffer.as_mut_slice();
    let here = (bytes.as_ptr().addr(), bytes.len());
    let start = bytes.as_mut_ptr();
    let known = pinned.get(usize::from(number)).copied().flatten();
    let is_pinned = known.is_some_and(|known| (known.addr, known.len) == here);
    match (request.op, is_pinned) {
        (Op::Read, true) => opcode::ReadFixed::new(file, start, len, number)
            .offset(at)
            .build(),
        (Op::Read, false) => opcode::Read::new(file, start, len).offset(at).build(),
        (Op::Write, true) => opcode::WriteFixed::new(file, start, len, number)
            .offset(at)
            .build(),
        (Op::Write, false) => opcode::Write::new(file, start, len).offset(at).build(),
        (Op::Sync, _) => sync(),
    }
}

fn outcome(entry: &cqueue::Entry) -> io::Result<u32> {
    u32::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DirectoryLock;

    fn read(token: u64) -> Request {
        Request {
            token,
            volume: 0,
            op: Op::Read,
            offset: 0,
            len: 4096,
            buffer: IoBuffer::new(4096, 0).ok(),
        }
    }

    #[test]
    fn a_broken_ring_gives_everything_back() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(dir.path()).unwrap();
        let volume = Volume::in_directory(&lock, "volume", 1 << 16, &[1; 16]).unwrap();
        let mut ring = match Ring::new(Arc::new([volume]), 4) {
            Ok(ring) => ring,
            Err(error) => {
                let is_absent = matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
                );
                assert!(is_absent, "{error}");
                // As the tests of devices do: where a test that is left out is a failure.
                let is_set = |name| std::env::var_os(name).is_some_and(|value| value == "true");
                assert!(
                    !is_set("CI") || is_set("TACHONYM_TEST_WITHOUT_IO_URING"),
                    "there is no io_uring: {error}"
                );
                eprintln!("not tried: io_uring ({error})");
                return;
            }
        };
        ring.push(read(0), 4096).unwrap();
        ring.start();
        for token in 1..3 {
            ring.push(read(token), 4096).unwrap();
        }
        ring.breaks(&io::Error::from_raw_os_error(Errno::NODEV.raw_os_error()));
        let mut ended = Vec::new();
        // The first one has been with the kernel, and ends as it may.
        while ended.len() < 3 {
            ring.start();
            ring.reap(&mut ended);
        }
        for round in 0..3 {
            for token in 0..4 {
                ring.push(read(10 * round + token), 4096).unwrap();
            }
            assert!(ring.push(read(99), 4096).is_err(), "it is full");
            ring.start();
            let n_before = ended.len();
            ring.reap(&mut ended);
            assert_eq!(ended.len(), n_before + 4);
        }
        assert_eq!(ring.n_requests(), 0);
        ended.sort_by_key(|ended| ended.outcome.is_err());
        let failed = ended.iter().filter(|ended| match &ended.outcome {
            Ok(n_bytes) => {
                assert_eq!((ended.token, *n_bytes), (0, 4096));
                false
            }
            Err(error) => Errno::from_io_error(error) == Some(Errno::NODEV),
        });
        assert_eq!(failed.count(), 2 + 3 * 4);
        assert_eq!(
            ring.ring.submission().len(),
            2,
            "the kernel never took them"
        );
    }
}
