//! What batch a name belongs to, and how batches and prefixes are hashed.
//!
//! Data whose names differ in their last component alone, a segment or sequence number (NDN
//! naming conventions, revision 3), are chunks of one object; a batch is as many of them as
//! are configured, beginning at a multiple of that. A Data with another name is alone in its
//! batch. The hash is SipHash-1-3 under the store's own key, which outlives the router's: what
//! was stored before a restart is found after it.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use tachonym_packet::types::component::{SEGMENT, SEQUENCE_NUM};
use tachonym_packet::{ComponentView, NameView};

use crate::layout::MAX_PREFIXES;

/// What batch a name belongs to, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What the batch is found by.
    pub(crate) key: u64,
    /// Its place there, below the length of batches.
    pub(crate) place: u8,
    /// Of a chunk.
    pub(crate) chunk: Option<ChunkNumber>,
}

/// The last component of a chunk's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkNumber {
    pub(crate) typ: u16,
    pub(crate) number: u64,
}

/// Hashes names, under the key of a store.
#[derive(Clone, Debug)]
pub struct Names {
    key: [u8; 16],
    batch_len: u64,
}

/// What is hashed, lest a prefix be taken for a batch.
#[derive(Clone, Copy)]
enum Domain {
    Single = 1,
    Batch = 2,
    Prefix = 3,
}

impl Names {
    /// With the key of a store's superblocks, and the chunks of its batches.
    #[must_use]
    pub const fn new(key: [u8; 16], batch_len: usize) -> Self {
        let batch_len = batch_len as u64;
        Self { key, batch_len }
    }

    fn hasher(&self, domain: Domain) -> SipHasher13 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write_u8(domain as u8);
        hasher
    }

    /// What batch a name belongs to.
    pub(crate) fn part_of(&self, name: NameView<'_>) -> Part {
        match chunk_number(name) {
            Some(chunk) => Part {
                key: self.batch_key(parent(name), chunk.typ, chunk.number / self.batch_len),
                place: (chunk.number % self.batch_len) as u8,
                chunk: Some(chunk),
            },
            None => {
                let mut hasher = self.hasher(Domain::Single);
                hasher.write(name.value_bytes());
                Part {
                    key: hasher.finish(),
                    place: 0,
                    chunk: None,
                }
            }
        }
    }

    /// What the batch of an object with this number is found by, the object being what its
    /// chunks' names have in common and `typ` the type of their last components.
    #[must_use]
    pub fn batch_key(&self, object: NameView<'_>, typ: u16, batch: u64) -> u64 {
        let mut hasher = self.hasher(Domain::Batch);
        hasher.write_u16(typ);
        hasher.write_u64(batch);
        hasher.write(object.value_bytes());
        hasher.finish()
    }

    /// The hash of a prefix.
    pub(crate) fn prefix(&self, prefix: NameView<'_>) -> u64 {
        let mut hasher = self.hasher(Domain::Prefix);
        hasher.write(prefix.value_bytes());
        hasher.finish()
    }

    /// Puts the hashes of all prefixes of `name` into `out`, shortest first, but for the empty
    /// one and for `name` itself.
    pub(crate) fn prefixes(&self, name: NameView<'_>, out: &mut Vec<u64>) {
        out.clear();
        let n_prefixes = name.len().saturating_sub(1).min(MAX_PREFIXES);
        out.extend((1..=n_prefixes).map(|len| self.prefix(name.prefix(len))));
    }

    pub(crate) const fn batch_len(&self) -> u64 {
        self.batch_len
    }
}

/// The bit of a place in the mask of an index entry; no batch has more than
/// [`MAX_BATCH_LEN`](crate::layout::MAX_BATCH_LEN).
pub(crate) const fn mask_bit(place: u8) -> u16 {
    1 << (place % u16::BITS as u8)
}

/// The name without its last component.
pub(crate) fn parent(name: NameView<'_>) -> NameView<'_> {
    name.prefix(name.len().saturating_sub(1))
}

/// The number that a name ends in, if it is a chunk's.
pub(crate) fn chunk_number(name: NameView<'_>) -> Option<ChunkNumber> {
    let last = name.last()?;
    let typ = last.typ();
    let number = last.as_number()?;
    matches!(typ, SEGMENT | SEQUENCE_NUM).then_some(ChunkNumber { typ, number })
}

/// Puts the value of the name of an object's chunk into `out`, which is cleared before.
pub(crate) fn write_chunk_name(object: NameView<'_>, typ: u16, number: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(object.value_bytes());
    let bytes = number.to_be_bytes();
    let len = match number {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    if let Ok(component) = ComponentView::new(typ, &bytes[8 - len..]) {
        component.encode_into(out);
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{Component, Name};

    use super::*;
    use crate::layout::MAX_BATCH_LEN;

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    #[test]
    fn neighbours_share_a_batch_and_others_do_not() {
        let names = Names::new([1; 16], 10);
        let video = name("/video/v=3");
        let part = |number| {
            names.part_of(
                video
                    .view()
                    .to_name()
                    .with(&Component::segment(number))
                    .view(),
            )
        };
        assert_eq!(part(20).key, part(29).key);
        assert_eq!((part(20).place, part(29).place), (0, 9));
        assert_ne!(part(29).key, part(30).key);
        let other = name("/video/v=4").with(&Component::segment(20));
        assert_ne!(names.part_of(other.view()).key, part(20).key);
        let sequence = name("/video/v=3").with(&Component::sequence(20));
        assert_ne!(names.part_of(sequence.view()).key, part(20).key);
        let foreign = Names::new([2; 16], 10);
        let segment = video.clone().with(&Component::segment(20));
        assert_ne!(foreign.part_of(segment.view()).key, part(20).key);
    }

    #[test]
    fn a_name_without_a_number_is_alone() {
        let names = Names::new([1; 16], 10);
        let part = names.part_of(name("/a/b").view());
        for number in [0, 255, 256, 65_536, u64::MAX] {
            let mut value = Vec::new();
            write_chunk_name(name("/a").view(), SEGMENT, number, &mut value);
            let expected = name("/a").with(&Component::segment(number));
            assert_eq!(value, expected.value_bytes());
        }
        assert_eq!((part.place, part.chunk), (0, None));
        assert_ne!(part.key, names.prefix(name("/a/b").view()));
        let mut prefixes = Vec::new();
        names.prefixes(name("/a/b/c").view(), &mut prefixes);
        assert_eq!(
            prefixes,
            [name("/a"), name("/a/b")].map(|it| names.prefix(it.view()))
        );
        names.prefixes(Name::new().view(), &mut prefixes);
        assert!(prefixes.is_empty());
    }

    #[test]
    fn every_place_has_a_bit() {
        let bits: Vec<u16> = (0..MAX_BATCH_LEN as u8).map(mask_bit).collect();
        assert!(bits.iter().all(|bit| bit.is_power_of_two()));
        assert!(bits.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
