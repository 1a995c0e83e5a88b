//! The configuration: one TOML file, every key optional.
//!
//! The structures here are the configuration *and* its reference: their doc
//! comments become `docs/configuration.md` (see [`mod@reference`]). Each table has
//! a file with its structure and its checks. A file with errors starts nothing:
//! each error names file, line, key and remedy.

mod check;
mod complaint;
mod content_store;
mod document;
mod faces;
mod faults;
mod forwarding;
mod lines;
mod load;
mod locality;
mod machine;
mod management;
mod origin;
mod power;
pub mod reference;
mod routes;
mod second_level;
mod shape;
mod signers;
mod summary;
mod tables;
pub(crate) mod trust;
mod warnings;
mod wording;
mod workers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use complaint::Complaint;
pub(crate) use content_store::FREE_TABLE_BYTES;
pub use content_store::{Admission, ContentStore, Eviction};
pub use faces::{Faces, Multicast, Tcp, Udp, Unix, WebSocket};
pub(crate) use faults::parse_name;
pub use forwarding::{Forwarding, Schedule, StrategyChoice, UnsolicitedData};
pub use load::ConfigError;
pub use locality::{Local, Transport};
pub use management::{Authorize, Management};
pub use origin::{Origin, StartError};
pub use power::{Governor, Power};
pub(crate) use power::{KEPT, server};
pub use routes::{Persistency, StaticFace, StaticRoute};
pub use second_level::{Io, SecondLevel, Volume};
pub use signers::{Announcements, Localhop, Names, Verification};
pub use summary::Summary;
pub use tables::{
    FibEngine, FibMatching, Memory, NameHash, PitCsLayout, TableIndex, TablePages, Tables,
};
pub use warnings::Warning;
pub(crate) use workers::usable_cpus;
pub use workers::{Dispatch, Feed, Workers};

/// Everything an operator can set. An empty file is a working router.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What is logged to standard error.
    pub log: Log,
    /// Where the router listens, and the limits of every face.
    pub faces: Faces,
    /// Sizes of the tables. Each size is a hard limit: what does not fit is dropped or
    /// replaced, and counted. All workers share each size.
    pub tables: Tables,
    /// Threads that receive and forward. Each worker thread has a PIT and a content store of
    /// its own, with its share of the sizes in `[tables]`; the FIB is shared.
    pub workers: Workers,
    /// How the power that the router takes follows its traffic.
    pub power: Power,
    /// Memory pages of the tables.
    pub memory: Memory,
    /// The policy of the DRAM level of the content store. Its size is set in `[tables]`.
    pub content_store: ContentStore,
    /// The SSD level of the content store. It is on if there is a `[[second_level.volume]]`,
    /// and its Data survives restarts. [ssd.md](ssd.md) explains how to set it up. Segments
    /// of an object are written and read together, a batch at a time.
    pub second_level: SecondLevel,
    /// How packets are forwarded.
    pub forwarding: Forwarding,
    /// The strategy for a prefix. A prefix without one has the strategy of the longest
    /// shorter prefix that has one; `/` has `best-route` unless it is set here.
    pub strategy: Vec<StrategyChoice>,
    /// A face that is created at start.
    pub face: Vec<StaticFace>,
    /// A route that is created at start, with origin `static`.
    pub route: Vec<StaticRoute>,
    /// Data under a prefix that is verified before it is cached or answers an Interest. Data
    /// without the required signature is dropped and counted. No certificate is fetched: all
    /// must be in files, and Data of an unknown signer is dropped like forged Data. Verifying
    /// a signature takes tens of microseconds; `tachonym-lab run own/verify` measures it.
    pub verification: Vec<Verification>,
    /// The management protocol: commands and status datasets.
    pub management: Management,
    /// The file, for errors at the start.
    #[serde(skip)]
    pub origin: Origin,
}

/// What is logged to standard error.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `off`, `error`, `warn`, `info`, `debug` or `trace`; or a filter such as
    /// `info,tachonym_router=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".into(),
        }
    }
}
