//! Finding Data and getting them back.

use tachonym_packet::types::component::IMPLICIT_SHA256_DIGEST;
use tachonym_packet::{DataView, InterestView, MonoNs, NameView};

use crate::device::{Op, Request};
use crate::index::Location;
use crate::layout::{Position, Record};
use crate::log::{RegionState, Whereabouts};
use crate::naming::{chunk_number, mask_bit, parent, write_chunk_name};
use crate::reads::{MAX_WAITERS_PER_READ, Purpose, Sharer, Sought, Waiter, Wish};
use crate::second_level::{MAX_COMPONENTS, SecondLevel};

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
    /// It is being read from now on; whoever waits will be told.
    Reading,
    /// The same, and it was being read before.
    Joined,
    /// No read is free now: buffers, or the sharer's part of them, are in use, or too many
    /// wait for the read already.
    Busy,
    /// It was there, and is not any more.
    Gone,
}

impl SecondLevel {
    /// Where a Data may be that answers an Interest.
    pub fn find(&mut self, interest: &InterestView<'_>) -> Option<Place> {
        self.counters.n_lookups += 1;
        let found = self.peek(interest);
        if self.gate.learns() {
            let hash = self.request_hash(interest.name());
            match found {
                Some(_) => self.gate.note_hit(hash),
                None => self.gate.note_miss(hash),
            }
        }
        found
    }

