//! Taking Data, writing them, erasing them.

use tachonym_packet::{DataView, MonoNs, NameView};

use crate::config::Counters;
use crate::erasures::{Added, to_chunk};
use crate::index::{Index, Location};
use crate::layout::{Extent, Position, RecordHead, RecordKind};
use crate::log::{Log, NotYet};
use crate::naming::{Part, mask_bit};
use crate::second_level::{Event, MAX_COMPONENTS, SecondLevel};

/// How often it is told at most that erasures were merged, in milliseconds.
const MERGING_INTERVAL_MS: u64 = 60_000;

/// What is known of a Data that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// It is not among those that have been written, for it was looked for there in vain.
    New,
    /// It may be: it is written only if the index knows nothing like it, which one in 6,000
    /// names of which it knows nothing fails.
    Unsure,
    /// It differs from what had its name before, and is to be given out from now on.
    Replacement,
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

impl SecondLevel {
    /// Takes a copy of a Data that the first level has got from elsewhere, if it earns its
    /// write. `name_hash` is its [request hash](SecondLevel::request_hash).
    pub fn offer(
        &mut self,
        now: MonoNs,
        data: &DataView<'_>,
        name_hash: u64,
        novelty: Novelty,
    ) -> Offered {
        self.counters.n_offered += 1;
        let name = data.name();
        if name.is_empty() || name.len() > MAX_COMPONENTS || !self.is_in_use() {
            self.counters.n_unsuited += 1;
            return Offered::Refused;
        }
        let part = self.names.part_of(name);
        let is_known = match novelty {
            Novelty::New => self.waits(&part),
            Novelty::Unsure => self.waits(&part) || self.is_stored(&part),
            Novelty::Replacement => false,
        };
        if is_known {
            self.counters.n_known += 1;
            return Offered::Known;
        }
        let has_others = self.assembler.find(part.key).is_some();
        let comes_along = has_others && self.gate.admits_with_others();
        let is_admitted = comes_along || self.gate.admits(name_hash);
        // What is here shall not be given out when it has been replaced.
        let may_be_here = || self.waits(&part) || self.is_stored(&part) || self.is_recovering();
        if !(is_admitted || novelty == Novelty::Replacement && may_be_here()) {
            self.counters.n_not_admitted += 1;
            return Offered::NotAdmitted;
        }
        if self.assembler.is_full() {
            self.write_closed(now);
        }
        if self.assembler.is_full() {
            self.counters.n_no_room += 1;
            if novelty == Novelty::Replacement {
                self.forget(&part);
            }
            return Offered::Refused;
        }
        let fresh_until_ms = match data.freshness_period_ms() {
            0 => 0,
            period_ms => self.wall.unix_ms(now).saturating_add(period_ms),
        };
        let has_replaced = self.assembler.add(now, &part, data, fresh_until_ms);
        self.counters.n_replaced += u64::from(has_replaced);
        self.write_closed(now);
        Offered::Kept
    }

    /// Whatever is here for a place is not given out any more, nor what else is in its records:
    /// there is no room for what has replaced it. After a restart it may be found again.
    #[cold]
    fn forget(&mut self, part: &Part) {
        let was_waiting = self.assembler.drop_chunk(part);
        self.counters.n_replaced += u64::from(was_waiting);
        let has_it = |it: &Location| it.extent.mask & mask_bit(part.place) != 0;
        let stored: Vec<Location> = self.index.find(part.key).filter(has_it).collect();
        for location in stored {
            self.index.remove(part.key, location);
        }
    }

    /// Whether there is a Data for a place that is not in the log yet.
    fn waits(&self, part: &Part) -> bool {
        let batch = self.assembler.find(part.key);
        batch.is_some_and(|batch| batch.find(part.place).is_some())
    }

    /// Whether the log seems to have a Data for a place.
    fn is_stored(&self, part: &Part) -> bool {
        self.find_stored(part.key, mask_bit(part.place)).is_some()
    }

    /// By which hash requests for a name are counted; zero if they are not.
    #[must_use]
    pub fn request_hash(&self, name: NameView<'_>) -> u64 {
        match self.gate.learns() {
            true => self.gate.id(name, &self.names),
            false => 0,
        }
    }

