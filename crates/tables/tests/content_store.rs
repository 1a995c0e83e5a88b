//! The content store against a list searched from end to end.

mod support;

use proptest::prelude::*;
use support::policy::lru;
use support::{Hashing, InterestSpec, data_wire, name};
use tachonym_memory::MemoryError;
use tachonym_packet::{Component, DataView, InterestView, MonoNs, Name};
use tachonym_policy::PolicyError;
use tachonym_tables::cs::MAX_CS_COMPONENTS;
use tachonym_tables::{
    Admission, CsCapacity, CsConfig, IndexKind, Known, NotAdmitted, PitConfig, PitCs, PitCsConfig,
    PitCsLayout, TablesError,
};

/// A content store with the encoding and hashing around it, and an empty PIT.
struct Bench {
    tables: PitCs,
    hashing: Hashing,
    now: MonoNs,
}

impl Bench {
    fn new(hashing: Hashing, max_pkts: usize, max_bytes: usize) -> Self {
        let capacity = CsCapacity {
            max_pkts,
            max_bytes,
        };
        let config = CsConfig {
            capacity,
            ..CsConfig::default()
        };
        Self::with_config(hashing, config, PitCsLayout::default())
    }

    fn with_config(hashing: Hashing, cs: CsConfig, layout: PitCsLayout) -> Self {
        let pit = PitConfig {
            index: cs.index,
            ..PitConfig::default()
        };
        let config = PitCsConfig { pit, cs, layout };
        let policy = lru(cs.capacity.max_slots());
        Self {
            tables: PitCs::new(config, policy, hashing).expect("small tables"),
            hashing,
            now: MonoNs(5),
        }
    }

    fn insert(&mut self, wire: &[u8]) -> Admission {
        let data = DataView::parse(wire).expect("encoded by the test");
        self.tables.insert_data(
            &data,
            &self.hashing.hashes(data.name()),
            (&[], Known::default()),
            self.now,
        )
    }

    fn find(&mut self, spec: &InterestSpec) -> Option<Vec<u8>> {
        let wire = spec.encode();
        let interest = InterestView::parse(&wire).expect("encoded by the test");
        let hashes = self.hashing.hashes(interest.name());
        self.tables
            .find_data(&interest, &hashes, self.now)
            .ok()
            .map(|data| data.wire().to_vec())
    }

    fn has_below(&self, prefix: &Name) -> bool {
        let hashes = self.hashing.hashes(prefix.view());
        self.tables.has_data_below(prefix.view(), &hashes)
    }

    fn erase(&mut self, prefix: &Name, limit: usize) -> usize {
        self.tables
            .erase_data(prefix.view(), &self.hashing.hashes(prefix.view()), limit)
    }
}

fn full_name(wire: &[u8]) -> Name {
    let data = DataView::parse(wire).expect("encoded by the test");
    data.name()
        .to_name()
        .with(&Component::implicit_digest(&data.implicit_digest()))
}

