//! The NFD management protocol, the RIB and command authorisation.
//!
//! Owns the management of a running router: [`Manager`] takes Interests under
//! `/localhost/nfd` and `/localhop/nfd` and gives back Data; [`ControlPlane`] is
//! what it asks of the router; [`Rib`] turns routes into changes of the FIB;
//! [`ManagementTrust`] says which signers may give which commands. No threads, no
//! sockets, no clock.
#![forbid(unsafe_code)]

mod announcement;
mod authorize;
mod carriers;
mod commands;
mod connecting;
mod contents;
mod control;
mod counters;
mod datasets;
mod learning;
mod looping;
mod manager;
mod notifications;
mod packet_trace;
mod registration;
mod replies;
mod rib;
mod verbs;

pub use authorize::{AuthorizeRule, LocalhopRule, ManagementTrust};
pub use carriers::CommandTransport;
pub use connecting::FaceReport;
pub use control::{
    ControlError, ControlPlane, CsConfig, CsErased, Erasure, FaceChanges, FaceCreateRequest,
    FaceCreated, FibChange, FibRefusal, FibRefusalReason, FibSlice, LinkOptions, TraceRequest,
    WorkersChange,
};
pub use counters::{Counters, DropReason};
pub use learning::Brought;
pub use manager::{Manager, ManagerConfig, ReplySink};
pub use rib::{MAX_ORIGINS, Rib, RibError, RibLimits, RibRoute, RouteInserted};
pub use verbs::Module;
