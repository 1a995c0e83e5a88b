//! What is received reaches the worker where it is at home, in order, while names move; what
//! finds no room is counted.

#[path = "../../forward/tests/bed/mod.rs"]
mod bed;

use std::collections::BTreeMap;

use bed::interest;
use proptest::prelude::*;
use tachonym_dispatch::{DispatchBy, Laps, LapsConfig, MapKind, Publisher, ServiceId, WorkerId};
use tachonym_forward::{RxKind, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashKind, HashedNames, InterestView, MonoNs, NameHashes, NameView,
};
use tachonym_workers::{Dispatcher, LinkConfig, Links, Receiver, ReceiverConfig, Scheduler};

const N_WORKERS: usize = 3;
const LIFETIME_MS: u64 = 20;

/// One thread receives, the others are workers that do nothing but look.
struct Bed {
    receiver: Receiver,
    scheduler: Scheduler,
    links: Links,
    workers: Vec<Links>,
    /// By name: the number of its last packet that a worker has had.
    last: BTreeMap<String, u32>,
    n_seen: u64,
    n_sent: u32,
    now: MonoNs,
}

impl Bed {
    /// Has the scheduler look, a millisecond later.
    fn tick(&mut self) -> usize {
        self.now = self.now.plus_ms(1);
        self.scheduler.tick(self.now)
    }

    fn new(high_threshold: u32) -> Self {
        let config = LapsConfig {
            map: MapKind::Buckets { n_buckets_log2: 6 },
            high_threshold,
            ..LapsConfig::new(N_WORKERS)
        };
        let laps = Laps::new(&config).expect("so many workers");
        let publisher = Publisher::new(laps.homes());
        let key = HashKey::from_u64s(1, 2);
        let dispatcher = Dispatcher::new(DispatchBy::Name, key, publisher.reader());
        let config = ReceiverConfig {
            sample_every: 1,
            max_queue_pkts: 200,
            ..ReceiverConfig::default()
        };
        let (receiver, view) = Receiver::new(None, N_WORKERS, dispatcher, config);
        let mut workers = Links::mesh(N_WORKERS + 1, LinkConfig { batches: 64 });
        let links = workers.pop().expect("that of the receiver");
        Self {
            receiver,
            scheduler: Scheduler::new(laps, N_WORKERS, publisher, vec![view], LIFETIME_MS),
            links,
            workers,
            last: BTreeMap::new(),
            n_seen: 0,
            n_sent: 0,
            now: MonoNs::ZERO,
        }
    }

    /// Receives packets of these names.
    fn receive(&mut self, names: impl IntoIterator<Item = u64>) {
        self.receiver
            .begin(&mut self.links, 0, |_| panic!("this thread has no worker"));
        let wires: Vec<_> = names
            .into_iter()
            .map(|number| {
                self.n_sent += 1;
                interest(&format!("/n/{number}")).nonce(self.n_sent).wire()
            })
            .collect();
        let wires: Vec<_> = wires.iter().map(Vec::as_slice).collect();
        take(&mut self.receiver, &mut self.links, &wires);
        self.links.flush();
    }

    /// Has a worker do some batches.
    fn work(&mut self, worker: usize, n_batches: usize) -> Result<(), TestCaseError> {
        let receiver = WorkerId(N_WORKERS as u16);
        for _ in 0..n_batches {
            let Some(batch) = self.workers[worker].receive(receiver) else {
                break;
            };
            for parcel in batch.iter() {
                let interest = InterestView::parse(parcel.wire()).expect("as it was sent");
                let number = u32::from_be_bytes(interest.nonce().expect("a nonce").0);
                let last = self.last.insert(interest.name().to_string(), number);
                prop_assert!(last < Some(number), "{} comes too late", interest.name());
                self.n_seen += 1;
            }
            self.workers[worker].give_back(receiver, batch);
        }
        Ok(())
    }
}

fn packet(wire: &[u8]) -> RxPacket<'_> {
    RxPacket::parse(FaceId(256), &Headers::EMPTY, wire).expect("well-formed")
}

/// Receives a burst on a thread without a worker.
fn take(receiver: &mut Receiver, links: &mut Links, wires: &[&[u8]]) {
    let mut burst = wires.iter().map(|wire| packet(wire)).collect();
    receiver.take(&mut burst, &mut HashedNames::new(), links, |_| true);
    assert!(burst.is_empty(), "this thread has no worker");
}

#[derive(Clone, Debug)]
enum Step {
    Receive(Vec<u64>),
    Work(usize, usize),
    Tick,
    Pin(u64, u16),
    Remove(u16),
    Add(u16),
}

