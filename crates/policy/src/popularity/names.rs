//! The names with the lowest hashes, with how often each was asked for.

use std::collections::BinaryHeap;

/// A name and its count; a count of 0 is an empty place.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    hash: u64,
    count: u32,
}

/// Of the names that were counted, the `capacity` with the lowest hashes. Takes 40 bytes a
/// name, all of it when it is made.
#[derive(Debug)]
pub(super) struct LowestNames {
    /// A power of two, twice as many as names at least; each name is at the place that its
    /// lowest bits say, or behind it without a gap.
    places: Box<[Place]>,
    /// The hashes of all of them, the greatest first.
    hashes: BinaryHeap<u64>,
    capacity: usize,
    /// Names are counted below this only.
    below: u64,
}

impl LowestNames {
    pub(super) fn new(capacity: usize) -> Self {
        let n_places = match capacity {
            0 => 0,
            _ => 2 * capacity.next_power_of_two(),
        };
        Self {
            places: vec![Place::default(); n_places].into(),
            hashes: BinaryHeap::with_capacity(capacity),
            capacity,
            below: u64::MAX,
        }
    }

    /// A name whose hash is not below this is none of them.
    pub(super) const fn below(&self) -> u64 {
        self.below
    }

    /// Forgets all, and counts names below `below` from now on.
    pub(super) fn clear(&mut self, below: u64) {
        self.places.fill(Place::default());
        self.hashes.clear();
        self.below = below;
    }

    /// The names and their counts, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let held = self.places.iter().filter(|place| place.count > 0);
        held.map(|place| (place.hash, place.count))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.places) + self.hashes.capacity() * size_of::<u64>()
    }

    /// Counts a name whose hash is below [`below`](Self::below). Of more names than there
    /// is room for, the greatest hash goes.
    pub(super) fn count(&mut self, hash: u64) {
        let idx = self.find(hash);
        let place = &mut self.places[idx];
        if place.count > 0 {
            place.count = place.count.saturating_add(1);
            return;
        }
        *place = Place { hash, count: 1 };
        self.hashes.push(hash);
        if self.hashes.len() == self.capacity {
            // The greatest of them is the bound, and counts no more: what is below it has
            // been counted from the first.
            if let Some(greatest) = self.hashes.pop() {
                self.remove(greatest);
                self.below = greatest;
            }
        }
    }

    const fn home(&self, hash: u64) -> usize {
        hash as usize & (self.places.len() - 1)
    }

    /// Where a name is, or is to be put.
    fn find(&self, hash: u64) -> usize {
        let mut idx = self.home(hash);
        while self.places[idx].count > 0 && self.places[idx].hash != hash {
            idx = (idx + 1) & (self.places.len() - 1);
        }
        idx
    }

    /// Takes a name out, and closes the gap (Knuth, The Art of Computer Programming,
    /// volume 3, algorithm 6.4R).
    fn remove(&mut self, hash: u64) {
        let mask = self.places.len() - 1;
        let mut gap = self.find(hash);
        let mut idx = gap;
        loop {
            idx = (idx + 1) & mask;
            let place = self.places[idx];
            if place.count == 0 {
                break;
            }
            // Whether the gap lies between its home and where it is.
            let way = idx.wrapping_sub(self.home(place.hash)) & mask;
            if way >= idx.wrapping_sub(gap) & mask {
                self.places[gap] = place;
                gap = idx;
            }
        }
        self.places[gap] = Place::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::Random;

    /// Against a map of all names, of which the lowest are compared. `bits` are those that
    /// hashes differ in: with few in the lowest places names collide.
    fn compare(shift: u32, n_names: usize) {
        let mut random = Random::new(7);
        let mut names = LowestNames::new(64);
        let mut all = BTreeMap::new();
        for _ in 0..20_000 {
            let mut of_name = Random::new(random.below(n_names) as u64);
            let hash = of_name.next_u64() >> shift << shift;
            *all.entry(hash).or_insert(0) += 1;
            if hash < names.below() {
                names.count(hash);
            }
        }
        let lowest = all
            .range(..names.below())
            .map(|(&hash, &count)| (hash, count));
        let lowest: BTreeMap<u64, u32> = lowest.collect();
        assert_eq!(names.iter().collect::<BTreeMap<_, _>>(), lowest);
        assert_eq!(names.hashes.len(), lowest.len());
        let n_expected = if all.len() < 64 { all.len() } else { 63 };
        assert_eq!(names.hashes.len(), n_expected);
    }

    #[test]
    fn the_names_with_the_lowest_hashes_have_exact_counts() {
        compare(0, 1_000);
        compare(0, 50);
        // All at home in one of two places.
        compare(63 - 10, 1_000);
        compare(6, 500);
    }

    #[test]
    fn what_is_cleared_counts_below_the_new_bound() {
        let mut names = LowestNames::new(4);
        for hash in [9, 5, 7, 3] {
            names.count(hash);
        }
        assert_eq!((names.hashes.len(), names.below()), (3, 9));
        names.clear(100);
        assert_eq!(
            (names.iter().count(), names.hashes.len(), names.below()),
            (0, 0, 100)
        );
        names.count(50);
        assert_eq!(names.iter().collect::<Vec<_>>(), [(50, 1)]);
    }
}
