//! What the manager counts.
//!
//! Owns the counters and the reasons by which Interests are dropped or commands
//! refused; each reason has a counter and a text.

use std::fmt;

macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
        }

        impl $name {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)+
                })
            }
        }
    };
}

reasons! {
    /// Why an Interest got no reply.
    DropReason {
        /// Its name is not one of management.
        NotManagement = "not a management name",
        /// It came for `/localhop/nfd`, which serves nothing, or not this.
        LocalhopDisabled = "not served to neighbours",
        /// It asks for a segment that is not (or no longer) there.
        UnknownSegment = "unknown version or segment",
        /// It asks for a dataset by its exact name, which no Data has.
        DatasetWithoutCanBePrefix = "dataset asked for without CanBePrefix",
        /// Its name leaves no room for a reply.
        ReplyTooLarge = "reply would exceed the packet size",
    }
}

reasons! {
    /// Why a command or an announcement was refused with 403.
    RejectReason {
        /// It has no signature.
        Unsigned = "command is not signed",
        /// Its signature elements are malformed.
        MalformedSignature = "signature is malformed",
        /// The digest of its parameters is wrong.
        BadDigest = "parameters digest does not match",
        /// The key is not one that is trusted for this.
        UntrustedSigner = "signer is not authorized",
        /// The signature does not verify.
        BadSignature = "signature does not verify",
        /// It has been seen before, or is older than one that has.
        Replayed = "command is replayed or out of order",
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
    /// Interests for notifications that have still to come.
    pub n_waiting: u64,
    /// Notifications sent.
    pub n_notifications: u64,
    /// Responses other than 200, those counted in `n_rejected` included.
    pub n_errors: u64,
    /// Changes the FIB was told.
    pub n_fib_changes: u64,
    /// Next hops that the FIB refused.
    pub n_fib_refusals: u64,
    /// Routes that expired.
    pub n_expired_routes: u64,
    /// Routes that went with their faces.
    pub n_routes_of_lost_faces: u64,
    dropped: [u64; DropReason::ALL.len()],
    rejected: [u64; RejectReason::ALL.len()],
}

impl Counters {
    /// Interests that got no reply for this reason.
    #[must_use]
    pub const fn n_dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Commands and announcements that were refused for this reason.
    #[must_use]
    pub const fn n_rejected(&self, reason: RejectReason) -> u64 {
        self.rejected[reason as usize]
    }

    pub(crate) const fn drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    pub(crate) const fn reject(&mut self, reason: RejectReason) {
        self.rejected[reason as usize] += 1;
    }
}
