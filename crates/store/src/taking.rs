//! Putting what regions hold into the index, and taking it out, some entries at a time.
//!
//! A region of many small Data, or of names with many components, has a million entries, and
//! packets wait while any of them is dealt with. Owns what is left to be done of regions that
//! have been looked through; [`SecondLevel::handle_timeout`] does a part, and is due again at
//! once while anything is left.

use crate::erasures::from_extent;
use crate::index::Location;
use crate::layout::TocEntry;
use crate::log::RegionState;
use crate::offering::{note_prefix, note_record};
use crate::regions::{Contents, Why};
use crate::second_level::SecondLevel;

/// Entries that are dealt with when the store is asked to do what is due. Each looks at two
/// lines of the index, mostly in memory, so that all of them take less than a millisecond.
const MAX_ENTRIES: usize = 4_096;

/// What is left to be done of a region.
#[derive(Debug)]
pub(crate) struct Taking {
    region: u32,
    why: Why,
    contents: Contents,
    /// What is dealt with now.
    pass: Pass,
    /// Entries that this pass has looked at.
    n_taken: usize,
}

/// What of a region is dealt with. Of one that goes erasures come last: what they erase must
/// not be found when they are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// All, or what is in the index.
    Entries,
    /// Erasures, of one that goes.
    Erasures,
}

impl SecondLevel {
    /// It is known what a region holds: begins to put it into the index, or to take it out.
    pub(crate) fn begin_taking(&mut self, region: u32, why: Why, contents: Contents) {
        if why == Why::Recovery {
            let Some(seq) = contents.seq.filter(|&seq| seq >= self.log.first_seq()) else {
                return self.log.set_free(region);
            };
            self.log.set_found(region, seq);
        }
        if why == Why::Emptying {
            self.gate.note_victims(&contents.entries);
        }
        self.takings.push_back(Taking {
            region,
            why,
            contents,
            pass: Pass::Entries,
            n_taken: 0,
        });
    }

    /// A volume is lost. What its regions tell of erasures is taken in all the same; what is
    /// taken out of the index has left it.
    pub(crate) fn give_up_taking(&mut self) {
        let log = &self.log;
        self.takings.retain(|it| {
            it.why == Why::Recovery || log.region(it.region).state != RegionState::Lost
        });
    }

    /// Deals with some entries, if any are left.
    pub(crate) fn go_on_taking(&mut self) {
        let mut n_left = MAX_ENTRIES;
        while n_left > 0
            && let Some(mut taking) = self.takings.pop_front()
        {
            let region = taking.region;
            let rest = &taking.contents.entries[taking.n_taken..];
            let n = rest.len().min(n_left);
            for &entry in &rest[..n] {
                match (taking.why, taking.pass) {
                    (Why::Recovery, _) => self.take_in(region, entry),
                    (Why::Emptying, Pass::Entries) => self.take_out(region, entry),
                    (Why::Emptying, Pass::Erasures) => self.forget_erasure(region, entry),
                }
            }
            n_left -= n;
            taking.n_taken += n;
            if taking.n_taken < taking.contents.entries.len() {
                self.takings.push_front(taking);
                return;
            }
            if (taking.why, taking.pass) == (Why::Emptying, Pass::Entries) {
                // From now on no read that is under way brings anything of it.
                self.log.set_left(region);
                taking.pass = Pass::Erasures;
                taking.n_taken = 0;
                self.takings.push_front(taking);
                continue;
            }
            self.end_taking(&taking);
        }
    }

    fn end_taking(&mut self, taking: &Taking) {
        let (region, contents) = (taking.region, &taking.contents);
        let found = self.log.region(region);
        match taking.why {
            Why::Recovery if contents.is_unsealed && found.state != RegionState::Lost => {
                self.log.seal_with(region, found.seq, &contents.entries);
            }
            Why::Recovery => {}
            Why::Emptying => {
                self.log.set_free(region);
                self.counters.n_regions_emptied += 1;
            }
        }
    }

    /// Puts an entry of a region into the index.
    fn take_in(&mut self, region: u32, entry: TocEntry) {
        let found = self.log.region(region);
        let (seq, is_lost) = (found.seq, found.state == RegionState::Lost);
        match entry {
            TocEntry::Erasure(hash, extent) => {
                let position = from_extent(seq, extent);
                self.note_erasure(hash, position);
                if !is_lost {
                    self.erasures.note_record(hash, position, seq);
                } else if self.erasures.is_last_record(hash, position, seq) {
                    self.unwritten_erasures.push_back((hash, position));
                }
            }
            _ if is_lost => {}
            TocEntry::Batch(key, extent) => {
                let (index, counters) = (&mut self.index, &mut self.counters);
                let location = Location { region, extent };
                let is_in = note_record(index, &self.log, counters, key, location);
                self.counters.n_recovered += u64::from(is_in);
            }
            TocEntry::Prefix(hash, extent) => {
                let location = Location { region, extent };
                note_prefix(&mut self.index, &self.log, hash, location);
            }
        }
    }

    /// Takes an entry of a region out of the index, if it is there.
    fn take_out(&mut self, region: u32, entry: TocEntry) {
        if let TocEntry::Batch(hash, extent) | TocEntry::Prefix(hash, extent) = entry {
            self.index.remove(hash, Location { region, extent });
        }
    }

    /// A region goes that has an erasure's record, if this is one: it is written again, or
    /// forgotten if all that it erases has gone.
    fn forget_erasure(&mut self, region: u32, entry: TocEntry) {
        let TocEntry::Erasure(hash, extent) = entry else {
            return;
        };
        let seq = self.log.region(region).seq;
        let position = from_extent(seq, extent);
        if !self.erasures.is_last_record(hash, position, seq) {
            return;
        }
        match self.log.may_hold_older(region, position.0) {
            true => self.unwritten_erasures.push_back((hash, position)),
            false => self.erasures.forget(hash),
        }
    }
}
