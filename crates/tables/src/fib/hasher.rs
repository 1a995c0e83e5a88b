//! Where the FIB gets the hashes of names from.

use std::cell::RefCell;

use tachonym_packet::{HashKey, NameHash, NameHashes, NameView};

/// Where the hashes of names come from. Readers must use the same.
pub trait PrefixHasher: Send + std::fmt::Debug {
    /// Replaces the contents of `hashes` by the hash of each prefix of `name`, from no
    /// component to all of them.
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>);

    /// The hash of `name` alone.
    fn hash_name(&self, name: NameView<'_>) -> NameHash {
        let mut hashes = Vec::new();
        self.hash_prefixes(name, &mut hashes);
        hashes[name.len()]
    }
}

impl PrefixHasher for HashKey {
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>) {
        thread_local! {
            static BUFFER: RefCell<NameHashes> = RefCell::default();
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            let span = buffer.push_name(self, name);
            hashes.clear();
            hashes.extend_from_slice(buffer.slice(span));
        });
    }

    fn hash_name(&self, name: NameView<'_>) -> NameHash {
        Self::hash_name(self, name)
    }
}
