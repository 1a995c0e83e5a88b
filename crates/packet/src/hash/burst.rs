//! The hashes of a burst of packets, by the number of the packet.

use std::ops::Range;

use super::{HashKey, HashSpan, NameHash, NameHashes};
use crate::NameView;

/// Prefix hashes of the names of a burst of packets. They are made in one pass, and can be
/// carried to another thread that has the same key.
#[derive(Clone, Debug, Default)]
pub struct HashedNames {
    hashes: NameHashes,
    spans: Vec<HashSpan>,
}

impl HashedNames {
    /// No names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of names.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no names.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of the hashes.
    #[must_use]
    pub const fn n_bytes(&self) -> usize {
        size_of_val(self.hashes.hashes.as_slice())
    }

    /// Forgets all names, keeps the memory.
    pub fn clear(&mut self) {
        self.hashes.clear();
        self.spans.clear();
    }

    /// Forgets all names, and keeps memory for about `max_bytes` of hashes.
    pub fn clear_and_shrink(&mut self, max_bytes: usize) {
        self.clear();
        let max_hashes = max_bytes / size_of::<NameHash>();
        self.hashes.hashes.shrink_to(max_hashes);
    }

    /// Hashes every prefix of each of `names`, as [`NameHashes::push_burst`] does.
    pub fn push_burst<'n>(&mut self, key: &HashKey, names: impl Iterator<Item = NameView<'n>>) {
        self.hashes.push_burst(key, names, &mut self.spans);
    }

    /// Appends a name by its hashes, which were made with the same key.
    pub fn push(&mut self, hashes: &[NameHash]) {
        let all = &mut self.hashes.hashes;
        self.spans.push(HashSpan {
            start: all.len() as u32,
            n_hashes: hashes.len() as u32,
        });
        all.extend_from_slice(hashes);
    }

    /// The hashes of name `idx`: `i` is that of its first `i` components.
    ///
    /// # Panics
    /// If there is no such name.
    #[must_use]
    #[inline]
    pub fn get(&self, idx: usize) -> &[NameHash] {
        self.hashes.slice(self.spans[idx])
    }

    /// Puts name `from` in the place of name `to`.
    ///
    /// # Panics
    /// If there is no such name.
    #[inline]
    pub fn replace(&mut self, to: usize, from: usize) {
        self.spans[to] = self.spans[from];
    }

    /// Forgets all names but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.spans.truncate(len);
    }

    /// The buffer of hashes, and where those of some of the names are in it.
    ///
    /// # Panics
    /// If there are no such names.
    pub fn parts(&mut self, names: Range<usize>) -> (&mut NameHashes, &[HashSpan]) {
        (&mut self.hashes, &self.spans[names])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HashKind, Name};

    #[test]
    fn hashes_of_a_burst_are_those_of_its_names_wherever_they_are_carried() {
        let names: Vec<Name> = ["/a/b/c", "/", "/a", "/b/c"]
            .map(|uri| uri.parse().expect("a literal name"))
            .into();
        for kind in [HashKind::SipHash13, HashKind::MultilinearAes] {
            let key = HashKey::new(kind, &[3; 32]);
            let mut burst = HashedNames::new();
            burst.push_burst(&key, names.iter().map(Name::view));
            let mut carried = HashedNames::new();
            (0..burst.len()).for_each(|idx| carried.push(burst.get(idx)));
            let mut alone = NameHashes::new();
            for (idx, name) in names.iter().enumerate() {
                let span = alone.push_name(&key, name.view());
                assert_eq!(burst.get(idx), alone.slice(span));
                assert_eq!(carried.get(idx), alone.slice(span));
            }
            carried.replace(0, 2);
            carried.truncate(1);
            assert_eq!((carried.len(), carried.get(0)), (1, burst.get(2)));
            let (hashes, spans) = burst.parts(1..3);
            assert_eq!(hashes.slice(spans[1]), carried.get(0));
        }
    }
}
