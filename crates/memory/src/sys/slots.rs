//! Values of one owner in a row that grows without moving.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
#[cfg(miri)]
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

#[cfg(not(miri))]
use crate::Words;
use crate::error::MemoryError;
use crate::pages::{PagePreference, Pages};

/// Most bytes that a growth makes usable at once: huge pages of the kernel's pool are zeroed
/// by then.
const MAX_STEP_BYTES: usize = 2 << 20;

/// A growing row of values at a fixed address, for one owner, on the largest available
/// pages.
///
/// Addresses are reserved for the longest that it may become; memory is taken as values are
/// added.
pub struct Slots<T> {
    /// Invariants:
    /// - `n_usable` values from here are memory that is read and written, aligned for `T`,
    ///   until `memory` goes, and reached by this pointer only;
    /// - the first `len` of them, at most `n_usable`, are initialised.
    base: NonNull<T>,
    len: usize,
    n_usable: usize,
    max_len: usize,
    pages: PagePreference,
    #[cfg(not(miri))]
    memory: Words,
    /// Where there is no kernel to ask, all is allocated when it is reserved.
    #[cfg(miri)]
    memory: Vec<MaybeUninit<T>>,
}

// SAFETY: it owns its values and nothing else, as a `Vec` does; the mapping is not bound to a
// thread.
unsafe impl<T: Send> Send for Slots<T> {}

// SAFETY: through a shared reference only shared references to values are reached.
unsafe impl<T: Sync> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// Reserves addresses for at most `max_len` values. There is none yet, and no memory is
    /// taken. The first will lie at the start of a page.
    ///
    /// To zero a page of 1 GiB takes too long between two packets: where `pages` asks for
    /// such pages, the values get pages of 2 MiB.
    ///
    /// # Errors
    ///
    /// As [`Words::reserve`](crate::Words::reserve).
    pub fn reserve(max_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        const {
            assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096);
        }
        let pages = match pages {
            PagePreference::Huge1G => PagePreference::Huge2M,
            other => other,
        };
        let (base, memory) = Self::reserve_memory(max_len, pages)?;
        Ok(Self {
            base,
            len: 0,
            n_usable: 0,
            max_len,
            pages,
            memory,
        })
    }

    #[cfg(not(miri))]
    fn reserve_memory(
        max_len: usize,
        pages: PagePreference,
    ) -> Result<(NonNull<T>, Words), MemoryError> {
        let max_words = max_len.saturating_mul(size_of::<T>()).div_ceil(8);
        let words = Words::reserve(max_words, pages)?;
        Ok((words.base().cast(), words))
    }

    #[cfg(miri)]
    fn reserve_memory(
        max_len: usize,
        _: PagePreference,
    ) -> Result<(NonNull<T>, Vec<MaybeUninit<T>>), MemoryError> {
        let mut memory = Vec::with_capacity(max_len);
        let base = NonNull::new(memory.as_mut_ptr()).expect("no vector begins at zero");
        Ok((base.cast(), memory))
    }

    /// Makes room for more values, at another address.
    ///
    /// # Errors
    ///
    /// As [`Slots::reserve`]; nothing has changed then.
    pub fn set_max_len(&mut self, max_len: usize) -> Result<(), MemoryError> {
        if max_len <= self.max_len {
            return Ok(());
        }
        let mut larger = Self::reserve(max_len, self.pages)?;
        while larger.n_usable < self.len {
            larger.grow();
        }
        // SAFETY:
        // - by the invariants, `len` values are initialised here and usable there;
        // - two mappings do not overlap.
        unsafe { ptr::copy_nonoverlapping(self.base.as_ptr(), larger.base.as_ptr(), self.len) };
        // They are that one's from now on, and not dropped with this one.
        larger.len = std::mem::take(&mut self.len);
        *self = larger;
        Ok(())
    }

    /// Adds a value. Where the kernel has no memory for it, the process ends, as with other
    /// allocations.
    ///
    /// # Panics
    ///
    /// If there are as many as were reserved.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len == self.n_usable {
            self.grow();
        }
        // SAFETY: `grow` has made `n_usable` greater than `len`, and by the invariants that
        // many values from `base` are one allocation.
        let place = unsafe { self.base.add(self.len) };
        // SAFETY: for the same reason the place is usable and aligned; it holds no value.
        unsafe { place.write(value) };
        self.len += 1;
    }

    /// Makes more of it usable, at least one value.
    #[cold]
    fn grow(&mut self) {
        assert!(self.n_usable < self.max_len, "as many as were reserved");
        let used_bytes = self.n_usable * size_of::<T>();
        let step_bytes = used_bytes.clamp(size_of::<T>(), MAX_STEP_BYTES.max(size_of::<T>()));
        let n_wanted = (used_bytes + step_bytes).div_ceil(size_of::<T>());
        self.commit(n_wanted.min(self.max_len));
    }

    #[cfg(not(miri))]
    fn commit(&mut self, n_values: usize) {
        let n_words = (n_values * size_of::<T>()).div_ceil(8);
        if self.memory.commit_unasked(n_words).is_err() {
            handle_alloc_error(Layout::new::<T>());
        }
        self.n_usable = (self.memory.committed_bytes() / size_of::<T>()).min(self.max_len);
    }

    #[cfg(miri)]
    fn commit(&mut self, n_values: usize) {
        if n_values > self.memory.capacity() {
            handle_alloc_error(Layout::new::<T>());
        }
        self.n_usable = n_values;
    }

    /// What pages the usable part has.
    #[cfg(not(miri))]
    pub fn pages(&self) -> Pages {
        self.memory.pages()
    }

    /// There are none under Miri.
    #[cfg(miri)]
    pub fn pages(&self) -> Pages {
        Pages::default()
    }
}

