//! The PIT against a list searched from end to end.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use support::policy::lru;
use support::{Hashing, InterestSpec, data_wire, name};
use tachonym_packet::{Component, DataView, FaceId, InterestView, MonoNs, Name, Nonce, SourceId};
use tachonym_policy::Policy;
use tachonym_tables::pit::MAX_HINTS_PER_NAME;
use tachonym_tables::{
    CsCapacity, CsConfig, EntryIdx, InRecord, IndexKind, Inserted, Missed, OutRecord, Pit,
    PitConfig, PitCs, PitCsConfig, PitCsLayout, PitRefusal, TICK_NS,
};

fn in_record(face: u64, nonce: u32) -> InRecord {
    InRecord {
        face: FaceId(face),
        nonce: Nonce(nonce.to_be_bytes()),
        expiry: MonoNs(u64::from(nonce)),
        pit_token: None,
        hop_limit: None,
        flags: 0,
        lifetime_ms: 4_000,
    }
}

fn out_record(face: u64, nonce: u32) -> OutRecord {
    OutRecord {
        face: FaceId(face),
        nonce: Nonce(nonce.to_be_bytes()),
        expiry: MonoNs(0),
        last_sent: MonoNs(0),
        nack: None,
        strategy_word: 0,
    }
}

fn nothing_cached() -> Policy {
    lru(0)
}

/// A PIT with the encoding and hashing around it, and a content store that has no room.
struct Bench {
    tables: PitCs,
    hashing: Hashing,
    now: MonoNs,
}

impl Bench {
    fn new(hashing: Hashing, config: PitConfig) -> Self {
        Self::with_layout(hashing, config, PitCsLayout::default())
    }

    fn with_layout(hashing: Hashing, config: PitConfig, layout: PitCsLayout) -> Self {
        let config = tables_config(config, layout);
        Self {
            tables: PitCs::new(config, nothing_cached(), hashing).expect("small tables"),
            hashing,
            now: MonoNs::ZERO,
        }
    }

    fn insert(&mut self, spec: &InterestSpec) -> Result<(EntryIdx, Inserted), PitRefusal> {
        let wire = spec.encode();
        let interest = InterestView::parse(&wire).expect("encoded by the test");
        let hashes = self.hashing.hashes(interest.name());
        let found = self.tables.find_pending(&interest, &hashes);
        let result = self
            .tables
            .find_or_insert(&interest, &hashes, Missed::default(), self.now)
            .map(|(pending, inserted)| (pending.idx(), inserted));
        if let Ok((idx, inserted)) = result {
            assert_eq!(found, (inserted == Inserted::Existing).then_some(idx));
            assert_eq!(self.tables.find_pending(&interest, &hashes), Some(idx));
        }
        result
    }

    fn matches(&self, wire: &[u8]) -> Vec<EntryIdx> {
        let data = DataView::parse(wire).expect("encoded by the test");
        let mut matches = vec![];
        self.tables
            .matches_for_data(&data, &self.hashing.hashes(data.name()), &mut matches);
        matches
    }
}

fn tables_config(pit: PitConfig, layout: PitCsLayout) -> PitCsConfig {
    let nothing = CsCapacity {
        max_pkts: 0,
        max_bytes: 0,
    };
    let cs = CsConfig {
        capacity: nothing,
        ..CsConfig::default()
    };
    PitCsConfig { pit, cs, layout }
}

/// The Data of the tests: few names, and two contents for each.
fn data_of(name: &Name, content: u8) -> Vec<u8> {
    data_wire(name, 0, &[content])
}

fn digest_of(name: &Name, content: u8) -> [u8; 32] {
    DataView::parse(&data_of(name, content))
        .expect("encoded by the test")
        .implicit_digest()
}

fn any_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("aa")], 1..5).prop_map(
        |components| {
            components.iter().fold(Name::new(), |name, component| {
                name.with(&Component::generic(component))
            })
        },
    )
}

/// Makes an Interest too large for the entry alone.
const LONG_HINT: &str = "/i/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/\
    0123456789/0123456789/0123456789/0123456789/0123456789/0123456789";

