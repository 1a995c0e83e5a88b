//! Several workers answer as one engine does, however packets among them overtake each other.

#[path = "../../forward/tests/bed/mod.rs"]
mod bed;
mod support;

use std::collections::BTreeSet;

use bed::*;
use proptest::prelude::*;
use support::{Many, one, sorted};
use tachonym_dispatch::DispatchBy;
use tachonym_forward::{Engine, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{Component, FaceId, MonoNs, NackReason, Name, PacketView, PitToken};

#[derive(Clone, Debug)]
enum Step {
    Interest {
        face: FaceId,
        interest: Interest,
        headers: Headers,
    },
    Data {
        face: FaceId,
        name: Name,
        freshness_ms: u64,
        headers: Headers,
    },
    Nack {
        face: FaceId,
        interest: Interest,
    },
    /// An Interest for the full name of a Data that was sent before.
    Full {
        face: FaceId,
        which: prop::sample::Index,
        nonce: u32,
        can_be_prefix: bool,
    },
    Wait {
        ms: u64,
    },
    RemoveFace(FaceId),
}

fn any_face() -> impl Strategy<Value = FaceId> {
    (256_u64..261).prop_map(FaceId)
}

fn any_component() -> impl Strategy<Value = Component> {
    prop_oneof![
        6 => prop::sample::select(&["a", "b", "c"][..]).prop_map(Component::generic),
        1 => (0_u64..4).prop_map(Component::segment),
        1 => Just(Component::implicit_digest(&[7; 32])),
        1 => Just(Component::generic("localhost")),
    ]
}

fn any_name() -> impl Strategy<Value = Name> {
    prop::collection::vec(any_component(), 1..5).prop_map(|components| {
        let empty = Name::new();
        components
            .iter()
            .fold(empty, |name, component| name.with(component))
    })
}

fn any_interest() -> impl Strategy<Value = Interest> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    (any_name(), flags, 0_u32..5, prop::option::of(0_u64..400)).prop_map(
        |(name, (can_be_prefix, must_be_fresh, has_hint), nonce, lifetime_ms)| Interest {
            name,
            can_be_prefix,
            must_be_fresh,
            hint: if has_hint {
                vec![bed::name("/b"), bed::name("/a")]
            } else {
                Vec::new()
            },
            lifetime_ms,
            ..interest("/x").nonce(nonce)
        },
    )
}

fn any_headers() -> impl Strategy<Value = Headers> {
    (
        prop::option::of(0_u8..3),
        0_u64..2,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(token, congestion_mark, no_cache)| Headers {
            pit_token: token.and_then(|token| PitToken::new(&[token; 4])),
            congestion_mark,
            no_cache,
            ..Headers::default()
        })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any_face(), any_interest(), any_headers())
            .prop_map(|(face, interest, headers)| Step::Interest { face, interest, headers }),
        6 => (any_face(), any_name(), 0_u64..300, any_headers()).prop_map(
            |(face, name, freshness_ms, headers)| Step::Data { face, name, freshness_ms, headers }
        ),
        1 => (any_face(), any_interest()).prop_map(|(face, interest)| Step::Nack { face, interest }),
        2 => (any_face(), any::<prop::sample::Index>(), 0_u32..5, any::<bool>()).prop_map(
            |(face, which, nonce, can_be_prefix)| Step::Full { face, which, nonce, can_be_prefix }
        ),
        1 => (0_u64..200).prop_map(|ms| Step::Wait { ms }),
        // No route leads there: when routes of a face that has gone are forgotten is left open.
        1 => Just(Step::RemoveFace(FaceId(257))),
    ]
}

fn any_rule() -> impl Strategy<Value = DispatchBy> {
    let n = |n: u8| n.try_into().expect("not zero");
    prop_oneof![
        (1_u8..4).prop_map(move |k| DispatchBy::Prefix { n_components: n(k) }),
        Just(DispatchBy::Name),
        (1_u32..4).prop_map(|k| DispatchBy::Batch {
            n_segments: k.try_into().expect("not zero"),
        }),
    ]
}

