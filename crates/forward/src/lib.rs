//! The NDN forwarding engine and its strategies, without I/O.
//!
//! [`Engine::handle_burst`] takes received packets and the time, and tells an
//! [`Output`] what to send; [`Engine::poll_timeout`] says when
//! [`Engine::handle_timeout`] next has work. The engine owns the tables and
//! reads no clock, socket or file, so that the router, the simulator and the
//! tests drive the very same code.
//!
//! The way of an Interest is in `interest.rs`, read from top to bottom; those
//! of Data and Nack in `data.rs` and `nack.rs`. Where an Interest goes is
//! decided in `strategy/`.
#![forbid(unsafe_code)]

mod announcements;
mod block;
mod burst;
mod config;
mod counters;
mod data;
mod engine;
mod explain;
mod faces;
mod interest;
mod learning;
mod management;
mod marks;
mod nack;
mod outgoing;
mod pending;
mod recent_drops;
mod remote_reads;
mod retry;
mod rng;
mod route;
mod routes;
mod schedule;
mod second_level;
pub mod sharing;
mod state;
mod steps;
mod strategy;
mod upkeep;
mod wakeups;

pub use announcements::AnnouncementRefused;
pub use block::Block;
pub use burst::{Output, RxKind, RxPacket, relend};
pub use config::{EngineConfig, MAX_LIFETIME_MS, UnknownPolicy, UnsolicitedDataPolicy};
pub use counters::{Counters, DropReason};
pub use engine::{Engine, TableMemory};
pub use explain::{
    AskedFace, CachedData, Eligibility, ExplainedHop, ExplainedInterest, ExplainedRoute,
    Explanation, Inspect, SsdFinding, WaitingFace,
};
pub use faces::{FaceTraits, LinkType, Scope};
pub use management::{ChoicesMut, CsMut, RouteError};
pub use recent_drops::{DropRecord, Dropped, KeptName, NAME_BYTES, PacketKind, RecentDrops};
pub use route::MAX_DELEGATIONS;
pub use routes::{Routes, RoutesGuard};
pub use schedule::{BURST_DISTANCE, MAX_BURST_DISTANCE, Schedule, UnknownSchedule};
pub use state::TableSizes;
pub use strategy::{StrategyError, registered_strategies, resolve_strategy};
