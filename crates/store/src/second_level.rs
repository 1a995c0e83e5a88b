//! The second level as its owner sees it.
//!
//! Owns index, log, batches in the making and reads under way, and makes no input or output:
//! [`SecondLevel::poll_request`] tells what a device is to do, and
//! [`SecondLevel::handle_completion`] takes what has become of it. Nothing waits, nothing
//! reads a clock.
//!
//! Whatever the devices hold, what comes back is a Data that was offered with this name, and
//! has not been erased since, as far as records of erasures can be read. A record is believed
//! if its checksums are right, it belongs to the present writing of its region and lies where
//! it says, and a Data of it is used under the name that it has.

use std::collections::VecDeque;

use tachonym_memory::{IO_ALIGN, IoBuffer, MemoryError, Pages};
use tachonym_packet::{MonoNs, NameView};

use crate::admission::Gate;
use crate::ahead::Ahead;
use crate::assembly::Assembler;
use crate::config::{Config, Counters};
use crate::device::{Completion, Request};
use crate::erasures::Erasures;
use crate::flush::{Flush, Syncing, Ticket};
use crate::index::Index;
use crate::layout::{
    MAX_BATCH_LEN, MAX_PREFIXES, Position, REGIONS_START, Superblock, max_record_bytes,
};
use crate::log::{Log, Region, RegionState};
use crate::naming::Names;
use crate::reads::{Reads, is_read};
use crate::recalled::{Recalled, WallClock};
use crate::regions::{Looks, Taking};

