//! The second level as its owner sees it.
//!
//! Owns index, log, batches in the making and reads under way, and makes no input or output:
//! [`SecondLevel::poll_request`] tells what a device is to do, and
//! [`SecondLevel::handle_completion`] takes what has become of it. Nothing waits, nothing
//! reads a clock.
//!
//! Whatever the devices hold, what comes back is a Data that was offered with this name, and
//! has not been erased since: a record is believed if its checksums are right, it belongs to
//! the present writing of its region and lies where it says, and a Data of it is used under the
//! name that it has.

use tachonym_memory::{IO_ALIGN, IoBuffer, MemoryError, Pages};
use tachonym_packet::types::component::IMPLICIT_SHA256_DIGEST;
use tachonym_packet::{DataView, InterestView, MonoNs, NameView};

use crate::admission::Gate;
use crate::ahead::Ahead;
use crate::assembly::Assembler;
use crate::config::{Config, Counters};
use crate::device::{Completion, Op, Request};
use crate::erasures::Erasures;
use crate::flush::{Flush, Ticket};
use crate::index::{Index, Location};
use crate::layout::{
    MAX_PREFIXES, REGIONS_START, Record, RecordHead, RecordKind, Superblock, max_record_bytes,
};
use crate::log::{Log, NotWritten, Region, RegionState, Whereabouts};
use crate::naming::{Names, parent};
use crate::reads::{Purpose, Reads, Sought, Waiter, is_read};
use crate::recalled::{Recalled, WallClock};
use crate::regions::Looks;

/// Most Data with a longer name than this are not kept: the first level does not either.
const MAX_COMPONENTS: usize = MAX_PREFIXES;

/// Where a Data is that answers an Interest, as far as the index can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the batches that are being put together.
    Open {
        /// By which the batch is found.
        key: u64,
        /// Where in it; `None`: wherever.
        place: Option<u8>,
    },
    /// In the log.
    Stored {
        /// By what it was found.
        sought: Sought,
        /// Where in the batch.
        place: Option<u8>,
        /// Where in the log.
        location: Location,
    },
}

/// What [`SecondLevel::recall`] did.
#[derive(Debug)]
pub enum Recall<'a> {
    /// The Data is here, and until when it is fresh; [`MonoNs::ZERO`] if it is not.
    Here(&'a [u8], MonoNs),
    /// It is being read; whoever waits will be told.
    Reading,
    /// No read is to be had now.
    Busy,
    /// It was there, and is not any more.
    Gone,
}

/// What became of a Data that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It will be written.
    Kept,
    /// It is here already.
    Known,
    /// The policy does not want it; it may if it is offered again.
    NotAdmitted,
    /// It cannot be kept.
    Refused,
}

/// What has happened that an operator wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A volume is out of service: the store goes on without it.
    VolumeLost {
        /// Its number.
        volume: u8,
        /// Why.
        why: VolumeFault,
    },
    /// All that was found on the volumes is in the index.
    Recovered {
        /// How many batches.
        n_batches: u64,
    },
    /// The index is full: what is oldest goes before its time.
    IndexFull,
}

/// Why a volume is out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeFault {
    /// Reads failed, one after another.
    Reading,
    /// A write failed.
    Writing,
    /// A request took too long.
    Stalled,
}

impl std::fmt::Display for VolumeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reading => "it cannot be read",
            Self::Writing => "it cannot be written",
            Self::Stalled => "it does not answer in time",
        })
    }
}

/// What is known of a volume.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Volume {
    pub(crate) is_lost: bool,
    /// Since the last that did not fail.
    pub(crate) n_read_errors: u32,
}

