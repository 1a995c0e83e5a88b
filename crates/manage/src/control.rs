//! What the manager asks of the router.
//!
//! Owns the trait [`ControlPlane`] and the values that pass through it. The
//! router implements it over a channel to its worker; tests implement it in
//! memory. The manager answers a command only after the call has returned, so
//! every call returns when it has taken effect, not before.
//!
//! **Invariant**: a call never waits for a packet from outside, because nothing
//! else is managed meanwhile.

use tachonym_packet::{FaceId, Name};
use tachonym_protocol::{
    ChannelStatus, ControlParameters, CsInfo, CsPopularity, CsStats, DropCount, ExplainQuery,
    FacePersistency, FaceProgram, FaceStatus, FaceUri, FibEntry, ForwarderStatus, NameExplanation,
    PowerStatus, RecentDrop, StrategyChoice, TableMemory, TraceBatch, WorkersStatus, face_flags,
    status_code,
};

/// The data plane, as the manager sees it.
pub trait ControlPlane {
    /// Opens a face to `request.remote`, or finds the one that is open already.
    /// Does not wait for the other end: an event reports it to the manager.
    ///
    /// # Errors
    /// If the face cannot be opened as asked.
    fn create_face(&mut self, request: &FaceCreateRequest) -> Result<FaceCreated, ControlError>;

    /// Changes a face; all of the changes, or none. The status is the one
    /// afterwards.
    ///
    /// # Errors
    /// [`ControlError::FaceNotFound`], or [`ControlError::Conflict`] with the
    /// properties that cannot be had.
    fn update_face(
        &mut self,
        face: FaceId,
        changes: &FaceChanges,
    ) -> Result<FaceStatus, ControlError>;

    /// Closes a face. One that is already gone is a success.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn destroy_face(&mut self, face: FaceId) -> Result<(), ControlError>;

    /// Every face, in the order of their numbers. One that goes meanwhile may be
    /// missing.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn faces(&mut self) -> Result<Vec<FaceStatus>, ControlError>;

    /// The programs behind the faces of the Unix socket, in the order of the faces' numbers.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn face_programs(&mut self) -> Result<Vec<FaceProgram>, ControlError>;

    /// Every listener.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn channels(&mut self) -> Result<Vec<ChannelStatus>, ControlError>;

    /// Applies `changes` in their order and returns those that were refused; the
    /// others have taken effect. Adding a next
    /// hop that is there sets its cost and distance; removing one that is not is a success.
    ///
    /// # Errors
    /// If the router cannot be reached; then nothing is known to be applied.
    fn fib_apply(&mut self, changes: Vec<FibChange>) -> Result<Vec<FibRefusal>, ControlError>;

    /// Keeps the announcement of `prefix` whose Data is `wire`, unless a later
    /// version is kept, so that neighbours that learn routes to names under it
    /// get it with their Data.
    ///
    /// # Errors
    /// [`ControlError::LimitReached`] if there is no room.
    fn keep_announcement(
        &mut self,
        prefix: &Name,
        version: u64,
        wire: &[u8],
    ) -> Result<(), ControlError>;

    /// Forgets the announcements of `prefixes`.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn forget_announcements(&mut self, prefixes: Vec<Name>) -> Result<(), ControlError>;

    /// A part of the FIB, small enough that no packet waits long for it. A walk begins at
    /// 0 and continues at [`FibSlice::next`]; it meets every entry that is there
    /// throughout once.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn fib_slice(&mut self, from: u64) -> Result<FibSlice, ControlError>;

    /// Changes what is given of the content store's configuration. The answer is
    /// the state afterwards.
    ///
    /// # Errors
    /// If the capacity or the policy cannot be had; [`ControlError::CsPolicy`] if there is no
    /// such policy.
    fn cs_config(&mut self, config: &CsConfig) -> Result<CsInfo, ControlError>;

    /// Erases packets under `prefix`.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn cs_erase(&mut self, prefix: &Name, erasure: Erasure) -> Result<CsErased, ControlError>;

    /// State of the content store.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn cs_info(&mut self) -> Result<CsInfo, ControlError>;

    /// What the content store has done.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn cs_stats(&mut self) -> Result<CsStats, ControlError>;

    /// How popular the names are that are asked for.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn cs_popularity(&mut self) -> Result<CsPopularity, ControlError>;

