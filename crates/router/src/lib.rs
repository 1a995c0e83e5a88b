//! The Tachonym router: workers, faces and manager in their threads.
//!
//! Start reading at [`Router::start`]; the loop on which packets travel is in
//! `worker.rs`, and what happens to them in `plane.rs`.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod blueprint;
mod busy;
pub mod config;
mod control;
mod crew;
mod cs_capacity;
mod drops;
mod engines;
mod explain_control;
mod face_jobs;
mod face_status;
mod fib_jobs;
mod handle;
pub mod help;
mod internal;
mod layout;
mod manager;
mod null_face;
mod overrides;
mod packet_trace;
mod plane;
mod ports;
mod power;
mod printable;
mod recent_drops;
mod run;
mod scheduling;
mod second_level;
mod services;
mod start;
mod strategies;
mod task;
mod team;
mod threads;
pub mod tools;
mod trace_control;
mod verification;
mod worker;
mod workers_control;

pub use overrides::Overrides;
pub use run::{Router, Snapshot};
