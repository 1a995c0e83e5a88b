//! What a PIT does not take, and how often that was.
//!
//! Owns the reasons and their counters; which applies is the PIT's.

/// Why the PIT did not take an Interest or a record. Each is counted in
/// [`PitRefusals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PitRefusal {
    /// [`PitConfig::max_entries`](super::PitConfig::max_entries) is reached.
    TooManyEntries,
    /// [`PitConfig::max_bytes`](super::PitConfig::max_bytes) would be exceeded.
    TooManyBytes,
    /// [`MAX_HINTS_PER_NAME`](super::MAX_HINTS_PER_NAME) is reached.
    TooManyHints,
    /// [`PitConfig::max_records_per_entry`](super::PitConfig::max_records_per_entry) is reached
    /// by downstreams.
    TooManyInRecords,
    /// [`PitConfig::max_records_per_entry`](super::PitConfig::max_records_per_entry) is reached
    /// by upstreams.
    TooManyOutRecords,
    /// The faces of the source wait for as much already as is still free.
    SourceShareUsed,
}

impl std::fmt::Display for PitRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooManyEntries => "the PIT holds as many entries as it may",
            Self::TooManyBytes => "the PIT holds as many bytes as it may",
            Self::TooManyHints => "too many forwarding hints on one name",
            Self::TooManyInRecords => "the PIT entry has as many in-records as it may",
            Self::TooManyOutRecords => "the PIT entry has as many out-records as it may",
            Self::SourceShareUsed => "the face's source has its share of the PIT",
        })
    }
}

impl std::error::Error for PitRefusal {}

/// How often a [`Pit`](super::Pit) refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PitRefusals {
    /// See [`PitRefusal::TooManyEntries`].
    pub n_too_many_entries: u64,
    /// See [`PitRefusal::TooManyBytes`].
    pub n_too_many_bytes: u64,
    /// See [`PitRefusal::TooManyHints`].
    pub n_too_many_hints: u64,
    /// See [`PitRefusal::TooManyInRecords`].
    pub n_too_many_in_records: u64,
    /// See [`PitRefusal::TooManyOutRecords`].
    pub n_too_many_out_records: u64,
    /// See [`PitRefusal::SourceShareUsed`].
    pub n_source_share_used: u64,
}

impl PitRefusals {
    #[cold]
    pub(super) fn count(&mut self, refusal: PitRefusal) -> PitRefusal {
        match refusal {
            PitRefusal::TooManyEntries => self.n_too_many_entries += 1,
            PitRefusal::TooManyBytes => self.n_too_many_bytes += 1,
            PitRefusal::TooManyHints => self.n_too_many_hints += 1,
            PitRefusal::TooManyInRecords => self.n_too_many_in_records += 1,
            PitRefusal::TooManyOutRecords => self.n_too_many_out_records += 1,
            PitRefusal::SourceShareUsed => self.n_source_share_used += 1,
        }
        refusal
    }
}
