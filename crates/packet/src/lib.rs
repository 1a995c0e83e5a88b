//! NDN Packet Format 0.3 and NDNLPv2 as checked views and owned values.
//!
//! A view borrows received bytes and is validated once, by its only
//! constructor; afterwards no accessor can fail, and nothing allocates. A value
//! owns its fields and serves management, tools and tests. This crate knows no
//! face, table or clock.
#![forbid(unsafe_code)]

mod error;
pub mod hash;
pub mod lp;
mod name;
pub mod time;
pub mod tlv;
pub mod types;

pub use error::DecodeError;
pub use hash::{HashKey, HashSpan, NameHash, NameHashes};
pub use lp::{FaceId, NackReason, PitToken};
pub use name::{Component, ComponentView, Components, Name, NameUriError, NameView};
pub use time::MonoNs;
