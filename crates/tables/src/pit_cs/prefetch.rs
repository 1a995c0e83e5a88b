//! What a burst fetches of PIT and content store ahead.
//!
//! Owns hints only: they change nothing but the time of what follows. When to give them
//! is the engine's schedule: buckets first, then entries, by the tags in these
//! (speculative hash-table lookup: Takemasa 2019, section 4.3.2), then what entries lead to.

use tachonym_packet::NameHash;

use super::PitCs;
use crate::buckets::BucketIndex;
use crate::place::{as_cached, as_pending};

/// What [`PitCs::prefetch_entries_for_interest`] has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sighted {
    /// The slot of a Data that seems to answer.
    cached: Option<u32>,
}

impl Sighted {
    /// Whether a Data seems to answer.
    #[inline]
    #[must_use]
    pub const fn hits(&self) -> bool {
        self.cached.is_some()
    }
}

impl PitCs {
    /// Brings into the cache where an Interest of this name looks first.
    #[inline]
    pub fn prefetch_buckets_for_interest(&self, name_hash: NameHash) {
        self.indexes.pending.prefetch(name_hash.0);
        if let Some(cached) = &self.indexes.cached {
            cached.prefetch(name_hash.0);
        }
        self.cs.prefetch_request(name_hash);
    }

    /// Brings into the cache what an Interest of this name reads next, of a Data that
    /// seems to answer it or an entry that it seems to join.
    #[inline]
    pub fn prefetch_entries_for_interest(&self, name_hash: NameHash) -> Sighted {
        let mut sighted = self.prefetch_first(&self.indexes.pending, name_hash);
        if let Some(cached) = &self.indexes.cached {
            sighted = self.prefetch_first(cached, name_hash);
        }
        sighted
    }

    /// Brings into the cache what a hit of the Interest touches for which
    /// [`PitCs::prefetch_entries_for_interest`] has told what it has seen. Reads where that
    /// has pointed.
    #[inline]
    pub fn prefetch_hit(&self, sighted: Sighted) {
        if let Some(slot) = sighted.cached {
            self.cs.prefetch_hit(slot);
        }
    }

    /// Fetches the first entry that an index seems to have under a name.
    #[inline]
    fn prefetch_first(&self, index: &BucketIndex, name_hash: NameHash) -> Sighted {
        let word = index.find(name_hash.0, |_| true);
        let cached = word.and_then(as_cached);
        match (word, cached) {
            (_, Some(slot)) => self.cs.prefetch(slot),
            (Some(word), None) => self.pit.prefetch(word),
            (None, None) => {}
        }
        Sighted { cached }
    }

    /// Brings into the cache where a Nack of this name looks first.
    pub fn prefetch_buckets_for_nack(&self, name_hash: NameHash) {
        self.indexes.pending.prefetch(name_hash.0);
    }

    /// Brings into the cache the entry that a Nack of this name seems to be for.
    pub fn prefetch_entries_for_nack(&self, name_hash: NameHash) {
        self.prefetch_pending(name_hash);
    }

    /// Brings into the cache where a Data looks, and where it is put, whose name has a
    /// component less than `hashes` has hashes.
    #[inline]
    pub fn prefetch_buckets_for_data(&self, hashes: &[NameHash]) {
        let pending = &self.indexes.pending;
        self.pit
            .for_each_data_hash(hashes, |_, hash| pending.prefetch(hash.0));
        let Some(&name_hash) = hashes.last() else {
            return;
        };
        if let Some(cached) = &self.indexes.cached {
            cached.prefetch(name_hash.0);
        }
        self.cs.prefetch_incoming(name_hash);
    }

    /// Brings into the cache the entries that a Data seems to answer. Reads where
    /// [`PitCs::prefetch_buckets_for_data`] has pointed.
    #[inline]
    pub fn prefetch_entries_for_data(&self, hashes: &[NameHash]) {
        self.pit
            .for_each_data_hash(hashes, |_, hash| self.prefetch_pending(hash));
    }

    /// Brings into the cache what the eviction after the next one touches, if
    /// most Data are admitted. To be called before every insertion, each of which then
    /// finds there what earlier calls have asked for.
    #[inline]
    pub fn prefetch_victims(&self) {
        if self.cs.policy().admits_most()
            && let Some(hash) = self.cs.prefetch_victims()
        {
            self.indexes.cached().prefetch(hash.0);
        }
    }

    #[inline]
    fn prefetch_pending(&self, hash: NameHash) {
        let word = self
            .indexes
            .pending
            .find(hash.0, |word| as_pending(word).is_some());
        if let Some(slot) = word.and_then(as_pending) {
            self.pit.prefetch(slot);
        }
    }
}
