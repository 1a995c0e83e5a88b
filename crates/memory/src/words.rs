//! Arrays of 64-bit words that grow without moving, on the largest pages that
//! can be had.
//!
//! [`Words`] decides which pages a growth gets and whether there is memory for
//! it; `sys::mapping` does it. Growing is for one writer at a time, and a lock
//! makes sure; reading takes none.

use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::param::page_size;

use crate::LINE_WORDS;
use crate::available::{available_address_space, available_huge_bytes, has_transparent_pages};
use crate::error::{Limit, MemoryError};
use crate::ledger::{self, Ledger};
use crate::pages::{PagePreference, PageSize, Pages};
use crate::sync::AtomicU64;
use crate::sys::mapping::{HUGE_1G, HUGE_2M, HugeFile, Mapping, Run};
use crate::sys::prefetch::prefetch_address;

/// Length from which [`PagePreference::Auto`] considers 1 GiB pages.
const AUTO_1G_FROM_BYTES: usize = 4 << 30;

/// A zeroed array of 64-bit words at a fixed address, for a writer that grows it
/// and any number of readers.
///
/// Addresses are reserved for the longest that it may become; memory is taken as
/// it is [committed](Self::commit), and but for huge pages of the kernel's pool
/// only as it is touched. Nothing is given back before the array is dropped.
pub struct Words {
    mapping: Mapping,
    max_words: usize,
    /// Bytes that the mapping can have.
    reserved_bytes: usize,
    preference: PagePreference,
    /// Whether whole stretches of 2 MiB are backed by huge pages when touched.
    transparent: bool,
    /// Held by whoever makes it grow, while huge pages are zeroed, too.
    growing: Mutex<()>,
    /// What it has got; held for moments.
    got: Mutex<Pages>,
}

impl Words {
    /// Reserves addresses for at most `max_words` words. None is usable yet, and
    /// no memory is taken. The first word lies at the start of a page.
    ///
    /// # Errors
    ///
    /// [`MemoryError::TooLarge`] if the addresses are not to be had,
    /// [`MemoryError::Map`] if the kernel refuses for another reason.
    pub fn reserve(max_words: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let too_large = |needed_bytes| MemoryError::TooLarge {
            needed_bytes,
            available_bytes: available_address_space(),
            limit: Limit::AddressSpace,
        };
        let max_bytes = max_words.checked_next_multiple_of(LINE_WORDS);
        let max_bytes = max_bytes.and_then(|n_words| n_words.checked_mul(8));
        let (Some(max_bytes), true) = (max_bytes, max_words < isize::MAX as usize / 8) else {
            return Err(too_large(u64::MAX));
        };
        let is_large = max_bytes >= HUGE_2M;
        let rounds_up = matches!(pages, PagePreference::Huge1G | PagePreference::Huge2M);
        let granule = if is_large && rounds_up {
            HUGE_2M
        } else {
            page_size()
        };
        let needed = max_bytes as u64;
        let reserved_bytes = max_bytes.max(1).checked_next_multiple_of(granule);
        let reserved_bytes = reserved_bytes.ok_or_else(|| too_large(needed))?;
        let mapping = Mapping::reserve(
            reserved_bytes,
            alignment(pages, reserved_bytes),
            max_bytes / 8,
        )
        .map_err(|source| match source.kind() {
            io::ErrorKind::OutOfMemory if needed > available_address_space() => too_large(needed),
            _ => MemoryError::Map {
                needed_bytes: needed,
                source,
            },
        })?;
        let wants_huge = is_large && pages != PagePreference::Base;
        // A kernel without transparent huge pages refuses either advice.
        let advised = is_large && mapping.advise_huge(wants_huge);
        Ok(Self {
            mapping,
            max_words,
            reserved_bytes,
            preference: pages,
            transparent: wants_huge && advised && has_transparent_pages(),
            growing: Mutex::new(()),
            got: Mutex::new(Pages::default()),
        })
    }

    /// Makes the first `n_words` words usable, rounded up to whole pages, of 2 MiB if they
    /// are more than that and may be huge; what is usable already stays, at its address.
    /// New words are zero.
    ///
    /// Huge pages of the kernel's pool are taken at once and zeroed, which takes
    /// about a second for 10 GiB; other memory is taken when it is first touched.
    /// Writers that call this at the same time wait for each other; readers of
    /// the array never wait.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BeyondReserve`], [`MemoryError::TooLarge`] if there is not
    /// so much memory as the new part may take, or [`MemoryError::Map`]. The array
    /// is then as it was.
    pub fn commit(&self, n_words: usize) -> Result<(), MemoryError> {
        self.commit_if(n_words, Ledger::admit)
    }

