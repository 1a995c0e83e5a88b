//! Load generation and measurement of any running NDN forwarder.
//!
//! [`exchange`] measures a forwarder through its sockets; so do [`routes`],
//! [`footprint`], [`soak`], [`startup`], [`transfer`] and [`fairness`], each for
//! another quantity, and [`figures`] runs them one after the other. [`live`] starts
//! the router with several workers and drives it. [`impair`] is a UDP relay that
//! loses, delays and reorders packets.
//!
//! Everything here uses real sockets and running processes. This crate knows nothing
//! of a forwarder's inside: packets, management commands and the kernel's accounts
//! of a process are all that it has.
#![deny(unsafe_code)]

pub mod exchange;
pub mod fairness;
pub mod figures;
pub mod footprint;
pub mod impair;
pub mod live;
pub mod output;
pub mod power;
pub mod process;
pub mod routes;
pub mod soak;
pub mod startup;
#[allow(unsafe_code)] // System calls without a safe crate, see its comment.
mod sys;
pub mod transfer;
pub mod waiting;

pub use exchange::launch;
