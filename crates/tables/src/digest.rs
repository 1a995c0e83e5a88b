//! Implicit digests at the end of names.
//!
//! Owns the recognition of a full name, a Data's name and its digest, and the
//! hash by which the PIT finds the Interests for one.

use std::hash::{DefaultHasher, Hasher};

use tachonym_packet::types::component::IMPLICIT_SHA256_DIGEST;
use tachonym_packet::{NameHash, NameView};

const DIGEST_BYTES: usize = 32;
/// An implicit digest component begins with its type and length.
const HEAD: [u8; 2] = [IMPLICIT_SHA256_DIGEST as u8, DIGEST_BYTES as u8];
/// Bytes of an implicit digest component.
const COMPONENT_BYTES: usize = HEAD.len() + DIGEST_BYTES;

/// The implicit digest that `name` ends in, if it does.
pub(crate) fn last_implicit_digest(name: NameView<'_>) -> Option<[u8; DIGEST_BYTES]> {
    let (_, tail) = name.value_bytes().split_last_chunk::<COMPONENT_BYTES>()?;
    let (head, digest) = tail.split_first_chunk::<2>()?;
    // The bytes look right for most names that end in one and hardly any other,
    // but they may also lie within a longer component.
    if *head != HEAD || name.last()?.typ() != IMPLICIT_SHA256_DIGEST {
        return None;
    }
    digest.try_into().ok()
}

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
    fn a_digest_inside_a_longer_component_is_none() {
        let mut bytes = b"x".to_vec();
        bytes.extend_from_slice(&HEAD);
        bytes.extend_from_slice(&[7; 32]);
        let inside = Name::new().with(&Component::generic(&bytes));
        assert_eq!(last_implicit_digest(inside.view()), None);
        let parameters = Name::new().with(&Component::parameters_digest(&[7; 32]));
        assert_eq!(last_implicit_digest(parameters.view()), None);
        let full = Name::new().with(&Component::implicit_digest(&[7; 32]));
        assert_eq!(last_implicit_digest(full.view()), Some([7; 32]));
        assert!(is_full_name(full.value_bytes(), NameView::EMPTY, &[7; 32]));
        assert!(!is_full_name(
            inside.value_bytes(),
            NameView::EMPTY,
            &[7; 32]
        ));
    }
}
