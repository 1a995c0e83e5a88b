//! The engine as its owner sees it: bursts and time in, packets out.

use tachonym_memory::Pages;
use tachonym_packet::{FaceId, HashKey, HashedNames, MonoNs, NameView};
use tachonym_store::SecondLevel;
use tachonym_store::device::Completion;
use tachonym_tables::{ContentStore, FibReader, NextHop, Pit, TablesError};

use crate::block::Block;
use crate::burst::{Output, RxPacket};
use crate::config::EngineConfig;
use crate::counters::{Counters, DropReason};
use crate::explain::Inspect;
use crate::faces::FaceTraits;
use crate::management::{ChoicesMut, CsMut, RouteError};
use crate::recent_drops::RecentDrops;
use crate::routes::Routes;
use crate::schedule::{Plan, Schedule};
use crate::second_level;
use crate::sharing::Shared;
use crate::state::{State, TableSizes};
use crate::steps::{BurstBuffers, carry_burst};

/// A forwarding engine with its tables.
///
/// It never reads a clock: `now` comes with every call that needs it and must
/// not go back. What management changes is grouped: the content store ([`Engine::cs_mut`]),
/// strategies and announcements ([`Engine::choices_mut`]), routes ([`Engine::routes`]); so is
/// what other engines of the same router use ([`Engine::shared`]), and what a diagnosis asks
/// ([`Engine::inspect`]).
#[derive(Debug)]
pub struct Engine {
    state: State,
    routes: Routes,
    fib: FibReader,
    /// Numbers of faces rise; one that does not is used again.
    highest_face: FaceId,
    /// The order of work in a burst.
    plan: Plan,
    buffers: BurstBuffers,
}

/// Memory of an engine's tables.
#[derive(Clone, Copy, Debug)]
pub struct TableMemory {
    /// Heap memory in bytes, the FIB included.
    pub n_bytes: usize,
    /// Pages of the FIB, which engines may share.
    pub fib_pages: Pages,
    /// Pages of the indexes of pending Interests, content store and dead nonces. Interests
    /// and Data themselves have their memory from the allocator.
    pub own_pages: Pages,
}

impl Engine {
    /// An engine without faces but the internal one (number 1), to which
    /// management routes its prefixes. `key` must be secret and random, lest
    /// peers choose names that collide; `seed` feeds nonces and random choices.
    ///
    /// # Errors
    /// If memory for the tables runs out, or the content store has no such policy.
    pub fn new(config: EngineConfig, key: HashKey, seed: u64) -> Result<Self, TablesError> {
        let routes = match &config.routes {
            Some(routes) => routes.clone(),
            None => Routes::new(config.fib, key.clone())?,
        };
        Ok(Self {
            fib: routes.reader(),
            routes,
            highest_face: FaceId::default(),
            plan: config.schedule.plan(config.burst_distance),
            state: State::new(config, key, seed)?,
            buffers: BurstBuffers::default(),
        })
    }

