//! Looking through regions: what they hold, to put it into the index at the start, or to take
//! it out before they are written again.
//!
//! Owns how far each region has been looked through. A region that was ended tells by its
//! table of contents; one that was not is read from its beginning, record by record, up to
//! where the last writing ended. Reads are asked for and answered by whoever has the device.

use std::collections::HashMap;

use tachonym_memory::IO_ALIGN;

use crate::erasures::{from_extent, to_extent};
use crate::layout::{
    Extent, Foot, Position, REGION_HEAD_BYTES, Record, RecordKind, STEP, TocEntry,
    decode_region_head, max_record_bytes, max_toc_entries, toc_bytes,
};
use crate::log::{Prefixes, note_last};
use crate::naming::mask_bit;

/// A region by its table of contents, if it has batches of ten packets of 1 KB with names of
/// their own: of most regions one read brings all of it.
const REGION_BY_TAIL: usize = 256;

/// Why a region is looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The store begins, and it is not known what is there.
    Recovery,
    /// It is to be written again.
    Emptying,
}

/// What is to be done next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Read these bytes of the region.
    Read { start: usize, len: usize },
    /// The region is known.
    Known { why: Why, contents: Contents },
}

/// What a region holds.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Of the present writing; `None` if there was none.
    pub(crate) seq: Option<u64>,
    pub(crate) entries: Vec<TocEntry>,
    /// Erasures that the writing before tells of by its table of contents: it is still there, and
    /// the present writing may not have come so far as to tell of them itself.
    pub(crate) erased_before: Vec<(u64, Position)>,
    /// Whether there is no table of contents of the present writing: there may be more than was
    /// found.
    pub(crate) is_followed: bool,
    /// Whether it lacks one, and may be given it.
    pub(crate) is_unsealed: bool,
}

/// What is left to be done of a region.
#[derive(Debug)]
pub(crate) struct Taking {
    pub(crate) region: u32,
    pub(crate) why: Why,
    pub(crate) contents: Contents,
    /// Entries that have been dealt with.
    pub(crate) n_taken: usize,
}

#[derive(Debug)]
struct Look {
    why: Why,
    /// Of the present writing, once it is known.
    seq: Option<u64>,
    /// See [`Contents`].
    erased_before: Vec<(u64, Position)>,
    stage: Stage,
}

impl Look {
    fn new(why: Why, seq: Option<u64>, stage: Stage) -> Self {
        Self {
            why,
            seq,
            erased_before: Vec::new(),
            stage,
        }
    }

    fn known(&self, contents: Contents) -> Next {
        Next::Known {
            why: self.why,
            contents,
        }
    }
}

#[derive(Debug)]
enum Stage {
    Head,
    Tail,
    /// The table of contents is longer than what was read: so much of it is there, at the end.
    Table {
        foot: Foot,
        bytes: Vec<u8>,
        n_missing: usize,
    },
    /// Records are followed; the next is at this byte.
    Records {
        at: usize,
        found: Vec<TocEntry>,
        prefixes: Prefixes,
    },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Looks {
    region_bytes: usize,
    /// Of the largest that a store writes.
    record_bytes: usize,
    /// Bytes of a read at most.
    read_bytes: usize,
    /// Bytes of the first read at a region's end.
    tail_bytes: usize,
    looks: HashMap<u32, Look>,
}

impl Looks {
    /// `read_bytes` is a multiple of [`IO_ALIGN`], and more than the head of any record.
    pub(crate) fn new(batch_len: usize, region_bytes: usize, read_bytes: usize) -> Self {
        let read_bytes = read_bytes.min(region_bytes);
        Self {
            region_bytes,
            record_bytes: max_record_bytes(batch_len),
            read_bytes,
            tail_bytes: (region_bytes / REGION_BY_TAIL)
                .next_multiple_of(IO_ALIGN)
                .min(read_bytes),
            looks: HashMap::new(),
        }
    }

    /// Regions that are being looked through.
    pub(crate) fn len(&self) -> usize {
        self.looks.len()
    }

    /// Begins to find out what a region holds; the first read.
    pub(crate) fn recover(&mut self, region: u32) -> (usize, usize) {
        let look = Look::new(Why::Recovery, None, Stage::Head);
        self.looks.insert(region, look);
        (0, IO_ALIGN)
    }

