//! LpPacket on the wire: reading with the ignore rule, and writing.

use super::{FaceId, Headers, NackReason, PitToken};
use crate::tlv::{self, Element, Reader};
use crate::{DecodeError, types};

/// `CachePolicyType` NoCache.
const NO_CACHE: u64 = 1;

/// A frame borrowed from a receive buffer: an LpPacket, or a bare packet.
#[derive(Clone, Copy, Debug)]
pub struct LpView<'a> {
    headers: Headers,
    fragment: Option<&'a [u8]>,
    prefix_announcement: Option<&'a [u8]>,
    /// The header fields, in which Acks are found again; empty without any.
    acks: &'a [u8],
    is_bare: bool,
}

/// Kind of a network-layer packet, for [`LpView::check_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// An Interest, or one that comes back as a Nack.
    Interest,
    /// A Data.
    Data,
}

/// A header field makes no sense on the packet that it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisplacedHeader;

impl<'a> LpView<'a> {
    /// Reads `wire` as exactly one LpPacket, Interest or Data. What is inside the
    /// fragment is not looked at. Header fields may come in any order.
    ///
    /// # Errors
    /// If it is malformed, or an unrecognised header field may not be ignored
    /// (NDNLPv2: only types 800 to 959 whose two lowest bits are zero may).
    pub fn parse(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(wire);
        let outer = reader.read_element()?;
        reader.finish()?;
        match outer.typ {
            types::LP_PACKET => Self::parse_fields(outer.value),
            types::INTEREST | types::DATA => Ok(Self {
                headers: Headers::default(),
                fragment: Some(wire),
                prefix_announcement: None,
                acks: &[],
                is_bare: true,
            }),
            found => Err(DecodeError::UnexpectedType { found }),
        }
    }

    fn parse_fields(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut view = Self {
            headers: Headers::default(),
            fragment: None,
            prefix_announcement: None,
            acks: &[],
            is_bare: false,
        };
        let mut seen = Seen::default();
        let mut reader = Reader::new(value);
        while !reader.is_empty() {
            let element = reader.read_element()?;
            if view.fragment.is_some() {
                // The fragment ends the packet.
                return Err(DecodeError::OutOfOrder { typ: element.typ });
            }
            if element.typ == types::LP_ACK {
                fixed_u64(&element)?;
                view.acks = value;
                continue;
            }
            if !seen.note(element.typ) {
                return Err(DecodeError::OutOfOrder { typ: element.typ });
            }
            view.read_field(&element)?;
        }
        if view.headers.frag_count == 0 || view.headers.frag_index >= view.headers.frag_count {
            return Err(DecodeError::BadFragIndex);
        }
        Ok(view)
    }

    fn read_field(&mut self, element: &Element<'a>) -> Result<(), DecodeError> {
        let typ = element.typ;
        let headers = &mut self.headers;
        match typ {
            types::LP_FRAGMENT if element.value.is_empty() => {
                return Err(DecodeError::BadLength { typ });
            }
            types::LP_FRAGMENT => self.fragment = Some(element.value),
            types::LP_SEQUENCE => headers.sequence = Some(fixed_u64(element)?),
            types::LP_FRAG_INDEX => headers.frag_index = element.nni()?,
            types::LP_FRAG_COUNT => headers.frag_count = element.nni()?,
            types::LP_PIT_TOKEN => {
                let token = PitToken::new(element.value).ok_or(DecodeError::BadLength { typ })?;
                headers.pit_token = Some(token);
            }
            types::LP_NACK => {
                let reason = Reader::new(element.value).read_optional(types::LP_NACK_REASON)?;
                let code = match reason {
                    Some(value) => tlv::parse_nni(value).ok_or(DecodeError::BadLength {
                        typ: types::LP_NACK_REASON,
                    })?,
                    None => 0,
                };
                headers.nack = Some(NackReason::from_code(code));
            }
            types::LP_INCOMING_FACE_ID => {
                headers.incoming_face_id = Some(FaceId(element.nni()?));
            }
            types::LP_NEXT_HOP_FACE_ID => {
                headers.next_hop_face_id = Some(FaceId(element.nni()?));
            }
            types::LP_CACHE_POLICY => {
                let policy =
                    Reader::new(element.value).read_expected(types::LP_CACHE_POLICY_TYPE)?;
                if tlv::parse_nni(policy) != Some(NO_CACHE) {
                    return Err(DecodeError::BadValue { typ });
                }
                headers.no_cache = true;
            }
            types::LP_CONGESTION_MARK => headers.congestion_mark = element.nni()?,
            types::LP_TX_SEQUENCE => headers.tx_sequence = Some(fixed_u64(element)?),
            types::LP_NON_DISCOVERY => headers.non_discovery = true,
            types::LP_PREFIX_ANNOUNCEMENT => self.prefix_announcement = Some(element.value),
            800..=959 if typ & 3 == 0 => {}
            _ => return Err(DecodeError::UnrecognisedCritical { typ }),
        }
        Ok(())
    }

