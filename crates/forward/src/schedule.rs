//! When the packets of a burst are hashed, fetched for and carried.
//!
//! Owns the order of work in a burst, which hides the latency of memory and changes no
//! outcome: the name is hashed, the lines of the tables that may know it are prefetched, then
//! the entries that tags in these promise, then what those lead to, and last the packet is
//! carried. A schedule says which steps are taken, how many packets ahead of the one that is
//! carried (Takemasa 2019, sections 4.3 and 4.4.1), and for how many packets at once.

use std::fmt;
use std::str::FromStr;

/// Which steps of a burst run ahead of the packets that are carried.
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

/// A step that packets of a burst take before they are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Fills a plan.
    None,
    /// Hashes the name.
    Hash,
    /// Prefetches the lines of the index of pending Interests and cached Data.
    IndexLines,
    /// Prefetches the entries that tags in these lines promise.
    Entries,
    /// Prefetches what these entries lead to.
    Contents,
    /// Prefetches the lines of the FIB, unless a Data is a probable hit.
    FibLines,
    /// Prefetches the nodes that tags of the FIB promise.
    FibNodes,
}

/// Most steps of a plan.
pub(crate) const N_STEPS: usize = 6;

/// The steps of a burst in the order in which each group of packets takes them, and by how
/// many packets each runs ahead of those that are carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Packets that take each step together, at least 1.
    pub(crate) group: usize,
    pub(crate) steps: [(Step, usize); N_STEPS],
    /// Whether the Data that are evicted next are prefetched.
    pub(crate) fetches_victims: bool,
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

    /// `distance` is that of [`Schedule::Burst`], in packets: from 1 to
    /// [`MAX_BURST_DISTANCE`], or the next of these.
    pub(crate) fn plan(self, distance: usize) -> Plan {
        let distance = distance.clamp(1, MAX_BURST_DISTANCE);
        use Step::{Contents, Entries, FibLines, FibNodes, Hash, IndexLines};
        const NONE: (Step, usize) = (Step::None, 0);
        let [d, d2, d3] = [distance, 2 * distance, 3 * distance];
        let steps = match self {
            Self::Naive => [(Hash, 0), NONE, NONE, NONE, NONE, NONE],
            Self::BucketPrefetch => [(Hash, 0), (IndexLines, 0), (FibLines, 0), NONE, NONE, NONE],
            Self::PreHash => [(Hash, 1), (IndexLines, 1), (FibLines, 1), NONE, NONE, NONE],
            Self::Shtl => {
                let lines = [(Hash, 2), (IndexLines, 2), (FibLines, 2)];
                [
                    lines[0],
                    lines[1],
                    lines[2],
                    (FibNodes, 1),
                    (Entries, 1),
                    NONE,
                ]
            }
            // The FIB is asked a step behind the other tables: only then is it known which
            // Interests are probable hits.
            Self::Burst => [
                (Hash, d3),
                (IndexLines, d3),
                (Entries, d2),
                (FibLines, d2),
                (Contents, d),
                (FibNodes, d),
            ],
        };
        let is_burst = matches!(self, Self::Burst);
        Plan {
            group: if is_burst { distance } else { 1 },
            steps,
            fetches_victims: is_burst,
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
    fn no_step_runs_ahead_of_the_one_before() {
        for (schedule, _) in Schedule::LABELS {
            let plan = schedule.plan(BURST_DISTANCE);
            assert_eq!(plan.steps[0].0, Step::Hash, "all others need hashes");
            assert!(
                plan.steps
                    .is_sorted_by_key(|(_, lead)| std::cmp::Reverse(*lead))
            );
            let is_none = |&(step, _): &(Step, usize)| step == Step::None;
            assert!(plan.steps.is_sorted_by_key(is_none), "gaps come last");
            assert!(plan.group >= 1);
        }
    }
}
