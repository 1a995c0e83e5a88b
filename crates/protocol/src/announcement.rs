//! Prefix announcements: what a producer says of its prefix.
//!
//! Owns how one is written. Source: "Prefix Announcement Protocol", with NFD's
//! name `/<prefix>/32=PA/<version>/<segment 0>`.

use tachonym_packet::types::{component, content_type};
use tachonym_packet::{Component, Data, Name, tlv};

/// TLV type of the ExpirationPeriod in an announcement's content.
pub const EXPIRATION_PERIOD: u32 = 109;

/// TLV type of the Cost in an announcement's content; optional.
pub const COST: u32 = 106;

/// The announcement that `prefix` can be reached by way of its bearer, to be signed
/// by who owns the prefix. It holds for `period_ms` milliseconds from when a router
/// gets it; later versions replace earlier ones.
#[must_use]
pub fn prefix_announcement(prefix: &Name, version: u64, period_ms: u64) -> Data {
    let name = prefix
        .clone()
        .with(&Component::new(component::KEYWORD, b"PA").expect("a keyword may say anything"))
        .with(&Component::version(version))
        .with(&Component::segment(0));
    let mut content = Vec::new();
    tlv::write_nni(&mut content, EXPIRATION_PERIOD, period_ms);
    Data {
        content_type: content_type::PREFIX_ANNOUNCEMENT,
        content,
        ..Data::new(name)
    }
}
