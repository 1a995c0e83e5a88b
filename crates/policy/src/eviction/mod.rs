//! Which of the cached Data goes next.
//!
//! Owns the order among slots, and nothing of what is in them. A store numbers its
//! Data by slots below a bound, and tells of each what happens to it; [`Eviction`]
//! answers which to empty. Policies that learn from what they evicted keep hashes of
//! names in tables of their own, which are bounded when they are made.

mod arc;
mod clock;
mod fifo;
mod lfu;
mod lfu_local;
mod lirs;
mod lru;
mod lru_local;
mod random;
mod s3_fifo;
mod sieve;
mod slru;
mod two_q;

use self::arc::Arc;
use self::clock::Clock;
use self::fifo::Fifo;
use self::lfu::Lfu;
use self::lfu_local::LfuLocal;
use self::lirs::Lirs;
use self::lru::Lru;
use self::lru_local::LruLocal;
use self::random::RandomSlot;
use self::s3_fifo::S3Fifo;
use self::sieve::Sieve;
use self::slru::Slru;
use self::two_q::TwoQ;
use crate::kind::EvictionKind;

/// Names that [`EvictionKind::LfuPerfect`] remembers, by the size of the cache.
pub const PERFECT_LFU_GHOSTS_BY_LEN: usize = 100;

/// Slots that a search for a victim passes over at most, where each step is a cache line:
/// then it takes what it has come to. Far more than it needs unless somebody asks for all
/// that is cached.
pub(crate) const MAX_STEPS: usize = 1_024;

/// Most slots: node numbers of slots and ghosts fit into 32 bits.
pub const MAX_SLOTS: usize = 1 << 29;

/// What a policy answers. Methods but `victim` take constant time, `victim` does so
/// amortised over insertions and hits.
trait Evict {
    /// A slot that was empty holds a Data.
    fn insert(&mut self, slot: u32, hash: u64);
    /// The Data in a slot was asked for.
    fn hit(&mut self, slot: u32);
    /// The slot to empty, so that a Data of this hash may come; `None` if none is held.
    fn victim(&mut self, incoming: u64) -> Option<u32>;
    /// A slot is emptied for want of room.
    fn evict(&mut self, slot: u32, _: u64) {
        self.remove(slot);
    }
    /// Empties the victim, and names it.
    fn evict_victim(&mut self, incoming: u64, hash_of: impl Fn(u32) -> u64) -> Option<u32> {
        let slot = self.victim(incoming)?;
        self.evict(slot, hash_of(slot));
        Some(slot)
    }
    /// A slot is emptied for another reason.
    fn remove(&mut self, slot: u32);
    /// Slots that are held.
    fn len(&self) -> usize;
    /// What was asked for so far counts no more.
    fn forget_hits(&mut self) {}
    /// Fetches what an insertion of this hash will read first.
    fn prefetch_incoming(&self, _: u64) {}
    /// Fetches what a hit will read first.
    fn prefetch_hit(&self, _: u32) {}
    /// What is likely to go after the next one, and what after that.
    fn upcoming(&self) -> [Option<u32>; 2] {
        [None; 2]
    }
    /// Heap memory.
    fn memory_bytes(&self) -> usize;
}

/// An eviction policy over slots.
///
/// Slots lie below `n_slots`. The caller inserts only slots that are not held, and
/// reports hits, evictions and removals only of those that are; another order of
/// calls makes it panic or evict wrongly, and touches no other memory. Nothing is
/// allocated after [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct Eviction {
    policy: Policy,
    kind: EvictionKind,
}

/// Tells its kind by a byte: what the compiler derives from the fields takes longer to read.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Policy {
    Fifo(Fifo),
    Random(RandomSlot),
    Lru(Lru),
    LruLocal(LruLocal),
    Clock(Clock<1>),
    Gclock(Clock<2>),
    Slru(Slru),
    Lfu(Box<Lfu>),
    LfuLocal(LfuLocal),
    Arc(Box<Arc>),
    TwoQ(Box<TwoQ>),
    Lirs(Box<Lirs>),
    S3Fifo(Box<S3Fifo>),
    Sieve(Sieve),
}

/// Does the same with whichever policy it is. FIFO and LRU are short: in one function with the
/// others they would mostly save registers that only the others use.
macro_rules! dispatch {
    ($policy:expr, $inner:ident => $what:expr) => {
        match $policy {
            Policy::Fifo($inner) => $what,
            Policy::Lru($inner) => $what,
            Policy::Random($inner) => apart(move || $what),
            Policy::LruLocal($inner) => apart(move || $what),
            Policy::Clock($inner) => apart(move || $what),
            Policy::Gclock($inner) => apart(move || $what),
            Policy::Slru($inner) => apart(move || $what),
            Policy::Lfu($inner) => apart(move || $what),
            Policy::LfuLocal($inner) => apart(move || $what),
            Policy::Arc($inner) => apart(move || $what),
            Policy::TwoQ($inner) => apart(move || $what),
            Policy::Lirs($inner) => apart(move || $what),
            Policy::S3Fifo($inner) => apart(move || $what),
            Policy::Sieve($inner) => apart(move || $what),
        }
    };
}

#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

