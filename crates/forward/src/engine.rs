//! The engine as its owner sees it: bursts and time in, packets out.

use std::ops::Range;

use tachonym_memory::Pages;
use tachonym_packet::{FaceId, HashKey, HashSpan, MonoNs, NameHash, NameHashes};
use tachonym_tables::{FibProbe, FibReader, FibView, Sighted};

use crate::block::Block;
use crate::burst::{Output, RxKind, RxPacket};
use crate::cache::EngineError;
use crate::config::EngineConfig;
use crate::counters::{Counters, DropReason};
use crate::pipelines::{Arrival, Pipelines};
use crate::recent_drops::RecentDrops;
use crate::routes::Routes;
use crate::schedule::{MAX_BURST_DISTANCE, Schedule};

/// A forwarding engine with its tables.
///
/// It never reads a clock: `now` comes with every call that needs it and must
/// not go back.
#[derive(Debug)]
pub struct Engine {
    pub(crate) pipelines: Pipelines,
    pub(crate) routes: Routes,
    /// Numbers of faces rise; one that does not is used again.
    pub(crate) highest_face: FaceId,
    pub(crate) fib: FibReader,
    /// Prefix hashes of the names of one burst, and where each name's are.
    pub(crate) hashes: NameHashes,
    spans: Vec<HashSpan>,
    /// What tags promise each packet, of those whose entries are fetched.
    promises: Vec<Promises>,
    schedule: Schedule,
    burst_distance: usize,
}

/// What tags promise a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Promises {
    /// Those of the FIB; `None`: it has not been asked about the packet's name.
    fib: Option<FibProbe>,
    /// Those of the content store.
    cached: Sighted,
}

/// How many entries the tables hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Faces.
    pub n_faces: usize,
    /// Prefixes in the FIB.
    pub n_fib_entries: usize,
    /// Pending Interests.
    pub n_pit_entries: usize,
    /// Data in the content store.
    pub n_cs_entries: usize,
    /// Routes that strategies have measured.
    pub n_measurements: usize,
    /// Prefixes with a strategy of their own, the root included.
    pub n_strategy_choices: usize,
    /// Nonces in the dead nonce list.
    pub n_dead_nonces: usize,
}

impl Engine {
    /// An engine without faces, but the internal one (number 1), to which
    /// management routes its prefixes. `key` must be secret and random, lest
    /// peers choose names that collide; `seed` feeds nonces and random choices.
    ///
    /// # Errors
    /// If there is not as much memory as the tables need from the start, or no such policy
    /// of the content store.
    pub fn new(config: EngineConfig, key: HashKey, seed: u64) -> Result<Self, EngineError> {
        let routes = Routes::new(config.fib, key.clone())?;
        Self::sharing(config, key, seed, routes)
    }

    /// As [`Engine::new`], but with the routes of another engine, which has the same key;
    /// `config.fib` does not matter. See [`sharing`](crate::sharing).
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn sharing(
        config: EngineConfig,
        key: HashKey,
        seed: u64,
        routes: Routes,
    ) -> Result<Self, EngineError> {
        let (schedule, burst_distance) = (config.schedule, config.burst_distance);
        Ok(Self {
            fib: routes.reader(),
            routes,
            highest_face: FaceId::default(),
            pipelines: Pipelines::new(config, key, seed)?,
            hashes: NameHashes::new(),
            spans: Vec::new(),
            promises: Vec::new(),
            schedule,
            burst_distance: burst_distance.clamp(1, MAX_BURST_DISTANCE),
        })
    }

    /// Carries a burst of received packets through the tables, in order. The
    /// outcome is that of its packets one by one.
    pub fn handle_burst(&mut self, now: MonoNs, rx: &[RxPacket<'_>], out: &mut impl Output) {
        out.enter(Block::Timers);
        self.routes.go_on();
        let fib = self.fib.pin();
        self.pipelines.handle_timers(now, &fib, out);
        self.hashes.clear();
        self.spans.clear();
        self.promises.clear();
        let lead = self.schedule.lead(self.burst_distance);
        let mut burst = Burst {
            rx,
            fib: &fib,
            pipelines: &mut self.pipelines,
            hashes: &mut self.hashes,
            spans: &mut self.spans,
            promises: &mut self.promises,
            n_buckets_fetched: 0,
            n_contents_fetched: 0,
            fetches_contents: lead.contents.is_some(),
        };
        for start in (0..rx.len()).step_by(lead.group) {
            let end = start + lead.group;
            burst.hash_until(end + lead.hash, out);
            if let Some(ahead) = lead.buckets {
                burst.fetch_buckets_until(end + ahead, out);
            }
            if let Some(ahead) = lead.entries {
                burst.fetch_entries_until(end + ahead, out);
            }
            if let Some(ahead) = lead.contents {
                burst.fetch_contents_until(end + ahead, out);
            }
            for idx in start..end.min(rx.len()) {
                burst.carry(idx, out);
            }
        }
    }

    /// Changes the order of work in a burst; no outcome depends on it.
    pub const fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    /// Changes how many packets take a step of [`Schedule::Burst`] together: from 1 to
    /// [`MAX_BURST_DISTANCE`], or the next of these. No outcome depends on it.
    pub fn set_burst_distance(&mut self, n_pkts: usize) {
        self.burst_distance = n_pkts.clamp(1, MAX_BURST_DISTANCE);
    }

    /// Does what has become due by `now`: expires pending Interests, forgets
    /// records of faces that have gone, offers pending Interests to new next
    /// hops.
    pub fn handle_timeout(&mut self, now: MonoNs, out: &mut impl Output) {
        self.routes.go_on();
        self.pipelines.handle_timers(now, &self.fib.pin(), out);
    }

    /// When [`Self::handle_timeout`] next has work; ask again after every
    /// `handle_*` and every change.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let work = self.routes.next_work(self.pipelines.now);
        let timer = self.pipelines.next_timer();
        work.into_iter().chain(timer).min()
    }

