//! What the manager counts.
//!
//! Owns the counters and the reasons for which Interests are dropped; each reason
//! has a counter and a label. Refused signatures are counted by
//! `tachonym-security`.

use std::fmt;

/// Why an Interest got no reply or was refused for how it came, or a prefix
/// announcement made no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Its name is not one of management.
    NotManagement,
    /// It came for `/localhop/nfd`, which serves nothing, or not this.
    LocalhopDisabled,
    /// A command came over a transport that may not carry commands. It is answered
    /// with 403.
    CommandTransport,
    /// It asks for a segment that is not (or no longer) there.
    UnknownSegment,
    /// It asks for a dataset by its exact name, which no Data has.
    DatasetWithoutCanBePrefix,
    /// Its name leaves no room for a reply.
    ReplyTooLarge,
    /// An announcement has come with a Data, and routes are not learnt here.
    AnnouncementUnwanted,
    /// An announcement is malformed, does not hold now, announces something else
    /// than the Data it came with, or no trusted key has signed it.
    AnnouncementRefused,
    /// There is no room for another announcement, or its route.
    AnnouncementBeyondLimit,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::NotManagement,
        Self::LocalhopDisabled,
        Self::CommandTransport,
        Self::UnknownSegment,
        Self::DatasetWithoutCanBePrefix,
        Self::ReplyTooLarge,
        Self::AnnouncementUnwanted,
        Self::AnnouncementRefused,
        Self::AnnouncementBeyondLimit,
    ];
}

impl DropReason {
    /// The name operators see: lower case, words joined by hyphens.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotManagement => "not-management",
            Self::LocalhopDisabled => "localhop-disabled",
            Self::CommandTransport => "command-transport",
            Self::UnknownSegment => "unknown-segment",
            Self::DatasetWithoutCanBePrefix => "dataset-without-can-be-prefix",
            Self::ReplyTooLarge => "reply-too-large",
            Self::AnnouncementUnwanted => "announcement-unwanted",
            Self::AnnouncementRefused => "announcement-refused",
            Self::AnnouncementBeyondLimit => "announcement-beyond-limit",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Counters of a manager, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests.
    pub n_interests: u64,
    /// Commands among them.
    pub n_commands: u64,
    /// Interests for datasets or their segments.
    pub n_datasets: u64,
    /// Interests that wait for what has still to come: a notification, or the
    /// answer to a command that is being carried out.
    pub n_waiting: u64,
    /// Notifications sent.
    pub n_notifications: u64,
    /// Announcements whose signature does not count.
    pub n_announcements_rejected: u64,
    /// Routes made by announcements that Data brought.
    pub n_learnt_routes: u64,
    /// Of those, the ones that a neighbour's Nack has taken away.
    pub n_unlearnt_routes: u64,
    /// Responses other than 200, to refused commands included.
    pub n_errors: u64,
    /// Changes sent to the FIB.
    pub n_fib_changes: u64,
    /// Next hops that the FIB refused.
    pub n_fib_refusals: u64,
    /// Routes refused since there were as many as may be.
    pub n_routes_beyond_limit: u64,
    /// Routes refused since their names would have had too many bytes together.
    pub n_routes_beyond_name_bytes: u64,
    /// Routes refused since their prefix had too many origins for one face.
    pub n_routes_beyond_origins: u64,
    /// Routes that expired.
    pub n_expired_routes: u64,
    /// Routes that went with their faces.
    pub n_routes_of_lost_faces: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// What was dropped for this reason.
    #[must_use]
    pub const fn n_dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Every reason with what was dropped for it.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().zip(self.dropped)
    }

    pub(crate) const fn drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }
}