    /// As [`Words::commit`], whatever memory is available: for what is touched as soon as it is
    /// usable, and would else be allocated without a question.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BeyondReserve`] or [`MemoryError::Map`].
    pub(crate) fn commit_unasked(&self, n_words: usize) -> Result<(), MemoryError> {
        self.commit_if(n_words, |_, _| Ok(()))
    }

    fn commit_if(
        &self,
        n_words: usize,
        admit: impl FnOnce(&mut Ledger, u64) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        if n_words > self.max_words {
            return Err(MemoryError::BeyondReserve {
                asked_words: n_words,
                max_words: self.max_words,
            });
        }
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let used = self.mapping.used_bytes();
        let mut end = (n_words * 8).next_multiple_of(page_size());
        if end <= used {
            return Ok(());
        }
        if self.preference != PagePreference::Base && end > HUGE_2M {
            // The kernel makes a huge page of a stretch only if all of it is usable when it
            // is first touched.
            end = end.next_multiple_of(HUGE_2M).min(self.reserved_bytes);
        }
        let mut runs = Vec::new();
        let sizes = match self.preference {
            PagePreference::Auto | PagePreference::Huge1G => &[HUGE_1G, HUGE_2M][..],
            PagePreference::Huge2M => &[HUGE_2M],
            PagePreference::Transparent | PagePreference::Base => &[],
        };
        self.plan(used, end, sizes, &mut runs);
        let lazy = runs.iter().filter(|run| matches!(run, Run::Lazy(_)));
        let lazy_bytes = lazy.map(|run| run.len() as u64).sum();
        // One at a time in the whole process: else two arrays might be admitted to
        // the same memory.
        let mut ledger = ledger::lock();
        admit(&mut ledger, lazy_bytes)?;
        self.mapping
            .extend(&runs)
            .map_err(|source| MemoryError::Map {
                needed_bytes: (end - used) as u64,
                source,
            })?;
        let base = self.base().addr().get();
        let mut at = base + used;
        let mut got = self.pages();
        for run in runs {
            match &run {
                Run::Lazy(len) => ledger.add(base, at, *len),
                Run::Huge(file) if file.page_bytes() == HUGE_1G => {
                    got.huge_1g_bytes += file.len() as u64;
                }
                Run::Huge(file) => got.huge_2m_bytes += file.len() as u64,
            }
            at += run.len();
        }
        (got.base_bytes, got.transparent_bytes) = (0, 0);
        for (addr, len) in ledger.within(base, self.reserved_bytes) {
            let whole = if self.transparent {
                whole_stretches(addr, len)
            } else {
                0
            };
            got.transparent_bytes += whole as u64;
            got.base_bytes += (len - whole) as u64;
        }
        *self.lock_got() = got;
        Ok(())
    }

    /// The first word, usable or not.
    pub(crate) fn base(&self) -> NonNull<AtomicU64> {
        self.mapping.base()
    }

    fn lock_got(&self) -> MutexGuard<'_, Pages> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends to `runs` what covers the bytes from `from` to `end`, or beyond
    /// for pages that the preference rounds up to: pages of the largest of
    /// `sizes` as far as there are any, and of the smaller ones around them.
    fn plan(&self, from: usize, end: usize, sizes: &[usize], runs: &mut Vec<Run>) {
        if from >= end {
            return;
        }
        let Some((&size, smaller)) = sizes.split_first() else {
            runs.push(Run::Lazy(end - from));
            return;
        };
        let first = from.next_multiple_of(size);
        let last = match self.preference {
            PagePreference::Auto => end - end % size,
            _ => match end.next_multiple_of(size) {
                last if last <= self.reserved_bytes => last,
                _ => end - end % size,
            },
        };
        let taken = if first < last {
            self.take(size, (last - first) / size)
        } else {
            None
        };
        let Some(file) = taken else {
            self.plan(from, end, smaller, runs);
            return;
        };
        self.plan(from, first, smaller, runs);
        let after = first + file.len();
        runs.push(Run::Huge(file));
        self.plan(after, end, smaller, runs);
    }

    /// Takes pages out of the kernel's pool, as many as the preference allows.
    fn take(&self, size: usize, n_pages: usize) -> Option<HugeFile> {
        if self.preference != PagePreference::Auto {
            return HugeFile::take(size, n_pages);
        }
        let kind = match size {
            HUGE_1G if self.reserved_bytes < AUTO_1G_FROM_BYTES => return None,
            HUGE_1G => PageSize::Huge1G,
            _ => PageSize::Huge2M,
        };
        let wanted = n_pages * size;
        if available_huge_bytes(kind) < wanted as u64 {
            return None;
        }
        HugeFile::take(size, n_pages).filter(|file| file.len() == wanted)
    }

