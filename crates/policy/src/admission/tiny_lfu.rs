//! TinyLFU: what was asked for more often than what would have to go.
//!
//! Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy",
//! ACM Transactions on Storage 2017, section 3. Frequencies over a window of W requests
//! are kept in a count-min sketch that counts up the least of a name's four counters
//! only. After W requests all counters are halved: no request passes over all of them, for
//! each word has the number of the last halving that it knows of, and makes up for those
//! since when it is looked at. Open in the paper is the size: here a row has a counter of 8
//! bits for each request of the window, or some more, and there is no Bloom
//! filter in front of it for names that were asked for once. That saves memory but
//! forgets them whenever counters are halved, which costs 0.004 of the hit ratio with
//! 10^5 Data of 10^7 objects of Zipf popularity 0.8 and a window of 50 times the cache.

use tachonym_memory::{MemoryError, PagePreference, Pages, PlainWords, prefetch};

/// Rows of the sketch.
const N_ROWS: usize = 4;
/// What makes the hashes of rows independent: odd numbers from the digits of pi.
const ROW_SEEDS: [u64; N_ROWS] = [
    0x243F_6A88_85A3_08D3,
    0x1319_8A2E_0370_7345,
    0xA409_3822_299F_31D1,
    0x082E_FA98_EC4E_6C89,
];

/// Counters of 8 bits in a word; the eighth byte, the lowest, is a number of halvings.
const COUNTERS_BY_WORD: usize = 7;

/// Requests of the longest window.
const MAX_WINDOW_LEN: usize = 1 << 40;

/// Frequencies of names over a window of requests.
#[derive(Debug)]
pub struct TinyLfu {
    /// The rows of the sketch, one after the other.
    sketch: PlainWords,
    /// Words of a row, in powers of two.
    row_bits: u32,
    /// How often all counters were halved, modulo 256. A word that nobody looked at for so
    /// long that the number has come round keeps what it had: too much by chance, once.
    n_halvings: u8,
    window_len: usize,
    n_requests: usize,
}

impl TinyLfu {
    /// The greatest [frequency](Self::frequency) that is told from lesser ones.
    pub const MAX_FREQUENCY: u64 = 0xFF;

    /// Nothing counted; a window of `window_len` requests, at least one.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub fn new(window_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let window_len = window_len.clamp(1, MAX_WINDOW_LEN);
        let n_words = n_words(window_len);
        Ok(Self {
            sketch: PlainWords::new(N_ROWS * n_words, pages)?,
            row_bits: n_words.trailing_zeros(),
            n_halvings: 0,
            window_len,
            n_requests: 0,
        })
    }

    /// Bytes of the sketch for a window of so many requests.
    #[must_use]
    pub const fn bytes_for(window_len: usize) -> u64 {
        let window_len = if window_len < MAX_WINDOW_LEN {
            window_len
        } else {
            MAX_WINDOW_LEN
        };
        8 * (N_ROWS * n_words(window_len)) as u64
    }

    /// The word of a name's counter in a row, and the counter's place in that.
    #[inline]
    fn place(&self, hash: u64, row: usize) -> (usize, u32) {
        let mixed = hash.wrapping_mul(ROW_SEEDS[row]);
        let word = (mixed >> (64 - self.row_bits)) as usize;
        // The bits below those that chose the word choose one of seven.
        let rest = mixed << self.row_bits >> 32;
        let counter = (rest * COUNTERS_BY_WORD as u64) >> 32;
        (row << self.row_bits | word, 8 * (counter as u32 + 1))
    }

    /// A word with all halvings that there have been.
    #[inline]
    fn up_to_date(&self, word: u64) -> u64 {
        match self.n_halvings.wrapping_sub(word as u8) {
            0 => word,
            n_missed => Self::halved(word, n_missed) | u64::from(self.n_halvings),
        }
    }

    /// The counters of a word, halved so often.
    #[inline(never)]
    fn halved(word: u64, n_times: u8) -> u64 {
        if n_times >= 8 {
            return 0;
        }
        let kept = 0xFF_u64 >> n_times;
        // In each byte but the lowest.
        (word >> n_times) & (kept * 0x0101_0101_0101_0100)
    }

    /// A name was asked for.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) {
        let places = [0, 1, 2, 3].map(|row| self.place(hash, row));
        let words = places.map(|(word, _)| self.up_to_date(self.sketch.as_slice()[word]));
        let counter = |row: usize| words[row] >> places[row].1 & 0xFF;
        let least = (0..N_ROWS).map(counter).fold(0xFF, u64::min);
        let sketch = self.sketch.as_mut_slice();
        for (row, (word, shift)) in places.into_iter().enumerate() {
            let is_least = counter(row) == least && least < 0xFF;
            sketch[word] = words[row] + (u64::from(is_least) << shift);
        }
        self.n_requests += 1;
        if self.n_requests >= self.window_len {
            self.n_halvings = self.n_halvings.wrapping_add(1);
            self.n_requests /= 2;
        }
    }

    /// How often a name was asked for lately: not less but for ageing, and at most
    /// [`MAX_FREQUENCY`](Self::MAX_FREQUENCY).
    #[inline]
    #[must_use]
    pub fn frequency(&self, hash: u64) -> u64 {
        let counters = (0..N_ROWS).map(|row| {
            let (word, shift) = self.place(hash, row);
            self.up_to_date(self.sketch.as_slice()[word]) >> shift & 0xFF
        });
        counters.fold(Self::MAX_FREQUENCY, u64::min)
    }

    /// Fetches what a request of this name will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        for row in 0..N_ROWS {
            prefetch(&self.sketch.as_slice()[self.place(hash, row).0]);
        }
    }

    /// What pages its tables have.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.sketch.pages()
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        8 * self.sketch.as_slice().len()
    }
}

