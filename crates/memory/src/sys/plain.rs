//! Words of one owner, read and written as plain memory.

use std::fmt;
use std::slice;

use crate::error::MemoryError;
use crate::pages::{PagePreference, Pages};
use crate::sync::AtomicU64;
use crate::{LINE_WORDS, Words};

const _: () = assert!(align_of::<AtomicU64>() == align_of::<u64>());

/// A zeroed array of 64-bit words for one owner, on the largest pages that can be
/// had: what [`Words`] is for a writer and its readers.
///
/// All of it is usable from the start. But for huge pages of the kernel's pool,
/// memory is taken as it is touched; that there is enough is made sure of before.
pub struct PlainWords {
    /// Invariant: no reference to these is handed out but by `as_slice` and
    /// `as_mut_slice`, as plain words.
    words: Words,
    n_words: usize,
}

impl PlainWords {
    /// So many words, rounded up to whole cache lines. The first one is the first of
    /// a line.
    ///
    /// # Errors
    ///
    /// [`MemoryError::TooLarge`] if there is not so much memory,
    /// [`MemoryError::Map`] if the kernel refuses for another reason.
    pub fn new(n_words: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let words = Words::reserve(n_words, pages)?;
        words.commit(n_words)?;
        Ok(Self {
            words,
            n_words: n_words.next_multiple_of(LINE_WORDS),
        })
    }

    /// All of them.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        let words = &self.words.words()[..self.n_words];
        // SAFETY:
        // - an `AtomicU64` has the size and the bits of a `u64`, and its alignment,
        //   as asserted above;
        // - nobody writes them while `self` is borrowed: by the invariant, only
        //   `as_mut_slice` gives access for that, and borrows `self` exclusively.
        unsafe { slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }

    /// All of them, to be changed.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        let words = &self.words.words()[..self.n_words];
        // SAFETY:
        // - an `AtomicU64` has the size and the bits of a `u64`, and its alignment,
        //   as asserted above, and may be written through a shared reference, from
        //   which the pointer is;
        // - nobody else reads or writes them while `self` is borrowed exclusively,
        //   by the invariant.
        unsafe { slice::from_raw_parts_mut(words.as_ptr().cast_mut().cast(), words.len()) }
    }

    /// What pages they have, as [`Words::pages`] tells.
    pub fn pages(&self) -> Pages {
        self.words.pages()
    }
}

impl fmt::Debug for PlainWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlainWords").field(&self.words).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_is_zero() {
        let mut words = PlainWords::new(2000, PagePreference::Auto).unwrap();
        assert_eq!(words.as_slice().len(), 2000);
        assert!(words.as_slice().iter().all(|&word| word == 0));
        for (n, word) in (0..).zip(words.as_mut_slice()) {
            *word = n;
        }
        words.as_mut_slice()[7] += 100;
        let expected = (0..2000).map(|n| if n == 7 { 107 } else { n });
        assert!(words.as_slice().iter().copied().eq(expected));
        assert!(words.pages().total_bytes() >= 16_000);
    }

    #[test]
    #[cfg(not(miri))]
    fn lines_are_lines_of_the_machine_and_too_much_is_refused() {
        for n_words in [1, 9, 1 << 16] {
            let words = PlainWords::new(n_words, PagePreference::Auto).unwrap();
            assert_eq!(words.as_slice().len() % LINE_WORDS, 0);
            assert_eq!(words.as_slice().as_ptr().addr() % 64, 0);
        }
        let refused = PlainWords::new(1 << 50, PagePreference::Auto);
        assert!(matches!(refused, Err(MemoryError::TooLarge { .. })));
    }
}
