//! Completions of devices, regions that are read at start, and volumes that fail.
//!
//! A failed or short write, eight failed reads in a row, or a request that takes longer than
//! `stall_ms` takes a volume out of service; the others continue. Writes on their way to it
//! count as lost. A flush under way, or queued behind it, reports the failure. If the remaining
//! volumes have no room for all erasures, everything is erased. A volume that does not answer
//! may hold three quarters of the read buffers; when it is taken out of service they are
//! replaced.

use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;

use crate::device::{Completion, Op, Request};
use crate::erasures::Added;
use crate::flush::{Stage, Syncing};
use crate::index::Location;
use crate::layout::{Record, RecordError};
use crate::log::RegionState;
use crate::naming::mask_bit;
use crate::reads::{MAX_WAITERS_PER_READ, Purpose, Read, Sought, Wish};
use crate::recalled::Recalled;
use crate::regions::Next;
use crate::second_level::{Event, SecondLevel, VolumeFault};

/// So many times as long as another request a sync may take: without direct access to a file
/// all that was written before waits for it.
const SYNC_PATIENCE: u64 = 6;

/// How full the index is, in percent, when what is oldest goes early.
const CROWDED_PCT: usize = 98;

/// Regions that are looked through and put into the index at a time: enough to keep a disk busy.
/// Tables of contents, up to half a region each, are in memory meanwhile.
const MAX_LOOKS: usize = 16;

impl SecondLevel {
    pub(crate) fn handle_read(&mut self, now: MonoNs, completion: Completion) -> Option<Recalled> {
        let Completion {
            token,
            outcome,
            buffer,
        } = completion;
        let Some(read) = self.reads.end(token) else {
            // It was given up.
            self.reads.give_late_buffer(buffer);
            return None;
        };
        let n_read = outcome.ok().map(|n_bytes| n_bytes as usize);
        let has_read = |len: usize| n_read.is_some_and(|n_read| n_read >= len);
        match read.purpose {
            Purpose::Sync => {
                self.handle_synced(now, read.volume, has_read(0));
                None
            }
            Purpose::Region { region, start, len } => {
                self.note_read(read.volume, has_read(len));
                let bytes = buffer.as_ref().filter(|_| has_read(len));
                let bytes = bytes.map(|it| &it.as_slice()[..len]);
                let next = bytes.and_then(|bytes| self.looks.handle_read(region, start, bytes));
                self.counters.n_read_bytes += next.as_ref().map_or(0, |_| len as u64);
                self.reads.give_buffer(buffer);
                self.reads.recycle(read.wishes);
                match next {
                    Some(next) => self.handle_look(now, region, next),
                    None => self.give_up_look(region),
                }
                None
            }
            Purpose::Batch { location, position } => {
                let (start, end) = self.log.range_of(location);
                let is_whole = has_read(end - start);
                self.note_read(read.volume, is_whole);
                let mut recalled = self.recalled(now, buffer, read.wishes);
                if is_whole {
                    self.counters.n_read_bytes += (end - start) as u64;
                    if let Some(since) = read.since {
                        let took = now.saturating_since(since);
                        self.ahead.note_read(took.as_nanos() as u64);
                    }
                    if self.log.holds(location.region, position) {
                        self.check_batch(now, location, &mut recalled);
                    } else {
                        self.counters.n_false_reads += 1;
                    }
                }
                if recalled.wishes.is_empty() {
                    self.recycle(recalled);
                    return None;
                }
                Some(recalled)
            }
        }
    }

    /// A volume has said that what was written stays, or failed to.
    fn handle_synced(&mut self, now: MonoNs, volume: u8, is_done: bool) {
        if !is_done {
            self.counters.n_device_errors += 1;
            self.lose_volume(volume, VolumeFault::Writing);
        }
        self.note_synced();
        self.go_on_flushing(now);
    }

    /// One of the volumes of a sync has nothing more to say.
    fn note_synced(&mut self) {
        let Some(syncing) = &mut self.syncing else {
            return;
        };
        syncing.n_volumes -= 1;
        if syncing.n_volumes == 0 {
            self.log.set_lasting(syncing.before);
            self.syncing = None;
        }
    }

    /// What has come of a read for those who wait, before anything is known of it.
    fn recalled(&self, now: MonoNs, buffer: Option<IoBuffer>, wishes: Vec<Wish>) -> Recalled {
        Recalled {
            buffer,
            record: None,
            wishes,
            erased: 0,
            trigger_place: self.trigger_place(),
            wall: self.wall,
            now,
        }
    }

