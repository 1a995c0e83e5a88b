//! Changes that some search may have missed.
//!
//! Owns which prefixes changed lately, as bits of their hashes. A search looks at several
//! lengths of a name, one after the other. If it misses a new long prefix, and then meets
//! the later change of a shorter one, it answers what was never true. So the later of two
//! changes, one of which is above the other, waits until searches that began before the
//! earlier are over. Bits may say so of changes that have nothing to do with each other:
//! that costs a moment of waiting.

use tachonym_memory::grace::Domain;
use tachonym_packet::NameHash;

const N_BITS: usize = 1 << 14;
/// Beyond this many changes, bits say yes too often.
const MAX_CHANGES: usize = N_BITS / 32;

/// Some bits of hashes.
#[derive(Debug)]
struct HashBits(Box<[u64; N_BITS / 64]>);

impl HashBits {
    fn contains(&self, hash: NameHash) -> bool {
        let (word, bit) = Self::place(hash);
        self.0[word] >> bit & 1 != 0
    }

    fn insert(&mut self, hash: NameHash) {
        let (word, bit) = Self::place(hash);
        self.0[word] |= 1 << bit;
    }

    const fn place(hash: NameHash) -> (usize, usize) {
        let bit = hash.0 as usize % N_BITS;
        (bit / 64, bit % 64)
    }
}

impl Default for HashBits {
    fn default() -> Self {
        Self(Box::new([0; N_BITS / 64]))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RecentChanges {
    /// Prefixes that changed.
    changed: HashBits,
    /// All that is above one of them.
    above: HashBits,
    n_changes: usize,
}

impl RecentChanges {
    /// A prefix will change, whose hashes and those of all above it are `hashes`: waits
    /// until it may.
    pub(crate) fn note(&mut self, hashes: &[NameHash], domain: &Domain) {
        let Some((&own, above)) = hashes.split_last() else {
            return;
        };
        let is_related =
            self.above.contains(own) || above.iter().any(|&hash| self.changed.contains(hash));
        if is_related || self.n_changes >= MAX_CHANGES {
            self.wait(domain);
        }
        self.changed.insert(own);
        above.iter().for_each(|&hash| self.above.insert(hash));
        self.n_changes += 1;
    }

    /// Waits for every search that may have missed a change.
    pub(crate) fn wait(&mut self, domain: &Domain) {
        if self.n_changes > 0 {
            domain.wait(domain.advance());
            self.changed.0.fill(0);
            self.above.0.fill(0);
            self.n_changes = 0;
        }
    }
}
