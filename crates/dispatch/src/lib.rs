//! Which worker gets a name.
//!
//! Pure decisions over numbers: no socket, thread or clock. Queue lengths, samples and the
//! time come as arguments; what comes out is the number of a worker. Nothing is allocated
//! or locked per packet. Router and simulator run the same code.
//!
//! | module | what |
//! |---|---|
//! | [`key`] | which part of a name decides, and which packets concern more workers than one |
//! | [`BucketMap`], [`LinearMap`], [`ServiceMap`] | names divided among workers, such that few move when one comes or goes |
//! | [`detector`] | aggressive names |
//! | [`migration`] | names that have another home than the map says |
//! | [`allocation`] | how many workers a service needs |
//! | [`laps`] | all of these together: the locality-aware packet scheduler |
//! | [`order`] | how packets of a name that moves keep their order |
//! | [`publish`] | how receiving threads read what one thread decides |
//! | [`power`] | how many workers run, how fast, and what a load costs in watts |
//! | [`baselines`], [`adaptive`], [`restoration`] | other schedulers, to compare with |
#![forbid(unsafe_code)]

pub mod adaptive;
pub mod allocation;
pub mod baselines;
mod buckets;
pub mod detector;
mod error;
mod homes;
pub mod key;
pub mod laps;
mod linear;
mod map;
pub mod migration;
pub mod order;
pub mod power;
pub mod publish;
pub mod restoration;
mod worker;

pub use allocation::{Need, ServiceLoad, Transfer};
pub use buckets::{BucketMap, MAX_BUCKETS_LOG2};
pub use detector::{Aggressive, Detector, DetectorConfig};
pub use error::{LapsError, MapError};
pub use homes::Homes;
pub use key::{DispatchBy, Key, NameShape, Reach};
pub use laps::{DetectorScope, Laps, LapsConfig, LapsCounters, MoveRule};
pub use linear::LinearMap;
pub use map::{MapKind, ServiceMap};
pub use migration::{Migration, MigrationState, MigrationTable};
pub use order::{Offer, Order, OrderConfig};
pub use publish::{Publisher, Reader};
pub use worker::{MAX_SERVICES, MAX_WORKERS, ServiceId, WorkerId, WorkerSet};
