//! What the engine counts, and why packets end here.
//!
//! Every packet given to the engine either leaves through `Output`, becomes
//! part of a pending entry, or is counted under a [`DropReason`]; but for the
//! unsolicited Data of the internal face, which have a counter of
//! their own.

use std::fmt;

use tachonym_tables::PitRefusal;

macro_rules! drop_reasons {
    ($($(#[$doc:meta])+ $variant:ident = $label:literal,)+) => {
        /// Why the engine did not carry a packet further.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DropReason { $($(#[$doc])+ $variant,)+ }

        impl DropReason {
            /// Every reason, in the order of [`Counters::drops`].
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name operators see: lower case, words joined by hyphens.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

drop_reasons! {
    /// The face the packet came from is not (or no longer) known.
    UnknownFace = "unknown-face",
    /// An Interest arrived with HopLimit 0.
    HopLimitZero = "hop-limit-zero",
    /// An Interest whose HopLimit has become 0 was about to leave to a
    /// non-local face.
    HopLimitExhausted = "hop-limit-exhausted",
    /// A packet under `/localhost` came from, or was about to go to, a
    /// non-local face.
    LocalhostScope = "localhost-scope",
    /// The digest in an Interest's name is not that of its parameters.
    BadParametersDigest = "bad-parameters-digest",
    /// An Interest's nonce was seen before on this name.
    InterestLoop = "interest-loop",
    /// The pending Interest table has as many entries as it may.
    PitFull = "pit-full",
    /// The pending Interest table has as many bytes as it may.
    PitBytesFull = "pit-bytes-full",
    /// A name is pending with as many forwarding hints as it may.
    PitHintsFull = "pit-hints-full",
    /// The faces of the source wait for as much already as the pending Interest table
    /// has free.
    PitShareUsed = "pit-share-used",
    /// A pending entry has no room for another downstream.
    InRecordsFull = "in-records-full",
    /// A pending entry has no room for another upstream.
    OutRecordsFull = "out-records-full",
    /// An Interest without a route went to some faces only, for there are more than
    /// a discovery may go to.
    DiscoveryTooWide = "discovery-too-wide",
    /// An Interest grew beyond the largest packet when its Nonce was added.
    Oversized = "oversized",
    /// `NextHopFaceId` names a face that does not exist, or one that the
    /// Interest may not leave by.
    NextHopFaceUnusable = "next-hop-face-unusable",
    /// No next hop may take the Interest.
    NoRoute = "no-route",
    /// An unsolicited Data that the policy does not admit.
    UnsolicitedData = "unsolicited-data",
    /// A Data's downstream has gone since it asked.
    DownstreamGone = "downstream-gone",
    /// A Nack came over a link that is not point-to-point.
    NackLinkType = "nack-link-type",
    /// A Nack for an Interest that is not pending.
    NackNotPending = "nack-not-pending",
    /// A Nack from a face that the Interest was not sent to, or with another
    /// nonce than the one sent there last.
    NackMismatch = "nack-mismatch",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl From<PitRefusal> for DropReason {
    fn from(refusal: PitRefusal) -> Self {
        match refusal {
            PitRefusal::TooManyEntries => Self::PitFull,
            PitRefusal::TooManyBytes => Self::PitBytesFull,
            PitRefusal::TooManyHints => Self::PitHintsFull,
            PitRefusal::TooManyInRecords => Self::InRecordsFull,
            PitRefusal::TooManyOutRecords => Self::OutRecordsFull,
            PitRefusal::SourceShareUsed => Self::PitShareUsed,
        }
    }
}

/// Events since the engine began. Every field only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests received.
    pub n_in_interests: u64,
    /// Data received.
    pub n_in_data: u64,
    /// Nacks received.
    pub n_in_nacks: u64,
    /// Interests sent.
    pub n_out_interests: u64,
    /// Data sent, from the content store too.
    pub n_out_data: u64,
    /// Nacks sent.
    pub n_out_nacks: u64,
    /// Pending entries that a Data answered, content store hits included.
    pub n_satisfied_interests: u64,
    /// Pending entries that ended without Data.
    pub n_unsatisfied_interests: u64,
    /// Interests that the content store answered.
    pub n_cs_hits: u64,
    /// Interests that the content store could not answer.
    pub n_cs_misses: u64,
    /// Of those, Interests for management that were forwarded or aggregated. The content
    /// store never holds their Data, so its hit ratio should not count them.
    pub n_cs_misses_of_management: u64,
    /// Of the misses, Interests that its second level answered.
    pub n_second_level_hits: u64,
    /// Of the misses, Interests that the second level seemed to have an answer for, and had
    /// none.
    pub n_second_level_failures: u64,
    /// Interests of other engines that were told the second level has nothing, though it seemed
    /// to: as many as may wait already, or no read was free.
    pub n_sought_refused: u64,
    /// Nonces of ended Interests that were forgotten before their time, for want of room.
    pub n_dead_nonces_evicted_early: u64,
    /// Interests that joined a pending entry and were not sent upstream again:
    /// from another downstream, or a retransmission held back by the strategy.
    pub n_aggregated_interests: u64,
    /// Data that no pending Interest asked for, admitted to the content store
    /// or not, but those of the internal face.
    pub n_unsolicited_data: u64,
    /// Data of the internal face that no pending Interest asked for:
    /// notifications without a subscriber, and replies that came too late. No
    /// fault, and so neither a drop nor unsolicited.
    pub n_unawaited_replies: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Packets dropped for `reason`.
    #[must_use]
    pub fn n_dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Every reason with the packets dropped for it.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().copied().zip(self.drops)
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drop_reason_counts_on_its_own_line() {
        let mut counters = Counters::default();
        for (n, &reason) in DropReason::ALL.iter().enumerate() {
            for _ in 0..=n {
                counters.count_drop(reason);
            }
        }
        for (n, (reason, n_dropped)) in counters.drops().enumerate() {
            assert_eq!(n_dropped, n as u64 + 1, "{reason}");
            assert_eq!(counters.n_dropped(reason), n_dropped);
        }
    }

    #[test]
    fn drop_labels_are_distinct() {
        let mut labels: Vec<_> = DropReason::ALL.iter().map(|r| r.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), DropReason::ALL.len());
    }

    #[test]
    fn each_limit_of_the_pit_has_a_reason_of_its_own() {
        let refusals = [
            PitRefusal::TooManyEntries,
            PitRefusal::TooManyBytes,
            PitRefusal::TooManyHints,
            PitRefusal::TooManyInRecords,
            PitRefusal::TooManyOutRecords,
            PitRefusal::SourceShareUsed,
        ];
        let mut reasons = refusals.map(DropReason::from);
        reasons.sort_unstable();
        assert!(reasons.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
