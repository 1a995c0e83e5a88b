//! Taking Data, writing them, erasing them.

use tachonym_packet::{DataView, MonoNs, NameView};

use crate::index::{Index, Location};
use crate::layout::{Extent, RecordHead, RecordKind};
use crate::log::{Log, NotWritten, Position};
use crate::second_level::{MAX_COMPONENTS, SecondLevel};

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
    /// write. `name_hash` is any hash of its name, always by the same key.
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
        let bit = self.names.mask_bit(part.place);
        let open = self.assembler.find(part.key);
        let is_open = open.is_some_and(|batch| batch.find(part.place).is_some());
        let is_known = match novelty {
            Novelty::New => is_open,
            Novelty::Unsure => is_open || self.find_stored(part.key, bit).is_some(),
            Novelty::Replacement => false,
        };
        if is_known {
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

    /// By which hash requests for a name are counted; zero if they are not.
    #[must_use]
    pub fn request_hash(&self, name: NameView<'_>) -> u64 {
        match self.gate.learns() {
            true => self.names.prefix(name),
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
        self.gate.note_request(name_hash);
    }

    /// Appends batches that are closed to the log, as many as it takes.
    pub(crate) fn write_closed(&mut self, now: MonoNs) {
        self.log.set_now(now);
        if self.is_recovering() {
            return;
        }
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
                        let noted =
                            note_written(&mut self.index, &self.log, key, location, prefixes);
                        self.counters.n_not_indexed += u64::from(!noted.is_in);
                        self.counters.n_crowded_out += noted.n_crowded_out;
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

    /// Erases all Data whose names begin with `prefix`, which includes one of this name. They
    /// are not given out any more; how many were not written yet is told. A later
    /// [flush](SecondLevel::flush) makes it last.
    pub fn erase(&mut self, now: MonoNs, prefix: NameView<'_>) -> usize {
        let n_erased = self.assembler.erase(|data| data.name().starts_with(prefix));
        self.counters.n_erased += n_erased as u64;
        self.counters.n_erased_prefixes += 1;
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
        // What is appended from now on is not older.
        let position = self.log.position();
        self.note_erasure(hash, position);
        let below: Vec<Location> = self
            .index
            .find(hash)
            .filter(|it| it.extent.mask == 0)
            .collect();
        for location in below {
            self.index.remove(hash, location);
        }
        self.unwritten_erasures.push_back(hash);
    }

    /// What has a prefix of this hash and was written before `position` is erased: all, if it
    /// is that of the empty name, which no record has among its prefixes.
    pub(crate) fn note_erasure(&mut self, hash: u64, position: Position) {
        match hash == self.names.prefix(NameView::default()) {
            true => self.erasures.add_all(position),
            false => self.erasures.add(hash, position),
        }
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
}

/// Records of a batch in the index, at most: more than its two lines have room for would keep
/// others out.
const MAX_RECORDS_PER_KEY: usize = 6;

/// What became of a record.
pub(crate) struct Noted {
    /// Whether there was room for it.
    pub(crate) is_in: bool,
    /// Older records of the batch that made room for it, but for those of which it has
    /// everything.
    pub(crate) n_crowded_out: u64,
}

/// Puts a record, the last of its batch, into the index.
pub(crate) fn note_written(
    index: &mut Index,
    log: &Log,
    key: u64,
    location: Location,
    prefixes: &[u64],
) -> Noted {
    let mut noted = Noted {
        is_in: false,
        n_crowded_out: 0,
    };
    if index.find(key).count() >= MAX_RECORDS_PER_KEY {
        noted.n_crowded_out = crowd_out(index, log, key, location.extent.mask);
    }
    noted.is_in = index.insert(key, location);
    if !noted.is_in {
        // What is older must not be taken for the last.
        let overlaps = |it: &Location| it.extent.mask & location.extent.mask != 0;
        let older: Vec<Location> = index.find(key).filter(overlaps).collect();
        noted.n_crowded_out += older.len() as u64;
        for older in older {
            index.remove(key, older);
        }
    }
    for &prefix in prefixes {
        note_prefix(index, log, prefix, location);
    }
    noted
}

/// Removes records of a batch of which later ones have everything, and more if these are too
/// many; how many of the latter.
#[cold]
fn crowd_out(index: &mut Index, log: &Log, key: u64, mask: u16) -> u64 {
    let mut records: Vec<Location> = index.find(key).collect();
    records.sort_unstable_by_key(|it| std::cmp::Reverse(log.position_of(*it)));
    let (mut covered, mut n_kept, mut n_crowded_out) = (mask, 0, 0);
    for record in records {
        let is_covered = record.extent.mask & !covered == 0;
        covered |= record.extent.mask;
        if is_covered || n_kept + 1 >= MAX_RECORDS_PER_KEY {
            n_crowded_out += u64::from(!is_covered);
            index.remove(key, record);
        } else {
            n_kept += 1;
        }
    }
    n_crowded_out
}

/// Notes a record as the last one below a prefix, unless there is a later one.
pub(crate) fn note_prefix(index: &mut Index, log: &Log, prefix: u64, location: Location) {
    let extent = Extent {
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