    /// What is usable: at least the words that were committed, at most those
    /// that were reserved, rounded up to a cache line.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    /// The cache line `idx`: words `8 * idx` to `8 * idx + 7`, at an address that
    /// is a multiple of 64.
    ///
    /// # Panics
    ///
    /// If it is not usable.
    #[inline(always)]
    pub fn line(&self, idx: usize) -> &[AtomicU64; LINE_WORDS] {
        let (lines, _) = self.words().as_chunks();
        &lines[idx]
    }

    /// Asks for the cache line that holds a word to be brought into the nearest
    /// cache. Any index is harmless.
    #[inline(always)]
    pub fn prefetch(&self, word_idx: usize) {
        prefetch_address(self.base().as_ptr().wrapping_add(word_idx).cast());
    }

    /// Most words that it can have.
    pub fn max_words(&self) -> usize {
        self.max_words
    }

    /// Bytes that are usable, whole pages.
    pub fn committed_bytes(&self) -> usize {
        self.mapping.used_bytes()
    }

    /// What pages the usable part has. [`PageSize::Transparent`] is what the
    /// kernel was asked to back so and has not refused to.
    pub fn pages(&self) -> Pages {
        *self.lock_got()
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        let base = self.base().addr().get();
        ledger::lock().remove(base, self.reserved_bytes);
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words")
            .field("n_words", &self.words().len())
            .field("max_words", &self.max_words)
            .field("pages", &self.pages())
            .finish()
    }
}

/// What the first byte of an array is aligned to, so that the largest pages that
/// it may get fit.
fn alignment(pages: PagePreference, reserved_bytes: usize) -> usize {
    let largest = match pages {
        PagePreference::Auto if reserved_bytes >= AUTO_1G_FROM_BYTES => HUGE_1G,
        PagePreference::Huge1G if reserved_bytes >= HUGE_1G => HUGE_1G,
        PagePreference::Base => page_size(),
        _ => HUGE_2M,
    };
    if reserved_bytes >= largest {
        largest.max(page_size())
    } else {
        page_size()
    }
}

