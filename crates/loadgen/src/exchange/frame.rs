//! What a forwarder sends: bare packets and NDNLPv2 frames, read tolerantly.
//!
//! A measuring tool has to say what arrived, so fields that mean nothing here
//! are skipped instead of refused, and tokens may have any length. Owns the
//! reassembly of fragmented packets, bounded in number. Refuses to check
//! conformance: that is the router's and its tests' business.

use std::collections::BTreeMap;

use tachonym_packet::tlv::{self, Reader};
use tachonym_packet::{DecodeError, types};

/// A frame from a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// PIT token, of any length.
    pub token: Option<&'a [u8]>,
    /// Code of the reason, if this is a Nack.
    pub nack_code: Option<u64>,
    /// Whether a congestion mark is on it.
    pub is_marked: bool,
    /// Sequence number of the fragment.
    pub sequence: u64,
    /// Which fragment this is, from 0.
    pub frag_index: u64,
    /// How many fragments the packet has.
    pub frag_count: u64,
    /// The packet or a fragment of it; empty in an IDLE frame.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame. A bare packet is its own payload.
    ///
    /// # Errors
    /// If an LpPacket is malformed.
    pub fn parse(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let mut frame = Self {
            frag_count: 1,
            ..Self::default()
        };
        if Reader::new(wire).peek_type()? != Some(types::LP_PACKET) {
            frame.payload = wire;
            return Ok(frame);
        }
        let mut reader = Reader::new(tlv::read_single(wire, types::LP_PACKET)?);
        while !reader.is_empty() {
            let element = reader.read_element()?;
            match element.typ {
                types::LP_FRAGMENT => frame.payload = element.value,
                types::LP_PIT_TOKEN => frame.token = Some(element.value),
                types::LP_SEQUENCE => frame.sequence = element.nni()?,
                types::LP_FRAG_INDEX => frame.frag_index = element.nni()?,
                types::LP_FRAG_COUNT => frame.frag_count = element.nni()?,
                types::LP_CONGESTION_MARK => frame.is_marked = element.nni()? != 0,
                types::LP_NACK => frame.nack_code = Some(nack_code(element.value)?),
                _ => {}
            }
        }
        Ok(frame)
    }
}

fn nack_code(value: &[u8]) -> Result<u64, DecodeError> {
    let mut reader = Reader::new(value);
    while !reader.is_empty() {
        let element = reader.read_element()?;
        if element.typ == types::LP_NACK_REASON {
            return element.nni();
        }
    }
    Ok(0)
}

/// Most packets in reassembly at once; beyond it the oldest is dropped.
const MAX_PARTIAL_PKTS: usize = 256;
/// Most fragments of a packet.
const MAX_FRAGMENTS: u64 = 64;

/// Packets of which some fragments are missing.
#[derive(Default)]
pub struct Reassembler {
    /// By the sequence number of the first fragment.
    partial: BTreeMap<u64, Partial>,
}

#[derive(Default)]
struct Partial {
    fragments: Vec<Option<Vec<u8>>>,
    token: Option<Vec<u8>>,
    is_marked: bool,
}

/// A packet put together again.
pub struct Whole {
    /// PIT token of any of its fragments.
    pub token: Option<Vec<u8>>,
    /// Whether a congestion mark is on any of them.
    pub is_marked: bool,
    /// The packet.
    pub packet: Vec<u8>,
}

