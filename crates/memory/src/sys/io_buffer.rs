//! Memory for direct input and output.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use crate::error::MemoryError;

/// What the address and the length of an [`IoBuffer`] are multiples of, in bytes: what
/// any block device is content with.
pub const IO_ALIGN: usize = 4096;

/// What regions of at least this size are aligned to and made of, in bytes: the pages that
/// the kernel uses for them where it can.
const HUGE_BYTES: usize = 2 << 20;

/// Memory that was allocated in one piece.
struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a region only owns its memory; who may touch which part is `IoBuffer`'s affair.
unsafe impl Send for Region {}

// SAFETY: a shared reference to it gives access to nothing.
unsafe impl Sync for Region {}

impl Region {
    /// `len` zeroed bytes, not none.
    fn new(len: usize) -> Option<Self> {
        let align = if len >= HUGE_BYTES {
            HUGE_BYTES
        } else {
            IO_ALIGN
        };
        let layout = Layout::from_size_align(len.checked_next_multiple_of(align)?, align).ok()?;
        if align == IO_ALIGN {
            // SAFETY: the layout is not of zero bytes.
            let start = unsafe { alloc_zeroed(layout) };
            let start = NonNull::new(start)?;
            return Some(Self { start, layout });
        }
        // SAFETY: the layout is not of zero bytes.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start)?;
        // Before the first touch: the kernel chooses pages then.
        advise_huge(start, layout.size());
        // SAFETY: so many bytes were allocated there, and belong to nobody else yet.
        unsafe { start.as_ptr().write_bytes(0, layout.size()) };
        Some(Self { start, layout })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this very layout; every `IoBuffer` in it has held it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Asks for huge pages under `len` bytes, which are the caller's. Without them all works too.
#[cfg(not(miri))]
fn advise_huge(start: NonNull<u8>, len: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range is the caller's, whole pages, and the advice changes no content.
    let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxHugepage) };
}

/// No pages to choose.
#[cfg(miri)]
fn advise_huge(_: NonNull<u8>, _: usize) {}

/// Keeps the memory of buffers where it is, without access to it: as long as this lives, no
/// other memory has their addresses.
#[derive(Clone)]
pub struct IoRegion(#[expect(dead_code, reason = "it is there to be held")] Arc<Region>);

impl fmt::Debug for IoRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IoRegion")
    }
}

/// A stretch of zeroed memory that a device may read into or write from without a copy of
/// the kernel's. Whoever has it may use it: a device takes it with a request, and gives it
/// back with the completion.
pub struct IoBuffer {
    /// Within `region`, and no other buffer's.
    start: NonNull<u8>,
    /// A multiple of [`IO_ALIGN`], and not zero.
    len: usize,
    region: Arc<Region>,
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
        let mut made = Self::carve(min_bytes, number, 1)?;
        Ok(made.pop().expect("one was made"))
    }

    /// One for each of `numbers`, each of at least so many bytes, rounded up to [`IO_ALIGN`].
    /// They lie side by side in one region, on pages of 2 MiB if it is as large and the kernel
    /// has them: a device then finds, and pins, few pages instead of many.
    ///
    /// # Errors
    /// [`MemoryError::Map`] if there is not so much memory.
    pub fn many(numbers: Range<u16>, min_bytes: usize) -> Result<Vec<Self>, MemoryError> {
        Self::carve(min_bytes, numbers.start, numbers.len())
    }

    fn carve(min_bytes: usize, first: u16, n_buffers: usize) -> Result<Vec<Self>, MemoryError> {
        let too_large = || MemoryError::Map {
            needed_bytes: (min_bytes as u64).saturating_mul(n_buffers as u64),
            source: io::ErrorKind::OutOfMemory.into(),
        };
        if n_buffers == 0 {
            return Ok(Vec::new());
        }
        let len = min_bytes.max(1).checked_next_multiple_of(IO_ALIGN);
        let len = len.ok_or_else(too_large)?;
        let total = len.checked_mul(n_buffers).ok_or_else(too_large)?;
        let region = Arc::new(Region::new(total).ok_or_else(too_large)?);
        let buffer = |i: usize| {
            // SAFETY: `i < n_buffers`, and the region has at least `n_buffers * len` bytes.
            let start = unsafe { region.start.add(i * len) };
            Self {
                start,
                len,
                region: Arc::clone(&region),
                number: first + i as u16,
            }
        };
        Ok((0..n_buffers).map(buffer).collect())
    }

    /// What keeps its memory in place when it is gone itself.
    #[must_use]
    pub fn region(&self) -> IoRegion {
        IoRegion(Arc::clone(&self.region))
    }

    /// By what a device knows it again.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: so many bytes of the region, which lives as long, begin there, zeroed, and
        // belong to this alone.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Its bytes, to be written.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
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
    fn buffers_of_a_region_are_apart_and_outlive_each_other() {
        for (n_buffers, bytes) in [(3, 5_000), (40, 80 << 10)] {
            let mut all = IoBuffer::many(7..7 + n_buffers, bytes).unwrap();
            assert_eq!(all.len(), usize::from(n_buffers));
            for (i, buffer) in all.iter_mut().enumerate() {
                assert_eq!(usize::from(buffer.number()), 7 + i);
                assert_eq!(buffer.as_slice().len() % IO_ALIGN, 0);
                assert!(buffer.as_slice().len() >= bytes);
                assert_eq!(buffer.as_slice().as_ptr().addr() % IO_ALIGN, 0);
                assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
                buffer.as_mut_slice().fill(i as u8 + 1);
            }
            let last = all.pop().unwrap();
            for (i, buffer) in all.iter().enumerate() {
                assert!(buffer.as_slice().iter().all(|&byte| byte == i as u8 + 1));
            }
            let kept = all[0].region();
            drop(all);
            assert!(last.as_slice().iter().all(|&byte| byte == n_buffers as u8));
            drop(last);
            drop(kept);
        }
        assert!(IoBuffer::many(5..5, 100).unwrap().is_empty());
        assert!(IoBuffer::many(0..u16::MAX, usize::MAX / 1000).is_err());
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        assert!(IoBuffer::new(usize::MAX, 0).is_err());
        assert!(IoBuffer::new(isize::MAX as usize, 0).is_err());
    }
}
