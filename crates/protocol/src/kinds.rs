//! The small vocabularies of the management protocol: what a face is, where a
//! route came from, which bits a Flags element has.
//!
//! Numbers that the protocol closes are enums; those that others may extend
//! (route origins, status codes, flag bits) are constants on plain integers.
//! Source: NFD Management protocol, "FaceMgmt", "RibMgmt", "CsMgmt".

/// Defines a closed vocabulary of numbers.
macro_rules! closed_numbers {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant = $number,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> u64 {
                self as u64
            }

            /// The value with this number on the wire, if there is one.
            #[must_use]
            pub const fn from_code(code: u64) -> Option<Self> {
                match code {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The word that tools print and accept.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

closed_numbers! {
    /// How long a face lives.
    FacePersistency {
        /// Until it is destroyed or its transport fails.
        Persistent = 0, "persistent";
        /// Made by a packet or connection from outside; goes when idle.
        OnDemand = 1, "on-demand";
        /// Until it is destroyed; comes back by itself when its transport fails.
        Permanent = 2, "permanent";
    }
}

closed_numbers! {
    /// Whether the other end of a face runs on this machine.
    FaceScope {
        /// Another machine.
        NonLocal = 0, "non-local";
        /// An application on this machine.
        Local = 1, "local";
    }
}

closed_numbers! {
    /// How many peers a face reaches.
    LinkType {
        /// Exactly one.
        PointToPoint = 0, "point-to-point";
        /// Several, and each hears each.
        MultiAccess = 1, "multi-access";
        /// Several, and not each hears each.
        AdHoc = 2, "adhoc";
    }
}

closed_numbers! {
    /// What happened to a face.
    FaceEventKind {
        /// It came into being.
        Created = 1, "created";
        /// It is gone.
        Destroyed = 2, "destroyed";
        /// It can send again.
        Up = 3, "up";
        /// It cannot send for now.
        Down = 4, "down";
    }
}

closed_numbers! {
    /// Whether a face can send; this router's addition to the protocol.
    FaceState {
        /// It can.
        Up = 1, "up";
        /// It cannot for now: its connection failed, and it connects again by itself.
        Down = 2, "down";
        /// It is being connected for the first time; packets wait for that.
        Connecting = 3, "connecting";
    }
}

closed_numbers! {
    /// What a worker is there for; this router's own.
    WorkerState {
        /// Names are at home there, or may be.
        Running = 1, "running";
        /// An operator has taken it away: it gets nothing new.
        Removed = 2, "removed";
        /// Its thread has ended by an error; its names went to the others.
        Failed = 3, "failed";
        /// It can be added, and has not been.
        Spare = 4, "spare";
        /// The power governor needs fewer workers now: its names are at home at others, and
        /// it keeps its tables.
        Asleep = 5, "asleep";
    }
}

closed_numbers! {
    /// Whether Interests for a name go to a next hop; this router's own.
    NextHopUse {
        /// The strategy may choose it, and its face is up.
        Usable = 1, "usable";
        /// The strategy may choose it, but its face is down: what is sent there is lost.
        FaceDown = 2, "face-down";
        /// Its face has gone.
        FaceGone = 3, "face-gone";
        /// The Interest comes from it.
        Incoming = 4, "incoming-face";
        /// The name is for programs on this machine alone, and the face leads elsewhere.
        OutOfScope = 5, "out-of-scope";
    }
}

closed_numbers! {
    /// What the SSD level of the content store has for a name, by its index of hashes; this
    /// router's own.
    SsdFinding {
        /// There is no such level.
        NotConfigured = 1, "not-configured";
        /// There is no Data.
        Nothing = 2, "nothing";
        /// There is a Data, unless its hash merely collides.
        Probable = 3, "probable";
        /// Data that is there is stale, and the Interest wants fresh Data.
        OnlyStale = 4, "only-stale";
        /// The level is still reading its index after the start.
        Recovering = 5, "recovering";
    }
}

closed_numbers! {
    /// What became of a packet that a trace shows; this router's own.
    TraceDecision {
        /// An Interest was sent to other faces.
        Forwarded = 1, "forwarded";
        /// An Interest was sent to the router's management.
        ToManagement = 2, "to-management";
        /// The DRAM level of the content store answered an Interest.
        AnsweredFromDram = 3, "answered-from-dram";
        /// The SSD level of the content store answered an Interest.
        AnsweredFromSsd = 4, "answered-from-ssd";
        /// An Interest waits until the SSD level has been read.
        WaitsForSsd = 5, "waits-for-ssd";
        /// An Interest waits until other workers have looked into their content stores.
        AsksWorkers = 6, "asks-workers";
        /// An Interest joined a pending one from another face.
        Aggregated = 7, "aggregated";
        /// An Interest came again from the same face, too soon to be sent again.
        RetransmissionSuppressed = 8, "retransmission-suppressed";
        /// A pending Interest was sent again, or to another next hop, by the strategy.
        SentAgain = 9, "sent-again";
        /// A Data was sent to the faces that asked for it.
        Delivered = 10, "delivered";
        /// A Data that no pending Interest asked for is in the content store now.
        CachedUnsolicited = 11, "cached-unsolicited";
        /// A Data met no pending Interest of another face.
        NotAwaited = 12, "not-awaited";
        /// A Data or Nack went to another worker.
        HandedOver = 13, "handed-over";
        /// A Nack went on to the faces that asked.
        Nacked = 14, "nacked";
        /// A Nack was taken, and the pending Interest waits for other next hops.
        WaitsForOthers = 15, "waits-for-others";
        /// It was dropped.
        Dropped = 16, "dropped";
        /// An Interest waits, and was sent nowhere.
        Pending = 17, "pending";
        /// The lifetime of a pending Interest ended without Data.
        Unanswered = 18, "unanswered";
    }
}

/// Bits of the Flags of a face.
pub mod face_flags {
    /// NextHopFaceId, CachePolicy and IncomingFaceId are honoured and written.
    pub const LOCAL_FIELDS: u64 = 1 << 0;
    /// Lost packets are sent again (NDNLPv2 reliability).
    pub const LP_RELIABILITY: u64 = 1 << 1;
    /// Congestion is detected and marked.
    pub const CONGESTION_MARKING: u64 = 1 << 2;
    /// Every bit above.
    pub const ALL: u64 = LOCAL_FIELDS | LP_RELIABILITY | CONGESTION_MARKING;
}

/// Bits of the Flags of a route.
pub mod route_flags {
    /// Longer prefixes inherit the route.
    pub const CHILD_INHERIT: u64 = 1 << 0;
    /// Routes of shorter prefixes are not inherited here and below.
    pub const CAPTURE: u64 = 1 << 1;
}

/// Bits of the Flags of the content store.
pub mod cs_flags {
    /// New Data is admitted.
    pub const ENABLE_ADMIT: u64 = 1 << 0;
    /// Interests are answered.
    pub const ENABLE_SERVE: u64 = 1 << 1;
    /// Every bit above.
    pub const ALL: u64 = ENABLE_ADMIT | ENABLE_SERVE;
}

/// Where a route came from. Any number below 65536 may be used; these are the
/// assigned ones.
pub mod route_origin {
    /// An application that registered its own prefix.
    pub const APP: u64 = 0;
    /// Automatic prefix registration of an access router.
    pub const AUTOREG: u64 = 64;
    /// A client of remote registration.
    pub const CLIENT: u64 = 65;
    /// NDN automatic configuration.
    pub const AUTOCONF: u64 = 66;
    /// NLSR.
    pub const NLSR: u64 = 128;
    /// A prefix announcement.
    pub const PREFIX_ANNOUNCEMENT: u64 = 129;
    /// An operator.
    pub const STATIC: u64 = 255;

    /// The name of an assigned origin.
    #[must_use]
    pub fn name(origin: u64) -> Option<&'static str> {
        NAMES
            .iter()
            .find_map(|&(number, name)| (number == origin).then_some(name))
    }

    /// The origin with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<u64> {
        NAMES
            .iter()
            .find_map(|&(number, known)| (known == name).then_some(number))
    }

    const NAMES: [(u64, &str); 7] = [
        (APP, "app"),
        (AUTOREG, "autoreg"),
        (CLIENT, "client"),
        (AUTOCONF, "autoconf"),
        (NLSR, "nlsr"),
        (PREFIX_ANNOUNCEMENT, "prefixann"),
        (STATIC, "static"),
    ];
}

/// Status codes of a ControlResponse.
pub mod status_code {
    /// The command has taken effect.
    pub const OK: u64 = 200;
    /// The command or its parameters are malformed.
    pub const BAD_REQUEST: u64 = 400;
    /// The signer may not do this, or the signature is bad or missing.
    pub const FORBIDDEN: u64 = 403;
    /// The face, strategy or other subject does not exist.
    pub const NOT_FOUND: u64 = 404;
    /// The URI's scheme is not supported.
    pub const UNSUPPORTED_PROTOCOL: u64 = 406;
    /// What is asked for contradicts what is there.
    pub const CONFLICT: u64 = 409;
    /// The face is no longer there.
    pub const GONE: u64 = 410;
    /// The name has more components than the table accepts.
    pub const NAME_TOO_LONG: u64 = 414;
    /// The command is not implemented.
    pub const NOT_IMPLEMENTED: u64 = 501;
    /// A limit of the router has been reached, or it is shutting down.
    pub const UNAVAILABLE: u64 = 503;
    /// Something that the router waited for did not happen in time.
    pub const TIMEOUT: u64 = 504;
    /// The operating system refused, for instance to open the socket.
    pub const SOCKET_ERROR: u64 = 505;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_a_closed_vocabulary_are_refused() {
        for &value in FacePersistency::ALL {
            assert_eq!(FacePersistency::from_code(value.code()), Some(value));
        }
        for &value in FaceEventKind::ALL {
            assert_eq!(FaceEventKind::from_code(value.code()), Some(value));
        }
        assert_eq!(FacePersistency::from_code(3), None);
        assert_eq!(FaceScope::from_code(2), None);
        assert_eq!(LinkType::from_code(u64::MAX), None);
        assert_eq!(FaceEventKind::from_code(0), None);
        assert_eq!(WorkerState::from_code(0), None);
        assert_eq!(WorkerState::from_code(6), None);
    }

    #[test]
    fn origins_are_known_by_name_and_number() {
        assert_eq!(route_origin::name(255), Some("static"));
        assert_eq!(route_origin::from_name("static"), Some(255));
        assert_eq!(route_origin::name(1), None);
        assert_eq!(route_origin::from_name("other"), None);
    }
}
