//! Whatever is under way among workers when more packets come, and wherever names move
//! meanwhile: everybody gets the Data that he asked for, or hears that there is none, and
//! nobody gets it for nothing.

#[path = "../../forward/tests/bed/mod.rs"]
mod bed;
mod support;

use std::collections::{BTreeMap, VecDeque};

use bed::*;
use proptest::prelude::*;
use support::Many;
use tachonym_dispatch::{DispatchBy, ServiceId, WorkerId};
use tachonym_forward::RxPacket;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestView, MonoNs, NackReason, Name, NameView, PacketView};

const PRODUCER: FaceId = FaceId(258);

#[derive(Clone, Debug)]
enum Step {
    /// Somebody asks for a name of these components.
    Ask {
        consumer: u64,
        components: Vec<u8>,
        can_be_prefix: bool,
    },
    /// The producer answers some of what has reached it.
    Answer {
        which: prop::sample::Index,
    },
    /// The producer refuses some of it.
    Refuse {
        which: prop::sample::Index,
    },
    /// Something moves among the workers.
    Deliver,
    /// A worker stops having names of its own, or has some again.
    Remove(u16),
    Add(u16),
    /// Changes become known.
    Publish,
}

fn any_step() -> impl Strategy<Value = Step> {
    let components = prop::collection::vec(0_u8..3, 1..4);
    prop_oneof![
        6 => (256_u64..258, components, prop::bool::weighted(0.3)).prop_map(
            |(consumer, components, can_be_prefix)| Step::Ask { consumer, components, can_be_prefix }
        ),
        5 => any::<prop::sample::Index>().prop_map(|which| Step::Answer { which }),
        2 => any::<prop::sample::Index>().prop_map(|which| Step::Refuse { which }),
        8 => Just(Step::Deliver),
        1 => (0_u16..4).prop_map(Step::Remove),
        1 => (0_u16..4).prop_map(Step::Add),
        1 => Just(Step::Publish),
    ]
}

/// What has been asked for and what has come.
#[derive(Default)]
struct Seen {
    now_ns: u64,
    /// Interests without answer, by consumer.
    open: BTreeMap<u64, Vec<(Name, bool)>>,
    /// All of them.
    ever: BTreeMap<u64, Vec<(Name, bool)>>,
    /// How often each Data has come.
    got: BTreeMap<(u64, Name), usize>,
    /// Interests that reached the producer.
    asked: VecDeque<Vec<u8>>,
    n_asked: u32,
}

fn is_answered(interest: &(Name, bool), data: NameView<'_>) -> bool {
    match interest {
        (name, true) => data.starts_with(name.view()),
        (name, false) => name.view() == data,
    }
}

impl Seen {
    /// Time goes on with everything that happens.
    fn now(&mut self) -> MonoNs {
        self.now_ns += 1;
        MonoNs(self.now_ns)
    }

    fn take(&mut self, sent: Vec<Sent>) -> Result<(), TestCaseError> {
        for sent in sent {
            match PacketView::parse(&sent.wire) {
                Ok(PacketView::Interest(_)) if sent.kind == Kind::Interest => {
                    if sent.face == PRODUCER {
                        self.asked.push_back(sent.wire);
                    }
                }
                Ok(PacketView::Interest(interest)) if matches!(sent.kind, Kind::Nack(_)) => {
                    let open = self.open.entry(sent.face.0).or_default();
                    open.retain(|(name, can_be_prefix)| {
                        name.view() != interest.name() || *can_be_prefix != interest.can_be_prefix()
                    });
                }
                Ok(PacketView::Data(data)) => {
                    let open = self.open.entry(sent.face.0).or_default();
                    open.retain(|interest| !is_answered(interest, data.name()));
                    // One who asks in two ways may be answered twice when packets overtake.
                    let asked = self.ever.entry(sent.face.0).or_default();
                    let n_asked = asked
                        .iter()
                        .filter(|it| is_answered(it, data.name()))
                        .count();
                    let name = data.name().to_name();
                    let n_got = self.got.entry((sent.face.0, name)).or_default();
                    *n_got += 1;
                    prop_assert!(*n_got <= n_asked, "{} for nothing", data.name());
                }
                _ => prop_assert!(false, "a packet that nobody should send: {:?}", sent.kind),
            }
        }
        Ok(())
    }
}

