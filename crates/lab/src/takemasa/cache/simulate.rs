//! A content store of names without Data, driven by the router's policies.
//!
//! Objects are numbered; the hash that a policy sees of one is a bijection of its
//! number, so that no two are taken for each other. A Data arrives at the moment of its
//! Interest. Requests are handled in bursts, so that what they read first can be fetched
//! ahead.

use std::time::Instant;

use crate::workloads::Requests;
use tachonym_forward::BURST_DISTANCE;
use tachonym_memory::{MemoryError, PagePreference, PlainWords, prefetch};
use tachonym_policy::{Policy, PolicyConfig, PolicyError};

/// Requests of a burst.
pub(crate) const BURST: usize = 64;

/// No object.
const NO_OBJECT: u32 = u32::MAX;

/// By object the slot that it was in last, on large pages. Whether it still is, the slot
/// says: so what is evicted needs no visit here, which would be an access to memory that
/// nothing can fetch ahead.
#[derive(Debug)]
struct Slots(PlainWords);

impl Slots {
    fn new(n_objects: usize) -> Result<Self, MemoryError> {
        PlainWords::new(n_objects.div_ceil(2), PagePreference::Auto).map(Self)
    }

    #[inline]
    const fn place(object: u32) -> (usize, u32) {
        (object as usize / 2, object % 2 * 32)
    }

    #[inline]
    fn prefetch(&self, object: u32) {
        prefetch(&self.0.as_slice()[Self::place(object).0]);
    }

    /// Of an object that was never cached, any slot.
    #[inline]
    fn last(&self, object: u32) -> u32 {
        let (word, shift) = Self::place(object);
        (self.0.as_slice()[word] >> shift) as u32
    }

    #[inline]
    fn set(&mut self, object: u32, slot: u32) {
        let (word, shift) = Self::place(object);
        let word = &mut self.0.as_mut_slice()[word];
        *word = *word & !(0xFFFF_FFFF << shift) | u64::from(slot) << shift;
    }
}

/// What a stretch of requests came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Interests.
    pub(crate) n_requests: u64,
    /// Those that the cache answered.
    pub(crate) n_hits: u64,
    /// Data that were cached.
    pub(crate) n_inserts: u64,
}

impl Counts {
    /// Hits by requests; 0 without any.
    #[must_use]
    pub(crate) fn hit_ratio(&self) -> f64 {
        self.n_hits as f64 / self.n_requests.max(1) as f64
    }

    /// Insertions by Data that arrived, that is by misses; 0 without any.
    #[must_use]
    pub(crate) fn insertion_ratio(&self) -> f64 {
        self.n_inserts as f64 / (self.n_requests - self.n_hits).max(1) as f64
    }

    /// What came after `earlier`.
    #[must_use]
    pub(crate) const fn since(&self, earlier: &Self) -> Self {
        Self {
            n_requests: self.n_requests - earlier.n_requests,
            n_hits: self.n_hits - earlier.n_hits,
            n_inserts: self.n_inserts - earlier.n_inserts,
        }
    }
}

/// Requests that were drawn before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<'a>(pub(crate) &'a [u32]);

impl Requests for Drawn<'_> {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        let n = objects.len().min(self.0.len());
        let (here, rest) = self.0.split_at(n);
        objects[..n].copy_from_slice(here);
        self.0 = rest;
        n
    }
}

