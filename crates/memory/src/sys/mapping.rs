//! A stretch of addresses of which a first part is memory.
//!
//! [`Mapping`] reserves the addresses once and makes them usable from the front,
//! run by run; what is usable stays so, at its address, until the mapping goes.
//! It decides nothing: which pages a run has is told by its caller.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::mm::{madvise, mmap, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;

/// Bytes of a 2 MiB page.
pub(crate) const HUGE_2M: usize = 2 << 20;

/// Bytes of a 1 GiB page.
pub(crate) const HUGE_1G: usize = 1 << 30;

/// Pages of the kernel's pool that have been taken out of it: a file in memory.
///
/// The pages are there, zeroed and counted, before they are mapped. Reserving
/// them by `MAP_HUGETLB` alone would leave their allocation to the first touch,
/// which a limit of the control group or a binding to memory nodes may refuse,
/// by a signal.
pub(crate) struct HugeFile {
    file: OwnedFd,
    page_bytes: usize,
    len: usize,
}

impl HugeFile {
    /// Takes up to `n_pages` pages of `page_bytes`, as many as there are; `None`
    /// if there is none, or the kernel has no such pages.
    pub(crate) fn take(page_bytes: usize, n_pages: usize) -> Option<Self> {
        let size = match page_bytes {
            HUGE_2M => MemfdFlags::HUGE_2MB,
            HUGE_1G => MemfdFlags::HUGE_1GB,
            _ => return None,
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | size;
        let file = memfd_create("tachonym-tables", flags).ok()?;
        // Page by page, so that what was got is known when the pool is empty.
        let is_taken = |page: &usize| {
            let offset = (page * page_bytes) as u64;
            loop {
                let done = fallocate(&file, FallocateFlags::empty(), offset, page_bytes as u64);
                if done != Err(Errno::INTR) {
                    return done.is_ok();
                }
            }
        };
        let n_taken = (0..n_pages).take_while(is_taken).count();
        let len = n_taken * page_bytes;
        // Pages beyond `len` are nobody's: a call may have failed half-way.
        File::from(file.try_clone().ok()?)
            .set_len(len as u64)
            .ok()?;
        (len > 0).then_some(Self {
            file,
            page_bytes,
            len,
        })
    }

    /// Bytes of each of its pages.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes that it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// What the next stretch of a mapping consists of.
pub(crate) enum Run {
    /// Zeroed memory that is taken as it is touched: so many bytes, whole pages.
    Lazy(usize),
    /// Pages of the kernel's pool.
    Huge(HugeFile),
}

impl Run {
    /// Bytes that it makes usable.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lazy(len) => *len,
            Self::Huge(file) => file.len(),
        }
    }
}

/// Addresses that belong to nobody else, of which a first part is usable.
///
/// Invariants:
/// - `end` bytes from `base` are this mapping's alone, until it is dropped;
/// - the first `used` of them are mapped to be read and written, and stay so;
/// - `n_shown * 8 <= used` at any time.
pub(crate) struct Mapping {
    base: NonNull<AtomicU64>,
    /// Most words that are ever shown.
    max_words: usize,
    n_shown: AtomicUsize,
    extent: Mutex<Extent>,
}

#[derive(Clone, Copy)]
struct Extent {
    /// Bytes that are mapped to be read and written.
    used: usize,
    /// Bytes that are this mapping's.
    end: usize,
}

// SAFETY: the memory is not bound to a thread, and all of it that is handed out
// are atomics; everything else of a `Mapping` is `Send` by itself.
unsafe impl Send for Mapping {}

