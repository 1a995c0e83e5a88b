//! Keyed hashes of names and of all their prefixes.
//!
//! Owns [`NameHash`], the 64-bit SipHash-1-3 of a name's components, and
//! [`NameHashes`], which computes the hash of every prefix of a name in one
//! pass. The key keeps remote parties from choosing names that collide
//! (Aumasson and Bernstein 2012, section 1); tables still compare names by
//! their bytes. Where the key comes from is the caller's business.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::NameView;

/// The secret key of the hashes.
#[derive(Clone, Copy)]
pub struct HashKey {
    k0: u64,
    k1: u64,
}

impl HashKey {
    /// A key from 128 bits, which should be random and secret.
    #[must_use]
    pub const fn from_u64s(k0: u64, k1: u64) -> Self {
        Self { k0, k1 }
    }

    /// The hash of a whole name.
    #[must_use]
    pub fn hash_name(&self, name: NameView<'_>) -> NameHash {
        self.hash_bytes(&[name.value_bytes()])
    }

    /// The hash of the concatenation of `parts`, for keys that are more than a
    /// name. Equals [`hash_name`](Self::hash_name) for a name's value bytes.
    #[must_use]
    pub fn hash_bytes(&self, parts: &[&[u8]]) -> NameHash {
        let mut hasher = self.hasher();
        for part in parts {
            hasher.write(part);
        }
        NameHash(hasher.finish())
    }

    fn hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.k0, self.k1)
    }
}

/// Hides the key, which would let a remote party choose collisions.
impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// Keyed hash of a name or of a prefix of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameHash(pub u64);

/// Where the hashes of one name lie in a [`NameHashes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashSpan {
    start: u32,
    n_hashes: u32,
}

/// A reusable buffer of the prefix hashes of many names.
#[derive(Clone, Debug, Default)]
pub struct NameHashes {
    hashes: Vec<NameHash>,
}

impl NameHashes {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { hashes: Vec::new() }
    }

    /// Forgets all hashes, keeps the memory. Spans given out so far are void.
    pub fn clear(&mut self) {
        self.hashes.clear();
    }

    /// Hashes every prefix of `name`, from no component to all of them.
    pub fn push_name(&mut self, key: &HashKey, name: NameView<'_>) -> HashSpan {
        let start = self.hashes.len();
        let mut hasher = key.hasher();
        self.hashes.push(NameHash(hasher.finish()));
        let mut rest = name.components();
        let mut before = name.value_bytes();
        while rest.next().is_some() {
            let after = rest.rest();
            hasher.write(&before[..before.len() - after.len()]);
            before = after;
            self.hashes.push(NameHash(hasher.finish()));
        }
        HashSpan {
            start: start as u32,
            n_hashes: (self.hashes.len() - start) as u32,
        }
    }

    /// The hashes of one name; index `i` is that of its first `i` components.
    ///
    /// # Panics
    /// If the span is from before the last [`clear`](Self::clear), or from
    /// another buffer, and out of range here.
    #[must_use]
    pub fn slice(&self, span: HashSpan) -> &[NameHash] {
        let start = span.start as usize;
        &self.hashes[start..start + span.n_hashes as usize]
    }

    /// The hash of the first `n_components` components.
    ///
    /// # Panics
    /// As [`slice`](Self::slice), and if the name has fewer components.
    #[must_use]
    pub fn get(&self, span: HashSpan, n_components: usize) -> NameHash {
        self.slice(span)[n_components]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn prefix_hashes_equal_the_hashes_of_the_prefixes() {
        let key = HashKey::from_u64s(1, 2);
        let mut hashes = NameHashes::new();
        for uri in ["/", "/a", "/a/bb/300=ccc/seg=9"] {
            let name: Name = uri.parse().unwrap();
            let span = hashes.push_name(&key, name.view());
            assert_eq!(hashes.slice(span).len(), name.len() + 1);
            for n in 0..=name.len() {
                assert_eq!(hashes.get(span, n), key.hash_name(name.prefix(n)));
            }
        }
    }

    #[test]
    fn hashes_depend_on_the_key() {
        let name: Name = "/a/b".parse().unwrap();
        let hash = |k0, k1| HashKey::from_u64s(k0, k1).hash_name(name.view());
        assert_ne!(hash(1, 2), hash(1, 3));
        assert_ne!(hash(1, 2), hash(2, 2));
    }
}