    /// Chooses the strategy for `prefix` and returns the full name, version
    /// included, of what was chosen.
    ///
    /// # Errors
    /// [`ControlError::StrategyNotFound`], [`ControlError::StrategyParameters`] or
    /// [`ControlError::NameTooLong`].
    fn strategy_set(&mut self, prefix: &Name, strategy: &Name) -> Result<Name, ControlError>;

    /// Makes `prefix`, which is not the root, inherit its strategy again. Success
    /// if it has been so all along.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn strategy_unset(&mut self, prefix: &Name) -> Result<(), ControlError>;

    /// Every choice of a strategy, the root's included.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn strategies(&mut self) -> Result<Vec<StrategyChoice>, ControlError>;

    /// What the router has dropped, by reason: all of it, and then face by
    /// face; without the reasons that never occurred, and without the manager's
    /// own.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn drops(&mut self) -> Result<Vec<DropCount>, ControlError>;

    /// What memory the tables have on pages that they asked the system for.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn table_memory(&mut self) -> Result<TableMemory, ControlError>;

    /// What would become of an Interest that came now. Changes nothing; the origins of routes
    /// are left out.
    ///
    /// # Errors
    /// [`ControlError::FaceNotFound`] if the Interest shall come from a face that does not
    /// exist, [`ControlError::BadName`] if no Interest can have the name.
    fn explain(&mut self, query: &ExplainQuery) -> Result<NameExplanation, ControlError>;

    /// How the workers stand; within the bounds that [`WorkersStatus`] has, so that
    /// clients can decode it.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn workers(&mut self) -> Result<WorkersStatus, ControlError>;

    /// Changes how names are divided among workers. When it returns, [`workers`] shows
    /// it; packets that are under way reach the former home of their name and are served
    /// there.
    ///
    /// # Errors
    /// [`ControlError::Workers`] if that cannot be done; nothing has changed then.
    ///
    /// [`workers`]: Self::workers
    fn change_workers(&mut self, change: &WorkersChange) -> Result<(), ControlError>;

    /// How the router governs its power; within the bounds that [`PowerStatus`] has.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn power(&mut self) -> Result<PowerStatus, ControlError>;

    /// Packets under `prefix` that were dropped lately, newest first, `limit` at most.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn recent_drops(
        &mut self,
        prefix: &Name,
        limit: usize,
    ) -> Result<Vec<RecentDrop>, ControlError>;

    /// Begins to record packets, and returns the number of the trace, which cannot be
    /// guessed.
    ///
    /// # Errors
    /// [`ControlError::LimitReached`] if as many traces run as may.
    fn start_trace(&mut self, request: &TraceRequest) -> Result<u64, ControlError>;

    /// Takes out what a trace has recorded, and keeps the trace from ending for want of a
    /// reader. The same `read` number again returns the same again.
    ///
    /// # Errors
    /// [`ControlError::TraceNotFound`].
    fn read_trace(&mut self, trace_id: u64, read: u64) -> Result<TraceBatch, ControlError>;

    /// Ends a trace; one that has ended already is a success.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn stop_trace(&mut self, trace_id: u64) -> Result<(), ControlError>;

    /// Version, times and counters of the router.
    ///
    /// # Errors
    /// If the router cannot be reached.
    fn general_status(&mut self) -> Result<ForwarderStatus, ControlError>;
}

/// Which face to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceCreateRequest {
    /// Where to; canonical.
    pub remote: FaceUri,
    /// From where; canonical, with port 0 for any. `None`: the router chooses.
    pub local: Option<FaceUri>,
    /// Persistent or permanent; the manager lets nothing else through.
    pub persistency: FacePersistency,
    /// Everything else; `None` means the default.
    pub options: LinkOptions,
}

/// What to change of a face; `None` leaves a property as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaceChanges {
    /// The persistency.
    pub persistency: Option<FacePersistency>,
    /// Everything else.
    pub options: LinkOptions,
}

/// Options of a face's link service; `None` says nothing about one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// Local fields; only a local face may have them.
    pub local_fields: Option<bool>,
    /// Reliability of NDNLPv2.
    pub lp_reliability: Option<bool>,
    /// Congestion marking.
    pub congestion_marking: Option<bool>,
    /// Base interval of congestion marking, in nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Queue length from which congestion is marked, in bytes.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest packet to send, in bytes.
    pub mtu_bytes: Option<u64>,
}