impl<T> Deref for Slots<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY:
        // - by the invariants, `len` values from `base` are initialised, and stay so while
        //   `self` is borrowed;
        // - they are reached through `self` only, which is borrowed as long;
        // - `reserve` made sure that the length in bytes fits in an `isize`.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Slots<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; `self` is borrowed exclusively as long.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        // SAFETY: by the invariants, these values are initialised; nothing reaches them after
        // this, and `memory` is given back without a look at them.
        unsafe { ptr::drop_in_place(&raw mut **self) };
    }
}

impl<T> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("len", &self.len)
            .field("max_len", &self.max_len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn reserve<T>(max_len: usize) -> Slots<T> {
        Slots::reserve(max_len, PagePreference::Auto).unwrap()
    }

    #[test]
    fn growth_keeps_values_and_where_they_are() {
        let n_values: u32 = if cfg!(miri) { 300 } else { 100_000 };
        for pages in PagePreference::ALL {
            let mut slots = Slots::reserve(n_values as usize, pages).unwrap();
            assert!(slots.is_empty());
            slots.push((0, [0; 7]));
            let first = slots.as_ptr();
            for n in 1..n_values {
                slots.push((n, [n; 7]));
            }
            slots[7].1[3] += 1;
            assert_eq!(slots.as_ptr(), first);
            assert_eq!(slots.len(), n_values as usize);
            for (n, (number, rest)) in (0..).zip(slots.iter()) {
                assert_eq!((n, n + u32::from(n == 7)), (*number, rest[3]));
            }
            #[cfg(not(miri))]
            assert!(slots.pages().total_bytes() >= u64::from(n_values) * 32);
        }
    }

    #[test]
    fn each_value_is_dropped_once() {
        let alive = Rc::new(());
        let mut slots = reserve(10);
        (0..10).for_each(|_| slots.push((alive.clone(), [0_u64; 9])));
        slots[3].0 = Rc::new(());
        assert_eq!(Rc::strong_count(&alive), 10);
        slots.set_max_len(20).unwrap();
        assert_eq!(Rc::strong_count(&alive), 10);
        slots.push((alive.clone(), [1; 9]));
        assert_eq!((slots.len(), slots[10].1), (11, [1; 9]));
        drop(slots);
        assert_eq!(Rc::strong_count(&alive), 1);
        drop(reserve::<Rc<()>>(10));
    }

    #[test]
    fn values_begin_at_their_alignment() {
        #[derive(Default)]
        #[repr(align(64))]
        struct Lines([u64; 24]);
        let mut slots = reserve(40);
        (0..40).for_each(|n| slots.push(Lines([n; 24])));
        assert!((&raw const slots[39]).addr().is_multiple_of(64));
        assert_eq!(slots[39].0, [39; 24]);
    }

    #[test]
    #[should_panic(expected = "as many as were reserved")]
    fn no_more_values_than_were_reserved_are_added() {
        let mut slots = reserve(2);
        (0..3).for_each(|n: u64| slots.push(n));
    }

    #[test]
    #[cfg(not(miri))]
    fn more_than_there_are_addresses_is_refused() {
        for max_len in [1 << 50, usize::MAX] {
            let refused = Slots::<u64>::reserve(max_len, PagePreference::Auto);
            assert!(matches!(refused, Err(MemoryError::TooLarge { .. })));
        }
    }
}