fn carry(many: &mut Many, now: MonoNs, face: FaceId, wire: &[u8]) -> Vec<Sent> {
    carry_with(many, now, face, wire, &Headers::default())
}

fn carry_with(
    many: &mut Many,
    now: MonoNs,
    face: FaceId,
    wire: &[u8],
    headers: &Headers,
) -> Vec<Sent> {
    let packet = RxPacket::parse(face, headers, wire).expect("a packet that may come");
    let mut out = Outbox::default();
    many.take(now, &packet, &mut out);
    out.0
}

fn answer(many: &mut Many, seen: &mut Seen, which: usize) -> Result<(), TestCaseError> {
    if let Some(asked) = seen.asked.remove(which) {
        let interest = InterestView::parse(&asked).expect("as it was sent");
        let name = interest.name().to_name();
        let name = match interest.can_be_prefix() {
            true => name.with(&tachonym_packet::Component::generic("end")),
            false => name,
        };
        let data = Data {
            name,
            ..data("/x").fresh_ms(1_000)
        };
        let sent = carry(many, seen.now(), PRODUCER, &data.wire());
        seen.take(sent)?;
    }
    Ok(())
}

fn refuse(many: &mut Many, seen: &mut Seen, which: usize) -> Result<(), TestCaseError> {
    if let Some(asked) = seen.asked.remove(which) {
        let headers = Headers {
            nack: Some(NackReason::NoRoute),
            ..Headers::default()
        };
        let sent = carry_with(many, seen.now(), PRODUCER, &asked, &headers);
        seen.take(sent)?;
    }
    Ok(())
}

fn deliver(many: &mut Many, seen: &mut Seen) -> Result<bool, TestCaseError> {
    let mut out = Outbox::default();
    let was_any = many.deliver_one(seen.now(), &mut out);
    seen.take(out.0)?;
    Ok(was_any)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn everybody_is_answered_whatever_overtakes_what_and_wherever_names_move(
        steps in prop::collection::vec(any_step(), 1..80),
        k in 1_u8..5, by_name in any::<bool>(), seed in any::<u64>(),
    ) {
        let by = match by_name {
            true => DispatchBy::Name,
            false => DispatchBy::Prefix { n_components: k.try_into().expect("not zero") },
        };
        let mut many = Many::new(4, by, seed);
        let mut seen = Seen::default();
        for step in steps {
            match step {
                Step::Ask { consumer, components, can_be_prefix } => {
                    let uri: String = components.iter().map(|c| format!("/{c}")).collect();
                    let uri = format!("/p{uri}");
                    let asked = (name(&uri), can_be_prefix);
                    let open = seen.open.entry(consumer).or_default();
                    // Asked twice, it might be answered twice: once from a store.
                    if open.contains(&asked) {
                        continue;
                    }
                    open.push(asked.clone());
                    seen.ever.entry(consumer).or_default().push(asked);
                    seen.n_asked += 1;
                    let interest = Interest { can_be_prefix, ..interest(&uri).nonce(seen.n_asked) };
                    let sent = carry(&mut many, seen.now(), FaceId(consumer), &interest.wire());
                    seen.take(sent)?;
                }
                Step::Answer { which } if !seen.asked.is_empty() => {
                    let which = which.index(seen.asked.len());
                    answer(&mut many, &mut seen, which)?;
                }
                Step::Refuse { which } if !seen.asked.is_empty() => {
                    let which = which.index(seen.asked.len());
                    refuse(&mut many, &mut seen, which)?;
                }
                Step::Deliver => {
                    deliver(&mut many, &mut seen)?;
                }
                Step::Remove(worker) => {
                    let _ = many.laps.remove_worker(WorkerId(worker));
                }
                Step::Add(worker) => {
                    let _ = many.laps.add_worker(WorkerId(worker), ServiceId(0));
                }
                Step::Publish => {
                    let Many { laps, publisher, .. } = &mut many;
                    publisher.publish(laps.homes());
                }
                Step::Answer { .. } | Step::Refuse { .. } => {}
            }
        }
        loop {
            if deliver(&mut many, &mut seen)? {
                continue;
            }
            if seen.asked.is_empty() {
                break;
            }
            answer(&mut many, &mut seen, 0)?;
        }
        let left: Vec<_> = seen.open.values().flatten().collect();
        prop_assert!(left.is_empty(), "nobody has answered {left:?}");
    }
}
