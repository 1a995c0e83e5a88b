//! Socket addresses as the kernel lays them out.
//!
//! Owns the translation between [`SocketAddr`] and the bytes of `sockaddr_in`
//! and `sockaddr_in6`. Other families are refused.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// `size_of::<sockaddr_in6>()`, the larger of the two.
const MAX_NAME_BYTES: usize = size_of::<libc::sockaddr_in6>();
const V4_NAME_BYTES: usize = size_of::<libc::sockaddr_in>();
const _: () = {
    assert!(MAX_NAME_BYTES == 28);
    assert!(V4_NAME_BYTES == 16);
};

/// Room for the address of an IPv4 or IPv6 socket.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct SocketName {
    bytes: [u8; MAX_NAME_BYTES],
}

impl SocketName {
    /// All zeros: no address.
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; MAX_NAME_BYTES],
    };
    /// Bytes that the kernel may write.
    pub(crate) const CAPACITY: usize = MAX_NAME_BYTES;

    /// Becomes `addr`; returns how many bytes of it the kernel should read.
    pub(crate) fn set(&mut self, addr: &SocketAddr) -> usize {
        match addr {
            SocketAddr::V4(v4) => {
                self.bytes[0..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                self.bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
                self.bytes[4..8].copy_from_slice(&v4.ip().octets());
                self.bytes[8..16].fill(0);
                V4_NAME_BYTES
            }
            SocketAddr::V6(v6) => {
                self.bytes[0..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                self.bytes[2..4].copy_from_slice(&v6.port().to_be_bytes());
                self.bytes[4..8].fill(0);
                self.bytes[8..24].copy_from_slice(&v6.ip().octets());
                self.bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                MAX_NAME_BYTES
            }
        }
    }

    /// The address in the first `len_bytes` that the kernel wrote; `None` if
    /// it is of another family or cut short. The flow label is left out: it
    /// names no place.
    pub(crate) fn get(&self, len_bytes: usize) -> Option<SocketAddr> {
        let family = i32::from(u16::from_ne_bytes([self.bytes[0], self.bytes[1]]));
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        match family {
            libc::AF_INET if len_bytes >= V4_NAME_BYTES => {
                let ip: [u8; 4] = self.bytes[4..8].try_into().ok()?;
                Some(SocketAddrV4::new(Ipv4Addr::from(ip), port).into())
            }
            libc::AF_INET6 if len_bytes >= MAX_NAME_BYTES => {
                let ip: [u8; 16] = self.bytes[8..24].try_into().ok()?;
                let scope_id = u32::from_ne_bytes(self.bytes[24..28].try_into().ok()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope_id).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_layout() {
        for text in ["192.0.2.7:6363", "[2001:db8::1]:56363", "127.0.0.1:1"] {
            let addr: SocketAddr = text.parse().unwrap();
            let mut name = SocketName::EMPTY;
            let len = name.set(&addr);
            assert_eq!(name.get(len), Some(addr));
            assert_eq!(name.get(len - 1), None);
        }
        let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 6363, 0, 7).into();
        let mut name = SocketName::EMPTY;
        let len = name.set(&scoped);
        assert_eq!(name.get(len), Some(scoped));
    }

    #[test]
    fn an_ipv4_address_leaves_nothing_of_an_ipv6_one() {
        let mut name = SocketName::EMPTY;
        name.set(&"[2001:db8:ffff:ffff:ffff::1]:1".parse().unwrap());
        let len = name.set(&"192.0.2.1:2".parse().unwrap());
        assert_eq!(&name.bytes[8..len], &[0; 8]);
    }

    #[test]
    fn other_families_are_refused() {
        let mut name = SocketName::EMPTY;
        name.bytes[0..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
        assert_eq!(name.get(MAX_NAME_BYTES), None);
    }
}
