//! What management sees and changes, between two bursts.

use std::fmt;
use std::ops::{Deref, DerefMut};

use tachonym_packet::{MonoNs, Name, NameHash, NameHashes, NameView};
use tachonym_policy::Policy;
use tachonym_store::SecondLevel;
use tachonym_tables::{ContentStore, CsCapacity, FibError, TablesError};

use crate::announcements::AnnouncementRefused;
use crate::state::{RemoteReads, State, World};
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

impl From<FibError> for RouteError {
    fn from(error: FibError) -> Self {
        Self::Fib(error)
    }
}

/// The content store of an engine, to be configured; both levels.
#[derive(Debug)]
pub struct CsMut<'e> {
    pub(crate) state: &'e mut State,
}

impl Deref for CsMut<'_> {
    type Target = ContentStore;

    fn deref(&self) -> &Self::Target {
        self.state.core.tables.pit_cs.cs()
    }
}

impl DerefMut for CsMut<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.state.core.tables.pit_cs.cs_mut()
    }
}

impl<'e> CsMut<'e> {
    /// Sets the limits; evicts what exceeds them.
    ///
    /// # Errors
    /// If memory for the larger index or policy runs out; the limits stay as
    /// they were.
    pub fn set_limits(&mut self, capacity: CsCapacity) -> Result<(), TablesError> {
        self.state.core.tables.pit_cs.set_cs_capacity(capacity)
    }

    /// Has another policy, of [`ContentStore::policy_size`], decide from now on what the store
    /// admits and evicts. What is cached stays until it is evicted: first, unless it is asked for. False: the policy
    /// has fewer slots than the store needs by now, and nothing has changed.
    pub fn set_policy(&mut self, policy: Policy) -> bool {
        self.state.core.tables.pit_cs.set_cs_policy(policy)
    }

    /// Erases at most `limit` Data under `prefix` from the DRAM level; returns how many.
    pub fn erase(&mut self, prefix: NameView<'_>, limit: usize) -> usize {
        let hashes = self.hashes_of(prefix);
        let pit_cs = &mut self.state.core.tables.pit_cs;
        pit_cs.erase_data(prefix, &hashes, limit)
    }

    /// The SSD level, to be changed.
    #[must_use]
    pub fn second_level(self) -> Option<&'e mut SecondLevel> {
        self.state.second.level.as_deref_mut()
    }

    /// Puts an SSD level behind the DRAM level, or takes it away; returns the one before.
    pub fn set_second_level(&mut self, level: Option<SecondLevel>) -> Option<SecondLevel> {
        let second = &mut self.state.second;
        second.remote = RemoteReads::default();
        let former = std::mem::replace(&mut second.level, level.map(Box::new));
        former.map(|former| *former)
    }

    /// Erases all Data under `prefix` from the SSD level, and starts to make that durable.
    /// Returns how many of them were in memory; what lies on disks is not counted.
    pub fn erase_second_level(&mut self, now: MonoNs, prefix: NameView<'_>) -> usize {
        let Some(level) = &mut self.state.second.level else {
            return 0;
        };
        let n_erased = level.erase(now, prefix);
        level.flush(now);
        n_erased
    }

    /// Whether the DRAM level has Data under `prefix`.
    #[must_use]
    pub fn has_below(&self, prefix: NameView<'_>) -> bool {
        let hashes = self.hashes_of(prefix);
        let pit_cs = &self.state.core.tables.pit_cs;
        pit_cs.has_data_below(prefix, &hashes)
    }

    fn hashes_of(&self, name: NameView<'_>) -> Vec<NameHash> {
        let mut hashes = NameHashes::new();
        let span = hashes.push_name(&self.state.core.world.key, name);
        hashes.slice(span).to_vec()
    }
}

/// What management chooses for names: their strategies, and the prefix announcements that are
/// attached to Data for downstreams that discover routes.
#[derive(Debug)]
pub struct ChoicesMut<'e> {
    pub(crate) world: &'e mut World,
}

impl ChoicesMut<'_> {
    /// Every prefix that has a strategy of its own, with the strategy's full
    /// name, in no particular order.
    pub fn strategies(&self) -> impl Iterator<Item = (NameView<'_>, NameView<'_>)> {
        self.world.strategies.iter()
    }

    /// Lets the strategy named `strategy` serve names under `prefix` that have
    /// no longer choice of their own. The version may be left out. Pending
    /// Interests stay, without what the strategy before remembered of them.
    /// Returns the full name of the strategy.
    ///
    /// # Errors
    /// If there is no such strategy, version or parameter, or no room.
    pub fn set_strategy(
        &mut self,
        prefix: NameView<'_>,
        strategy: NameView<'_>,
    ) -> Result<Name, StrategyError> {
        self.world.strategies.set(prefix, strategy)
    }

    /// Removes the choice at `prefix`; false if there is none.
    ///
    /// # Errors
    /// If `prefix` is the root, which must have a strategy.
    pub fn unset_strategy(&mut self, prefix: NameView<'_>) -> Result<bool, StrategyError> {
        self.world.strategies.unset(prefix)
    }

    /// Keeps an announcement that was found good: `wire` is the Data that announces `prefix`.
    /// It is attached where a strategy that learns routes serves the name. A later version
    /// stays.
    ///
    /// # Errors
    /// If there is no room, or the prefix is too deep for any route.
    pub fn keep_announcement(
        &mut self,
        prefix: NameView<'_>,
        version: u64,
        wire: &[u8],
    ) -> Result<(), AnnouncementRefused> {
        let hash = self.world.key.hash_name(prefix);
        let announcements = &mut self.world.announcements;
        announcements.insert(prefix, hash, version, wire)
    }

    /// Forgets the announcement of `prefix`, if there is one.
    pub fn forget_announcement(&mut self, prefix: NameView<'_>) {
        let hash = self.world.key.hash_name(prefix);
        self.world.announcements.remove(prefix, hash);
    }
}
