//! Packets of a name leave in the order in which they came, whatever moves meanwhile.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;
use tachonym_dispatch::{
    DetectorConfig, Homes, Key, Laps, LapsConfig, MapKind, Offer, Order, OrderConfig, ServiceId,
    ServiceLoad, WorkerId,
};

const N_WORKERS: usize = 6;
const N_THREADS: usize = 2;
const ONE: ServiceId = ServiceId(0);
const KINDS: [MapKind; 2] = [MapKind::Linear, MapKind::Buckets { n_buckets_log2: 5 }];

/// A packet: of whom, and which of its thread's and name's it is.
type Numbered = (ServiceId, Key, u64);

/// A receiving thread with its queues.
struct Thread {
    homes: Homes,
    order: Order<Numbered>,
    queues: Vec<VecDeque<Numbered>>,
    queued: Vec<u64>,
    done: Vec<u64>,
    n_came: HashMap<(ServiceId, Key), u64>,
    last_left: HashMap<(ServiceId, Key), u64>,
    n_offered: u64,
    n_left: u64,
    n_no_room: u64,
}

impl Thread {
    fn new(homes: &Homes, bounds: OrderConfig) -> Self {
        Self {
            homes: homes.clone(),
            order: Order::new(bounds, N_WORKERS, homes.version()),
            queues: vec![VecDeque::new(); N_WORKERS],
            queued: vec![0; N_WORKERS],
            done: vec![0; N_WORKERS],
            n_came: HashMap::new(),
            last_left: HashMap::new(),
            n_offered: 0,
            n_left: 0,
            n_no_room: 0,
        }
    }

    fn push(&mut self, worker: WorkerId, packet: Numbered) {
        self.queues[worker.idx()].push_back(packet);
        self.queued[worker.idx()] += 1;
    }

    fn handle_packet(&mut self, service: ServiceId, key: Key) {
        let nth = self.n_came.entry((service, key)).or_default();
        *nth += 1;
        self.n_offered += 1;
        let packet = (service, key, *nth);
        match self
            .order
            .offer(&self.homes, (service, key), &self.done, packet)
        {
            Offer::Go(packet) => self.push(self.homes.home(service, key), packet),
            Offer::Held => {}
            Offer::NoRoom(dropped) => {
                assert_eq!(dropped, packet);
                self.n_no_room += 1;
            }
        }
    }

    /// Packets that are neither in a queue, nor done, nor handed back.
    fn n_held(&self) -> u64 {
        let n_queued: usize = self.queues.iter().map(VecDeque::len).sum();
        self.n_offered - self.n_no_room - self.n_left - n_queued as u64
    }

    fn refresh(&mut self, homes: &Homes) {
        self.homes = homes.clone();
        self.order.adopt(homes.version(), &self.queued);
    }

    fn release(&mut self) {
        let mut released = Vec::new();
        (self.order).release(&self.homes, &self.done, |worker, service, key, packet| {
            assert_eq!((service, key), (packet.0, packet.1));
            released.push((worker, packet));
        });
        for (worker, packet) in released {
            self.push(worker, packet);
        }
    }

