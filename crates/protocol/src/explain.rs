//! What the router would do with an Interest: the dataset `status/explain`, this router's own.
//!
//! Owns the values, and the bounds of how many there are in one; what they say is found
//! elsewhere. The TLV-TYPEs are in the table of `dataset`.

use tachonym_packet::Name;

use crate::codec::{Bounded, management_value};
use crate::{FaceStatus, NextHopUse, SsdFinding};

management_value! {
    /// Which Interest `status/explain` explains: in the component behind the dataset's name.
    ExplainQuery = 37010 {
        /// The Interest's name, of at least one component.
        name: Required<Name> = 7,
        /// Whether it has CanBePrefix.
        can_be_prefix: Required<bool> = 37011,
        /// Whether it has MustBeFresh.
        must_be_fresh: Required<bool> = 37013,
        /// The face that it comes from; `None`: a program on this machine that has no route.
        face_id: Optional<u64> = 105,
    }
}

management_value! {
    /// What the router would do with an Interest that came now; the entry of
    /// `status/explain`.
    NameExplanation = 37014 {
        /// The worker at which the name is at home, from 0.
        worker: Required<u64> = 36908,
        /// Whether the Interest is dropped: the name is under `/localhost`, and the face leads
        /// to another machine.
        is_out_of_scope: Required<bool> = 37015,
        /// Whether the Interest may go to programs on this machine alone.
        is_for_local_faces: Required<bool> = 37017,
        /// Whether the content store answers Interests.
        store_serves: Required<bool> = 37019,
        /// What the DRAM level of the content store has.
        cached: Optional<CachedData> = 37020,
        /// What the SSD level has.
        on_ssd: Required<SsdFinding> = 37025,
        /// Interests for this name that are pending, whatever their selectors; up to
        /// [`PendingInterest::MAX`].
        pending: Few<PendingInterest> = 37026,
        /// The longest prefix in the FIB; `None`: no route.
        route_prefix: Optional<Name> = 37040,
        /// Its next hops, the best first; up to [`ExplainedNextHop::MAX`].
        next_hops: Few<ExplainedNextHop> = 37042,
        /// Full name of the strategy that decides.
        strategy: Required<Name> = 107,
        /// The prefix at which that strategy is set.
        strategy_prefix: Required<Name> = 37045,
        /// The faces that are mentioned above and exist.
        faces: Repeated<FaceStatus> = 128,
    }
}

management_value! {
    /// A Data in the DRAM level of the content store, of a [`NameExplanation`].
    CachedData = 37020 {
        /// Its name.
        name: Required<Name> = 7,
        /// Length of the packet, in bytes.
        n_bytes: Required<u64> = 36889,
        /// For how long it stays fresh, in milliseconds, rounded up; 0: it is stale.
        fresh_for_ms: Required<u64> = 37021,
        /// Whether it answers. If not, it is stale and the Interest has MustBeFresh.
        answers: Required<bool> = 37023,
    }
}

management_value! {
    /// A pending Interest, of a [`NameExplanation`].
    PendingInterest = 37026 {
        /// Whether it has CanBePrefix.
        can_be_prefix: Required<bool> = 37011,
        /// Whether it has MustBeFresh.
        must_be_fresh: Required<bool> = 37013,
        /// Whether it has a forwarding hint.
        has_hint: Required<bool> = 37027,
        /// Whether Data has answered it; it stays for slower next hops.
        is_satisfied: Required<bool> = 37029,
        /// Whether it waits for a read of the SSD level, and was sent nowhere yet.
        awaits_store: Required<bool> = 37031,
        /// Time until it expires, in milliseconds.
        expires_in_ms: Required<u64> = 37033,
        /// Faces that wait for its Data; up to [`WaitingFace::MAX`].
        waiting: Few<WaitingFace> = 37034,
        /// Faces that it was sent to; up to [`AskedFace::MAX`].
        asked: Few<AskedFace> = 37036,
    }
}

management_value! {
    /// A face that waits, of a [`PendingInterest`].
    WaitingFace = 37034 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Time since its last Interest, in milliseconds.
        since_ms: Required<u64> = 37035,
        /// Time until it stops waiting, in milliseconds.
        expires_in_ms: Required<u64> = 37033,
    }
}

management_value! {
    /// A face that was asked, of a [`PendingInterest`].
    AskedFace = 37036 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Time since the Interest was last sent there, in milliseconds.
        since_ms: Required<u64> = 37035,
        /// NackReason of NDNLPv2, if a Nack came back.
        nack: Optional<u64> = 37038,
    }
}

management_value! {
    /// A next hop, of a [`NameExplanation`].
    ExplainedNextHop = 37042 {
        /// Number of the face.
        face_id: Required<u64> = 105,
        /// Lower is better.
        cost: Required<u64> = 106,
        /// Whether Interests go there.
        usage: Required<NextHopUse> = 37043,
        /// Where the route came from, as [`Route::origin`](crate::Route); `None` if the FIB has
        /// it without a route.
        origin: Optional<u64> = 111,
    }
}

impl PendingInterest {
    /// Most that a [`NameExplanation`] has.
    pub const MAX: usize = 32;
}

impl WaitingFace {
    /// Most that a [`PendingInterest`] has.
    pub const MAX: usize = 16;
}

impl AskedFace {
    /// Most that a [`PendingInterest`] has.
    pub const MAX: usize = 16;
}

impl ExplainedNextHop {
    /// Most that a [`NameExplanation`] has.
    pub const MAX: usize = 64;
}

impl Bounded for PendingInterest {
    const MAX: usize = Self::MAX;
}

impl Bounded for WaitingFace {
    const MAX: usize = Self::MAX;
}

impl Bounded for AskedFace {
    const MAX: usize = Self::MAX;
}

impl Bounded for ExplainedNextHop {
    const MAX: usize = Self::MAX;
}
