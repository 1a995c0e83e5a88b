//! Names in words and blocks, as the hashes take them.

use crate::name::first_component_len;

/// Bytes of a word.
pub(super) const WORD_BYTES: usize = 8;
/// Bytes of a block, which is two words.
pub(super) const BLOCK_BYTES: usize = 2 * WORD_BYTES;

/// The eight bytes from `pos` on, little-endian; zeros stand for those beyond
/// the end.
#[inline(always)]
pub(super) fn word_at(bytes: &[u8], pos: usize) -> u64 {
    match bytes.get(pos..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u64::from_le_bytes(*word),
        None => last_word(bytes, pos),
    }
}

/// The word at `pos`, from which on `bytes` has no eight more.
#[inline(always)]
fn last_word(bytes: &[u8], pos: usize) -> u64 {
    if let Some(word) = bytes.last_chunk() {
        // What lies before `pos` is shifted out, zeros come in.
        let n_before = (pos + WORD_BYTES - bytes.len()).min(WORD_BYTES);
        let word = u64::from_le_bytes(*word);
        return word.checked_shr(8 * n_before as u32).unwrap_or(0);
    }
    let rest = bytes.get(pos..).unwrap_or_default();
    let backward = rest.iter().rev();
    backward.fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// A word of which only the first `n_bytes` bytes count, fewer than all.
#[inline(always)]
pub(super) const fn first_of_word(word: u64, n_bytes: usize) -> u64 {
    word & ((1 << (8 * n_bytes)) - 1)
}

/// The words of a block of which only the first `n_bytes` bytes count.
#[inline(always)]
pub(super) fn first_of_block(block: &[u8; BLOCK_BYTES], n_bytes: usize) -> [u64; 2] {
    /// Masks of that many bytes: looked up in fewer instructions than made.
    static MASKS: [[u64; 2]; BLOCK_BYTES + 1] = {
        let mut masks = [[0; 2]; BLOCK_BYTES + 1];
        let mut n_bytes = 1;
        while n_bytes <= BLOCK_BYTES {
            masks[n_bytes] = masks[n_bytes - 1];
            let last = &mut masks[n_bytes][(n_bytes - 1) / WORD_BYTES];
            *last = *last << 8 | 0xff;
            n_bytes += 1;
        }
        masks
    };
    let [a, b] = MASKS[n_bytes];
    [word_at(block, 0) & a, word_at(block, WORD_BYTES) & b]
}

/// The words of at most a block of bytes, filled up with zeros.
#[inline(never)]
pub(super) fn short_block(bytes: &[u8]) -> [u64; 2] {
    [word_at(bytes, 0), word_at(bytes, WORD_BYTES)]
}

/// Takes the bytes of the first component off a name's.
#[inline(always)]
pub(super) fn take_component<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (component, after) = rest.split_at_checked(first_component_len(rest)?)?;
    *rest = after;
    Some(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beyond_the_end_are_filled_with_zeros() {
        let bytes: Vec<u8> = (1..=20).collect();
        for n_bytes in 0..=bytes.len() {
            let mut filled = bytes[..n_bytes].to_vec();
            filled.resize(n_bytes + 2 * WORD_BYTES, 0);
            for pos in 0..=n_bytes {
                let expected = u64::from_le_bytes(filled[pos..pos + 8].try_into().unwrap());
                assert_eq!(word_at(&bytes[..n_bytes], pos), expected, "{n_bytes} {pos}");
            }
        }
    }

    #[test]
    fn what_does_not_count_is_zero() {
        let block: [u8; BLOCK_BYTES] = std::array::from_fn(|i| i as u8 + 1);
        for n_bytes in 0..=BLOCK_BYTES {
            let mut filled = block[..n_bytes].to_vec();
            filled.resize(BLOCK_BYTES, 0);
            let expected = [word_at(&filled, 0), word_at(&filled, 8)];
            assert_eq!(first_of_block(&block, n_bytes), expected);
            if n_bytes < WORD_BYTES {
                assert_eq!(first_of_word(word_at(&block, 0), n_bytes), expected[0]);
            }
        }
    }
}