    /// Begins to find out what a region holds in the writing `seq`.
    pub(crate) fn empty(&mut self, region: u32, seq: u64) -> (usize, usize) {
        let look = Look::new(Why::Emptying, Some(seq), Stage::Tail);
        self.looks.insert(region, look);
        self.tail()
    }

    fn tail(&self) -> (usize, usize) {
        (self.region_bytes - self.tail_bytes, self.tail_bytes)
    }

    /// A region cannot be read.
    pub(crate) fn give_up(&mut self, region: u32) {
        self.looks.remove(&region);
    }

    /// What was asked for of a region has been read: these bytes, from `start` on.
    pub(crate) fn handle_read(&mut self, region: u32, start: usize, bytes: &[u8]) -> Option<Next> {
        let mut look = self.looks.remove(&region)?;
        let next = self.step(&mut look, start, bytes);
        if matches!(next, Next::Read { .. }) {
            self.looks.insert(region, look);
        }
        Some(next)
    }

    fn step(&self, look: &mut Look, start: usize, bytes: &[u8]) -> Next {
        match &mut look.stage {
            Stage::Head => match decode_region_head(bytes) {
                None => look.known(Contents::default()),
                Some(seq) => {
                    look.seq = Some(seq);
                    look.stage = Stage::Tail;
                    let (start, len) = self.tail();
                    Next::Read { start, len }
                }
            },
            Stage::Tail => {
                let foot = Foot::decode(bytes).filter(|foot| {
                    Some(foot.seq) <= look.seq
                        && foot.n_entries() <= max_toc_entries(self.region_bytes)
                        && foot.toc_bytes() < self.region_bytes
                });
                match foot {
                    Some(foot) if foot.toc_bytes() <= bytes.len() => {
                        self.take_table(look, &foot, bytes)
                    }
                    Some(foot) => {
                        let n_toc_bytes = foot.toc_bytes().next_multiple_of(IO_ALIGN);
                        let n_missing = n_toc_bytes - bytes.len();
                        let mut table = vec![0; n_toc_bytes];
                        table[n_missing..].copy_from_slice(bytes);
                        look.stage = Stage::Table {
                            foot,
                            bytes: table,
                            n_missing,
                        };
                        self.read_table(n_missing, n_toc_bytes)
                    }
                    None => self.follow_records(look),
                }
            }
            Stage::Table {
                foot,
                bytes: table,
                n_missing,
            } => {
                *n_missing -= bytes.len();
                table[*n_missing..][..bytes.len()].copy_from_slice(bytes);
                if *n_missing > 0 {
                    return self.read_table(*n_missing, table.len());
                }
                let (foot, table) = (*foot, std::mem::take(table));
                self.take_table(look, &foot, &table)
            }
            Stage::Records {
                at,
                found,
                prefixes,
            } => {
                let seq = look.seq.unwrap_or_default();
                match self.take_records((start, bytes), seq, at, (found, prefixes)) {
                    true => self.read_records(*at),
                    false => {
                        let mut entries = std::mem::take(found);
                        let prefixes = std::mem::take(prefixes).into_iter();
                        entries.extend(prefixes.map(|(hash, it)| TocEntry::Prefix(hash, it)));
                        // What a store has written leaves room for it.
                        let n_toc_bytes = toc_bytes(entries.len()).next_multiple_of(IO_ALIGN);
                        let end = at.next_multiple_of(IO_ALIGN);
                        let has_room = end + n_toc_bytes <= self.region_bytes;
                        let erased_before = std::mem::take(&mut look.erased_before);
                        look.known(Contents {
                            seq: look.seq,
                            is_followed: true,
                            // Else there would be nothing that tells of these.
                            is_unsealed: has_room && erased_before.is_empty(),
                            entries,
                            erased_before,
                        })
                    }
                }
            }
        }
    }

