//! Adding a region's entries to the index, and removing them, step by step.
//!
//! A region of many small Data, or of names with many components, has a million entries, and
//! packets wait while entries are processed. Owns what remains to be done for regions that have
//! been read; [`SecondLevel::handle_timeout`] processes [`MAX_ENTRIES`] and is due again at once
//! while anything remains. Checking a table of contents is not divided: 466,000 Data of 50 bytes
//! in a region of 64 MiB stop packets for about 3 ms.

use crate::erasures::from_extent;
use crate::index::Location;
use crate::layout::{Position, TocEntry};
use crate::log::RegionState;
use crate::offering::{note_prefix, note_record};
use crate::regions::{Contents, Taking, Why};
use crate::second_level::SecondLevel;

/// Entries that are dealt with when the store is asked to do what is due. Each looks at two
/// lines of the index, so that all of them take less than a millisecond.
const MAX_ENTRIES: usize = 4_096;

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
                match taking.why {
                    Why::Recovery => self.take_in(region, entry),
                    Why::Emptying => self.take_out(region, entry),
                }
            }
            n_left -= n;
            taking.n_taken += n;
            if taking.n_taken < taking.contents.entries.len() {
                self.takings.push_front(taking);
                return;
            }
            self.end_taking(taking);
        }
    }

    fn end_taking(&mut self, taking: Taking) {
        let (region, contents) = (taking.region, taking.contents);
        match taking.why {
            Why::Recovery => {
                for (hash, position) in contents.erased_before {
                    if position.0 >= self.log.first_seq() {
                        self.take_in_erasure(region, hash, position);
                    }
                }
                let found = *self.log.region(region);
                if found.state == RegionState::Lost {
                    return;
                }
                if contents.is_unsealed {
                    self.log.seal_with(region, found.seq, contents.entries);
                } else if contents.is_followed {
                    // No table of contents would tell of them while the region is begun again.
                    let erased = self.erasures.of_region(found.seq);
                    self.unwritten_erasures.extend(erased);
                }
            }
            Why::Emptying => {
                if contents.is_followed {
                    self.index.retain(|it| it.region != region);
                }
                self.leave(region);
                self.counters.n_regions_emptied += 1;
            }
        }
    }

    /// Nothing of a region is in the index any more: it may be written again. Erasures whose last
    /// record it has are written again, or forgotten if all that they erase has gone.
    pub(crate) fn leave(&mut self, region: u32) {
        // From now on no read that is under way brings anything of it.
        self.log.set_free(region);
        let seq = self.log.region(region).seq;
        let last: Vec<(u64, Position)> = self.erasures.of_region(seq).collect();
        if last.is_empty() {
            return;
        }
        let oldest = self.log.oldest_but(region);
        for (hash, position) in last {
            match oldest.is_some_and(|seq| seq <= position.0) {
                true => self.unwritten_erasures.push_back((hash, position)),
                false => self.erasures.forget(hash),
            }
        }
    }

    /// Puts an entry of a region into the index.
    fn take_in(&mut self, region: u32, entry: TocEntry) {
        let found = self.log.region(region);
        let (seq, is_lost) = (found.seq, found.state == RegionState::Lost);
        match entry {
            TocEntry::Erasure(hash, extent) => {
                self.take_in_erasure(region, hash, from_extent(seq, extent));
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
                let is_in = note_prefix(&mut self.index, &self.log, hash, location);
                self.counters.n_prefixes_not_indexed += u64::from(!is_in);
            }
        }
    }

    /// Takes an entry of a region out of the index, if it is there.
    fn take_out(&mut self, region: u32, entry: TocEntry) {
        if let TocEntry::Batch(hash, extent) | TocEntry::Prefix(hash, extent) = entry {
            self.index.remove(hash, Location { region, extent });
        }
    }

    /// Takes an erasure in of which a region tells.
    fn take_in_erasure(&mut self, region: u32, hash: u64, position: Position) {
        let found = self.log.region(region);
        let (seq, is_lost) = (found.seq, found.state == RegionState::Lost);
        self.note_erasure(hash, position);
        if !is_lost {
            self.erasures.note_record(hash, position, seq);
        } else if self.erasures.is_last_record(hash, position, seq) {
            self.unwritten_erasures.push_back((hash, position));
        }
    }
}
