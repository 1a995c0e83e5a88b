//! Copying what is not read again soon.
//!
//! A plain copy to where the cache does not have the destination reads each line of it from
//! memory first, and puts out of the cache what else was there. Non-temporal stores do neither.

/// Bytes at the beginning that go through the cache all the same: a packet's name is there,
/// and is soon looked at.
const HEAD_BYTES: usize = 256;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Copies as [`slice::copy_from_slice`] does, but for the first 256 bytes past the cache:
/// for what is large and nobody reads soon, into memory that was not used lately. On other
/// processors than x86-64 a plain copy.
///
/// # Panics
/// If lengths differ.
pub fn copy_past_cache(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "a copy has the length of its source");
    let head = to.as_ptr().addr().wrapping_neg() % LINE_BYTES + HEAD_BYTES;
    let (Some((to_head, to)), Some((from_head, from))) =
        (to.split_at_mut_checked(head), from.split_at_checked(head))
    else {
        return to.copy_from_slice(from);
    };
    to_head.copy_from_slice(from_head);
    let (to_lines, to_tail) = to.as_chunks_mut::<LINE_BYTES>();
    let (from_lines, from_tail) = from.as_chunks::<LINE_BYTES>();
    stream(to_lines, from_lines);
    to_tail.copy_from_slice(from_tail);
}

/// Copies lines, of which those of `to` begin where lines of the cache do.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn stream(to: &mut [[u8; LINE_BYTES]], from: &[[u8; LINE_BYTES]]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const WORD_BYTES: usize = size_of::<__m128i>();
    // Once for all lines: what follows relies on it.
    assert!(to.as_ptr().addr().is_multiple_of(LINE_BYTES));
    let (to, _) = to.as_flattened_mut().as_chunks_mut::<WORD_BYTES>();
    let (from, _) = from.as_flattened().as_chunks::<WORD_BYTES>();
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: SSE2 is part of x86-64, and there are as many bytes as are read.
        let word = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        // SAFETY:
        // - there are as many bytes as are written, for `to` is a word;
        // - they begin at a multiple of 16, as a streaming store wants it: the first word begins
        //   at one of 64, as is asserted above, and the others follow it.
        unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), word) };
    }
    // SAFETY: SSE is part of x86-64. Without the fence other stores of this thread might be
    // seen before these.
    unsafe { _mm_sfence() };
}

/// The same.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn stream(to: &mut [[u8; LINE_BYTES]], from: &[[u8; LINE_BYTES]]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_a_copy_wherever_it_begins_and_ends() {
        let from: Vec<u8> = (0..2_000_u32).map(|it| (it % 251) as u8).collect();
        for start in 0..=LINE_BYTES {
            for len in (0..400).chain(1_000..1_070) {
                let mut to = vec![0; start + len + 1];
                copy_past_cache(&mut to[start..start + len], &from[1..=len]);
                assert_eq!(to[start..start + len], from[1..=len], "{start}, {len}");
                assert!(to[..start].iter().all(|&it| it == 0));
                assert_eq!(to[start + len], 0);
            }
        }
    }
}
