//! Implicit digests at the end of names.
//!
//! Owns the comparison with a full name, which is a Data's name and its digest, and
//! the hash by which the PIT finds the Interests for one.

use std::hash::{DefaultHasher, Hasher};

use tachonym_packet::types::component::IMPLICIT_SHA256_DIGEST;
use tachonym_packet::{NameHash, NameView};

const DIGEST_BYTES: usize = 32;
/// An implicit digest component begins with its type and length.
const HEAD: [u8; 2] = [IMPLICIT_SHA256_DIGEST as u8, DIGEST_BYTES as u8];

/// Whether `full_name` is `name` with `digest` appended.
pub(crate) fn is_full_name(
    full_name: &[u8],
    name: NameView<'_>,
    digest: &[u8; DIGEST_BYTES],
) -> bool {
    full_name
        .strip_prefix(name.value_bytes())
        .and_then(|tail| tail.strip_prefix(&HEAD))
        .is_some_and(|tail| tail == digest)
}

/// Hash of a full name from that of the name and the digest. The former is
/// secret, so a peer who chooses digests cannot choose hashes.
pub(crate) fn digest_hash(name_hash: NameHash, digest: &[u8; DIGEST_BYTES]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(name_hash.0);
    hasher.write(digest);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tachonym_packet::{Component, Name};

    #[test]
    fn a_full_name_is_a_name_and_its_digest() {
        let mut bytes = b"x".to_vec();
        bytes.extend_from_slice(&HEAD);
        bytes.extend_from_slice(&[7; 32]);
        let inside = Name::new().with(&Component::generic(&bytes));
        let full = Name::new().with(&Component::implicit_digest(&[7; 32]));
        let is_full = |name: &Name| is_full_name(name.value_bytes(), NameView::EMPTY, &[7; 32]);
        assert!(is_full(&full));
        assert!(!is_full(&inside));
    }
}
