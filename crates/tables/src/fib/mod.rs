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
//! | `engines` | in which order the table is asked for the lengths of a name |
//! | `markers` | the places of shorter prefixes that engines need besides |
//! | `partitions` | what markers inherit from the prefixes above them |
//! | `pulled` | prefixes below which searches begin lower down: level pulling |
//! | `view` | the search for the longest prefix, one by one and in bursts |
//! | `recent` | in which order changes may be seen |
//! | `writer` | changes and growth |
//!
//! **What a reader sees.** Each answer is one that the FIB would have given at some
//! moment during the search. A change is one store of a word, after everything that the
//! word leads to, markers included, which alone change no answer; memory that is unlinked is used again only when every search that may
//! have met it is over; and a change waits until searches are over that may have missed
//! an earlier one of a prefix above or below it, lest they see the later without the
//! earlier.

mod buckets;
mod engines;
mod markers;
mod next_hops;
mod nodes;
mod partitions;
mod pulled;
mod recent;
mod sets;
mod view;
mod writer;

pub use crate::prefix_map::MAX_PREFIX_COMPONENTS;
pub use engines::{FibEngine, FibMatching, FibProbe};
pub use next_hops::{MAX_NEXT_HOPS, NextHop, NextHops, NextHopsError, NextHopsView};
pub use view::{FibFetch, FibMatch, FibReader, FibTrace, FibView};
pub use writer::{Fib, FibConfig, FibEntry, FibError, PrefixHasher, Unrouted};
