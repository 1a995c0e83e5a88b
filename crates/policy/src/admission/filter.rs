//! Filter: what was asked for often enough among the last requests.
//!
//! Takemasa et al. 2019, section 4.3. A queue holds the name hashes of the last q
//! Interests, and counters tell how often each is among them. A Data is admitted if the
//! count of its name is at least the threshold. The cached Data are not looked at.

use tachonym_memory::{MemoryError, PagePreference, Pages, PlainWords};

use super::counters::{Count, Counters};
use crate::kind::CountersKind;

/// How far ahead the counters of requests that are about to leave the history are fetched.
const PREFETCH_AHEAD: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Filter {
    history: History,
    counters: Counters,
    threshold: u32,
}

/// The last requests, each by what its counter gave for it.
#[derive(Debug)]
struct History {
    /// A ring, zero where there was no request yet.
    tokens: PlainWords,
    len: usize,
    /// Where the next one goes, and the oldest lies once the ring is full.
    next: usize,
}

impl History {
    /// Puts a request in the place of the oldest. How often its name is in the history now.
    #[inline]
    fn push(&mut self, hash: u64, counters: &mut impl Count) -> u32 {
        let tokens = &mut self.tokens.as_mut_slice()[..self.len];
        counters.take(tokens[self.next]);
        let (token, count) = counters.add(hash);
        tokens[self.next] = token;
        self.next += 1;
        if self.next == self.len {
            self.next = 0;
        }
        if let Some(&leaving) = tokens.get(self.next + PREFETCH_AHEAD) {
            counters.prefetch_token(leaving);
        }
        count
    }
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
    /// [`CountersKind::Lines`].
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
            history: History {
                tokens: PlainWords::new(history_len, pages)?,
                len: history_len,
                next: 0,
            },
            counters,
            threshold,
        })
    }

    /// The greatest threshold with counters of a kind.
    #[must_use]
    pub const fn max_threshold(counters: CountersKind) -> u32 {
        Counters::max_count(counters)
    }

    /// Bytes of history and counters for so many requests.
    #[must_use]
    pub fn bytes_for(history_len: usize, counters: CountersKind) -> u64 {
        history_bytes(history_len).saturating_add(Counters::bytes_for(counters, history_len))
    }

    /// The same for one that [`AutoFilter`](super::AutoFilter) has.
    pub(super) fn sparse_bytes_for(history_len: usize) -> u64 {
        history_bytes(history_len).saturating_add(Counters::sparse_bytes_for(history_len))
    }

    /// Requests in a full history.
    #[must_use]
    pub const fn history_len(&self) -> usize {
        self.history.len
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
        match &mut self.counters {
            Counters::Lines(lines) => self.history.push(hash, lines),
            Counters::Row(row) => self.history.push(hash, row),
            Counters::Exact(exact) => self.history.push(hash, exact),
        }
    }

    /// Whether a Data of this name is admitted.
    #[inline]
    #[must_use]
    pub fn admits(&self, hash: u64) -> bool {
        self.counters.count(hash) >= self.threshold
    }

    /// How often this name is in the history; not more than
    /// [`max_threshold`](Self::max_threshold). A name may be counted for another one, if it
    /// shares its counter, or not at all, if its group of counters is full.
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
        self.history.tokens.pages() + self.counters.pages()
    }

    /// Memory of history and counters, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.history.tokens.as_slice().len() * 8 + self.counters.memory_bytes()
    }
}

/// Bytes of a history, which takes whole cache lines.
const fn history_bytes(history_len: usize) -> u64 {
    const LINE_BYTES: u64 = 64;
    (history_len as u64)
        .div_ceil(LINE_BYTES / 8)
        .saturating_mul(LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_more_than_was_said() {
        for history_len in [1, 100, 3_561, 3_562, 3_563, 10_000, 123_457] {
            let kinds = CountersKind::ALL.map(|kind| {
                let filter = Filter::new(history_len, 2, kind, PagePreference::Auto);
                (filter, Filter::bytes_for(history_len, kind))
            });
            let sparse = Filter::sparse(history_len, PagePreference::Auto);
            let said = Filter::sparse_bytes_for(history_len);
            for (filter, said) in kinds.into_iter().chain([(sparse, said)]) {
                let taken = filter.expect("memory").memory_bytes() as u64;
                assert!(taken <= said, "{history_len}: {taken} of {said}");
            }
        }
    }
}