    /// Whether a Data that was not admitted may be later.
    #[must_use]
    pub const fn admission_learns(&self) -> bool {
        self.gate.learns()
    }

    /// A Data was asked for that the first level has and this one did not admit.
    pub fn note_request(&mut self, name_hash: u64) {
        self.gate.note_miss(name_hash);
    }

    /// Appends batches that are closed to the log, as many as it takes.
    pub(crate) fn write_closed(&mut self, now: MonoNs) {
        self.log.set_now(now);
        if self.is_recovering() {
            return;
        }
        self.write_erasures();
        while self.unwritten_erasures.is_empty()
            && let Some(batch) = self.assembler.next_closed()
        {
            let (head, mask) = (batch.head(), batch.mask());
            let (key, n_chunks) = (batch.key(), batch.n_chunks() as u64);
            if n_chunks > 0 {
                match self.log.append(&head, batch.payload(), mask) {
                    Ok(location) => {
                        let n_bytes = batch.payload().len() as u64;
                        self.counters.n_written += n_chunks;
                        self.counters.n_written_data_bytes += n_bytes;
                        let (index, counters) = (&mut self.index, &mut self.counters);
                        note_record(index, &self.log, counters, key, location);
                        for &prefix in head.prefixes {
                            // Else nothing would tell that it has to leave the index.
                            let is_in = self.log.has_noted(prefix)
                                && note_prefix(index, &self.log, prefix, location);
                            counters.n_prefixes_not_indexed += u64::from(!is_in);
                        }
                        self.dirty_since.get_or_insert(now);
                    }
                    Err(NotYet) => break,
                }
            }
            self.assembler.drop_closed();
            self.flush.note_appended();
        }
        self.make_room(now);
    }

    /// Erases all Data whose names begin with `prefix`, which includes one of this name. They
    /// are not given out any more; how many were not written yet is told. A later
    /// [flush](SecondLevel::flush) makes it last.
    pub fn erase(&mut self, now: MonoNs, prefix: NameView<'_>) -> usize {
        let n_erased = self.assembler.erase(|data| data.name().starts_with(prefix));
        self.counters.n_erased += n_erased as u64;
        self.counters.n_erased_prefixes += 1;
        self.log.set_now(now);
        let hash = self.names.prefix(prefix);
        match self.is_recovering() {
            true => self.erased_meanwhile.push(hash),
            false => self.erase_stored(hash),
        }
        self.write_closed(now);
        n_erased
    }

    /// Erases what the log has below the prefix of this hash.
    pub(crate) fn erase_stored(&mut self, hash: u64) {
        if !self.is_in_use() {
            return;
        }
        // What is appended from now on is not older.
        let position = self.log.position();
        // If it is known, its record has been written, or is to be.
        if !self.erasures.includes_before(hash, position) {
            self.note_erasure(hash, position);
            if self.erasures.has(hash, position) {
                self.unwritten_erasures.push_back((hash, position));
            }
        }
        let below: Vec<Location> = self
            .index
            .find(hash)
            .filter(|it| it.extent.mask == 0)
            .collect();
        for location in below {
            self.index.remove(hash, location);
        }
    }

    /// What has a prefix of this hash and was written before `position` is erased: all, if it
    /// is that of the empty name.
    pub(crate) fn note_erasure(&mut self, hash: u64, position: Position) {
        if self.erasures.add(hash, position) == Added::All {
            let empty = self.names.prefix(NameView::default());
            let erasures = &self.erasures;
            self.unwritten_erasures
                .retain(|&(hash, at)| hash != empty && erasures.has(hash, at));
            self.unwritten_erasures.push_back((empty, position));
            self.tell_merging();
        }
    }

    /// Counts erasures that were taken for one of everything, and tells of it now and then.
    pub(crate) fn tell_merging(&mut self) {
        self.counters.n_erasures_merged += 1;
        let now = self.log.now();
        let is_told = |at: MonoNs| now < at.plus_ms(MERGING_INTERVAL_MS);
        if !self.merging_told_at.is_some_and(is_told) {
            self.merging_told_at = Some(now);
            let max_prefixes = self.erasures.max_len();
            self.events
                .push_back(Event::ErasuresMerged { max_prefixes });
        }
    }

