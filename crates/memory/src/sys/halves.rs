//! Words of 64 bits as halves of 32, two for each word, in the order in which they lie in
//! memory.

use std::slice;

/// All halves of some words.
#[inline(always)]
#[must_use]
pub fn halves(words: &[u64]) -> &[u32] {
    // SAFETY: the same bytes as the words, which are borrowed as long, are aligned for
    // halves, and any bits are a `u32`.
    unsafe { slice::from_raw_parts(words.as_ptr().cast(), 2 * words.len()) }
}

/// All halves of some words, to be changed.
#[inline(always)]
pub fn halves_mut(words: &mut [u64]) -> &mut [u32] {
    // SAFETY: the same bytes as the words, which are borrowed exclusively as long, are
    // aligned for halves, and any bits are a `u32` and a `u64`.
    unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 2 * words.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_that_is_written_is_read_in_its_word() {
        let mut words = [0_u64; 2000];
        halves_mut(&mut words)[1999] = 5;
        assert_eq!(halves(&words).len(), 4000);
        assert_eq!(halves(&words)[1999], 5);
        let word = words[999].to_ne_bytes();
        assert_eq!(word[4..], 5_u32.to_ne_bytes());
    }
}