    /// Takes from a batch that has been read what is to be given out. Those who wanted another
    /// one, which the index cannot tell from this, wait for an older record, if there is one
    /// and a read to be had.
    fn check_batch(&mut self, now: MonoNs, location: Location, recalled: &mut Recalled) {
        let position = self.log.position_of(location);
        let (range_start, _) = self.log.range_of(location);
        let start = location.extent.start_bytes() - range_start;
        let bytes = recalled
            .buffer
            .as_ref()
            .and_then(|it| it.as_slice().get(start..));
        let Some(bytes) = bytes else {
            return;
        };
        let record = match Record::parse(bytes, position) {
            Ok(record) => record,
            Err(error) => {
                match error {
                    RecordError::Stale => self.counters.n_false_reads += 1,
                    RecordError::Damaged => self.counters.n_damaged += 1,
                }
                for wish in &recalled.wishes {
                    self.index.remove(wish.sought.hash(), wish.location);
                }
                return;
            }
        };
        let wishes = &mut recalled.wishes;
        let is_wanted = wishes.iter().any(|it| it.sought.is_in(&record));
        let is_all_wanted = wishes.iter().all(|it| it.sought.is_in(&record));
        self.counters.n_false_reads += u64::from(!is_all_wanted);
        if is_wanted && self.is_erased(&record, position) {
            for wish in wishes.iter().filter(|it| it.sought.is_in(&record)) {
                self.index.remove(wish.sought.hash(), wish.location);
            }
        } else if is_wanted {
            recalled.record = Some((start, position));
            recalled.erased = self.replaced(record.key(), location, wishes);
            if !self.erasures.is_empty() {
                for (chunk, wire) in record.chunks() {
                    if self.is_erased_alone(wire, position) {
                        recalled.erased |= 1 << chunk.place;
                    }
                }
            }
        }
        match (is_wanted, is_all_wanted) {
            (_, true) => {}
            (true, false) => {
                wishes.retain(|it| it.sought.is_in(&record) || !self.read_older(now, it));
            }
            (false, false) => {
                // So that there is a buffer for it.
                self.reads.give_buffer(recalled.buffer.take());
                wishes.retain(|it| !self.read_older(now, it));
            }
        }
    }

    /// What was read is not what is sought: has an older record read that may be. False if there
    /// is none, or no read to be had.
    fn read_older(&mut self, now: MonoNs, wish: &Wish) -> bool {
        let Some(older) = self.older(wish) else {
            return false;
        };
        let position = self.log.position_of(older.location);
        if let Some(read) = self.reads.of_position(position) {
            let has_room = read.wishes.len() < MAX_WAITERS_PER_READ;
            if has_room {
                read.wishes.push(older);
            }
            return has_room;
        }
        let is_read = self.begin_read(now, older);
        self.counters.n_reads += u64::from(is_read);
        is_read
    }

    /// A bit for each place of the batch at `location` of which something later is here, which
    /// is given out instead. Records that have been passed over for it are of other batches.
    fn replaced(&self, key: u64, location: Location, wishes: &[Wish]) -> u64 {
        let position = self.log.position_of(location);
        let of_batch = wishes.iter().filter(|it| it.sought == Sought::Batch(key));
        let is_passed_over = |mask: u16, at| {
            let mut of_batch = of_batch.clone();
            of_batch.any(|wish| at <= wish.passed_over && wish.places & mask != 0)
        };
        let is_later = |it: &Location| {
            let at = self.log.position_of(*it);
            it.extent.mask != 0
                && self.is_in_service(*it)
                && at > position
                && !is_passed_over(it.extent.mask, at)
        };
        let stored = self.index.find(key).filter(is_later);
        let stored = stored.map(|it| it.extent.mask);
        let open = self.assembler.find(key).into_iter();
        let open = open.flat_map(|batch| batch.chunks().map(|(chunk, _)| mask_bit(chunk.place)));
        u64::from(stored.chain(open).fold(0, |places, place| places | place))
    }

    /// Notes whether a volume has read what it was to read.
    fn note_read(&mut self, volume: u8, is_whole: bool) {
        let of_volume = &mut self.volumes[usize::from(volume)];
        if is_whole {
            of_volume.n_read_errors = 0;
            return;
        }
        self.counters.n_device_errors += 1;
        of_volume.n_read_errors += 1;
        if of_volume.n_read_errors >= self.config.max_read_errors {
            self.lose_volume(volume, VolumeFault::Reading);
        }
    }

    pub(crate) fn handle_written(&mut self, completion: Completion) {
        let Completion {
            token,
            outcome,
            buffer,
        } = completion;
        let Some(write) = self.log.handle_written(token, buffer) else {
            // It was given up.
            return;
        };
        let is_whole = outcome.is_ok_and(|n_bytes| n_bytes as usize >= write.n_bytes);
        if !is_whole {
            self.counters.n_lost += write.n_chunks as u64;
            self.counters.n_device_errors += 1;
            self.lose_volume(write.volume, VolumeFault::Writing);
        }
    }

