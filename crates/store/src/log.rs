//! The log: how records are written.
//!
//! Owns the regions of all volumes, the unwritten part of the current region, and the write
//! buffers. Records go one after another into a region, at multiples of 64 bytes, so that little
//! more than the Data is written (1.02 to 1.04 bytes for each byte). A record that is at least
//! [`MIN_RECORD_BY_PADDING`] times as long as the padding starts on a page. When the next record
//! does not fit, the table of contents is written at the region's end, and the next region of
//! the ring is started. So the device sees large sequential writes, and nothing is rewritten:
//! the oldest region is overwritten. A region may be started when the index no longer has its
//! former records ([`Log::set_free`]), which is the owner's responsibility.
//!
//! **Loss of power.** Any part of what was not synced may be lost, in any order, so the log
//! syncs once per region. A region is started only when the head of the previous one [is
//! durable](Log::set_lasting). So a loss of power undoes only the last writing of a region, and
//! what returns is the oldest of all: everything that replaced or erased it is still there. A
//! region's table of contents is written when its head is durable; if the head is lost, the
//! former table is still there, with its erasures. These waits are for a sync that started a
//! region earlier. If a sync takes longer than a region, Data waits, and is refused when memory
//! for it runs out.
//!
//! Nothing blocks here: a record for which there is no buffer is refused.

use std::collections::VecDeque;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use tachonym_memory::{IO_ALIGN, IoBuffer};
use tachonym_packet::MonoNs;

use crate::device::{Op, Request};
use crate::erasures::to_extent;
use crate::index::Location;
use crate::layout::{
    Extent, MAX_TOC_PREFIXES, Position, REGION_HEAD_BYTES, RecordHead, RecordKind, STEP,
    TocEncoder, TocEntry, encode_region_head, toc_bytes,
};

/// A record of so many times the bytes begins after padding; shorter ones do without.
const MIN_RECORD_BY_PADDING: usize = 30;

/// Numbers of writings that are left out at a start are fewer: after some hundred starts it can
/// still be told how old an erasure is.
const MAX_LEFT_OUT: u64 = 1 << 18;

/// A region of a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) volume: u8,
    /// Where it begins on the volume, in bytes.
    pub(crate) start: u64,
    /// Of its present writing; zero if there was none.
    pub(crate) seq: u64,
    pub(crate) state: RegionState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionState {
    /// What it holds may be in the index.
    Held,
    /// It may be written.
    Free,
    /// It is being written.
    Open,
    /// Its volume is out of service.
    Lost,
}

/// A record is not written now: all buffers are on their way to the device, the next region
/// still holds what is in the index, or what was written before does not last yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotYet;

/// Where the bytes of a record are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts<'a> {
    /// On the device.
    Device,
    /// Here; they begin with it.
    Memory(&'a [u8]),
    /// On the way from here to the device.
    Between,
}

/// The last record of a region below each prefix, by its hash.
pub(crate) type Prefixes = HashMap<u64, Extent, foldhash::fast::FixedState>;

#[derive(Debug)]
struct OpenRegion {
    region: u32,
    seq: u64,
    /// Bytes so far, those in the buffer included.
    at: usize,
    buffer: Option<IoBuffer>,
    /// Where in the region the buffer begins.
    buffer_start: usize,
    /// Where the record begins that was put last.
    last_record: usize,
    /// Where the record begins that has the first bytes of the buffer.
    first_in_buffer: usize,
    batches: Vec<TocEntry>,
    prefixes: Prefixes,
    /// Data that end in the buffer.
    n_chunks: usize,
}

impl OpenRegion {
    fn n_toc_entries(&self) -> usize {
        self.batches.len() + self.prefixes.len()
    }
}

/// Notes the last record of a region below a prefix, unless it has too many of them.
pub(crate) fn note_last(prefixes: &mut Prefixes, prefix: u64, extent: Extent) {
    let is_full = prefixes.len() >= MAX_TOC_PREFIXES;
    match prefixes.entry(prefix) {
        Entry::Occupied(mut last) => *last.get_mut() = extent,
        Entry::Vacant(_) if is_full => {}
        Entry::Vacant(none) => drop(none.insert(extent)),
    }
}

