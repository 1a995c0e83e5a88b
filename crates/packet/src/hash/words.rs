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

/// Splits off the first component of a name's, if it is of one block with its type and
/// length, as the words of that, filled up with zeros. `end` are the last bytes of the
/// name, if it has as many as a block.
#[inline(always)]
pub(super) fn split_short_component(rest: &[u8], end: Option<u128>) -> Option<([u64; 2], &[u8])> {
    /// Masks of a type, a length and that many bytes: looked up in fewer instructions than
    /// made.
    static MASKS: [[u64; 2]; BLOCK_BYTES - 1] = {
        let mut masks = [[0; 2]; BLOCK_BYTES - 1];
        let mut len = 0;
        while len < masks.len() {
            let mask = u128::MAX >> (8 * (BLOCK_BYTES - 2 - len));
            masks[len] = [mask as u64, (mask >> 64) as u64];
            len += 1;
        }
        masks
    };
    let block = match rest.first_chunk() {
        Some(block) => u128::from_le_bytes(*block),
        // What lies before the rest is shifted out, zeros come in.
        None => end?.checked_shr(8 * (BLOCK_BYTES - rest.len()) as u32)?,
    };
    let (typ, len) = (block as u8, usize::from((block >> 8) as u8));
    let [low, high] = MASKS.get(len)?;
    if typ > 252 {
        return None;
    }
    let words = [block as u64 & low, (block >> 64) as u64 & high];
    Some((words, rest.get(2 + len..)?))
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
    fn a_short_component_is_split_off_wherever_it_is() {
        for (len, n_after) in (0..=14).flat_map(|len| (0..20).map(move |n| (len, n))) {
            let component: Vec<u8> = [8, len].into_iter().chain(1..=len).collect();
            let after = [8; 20];
            // What lies before counts only as bytes of a name that is long enough.
            let name = [&[7; 16][..], &component, &after[..n_after]].concat();
            let end = name.last_chunk().map(|end| u128::from_le_bytes(*end));
            let expected = short_block(&component);
            let split = split_short_component(&name[16..], end);
            assert_eq!(split, Some((expected, &after[..n_after])));
            assert_eq!(first_of_word(expected[0], 1), 8);
        }
    }

    #[test]
    fn nothing_else_is_split_off() {
        let long_type = [253, 1, 0, 0];
        let too_long = [8, 15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        for rest in [&long_type[..], &too_long, &[8, 2, 1, 2]] {
            assert_eq!(split_short_component(rest, None), None);
        }
    }
}