/// Data with a longer name than this are not kept.
pub(crate) const MAX_COMPONENTS: usize = MAX_PREFIXES;

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
    /// More prefixes were erased than are kept: everything that was written before is erased.
    /// It is not told again within a minute; the counters have all.
    ErasuresMerged {
        /// How many are kept.
        max_prefixes: usize,
    },
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
            Self::Reading => "reads fail",
            Self::Writing => "a write failed",
            Self::Stalled => "a request timed out",
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
    /// Regions that have been looked through.
    pub(crate) takings: VecDeque<Taking>,
    pub(crate) ahead: Ahead,
    pub(crate) gate: Gate,
    pub(crate) erasures: Erasures,
    pub(crate) flush: Flush,
    pub(crate) syncing: Option<Syncing>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) wall: WallClock,
    started_at: Option<MonoNs>,
    pub(crate) requests: VecDeque<Request>,
    /// Reads of what is still on its way to the device.
    pub(crate) deferred: Vec<u64>,
    /// The first region that has not been looked through since the start; `None`: all have.
    pub(crate) next_to_recover: Option<u32>,
    /// Prefixes that were erased while regions were looked through.
    pub(crate) erased_meanwhile: Vec<u64>,
    /// Erased prefixes whose records are not in the log yet, and before what is erased.
    pub(crate) unwritten_erasures: VecDeque<(u64, Position)>,
    /// When it was last told that erasures were merged.
    pub(crate) merging_told_at: Option<MonoNs>,
    /// Since when something waits for a full buffer.
    pub(crate) dirty_since: Option<MonoNs>,
    /// When it was last asked whether anything is due.
    asked_at: MonoNs,
    /// What a device was asked for earlier counts as asked then: nobody was there to take what
    /// had ended before.
    pub(crate) woken_at: MonoNs,
    /// What is told to those who waited for reads that were given up.
    pub(crate) given_up: Vec<Recalled>,
    pub(crate) events: VecDeque<Event>,
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
    /// The buffers that its requests will come with: a device that is told of them before has
    /// less to do.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub fn buffers(config: &Config, superblock: &Superblock) -> Result<Vec<IoBuffer>, MemoryError> {
        let (n_reads, n_writes) = n_buffers(config);
        let batch_len = superblock.batch_len.into();
        let read_bytes = read_bytes(batch_len);
        // All of them together hold a record after the head of a region.
        let least_bytes = (max_record_bytes(batch_len) + IO_ALIGN).div_ceil(n_writes.into());
        let most_bytes = superblock.region_bytes as usize / 2;
        let write_bytes = config.write_buffer_bytes.max(least_bytes).min(most_bytes);
        let write_bytes = write_bytes.next_multiple_of(IO_ALIGN);
        let mut buffers = IoBuffer::many(0..n_reads, read_bytes)?;
        buffers.extend(IoBuffer::many(n_reads..n_reads + n_writes, write_bytes)?);
        Ok(buffers)
    }

    /// A store on volumes with these superblocks, in the order of their numbers.
    ///
    /// # Errors
    /// If there is not as much memory as index and buffers take.
    ///
    /// # Panics
    /// If there is no volume, they belong to different stores, or batches are longer than
    /// [`MAX_BATCH_LEN`].
    pub fn new(
        config: Config,
        volumes: &[Superblock],
        beginning: Beginning,
    ) -> Result<Self, MemoryError> {
        let first = volumes.first().expect("a store has a volume");
        let buffers = Self::buffers(&config, first)?;
        Self::with_buffers(config, volumes, beginning, buffers)
    }

    /// As [`SecondLevel::new`], with the [buffers](SecondLevel::buffers) for it.
    ///
    /// # Errors
    /// If there is not as much memory as the index takes.
    ///
    /// # Panics
    /// As [`SecondLevel::new`], and if there are fewer buffers.
    pub fn with_buffers(
        config: Config,
        volumes: &[Superblock],
        beginning: Beginning,
        mut buffers: Vec<IoBuffer>,
    ) -> Result<Self, MemoryError> {
        let first = volumes.first().expect("a store has a volume");
        let is_same = |it: &Superblock| {
            (it.key, it.batch_len, it.region_bytes)
                == (first.key, first.batch_len, first.region_bytes)
        };
        assert!(volumes.iter().all(is_same), "volumes of one store");
        assert!(
            (1..=MAX_BATCH_LEN).contains(&usize::from(first.batch_len)),
            "batches of 1 to {MAX_BATCH_LEN} chunks"
        );
        let config = Config {
            batch_len: first.batch_len.into(),
            ..config
        };
        let region_bytes = first.region_bytes as usize;
        let names = Names::new(first.key, config.batch_len);
        let (n_reads, _) = n_buffers(&config);
        let write_buffers = buffers.split_off(n_reads.into());
        let state = match beginning {
            Beginning::New => RegionState::Free,
            Beginning::Existing => RegionState::Held,
        };
        let n_regions: u64 = volumes.iter().map(|it| u64::from(it.n_regions)).sum();
        let store_bytes = n_regions * u64::from(first.region_bytes);
        let mut log = Log::new(region_bytes, ring(volumes, state), write_buffers);
        log.set_first_seq(first.first_seq);
        Ok(Self {
            index: Index::new(config.max_batches, config.pages)?,
            assembler: Assembler::new(names.clone(), config.assembly_bytes, config.assembly_ms),
            log,
            reads: Reads::new(buffers),
            looks: Looks::new(config.batch_len, region_bytes, read_bytes(config.batch_len)),
            takings: VecDeque::new(),
            ahead: Ahead::new(config.max_ahead),
            gate: Gate::new(config.admission, config.pages)?,
            erasures: Erasures::new(names.prefix(NameView::default()), store_bytes),
            flush: Flush::default(),
            syncing: None,
            volumes: vec![Volume::default(); volumes.len()],
            wall: WallClock::default(),
            started_at: None,
            requests: VecDeque::new(),
            deferred: Vec::new(),
            next_to_recover: (beginning == Beginning::Existing).then_some(0),
            erased_meanwhile: Vec::new(),
            unwritten_erasures: VecDeque::new(),
            merging_told_at: None,
            dirty_since: None,
            asked_at: MonoNs::ZERO,
            woken_at: MonoNs::ZERO,
            given_up: Vec::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            scratch: Vec::new(),
            names,
            config,
        })
    }

    /// Sets the difference between the two clocks: `unix_ms` is what Unix time was at `now`, in
    /// milliseconds. Freshness outlives a restart by it.
    pub fn set_wall_clock(&mut self, now: MonoNs, unix_ms: u64) {
        self.wall = WallClock::at(now, unix_ms);
        self.started_at.get_or_insert(now);
    }

    /// When it first heard of the time; zero before.
    #[must_use]
    pub fn started_at(&self) -> MonoNs {
        self.started_at.unwrap_or_default()
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

    /// Whether what was written before the start is still being looked for. Until it is known
    /// what of it has been erased, none of it is found, and nothing is written.
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

    /// Takes back a request that the device could not take; it comes again.
    pub fn give_back(&mut self, request: Request) {
        match is_read(request.token) {
            true => self.requests.push_front(request),
            false => self.log.give_back(request),
        }
    }

    /// Takes what has become of a request. A batch that was read comes out, to be put into the
    /// first level and [recycled](SecondLevel::recycle).
    pub fn handle_completion(&mut self, now: MonoNs, completion: Completion) -> Option<Recalled> {
        self.log.set_now(now);
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
        let (buffer, wishes) = recalled.into_parts();
        self.reads.give_buffer(buffer);
        self.reads.recycle(wishes);
        // It may have waited for a buffer, and nothing else may be under way.
        self.make_room(self.log.now());
    }

    /// What waits for a read that was given up, to be dealt with like a batch that was read.
    pub fn poll_given_up(&mut self) -> Option<Recalled> {
        self.given_up.pop()
    }

    /// Does what has become due.
    pub fn handle_timeout(&mut self, now: MonoNs) {
        self.log.set_now(now);
        self.assembler.handle_timeout(now);
        // The process, or the machine, has stood still: it was to be asked twice meanwhile.
        if self.asked_at.plus_ms(self.config.stall_ms / 2) < now {
            self.woken_at = now;
        }
        self.asked_at = now;
        self.give_up_stalled(now);
        self.go_on_taking();
        self.write_closed(now);
        let is_due = |since: MonoNs| since.plus_ms(self.config.write_delay_ms) <= now;
        if self.dirty_since.is_some_and(is_due) {
            self.log.write_buffer();
            self.dirty_since = None;
        }
        self.go_on(now);
    }

    /// When [`SecondLevel::handle_timeout`] next has work.
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let dirty = self
            .dirty_since
            .map(|it| it.plus_ms(self.config.write_delay_ms));
        // Often enough to tell a device that stalls from a process that has stood still.
        let stall = self.has_requests();
        let stall = stall.then(|| self.asked_at.plus_ms(self.config.stall_ms / 4));
        let can_look = self.is_recovering() && self.looks.len() == 0 && self.has_buffer();
        let is_at_once = can_look || !self.takings.is_empty() || !self.given_up.is_empty();
        let at_once = is_at_once.then_some(MonoNs::ZERO);
        let timers = [self.assembler.poll_timeout(), dirty, stall, at_once];
        timers.into_iter().flatten().min()
    }

    /// Goes on with whatever a completion may have made possible.
    pub(crate) fn go_on(&mut self, now: MonoNs) {
        self.go_on_recovering(now);
        self.write_closed(now);
        self.go_on_with_deferred();
        self.go_on_flushing(now);
    }

    /// Begins to write all that was offered and erased so far, and is not lost already with a
    /// volume that has failed. [`SecondLevel::poll_flushed`]
    /// tells when that has ended, and [`SecondLevel::poll_flush_failed`] whether it survives a
    /// loss of power then.
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

    /// The last flush during which a volume failed, or for which there was none, so that not all
    /// that it was to write will survive; zero if there was no such.
    #[must_use]
    pub const fn poll_flush_failed(&self) -> Ticket {
        self.flush.failed()
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

    /// Data that were taken and wait where batches are put together.
    #[must_use]
    pub fn n_waiting(&self) -> usize {
        self.assembler.n_data()
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

/// Buffers for reads, and for writes.
fn n_buffers(config: &Config) -> (u16, u16) {
    let bounded = |n: usize, least: usize| n.clamp(least, usize::from(u16::MAX / 2)) as u16;
    (
        bounded(config.max_reads, 4),
        bounded(config.n_write_buffers, 2),
    )
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
