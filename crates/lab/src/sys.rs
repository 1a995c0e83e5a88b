//! System calls and instructions that no safe crate offers: the time-stamp counter,
//! performance counters, a shared page, and stepping through another process.
//!
//! Owns every `unsafe` block of this crate.

pub(crate) mod clock;
pub(crate) mod page;
pub(crate) mod perf;
pub(crate) mod trace;
