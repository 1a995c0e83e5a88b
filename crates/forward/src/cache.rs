//! Which Data the content store keeps: the policies of [`tachonym_policy`] as the store
//! asks for them.

use tachonym_memory::{MemoryError, Pages};
use tachonym_packet::NameHash;
use tachonym_policy::popularity::{Observation, Outcomes, PopularityMeter};
use tachonym_policy::{Policy, PolicyConfig, PolicyError};
use tachonym_tables::CachePolicy;

/// The policy of an engine's content store, and what is measured of requests. A policy that
/// takes over goes on with what the one before has measured.
#[derive(Debug)]
pub struct StorePolicy {
    policy: Policy,
    meter: PopularityMeter,
}

impl StorePolicy {
    /// A policy of which no slot is held, for slots below `n_slots`. It measures nothing
    /// before it has taken over.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn new(config: &PolicyConfig, n_slots: usize) -> Result<Self, EngineError> {
        Ok(Self {
            policy: Policy::with_slots(config, n_slots)?,
            meter: PopularityMeter::idle(),
        })
    }

    /// The same, which measures from the start.
    pub(crate) fn measuring(mut self) -> Self {
        let &PolicyConfig { capacity, seed, .. } = self.policy.config();
        self.meter = PopularityMeter::new(capacity, seed);
        self
    }

    /// What is seen of the popularity of names, a copy that takes some tens of microseconds.
    #[must_use]
    pub fn popularity(&self) -> Observation {
        self.meter.observed()
    }

    /// What has become of those requests.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        self.meter.outcomes()
    }

    /// Memory of the policy itself and of the measurement, in bytes.
    #[must_use]
    pub fn memory_by_part(&self) -> (usize, usize) {
        (self.policy.memory_bytes(), self.meter.memory_bytes())
    }

    /// What it was made with.
    #[must_use]
    pub const fn config(&self) -> &PolicyConfig {
        self.policy.config()
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
            ..*self.policy.config()
        };
        Self::new(&config, n_slots)
    }

    fn n_slots(&self) -> usize {
        self.policy.n_slots()
    }

    #[inline]
    fn handle_request(&mut self, hash: NameHash) {
        self.meter.handle_request(hash.0);
        self.policy.handle_request(hash.0);
    }

    #[inline]
    fn handle_answered(&mut self, hash: NameHash) {
        self.meter.handle_hit();
        self.handle_request(hash);
    }

    fn take_over(&mut self, former: &mut Self) {
        std::mem::swap(&mut self.meter, &mut former.meter);
        self.meter.begin_anew(self.policy.config().capacity);
    }

    #[inline]
    fn handle_hit(&mut self, slot: u32) {
        self.policy.handle_hit(slot);
    }

    #[inline]
    fn handle_refresh(&mut self, slot: u32) {
        self.policy.handle_refresh(slot);
    }

    #[inline]
    fn admits_all(&self) -> bool {
        self.policy.admits_all()
    }

    #[inline]
    fn admits(&mut self, hash: NameHash, is_full: bool, hash_of: impl Fn(u32) -> NameHash) -> bool {
        self.policy.admits(hash.0, is_full, |slot| hash_of(slot).0)
    }

    #[inline]
    fn handle_insert(&mut self, slot: u32, hash: NameHash, hash_of: impl Fn(u32) -> NameHash) {
        self.meter.handle_insert();
        self.policy
            .handle_insert(slot, hash.0, |slot| hash_of(slot).0);
    }

    fn handle_move(&mut self, slot: u32, hash: NameHash, hash_of: impl Fn(u32) -> NameHash) {
        self.policy
            .handle_insert(slot, hash.0, |slot| hash_of(slot).0);
    }

    #[inline]
    fn evict(&mut self, incoming: NameHash, hash_of: impl Fn(u32) -> NameHash) -> Option<u32> {
        self.policy.evict(incoming.0, |slot| hash_of(slot).0)
    }

    #[inline]
    fn handle_remove(&mut self, slot: u32) {
        self.policy.handle_remove(slot);
    }

    #[inline]
    fn admits_most(&self) -> bool {
        self.policy.admits_most()
    }

    #[inline]
    fn upcoming(&self) -> [Option<u32>; 2] {
        self.policy.upcoming()
    }

    #[inline]
    fn prefetch_request(&self, hash: NameHash) {
        self.policy.prefetch_request(hash.0);
    }

    #[inline]
    fn prefetch_incoming(&self, hash: NameHash) {
        self.policy.prefetch_request(hash.0);
        self.policy.prefetch_incoming(hash.0);
    }

    #[inline]
    fn prefetch_hit(&self, slot: u32) {
        self.policy.prefetch_hit(slot);
    }

    fn is_empty(&self) -> bool {
        self.policy.is_empty()
    }

    fn pages(&self) -> Pages {
        self.policy.pages()
    }

    fn memory_bytes(&self) -> usize {
        self.policy.memory_bytes() + self.meter.memory_bytes()
    }
}
