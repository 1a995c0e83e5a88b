//! Experiments with NDN forwarders: load, measurement and impairment.
//!
//! [`exchange`] measures any running forwarder through its sockets; so do
//! [`routes`], [`footprint`], [`soak`], [`startup`], [`transfer`] and
//! [`fairness`], each for another figure, and [`figures`] takes them all at
//! once. [`live`] has the router with several workers. [`impair`] is a UDP relay that loses, delays and reorders packets. These
//! speak to real sockets only: nothing here pretends to be a router.
//!
//! [`engine_bed`] has the router's own engine between buffers in memory;
//! [`bottleneck`] and [`instructions`] tell what its packet path costs, block by
//! block, and [`schedules`] what fetching ahead gains. `beds` has its FIB alone.
//! [`verify`] has its verification of Data.
//! [`ssd`] has the second level of its content store on a disk.
//! [`cores`] has its dispatch of names to workers, on simulated cores.
#![deny(unsafe_code)]

pub mod bottleneck;
pub mod cache;

mod beds;
mod choices;
pub mod cores;
pub mod engine_bed;
pub mod exchange;
pub mod experiments;
pub mod fairness;
pub mod figures;
pub mod footprint;
pub mod hcs;
pub mod impair;
pub mod instructions;
mod iqbal;
pub mod launch;
pub mod live;
pub mod machine;
mod mansilha;
pub mod output;
mod own;
pub mod process;
pub mod random;
pub mod routes;
pub mod schedules;
pub mod soak;
pub mod ssd;
pub mod startup;
pub mod stats;
#[allow(unsafe_code)] // System calls without a safe crate, see its comment.
mod sys;
mod takemasa;
pub mod transfer;
pub mod verify;
pub mod workers;
pub mod workloads;
mod yuan;
