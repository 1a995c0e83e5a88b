//! [`Words`] where there is no kernel to ask: under the model checker loom and
//! under Miri. All of it is allocated when it is reserved.

use crate::LINE_WORDS;
use crate::error::MemoryError;
use crate::pages::{PagePreference, PageSize, Pages};
use crate::sync::AtomicU64;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As the `Words` of a build without a checker. How much of it is usable is
/// not part of a model: every thread sees it at once.
#[derive(Debug)]
pub struct Words {
    all: Box<[AtomicU64]>,
    max_words: usize,
    n_words: AtomicUsize,
}

impl Words {
    /// Allocates `max_words` words.
    ///
    /// # Errors
    ///
    /// None; the signature is that of the real one.
    pub fn reserve(max_words: usize, _: PagePreference) -> Result<Self, MemoryError> {
        let n_words = max_words.next_multiple_of(LINE_WORDS);
        Ok(Self {
            all: (0..n_words).map(|_| AtomicU64::new(0)).collect(),
            max_words,
            n_words: AtomicUsize::new(0),
        })
    }

    /// Makes the first `n_words` words usable, rounded up to a cache line.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BeyondReserve`].
    pub fn commit(&self, n_words: usize) -> Result<(), MemoryError> {
        if n_words > self.max_words {
            return Err(MemoryError::BeyondReserve {
                asked_words: n_words,
                max_words: self.max_words,
            });
        }
        let n_words = n_words.next_multiple_of(LINE_WORDS);
        self.n_words.fetch_max(n_words, Ordering::AcqRel);
        Ok(())
    }

    /// What is usable.
    pub fn words(&self) -> &[AtomicU64] {
        &self.all[..self.n_words.load(Ordering::Acquire)]
    }

    /// The cache line `idx`.
    ///
    /// # Panics
    ///
    /// If it is not usable.
    pub fn line(&self, idx: usize) -> &[AtomicU64; LINE_WORDS] {
        let (lines, _) = self.words().as_chunks();
        &lines[idx]
    }

    /// Does nothing.
    pub fn prefetch(&self, _: usize) {}

    /// Most words that it can have.
    pub fn max_words(&self) -> usize {
        self.max_words
    }

    /// Bytes that are usable.
    pub fn committed_bytes(&self) -> usize {
        self.n_words.load(Ordering::Acquire) * 8
    }

    /// All of it as base pages.
    pub fn pages(&self) -> Pages {
        Pages {
            base_bytes: self.committed_bytes() as u64,
            ..Pages::default()
        }
    }
}

/// Words of one owner. Nothing that a model would look at.
#[cfg(loom)]
#[derive(Debug)]
pub struct PlainWords(Vec<u64>);

#[cfg(loom)]
impl PlainWords {
    /// Allocates `n_words` words, rounded up to whole cache lines.
    ///
    /// # Errors
    ///
    /// None; the signature is that of the real one.
    pub fn new(n_words: usize, _: PagePreference) -> Result<Self, MemoryError> {
        Ok(Self(vec![0; n_words.next_multiple_of(LINE_WORDS)]))
    }

    /// All of them.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// All of them, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// All of it as base pages.
    pub fn pages(&self) -> Pages {
        Pages {
            base_bytes: self.0.len() as u64 * 8,
            ..Pages::default()
        }
    }
}

/// Values of one owner. Nothing that a model would look at.
#[cfg(loom)]
#[derive(Debug)]
pub struct Slots<T>(Vec<T>);

#[cfg(loom)]
impl<T> Slots<T> {
    /// No value as yet.
    ///
    /// # Errors
    ///
    /// None; the signature is that of the real one.
    pub fn reserve(_: usize, _: PagePreference) -> Result<Self, MemoryError> {
        Ok(Self(Vec::new()))
    }

    /// Does nothing.
    ///
    /// # Errors
    ///
    /// None; the signature is that of the real one.
    pub fn set_max_len(&mut self, _: usize) -> Result<(), MemoryError> {
        Ok(())
    }

    /// Adds a value.
    pub fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// There are none.
    pub fn pages(&self) -> Pages {
        Pages::default()
    }
}

#[cfg(loom)]
impl<T> std::ops::Deref for Slots<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[cfg(loom)]
impl<T> std::ops::DerefMut for Slots<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// No bound is known.
pub fn available_bytes() -> u64 {
    u64::MAX
}

/// No bound is known.
pub fn available_address_space() -> u64 {
    u64::MAX
}

/// There are none.
pub fn available_huge_bytes(_: PageSize) -> u64 {
    0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn growth_keeps_what_is_there() {
        let words = Words::reserve(20, PagePreference::Auto).unwrap();
        words.commit(3).unwrap();
        assert_eq!(words.words().len(), 8);
        words.line(0)[7].store(1, Ordering::Relaxed);
        words.commit(20).unwrap();
        assert_eq!(words.words()[7].load(Ordering::Relaxed), 1);
        assert_eq!(words.words().len(), 24);
        assert!(words.commit(21).is_err());
    }
}
