//! NDN Packet Format 0.3 and NDNLPv2 as checked views and owned values.
//!
//! A view borrows received bytes and is validated once, by its only
//! constructor; afterwards no accessor can fail, and nothing allocates. A value
//! owns its fields and serves management, tools and tests. This crate knows no
//! face, table or clock.
#![forbid(unsafe_code)]

mod copies;
mod data;
mod error;
pub mod hash;
mod interest;
pub mod lp;
mod name;
mod signature;
mod source;
mod span;
pub mod time;
pub mod tlv;
pub mod types;

pub use copies::PacketCopies;
pub use data::{Data, DataView, PacketView};
pub use error::DecodeError;
pub use hash::{HashKey, HashKind, HashSpan, HashedNames, NameHash, NameHashes};
pub use interest::{
    DEFAULT_LIFETIME_MS, Interest, InterestRewrite, InterestSignature, InterestVariant,
    InterestView, Nonce,
};
pub use lp::{FaceId, NackReason, PitToken};
pub use name::{Component, ComponentView, Components, Name, NameScope, NameUriError, NameView};
pub use signature::{KeyLocator, KeyLocatorView, SignatureInfo, SignatureInfoView, ValidityPeriod};
pub use source::SourceId;
pub use span::{Span, offset_in};
pub use time::MonoNs;
