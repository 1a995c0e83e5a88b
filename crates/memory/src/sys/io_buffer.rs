//! Memory for direct input and output.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::slice;

use crate::error::MemoryError;

/// What the address and the length of an [`IoBuffer`] are multiples of, in bytes: what
/// any block device is content with.
pub const IO_ALIGN: usize = 4096;

/// A stretch of zeroed memory that a device may read into or write from without a copy of
/// the kernel's. Whoever has it may use it: a device takes it with a request, and gives it
/// back with the completion.
pub struct IoBuffer {
    start: NonNull<u8>,
    /// A multiple of [`IO_ALIGN`], and not zero.
    len: usize,
    number: u16,
}

// SAFETY: the memory is reached through the buffer alone, which is not bound to a thread.
unsafe impl Send for IoBuffer {}

// SAFETY: through a shared reference it is only read.
unsafe impl Sync for IoBuffer {}

impl IoBuffer {
    /// One of at least so many bytes, rounded up to [`IO_ALIGN`]. By `number` a device
    /// knows it again.
    ///
    /// # Errors
    /// [`MemoryError::Map`] if there is not so much memory.
    pub fn new(min_bytes: usize, number: u16) -> Result<Self, MemoryError> {
        let too_large = || MemoryError::Map {
            needed_bytes: min_bytes as u64,
            source: io::ErrorKind::OutOfMemory.into(),
        };
        let len = min_bytes.max(1).checked_next_multiple_of(IO_ALIGN);
        let len = len.ok_or_else(too_large)?;
        let layout = Layout::from_size_align(len, IO_ALIGN).map_err(|_| too_large())?;
        // SAFETY: the layout is not of zero bytes.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or_else(too_large)?;
        Ok(Self { start, len, number })
    }

    /// By what a device knows it again.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: so many bytes were allocated there, zeroed, and belong to this alone.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Its bytes, to be written.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.len, IO_ALIGN);
        let layout = layout.expect("it was allocated with it");
        // SAFETY: allocated with this very layout, and nobody else has it.
        unsafe { dealloc(self.start.as_ptr(), layout) };
    }
}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuffer({}, {} bytes)", self.number, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_its_own() {
        let mut first = IoBuffer::new(5_000, 3).unwrap();
        let second = IoBuffer::new(1, 4).unwrap();
        assert_eq!((first.number(), second.number()), (3, 4));
        assert_eq!(first.as_slice().len(), 2 * IO_ALIGN);
        assert_eq!(second.as_slice().len(), IO_ALIGN);
        assert_eq!(first.as_slice().as_ptr().addr() % IO_ALIGN, 0);
        assert!(first.as_slice().iter().all(|&byte| byte == 0));
        first.as_mut_slice().fill(7);
        assert!(second.as_slice().iter().all(|&byte| byte == 0));
        assert!(first.as_slice().iter().all(|&byte| byte == 7));
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        assert!(IoBuffer::new(usize::MAX, 0).is_err());
        assert!(IoBuffer::new(isize::MAX as usize, 0).is_err());
    }
}
