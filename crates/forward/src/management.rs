//! What management sees and changes, between two bursts.

use std::fmt;

use tachonym_packet::{FaceId, InterestView, Name, NameHashes, NameView};
use tachonym_tables::{
    ContentStore, CsCapacity, FibError, NextHop, NextHops, NextHopsError, PitRefusals,
};

use crate::cache::{EngineError, StorePolicy};
use crate::config::UnsolicitedDataPolicy;
use crate::engine::Engine;
use crate::faces::FaceTraits;
use crate::routes::{Routes, RoutesGuard};
use crate::strategy::StrategyError;

/// Why a route was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// The next hop is a face that does not exist.
    UnknownFace,
    /// The FIB refused.
    Fib(FibError),
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFace => f.write_str("no such face"),
            Self::Fib(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RouteError {}

impl From<NextHopsError> for RouteError {
    fn from(error: NextHopsError) -> Self {
        Self::Fib(error.into())
    }
}

impl From<FibError> for RouteError {
    fn from(error: FibError) -> Self {
        Self::Fib(error)
    }
}

impl Engine {
    /// Adds a face, or changes the traits of one. Numbers are not to be used
    /// again; one that is used again anyway begins without a past.
    pub fn add_face(&mut self, face: FaceId, traits: FaceTraits) {
        if !self.pipelines.faces.contains(face) {
            if face > self.highest_face {
                self.highest_face = face;
            } else {
                self.routes.note_reused_number(face);
            }
            self.pipelines.note_new_face(face);
        }
        self.pipelines.faces.insert(face, traits);
        let source = self.pipelines.faces.source_of(face);
        self.pipelines.tables.pit_mut().attach_face(face, source);
    }

    /// Removes a face with its next hops and pending records; false if there is
    /// none. From now on nothing is sent to it; where there is much to remove,
    /// [`Self::handle_timeout`] goes on with it.
    pub fn remove_face(&mut self, face: FaceId) -> bool {
        let was_there = self.pipelines.faces.remove(face);
        if was_there {
            self.pipelines.tables.pit_mut().detach_face(face);
            self.routes.note_gone_face(face);
            self.pipelines.note_gone_face();
        }
        was_there
    }

    /// The traits of a face, if it exists.
    #[must_use]
    pub fn face(&self, face: FaceId) -> Option<FaceTraits> {
        self.pipelines.faces.find(face)
    }

    /// The FIB, to be read; see [`Routes::lock`].
    #[must_use]
    pub fn fib(&self) -> RoutesGuard<'_> {
        self.routes.lock()
    }

    /// The routes, to be changed from any thread.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Routes to `faces` were added elsewhere: offers pending Interests to them. Routes
    /// to faces that have gone meanwhile go too.
    pub fn note_new_next_hops(&mut self, faces: &[FaceId]) {
        for &face in faces {
            if !self.pipelines.faces.contains(face) {
                self.routes.note_gone_face(face);
            }
        }
        self.pipelines.note_new_next_hop();
    }

    /// Adds a next hop to a prefix, or changes the one of its face.
    ///
    /// # Errors
    /// If the face does not exist, or the FIB has reached a limit.
    pub fn add_next_hop(&mut self, prefix: NameView<'_>, hop: NextHop) -> Result<(), RouteError> {
        if !self.pipelines.faces.contains(hop.face()) {
            return Err(RouteError::UnknownFace);
        }
        self.routes.lock().add_next_hop(prefix, hop)?;
        self.pipelines.note_new_next_hop();
        Ok(())
    }

    /// Removes a next hop from a prefix; false if it was not there.
    pub fn remove_next_hop(&mut self, prefix: NameView<'_>, face: FaceId) -> bool {
        self.routes.lock().remove_next_hop(prefix, face)
    }

    /// Gives a prefix exactly these next hops, but for those on faces that do
    /// not exist (any more), and removes it if none is left. Returns the number
    /// of next hops it has now.
    ///
    /// # Errors
    /// If the FIB has reached a limit; the prefix is as it was.
    pub fn set_next_hops(
        &mut self,
        prefix: NameView<'_>,
        hops: &[NextHop],
    ) -> Result<usize, RouteError> {
        let faces = &self.pipelines.faces;
        let mut usable = hops.to_vec();
        usable.retain(|hop| faces.contains(hop.face()));
        if usable.is_empty() {
            self.routes.lock().remove(prefix);
            return Ok(0);
        }
        let next_hops = NextHops::new(usable)?;
        let n_next_hops = next_hops.len();
        self.routes.lock().insert(prefix, &next_hops)?;
        self.pipelines.note_new_next_hop();
        Ok(n_next_hops)
    }

    /// Goes on with the counters of an engine whose place it takes, but for those of the content
    /// store.
    pub fn go_on_counting(&mut self, former: &Self) {
        self.pipelines.counters = former.pipelines.counters.clone();
        self.pipelines.recent_drops = former.pipelines.recent_drops.clone();
    }

    /// Whether an Interest like this one from `face` is pending: it is a retransmission.
    pub fn is_pending_from(&mut self, interest: &InterestView<'_>, face: FaceId) -> bool {
        let pipelines = &self.pipelines;
        self.hashes.clear();
        let span = self.hashes.push_name(&pipelines.key, interest.name());
        let pending = pipelines
            .tables
            .find_pending(interest, self.hashes.slice(span));
        let entry = pending.and_then(|idx| pipelines.tables.pit().get(idx));
        entry.is_some_and(|entry| entry.in_record(face).is_some())
    }

    /// The content store, to be read.
    #[must_use]
    pub fn cs(&self) -> &ContentStore<StorePolicy> {
        self.pipelines.tables.cs()
    }

    /// The content store, to be configured.
    pub fn cs_mut(&mut self) -> &mut ContentStore<StorePolicy> {
        self.pipelines.tables.cs_mut()
    }

    /// Sets the limits of the content store; evicts what exceeds them.
    ///
    /// # Errors
    /// If there is not as much memory as the index, or the policy, of so many Data takes;
    /// the limits stay as they were.
    pub fn set_cs_capacity(&mut self, capacity: CsCapacity) -> Result<(), EngineError> {
        self.pipelines.tables.set_cs_capacity(capacity)
    }

    /// Slots that a policy of the content store has to know, and how many of them are held
    /// at most: what to make one for that [`Engine::set_cs_policy`] takes.
    #[must_use]
    pub fn cs_policy_size(&self) -> (usize, usize) {
        self.pipelines.tables.cs_policy_size()
    }

    /// Has another policy decide from now on what the content store admits and evicts. What
    /// is cached stays until it is evicted: first, unless it is asked for. False: the policy
    /// has fewer slots than the store needs by now, and nothing has changed.
    pub fn set_cs_policy(&mut self, policy: StorePolicy) -> bool {
        self.pipelines.tables.set_cs_policy(policy)
    }

    /// Erases at most `limit` Data under `prefix`; how many it erased.
    pub fn erase_cs(&mut self, prefix: NameView<'_>, limit: usize) -> usize {
        let hashes = self.hashes_of(prefix);
        self.pipelines.tables.erase_data(prefix, &hashes, limit)
    }

    /// Whether the content store has Data under `prefix`.
    #[must_use]
    pub fn has_cached(&self, prefix: NameView<'_>) -> bool {
        let hashes = self.hashes_of(prefix);
        self.pipelines.tables.has_data_below(prefix, &hashes)
    }

    /// Lets the strategy of this name serve everything under `prefix` that has
    /// no longer choice of its own. The version may be left out. Pending
    /// Interests go on, without what the strategy before remembered of them.
    /// Returns the full name of the strategy.
    ///
    /// # Errors
    /// If there is no such strategy, version or parameter, or no room.
    pub fn set_strategy(
        &mut self,
        prefix: NameView<'_>,
        strategy: NameView<'_>,
    ) -> Result<Name, StrategyError> {
        self.pipelines.strategies.set(prefix, strategy)
    }

    /// Removes the choice at `prefix`; false if there is none.
    ///
    /// # Errors
    /// If `prefix` is the root, which must have a strategy.
    pub fn unset_strategy(&mut self, prefix: NameView<'_>) -> Result<bool, StrategyError> {
        self.pipelines.strategies.unset(prefix)
    }

    /// Every prefix that has a strategy of its own, with the strategy's full
    /// name, in no particular order.
    pub fn strategies(&self) -> impl Iterator<Item = (NameView<'_>, NameView<'_>)> {
        self.pipelines.strategies.iter()
    }

    /// Changes what becomes of Data that nobody asked for.
    pub fn set_unsolicited_data(&mut self, policy: UnsolicitedDataPolicy) {
        self.pipelines.unsolicited_data = policy;
    }

    /// Changes the names of the region that this router is in.
    pub fn set_producer_regions(&mut self, regions: Vec<Name>) {
        self.pipelines.producer_regions = regions;
    }

    /// How often the pending Interest table refused, by limit.
    #[must_use]
    pub fn pit_refusals(&self) -> &PitRefusals {
        self.pipelines.tables.pit().refusals()
    }

    /// Heap memory of the tables, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let pipelines = &self.pipelines;
        self.routes.lock().memory_bytes()
            + pipelines.tables.memory_bytes()
            + pipelines.dead_nonces.memory_bytes()
            + pipelines.announcements.memory_bytes()
    }

    fn hashes_of(&self, name: NameView<'_>) -> Vec<tachonym_packet::NameHash> {
        let mut hashes = NameHashes::new();
        let span = hashes.push_name(&self.pipelines.key, name);
        hashes.slice(span).to_vec()
    }
}
