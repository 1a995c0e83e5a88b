//! Virtual time.
//!
//! [`cores`] is the many-core simulator of Iqbal 2013, chapter 3: packets arrive, a
//! scheduler of the crate `dispatch` sends each to a core, and what is dropped, reordered
//! and moved is counted. The schedulers are those that a router runs.
//!
//! | module | what |
//! |---|---|
//! | [`cores`] | cores, queues and what becomes of packets |
//! | [`power`] | cores that sleep and change their frequency |
//! | [`service`] | what packets cost |
//! | [`traffic`] | which packets come: drawn, or recorded |
//! | [`rate`] | how many of them |
//! | [`weighted`], [`random`] | what draws |
#![forbid(unsafe_code)]

pub mod cores;
pub mod power;
pub mod random;
pub mod rate;
pub mod service;
pub mod traffic;
pub mod weighted;