/// Words of a row.
const fn n_words(window_len: usize) -> usize {
    let n_words = window_len.div_ceil(COUNTERS_BY_WORD).next_power_of_two();
    if n_words < 8 { 8 } else { n_words }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(name: u64) -> u64 {
        crate::random::Random::new(name).next_u64()
    }

    #[test]
    fn frequencies_are_those_of_the_window() {
        let mut sketch = TinyLfu::new(10_000, PagePreference::Base).expect("little memory");
        for _ in 0..20 {
            for name in 0..100 {
                sketch.handle_request(hash(name));
            }
        }
        for name in 0..100 {
            assert_eq!(sketch.frequency(hash(name)), 20);
        }
        let n_false = (100..10_100)
            .filter(|&name| sketch.frequency(hash(name)) > 0)
            .count();
        assert!(n_false < 20, "{n_false}");
    }

    #[test]
    fn counts_are_halved_when_the_window_is_over() {
        let mut sketch = TinyLfu::new(1_000, PagePreference::Base).expect("little memory");
        for _ in 0..999 {
            sketch.handle_request(hash(1));
        }
        assert_eq!(sketch.frequency(hash(1)), 255);
        sketch.handle_request(hash(1));
        assert_eq!(sketch.frequency(hash(1)), 127);
        // Nobody looks at it for three halvings.
        for name in 0..1_500 {
            sketch.handle_request(hash(1_000 + name));
        }
        assert_eq!(sketch.frequency(hash(1)), 127 >> 3);
        for name in 0..10_000 {
            sketch.handle_request(hash(1_000 + name));
        }
        assert_eq!(sketch.frequency(hash(1)), 0);
    }

    #[test]
    fn every_counter_of_a_word_is_halved_by_itself() {
        let sketch = TinyLfu::new(1, PagePreference::Base).expect("little memory");
        assert_eq!(sketch.up_to_date(u64::MAX << 8), u64::MAX << 8);
        for n_times in 1..8 {
            let word = TinyLfu::halved(u64::MAX, n_times);
            let bytes = word.to_be_bytes();
            assert_eq!(bytes[..7], [0xFF >> n_times; 7]);
            assert_eq!(bytes[7], 0, "for the number of halvings");
        }
        for n_times in 8..=u8::MAX {
            assert_eq!(TinyLfu::halved(u64::MAX, n_times), 0);
        }
    }
}
