//! Values of the NFD management protocol and of RDR metadata.
//!
//! Owns what management says on the wire, as plain values with strict decoders,
//! and [`FaceUri`]. It does no I/O, holds no state and knows no table: the
//! manager, the faces, the client library and the tools all speak through it.
#![forbid(unsafe_code)]

mod announcement;
mod codec;
mod command;
mod dataset;
mod explain;
pub mod face_uri;
mod kinds;
mod packet_trace;
mod power;
pub mod rdr;
mod recent_drops;
pub mod segments;
mod workers;

pub use announcement::{COST, EXPIRATION_PERIOD, prefix_announcement};
pub use command::{CommandName, ControlParameters, ControlResponse, Scope};
pub use dataset::{
    ChannelStatus, CsInfo, CsPopularity, CsStats, DropCount, FaceEventNotification, FaceProgram,
    FaceQueryFilter, FaceStatus, FibEntry, ForwarderStatus, NextHopRecord, PopularityClass,
    RibEntry, Route, SecondLevelBalance, SecondLevelStats, StrategyChoice, TableMemory,
};
pub use explain::{
    AskedFace, CachedData, ExplainQuery, ExplainedNextHop, NameExplanation, PendingInterest,
    WaitingFace,
};
pub use face_uri::{FaceUri, FaceUriError, HostUri, IpFamily, IpTransport};
pub use kinds::{
    FaceEventKind, FacePersistency, FaceScope, FaceState, LinkType, NextHopUse, SsdFinding,
    TraceDecision, WorkerState, cs_flags, face_flags, route_flags, route_origin, status_code,
};
pub use packet_trace::{
    MAX_TRACES, TRACE_DEFAULT_MS, TRACE_LEASE_MS, TRACE_MAX_MS, TraceBatch, TraceFace, TraceQuery,
    TraceRecord,
};
pub use power::{EnergyCounter, PowerLever, PowerStatus, PowerWork, TapStatus, WorkerPower};
pub use recent_drops::RecentDrop;
pub use workers::{MovedName, ReceiverStatus, WaitingStatus, WorkerStatus, WorkersStatus};
