//! The Forwarding Information Base: which faces lead towards a name.
//!
//! Owns prefixes and their next hops. [`Fib`] is the one who writes; any number of
//! [`FibReader`]s, each on a thread of its own, search it meanwhile and never wait. It
//! knows a face only by its number.
//!
//! | module | owns |
//! |---|---|
//! | `next_hops` | a face that leads towards a prefix, and the order of such |
//! | `sets` | equal sets of next hops, kept once |
//! | `nodes` | the bytes of prefixes |
//! | `buckets` | the hash table over them: one cache line a bucket |
//! | `search` | the search for the longest prefix: the longest first |
//! | `alternatives` | other orders of search, and the markers that they need besides |
//! | `view` | what a reader sees during a burst, and which search that has |
//! | `hasher` | where hashes of names come from |
//! | `recent` | in which order changes may be seen |
//! | `writer` | changes and growth |
//!
//! **What a reader sees.** Each answer is one that the FIB would have given at some
//! moment during the search. A change is one store of a word, after everything that the
//! word leads to, markers included, which alone change no answer; memory that is unlinked is used again only when every search that may
//! have met it is over; and a change waits until searches are over that may have missed
//! an earlier one of a prefix above or below it, lest they see the later without the
//! earlier.

mod alternatives;
mod buckets;
mod hasher;
mod next_hops;
mod nodes;
mod recent;
mod search;
mod sets;
mod view;
mod writer;

pub use crate::prefix_map::MAX_PREFIX_COMPONENTS;
pub use alternatives::{FibEngine, FibMatching};
pub use hasher::PrefixHasher;
pub use next_hops::{MAX_NEXT_HOPS, NextHop, NextHops, NextHopsError, NextHopsView};
pub use search::{FibMatch, FibProbe};
pub use view::{FibFetch, FibReader, FibTrace, FibView};
pub use writer::{Fib, FibConfig, FibEntry, FibError, Unrouted};
