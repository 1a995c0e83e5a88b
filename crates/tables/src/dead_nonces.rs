//! The dead nonce list: nonces of Interests whose PIT entries are gone.
//!
//! Owns 64-bit fingerprints of name and nonce, in order of insertion, found by
//! reading one cache line. The name comes as its keyed hash, so a peer cannot
//! choose fingerprints that collide. A fingerprint lives for the list's lifetime at
//! least, unless the list is full: then the oldest go early, and are counted. Time
//! is told in steps of half a second. Expiring is spread over the insertions, a few
//! for each, so no packet pays for a burst of old ones.

use std::time::Duration;

use tachonym_memory::{MemoryError, PagePreference, Pages};
use tachonym_packet::{MonoNs, NameHash, Nonce};

use crate::buckets::{BucketIndex, IndexKind};
use crate::slab::Slab;

const STEP_NS: u64 = 500_000_000;
/// More than one, so that a list that has grown shrinks again.
const N_EXPIRED_PER_INSERT: usize = 3;

const NIL: u32 = u32::MAX;

/// Shortest lifetime that [`DeadNonceList::new`] keeps, which is also the
/// default: 6 s.
pub const MIN_DEAD_NONCE_LIFETIME: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug, Default)]
struct Dead {
    fingerprint: u64,
    /// Step of the insertion.
    step: u32,
    /// What was inserted next.
    newer: u32,
}

const _: () = assert!(size_of::<Dead>() == 16);

/// See the module.
#[derive(Debug)]
pub struct DeadNonceList {
    lifetime_ns: u64,
    max_entries: usize,
    index: BucketIndex,
    slots: Slab<Dead>,
    oldest: u32,
    newest: u32,
    len: usize,
    n_evicted_early: u64,
}

impl DeadNonceList {
    /// An empty list; a `lifetime` below [`MIN_DEAD_NONCE_LIFETIME`] is raised
    /// to it, and `max_entries` of 0 to 1.
    ///
    /// # Errors
    /// If there is not as much memory as the index of so many nonces takes.
    pub fn new(
        lifetime: Duration,
        max_entries: usize,
        pages: PagePreference,
    ) -> Result<Self, MemoryError> {
        let lifetime_ns = lifetime.max(MIN_DEAD_NONCE_LIFETIME).as_nanos();
        let max_entries = max_entries.clamp(1, NIL as usize);
        Ok(Self {
            lifetime_ns: u64::try_from(lifetime_ns).unwrap_or(u64::MAX),
            max_entries,
            index: BucketIndex::new(IndexKind::Single, max_entries, pages)?,
            slots: Slab::new(max_entries, pages)?,
            oldest: NIL,
            newest: NIL,
            len: 0,
            n_evicted_early: 0,
        })
    }

    /// Brings into the cache where [`DeadNonceList::contains`] looks. A hint: it
    /// changes nothing but the time of what follows.
    #[inline]
    pub fn prefetch(&self, name_hash: NameHash, nonce: Nonce) {
        if !self.is_empty() {
            self.index.prefetch(fingerprint(name_hash, nonce));
        }
    }

    /// Whether this nonce died on this name a lifetime before `now`, or less.
    /// It may still be found up to half a second later.
    #[must_use]
    #[inline]
    pub fn contains(&self, name_hash: NameHash, nonce: Nonce, now: MonoNs) -> bool {
        // Most Interests meet an empty list.
        !self.is_empty() && {
            let found = self.find(fingerprint(name_hash, nonce));
            found.is_some_and(|slot| !self.is_over(self.slots[slot].step, now))
        }
    }

    /// Remembers a nonce for the list's lifetime from `now`.
    pub fn insert(&mut self, name_hash: NameHash, nonce: Nonce, now: MonoNs) {
        self.expire(now, N_EXPIRED_PER_INSERT);
        while self.len >= self.max_entries {
            self.remove_oldest();
            self.n_evicted_early += 1;
        }
        let fingerprint = fingerprint(name_hash, nonce);
        let mut step = step_of(now.0);
        let slot = self.slots.alloc();
        match self.newest {
            NIL => self.oldest = slot,
            newest => {
                let newest = &mut self.slots[newest];
                newest.newer = slot;
                // A clock that goes back changes no order.
                step = step.max(newest.step);
            }
        }
        self.newest = slot;
        self.len += 1;
        match self.find(fingerprint) {
            // The earlier insertion keeps its place, where nobody finds it.
            Some(before) => self.index.replace(fingerprint, before, slot),
            None => self.index.insert(fingerprint, slot),
        }
        self.slots[slot] = Dead {
            fingerprint,
            step,
            newer: NIL,
        };
    }

    /// Removes at most `limit` nonces whose lifetime is over. Calling it is
    /// optional: insertions do it too.
    pub fn expire(&mut self, now: MonoNs, limit: usize) {
        for _ in 0..limit {
            if self.is_empty() || !self.is_over(self.slots[self.oldest].step, now) {
                return;
            }
            self.remove_oldest();
        }
    }

    /// Number of insertions remembered.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Nonces forgotten before their time because the list was full.
    #[must_use]
    pub const fn n_evicted_early(&self) -> u64 {
        self.n_evicted_early
    }

    /// What pages the list has.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.slots.pages() + self.index.pages()
    }

    /// How long a nonce is remembered at least.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        Duration::from_nanos(self.lifetime_ns)
    }

    /// Memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.slots.memory_bytes()
    }

    /// Whether the lifetime of everything of a step is over.
    fn is_over(&self, step: u32, now: MonoNs) -> bool {
        let last_insert_ns = (u64::from(step) + 1).saturating_mul(STEP_NS);
        last_insert_ns.saturating_add(self.lifetime_ns) <= now.0
    }

    /// The slot of the latest insertion of a fingerprint.
    fn find(&self, fingerprint: u64) -> Option<u32> {
        self.index.find(fingerprint, |slot| {
            self.slots[slot].fingerprint == fingerprint
        })
    }

    fn remove_oldest(&mut self) {
        let slot = self.oldest;
        let Dead {
            fingerprint, newer, ..
        } = self.slots[slot];
        // One that was inserted again is found at its later place, which stays.
        self.index.remove(fingerprint, slot);
        self.slots.free(slot);
        self.oldest = newer;
        if newer == NIL {
            self.newest = NIL;
        }
        self.len -= 1;
    }
}

fn step_of(now_ns: u64) -> u32 {
    u32::try_from(now_ns / STEP_NS).unwrap_or(u32::MAX)
}

/// The nonce, which a peer chooses, times the hash of the name, which it does not
/// know, and both halves of the product together. The nonce is spread over 64 bits
/// first, by a step that loses nothing, so that no small factor remains.
fn fingerprint(name_hash: NameHash, nonce: Nonce) -> u64 {
    let nonce = u64::from(u32::from_be_bytes(nonce.0)) + 1;
    let spread = nonce.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name_hash.0.rotate_left(32);
    let product = u128::from(name_hash.0 ^ 0xa076_1d64_78bd_642f) * u128::from(spread);
    product as u64 ^ (product >> 64) as u64
}