    fn work(&mut self, worker: usize, n: usize) {
        for _ in 0..n {
            let Some((service, key, nth)) = self.queues[worker].pop_front() else {
                return;
            };
            self.done[worker] += 1;
            self.n_left += 1;
            let last = self.last_left.insert((service, key), nth).unwrap_or(0);
            assert!(last < nth, "{key:?}: {nth} after {last}");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Packets {
        thread: usize,
        service: u8,
        keys: Vec<u64>,
    },
    Decide {
        service: u8,
        key: u64,
        lens: [u32; N_WORKERS],
    },
    Interval([u64; 2]),
    Add(u16, u8),
    Remove(u16),
    Pin(u8, u64, u16),
    Unpin(u8, u64),
    Refresh(usize),
    Work {
        thread: usize,
        worker: usize,
        n: usize,
    },
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = prop::collection::vec(0_u64..40, 1..12);
    let lens = prop::array::uniform6(0_u32..12);
    prop_oneof![
        8 => (0..N_THREADS, 0_u8..2, keys)
            .prop_map(|(thread, service, keys)| Step::Packets { thread, service, keys }),
        6 => (0_u8..2, 0_u64..40, lens)
            .prop_map(|(service, key, lens)| Step::Decide { service, key, lens }),
        1 => prop::array::uniform2(0_u64..9_000).prop_map(Step::Interval),
        1 => (0_u16..6, 0_u8..2).prop_map(|(worker, service)| Step::Add(worker, service)),
        1 => (0_u16..6).prop_map(Step::Remove),
        1 => (0_u8..2, 0_u64..40, 0_u16..6).prop_map(|(s, key, w)| Step::Pin(s, key, w)),
        1 => (0_u8..2, 0_u64..40).prop_map(|(s, key)| Step::Unpin(s, key)),
        4 => (0..N_THREADS).prop_map(Step::Refresh),
        8 => (0..N_THREADS, 0..N_WORKERS, 1_usize..12)
            .prop_map(|(thread, worker, n)| Step::Work { thread, worker, n }),
        1 => Just(Step::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packets_of_a_name_leave_in_order_and_none_is_lost(
        map in prop_oneof![Just(KINDS[0]), Just(KINDS[1])],
        n_changes in 1_usize..5,
        n_packets in prop_oneof![Just(0_usize), Just(6), Just(10_000)],
        n_of_lane in prop_oneof![Just(2_usize), Just(10_000)],
        steps in prop::collection::vec(step(), 0..200),
    ) {
        // A table that fills up, so that names must give way.
        let config = LapsConfig {
            map,
            n_migrations: 8,
            worker_rates_pps: vec![1e6; 2],
            high_threshold: 8,
            ..LapsConfig::new(5)
        };
        let mut laps = Laps::new(&config).unwrap();
        let bounds = OrderConfig { n_changes, n_packets, n_of_lane };
        let mut threads = [0; N_THREADS].map(|_| Thread::new(laps.homes(), bounds));
        let mut now_ns = 0;
        for step in steps {
            match step {
                Step::Packets { thread, service, keys } => {
                    for key in keys {
                        threads[thread].handle_packet(ServiceId(service), Key(key));
                    }
                }
                Step::Decide { service, key, lens } => {
                    laps.dispatch(ServiceId(service), Key(key), &lens);
                }
                Step::Interval(arrived) => {
                    now_ns += 1_000_000;
                    let loads = arrived.map(|n_arrived| ServiceLoad { n_arrived, ..ServiceLoad::default() });
                    laps.handle_interval(now_ns, 1_000_000, &loads);
                }
                Step::Add(worker, service) => {
                    let _ = laps.add_worker(WorkerId(worker), ServiceId(service));
                }
                Step::Remove(worker) => { let _ = laps.remove_worker(WorkerId(worker)); }
                Step::Pin(service, key, worker) => {
                    let _ = laps.pin(ServiceId(service), Key(key), WorkerId(worker));
                }
                Step::Unpin(service, key) => { laps.unpin(ServiceId(service), Key(key)); }
                Step::Refresh(thread) => threads[thread].refresh(laps.homes()),
                Step::Work { thread, worker, n } => {
                    threads[thread].work(worker, n);
                    threads[thread].release();
                }
                Step::Settle => {
                    let versions = threads.iter().map(|it| it.order.in_effect());
                    laps.settle(versions.min().unwrap());
                }
            }
            let versions = threads.iter().map(|it| it.order.in_effect());
            laps.handle_in_effect(versions.min().unwrap());
            for thread in &threads {
                prop_assert!(thread.n_held() <= n_packets as u64);
            }
        }
        for thread in &mut threads {
            while !thread.order.is_calm() || thread.queues.iter().any(|it| !it.is_empty()) {
                (0..N_WORKERS).for_each(|worker| thread.work(worker, 1));
                thread.release();
            }
            prop_assert_eq!(thread.order.in_effect(), thread.homes.version());
            prop_assert_eq!(thread.n_left + thread.n_no_room, thread.n_offered);
            if n_packets == 10_000 && n_of_lane == 10_000 {
                prop_assert_eq!(thread.n_no_room, 0);
            }
        }
    }
}

/// One service on two workers with a name that is aggressive, and its home.
fn with_giant() -> (Laps, Key, WorkerId) {
    let mut laps = Laps::new(&LapsConfig {
        high_threshold: 8,
        detector: DetectorConfig::default(),
        ..LapsConfig::new(2)
    })
    .unwrap();
    let giant = Key(1);
    let home = laps.homes().home(ONE, giant);
    let beside = (2..)
        .map(Key)
        .find(|&key| laps.homes().home(ONE, key) == home);
    for _ in 0..100 {
        laps.handle_sample(ONE, giant);
        laps.handle_sample(ONE, beside.expect("every worker has names"));
    }
    (laps, giant, home)
}

#[test]
fn a_name_that_never_pauses_moves_once_its_old_worker_is_done() {
    let (mut laps, _, home) = with_giant();
    let mut order = Order::new(OrderConfig::default(), 2, laps.homes().version());
    let mut lens = [0; 2];
    lens[home.idx()] = 8;
    assert_eq!(laps.handle_queue_lengths(&lens), 1);
    let moved = laps.homes().migrations().iter().next().expect("a name").key;
    let mut queued = [0; 2];
    queued[home.idx()] = 8;
    order.adopt(laps.homes().version(), &queued);
    let mut done = [0; 2];
    for nth in 0..8 {
        assert_eq!(
            order.offer(laps.homes(), (ONE, moved), &done, nth),
            Offer::Held
        );
        // Its old worker goes on with what it had before, and with what other names bring.
        done[home.idx()] += 1;
        if done[home.idx()] < 8 {
            order.release(laps.homes(), &done, |_, _, _, nth| panic!("{nth} too soon"));
            assert!(order.in_effect() < laps.homes().version());
        }
    }
    let mut released = Vec::new();
    order.release(laps.homes(), &done, |worker, _, key, nth| {
        assert!(worker != home && key == moved);
        released.push(nth);
    });
    assert_eq!(released, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(order.in_effect(), laps.homes().version());
    assert!(order.is_calm());
    assert_eq!(
        order.offer(laps.homes(), (ONE, moved), &done, 8),
        Offer::Go(8)
    );
}

#[test]
fn what_is_held_is_bounded_and_what_finds_no_room_is_handed_back() {
    let (mut laps, _, home) = with_giant();
    let bounds = OrderConfig {
        n_changes: 1,
        n_packets: 3,
        n_of_lane: 2,
    };
    let mut order = Order::new(bounds, 2, laps.homes().version());
    let mut lens = [0; 2];
    lens[home.idx()] = 8;
    assert_eq!(laps.handle_queue_lengths(&lens), 1);
    let moved = laps.homes().migrations().iter().next().expect("a name").key;
    order.adopt(laps.homes().version(), &[8, 8]);
    let offers: Vec<_> = (0..3)
        .map(|nth| order.offer(laps.homes(), (ONE, moved), &[0, 0], nth))
        .collect();
    assert_eq!(offers, [Offer::Held, Offer::Held, Offer::NoRoom(2)]);
    // Other names go on.
    let other = (2..)
        .map(Key)
        .find(|&key| laps.homes().moved_since(ONE, key, 0).is_none());
    let other = other.expect("most names stay");
    assert_eq!(
        order.offer(laps.homes(), (ONE, other), &[0, 0], 9),
        Offer::Go(9)
    );
}

#[test]
fn changes_beyond_the_bound_share_marks() {
    let mut laps = Laps::new(&LapsConfig::new(2)).unwrap();
    let bounds = OrderConfig {
        n_changes: 1,
        ..OrderConfig::default()
    };
    let mut order = Order::new(bounds, 2, laps.homes().version());
    let key = Key(5);
    let home = laps.homes().home(ONE, key);
    let away = WorkerId(1 - home.0);
    laps.pin(ONE, key, away).unwrap();
    let first = laps.homes().version();
    order.adopt(first, &[4, 4]);
    assert_eq!(
        order.offer(laps.homes(), (ONE, key), &[0, 0], 0),
        Offer::Held
    );
    laps.pin(ONE, Key(6), WorkerId(0)).unwrap();
    order.adopt(laps.homes().version(), &[7, 7]);
    // The first change's marks have moved on: later than need be, and never too soon.
    let mut out = Vec::new();
    order.release(laps.homes(), &[6, 6], |_, _, _, nth| out.push(nth));
    assert_eq!(out, []);
    order.release(laps.homes(), &[7, 7], |_, _, _, nth| out.push(nth));
    assert_eq!(out, [0]);
    assert_eq!(order.in_effect(), laps.homes().version());
}

#[test]
fn nobody_waits_for_a_worker_that_died() {
    let mut laps = Laps::new(&LapsConfig::new(3)).unwrap();
    let mut order = Order::new(OrderConfig::default(), 3, laps.homes().version());
    let dead = WorkerId(1);
    let here = (0..)
        .map(Key)
        .find(|&key| laps.homes().home(ONE, key) == dead);
    let key = here.expect("every worker has names");
    laps.remove_worker(dead).unwrap();
    order.adopt(laps.homes().version(), &[3, 3, 3]);
    let first = order.offer(laps.homes(), (ONE, key), &[3, 1, 3], 0);
    assert_eq!(first, Offer::Held);
    order.release(laps.homes(), &[3, 1, 3], |_, _, _, _| {
        panic!("it has not been told")
    });
    order.forget(dead);
    let mut out = Vec::new();
    order.release(laps.homes(), &[3, 1, 3], |worker, _, _, nth| {
        assert_ne!(worker, dead);
        out.push(nth);
    });
    assert_eq!(out, [0]);
    assert!(order.is_calm());
    assert_eq!(order.in_effect(), laps.homes().version());
}
