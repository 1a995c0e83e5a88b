//! What experiments measure: parts of the router with full tables, and their workloads.

pub mod engine;
pub(crate) mod fib;
pub(crate) mod first_level;
pub(crate) mod store;
pub(crate) mod workers;
