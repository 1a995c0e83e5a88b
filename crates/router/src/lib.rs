//! The Tachonym router: engine, faces and manager in their threads.
//!
//! Start reading at [`Router::start`]; the loop on which packets travel is in
//! `worker.rs`.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod config;
mod control;
mod drops;
mod fib_jobs;
mod handle;
mod internal;
mod manager;
mod run;
mod start;
mod strategies;
mod threads;
pub mod tools;
mod trust;
mod worker;

pub use run::{Router, Snapshot};