impl Eviction {
    /// A policy over slots `0..n_slots`, of which `target_len` are held in the long
    /// run: what shares of the cache are reckoned by. `seed` is for policies that draw.
    ///
    /// # Panics
    /// If `n_slots` exceeds [`MAX_SLOTS`], or `target_len` exceeds `n_slots`.
    #[must_use]
    pub fn new(kind: EvictionKind, n_slots: usize, target_len: usize, seed: u64) -> Self {
        assert!(n_slots <= MAX_SLOTS && target_len <= n_slots);
        let policy = match kind {
            EvictionKind::Fifo => Policy::Fifo(Fifo::new(n_slots)),
            EvictionKind::Random => Policy::Random(RandomSlot::new(n_slots, seed)),
            EvictionKind::Lru => Policy::Lru(Lru::new(n_slots)),
            EvictionKind::LruLocal => Policy::LruLocal(LruLocal::new(n_slots)),
            EvictionKind::Clock => Policy::Clock(Clock::new(n_slots)),
            EvictionKind::Gclock => Policy::Gclock(Clock::new(n_slots)),
            EvictionKind::Slru => Policy::Slru(Slru::new(n_slots, target_len)),
            EvictionKind::Lfu => Policy::Lfu(Box::new(Lfu::new(n_slots, 0))),
            EvictionKind::LfuPerfect => {
                let n_ghosts = (target_len * PERFECT_LFU_GHOSTS_BY_LEN).min(MAX_SLOTS);
                Policy::Lfu(Box::new(Lfu::new(n_slots, n_ghosts)))
            }
            EvictionKind::LfuLocal => Policy::LfuLocal(LfuLocal::new(n_slots)),
            EvictionKind::Arc => Policy::Arc(Box::new(Arc::new(n_slots, target_len))),
            EvictionKind::TwoQ => Policy::TwoQ(Box::new(TwoQ::new(n_slots, target_len))),
            EvictionKind::Lirs => Policy::Lirs(Box::new(Lirs::new(n_slots, target_len))),
            EvictionKind::S3Fifo => Policy::S3Fifo(Box::new(S3Fifo::new(n_slots, target_len))),
            EvictionKind::Sieve => Policy::Sieve(Sieve::new(n_slots)),
        };
        Self { policy, kind }
    }

    /// Which policy it is.
    #[must_use]
    pub const fn kind(&self) -> EvictionKind {
        self.kind
    }

    /// Slots that are held.
    #[must_use]
    pub fn len(&self) -> usize {
        dispatch!(&self.policy, policy => policy.len())
    }

    /// Whether no slot is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A slot that was empty holds a Data whose name has this hash.
    #[inline]
    pub fn handle_insert(&mut self, slot: u32, hash: u64) {
        dispatch!(&mut self.policy, policy => policy.insert(slot, hash));
    }

    /// The Data in a slot was asked for.
    #[inline]
    pub fn handle_hit(&mut self, slot: u32) {
        dispatch!(&mut self.policy, policy => policy.hit(slot));
    }

    /// The slot to empty next, so that a Data whose name hashes to `incoming` may come;
    /// `None` if no slot is held. Asking alone empties nothing. Asked again before
    /// anything else happens, it names the same slot, but for [`EvictionKind::Random`],
    /// which draws anew.
    #[inline]
    pub fn victim(&mut self, incoming: u64) -> Option<u32> {
        dispatch!(&mut self.policy, policy => policy.victim(incoming))
    }

    /// Empties the slot that [`victim`](Self::victim) names; `hash_of` is the hash of the
    /// name in a slot.
    #[inline]
    pub fn evict(&mut self, incoming: u64, hash_of: impl Fn(u32) -> u64) -> Option<u32> {
        dispatch!(&mut self.policy, policy => policy.evict_victim(incoming, hash_of))
    }

    /// A slot is emptied for want of room; `hash` is that of its name, which some
    /// policies remember.
    #[inline]
    pub fn handle_evict(&mut self, slot: u32, hash: u64) {
        dispatch!(&mut self.policy, policy => policy.evict(slot, hash));
    }

    /// A slot is emptied for another reason, as by a command.
    #[inline]
    pub fn handle_remove(&mut self, slot: u32) {
        dispatch!(&mut self.policy, policy => policy.remove(slot));
    }

    /// What is likely to be emptied after the next one, and what after that; `None` where
    /// that is not known cheaply. A hint.
    #[inline]
    #[must_use]
    pub fn upcoming(&self) -> [Option<u32>; 2] {
        dispatch!(&self.policy, policy => policy.upcoming())
    }

    /// Fetches what [`handle_hit`](Self::handle_hit) will read first.
    #[inline]
    pub fn prefetch_hit(&self, slot: u32) {
        dispatch!(&self.policy, policy => policy.prefetch_hit(slot));
    }

    /// Memory in use, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        dispatch!(&self.policy, policy => policy.memory_bytes())
    }

    /// The Data held have been asked for in vain: those that are not asked for from now on
    /// go first. Only CLOCK and GCLOCK can forget so; with another policy, nothing changes.
    /// Takes a step for every 64 slots.
    pub fn forget_hits(&mut self) {
        dispatch!(&mut self.policy, policy => policy.forget_hits());
    }

    /// Fetches what [`victim`](Self::victim) and [`handle_insert`](Self::handle_insert)
    /// will read first of a name of this hash.
    #[inline]
    pub fn prefetch_incoming(&self, hash: u64) {
        dispatch!(&self.policy, policy => policy.prefetch_incoming(hash));
    }
}
