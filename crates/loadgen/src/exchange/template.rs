//! Packets encoded once and patched in place.
//!
//! Every name of a flow is its prefix and one component with an eight-byte
//! number, so that the next packet is a copy with a few bytes changed, and a
//! received one is checked byte for byte against what it must be. The Data
//! carry a DigestSha256 signature of zeros: forwarders do not verify Data, and
//! a true digest would cost the generator more than the rest. Refuses sockets.

use tachonym_bench::random::Random;
use tachonym_packet::tlv::{self, Reader};
use tachonym_packet::{Component, Name, types};

/// Longest token that a template takes: twice what NDNLPv2 allows, to see
/// what becomes of those that it does not.
pub const MAX_TOKEN_BYTES: usize = 64;
/// Most bytes of Content: the packet stays below 8,800 with a long name.
pub const MAX_CONTENT_BYTES: usize = 8_000;

/// A multiplier that spreads a number over its bits (2⁶⁴ over the golden
/// ratio), so that tokens of neighbours differ.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What the last component of a flow's names is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// A generic component of eight bytes.
    #[default]
    Generic,
    /// A segment number (NDN naming conventions, revision 3).
    Segment,
}

impl Numbering {
    /// What is added to every number on the wire: a segment number of eight bytes
    /// is in its shortest form only from 2³² on.
    fn offset(self) -> u64 {
        match self {
            Self::Generic => 0,
            Self::Segment => 1 << 32,
        }
    }

    /// The name component that holds `number`.
    fn component(self, number: u64) -> Component {
        let on_wire = number.wrapping_add(self.offset());
        match self {
            Self::Generic => Component::generic(on_wire.to_be_bytes()),
            Self::Segment => Component::segment(on_wire),
        }
    }
}

/// Byte `i` of the token that belongs to `number`.
fn token_byte(number: u64, i: usize) -> u8 {
    number.wrapping_mul(SPREAD).to_le_bytes()[i % 8]
}

/// Whether `token` is what [`InterestTemplate::write`] puts on `number`.
pub fn is_token_of(token: &[u8], number: u64) -> bool {
    let mut bytes = token.iter().enumerate();
    bytes.all(|(i, &byte)| byte == token_byte(number, i))
}

/// What all Interests of a flow have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterestShape {
    /// InterestLifetime in milliseconds.
    pub lifetime_ms: u64,
    /// Whether MustBeFresh is set.
    pub must_be_fresh: bool,
    /// Length of the PIT token, at most [`MAX_TOKEN_BYTES`]; `None` sends
    /// bare Interests. NDNLPv2 allows 1 to 32.
    pub token_bytes: Option<usize>,
}

/// An Interest, bare or in an LpPacket with a PIT token.
#[derive(Clone, Debug)]
pub struct InterestTemplate {
    wire: Vec<u8>,
    numbering: Numbering,
    number_at: usize,
    nonce_at: usize,
    token_at: usize,
    token_bytes: Option<usize>,
}

impl InterestTemplate {
    /// The Interests `/prefix/<number>`.
    #[must_use]
    pub fn new(prefix: &Name, shape: InterestShape) -> Self {
        Self::numbered(prefix, shape, Numbering::Generic)
    }

    /// The same with numbers of this kind.
    #[must_use]
    pub fn numbered(prefix: &Name, shape: InterestShape, numbering: Numbering) -> Self {
        let mut value = prefix.clone().with(&numbering.component(0)).encode();
        let number_from_start = value.len() - 8;
        if shape.must_be_fresh {
            tlv::write_tlv(&mut value, types::MUST_BE_FRESH, &[]);
        }
        tlv::write_tlv(&mut value, types::NONCE, &[0; 4]);
        let nonce_from_start = value.len() - 4;
        tlv::write_nni(&mut value, types::INTEREST_LIFETIME, shape.lifetime_ms);
        let mut wire = Vec::new();
        let mut token_at = 0;
        match shape.token_bytes {
            None => tlv::write_tlv(&mut wire, types::INTEREST, &value),
            Some(token_bytes) => {
                let mut fields = Vec::new();
                tlv::write_tlv(&mut fields, types::LP_PIT_TOKEN, &vec![0; token_bytes]);
                let after_token = fields.len();
                tlv::write_nested(&mut fields, types::LP_FRAGMENT, |out| {
                    tlv::write_tlv(out, types::INTEREST, &value);
                });
                tlv::write_tlv(&mut wire, types::LP_PACKET, &fields);
                token_at = wire.len() - fields.len() + after_token - token_bytes;
            }
        }
        // The Interest's value ends the frame.
        let value_at = wire.len() - value.len();
        Self {
            numbering,
            number_at: value_at + number_from_start,
            nonce_at: value_at + nonce_from_start,
            token_at,
            token_bytes: shape.token_bytes,
            wire,
        }
    }

