//! Which Data the content store admits, and which it evicts.
//!
//! Pure decisions over numbers: a store keeps its Data in slots below a bound and knows
//! a keyed 64-bit hash of each name; a [`Policy`] decides by slots and hashes. It sees no
//! packet and reads no clock. All memory is taken when a policy is made: a request
//! allocates nothing, and the tables are bounded by the size of the cache. Router and
//! lab run the same policies.
//!
//! | module | what |
//! |---|---|
//! | [`Policy`] | admission and eviction together, as a store asks for them |
//! | [`eviction`] | the order among slots |
//! | [`model`] | what hit ratio and what cost to expect |
//! | [`advice`] | the same for sizes and policies that one may choose |
//! | [`popularity`] | how popular names are, measured from their requests |
//! | [`admission`] | what is known of names that were asked for |
//! | [`EvictionKind`], [`AdmissionKind`] | their names, and [`senseless`] pairs |
//!
//! Which bits of a name's hash decide what, so that no decision follows from another: the
//! counters of a Filter have the upper bits for the group and the lowest 24 for the cell;
//! Filter that tunes itself draws lots by bits 24 to 31, and follows the names of which
//! bits 32 to 35 are zero; the popularity's sample is of the lowest hashes. A store's index
//! has the lowest bits for its lines. TinyLFU mixes the hash for each of its rows.
#![forbid(unsafe_code)]

pub mod admission;
pub mod advice;
pub mod eviction;
mod ghosts;
mod kind;
mod list;
pub mod model;
mod policy;
pub mod popularity;
mod random;
mod window;

pub use kind::{AdmissionKind, CountersKind, EvictionKind, UnknownKind, senseless};
pub use policy::{Policy, PolicyConfig, PolicyError};
pub use random::Random;
