//! Limits of the Pending Interest Table, and how its index is made.

use tachonym_memory::PagePreference;

use crate::buckets::IndexKind;
#[cfg(doc)]
use crate::pit::Pit;

/// Limits of a [`Pit`].
#[derive(Clone, Copy, Debug)]
pub struct PitConfig {
    /// Most entries.
    pub max_entries: usize,
    /// Most bytes of entries, their Interests and records.
    pub max_bytes: usize,
    /// Most downstreams, and most upstreams, of one entry.
    pub max_records_per_entry: usize,
    /// How entries are found.
    pub index: IndexKind,
    /// What pages the entries and the index should have.
    pub pages: PagePreference,
}

impl Default for PitConfig {
    fn default() -> Self {
        Self {
            max_entries: 1 << 19,
            max_bytes: 256 << 20,
            max_records_per_entry: 512,
            index: IndexKind::default(),
            pages: PagePreference::default(),
        }
    }
}