fn any_step() -> impl Strategy<Value = Step> {
    // Of twenty names one has half of the packets.
    let number = prop_oneof![Just(0_u64), 1_u64..20];
    prop_oneof![
        4 => prop::collection::vec(number, 1..100).prop_map(Step::Receive),
        6 => (0..N_WORKERS, 1_usize..4).prop_map(|(worker, n)| Step::Work(worker, n)),
        4 => Just(Step::Tick),
        1 => (0_u64..20, 0_u16..3).prop_map(|(number, worker)| Step::Pin(number, worker)),
        1 => (0_u16..3).prop_map(Step::Remove),
        1 => (0_u16..3).prop_map(Step::Add),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn names_move_and_their_packets_keep_their_order(
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut bed = Bed::new(20);
        let by = DispatchBy::Name;
        for step in steps {
            match step {
                Step::Receive(names) => bed.receive(names),
                Step::Work(worker, n_batches) => bed.work(worker, n_batches)?,
                Step::Tick => {
                    bed.tick();
                }
                Step::Pin(number, worker) => {
                    let name = bed::name(&format!("/n/{number}"));
                    let mut hashes = tachonym_packet::NameHashes::new();
                    let span = hashes.push_name(&HashKey::from_u64s(1, 2), name.view());
                    let key = by.key(name.view(), hashes.slice(span));
                    // It may be refused: the worker is not there, or the name on its way.
                    let _ = bed.scheduler.laps_mut().pin(ServiceId(0), key, WorkerId(worker));
                }
                Step::Remove(worker) => {
                    let _ = bed.scheduler.laps_mut().remove_worker(WorkerId(worker));
                }
                Step::Add(worker) => {
                    let _ = bed.scheduler.laps_mut().add_worker(WorkerId(worker), ServiceId(0));
                }
            }
        }
        // All that was not dropped arrives in the end.
        for _ in 0..100 {
            bed.receive([]);
            for worker in 0..N_WORKERS {
                bed.work(worker, usize::MAX)?;
            }
            bed.tick();
        }
        let counters = bed.receiver.counters();
        let n_dropped = counters.n_queue_full + counters.n_order_full;
        prop_assert_eq!(bed.n_seen + n_dropped, u64::from(bed.n_sent));
        prop_assert!(bed.scheduler.queue_lens().iter().all(|&len| len == 0));
        // Nobody remembers former homes for longer than Interests wait.
        let homes = bed.scheduler.homes();
        prop_assert_eq!(homes.map(ServiceId(0)).n_unsettled(), 0);
        prop_assert!(homes.migrations().iter().all(|it| it.former.is_empty()));
    }
}

proptest! {
    #[test]
    fn each_packet_of_a_burst_reaches_its_home_once_with_the_hashes_of_its_name(
        numbers in prop::collection::vec(0_u32..40, 1..100),
        refused in 0_u32..40,
    ) {
        let me = WorkerId(1);
        let key = HashKey::new(HashKind::MultilinearAes, &[5; 32]);
        let laps = Laps::new(&LapsConfig::new(N_WORKERS)).expect("so many workers");
        let publisher = Publisher::new(laps.homes());
        let dispatcher = || Dispatcher::new(DispatchBy::Name, key.clone(), publisher.reader());
        let config = ReceiverConfig::default();
        let (mut receiver, _view) = Receiver::new(Some(me), N_WORKERS, dispatcher(), config);
        let mut ends = Links::mesh(N_WORKERS, LinkConfig::default());
        let wires: Vec<_> = numbers
            .iter()
            .zip(1..)
            .map(|(number, nonce)| interest(&format!("/n/{number}")).nonce(nonce).wire())
            .collect();
        let mut burst: Vec<_> = wires.iter().map(|wire| packet(wire)).collect();
        let refused = bed::name(&format!("/n/{refused}"));
        let mut names = HashedNames::new();
        let links = &mut ends[me.idx()];
        receiver.take(&mut burst, &mut names, links, |it| it.name() != refused.view());
        links.flush();
        let hashes_of = |name: NameView<'_>| {
            let mut hashes = NameHashes::new();
            let span = hashes.push_name(&key, name);
            hashes.slice(span).to_vec()
        };
        let mut homes = vec![Vec::new(); N_WORKERS];
        prop_assert_eq!(names.len(), burst.len());
        for (idx, packet) in burst.iter().enumerate() {
            prop_assert_eq!(names.get(idx), hashes_of(packet.name()));
            let RxKind::Interest(interest) = packet.packet else {
                panic!("all are Interests");
            };
            homes[me.idx()].push(interest.wire().to_vec());
        }
        for worker in (0..N_WORKERS).filter(|&it| it != me.idx()) {
            while let Some(batch) = ends[worker].receive(me) {
                for parcel in batch.iter() {
                    let packet = parcel.packet().expect("it was parsed");
                    prop_assert_eq!(parcel.hashes(), hashes_of(packet.name()));
                    homes[worker].push(parcel.wire().to_vec());
                }
            }
        }
        let mut dispatcher = dispatcher();
        let mut expected = vec![Vec::new(); N_WORKERS];
        for wire in &wires {
            let name = packet(wire).name();
            let home = dispatcher.home(name);
            if home != me || name != refused.view() {
                expected[home.idx()].push(wire.clone());
            }
        }
        prop_assert_eq!(homes, expected);
    }
}

