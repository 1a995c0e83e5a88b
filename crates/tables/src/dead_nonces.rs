//! The dead nonce list: nonces of Interests whose PIT entries are gone.
//!
//! Owns 64-bit fingerprints of name and nonce, in buckets of half a second that
//! die together. The name comes as its keyed hash, so a peer cannot choose
//! fingerprints that collide. A fingerprint lives for the list's lifetime at
//! least, unless the list is full: then the oldest go early, and are counted.
//! Expiring is spread over the insertions, a few for each, so no packet pays
//! for a burst of old ones.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tachonym_packet::{MonoNs, NameHash, Nonce};

const BUCKET_NS: u64 = 500_000_000;
/// More than one, so that a list that has grown shrinks again.
const N_EXPIRED_PER_INSERT: usize = 3;

/// Shortest lifetime that [`DeadNonceList::new`] keeps, which is also the
/// default: 6 s.
pub const MIN_DEAD_NONCE_LIFETIME: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug)]
struct Dead {
    fingerprint: u64,
    /// Bucket of the latest insertion.
    bucket: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    number: u32,
    n_queued: usize,
}

/// See the module.
#[derive(Debug)]
pub struct DeadNonceList {
    lifetime_ns: u64,
    max_entries: usize,
    table: HashTable<Dead>,
    /// Fingerprints in order of insertion, bucket after bucket.
    queue: VecDeque<u64>,
    buckets: VecDeque<Bucket>,
    n_evicted_early: u64,
}

impl DeadNonceList {
    /// An empty list; a `lifetime` below [`MIN_DEAD_NONCE_LIFETIME`] is raised
    /// to it, and `max_entries` of 0 to 1.
    #[must_use]
    pub fn new(lifetime: Duration, max_entries: usize) -> Self {
        let lifetime_ns = lifetime.max(MIN_DEAD_NONCE_LIFETIME).as_nanos();
        Self {
            lifetime_ns: u64::try_from(lifetime_ns).unwrap_or(u64::MAX),
            max_entries: max_entries.max(1),
            table: HashTable::new(),
            queue: VecDeque::new(),
            buckets: VecDeque::new(),
            n_evicted_early: 0,
        }
    }

    /// Whether this nonce died on this name a lifetime before `now`, or less.
    /// It may still be found up to half a second later.
    #[must_use]
    pub fn contains(&self, name_hash: NameHash, nonce: Nonce, now: MonoNs) -> bool {
        // Most Interests meet an empty list.
        !self.table.is_empty() && {
            let fingerprint = fingerprint(name_hash, nonce);
            self.table
                .find(fingerprint, |dead| dead.fingerprint == fingerprint)
                .is_some_and(|dead| !self.is_over(dead.bucket, now))
        }
    }

    /// Remembers a nonce for the list's lifetime from `now`.
    pub fn insert(&mut self, name_hash: NameHash, nonce: Nonce, now: MonoNs) {
        self.expire(now, N_EXPIRED_PER_INSERT);
        while self.queue.len() >= self.max_entries {
            self.remove_oldest();
            self.n_evicted_early += 1;
        }
        let number = bucket_number(now.0);
        match self.buckets.back_mut() {
            // A clock that stands still or goes back fills the latest bucket.
            Some(last) if last.number >= number => last.n_queued += 1,
            _ => self.buckets.push_back(Bucket {
                number,
                n_queued: 1,
            }),
        }
        let bucket = self.buckets.back().map_or(number, |last| last.number);
        let fingerprint = fingerprint(name_hash, nonce);
        self.queue.push_back(fingerprint);
        let entry = self.table.entry(
            fingerprint,
            |dead| dead.fingerprint == fingerprint,
            |dead| dead.fingerprint,
        );
        match entry {
            Entry::Occupied(mut found) => found.get_mut().bucket = bucket,
            Entry::Vacant(vacant) => {
                vacant.insert(Dead {
                    fingerprint,
                    bucket,
                });
            }
        }
    }

    /// Removes at most `limit` nonces whose lifetime is over. Calling it is
    /// optional: insertions do it too.
    pub fn expire(&mut self, now: MonoNs, limit: usize) {
        for _ in 0..limit {
            let Some(oldest) = self.buckets.front() else {
                return;
            };
            if !self.is_over(oldest.number, now) {
                return;
            }
            self.remove_oldest();
        }
    }

    /// Number of insertions remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Nonces forgotten before their time because the list was full.
    #[must_use]
    pub const fn n_evicted_early(&self) -> u64 {
        self.n_evicted_early
    }

    /// How long a nonce is remembered at least.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        Duration::from_nanos(self.lifetime_ns)
    }

    /// Heap memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
            + self.queue.capacity() * size_of::<u64>()
            + self.buckets.capacity() * size_of::<Bucket>()
    }

    /// Whether the lifetime of everything in a bucket is over.
    fn is_over(&self, bucket: u32, now: MonoNs) -> bool {
        let last_insert_ns = (u64::from(bucket) + 1).saturating_mul(BUCKET_NS);
        last_insert_ns.saturating_add(self.lifetime_ns) <= now.0
    }

    fn remove_oldest(&mut self) {
        let (Some(fingerprint), Some(bucket)) = (self.queue.pop_front(), self.buckets.front_mut())
        else {
            return;
        };
        let number = bucket.number;
        bucket.n_queued -= 1;
        if bucket.n_queued == 0 {
            self.buckets.pop_front();
        }
        // One that was inserted again lives on with its later bucket.
        let found = self.table.find_entry(fingerprint, |dead| {
            dead.fingerprint == fingerprint && dead.bucket == number
        });
        if let Ok(found) = found {
            found.remove();
        }
    }
}

fn bucket_number(now_ns: u64) -> u32 {
    u32::try_from(now_ns / BUCKET_NS).unwrap_or(u32::MAX)
}

/// The name hash is secret; SipHash spreads the nonce over the rest.
fn fingerprint(name_hash: NameHash, nonce: Nonce) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(name_hash.0);
    hasher.write_u32(u32::from_be_bytes(nonce.0));
    hasher.finish()
}
