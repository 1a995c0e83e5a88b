//! The source of a face: what limits on remote peers count by.
//!
//! A host can open many faces, so a limit for each face does not limit the host.
//! [`SourceId`] is the same for all faces of one IPv4 address, or of one
//! IPv6 prefix of 64 bits, which is what a host or a home gets (RFC 4291,
//! section 2.5.4; RFC 7421). It is computed from the address alone, so that the
//! threads of a router agree on it without asking each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;

use crate::lp::FaceId;

/// Source of a face; equal for faces that share limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(NonZeroU64);

/// First 32 bits of the source of an IPv4 address: those of a multicast prefix,
/// which is no source.
const IPV4: u64 = 0xff00_0000;
/// First 16 bits of the source of a single face, for the same reason.
const FACE: u64 = 0xff01;
/// First 16 bits of a link-local prefix, whose next 48 bits are zero.
const LINK_LOCAL: u64 = 0xfe80;

impl SourceId {
    /// Source of a face that shares its limits with no other: a local program, a
    /// multicast group.
    #[must_use]
    pub const fn of_face(face: FaceId) -> Self {
        Self::from_bits(FACE << 48 | face.0 & ((1 << 48) - 1))
    }

    /// Source of a remote peer: its IPv4 address, or the first 64 bits of its IPv6
    /// address. Link-local addresses count by the link.
    #[must_use]
    pub const fn of_peer(peer: &SocketAddr) -> Self {
        let scope_id = match peer {
            SocketAddr::V6(peer) => peer.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        match peer.ip() {
            IpAddr::V4(ip) => Self::of_ipv4(ip),
            IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
                Some(ip) => Self::of_ipv4(ip),
                None => Self::of_ipv6(ip, scope_id),
            },
        }
    }

    const fn of_ipv4(ip: Ipv4Addr) -> Self {
        Self::from_bits(IPV4 << 32 | ip.to_bits() as u64)
    }

    const fn of_ipv6(ip: Ipv6Addr, scope_id: u32) -> Self {
        let prefix = (ip.to_bits() >> 64) as u64;
        if prefix == LINK_LOCAL << 48 {
            return Self::from_bits(prefix | scope_id as u64);
        }
        Self::from_bits(prefix)
    }

    /// The source as a number that no other source has.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    const fn from_bits(bits: u64) -> Self {
        // Only ffff:ffff:ffff:ffff::/64 would be zero, which is multicast.
        match NonZeroU64::new(!bits) {
            Some(bits) => Self(bits),
            None => Self(NonZeroU64::MAX),
        }
    }
}

impl From<FaceId> for SourceId {
    fn from(face: FaceId) -> Self {
        Self::of_face(face)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> SourceId {
        SourceId::of_peer(&text.parse().expect("an address"))
    }

    #[test]
    fn ports_of_an_address_are_one_source() {
        assert_eq!(source("192.0.2.1:1"), source("192.0.2.1:2"));
        assert_eq!(source("192.0.2.1:1"), source("[::ffff:192.0.2.1]:1"));
        assert_ne!(source("192.0.2.1:1"), source("192.0.2.2:1"));
    }

    #[test]
    fn addresses_of_a_64_bit_prefix_are_one_source() {
        assert_eq!(source("[2001:db8::1]:1"), source("[2001:db8::2:3]:4"));
        assert_ne!(source("[2001:db8::1]:1"), source("[2001:db8:0:1::1]:1"));
        // Link-local peers of one link are, and those of different links are not.
        assert_eq!(source("[fe80::1%2]:1"), source("[fe80::2%2]:1"));
        assert_ne!(source("[fe80::1%2]:1"), source("[fe80::1%3]:1"));
    }

    #[test]
    fn faces_addresses_and_prefixes_never_collide() {
        let mut all = vec![
            source("0.0.0.0:1"),
            source("255.255.255.255:1"),
            source("[::1]:1"),
            source("[fe80::1]:1"),
            SourceId::of_face(FaceId(0)),
            SourceId::of_face(FaceId(256)),
        ];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
