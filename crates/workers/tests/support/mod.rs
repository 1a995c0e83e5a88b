//! Workers in one thread, with links among them in which packets wait for as long as chance
//! would have it.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tachonym_dispatch::{DispatchBy, Laps, LapsConfig, Publisher, ServiceId, WorkerId};
use tachonym_forward::{Engine, EngineConfig, Output, RxPacket, UnsolicitedDataPolicy};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, InterestRewrite, InterestView, MonoNs, NackReason, Name, NameHashes, NameView,
};
use tachonym_tables::NextHop;
use tachonym_workers::{Batch, Dispatcher, Parcel, Port, Services, WaitingLengths, Worker};

use crate::bed::{AD_HOC, LOCAL, MULTI_ACCESS, Outbox, REMOTE, Sent, name};

const TRAITS: [tachonym_forward::FaceTraits; 5] = [LOCAL, LOCAL, REMOTE, MULTI_ACCESS, AD_HOC];

fn key() -> HashKey {
    HashKey::from_u64s(1, 2)
}

fn config() -> EngineConfig {
    EngineConfig {
        unsolicited_data: UnsolicitedDataPolicy::AdmitLocal,
        ..EngineConfig::default()
    }
}

fn add_faces(engine: &mut Engine) {
    for (face, traits) in (256..).zip(TRAITS) {
        engine.add_face(FaceId(face), traits);
    }
    let strategy = name("/localhost/nfd/strategy/multicast");
    engine
        .choices_mut()
        .set_strategy(name("/b").view(), strategy.view())
        .expect("a strategy that is there");
}

/// One engine.
pub(crate) fn one() -> Engine {
    let mut engine = Engine::new(config(), key(), 3).expect("memory for small tables");
    add_faces(&mut engine);
    add_routes(&mut engine);
    engine
}

fn add_routes(engine: &mut Engine) {
    let hop = NextHop::new(FaceId(258), 0);
    let to_one = engine.add_next_hop(name("/p").view(), hop);
    to_one.expect("room for a route");
    for (cost, prefix) in ["/", "/a", "/a/b", "/b", "/localhost"].iter().enumerate() {
        for face in [256, 258, 259 + cost as u64 % 2] {
            let hop = NextHop::new(FaceId(face), cost as u64);
            engine
                .add_next_hop(name(prefix).view(), hop)
                .expect("room for a route");
        }
    }
}

/// A number that chance would have.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Packets under way, by sender and receiver.
type UnderWay = BTreeMap<(WorkerId, WorkerId), VecDeque<Batch>>;

struct Ports<'a> {
    me: WorkerId,
    out: &'a mut Outbox,
    under_way: &'a mut UnderWay,
}

impl Port for Ports<'_> {
    fn pass(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool {
        assert_ne!(to, self.me);
        let mut batch = Batch::new();
        batch.push(parcel);
        let link = self.under_way.entry((self.me, to)).or_default();
        link.push_back(batch);
        true
    }
}

impl Output for Ports<'_> {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        self.out.send_interest(face, interest, rewrite, headers);
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.out.send_data(face, data_wire, headers);
    }

    fn send_data_announcing(
        &mut self,
        face: FaceId,
        data_wire: &[u8],
        headers: &Headers,
        announcement: &[u8],
    ) {
        let out = &mut self.out;
        out.send_data_announcing(face, data_wire, headers, announcement);
    }

    fn learn_route(&mut self, face: FaceId, name: NameView<'_>, announcement: &[u8]) {
        self.out.learn_route(face, name, announcement);
    }

    fn forget_learnt_route(&mut self, face: FaceId, name: NameView<'_>) {
        self.out.forget_learnt_route(face, name);
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        self.out.send_nack(face, reason, interest_wire, headers);
    }
}

/// Several workers.
pub(crate) struct Many {
    workers: Vec<Worker>,
    receiver: Dispatcher,
    pub(crate) laps: Laps,
    pub(crate) publisher: Publisher,
    under_way: UnderWay,
    chance: u64,
}

impl Many {
    pub(crate) fn new(n_workers: usize, by: DispatchBy, seed: u64) -> Self {
        Self::serving(n_workers, by, seed, &[])
    }

    /// Names with the first of these prefixes are of the second service and so on, as far as
    /// there are workers for each.
    pub(crate) fn serving(n_workers: usize, by: DispatchBy, seed: u64, prefixes: &[Name]) -> Self {
        let n_services = n_workers.min(prefixes.len() + 1);
        let laps = Laps::new(&LapsConfig {
            worker_rates_pps: vec![1e6; n_services],
            ..LapsConfig::new(n_workers)
        });
        let laps = laps.expect("so many workers");
        let others = (1..n_services).map(|idx| ServiceId(idx as u8));
        let services = Services::new(prefixes.iter().cloned().zip(others).collect());
        let services = Arc::new(services);
        let publisher = Publisher::new(laps.homes());
        let mut first = Engine::new(config(), key(), 3).expect("memory for small tables");
        add_faces(&mut first);
        add_routes(&mut first);
        let routes = first.routes().clone();
        let mut engines = vec![first];
        for seed in 1..n_workers {
            let config = EngineConfig {
                routes: Some(routes.clone()),
                ..config()
            };
            let engine = Engine::new(config, key(), seed as u64);
            engines.push(engine.expect("memory for small tables"));
        }
        let waiting = Arc::new(WaitingLengths::new(n_workers));
        let dispatcher = || {
            let dispatcher = Dispatcher::new(by, key(), publisher.reader());
            dispatcher.with_services(Arc::clone(&services))
        };
        let workers = engines.into_iter().enumerate().map(|(idx, mut engine)| {
            if idx > 0 {
                add_faces(&mut engine);
            }
            Worker::new(WorkerId(idx as u16), engine, dispatcher(), waiting.clone())
        });
        Self {
            workers: workers.collect(),
            receiver: dispatcher(),
            laps,
            publisher,
            under_way: UnderWay::new(),
            chance: seed,
        }
    }

