//! Cached Data that the tree of prefixes has not yet.
//!
//! Owns a summary of sixteen bytes for each of them, by slot, so that what lies
//! under a prefix can be told without the tree: a search reads the summaries from
//! end to end and, of the Data themselves, those only that are almost certainly
//! under the prefix. For 65,536 Data that is a mebibyte in order; of more, a search
//! that must be quick reads so many and leaves the others to the next one.
//! It decides nothing: who reads a summary compares names by their bytes.

use std::ops::Range;

use tachonym_memory::{MemoryError, PagePreference, Pages};
use tachonym_packet::{MonoNs, NameHash};

use crate::slab::Slab;

/// Prefixes of a name that its summary tells apart. Longer ones are taken for the
/// longest of these.
const N_TAGS: usize = 6;

/// Nanoseconds in a unit of [`Summary::fresh_until`], as a power of two: 17 ms.
const FRESH_SHIFT: u32 = 24;

/// Summaries that [`Waiting::next`] looks at, at most.
const MAX_SUMMARIES_PER_STEP: usize = 256;

/// Summaries that [`Waiting::find_quickly`] looks at, at most, and Data that it asks
/// about: names deeper than what a summary tells apart are many under one tag.
const MAX_SUMMARIES_PER_FIND: u32 = 1 << 16;
const MAX_NAMES_PER_FIND: usize = 1 << 10;

/// Sixteen bytes of a Data; all zero if none waits in the slot.
#[derive(Clone, Copy, Debug, Default)]
struct Summary {
    /// Of each prefix from one component on; zero where there is none.
    tags: [u16; N_TAGS],
    /// Rounded up; zero if it never is.
    fresh_until: u32,
}

const _: () = assert!(size_of::<Summary>() == 16);