    /// The same, for an Interest that is not asked here, or not yet: counts nothing.
    #[must_use]
    pub fn peek(&self, interest: &InterestView<'_>) -> Option<Place> {
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
            location: self.find_stored(key, mask_bit(place))?,
        })
    }

    /// The last record that seems to have a chunk of a batch; none before it is known what has
    /// been erased, or written later.
    pub(crate) fn find_stored(&self, key: u64, bit: u16) -> Option<Location> {
        if self.is_recovering() {
            return None;
        }
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
        if self.is_recovering() {
            return None;
        }
        let found = self.index.find(hash);
        let prefixes = found.filter(|it| it.extent.mask == 0 && self.is_in_service(*it));
        Some(Place::Stored {
            sought: Sought::Below(hash),
            place: None,
            location: prefixes.max_by_key(|it| self.log.position_of(*it))?,
        })
    }

    fn is_being_read(&mut self, location: Location) -> bool {
        let position = self.log.position_of(location);
        self.reads.of_position(position).is_some()
    }

    pub(crate) fn is_in_service(&self, location: Location) -> bool {
        self.log.region(location.region).state != RegionState::Lost
    }

    /// Gets what [`SecondLevel::find`] has just found. If it must be read, `waiter` waits for it,
    /// and the read counts to `sharer`.
    pub fn recall(
        &mut self,
        now: MonoNs,
        place: Place,
        (waiter, sharer): (Waiter, Sharer),
    ) -> Recall<'_> {
        self.log.set_now(now);
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
        let mut wish = Wish {
            sought,
            places: place.map_or(0, mask_bit),
            location,
            passed_over: Position::default(),
            waiter: Some((waiter, sharer)),
        };
        while self.is_another_in_memory(&wish) {
            let Some(older) = self.older(&wish) else {
                return Recall::Gone;
            };
            wish = older;
        }
        let position = self.log.position_of(wish.location);
        if let Some(read) = self.reads.of_position(position) {
            if read.wishes.len() >= MAX_WAITERS_PER_READ {
                self.counters.n_busy += 1;
                return Recall::Busy;
            }
            read.wishes.push(wish);
            self.counters.n_joined += 1;
            return Recall::Joined;
        }
        if matches!(self.log.whereabouts(wish.location), Whereabouts::Memory(_)) {
            self.counters.n_found_in_memory += 1;
            return self.recall_unwritten(now, place, wish.location);
        }
        match self.begin_read(now, wish) {
            true => {
                self.counters.n_reads += 1;
                Recall::Reading
            }
            false => {
                self.counters.n_busy += 1;
                Recall::Busy
            }
        }
    }

    /// Whether the record that a wish is for waits to be written, and is not what is sought.
    fn is_another_in_memory(&self, wish: &Wish) -> bool {
        let Whereabouts::Memory(bytes) = self.log.whereabouts(wish.location) else {
            return false;
        };
        let record = Record::parse_head(bytes, self.log.position_of(wish.location));
        record.is_ok_and(|record| !wish.sought.is_in(&record))
    }

    /// The same wish for the last older record, if there is one that the index takes for what
    /// is sought. Of records below a prefix it keeps one.
    pub(crate) fn older(&self, wish: &Wish) -> Option<Wish> {
        let Sought::Batch(key) = wish.sought else {
            return None;
        };
        let position = self.log.position_of(wish.location);
        let older = self.index.find(key).filter(|it| {
            it.extent.mask & wish.places != 0
                && self.is_in_service(*it)
                && self.log.position_of(*it) < position
        });
        Some(Wish {
            location: older.max_by_key(|it| self.log.position_of(*it))?,
            passed_over: wish.passed_over.max(position),
            ..*wish
        })
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

    /// Reads a batch; false if there is no buffer for this volume, or for this sharer.
    pub(crate) fn begin_read(&mut self, now: MonoNs, wish: Wish) -> bool {
        if !self.has_buffer() {
            return false;
        }
        let sharer = wish.waiter.map(|(_, sharer)| sharer);
        let n_free = self.reads.n_free_buffers() - self.deferred.len();
        if sharer.is_some_and(|sharer| !self.reads.has_share(sharer, n_free)) {
            return false;
        }
        let (sought, location) = (wish.sought, wish.location);
        let volume = self.log.region(location.region).volume;
        // One that stalls leaves buffers to the others.
        let n_in_service = self.volumes.len() - self.n_lost_volumes();
        if n_in_service > 1 && self.reads.n_of_volume(volume) >= self.reads.n_buffers() / 4 * 3 {
            return false;
        }
        if let Sought::Batch(key) = sought {
            self.gate.note_read(key, location.extent.mask);
        }
        let position = self.log.position_of(location);
        let purpose = Purpose::Batch { location, position };
        let token = self.reads.begin_for(sharer, purpose, volume, now);
        if let Some(read) = self.reads.get_mut(token) {
            read.wishes.push(wish);
        }
        match self.log.whereabouts(location) {
            Whereabouts::Device => self.request_batch(token, location),
            // The part that waits for a full buffer shall not wait longer.
            _ => {
                self.log.write_buffer();
                self.deferred.push(token);
                if let Some(read) = self.reads.get_mut(token) {
                    read.since = None;
                }
            }
        }
        true
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

    /// Sets deferred reads to work whose batches have been written meanwhile; gives up those of
    /// regions that have been emptied.
    pub(crate) fn go_on_with_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.retain(|&token| {
            let purpose = self.reads.get(token).map(|read| read.purpose);
            let Some(Purpose::Batch { location, position }) = purpose else {
                return false;
            };
            if !self.log.holds(location.region, position) {
                self.counters.n_false_reads += 1;
                if let Some(read) = self.reads.end(token) {
                    self.give_up(read);
                }
                return false;
            }
            let is_there = matches!(self.log.whereabouts(location), Whereabouts::Device);
            if is_there {
                if let Some(read) = self.reads.get_mut(token) {
                    read.since = Some(self.log.now());
                }
                self.request_batch(token, location);
            }
            !is_there
        });
        self.deferred = deferred;
    }

    /// An Interest for the last chunk but one of a batch was answered: reads what comes next
    /// of this object, unless `is_at_hand` tells that the first level has it, by the name of a
    /// batch's first chunk. False if not all of it can be read now.
    pub fn read_ahead(
        &mut self,
        now: MonoNs,
        name: NameView<'_>,
        mut is_at_hand: impl FnMut(NameView<'_>) -> bool,
    ) -> bool {
        self.log.set_now(now);
        let Some(chunk) = chunk_number(name) else {
            return true;
        };
        let batch_len = self.names.batch_len();
        let object = parent(name);
        let object_hash = self.names.prefix(object);
        let batches = self.ahead.plan(now, object_hash, chunk.number / batch_len);
        let mut first = std::mem::take(&mut self.scratch);
        let mut is_done = true;
        for batch in batches {
            let Some(number) = batch.checked_mul(batch_len) else {
                break;
            };
            let key = self.names.batch_key(object, chunk.typ, batch);
            let Some(location) = self.find_stored(key, u16::MAX) else {
                continue;
            };
            write_chunk_name(object, chunk.typ, number, &mut first);
            let is_at_hand = NameView::parse_value(&first).is_ok_and(&mut is_at_hand);
            let is_here = !matches!(self.log.whereabouts(location), Whereabouts::Device);
            if is_at_hand || is_here || self.is_being_read(location) {
                continue;
            }
            // What is asked for comes before what may be.
            let has_room = self.reads.n_free_buffers() > self.reads.n_buffers() / 2;
            let wish = Wish {
                sought: Sought::Batch(key),
                places: u16::MAX,
                location,
                passed_over: Position::default(),
                waiter: None,
            };
            if has_room && self.begin_read(now, wish) {
                self.counters.n_reads_ahead += 1;
            } else {
                is_done = false;
            }
        }
        self.scratch = first;
        is_done
    }

    /// Puts the name of the Data into `out` with which the batch of `name` should have been read
    /// ahead; false if there is none.
    pub fn write_trigger_before(&self, name: NameView<'_>, out: &mut Vec<u8>) -> bool {
        let Some(chunk) = chunk_number(name) else {
            return false;
        };
        let batch_len = self.names.batch_len();
        let before = (chunk.number / batch_len).checked_sub(1);
        let trigger = before.map(|batch| batch * batch_len + u64::from(self.trigger_place()));
        if let Some(trigger) = trigger {
            write_chunk_name(parent(name), chunk.typ, trigger, out);
        }
        trigger.is_some()
    }

    /// Whether the next batch of an object is to be read when the Data of this name is asked
    /// for.
    #[must_use]
    pub fn is_trigger(&self, name: NameView<'_>) -> bool {
        let place = chunk_number(name).map(|chunk| chunk.number % self.names.batch_len());
        place == Some(u64::from(self.trigger_place()))
    }

    /// The last place but one of a batch; the only one, if there is but one.
    pub(crate) const fn trigger_place(&self) -> u8 {
        self.config.batch_len.saturating_sub(2) as u8
    }

    /// Whether a record was erased; what names in it are called is looked at elsewhere.
    pub(crate) fn is_erased(&self, record: &Record<'_>, position: Position) -> bool {
        !self.erasures.is_empty()
            && (self.erasures.includes_all(position)
                || record
                    .prefixes()
                    .any(|it| self.erasures.includes(it, position)))
    }

    /// Whether a Data was erased by its own name.
    pub(crate) fn is_erased_alone(&self, wire: &[u8], position: Position) -> bool {
        if self.erasures.is_empty() {
            return false;
        }
        let name = DataView::parse(wire).map(|data| self.names.prefix(data.name()));
        name.is_ok_and(|hash| self.erasures.includes(hash, position))
    }
}
