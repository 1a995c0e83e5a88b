//! No packet allocates in steady state, and millions of distinct names leave
//! memory where the limits put it.

#[path = "../../memory/tests/support/allocations.rs"]
mod allocations;
mod bed;

use allocations::n_allocations;
use bed::*;
use tachonym_forward::{Engine, EngineConfig, Output, RxKind, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    DataView, FaceId, HashKey, InterestRewrite, InterestView, MonoNs, NackReason,
};
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};
use tachonym_tables::{CsCapacity, FibEngine, IndexKind, NextHop, PitCsLayout};

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

const BURST: u32 = 32;

/// Packets of one round, written once; round and index take the place of two
/// fixed-width components, so that every round has names of its own.
struct Round {
    interests: Vec<Vec<u8>>,
    data: Vec<Vec<u8>>,
}

impl Round {
    fn new() -> Self {
        let uri = |n: u32| format!("/bench/AAAA/{n:04}");
        let nack = |n: u32| format!("/none/AAAA/{n:04}");
        Self {
            interests: (0..BURST)
                .flat_map(|n| {
                    [
                        interest(&uri(n)).nonce(n + 1),
                        interest(&uri(n)).nonce(n + 1000),
                        interest(&nack(n)).nonce(n + 1),
                        interest(&uri(n)).prefix().fresh().without_nonce(),
                    ]
                })
                .map(|interest| interest.lifetime_ms(30).wire())
                .collect(),
            data: (0..BURST)
                .map(|n| data(&uri(n)).content(&[7; 1000]).wire())
                .collect(),
        }
    }

    /// Names of the `round`-th round.
    fn rename(&mut self, round: u32) {
        let digits = [24, 16, 8, 0].map(|shift| (round >> shift) as u8);
        for wire in self.interests.iter_mut().chain(&mut self.data) {
            let at = wire
                .windows(6)
                .position(|w| w[..2] == [8, 4])
                .expect("a component of four");
            wire[at + 2..at + 6].copy_from_slice(&digits);
        }
    }
}

fn engine(config: EngineConfig) -> Engine {
    let mut engine =
        Engine::new(config, HashKey::from_u64s(1, 2), 3).expect("memory for small tables");
    for face in [A, B, C, D] {
        engine.add_face(face, REMOTE);
    }
    for (face, cost) in [(B, 0), (D, 1)] {
        engine
            .add_next_hop(name("/bench").view(), NextHop::new(face, cost))
            .unwrap();
    }
    engine
}

fn run_round(engine: &mut Engine, round: &mut Round, n: u32, sink: &mut Sink) {
    round.rename(n);
    let mut now = MonoNs(u64::from(n) * 3_000_000);
    let tokens = [0, 1, 2, 3].map(|i| token(&[i; 8]));
    for wires in round.interests.as_chunks::<{ BURST as usize }>().0 {
        let rx: [RxPacket<'_>; BURST as usize] = std::array::from_fn(|i| RxPacket {
            face: if i % 4 == 1 { C } else { A },
            packet: RxKind::Interest(InterestView::parse(&wires[i]).unwrap()),
            headers: &tokens[i % 4],
            prefix_announcement: None,
        });
        engine.handle_burst(now, &rx, sink);
    }
    for (i, wire) in round.data.iter().enumerate() {
        // Every eighth Interest stays unanswered.
        if i % 8 != 7 {
            now.0 += 1_000;
            let rx = [RxPacket {
                face: B,
                packet: RxKind::Data(DataView::parse(wire).unwrap()),
                headers: &Headers::EMPTY,
                prefix_announcement: None,
            }];
            engine.handle_burst(now, &rx, sink);
        }
    }
    // Once more: from the store.
    for wires in round.interests.chunks(4) {
        let rx = [RxPacket {
            face: C,
            packet: RxKind::Interest(InterestView::parse(&wires[0]).unwrap()),
            headers: &Headers::EMPTY,
            prefix_announcement: None,
        }];
        engine.handle_burst(now, &rx, sink);
    }
    engine.handle_timeout(now, sink);
}

