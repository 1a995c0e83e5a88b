//! CLOCK, with one reference bit or with a count.
//!
//! The clock's face is the row of slots itself. Its hand goes over slots that were
//! asked for, taking away a mark from each, and stops at one without marks. The
//! marks of 64 slots lie in a word each, so that the hand passes 64 slots at once.
//!
//! With one mark it is the second chance of Corbató 1968; with counts of several
//! bits, the generalised CLOCK (Smith, "Sequentiality and prefetching in database
//! systems", 1978), which keeps the more popular the longer and so comes near LFU
//! at the price of a bit for each doubling.

use super::Evict;

/// 64 slots: which of them are held, and the binary digits of their counts, the
/// least significant first.
#[derive(Clone, Copy, Debug)]
struct Word<const BITS: usize> {
    held: u64,
    counts: [u64; BITS],
}

impl<const BITS: usize> Word<BITS> {
    /// Those with a count.
    fn marked(&self) -> u64 {
        self.counts.iter().fold(0, |marked, digits| marked | digits)
    }

    /// Takes one from the counts of `slots`, all of which have one.
    fn count_down(&mut self, slots: u64) {
        let mut borrow = slots;
        for digits in &mut self.counts {
            *digits ^= borrow;
            borrow &= *digits;
        }
    }

    /// Adds one to the counts of `slots` that are not at the greatest.
    fn count_up(&mut self, slots: u64) {
        let full = self.counts.iter().fold(!0, |full, digits| full & digits);
        let mut carry = slots & !full;
        for digits in &mut self.counts {
            *digits ^= carry;
            carry &= !*digits;
        }
    }
}

/// Evicts the next slot without a count; hits count up to `2^BITS - 1`.
#[derive(Clone, Debug)]
pub(crate) struct Clock<const BITS: usize> {
    words: Vec<Word<BITS>>,
    len: usize,
    hand: u32,
}

impl<const BITS: usize> Clock<BITS> {
    pub(crate) fn new(n_slots: usize) -> Self {
        let empty = Word {
            held: 0,
            counts: [0; BITS],
        };
        Self {
            words: vec![empty; n_slots.div_ceil(64)],
            len: 0,
            hand: 0,
        }
    }
}

impl<const BITS: usize> Evict for Clock<BITS> {
    fn insert(&mut self, slot: u32, _: u64) {
        let word = &mut self.words[slot as usize / 64];
        let bit = 1 << (slot % 64);
        word.held |= bit;
        for digits in &mut word.counts {
            *digits &= !bit;
        }
        self.len += 1;
    }

    fn hit(&mut self, slot: u32) {
        self.words[slot as usize / 64].count_up(1 << (slot % 64));
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        // Ends: each round takes one from every count, and some slot is held.
        loop {
            let at = self.hand as usize / 64;
            let Some(word) = self.words.get_mut(at) else {
                self.hand = 0;
                continue;
            };
            let ahead = !0 << (self.hand % 64);
            let marked = word.marked();
            let unmarked = word.held & !marked & ahead;
            let passed = match unmarked {
                0 => ahead,
                _ => ahead & (unmarked & unmarked.wrapping_neg()).wrapping_sub(1),
            };
            word.count_down(word.held & marked & passed);
            if unmarked != 0 {
                self.hand = at as u32 * 64 + unmarked.trailing_zeros();
                return Some(self.hand);
            }
            self.hand = (at as u32 + 1) * 64;
        }
    }

    fn evict(&mut self, slot: u32, _: u64) {
        self.remove(slot);
        // What comes in its place has a whole round.
        if slot == self.hand {
            self.hand += 1;
        }
    }

    fn remove(&mut self, slot: u32) {
        self.words[slot as usize / 64].held &= !(1 << (slot % 64));
        self.len -= 1;
    }

    fn len(&self) -> usize {
        self.len
    }

    fn upcoming(&self) -> [Option<u32>; 2] {
        let (at, ahead) = (self.hand / 64, !0 << (self.hand % 64));
        let unmarked = match self.words.get(at as usize) {
            Some(word) => word.held & !word.marked() & ahead,
            None => 0,
        };
        let second = unmarked & unmarked.wrapping_sub(1);
        let third = second & second.wrapping_sub(1);
        [second, third].map(|slots| (slots != 0).then(|| at * 64 + slots.trailing_zeros()))
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    fn forget_hits(&mut self) {
        for word in &mut self.words {
            word.counts = [0; BITS];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_many_slots_change_each_by_one() {
        let mut word = Word::<3> {
            held: !0,
            counts: [0; 3],
        };
        let count = |word: &Word<3>, slot: u32| {
            (0..3).fold(0, |count, digit| {
                count | ((word.counts[digit] >> slot & 1) << digit)
            })
        };
        for slot in 0..64 {
            for _ in 0..slot % 10 {
                word.count_up(1 << slot);
            }
        }
        for slot in 0..64 {
            assert_eq!(count(&word, slot), u64::from(slot % 10).min(7));
        }
        word.count_down(word.marked());
        for slot in 0..64 {
            let before = u64::from(slot % 10).min(7);
            assert_eq!(count(&word, slot), before.saturating_sub(1));
        }
    }
}