    /// Has a packet, and all that it leads to, carried; what leaves.
    pub(crate) fn handle(&mut self, now: MonoNs, packet: Option<&RxPacket<'_>>) -> Vec<Sent> {
        let mut out = Outbox::default();
        for worker in 0..self.workers.len() {
            self.with_ports(worker, &mut out, |worker, ports| {
                worker.handle_timeout(now, ports);
            });
        }
        if let Some(packet) = packet {
            self.take(now, packet, &mut out);
        }
        while self.deliver_one(now, &mut out) {}
        out.0
    }

    /// Takes a packet without having all carried that is under way. Chance decides whether its
    /// worker has received it, or another thread, which has hashed its name.
    pub(crate) fn take(&mut self, now: MonoNs, packet: &RxPacket<'_>, out: &mut Outbox) {
        self.receiver.refresh();
        let home = self.receiver.home(packet.name()).idx();
        let mut batch = Batch::new();
        if next(&mut self.chance).is_multiple_of(2) {
            let mut hashes = NameHashes::new();
            let span = hashes.push_name(&key(), packet.name());
            batch.push(&Parcel::arrived(packet, hashes.slice(span)));
        }
        self.with_ports(home, out, |worker, ports| match batch.is_empty() {
            true => worker.handle_burst(now, &[*packet], ports),
            false => worker.handle_batch(now, &batch, ports),
        });
    }

    /// Delivers the first packet of some link; false if there is none.
    pub(crate) fn deliver_one(&mut self, now: MonoNs, out: &mut Outbox) -> bool {
        self.under_way.retain(|_, link| !link.is_empty());
        if self.under_way.is_empty() {
            return false;
        }
        let chosen = next(&mut self.chance) as usize % self.under_way.len();
        let (&(_, to), link) = self.under_way.iter_mut().nth(chosen).expect("so many");
        let batch = link.pop_front().expect("not empty");
        self.with_ports(to.idx(), out, |worker, ports| {
            worker.handle_batch(now, &batch, ports);
        });
        true
    }

    fn with_ports(
        &mut self,
        worker: usize,
        out: &mut Outbox,
        act: impl FnOnce(&mut Worker, &mut Ports<'_>),
    ) {
        let mut ports = Ports {
            me: WorkerId(worker as u16),
            out,
            under_way: &mut self.under_way,
        };
        act(&mut self.workers[worker], &mut ports);
    }

    /// Loses what is under way.
    pub(crate) fn lose_all(&mut self) {
        self.under_way.clear();
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.values().all(VecDeque::is_empty)
    }

    pub(crate) fn remove_face(&mut self, face: FaceId) {
        for worker in &mut self.workers {
            worker.engine_mut().remove_face(face);
        }
    }

    /// Whether nothing is under way, and no Interest had to go on without an answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_empty()
            && self
                .workers
                .iter()
                .all(|worker| worker.counters().n_overdue == 0)
    }

    pub(crate) fn engines(&self) -> Vec<&Engine> {
        self.workers.iter().map(Worker::engine).collect()
    }

    pub(crate) fn workers(&self) -> &[Worker] {
        &self.workers
    }

    pub(crate) fn counted(&self) -> Vec<(&'static str, u64)> {
        counted(&self.engines())
    }

    pub(crate) fn cached(&self) -> BTreeSet<Vec<u8>> {
        cached(&self.engines())
    }
}

/// What left, in an order that does not depend on which worker sent it.
pub(crate) fn sorted(mut sent: Vec<Sent>) -> Vec<Sent> {
    sent.sort_by_cached_key(|sent| format!("{sent:?}"));
    sent
}

/// What engines have counted together.
pub(crate) fn counted(engines: &[&Engine]) -> Vec<(&'static str, u64)> {
    type Read = fn(&Engine) -> u64;
    let reads: [(&'static str, Read); 12] = [
        ("Interests in", |engine| engine.counters().n_in_interests),
        ("Data in", |engine| engine.counters().n_in_data),
        ("Nacks in", |engine| engine.counters().n_in_nacks),
        ("Interests out", |engine| engine.counters().n_out_interests),
        ("Data out", |engine| engine.counters().n_out_data),
        ("Nacks out", |engine| engine.counters().n_out_nacks),
        ("hits", |engine| engine.counters().n_cs_hits),
        ("misses", |engine| engine.counters().n_cs_misses),
        ("satisfied", |engine| {
            engine.counters().n_satisfied_interests
        }),
        ("unsolicited", |engine| engine.counters().n_unsolicited_data),
        ("aggregated", |engine| {
            engine.counters().n_aggregated_interests
        }),
        ("pending", |engine| engine.sizes().n_pit_entries as u64),
    ];
    let sum = |read: Read| engines.iter().map(|engine| read(engine)).sum();
    reads
        .iter()
        .map(|&(label, read)| (label, sum(read)))
        .collect()
}

/// Which Data engines have cached.
pub(crate) fn cached(engines: &[&Engine]) -> BTreeSet<Vec<u8>> {
    let stores = engines.iter().map(|engine| engine.cs());
    stores
        .flat_map(|store| store.iter().map(|data| data.wire().to_vec()))
        .collect()
}