fn any_interest() -> impl Strategy<Value = InterestSpec> {
    let hint = prop_oneof![3 => Just(None), 1 => Just(Some("/h")), 1 => Just(Some(LONG_HINT))];
    let digest = prop_oneof![4 => Just(None), 1 => (0_u8..3).prop_map(Some)];
    (
        any_name(),
        any::<bool>(),
        any::<bool>(),
        hint,
        digest,
        1_u64..5000,
    )
        .prop_map(
            |(base, can_be_prefix, must_be_fresh, hint, digest, lifetime_ms)| InterestSpec {
                name: match digest {
                    None => base,
                    Some(content) => {
                        let digest = digest_of(&base, content);
                        base.with(&Component::implicit_digest(&digest))
                    }
                },
                can_be_prefix,
                must_be_fresh,
                hint: hint.map(name),
                lifetime_ms,
            },
        )
}

#[derive(Clone, Debug)]
enum Step {
    Interest {
        spec: InterestSpec,
        face: u64,
    },
    Data {
        name: Name,
        content: u8,
        removes: bool,
    },
    SetExpiry {
        nth: usize,
        after_ms: u64,
    },
    Advance {
        by_ms: u64,
    },
    RemoveFace {
        face: u64,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any_interest(), 0_u64..6).prop_map(|(spec, face)| Step::Interest { spec, face }),
        4 => (any_name(), 0_u8..2, any::<bool>())
            .prop_map(|(name, content, removes)| Step::Data { name, content, removes }),
        1 => (any::<usize>(), 0_u64..9000)
            .prop_map(|(nth, after_ms)| Step::SetExpiry { nth, after_ms }),
        1 => (0_u64..3000).prop_map(|by_ms| Step::Advance { by_ms }),
        1 => (0_u64..6).prop_map(|face| Step::RemoveFace { face }),
    ]
}

struct ModelEntry {
    idx: EntryIdx,
    spec: InterestSpec,
    expiry: MonoNs,
    /// Nonce by face.
    records: BTreeMap<u64, u32>,
}

impl ModelEntry {
    fn is_for(&self, spec: &InterestSpec) -> bool {
        self.spec.name == spec.name
            && self.spec.can_be_prefix == spec.can_be_prefix
            && self.spec.must_be_fresh == spec.must_be_fresh
            && self.spec.hint == spec.hint
    }

    fn is_answered_by(&self, full_name: &Name) -> bool {
        let asked = self.spec.name.view();
        let name = full_name.prefix(full_name.len() - 1);
        asked == name
            || asked == full_name.view()
            || self.spec.can_be_prefix && full_name.starts_with(asked)
    }
}

fn run(hashing: Hashing, index: IndexKind, layout: PitCsLayout, steps: &[Step]) {
    let config = PitConfig {
        index,
        ..PitConfig::default()
    };
    let mut bench = Bench::with_layout(hashing, config, layout);
    let mut model = Vec::<ModelEntry>::new();
    for (n_step, step) in steps.iter().enumerate() {
        match step {
            Step::Interest { spec, face } => {
                let (idx, inserted) = bench.insert(spec).expect("far from any limit");
                let known = model.iter().position(|entry| entry.is_for(spec));
                assert_eq!(inserted == Inserted::Existing, known.is_some(), "{spec:?}");
                let place = known.unwrap_or(model.len());
                if known.is_none() {
                    model.push(ModelEntry {
                        idx,
                        spec: spec.clone(),
                        expiry: bench.now.plus_ms(spec.lifetime_ms),
                        records: BTreeMap::new(),
                    });
                }
                assert_eq!(model[place].idx, idx);
                let nonce = n_step as u32;
                bench
                    .tables
                    .matched(idx)
                    .insert_in_record(in_record(*face, nonce))
                    .expect("no limit");
                bench
                    .tables
                    .matched(idx)
                    .insert_out_record(out_record(*face + 100, nonce))
                    .expect("no limit");
                model[place].records.insert(*face, nonce);
            }
            Step::Data {
                name,
                content,
                removes,
            } => {
                let full_name = name
                    .clone()
                    .with(&Component::implicit_digest(&digest_of(name, *content)));
                let mut found = bench.matches(&data_of(name, *content));
                let mut expected: Vec<EntryIdx> = model
                    .iter()
                    .filter(|entry| entry.is_answered_by(&full_name))
                    .map(|entry| entry.idx)
                    .collect();
                let order = |idx: &EntryIdx| format!("{idx:?}");
                found.sort_by_key(order);
                expected.sort_by_key(order);
                assert_eq!(found, expected, "{full_name}");
                if *removes {
                    for idx in found {
                        assert!(bench.tables.remove_pending(idx));
                        assert!(
                            !bench.tables.remove_pending(idx),
                            "its number died with the entry"
                        );
                        model.retain(|entry| entry.idx != idx);
                    }
                }
            }
            Step::SetExpiry { nth, after_ms } => {
                if !model.is_empty() {
                    let nth = nth % model.len();
                    let at = bench.now.plus_ms(*after_ms);
                    bench.tables.matched(model[nth].idx).set_expiry(at);
                    model[nth].expiry = at;
                }
            }
            Step::Advance { by_ms } => {
                bench.now = bench.now.plus_ms(*by_ms);
                let mut expired = Vec::new();
                bench.tables.pit_mut().expire(bench.now, &mut expired);
                for idx in expired {
                    let place = model.iter().position(|entry| entry.idx == idx);
                    let entry = model.remove(place.expect("reported once"));
                    assert!(entry.expiry <= bench.now, "early");
                    assert!(bench.tables.remove_pending(idx));
                }
                for entry in &model {
                    assert!(entry.expiry.0 + TICK_NS > bench.now.0, "late");
                }
            }
            Step::RemoveFace { face } => {
                let mut abandoned = Vec::new();
                bench
                    .tables
                    .pit_mut()
                    .remove_face(FaceId(*face), &mut abandoned);
                for entry in &mut model {
                    let lost_last =
                        entry.records.remove(face).is_some() && entry.records.is_empty();
                    assert_eq!(abandoned.contains(&entry.idx), lost_last);
                }
            }
        }
        check(bench.tables.pit(), &model);
    }
}

