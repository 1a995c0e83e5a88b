//! What a burst fetches of the PIT ahead.
//!
//! Owns hints only: they change nothing but the time of what follows. When to give them
//! is the engine's schedule.

use tachonym_packet::{InterestView, NameHash};

use super::{Pit, index_hash};

impl Pit {
    /// Brings into the cache where [`Pit::find_or_insert`] looks first. Like the
    /// other prefetches a hint: it changes nothing but the time of what follows.
    ///
    /// # Panics
    /// If `hashes` is not as [`Pit::find_or_insert`] wants it.
    pub fn prefetch_buckets_for_interest(&self, interest: &InterestView<'_>, hashes: &[NameHash]) {
        let name_hash = hashes[interest.name().len()];
        self.index
            .prefetch(index_hash(name_hash, interest.can_be_prefix()));
    }

    /// Brings into the cache what [`Pit::find_or_insert`] reads next, if the
    /// Interest seems to be pending: speculative hash-table lookup (Takemasa 2019,
    /// section 4.3.2). Reads where [`Pit::prefetch_buckets_for_interest`] has
    /// pointed.
    ///
    /// # Panics
    /// If `hashes` is not as [`Pit::find_or_insert`] wants it.
    pub fn prefetch_entries_for_interest(&self, interest: &InterestView<'_>, hashes: &[NameHash]) {
        let name_hash = hashes[interest.name().len()];
        self.prefetch_entry(index_hash(name_hash, interest.can_be_prefix()));
    }

    /// Brings into the cache where [`Pit::matches_for_data`] looks, for a Data
    /// whose name has a component less than `hashes` has hashes.
    pub fn prefetch_buckets_for_data(&self, hashes: &[NameHash]) {
        self.for_each_data_hash(hashes, |hash| self.index.prefetch(hash));
    }

    /// Brings into the cache what [`Pit::matches_for_data`] reads next, of entries
    /// that seem to be answered. Reads where [`Pit::prefetch_buckets_for_data`] has
    /// pointed.
    pub fn prefetch_entries_for_data(&self, hashes: &[NameHash]) {
        self.for_each_data_hash(hashes, |hash| self.prefetch_entry(hash));
    }

    fn for_each_data_hash(&self, hashes: &[NameHash], mut visit: impl FnMut(u64)) {
        let Some((&last, _)) = hashes.split_last() else {
            return;
        };
        visit(last.0);
        if self.n_prefix_entries.total() > 0 {
            for (length, &hash) in hashes.iter().enumerate() {
                if self.n_prefix_entries.has(length) {
                    visit(index_hash(hash, true));
                }
            }
        }
    }

    fn prefetch_entry(&self, hash: u64) {
        if let Some(slot) = self.index.candidate(hash) {
            self.slots[slot].prefetch();
        }
    }
}
