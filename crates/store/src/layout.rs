//! What lies where on a volume, byte by byte.
//!
//! ```text
//! volume:  superblock | its copy | region 0 | region 1 | …
//! region:  head | record | record | …    …| table of contents | foot
//! record:  head | hashes of prefixes | places | Data, one after another
//! ```
//!
//! All numbers are little-endian. Records begin at multiples of [`STEP`] bytes. Each thing
//! carries a checksum and the sequence number of its region's writing, and none is used twice:
//! what a former writing of a region has left is told from what belongs to the present one,
//! and a torn write from a whole one, wherever the power went. Checksums have no key: what
//! somebody else may have written is read like the rest, and must do no harm. A record's
//! checksums are two, so that its head can be believed before all of it is read.

mod toc;

use crc_fast::{CrcAlgorithm, checksum};
use tachonym_packet::types::MAX_PACKET_BYTES;

pub(crate) use toc::MAX_TOC_PREFIXES;
pub use toc::{
    Foot, TOC_ENTRY_BYTES, TocEncoder, TocEntry, encode_toc, max_toc_entries, toc_bytes,
};

/// How a volume that holds a store begins.
pub const MAGIC: [u8; 16] = *b"Tachonym CS L2\r\n";

/// The present form. Another one is refused.
pub const VERSION: u32 = 1;

/// Bytes of a superblock, of which there are two.
pub const SUPERBLOCK_BYTES: usize = 4096;

/// Where regions begin on a volume, in bytes.
pub const REGIONS_START: u64 = 2 * SUPERBLOCK_BYTES as u64;

/// What the places of records are multiples of, in bytes.
pub const STEP: usize = 64;

/// Bytes that a region has at least, and at most.
pub const REGION_BYTES: std::ops::RangeInclusive<u32> = 1 << 20..=64 << 20;

/// Most chunks of a batch: as many as the mask of an [`Extent`] has bits.
pub const MAX_BATCH_LEN: usize = 16;

/// Most of a sequence number: no store gets as far.
pub const MAX_SEQ: u64 = 1 << 43;

/// Most hashes of prefixes that a record has.
pub const MAX_PREFIXES: usize = 32;

/// Bytes of a region's head, and of its foot.
pub const REGION_HEAD_BYTES: usize = STEP;

/// Bits of a packed [`Extent`].
pub(crate) const EXTENT_BITS: u32 = 46;

/// Most regions of a store: an entry of the index keeps the number beside the extent.
pub(crate) const MAX_REGIONS: usize = 1 << (64 - EXTENT_BITS);

/// A place in the log, by the region's sequence number and where in it: later ones are greater.
pub(crate) type Position = (u64, u32);

const RECORD_HEAD_BYTES: usize = 48;
const PLACE_BYTES: usize = 12;
const REGION_MAGIC: u32 = u32::from_le_bytes(*b"TchR");
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"TchB");

/// Most bytes of a record of batches of so many chunks.
#[must_use]
pub const fn max_record_bytes(batch_len: usize) -> usize {
    let head = RECORD_HEAD_BYTES + MAX_PREFIXES * 8 + batch_len * PLACE_BYTES;
    (head + batch_len * MAX_PACKET_BYTES).next_multiple_of(STEP)
}

/// The checksum of everything that is looked at whole.
#[must_use]
pub fn crc64(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// That of heads.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What a volume says of the store that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// By which names are hashed; the same on all volumes of a store, and on no other's.
    pub key: [u8; 16],
    /// The worker whose store it is.
    pub worker: u16,
    /// Number of the volume, and how many there are.
    pub volume: u8,
    /// See above.
    pub n_volumes: u8,
    /// Chunks of a batch.
    pub batch_len: u8,
    /// Bytes of a region.
    pub region_bytes: u32,
    /// Regions on this volume.
    pub n_regions: u32,
    /// Regions with a lower sequence number were written before the store was made.
    pub first_seq: u64,
    /// Whatever else has to be the same for the Data to be used; its owner's affair.
    pub context: u64,
}

/// Why a volume's superblock is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// It begins as no store does.
    #[error("holds other data than a content store")]
    Foreign,
    /// It is of another version.
    #[error("has format version {found}, but this program reads version {VERSION}")]
    Version {
        /// Which.
        found: u32,
    },
    /// Both copies are damaged.
    #[error("is damaged: both copies of its superblock are unreadable")]
    Damaged,
}

