//! Which Data earn their write.
//!
//! A name counts as asked for when the first level could not answer: names that it has, or had
//! from a batch that was read, are not seen here. So chunks of a batch that is stored are asked
//! for seldom, however popular they are; one of it stands for all ([`Contest`]).

use tachonym_memory::{MemoryError, PagePreference};
use tachonym_packet::NameView;
use tachonym_policy::admission::{AutoFilter, Filter, TinyLfu};
use tachonym_policy::{CountersKind, Random};

use crate::config::Admission;
use crate::layout::{MAX_BATCH_LEN, TocEntry};
use crate::naming::Names;

/// See the module.
#[derive(Debug)]
pub(crate) enum Gate {
    All,
    /// Those of which the upper half of a random number is below this.
    Some {
        of_2_32: u64,
        random: Random,
    },
    Asked(Box<Filter>),
    /// And whether something had to go: before, there is room for all.
    Tuned(Box<AutoFilter>, bool),
    Contested(Box<Contest>),
}

impl Gate {
    pub(crate) fn new(admission: Admission, pages: PagePreference) -> Result<Self, MemoryError> {
        Ok(match admission {
            Admission::All => Self::All,
            Admission::Lcp { probability, seed } => Self::Some {
                of_2_32: (probability.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64,
                random: Random::new(seed),
            },
            Admission::Filter {
                threshold,
                history_len,
            } => Self::Asked(Box::new(Filter::new(
                history_len,
                threshold,
                CountersKind::default(),
                pages,
            )?)),
            Admission::FilterAuto { capacity } => {
                Self::Tuned(Box::new(AutoFilter::new(capacity.max(1), pages)?), false)
            }
            Admission::TinyLfu { window_len } => {
                Self::Contested(Box::new(Contest::new(window_len, pages)?))
            }
        })
    }

    /// Whether a Data that is not admitted now may be when it is asked for again.
    pub(crate) const fn learns(&self) -> bool {
        matches!(self, Self::Asked(_) | Self::Tuned(..) | Self::Contested(_))
    }

    /// By what requests for a name are counted.
    pub(crate) fn id(&self, name: NameView<'_>, names: &Names) -> u64 {
        match self {
            Self::Contested(_) => {
                let part = names.part_of(name);
                chunk_id(part.key, part.place)
            }
            _ => names.prefix(name),
        }
    }

    /// A name was asked for that the first level does not have, or has not offered with
    /// success; `is_here` if this level has it.
    pub(crate) fn note_request(&mut self, id: u64, is_here: bool) {
        match self {
            Self::All | Self::Some { .. } => {}
            Self::Asked(filter) => {
                filter.handle_request(id);
            }
            Self::Tuned(filter, _) => {
                filter.handle_request(id);
                if is_here {
                    filter.handle_hit();
                }
            }
            // What is here is counted when it is read.
            Self::Contested(_) if is_here => {}
            Self::Contested(contest) => contest.frequencies.handle_request(id),
        }
    }

    /// A batch is read, for whoever waits or will.
    pub(crate) fn note_read(&mut self, key: u64, mask: u16) {
        if let Self::Contested(contest) = self {
            contest.frequencies.handle_request(batch_id(key, mask));
        }
    }

    /// A region with these entries goes, to make room.
    pub(crate) fn note_victims(&mut self, entries: &[TocEntry]) {
        match self {
            Self::Tuned(_, is_full) => *is_full = true,
            Self::Contested(contest) => contest.note_victims(entries),
            _ => {}
        }
    }

    /// Whether a Data earns its write; `is_open` if others of its batch are about to be written.
    pub(crate) fn admits(&mut self, id: u64, is_open: bool) -> bool {
        match self {
            Self::All => true,
            Self::Some { of_2_32, random } => random.next_u64() >> 32 < *of_2_32,
            Self::Asked(filter) => filter.admits(id),
            Self::Tuned(filter, is_full) => !*is_full || filter.admits(id),
            // Of a batch that is here only the first chunk is counted. When that went and comes
            // again, the others come along.
            Self::Contested(contest) => is_open || contest.admits(id),
        }
    }
}

/// Bits of a chunk's id that tell its place; the others are of its batch's key.
const PLACES: u64 = MAX_BATCH_LEN as u64 - 1;
const _: () = assert!(MAX_BATCH_LEN.is_power_of_two());

/// By what requests for a chunk of a batch are counted.
const fn chunk_id(key: u64, place: u8) -> u64 {
    key & !PLACES | place as u64
}

/// By what reads of a record are counted: by the first of its chunks.
const fn batch_id(key: u64, mask: u16) -> u64 {
    chunk_id(key, mask.trailing_zeros() as u8)
}

/// Victims that are remembered of a region.
const MAX_VICTIMS: usize = 256;

/// TinyLFU before a log: a Data is written if it was asked for more often than one of those
/// that had to go last, the same one for all chunks of a batch, and more than once: what goes
/// may not have been asked for within the window, and one request earns no write.
///
/// Frequencies are of chunks, and of a batch that is stored those of its first chunk: how often
/// it was read, or would have been. A stream through a batch that is not stored asks once for
/// each chunk, and one through a stored batch has it read once; so each counts as often as
/// streams pass, and is compared with its like.
#[derive(Debug)]
pub(crate) struct Contest {
    frequencies: TinyLfu,
    /// Of the region that was emptied last; none while the log has room.
    victims: Vec<u64>,
}

impl Contest {
    fn new(window_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        Ok(Self {
            frequencies: TinyLfu::new(window_len, pages)?,
            victims: Vec::with_capacity(MAX_VICTIMS),
        })
    }