/// See the module.
#[derive(Debug)]
pub struct SecondLevel {
    pub(crate) config: Config,
    pub(crate) names: Names,
    pub(crate) index: Index,
    pub(crate) assembler: Assembler,
    pub(crate) log: Log,
    pub(crate) reads: Reads,
    pub(crate) looks: Looks,
    pub(crate) ahead: Ahead,
    pub(crate) gate: Gate,
    pub(crate) erasures: Erasures,
    pub(crate) flush: Flush,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) wall: WallClock,
    pub(crate) requests: std::collections::VecDeque<Request>,
    /// Reads of what is still on its way to the device.
    pub(crate) deferred: Vec<u64>,
    /// The first region that has not been looked through since the start; `None`: all have.
    pub(crate) next_to_recover: Option<u32>,
    /// Erased prefixes whose records are not in the log yet.
    pub(crate) unwritten_erasures: std::collections::VecDeque<u64>,
    /// Since when something waits for a full buffer.
    pub(crate) dirty_since: Option<MonoNs>,
    /// What is told to those who waited for reads that were given up.
    pub(crate) given_up: Vec<Recalled>,
    pub(crate) events: std::collections::VecDeque<Event>,
    pub(crate) counters: Counters,
    pub(crate) scratch: Vec<u8>,
}

/// How a store begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It has just been made: whatever lies on the volumes is not its own.
    New,
    /// What was written before is to be found again.
    Existing,
}

impl SecondLevel {
    /// A store on volumes with these superblocks, in the order of their numbers.
    ///
    /// # Errors
    /// If there is not as much memory as index and buffers take.
    ///
    /// # Panics
    /// If there is no volume, or they belong to different stores.
    pub fn new(
        config: Config,
        volumes: &[Superblock],
        beginning: Beginning,
    ) -> Result<Self, MemoryError> {
        let first = volumes.first().expect("a store has a volume");
        let is_same = |it: &Superblock| {
            (it.key, it.batch_len, it.region_bytes)
                == (first.key, first.batch_len, first.region_bytes)
        };
        assert!(volumes.iter().all(is_same), "volumes of one store");
        let config = Config {
            batch_len: first.batch_len.into(),
            max_reads: config.max_reads.max(4),
            n_write_buffers: config.n_write_buffers.max(2),
            ..config
        };
        let region_bytes = first.region_bytes as usize;
        let names = Names::new(first.key, config.batch_len);
        let read_bytes = read_bytes(config.batch_len);
        let n_reads = config.max_reads.min(usize::from(u16::MAX / 2));
        let buffer = |number: usize, bytes| IoBuffer::new(bytes, number as u16);
        let read_buffers: Result<_, _> = (0..n_reads).map(|it| buffer(it, read_bytes)).collect();
        let write_buffers: Result<_, _> = (0..config.n_write_buffers)
            .map(|it| {
                buffer(
                    n_reads + it,
                    config.write_buffer_bytes.min(region_bytes / 2),
                )
            })
            .collect();
        let state = match beginning {
            Beginning::New => RegionState::Free,
            Beginning::Existing => RegionState::Held,
        };
        let mut log = Log::new(region_bytes, ring(volumes, state), write_buffers?);
        log.set_first_seq(first.first_seq);
        Ok(Self {
            index: Index::new(config.max_batches, config.pages)?,
            assembler: Assembler::new(names.clone(), config.assembly_bytes, config.assembly_ms),
            log,
            reads: Reads::new(read_buffers?),
            looks: Looks::new(names.clone(), region_bytes, read_bytes),
            ahead: Ahead::new(config.max_ahead),
            gate: Gate::new(config.admission, config.pages)?,
            erasures: Erasures::default(),
            flush: Flush::default(),
            volumes: vec![Volume::default(); volumes.len()],
            wall: WallClock::default(),
            requests: Default::default(),
            deferred: Vec::new(),
            next_to_recover: (beginning == Beginning::Existing).then_some(0),
            unwritten_erasures: Default::default(),
            dirty_since: None,
            given_up: Vec::new(),
            events: Default::default(),
            counters: Counters::default(),
            scratch: Vec::new(),
            names,
            config,
        })
    }

