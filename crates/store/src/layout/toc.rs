//! Tables of contents, which list a region's records so that they need not be read.
//!
//! One is written when its region ends: an entry for each record, and one for each prefix of
//! which the region has Data, at most [`MAX_TOC_PREFIXES`], so that hostile names with thirty
//! components cost no more time than many small Data. The foot behind it has the checksum of
//! everything.

use crc_fast::{CrcAlgorithm, Digest};

use super::{Extent, REGION_HEAD_BYTES, STEP, crc32, crc64, u32_at, u64_at};

/// Bytes of an entry of a table of contents.
pub const TOC_ENTRY_BYTES: usize = 16;

const FOOT_MAGIC: u32 = u32::from_le_bytes(*b"TchF");

/// What a table of contents is made of, and what it says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TocEntry {
    /// A batch with this key.
    Batch(u64, Extent),
    /// The last record with Data below the prefix of this hash.
    Prefix(u64, Extent),
    /// An erasure of the prefix of this hash; in place of its extent is before which place of
    /// the log it erases.
    Erasure(u64, Extent),
}

impl TocEntry {
    const KIND_SHIFT: u32 = 56;

    fn words(self) -> [u64; 2] {
        let (kind, hash, extent) = match self {
            Self::Batch(hash, extent) => (1, hash, extent),
            Self::Prefix(hash, extent) => (2, hash, extent),
            Self::Erasure(hash, extent) => (3, hash, extent),
        };
        [hash, kind << Self::KIND_SHIFT | extent.pack()]
    }

    fn from_words([hash, word]: [u64; 2]) -> Option<Self> {
        let extent = Extent::unpack(word);
        Some(match word >> Self::KIND_SHIFT {
            1 => Self::Batch(hash, extent),
            2 => Self::Prefix(hash, extent),
            3 => Self::Erasure(hash, extent),
            _ => return None,
        })
    }
}

/// Makes the end of a region, part by part: the table of contents and the foot, as it is to be
/// written up to the region's last byte.
#[derive(Debug)]
pub struct TocEncoder {
    seq: u64,
    entries: Vec<TocEntry>,
    n_encoded: usize,
    /// Of zeros before the first entry.
    n_padding: usize,
    digest: Digest,
    n_left: usize,
}

impl TocEncoder {
    /// Of these entries. All of it is a multiple of `align`, which is one of [`REGION_HEAD_BYTES`].
    #[must_use]
    pub fn new(seq: u64, entries: Vec<TocEntry>, align: usize) -> Self {
        let len = toc_bytes(entries.len());
        let n_left = len.next_multiple_of(align);
        Self {
            seq,
            entries,
            n_encoded: 0,
            n_padding: n_left - len,
            digest: Digest::new(CrcAlgorithm::Crc64Nvme),
            n_left,
        }
    }

    /// Bytes that are still to come.
    #[must_use]
    pub const fn n_left(&self) -> usize {
        self.n_left
    }

    /// Puts the next part into `out`, of a multiple of `align` bytes, from its beginning; how
    /// many bytes.
    pub fn encode(&mut self, out: &mut [u8]) -> usize {
        let len = out.len().min(self.n_left);
        let (padding, rest) = out[..len].split_at_mut(self.n_padding.min(len));
        padding.fill(0);
        self.n_padding -= padding.len();
        let entries = &self.entries[self.n_encoded..];
        let n = entries.len().min(rest.len() / TOC_ENTRY_BYTES);
        let (table, foot) = rest.split_at_mut(n * TOC_ENTRY_BYTES);
        let words = entries[..n].iter().flat_map(|entry| entry.words());
        for (bytes, word) in table.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.digest.update(table);
        self.n_encoded += n;
        if !foot.is_empty() {
            foot.copy_from_slice(&self.foot());
        }
        self.n_left -= len;
        len
    }

    fn foot(&self) -> [u8; REGION_HEAD_BYTES] {
        let mut foot = [0; REGION_HEAD_BYTES];
        foot[..4].copy_from_slice(&FOOT_MAGIC.to_le_bytes());
        foot[8..16].copy_from_slice(&self.seq.to_le_bytes());
        foot[16..20].copy_from_slice(&(self.entries.len() as u32).to_le_bytes());
        foot[24..32].copy_from_slice(&self.digest.finalize().to_le_bytes());
        let crc = crc32(&foot[8..]);
        foot[4..8].copy_from_slice(&crc.to_le_bytes());
        foot
    }
}

