//! Experiments with the router's parts and with running routers.
//!
//! [`experiments`] has all of them, by document. What measures a running forwarder
//! through its sockets is the crate `tachonym_loadgen`.
//!
//! [`engine_bed`] has the router's own engine between buffers in memory;
//! [`bottleneck`] and [`instructions`] tell what its packet path costs, block by
//! block, and [`schedules`] what fetching ahead gains. `beds` has its FIB alone.
//! [`verify`] has its verification of Data.
//! [`ssd`] has the second level of its content store on a disk.
//! The experiments of Iqbal 2013 have its dispatch of names to workers, on simulated cores.
#![deny(unsafe_code)]

pub mod bottleneck;
pub mod cache;

mod beds;
mod choices;
pub mod engine_bed;
pub mod experiments;
pub mod hcs;
pub mod instructions;
mod iqbal;
pub mod live;
mod mansilha;
pub mod own;
pub mod schedules;
pub mod ssd;
pub use tachonym_bench::{random, stats};
pub use tachonym_loadgen::{output, process};
#[allow(unsafe_code)] // System calls without a safe crate, see its comment.
mod sys;
mod takemasa;
pub mod verify;
pub mod workers;
pub mod workloads;
mod yuan;
