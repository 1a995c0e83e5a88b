//! SipHash (Aumasson and Bernstein 2012) of every prefix of a name.
//!
//! The state after the whole words of a prefix is the state with which the next
//! one goes on; only the bytes after the last whole word, and the length, are
//! mixed into a copy. So a prefix costs its finalisation, and the name is read
//! once.

use super::NameHash;
use super::words::{WORD_BYTES, first_of_word, take_component, word_at};
use crate::NameView;

/// SipHash with `C` rounds for each word and `D` at the end, under a key.
#[derive(Clone, Copy)]
pub(super) struct Sip<const C: u32, const D: u32> {
    start: State,
}

/// `v0` to `v3` of section 2.
#[derive(Clone, Copy)]
struct State([u64; 4]);

impl State {
    #[inline(always)]
    fn round(&mut self) {
        let Self([v0, v1, v2, v3]) = self;
        *v0 = v0.wrapping_add(*v1);
        *v2 = v2.wrapping_add(*v3);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v1);
        *v0 = v0.wrapping_add(*v3);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.rotate_left(32);
    }

    #[inline(always)]
    fn absorb<const C: u32>(&mut self, word: u64) {
        self.0[3] ^= word;
        for _ in 0..C {
            self.round();
        }
        self.0[0] ^= word;
    }

    /// The hash of `n_bytes` bytes, of which the state has the whole words and
    /// `tail` the rest.
    #[inline(always)]
    fn finish<const C: u32, const D: u32>(mut self, tail: u64, n_bytes: usize) -> NameHash {
        self.absorb::<C>(tail | (n_bytes as u64) << 56);
        self.0[2] ^= 0xff;
        for _ in 0..D {
            self.round();
        }
        let [v0, v1, v2, v3] = self.0;
        NameHash(v0 ^ v1 ^ v2 ^ v3)
    }
}

impl<const C: u32, const D: u32> Sip<C, D> {
    pub(super) const fn new(k0: u64, k1: u64) -> Self {
        Self {
            start: State([
                k0 ^ 0x736f_6d65_7073_6575,
                k1 ^ 0x646f_7261_6e64_6f6d,
                k0 ^ 0x6c79_6765_6e65_7261,
                k1 ^ 0x7465_6462_7974_6573,
            ]),
        }
    }

    /// The hash of `bytes`.
    pub(super) fn hash(&self, bytes: &[u8]) -> NameHash {
        let mut state = self.start;
        let mut pos = 0;
        while let Some(word) = bytes[pos..].first_chunk() {
            state.absorb::<C>(u64::from_le_bytes(*word));
            pos += WORD_BYTES;
        }
        state.finish::<C, D>(word_at(bytes, pos), bytes.len())
    }

    /// Writes the hash of each prefix of `name` to `hashes`, which has room for
    /// just these.
    #[inline]
    pub(super) fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut [NameHash]) {
        let bytes = name.value_bytes();
        let mut rest = bytes;
        let mut state = self.start;
        let (mut pos, mut end) = (0, 0);
        for hash in hashes {
            while end - pos >= WORD_BYTES {
                state.absorb::<C>(word_at(bytes, pos));
                pos += WORD_BYTES;
            }
            let tail = first_of_word(word_at(bytes, pos), end - pos);
            *hash = state.finish::<C, D>(tail, end);
            end += take_component(&mut rest).map_or(0, <[u8]>::len);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use siphasher::sip::{SipHasher13, SipHasher24};

    use super::*;

    /// The key of the authors' vectors.
    const K0: u64 = 0x0706_0504_0302_0100;
    const K1: u64 = 0x0f0e_0d0c_0b0a_0908;

    #[test]
    fn the_authors_example_comes_out() {
        // Appendix A.
        let message: Vec<u8> = (0..15).collect();
        let hash = Sip::<2, 4>::new(K0, K1).hash(&message);
        assert_eq!(hash, NameHash(0xa129_ca61_49be_45e5));
    }

    #[test]
    fn hashes_are_those_of_another_implementation() {
        let hashed = |mut hasher: Box<dyn Hasher>, message: &[u8]| {
            hasher.write(message);
            NameHash(hasher.finish())
        };
        let message: Vec<u8> = (0..=255).cycle().take(600).collect();
        for len in 0..=message.len() {
            let message = &message[..len];
            let sip24 = Box::new(SipHasher24::new_with_keys(K0, K1));
            let sip13 = Box::new(SipHasher13::new_with_keys(K0, K1));
            assert_eq!(
                Sip::<2, 4>::new(K0, K1).hash(message),
                hashed(sip24, message)
            );
            assert_eq!(
                Sip::<1, 3>::new(K0, K1).hash(message),
                hashed(sip13, message)
            );
        }
    }
}