    /// A volume is not to be used any more.
    pub(crate) fn lose_volume(&mut self, volume: u8, why: VolumeFault) {
        let of_volume = &mut self.volumes[usize::from(volume)];
        if std::mem::replace(&mut of_volume.is_lost, true) {
            return;
        }
        self.events.push_back(Event::VolumeLost { volume, why });
        self.flush.note_failed();
        self.counters.n_lost += self.log.lose_volume(volume) as u64;
        let regions = self.log.regions();
        self.index
            .retain(|it| regions[it.region as usize].state != RegionState::Lost);
        self.give_up_taking();
        if self.is_in_use() {
            let (n_bytes, position) = (self.log.alive_bytes(), self.log.position());
            let added = self.erasures.shrink(n_bytes, position);
            if added == Added::All {
                self.tell_merging();
            }
        }
        // Their records may have been there, and what they erase elsewhere.
        self.unwritten_erasures.clear();
        self.unwritten_erasures.extend(self.erasures.iter());
        let (reads, deferred) = (&mut self.reads, &self.deferred);
        let tokens = reads.tokens(|read| read.volume == volume);
        let has_buffer = |&&token: &&u64| {
            let purpose = reads.get(token).map(|read| read.purpose);
            purpose != Some(Purpose::Sync) && !deferred.contains(&token)
        };
        let mut n_kept_by_device = tokens.iter().filter(has_buffer).count();
        self.requests.retain_mut(|request| {
            let stays = request.volume != volume;
            if !stays && request.buffer.is_some() {
                reads.give_buffer(request.buffer.take());
                n_kept_by_device -= 1;
            }
            stays
        });
        reads.replace_buffers(n_kept_by_device);
        for token in tokens {
            let Some(read) = self.reads.end(token) else {
                continue;
            };
            match read.purpose {
                Purpose::Batch { .. } => self.give_up(read),
                Purpose::Region { region, .. } => self.give_up_look(region),
                Purpose::Sync => self.note_synced(),
            }
        }
        if !self.is_in_use() {
            self.counters.n_dropped += self.assembler.drop_all() as u64;
            self.unwritten_erasures.clear();
            self.erased_meanwhile.clear();
            self.next_to_recover = None;
            self.takings.clear();
            self.index.clear();
        }
        self.go_on_flushing(self.log.now());
    }

    /// Those who wait for a read are told that it brings nothing.
    pub(crate) fn give_up(&mut self, read: Read) {
        let recalled = self.recalled(self.log.now(), None, read.wishes);
        self.given_up.push(recalled);
    }

    /// Whether a device has been asked for anything.
    pub(crate) fn has_requests(&self) -> bool {
        !self.reads.is_empty() || self.log.oldest_write().is_some()
    }

    /// Takes volumes out of service that have not answered for too long.
    pub(crate) fn give_up_stalled(&mut self, now: MonoNs) {
        let (stall_ms, woken_at) = (self.config.stall_ms, self.woken_at);
        let is_over = |since: MonoNs, ms| since.max(woken_at).plus_ms(ms) <= now;
        let is_stalled = |read: &Read| {
            let patience_ms = match read.purpose {
                Purpose::Sync => SYNC_PATIENCE * stall_ms,
                _ => stall_ms,
            };
            read.since.is_some_and(|since| is_over(since, patience_ms))
        };
        while let Some((since, volume)) = self.log.oldest_write()
            && is_over(since, stall_ms)
        {
            self.counters.n_device_errors += 1;
            self.lose_volume(volume, VolumeFault::Stalled);
        }
        for token in self.reads.tokens(is_stalled) {
            let volume = self.reads.get(token).map(|read| read.volume);
            if let Some(volume) = volume {
                self.counters.n_device_errors += 1;
                self.lose_volume(volume, VolumeFault::Stalled);
            }
        }
    }

    /// Whether there is a buffer that is not promised to a read.
    pub(crate) fn has_buffer(&self) -> bool {
        self.reads.n_free_buffers() > self.deferred.len()
    }

    /// Looks through regions that have not been since the start.
    pub(crate) fn go_on_recovering(&mut self, now: MonoNs) {
        // A volume that stalls does not take all of the buffers with it.
        let max_looks = MAX_LOOKS.min(self.reads.n_buffers() / 2);
        while let Some(region) = self.next_to_recover {
            if region as usize == self.log.regions().len() {
                self.end_recovery();
                return;
            }
            if self.looks.len() + self.takings.len() >= max_looks || !self.has_buffer() {
                return;
            }
            self.next_to_recover = Some(region + 1);
            if self.log.region(region).state == RegionState::Held {
                let range = self.looks.recover(region);
                self.look(now, region, range);
            }
        }
    }