    /// The header fields.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The fragment; `None`: an IDLE packet.
    #[must_use]
    pub const fn fragment(&self) -> Option<&'a [u8]> {
        self.fragment
    }

    /// The TLV-VALUE of PrefixAnnouncement: a Data.
    #[must_use]
    pub const fn prefix_announcement(&self) -> Option<&'a [u8]> {
        self.prefix_announcement
    }

    /// Whether it came without an LpPacket around it.
    #[must_use]
    pub const fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// The transmissions that it acknowledges.
    pub fn acks(&self) -> impl Iterator<Item = u64> + use<'a> {
        let mut reader = Reader::new(self.acks);
        std::iter::from_fn(move || {
            while !reader.is_empty() {
                // `parse` has read these elements before.
                let element = reader.read_element().ok()?;
                if element.typ == types::LP_ACK {
                    return fixed_u64(&element).ok();
                }
            }
            None
        })
    }

    /// Whether every header field makes sense on a packet of this kind.
    ///
    /// # Errors
    /// If one does not; the packet is to be dropped.
    pub fn check_for(&self, kind: PacketKind) -> Result<(), MisplacedHeader> {
        let announces = self.prefix_announcement.is_some() && kind == PacketKind::Interest;
        if announces || !self.headers.is_valid_for(kind) {
            Err(MisplacedHeader)
        } else {
            Ok(())
        }
    }
}

impl Headers {
    /// Whether every field makes sense on a packet of this kind.
    #[must_use]
    pub const fn is_valid_for(&self, kind: PacketKind) -> bool {
        match kind {
            PacketKind::Data => self.nack.is_none() && self.next_hop_face_id.is_none(),
            PacketKind::Interest => !self.no_cache,
        }
    }
}

/// Which of the fields that may appear once have been seen.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    /// Notes `typ`; whether it is the first of its kind.
    fn note(&mut self, typ: u32) -> bool {
        let bit = match typ {
            80..=83 => typ - 80,
            types::LP_PIT_TOKEN => 4,
            800..=852 if typ & 3 == 0 => 5 + (typ - 800) / 4,
            _ => return true,
        };
        let first = self.0 & (1 << bit) == 0;
        self.0 |= 1 << bit;
        first
    }
}

fn fixed_u64(element: &Element<'_>) -> Result<u64, DecodeError> {
    element
        .value
        .try_into()
        .map(u64::from_be_bytes)
        .map_err(|_| DecodeError::BadLength { typ: element.typ })
}

/// Appends a frame to `out`: `fragment` bare if there is nothing else to say,
/// and otherwise in an LpPacket. No `fragment` makes an IDLE packet.
pub fn write_packet(
    out: &mut Vec<u8>,
    headers: &Headers,
    prefix_announcement: Option<&[u8]>,
    acks: &[u64],
    fragment: Option<&[u8]>,
) {
    if let Some(fragment) = fragment
        && headers.is_empty()
        && prefix_announcement.is_none()
        && acks.is_empty()
    {
        out.extend_from_slice(fragment);
        return;
    }
    tlv::write_nested(out, types::LP_PACKET, |out| {
        write_fields(out, headers, acks);
        if let Some(announcement) = prefix_announcement {
            tlv::write_tlv(out, types::LP_PREFIX_ANNOUNCEMENT, announcement);
        }
        if let Some(fragment) = fragment {
            tlv::write_tlv(out, types::LP_FRAGMENT, fragment);
        }
    });
}

