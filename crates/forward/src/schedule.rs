//! When the packets of a burst are hashed, fetched for and carried.
//!
//! Owns the order of work in a burst, which hides the latency of memory and changes no
//! outcome. Each packet takes five steps: its name is hashed; the buckets of the tables
//! that may know it are fetched; the entries that tags in these promise are fetched; so is
//! what those lead to; it is carried. A schedule says how many packets ahead of the one that is carried each
//! other step is taken (Takemasa 2019, sections 4.3 and 4.4.1), and for how many packets
//! at once.

use std::fmt;
use std::str::FromStr;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// Fetches nothing ahead.
    Naive,
    /// Fetches a packet's buckets when its name is hashed (So et al. 2013).
    BucketPrefetch,
    /// Hashes the name of the next packet, and fetches its buckets, before a packet is
    /// carried (Takemasa's Pre-Hash Computation).
    PreHash,
    /// As [`Schedule::PreHash`], a packet earlier, and fetches the next packet's entries
    /// by the tags in its buckets (Takemasa's Speculative Hash Table Lookup).
    Shtl,
    /// Takes each step for a group of packets at once, a group ahead of the next step, and
    /// fetches what entries lead to, cached packets and those that are evicted next.
    #[default]
    Burst,
}

/// By how many packets steps run ahead of those that are carried; `None`: not at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    /// Packets that take each step together, at least 1.
    pub(crate) group: usize,
    pub(crate) hash: usize,
    pub(crate) buckets: Option<usize>,
    pub(crate) entries: Option<usize>,
    pub(crate) contents: Option<usize>,
}

impl Schedule {
    /// Every schedule, each with more ahead than the one before.
    pub const ALL: [Self; 5] = [
        Self::Naive,
        Self::BucketPrefetch,
        Self::PreHash,
        Self::Shtl,
        Self::Burst,
    ];

    const LABELS: [(Self, &str); 5] = [
        (Self::Naive, "naive"),
        (Self::BucketPrefetch, "bucket-prefetch"),
        (Self::PreHash, "pre-hash"),
        (Self::Shtl, "shtl"),
        (Self::Burst, "burst"),
    ];

    /// `distance` is that of [`Schedule::Burst`], in packets.
    pub(crate) const fn lead(self, distance: usize) -> Lead {
        let (group, hash, buckets, entries, contents) = match self {
            Self::Naive => (1, 0, None, None, None),
            Self::BucketPrefetch => (1, 0, Some(0), None, None),
            Self::PreHash => (1, 1, Some(1), None, None),
            Self::Shtl => (1, 2, Some(2), Some(1), None),
            Self::Burst => {
                let [hash, entries] = [3 * distance, 2 * distance];
                (distance, hash, Some(hash), Some(entries), Some(distance))
            }
        };
        Lead {
            group,
            hash,
            buckets,
            entries,
            contents,
        }
    }
}

/// Packets that take a step of [`Schedule::Burst`] together, unless configured otherwise.
/// A packet touches some ten lines of memory, and processors have some tens of them under
/// way at a time; `tachonym-lab run own/distance` measures what is best.
pub const BURST_DISTANCE: usize = 16;

/// More packets than any processor fetches for at a time.
pub const MAX_BURST_DISTANCE: usize = 64;

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = Self::LABELS.iter().find(|(schedule, _)| schedule == self);
        f.write_str(label.map_or("", |(_, label)| label))
    }
}

/// The text names no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSchedule;

impl fmt::Display for UnknownSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown schedule; use naive, bucket-prefetch, pre-hash, shtl, burst")
    }
}

impl std::error::Error for UnknownSchedule {}

impl FromStr for Schedule {
    type Err = UnknownSchedule;

    fn from_str(text: &str) -> Result<Self, UnknownSchedule> {
        let label = Self::LABELS.iter().find(|(_, label)| *label == text);
        label.map(|(schedule, _)| *schedule).ok_or(UnknownSchedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_written_as_they_are_read() {
        for (schedule, label) in Schedule::LABELS {
            assert_eq!(schedule.to_string(), label);
            assert_eq!(label.parse(), Ok(schedule));
        }
        assert_eq!("fast".parse::<Schedule>(), Err(UnknownSchedule));
    }

    #[test]
    fn no_step_runs_ahead_of_the_one_that_it_needs() {
        for (schedule, _) in Schedule::LABELS {
            let lead = schedule.lead(BURST_DISTANCE);
            assert!(lead.buckets.is_none_or(|buckets| buckets <= lead.hash));
            assert!(lead.entries <= lead.buckets && lead.contents <= lead.entries);
            assert!(lead.group >= 1);
        }
    }
}
