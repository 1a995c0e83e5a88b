//! A small NDN consumer and producer library, as the tools use it.
//!
//! An [`Endpoint`] is one face to a router: it sends, waits and receives.
//! [`Controller`] speaks the management protocol over it; [`fetch()`] and
//! [`Publication`] move segmented objects. What needs no socket stands apart:
//! [`fetcher`] decides which segment to ask for, [`cubic`] and [`rtt`] when.
//! Everything is synchronous and runs on the caller's thread.
//!
//! ```no_run
//! use tachonym_client::{Endpoint, transport};
//! use tachonym_packet::Interest;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut endpoint = Endpoint::connect(&transport::find()?)?;
//! let answer = endpoint.express(&Interest::new("/example/hello".parse()?), 2)?;
//! println!("{} bytes", answer.data().content().len());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod controller;
pub mod cubic;
mod discover;
pub mod endpoint;
mod fetch;
pub mod fetcher;
mod publish;
mod refusal;
pub mod rtt;
pub mod transport;

pub use controller::{CommandError, Controller};
pub use discover::{DiscoverError, Discovered, Discovery, Object, discover};
pub use endpoint::{Answer, Endpoint, EndpointError, ExpressError, Link, Received, Reply, wall_ms};
pub use fetch::{FetchError, FetchOptions, FetchProgress, FetchReport, check_digest, fetch};
pub use publish::{Content, Publication, PublishError, PublishOptions};
pub use refusal::{Refuser, find_refuser};