/// Every entry of the model is in the PIT as it should be, and no other.
fn check(pit: &Pit, model: &[ModelEntry]) {
    assert_eq!(pit.len(), model.len());
    assert_eq!(pit.iter().count(), model.len());
    for expected in model {
        let entry = pit.get(expected.idx).expect("entries stay until removed");
        assert_eq!(entry.name(), expected.spec.name.view());
        assert_eq!(entry.interest().name(), expected.spec.name.view());
        assert_eq!(entry.can_be_prefix(), expected.spec.can_be_prefix);
        assert_eq!(entry.must_be_fresh(), expected.spec.must_be_fresh);
        assert_eq!(entry.expiry(), expected.expiry);
        let records: BTreeMap<u64, u32> = entry
            .in_records()
            .map(|record| (record.face.0, u32::from_be_bytes(record.nonce.0)))
            .collect();
        assert_eq!(records, expected.records);
        assert_eq!(entry.n_in_records(), records.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pit_agrees_with_a_list_under_any_hash_and_index(
        steps in proptest::collection::vec(any_step(), 1..80)
    ) {
        for hashing in Hashing::ALL {
            for index in IndexKind::ALL {
                for layout in PitCsLayout::ALL {
                    run(hashing, index, layout, &steps);
                }
            }
        }
    }
}

#[test]
fn interests_share_an_entry_only_if_name_flags_and_hint_agree() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    let plain = InterestSpec::new(name("/a/b"));
    let variants = [
        plain.clone(),
        plain.clone().can_be_prefix(),
        plain.clone().must_be_fresh(),
        plain.clone().hint("/h"),
        plain.clone().hint("/i"),
        InterestSpec::new(name("/a")),
        InterestSpec::new(name("/a/b/c")),
    ];
    for variant in &variants {
        assert_eq!(bench.insert(variant).unwrap().1, Inserted::New);
    }
    for variant in &variants {
        assert_eq!(bench.insert(variant).unwrap().1, Inserted::Existing);
    }
    assert_eq!(bench.tables.pit().len(), variants.len());
}

#[test]
fn stale_numbers_find_nothing_after_their_slot_has_a_new_tenant() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    let (old, _) = bench.insert(&InterestSpec::new(name("/a"))).unwrap();
    bench.tables.remove_pending(old);
    let (new, _) = bench.insert(&InterestSpec::new(name("/b"))).unwrap();
    assert_ne!(old, new);
    assert!(bench.tables.pit().get(old).is_none());
    assert!(bench.tables.pit_mut().get_mut(old).is_none());
    assert!(!bench.tables.remove_pending(old));
    assert!(bench.tables.pending(old).is_none());
    let mut expired = Vec::new();
    bench
        .tables
        .pit_mut()
        .expire(MonoNs(1).plus_ms(100), &mut expired);
    assert!(expired.is_empty(), "the tenant's deadline is its own");
    assert_eq!(bench.tables.pit().get(new).unwrap().n_in_records(), 0);
}