impl Superblock {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; SUPERBLOCK_BYTES];
        bytes[..16].copy_from_slice(&MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.key);
        bytes[40..42].copy_from_slice(&self.worker.to_le_bytes());
        bytes[42] = self.volume;
        bytes[43] = self.n_volumes;
        bytes[44] = self.batch_len;
        bytes[48..52].copy_from_slice(&self.region_bytes.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.n_regions.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.context.to_le_bytes());
        let crc = crc64(&bytes[..72]);
        bytes[72..80].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the first [`REGIONS_START`] bytes of a volume; `None` if there is nothing yet.
    ///
    /// # Errors
    /// See [`SuperblockError`].
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, SuperblockError> {
        let mut outcome = Ok(None);
        for copy in bytes.chunks_exact(SUPERBLOCK_BYTES) {
            match Self::decode_one(copy) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn decode_one(bytes: &[u8]) -> Result<Option<Self>, SuperblockError> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if bytes[..16] != MAGIC {
            return Err(SuperblockError::Foreign);
        }
        match u32_at(bytes, 16) {
            VERSION => {}
            found => return Err(SuperblockError::Version { found }),
        }
        let found = Self {
            key: bytes[24..40].try_into().expect("sixteen bytes"),
            worker: u16_at(bytes, 40),
            volume: bytes[42],
            n_volumes: bytes[43],
            batch_len: bytes[44],
            region_bytes: u32_at(bytes, 48),
            n_regions: u32_at(bytes, 52),
            first_seq: u64_at(bytes, 56),
            context: u64_at(bytes, 64),
        };
        let makes_sense = u64_at(bytes, 72) == crc64(&bytes[..72])
            && REGION_BYTES.contains(&found.region_bytes)
            && (1..=MAX_BATCH_LEN).contains(&usize::from(found.batch_len))
            && found.n_regions as usize <= MAX_REGIONS
            && found.first_seq <= MAX_SEQ;
        match makes_sense {
            true => Ok(Some(found)),
            false => Err(SuperblockError::Damaged),
        }
    }
}

/// The head of a region: that its present writing has this number.
#[must_use]
pub fn encode_region_head(seq: u64) -> [u8; REGION_HEAD_BYTES] {
    let mut bytes = [0; REGION_HEAD_BYTES];
    bytes[..4].copy_from_slice(&REGION_MAGIC.to_le_bytes());
    bytes[8..16].copy_from_slice(&seq.to_le_bytes());
    let crc = crc32(&bytes[8..16]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The number of a region's present writing, from its first bytes.
#[must_use]
pub fn decode_region_head(bytes: &[u8]) -> Option<u64> {
    let is_one = u32_at(bytes, 0) == REGION_MAGIC && u32_at(bytes, 4) == crc32(&bytes[8..16]);
    let seq = is_one.then(|| u64_at(bytes, 8));
    seq.filter(|seq| (1..=MAX_SEQ).contains(seq))
}

/// Where a record lies in its region, how much of it is to be read, and which chunks of its
/// batch it has: what an index entry keeps of it beside the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// In multiples of [`STEP`] from the region's beginning; below 2^20.
    pub at: u32,
    /// In KiB, rounded up; below 2^10.
    pub len_kib: u16,
    /// A bit for each place of the batch; zero for what is no part of a batch.
    pub mask: u16,
}

impl Extent {
    const AT_BITS: u32 = 20;
    const LEN_BITS: u32 = 10;

    /// In the lower 46 bits of a word.
    #[must_use]
    pub const fn pack(self) -> u64 {
        self.at as u64
            | (self.len_kib as u64) << Self::AT_BITS
            | (self.mask as u64) << (Self::AT_BITS + Self::LEN_BITS)
    }

    /// From such a word, whose upper bits do not matter.
    #[must_use]
    pub const fn unpack(word: u64) -> Self {
        Self {
            at: (word & ((1 << Self::AT_BITS) - 1)) as u32,
            len_kib: (word >> Self::AT_BITS & ((1 << Self::LEN_BITS) - 1)) as u16,
            mask: (word >> (Self::AT_BITS + Self::LEN_BITS)) as u16,
        }
    }

    /// Bytes from the region's beginning.
    #[must_use]
    pub const fn start_bytes(self) -> usize {
        self.at as usize * STEP
    }

    /// Whether it may be that of a record of so many bytes at most, in a region of so many.
    #[must_use]
    pub const fn is_within(self, region_bytes: usize, record_bytes: usize) -> bool {
        self.at > 0
            && self.len_kib > 0
            && self.start_bytes() < region_bytes
            && self.len_bytes() <= record_bytes.next_multiple_of(1024)
    }

    /// Bytes to read, at most 1023 more than the record has.
    #[must_use]
    pub const fn len_bytes(self) -> usize {
        self.len_kib as usize * 1024
    }
}

/// Kinds of [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Chunks of a batch, or a Data that belongs to none.
    Batch = 1,
    /// All Data with a prefix, the only hash that it has, are erased which were written before
    /// it, or before the place of which its only chunk, without Data, tells.
    Erasure = 2,
}