/// Writes the fields by ascending type.
fn write_fields(out: &mut Vec<u8>, headers: &Headers, acks: &[u64]) {
    if let Some(sequence) = headers.sequence {
        tlv::write_tlv(out, types::LP_SEQUENCE, &sequence.to_be_bytes());
    }
    if headers.is_fragmented() {
        tlv::write_nni(out, types::LP_FRAG_INDEX, headers.frag_index);
        tlv::write_nni(out, types::LP_FRAG_COUNT, headers.frag_count);
    }
    if let Some(token) = &headers.pit_token {
        tlv::write_tlv(out, types::LP_PIT_TOKEN, token.as_bytes());
    }
    if let Some(reason) = headers.nack {
        tlv::write_nested(out, types::LP_NACK, |out| {
            if reason != NackReason::None {
                tlv::write_nni(out, types::LP_NACK_REASON, reason.code());
            }
        });
    }
    if let Some(face) = headers.incoming_face_id {
        tlv::write_nni(out, types::LP_INCOMING_FACE_ID, face.0);
    }
    if let Some(face) = headers.next_hop_face_id {
        tlv::write_nni(out, types::LP_NEXT_HOP_FACE_ID, face.0);
    }
    if headers.no_cache {
        tlv::write_nested(out, types::LP_CACHE_POLICY, |out| {
            tlv::write_nni(out, types::LP_CACHE_POLICY_TYPE, NO_CACHE);
        });
    }
    if headers.congestion_mark != 0 {
        tlv::write_nni(out, types::LP_CONGESTION_MARK, headers.congestion_mark);
    }
    for ack in acks {
        tlv::write_tlv(out, types::LP_ACK, &ack.to_be_bytes());
    }
    if let Some(sequence) = headers.tx_sequence {
        tlv::write_tlv(out, types::LP_TX_SEQUENCE, &sequence.to_be_bytes());
    }
    if headers.non_discovery {
        tlv::write_tlv(out, types::LP_NON_DISCOVERY, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAGMENT: &[u8] = &[0x05, 0x05, 0x07, 0x03, 0x08, 0x01, b'A'];

    fn full() -> Headers {
        Headers {
            pit_token: PitToken::new(&[1; 8]),
            nack: Some(NackReason::NoRoute),
            next_hop_face_id: Some(FaceId(300)),
            incoming_face_id: Some(FaceId(1)),
            no_cache: true,
            congestion_mark: 1,
            non_discovery: true,
            sequence: Some(77),
            frag_index: 1,
            frag_count: 3,
            tx_sequence: Some(5),
        }
    }

    #[test]
    fn an_idle_packet_without_anything_is_still_a_packet() {
        let mut out = Vec::new();
        write_packet(&mut out, &Headers::default(), None, &[], None);
        let view = LpView::parse(&out).expect("own encoding");
        assert_eq!(view.fragment(), None);
    }

    #[test]
    fn every_field_is_read_back() {
        let mut wire = Vec::new();
        write_packet(&mut wire, &full(), Some(&[6, 0]), &[4, 9], Some(FRAGMENT));
        let view = LpView::parse(&wire).expect("own encoding");
        assert_eq!(*view.headers(), full());
        assert_eq!(view.fragment(), Some(FRAGMENT));
        assert_eq!(view.prefix_announcement(), Some(&[6, 0][..]));
        assert_eq!(view.acks().collect::<Vec<_>>(), [4, 9]);
    }

    #[test]
    fn a_packet_without_headers_goes_and_comes_bare() {
        let mut wire = Vec::new();
        write_packet(&mut wire, &Headers::default(), None, &[], Some(FRAGMENT));
        assert_eq!(wire, FRAGMENT);
        let view = LpView::parse(&wire).expect("an Interest");
        assert!(view.is_bare());
        assert_eq!(view.fragment(), Some(FRAGMENT));
    }

    #[test]
    fn no_fragment_is_idle_and_an_empty_one_an_error() {
        assert_eq!(LpView::parse(&[100, 0]).expect("IDLE").fragment(), None);
        assert!(LpView::parse(&[100, 2, 80, 0]).is_err());
    }

    #[test]
    fn unknown_header_fields_follow_the_ignore_rule() {
        for (typ, ignored) in [
            (800 + 56, true),
            (801 + 56, false),
            (99, false),
            (960, false),
        ] {
            let mut wire = Vec::new();
            tlv::write_nested(&mut wire, types::LP_PACKET, |out| {
                tlv::write_tlv(out, typ, &[]);
                tlv::write_tlv(out, types::LP_FRAGMENT, FRAGMENT);
            });
            assert_eq!(LpView::parse(&wire).is_ok(), ignored, "{typ}");
        }
    }

    #[test]
    fn fragment_index_is_below_the_count() {
        for (index, count, ok) in [(0, 1, true), (1, 2, true), (2, 2, false), (0, 0, false)] {
            let mut wire = Vec::new();
            tlv::write_nested(&mut wire, types::LP_PACKET, |out| {
                tlv::write_nni(out, types::LP_FRAG_INDEX, index);
                tlv::write_nni(out, types::LP_FRAG_COUNT, count);
                tlv::write_tlv(out, types::LP_FRAGMENT, FRAGMENT);
            });
            assert_eq!(LpView::parse(&wire).is_ok(), ok, "{index} of {count}");
        }
    }

    #[test]
    fn a_repeated_field_is_rejected() {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::LP_PACKET, |out| {
            tlv::write_tlv(out, types::LP_PIT_TOKEN, &[1]);
            tlv::write_tlv(out, types::LP_PIT_TOKEN, &[2]);
            tlv::write_tlv(out, types::LP_FRAGMENT, FRAGMENT);
        });
        assert!(LpView::parse(&wire).is_err());
    }

    #[test]
    fn pit_tokens_of_0_and_of_33_to_64_bytes_are_rejected() {
        for len in 0..=64 {
            let mut wire = Vec::new();
            tlv::write_nested(&mut wire, types::LP_PACKET, |out| {
                tlv::write_tlv(out, types::LP_PIT_TOKEN, &vec![7; len]);
                tlv::write_tlv(out, types::LP_FRAGMENT, FRAGMENT);
            });
            assert_eq!(
                LpView::parse(&wire).is_ok(),
                (1..=32).contains(&len),
                "{len}"
            );
        }
    }

    #[test]
    fn headers_that_make_no_sense_on_their_packet_are_told() {
        let on = |headers: Headers, announcement: Option<&[u8]>| {
            let mut wire = Vec::new();
            write_packet(&mut wire, &headers, announcement, &[], Some(FRAGMENT));
            let view = LpView::parse(&wire).expect("own encoding");
            [PacketKind::Interest, PacketKind::Data].map(|kind| view.check_for(kind).is_ok())
        };
        let base = Headers::default();
        assert_eq!(
            on(
                Headers {
                    nack: Some(NackReason::NoRoute),
                    ..base
                },
                None
            ),
            [true, false]
        );
        assert_eq!(
            on(
                Headers {
                    next_hop_face_id: Some(FaceId(9)),
                    ..base
                },
                None
            ),
            [true, false]
        );
        assert_eq!(
            on(
                Headers {
                    no_cache: true,
                    ..base
                },
                None
            ),
            [false, true]
        );
        assert_eq!(on(base, Some(&[6, 0])), [false, true]);
        assert_eq!(
            on(
                Headers {
                    congestion_mark: 1,
                    ..base
                },
                None
            ),
            [true, true]
        );
    }
}