/// A packet that comes.
struct Coming {
    face: FaceId,
    wire: Vec<u8>,
    headers: Headers,
}

impl Coming {
    fn packet(&self) -> Option<RxPacket<'_>> {
        PacketView::parse(&self.wire).expect("packets are well-formed");
        RxPacket::parse(self.face, &self.headers, &self.wire)
    }
}

/// Writes packets such that no two Data in a store are fresh equally long: of those, a store
/// may answer with either.
#[derive(Default)]
struct Writer {
    ends: BTreeSet<u64>,
    sent: Vec<Data>,
}

impl Writer {
    fn write(&mut self, step: &Step, now: MonoNs) -> Option<Coming> {
        match step {
            Step::Interest {
                face,
                interest,
                headers,
            } => Some(Coming {
                face: *face,
                wire: interest.wire(),
                headers: *headers,
            }),
            Step::Data {
                face,
                name,
                freshness_ms,
                headers,
            } => {
                let mut freshness_ms = 1 + freshness_ms;
                while !self.ends.insert(now.plus_ms(freshness_ms).0) {
                    freshness_ms += 1;
                }
                let data = Data {
                    name: name.clone(),
                    ..data("/x").fresh_ms(freshness_ms)
                };
                let wire = data.wire();
                self.sent.push(data);
                Some(Coming {
                    face: *face,
                    wire,
                    headers: *headers,
                })
            }
            Step::Nack { face, interest } => Some(Coming {
                face: *face,
                wire: interest.wire(),
                headers: Headers {
                    nack: Some(NackReason::Congestion),
                    ..Headers::default()
                },
            }),
            Step::Full {
                face,
                which,
                nonce,
                can_be_prefix,
            } if !self.sent.is_empty() => Some(Coming {
                face: *face,
                wire: Interest {
                    name: which.get(&self.sent).full_name(),
                    can_be_prefix: *can_be_prefix,
                    ..interest("/x").nonce(*nonce)
                }
                .wire(),
                headers: Headers::default(),
            }),
            _ => None,
        }
    }
}

fn step_of_one(
    engine: &mut Engine,
    step: &Step,
    coming: Option<&Coming>,
    now: MonoNs,
) -> Vec<Sent> {
    let mut out = Outbox::default();
    engine.handle_timeout(now, &mut out);
    if let Some(packet) = coming.and_then(Coming::packet) {
        engine.handle_burst(now, &[packet], &mut out);
    }
    if let Step::RemoveFace(face) = step {
        engine.remove_face(*face);
    }
    out.0
}

/// A thousand sequences, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(1000),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn several_workers_send_count_and_keep_what_one_does(
        steps in prop::collection::vec(any_step(), 1..60),
        by in any_rule(), n_workers in 1_usize..6, seed in any::<u64>(),
        services in prop::collection::vec(any_name(), 0..3),
    ) {
        let mut engine = one();
        let mut many = Many::serving(n_workers, by, seed, &services);
        let mut writer = Writer::default();
        let mut now = MonoNs(1_000_000);
        for (i, step) in steps.iter().enumerate() {
            now = MonoNs(now.0 + 1);
            if let Step::Wait { ms } = step {
                now = now.plus_ms(*ms);
            }
            let coming = writer.write(step, now);
            let by_one = sorted(step_of_one(&mut engine, step, coming.as_ref(), now));
            let packet = coming.as_ref().and_then(Coming::packet);
            let mut by_many = many.handle(now, packet.as_ref());
            if let Step::RemoveFace(face) = step {
                many.remove_face(*face);
            }
            by_many = sorted(by_many);
            prop_assert_eq!(&by_one, &by_many, "step {} of {:?}: {:?}", i, by, step);
            prop_assert_eq!(support::counted(&[&engine]), many.counted(), "step {} {:?}", i, step);
        }
        prop_assert_eq!(support::cached(&[&engine]), many.cached());
        prop_assert!(many.is_idle());
    }
}