    /// Carries a burst of received packets through the tables, in order. The
    /// outcome is that of its packets one by one.
    pub fn handle_burst(&mut self, now: MonoNs, rx: &[RxPacket<'_>], out: &mut impl Output) {
        self.buffers.hashes.clear();
        self.buffers.spans.clear();
        self.carry(now, rx, out);
    }

    /// As [`Engine::handle_burst`], of packets that are hashed with the engine's key: `names`
    /// has the hashes of the first packet at `first`, and those of the others behind it.
    ///
    /// # Panics
    /// If there are fewer names.
    pub fn handle_hashed_burst(
        &mut self,
        now: MonoNs,
        rx: &[RxPacket<'_>],
        names: &mut HashedNames,
        first: usize,
        out: &mut impl Output,
    ) {
        let (hashes, spans) = names.parts(first..first + rx.len());
        self.buffers.spans.clear();
        self.buffers.spans.extend_from_slice(spans);
        // Hashes stay where they are: the buffers change places for the burst.
        std::mem::swap(&mut self.buffers.hashes, hashes);
        self.carry(now, rx, out);
        std::mem::swap(&mut self.buffers.hashes, hashes);
    }

    fn carry(&mut self, now: MonoNs, rx: &[RxPacket<'_>], out: &mut impl Output) {
        out.enter(Block::Timers);
        self.routes.continue_removal();
        let fib = self.fib.pin();
        self.state.handle_timers(now, &fib, out);
        carry_burst(
            &mut self.state,
            &fib,
            rx,
            &mut self.buffers,
            &self.plan,
            out,
        );
    }

    /// Changes the order of work in a burst, and how many packets take a step of
    /// [`Schedule::Burst`] together: from 1 to [`MAX_BURST_DISTANCE`](crate::MAX_BURST_DISTANCE), or the next of these. No
    /// outcome depends on it.
    pub fn set_schedule(&mut self, schedule: Schedule, burst_distance: usize) {
        self.plan = schedule.plan(burst_distance);
    }

    /// Does what has become due by `now`: expires pending Interests, forgets
    /// records of faces that have gone, sends pending Interests to new next
    /// hops.
    pub fn handle_timeout(&mut self, now: MonoNs, out: &mut impl Output) {
        self.routes.continue_removal();
        self.state.handle_timers(now, &self.fib.pin(), out);
    }

    /// Takes what has become of a request of the SSD level, and answers the Interests that
    /// wait for it.
    pub fn handle_completion(
        &mut self,
        now: MonoNs,
        completion: Completion,
        out: &mut impl Output,
    ) {
        let State { core, second, .. } = &mut self.state;
        core.world.advance(now);
        second_level::handle_completion(core, second, completion, &self.fib.pin(), out);
    }

    /// When [`Self::handle_timeout`] next has work; ask again after every
    /// `handle_*` and every change.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let work = self.routes.next_work(self.state.core.world.now);
        let timer = self.state.next_timer();
        work.into_iter().chain(timer).min()
    }

    /// Events since the engine began.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.state.core.world.counters
    }

    /// Packets that this engine dropped lately, with face and reason.
    #[must_use]
    pub const fn recent_drops(&self) -> &RecentDrops<DropReason> {
        &self.state.core.world.recent_drops
    }

    /// Continues the counters of an engine that this one replaces, but for those of the content
    /// store.
    pub fn continue_counters(&mut self, former: &Self) {
        let world = &mut self.state.core.world;
        world.counters = former.counters().clone();
        world.recent_drops = former.recent_drops().clone();
    }

    /// Number of entries in each table.
    #[must_use]
    pub fn sizes(&self) -> TableSizes {
        self.state.sizes(self.routes.n_prefixes())
    }

    /// Memory of the tables.
    #[must_use]
    pub fn memory(&self) -> TableMemory {
        let tables = &self.state.core.tables;
        TableMemory {
            n_bytes: self.routes.lock().memory_bytes()
                + tables.pit_cs.memory_bytes()
                + tables.dead_nonces.memory_bytes()
                + self.state.core.world.announcements.memory_bytes(),
            fib_pages: self.fib.pages(),
            own_pages: tables.pit_cs.pages() + tables.dead_nonces.pages(),
        }
    }

    /// Adds a face, or changes the traits of one. Numbers are not to be used
    /// again; one that is used again anyway begins without a past.
    pub fn add_face(&mut self, face: FaceId, traits: FaceTraits) {
        if !self.state.core.world.faces.contains(face) {
            if face > self.highest_face {
                self.highest_face = face;
            } else {
                self.routes.note_reused_number(face);
            }
            self.state.note_new_face(face);
        }
        let faces = &mut self.state.core.world.faces;
        faces.insert(face, traits);
        let source = faces.source_of(face);
        let pit = self.state.core.tables.pit_cs.pit_mut();
        pit.attach_face(face, source);
    }

    /// Removes a face with its next hops and pending records; false if there is
    /// none. From now on nothing is sent to it; where there is much to remove,
    /// [`Self::handle_timeout`] continues with it.
    pub fn remove_face(&mut self, face: FaceId) -> bool {
        let core = &mut self.state.core;
        let was_there = core.world.faces.remove(face);
        if was_there {
            core.tables.pit_cs.pit_mut().detach_face(face);
            self.routes.note_gone_face(face);
            self.state.note_gone_face();
        }
        was_there
    }

    /// The traits of a face, if it exists.
    #[must_use]
    pub fn face(&self, face: FaceId) -> Option<FaceTraits> {
        self.state.core.world.faces.find(face)
    }

    /// The routes, to be read or changed from any thread.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Adds a next hop to a prefix, or changes the one of its face.
    ///
    /// # Errors
    /// If the face does not exist, or the FIB has reached a limit.
    pub fn add_next_hop(&mut self, prefix: NameView<'_>, hop: NextHop) -> Result<(), RouteError> {
        if self.face(hop.face()).is_none() {
            return Err(RouteError::UnknownFace);
        }
        self.routes.lock().add_next_hop(prefix, hop)?;
        self.state.note_new_next_hop();
        Ok(())
    }

    /// Routes to `faces` were added elsewhere: sends pending Interests to them, where a
    /// strategy does that. Routes to faces that have gone meanwhile are removed.
    pub fn note_new_next_hops(&mut self, faces: &[FaceId]) {
        for &face in faces {
            if self.face(face).is_none() {
                self.routes.note_gone_face(face);
            }
        }
        self.state.note_new_next_hop();
    }

    /// The pending Interests.
    #[must_use]
    pub const fn pit(&self) -> &Pit {
        self.state.core.tables.pit_cs.pit()
    }

    /// The DRAM level of the content store.
    #[must_use]
    pub const fn cs(&self) -> &ContentStore {
        self.state.core.tables.pit_cs.cs()
    }

    /// The content store, to be configured.
    pub fn cs_mut(&mut self) -> CsMut<'_> {
        CsMut {
            state: &mut self.state,
        }
    }

    /// The SSD level of the content store, if there is one.
    #[must_use]
    pub fn second_level(&self) -> Option<&SecondLevel> {
        self.state.second.level.as_deref()
    }

    /// Strategies and prefix announcements, to be listed and changed.
    pub fn choices_mut(&mut self) -> ChoicesMut<'_> {
        ChoicesMut {
            world: &mut self.state.core.world,
        }
    }

    /// The engine as other engines of the same router use it.
    pub fn shared(&mut self) -> Shared<'_> {
        Shared {
            state: &mut self.state,
            fib: &mut self.fib,
            hashes: &mut self.buffers.hashes,
        }
    }

    /// The engine as a diagnosis looks at it.
    pub fn inspect(&mut self) -> Inspect<'_> {
        Inspect {
            state: &mut self.state,
            fib: &mut self.fib,
            hashes: &mut self.buffers.hashes,
        }
    }
}