/// The end of a region that is on its way.
#[derive(Debug)]
struct Sealing {
    region: u32,
    toc: TocEncoder,
}

/// A write that the device has.
#[derive(Clone, Copy, Debug)]
struct Write {
    id: u64,
    volume: u8,
    since: MonoNs,
    region: u32,
    start: usize,
    end: usize,
    /// Data that end in it.
    n_chunks: usize,
}

/// A write that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) volume: u8,
    pub(crate) n_bytes: usize,
    /// Data that it was to write the end of.
    pub(crate) n_chunks: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Log {
    region_bytes: usize,
    regions: Vec<Region>,
    open: Option<OpenRegion>,
    sealing: VecDeque<Sealing>,
    buffers: Vec<IoBuffer>,
    buffer_bytes: usize,
    /// Buffers that others have come for while a device kept them.
    n_replaced: usize,
    writes: Vec<Write>,
    requests: VecDeque<Request>,
    /// The region after the one that was begun last.
    next_region: u32,
    next_seq: u64,
    first_seq: u64,
    next_write: u64,
    /// Writes with lower numbers outlive a loss of power.
    n_lasting: u64,
    /// Those with lower numbers have to, before a region is ended or begun.
    must_last: u64,
    /// The time of the call in progress, or of the last one.
    now: MonoNs,
    head: Vec<u8>,
    n_written_bytes: u64,
}

impl Log {
    /// Of regions that may hold anything. `buffers` are of one size.
    pub(crate) fn new(region_bytes: usize, regions: Vec<Region>, buffers: Vec<IoBuffer>) -> Self {
        let buffer_bytes = buffers.first().map_or(0, |buffer| buffer.as_slice().len());
        Self {
            region_bytes,
            regions,
            open: None,
            sealing: VecDeque::new(),
            buffers,
            buffer_bytes,
            n_replaced: 0,
            writes: Vec::new(),
            requests: VecDeque::new(),
            next_region: 0,
            next_seq: 1,
            first_seq: 1,
            next_write: 0,
            n_lasting: 0,
            must_last: 0,
            now: MonoNs::ZERO,
            head: Vec::new(),
            n_written_bytes: 0,
        }
    }

    /// Regions with lower numbers are of another store.
    pub(crate) fn set_first_seq(&mut self, seq: u64) {
        self.first_seq = seq.max(1);
        self.next_seq = self.next_seq.max(self.first_seq);
    }

    /// See [`Log::set_first_seq`].
    pub(crate) const fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// The time of the call in progress, or of the last one.
    pub(crate) const fn now(&self) -> MonoNs {
        self.now
    }