/// Bytes of `len` at `addr` that lie in whole, aligned stretches of 2 MiB.
fn whole_stretches(addr: usize, len: usize) -> usize {
    let first = addr.next_multiple_of(HUGE_2M);
    let last = (addr + len) - (addr + len) % HUGE_2M;
    last.saturating_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;

    const MIB_WORDS: usize = (1 << 20) / 8;

    fn reserve(max_words: usize, pages: PagePreference) -> Words {
        Words::reserve(max_words, pages).unwrap()
    }

    #[test]
    fn growth_keeps_what_is_there_and_where() {
        for pages in PagePreference::ALL {
            let words = reserve(8 * MIB_WORDS, pages);
            assert!(words.words().is_empty());
            assert_eq!(words.committed_bytes(), 0);
            words.commit(1).unwrap();
            let at = words.words().as_ptr();
            words.words()[0].store(7, Relaxed);
            for n_words in [
                100,
                1000,
                MIB_WORDS / 2 + 1,
                3 * MIB_WORDS,
                8 * MIB_WORDS,
                5,
            ] {
                words.commit(n_words).unwrap();
                assert!(words.words().len() >= n_words);
                assert_eq!(words.words().as_ptr(), at);
                assert_eq!(words.words()[0].load(Relaxed), 7);
                let rest = &words.words()[1..];
                assert!(rest.iter().all(|word| word.load(Relaxed) == 0));
                let got = words.pages().total_bytes();
                assert_eq!(got, words.committed_bytes() as u64);
            }
            assert_eq!(words.words().len(), 8 * MIB_WORDS);
            assert!(at.addr().is_multiple_of(4096));
        }
    }

    #[test]
    fn small_array_takes_no_more_than_its_pages() {
        let page = page_size();
        for pages in PagePreference::ALL {
            let words = reserve(10 * page / 8, pages);
            words.commit(page / 8 + 1).unwrap();
            assert_eq!(words.committed_bytes(), 2 * page);
            assert_eq!(words.pages().base_bytes, 2 * page as u64);
        }
        let words = reserve(usize::MAX >> 24, PagePreference::Auto);
        words.commit(1).unwrap();
        assert_eq!(words.committed_bytes(), page);
    }

    #[test]
    fn memory_follows_use() {
        let words = reserve(64 * MIB_WORDS, PagePreference::Base);
        words.commit(64 * MIB_WORDS).unwrap();
        let resident = || {
            let addr = words.words().as_ptr().addr();
            crate::sys::mapping::resident_bytes(addr, words.committed_bytes())
        };
        assert_eq!(resident(), 0);
        words.words()[3 * MIB_WORDS].store(1, Relaxed);
        words.words()[40 * MIB_WORDS].store(1, Relaxed);
        assert_eq!(resident(), 2 * page_size());
    }

    #[test]
    fn lines_are_aligned_and_end_with_what_is_committed() {
        let words = reserve(1001, PagePreference::Auto);
        words.commit(1001).unwrap();
        // The last line is whole, whatever was asked for.
        assert_eq!(words.words().len(), 1008);
        for idx in 0..126 {
            let line = words.line(idx);
            assert!(line.as_ptr().addr().is_multiple_of(64));
            assert!(std::ptr::eq(
                &raw const line[0],
                &raw const words.words()[8 * idx]
            ));
        }
        let beyond = std::panic::catch_unwind(|| words.line(126)[0].load(Relaxed));
        assert!(beyond.is_err());
    }

    #[test]
    fn more_than_was_reserved_is_refused() {
        let words = reserve(10, PagePreference::Base);
        words.commit(10).unwrap();
        match words.commit(11) {
            Err(MemoryError::BeyondReserve {
                asked_words: 11,
                max_words: 10,
            }) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(words.words().len(), 16);
        let none = reserve(0, PagePreference::Auto);
        none.commit(0).unwrap();
        assert!(none.words().is_empty());
        assert!(none.commit(1).is_err());
    }

    #[test]
    fn more_than_there_is_changes_nothing() {
        let words = reserve(1 << 40, PagePreference::Auto);
        words.commit(100).unwrap();
        let before = (words.committed_bytes(), words.pages());
        match words.commit(1 << 40) {
            Err(error @ MemoryError::TooLarge { .. }) => {
                let text = error.to_string();
                assert!(text.contains("7.9 TiB of memory needed"), "{text}");
                assert!(text.contains("missing"), "{text}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((words.committed_bytes(), words.pages()), before);
        words.commit(200 * 8).unwrap();
        words.words()[1599].store(1, Relaxed);
    }

    #[test]
    fn promises_are_remembered_until_they_are_dropped() {
        // Each fits; both together do not, though nothing was touched.
        let available = crate::available::available_memory().bytes;
        let n_words = (available / 8 * 11 / 20) as usize;
        let first = reserve(n_words, PagePreference::Base);
        let second = reserve(n_words, PagePreference::Base);
        first.commit(n_words).unwrap();
        assert!(matches!(
            second.commit(n_words),
            Err(MemoryError::TooLarge { .. })
        ));
        drop(first);
        second.commit(n_words).unwrap();
    }

    #[test]
    fn addresses_beyond_the_machine_are_refused() {
        for max_words in [usize::MAX, usize::MAX / 8, usize::MAX / 16, 1 << 58] {
            let refused = Words::reserve(max_words, PagePreference::Auto);
            assert!(
                matches!(refused, Err(MemoryError::TooLarge { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn prefetch_of_any_word_is_harmless() {
        let words = reserve(100, PagePreference::Auto);
        for idx in [0, 99, 100, 1 << 40, usize::MAX] {
            words.prefetch(idx);
        }
    }

    #[test]
    fn readers_see_whole_words_while_the_array_grows() {
        let words = reserve(16 * MIB_WORDS, PagePreference::Auto);
        words.commit(1).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < 16 * MIB_WORDS {
                        let all = words.words();
                        assert!(all.len() >= seen);
                        seen = all.len();
                        assert!(all[seen - 1].load(Relaxed) <= 1);
                    }
                });
            }
            scope.spawn(|| {
                for n_words in (1..=16 * MIB_WORDS / 512).map(|n| n * 512) {
                    words.commit(n_words).unwrap();
                    words.words()[n_words - 1].store(1, Relaxed);
                }
            });
        });
    }

    #[test]
    fn whole_stretches_are_aligned() {
        assert_eq!(whole_stretches(0, HUGE_2M), HUGE_2M);
        assert_eq!(whole_stretches(4096, HUGE_2M), 0);
        assert_eq!(whole_stretches(4096, 3 * HUGE_2M), 2 * HUGE_2M);
        assert_eq!(whole_stretches(HUGE_2M, HUGE_2M - 1), 0);
    }
}