    fn end_recovery(&mut self) {
        if self.looks.len() > 0 || !self.takings.is_empty() {
            return;
        }
        self.next_to_recover = None;
        self.log.end_recovery(self.config.seed);
        for hash in std::mem::take(&mut self.erased_meanwhile) {
            self.erase_stored(hash);
        }
        let n_batches = self.counters.n_recovered;
        self.events.push_back(Event::Recovered { n_batches });
    }

    fn look(&mut self, now: MonoNs, region: u32, (start, len): (usize, usize)) {
        let volume = self.log.region(region).volume;
        let purpose = Purpose::Region { region, start, len };
        let token = self.reads.begin(purpose, volume, now);
        self.request_read(token, region, (start, len));
    }

    fn handle_look(&mut self, now: MonoNs, region: u32, next: Next) {
        match next {
            Next::Read { start, len } => self.look(now, region, (start, len)),
            Next::Known { why, contents } => self.begin_taking(region, why, contents),
        }
    }

    /// A region could not be looked through: what of it is in the index goes, by a search
    /// through all of it.
    fn give_up_look(&mut self, region: u32) {
        self.looks.give_up(region);
        if self.log.region(region).state == RegionState::Lost {
            return;
        }
        if self.is_recovering() {
            return self.log.set_free(region);
        }
        self.index.retain(|it| it.region != region);
        self.gate.note_victims(&[]);
        self.leave(region);
    }

    /// Empties the region that is to be written next, and more if the index is crowded.
    pub(crate) fn make_room(&mut self, now: MonoNs) {
        let is_at_it = self.looks.len() > 0 || !self.takings.is_empty();
        if self.is_recovering() || is_at_it {
            return;
        }
        let next = self.log.next_region();
        let is_crowded = self.index.len() * 100 > self.index.max_len() * CROWDED_PCT;
        let region = match self.log.region(next).state {
            RegionState::Held => Some(next),
            _ if is_crowded => self.log.oldest_held(),
            _ => None,
        };
        let Some(region) = region.filter(|_| self.has_buffer()) else {
            return;
        };
        if region != next {
            if self.counters.n_regions_emptied_early == 0 {
                self.events.push_back(Event::IndexFull);
            }
            self.counters.n_regions_emptied_early += 1;
        }
        let range = self.looks.empty(region, self.log.region(region).seq);
        self.look(now, region, range);
    }

    /// Goes on with what is to outlive a loss of power: for a flush, and for the log.
    pub(crate) fn go_on_flushing(&mut self, now: MonoNs) {
        while self.go_on_with_flush() {}
        let of_flush = match self.flush.stage {
            Stage::Writing { before } => before,
            Stage::Idle | Stage::Appending { .. } => 0,
        };
        // Neither waits for what the other one waits for.
        let log = &self.log;
        let is_due = |before| before > log.n_lasting() && before <= log.written_before();
        let is_due = is_due(of_flush) || is_due(log.must_last());
        if is_due && self.syncing.is_none() && self.is_in_use() {
            self.sync(now);
        }
    }

    /// Takes the flush in hand a step on; whether there was one to take.
    fn go_on_with_flush(&mut self) -> bool {
        let is_over = match self.flush.stage {
            Stage::Idle => return false,
            // There is nothing that it could wait for.
            _ if !self.is_in_use() => {
                self.flush.note_failed();
                true
            }
            Stage::Appending { n_batches } => {
                if n_batches > 0 || !self.unwritten_erasures.is_empty() || self.is_recovering() {
                    return false;
                }
                self.log.write_buffer();
                self.dirty_since = None;
                let before = self.log.next_write();
                self.flush.stage = Stage::Writing { before };
                false
            }
            Stage::Writing { before } if before > self.log.n_lasting() => return false,
            Stage::Writing { .. } => true,
        };
        if is_over && self.flush.end() {
            self.assembler.close_all();
            self.flush.go_on(self.assembler.n_closed());
        }
        true
    }

    /// Has all volumes make sure of what has been written.
    fn sync(&mut self, now: MonoNs) {
        let in_service: Vec<u8> = (0..self.volumes.len() as u8)
            .filter(|&volume| !self.volumes[usize::from(volume)].is_lost)
            .collect();
        self.syncing = Some(Syncing {
            before: self.log.written_before(),
            n_volumes: in_service.len(),
        });
        for volume in in_service {
            let token = self.reads.begin(Purpose::Sync, volume, now);
            self.requests.push_back(Request {
                token,
                volume,
                op: Op::Sync,
                offset: 0,
                len: 0,
                buffer: None,
            });
        }
    }
}
