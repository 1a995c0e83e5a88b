//! Experiments with the router's parts and with running routers.
//!
//! [`experiments`] has all of them, by document. What measures a running forwarder
//! through its sockets is the crate `tachonym_loadgen`.
//!
//! [`beds`] has what experiments measure: [`beds::engine`] the router's own engine between
//! buffers in memory; its FIB, workers, stores and disks. [`workloads`] has what they
//! request. [`instructions`] counts the instructions of the packet path, block by block.
#![deny(unsafe_code)]

pub mod beds;
mod choices;
pub mod experiments;
pub mod instructions;
mod iqbal;
mod mansilha;
mod own;
#[allow(unsafe_code)] // System calls without a safe crate, see its comment.
mod sys;
mod takemasa;
pub mod workloads;
mod yuan;
