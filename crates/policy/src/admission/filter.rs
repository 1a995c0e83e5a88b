//! Filter: what was asked for often enough among the last requests.
//!
//! Takemasa et al. 2019, section 4.3. A queue holds the name hashes of the last q
//! Interests, and counters tell how often each is among them. A Data is admitted if the
//! count of its name is at least the threshold. The cached Data are not looked at.

use tachonym_memory::{MemoryError, PagePreference, Pages, PlainWords};

use super::counters::{COUNTED, Counters};
use crate::kind::CountersKind;

/// How far ahead the counters of names that are about to leave the history are fetched.
const PREFETCH_AHEAD: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Filter {
    /// A ring of hashes, the low bits of which say how the name was counted.
    history: PlainWords,
    history_len: usize,
    /// Where the next hash goes, and the oldest lies once the ring is full.
    next: usize,
    is_full: bool,
    counters: Counters,
    threshold: u32,
}

impl Filter {
    /// An empty history for the last `history_len` requests, at least one. `threshold`
    /// is the least count that is admitted, the present request included: with 1, all
    /// are.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub fn new(
        history_len: usize,
        threshold: u32,
        counters: CountersKind,
        pages: PagePreference,
    ) -> Result<Self, MemoryError> {
        let history_len = history_len.max(1);
        let counters = Counters::new(counters, history_len, pages)?;
        Self::with(history_len, threshold, counters, pages)
    }

    /// A filter with threshold 1 whose counters take half as much memory as those of
    /// [`CountersKind::Lines`], and share names twice as often.
    pub(super) fn sparse(history_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let history_len = history_len.max(1);
        Self::with(history_len, 1, Counters::sparse(history_len, pages)?, pages)
    }

    fn with(
        history_len: usize,
        threshold: u32,
        counters: Counters,
        pages: PagePreference,
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            history: PlainWords::new(history_len, pages)?,
            history_len,
            next: 0,
            is_full: false,
            counters,
            threshold,
        })
    }

    /// The greatest threshold with counters of a kind.
    #[must_use]
    pub const fn max_threshold(counters: CountersKind) -> u32 {
        Counters::max_count(counters)
    }

    /// Requests in a full history.
    #[must_use]
    pub const fn history_len(&self) -> usize {
        self.history_len
    }

    /// The least count that is admitted.
    #[must_use]
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// A name was asked for. How often it is in the history now, as [`count`](Self::count)
    /// tells.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) -> u32 {
        let history = self.history.as_mut_slice();
        if self.is_full {
            let oldest = history[self.next];
            self.counters.take(oldest, oldest & COUNTED);
        }
        let counted = self.counters.add(hash);
        history[self.next] = hash & !COUNTED | counted;
        self.next += 1;
        if self.next == self.history_len {
            self.next = 0;
            self.is_full = true;
        }
        if self.is_full
            && let Some(&leaving) = history.get(self.next + PREFETCH_AHEAD)
        {
            self.counters.prefetch(leaving);
        }
        self.counters.count(hash)
    }

    /// Whether a Data of this name is admitted.
    #[inline]
    #[must_use]
    pub fn admits(&self, hash: u64) -> bool {
        self.counters.count(hash) >= self.threshold
    }

    /// How often this name is in the history, at least: never too low, but for names of
    /// more requests than [`max_threshold`](Self::max_threshold).
    #[inline]
    #[must_use]
    pub fn count(&self, hash: u64) -> u32 {
        self.counters.count(hash)
    }

    /// Fetches the counters of a name that will be asked for soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.counters.prefetch(hash);
    }

    /// What pages its tables have.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.history.pages() + self.counters.pages()
    }

    /// Memory of history and counters, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.history.as_slice().len() * 8 + self.counters.memory_bytes()
    }
}