    /// The table of contents at the end of `bytes` is that of the present writing, or of one
    /// before: then records are followed.
    fn take_table(&self, look: &mut Look, foot: &Foot, bytes: &[u8]) -> Next {
        match foot.entries(bytes) {
            Some(entries) if Some(foot.seq) == look.seq => look.known(Contents {
                seq: look.seq,
                entries: entries.filter_map(|it| self.sound(it)).collect(),
                ..Contents::default()
            }),
            Some(entries) => {
                let erased = entries.filter_map(|entry| match entry {
                    TocEntry::Erasure(hash, extent) => Some((hash, from_extent(foot.seq, extent))),
                    _ => None,
                });
                look.erased_before = erased.collect();
                self.follow_records(look)
            }
            None => self.follow_records(look),
        }
    }

    /// The part of a table before what is there.
    fn read_table(&self, n_missing: usize, n_toc_bytes: usize) -> Next {
        let len = n_missing.min(self.read_bytes);
        Next::Read {
            start: self.region_bytes - n_toc_bytes + n_missing - len,
            len,
        }
    }

    fn follow_records(&self, look: &mut Look) -> Next {
        let at = REGION_HEAD_BYTES;
        look.stage = Stage::Records {
            at,
            found: Vec::new(),
            prefixes: Prefixes::default(),
        };
        self.read_records(at)
    }

    fn read_records(&self, at: usize) -> Next {
        let start = at - at % IO_ALIGN;
        let len = self.read_bytes.min(self.region_bytes - start);
        Next::Read { start, len }
    }

    /// Takes what records tell, from `at` on, out of bytes that begin at `start`. Whether there
    /// may be more, from where `at` is then.
    fn take_records(
        &self,
        (start, bytes): (usize, &[u8]),
        seq: u64,
        at: &mut usize,
        (found, prefixes): (&mut Vec<TocEntry>, &mut Prefixes),
    ) -> bool {
        let end = start + bytes.len();
        // More than that no store writes.
        while *at < end && found.len() <= max_toc_entries(self.region_bytes) {
            let place = (seq, (*at / STEP) as u32);
            match Record::parse_head(&bytes[*at - start..], place) {
                Ok(record) => {
                    self.note_record(&record, place, found, prefixes);
                    *at += record.record_bytes();
                }
                // A head may reach beyond what was read, but none beyond twice that.
                Err(_)
                    if end - *at < IO_ALIGN
                        && end < self.region_bytes
                        && start < *at - *at % IO_ALIGN =>
                {
                    return true;
                }
                Err(_) if !at.is_multiple_of(IO_ALIGN) => *at = at.next_multiple_of(IO_ALIGN),
                Err(_) => return false,
            }
        }
        *at < self.region_bytes && *at >= end
    }

    fn note_record(
        &self,
        record: &Record<'_>,
        (seq, at): Position,
        found: &mut Vec<TocEntry>,
        prefixes: &mut Prefixes,
    ) {
        let bits = record.places().map(|it| mask_bit(it.place));
        let extent = Extent {
            at,
            len_kib: record.record_bytes().div_ceil(1024) as u16,
            mask: bits.fold(0, |mask, bit| mask | bit),
        };
        match record.kind() {
            RecordKind::Batch => {
                if let Some(entry) = self.sound(TocEntry::Batch(record.key(), extent)) {
                    found.push(entry);
                    let extent = Extent { mask: 0, ..extent };
                    for hash in record.prefixes() {
                        note_last(prefixes, hash, extent);
                    }
                }
            }
            RecordKind::Erasure => {
                let extent = to_extent((seq, at), record.places().next());
                let erasures = record.prefixes();
                found.extend(erasures.map(|hash| TocEntry::Erasure(hash, extent)));
            }
        }
    }

    /// An entry as it may be used: `None` for one that no store writes.
    fn sound(&self, entry: TocEntry) -> Option<TocEntry> {
        let is_within = |it: &Extent| it.is_within(self.region_bytes, self.record_bytes);
        match entry {
            TocEntry::Batch(_, extent) => (extent.mask != 0 && is_within(&extent)).then_some(entry),
            TocEntry::Prefix(hash, extent) => {
                let extent = Extent { mask: 0, ..extent };
                is_within(&extent).then_some(TocEntry::Prefix(hash, extent))
            }
            TocEntry::Erasure(..) => Some(entry),
        }
    }
}
