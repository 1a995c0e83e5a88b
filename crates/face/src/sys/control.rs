//! Control messages that travel with datagrams: the segment size of GSO and
//! GRO, and the local address.
//!
//! Owns the byte layout of `cmsghdr` and of the three messages that faces use
//! (`UDP_SEGMENT`/`UDP_GRO`, `IP_PKTINFO`, `IPV6_PKTINFO`); others are skipped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Enough for one segment size and one packet info of IPv6, in either
/// direction.
const CONTROL_BYTES: usize = 64;
const HEADER_BYTES: usize = align(size_of::<libc::cmsghdr>());
const LEN_BYTES: usize = size_of::<usize>();
const _: () = {
    // The layout that `push` and `read` rely on: length, level, type.
    assert!(std::mem::offset_of!(libc::cmsghdr, cmsg_len) == 0);
    assert!(std::mem::offset_of!(libc::cmsghdr, cmsg_level) == LEN_BYTES);
    assert!(std::mem::offset_of!(libc::cmsghdr, cmsg_type) == LEN_BYTES + 4);
    assert!(size_of::<libc::in_pktinfo>() == 12);
    assert!(size_of::<libc::in6_pktinfo>() == 20);
    assert!(HEADER_BYTES + align(4) + HEADER_BYTES + align(20) <= CONTROL_BYTES);
};

const fn align(len: usize) -> usize {
    len.next_multiple_of(size_of::<usize>())
}

/// Room for the control messages of one datagram.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control {
    bytes: [u8; CONTROL_BYTES],
}

/// What the kernel said about a received datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlInfo {
    /// Size of each datagram but the last, if several of one sender were
    /// coalesced into one message.
    pub(crate) segment_bytes: Option<usize>,
    /// The local address that it was sent to, unless that is a group.
    pub(crate) local_ip: Option<IpAddr>,
}

impl Control {
    /// No message.
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; CONTROL_BYTES],
    };
    /// Bytes that the kernel may write.
    pub(crate) const CAPACITY: usize = CONTROL_BYTES;

    /// Becomes the messages for sending `segment_bytes` from `source`; returns
    /// how many bytes of it the kernel should read.
    pub(crate) fn set(&mut self, segment_bytes: Option<u16>, source: Option<IpAddr>) -> usize {
        let mut at = 0;
        if let Some(segment_bytes) = segment_bytes {
            at = self.push(
                at,
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                &segment_bytes.to_ne_bytes(),
            );
        }
        match source {
            Some(IpAddr::V4(ip)) => {
                // in_pktinfo: interface index, source, destination.
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                at = self.push(at, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(IpAddr::V6(ip)) => {
                // in6_pktinfo: source, interface index.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                at = self.push(at, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        at
    }

    fn push(&mut self, at: usize, level: i32, typ: i32, data: &[u8]) -> usize {
        let end = at + HEADER_BYTES + align(data.len());
        let message = &mut self.bytes[at..end];
        message.fill(0);
        message[..LEN_BYTES].copy_from_slice(&(HEADER_BYTES + data.len()).to_ne_bytes());
        message[LEN_BYTES..LEN_BYTES + 4].copy_from_slice(&level.to_ne_bytes());
        message[LEN_BYTES + 4..LEN_BYTES + 8].copy_from_slice(&typ.to_ne_bytes());
        message[HEADER_BYTES..HEADER_BYTES + data.len()].copy_from_slice(data);
        end
    }

    /// Reads the first `len_bytes`, which the kernel wrote.
    pub(crate) fn get(&self, len_bytes: usize) -> ControlInfo {
        let mut info = ControlInfo::default();
        let mut rest = &self.bytes[..len_bytes.min(CONTROL_BYTES)];
        while let Some((level, typ, data, after)) = split_message(rest) {
            match (level, typ) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    info.segment_bytes = data
                        .first_chunk()
                        .and_then(|bytes| usize::try_from(i32::from_ne_bytes(*bytes)).ok())
                        .filter(|&bytes| bytes > 0);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    if let Some((_, rest)) = data.split_first_chunk::<4>()
                        && let Some(ip) = rest.first_chunk::<4>()
                    {
                        info.local_ip = unicast(Ipv4Addr::from(*ip).into());
                    }
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    if let Some(ip) = data.first_chunk::<16>() {
                        info.local_ip = unicast(Ipv6Addr::from(*ip).into());
                    }
                }
                _ => {}
            }
            rest = after;
        }
        info
    }
}

fn unicast(ip: IpAddr) -> Option<IpAddr> {
    (!ip.is_multicast() && !ip.is_unspecified()).then_some(ip)
}

/// Level, type and data of the first message, and what follows it.
fn split_message(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::from_ne_bytes(*bytes.first_chunk()?);
    let level = i32::from_ne_bytes(*bytes.get(LEN_BYTES..)?.first_chunk()?);
    let typ = i32::from_ne_bytes(*bytes.get(LEN_BYTES + 4..)?.first_chunk()?);
    let data = bytes.get(HEADER_BYTES..len)?;
    let after = bytes.get(align(len)..).unwrap_or_default();
    Some((level, typ, data, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_address_reads_back() {
        for ip in ["192.0.2.1", "2001:db8::1"] {
            let ip: IpAddr = ip.parse().unwrap();
            let mut control = Control::EMPTY;
            let len = control.set(Some(1200), Some(ip));
            assert!(len <= Control::CAPACITY);
            // UDP_SEGMENT is not UDP_GRO: only the address is read.
            assert_eq!(
                control.get(len),
                ControlInfo {
                    segment_bytes: None,
                    local_ip: Some(ip)
                }
            );
        }
    }

    #[test]
    fn no_wish_needs_no_message() {
        let mut control = Control::EMPTY;
        assert_eq!(control.set(None, None), 0);
        assert_eq!(control.get(0), ControlInfo::default());
    }

    #[test]
    fn a_coalesced_message_tells_its_segment_size() {
        let mut control = Control::EMPTY;
        let len = control.push(0, libc::SOL_UDP, libc::UDP_GRO, &1000_i32.to_ne_bytes());
        assert_eq!(control.get(len).segment_bytes, Some(1000));
        let len = control.push(0, libc::SOL_UDP, libc::UDP_GRO, &(-1_i32).to_ne_bytes());
        assert_eq!(control.get(len).segment_bytes, None);
    }

    #[test]
    fn cut_and_senseless_messages_are_skipped() {
        let mut control = Control::EMPTY;
        let len = control.set(None, Some("192.0.2.1".parse().unwrap()));
        for cut in 0..HEADER_BYTES + 12 {
            assert_eq!(control.get(cut), ControlInfo::default(), "{cut}");
        }
        control.bytes[..LEN_BYTES].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(control.get(len), ControlInfo::default());
        control.bytes[..LEN_BYTES].copy_from_slice(&0_usize.to_ne_bytes());
        assert_eq!(control.get(len), ControlInfo::default());
    }
}
