//! Admission policy: which Data packets are written to SSD.
//!
//! A request counts if the DRAM level cannot answer it, or answers with Data that was not
//! admitted. Interests for a prefix or a digest count only if the DRAM level answers them.
//!
//! - Hits on segments of a batch that was read are not seen here. So a stored batch counts one
//!   per read, which is one per consumer that passes, like a segment that is not stored
//!   ([`Contest`]).
//! - TinyLFU compares a Data with one batch of the region that was emptied last, because a log
//!   has no other victims. The batch is chosen by the Data's name, the same one for all segments
//!   of a batch, and another one after a 64th of the window.
//! - Data that replaces stored Data needs no admission. If there is no room for it, neither
//!   version is served; after a restart the old one may be.

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
    Tuned {
        filter: Box<AutoFilter>,
        /// Whether something had to go: before, there is room for all.
        is_full: bool,
    },
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
            Admission::FilterAuto { capacity } => Self::Tuned {
                filter: Box::new(AutoFilter::new(capacity.max(1), pages)?),
                is_full: false,
            },
            Admission::TinyLfu { window_len } => {
                Self::Contested(Box::new(Contest::new(window_len, pages)?))
            }
        })
    }

    /// Whether a Data that is not admitted now may be when it is asked for again.
    pub(crate) const fn learns(&self) -> bool {
        matches!(
            self,
            Self::Asked(_) | Self::Tuned { .. } | Self::Contested(_)
        )
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

    /// A name was asked for that this level does not have.
    pub(crate) fn note_miss(&mut self, id: u64) {
        match self {
            Self::All | Self::Some { .. } => {}
            Self::Asked(filter) => {
                filter.handle_request(id);
            }
            Self::Tuned { filter, .. } => {
                filter.handle_request(id);
            }
            Self::Contested(contest) => contest.frequencies.handle_request(id),
        }
    }

    /// A name was asked for that this level has.
    pub(crate) fn note_hit(&mut self, id: u64) {
        match self {
            // It is counted when it is read.
            Self::Contested(_) => {}
            _ => self.note_miss(id),
        }
        if let Self::Tuned { filter, .. } = self {
            filter.handle_hit();
        }
    }

    /// A batch is read, for whoever waits or will.
    pub(crate) fn note_read(&mut self, key: u64, mask: u16) {
        if let Self::Contested(contest) = self {
            contest.frequencies.handle_request(batch_id(key, mask));
        }
    }

    /// A region goes, to make room, with these entries as far as they are known.
    pub(crate) fn note_victims(&mut self, entries: &[TocEntry]) {
        match self {
            Self::Tuned { is_full, .. } => *is_full = true,
            Self::Contested(contest) => contest.note_victims(entries),
            _ => {}
        }
    }

    /// Whether a Data earns its write with others of its batch that are about to be written. Of
    /// a batch that is here only the first chunk is counted; when that went and comes again, the
    /// others come along.
    pub(crate) const fn admits_with_others(&self) -> bool {
        matches!(self, Self::Contested(_))
    }

    /// Whether a Data earns its write.
    pub(crate) fn admits(&mut self, id: u64) -> bool {
        match self {
            Self::All => true,
            Self::Some { of_2_32, random } => random.next_u64() >> 32 < *of_2_32,
            Self::Asked(filter) => filter.admits(id),
            Self::Tuned { filter, is_full } => !*is_full || filter.admits(id),
            Self::Contested(contest) => contest.admits(id),
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

/// Draws in as many contests as a window has requests: each lasts for some batches, so that
/// mostly all chunks of one meet the same victim, unless windows are very short.
const DRAWS_PER_WINDOW: usize = 64;

/// TinyLFU before a log: a Data is written if it was asked for more often than one of those
/// that had to go last, and more than once: what goes may not have been asked for within the
/// window, and one request earns no write. For all chunks of a batch the same one is drawn, and
/// after [some contests](DRAWS_PER_WINDOW) another one: what many ask for may have to beat what
/// as many ask for.
///
/// Frequencies are of chunks, and of a batch that is stored those of its first chunk: how often
/// it was read, or would have been. A stream through a batch that is not stored asks once for
/// each chunk, and one through a stored batch has it read once; so each counts as often as
/// streams pass, and is compared with its like.
#[derive(Debug)]
pub(crate) struct Contest {
    frequencies: TinyLfu,
    /// Of the last region with batches that was emptied; none while the log has room.
    victims: Vec<u64>,
    random: Random,
    draw: u32,
    /// Contests that one draw is for, and that are left of it.
    draw_len: usize,
    n_left: usize,
}

impl Contest {
    fn new(window_len: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        Ok(Self {
            frequencies: TinyLfu::new(window_len, pages)?,
            victims: Vec::with_capacity(MAX_VICTIMS),
            random: Random::new(window_len as u64),
            draw: 0,
            draw_len: window_len.div_ceil(DRAWS_PER_WINDOW).max(1),
            n_left: 0,
        })
    }

    fn note_victims(&mut self, entries: &[TocEntry]) {
        // Prefixes come last. Some from everywhere in the region.
        let n_records = entries.partition_point(|it| !matches!(it, TocEntry::Prefix(..)));
        let batches = entries[..n_records].iter().filter_map(|entry| match entry {
            &TocEntry::Batch(key, extent) => Some(batch_id(key, extent.mask)),
            TocEntry::Prefix(..) | TocEntry::Erasure(..) => None,
        });
        let step = batches.clone().count().div_ceil(MAX_VICTIMS).max(1);
        let mut batches = batches.step_by(step).peekable();
        if batches.peek().is_some() {
            self.victims.clear();
            self.victims.extend(batches);
        }
    }

    fn admits(&mut self, id: u64) -> bool {
        if self.victims.is_empty() {
            return true;
        }
        if self.n_left == 0 {
            self.n_left = self.draw_len;
            self.draw = self.random.next_u64() as u32;
        }
        self.n_left -= 1;
        let of_2_32 = ((id >> 32) as u32).wrapping_add(self.draw);
        let drawn = (u64::from(of_2_32) * self.victims.len() as u64) >> 32;
        let victim = self.victims[drawn as usize];
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
        gate.note_miss(5);
        assert!(!gate.admits(5) && gate.learns());
        gate.note_miss(5);
        assert!(gate.admits(5) && !gate.admits(6));
    }

    #[test]
    fn lots_fall_as_often_as_they_should() {
        let n_admitted = |probability| {
            let mut gate = gate(Admission::Lcp {
                probability,
                seed: 9,
            });
            (0..10_000).filter(|_| gate.admits(1)).count()
        };
        assert_eq!((n_admitted(0.0), n_admitted(1.0)), (0, 10_000));
        assert!((900..1_100).contains(&n_admitted(0.1)));
    }

    #[test]
    fn a_threshold_of_its_own_leaves_room_to_what_is_asked_for_most() {
        let capacity = 500;
        let mut gate = gate(Admission::FilterAuto { capacity });
        assert!(gate.admits(3), "there is room");
        gate.note_victims(&[]);
        // Of 5,500 names 500 have two thirds of the requests.
        let mut random = Random::new(4);
        for _ in 0..60 * capacity {
            let name = match random.below(3) {
                0 => 500 + random.below(5_000) as u64,
                _ => random.below(500) as u64,
            };
            let is_here = name < 500;
            let id = Random::new(name).next_u64();
            match is_here {
                true => gate.note_hit(id),
                false => gate.note_miss(id),
            }
        }
        let mut n_admitted = |names: std::ops::Range<u64>| {
            let admitted = names.filter(|&name| gate.admits(Random::new(name).next_u64()));
            admitted.count()
        };
        let (popular, others) = (n_admitted(0..500), n_admitted(500..5_500));
        assert!(popular >= 250 && others < 50, "{popular} {others}");
    }

    #[test]
    fn who_was_asked_for_more_often_than_what_went_is_let_in() {
        let mut gate = gate(Admission::TinyLfu { window_len: 1_000 });
        let (rare, usual) = (Random::new(1).next_u64(), Random::new(2).next_u64());
        gate.note_miss(rare);
        assert!(gate.admits(rare), "the log has room");
        // The first chunk that the record has is the fifth of its batch.
        let key = Random::new(3).next_u64();
        gate.note_victims(&[batch(key, 0b11_0000)]);
        assert!(!gate.admits(rare), "once earns no write");
        gate.note_miss(usual);
        gate.note_miss(usual);
        assert!(gate.admits(usual), "it was never read");
        gate.note_read(key, 0b11_0000);
        // What is here does not count until it is read.
        for _ in 0..5 {
            gate.note_hit(chunk_id(key, 4));
        }
        assert!(gate.admits(usual));
        gate.note_read(key, 0b11_0000);
        assert!(!gate.admits(usual), "as often");
        for _ in 0..300 {
            gate.note_read(key, 0b11_0000);
            gate.note_miss(usual);
        }
        assert!(gate.admits(usual), "as often as can be told");
    }

    #[test]
    fn victims_are_some_of_all_and_one_is_for_all_of_a_batch() {
        let mut gate = gate(Admission::TinyLfu {
            window_len: 100_000,
        });
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
                gate.note_miss(chunk_id(key, place));
                gate.note_miss(chunk_id(key, place));
            }
            let admitted = [0, 1, 2, 3].map(|place| gate.admits(chunk_id(key, place)));
            assert!(admitted == [true; 4] || admitted == [false; 4]);
            n_admitted += u32::from(admitted[0]);
        }
        assert!((60..140).contains(&n_admitted), "{n_admitted}");
        // A region without batches tells nothing of what the next one has.
        let n_victims = |gate: &Gate| match gate {
            Gate::Contested(contest) => contest.victims.len(),
            _ => 0,
        };
        let prefix = match batch(3, 0) {
            TocEntry::Batch(key, extent) => TocEntry::Prefix(key, extent),
            other => other,
        };
        gate.note_victims(&[]);
        gate.note_victims(&vec![prefix; 10_000]);
        assert_eq!(n_victims(&gate), 2);
        // Batches are few among the prefixes of their names.
        let mut few = vec![batch(4 << 8, 1), batch(5 << 8, 1), batch(6 << 8, 1)];
        few.extend(vec![prefix; 10_000]);
        gate.note_victims(&few);
        assert_eq!(n_victims(&gate), 3);
    }

    #[test]
    fn who_has_lost_against_another_one_is_let_in_later() {
        let (window_len, draw_len) = (1 << 20, (1 << 20) / DRAWS_PER_WINDOW);
        let mut gate = gate(Admission::TinyLfu { window_len });
        gate.note_victims(&[batch(1 << 8, 1), batch(2 << 8, 1)]);
        // The first one is asked for as often as the new one, the second one never was.
        let id = Random::new(7).next_u64();
        for _ in 0..5 {
            gate.note_read(1 << 8, 1);
            gate.note_miss(id);
        }
        let mut n_admitted = |n| (0..n).filter(|_| gate.admits(id)).count();
        let of_a_draw = n_admitted(draw_len);
        assert!([0, draw_len].contains(&of_a_draw), "{of_a_draw}");
        let n_draws = n_admitted(20 * draw_len) / draw_len;
        assert!((4..=16).contains(&n_draws), "{n_draws}");
    }
}
