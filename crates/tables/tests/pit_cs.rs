//! PIT and content store with an index for both against those with an index each.

mod support;

use proptest::prelude::*;
use support::policy::lru;
use support::{Hashing, InterestSpec, data_wire, name};
use tachonym_packet::{Component, DataView, FaceId, InterestView, MonoNs, Name, NameHash, Nonce};
use tachonym_tables::{
    Admission, CsCapacity, CsConfig, EntryIdx, InRecord, IndexKind, Inserted, PitConfig, PitCs,
    PitCsConfig, PitCsLayout, PitRefusal,
};

#[derive(Clone, Debug)]
enum Step {
    Interest {
        spec: InterestSpec,
        face: u64,
    },
    Data {
        name: Name,
        content: u8,
        freshness_ms: u64,
        /// Whether entries with MustBeFresh stay although they are answered.
        some_stay: bool,
        is_cached: bool,
    },
    Advance {
        by_ms: u64,
    },
    Erase {
        prefix: Name,
        limit: usize,
    },
    SetCapacity {
        max_pkts: usize,
    },
    SetAdmits(bool),
    SetServes(bool),
}

/// What can be seen of a step.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answered(Vec<u8>),
    Pending(Result<(EntryIdx, Inserted), PitRefusal>),
    Matched(Vec<EntryIdx>, Option<Admission>),
    Expired(Vec<EntryIdx>),
    Erased(usize, bool),
    Set,
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

fn full_name(name: &Name, content: u8, freshness_ms: u64) -> Name {
    let wire = data_wire(name, freshness_ms, &[content]);
    let data = DataView::parse(&wire).expect("encoded by the test");
    let digest = Component::implicit_digest(&data.implicit_digest());
    name.clone().with(&digest)
}

