//! Which Data the content store keeps: the policies of [`tachonym_policy`] as the store
//! asks for them.

use tachonym_memory::{MemoryError, Pages};
use tachonym_packet::NameHash;
use tachonym_policy::{Policy, PolicyConfig, PolicyError};
use tachonym_tables::CachePolicy;

/// The policy of an engine's content store.
#[derive(Debug)]
pub struct StorePolicy(Policy);

impl StorePolicy {
    /// A policy of which no slot is held, for slots below `n_slots`.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn new(config: &PolicyConfig, n_slots: usize) -> Result<Self, EngineError> {
        Ok(Self(Policy::with_slots(config, n_slots)?))
    }

    /// What it was made with.
    #[must_use]
    pub const fn config(&self) -> &PolicyConfig {
        self.0.config()
    }
}

/// Why an engine, or its content store, cannot be as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// There is no such policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is not as much memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl CachePolicy for StorePolicy {
    type Refusal = EngineError;

    fn for_capacity(&self, n_slots: usize, capacity: usize) -> Result<Self, EngineError> {
        let config = PolicyConfig {
            capacity,
            ..*self.0.config()
        };
        Self::new(&config, n_slots)
    }

    fn n_slots(&self) -> usize {
        self.0.n_slots()
    }

    fn counts_requests(&self) -> bool {
        self.0.counts_requests()
    }

    #[inline]
    fn handle_request(&mut self, hash: NameHash) {
        self.0.handle_request(hash.0);
    }

    #[inline]
    fn handle_hit(&mut self, slot: u32) {
        self.0.handle_hit(slot);
    }

    #[inline]
    fn handle_refresh(&mut self, slot: u32) {
        self.0.handle_refresh(slot);
    }

    #[inline]
    fn admits_all(&self) -> bool {
        self.0.admits_all()
    }

    #[inline]
    fn admits(&mut self, hash: NameHash, is_full: bool, hash_of: impl Fn(u32) -> NameHash) -> bool {
        self.0.admits(hash.0, is_full, |slot| hash_of(slot).0)
    }

    #[inline]
    fn handle_insert(&mut self, slot: u32, hash: NameHash, hash_of: impl Fn(u32) -> NameHash) {
        self.0.handle_insert(slot, hash.0, |slot| hash_of(slot).0);
    }

    #[inline]
    fn evict(&mut self, incoming: NameHash, hash_of: impl Fn(u32) -> NameHash) -> Option<u32> {
        self.0.evict(incoming.0, |slot| hash_of(slot).0)
    }

    #[inline]
    fn handle_remove(&mut self, slot: u32) {
        self.0.handle_remove(slot);
    }

    #[inline]
    fn admits_most(&self) -> bool {
        self.0.admits_most()
    }

    #[inline]
    fn upcoming(&self) -> [Option<u32>; 2] {
        self.0.upcoming()
    }

    #[inline]
    fn prefetch_request(&self, hash: NameHash) {
        self.0.prefetch_request(hash.0);
    }

    #[inline]
    fn prefetch_incoming(&self, hash: NameHash) {
        self.0.prefetch_request(hash.0);
        self.0.prefetch_incoming(hash.0);
    }

    #[inline]
    fn prefetch_hit(&self, slot: u32) {
        self.0.prefetch_hit(slot);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn pages(&self) -> Pages {
        self.0.pages()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
