//! Packets of the experiments: `/content/<number>/<segment>`, Data of 8,000 bytes of
//! content.

use tachonym_packet::types::component::{GENERIC, SEGMENT};
use tachonym_packet::{tlv, types};

use super::catalogue::{CHUNK_BYTES, Chunk};
use crate::beds::engine::workload::Burst;

/// Bytes of the longest Data that is written here.
pub(super) const MAX_DATA_BYTES: usize = 4 + 2 + 9 + 10 + 6 + 4 + CHUNK_BYTES as usize + 5 + 34;

/// The first component of all names.
pub(super) const PREFIX: &[u8] = b"content";

fn write_name(chunk: Chunk, out: &mut Vec<u8>) {
    tlv::write_nested(out, types::NAME, |out| write_name_value(chunk, out));
}

/// Appends the components of a chunk's name.
pub(super) fn write_name_value(chunk: Chunk, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    tlv::write_tlv(out, GENERIC.into(), PREFIX);
    tlv::write_head(out, GENERIC.into(), 8);
    for shift in (0..8).rev() {
        out.push(HEX[(chunk.content >> (4 * shift)) as usize & 15]);
    }
    tlv::write_nni(out, SEGMENT.into(), chunk.segment.into());
}

/// Appends an Interest for a chunk.
pub(super) fn write_interest(chunk: Chunk, nonce: u32, out: &mut Vec<u8>) {
    tlv::write_nested(out, types::INTEREST, |out| {
        write_name(chunk, out);
        tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
    });
}

/// Appends the Data of a chunk.
pub(super) fn write_data(chunk: Chunk, out: &mut Vec<u8>) {
    tlv::write_nested(out, types::DATA, |out| {
        write_name(chunk, out);
        tlv::write_head(out, types::CONTENT, CHUNK_BYTES as usize);
        out.resize(out.len() + CHUNK_BYTES as usize, chunk.segment as u8);
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
    });
}

/// Chunks that are asked for together, with their Interests.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    chunks: Vec<Chunk>,
    interests: Burst,
    n_nonces: u32,
}

impl Asked {
    /// Forgets them and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.interests.clear();
    }

    /// Adds one.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.n_nonces = self.n_nonces.wrapping_add(1);
        let nonce = self.n_nonces;
        self.chunks.push(chunk);
        self.interests.push(|out| write_interest(chunk, nonce, out));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Which.
    pub(super) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Their Interests, in this order.
    pub(super) const fn interests(&self) -> &Burst {
        &self.interests
    }

    /// Each with its Interest.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Chunk, &[u8])> {
        self.chunks.iter().copied().zip(self.interests.iter())
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{DataView, InterestView};

    use super::*;

    #[test]
    fn data_answer_interests_by_names_that_end_in_segments() {
        let mut names = std::collections::HashSet::new();
        for (content, segment) in [(0, 0), (0, 1_279), (97_655, 9), (u32::MAX, u32::MAX)] {
            let chunk = Chunk { content, segment };
            let mut asked = Asked::default();
            asked.push(chunk);
            let mut data = Vec::new();
            write_data(chunk, &mut data);
            let (got, interest) = asked.iter().next().expect("one was pushed");
            let interest = InterestView::parse(interest).expect("well-formed");
            let view = DataView::parse(&data).expect("well-formed");
            assert_eq!((got, interest.name()), (chunk, view.name()));
            let last = view.name().last().expect("it has components");
            assert_eq!(
                (last.typ(), last.as_number()),
                (SEGMENT, Some(segment.into()))
            );
            assert_eq!((view.name().len(), view.content().len()), (3, 8_000));
            assert!(data.len() <= MAX_DATA_BYTES, "{}", data.len());
            assert!(names.insert(view.name().to_name()));
        }
    }
}