/// The hash of an object's name.
#[inline]
#[must_use]
pub(crate) const fn name_hash(object: u32) -> u64 {
    let mut z = (object as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Requests that come together, and the hashes of their names.
struct Burst {
    objects: [u32; BURST],
    hashes: [u64; BURST],
    len: usize,
}

impl Burst {
    const fn new() -> Self {
        Self {
            objects: [0; BURST],
            hashes: [0; BURST],
            len: 0,
        }
    }
}

/// A cache of objects, their requests and its policy.
#[derive(Debug)]
pub(crate) struct Simulation {
    policy: Policy,
    /// By object.
    slot_of: Slots,
    /// By slot; [`NO_OBJECT`] where none has been yet.
    object_in: Vec<u32>,
    n_used: usize,
    /// Whether the slots are too many for the processor's nearer caches.
    fetches_slots: bool,
    counts: Counts,
}

/// Slots from which what lies by slot is fetched ahead.
const MANY_SLOTS: usize = 1 << 17;

impl Simulation {
    /// An empty cache for objects `0..n_objects`.
    ///
    /// # Errors
    /// If there is no such policy.
    pub(crate) fn new(config: &PolicyConfig, n_objects: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            policy: Policy::new(config)?,
            slot_of: Slots::new(n_objects)?,
            object_in: vec![NO_OBJECT; config.capacity],
            n_used: 0,
            fetches_slots: config.capacity >= MANY_SLOTS,
            counts: Counts::default(),
        })
    }

    /// What has happened so far.
    #[must_use]
    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The policy.
    #[must_use]
    pub(crate) const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Takes the next `n_requests` from `requests`, or as many as there are; how many.
    pub(crate) fn run(&mut self, requests: &mut impl Requests, n_requests: u64) -> u64 {
        // What a request reads first is fetched two bursts before it, and what that leads
        // to one burst before.
        let mut bursts = [const { Burst::new() }; 3];
        let mut n_left = n_requests;
        for burst in &mut bursts[..2] {
            self.draw(requests, burst, &mut n_left);
        }
        while bursts[0].len > 0 {
            let [here, next, last] = &mut bursts;
            self.draw(requests, last, &mut n_left);
            if self.fetches_slots {
                self.prefetch_slots(&next.objects[..next.len]);
            }
            let named = here.objects[..here.len].iter().zip(&here.hashes);
            for (&object, &hash) in named {
                self.handle(object, hash);
            }
            bursts.rotate_left(1);
        }
        n_requests - n_left
    }

    /// The next requests, for which memory is fetched.
    #[inline]
    fn draw(&self, requests: &mut impl Requests, burst: &mut Burst, n_left: &mut u64) {
        let n_asked = (*n_left).min(BURST as u64) as usize;
        burst.len = requests.fill(&mut burst.objects[..n_asked]);
        *n_left -= burst.len as u64;
        let named = burst.objects[..burst.len].iter().zip(&mut burst.hashes);
        for (&object, hash) in named {
            *hash = name_hash(object);
            self.slot_of.prefetch(object);
            self.policy.prefetch_request(*hash);
        }
    }

    fn prefetch_slots(&self, objects: &[u32]) {
        for &object in objects {
            let slot = self.slot_of.last(object);
            if let Some(place) = self.object_in.get(slot as usize) {
                prefetch(place);
                self.policy.prefetch_hit(slot);
            }
        }
    }

    /// The slot that an object is in.
    #[inline]
    fn find(&self, object: u32) -> Option<u32> {
        let slot = self.slot_of.last(object);
        (self.object_in.get(slot as usize) == Some(&object)).then_some(slot)
    }

    /// One Interest for a name of this hash, and the Data if the cache has not answered.
    #[inline(always)]
    fn handle(&mut self, object: u32, hash: u64) {
        self.counts.n_requests += 1;
        self.policy.handle_request(hash);
        if let Some(slot) = self.find(object) {
            self.policy.handle_hit(slot);
            self.counts.n_hits += 1;
            return;
        }
        let object_in = &mut self.object_in;
        let is_full = self.n_used == object_in.len();
        let hash_of = |slot: u32| name_hash(object_in[slot as usize]);
        if !self.policy.admits(hash, is_full, hash_of) {
            return;
        }
        let slot = if is_full {
            let Some(slot) = self.policy.evict(hash, hash_of) else {
                return;
            };
            slot
        } else {
            self.n_used += 1;
            self.n_used as u32 - 1
        };
        object_in[slot as usize] = object;
        self.slot_of.set(object, slot);
        let hash_of = |slot: u32| name_hash(object_in[slot as usize]);
        self.policy.handle_insert(slot, hash, hash_of);
        self.counts.n_inserts += 1;
    }
}

/// What blocks of the packet path took, in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockTimes {
    /// B2: what Interests, and those of them that hit, change in the history.
    pub(crate) history_ns: u64,
    /// B12: choosing what has to go, and entering what comes.
    pub(crate) evict_ns: u64,
    /// Evictions.
    pub(crate) n_evicts: u64,
    /// B13: deciding on admission.
    pub(crate) admit_ns: u64,
}