    /// Appends the Interest with this number and nonce, and the number's token.
    pub fn write(&self, out: &mut Vec<u8>, number: u64, nonce: u32) {
        let start = out.len();
        out.extend_from_slice(&self.wire);
        let frame = &mut out[start..];
        let on_wire = number.wrapping_add(self.numbering.offset());
        frame[self.number_at..self.number_at + 8].copy_from_slice(&on_wire.to_be_bytes());
        frame[self.nonce_at..self.nonce_at + 4].copy_from_slice(&nonce.to_be_bytes());
        let token_bytes = self.token_bytes.unwrap_or(0);
        for (i, byte) in frame[self.token_at..self.token_at + token_bytes]
            .iter_mut()
            .enumerate()
        {
            *byte = token_byte(number, i);
        }
    }

    /// Length of the token that every Interest carries, if any.
    #[must_use]
    pub fn token_bytes(&self) -> Option<usize> {
        self.token_bytes
    }
}

/// The Data that answers a flow's Interests.
#[derive(Clone, Debug)]
pub struct DataTemplate {
    wire: Vec<u8>,
    numbering: Numbering,
    number_at: usize,
    /// The element head of the name and all of it before the number.
    name_head: Vec<u8>,
}

impl DataTemplate {
    /// The Data `/prefix/<number>` with reproducible content.
    #[must_use]
    pub fn new(prefix: &Name, content_bytes: usize, freshness_ms: u64, seed: u64) -> Self {
        Self::numbered(
            prefix,
            content_bytes,
            freshness_ms,
            seed,
            Numbering::Generic,
        )
    }

    /// The same with numbers of this kind.
    #[must_use]
    pub fn numbered(
        prefix: &Name,
        content_bytes: usize,
        freshness_ms: u64,
        seed: u64,
        numbering: Numbering,
    ) -> Self {
        let mut random = Random::new(seed);
        let content: Vec<u8> = (0..content_bytes)
            .map(|_| random.next_u64() as u8)
            .collect();
        let name = prefix.clone().with(&numbering.component(0)).encode();
        let name_head = name[..name.len() - 8].to_vec();
        let mut value = name;
        let number_from_start = value.len() - 8;
        tlv::write_nested(&mut value, types::META_INFO, |out| {
            tlv::write_nni(out, types::FRESHNESS_PERIOD, freshness_ms);
        });
        tlv::write_tlv(&mut value, types::CONTENT, &content);
        tlv::write_nested(&mut value, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(&mut value, types::SIGNATURE_VALUE, &[0; 32]);
        let mut wire = Vec::new();
        tlv::write_tlv(&mut wire, types::DATA, &value);
        Self {
            numbering,
            number_at: wire.len() - value.len() + number_from_start,
            name_head,
            wire,
        }
    }

    /// Appends the Data with this number; in an LpPacket if there is a token
    /// to return.
    pub fn write(&self, out: &mut Vec<u8>, number: u64, token: Option<&[u8]>) {
        if let Some(token) = token {
            let token_len = tlv::tlv_len(types::LP_PIT_TOKEN, token.len());
            let fragment_len = tlv::tlv_len(types::LP_FRAGMENT, self.wire.len());
            tlv::write_head(out, types::LP_PACKET, token_len + fragment_len);
            tlv::write_tlv(out, types::LP_PIT_TOKEN, token);
            tlv::write_head(out, types::LP_FRAGMENT, self.wire.len());
        }
        let start = out.len();
        out.extend_from_slice(&self.wire);
        let number_at = start + self.number_at;
        let on_wire = number.wrapping_add(self.numbering.offset());
        out[number_at..number_at + 8].copy_from_slice(&on_wire.to_be_bytes());
    }

    /// The number of a Data packet that is otherwise exactly what
    /// [`DataTemplate::write`] makes; `None` for any other bytes.
    #[must_use]
    pub fn number_of_data(&self, packet: &[u8]) -> Option<u64> {
        let tail_at = self.number_at + 8;
        let is_expected = packet.len() == self.wire.len()
            && packet[tail_at..] == self.wire[tail_at..]
            && packet[..self.number_at] == self.wire[..self.number_at];
        is_expected
            .then(|| packet[self.number_at..].first_chunk())
            .flatten()
            .map(|number| self.number_of(*number))
    }

    fn number_of(&self, on_wire: [u8; 8]) -> u64 {
        u64::from_be_bytes(on_wire).wrapping_sub(self.numbering.offset())
    }

    /// The number in an Interest's name; `None` if it is not for this flow.
    #[must_use]
    pub fn number_of_interest(&self, packet: &[u8]) -> Option<u64> {
        let mut reader = Reader::new(packet);
        let typ = reader.read_type().ok()?;
        reader.read_var_number().ok()?;
        let after_head = reader.remaining().strip_prefix(&*self.name_head)?;
        let number = after_head.first_chunk()?;
        (typ == types::INTEREST).then(|| self.number_of(*number))
    }

    /// What the names' last component is.
    #[must_use]
    pub fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// Length of every Data packet in bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> usize {
        self.wire.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::frame::Frame;

    fn prefix() -> Name {
        Name::new().with("tachonym-lab").with("x")
    }

    fn shape(token_bytes: Option<usize>) -> InterestShape {
        InterestShape {
            lifetime_ms: 4_000,
            must_be_fresh: false,
            token_bytes,
        }
    }

    /// Encodes an Interest the long way, as the template must.
    fn interest(number: u64, nonce: u32) -> Vec<u8> {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::INTEREST, |out| {
            prefix()
                .with(&Component::generic(number.to_be_bytes()))
                .encode_into(out);
            tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
            tlv::write_nni(out, types::INTEREST_LIFETIME, 4_000);
        });
        wire
    }