    /// Its owner had more to erase while it was not in use than he kept, and erases everything
    /// instead: that is counted.
    pub const fn note_merged_by_owner(&mut self) {
        self.counters.n_erasures_merged += 1;
    }

    /// Appends erasures to the log, as many as it takes: they come before all batches.
    fn write_erasures(&mut self) {
        while let Some(&(hash, position)) = self.unwritten_erasures.front() {
            let head = RecordHead {
                kind: RecordKind::Erasure,
                key: hash,
                prefixes: &[hash],
                chunks: &[to_chunk(position)],
            };
            let Ok(location) = self.log.append(&head, &[], 0) else {
                return;
            };
            let seq = self.log.region(location.region).seq;
            self.erasures.note_record(hash, position, seq);
            self.unwritten_erasures.pop_front();
            self.dirty_since.get_or_insert(self.log.now());
        }
    }
}

/// Records of a batch in the index, at most: more than its two lines have room for would keep
/// others out.
const MAX_RECORDS_PER_KEY: usize = 6;

/// Puts a record, of the batch of a key, into the index; whether it is there.
pub(crate) fn note_record(
    index: &mut Index,
    log: &Log,
    counters: &mut Counters,
    key: u64,
    location: Location,
) -> bool {
    let (mut is_wanted, mut n_crowded_out) = (true, 0);
    if index.find(key).count() >= MAX_RECORDS_PER_KEY {
        (is_wanted, n_crowded_out) = crowd_out(index, log, key, location);
    }
    let is_in = is_wanted && index.insert(key, location);
    if is_wanted && !is_in {
        // What is older must not be taken for the last.
        let (mask, position) = (location.extent.mask, log.position_of(location));
        let older = index.find(key);
        let older =
            older.filter(|it| it.extent.mask & mask != 0 && log.position_of(*it) < position);
        let older: Vec<Location> = older.collect();
        n_crowded_out += older.len() as u64;
        for older in older {
            index.remove(key, older);
        }
    }
    counters.n_not_indexed += u64::from(is_wanted && !is_in);
    counters.n_crowded_out += n_crowded_out;
    is_in
}

/// Makes room for one more record of a batch: removes those of which later ones have everything,
/// and more if these are too many. Whether the new one is among those that stay, and how many
/// went, it included, that had something of their own.
#[cold]
fn crowd_out(index: &mut Index, log: &Log, key: u64, new: Location) -> (bool, u64) {
    let mut records: Vec<Location> = index.find(key).collect();
    records.push(new);
    records.sort_unstable_by_key(|it| std::cmp::Reverse(log.position_of(*it)));
    let (mut covered, mut n_kept, mut n_crowded_out) = (0, 0, 0);
    let mut is_wanted = true;
    for record in records {
        let is_covered = record.extent.mask & !covered == 0;
        covered |= record.extent.mask;
        if !is_covered && n_kept < MAX_RECORDS_PER_KEY {
            n_kept += 1;
            continue;
        }
        n_crowded_out += u64::from(!is_covered);
        match record == new {
            true => is_wanted = false,
            false => drop(index.remove(key, record)),
        }
    }
    (is_wanted, n_crowded_out)
}

/// Notes a record as the last one below a prefix, unless there is a later one; false if there is
/// no room.
pub(crate) fn note_prefix(index: &mut Index, log: &Log, prefix: u64, location: Location) -> bool {
    let extent = Extent {
        mask: 0,
        ..location.extent
    };
    let location = Location { extent, ..location };
    let before = index.find(prefix).find(|it| it.extent.mask == 0);
    match before {
        Some(before) if log.position_of(before) < log.position_of(location) => {
            index.replace(prefix, before, location)
        }
        Some(_) => true,
        // Without it, Data are not found by this prefix, but by their names.
        None => index.insert(prefix, location),
    }
}
