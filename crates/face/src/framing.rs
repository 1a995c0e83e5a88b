//! Cutting a byte stream into frames.
//!
//! A stream transport carries one TLV element after another. Owns the limit of
//! a frame; what is inside a frame is the link service's concern.

use tachonym_packet::tlv;
use tachonym_packet::types::{self, MAX_PACKET_BYTES};

/// Longest frame, in bytes: the largest packet, with headers, among them a
/// prefix announcement as large as a packet.
pub const MAX_FRAME_BYTES: usize = 2 * MAX_PACKET_BYTES + 512;

/// What the front of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// A whole frame of this many bytes.
    Frame(usize),
    /// A part of one.
    Partial,
    /// No frame: the stream is lost.
    Malformed,
    /// No element that a peer may send, seen by its first byte: another protocol.
    NotNdn,
}

/// Looks at the front of `bytes`. A peer sends LpPackets and bare Interests and
/// Data, nothing else. The types of all three take one byte, so another
/// protocol shows by its first byte, before anything is waited for: no text of
/// HTTP, and no record of TLS, passes for frames that are skipped.
#[inline]
pub(crate) fn front(bytes: &[u8]) -> Front {
    if let Some(&first) = bytes.first()
        && !matches!(
            u32::from(first),
            types::INTEREST | types::DATA | types::LP_PACKET
        )
    {
        return Front::NotNdn;
    }
    match tlv::element_len(bytes) {
        Ok(Some(len)) if len > MAX_FRAME_BYTES => Front::Malformed,
        Ok(Some(len)) if len <= bytes.len() => Front::Frame(len),
        Ok(_) => Front::Partial,
        Err(_) => Front::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_over_the_limit_is_refused_by_its_head() {
        let mut head = Vec::new();
        tlv::write_head(&mut head, 0x64, MAX_FRAME_BYTES);
        assert_eq!(front(&head), Front::Malformed);
        let mut head = Vec::new();
        tlv::write_head(&mut head, 0x64, MAX_FRAME_BYTES - 4);
        assert_eq!(front(&head), Front::Partial);
        assert_eq!(front(&[0x64, 0xff, 0xff]), Front::Partial);
        assert_eq!(front(&[0x64, 0xfd, 0x00, 0x01]), Front::Malformed);
    }

    #[test]
    fn the_first_byte_alone_tells_ndn_from_other_protocols() {
        for first in 0..=255_u8 {
            let expected = match first {
                5 | 6 | 100 => Front::Partial,
                _ => Front::NotNdn,
            };
            assert_eq!(front(&[first]), expected, "{first:#x}");
            assert_eq!(
                front(&[first, 0]) == Front::NotNdn,
                expected == Front::NotNdn
            );
        }
        assert_eq!(front(&[]), Front::Partial);
    }

    proptest! {
        #[test]
        fn any_partition_of_a_stream_yields_the_same_frames(
            lens in prop::collection::vec(0..600_usize, 1..20),
            cuts in prop::collection::vec(1..700_usize, 1..40),
        ) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for (i, len) in lens.iter().enumerate() {
                let start = stream.len();
                tlv::write_tlv(&mut stream, 0x64, &vec![i as u8; *len]);
                expected.push(stream[start..].to_vec());
            }
            let mut got = Vec::new();
            let mut buffer: Vec<u8> = Vec::new();
            let mut rest = &stream[..];
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (read, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                rest = after;
                buffer.extend_from_slice(read);
                while let Front::Frame(len) = front(&buffer) {
                    got.push(buffer.drain(..len).collect::<Vec<_>>());
                }
            }
            prop_assert_eq!(got, expected);
            prop_assert!(buffer.is_empty());
        }
    }
}
