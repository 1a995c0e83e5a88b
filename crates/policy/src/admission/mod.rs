//! Whether an arriving Data is cached.
//!
//! Owns what is known of names that were asked for, by their hashes. Filters of names
//! that have been told apart by hash only may take one for another, which costs a
//! little of the hit ratio and nothing else.

mod auto;
mod counters;
mod filter;
mod k_lru;
mod tiny_lfu;

pub use auto::{AutoFilter, Change, HISTORY_BY_LEN};
pub use filter::Filter;
pub use k_lru::KLru;
pub use tiny_lfu::TinyLfu;