#[test]
fn no_packet_allocates_in_steady_state() {
    let usual = EngineConfig {
        cs: CsCapacity {
            max_pkts: 512,
            max_bytes: 8 << 20,
        },
        dead_nonces_max: 4096,
        ..EngineConfig::default()
    };
    let strategies = ["best-route", "multicast", "random", "asf", "access"];
    let mut cases: Vec<_> = strategies.map(|name| (name, usual.clone())).into();
    let mut composite = usual.clone();
    composite.pit_cs = PitCsLayout::Composite;
    cases.extend(["best-route", "asf"].map(|name| (name, composite.clone())));
    let mut other = usual;
    other.cs_policy = PolicyConfig::new(AdmissionKind::Filter, EvictionKind::LfuLocal, 0);
    other.pit.index = IndexKind::DLeft;
    other.fib.engine = FibEngine::BinarySearch;
    cases.push(("best-route", other.clone()));
    other.pit_cs = PitCsLayout::Composite;
    other.cs_policy = PolicyConfig::new(AdmissionKind::None, EvictionKind::Arc, 0);
    cases.push(("best-route", other));
    for (strategy, config) in cases {
        let mut engine = engine(config);
        let strategy_name = name(&format!("/localhost/nfd/strategy/{strategy}"));
        engine
            .choices_mut()
            .set_strategy(name("/").view(), strategy_name.view())
            .unwrap();
        let mut round = Round::new();
        let mut sink = Sink::default();
        // Long enough for the dead nonces to come round, and for each place of
        // the tables to have held entries with several records.
        let n_warm_up = 4_000;
        for n in 0..n_warm_up {
            run_round(&mut engine, &mut round, n, &mut sink);
        }
        let before = (n_allocations(), sink.n_sent);
        for n in n_warm_up..n_warm_up + 1_000 {
            run_round(&mut engine, &mut round, n, &mut sink);
        }
        assert!(
            sink.n_sent > before.1 + 100_000,
            "{strategy}: {}",
            sink.n_sent
        );
        assert_eq!(n_allocations() - before.0, 0, "{strategy}");
        let counters = engine.counters();
        assert!(counters.n_cs_hits > 0);
        assert_eq!(counters.n_out_nacks > 0, strategy != "multicast");
        assert!(counters.n_unsatisfied_interests > 0);
        // `random` sends every Interest upstream.
        assert_eq!(counters.n_aggregated_interests > 0, strategy != "random");
    }
}

#[test]
fn distinct_names_by_the_million_leave_memory_at_the_limits() {
    for pit_cs in PitCsLayout::ALL {
        leave_memory_at_the_limits(pit_cs);
    }
}

fn leave_memory_at_the_limits(pit_cs: PitCsLayout) {
    let mut config = EngineConfig {
        pit_cs,
        cs: CsCapacity {
            max_pkts: 1_000,
            max_bytes: 2 << 20,
        },
        dead_nonces_max: 10_000,
        ..EngineConfig::default()
    };
    config.pit.max_entries = 5_000;
    config.pit.max_bytes = 4 << 20;
    let mut engine =
        Engine::new(config, HashKey::from_u64s(1, 2), 3).expect("memory for small tables");
    for face in [A, B] {
        engine.add_face(face, REMOTE);
    }
    engine
        .add_next_hop(name("/").view(), NextHop::new(B, 0))
        .unwrap();
    let mut asked = interest("/flood/AAAA").lifetime_ms(1_000).wire();
    let mut answer = data("/flood/AAAA").wire();
    let mut sink = Sink::default();
    let mut memory_bytes = Vec::new();
    for n in 0..3_000_000_u32 {
        for wire in [&mut asked, &mut answer] {
            let at = wire.windows(2).position(|w| w == [8, 4]).unwrap();
            wire[at + 2..at + 6].copy_from_slice(&n.to_be_bytes());
        }
        let now = MonoNs(u64::from(n) * 10_000);
        let rx = |face, wire| RxPacket::parse(face, &Headers::EMPTY, wire).unwrap();
        // Half of them are never answered.
        let burst = [rx(A, &asked), rx(B, &answer)];
        engine.handle_burst(now, &burst[..1 + (n % 2) as usize], &mut sink);
        if n % 500_000 == 499_999 {
            memory_bytes.push(engine.memory().n_bytes);
        }
    }
    assert!(engine.sizes().n_pit_entries <= 5_000);
    assert!(engine.sizes().n_cs_entries <= 1_000);
    assert!(engine.pit().refusals().n_source_share_used > 0);
    assert!(memory_bytes[5] < 8 << 20, "{memory_bytes:?}");
    // Hash tables more than half full double once, when removals have worn them.
    assert!(memory_bytes[5] <= memory_bytes[3], "{memory_bytes:?}");
}