impl LinkOptions {
    /// The options that a command states.
    #[must_use]
    pub fn from_parameters(parameters: &ControlParameters) -> Self {
        Self {
            local_fields: parameters.flag(face_flags::LOCAL_FIELDS),
            lp_reliability: parameters.flag(face_flags::LP_RELIABILITY),
            congestion_marking: parameters.flag(face_flags::CONGESTION_MARKING),
            base_congestion_marking_interval_ns: parameters.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: parameters.default_congestion_threshold_bytes,
            mtu_bytes: parameters.mtu_bytes,
        }
    }
}

/// What came of opening a face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaceCreated {
    /// A new face.
    New(FaceStatus),
    /// A new face whose connection is under way. An event reports whether it
    /// is established (Up), will be tried again (Down), or has failed
    /// (Destroyed).
    Connecting(FaceStatus),
    /// There was one already, unchanged.
    Existing(FaceStatus),
}

/// A change of one next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FibChange {
    /// Adds a next hop, or sets its cost and distance.
    Add {
        /// The prefix.
        name: Name,
        /// The next hop.
        face: FaceId,
        /// Its cost.
        cost: u64,
        /// How many components shorter the prefix is that it was inherited from;
        /// 0: it is the prefix's own. Of two with one cost the nearer is better.
        distance: u8,
    },
    /// Removes a next hop, and the entry with its last one.
    Remove {
        /// The prefix.
        name: Name,
        /// The next hop.
        face: FaceId,
    },
}

impl FibChange {
    /// The next hop that is added or removed.
    #[must_use]
    pub const fn face(&self) -> FaceId {
        match *self {
            Self::Add { face, .. } | Self::Remove { face, .. } => face,
        }
    }
}

/// A change that did not take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FibRefusal {
    /// The change.
    pub change: FibChange,
    /// Why not.
    pub reason: FibRefusalReason,
}

/// Why a next hop was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibRefusalReason {
    /// There is no such face (any more).
    FaceNotFound,
    /// The prefix has more components than the FIB takes.
    NameTooLong,
    /// The FIB is full.
    TableFull,
    /// The prefix has as many next hops as it may.
    TooManyNextHops,
    /// Memory is missing; how much, in bytes.
    OutOfMemory {
        /// How many.
        missing_bytes: u64,
    },
    /// Too many prefixes have almost the same hash under this start's key.
    TooManyCollisions,
}

/// A part of the FIB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FibSlice {
    /// Its entries; there may be none, and yet a next slice.
    pub entries: Vec<FibEntry>,
    /// Where the next slice begins, further on than this one; `None`: this was
    /// the last.
    pub next: Option<u64>,
}

/// What to change of the content store; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsConfig {
    /// Capacity, in packets.
    pub capacity_pkts: Option<u64>,
    /// Whether new Data is admitted.
    pub admit: Option<bool>,
    /// Whether Interests are answered.
    pub serve: Option<bool>,
    /// What is admitted and evicted: see [`ControlParameters::cs_policy`].
    pub policy: Option<String>,
}

/// How much an erasure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasure {
    /// At most this many packets of the DRAM level; the SSD level keeps its Data.
    UpTo(u64),
    /// All Data of both levels; at most this many packets of the DRAM level in one call, and the
    /// SSD level with the last of them.
    All {
        /// See above.
        at_once: u64,
    },
}

impl Erasure {
    /// Packets that go now, at most, of those that are counted one by one.
    #[must_use]
    pub const fn limit(self) -> u64 {
        match self {
            Self::UpTo(limit) | Self::All { at_once: limit } => limit,
        }
    }
}

/// What an erasure has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsErased {
    /// Packets erased.
    pub n_erased: u64,
    /// Whether there are more under the prefix.
    pub has_more: bool,
}

