//! What a volume of the router's second level holds if all of a catalogue was written to it, or
//! a worker's share, made when it is read: so a terabyte of it takes no memory, and no time to
//! be written.
//!
//! It is what the store would find after a restart, but that records lie at equal distances, not
//! at the beginnings of pages, and have no entries for prefixes, which only Interests with
//! CanBePrefix use. So a read of ten chunks has 21 pages: 7.5 % more than their content, where
//! that of a real store has some 3 % more.

use anyhow::ensure;
use tachonym_memory::IO_ALIGN;
use tachonym_packet::NameView;
use tachonym_packet::types::component::SEGMENT;
use tachonym_store::device::Content;
use tachonym_store::layout::{
    Chunk as Place, Extent, MAX_BATCH_LEN, REGION_HEAD_BYTES, REGIONS_START, RecordHead,
    RecordKind, STEP, Superblock, TocEntry, encode_region_head, encode_toc, toc_bytes,
};
use tachonym_store::{Geometry, Names};

use super::catalogue::{Catalogue, Chunk, Share};
use super::packets::{MAX_DATA_BYTES, write_data, write_name_value};

/// Bytes of a record's head are fewer than this, with as many chunks as a batch may have.
const MAX_HEAD_BYTES: usize = 1_024;

/// A volume whose contents are made when they are read.
#[derive(Clone, Debug)]
pub(super) struct MadeVolume {
    catalogue: Catalogue,
    block: Superblock,
    names: Names,
    /// Between the beginnings of two records.
    stride: usize,
    /// Batches of a region, and of a content.
    region_batches: u64,
    content_batches: u32,
    /// Numbers of the batches that are here, in their order; `None` if all are.
    here: Option<Vec<u64>>,
    /// Kept for their memory.
    places: Vec<Place>,
    payload: Vec<u8>,
    head: Vec<u8>,
}

impl MadeVolume {
    /// A volume of the size that a share of a catalogue needs, in batches of `batch_chunks`, of
    /// which it has all or none.
    ///
    /// # Errors
    /// If it cannot be divided into regions.
    pub(super) fn new(share: Share<'_>, batch_chunks: u32) -> anyhow::Result<Self> {
        let catalogue = share.catalogue();
        let content_batches = catalogue.content_chunks.div_ceil(batch_chunks);
        let n_all = u64::from(catalogue.n_contents) * u64::from(content_batches);
        let first_of = |batch| first_of(batch, content_batches, batch_chunks);
        let here = (!share.is_all()).then(|| {
            let here = (0..n_all).filter(|&batch| share.has(first_of(batch)));
            here.collect::<Vec<_>>()
        });
        let n_batches = here.as_ref().map_or(n_all, |here| here.len() as u64);
        let stride =
            (batch_chunks as usize * MAX_DATA_BYTES + MAX_HEAD_BYTES).next_multiple_of(STEP);
        // What a region cannot use is less than a record, its table and a block.
        let geometry_of = |bytes| Geometry::new(&[bytes], batch_chunks as usize);
        let mut bytes = n_batches * (stride as u64 + 32) + (256 << 20);
        let geometry = loop {
            let geometry = geometry_of(bytes)?;
            let n_regions = u64::from(geometry.n_regions.first().copied().unwrap_or(0));
            let region_batches = Self::region_batches(geometry.region_bytes, stride);
            if n_regions * region_batches >= n_batches {
                break geometry;
            }
            bytes += bytes / 16;
        };
        let block = superblock_of(&geometry, batch_chunks)?;
        Ok(Self {
            catalogue,
            names: Names::new(block.key, batch_chunks as usize),
            stride,
            region_batches: Self::region_batches(block.region_bytes, stride),
            content_batches,
            here,
            block,
            places: Vec::new(),
            payload: Vec::new(),
            head: Vec::new(),
        })
    }

    fn region_batches(region_bytes: u32, stride: usize) -> u64 {
        // An entry of the table goes with each record.
        let room = region_bytes as usize - REGION_HEAD_BYTES - toc_bytes(0) - IO_ALIGN;
        (room / (stride + 16)) as u64
    }

    /// Its superblock.
    pub(super) const fn superblock(&self) -> Superblock {
        self.block
    }

    /// Bytes that it has.
    pub(super) fn bytes(&self) -> u64 {
        REGIONS_START + u64::from(self.block.n_regions) * u64::from(self.block.region_bytes)
    }

    /// Batches in it.
    pub(super) fn n_batches(&self) -> u64 {
        let all = || u64::from(self.catalogue.n_contents) * u64::from(self.content_batches);
        self.here
            .as_ref()
            .map_or_else(all, |here| here.len() as u64)
    }

    /// Which of those that are here a region has.
    fn batches(&self, region: u64) -> std::ops::Range<u64> {
        let end = ((region + 1) * self.region_batches).min(self.n_batches());
        (region * self.region_batches).min(end)..end
    }

    /// The first chunk of the `nth` batch that is here, and how many it has.
    fn chunks(&self, nth: u64) -> (Chunk, u32) {
        let batch_chunks = u32::from(self.block.batch_len);
        let batch = self.here.as_ref().map_or(nth, |here| here[nth as usize]);
        let first = first_of(batch, self.content_batches, batch_chunks);
        let n_left = self.catalogue.content_chunks - first.segment;
        (first, n_left.min(batch_chunks))
    }

