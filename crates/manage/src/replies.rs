//! The Data packets that the manager sends.
//!
//! Owns their form: responses named by the whole command Interest, segments of
//! datasets, notifications; all signed with a plain digest, because a client of
//! the router's management reads it over a face of this machine, and
//! none larger than a packet may be.

use tachonym_packet::types::{MAX_PACKET_BYTES, content_type};
use tachonym_packet::{Component, Data, Name};
use tachonym_protocol::ControlResponse;
use tachonym_protocol::segments::{self, DATASET_FRESHNESS_MS, SEGMENT_BYTES};

/// How long a reply is fresh, in milliseconds.
const REPLY_FRESHNESS_MS: u64 = 1000;

/// More than a dataset's segment takes besides its name and its content: heads,
/// MetaInfo, signature, and the components for version and segment.
const SEGMENT_OVERHEAD_BYTES: usize = 160;

/// The response to a command.
pub(crate) fn response(name: Name, response: &ControlResponse) -> Option<Vec<u8>> {
    finish(Data {
        content: response.encode(),
        ..fresh(name, REPLY_FRESHNESS_MS)
    })
}

/// The answer to a dataset Interest that cannot be served.
pub(crate) fn refused_dataset(name: Name, response: &ControlResponse) -> Option<Vec<u8>> {
    finish(Data {
        content: response.encode(),
        content_type: content_type::NACK,
        ..fresh(name, REPLY_FRESHNESS_MS)
    })
}

/// A notification.
pub(crate) fn notification(name: Name, content: Vec<u8>) -> Option<Vec<u8>> {
    finish(Data {
        content,
        ..fresh(name, REPLY_FRESHNESS_MS)
    })
}

/// Segment `number` of the dataset version `name`; `None` if there is no such
/// segment, or `name` leaves no room for one.
pub(crate) fn segment(name: &Name, content: &[u8], number: u64) -> Option<Vec<u8>> {
    let room = MAX_PACKET_BYTES.checked_sub(name.wire_len() + SEGMENT_OVERHEAD_BYTES)?;
    let segment_bytes = room.min(SEGMENT_BYTES);
    if segment_bytes == 0 {
        return None;
    }
    let part = segments::segment(content, number, segment_bytes)?;
    let last = segments::last_segment(content.len(), segment_bytes);
    let name = name.clone().with(&Component::segment(number));
    finish(Data {
        content: part.to_vec(),
        final_block_id: Some(Component::segment(last)),
        ..fresh(name, DATASET_FRESHNESS_MS)
    })
}

fn fresh(name: Name, freshness_period_ms: u64) -> Data {
    Data {
        freshness_period_ms: Some(freshness_period_ms),
        ..Data::new(name)
    }
}

fn finish(data: Data) -> Option<Vec<u8>> {
    let wire = data.encode_with_digest();
    (wire.len() <= MAX_PACKET_BYTES).then_some(wire)
}

#[cfg(test)]
mod tests {
    use tachonym_packet::DataView;

    use super::*;

    #[test]
    fn segments_fit_a_packet_whatever_their_name() {
        let content = vec![7; 30_000];
        for name_bytes in [1, 100, 300, 1000, 5000, 8000, 8600] {
            let name = Name::new().with(&*vec![b'x'; name_bytes]);
            let mut got = Vec::new();
            for number in 0.. {
                let Some(wire) = segment(&name, &content, number) else {
                    break;
                };
                let data = DataView::parse(&wire).unwrap();
                assert_eq!(data.freshness_period_ms(), 1000);
                assert_eq!(data.name().prefix(1), name);
                got.extend_from_slice(data.content());
                if data.final_block_id() == data.name().last() {
                    break;
                }
            }
            assert_eq!(got, content, "{name_bytes}");
        }
        let name = Name::new().with(&*vec![b'x'; 8700]);
        assert_eq!(segment(&name, &content, 0), None);
    }
}
