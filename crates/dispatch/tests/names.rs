//! Whatever Data answers an Interest finds it, and whatever is cached is found: with any
//! number of workers the same as with one.

use std::num::{NonZeroU8, NonZeroU32};

use proptest::prelude::*;
use tachonym_dispatch::{BucketMap, DispatchBy, Key, NameShape, Reach, WorkerId};
use tachonym_packet::{Component, HashKey, Name, NameHash, NameHashes};

const DIGESTS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

fn component() -> impl Strategy<Value = Component> {
    prop_oneof![
        4 => "[ab]".prop_map(Component::generic),
        2 => (0_u64..40).prop_map(Component::segment),
        1 => Just("/50=abc".parse::<Name>().unwrap().pop().unwrap()),
        1 => (0_usize..2).prop_map(|n| Component::implicit_digest(&DIGESTS[n])),
        // Ends in what looks like an implicit digest.
        1 => Just(Component::generic([[1_u8, 32].as_slice(), &[7; 32]].concat())),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    prop::collection::vec(component(), 0..6).prop_map(|components| {
        let mut name = Name::new();
        for component in &components {
            name.push(component);
        }
        name
    })
}

fn rule() -> impl Strategy<Value = DispatchBy> {
    prop_oneof![
        (1_u8..5).prop_map(|n| DispatchBy::Prefix {
            n_components: NonZeroU8::new(n).expect("above 0")
        }),
        Just(DispatchBy::Name),
        (1_u32..9).prop_map(|n| DispatchBy::Batch {
            n_segments: NonZeroU32::new(n).expect("above 0")
        }),
    ]
}

fn hashes(name: &Name) -> Vec<NameHash> {
    let mut hashes = NameHashes::new();
    let span = hashes.push_name(&HashKey::from_u64s(1, 2), name.view());
    hashes.slice(span).to_vec()
}

fn key(by: DispatchBy, name: &Name) -> Key {
    by.key(name.view(), &hashes(name))
}

/// Whether a Data whose digest is `DIGESTS[digest]` may answer an Interest.
fn matches(interest: &Name, can_be_prefix: bool, data: &Name, digest: usize) -> bool {
    let full = data
        .clone()
        .with(&Component::implicit_digest(&DIGESTS[digest]));
    if can_be_prefix {
        full.starts_with(interest.view())
    } else {
        interest == data || *interest == full
    }
}

/// The service of a name, as `[("/a", 1)]` in a configuration would give it.
fn service(name: &Name) -> usize {
    usize::from(name.get(0).is_some_and(|first| first.value() == b"a"))
}

const N_SERVICE_COMPONENTS: usize = 1;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn data_and_interests_that_match_meet(
        by in rule(),
        data in name(),
        n_of_data in 0_usize..=8,
        by_digest: bool,
        digest in 0_usize..2,
        other in name(),
        can_be_prefix: bool,
        n_workers in 1_u16..9,
    ) {
        // Interests that match more often than by chance.
        let interest = if n_of_data == 8 {
            other
        } else {
            let mut name = data.clone();
            if by_digest {
                name.push(&Component::implicit_digest(&DIGESTS[digest]));
            }
            name.truncate(n_of_data.min(name.len()));
            name
        };
        if !matches(&interest, can_be_prefix, &data, digest) {
            return Ok(());
        }
        let workers: Vec<_> = (0..n_workers).map(WorkerId).collect();
        // A map for each service, as a scheduler has: here they differ by their order.
        let reversed: Vec<_> = workers.iter().rev().copied().collect();
        let maps = [BucketMap::new(7, &workers).unwrap(), BucketMap::new(7, &reversed).unwrap()];
        let home = |name: &Name| maps[service(name)].home(key(by, name));
        let shape = NameShape::of(interest.view());
        let reach = by.interest_reach(shape.n_components, can_be_prefix, N_SERVICE_COMPONENTS);
        if reach == Reach::One {
            // The Interest finds the Data in the only store that it asks, and the Data the
            // Interest in the only PIT that it must.
            prop_assert_eq!(home(&interest), home(&data));
        } else {
            let shape = NameShape::of(data.view());
            let met = by
                .waiting_lengths(shape.n_components, N_SERVICE_COMPONENTS)
                .any(|length| home(&data.prefix(length).to_name()) == home(&interest));
            prop_assert!(met || home(&data) == home(&interest));
        }
    }

    #[test]
    fn segments_of_a_batch_stay_together(object in name(), n_segments in 1_u32..50, first: u64) {
        let by = DispatchBy::Batch { n_segments: NonZeroU32::new(n_segments).expect("above 0") };
        let segments = u64::from(n_segments);
        let first = first / segments * segments;
        let of = |number: u64| key(by, &object.clone().with(&Component::segment(number)));
        for number in first..=first.saturating_add(segments - 1) {
            prop_assert_eq!(of(number), of(first));
        }
        if let Some(beyond) = first.checked_add(segments) {
            prop_assert_ne!(of(beyond), of(first));
        }
        prop_assert_ne!(of(first), key(by, &object));
    }
}

#[test]
fn names_that_are_long_enough_go_by_their_first_components() {
    let by = DispatchBy::Prefix {
        n_components: NonZeroU8::new(2).expect("above 0"),
    };
    let of = |uri: &str| key(by, &uri.parse::<Name>().expect("a name"));
    assert_eq!(of("/a/b/c"), of("/a/b"));
    assert_ne!(of("/a/b"), of("/a/c"));
    assert_ne!(of("/a"), of("/a/c"));
    assert_eq!(by.interest_reach(1, true, 0), Reach::All);
    assert_eq!(by.interest_reach(1, false, 0), Reach::One);
    assert_eq!(by.interest_reach(2, true, 0), Reach::One);
    // Below a prefix of three components, services differ.
    assert_eq!(by.interest_reach(2, true, 3), Reach::All);
    assert_eq!(by.waiting_lengths(9, 0), 0..2);
    assert_eq!(by.waiting_lengths(1, 0), 0..1);
    assert_eq!(by.waiting_lengths(9, 3), 0..3);
    assert_eq!(DispatchBy::Name.waiting_lengths(3, 0), 0..3);
    assert_eq!(DispatchBy::Name.interest_reach(50, true, 0), Reach::All);
}

#[test]
fn batches_of_an_object_spread_evenly() {
    let by = DispatchBy::Batch {
        n_segments: NonZeroU32::new(10).expect("above 0"),
    };
    let workers: Vec<_> = (0..8).map(WorkerId).collect();
    let map = BucketMap::new(12, &workers).expect("a sound map");
    let object: Name = "/video/one".parse().expect("a name");
    let mut counts = [0_u32; 8];
    for batch in 0..80_000 {
        let name = object.clone().with(&Component::segment(batch * 10 + 3));
        counts[map.home(key(by, &name)).idx()] += 1;
    }
    // 10 000 each; six standard deviations of a fair draw are 561.
    assert!(
        counts.iter().all(|n| (9_400..=10_600).contains(n)),
        "{counts:?}"
    );
}
