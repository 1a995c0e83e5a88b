//! The memory that tables live in: large zeroed arrays on huge pages, prefetch,
//! and what a writer and its readers need to share them.
//!
//! Knows nothing of names, tables or threads of the router. All `unsafe` code
//! that tables need is here, in `sys`; what is exported is safe. The atomics of
//! [`sync`] are loom's where the crate is built with `--cfg loom`, so that a
//! protocol over [`Words`] can be model-checked as it is.
//!
//! | module | what |
//! |---|---|
//! | [`Words`] | an array of 64-bit words that grows without moving |
//! | [`PlainWords`] | the same for one owner, of fixed length |
//! | [`Slots`] | values of any type, for one owner, that grow without moving |
//! | [`PagePreference`], [`Pages`] | what pages it should have, and what it got |
//! | [`IoBuffer`], [`IoRegion`] | bytes that a device reads into or writes from |
//! | [`available_bytes`] | what the process may still take |
//! | [`available_address_space`] | addresses that it may still reserve |
//! | [`prefetch()`] | a hint for the cache |
//! | [`copy_past_cache`] | a copy that leaves the cache to others |
//! | [`places_with_upper_half`] | which words of a line agree with a pattern |
//! | [`grace`] | when what was unlinked may be used again |
//! | [`sync`] | atomics, real or loom's |
#![deny(unsafe_code)]

#[cfg(not(any(loom, miri)))]
mod available;
mod error;
pub mod grace;
#[cfg(not(any(loom, miri)))]
mod ledger;
mod pages;
#[cfg(any(loom, miri))]
mod stand_in;
pub mod sync;
#[allow(unsafe_code)]
mod sys;
#[cfg(not(any(loom, miri)))]
mod words;

#[cfg(not(any(loom, miri)))]
pub use available::{available_address_space, available_bytes, available_huge_bytes};
pub use error::{Limit, MemoryError};
pub use pages::{PagePreference, PageSize, Pages};
#[cfg(loom)]
pub use stand_in::{PlainWords, Slots};
#[cfg(any(loom, miri))]
pub use stand_in::{Words, available_address_space, available_bytes, available_huge_bytes};
pub use sys::copy::copy_past_cache;
pub use sys::halves::{halves, halves_mut};
pub use sys::io_buffer::{IO_ALIGN, IoBuffer, IoRegion};
pub use sys::line_search::{places_of_halves, places_with_lower_half, places_with_upper_half};
#[cfg(not(loom))]
pub use sys::plain::PlainWords;
pub use sys::prefetch::prefetch;
#[cfg(not(loom))]
pub use sys::slots::Slots;
#[cfg(not(any(loom, miri)))]
pub use words::Words;

/// Words in a cache line of 64 bytes.
pub const LINE_WORDS: usize = 8;
