//! A page of memory that this process shares with another one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU8;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A mapped page. The other side maps the same file.
pub(crate) struct SharedPage {
    address: NonNull<[AtomicU8; PAGE_BYTES]>,
}

impl SharedPage {
    /// Maps the first page of `file`, which must be that long.
    ///
    /// # Errors
    /// What the kernel reports.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < PAGE_BYTES as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: a new mapping at an address that the kernel chooses touches no
        // memory in use.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address })
    }

    /// The bytes. Whoever has the file may change them at any time.
    pub(crate) fn bytes(&self) -> &[AtomicU8; PAGE_BYTES] {
        // SAFETY: `map` has mapped so many bytes here for reading and writing,
        // and they stay until `drop`; every access through the reference is atomic.
        unsafe { self.address.as_ref() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference outlives it.
        unsafe {
            libc::munmap(self.address.as_ptr().cast(), PAGE_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn two_mappings_of_a_file_show_the_same_bytes() {
        let file = tempfile::tempfile().expect("a temporary file");
        assert!(SharedPage::map(&file).is_err(), "it is empty yet");
        file.set_len(PAGE_BYTES as u64).expect("it grows");
        let one = SharedPage::map(&file).expect("it is long enough");
        let other = SharedPage::map(&file).expect("it is long enough");
        one.bytes()[7].store(9, Ordering::Relaxed);
        assert_eq!(other.bytes()[7].load(Ordering::Relaxed), 9);
    }
}