    fn note_victims(&mut self, entries: &[TocEntry]) {
        // Some from everywhere in the region.
        let step = entries.len().div_ceil(MAX_VICTIMS).max(1);
        let batches = entries
            .iter()
            .step_by(step)
            .filter_map(|entry| match entry {
                &TocEntry::Batch(key, extent) => Some(batch_id(key, extent.mask)),
                TocEntry::Prefix(..) | TocEntry::Erasure(..) => None,
            });
        self.victims.clear();
        self.victims.extend(batches);
    }

    fn admits(&self, id: u64) -> bool {
        let drawn = ((id >> 32) * self.victims.len() as u64) >> 32;
        let Some(&victim) = self.victims.get(drawn as usize) else {
            return true;
        };
        let frequency = self.frequencies.frequency(id);
        // Greater ones are not told from each other.
        frequency == TinyLfu::MAX_FREQUENCY || frequency > self.frequencies.frequency(victim).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Extent;

    fn gate(admission: Admission) -> Gate {
        Gate::new(admission, PagePreference::Auto).expect("memory")
    }

    fn batch(key: u64, mask: u16) -> TocEntry {
        let extent = Extent {
            at: 0,
            len_kib: 1,
            mask,
        };
        TocEntry::Batch(key, extent)
    }

    #[test]
    fn what_was_asked_for_twice_has_earned_its_write() {
        let mut gate = gate(Admission::Filter {
            threshold: 2,
            history_len: 100,
        });
        gate.note_request(5, false);
        assert!(!gate.admits(5, false) && gate.learns());
        gate.note_request(5, false);
        assert!(gate.admits(5, false) && !gate.admits(6, false));
    }

    #[test]
    fn lots_fall_as_often_as_they_should() {
        let n_admitted = |probability| {
            let mut gate = gate(Admission::Lcp {
                probability,
                seed: 9,
            });
            (0..10_000).filter(|_| gate.admits(1, false)).count()
        };
        assert_eq!((n_admitted(0.0), n_admitted(1.0)), (0, 10_000));
        assert!((900..1_100).contains(&n_admitted(0.1)));
    }

    #[test]
    fn a_threshold_of_its_own_leaves_room_to_what_is_asked_for_most() {
        let capacity = 500;
        let mut gate = gate(Admission::FilterAuto { capacity });
        assert!(gate.admits(3, false), "there is room");
        gate.note_victims(&[]);
        // Of 5,500 names 500 have two thirds of the requests.
        let mut random = Random::new(4);
        for _ in 0..60 * capacity {
            let name = match random.below(3) {
                0 => 500 + random.below(5_000) as u64,
                _ => random.below(500) as u64,
            };
            let is_here = name < 500;
            gate.note_request(Random::new(name).next_u64(), is_here);
        }
        let mut n_admitted = |names: std::ops::Range<u64>| {
            let admitted = names.filter(|&name| gate.admits(Random::new(name).next_u64(), false));
            admitted.count()
        };
        let (popular, others) = (n_admitted(0..500), n_admitted(500..5_500));
        assert!(popular >= 250 && others < 50, "{popular} {others}");
    }

    #[test]
    fn who_was_asked_for_more_often_than_what_went_is_let_in() {
        let mut gate = gate(Admission::TinyLfu { window_len: 1_000 });
        let (rare, usual) = (Random::new(1).next_u64(), Random::new(2).next_u64());
        gate.note_request(rare, false);
        assert!(gate.admits(rare, false), "the log has room");
        // The first chunk that the record has is the fifth of its batch.
        let key = Random::new(3).next_u64();
        gate.note_victims(&[batch(key, 0b11_0000)]);
        assert!(!gate.admits(rare, false), "once earns no write");
        gate.note_request(usual, false);
        gate.note_request(usual, false);
        assert!(gate.admits(usual, false), "it was never read");
        gate.note_read(key, 0b11_0000);
        // What is here does not count until it is read.
        for _ in 0..5 {
            gate.note_request(chunk_id(key, 4), true);
        }
        assert!(gate.admits(usual, false));
        gate.note_read(key, 0b11_0000);
        assert!(!gate.admits(usual, false), "as often");
        for _ in 0..300 {
            gate.note_read(key, 0b11_0000);
            gate.note_request(usual, false);
        }
        assert!(gate.admits(usual, false), "as often as can be told");
    }

    #[test]
    fn victims_are_some_of_all_and_one_is_for_all_of_a_batch() {
        let mut gate = gate(Admission::TinyLfu { window_len: 10_000 });
        let entries: Vec<_> = (0..10_000).map(|key| batch(key << 8, 1)).collect();
        gate.note_victims(&entries);
        let Gate::Contested(contest) = &gate else {
            panic!("of this kind");
        };
        assert!((200..=MAX_VICTIMS).contains(&contest.victims.len()));
        assert!(contest.victims.contains(&batch_id(0, 1)));
        assert!(contest.victims.iter().any(|&it| it > 9_000 << 8));
        // One of two was read often: half of all batches have it to beat, with all chunks.
        gate.note_victims(&[batch(1 << 8, 1), batch(2 << 8, 1)]);
        (0..5).for_each(|_| gate.note_read(1 << 8, 1));
        let mut random = Random::new(5);
        let mut n_admitted = 0;
        for _ in 0..200 {
            let key = random.next_u64();
            for place in 0..4 {
                gate.note_request(chunk_id(key, place), false);
                gate.note_request(chunk_id(key, place), false);
            }
            let admitted = [0, 1, 2, 3].map(|place| gate.admits(chunk_id(key, place), false));
            assert!(admitted == [true; 4] || admitted == [false; 4]);
            n_admitted += u32::from(admitted[0]);
        }
        assert!((60..140).contains(&n_admitted), "{n_admitted}");
        gate.note_victims(&[]);
        assert!(gate.admits(99, false));
    }
}