    fn key(&self, first: Chunk) -> u64 {
        let mut name = Vec::new();
        write_name_value(first, &mut name);
        let name = NameView::parse_value(&name).expect("written here");
        let batch = first.segment / u32::from(self.block.batch_len);
        let object = name.prefix(name.len() - 1);
        self.names.batch_key(object, SEGMENT, batch.into())
    }

    /// What lies where of the `idx`th record of a region.
    const fn start_of(&self, idx: u64) -> usize {
        REGION_HEAD_BYTES + idx as usize * self.stride
    }

    /// Makes the record of a batch, the `idx`th of its region: head and payload are left where
    /// they are.
    fn make(&mut self, batch: u64, seq: u64, idx: u64) {
        let (first, n_chunks) = self.chunks(batch);
        self.payload.clear();
        self.places.clear();
        for place in 0..n_chunks {
            let before = self.payload.len();
            let segment = first.segment + place;
            write_data(Chunk { segment, ..first }, &mut self.payload);
            self.places.push(Place {
                place: place as u8,
                len: (self.payload.len() - before) as u16,
                fresh_until_ms: 0,
            });
        }
        let head = RecordHead {
            kind: RecordKind::Batch,
            key: self.key(first),
            prefixes: &[],
            chunks: &self.places,
        };
        let at = (self.start_of(idx) / STEP) as u32;
        head.encode((seq, at), &self.payload, &mut self.head);
    }

    /// The table of contents of a region.
    fn table(&self, batches: std::ops::Range<u64>, seq: u64) -> Vec<u8> {
        let first = batches.start;
        let entries = batches
            .map(|batch| {
                let (chunk, n_chunks) = self.chunks(batch);
                let places = 0..n_chunks.min(u32::from(self.block.batch_len)) as u8;
                let extent = Extent {
                    at: (self.start_of(batch - first) / STEP) as u32,
                    len_kib: self.stride.div_ceil(1_024) as u16,
                    mask: places.fold(0, |mask, place| mask | 1 << place),
                };
                TocEntry::Batch(self.key(chunk), extent)
            })
            .collect();
        encode_toc(seq, entries, IO_ALIGN)
    }

    /// What is at `start` of a region.
    fn fill_region(&mut self, region: u64, start: usize, buffer: &mut [u8]) {
        // Regions were written in their order, from the first number on.
        let seq = self.block.first_seq + region;
        let batches = self.batches(region);
        if batches.is_empty() {
            return;
        }
        put(&encode_region_head(seq), 0, start, buffer);
        let end = start + buffer.len();
        let stride = self.stride as u64;
        // A record that is cut off is never used, and not made.
        let from = (start.saturating_sub(REGION_HEAD_BYTES) as u64).div_ceil(stride);
        let n_batches = batches.end - batches.start;
        for idx in from..n_batches {
            if self.start_of(idx) + self.stride > end {
                break;
            }
            self.make(batches.start + idx, seq, idx);
            let at = self.start_of(idx);
            put(&self.head, at, start, buffer);
            put(&self.payload, at + self.head.len(), start, buffer);
        }
        let region_bytes = self.block.region_bytes as usize;
        let n_table_bytes = toc_bytes(n_batches as usize).next_multiple_of(IO_ALIGN);
        if end > region_bytes - n_table_bytes {
            let table = self.table(batches, seq);
            put(&table, region_bytes - table.len(), start, buffer);
        }
    }
}

/// A superblock of a store of one volume that is divided so.
///
/// # Errors
/// If batches are too long.
pub(super) fn superblock_of(geometry: &Geometry, batch_chunks: u32) -> anyhow::Result<Superblock> {
    ensure!(
        batch_chunks as usize <= MAX_BATCH_LEN,
        "a batch has at most {MAX_BATCH_LEN} segments"
    );
    Ok(Superblock {
        key: [7; 16],
        worker: 0,
        volume: 0,
        n_volumes: 1,
        batch_len: batch_chunks as u8,
        region_bytes: geometry.region_bytes,
        n_regions: geometry.n_regions.first().copied().unwrap_or(0),
        first_seq: 1,
        context: 0,
    })
}

/// The first chunk of a batch of all.
fn first_of(batch: u64, content_batches: u32, batch_chunks: u32) -> Chunk {
    Chunk {
        content: (batch / u64::from(content_batches)) as u32,
        segment: (batch % u64::from(content_batches)) as u32 * batch_chunks,
    }
}

/// Copies what of `bytes`, which lie at `at`, falls into a buffer that lies at `start`.
fn put(bytes: &[u8], at: usize, start: usize, buffer: &mut [u8]) {
    let from = at.max(start);
    let until = (at + bytes.len()).min(start + buffer.len());
    if from < until {
        buffer[from - start..until - start].copy_from_slice(&bytes[from - at..until - at]);
    }
}

impl Content for MadeVolume {
    fn fill(&mut self, _: u8, offset: u64, buffer: &mut [u8]) {
        buffer.fill(0);
        let region_bytes = u64::from(self.block.region_bytes);
        let mut done = 0;
        if offset < REGIONS_START {
            let bytes = self.block.encode().repeat(2);
            put(&bytes, 0, offset as usize, buffer);
            done = (REGIONS_START - offset).min(buffer.len() as u64) as usize;
        }
        while done < buffer.len() {
            let at = offset + done as u64 - REGIONS_START;
            let (region, start) = (at / region_bytes, at % region_bytes);
            let len = ((region_bytes - start) as usize).min(buffer.len() - done);
            self.fill_region(region, start as usize, &mut buffer[done..done + len]);
            done += len;
        }
    }
}
