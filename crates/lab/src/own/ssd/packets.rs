//! Objects, and the packets of their chunks, each computed from numbers.
//!
//! A name is `/lab/ssd/OBJECT/seg=CHUNK`. Data look like signed ones: a signature of the size
//! of ECDSA's, with the name of its key. They are not verified here.

use tachonym_packet::{NameView, tlv, types};

use tachonym_bench::random::Random;

/// Components of a name before that of the object.
const PREFIX: [&[u8]; 2] = [b"lab", b"ssd"];

/// Bytes that content is cut from, beside its own length.
const POOL_BYTES: usize = 1 << 16;

/// Of a key's name, and of a signature.
const KEY_ID: [u8; 8] = *b"ssd-key1";
const SIGNATURE_BYTES: usize = 71;
const ECDSA: u64 = 3;

/// One chunk of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChunkId {
    pub(super) object: u64,
    pub(super) number: u64,
}

/// Writes packets whose content has one length.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    content_bytes: usize,
    pool: Vec<u8>,
}

/// Bytes of content unless a size of packets is asked for.
const CONTENT_BYTES: usize = 8_192;
/// The shortest Data that has room for its name and signature.
const MIN_PACKET_BYTES: usize = 256;

impl Packets {
    /// Data of about `packet_bytes`; of 8,192 bytes of content if that is 0.
    pub(super) fn of(packet_bytes: usize) -> Self {
        match packet_bytes {
            0 => Self::with_content(CONTENT_BYTES),
            bytes => Self::of_size(bytes.max(MIN_PACKET_BYTES)),
        }
    }

    /// Data with `content_bytes` of content.
    pub(super) fn with_content(content_bytes: usize) -> Self {
        let mut random = Random::new(content_bytes as u64);
        let pool = (0..(POOL_BYTES + content_bytes).div_ceil(8))
            .flat_map(|_| random.next_u64().to_le_bytes())
            .collect();
        Self {
            content_bytes,
            pool,
        }
    }

    /// Data of about `packet_bytes` in all, as those in the middle of an object have.
    pub(super) fn of_size(packet_bytes: usize) -> Self {
        let mut wire = Vec::new();
        let overhead = |it: &Self, wire: &mut Vec<u8>| {
            wire.clear();
            it.write_data(
                ChunkId {
                    object: 0,
                    number: 300,
                },
                wire,
            );
            wire.len() - it.content_bytes
        };
        let more = overhead(&Self::with_content(packet_bytes), &mut wire);
        Self::with_content(packet_bytes.saturating_sub(more))
    }

    /// Bytes of a Data in the middle of an object.
    pub(super) fn data_bytes(&self) -> usize {
        let mut wire = Vec::new();
        let chunk = ChunkId {
            object: 0,
            number: 300,
        };
        self.write_data(chunk, &mut wire);
        wire.len()
    }

    /// Appends the Interest for a chunk.
    pub(super) fn write_interest(chunk: ChunkId, nonce: u32, out: &mut Vec<u8>) {
        tlv::write_nested(out, types::INTEREST, |out| {
            tlv::write_nested(out, types::NAME, |out| write_name(chunk, out));
            tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
        });
    }

    /// Appends the Data of a chunk.
    pub(super) fn write_data(&self, chunk: ChunkId, out: &mut Vec<u8>) {
        tlv::write_nested(out, types::DATA, |out| {
            tlv::write_nested(out, types::NAME, |out| write_name(chunk, out));
            tlv::write_tlv(out, types::CONTENT, self.content(chunk));
            tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
                tlv::write_nni(out, types::SIGNATURE_TYPE, ECDSA);
                tlv::write_nested(out, types::KEY_LOCATOR, |out| {
                    tlv::write_nested(out, types::NAME, |out| {
                        for part in [PREFIX[0], b"KEY", &KEY_ID] {
                            tlv::write_tlv(out, types::component::GENERIC.into(), part);
                        }
                    });
                });
            });
            tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0x5a; SIGNATURE_BYTES]);
        });
    }

    fn content(&self, chunk: ChunkId) -> &[u8] {
        let mixed = Random::new(chunk.object.rotate_left(32) ^ chunk.number).next_u64();
        let start = mixed as usize % POOL_BYTES;
        &self.pool[start..start + self.content_bytes]
    }
}

fn write_name(chunk: ChunkId, out: &mut Vec<u8>) {
    for part in PREFIX {
        tlv::write_tlv(out, types::component::GENERIC.into(), part);
    }
    let generic = types::component::GENERIC.into();
    tlv::write_tlv(out, generic, &chunk.object.to_be_bytes());
    tlv::write_nni(out, types::component::SEGMENT.into(), chunk.number);
}

/// Which chunk has a name; `None` if it is none of these.
pub(super) fn chunk_of(name: NameView<'_>) -> Option<ChunkId> {
    let object = name.get(PREFIX.len())?.value().try_into().ok()?;
    let number = tlv::parse_nni(name.get(PREFIX.len() + 1)?.value())?;
    Some(ChunkId {
        object: u64::from_be_bytes(object),
        number,
    })
}

/// All chunks of objects in order: `n_chunks` in objects of `object_chunks`.
pub(super) fn in_order(n_chunks: u64, object_chunks: u64) -> impl Iterator<Item = ChunkId> {
    (0..n_chunks).map(move |number| ChunkId {
        object: number / object_chunks,
        number: number % object_chunks,
    })
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{DataView, InterestView};

    use super::*;

    #[test]
    fn interest_and_data_of_a_chunk_have_its_name_and_size() {
        for packets in [Packets::of_size(1_100), Packets::with_content(8_192)] {
            let chunk = ChunkId {
                object: 77,
                number: 400,
            };
            let (mut asked, mut answer) = (Vec::new(), Vec::new());
            Packets::write_interest(chunk, 5, &mut asked);
            packets.write_data(chunk, &mut answer);
            let interest = InterestView::parse(&asked).expect("well-formed");
            let data = DataView::parse(&answer).expect("well-formed");
            assert_eq!(interest.name(), data.name());
            assert_eq!(chunk_of(data.name()), Some(chunk));
            assert_eq!(data.content().len(), packets.content_bytes);
            assert_eq!(answer.len(), packets.data_bytes());
        }
        let bytes = Packets::of_size(1_100).data_bytes();
        assert!((1_090..=1_100).contains(&bytes), "{bytes}");
    }

    #[test]
    fn chunks_are_told_apart_by_their_content() {
        let packets = Packets::with_content(100);
        let wire = |number| {
            let mut wire = Vec::new();
            packets.write_data(ChunkId { object: 1, number }, &mut wire);
            let data = DataView::parse(&wire).expect("well-formed");
            data.content().to_vec()
        };
        assert_ne!(wire(1), wire(2));
        let chunks: Vec<_> = in_order(5, 2).map(|it| (it.object, it.number)).collect();
        assert_eq!(chunks, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
    }
}