#[test]
fn a_new_tenant_inherits_nothing() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    let (old, _) = bench
        .insert(&InterestSpec::new(name("/a")).hint("/h"))
        .unwrap();
    for face in 0..20 {
        bench
            .tables
            .matched(old)
            .insert_in_record(in_record(face, 1))
            .unwrap();
        bench
            .tables
            .matched(old)
            .insert_out_record(out_record(face, 1))
            .unwrap();
    }
    let mut entry = bench.tables.matched(old);
    entry.strategy_state = [9; 3];
    entry.satisfied = true;
    bench.tables.remove_pending(old);
    let (new, _) = bench.insert(&InterestSpec::new(name("/a"))).unwrap();
    let entry = bench.tables.pit().get(new).unwrap();
    assert_eq!((entry.n_in_records(), entry.n_out_records()), (0, 0));
    assert_eq!((entry.strategy_state, entry.satisfied), ([0; 3], false));
    assert!(!entry.has_forwarding_hint());
}

#[test]
fn full_pit_refuses_new_entries_and_counts_them() {
    let config = PitConfig {
        max_entries: 2,
        ..PitConfig::default()
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    let (first, _) = bench.insert(&InterestSpec::new(name("/1"))).unwrap();
    bench.insert(&InterestSpec::new(name("/2"))).unwrap();
    let third = InterestSpec::new(name("/3"));
    assert_eq!(bench.insert(&third), Err(PitRefusal::TooManyEntries));
    assert_eq!(bench.tables.pit().refusals().n_too_many_entries, 1);
    assert_eq!(
        bench.insert(&InterestSpec::new(name("/2"))).unwrap().1,
        Inserted::Existing
    );
    bench.tables.remove_pending(first);
    assert!(bench.insert(&third).is_ok());
}

#[test]
fn bytes_of_interests_and_records_are_bounded() {
    let config = PitConfig {
        max_entries: 1 << 20,
        max_bytes: 1 << 20,
        max_records_per_entry: 64,
        ..PitConfig::default()
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    let mut entries = Vec::new();
    let long = "x".repeat(2000);
    for round in 0..3 {
        for n in 0.. {
            match bench.insert(&InterestSpec::new(name(&format!("/{long}/{round}/{n}")))) {
                Ok((idx, _)) => entries.push(idx),
                Err(refusal) => {
                    assert_eq!(refusal, PitRefusal::TooManyBytes);
                    break;
                }
            }
            for face in 0..64 {
                let _ = bench
                    .tables
                    .matched(entries[entries.len() - 1])
                    .insert_in_record(in_record(face, 1));
            }
            assert!(bench.tables.pit().used_bytes() <= config.max_bytes);
            assert!(bench.tables.memory_bytes() <= config.max_bytes * 5 / 4);
        }
        assert!(entries.len() > 100, "room again in every round");
        for idx in entries.drain(..) {
            bench.tables.remove_pending(idx);
        }
        assert_eq!(bench.tables.pit().used_bytes(), 0);
    }
    assert!(bench.tables.pit().refusals().n_too_many_bytes >= 3);
}

/// Lets a face ask for names of its own until it is refused; how many it got.
fn ask_for_all(bench: &mut Bench, face: u64, padding: &str) -> usize {
    ask_by(bench, &[face], padding)
}

/// Lets these faces ask in turns until one is refused; how many Interests were not.
fn ask_by(bench: &mut Bench, faces: &[u64], padding: &str) -> usize {
    for n in 0.. {
        let face = faces[n % faces.len()];
        let spec = InterestSpec::new(name(&format!("/{face}/x{padding}/{n}")));
        let (idx, _) = bench.insert(&spec).unwrap();
        if let Err(refusal) = bench
            .tables
            .matched(idx)
            .insert_in_record(in_record(face, 1))
        {
            assert_eq!(refusal, PitRefusal::SourceShareUsed);
            bench.tables.remove_pending(idx);
            return n;
        }
    }
    unreachable!("every table has an end")
}

#[test]
fn a_greedy_face_gets_half_of_the_entries_and_the_others_are_served() {
    let config = PitConfig {
        max_entries: 120,
        ..PitConfig::default()
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    assert_eq!(ask_for_all(&mut bench, 1, ""), 60);
    assert_eq!(ask_for_all(&mut bench, 2, ""), 30);
    assert_eq!(ask_for_all(&mut bench, 3, ""), 15);
    // It keeps what it has, and gets no more.
    assert_eq!(ask_for_all(&mut bench, 1, ""), 60);
    assert!(ask_for_all(&mut bench, 4, "") > 0);
    assert!(bench.tables.pit().refusals().n_source_share_used >= 4);
    assert_eq!(bench.tables.pit().refusals().n_too_many_entries, 0);
}

#[test]
fn the_faces_of_a_source_have_the_share_of_one_face() {
    let config = PitConfig {
        max_entries: 120,
        ..PitConfig::default()
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    let peer = "192.0.2.1:6363".parse().unwrap();
    let faces: Vec<_> = (1_000..1_050).collect();
    for &face in &faces {
        let pit = bench.tables.pit_mut();
        pit.attach_face(FaceId(face), SourceId::of_peer(&peer));
    }
    assert_eq!(ask_by(&mut bench, &faces, ""), 60);
    assert_eq!(ask_for_all(&mut bench, 1, ""), 30);
}

#[test]
fn a_greedy_face_gets_half_of_the_bytes_and_the_others_are_served() {
    let config = PitConfig {
        max_bytes: 1 << 20,
        ..PitConfig::default()
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    let long = "x".repeat(8000);
    assert!(ask_for_all(&mut bench, 1, &long) > 10);
    let used_bytes = bench.tables.pit().used_bytes();
    assert!(used_bytes <= config.max_bytes / 2, "{used_bytes}");
    assert!(ask_for_all(&mut bench, 2, "") > 100);
}

#[test]
fn shares_are_what_the_records_say() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    let (faces, n_entries) = ([1, 2, 3], 20);
    let entries: Vec<_> = (0..n_entries)
        .map(|n| bench.insert(&InterestSpec::new(name(&format!("/{n}")))))
        .map(|inserted| inserted.unwrap().0)
        .collect();
    for &idx in &entries {
        for face in faces {
            bench
                .tables
                .matched(idx)
                .insert_in_record(in_record(face, 1))
                .unwrap();
            bench
                .tables
                .matched(idx)
                .insert_in_record(in_record(face, 2))
                .unwrap();
        }
    }
    let held =
        |bench: &Bench| faces.map(|face| bench.tables.pit().n_awaited_by_source(FaceId(face)));
    assert_eq!(held(&bench), [20, 20, 20]);
    bench.tables.matched(entries[0]).remove_in_record(FaceId(1));
    bench.tables.matched(entries[0]).remove_in_record(FaceId(1));
    bench
        .tables
        .matched(entries[1])
        .retain_in_records(|record| record.face == FaceId(3));
    assert_eq!(held(&bench), [18, 19, 20]);
    bench.tables.remove_pending(entries[2]);
    bench.tables.remove_pending(entries[2]);
    assert_eq!(held(&bench), [17, 18, 19]);
    bench
        .tables
        .pit_mut()
        .remove_face(FaceId(3), &mut Vec::new());
    assert_eq!(held(&bench), [17, 18, 0]);
    for idx in entries {
        bench.tables.remove_pending(idx);
    }
    assert_eq!(held(&bench), [0, 0, 0]);
}

#[test]
fn expiry_goes_on_where_it_stopped() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    for n in 0..50 {
        bench
            .insert(&InterestSpec::new(name(&format!("/{n}"))))
            .unwrap();
    }
    let late = MonoNs(1).plus_ms(60_000);
    let mut expired = Vec::new();
    let mut n_calls = 1;
    while !bench.tables.pit_mut().expire_some(late, 7, &mut expired) {
        assert!(bench.tables.pit().next_expiry().unwrap() <= late);
        assert!(expired.len() <= 7 * n_calls);
        n_calls += 1;
    }
    assert_eq!(expired.len(), 50);
    assert!(n_calls >= 8);
}

#[test]
fn records_of_an_entry_are_bounded_and_refusals_counted() {
    let config = PitConfig {
        max_records_per_entry: 3,
        ..PitConfig::default()
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    let (idx, _) = bench.insert(&InterestSpec::new(name("/a"))).unwrap();
    for face in 0..3 {
        bench
            .tables
            .matched(idx)
            .insert_in_record(in_record(face, 1))
            .unwrap();
    }
    let refused = bench.tables.matched(idx).insert_in_record(in_record(3, 1));
    assert_eq!(refused, Err(PitRefusal::TooManyInRecords));
    assert_eq!(bench.tables.pit().refusals().n_too_many_in_records, 1);
    bench
        .tables
        .matched(idx)
        .insert_in_record(in_record(2, 9))
        .unwrap();
    let entry = bench.tables.pit().get(idx).unwrap();
    assert_eq!(
        entry.in_record(FaceId(2)).unwrap().nonce,
        Nonce([0, 0, 0, 9])
    );
    assert!(
        bench
            .tables
            .matched(idx)
            .remove_in_record(FaceId(0))
            .is_some()
    );
    assert!(
        bench
            .tables
            .matched(idx)
            .remove_in_record(FaceId(0))
            .is_none()
    );
    bench
        .tables
        .matched(idx)
        .insert_in_record(in_record(3, 1))
        .unwrap();
}

#[test]
fn hints_cannot_crowd_a_name_out() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    let plain = InterestSpec::new(name("/a"));
    for n in 0..MAX_HINTS_PER_NAME {
        bench.insert(&plain.clone().hint(&format!("/{n}"))).unwrap();
    }
    let one_more = plain.clone().hint("/one-more");
    assert_eq!(bench.insert(&one_more), Err(PitRefusal::TooManyHints));
    assert_eq!(bench.tables.pit().refusals().n_too_many_hints, 1);
    assert_eq!(bench.insert(&plain).unwrap().1, Inserted::New);
    assert_eq!(
        bench.insert(&plain.must_be_fresh()).unwrap().1,
        Inserted::New
    );
}

#[test]
fn an_interest_is_found_whatever_its_hint() {
    for hashing in Hashing::ALL {
        let mut bench = Bench::new(hashing, PitConfig::default());
        let plain = InterestSpec::new(name("/a"));
        let hinted = plain.clone().hint("/x");
        let (first, _) = bench.insert(&hinted).unwrap();
        let (second, _) = bench.insert(&plain.clone().hint("/y")).unwrap();
        let find = |spec: &InterestSpec, wanted: Option<EntryIdx>| {
            let wire = spec.encode();
            let interest = InterestView::parse(&wire).unwrap();
            let hashes = hashing.hashes(interest.name());
            let is_wanted = |entry: &tachonym_tables::PitEntry| {
                wanted.is_none_or(|idx| std::ptr::eq(entry, bench.tables.pit().get(idx).unwrap()))
            };
            bench
                .tables
                .find_pending_with_any_hint(&interest, &hashes, is_wanted)
        };
        assert_eq!(find(&plain, Some(first)), Some(first));
        assert_eq!(find(&hinted, Some(second)), Some(second));
        for other in [
            InterestSpec::new(name("/b")),
            plain.clone().can_be_prefix(),
            plain.must_be_fresh(),
        ] {
            assert_eq!(find(&other, None), None);
        }
    }
}

#[test]
fn a_digest_answers_only_under_its_own_name() {
    let mut bench = Bench::new(Hashing::Constant, PitConfig::default());
    let digest = Component::implicit_digest(&digest_of(&name("/a"), 1));
    let (wanted, _) = bench
        .insert(&InterestSpec::new(name("/a").with(&digest)))
        .unwrap();
    bench
        .insert(&InterestSpec::new(name("/b").with(&digest)))
        .unwrap();
    assert_eq!(bench.matches(&data_of(&name("/a"), 1)), [wanted]);
    assert_eq!(bench.matches(&data_of(&name("/a"), 0)), []);
}

#[test]
fn steady_traffic_reuses_slots_and_buffers() {
    let mut bench = Bench::new(Hashing::Keyed, PitConfig::default());
    let mut before_bytes = 0;
    for round in 0..50 {
        let entries: Vec<EntryIdx> = (0..100)
            .map(|n| {
                let spec = InterestSpec::new(name(&format!("/a/{}", 1000 + round * 100 + n)));
                let (idx, _) = bench.insert(&spec).unwrap();
                for face in 0..3 {
                    bench
                        .tables
                        .matched(idx)
                        .insert_in_record(in_record(face, 1))
                        .unwrap();
                }
                idx
            })
            .collect();
        // By then the index has found its size.
        if round == 20 {
            before_bytes = bench.tables.memory_bytes();
        }
        if round > 20 {
            assert_eq!(bench.tables.memory_bytes(), before_bytes);
        }
        for idx in entries {
            bench.tables.remove_pending(idx);
        }
    }
}