    /// Events since the engine began.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.pipelines.counters
    }

    /// Packets that this engine dropped lately, with face and reason.
    #[must_use]
    pub const fn recent_drops(&self) -> &RecentDrops<DropReason> {
        &self.pipelines.recent_drops
    }

    /// How full the tables are.
    #[must_use]
    pub fn sizes(&self) -> TableSizes {
        self.pipelines.sizes(self.routes.n_prefixes())
    }

    /// Nonces of dead Interests that were forgotten before their time, for want of room.
    #[must_use]
    pub fn n_dead_nonces_evicted_early(&self) -> u64 {
        self.pipelines.dead_nonces.n_evicted_early()
    }

    /// What the tables have on pages that they asked the system for: the FIB, and the
    /// indexes of pending Interests, content store and dead nonces. Interests and Data have
    /// their memory from the allocator, which is not told here.
    #[must_use]
    pub fn memory_pages(&self) -> Pages {
        self.fib_pages() + self.own_pages()
    }

    /// The part of the FIB in [`Engine::memory_pages`], which engines may share.
    #[must_use]
    pub fn fib_pages(&self) -> Pages {
        self.fib.pages()
    }

    /// The part of the tables that are this engine's alone.
    #[must_use]
    pub fn own_pages(&self) -> Pages {
        let Pipelines {
            tables,
            dead_nonces,
            ..
        } = &self.pipelines;
        tables.pages() + dead_nonces.pages()
    }
}

/// A burst on its way through the tables, each step at a packet of its own.
struct Burst<'b, 'rx> {
    rx: &'b [RxPacket<'rx>],
    fib: &'b FibView<'b>,
    pipelines: &'b mut Pipelines,
    hashes: &'b mut NameHashes,
    /// Of the packets that are hashed.
    spans: &'b mut Vec<HashSpan>,
    /// Of the packets whose entries are fetched.
    promises: &'b mut Vec<Promises>,
    /// Packets whose buckets are fetched, and whose contents.
    n_buckets_fetched: usize,
    n_contents_fetched: usize,
    fetches_contents: bool,
}

impl Burst<'_, '_> {
    /// Hashes the names of the packets before `end`, all of them in the block of the
    /// first.
    fn hash_until(&mut self, end: usize, out: &mut impl Output) {
        let end = end.min(self.rx.len());
        let new = self.rx.get(self.spans.len()..end).unwrap_or_default();
        if let Some(first) = new.first() {
            out.enter(first.reception());
            let names = new.iter().map(RxPacket::name);
            self.hashes
                .push_burst(&self.pipelines.key, names, self.spans);
        }
    }

    /// Fetches the buckets of the packets before `end`.
    fn fetch_buckets_until(&mut self, end: usize, out: &mut impl Output) {
        out.enter(Block::Prefetch);
        let new = self.n_buckets_fetched..end.min(self.spans.len());
        self.n_buckets_fetched = new.end;
        for idx in new.clone() {
            let hashes = self.hashes.slice(self.spans[idx]);
            self.pipelines.prefetch_buckets(&self.rx[idx], hashes);
        }
        if !self.fetches_contents {
            self.fetch_fib_buckets(new);
        }
    }

    /// Fetches what tags in the buckets of the packets before `end` promise.
    fn fetch_entries_until(&mut self, end: usize, out: &mut impl Output) {
        out.enter(Block::Prefetch);
        let new = self.promises.len()..end.min(self.spans.len());
        self.promises.resize(new.end, Promises::default());
        if !self.fetches_contents {
            self.fetch_fib_nodes(new.clone());
        }
        for idx in new.clone() {
            let hashes = self.hashes.slice(self.spans[idx]);
            self.promises[idx].cached = self.pipelines.prefetch_entries(&self.rx[idx], hashes);
        }
        if self.fetches_contents {
            self.fetch_fib_buckets(new);
        }
    }