fn any_interest() -> impl Strategy<Value = InterestSpec> {
    let hint = prop_oneof![4 => Just(None), 1 => Just(Some("/h")), 1 => Just(Some("/i"))];
    let digest = prop_oneof![5 => Just(None), 1 => (0_u8..2).prop_map(Some)];
    let flags = (any::<bool>(), any::<bool>());
    (any_name(), flags, hint, digest, 1_u64..300).prop_map(
        |(base, (can_be_prefix, must_be_fresh), hint, digest, lifetime_ms)| InterestSpec {
            name: match digest {
                None => base,
                Some(content) => full_name(&base, content, 20),
            },
            can_be_prefix,
            must_be_fresh,
            hint: hint.map(name),
            lifetime_ms,
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let freshness_ms = prop_oneof![Just(0_u64), Just(20)];
    let is_cached = prop::bool::weighted(0.8);
    let limit = prop_oneof![Just(usize::MAX), 0_usize..4];
    prop_oneof![
        10 => (any_interest(), 0_u64..6).prop_map(|(spec, face)| Step::Interest { spec, face }),
        8 => (any_name(), 0_u8..2, freshness_ms, any::<bool>(), is_cached).prop_map(
            |(name, content, freshness_ms, some_stay, is_cached)| Step::Data {
                name, content, freshness_ms, some_stay, is_cached,
            }
        ),
        2 => (0_u64..200).prop_map(|by_ms| Step::Advance { by_ms }),
        1 => (any_name(), limit).prop_map(|(prefix, limit)| Step::Erase { prefix, limit }),
        1 => (0_usize..300).prop_map(|max_pkts| Step::SetCapacity { max_pkts }),
        1 => prop::bool::weighted(0.8).prop_map(Step::SetAdmits),
        1 => prop::bool::weighted(0.8).prop_map(Step::SetServes),
    ]
}

/// Tables with the encoding and hashing around them.
struct Bench {
    tables: PitCs,
    hashing: Hashing,
    now: MonoNs,
}

impl Bench {
    fn new(hashing: Hashing, config: PitCsConfig) -> Self {
        let policy = lru(config.cs.capacity.max_slots());
        Self {
            tables: PitCs::new(config, policy, hashing).expect("small tables"),
            hashing,
            now: MonoNs(5),
        }
    }

    fn apply(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Interest { spec, face } => self.interest(spec, FaceId(*face)),
            Step::Data {
                name,
                content,
                freshness_ms,
                some_stay,
                is_cached,
            } => {
                let wire = data_wire(name, *freshness_ms, &[*content]);
                self.data(&wire, *some_stay, *is_cached)
            }
            Step::Advance { by_ms } => {
                self.now = self.now.plus_ms(*by_ms);
                let mut expired = Vec::new();
                self.tables.pit_mut().expire(self.now, &mut expired);
                for &idx in &expired {
                    assert!(self.tables.remove_pending(idx));
                }
                Outcome::Expired(expired)
            }
            Step::Erase { prefix, limit } => {
                let (prefix, hashes) = (prefix.view(), self.hashing.hashes(prefix.view()));
                let n_erased = self.tables.erase_data(prefix, &hashes, *limit);
                Outcome::Erased(n_erased, self.tables.has_data_below(prefix, &hashes))
            }
            Step::SetCapacity { max_pkts } => {
                let capacity = CsCapacity {
                    max_pkts: *max_pkts,
                    ..self.tables.cs().capacity()
                };
                self.tables.set_cs_capacity(capacity).expect("small tables");
                Outcome::Set
            }
            Step::SetAdmits(admits) => {
                self.tables.cs_mut().set_admits(*admits);
                Outcome::Set
            }
            Step::SetServes(serves) => {
                self.tables.cs_mut().set_serves(*serves);
                Outcome::Set
            }
        }
    }

    fn interest(&mut self, spec: &InterestSpec, face: FaceId) -> Outcome {
        let wire = spec.encode();
        let interest = InterestView::parse(&wire).expect("encoded by the test");
        let hashes = self.hashing.hashes(interest.name());
        let pending = self.tables.find_pending(&interest, &hashes);
        let missed = match self.tables.find_data(&interest, &hashes, self.now) {
            Ok(data) => return Outcome::Answered(data.wire().to_vec()),
            Err(missed) => missed,
        };
        let found = self
            .tables
            .find_or_insert(&interest, &hashes, missed, self.now);
        let found = found.map(|(mut entry, inserted)| {
            let idx = entry.idx();
            assert_eq!(pending, (inserted == Inserted::Existing).then_some(idx));
            let record = InRecord {
                face,
                nonce: Nonce([1; 4]),
                expiry: self.now,
                pit_token: None,
                hop_limit: None,
                flags: 0,
                lifetime_ms: 4_000,
            };
            if let Ok(expiry) = entry.insert_in_record(record) {
                let expiries = entry.in_records().map(|record| record.expiry);
                assert_eq!(expiries.max(), Some(expiry));
            }
            (idx, inserted)
        });
        if let Ok((idx, _)) = found {
            assert_eq!(self.tables.find_pending(&interest, &hashes), Some(idx));
        }
        Outcome::Pending(found)
    }

    fn data(&mut self, wire: &[u8], some_stay: bool, is_cached: bool) -> Outcome {
        let data = DataView::parse(wire).expect("encoded by the test");
        let hashes: Vec<NameHash> = self.hashing.hashes(data.name());
        let mut matches = Vec::new();
        let known = self.tables.matches_for_data(&data, &hashes, &mut matches);
        // Those of one name come in the order of their places.
        matches.sort_by_key(|idx| format!("{idx:?}"));
        let pit = self.tables.pit();
        let stays = |idx: EntryIdx| pit.matched(idx).must_be_fresh();
        let ended: Vec<EntryIdx> = matches
            .iter()
            .copied()
            .filter(|&idx| !(some_stay && stays(idx)))
            .collect();
        let admission = if is_cached {
            Some(
                self.tables
                    .insert_data(&data, &hashes, (&ended, known), self.now),
            )
        } else {
            for &idx in &ended {
                assert!(self.tables.remove_pending(idx));
            }
            None
        };
        for &idx in &ended {
            assert!(!self.tables.remove_pending(idx), "it has ended");
        }
        Outcome::Matched(matches, admission)
    }

    /// Everything that is cached, in order, and the numbers of what is pending.
    fn contents(&self) -> (Vec<Vec<u8>>, Vec<EntryIdx>) {
        let cached = self.tables.cs().iter();
        let mut cached: Vec<Vec<u8>> = cached.map(|data| data.wire().to_vec()).collect();
        cached.sort();
        let pending = self.tables.pit().iter().map(|(idx, _)| idx);
        (cached, pending.collect())
    }
}

fn run(hashing: Hashing, config: PitCsConfig, steps: &[Step]) {
    let mut benches = PitCsLayout::ALL.map(|layout| {
        let bench = Bench::new(hashing, PitCsConfig { layout, ..config });
        assert_eq!(bench.tables.layout(), layout);
        bench
    });
    for step in steps {
        let [separate, composite] = benches.each_mut().map(|bench| bench.apply(step));
        assert_eq!(separate, composite, "{step:?}");
        let [separate, composite] = &benches;
        assert_eq!(separate.contents(), composite.contents(), "{step:?}");
        let (separate, composite) = (&separate.tables, &composite.tables);
        assert_eq!(separate.cs().counters(), composite.cs().counters());
        assert_eq!(separate.cs().used_bytes(), composite.cs().used_bytes());
        assert_eq!(separate.pit().used_bytes(), composite.pit().used_bytes());
        assert_eq!(separate.pit().refusals(), composite.pit().refusals());
    }
}

fn config_of(index: IndexKind, max_pkts: usize) -> PitCsConfig {
    PitCsConfig {
        pit: PitConfig {
            max_entries: 30,
            index,
            ..PitConfig::default()
        },
        cs: CsConfig {
            capacity: CsCapacity {
                max_pkts,
                max_bytes: 1 << 20,
            },
            index,
            ..CsConfig::default()
        },
        layout: PitCsLayout::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn one_index_for_both_answers_as_one_for_each(
        steps in proptest::collection::vec(any_step(), 1..120),
        max_pkts in 0_usize..12,
    ) {
        for hashing in Hashing::ALL {
            for index in IndexKind::ALL {
                run(hashing, config_of(index, max_pkts), &steps);
            }
        }
    }
}

#[test]
fn steady_exchanges_leave_one_index_as_large_as_it_was() {
    let config = PitCsConfig {
        layout: PitCsLayout::Composite,
        ..config_of(IndexKind::Single, 100)
    };
    let mut bench = Bench::new(Hashing::Keyed, config);
    let mut exchange = |n: u64| {
        let uri = name(&format!("/a/{}", 10_000 + n));
        bench.interest(&InterestSpec::new(uri.clone()), FaceId(1));
        let outcome = bench.data(&data_wire(&uri, 0, b"x"), false, true);
        assert!(
            matches!(outcome, Outcome::Matched(matches, Some(Admission::Inserted)) if matches.len() == 1)
        );
        bench.tables.memory_bytes()
    };
    let before_bytes = (0..300).map(&mut exchange).last();
    assert!((300..3_000).all(|n| Some(exchange(n)) == before_bytes));
}
