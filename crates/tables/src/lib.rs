//! The tables of the router: FIB, PIT, content store, dead nonce list.
//!
//! Names, and what is known about them, live here; what to do about a packet is
//! decided above, in `forward`. Tables know a face only by its number, read no
//! clock, and compute no hash of a name: callers pass the present time and the
//! hashes of all prefixes of a name, computed once per packet. A hash only
//! finds candidates; names are told apart by their bytes. Every table has its
//! limits in its constructor, and reaching one is a counted answer.
//!
//! | module | table |
//! |---|---|
//! | [`pit`] | pending Interests |
//! | [`cs`] | cached Data |
//! | [`pit_cs`] | both of these, and their index |
//! | [`fib`] | prefixes and their next hops |
//! | [`dead_nonces`] | nonces of Interests whose entries are gone |
//! | [`prefix_map`] | longest-prefix map, also for strategy choices and measurements |
//! | [`buckets`] | the index of PIT and content store, and of dead nonces |
//! | [`wheel`] | deadlines |
#![forbid(unsafe_code)]

pub mod buckets;
pub mod cs;
pub mod dead_nonces;
mod digest;
pub mod fib;
mod hash_index;
pub mod pit;
pub mod pit_cs;
mod place;
mod pool;
pub mod prefix_map;
mod slab;
pub mod wheel;

pub use buckets::{IndexKind, UnknownIndexKind};
pub use cs::{
    Admission, ContentStore, CsCapacity, CsConfig, CsCounters, DataRef, Marks, NotAdmitted,
    PolicyStep, Regained,
};
pub use dead_nonces::{DeadNonceList, MIN_DEAD_NONCE_LIFETIME};
pub use fib::{
    Fib, FibConfig, FibEngine, FibEntry, FibError, FibFetch, FibMatch, FibMatching, FibProbe,
    FibReader, FibTrace, FibView, MAX_NEXT_HOPS, NextHop, NextHops, NextHopsError, NextHopsView,
    PrefixHasher, Unrouted,
};
pub use pit::{
    EntryIdx, InRecord, Inserted, OutRecord, Pending, Pit, PitConfig, PitEntry, PitRefusal,
    PitRefusals,
};
pub use pit_cs::{
    Known, Missed, Offer, OfferRank, PitCs, PitCsConfig, PitCsLayout, Sighted, TablesError,
    UnknownPitCsLayout,
};
pub use prefix_map::{MAX_PREFIX_COMPONENTS, PrefixEntry, PrefixMap, PrefixMapError};
pub use wheel::TICK_NS;