    #[test]
    fn a_patched_interest_equals_one_encoded_again() {
        let template = InterestTemplate::new(&prefix(), shape(None));
        let mut out = b"before".to_vec();
        for number in [0, 1, 0x0102_0304_0506_0708, u64::MAX] {
            template.write(&mut out, number, 0xA1B2_C3D4);
            assert_eq!(out[6..], interest(number, 0xA1B2_C3D4));
            out.truncate(6);
        }
    }

    #[test]
    fn tokens_of_every_length_surround_the_same_interest() {
        for token_bytes in 0..=MAX_TOKEN_BYTES {
            let template = InterestTemplate::new(&prefix(), shape(Some(token_bytes)));
            let mut out = Vec::new();
            template.write(&mut out, 77, 5);
            let frame = Frame::parse(&out).expect("well-formed");
            assert_eq!(frame.payload, interest(77, 5));
            let token = frame.token.expect("present even if empty");
            assert_eq!(token.len(), token_bytes);
            assert!(is_token_of(token, 77));
            assert!(token_bytes == 0 || !is_token_of(token, 78));
        }
    }

    #[test]
    fn must_be_fresh_comes_before_the_nonce() {
        let fresh = InterestShape {
            must_be_fresh: true,
            ..shape(None)
        };
        let mut out = Vec::new();
        InterestTemplate::new(&prefix(), fresh).write(&mut out, 3, 4);
        let mut plain = interest(3, 4);
        let nonce_at = plain.len() - 6 - 4;
        plain.splice(nonce_at..nonce_at, [0x12, 0]);
        plain[1] += 2;
        assert_eq!(out, plain);
    }

    #[test]
    fn a_data_gives_its_number_back_unless_a_byte_differs() {
        let data = DataTemplate::new(&prefix(), 1_000, 1_000, 9);
        let mut wire = Vec::new();
        data.write(&mut wire, 0xFEDC_BA98_7654_3210, None);
        assert_eq!(wire.len(), data.packet_bytes());
        assert_eq!(data.number_of_data(&wire), Some(0xFEDC_BA98_7654_3210));
        let number = data.number_at..data.number_at + 8;
        for i in (0..wire.len()).filter(|i| !number.contains(i)) {
            wire[i] ^= 1;
            assert_eq!(data.number_of_data(&wire), None, "byte {i}");
            wire[i] ^= 1;
        }
        assert_eq!(data.number_of_data(&wire[..wire.len() - 1]), None);
        assert_eq!(data.number_of_data(&[]), None);
    }

    #[test]
    fn a_data_returns_the_token_it_was_asked_with() {
        let data = DataTemplate::new(&prefix(), 100, 1_000, 9);
        let (mut bare, mut framed) = (Vec::new(), Vec::new());
        data.write(&mut bare, 5, None);
        data.write(&mut framed, 5, Some(b"token"));
        let frame = Frame::parse(&framed).expect("well-formed");
        assert_eq!(frame.token, Some(&b"token"[..]));
        assert_eq!(frame.payload, bare);
    }

    #[test]
    fn only_interests_of_the_flow_have_a_number() {
        let data = DataTemplate::new(&prefix(), 100, 1_000, 9);
        assert_eq!(data.number_of_interest(&interest(42, 1)), Some(42));
        let mut other = interest(42, 1);
        other[6] ^= 1;
        assert_eq!(data.number_of_interest(&other), None);
        let mut wire = Vec::new();
        data.write(&mut wire, 42, None);
        assert_eq!(data.number_of_interest(&wire), None);
        assert_eq!(data.number_of_interest(&interest(42, 1)[..20]), None);
    }

    #[test]
    fn segment_numbers_are_legal_and_come_back() {
        let interests = InterestTemplate::numbered(&prefix(), shape(None), Numbering::Segment);
        let data = DataTemplate::numbered(&prefix(), 100, 1_000, 9, Numbering::Segment);
        for number in [0, 1, 77, 1 << 40] {
            let (mut asked, mut answer) = (Vec::new(), Vec::new());
            interests.write(&mut asked, number, 5);
            data.write(&mut answer, number, None);
            assert_eq!(data.number_of_interest(&asked), Some(number));
            assert_eq!(data.number_of_data(&answer), Some(number));
            let last = Numbering::Segment.component(number);
            assert_eq!(last.as_number(), Some(number + (1 << 32)));
            assert!(tachonym_packet::InterestView::parse(&asked).is_ok());
        }
    }

    #[test]
    fn a_full_size_data_fits_a_network_packet() {
        let name = Name::new().with(&*vec![b'x'; 200]);
        let data = DataTemplate::new(&name, MAX_CONTENT_BYTES, u64::MAX, 0);
        assert!(data.packet_bytes() <= types::MAX_PACKET_BYTES);
    }
}