// SAFETY: through a shared reference only atomics are reached, but for `extend`,
// which the mutex serialises.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes of addresses, whole pages, the first at a multiple of
    /// `align`, a power of two of at least a page. At most `max_words` words of
    /// them will be shown.
    ///
    /// # Errors
    ///
    /// What the kernel says, `InvalidInput` for figures that make no sense.
    pub(crate) fn reserve(len: usize, align: usize, max_words: usize) -> io::Result<Self> {
        let page = page_size();
        let aligned = align.is_power_of_two() && align >= page;
        if !aligned || len == 0 || !len.is_multiple_of(page) || max_words > len / 8 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // So much that an aligned start lies in it.
        let slack = align - page;
        let total = len.checked_add(slack).ok_or(Errno::NOMEM)?;
        // A slice must not be longer.
        isize::try_from(total).map_err(|_| Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses addresses that are free.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), total, ProtFlags::empty(), flags) }?;
        let before = start.cast::<u8>().align_offset(align);
        let base = start.wrapping_byte_add(before);
        give_back(start, before);
        give_back(base.wrapping_byte_add(len), slack - before);
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?,
            max_words,
            n_shown: AtomicUsize::new(0),
            extent: Mutex::new(Extent { used: 0, end: len }),
        })
    }

    /// Tells the kernel for all of the mapping whether huge pages are wanted; true
    /// if it takes notice.
    pub(crate) fn advise_huge(&self, wanted: bool) -> bool {
        let advice = if wanted {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        let extent = *self.lock();
        // SAFETY: the range is this mapping's, and the advice changes no content.
        unsafe { madvise(self.base.as_ptr().cast(), extent.end, advice) }.is_ok()
    }

    /// Makes the next bytes usable: zeroed, as `runs` says, one after another.
    ///
    /// # Errors
    ///
    /// What the kernel says, and nothing new is usable.
    pub(crate) fn extend(&self, runs: &[Run]) -> io::Result<()> {
        let mut extent = self.lock();
        let page = page_size();
        let mut end = extent.used;
        for run in runs {
            if !run.len().is_multiple_of(page) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            end = end.checked_add(run.len()).ok_or(Errno::NOMEM)?;
        }
        if end > extent.end {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.open_lazy(runs, extent.used)?;
        if let Err(error) = self.map_huge(runs, extent.used) {
            // Where a fixed mapping failed, the kernel may have removed what was
            // there, and another thread have got the addresses. Nobody shall
            // touch them again; they are lost to this mapping.
            extent.end = extent.used;
            return Err(error);
        }
        extent.used = end;
        // Release: whoever sees the length sees the mapping behind it.
        self.n_shown
            .store((end / 8).min(self.max_words), Ordering::Release);
        Ok(())
    }

    /// Makes the lazy ones of `runs`, which begin at `offset`, accessible.
    fn open_lazy(&self, runs: &[Run], offset: usize) -> io::Result<()> {
        let mut at = offset;
        for (i, run) in runs.iter().enumerate() {
            if let Run::Lazy(len) = run
                && let Err(error) = self.protect(at, *len, true)
            {
                let mut at = offset;
                for run in &runs[..i] {
                    if let Run::Lazy(len) = run {
                        // If this fails, the pages stay accessible, and hidden.
                        let _ = self.protect(at, *len, false);
                    }
                    at += run.len();
                }
                return Err(error.into());
            }
            at += run.len();
        }
        Ok(())
    }

    fn protect(&self, offset: usize, len: usize, usable: bool) -> Result<(), Errno> {
        let flags = if usable {
            MprotectFlags::READ | MprotectFlags::WRITE
        } else {
            MprotectFlags::empty()
        };
        let start = self.base.as_ptr().wrapping_byte_add(offset).cast();
        // SAFETY: `extend` passes ranges between `used` and `end` only: they are
        // this mapping's, and nothing refers to them yet.
        unsafe { mprotect(start, len, flags) }
    }

    /// Maps the files among `runs`, which begin at `offset`, in their places.
    fn map_huge(&self, runs: &[Run], offset: usize) -> io::Result<()> {
        let mut at = offset;
        for run in runs {
            if let Run::Huge(file) = run {
                let start = self.base.as_ptr().wrapping_byte_add(at).cast();
                let access = ProtFlags::READ | ProtFlags::WRITE;
                // Shared: the pages are those of the file, not copies.
                let flags = MapFlags::SHARED | MapFlags::FIXED;
                // SAFETY: the range lies between `used` and `end`: it is this
                // mapping's, and nothing refers to it yet. The file is as long,
                // and nobody else has it, so nobody shortens it.
                unsafe { mmap(start, file.len(), access, flags, file.file.as_fd(), 0) }?;
            }
            at += run.len();
        }
        Ok(())
    }

    /// What is usable.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // Acquire: pairs with the store in `extend`.
        let n_words = self.n_shown.load(Ordering::Acquire);
        // SAFETY:
        // - by the invariants, `n_words` words from `base`, which is aligned to a
        //   page, are mapped to be read and written for as long as `self` lives;
        // - mapped memory is zeroed, and any bits are an `AtomicU64`;
        // - `reserve` made sure that the length fits in an `isize`.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), n_words) }
    }

    /// The first word, usable or not.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<AtomicU64> {
        self.base
    }

    /// Bytes that are usable.
    pub(crate) fn used_bytes(&self) -> usize {
        self.lock().used
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Extent> {
        // Nothing between two states of an `Extent` panics.
        self.extent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let extent = *self.lock();
        give_back(self.base.as_ptr().cast(), extent.end);
    }
}

/// Unmaps `len` bytes that nothing refers to and that are the caller's.
fn give_back(start: *mut libc::c_void, len: usize) {
    if len > 0 {
        // SAFETY: `reserve` passes what it just mapped and keeps to itself, and
        // `drop` what is this mapping's and, as it ends, not borrowed.
        let done = unsafe { munmap(start, len) };
        // It fails for want of a kernel structure at most, and then leaks.
        debug_assert!(done.is_ok(), "munmap: {done:?}");
    }
}

/// Bytes of `len` at `addr` that are in memory: what was read and never written
/// included. Addresses that are not mapped are not.
pub(crate) fn resident_bytes(addr: usize, len: usize) -> usize {
    let page = page_size();
    let mut seen = [0_u8; 4096];
    let step_bytes = seen.len() * page;
    let mut n_resident = 0;
    let mut done = 0;
    while done < len {
        let bytes = (len - done).min(step_bytes);
        let start = ptr::without_provenance_mut::<libc::c_void>(addr + done);
        // SAFETY: the kernel writes one byte for each of at most `seen.len()`
        // pages into `seen`, and only looks at the range itself.
        let status = unsafe { libc::mincore(start, bytes, seen.as_mut_ptr()) };
        if status == 0 {
            let n_pages = bytes.div_ceil(page);
            n_resident += seen[..n_pages]
                .iter()
                .filter(|&&flags| flags & 1 != 0)
                .count();
        }
        done += bytes;
    }
    (n_resident * page).min(len)
}
