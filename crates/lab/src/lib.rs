//! Experiments with NDN forwarders: load, measurement and impairment.
//!
//! [`exchange`] measures any running forwarder through its sockets;
//! [`impair`] is a UDP relay that loses, delays and reorders packets. Both
//! speak to real sockets only: nothing here pretends to be a router.
#![deny(unsafe_code)]

pub mod exchange;
pub mod impair;
pub mod machine;
pub mod process;
pub mod random;
pub mod stats;
#[allow(unsafe_code)] // System calls without a safe crate, see its comment.
mod sys;