/// What an operator wants of the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkersChange {
    /// From now on no name and no worker moves because of queues, until [`Thaw`]; what an
    /// operator wants is done all the same. Success if it has been so all along.
    ///
    /// [`Thaw`]: Self::Thaw
    Freeze,
    /// Ends [`Freeze`](Self::Freeze). Success if there was none.
    Thaw,
    /// Has packets of a name, and of those that are dispatched together with it, go to a
    /// worker whatever the queues say. Where the name is pinned already it moves. Ends with
    /// [`Unpin`](Self::Unpin), or when the worker goes.
    Pin {
        /// The name; of its components count those that dispatching looks at.
        name: Name,
        /// The worker; it has to be running.
        worker: u64,
    },
    /// Lets a name that is pinned go where the map says. One that is not is an error: it
    /// may be misspelt.
    Unpin {
        /// The name; as for [`Pin`](Self::Pin).
        name: Name,
    },
    /// Starts one worker more, that with the lowest number of those that do not run. At most
    /// its share of all names moves to it.
    Add,
    /// Takes a worker away. Its names go to the others, evenly, and its pinned names with
    /// them; it ends what it has begun. The last one running stays.
    Remove {
        /// The worker; it has to be running.
        worker: u64,
    },
}

/// Which packets a trace records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Names under this prefix.
    pub prefix: Name,
    /// It ends with this many; `None`: with its time.
    pub max_records: Option<u64>,
    /// How long it records, in milliseconds.
    pub duration_ms: u64,
    /// It records one of this many packets; at least 1.
    pub sample: u64,
}

/// Why the router did not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is no such face.
    #[error("no such face; `tachonym face list` shows those that exist")]
    FaceNotFound,
    /// No face can be created to an address of this scheme.
    #[error(
        "no face can be created to {0}://; this router has the transports udp4, udp6, tcp4, \
         tcp6 and ws, as in udp4://192.0.2.1:6363"
    )]
    UnsupportedProtocol(String),
    /// Faces of this scheme cannot be so.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The address cannot be one end of such a face; why.
    #[error("{0}")]
    BadAddress(String),
    /// No Interest can have the name; why.
    #[error("no Interest can have this name: {0}")]
    BadName(String),
    /// These properties cannot be had together, or on this face.
    #[error("the face cannot have the properties that this response repeats")]
    Conflict(Box<ControlParameters>),
    /// There is no such strategy, or not in this version.
    #[error("no such strategy, or not in this version")]
    StrategyNotFound,
    /// The strategy does not take these parameters.
    #[error("bad strategy parameters: {0}")]
    StrategyParameters(&'static str),
    /// There is no such policy of the content store; why.
    #[error("{0}")]
    CsPolicy(String),
    /// The workers cannot be changed so; why, and what to do instead.
    #[error("{0}")]
    Workers(String),
    /// There is no such trace.
    #[error("the trace has ended; start it again")]
    TraceNotFound,
    /// The name has more components than the table takes.
    #[error("name has more than {max_components} components")]
    NameTooLong {
        /// The most it takes.
        max_components: usize,
    },
    /// A limit of the router is reached.
    #[error("limit reached: {0}")]
    LimitReached(&'static str),
    /// The other end refused, or did not answer in time; how.
    #[error("cannot connect: {0}")]
    NoAnswer(String),
    /// The operating system refused; its reason.
    #[error("{0}")]
    Socket(String),
    /// The router cannot be reached, because it is shutting down.
    #[error("the router is shutting down")]
    Unavailable,
}

impl ControlError {
    /// The status code of the response.
    #[must_use]
    pub const fn status_code(&self) -> u64 {
        match self {
            Self::FaceNotFound | Self::StrategyNotFound | Self::TraceNotFound => {
                status_code::NOT_FOUND
            }
            Self::UnsupportedProtocol(_) | Self::Unsupported(_) => {
                status_code::UNSUPPORTED_PROTOCOL
            }
            Self::BadAddress(_) | Self::BadName(_) | Self::CsPolicy(_) => status_code::BAD_REQUEST,
            // NFD distinguishes bad parameters from an unknown strategy by this code.
            Self::Conflict(_) | Self::StrategyParameters(_) | Self::Workers(_) => {
                status_code::CONFLICT
            }
            Self::NameTooLong { .. } => status_code::NAME_TOO_LONG,
            Self::LimitReached(_) | Self::Unavailable => status_code::UNAVAILABLE,
            Self::NoAnswer(_) => status_code::TIMEOUT,
            Self::Socket(_) => status_code::SOCKET_ERROR,
        }
    }
}
