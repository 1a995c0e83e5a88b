//! Writing frames without moving bytes.
//!
//! `packet` writes an LpPacket front to back and corrects its length at the
//! end. On the packet path the header fields are written to a scratch buffer
//! first, so that every length is known and the packet itself is copied once.

use tachonym_packet::lp::{self, Headers};
use tachonym_packet::{tlv, types};

/// Buffers that encoding needs, kept from packet to packet.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) fields: Vec<u8>,
    pub(crate) acks: Vec<u64>,
    /// For packets that must be known in full before they can be framed.
    pub(crate) l3: Vec<u8>,
}

/// Bytes that an Ack takes.
pub(crate) const ACK_BYTES: usize = 12;

/// Appends the frame of `fragment` to `out`: bare if there is nothing to add.
pub(crate) fn write_frame(
    out: &mut Vec<u8>,
    fields: &mut Vec<u8>,
    headers: &Headers,
    prefix_announcement: Option<&[u8]>,
    acks: &[u64],
    fragment: &[u8],
) {
    if headers.is_empty() && prefix_announcement.is_none() && acks.is_empty() {
        out.extend_from_slice(fragment);
        return;
    }
    let fields = header_fields(fields, headers, acks);
    let announcement_bytes = prefix_announcement.map_or(0, |pa| {
        tlv::tlv_len(types::LP_PREFIX_ANNOUNCEMENT, pa.len())
    });
    let value_bytes =
        fields.len() + announcement_bytes + tlv::tlv_len(types::LP_FRAGMENT, fragment.len());
    tlv::write_head(out, types::LP_PACKET, value_bytes);
    out.extend_from_slice(fields);
    if let Some(announcement) = prefix_announcement {
        tlv::write_tlv(out, types::LP_PREFIX_ANNOUNCEMENT, announcement);
    }
    tlv::write_tlv(out, types::LP_FRAGMENT, fragment);
}

/// Upper bound of what [`write_frame`] adds to a fragment with these headers,
/// whose numbers may still grow to those of the last fragment.
pub(crate) fn overhead_bytes(
    fields: &mut Vec<u8>,
    headers: &Headers,
    prefix_announcement: Option<&[u8]>,
) -> usize {
    let announcement_bytes = prefix_announcement.map_or(0, |pa| {
        tlv::tlv_len(types::LP_PREFIX_ANNOUNCEMENT, pa.len())
    });
    // Heads of LpPacket and Fragment: one byte of type, three of length.
    header_fields(fields, headers, &[]).len() + announcement_bytes + 2 * 4
}

/// The header fields alone, in `fields`.
fn header_fields<'a>(fields: &'a mut Vec<u8>, headers: &Headers, acks: &[u64]) -> &'a [u8] {
    fields.clear();
    lp::write_packet(fields, headers, None, acks, None);
    // Without the type and the length of the LpPacket; nothing is written if
    // there are no fields.
    match fields.get(1) {
        None => &[],
        Some(0..=252) => &fields[2..],
        Some(_) => &fields[4..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tachonym_packet::NackReason;
    use tachonym_packet::lp::{FaceId, LpView, PitToken};

    #[test]
    fn frames_are_those_that_packet_writes() {
        let variants = [
            Headers::default(),
            Headers {
                pit_token: PitToken::new(&[7; 32]),
                congestion_mark: 1,
                ..Headers::default()
            },
            Headers {
                nack: Some(NackReason::NoRoute),
                incoming_face_id: Some(FaceId(1 << 40)),
                no_cache: true,
                non_discovery: true,
                sequence: Some(1),
                frag_index: 2,
                frag_count: 300,
                tx_sequence: Some(9),
                ..Headers::default()
            },
        ];
        let mut fields = Vec::new();
        for headers in variants {
            for acks in [&[][..], &[1, 2], &[3; 100]] {
                for announcement in [None, Some(&[6, 1, 0][..]), Some(&[9; 400])] {
                    for fragment in [&[5, 0][..], &[6; 300], &[6; 8800]] {
                        let mut expected = Vec::new();
                        lp::write_packet(
                            &mut expected,
                            &headers,
                            announcement,
                            acks,
                            Some(fragment),
                        );
                        let mut got = Vec::new();
                        write_frame(
                            &mut got,
                            &mut fields,
                            &headers,
                            announcement,
                            acks,
                            fragment,
                        );
                        assert_eq!(got, expected);
                        assert!(
                            fragment.len()
                                + acks.len() * ACK_BYTES
                                + overhead_bytes(&mut fields, &headers, announcement)
                                >= got.len()
                        );
                        if headers != Headers::default() {
                            LpView::parse(&got).unwrap();
                        }
                    }
                }
            }
        }
    }
}