    /// The buffers that requests come with, for a device that wants to know them before. To be
    /// called before the first request.
    pub fn buffers_mut(&mut self) -> impl Iterator<Item = &mut IoBuffer> {
        self.reads.buffers_mut().chain(self.log.buffers_mut())
    }

    /// Sets the difference between the two clocks: `unix_ms` is what Unix time was at `now`, in
    /// milliseconds. Freshness outlives a restart by it.
    pub const fn set_wall_clock(&mut self, now: MonoNs, unix_ms: u64) {
        self.wall = WallClock::at(now, unix_ms);
    }

    /// Where a Data may be that answers an Interest.
    pub fn find(&mut self, interest: &InterestView<'_>, name_hash: u64) -> Option<Place> {
        self.counters.n_lookups += 1;
        self.gate.note_request(name_hash);
        let name = interest.name();
        if name.is_empty() || name.len() > MAX_COMPONENTS + 1 {
            return None;
        }
        let is_digest = |name: NameView<'_>| {
            name.last()
                .is_some_and(|last| last.typ() == IMPLICIT_SHA256_DIGEST)
        };
        let exact = self.find_named(name);
        let exact = exact.or_else(|| is_digest(name).then(|| self.find_named(parent(name)))?);
        exact.or_else(|| interest.can_be_prefix().then(|| self.find_below(name))?)
    }

    fn find_named(&self, name: NameView<'_>) -> Option<Place> {
        let part = self.names.part_of(name);
        let (key, place) = (part.key, part.place);
        let open = self.assembler.find(key);
        if open.is_some_and(|batch| batch.find(place).is_some()) {
            let place = Some(place);
            return Some(Place::Open { key, place });
        }
        Some(Place::Stored {
            sought: Sought::Batch(key),
            place: Some(place),
            location: self.find_stored(key, self.names.mask_bit(place))?,
        })
    }

    /// The last record that seems to have a chunk of a batch.
    fn find_stored(&self, key: u64, bit: u16) -> Option<Location> {
        let found = self.index.find(key);
        let has_it = found.filter(|it| it.extent.mask & bit != 0 && self.is_in_service(*it));
        has_it.max_by_key(|it| self.log.position_of(*it))
    }

    fn find_below(&self, prefix: NameView<'_>) -> Option<Place> {
        let hash = self.names.prefix(prefix);
        if let Some(batch) = self.assembler.find_below(hash) {
            let (key, place) = (batch.key(), None);
            return Some(Place::Open { key, place });
        }
        let found = self.index.find(hash);
        let prefixes = found.filter(|it| it.extent.mask == 0 && self.is_in_service(*it));
        Some(Place::Stored {
            sought: Sought::Below(hash),
            place: None,
            location: prefixes.max_by_key(|it| self.log.position_of(*it))?,
        })
    }

    fn is_in_service(&self, location: Location) -> bool {
        self.log.region(location.region).state != RegionState::Lost
    }

    /// Gets what [`SecondLevel::find`] has just found; `waiter` waits for it if it must be read.
    pub fn recall(&mut self, now: MonoNs, place: Place, waiter: Waiter) -> Recall<'_> {
        let (sought, place, location) = match place {
            Place::Open { key, place } => {
                let batch = self.assembler.find(key);
                let found = batch.and_then(|batch| match place {
                    Some(place) => batch.find(place),
                    None => batch.chunks().next(),
                });
                let Some((chunk, wire)) = found else {
                    return Recall::Gone;
                };
                self.counters.n_found_in_memory += 1;
                return Recall::Here(wire, self.wall.fresh_until(now, chunk.fresh_until_ms));
            }
            Place::Stored {
                sought,
                place,
                location,
            } => (sought, place, location),
        };
        if let Some(read) = self.reads.of_place(location) {
            read.waiters.push(waiter);
            self.counters.n_joined += 1;
            return Recall::Reading;
        }
        if matches!(self.log.whereabouts(location), Whereabouts::Memory(_)) {
            self.counters.n_found_in_memory += 1;
            return self.recall_unwritten(now, place, location);
        }
        match self.begin_read(now, sought, location, false) {
            Some(token) => {
                self.counters.n_reads += 1;
                if let Some(read) = self.reads.get_mut(token) {
                    read.waiters.push(waiter);
                }
                Recall::Reading
            }
            None => {
                self.counters.n_busy += 1;
                Recall::Busy
            }
        }
    }

    /// Gets a Data of a record that waits to be written.
    fn recall_unwritten(&self, now: MonoNs, place: Option<u8>, location: Location) -> Recall<'_> {
        let Whereabouts::Memory(bytes) = self.log.whereabouts(location) else {
            return Recall::Gone;
        };
        let position = self.log.position_of(location);
        let record = Record::parse_head(bytes, position);
        let record = record.ok().filter(|it| !self.is_erased(it, position));
        let mut chunks = record.into_iter().flat_map(|record| record.chunks());
        let found = chunks.find(|(chunk, _)| place.is_none_or(|place| place == chunk.place));
        match found {
            Some((chunk, wire)) if !self.is_erased_alone(wire, position) => {
                Recall::Here(wire, self.wall.fresh_until(now, chunk.fresh_until_ms))
            }
            _ => Recall::Gone,
        }
    }

    /// Reads a batch; the token, or `None` if there is no buffer.
    fn begin_read(
        &mut self,
        now: MonoNs,
        sought: Sought,
        location: Location,
        is_ahead: bool,
    ) -> Option<u64> {
        if self.reads.n_free_buffers() <= self.deferred.len() {
            return None;
        }
        let purpose = Purpose::Batch {
            sought,
            location,
            is_ahead,
        };
        let volume = self.log.region(location.region).volume;
        let token = self.reads.begin(purpose, volume, now);
        match self.log.whereabouts(location) {
            Whereabouts::Device => self.request_batch(token, location),
            // The part that waits for a full buffer shall not wait longer.
            _ => {
                self.log.write_buffer();
                self.deferred.push(token);
            }
        }
        Some(token)
    }

    fn request_batch(&mut self, token: u64, location: Location) {
        let (start, end) = self.log.range_of(location);
        self.request_read(token, location.region, (start, end - start));
    }

    pub(crate) fn request_read(&mut self, token: u64, region: u32, range: (usize, usize)) {
        let (start, len) = range;
        let region = self.log.region(region);
        let buffer = self.reads.take_buffer();
        debug_assert!(buffer.is_some(), "buffers were counted");
        self.requests.push_back(Request {
            token,
            volume: region.volume,
            op: Op::Read,
            offset: region.start + start as u64,
            len: len as u32,
            buffer,
        });
    }

    /// Sets deferred reads to work whose batches have been written meanwhile.
    pub(crate) fn go_on_with_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.retain(|&token| {
            let Some(read) = self.reads.get(token) else {
                return false;
            };
            let Purpose::Batch { location, .. } = read.purpose else {
                return false;
            };
            let is_there = matches!(self.log.whereabouts(location), Whereabouts::Device);
            if is_there {
                self.request_batch(token, location);
            }
            !is_there
        });
        self.deferred = deferred;
    }

    /// Whether a record was erased; what names in it are called is looked at elsewhere.
    pub(crate) fn is_erased(&self, record: &Record<'_>, position: (u64, u32)) -> bool {
        !self.erasures.is_empty()
            && (self.erasures.includes_all(position)
                || record
                    .prefixes()
                    .any(|it| self.erasures.includes(it, position)))
    }

    /// Whether a Data was erased by its own name.
    pub(crate) fn is_erased_alone(&self, wire: &[u8], position: (u64, u32)) -> bool {
        if self.erasures.is_empty() {
            return false;
        }
        let name = DataView::parse(wire).map(|data| self.names.prefix(data.name()));
        name.is_ok_and(|hash| self.erasures.includes(hash, position))
    }

    /// Takes a copy of a Data that the first level has got from elsewhere, if it earns its
    /// write. `name_hash` is any hash of its name, always by the same key. `is_other` tells
    /// that it differs from what had its name before.
    pub fn offer(
        &mut self,
        now: MonoNs,
        data: &DataView<'_>,
        name_hash: u64,
        is_other: bool,
    ) -> Offered {
        self.counters.n_offered += 1;
        let name = data.name();
        if name.is_empty() || name.len() > MAX_COMPONENTS || !self.is_in_use() {
            self.counters.n_unsuited += 1;
            return Offered::Refused;
        }
        let part = self.names.part_of(name);
        let bit = self.names.mask_bit(part.place);
        let is_open = self
            .assembler
            .find(part.key)
            .is_some_and(|it| it.find(part.place).is_some());
        if !is_other && (is_open || self.find_stored(part.key, bit).is_some()) {
            self.counters.n_known += 1;
            return Offered::Known;
        }
        if !self.gate.admits(name_hash) {
            self.counters.n_not_admitted += 1;
            return Offered::NotAdmitted;
        }
        if self.assembler.is_full() {
            self.write_closed(now);
        }
        if self.assembler.is_full() {
            self.counters.n_no_room += 1;
            return Offered::Refused;
        }
        let fresh_until_ms = match data.freshness_period_ms() {
            0 => 0,
            period_ms => self.wall.unix_ms(now).saturating_add(period_ms),
        };
        self.assembler.add(now, &part, data, fresh_until_ms);
        self.write_closed(now);
        Offered::Kept
    }

    /// Whether a Data that was not admitted may be later.
    #[must_use]
    pub const fn admission_learns(&self) -> bool {
        self.gate.learns()
    }

    /// A Data was asked for that the first level has and this one did not admit.
    pub fn note_request(&mut self, name_hash: u64) {
        self.gate.note_request(name_hash);
    }

    /// Appends batches that are closed to the log, as many as it takes.
    pub(crate) fn write_closed(&mut self, now: MonoNs) {
        self.log.set_now(now);
        self.write_erasures();
        while let Some(batch) = self.assembler.next_closed() {
            let (head, mask) = (batch.head(), batch.mask(&self.names));
            let (key, n_chunks) = (batch.key(), batch.n_chunks() as u64);
            if n_chunks > 0 {
                match self.log.append(&head, batch.payload(), mask) {
                    Ok(location) => {
                        let n_bytes = batch.payload().len() as u64;
                        self.counters.n_written += n_chunks;
                        self.counters.n_written_data_bytes += n_bytes;
                        let prefixes = head.prefixes;
                        let is_in =
                            note_written(&mut self.index, &self.log, key, location, prefixes);
                        self.counters.n_not_indexed += u64::from(!is_in);
                        self.dirty_since.get_or_insert(now);
                    }
                    Err(NotWritten::NoBuffer | NotWritten::NoRegion) => break,
                }
            }
            self.assembler.drop_closed();
            self.flush.note_appended();
        }
        self.make_room(now);
    }

    /// Whether there is a volume in service.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.volumes.iter().any(|volume| !volume.is_lost)
    }

    /// Volumes that are out of service.
    #[must_use]
    pub fn n_lost_volumes(&self) -> usize {
        self.volumes.iter().filter(|volume| volume.is_lost).count()
    }

    /// Whether what was written before the start is still being looked for.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.next_to_recover.is_some()
    }

    /// The next request for the device.
    pub fn poll_request(&mut self) -> Option<Request> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        self.log.poll_request()
    }

    /// Takes back a request that the device could not take; it comes next again.
    pub fn give_back(&mut self, request: Request) {
        self.requests.push_front(request);
    }

    /// Takes what has become of a request. A batch that was read comes out, to be put into the
    /// first level and [recycled](SecondLevel::recycle).
    pub fn handle_completion(&mut self, now: MonoNs, completion: Completion) -> Option<Recalled> {
        let recalled = match is_read(completion.token) {
            true => self.handle_read(now, completion),
            false => {
                self.handle_written(completion);
                None
            }
        };
        self.go_on(now);
        recalled
    }

    /// Takes the memory of a batch that has been dealt with.
    pub fn recycle(&mut self, recalled: Recalled) {
        let (buffer, waiters) = recalled.into_parts();
        self.reads.give_buffer(buffer);
        self.reads.recycle(waiters);
    }

    /// What waits for a read that was given up, to be dealt with like a batch that was read.
    pub fn poll_given_up(&mut self) -> Option<Recalled> {
        self.given_up.pop()
    }

    /// Does what has become due.
    pub fn handle_timeout(&mut self, now: MonoNs) {
        self.assembler.handle_timeout(now);
        self.give_up_stalled(now);
        self.write_closed(now);
        let is_due = |since: MonoNs| since.plus_ms(self.config.write_delay_ms) <= now;
        if self.dirty_since.is_some_and(is_due) {
            self.log.write_buffer();
            self.dirty_since = None;
        }
        self.go_on(now);
    }

    /// When [`SecondLevel::handle_timeout`] next has work.
    pub fn poll_timeout(&mut self) -> Option<MonoNs> {
        let dirty = self
            .dirty_since
            .map(|it| it.plus_ms(self.config.write_delay_ms));
        let stall = self
            .oldest_request()
            .map(|it| it.plus_ms(self.config.stall_ms));
        let timers = [self.assembler.poll_timeout(), dirty, stall];
        timers.into_iter().flatten().min()
    }

    /// Goes on with whatever a completion may have made possible.
    pub(crate) fn go_on(&mut self, now: MonoNs) {
        self.go_on_recovering(now);
        self.write_closed(now);
        self.go_on_with_deferred();
        self.go_on_flushing(now);
    }

    /// Begins to write all that was offered so far. [`SecondLevel::poll_flushed`] tells when it
    /// will survive a loss of power.
    pub fn flush(&mut self, now: MonoNs) -> Ticket {
        self.assembler.close_all();
        let ticket = self.flush.begin(self.assembler.n_closed());
        self.go_on(now);
        ticket
    }

    /// The last flush that has ended.
    #[must_use]
    pub const fn poll_flushed(&self) -> Ticket {
        self.flush.done()
    }

    /// Erases all Data whose names begin with `prefix`, which includes one of this name. They
    /// are not given out any more; how many were not written yet is told. A later
    /// [flush](SecondLevel::flush) makes it last.
    pub fn erase(&mut self, now: MonoNs, prefix: NameView<'_>) -> usize {
        let n_erased = self.assembler.erase(|data| data.name().starts_with(prefix));
        self.counters.n_erased += n_erased as u64;
        self.counters.n_erased_prefixes += 1;
        let hash = self.names.prefix(prefix);
        // What is appended from now on is not older.
        let position = self.log.position();
        match prefix.is_empty() {
            true => self.erasures.add_all(position),
            false => self.erasures.add(hash, position),
        }
        let below: Vec<Location> = self
            .index
            .find(hash)
            .filter(|it| it.extent.mask == 0)
            .collect();
        for location in below {
            self.index.remove(hash, location);
        }
        self.unwritten_erasures.push_back(hash);
        self.write_closed(now);
        n_erased
    }

    fn write_erasures(&mut self) {
        while let Some(&hash) = self.unwritten_erasures.front() {
            let head = RecordHead {
                kind: RecordKind::Erasure,
                key: hash,
                prefixes: &[hash],
                chunks: &[],
            };
            if self.log.append(&head, &[], 0).is_err() {
                return;
            }
            self.unwritten_erasures.pop_front();
        }
    }

    /// An Interest for the last chunk but one of a batch was answered: reads what comes next
    /// of this object, unless `is_at_hand` tells that the first level has it, by the name of a
    /// batch's first chunk.
    pub fn read_ahead(
        &mut self,
        now: MonoNs,
        name: NameView<'_>,
        mut is_at_hand: impl FnMut(NameView<'_>) -> bool,
    ) {
        let Some(chunk) = self.names.part_of(name).chunk else {
            return;
        };
        let batch_len = self.names.batch_len();
        let object = parent(name);
        let object_hash = self.names.prefix(object);
        let batches = self.ahead.plan(now, object_hash, chunk.number / batch_len);
        let mut first = std::mem::take(&mut self.scratch);
        for batch in batches {
            // What is asked for comes before what may be.
            if self.reads.n_ahead() >= self.reads.n_buffers() / 2 {
                break;
            }
            let Some(number) = batch.checked_mul(batch_len) else {
                break;
            };
            let key = self.names.batch_key(object, chunk.typ, batch);
            let Some(location) = self.find_stored(key, u16::MAX) else {
                continue;
            };
            crate::naming::write_chunk_name(object, chunk.typ, number, &mut first);
            let is_at_hand = NameView::parse_value(&first).is_ok_and(&mut is_at_hand);
            let is_here = !matches!(self.log.whereabouts(location), Whereabouts::Device);
            if is_at_hand || is_here || self.reads.of_place(location).is_some() {
                continue;
            }
            if self
                .begin_read(now, Sought::Batch(key), location, true)
                .is_some()
            {
                self.counters.n_reads_ahead += 1;
            }
        }
        self.scratch = first;
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            n_written_bytes: self.log.n_written_bytes(),
            ..self.counters
        }
    }

    /// Entries of the index: batches and prefixes; and how many there may be.
    #[must_use]
    pub const fn index_len(&self) -> (usize, usize) {
        (self.index.len(), self.index.max_len())
    }

    /// What pages the index is on.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.index.pages()
    }

    /// What it was made with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