    /// Fetches what the entries of the packets before `end` lead to. Here the FIB is asked,
    /// a step behind the other tables: an Interest that a Data seems to answer needs it not.
    fn fetch_contents_until(&mut self, end: usize, out: &mut impl Output) {
        out.enter(Block::Prefetch);
        let new = self.n_contents_fetched..end.min(self.promises.len());
        self.n_contents_fetched = new.end;
        for promises in &self.promises[new.clone()] {
            self.pipelines.tables.prefetch_hit(promises.cached);
        }
        self.fetch_fib_nodes(new);
    }

    /// Fetches the buckets in which the FIB looks for packets that need it.
    fn fetch_fib_buckets(&self, packets: Range<usize>) {
        for idx in packets {
            if self.needs_fib(idx) {
                self.fib
                    .prefetch_buckets(self.hashes.slice(self.spans[idx]));
            }
        }
    }

    /// Fetches what tags of the FIB promise packets that need it: first asks all tags, so
    /// that nothing stands between one fetch and the next, and memory addresses are
    /// translated side by side.
    fn fetch_fib_nodes(&mut self, packets: Range<usize>) {
        for idx in packets.clone() {
            if self.needs_fib(idx) {
                let hashes = self.hashes.slice(self.spans[idx]);
                self.promises[idx].fib = Some(self.fib.probe(hashes));
            }
        }
        for (packet, promises) in self.rx[packets.clone()].iter().zip(&self.promises[packets]) {
            if let Some(probe) = promises.fib {
                self.fib.prefetch_node(packet.name(), probe);
            }
        }
    }

    /// Whether the FIB will be asked about a packet's name, as far as can be told.
    fn needs_fib(&self, idx: usize) -> bool {
        let promises = self.promises.get(idx);
        self.rx[idx].is_routed_by_name() && promises.is_none_or(|promises| !promises.cached.hits())
    }

    /// Carries a packet through the tables.
    fn carry(&mut self, idx: usize, out: &mut impl Output) {
        let packet = &self.rx[idx];
        let pipelines = &mut *self.pipelines;
        if self.fetches_contents && matches!(packet.packet, RxKind::Data(_)) {
            out.enter(Block::Prefetch);
            pipelines.tables.prefetch_victims();
        }
        out.enter(Block::Checks);
        let Some(traits) = pipelines.faces.find(packet.face) else {
            return pipelines.count_unknown_face(packet);
        };
        let arrival = Arrival {
            face: packet.face,
            traits,
            headers: packet.headers,
            announcement: packet.prefix_announcement,
            lent: None,
            hashes: self.hashes.slice(self.spans[idx]),
            fib: self.fib,
            probe: self
                .promises
                .get(idx)
                .and_then(|promises| promises.fib.as_ref()),
        };
        match &packet.packet {
            RxKind::Interest(interest) => pipelines.incoming_interest(&arrival, interest, out),
            RxKind::Data(data) => pipelines.incoming_data(&arrival, data, out),
            RxKind::Nack(reason, interest) => {
                pipelines.incoming_nack(&arrival, *reason, interest, out);
            }
        }
    }
}

impl Pipelines {
    /// Fetches where a packet looks first.
    fn prefetch_buckets(&self, packet: &RxPacket<'_>, hashes: &[NameHash]) {
        let Some(&name_hash) = hashes.last() else {
            return;
        };
        match &packet.packet {
            RxKind::Interest(interest) => {
                if !self.dead_nonces.is_empty()
                    && let Some(nonce) = interest.nonce()
                {
                    self.dead_nonces.prefetch(name_hash, nonce);
                }
                self.tables.prefetch_buckets_for_interest(name_hash);
            }
            RxKind::Data(_) => self.tables.prefetch_buckets_for_data(hashes),
            RxKind::Nack(..) => self.tables.prefetch_buckets_for_nack(name_hash),
        }
    }

    /// Fetches what tags promise a packet.
    fn prefetch_entries(&self, packet: &RxPacket<'_>, hashes: &[NameHash]) -> Sighted {
        let Some(&name_hash) = hashes.last() else {
            return Sighted::default();
        };
        match &packet.packet {
            RxKind::Interest(_) => return self.tables.prefetch_entries_for_interest(name_hash),
            RxKind::Data(_) => self.tables.prefetch_entries_for_data(hashes),
            RxKind::Nack(..) => self.tables.prefetch_entries_for_nack(name_hash),
        }
        Sighted::default()
    }

    /// Drops a packet whose face is not known (any more).
    #[cold]
    pub(crate) fn drop_of_unknown_face(&mut self, packet: &RxPacket<'_>) {
        self.drop_packet(DropReason::UnknownFace, packet.as_dropped());
    }

    #[cold]
    pub(crate) fn count_unknown_face(&mut self, packet: &RxPacket<'_>) {
        match packet.packet {
            RxKind::Interest(_) => self.counters.n_in_interests += 1,
            RxKind::Data(_) => self.counters.n_in_data += 1,
            RxKind::Nack(..) => self.counters.n_in_nacks += 1,
        }
        self.drop_of_unknown_face(packet);
    }
}