impl Simulation {
    /// The next burst of requests, block by block. All Interests of it come before the
    /// first Data. With `ahead`, what a block reads is fetched for a group of packets before
    /// the first of them is carried, as the router does, in the block's own time.
    pub(crate) fn run_burst_timed(
        &mut self,
        requests: &mut impl Requests,
        times: &mut BlockTimes,
        ahead: bool,
    ) {
        let mut objects = [0; BURST];
        let n = requests.fill(&mut objects);
        let hashes = objects.map(name_hash);
        let (objects, hashes) = (&objects[..n], &hashes[..n]);
        let begun = Instant::now();
        for group in hashes.chunks(BURST_DISTANCE) {
            if ahead {
                group
                    .iter()
                    .for_each(|&hash| self.policy.prefetch_request(hash));
            }
            for &hash in group {
                self.policy.handle_request(hash);
            }
        }
        times.history_ns += elapsed_ns(begun);
        let mut hits = [0; BURST];
        let mut misses = [0; BURST];
        let (mut n_hits, mut n_misses) = (0, 0);
        for &object in objects {
            match self.find(object) {
                Some(slot) => {
                    hits[n_hits] = slot;
                    n_hits += 1;
                }
                None => {
                    misses[n_misses] = object;
                    n_misses += 1;
                }
            }
        }
        let begun = Instant::now();
        for group in hits[..n_hits].chunks(BURST_DISTANCE) {
            if ahead {
                group
                    .iter()
                    .for_each(|&slot| self.policy.prefetch_hit(slot));
            }
            for &slot in group {
                self.policy.handle_hit(slot);
            }
        }
        times.history_ns += elapsed_ns(begun);
        let is_full = self.n_used == self.object_in.len();
        let object_in = &self.object_in;
        let hash_of = |slot: u32| name_hash(object_in[slot as usize]);
        let mut admitted = [false; BURST];
        let begun = Instant::now();
        if ahead {
            for &object in &misses[..n_misses] {
                self.policy.prefetch_request(name_hash(object));
                self.policy.prefetch_incoming(name_hash(object));
            }
        }
        for (&object, admitted) in misses[..n_misses].iter().zip(&mut admitted) {
            *admitted = self.policy.admits(name_hash(object), is_full, hash_of);
        }
        times.admit_ns += elapsed_ns(begun);
        self.counts.n_requests += n as u64;
        self.counts.n_hits += n_hits as u64;
        let mut came = [0; BURST];
        let mut n_came = 0;
        for (&object, _) in misses
            .iter()
            .zip(admitted)
            .filter(|(_, admitted)| *admitted)
        {
            // What was asked for twice in the burst comes once.
            if !came[..n_came].contains(&object) {
                came[n_came] = object;
                n_came += 1;
            }
        }
        self.counts.n_inserts += n_came as u64;
        if is_full {
            let begun = Instant::now();
            for &object in &came[..n_came] {
                let object_in = &mut self.object_in;
                let hash_of = |slot: u32| name_hash(object_in[slot as usize]);
                let Some(slot) = self.policy.evict(name_hash(object), hash_of) else {
                    continue;
                };
                object_in[slot as usize] = object;
                let hash_of = |slot: u32| name_hash(object_in[slot as usize]);
                self.policy.handle_insert(slot, name_hash(object), hash_of);
                self.slot_of.set(object, slot);
            }
            times.evict_ns += elapsed_ns(begun);
            times.n_evicts += n_came as u64;
        } else {
            for &object in &came[..n_came] {
                if self.n_used == self.object_in.len() {
                    break;
                }
                let slot = self.n_used as u32;
                self.n_used += 1;
                self.object_in[slot as usize] = object;
                self.slot_of.set(object, slot);
                let object_in = &self.object_in;
                let hash_of = |slot: u32| name_hash(object_in[slot as usize]);
                self.policy.handle_insert(slot, name_hash(object), hash_of);
            }
        }
    }
}

fn elapsed_ns(begun: Instant) -> u64 {
    begun.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use tachonym_policy::{AdmissionKind, EvictionKind};

    use super::*;

    struct Cycle {
        n_objects: u32,
        next: u32,
        n_left: usize,
    }

    impl Requests for Cycle {
        fn fill(&mut self, objects: &mut [u32]) -> usize {
            let n = objects.len().min(self.n_left);
            for object in &mut objects[..n] {
                *object = self.next;
                self.next = (self.next + 1) % self.n_objects;
            }
            self.n_left -= n;
            n
        }
    }

    fn counts_of_cycle(eviction: EvictionKind, capacity: usize) -> Counts {
        let config = PolicyConfig::new(AdmissionKind::None, eviction, capacity);
        let mut simulation = Simulation::new(&config, 10).expect("a small cache");
        let mut cycle = Cycle {
            n_objects: 10,
            next: 0,
            n_left: 1_005,
        };
        assert_eq!(simulation.run(&mut cycle, 1_000), 1_000);
        assert_eq!(simulation.run(&mut cycle, 1_000), 5);
        assert_eq!(simulation.run(&mut cycle, 1_000), 0);
        *simulation.counts()
    }

    #[test]
    fn a_cycle_one_too_long_never_hits_and_one_that_fits_always() {
        let all = counts_of_cycle(EvictionKind::Lru, 10);
        assert_eq!(
            (all.n_requests, all.n_hits, all.n_inserts),
            (1_005, 995, 10)
        );
        let none = counts_of_cycle(EvictionKind::Lru, 9);
        assert_eq!((none.n_hits, none.n_inserts), (0, 1_005));
        let nothing = counts_of_cycle(EvictionKind::Lru, 0);
        assert_eq!((nothing.n_hits, nothing.n_inserts), (0, 0));
        assert_eq!(none.insertion_ratio(), 1.0);
    }
}