/// A chunk in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its place in the batch, from 0.
    pub place: u8,
    /// Bytes of the Data.
    pub len: u16,
    /// Until when it is fresh, in milliseconds of Unix time; zero if it never is.
    pub fresh_until_ms: u64,
}

/// What a record's head says but for its place.
#[derive(Clone, Copy, Debug)]
pub struct RecordHead<'a> {
    /// What it is.
    pub kind: RecordKind,
    /// The hash of what the batch is called.
    pub key: u64,
    /// Those of all prefixes that its names have in common, shortest first; at most
    /// [`MAX_PREFIXES`].
    pub prefixes: &'a [u64],
    /// What it has, at most [`MAX_BATCH_LEN`].
    pub chunks: &'a [Chunk],
}

impl RecordHead<'_> {
    fn head_bytes(&self) -> usize {
        RECORD_HEAD_BYTES + self.prefixes.len() * 8 + self.chunks.len() * PLACE_BYTES
    }

    /// Bytes of the whole record with padding, a multiple of [`STEP`].
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        let payload: usize = self.chunks.iter().map(|it| usize::from(it.len)).sum();
        (self.head_bytes() + payload).next_multiple_of(STEP)
    }

    /// Puts the head of the record at `at` of the writing `seq` of its region into `out`,
    /// which is cleared before. `payload` follows it.
    pub fn encode(&self, (seq, at): (u64, u32), payload: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&seq.to_le_bytes());
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&((self.head_bytes() + payload.len()) as u32).to_le_bytes());
        out.extend_from_slice(&self.key.to_le_bytes());
        out.extend_from_slice(&crc64(payload).to_le_bytes());
        let counts = [
            self.kind as u8,
            self.prefixes.len() as u8,
            self.chunks.len() as u8,
        ];
        out.extend_from_slice(&counts);
        out.resize(RECORD_HEAD_BYTES, 0);
        for prefix in self.prefixes {
            out.extend_from_slice(&prefix.to_le_bytes());
        }
        for chunk in self.chunks {
            out.extend_from_slice(&chunk.len.to_le_bytes());
            // Milliseconds of Unix time need 48 bits until the year 10,889.
            out.extend_from_slice(&chunk.fresh_until_ms.to_le_bytes());
            out.extend_from_slice(&[chunk.place, 0]);
        }
        let crc = crc32(&out[8..]);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Why bytes are not the record that was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// They belong to another writing of the region, or to another place.
    Stale,
    /// A checksum is wrong, or there are fewer bytes than it says.
    Damaged,
}

/// A record as it was read: the head is checked, and what it says lies in it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    bytes: &'a [u8],
    kind: RecordKind,
    n_prefixes: usize,
    n_chunks: usize,
    len: usize,
}

