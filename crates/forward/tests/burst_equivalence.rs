//! A burst answers as its packets would one by one, and no packet, in any
//! order, brings an engine out of its limits.

mod bed;

use bed::*;
use proptest::prelude::*;
use tachonym_forward::{
    BURST_DISTANCE, Engine, EngineConfig, RxPacket, Schedule, UnsolicitedDataPolicy,
};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashedNames, MonoNs, NackReason, PacketView, PitToken, tlv, types,
};
use tachonym_tables::{NextHop, PitCsLayout};

/// The last one has no route at first.
const PREFIXES: [&str; 7] = [
    "/a",
    "/a/b",
    "/a/b/c",
    "/localhost/x",
    "/localhop/y",
    "/z",
    "/new",
];
const STRATEGIES: [&str; 6] = [
    "best-route",
    "multicast",
    "random",
    "asf",
    "access",
    "self-learning",
];

/// A packet with the face it comes from.
#[derive(Clone, Debug)]
struct Event {
    face: FaceId,
    wire: Vec<u8>,
    headers: Headers,
    announcement: Option<&'static [u8]>,
}

#[derive(Clone, Debug)]
enum Step {
    Burst(Vec<Event>),
    Wait {
        ms: u64,
    },
    RemoveFace(FaceId),
    AddFace(FaceId),
    Route {
        prefix: &'static str,
        face: FaceId,
        cost: u64,
    },
    Strategy {
        prefix: &'static str,
        kind: &'static str,
    },
}

fn any_face() -> impl Strategy<Value = FaceId> {
    (256_u64..262).prop_map(FaceId)
}

fn any_prefix() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&PREFIXES[..])
}

fn any_interest() -> impl Strategy<Value = Interest> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let nonce = prop::option::weighted(0.9, 0_u32..6);
    let rest = (prop::option::of(0_u64..300), prop::option::of(0_u8..4));
    (any_prefix(), flags, nonce, rest).prop_map(|(uri, (prefix, fresh, hint), nonce, rest)| {
        let (lifetime_ms, hop_limit) = rest;
        Interest {
            can_be_prefix: prefix,
            must_be_fresh: fresh,
            hint: if hint {
                vec![name("/z"), name("/a")]
            } else {
                Vec::new()
            },
            nonce,
            lifetime_ms,
            hop_limit,
            ..interest(uri)
        }
    })
}

fn any_headers() -> impl Strategy<Value = Headers> {
    let token = prop::option::of(0_u8..3);
    (
        token,
        prop::option::weighted(0.05, any_face()),
        0_u64..2,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(token, next_hop_face_id, congestion_mark, no_cache, non_discovery)| Headers {
                pit_token: token.and_then(|token| PitToken::new(&[token; 4])),
                next_hop_face_id,
                congestion_mark,
                no_cache,
                non_discovery,
                ..Headers::default()
            },
        )
}