    /// Sets the clock.
    pub(crate) fn set_now(&mut self, now: MonoNs) {
        self.now = self.now.max(now);
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub(crate) fn region(&self, region: u32) -> &Region {
        &self.regions[region as usize]
    }

    /// Bytes that the device has been given to write.
    pub(crate) const fn n_written_bytes(&self) -> u64 {
        self.n_written_bytes
    }

    /// Where the next record will be, or later.
    pub(crate) fn position(&self) -> Position {
        match &self.open {
            Some(open) => (open.seq, (open.at / STEP) as u32),
            None => (self.next_seq, 0),
        }
    }

    /// That of a record.
    pub(crate) fn position_of(&self, location: Location) -> Position {
        (self.region(location.region).seq, location.extent.at)
    }

    /// Whether what a region had at a position may be given out: it has not left the index
    /// since, nor been written over.
    pub(crate) fn holds(&self, region: u32, (seq, _): Position) -> bool {
        let region = self.region(region);
        region.seq == seq && matches!(region.state, RegionState::Held | RegionState::Open)
    }

    /// Bytes of the regions that are in service.
    pub(crate) fn alive_bytes(&self) -> u64 {
        let is_alive = |it: &&Region| it.state != RegionState::Lost;
        self.regions.iter().filter(is_alive).count() as u64 * self.region_bytes as u64
    }

    /// The region that is begun after the present one.
    pub(crate) const fn next_region(&self) -> u32 {
        self.next_region
    }

    /// Notes the writing of a region that was found.
    pub(crate) fn set_found(&mut self, region: u32, seq: u64) {
        self.regions[region as usize].seq = seq;
        if seq >= self.next_seq {
            self.next_seq = seq + 1;
            self.next_region = (region + 1) % self.regions.len() as u32;
        }
    }

    /// All regions have been looked through. Numbers of which nothing was found may have been
    /// used: the head of a region that was begun before a loss of power need not have outlived
    /// it, though records or the table of contents have. So as many are left out as there are
    /// regions, and some more by `seed`: after two losses of power, of which neither has left
    /// a head, the numbers are not the same. What is to be written next is of a volume in
    /// service, whichever was lost meanwhile.
    pub(crate) fn end_recovery(&mut self, seed: u64) {
        self.next_seq += self.regions.len() as u64 + seed % MAX_LEFT_OUT;
        self.skip_lost();
    }

    /// Nothing of a region is in the index.
    pub(crate) fn set_free(&mut self, region: u32) {
        let state = &mut self.regions[region as usize].state;
        if *state == RegionState::Held {
            *state = RegionState::Free;
        }
    }

    /// A volume is not to be used any more. How many Data were on their way to it.
    pub(crate) fn lose_volume(&mut self, volume: u8) -> usize {
        let mut n_lost = 0;
        let lasts = self.lasts();
        for region in self.regions.iter_mut().filter(|it| it.volume == volume) {
            if region.seq + 1 == self.next_seq && !lasts {
                // It may come back with what it held before.
                region.seq = 0;
            }
            region.state = RegionState::Lost;
        }
        let regions = &self.regions;
        let is_lost = |region: u32| regions[region as usize].volume == volume;
        if self.open.as_ref().is_some_and(|open| is_lost(open.region)) {
            let open = self.open.take();
            n_lost += open.as_ref().map_or(0, |open| open.n_chunks);
            self.buffers.extend(open.and_then(|open| open.buffer));
            // What was in that buffer is never written.
            self.must_last = self.must_last.min(self.next_write);
        }
        self.sealing.retain(|sealing| !is_lost(sealing.region));
        let (buffers, mut n_kept_by_device) = (&mut self.buffers, 0);
        self.writes.retain(|write| {
            let stays = write.volume != volume;
            if !stays {
                n_lost += write.n_chunks;
                n_kept_by_device += 1;
            }
            stays
        });
        self.requests.retain_mut(|request| {
            let stays = request.volume != volume;
            if !stays {
                buffers.extend(request.buffer.take());
                n_kept_by_device -= 1;
            }
            stays
        });
        // They may never come back.
        let replaced = IoBuffer::many(0..n_kept_by_device, self.buffer_bytes).unwrap_or_default();
        self.n_replaced += replaced.len();
        self.buffers.extend(replaced);
        self.skip_lost();
        n_lost
    }

    /// The oldest writing that a volume may hold, but for that of one region: what has left the
    /// index is there until it is written over, a volume that is lost may come back, and of some
    /// regions it is not known what they hold. Looks at all regions.
    pub(crate) fn oldest_but(&self, region: u32) -> Option<u64> {
        let others = (0..).zip(&self.regions).filter(|&(idx, _)| idx != region);
        others.map(|(_, it)| it.seq).min()
    }

    fn skip_lost(&mut self) {
        let n = self.regions.len() as u32;
        for _ in 0..n {
            if self.region(self.next_region).state != RegionState::Lost {
                return;
            }
            self.next_region = (self.next_region + 1) % n;
        }
    }

    /// Appends a record; where it is.
    ///
    /// # Errors
    /// If it cannot be written now; nothing has changed then, but that the region in hand may
    /// have been ended.
    pub(crate) fn append(
        &mut self,
        head: &RecordHead<'_>,
        payload: &[u8],
        mask: u16,
    ) -> Result<Location, NotYet> {
        let len = head.record_bytes();
        debug_assert!(len + IO_ALIGN < self.region_bytes / 2);
        if self
            .open
            .as_ref()
            .is_some_and(|open| !self.fits(open, head, len))
        {
            self.seal();
        } else {
            self.align(len);
        }
        if !self.go_on_sealing() {
            return Err(NotYet);
        }
        if self.open.is_none() {
            self.begin_region()?;
        }
        let Some(open) = &mut self.open else {
            return Err(NotYet);
        };
        let room = match &open.buffer {
            Some(_) => self.buffer_bytes - (open.at - open.buffer_start),
            None => 0,
        };
        if len.saturating_sub(room).div_ceil(self.buffer_bytes) > self.buffers.len() {
            return Err(NotYet);
        }
        open.last_record = open.at;
        let at = (open.at / STEP) as u32;
        let region = open.region;
        let extent = Extent {
            at,
            len_kib: len.div_ceil(1024) as u16,
            mask,
        };
        match head.kind {
            RecordKind::Batch => open.batches.push(TocEntry::Batch(head.key, extent)),
            RecordKind::Erasure => {
                let extent = to_extent((open.seq, at), head.chunks.first().copied());
                let erasures = head.prefixes.iter();
                open.batches
                    .extend(erasures.map(|&hash| TocEntry::Erasure(hash, extent)));
            }
        }
        if head.kind == RecordKind::Batch {
            let extent = Extent { mask: 0, ..extent };
            for &prefix in head.prefixes {
                note_last(&mut open.prefixes, prefix, extent);
            }
        }
        let mut bytes = std::mem::take(&mut self.head);
        head.encode((open.seq, at), payload, &mut bytes);
        let n_padding = len - bytes.len() - payload.len();
        self.put(&bytes);
        self.put(payload);
        self.put(&[0; STEP][..n_padding]);
        match head.kind {
            RecordKind::Batch => self.note_chunks(head.chunks.len()),
            // What it erases may be back when the region goes that had its last record.
            RecordKind::Erasure => self.make_last(),
        }
        self.head = bytes;
        Ok(Location { region, extent })
    }

    /// Whether the table of contents of the region in hand will have a prefix.
    pub(crate) fn has_noted(&self, prefix: u64) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.prefixes.contains_key(&prefix))
    }

    /// So many Data end with what was put last.
    fn note_chunks(&mut self, n_chunks: usize) {
        let open = self.open.as_mut();
        let last = self.writes.iter_mut().max_by_key(|write| write.id);
        match (open.filter(|open| open.buffer.is_some()), last) {
            (Some(open), _) => open.n_chunks += n_chunks,
            // The buffer has just become full.
            (None, Some(write)) => write.n_chunks += n_chunks,
            (None, None) => debug_assert!(false, "something was put"),
        }
    }

    /// Has a record of so many bytes begin at a multiple of [`IO_ALIGN`] if that costs little:
    /// its read then has no page in common with that of the record before it, and the block
    /// layer makes one of reads that follow each other.
    fn align(&mut self, len: usize) {
        let Some(open) = &self.open else { return };
        let n_padding = open.at.next_multiple_of(IO_ALIGN) - open.at;
        if n_padding * MIN_RECORD_BY_PADDING <= len {
            self.put(&[0; IO_ALIGN][..n_padding]);
        }
    }

    fn fits(&self, open: &OpenRegion, head: &RecordHead<'_>, len: usize) -> bool {
        let n_entries = open.n_toc_entries() + 1 + head.prefixes.len();
        let end = open.at.next_multiple_of(IO_ALIGN) + len.next_multiple_of(IO_ALIGN);
        end + toc_bytes(n_entries).next_multiple_of(IO_ALIGN) <= self.region_bytes
    }

    fn begin_region(&mut self) -> Result<(), NotYet> {
        let region = self.next_region;
        let is_free = self.region(region).state == RegionState::Free;
        // The only region may be the next one, too.
        let is_being_written = self.writes.iter().any(|write| write.region == region);
        if !is_free || is_being_written || !self.lasts() || self.buffers.is_empty() {
            return Err(NotYet);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        self.next_region = (region + 1) % self.regions.len() as u32;
        self.skip_lost();
        let of_region = &mut self.regions[region as usize];
        (of_region.seq, of_region.state) = (seq, RegionState::Open);
        self.open = Some(OpenRegion {
            region,
            seq,
            at: 0,
            buffer: None,
            buffer_start: 0,
            last_record: 0,
            first_in_buffer: 0,
            batches: Vec::new(),
            prefixes: HashMap::default(),
            n_chunks: 0,
        });
        self.put(&encode_region_head(seq));
        self.make_last();
        Ok(())
    }

    /// What has been put so far is to last before a region is ended or begun.
    fn make_last(&mut self) {
        let open = self.open.as_ref();
        let in_buffer = open.is_some_and(|open| open.buffer.is_some());
        self.must_last = self.next_write + u64::from(in_buffer);
    }

    fn lasts(&self) -> bool {
        self.n_lasting >= self.must_last
    }

    /// Writes with lower numbers have to last before the log goes on for long.
    pub(crate) const fn must_last(&self) -> u64 {
        self.must_last
    }

    /// Writes with lower numbers outlive a loss of power.
    pub(crate) const fn n_lasting(&self) -> u64 {
        self.n_lasting
    }

    /// Writes with lower numbers outlive a loss of power from now on.
    pub(crate) fn set_lasting(&mut self, before: u64) {
        self.n_lasting = self.n_lasting.max(before);
        self.go_on_sealing();
    }

    /// Puts bytes into buffers, of which there are enough.
    fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(open) = &mut self.open else { return };
            if open.buffer.is_none() {
                open.buffer = self.buffers.pop();
                (open.buffer_start, open.first_in_buffer) = (open.at, open.last_record);
            }
            let Some(buffer) = &mut open.buffer else {
                debug_assert!(false, "buffers were counted");
                return;
            };
            let filled = open.at - open.buffer_start;
            let n = bytes.len().min(self.buffer_bytes - filled);
            buffer.as_mut_slice()[filled..filled + n].copy_from_slice(&bytes[..n]);
            open.at += n;
            bytes = &bytes[n..];
            if filled + n == self.buffer_bytes {
                self.write_buffer();
            }
        }
    }

    /// Has what is in the buffer written, if there is anything; what comes next begins at a
    /// multiple of [`IO_ALIGN`].
    pub(crate) fn write_buffer(&mut self) {
        let Some(open) = &mut self.open else { return };
        let Some(mut buffer) = open.buffer.take() else {
            return;
        };
        let filled = open.at - open.buffer_start;
        let len = filled.next_multiple_of(IO_ALIGN);
        buffer.as_mut_slice()[filled..len].fill(0);
        let (region, start) = (open.region, open.buffer_start);
        open.at = start + len;
        let n_chunks = std::mem::take(&mut open.n_chunks);
        self.write(region, start..start + len, buffer, n_chunks);
    }

    fn write(
        &mut self,
        region: u32,
        range: std::ops::Range<usize>,
        buffer: IoBuffer,
        n_chunks: usize,
    ) {
        let (start, len) = (range.start, range.len());
        let id = self.next_write;
        self.next_write += 1;
        let volume = self.region(region).volume;
        self.writes.push(Write {
            id,
            volume,
            since: self.now,
            region,
            start,
            end: range.end,
            n_chunks,
        });
        let region = self.region(region);
        self.requests.push_back(Request {
            token: id,
            volume,
            op: Op::Write,
            offset: region.start + start as u64,
            len: len as u32,
            buffer: Some(buffer),
        });
        self.n_written_bytes += len as u64;
    }

    /// Ends the region in hand.
    pub(crate) fn seal(&mut self) {
        self.write_buffer();
        let Some(open) = self.open.take() else { return };
        let (mut toc, prefixes) = (open.batches, open.prefixes.into_iter());
        toc.extend(prefixes.map(|(hash, extent)| TocEntry::Prefix(hash, extent)));
        self.seal_with(open.region, open.seq, toc);
    }

    /// Ends a region that has such contents.
    pub(crate) fn seal_with(&mut self, region: u32, seq: u64, toc: Vec<TocEntry>) {
        let of_region = &mut self.regions[region as usize];
        if of_region.state == RegionState::Open {
            of_region.state = RegionState::Held;
        }
        let toc = TocEncoder::new(seq, toc, IO_ALIGN);
        self.sealing.push_back(Sealing { region, toc });
        self.go_on_sealing();
    }

    /// Has a part of a region's end written, as much as a buffer has room for, if it is time;
    /// whether all ends have been.
    pub(crate) fn go_on_sealing(&mut self) -> bool {
        if !self.sealing.is_empty() && !self.lasts() {
            return false;
        }
        let Some(sealing) = self.sealing.front_mut() else {
            return true;
        };
        let Some(mut buffer) = self.buffers.pop() else {
            return false;
        };
        let start = self.region_bytes - sealing.toc.n_left();
        let len = sealing.toc.encode(buffer.as_mut_slice());
        let region = sealing.region;
        if sealing.toc.n_left() == 0 {
            self.sealing.pop_front();
        }
        self.write(region, start..start + len, buffer, 0);
        self.sealing.is_empty()
    }

    /// The number of the write that begins next.
    pub(crate) const fn next_write(&self) -> u64 {
        self.next_write
    }

    /// All writes with lower numbers have ended.
    pub(crate) fn written_before(&self) -> u64 {
        let first = self.writes.iter().map(|it| it.id).min();
        first.unwrap_or(self.next_write)
    }

    /// When the oldest write that has not ended began, and on which volume.
    pub(crate) fn oldest_write(&self) -> Option<(MonoNs, u8)> {
        self.writes.iter().map(|it| (it.since, it.volume)).min()
    }

    /// The region that was written first of those that hold something.
    pub(crate) fn oldest_held(&self) -> Option<u32> {
        let regions = (0..).zip(&self.regions);
        let held = regions.filter(|(_, region)| region.state == RegionState::Held);
        held.min_by_key(|(_, region)| region.seq)
            .map(|(idx, _)| idx)
    }

    /// Takes back a request that the device could not take.
    pub(crate) fn give_back(&mut self, request: Request) {
        self.requests.push_front(request);
    }

    /// The next request for the device; its token is to be told to [`Log::handle_written`].
    pub(crate) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// A write has ended. Which it was, unless it was given up.
    pub(crate) fn handle_written(&mut self, id: u64, buffer: Option<IoBuffer>) -> Option<Written> {
        let Some(idx) = self.writes.iter().position(|write| write.id == id) else {
            match self.n_replaced.checked_sub(1) {
                Some(rest) => self.n_replaced = rest,
                None => self.buffers.extend(buffer),
            }
            return None;
        };
        self.buffers.extend(buffer);
        let write = self.writes.swap_remove(idx);
        self.go_on_sealing();
        Some(Written {
            volume: write.volume,
            n_bytes: write.end - write.start,
            n_chunks: write.n_chunks,
        })
    }

    /// Where a record is.
    pub(crate) fn whereabouts(&self, location: Location) -> Whereabouts<'_> {
        let start = location.extent.start_bytes();
        let end = start + location.extent.len_bytes();
        if let Some(open) = &self.open
            && open.region == location.region
            && let Some(buffer) = &open.buffer
            && start >= open.first_in_buffer
        {
            let at = start.checked_sub(open.buffer_start);
            let bytes = at.and_then(|at| buffer.as_slice().get(at..));
            return bytes.map_or(Whereabouts::Between, Whereabouts::Memory);
        }
        let overlaps = |write: &Write| {
            write.region == location.region && write.start < end && start < write.end
        };
        match self.writes.iter().any(overlaps) {
            true => Whereabouts::Between,
            false => Whereabouts::Device,
        }
    }

    /// Bytes that are read of a record, and where they begin in its region: from a multiple of
    /// [`IO_ALIGN`] to one.
    pub(crate) fn range_of(&self, location: Location) -> (usize, usize) {
        let start = location.extent.start_bytes();
        let end = start + location.extent.len_bytes();
        let start = start - start % IO_ALIGN;
        (start, end.next_multiple_of(IO_ALIGN).min(self.region_bytes))
    }
}

const _: () = assert!(REGION_HEAD_BYTES.is_multiple_of(STEP));