/// Bytes of a buffer for reads: a record wherever it begins, and enough of a table of contents.
fn read_bytes(batch_len: usize) -> usize {
    (max_record_bytes(batch_len) + 1024)
        .next_multiple_of(IO_ALIGN)
        .max(64 << 10)
        + IO_ALIGN
}

/// Regions of all volumes, those of different ones in turn.
fn ring(volumes: &[Superblock], state: RegionState) -> Vec<Region> {
    let most = volumes
        .iter()
        .map(|it| it.n_regions)
        .max()
        .unwrap_or_default();
    let rounds =
        (0..most).flat_map(|number| volumes.iter().enumerate().map(move |it| (number, it)));
    let existing = rounds.filter(|(number, (_, volume))| *number < volume.n_regions);
    let region = |(number, (idx, volume)): (u32, (usize, &Superblock))| Region {
        volume: idx as u8,
        start: REGIONS_START + u64::from(number) * u64::from(volume.region_bytes),
        seq: 0,
        state,
    };
    existing.map(region).collect()
}

/// Puts a record into the index. Whether there was room for it.
pub(crate) fn note_written(
    index: &mut Index,
    log: &Log,
    key: u64,
    location: Location,
    prefixes: &[u64],
) -> bool {
    let is_in = index.insert(key, location);
    for &prefix in prefixes {
        note_prefix(index, log, prefix, location);
    }
    is_in
}

/// Notes a record as the last one below a prefix, unless there is a later one.
pub(crate) fn note_prefix(index: &mut Index, log: &Log, prefix: u64, location: Location) {
    let extent = crate::layout::Extent {
        mask: 0,
        ..location.extent
    };
    let location = Location { extent, ..location };
    let before = index.find(prefix).find(|it| it.extent.mask == 0);
    match before {
        Some(before) if log.position_of(before) < log.position_of(location) => {
            index.replace(prefix, before, location);
        }
        Some(_) => {}
        // Without it, Data are not found by this prefix, but by their names.
        None => {
            let _ = index.insert(prefix, location);
        }
    }
}
