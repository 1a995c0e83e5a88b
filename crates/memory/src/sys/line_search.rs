//! Which words of a cache line agree with a pattern, all eight compared at once.
//!
//! Nothing foretells at which place of a bucket a name is, so a loop that leaves at the
//! first match costs a branch that the processor guesses wrong. Here there is none: the
//! halves of words that are compared are gathered in vectors of 128 bits, which every
//! x86-64 has; elsewhere the compiler does what it can.

/// The words of a cache line.
type Line = [u64; crate::LINE_WORDS];

/// A bit for each word of which the upper half, but for the bits that `mask` leaves out,
/// is `pattern`.
#[inline(always)]
#[must_use]
pub fn places_with_upper_half(line: &Line, pattern: u32, mask: u32) -> u32 {
    vectors::places::<UPPER_HALVES>(line, pattern, mask)
}

/// A bit for each word of which the lower half is `pattern`.
#[inline(always)]
#[must_use]
pub fn places_with_lower_half(line: &Line, pattern: u32) -> u32 {
    vectors::places::<LOWER_HALVES>(line, pattern, u32::MAX)
}

/// A bit for each half of four words that is `pattern`, but for the bits that `mask` leaves
/// out, in the order in which they lie in memory.
#[inline(always)]
#[must_use]
pub fn places_of_halves(words: &[u64; 4], pattern: u32, mask: u32) -> u32 {
    vectors::places_of_halves(words, pattern, mask)
}

/// Which of four 32-bit lanes a shuffle takes of its first operand, twice, and of its
/// second, twice: the odd ones or the even ones.
const UPPER_HALVES: i32 = 0b11_01_11_01;
const LOWER_HALVES: i32 = 0b10_00_10_00;

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{
        _mm_and_si128, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128,
        _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi32, _mm_shuffle_ps,
    };

    use super::Line;

    #[inline(always)]
    pub(super) fn places<const HALVES: i32>(line: &Line, pattern: u32, mask: u32) -> u32 {
        // SAFETY: every x86-64 processor has SSE2, and the program is compiled for it.
        unsafe { compared::<HALVES>(line, pattern, mask) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn compared<const HALVES: i32>(line: &Line, pattern: u32, mask: u32) -> u32 {
        let pattern = _mm_set1_epi32(pattern.cast_signed());
        let mask = _mm_set1_epi32(mask.cast_signed());
        let (pairs, _) = line.as_chunks::<2>();
        let pair = |pair: &[u64; 2]| {
            // SAFETY: the reference is to as many bytes as are loaded, however aligned.
            _mm_castsi128_ps(unsafe { _mm_loadu_si128((&raw const *pair).cast()) })
        };
        let agree = |first: usize| {
            let (low, high) = (pair(&pairs[first]), pair(&pairs[first + 1]));
            let halves = _mm_castps_si128(_mm_shuffle_ps::<HALVES>(low, high));
            _mm_cmpeq_epi32(_mm_and_si128(halves, mask), pattern)
        };
        // A lane of all ones stays one when it is made narrower.
        let words = _mm_packs_epi32(agree(0), agree(2));
        let bytes = _mm_packs_epi16(words, words);
        _mm_movemask_epi8(bytes).cast_unsigned() & 0xff
    }

    #[inline(always)]
    pub(super) fn places_of_halves(words: &[u64; 4], pattern: u32, mask: u32) -> u32 {
        // SAFETY: every x86-64 processor has SSE2, and the program is compiled for it.
        unsafe { halves_compared(words, pattern, mask) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn halves_compared(words: &[u64; 4], pattern: u32, mask: u32) -> u32 {
        let pattern = _mm_set1_epi32(pattern.cast_signed());
        let mask = _mm_set1_epi32(mask.cast_signed());
        let (pairs, _) = words.as_chunks::<2>();
        let agree = |pair: &[u64; 2]| {
            // SAFETY: the reference is to as many bytes as are loaded, however aligned.
            let halves = unsafe { _mm_loadu_si128((&raw const *pair).cast()) };
            _mm_cmpeq_epi32(_mm_and_si128(halves, mask), pattern)
        };
        let all = _mm_packs_epi32(agree(&pairs[0]), agree(&pairs[1]));
        _mm_movemask_epi8(_mm_packs_epi16(all, all)).cast_unsigned() & 0xff
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    pub(super) use super::{
        portable_places as places, portable_places_of_halves as places_of_halves,
    };
}

/// What [`vectors`] computes, one word after the other.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable_places<const HALVES: i32>(line: &Line, pattern: u32, mask: u32) -> u32 {
    let mut places = 0;
    for (place, word) in line.iter().enumerate() {
        let half = match HALVES {
            UPPER_HALVES => (word >> 32) as u32,
            _ => *word as u32,
        };
        places |= u32::from(half & mask == pattern) << place;
    }
    places
}

/// As [`places_of_halves`].
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable_places_of_halves(words: &[u64; 4], pattern: u32, mask: u32) -> u32 {
    let halves = words
        .iter()
        .flat_map(|&word| match cfg!(target_endian = "big") {
            true => [(word >> 32) as u32, word as u32],
            false => [word as u32, (word >> 32) as u32],
        });
    let mut places = 0;
    for (place, half) in halves.enumerate() {
        places |= u32::from(half & mask == pattern) << place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 512 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn vectors_agree_with_one_word_after_the_other(
            line in proptest::array::uniform8(0_u64..1 << 3),
            shifts in proptest::array::uniform8(0_u32..64),
            pattern in 0_u32..1 << 3,
            pattern_shift in 0_u32..32,
            mask in any::<u32>(),
        ) {
            let line = std::array::from_fn(|i| line[i].rotate_left(shifts[i]));
            let pattern = pattern.rotate_left(pattern_shift);
            let masked = pattern & mask;
            prop_assert_eq!(
                places_with_upper_half(&line, masked, mask),
                portable_places::<UPPER_HALVES>(&line, masked, mask)
            );
            prop_assert_eq!(
                places_with_lower_half(&line, pattern),
                portable_places::<LOWER_HALVES>(&line, pattern, u32::MAX)
            );
            let (fours, _) = line.as_chunks::<4>();
            for words in fours {
                prop_assert_eq!(
                    places_of_halves(words, masked, mask),
                    portable_places_of_halves(words, masked, mask)
                );
            }
        }
    }

    #[test]
    fn every_place_has_its_bit() {
        for place in 0..8 {
            let mut line = [0; 8];
            line[place] = 0xabcd_ef01_2345_6789;
            assert_eq!(
                places_with_upper_half(&line, 0xabcd_0000, 0xffff_0000),
                1 << place
            );
            assert_eq!(places_with_lower_half(&line, 0x2345_6789), 1 << place);
            assert_eq!(places_with_lower_half(&line, 0), 0xff & !(1 << place));
            let (fours, _) = line.as_chunks::<4>();
            let (words, low) = (&fours[place / 4], 1 << (2 * (place % 4)));
            assert_eq!(places_of_halves(words, 0x2345_6789, u32::MAX), low);
            assert_eq!(places_of_halves(words, 0xcd00, 0xff00), 0);
            assert_eq!(places_of_halves(words, 0xab << 24, 0xff << 24), low << 1);
        }
    }
}