impl Reassembler {
    /// Takes a fragment; returns the packet that it completes.
    pub fn accept(&mut self, frame: &Frame<'_>) -> Option<Whole> {
        if frame.frag_index >= frame.frag_count || frame.frag_count > MAX_FRAGMENTS {
            return None;
        }
        let first_sequence = frame.sequence.wrapping_sub(frame.frag_index);
        let partial = self.partial.entry(first_sequence).or_default();
        partial.fragments.resize(frame.frag_count as usize, None);
        partial.fragments[frame.frag_index as usize] = Some(frame.payload.to_vec());
        partial.is_marked |= frame.is_marked;
        if let Some(token) = frame.token {
            partial.token = Some(token.to_vec());
        }
        if partial.fragments.iter().all(Option::is_some) {
            let partial = self.partial.remove(&first_sequence)?;
            return Some(Whole {
                token: partial.token,
                is_marked: partial.is_marked,
                packet: partial.fragments.into_iter().flatten().flatten().collect(),
            });
        }
        if self.partial.len() > MAX_PARTIAL_PKTS {
            self.partial.pop_first();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lp(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::LP_PACKET, |out| {
            for (typ, value) in fields {
                tlv::write_tlv(out, *typ, value);
            }
        });
        wire
    }

    #[test]
    fn a_bare_packet_is_its_own_payload() {
        let wire = [6, 2, 7, 0];
        let frame = Frame::parse(&wire).expect("bare");
        assert_eq!((frame.payload, frame.token), (&wire[..], None));
    }

    #[test]
    fn tokens_of_every_length_are_read() {
        for len in 0..=64 {
            let token = vec![9; len];
            let wire = lp(&[
                (types::LP_PIT_TOKEN, &token),
                (types::LP_CONGESTION_MARK, &[1]),
                (types::LP_INCOMING_FACE_ID, &[7]),
                (types::LP_FRAGMENT, &[6, 0]),
            ]);
            let frame = Frame::parse(&wire).expect("well-formed");
            assert_eq!(frame.token, Some(&token[..]));
            assert!(frame.is_marked);
            assert_eq!(frame.payload, [6, 0]);
        }
    }

    #[test]
    fn a_nack_tells_its_reason() {
        let mut reason = Vec::new();
        tlv::write_nni(&mut reason, types::LP_NACK_REASON, 150);
        for (value, code) in [(&reason[..], 150), (&[], 0)] {
            let wire = lp(&[(types::LP_NACK, value), (types::LP_FRAGMENT, &[5, 0])]);
            let frame = Frame::parse(&wire).expect("well-formed");
            assert_eq!(frame.nack_code, Some(code));
        }
    }

    #[test]
    fn a_cut_frame_is_an_error() {
        let wire = lp(&[(types::LP_FRAGMENT, &[6, 0])]);
        for len in 0..wire.len() {
            assert!(len == 0 || Frame::parse(&wire[..len]).is_err(), "{len}");
        }
    }

    fn fragment(sequence: u64, frag_index: u64, frag_count: u64, payload: &[u8]) -> Frame<'_> {
        Frame {
            sequence,
            frag_index,
            frag_count,
            payload,
            ..Frame::default()
        }
    }

    #[test]
    fn fragments_in_any_order_make_the_packet() {
        let mut reassembler = Reassembler::default();
        assert!(reassembler.accept(&fragment(12, 2, 3, b"c")).is_none());
        assert!(reassembler.accept(&fragment(20, 0, 2, b"x")).is_none());
        assert!(reassembler.accept(&fragment(11, 1, 3, b"b")).is_none());
        let first = Frame {
            token: Some(b"t"),
            ..fragment(10, 0, 3, b"a")
        };
        let whole = reassembler.accept(&first).expect("complete");
        assert_eq!(whole.packet, b"abc");
        assert_eq!(whole.token.as_deref(), Some(&b"t"[..]));
        let other = reassembler.accept(&fragment(21, 1, 2, b"y"));
        assert_eq!(other.map(|w| w.packet).as_deref(), Some(&b"xy"[..]));
    }

    #[test]
    fn incomplete_packets_are_bounded() {
        let mut reassembler = Reassembler::default();
        for packet in 0..2_000 {
            reassembler.accept(&fragment(packet * 2, 0, 2, b"a"));
        }
        assert_eq!(reassembler.partial.len(), MAX_PARTIAL_PKTS);
        assert!(reassembler.accept(&fragment(1, 9, 2, b"")).is_none());
        assert!(reassembler.accept(&fragment(1, 0, u64::MAX, b"")).is_none());
    }
}