#[test]
fn names_move_off_a_worker_that_has_too_much_to_do() {
    let mut bed = Bed::new(40);
    let work = |bed: &mut Bed, n_batches| {
        (0..N_WORKERS).for_each(|worker| bed.work(worker, n_batches).expect("in order"));
    };
    // One name has two packets in five; the rounds last as long as its worker has packets.
    let mut n_moved = 0;
    for round in 0..400_u64 {
        bed.receive((0..50).map(|i| {
            if i % 5 < 2 {
                0
            } else {
                1 + (round * 50 + i) % 40
            }
        }));
        n_moved += bed.tick();
        // A worker that has more than most falls behind.
        work(&mut bed, usize::from(round % 3 > 0));
    }
    assert!(n_moved > 0);
    let moved = bed.scheduler.laps().counters().n_migrations;
    assert!(moved > 0 && moved < 40, "{moved}");
    work(&mut bed, usize::MAX);
    assert!(
        bed.receiver.counters().n_held > 0,
        "packets wait for a name to move"
    );
}

#[test]
fn what_has_waited_for_a_name_to_move_finds_no_more_room_than_what_comes() {
    const MAX_QUEUE_PKTS: u32 = 10;
    let mut laps = Laps::new(&LapsConfig::new(2)).expect("two workers");
    let mut publisher = Publisher::new(laps.homes());
    let hash_key = HashKey::from_u64s(1, 2);
    let mut dispatcher = Dispatcher::new(DispatchBy::Name, hash_key, publisher.reader());
    let name = bed::name("/n/0");
    let mut hashes = tachonym_packet::NameHashes::new();
    let span = hashes.push_name(&HashKey::from_u64s(1, 2), name.view());
    let key = DispatchBy::Name.key(name.view(), hashes.slice(span));
    let was = dispatcher.home(name.view());
    let config = ReceiverConfig {
        max_queue_pkts: MAX_QUEUE_PKTS,
        ..ReceiverConfig::default()
    };
    let (mut receiver, _view) = Receiver::new(None, 2, dispatcher, config);
    let mut ends = Links::mesh(3, LinkConfig::default());
    let mut links = ends.pop().expect("that of the receiver");
    let wire = interest("/n/0").wire();
    let begin = |receiver: &mut Receiver, links: &mut Links| {
        receiver.begin(links, 0, |_| panic!("this thread has no worker"));
    };
    // One is under way when the name moves; the others wait for it.
    take(&mut receiver, &mut links, &[&wire]);
    links.flush();
    let other = WorkerId(1 - was.0);
    let pinned = laps.pin(ServiceId(0), key, other);
    pinned.expect("room for one name");
    publisher.publish(laps.homes());
    begin(&mut receiver, &mut links);
    let n_held = 3 * MAX_QUEUE_PKTS;
    for _ in 0..n_held {
        take(&mut receiver, &mut links, &[&wire]);
    }
    assert_eq!(receiver.counters().n_held, u64::from(n_held));
    let batch = ends[was.idx()].receive(WorkerId(2)).expect("the first one");
    ends[was.idx()].give_back(WorkerId(2), batch);
    begin(&mut receiver, &mut links);
    assert!(receiver.is_calm());
    let counters = receiver.counters();
    assert_eq!(links.n_under_way(other), u64::from(MAX_QUEUE_PKTS));
    assert_eq!(
        counters.n_queue_full,
        u64::from(n_held) - u64::from(MAX_QUEUE_PKTS)
    );
    assert_eq!(counters.n_crossed, 1 + u64::from(MAX_QUEUE_PKTS));
}
