//! What the second level is kept on.
//!
//! The store says what is to be read and written ([`Request`]), a [`Device`] does it and
//! tells ([`Completion`]). A device has one or several volumes: files, block devices, or what
//! stands for them. It knows nothing of what is stored.
//!
//! All devices do the same with what they cannot do: a request of a length or place that is
//! no multiple of [`IO_ALIGN`](tachonym_memory::IO_ALIGN), for a volume that is not there, or
//! without the buffer that it needs, ends with `InvalidInput`; a read ends short, with 0 at
//! last, where the volume ends; a write that would pass its end writes nothing, and ends with
//! `StorageFull`.
//!
//! | module | what |
//! |---|---|
//! | [`Volume`], [`DirectoryLock`], [`BlockDevice`] | files and block devices, taken for this process |
//! | [`Uring`] | requests by io_uring |
//! | [`Threads`] | requests by threads, where there is none |
//! | [`open()`] | the better of the two |
//! | [`Emulated`] | volumes of a size and throughput that no disk here has |
//! | [`Ram`] | memory that fails as a test wants it |

mod check;
mod emulated;
mod lock;
mod open;
mod ram;
#[allow(unsafe_code)]
mod sys;
mod threads;
mod uring;
mod volume;
mod volume_error;
mod wake;

use std::io;
use std::os::fd::BorrowedFd;

use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;

pub use emulated::{Content, Contents, Emulated, Waiting};
pub use lock::{BlockDevice, DirectoryLock};
pub use open::{Backend, Opened, open};
pub use ram::{Fault, Injection, Ram, SECTOR_BYTES, Survivors};
pub use threads::Threads;
pub use uring::Uring;
pub use volume::{EMPTY_BYTES, HEAD_BYTES, Magic, Volume, VolumeError};

/// What a device is to do.
#[derive(Debug)]
pub struct Request {
    /// By which the completion is known; the store's affair.
    pub token: u64,
    /// Number of the volume, from 0.
    pub volume: u8,
    /// What.
    pub op: Op,
    /// Where on the volume, in bytes: a multiple of
    /// [`IO_ALIGN`](tachonym_memory::IO_ALIGN).
    pub offset: u64,
    /// How much, in bytes: a multiple of the same, and no more than the buffer has.
    pub len: u32,
    /// Where to, or where from: its first `len` bytes; none for [`Op::Sync`].
    pub buffer: Option<IoBuffer>,
}

/// Kinds of [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Into the buffer.
    Read,
    /// From the buffer.
    Write,
    /// What was written, and completed, before this was submitted is to survive a loss of
    /// power.
    Sync,
}

/// What has become of a [`Request`].
#[derive(Debug)]
pub struct Completion {
    /// Of the request.
    pub token: u64,
    /// Bytes that were read or written, which may be fewer than asked for.
    pub outcome: io::Result<u32>,
    /// That of the request.
    pub buffer: Option<IoBuffer>,
}

/// Does what requests say, in any order, side by side.
pub trait Device: Send {
    /// Takes a request; does not wait.
    ///
    /// # Errors
    /// If the device has as many as it can take: the request comes back, to be submitted
    /// again after a completion.
    fn submit(&mut self, request: Request) -> Result<(), Request>;

    /// Sets to work on what was submitted since. Does not wait for its end.
    fn start(&mut self);

    /// Appends what has ended to `completions`. Does not wait.
    fn poll(&mut self, now: MonoNs, completions: &mut Vec<Completion>);

    /// Readable when there is something to [poll](Device::poll); `None` if the device is to
    /// be polled at [`Device::next_poll`] instead.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;

    /// When a device without [`Device::wake_fd`] next has something to tell.
    fn next_poll(&self) -> Option<MonoNs> {
        None
    }

    /// Requests that are under way.
    fn n_in_flight(&self) -> usize;
}
