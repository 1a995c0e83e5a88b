//! The FIB against a list searched from end to end.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use support::{Hashing, Layout, name};
use tachonym_memory::PagePreference;
use tachonym_packet::{Component, FaceId, Name};
use tachonym_tables::{
    Fib, FibConfig, FibEngine, FibError, FibFetch, MAX_NEXT_HOPS, MAX_PREFIX_COMPONENTS, NextHop,
    NextHops, NextHopsError,
};

fn fib(hashing: Hashing, layout: Layout, max_entries: usize) -> Fib {
    let config = FibConfig {
        pages: PagePreference::Base,
        engine: layout.engine,
        matching: layout.matching,
        level_pulling: layout.level_pulling,
        ..FibConfig::with_max_entries(max_entries)
    };
    Fib::new(config, hashing).expect("a small FIB")
}

fn hop(face: u64, cost: u64) -> NextHop {
    NextHop::new(FaceId(face), cost)
}

/// Cost and distance.
type Way = (u64, u8);

fn inherited(face: u64, (cost, distance): Way) -> NextHop {
    NextHop::inherited(FaceId(face), cost, distance)
}

fn any_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("aa")], 0..5).prop_map(
        |components| {
            components.iter().fold(Name::new(), |name, component| {
                name.with(&Component::generic(component))
            })
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Insert { name: Name, hops: Vec<(u64, Way)> },
    Remove { name: Name },
    AddNextHop { name: Name, face: u64, way: Way },
    RemoveNextHop { name: Name, face: u64 },
    RemoveFace { face: u64 },
    Sweep,
    PullLevels,
}

fn any_step() -> impl Strategy<Value = Step> {
    let way = || (0_u64..3, 0_u8..3);
    let hops = proptest::collection::vec((0_u64..6, way()), 1..5);
    prop_oneof![
        2 => (any_name(), hops).prop_map(|(name, hops)| Step::Insert { name, hops }),
        1 => any_name().prop_map(|name| Step::Remove { name }),
        4 => (any_name(), 0_u64..6, way())
            .prop_map(|(name, face, way)| Step::AddNextHop { name, face, way }),
        2 => (any_name(), 0_u64..6).prop_map(|(name, face)| Step::RemoveNextHop { name, face }),
        1 => (0_u64..6).prop_map(|face| Step::RemoveFace { face }),
        1 => Just(Step::Sweep),
        1 => Just(Step::PullLevels),
    ]
}

/// Cost and distance by face, by name.
type Model = BTreeMap<Name, BTreeMap<u64, Way>>;

fn sorted(hops: &BTreeMap<u64, Way>) -> Vec<NextHop> {
    let mut sorted: Vec<_> = hops.iter().map(|(&face, &way)| (way, face)).collect();
    sorted.sort_unstable();
    let hops = sorted.into_iter();
    hops.map(|(way, face)| inherited(face, way)).collect()
}

fn run(hashing: Hashing, layout: Layout, steps: &[Step], probes: &[Name]) {
    let mut fib = fib(hashing, layout, 1000);
    let mut reader = fib.reader();
    let mut model = Model::new();
    for step in steps {
        match step {
            Step::Insert { name, hops } => {
                let next_hops = NextHops::new(hops.iter().map(|&(f, w)| inherited(f, w)).collect());
                fib.insert(name.view(), &next_hops.unwrap()).unwrap();
                let mut expected = BTreeMap::<u64, Way>::new();
                for &(face, way) in hops {
                    expected
                        .entry(face)
                        .and_modify(|w| *w = way.min(*w))
                        .or_insert(way);
                }
                model.insert(name.clone(), expected);
            }
            Step::Remove { name } => {
                let removed = fib.remove(name.view());
                assert_eq!(removed, model.remove(name).is_some());
            }
            Step::AddNextHop { name, face, way } => {
                fib.add_next_hop(name.view(), inherited(*face, *way))
                    .unwrap();
                model.entry(name.clone()).or_default().insert(*face, *way);
            }
            Step::RemoveNextHop { name, face } => {
                let removed = fib.remove_next_hop(name.view(), FaceId(*face));
                let expected = model.get_mut(name).and_then(|hops| hops.remove(face));
                assert_eq!(removed, expected.is_some());
            }
            Step::RemoveFace { face } => {
                let n_changed = model
                    .values_mut()
                    .filter_map(|hops| hops.remove(face))
                    .count();
                let mut n_removed = 0;
                loop {
                    let unrouted = fib.remove_face_from_some(FaceId(*face), 2);
                    n_removed += unrouted.n_prefixes;
                    if unrouted.n_sets < 2 {
                        break;
                    }
                }
                assert_eq!(n_removed, n_changed);
                assert_eq!(fib.remove_face(FaceId(*face)), 0);
            }
            Step::Sweep => {
                fib.sweep(3);
            }
            Step::PullLevels => {
                let n_pulled = fib.pull_levels();
                assert!(n_pulled == 0 || layout.level_pulling > 0);
            }
        }
        model.retain(|_, hops| !hops.is_empty());
        assert_eq!(fib.len(), model.len());
        let mut listed: Vec<_> = fib
            .iter()
            .map(|entry| (entry.name().to_name(), entry.next_hops().to_vec()))
            .collect();
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        let expected: Vec<_> = model
            .iter()
            .map(|(name, hops)| (name.clone(), sorted(hops)))
            .collect();
        assert_eq!(listed, expected);
        let view = reader.pin();
        let hashes: Vec<_> = probes.iter().map(|p| hashing.hashes(p.view())).collect();
        let queries: Vec<_> = probes
            .iter()
            .zip(&hashes)
            .map(|(probe, hashes)| (probe.view(), hashes.as_slice()))
            .collect();
        // In the steps of a burst, too.
        for (_, hashes) in &queries {
            view.prefetch_buckets(hashes);
        }
        let promised: Vec<_> = queries
            .iter()
            .map(|(_, hashes)| view.probe(hashes))
            .collect();
        for ((name, _), &promised) in queries.iter().zip(&promised) {
            view.prefetch_node(*name, promised);
        }
        for ((probe, &(name, hashes)), promised) in probes.iter().zip(&queries).zip(promised) {
            let in_burst = view.confirm(name, hashes, promised);
            let expected = (0..=probe.len()).rev().find_map(|n| {
                let prefix = probe.prefix(n).to_name();
                model.get(&prefix).map(|hops| (prefix, sorted(hops)))
            });
            for found in [view.find_longest(name, hashes), in_burst] {
                let found = found.map(|found| {
                    let hops: Vec<_> = found.next_hops().iter().collect();
                    (found.prefix().to_name(), hops)
                });
                assert_eq!(found, expected);
            }
            let exact = model.get(probe).map(sorted).unwrap_or_default();
            assert_eq!(fib.next_hops(name), exact);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 50 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn fib_agrees_with_a_map_under_any_hash(
        steps in proptest::collection::vec(any_step(), 1..60),
        probes in proptest::collection::vec(any_name(), 1..10),
    ) {
        for layout in Layout::all() {
            for hashing in Hashing::ALL {
                run(hashing, layout, &steps, &probes);
            }
        }
    }
}

#[test]
fn next_hops_are_sorted_by_cost_distance_and_face() {
    let hops = NextHops::new(vec![
        inherited(1, (1, 255)),
        inherited(2, (1, 3)),
        hop(9, 1),
        hop(3, 5),
        hop(8, 1),
        inherited(4, (0, 7)),
        hop(3, 0),
    ]);
    let sorted = [
        hop(3, 0),
        inherited(4, (0, 7)),
        hop(8, 1),
        hop(9, 1),
        inherited(2, (1, 3)),
        inherited(1, (1, 255)),
    ];
    assert_eq!(&*hops.unwrap(), &sorted);
}

#[test]
fn a_next_hop_gives_back_what_it_was_made_of() {
    for face in [0, 256, (1 << 56) - 2] {
        for cost in [0, u64::MAX] {
            for distance in [0, 1, 255] {
                let hop = NextHop::inherited(FaceId(face), cost, distance);
                let parts = (hop.face(), hop.cost(), hop.distance());
                assert_eq!(parts, (FaceId(face), cost, distance));
            }
        }
    }
    // A number that no face has does not become that of another.
    for face in [1 << 56, (1 << 56) + 256, u64::MAX] {
        assert_eq!(NextHop::new(FaceId(face), 0).face(), FaceId((1 << 56) - 1));
        assert_eq!(NextHop::new(FaceId(face), 0).distance(), 0);
    }
}

#[test]
fn limits_are_refusals_that_change_nothing() {
    for layout in Layout::all() {
        limits_are_refusals(layout);
    }
}

fn limits_are_refusals(layout: Layout) {
    let mut fib = fib(Hashing::Keyed, layout, 2);
    let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
    let mut insert = |uri: &str| {
        let name = name(uri);
        fib.insert(name.view(), &hops)
    };
    assert_eq!(insert(&"/a".repeat(MAX_PREFIX_COMPONENTS)), Ok(()));
    assert_eq!(
        insert(&"/a".repeat(MAX_PREFIX_COMPONENTS + 1)),
        Err(FibError::NameTooLong)
    );
    assert_eq!(insert("/b"), Ok(()));
    assert_eq!(insert("/c"), Err(FibError::Full));
    assert_eq!(insert("/b"), Ok(()));
    assert_eq!(fib.len(), 2);
    assert_eq!(NextHops::new(vec![]), Err(NextHopsError::NoNextHop));
    let many = (0..=MAX_NEXT_HOPS as u64)
        .map(|face| hop(face, 1))
        .collect();
    assert_eq!(NextHops::new(many), Err(NextHopsError::TooManyNextHops));
    // A name much deeper than any entry still finds its prefix.
    let deep = name(&"/a".repeat(500));
    let mut reader = fib.reader();
    let view = reader.pin();
    let hashes = Hashing::Keyed.hashes(deep.view());
    let found = view.find_longest(deep.view(), &hashes).unwrap();
    assert_eq!(found.n_components(), MAX_PREFIX_COMPONENTS);
}

#[test]
fn a_walk_in_slices_meets_what_is_there_throughout_once() {
    let mut fib = fib(Hashing::Keyed, Layout::default(), 1000);
    let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
    let names: Vec<Name> = (0..1000).map(|i| name(&format!("/r/{i}"))).collect();
    for name in &names {
        fib.insert(name.view(), &hops).unwrap();
    }
    let remove = |fib: &mut Fib, name: &Name| assert!(fib.remove(name.view()));
    // Gaps, one of them longer than a slice.
    names[..300].iter().for_each(|name| remove(&mut fib, name));
    let mut met = Vec::new();
    let (mut from, mut n_slices) = (Some(0), 0);
    while let Some(place) = from {
        let (entries, next) = fib.slice(place, 64);
        let before = met.len();
        met.extend(entries.iter().map(|entry| entry.name().to_name()));
        assert!(met.len() - before <= 64);
        from = next;
        // Meanwhile some go, in front of the walk and behind it.
        remove(&mut fib, &names[300 + n_slices]);
        remove(&mut fib, &names[999 - n_slices]);
        n_slices += 1;
    }
    assert_eq!(n_slices, 1000_usize.div_ceil(64));
    let unique: std::collections::BTreeSet<_> = met.iter().collect();
    assert_eq!(unique.len(), met.len());
    assert!(
        names[300 + n_slices..1000 - n_slices]
            .iter()
            .all(|name| unique.contains(name))
    );
    assert!(names[..300].iter().all(|name| !unique.contains(name)));
    // Beyond the end there is nothing.
    let (entries, next) = fib.slice(u64::MAX, usize::MAX);
    assert!(entries.is_empty() && next.is_none());
}

#[test]
fn prefixes_whose_hashes_all_collide_are_found_until_there_are_too_many() {
    for layout in Layout::all() {
        colliding_prefixes_are_found(layout);
    }
}

fn colliding_prefixes_are_found(layout: Layout) {
    let mut fib = fib(Hashing::Constant, layout, 10_000);
    let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
    let names: Vec<Name> = (0..2000).map(|i| name(&format!("/r/{i}"))).collect();
    let n_taken = names
        .iter()
        .take_while(|name| fib.insert(name.view(), &hops).is_ok())
        .count();
    assert!((500..2000).contains(&n_taken), "{n_taken}");
    let refused = fib.insert(names[n_taken].view(), &hops);
    assert_eq!(refused, Err(FibError::TooManyCollisions));
    assert_eq!(fib.len(), n_taken);
    let mut reader = fib.reader();
    for (idx, name) in names.iter().enumerate() {
        let hashes = Hashing::Constant.hashes(name.view());
        let view = reader.pin();
        assert_eq!(
            view.find_longest(name.view(), &hashes).is_some(),
            idx < n_taken
        );
    }
    for name in &names[..n_taken] {
        assert!(fib.remove(name.view()));
    }
    assert!(fib.is_empty() && fib.iter().next().is_none());
}

#[test]
fn a_fib_grows_while_it_is_read_and_uses_memory_again() {
    for layout in Layout::all() {
        a_fib_grows_and_uses_memory_again(layout);
    }
}

fn a_fib_grows_and_uses_memory_again(layout: Layout) {
    let mut fib = fib(Hashing::Keyed, layout, 100_000);
    let mut reader = fib.reader();
    let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
    let n_names = if cfg!(miri) { 300 } else { 6000 };
    let names: Vec<Name> = (0..n_names).map(|i| name(&format!("/r/{i}/x"))).collect();
    let mut bytes_after_first = 0;
    for round in 0..4 {
        for name in &names {
            fib.insert(name.view(), &hops).unwrap();
        }
        for name in &names {
            let hashes = Hashing::Keyed.hashes(name.view());
            let view = reader.pin();
            let found = view.find_longest(name.view(), &hashes).expect("inserted");
            assert_eq!(found.prefix().to_name(), *name);
        }
        for name in &names {
            assert!(fib.remove(name.view()));
        }
        if round == 0 {
            bytes_after_first = fib.memory_bytes();
        }
    }
    // What waits for readers is bounded.
    assert!(fib.memory_bytes() < bytes_after_first * 11 / 10 + (1 << 16));
}

/// Names of three components, each of which has a marker of two.
#[test]
fn a_route_above_many_markers_changes_a_word_for_each_partition_of_them() {
    const N_MARKERS: u64 = if cfg!(miri) { 200 } else { 10_000 };
    let layout = Layout {
        engine: FibEngine::BinarySearch,
        ..Layout::default()
    };
    for is_sorted in [true, false] {
        let mut fib = fib(Hashing::Keyed, layout, 100_000);
        let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
        for number in 0..N_MARKERS {
            let number = if is_sorted {
                number
            } else {
                number * 7919 % N_MARKERS
            };
            let prefix = name(&format!("/r/{number:05}/x"));
            fib.insert(prefix.view(), &hops).unwrap();
        }
        let mut reader = fib.reader();
        let below: Vec<Name> = (0..N_MARKERS)
            .map(|number| name(&format!("/r/{number:05}/y")))
            .collect();
        let mut is_found_below = || {
            let view = reader.pin();
            let n_found = below
                .iter()
                .filter(|name| {
                    let hashes = Hashing::Keyed.hashes(name.view());
                    view.find_longest(name.view(), &hashes).is_some()
                })
                .count() as u64;
            assert!(n_found == 0 || n_found == N_MARKERS, "{n_found}");
            n_found > 0
        };
        for prefix in [name("/"), name("/r")] {
            assert!(!is_found_below());
            let before = fib.n_inheritance_stores();
            fib.insert(prefix.view(), &hops).unwrap();
            assert!(fib.n_inheritance_stores() - before <= N_MARKERS / 32 + 4);
            assert!(is_found_below());
            let before = fib.n_inheritance_stores();
            assert!(fib.remove(prefix.view()));
            // And may join partitions at both ends.
            assert!(fib.n_inheritance_stores() - before <= N_MARKERS / 32 + 100);
        }
    }
}

/// Prefixes of many lengths, most of them longer and longer, so that the middle length of
/// a two-stage search changes as they come.
#[test]
fn searches_are_right_while_the_usual_length_of_prefixes_changes() {
    let uri = |number: u64, n_components: u64| {
        let mut uri = String::new();
        for idx in 0..n_components {
            uri.push_str(&format!(
                "/{}",
                number.wrapping_mul(idx * 7 + 13) % (idx + 2)
            ));
        }
        name(&format!("{uri}/{number}"))
    };
    let n_prefixes = if cfg!(miri) { 150 } else { 3000 };
    for layout in Layout::all() {
        let mut fib = fib(Hashing::Keyed, layout, 100_000);
        let mut reader = fib.reader();
        let mut model = BTreeMap::new();
        let names: Vec<Name> = (0..n_prefixes)
            .map(|number| uri(number, 1 + number * 40 / n_prefixes))
            .collect();
        for (idx, name) in names.iter().enumerate() {
            // And some of what is above.
            for prefix in [name.clone(), name.prefix(idx % 7).to_name()] {
                let hops = NextHops::new(vec![hop(idx as u64, 1)]).unwrap();
                fib.insert(prefix.view(), &hops).unwrap();
                model.insert(prefix, idx as u64);
            }
            if idx % 3 == 0 {
                let gone = &names[idx / 2];
                assert_eq!(fib.remove(gone.view()), model.remove(gone).is_some());
            }
            if idx % 16 != 0 {
                continue;
            }
            for name in names[..=idx].iter().step_by(1 + idx / 16) {
                let longer = name.clone().with(&Component::generic("x"));
                let hashes = Hashing::Keyed.hashes(longer.view());
                let view = reader.pin();
                let found = view.find_longest(longer.view(), &hashes).map(|found| {
                    let face = found.next_hops().iter().next().expect("never empty").face();
                    (found.prefix().to_name(), face.0)
                });
                let expected = (0..=longer.len()).rev().find_map(|n| {
                    let prefix = longer.prefix(n).to_name();
                    model.get(&prefix).map(|&face| (prefix, face))
                });
                assert_eq!(found, expected, "{layout:?}");
            }
        }
        for name in model.keys() {
            assert!(fib.remove(name.view()));
        }
        assert!(fib.is_empty());
    }
}

/// Prefixes below `/hub`, some of which are above others.
#[test]
fn prefixes_that_many_components_follow_are_pulled_while_they_do() {
    const MIN_CHILDREN: u64 = 8;
    for engine in Layout::all().map(|layout| layout.engine) {
        let layout = Layout {
            engine,
            level_pulling: MIN_CHILDREN as u32,
            ..Layout::default()
        };
        let mut fib = fib(Hashing::Keyed, layout, 1000);
        let mut reader = fib.reader();
        let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
        let insert = |fib: &mut Fib, uri: String| {
            let prefix = name(&uri);
            fib.insert(prefix.view(), &hops).unwrap();
        };
        insert(&mut fib, "/hub".to_owned());
        for child in 0..=MIN_CHILDREN {
            assert_eq!(fib.pull_levels(), 0);
            insert(&mut fib, format!("/hub/{child}/x/y/z"));
            // As many below, but behind one component.
            insert(&mut fib, format!("/other/one/{child}"));
            insert(&mut fib, format!("/hub/{child}"));
        }
        // Both have nine children, but nothing more is below those of the second.
        assert_eq!(fib.pull_levels(), 2, "{engine:?}");
        let mut found = |uri: &str| {
            let view = reader.pin();
            let longer = name(uri);
            let hashes = Hashing::Keyed.hashes(longer.view());
            let found = view.find_longest(longer.view(), &hashes)?;
            Some(found.n_components())
        };
        assert_eq!(found("/hub/3/x/y/z/1"), Some(5));
        assert_eq!(found("/hub/3/x/y"), Some(2));
        assert_eq!(found("/hub/3"), Some(2));
        assert_eq!(found("/hub"), Some(1));
        assert_eq!(found("/hub/new/x/y/z"), Some(1));
        assert_eq!(found("/other/one/3/4/5/6"), Some(3));
        assert_eq!(found("/other/one/new"), None);
        // What stands there alone is the answer at once.
        let leaf = Hashing::Keyed.hashes(name("/other/one/3/4/5/6").view());
        assert_eq!(fib.reader().pin().n_lookups(&leaf), 1, "{engine:?}");
        // What comes and goes below a pulled prefix is found like the rest.
        insert(&mut fib, "/hub/new/x/y".to_owned());
        assert_eq!(found("/hub/new/x/y/z"), Some(4));
        assert!(fib.remove(name("/hub/new/x/y").view()));
        assert!(fib.remove(name("/hub/3").view()));
        assert_eq!(found("/hub/3/x/y"), Some(1));
        assert!(fib.remove(name("/hub/3/x/y/z").view()));
        assert_eq!(fib.pull_levels(), 1);
        assert_eq!(found("/hub/4/x/y/z/1"), Some(5));
        for prefix in fib.iter().collect::<Vec<_>>() {
            assert!(fib.remove(prefix.name()));
        }
        assert_eq!((fib.len(), fib.pull_levels()), (0, 0));
    }
}

/// Reads in a row, and all, of a search for a name of seven components whose only prefix
/// has `length`; nothing fetched ahead, and then all buckets.
fn reads_in_a_row(engine: FibEngine, length: usize) -> [(usize, usize); 2] {
    reads_beside(engine, length, "/x/y/z/w/v/6")
}

/// As [`reads_in_a_row`], beside a certain prefix of six components.
fn reads_beside(engine: FibEngine, length: usize, six: &str) -> [(usize, usize); 2] {
    let layout = Layout {
        engine,
        ..Layout::default()
    };
    let mut fib = fib(Hashing::Keyed, layout, 100);
    // Lengths that some prefix has.
    for other in ["/x/2", "/x/y/3", "/x/y/z/4", "/x/y/z/w/5", six] {
        fib.add_next_hop(name(other).view(), hop(1, 1)).unwrap();
    }
    let long = name("/a/b/c/d/e/f/g");
    let prefix = long.view().prefix(length);
    fib.add_next_hop(prefix, hop(1, 1)).unwrap();
    let mut reader = fib.reader();
    let view = reader.pin();
    let hashes = Hashing::Keyed.hashes(long.view());
    [FibFetch::Needed, FibFetch::Buckets].map(|fetch| {
        let trace = view.trace(long.view(), &hashes, fetch);
        assert!(trace.is_right);
        assert_eq!(trace.n_lookups, view.n_lookups(&hashes));
        (trace.n_dependent, trace.n_reads)
    })
}

#[test]
fn dependent_reads_are_those_of_the_published_engines() {
    // Takemasa 2019, section 4.1.2: bucket and name.
    for length in 2..=6 {
        let n_buckets = 6 - length + 1;
        let found = reads_in_a_row(FibEngine::LongestFirst, length);
        assert_eq!(found, [(2, n_buckets + 1); 2], "{length}");
    }
    let two_stage = |length| reads_in_a_row(FibEngine::TwoStage { first: 4 }, length);
    // The marker's bucket and node, which is the longer prefix's, and the bucket of that:
    // its name has arrived.
    assert_eq!(two_stage(6), [(3, 3), (2, 3)]);
    // The marker's name is another prefix's.
    let beside = reads_beside(FibEngine::TwoStage { first: 4 }, 6, "/a/b/c/d/other/6");
    assert_eq!(beside, [(4, 4), (3, 4)]);
    assert_eq!(two_stage(4), [(2, 2); 2]);
    assert_eq!(two_stage(3), [(3, 3), (2, 3)]);
    // Four and six, and the name; all of these buckets may be fetched ahead.
    let binary = reads_in_a_row(FibEngine::BinarySearch, 6);
    assert_eq!(binary, [(3, 3), (2, 3)]);
    let shortest = reads_in_a_row(FibEngine::ShortestFirst, 6);
    assert_eq!(shortest, [(2, 6); 2]);
}

#[test]
fn no_more_prefixes_are_pulled_than_a_cache_holds() {
    const N_HUBS: usize = 4100;
    let layout = Layout {
        level_pulling: 1,
        ..Layout::default()
    };
    let mut fib = fib(Hashing::Keyed, layout, 4 * N_HUBS);
    let hops = NextHops::new(vec![hop(1, 1)]).unwrap();
    for hub in 0..if cfg!(miri) { 8 } else { N_HUBS } {
        for child in 0..2 + usize::from(hub == 4) {
            let prefix = name(&format!("/{hub}/{child}"));
            fib.insert(prefix.view(), &hops).unwrap();
        }
    }
    let n_hubs = fib.pull_levels();
    assert_eq!(n_hubs, if cfg!(miri) { 8 } else { 4096 });
}