impl Summary {
    const fn is_waiting(&self) -> bool {
        self.tags[0] != 0
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Waiting {
    summaries: Slab<Summary>,
    n_waiting: usize,
    /// Where the last one was looked for.
    hand: u32,
    /// Where the next quick search begins.
    find_at: u32,
}

const fn tag_of(hash: NameHash) -> u16 {
    (hash.0 >> 24) as u16 | 1
}

const fn fresh_units(until: MonoNs) -> u32 {
    let units = until.0.div_ceil(1 << FRESH_SHIFT);
    if units > u32::MAX as u64 {
        u32::MAX
    } else {
        units as u32
    }
}

impl Waiting {
    /// None waits; summaries for `max_data`.
    ///
    /// # Errors
    /// If there are not as many addresses.
    pub(super) fn new(max_data: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        Ok(Self {
            summaries: Slab::new(max_data, pages)?,
            n_waiting: 0,
            hand: 0,
            find_at: 0,
        })
    }

    /// Makes room for the summaries of `max_data`.
    ///
    /// # Errors
    /// If there are not as many addresses; nothing has changed then.
    pub(super) fn set_max_data(&mut self, max_data: usize) -> Result<(), MemoryError> {
        self.summaries.set_max_slots(max_data)
    }

    pub(super) fn pages(&self) -> Pages {
        self.summaries.pages()
    }

    /// Makes sure that there is a summary for a slot; one for each before it was
    /// asked for already.
    #[inline]
    pub(super) fn make_room(&mut self, slot: u32) {
        if self.summaries.n_touched() <= slot {
            self.summaries.alloc();
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.summaries.memory_bytes()
    }

    /// The Data in a slot waits from now on. `hashes[i]` is the hash of the first `i`
    /// components of its name, which has one at least.
    #[inline]
    pub(super) fn add(&mut self, slot: u32, hashes: &[NameHash], fresh_until: MonoNs) {
        self.summaries[slot] = Summary {
            tags: std::array::from_fn(|place| hashes.get(1 + place).map_or(0, |&h| tag_of(h))),
            fresh_until: fresh_units(fresh_until),
        };
        self.n_waiting += 1;
    }

    /// The Data that waits in a slot is fresh until then.
    pub(super) fn set_fresh_until(&mut self, slot: u32, fresh_until: MonoNs) {
        self.summaries[slot].fresh_until = fresh_units(fresh_until);
    }

    /// The Data in a slot waits no longer.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        self.summaries[slot] = Summary::default();
        self.n_waiting -= 1;
    }

    /// Some slot whose Data waits; `None` if there is none among the next
    /// summaries.
    pub(super) fn next(&mut self) -> Option<u32> {
        if self.n_waiting == 0 {
            return None;
        }
        for _ in 0..MAX_SUMMARIES_PER_STEP {
            let slot = self.hand;
            self.hand = (slot + 1) % self.summaries.n_touched();
            if self.summaries[slot].is_waiting() {
                return Some(slot);
            }
        }
        None
    }

    /// The first slot that `accepts` takes, of those that wait. It is asked about
    /// each Data below the prefix of these hashes and hardly any other.
    pub(super) fn find(
        &self,
        hashes: &[NameHash],
        mut accepts: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.n_waiting == 0 {
            return None;
        }
        let all = 0..self.summaries.n_touched();
        self.alike(all, hashes, None).find(|&slot| accepts(slot))
    }

    /// As [`Waiting::find`], with bounded work: of very many that wait it may miss what
    /// is there. If `fresh_at` is given, `accepts` is asked only about those that may be
    /// fresh then.
    pub(super) fn find_quickly(
        &mut self,
        hashes: &[NameHash],
        fresh_at: Option<MonoNs>,
        mut accepts: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.n_waiting == 0 {
            return None;
        }
        let n_summaries = self.summaries.n_touched();
        let begin = self.find_at % n_summaries;
        let n_read = n_summaries.min(MAX_SUMMARIES_PER_FIND);
        let end = begin + n_read;
        self.find_at = end % n_summaries;
        let until_last = begin..end.min(n_summaries);
        let from_first = 0..end.saturating_sub(n_summaries);
        self.alike(until_last, hashes, fresh_at)
            .chain(self.alike(from_first, hashes, fresh_at))
            .take(MAX_NAMES_PER_FIND)
            .find(|&slot| accepts(slot))
    }

    /// The slots among `slots` whose Data are almost certainly below the prefix of these
    /// hashes.
    fn alike(
        &self,
        slots: Range<u32>,
        hashes: &[NameHash],
        fresh_at: Option<MonoNs>,
    ) -> impl Iterator<Item = u32> {
        // Whatever has a component, if none is asked for.
        let n_components = (hashes.len() - 1).min(N_TAGS);
        let place = n_components.saturating_sub(1);
        let tag = (n_components > 0).then(|| tag_of(hashes[n_components]));
        let least = fresh_at.map_or(0, |now| fresh_units(MonoNs(now.0.saturating_add(1))));
        slots.filter(move |&slot| {
            let summary = &self.summaries[slot];
            let own = summary.tags[place];
            tag.map_or(own != 0, |tag| own == tag) && summary.fresh_until >= least
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of a name of so many components, each of them a number.
    fn hashes(components: &[u64]) -> Vec<NameHash> {
        let mut hash = 1_u64;
        let mut hashes = vec![NameHash(hash)];
        hashes.extend(components.iter().map(|component| {
            hash = (hash ^ component).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 31;
            NameHash(hash)
        }));
        hashes
    }

    fn full(n_data: u32) -> Waiting {
        let mut waiting = Waiting::new(n_data as usize, PagePreference::Base).unwrap();
        for slot in 0..n_data {
            waiting.make_room(slot);
            let name = hashes(&[1, u64::from(slot % 10), 2, 3, 4, 5, 6, u64::from(slot)]);
            let fresh_until = MonoNs(u64::from(slot) << FRESH_SHIFT);
            waiting.add(slot, &name, fresh_until);
        }
        waiting
    }

    /// What a search asks about, however far the last one came.
    fn asked_about(waiting: &mut Waiting, name: &[u64], fresh_at: Option<MonoNs>) -> Vec<u32> {
        let mut asked = Vec::new();
        let found = waiting.find_quickly(&hashes(name), fresh_at, |slot| {
            asked.push(slot);
            false
        });
        assert_eq!(found, None);
        if fresh_at.is_none() {
            let mut all = Vec::new();
            waiting.find(&hashes(name), |slot| {
                all.push(slot);
                false
            });
            assert_eq!(asked, all);
        }
        asked
    }

    #[test]
    fn of_very_many_a_quick_search_reads_some_and_the_next_one_others() {
        let n_data = MAX_SUMMARIES_PER_FIND + 10;
        let mut waiting = Waiting::new(n_data as usize, PagePreference::Base).unwrap();
        for slot in 0..n_data {
            waiting.make_room(slot);
            let is_last = u64::from(slot + 1 == n_data);
            waiting.add(slot, &hashes(&[1, is_last, u64::from(slot)]), MonoNs(1));
        }
        let last = Some(n_data - 1);
        assert_eq!(waiting.find(&hashes(&[1, 1]), |_| true), last);
        assert_eq!(waiting.find_quickly(&hashes(&[1, 1]), None, |_| true), None);
        assert_eq!(waiting.find_quickly(&hashes(&[1, 1]), None, |_| true), last);
        let mut n_asked = 0;
        waiting.find_quickly(&hashes(&[1]), None, |_| {
            n_asked += 1;
            false
        });
        assert_eq!(n_asked, MAX_NAMES_PER_FIND);
    }

    #[test]
    fn a_search_asks_about_those_below_the_prefix_and_few_others() {
        let mut waiting = full(1000);
        assert_eq!(asked_about(&mut waiting, &[], None).len(), 1000);
        assert_eq!(asked_about(&mut waiting, &[1], None).len(), 1000);
        assert!(asked_about(&mut waiting, &[2], None).is_empty());
        let tenth: Vec<u32> = (0..100).map(|n| 10 * n + 7).collect();
        assert_eq!(asked_about(&mut waiting, &[1, 7], None), tenth);
        // A prefix longer than what is told apart.
        assert_eq!(
            asked_about(&mut waiting, &[1, 7, 2, 3, 4, 5, 6, 17], None),
            tenth
        );
        assert!(asked_about(&mut waiting, &[1, 7, 2, 4], None).is_empty());
    }

    #[test]
    fn a_search_for_fresh_data_asks_about_no_others() {
        let mut waiting = full(1000);
        let at = |units: u64| Some(MonoNs(units << FRESH_SHIFT));
        let just_before = Some(MonoNs((900 << FRESH_SHIFT) - 1));
        assert_eq!(asked_about(&mut waiting, &[1], at(0)).len(), 999);
        assert_eq!(asked_about(&mut waiting, &[1], at(900)).len(), 99);
        assert_eq!(asked_about(&mut waiting, &[1], just_before).len(), 100);
        assert!(asked_about(&mut waiting, &[1], at(999)).is_empty());
        waiting.set_fresh_until(5, MonoNs(u64::MAX));
        let never = Some(MonoNs(u64::MAX - 1));
        assert_eq!(asked_about(&mut waiting, &[1], never), [5]);
    }

    #[test]
    fn each_is_taken_once_in_bounded_steps() {
        let mut waiting = full(1000);
        for slot in (0..1000).filter(|slot| slot % 500 != 3) {
            waiting.remove(slot);
        }
        let mut taken = Vec::new();
        let mut n_steps = 0;
        while taken.len() < 2 {
            n_steps += 1;
            if let Some(slot) = waiting.next() {
                waiting.remove(slot);
                taken.push(slot);
            }
        }
        assert_eq!(taken, [3, 503]);
        assert!(n_steps <= 4);
        assert_eq!(waiting.next(), None);
        assert!(asked_about(&mut waiting, &[], None).is_empty());
    }
}