/// The end of a region with such contents, all of it: see [`TocEncoder`].
#[must_use]
pub fn encode_toc(seq: u64, entries: Vec<TocEntry>, align: usize) -> Vec<u8> {
    let mut encoder = TocEncoder::new(seq, entries, align);
    let mut bytes = vec![0; encoder.n_left()];
    encoder.encode(&mut bytes);
    bytes
}

/// Prefixes that a table of contents has, most. What is below others is found by its full name
/// only.
pub(crate) const MAX_TOC_PREFIXES: usize = 1 << 16;

/// Most entries of a table of contents that a store writes into a region of so many bytes: one
/// for each record, none of which is shorter than two steps, and the prefixes.
#[must_use]
pub const fn max_toc_entries(region_bytes: usize) -> usize {
    region_bytes / (2 * STEP) + MAX_TOC_PREFIXES
}

/// Bytes of the end of a region with so many entries, before it is aligned.
#[must_use]
pub const fn toc_bytes(n_entries: usize) -> usize {
    n_entries * TOC_ENTRY_BYTES + REGION_HEAD_BYTES
}

/// The foot of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foot {
    /// Of which writing of the region.
    pub seq: u64,
    n_entries: usize,
    crc: u64,
}

impl Foot {
    /// From the last bytes of a region.
    #[must_use]
    pub fn decode(tail: &[u8]) -> Option<Self> {
        let foot = &tail[tail.len().checked_sub(REGION_HEAD_BYTES)?..];
        let is_one = u32_at(foot, 0) == FOOT_MAGIC && u32_at(foot, 4) == crc32(&foot[8..]);
        is_one.then(|| Self {
            seq: u64_at(foot, 8),
            n_entries: u32_at(foot, 16) as usize,
            crc: u64_at(foot, 24),
        })
    }

    /// Entries of the table.
    #[must_use]
    pub const fn n_entries(&self) -> usize {
        self.n_entries
    }

    /// Bytes of table and foot.
    #[must_use]
    pub const fn toc_bytes(&self) -> usize {
        toc_bytes(self.n_entries)
    }

    /// The entries, from the last bytes of the region, [`Foot::toc_bytes`] at least; `None`
    /// if they are damaged.
    #[must_use]
    pub fn entries<'a>(&self, tail: &'a [u8]) -> Option<impl Iterator<Item = TocEntry> + use<'a>> {
        let start = tail.len().checked_sub(self.toc_bytes())?;
        let bytes = &tail[start..tail.len() - REGION_HEAD_BYTES];
        let words = |bytes: &[u8]| TocEntry::from_words([u64_at(bytes, 0), u64_at(bytes, 8)]);
        (crc64(bytes) == self.crc).then(|| bytes.chunks_exact(TOC_ENTRY_BYTES).filter_map(words))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tables_of_contents_are_read_as_they_were_written(
            hashes in prop::collection::vec(any::<u64>(), 0..1_500),
            part_len in 1_usize..4,
            seq in 1_u64..,
        ) {
            let entries: Vec<_> = hashes.iter().map(|&hash| {
                let extent = Extent::unpack(hash.rotate_left(17));
                match hash % 3 {
                    0 => TocEntry::Batch(hash, extent),
                    1 => TocEntry::Prefix(hash, extent),
                    _ => TocEntry::Erasure(hash, extent),
                }
            }).collect();
            let mut bytes = encode_toc(seq, entries.clone(), 4096);
            prop_assert_eq!(bytes.len() % 4096, 0);
            let mut encoder = TocEncoder::new(seq, entries.clone(), 4096);
            let mut in_parts = Vec::new();
            while encoder.n_left() > 0 {
                let mut part = vec![0xFF; part_len * 4096];
                let len = encoder.encode(&mut part);
                in_parts.extend_from_slice(&part[..len]);
            }
            prop_assert_eq!(&in_parts, &bytes);
            let foot = Foot::decode(&bytes).expect("as written");
            prop_assert_eq!(foot.seq, seq);
            let read: Vec<_> = foot.entries(&bytes).expect("whole").collect();
            prop_assert_eq!(read, entries);
            let last = bytes.len() - REGION_HEAD_BYTES - 1;
            bytes[last] ^= 1;
            prop_assert!(foot.entries(&bytes).is_none() || hashes.is_empty());
        }
    }
}