impl<'a> Record<'a> {
    /// The record at the beginning of `bytes`, which are at `at` of the writing `seq` of a
    /// region. Looks at the head alone: not all of the record has to be there.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn parse_head(bytes: &'a [u8], (seq, at): (u64, u32)) -> Result<Self, RecordError> {
        if bytes.len() < RECORD_HEAD_BYTES || u32_at(bytes, 0) != RECORD_MAGIC {
            return Err(RecordError::Damaged);
        }
        let kind = match bytes[40] {
            1 => RecordKind::Batch,
            2 => RecordKind::Erasure,
            _ => return Err(RecordError::Damaged),
        };
        let (n_prefixes, n_chunks) = (usize::from(bytes[41]), usize::from(bytes[42]));
        let head_bytes = RECORD_HEAD_BYTES + n_prefixes * 8 + n_chunks * PLACE_BYTES;
        if n_prefixes > MAX_PREFIXES
            || n_chunks > MAX_BATCH_LEN
            || bytes.len() < head_bytes
            || u32_at(bytes, 4) != crc32(&bytes[8..head_bytes])
        {
            return Err(RecordError::Damaged);
        }
        if (u64_at(bytes, 8), u32_at(bytes, 16)) != (seq, at) {
            return Err(RecordError::Stale);
        }
        let len = u32_at(bytes, 20) as usize;
        let found = Self {
            bytes,
            kind,
            n_prefixes,
            n_chunks,
            len,
        };
        let payload: usize = found.places().map(|chunk| usize::from(chunk.len)).sum();
        let has_places = found
            .places()
            .all(|chunk| usize::from(chunk.place) < MAX_BATCH_LEN);
        match has_places && head_bytes + payload == len {
            true => Ok(found),
            false => Err(RecordError::Damaged),
        }
    }

    /// As [`Record::parse_head`], and checks all of it.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn parse(bytes: &'a [u8], place: (u64, u32)) -> Result<Self, RecordError> {
        let found = Self::parse_head(bytes, place)?;
        let payload = bytes.get(found.head_bytes()..found.len);
        let is_whole = payload.is_some_and(|payload| crc64(payload) == u64_at(bytes, 32));
        match is_whole {
            true => Ok(found),
            false => Err(RecordError::Damaged),
        }
    }

    fn head_bytes(&self) -> usize {
        RECORD_HEAD_BYTES + self.n_prefixes * 8 + self.n_chunks * PLACE_BYTES
    }

    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        self.kind
    }

    /// The hash of what the batch is called.
    #[must_use]
    pub fn key(&self) -> u64 {
        u64_at(self.bytes, 24)
    }

    /// Bytes with padding.
    #[must_use]
    pub const fn record_bytes(&self) -> usize {
        self.len.next_multiple_of(STEP)
    }

    /// Hashes of the prefixes, shortest first.
    pub fn prefixes(&self) -> impl Iterator<Item = u64> + use<'a> {
        let bytes = &self.bytes[RECORD_HEAD_BYTES..][..self.n_prefixes * 8];
        bytes.chunks_exact(8).map(|bytes| u64_at(bytes, 0))
    }

    /// What chunks it has.
    pub fn places(&self) -> impl Iterator<Item = Chunk> + use<'a> {
        let start = RECORD_HEAD_BYTES + self.n_prefixes * 8;
        let bytes = &self.bytes[start..][..self.n_chunks * PLACE_BYTES];
        bytes.chunks_exact(PLACE_BYTES).map(|bytes| Chunk {
            place: bytes[10],
            len: u16_at(bytes, 0),
            fresh_until_ms: u64_at(bytes, 2),
        })
    }

    /// Its chunks with their Data. Only of a record that was [parsed](Record::parse) whole.
    pub fn chunks(&self) -> impl Iterator<Item = (Chunk, &'a [u8])> + use<'a> {
        let mut rest = &self.bytes[self.head_bytes()..self.len];
        self.places().map(move |chunk| {
            let (wire, others) = rest.split_at(usize::from(chunk.len));
            rest = others;
            (chunk, wire)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUPERBLOCK: Superblock = Superblock {
        key: [9; 16],
        worker: 3,
        volume: 1,
        n_volumes: 2,
        batch_len: 10,
        region_bytes: 8 << 20,
        n_regions: 77,
        first_seq: 5,
        context: 6,
    };

    fn both(first: &[u8], second: &[u8]) -> Vec<u8> {
        [first, second].concat()
    }

    #[test]
    fn a_superblock_is_read_from_either_copy() {
        let (bytes, zeros) = (SUPERBLOCK.encode(), vec![0; SUPERBLOCK_BYTES]);
        let mut torn = bytes.clone();
        torn[45] ^= 1;
        for copies in [
            both(&bytes, &torn),
            both(&torn, &bytes),
            both(&zeros, &bytes),
        ] {
            assert_eq!(Superblock::decode(&copies), Ok(Some(SUPERBLOCK)));
        }
        assert_eq!(Superblock::decode(&both(&zeros, &zeros)), Ok(None));
        assert_eq!(
            Superblock::decode(&both(&torn, &torn)),
            Err(SuperblockError::Damaged)
        );
    }

    #[test]
    fn what_is_no_store_or_of_another_version_is_told() {
        let mut other = SUPERBLOCK.encode();
        other[16] = 2;
        let refused = Superblock::decode(&both(&other, &other));
        assert_eq!(refused, Err(SuperblockError::Version { found: 2 }));
        let text = b"#!/bin/sh\n".repeat(820);
        let refused = Superblock::decode(&text[..2 * SUPERBLOCK_BYTES]);
        assert_eq!(refused, Err(SuperblockError::Foreign));
    }

    #[test]
    fn the_largest_record_fits_into_an_extent_and_a_region() {
        let largest = max_record_bytes(MAX_BATCH_LEN);
        assert!(largest < 1023 << 10, "{largest}");
        assert!(largest + 65_536 < *REGION_BYTES.start() as usize);
        assert_eq!(*REGION_BYTES.end() as usize / STEP, 1 << Extent::AT_BITS);
    }

    proptest! {
        #[test]
        fn extents_survive_packing(at in 0..1_u32 << 20, len_kib in 0..1024_u16, mask: u16) {
            let extent = Extent { at, len_kib, mask };
            prop_assert_eq!(Extent::unpack(extent.pack() | 0xABC0 << 46), extent);
        }

        #[test]
        fn records_are_read_as_they_were_written_and_no_flipped_bit_goes_unseen(
            key: u64,
            prefixes in prop::collection::vec(any::<u64>(), 0..=MAX_PREFIXES),
            wires in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..=12),
            flip: prop::sample::Index,
        ) {
            let chunks: Vec<_> = wires.iter().enumerate().map(|(i, wire)| Chunk {
                place: i as u8 + 3,
                len: wire.len() as u16,
                fresh_until_ms: key >> (i * 4),
            }).collect();
            let head = RecordHead { kind: RecordKind::Batch, key, prefixes: &prefixes, chunks: &chunks };
            let payload = wires.concat();
            let mut bytes = Vec::new();
            head.encode((7, 12), &payload, &mut bytes);
            bytes.extend_from_slice(&payload);
            let len = bytes.len();
            bytes.resize(head.record_bytes(), 0);
            let record = Record::parse(&bytes, (7, 12)).expect("as written");
            prop_assert_eq!(record.key(), key);
            prop_assert!(record.prefixes().eq(prefixes.iter().copied()));
            let expected = chunks.iter().copied().zip(wires.iter().map(Vec::as_slice));
            prop_assert!(record.chunks().eq(expected));
            prop_assert_eq!(record.record_bytes(), bytes.len());
            prop_assert_eq!(Record::parse(&bytes, (8, 12)).unwrap_err(), RecordError::Stale);
            prop_assert_eq!(Record::parse(&bytes, (7, 13)).unwrap_err(), RecordError::Stale);
            let bit = flip.index(len * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Record::parse(&bytes, (7, 12)).is_err());
        }

        #[test]
        fn hostile_records_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            let _ = Record::parse(&bytes, (0, 0));
            if bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&RECORD_MAGIC.to_le_bytes());
                let _ = Record::parse(&bytes, (0, 0));
            }
        }
    }

    #[test]
    fn what_no_store_writes_is_refused_though_its_checksum_is_right() {
        for seq in [0, MAX_SEQ + 1, u64::MAX] {
            assert_eq!(decode_region_head(&encode_region_head(seq)), None);
        }
        assert_eq!(
            decode_region_head(&encode_region_head(MAX_SEQ)),
            Some(MAX_SEQ)
        );
        let hostile = [
            Superblock {
                first_seq: u64::MAX,
                ..SUPERBLOCK
            },
            Superblock {
                n_regions: u32::MAX,
                ..SUPERBLOCK
            },
            Superblock {
                batch_len: 17,
                ..SUPERBLOCK
            },
        ];
        for superblock in hostile {
            let bytes = superblock.encode();
            let found = Superblock::decode(&both(&bytes, &bytes));
            assert_eq!(found, Err(SuperblockError::Damaged), "{superblock:?}");
        }
        for (place, is_one) in [(15, true), (16, false), (255, false)] {
            let chunk = Chunk {
                place,
                len: 0,
                fresh_until_ms: 1,
            };
            let head = RecordHead {
                kind: RecordKind::Batch,
                key: 1,
                prefixes: &[],
                chunks: &[chunk],
            };
            let mut bytes = Vec::new();
            head.encode((1, 1), &[], &mut bytes);
            assert_eq!(Record::parse(&bytes, (1, 1)).is_ok(), is_one, "{place}");
        }
    }

    #[test]
    fn the_head_of_a_region_tells_its_writing() {
        let mut head = encode_region_head(41);
        assert_eq!(decode_region_head(&head), Some(41));
        head[9] ^= 4;
        assert_eq!(decode_region_head(&head), None);
        assert_eq!(decode_region_head(&[0; REGION_HEAD_BYTES]), None);
    }
}
