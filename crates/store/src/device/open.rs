//! The best device for what there is.

use std::fmt;
use std::io;
use std::sync::Arc;

use tachonym_memory::IoBuffer;

use super::Device;
use super::threads::Threads;
use super::uring::Uring;
use super::volume::Volume;

/// Threads of a device that uses them: disks answer this many requests side by side at little
/// less than their full rate.
const N_THREADS: usize = 8;

/// How requests get to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// By io_uring, or threads where there is none.
    #[default]
    Auto,
    /// By io_uring.
    Uring,
    /// By threads.
    Threads,
}

/// How requests do get to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// By io_uring.
    Uring {
        /// Whether the kernel has pinned the buffers.
        registered: bool,
    },
    /// By threads.
    Threads,
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uring { registered: true } => "io_uring with registered buffers",
            Self::Uring { registered: false } => "io_uring",
            Self::Threads => "threads",
        })
    }
}

/// A device on `volumes`, for up to `n_requests` requests at a time that come with `buffers`;
/// and which it has become.
///
/// # Errors
/// What the system says: with [`Backend::Uring`] if it has no io_uring or forbids it
/// (`kernel.io_uring_disabled`, a filter of the container's), otherwise if it has no more
/// threads.
pub fn open(
    volumes: Vec<Volume>,
    buffers: &[IoBuffer],
    n_requests: u32,
    backend: Backend,
) -> io::Result<(Box<dyn Device>, Opened)> {
    let volumes: Arc<[Volume]> = volumes.into();
    if backend != Backend::Threads {
        match Uring::new(Arc::clone(&volumes), buffers, n_requests) {
            Ok(device) => {
                let registered = device.is_registered();
                return Ok((Box::new(device), Opened::Uring { registered }));
            }
            Err(error) if backend == Backend::Uring => return Err(error),
            Err(_) => {}
        }
    }
    let device = Threads::new(volumes, N_THREADS, n_requests)?;
    Ok((Box::new(device), Opened::Threads))
}
