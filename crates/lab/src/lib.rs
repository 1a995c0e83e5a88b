//! Experiments with the router's parts and with running routers.
//!
//! [`experiments`] has all of them, by document. What measures a running forwarder
//! through its sockets is the crate `tachonym_loadgen`.
//!
//! [`beds`] has what experiments measure: [`beds::engine`] the router's own engine between
//! buffers in memory, and its FIB alone. [`instructions`] counts the instructions of its
//! packet path, block by block.
//! The experiments of Iqbal 2013 have its dispatch of names to workers, on simulated cores.
#![deny(unsafe_code)]

pub mod beds;
mod choices;
pub mod experiments;
pub mod instructions;
mod iqbal;
mod mansilha;
mod own;
pub use tachonym_bench::{random, stats};
pub use tachonym_loadgen::{output, process};
#[allow(unsafe_code)] // System calls without a safe crate, see its comment.
mod sys;
mod takemasa;
pub mod workloads;
mod yuan;

pub use beds::engine as engine_bed;