fn any_event() -> impl Strategy<Value = Event> {
    let nack = prop::sample::select(&[NackReason::Congestion, NackReason::NoRoute][..]);
    let interest = || any_interest().prop_map(|interest| (interest.wire(), None));
    let data = (any_prefix(), 0_u64..2)
        .prop_map(|(uri, fresh)| (data(uri).fresh_ms(fresh * 100).wire(), None));
    let nack = (any_interest(), nack).prop_map(|(interest, nack)| (interest.wire(), Some(nack)));
    let packet = prop_oneof![5 => interest(), 3 => data, 2 => nack];
    let announcement = prop::option::of(Just(&b"announcement"[..]));
    (any_face(), packet, any_headers(), announcement).prop_map(
        |(face, (wire, nack), headers, announcement)| Event {
            face,
            wire,
            headers: Headers { nack, ..headers },
            announcement,
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop::collection::vec(any_event(), 0..12).prop_map(Step::Burst),
        4 => (0_u64..200).prop_map(|ms| Step::Wait { ms }),
        1 => any_face().prop_map(Step::RemoveFace),
        1 => any_face().prop_map(Step::AddFace),
        2 => (any_prefix(), any_face(), 0_u64..3)
            .prop_map(|(prefix, face, cost)| Step::Route { prefix, face, cost }),
        1 => (any_prefix(), prop::sample::select(&STRATEGIES[..]))
            .prop_map(|(prefix, kind)| Step::Strategy { prefix, kind }),
    ]
}

const TRAITS: [tachonym_forward::FaceTraits; 6] =
    [LOCAL, LOCAL, REMOTE, REMOTE, MULTI_ACCESS, AD_HOC];

fn add_face(engine: &mut Engine, face: FaceId) {
    engine.add_face(face, TRAITS[usize::try_from(face.0 - 256).unwrap()]);
}

const MAX_PIT_ENTRIES: usize = 12;
const MAX_CS_PKTS: usize = 3;

fn key() -> HashKey {
    HashKey::from_u64s(1, 2)
}

fn small_engine(schedule: Schedule, pit_cs: PitCsLayout) -> Engine {
    let mut config = EngineConfig {
        schedule,
        pit_cs,
        unsolicited_data: UnsolicitedDataPolicy::AdmitLocal,
        producer_regions: vec![name("/a/b")],
        ..EngineConfig::default()
    };
    config.pit.max_entries = MAX_PIT_ENTRIES;
    config.pit.max_records_per_entry = 3;
    config.cs.max_pkts = MAX_CS_PKTS;
    let mut engine = Engine::new(config, key(), 3).expect("memory for small tables");
    for face in 256..262 {
        add_face(&mut engine, FaceId(face));
    }
    let (_, routed) = PREFIXES.split_last().expect("there are prefixes");
    for (n, prefix) in routed.iter().enumerate() {
        for face in [256, 258, 260 + n as u64 % 2] {
            let hop = NextHop::new(FaceId(face), n as u64);
            engine.add_next_hop(name(prefix).view(), hop).unwrap();
        }
    }
    for prefix in ["/a", "/new"] {
        let kept = engine
            .choices_mut()
            .keep_announcement(name(prefix).view(), 1, b"known");
        kept.unwrap();
    }
    engine
}

/// Pieces of this size are of a burst that is hashed as a whole before.
const HASHED_PIECE: usize = 3;

/// Hands a burst over in pieces of at most `n_at_once` packets.
fn handle(engine: &mut Engine, now: MonoNs, burst: &[Event], n_at_once: usize) -> Vec<Sent> {
    let mut outbox = Outbox::default();
    let rx: Vec<RxPacket<'_>> = burst
        .iter()
        .filter_map(|event| {
            PacketView::parse(&event.wire).expect("packets are well-formed");
            let packet = RxPacket::parse(event.face, &event.headers, &event.wire)?;
            Some(RxPacket {
                prefix_announcement: event.announcement,
                ..packet
            })
        })
        .collect();
    let mut names = HashedNames::new();
    names.push_burst(&key(), rx.iter().map(RxPacket::name));
    for (nth, part) in rx.chunks(n_at_once).enumerate() {
        match n_at_once {
            HASHED_PIECE => {
                let first = nth * HASHED_PIECE;
                engine.handle_hashed_burst(now, part, &mut names, first, &mut outbox);
            }
            _ => engine.handle_burst(now, part, &mut outbox),
        }
    }
    outbox.0
}

fn apply(engine: &mut Engine, step: &Step, now: &mut MonoNs, n_at_once: usize) -> Vec<Sent> {
    match step {
        Step::Burst(events) => return handle(engine, *now, events, n_at_once),
        Step::Wait { ms } => {
            *now = now.plus_ms(*ms);
            let mut outbox = Outbox::default();
            engine.handle_timeout(*now, &mut outbox);
            return outbox.0;
        }
        Step::RemoveFace(face) => {
            engine.remove_face(*face);
        }
        Step::AddFace(face) => add_face(engine, *face),
        Step::Route { prefix, face, cost } => {
            // Refused where the face has gone.
            let hop = NextHop::new(*face, *cost);
            let _ = engine.add_next_hop(name(prefix).view(), hop);
        }
        Step::Strategy { prefix, kind } => {
            let strategy = name(&format!("/localhost/nfd/strategy/{kind}"));
            engine
                .choices_mut()
                .set_strategy(name(prefix).view(), strategy.view())
                .unwrap();
        }
    }
    Vec::new()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn burst_answers_as_its_packets_one_by_one(steps in prop::collection::vec(any_step(), 1..40)) {
        let [separate, composite] = PitCsLayout::ALL;
        let mut by_burst = small_engine(Schedule::Burst, separate);
        // The first two get packets one by one, the last one hashed pieces of bursts, the others
        // whole bursts.
        let mut others = [
            (Schedule::Naive, separate),
            (Schedule::Naive, composite),
            (Schedule::Naive, separate),
            (Schedule::BucketPrefetch, composite),
            (Schedule::PreHash, separate),
            (Schedule::Shtl, composite),
            (Schedule::Burst, composite),
            (Schedule::Burst, separate),
        ]
        .map(|(schedule, pit_cs)| (small_engine(schedule, pit_cs), MonoNs(7)));
        let mut now = MonoNs(7);
        let mut n_in = 0;
        for step in &steps {
            let sent = apply(&mut by_burst, step, &mut now, usize::MAX);
            for (idx, (other, other_now)) in others.iter_mut().enumerate() {
                let n_at_once = match idx {
                    0 | 1 => 1,
                    7 => HASHED_PIECE,
                    _ => usize::MAX,
                };
                let same = apply(other, step, other_now, n_at_once);
                prop_assert_eq!(&sent, &same);
                prop_assert_eq!(by_burst.counters(), other.counters());
                prop_assert_eq!(by_burst.sizes(), other.sizes());
            }
            if let Step::Burst(events) = step {
                n_in += events.iter().filter(|e| e.wire[0] == 5 || e.headers.nack.is_none()).count();
            }
            prop_assert!(by_burst.sizes().n_pit_entries <= MAX_PIT_ENTRIES);
            prop_assert!(by_burst.sizes().n_cs_entries <= MAX_CS_PKTS);
            for sent in &sent {
                check_rules(&by_burst, sent)?;
            }
        }
        let counters = by_burst.counters();
        let counted = counters.n_in_interests + counters.n_in_data + counters.n_in_nacks;
        prop_assert_eq!(counted, n_in as u64);
        // Nothing stays pending for ever.
        now = now.plus_ms(10_000);
        by_burst.handle_timeout(now, &mut Outbox::default());
        prop_assert_eq!(by_burst.sizes().n_pit_entries, 0);
    }
}

/// The Interest for a name of `n_components` of `component_bytes` each, and its Data.
fn packets_named(n_components: usize, component_bytes: usize) -> [Vec<u8>; 2] {
    let write_name = |out: &mut Vec<u8>| {
        tlv::write_nested(out, types::NAME, |out| {
            for _ in 0..n_components {
                tlv::write_tlv(
                    out,
                    types::component::GENERIC.into(),
                    &vec![b'x'; component_bytes],
                );
            }
        });
    };
    let (mut interest, mut data) = (Vec::new(), Vec::new());
    tlv::write_nested(&mut interest, types::INTEREST, |out| {
        write_name(out);
        tlv::write_tlv(out, types::NONCE, &[1, 2, 3, 4]);
    });
    tlv::write_nested(&mut data, types::DATA, |out| {
        write_name(out);
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
    });
    [interest, data]
}

#[test]
fn names_of_any_size_are_carried_by_every_schedule() {
    // No component; as many and as long ones as a packet holds; and some about the limits
    // of tables.
    let shapes = [
        (0, 0),
        (1, 8_700),
        (4_300, 0),
        (2_000, 2),
        (63, 100),
        (64, 1),
        (65, 1),
    ];
    let wires = shapes.map(|(n, bytes)| packets_named(n, bytes));
    let parsed = |wires: &[Vec<u8>]| -> Vec<bool> {
        wires
            .iter()
            .map(|wire| PacketView::parse(wire).is_ok())
            .collect()
    };
    assert_eq!(
        parsed(&wires[0]),
        [false, true],
        "an Interest asks for something"
    );
    assert!(wires[1..].iter().all(|wires| parsed(wires) == [true, true]));
    let events = |from: FaceId, idx: usize| -> Vec<Event> {
        let wires = wires.iter().map(|wires| wires[idx].clone());
        let event = |wire| Event {
            face: from,
            wire,
            headers: Headers::default(),
            announcement: None,
        };
        let good = wires.filter(|wire| PacketView::parse(wire).is_ok());
        good.map(event).collect()
    };
    let mut outcomes = Vec::new();
    let ways = PitCsLayout::ALL.map(|pit_cs| Schedule::ALL.map(|schedule| (schedule, pit_cs)));
    for (schedule, pit_cs) in ways.into_iter().flatten() {
        let mut engine = small_engine(schedule, pit_cs);
        engine.set_schedule(schedule, BURST_DISTANCE);
        let hop = NextHop::new(FaceId(257), 0);
        engine
            .add_next_hop(name("/").view(), hop)
            .expect("there is room");
        let now = MonoNs(7);
        let asked = handle(&mut engine, now, &events(FaceId(259), 0), usize::MAX);
        assert_eq!(asked.len(), shapes.len() - 1);
        let answered = handle(&mut engine, now, &events(FaceId(257), 1), usize::MAX);
        // The Data without a name is unsolicited.
        assert_eq!(answered.len(), shapes.len() - 1);
        assert_eq!(engine.sizes().n_pit_entries, 0);
        outcomes.push((asked, answered));
    }
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
}

/// What holds for every packet that leaves.
fn check_rules(engine: &Engine, sent: &Sent) -> Result<(), TestCaseError> {
    let traits = engine.face(sent.face);
    prop_assert!(traits.is_some(), "sent to a face that has gone");
    let is_local = traits == Some(LOCAL);
    if matches!(sent.kind, Kind::LearnRoute | Kind::ForgetRoute) {
        prop_assert!(!is_local, "routes are learnt from other hosts");
        return Ok(());
    }
    prop_assert!(!is_local || sent.announcement.is_none());
    let packet = PacketView::parse(&sent.wire);
    prop_assert!(packet.is_ok());
    let name = match packet.unwrap() {
        PacketView::Interest(interest) => interest.name().to_name(),
        PacketView::Data(data) => data.name().to_name(),
    };
    prop_assert!(is_local || !name.starts_with(&bed::name("/localhost")));
    match sent.kind {
        Kind::Interest => {
            prop_assert_eq!(sent.headers.pit_token, None);
            prop_assert!(is_local || sent.interest().hop_limit() != Some(0));
            prop_assert!(sent.interest().nonce().is_some());
            let from = sent.headers.incoming_face_id;
            prop_assert!(from != Some(sent.face) || traits == Some(AD_HOC));
        }
        Kind::Data => {
            let from = sent.headers.incoming_face_id;
            prop_assert!(from != Some(sent.face) || traits == Some(AD_HOC));
        }
        Kind::Nack(_) => prop_assert!(traits == Some(LOCAL) || traits == Some(REMOTE)),
        Kind::LearnRoute | Kind::ForgetRoute => unreachable!("checked above"),
    }
    Ok(())
}
