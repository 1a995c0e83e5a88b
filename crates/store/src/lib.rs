//! The second level of the content store (L2): Data on SSD behind those in DRAM, after
//! Mansilha et al. 2017.
//!
//! The first level is `tachonym_tables::ContentStore`. This crate has what lies behind it,
//! without any input or output of its own but in [`device`].
#![deny(unsafe_code)]

mod admission;
mod ahead;
mod assembly;
mod config;
pub mod device;
mod erasures;
mod finding;
mod flush;
mod index;
pub mod layout;
mod log;
mod naming;
mod offering;
mod reads;
mod recalled;
mod regions;
mod second_level;
mod taking;
mod upkeep;

pub use config::{Admission, Config, Counters, Geometry, GeometryError};
pub use finding::{Place, Recall};
pub use flush::Ticket;
pub use index::{Index, Location};
pub use naming::Names;
pub use offering::{Novelty, Offered};
pub use reads::{MAX_WAITERS_PER_READ, Sharer, Sought, Waiter};
pub use recalled::{Recalled, RecalledChunk};
pub use second_level::{Beginning, Event, SecondLevel, VolumeFault};