fn any_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("aa")], 1..6).prop_map(
        |components| {
            components.iter().fold(Name::new(), |name, component| {
                name.with(&Component::generic(component))
            })
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Data {
        name: Name,
        freshness_ms: u64,
        content: u8,
    },
    Interest {
        name: Name,
        can_be_prefix: bool,
        must_be_fresh: bool,
        digest_of: Option<u8>,
    },
    Erase {
        name: Name,
        depth: usize,
        limit: usize,
    },
    SetCapacity {
        max_pkts: usize,
    },
    Advance {
        by_ms: u64,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let freshness_ms = prop_oneof![Just(0_u64), 1_u64..50];
    let limit = prop_oneof![Just(usize::MAX), 0_usize..4];
    prop_oneof![
        8 => (any_name(), freshness_ms, 0_u8..2)
            .prop_map(|(name, freshness_ms, content)| Step::Data { name, freshness_ms, content }),
        8 => (any_name(), any::<bool>(), any::<bool>(), proptest::option::weighted(0.2, 0_u8..2))
            .prop_map(|(name, can_be_prefix, must_be_fresh, digest_of)| {
                Step::Interest { name, can_be_prefix, must_be_fresh, digest_of }
            }),
        1 => (any_name(), 0_usize..4, limit)
            .prop_map(|(name, depth, limit)| Step::Erase { name, depth, limit }),
        1 => (0_usize..30).prop_map(|max_pkts| Step::SetCapacity { max_pkts }),
        2 => (0_u64..30).prop_map(|by_ms| Step::Advance { by_ms }),
    ]
}

struct ModelData {
    wire: Vec<u8>,
    full_name: Name,
    fresh_until: MonoNs,
}

impl ModelData {
    fn name(&self) -> Name {
        self.full_name.prefix(self.full_name.len() - 1).to_name()
    }

    fn answers(&self, spec: &InterestSpec, now: MonoNs) -> bool {
        let asked = spec.name.view();
        (asked == self.name().view()
            || asked == self.full_name.view()
            || spec.can_be_prefix && self.full_name.starts_with(asked))
            && (!spec.must_be_fresh || now < self.fresh_until)
    }
}

/// What the tables are made with.
#[derive(Clone, Copy, Debug)]
struct Made {
    hashing: Hashing,
    index: IndexKind,
    layout: PitCsLayout,
}

impl Made {
    const fn by_default(hashing: Hashing) -> Self {
        Self {
            hashing,
            index: IndexKind::Single,
            layout: PitCsLayout::Separate,
        }
    }
}

fn run(made: Made, mut max_pkts: usize, steps: &[Step]) {
    let Made {
        hashing,
        index,
        layout,
    } = made;
    let config = CsConfig {
        capacity: CsCapacity {
            max_pkts,
            max_bytes: 1 << 20,
        },
        index,
        ..CsConfig::default()
    };
    let mut bench = Bench::with_config(hashing, config, layout);
    // Used longest ago first.
    let mut model = Vec::<ModelData>::new();
    let mut n_evictions = 0;
    for step in steps {
        match step {
            Step::Data {
                name,
                freshness_ms,
                content,
            } => {
                let wire = data_wire(name, *freshness_ms, &[*content]);
                let admission = bench.insert(&wire);
                if max_pkts == 0 {
                    assert_eq!(admission, Admission::NotAdmitted(NotAdmitted::TooLarge));
                    continue;
                }
                let before = model.iter().position(|data| data.name() == *name);
                let before = before.map(|place| model.remove(place).wire);
                assert_eq!(
                    admission,
                    match before {
                        None => Admission::Inserted,
                        Some(same) if same == wire => Admission::Refreshed,
                        Some(_) => Admission::Replaced,
                    }
                );
                let fresh_until = match freshness_ms {
                    0 => MonoNs::ZERO,
                    ms => bench.now.plus_ms(*ms),
                };
                model.push(ModelData {
                    full_name: full_name(&wire),
                    wire,
                    fresh_until,
                });
            }
            Step::Interest {
                name,
                can_be_prefix,
                must_be_fresh,
                digest_of,
            } => {
                let name = match digest_of {
                    None => name.clone(),
                    Some(content) => full_name(&data_wire(name, 0, &[*content])),
                };
                let spec = InterestSpec {
                    can_be_prefix: *can_be_prefix,
                    must_be_fresh: *must_be_fresh,
                    ..InterestSpec::new(name)
                };
                let found = bench.find(&spec);
                let expected = model.iter().any(|data| data.answers(&spec, bench.now));
                assert_eq!(found.is_some(), expected, "{spec:?}");
                if let Some(wire) = found {
                    let place = model
                        .iter()
                        .position(|data| data.wire == wire && data.answers(&spec, bench.now))
                        .expect("an answer that was put in and matches");
                    let used = model.remove(place);
                    model.push(used);
                }
            }
            Step::Erase { name, depth, limit } => {
                let prefix = name.prefix(*depth).to_name();
                let n_under = model
                    .iter()
                    .filter(|data| data.full_name.starts_with(&prefix))
                    .count();
                assert_eq!(bench.has_below(&prefix), n_under > 0);
                assert_eq!(bench.erase(&prefix, *limit), n_under.min(*limit));
                assert_eq!(bench.has_below(&prefix), n_under > *limit);
                let left: Vec<Vec<u8>> = bench
                    .tables
                    .cs()
                    .iter()
                    .map(|data| data.wire().to_vec())
                    .collect();
                assert!(
                    model.iter().all(
                        |data| left.contains(&data.wire) || data.full_name.starts_with(&prefix)
                    ),
                    "nothing else was erased"
                );
                model.retain(|data| left.contains(&data.wire));
            }
            Step::SetCapacity { max_pkts: new } => {
                max_pkts = *new;
                let capacity = CsCapacity {
                    max_pkts,
                    max_bytes: 1 << 20,
                };
                bench
                    .tables
                    .set_cs_capacity(capacity)
                    .expect("a small table");
            }
            Step::Advance { by_ms } => bench.now = bench.now.plus_ms(*by_ms),
        }
        while model.len() > max_pkts {
            // Used longest ago.
            model.remove(0);
            n_evictions += 1;
        }
        assert_eq!(bench.tables.cs().len(), model.len());
        let mut cached: Vec<_> = bench
            .tables
            .cs()
            .iter()
            .map(|data| data.wire().to_vec())
            .collect();
        let mut expected: Vec<_> = model.iter().map(|data| data.wire.clone()).collect();
        cached.sort();
        expected.sort();
        assert_eq!(cached, expected, "the same were evicted");
        assert_eq!(bench.tables.cs().counters().n_evictions, n_evictions);
    }
    bench.erase(&Name::new(), usize::MAX);
    assert_eq!(
        bench.tables.cs().used_bytes(),
        0,
        "prefixes go with what is below them"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn content_store_agrees_with_a_list_under_any_hash_and_index(
        steps in proptest::collection::vec(any_step(), 1..120)
    ) {
        for hashing in Hashing::ALL {
            let made = Made::by_default(hashing);
            for index in IndexKind::ALL {
                for layout in PitCsLayout::ALL {
                    let made = Made { index, layout, ..made };
                    for max_pkts in [20, 1] {
                        run(made, max_pkts, &steps);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 30 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// More than a search enters at once are there before the first one.
    #[test]
    fn content_store_agrees_with_a_list_after_a_long_time_without_searches(
        mut steps in proptest::collection::vec(any_step(), 1..60),
        n_before in 0_usize..240,
        max_pkts in 1_usize..300,
    ) {
        let component = |digit: usize| Component::generic(["a", "b", "aa"][digit % 3]);
        let before = (0..n_before).map(|n| Step::Data {
            name: (0..5).fold(Name::new(), |name, place| {
                name.with(&component(n / 3_usize.pow(place)))
            }),
            freshness_ms: (n % 40) as u64,
            content: 1,
        });
        steps.splice(0..0, before);
        for hashing in Hashing::ALL {
            run(Made::by_default(hashing), max_pkts, &steps);
        }
    }
}

#[test]
fn data_without_freshness_never_answers_must_be_fresh() {
    let mut bench = Bench::new(Hashing::Keyed, 10, 1 << 20);
    bench.insert(&data_wire(&name("/a/b"), 0, b"x"));
    let exact = InterestSpec::new(name("/a/b"));
    assert!(bench.find(&exact).is_some());
    assert!(bench.find(&exact.clone().must_be_fresh()).is_none());
    assert!(
        bench
            .find(
                &InterestSpec::new(name("/a"))
                    .can_be_prefix()
                    .must_be_fresh()
            )
            .is_none()
    );
}

#[test]
fn freshness_counts_from_the_latest_arrival() {
    let mut bench = Bench::new(Hashing::Keyed, 10, 1 << 20);
    let wire = data_wire(&name("/a"), 100, b"x");
    let fresh = InterestSpec::new(name("/a")).must_be_fresh();
    let start = bench.now;
    bench.insert(&wire);
    bench.now = MonoNs(start.plus_ms(100).0 - 1);
    assert!(bench.find(&fresh).is_some());
    bench.now = start.plus_ms(100);
    assert!(bench.find(&fresh).is_none());
    assert_eq!(bench.insert(&wire), Admission::Refreshed);
    assert!(bench.find(&fresh).is_some());
}

#[test]
fn a_prefix_finds_the_data_that_stays_fresh_longest() {
    let mut bench = Bench::new(Hashing::Keyed, 100, 1 << 20);
    let prefix = InterestSpec::new(name("/a")).can_be_prefix();
    let mut longest = None;
    for (uri, freshness_ms) in [
        ("/a/x", 0),
        ("/a/v=1/seg=0", 50),
        ("/a/v=2/seg=0", 60),
        ("/a/v=1/seg=1", 40),
        ("/a/v=1/seg=0/y", 70),
        ("/a", 65),
    ] {
        let wire = data_wire(&name(uri), freshness_ms, b"x");
        bench.insert(&wire);
        longest = longest.max(Some((freshness_ms, wire)));
        if uri != "/a" {
            assert_eq!(bench.find(&prefix), Some(longest.clone().unwrap().1));
        }
    }
    // A name itself comes before what is below it, unless it is stale.
    let exact = data_wire(&name("/a"), 65, b"x");
    let fresh = prefix.clone().must_be_fresh();
    assert_eq!(bench.find(&fresh), Some(exact));
    bench.now = bench.now.plus_ms(65);
    assert_eq!(bench.find(&fresh), Some(longest.unwrap().1));
    let again = data_wire(&name("/a/v=2/seg=0"), 60, b"x");
    assert_eq!(bench.insert(&again), Admission::Refreshed);
    assert_eq!(bench.find(&fresh), Some(again));
}

#[test]
fn fresh_data_is_found_below_any_number_of_stale_ones() {
    let n_names = if cfg!(miri) { 300 } else { 10_000 };
    let mut bench = Bench::new(Hashing::Keyed, 2 * n_names, 64 << 20);
    let fresh = data_wire(&name("/a/fresh"), 1000, b"x");
    bench.insert(&fresh);
    for n in 0..n_names {
        let freshness_ms = (n % 3) as u64;
        bench.insert(&data_wire(
            &name(&format!("/a/{n}/{n}")),
            freshness_ms,
            b"x",
        ));
    }
    bench.now = bench.now.plus_ms(3);
    let prefix = InterestSpec::new(name("/a"))
        .can_be_prefix()
        .must_be_fresh();
    assert_eq!(bench.find(&prefix), Some(fresh));
    bench.now = bench.now.plus_ms(1000);
    assert_eq!(bench.find(&prefix), None);
}

#[test]
fn prefixes_are_found_at_once_however_many_data_came_unasked() {
    let n_names = if cfg!(miri) { 300 } else { 10_000 };
    let mut bench = Bench::new(Hashing::Keyed, n_names, 64 << 20);
    let prefix = |n: usize| InterestSpec::new(name(&format!("/a/{n}"))).can_be_prefix();
    let wire = |n: usize| data_wire(&name(&format!("/a/{n}/b")), 0, b"x");
    (0..n_names).for_each(|n| assert_eq!(bench.insert(&wire(n)), Admission::Inserted));
    assert!(!bench.has_below(&name("/b")));
    for n in (0..n_names).rev() {
        assert_eq!(bench.find(&prefix(n)), Some(wire(n)));
    }
    for n in n_names..2 * n_names {
        bench.insert(&wire(n));
        assert_eq!(bench.find(&prefix(n)), Some(wire(n)));
        // The last of the searches was for number 0.
        let evicted = 2 * n_names - 1 - n;
        assert_eq!(bench.find(&prefix(evicted)), None);
    }
}

#[test]
fn prefixes_cost_bytes_only_while_they_are_asked_for_and_no_more_for_long_names() {
    let used_bytes = |tail: &str| {
        let mut bench = Bench::new(Hashing::Keyed, 50, 1 << 20);
        let insert = |bench: &mut Bench, n: usize| {
            bench.insert(&data_wire(&name(&format!("/{n:03}{tail}")), 0, b"x"));
            bench.tables.cs().used_bytes()
        };
        let bare_bytes = (0..50).map(|n| insert(&mut bench, n)).last();
        let prefix = InterestSpec::new(name("/042")).can_be_prefix();
        assert!(bench.find(&prefix).is_some());
        let entered_bytes = Some(bench.tables.cs().used_bytes());
        assert!(entered_bytes > bare_bytes);
        for n in 50..100 {
            assert_eq!(Some(insert(&mut bench, n)), entered_bytes);
        }
        assert_eq!((100..150).map(|n| insert(&mut bench, n)).last(), bare_bytes);
        entered_bytes
    };
    // Both buffers are of the same size.
    assert_eq!(used_bytes("/AAAAAAAA"), used_bytes("/A/AA/A/A"));
}

#[test]
fn admission_and_serving_can_be_switched_off() {
    let mut bench = Bench::new(Hashing::Keyed, 10, 1 << 20);
    let (a, b) = (
        data_wire(&name("/a"), 0, b"x"),
        data_wire(&name("/b"), 0, b"x"),
    );
    let (find_a, find_b) = (InterestSpec::new(name("/a")), InterestSpec::new(name("/b")));
    bench.insert(&a);
    bench.tables.cs_mut().set_admits(false);
    assert_eq!(
        bench.insert(&b),
        Admission::NotAdmitted(NotAdmitted::AdmitOff)
    );
    assert!(bench.find(&find_a).is_some());
    assert!(bench.find(&find_b).is_none());
    bench.tables.cs_mut().set_serves(false);
    assert!(bench.find(&find_a).is_none());
    bench.tables.cs_mut().set_serves(true);
    assert!(bench.find(&find_a).is_some());
    let counters = bench.tables.cs().counters();
    assert_eq!(counters.n_not_admitted_off, 1);
    assert_eq!((counters.n_hits, counters.n_misses), (2, 2));
}

#[test]
fn names_too_deep_or_empty_are_not_cached_but_counted() {
    let mut bench = Bench::new(Hashing::Keyed, 10, 1 << 20);
    let deepest = name(&"/a".repeat(MAX_CS_COMPONENTS));
    let too_deep = name(&"/a".repeat(MAX_CS_COMPONENTS + 1));
    assert_eq!(
        bench.insert(&data_wire(&deepest, 0, b"x")),
        Admission::Inserted
    );
    for unsuited in [too_deep, Name::new()] {
        let admission = bench.insert(&data_wire(&unsuited, 0, b"x"));
        assert_eq!(admission, Admission::NotAdmitted(NotAdmitted::NameUnsuited));
    }
    assert_eq!(bench.tables.cs().counters().n_not_admitted_name, 2);
    for n in 1..MAX_CS_COMPONENTS {
        let prefix = InterestSpec::new(name(&"/a".repeat(n))).can_be_prefix();
        assert!(bench.find(&prefix).is_some());
    }
}

#[test]
fn bytes_are_bounded_over_many_names_and_sizes() {
    let max_bytes = 1 << 20;
    let mut bench = Bench::new(Hashing::Keyed, usize::MAX, max_bytes);
    let content = vec![7; 8000];
    let n_names = if cfg!(miri) { 300 } else { 20_000 };
    for n in 0..n_names {
        // Deep and long names of their own, and any size.
        let uri = format!("/{n}/a/b/c/d/e/f/{}", n % 7);
        bench.insert(&data_wire(&name(&uri), 1000, &content[..n * 37 % 8000]));
        assert!(bench.tables.cs().used_bytes() <= max_bytes);
        assert!(bench.tables.memory_bytes() <= max_bytes * 5 / 4 + (64 << 10));
        let digest = InterestSpec::new(full_name(&data_wire(
            &name(&uri),
            1000,
            &content[..n * 37 % 8000],
        )));
        assert!(bench.find(&digest).is_some());
    }
    assert!(bench.tables.cs().len() > 50);
    assert_eq!(bench.tables.cs().counters().n_inserts, n_names as u64);
    assert_eq!(
        bench.tables.cs().counters().n_evictions,
        n_names as u64 - bench.tables.cs().len() as u64
    );
}

#[test]
fn data_beyond_the_capacity_is_not_admitted_but_counted() {
    let mut bench = Bench::new(Hashing::Keyed, 10, 1000);
    let large = data_wire(&name("/a"), 0, &[7; 1000]);
    assert_eq!(
        bench.insert(&large),
        Admission::NotAdmitted(NotAdmitted::TooLarge)
    );
    let small = data_wire(&name("/a"), 0, &[7; 100]);
    assert_eq!(bench.insert(&small), Admission::Inserted);
    let nothing = CsCapacity {
        max_pkts: 10,
        max_bytes: 0,
    };
    bench
        .tables
        .set_cs_capacity(nothing)
        .expect("a small table");
    assert!(bench.tables.cs().is_empty());
    assert_eq!(
        bench.insert(&small),
        Admission::NotAdmitted(NotAdmitted::TooLarge)
    );
    assert_eq!(bench.tables.cs().counters().n_not_admitted_size, 2);
}

#[test]
fn a_full_store_reuses_slots_and_buffers() {
    let mut bench = Bench::new(Hashing::Keyed, 100, 1 << 20);
    let mut insert = |n: usize| {
        bench.insert(&data_wire(
            &name(&format!("/a/b/{}", 10_000 + n)),
            0,
            &[7; 1000],
        ));
        bench.tables.memory_bytes()
    };
    let before_bytes = (0..300).map(&mut insert).last();
    assert!((300..3000).all(|n| Some(insert(n)) == before_bytes));
}

#[test]
fn a_large_data_takes_the_room_of_several_small_ones() {
    let mut bench = Bench::new(Hashing::Keyed, 100, 64 << 10);
    let small = |n: usize| data_wire(&name(&format!("/small/{n}")), 0, &[7; 500]);
    let large = |n: usize| data_wire(&name(&format!("/large/{n}")), 0, &[7; 8000]);
    (0..100).for_each(|n| assert_eq!(bench.insert(&small(n)), Admission::Inserted));
    let n_small = bench.tables.cs().len();
    let small_bytes = bench.tables.cs().used_bytes();
    assert!(n_small < 100, "bytes are what is short");
    for n in 0..20 {
        assert_eq!(bench.insert(&large(n)), Admission::Inserted);
        assert!(bench.tables.cs().used_bytes() <= 64 << 10);
        assert_eq!(
            bench.find(&InterestSpec::new(name(&format!("/large/{n}")))),
            Some(large(n))
        );
    }
    assert!(bench.tables.cs().len() < 10);
    // The slots of those that were evicted are free again, and no buffer is counted twice.
    (0..200).for_each(|n| assert_eq!(bench.insert(&small(n)), Admission::Inserted));
    assert_eq!(bench.tables.cs().len(), n_small);
    assert_eq!(bench.tables.cs().used_bytes(), small_bytes);
    bench.erase(&Name::new(), usize::MAX);
    assert_eq!(bench.tables.cs().used_bytes(), 0);
}

/// By the index on a machine with less than a hundred gibibytes of memory, by the policy on
/// a larger one.
#[test]
#[cfg(not(miri))]
fn a_capacity_whose_index_exceeds_memory_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(Hashing::Keyed, 10, 1 << 20);
    let wire = data_wire(&name("/a/b"), 0, b"x");
    bench.insert(&wire);
    let before = bench.tables.cs().capacity();
    let too_much = CsCapacity {
        max_pkts: usize::MAX,
        max_bytes: usize::MAX,
    };
    match bench.tables.set_cs_capacity(too_much) {
        Err(TablesError::Memory(MemoryError::TooLarge {
            needed_bytes,
            available_bytes,
            ..
        })) => assert!(needed_bytes > available_bytes && needed_bytes >= 32 << 30),
        other => assert!(
            matches!(
                other,
                Err(TablesError::Policy(PolicyError::TooManySlots(n_slots))) if n_slots > 1 << 30
            ),
            "{other:?}"
        ),
    }
    assert_eq!(bench.tables.cs().capacity(), before);
    let prefix = InterestSpec::new(name("/a")).can_be_prefix();
    assert_eq!(bench.find(&prefix), Some(wire));
}
