//! What crosses between threads, and what is received, costs no allocation in steady state.

#[path = "../../memory/tests/support/allocations.rs"]
mod allocations;
#[path = "../../forward/tests/bed/mod.rs"]
mod bed;

use std::sync::Arc;

use allocations::n_allocations;
use bed::{REMOTE, data, interest, name};
use tachonym_dispatch::{DispatchBy, Key, Laps, LapsConfig, Publisher, ServiceId, WorkerId};
use tachonym_forward::{Engine, EngineConfig, Output, RxPacket, relend};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashedNames, InterestRewrite, InterestView, MonoNs, NackReason, NameHashes,
};
use tachonym_tables::NextHop;
use tachonym_workers::{
    Batch, Dispatcher, LinkConfig, Links, Parcel, Port, Receiver, ReceiverConfig, WaitingLengths,
    Worker,
};

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
const N_NAMES: u32 = 40;

/// Takes packets and keeps nothing but their number.
#[derive(Default)]
struct Sink {
    n_sent: u64,
}

impl Output for Sink {
    fn send_interest(&mut self, _: FaceId, _: &InterestView<'_>, _: &InterestRewrite, _: &Headers) {
        self.n_sent += 1;
    }

    fn send_data(&mut self, _: FaceId, _: &[u8], _: &Headers) {
        self.n_sent += 1;
    }

    fn send_nack(&mut self, _: FaceId, _: NackReason, _: &[u8], _: &Headers) {
        self.n_sent += 1;
    }
}

impl Port for Sink {
    fn pass(&mut self, _: WorkerId, _: &Parcel<'_>) -> bool {
        panic!("there is one worker")
    }
}

fn hash_key() -> HashKey {
    HashKey::from_u64s(1, 2)
}

fn packet(face: FaceId, wire: &[u8]) -> RxPacket<'_> {
    RxPacket::parse(face, &Headers::EMPTY, wire).expect("well-formed")
}

fn push(batch: &mut Batch, face: FaceId, wire: &[u8]) {
    let (packet, mut hashes) = (packet(face, wire), NameHashes::new());
    let span = hashes.push_name(&hash_key(), packet.name());
    batch.push(&Parcel::arrived(&packet, hashes.slice(span)));
}

#[test]
fn a_batch_that_came_from_another_thread_costs_no_allocation() {
    let mut engine = Engine::new(EngineConfig::default(), hash_key(), 1).expect("memory");
    for face in [CONSUMER, PRODUCER] {
        engine.add_face(face, REMOTE);
    }
    let route = engine.add_next_hop(name("/n").view(), NextHop::new(PRODUCER, 0));
    route.expect("room for a route");
    let laps = Laps::new(&LapsConfig::new(1)).expect("a worker");
    let publisher = Publisher::new(laps.homes());
    let dispatcher = Dispatcher::new(DispatchBy::Name, hash_key(), publisher.reader());
    let waiting = Arc::new(WaitingLengths::new(1));
    let mut worker = Worker::new(WorkerId(0), engine, dispatcher, waiting);
    let mut batch = Batch::new();
    for n in 0..N_NAMES {
        let uri = format!("/n/{n}");
        push(&mut batch, CONSUMER, &interest(&uri).nonce(n + 1).wire());
        push(&mut batch, PRODUCER, &data(&uri).wire());
    }
    let mut sink = Sink::default();
    let mut before = 0;
    for round in 0..10_u64 {
        if round == 5 {
            before = n_allocations();
        }
        worker.handle_batch(MonoNs(round + 1), &batch, &mut sink);
    }
    assert_eq!(n_allocations() - before, 0);
    // Later rounds are answered from the store.
    assert_eq!(sink.n_sent, 2 * u64::from(N_NAMES) + 9 * u64::from(N_NAMES));
}

/// The key of a name, and where it is at home.
fn place(laps: &Laps, uri: &str) -> (Key, WorkerId) {
    let (mut hashes, name) = (NameHashes::new(), name(uri));
    let span = hashes.push_name(&hash_key(), name.view());
    let key = DispatchBy::Name.key(name.view(), hashes.slice(span));
    (key, laps.homes().home(ServiceId(0), key))
}

#[test]
fn only_packets_that_wait_for_their_name_to_move_are_copied_when_they_are_received() {
    let mut laps = Laps::new(&LapsConfig::new(2)).expect("two workers");
    let mut publisher = Publisher::new(laps.homes());
    let dispatcher = Dispatcher::new(DispatchBy::Name, hash_key(), publisher.reader());
    let config = ReceiverConfig {
        sample_every: 1,
        ..ReceiverConfig::default()
    };
    let (mut receiver, _view) = Receiver::new(None, 2, dispatcher, config);
    let mut ends = Links::mesh(3, LinkConfig { batches: 4 });
    let mut links = ends.pop().expect("that of the receiver");
    let wires: Vec<_> = (0..N_NAMES)
        .map(|n| interest(&format!("/n/{n}")).nonce(1).wire())
        .collect();
    let (key, home) = place(&laps, "/n/0");
    let mut memory = (Vec::new(), HashedNames::new());
    let mut receive = |receiver: &mut Receiver, links: &mut Links, wire: &[u8]| {
        let mut burst = relend(std::mem::take(&mut memory.0));
        burst.push(packet(CONSUMER, wire));
        receiver.take(&mut burst, &mut memory.1, links, |_| true);
        assert!(burst.is_empty(), "this thread has no worker");
        memory.0 = relend(burst);
    };
    // Memory of batches grows to what it has to be.
    for _ in 0..50 {
        begin(&mut receiver, &mut links);
        for wire in &wires {
            receive(&mut receiver, &mut links, wire);
        }
        links.flush();
        for end in &mut ends {
            while let Some(batch) = end.receive(WorkerId(2)) {
                end.give_back(WorkerId(2), batch);
            }
        }
    }
    begin(&mut receiver, &mut links);
    receive(&mut receiver, &mut links, &wires[0]);
    let other = WorkerId(1 - home.0);
    let pinned = laps.pin(ServiceId(0), key, other);
    pinned.expect("room for a name");
    publisher.publish(laps.homes());
    begin(&mut receiver, &mut links);
    assert!(!receiver.is_calm(), "its packet is under way");
    let before = n_allocations();
    for wire in &wires[1..] {
        receive(&mut receiver, &mut links, wire);
    }
    assert_eq!(n_allocations() - before, 0);
    assert_eq!(receiver.counters().n_held, 0);
    receive(&mut receiver, &mut links, &wires[0]);
    assert_eq!(receiver.counters().n_held, 1);
    assert!(n_allocations() > before, "what waits is copied");
}

fn begin(receiver: &mut Receiver, links: &mut Links) {
    receiver.begin(links, 0, |_| panic!("this thread has no worker"));
}
