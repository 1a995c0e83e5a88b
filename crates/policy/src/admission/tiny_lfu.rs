//! TinyLFU: what was asked for more often than what would have to go.
//!
//! Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy",
//! ACM Transactions on Storage 2017, section 3. Frequencies over a window of W requests
//! are kept in a count-min sketch that counts up the least of a name's four counters
//! only; the first request of a name in the window is kept in a Bloom filter of three
//! bits (the doorkeeper). After W requests all counters are halved, and the doorkeeper
//! forgets. Open in the paper is the size: a row of the sketch has a counter of 8 bits
//! for every four requests of the window, the doorkeeper four bits for each.

use tachonym_memory::{MemoryError, PagePreference, PlainWords, prefetch};

/// Rows of the sketch.
const N_ROWS: usize = 4;
/// Bits of a name in the doorkeeper.
const N_DOOR_BITS: u32 = 3;
/// What makes the hashes of rows independent: odd numbers from the digits of pi.
const ROW_SEEDS: [u64; N_ROWS] = [
    0x243F_6A88_85A3_08D3,
    0x1319_8A2E_0370_7345,
    0xA409_3822_299F_31D1,
    0x082E_FA98_EC4E_6C89,
];

/// Frequencies of names over a window of requests.
#[derive(Debug)]
pub struct TinyLfu {
    /// The rows of the sketch, one after the other: eight counters a word.
    sketch: PlainWords,
    /// Counters of a row, in powers of two.
    row_bits: u32,
    doorkeeper: PlainWords,
    door_shift: u32,
    window_len: usize,
    n_requests: usize,
}

impl TinyLfu {
    /// Nothing counted; a window of `window_len` requests, at least one.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub fn new(window_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let window_len = window_len.clamp(1, 1 << 40);
        let n_counters = (window_len / 4).next_power_of_two().max(64);
        let n_door_bits = (4 * window_len).next_power_of_two().max(512);
        Ok(Self {
            sketch: PlainWords::new(N_ROWS * n_counters / 8, pages)?,
            row_bits: n_counters.trailing_zeros(),
            doorkeeper: PlainWords::new(n_door_bits / 64, pages)?,
            door_shift: 64 - n_door_bits.trailing_zeros(),
            window_len,
            n_requests: 0,
        })
    }

    /// The word of a name's counter in a row, and the counter's place in that.
    #[inline]
    fn place(&self, hash: u64, row: usize) -> (usize, u32) {
        let place = (hash.wrapping_mul(ROW_SEEDS[row]) >> (64 - self.row_bits)) as usize;
        ((row << self.row_bits | place) / 8, place as u32 % 8 * 8)
    }

    /// The words of a name's bits in the doorkeeper, and the bits.
    #[inline]
    fn door(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (mut at, step) = (hash.rotate_left(21), hash.rotate_left(43) | 1);
        let shift = self.door_shift;
        (0..N_DOOR_BITS).map(move |_| {
            at = at.wrapping_add(step);
            let bit = at >> shift;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    #[inline]
    fn least(&self, hash: u64) -> u64 {
        let counters = (0..N_ROWS).map(|row| {
            let (word, shift) = self.place(hash, row);
            (self.sketch.as_slice()[word] >> shift) & 0xFF
        });
        counters.min().unwrap_or(0)
    }

    /// A name was asked for. Once in every window this passes over all counters.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) {
        let mut is_new = false;
        for (word, bit) in self.door(hash) {
            let word = &mut self.doorkeeper.as_mut_slice()[word];
            is_new |= *word & bit == 0;
            *word |= bit;
        }
        if !is_new {
            let least = self.least(hash);
            if least < 0xFF {
                for row in 0..N_ROWS {
                    let (word, shift) = self.place(hash, row);
                    let word = &mut self.sketch.as_mut_slice()[word];
                    *word += u64::from((*word >> shift) & 0xFF == least) << shift;
                }
            }
        }
        self.n_requests += 1;
        if self.n_requests >= self.window_len {
            self.age();
        }
    }

    #[cold]
    fn age(&mut self) {
        for word in self.sketch.as_mut_slice() {
            *word = *word >> 1 & 0x7F7F_7F7F_7F7F_7F7F;
        }
        self.doorkeeper.as_mut_slice().fill(0);
        self.n_requests /= 2;
    }

    /// How often a name was asked for lately: not less but for ageing, and at most 256.
    #[inline]
    #[must_use]
    pub fn frequency(&self, hash: u64) -> u64 {
        let doorkeeper = self.doorkeeper.as_slice();
        let is_known = self
            .door(hash)
            .all(|(word, bit)| doorkeeper[word] & bit != 0);
        self.least(hash) + u64::from(is_known)
    }

    /// Fetches what a request of this name will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        for (word, _) in self.door(hash) {
            prefetch(&self.doorkeeper.as_slice()[word]);
        }
        for row in 0..N_ROWS {
            prefetch(&self.sketch.as_slice()[self.place(hash, row).0]);
        }
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        8 * (self.sketch.as_slice().len() + self.doorkeeper.as_slice().len())
    }
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
        assert_eq!(sketch.frequency(hash(1)), 256);
        sketch.handle_request(hash(1));
        assert_eq!(sketch.frequency(hash(1)), 127);
    }
}
