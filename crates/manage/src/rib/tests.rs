//! The RIB against the rule, computed from scratch.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tachonym_packet::{FaceId, MonoNs, Name};
use tachonym_protocol::route_flags::{CAPTURE, CHILD_INHERIT};

use super::*;

/// Cost and distance of each next hop.
type Fib = BTreeMap<Name, BTreeMap<FaceId, (u64, u8)>>;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn route(face: u64, cost: u64, flags: u64) -> RibRoute {
    RibRoute {
        face: FaceId(face),
        origin: 0,
        cost,
        flags,
        expires: MonoNs::NEVER,
    }
}

/// The FIB as the rule gives it, without any of the RIB's bookkeeping.
fn fib_by_the_rule(routes: &BTreeMap<Name, Vec<RibRoute>>) -> Fib {
    let mut fib = Fib::new();
    for (name, own) in routes.iter().filter(|(_, own)| !own.is_empty()) {
        let mut hops = BTreeMap::new();
        for route in own {
            let hop = hops.entry(route.face).or_insert((route.cost, 0));
            hop.0 = route.cost.min(hop.0);
        }
        let captures = |routes: &[RibRoute]| routes.iter().any(|r| r.flags & CAPTURE != 0);
        let mut is_open = !captures(own);
        for n_components in (0..name.len()).rev() {
            let ancestor = name.prefix(n_components).to_name();
            let Some(above) = routes.get(&ancestor).filter(|_| is_open) else {
                continue;
            };
            let mut level = BTreeMap::new();
            for route in above.iter().filter(|r| r.flags & CHILD_INHERIT != 0) {
                let cost = level.entry(route.face).or_insert(route.cost);
                *cost = route.cost.min(*cost);
            }
            let distance = u8::try_from(name.len() - n_components).unwrap();
            for (face, cost) in level {
                hops.entry(face).or_insert((cost, distance));
            }
            is_open = !captures(above);
        }
        fib.insert(name.clone(), hops);
    }
    fib
}

fn n_differences(old: &Fib, new: &Fib) -> usize {
    let flat = |fib: &Fib| -> BTreeMap<(Name, FaceId), (u64, u8)> {
        fib.iter()
            .flat_map(|(name, hops)| hops.iter().map(|(&face, &hop)| ((name.clone(), face), hop)))
            .collect()
    };
    let (old, new) = (flat(old), flat(new));
    let changed = new.iter().filter(|&(key, hop)| old.get(key) != Some(hop));
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    changed.count() + gone.count()
}

fn apply(fib: &mut Fib, changes: &[FibChange]) {
    for change in changes {
        match change {
            FibChange::Add {
                name,
                face,
                cost,
                distance,
            } => {
                let hops = fib.entry(name.clone()).or_default();
                hops.insert(*face, (*cost, *distance));
            }
            FibChange::Remove { name, face } => {
                let hops = fib.get_mut(name).expect("only what is there is removed");
                hops.remove(face).expect("only what is there is removed");
                if hops.is_empty() {
                    fib.remove(name);
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Name, RibRoute),
    Remove(Name, FaceId, u64),
    RemoveFace(FaceId),
    Expire(MonoNs),
}

fn prefix() -> impl Strategy<Value = Name> {
    prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..5)
        .prop_map(|components| components.into_iter().fold(Name::new(), Name::with))
}

fn op() -> impl Strategy<Value = Op> {
    let face = || (1u64..4).prop_map(FaceId);
    let insert = (prefix(), face(), 0u64..2, 0u64..3, 0u64..4, 0u64..8).prop_map(
        |(name, face, origin, cost, flags, expires)| {
            let expires = match expires {
                0..4 => MonoNs::NEVER,
                n => MonoNs(n),
            };
            let route = RibRoute {
                face,
                origin,
                cost,
                flags,
                expires,
            };
            Op::Insert(name, route)
        },
    );
    prop_oneof![
        8 => insert,
        4 => (prefix(), face(), 0u64..2).prop_map(|(name, face, origin)| Op::Remove(name, face, origin)),
        1 => face().prop_map(Op::RemoveFace),
        1 => (0u64..8).prop_map(|at| Op::Expire(MonoNs(at))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// After each step the FIB is what the rule says, and the changes that led
    /// there are as few as can be.
    #[test]
    fn fib_follows_the_rule_by_the_fewest_changes(ops in prop::collection::vec(op(), 1..60)) {
        let mut rib = Rib::new(RibLimits::default());
        let mut model = BTreeMap::<Name, Vec<RibRoute>>::new();
        let mut fib = Fib::new();
        for op in ops {
            let mut changes = Vec::new();
            match op {
                Op::Insert(name, route) => {
                    let routes = model.entry(name.clone()).or_default();
                    let old = routes.iter_mut().find(|r| (r.face, r.origin) == (route.face, route.origin));
                    let outcome = match old {
                        Some(old) => { *old = route; RouteInserted::Replaced }
                        None => { routes.push(route); RouteInserted::Added }
                    };
                    prop_assert_eq!(rib.insert(name.view(), route, &mut changes), Ok(outcome));
                }
                Op::Remove(name, face, origin) => {
                    let routes = model.entry(name.clone()).or_default();
                    let n = routes.len();
                    routes.retain(|r| (r.face, r.origin) != (face, origin));
                    let was_there = routes.len() < n;
                    prop_assert_eq!(rib.remove(name.view(), face, origin, &mut changes), was_there);
                }
                Op::RemoveFace(face) => {
                    let mut n = 0;
                    for routes in model.values_mut() {
                        n += routes.iter().filter(|r| r.face == face).count();
                        routes.retain(|r| r.face != face);
                    }
                    prop_assert_eq!(rib.remove_face(face, &mut changes), n);
                }
                Op::Expire(now) => {
                    let mut n = 0;
                    for routes in model.values_mut() {
                        n += routes.iter().filter(|r| r.expires <= now).count();
                        routes.retain(|r| r.expires > now);
                    }
                    prop_assert_eq!(rib.expire(now, &mut changes), n);
                }
            }
            model.retain(|_, routes| !routes.is_empty());
            let wanted = fib_by_the_rule(&model);
            prop_assert_eq!(changes.len(), n_differences(&fib, &wanted));
            apply(&mut fib, &changes);
            prop_assert_eq!(&fib, &wanted);
            prop_assert_eq!(rib.n_routes(), model.values().map(Vec::len).sum::<usize>());
            let next = model.values().flatten().map(|r| r.expires).filter(|&at| at != MonoNs::NEVER).min();
            prop_assert_eq!(rib.next_expiry(), next);
            let mut listed = Vec::new();
            rib.for_each(|name, routes| {
                let mut routes = routes.to_vec();
                routes.sort_by_key(|route| (route.face, route.origin));
                listed.push((name.to_name(), routes));
            });
            for routes in model.values_mut() {
                routes.sort_by_key(|route| (route.face, route.origin));
            }
            let wanted: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(listed, wanted);
            prop_assert!(rib.n_nodes() <= 2 * model.len() + 1);
            let name_bytes: usize = model.keys().map(|name| name.value_bytes().len()).sum();
            prop_assert_eq!(rib.name_bytes(), name_bytes);
        }
        // Nothing is left behind when everything is gone.
        for face in 1..4 {
            rib.remove_face(FaceId(face), &mut Vec::new());
        }
        prop_assert_eq!((rib.n_routes(), rib.n_nodes(), rib.next_expiry()), (0, 1, None));
        prop_assert_eq!((rib.routes.n_faces(), rib.name_bytes()), (0, 0));
    }
}

/// An example worked by hand.
#[test]
fn longer_prefixes_inherit_up_to_a_capture() {
    let mut rib = Rib::new(RibLimits::default());
    let mut fib = Fib::new();
    for (uri, new) in [
        ("/", route(1, 75, CHILD_INHERIT)),
        ("/a", route(2, 5, 0)),
        ("/a", route(3, 25, CHILD_INHERIT)),
        ("/a/b", route(2, 10, CHILD_INHERIT)),
        ("/b", route(4, 10, CAPTURE)),
        ("/b/c", route(4, 25, 0)),
    ] {
        let mut changes = Vec::new();
        rib.insert(name(uri).view(), new, &mut changes).unwrap();
        apply(&mut fib, &changes);
    }
    let hops = |uri: &str| -> Vec<(u64, u64, u8)> {
        fib[&name(uri)]
            .iter()
            .map(|(face, &(cost, distance))| (face.0, cost, distance))
            .collect()
    };
    assert_eq!(hops("/"), [(1, 75, 0)]);
    assert_eq!(hops("/a"), [(1, 75, 1), (2, 5, 0), (3, 25, 0)]);
    assert_eq!(hops("/a/b"), [(1, 75, 2), (2, 10, 0), (3, 25, 1)]);
    assert_eq!(hops("/b"), [(4, 10, 0)]);
    assert_eq!(hops("/b/c"), [(4, 25, 0)]);
}

#[test]
fn a_change_of_distance_alone_reaches_the_fib() {
    let mut rib = Rib::new(RibLimits::default());
    let inherited = route(1, 7, CHILD_INHERIT);
    let mut insert = |uri: &str| {
        let mut changes = Vec::new();
        rib.insert(name(uri).view(), inherited, &mut changes)
            .unwrap();
        changes
    };
    let add = |uri: &str, distance| FibChange::Add {
        name: name(uri),
        face: FaceId(1),
        cost: 7,
        distance,
    };
    assert_eq!(insert("/"), [add("/", 0)]);
    assert_eq!(insert("/a/b/c"), [add("/a/b/c", 0)]);
    rib.insert(
        name("/a/b/x").view(),
        route(2, 0, CHILD_INHERIT),
        &mut Vec::new(),
    )
    .unwrap();
    // One between comes, nearer to one of them; the other has its own.
    let mut changes = Vec::new();
    rib.insert(name("/a").view(), inherited, &mut changes)
        .unwrap();
    assert_eq!(changes, [add("/a", 0), add("/a/b/x", 2)]);
    // And goes again.
    let mut changes = Vec::new();
    assert!(rib.remove(name("/a").view(), FaceId(1), 0, &mut changes));
    let gone = FibChange::Remove {
        name: name("/a"),
        face: FaceId(1),
    };
    assert_eq!(changes, [gone, add("/a/b/x", 3)]);
    // An own route where the same was inherited.
    let mut changes = Vec::new();
    rib.insert(name("/a/b/x").view(), inherited, &mut changes)
        .unwrap();
    assert_eq!(changes, [add("/a/b/x", 0)]);
    let mut changes = Vec::new();
    assert!(rib.remove(name("/a/b/c").view(), FaceId(1), 0, &mut changes));
    let gone = FibChange::Remove {
        name: name("/a/b/c"),
        face: FaceId(1),
    };
    assert_eq!(changes, [gone]);
}

#[test]
fn the_deepest_name_inherits_from_the_root() {
    let mut rib = Rib::new(RibLimits {
        max_name_components: usize::MAX,
        ..RibLimits::default()
    });
    let mut changes = Vec::new();
    let root = rib.insert(
        Name::new().view(),
        route(1, 0, CHILD_INHERIT),
        &mut Vec::new(),
    );
    assert_eq!(root, Ok(RouteInserted::Added));
    let deepest = name(&"/a".repeat(255));
    rib.insert(deepest.view(), route(2, 0, 0), &mut changes)
        .unwrap();
    assert!(changes.contains(&FibChange::Add {
        name: deepest,
        face: FaceId(1),
        cost: 0,
        distance: 255,
    }));
    let deeper = name(&"/a".repeat(256));
    let refused = rib.insert(deeper.view(), route(2, 0, 0), &mut changes);
    assert_eq!(refused, Err(RibError::NameTooLong));
}

#[test]
fn renewing_a_route_moves_its_expiry_and_changes_no_fib() {
    let mut rib = Rib::new(RibLimits::default());
    let mut changes = Vec::new();
    let mut renewed = route(1, 0, CHILD_INHERIT);
    for at in 1..1000 {
        renewed.expires = MonoNs(at);
        rib.insert(name("/a").view(), renewed, &mut changes)
            .unwrap();
    }
    assert_eq!(changes.len(), 1);
    assert_eq!(rib.next_expiry(), Some(MonoNs(999)));
    assert_eq!(rib.expire(MonoNs(998), &mut changes), 0);
    assert_eq!(rib.expire(MonoNs(999), &mut changes), 1);
    assert_eq!(changes.len(), 2);
}

#[test]
fn limits_refuse_new_routes_and_leave_old_ones_changeable() {
    let mut rib = Rib::new(RibLimits {
        max_routes: 2,
        max_name_components: 2,
        ..RibLimits::default()
    });
    let mut changes = Vec::new();
    let mut insert = |uri: &str, route| rib.insert(name(uri).view(), route, &mut changes);
    assert_eq!(insert("/a/b/c", route(1, 0, 0)), Err(RibError::NameTooLong));
    assert_eq!(insert("/a/b", route(1, 0, 0)), Ok(RouteInserted::Added));
    assert_eq!(insert("/a", route(1, 0, 0)), Ok(RouteInserted::Added));
    assert_eq!(insert("/a", route(2, 0, 0)), Err(RibError::Full));
    assert_eq!(insert("/b", route(1, 0, 0)), Err(RibError::Full));
    assert_eq!(insert("/a", route(1, 9, 0)), Ok(RouteInserted::Replaced));
    assert_eq!((rib.n_routes(), rib.n_nodes()), (2, 3));
}

#[test]
fn names_are_bounded_in_bytes_and_their_room_comes_back() {
    let long = |n: usize| name(&format!("/{}/{n}", "x".repeat(100)));
    let n_bytes = long(0).view().value_bytes().len();
    let mut rib = Rib::new(RibLimits {
        max_name_bytes: 3 * n_bytes,
        ..RibLimits::default()
    });
    let mut changes = Vec::new();
    for n in 0..3 {
        rib.insert(long(n).view(), route(1, 0, 0), &mut changes)
            .unwrap();
    }
    assert_eq!(rib.name_bytes(), 3 * n_bytes);
    let n_nodes = rib.n_nodes();
    let refused = rib.insert(long(3).view(), route(1, 0, 0), &mut changes);
    assert_eq!(refused, Err(RibError::TooManyNameBytes));
    // A prefix of others is no prefix with routes.
    let above = long(0).prefix(1).to_name();
    let refused = rib.insert(above.view(), route(1, 0, 0), &mut changes);
    assert_eq!(refused, Err(RibError::TooManyNameBytes));
    assert_eq!((rib.n_nodes(), rib.n_routes()), (n_nodes, 3));
    // A name that is there takes more routes, and changed ones.
    for change in [route(2, 0, 0), route(1, 5, 0)] {
        assert!(rib.insert(long(0).view(), change, &mut changes).is_ok());
    }
    assert!(rib.remove(long(0).view(), FaceId(1), 0, &mut changes));
    assert_eq!(rib.name_bytes(), 3 * n_bytes);
    assert!(rib.remove(long(0).view(), FaceId(2), 0, &mut changes));
    assert!(
        rib.insert(long(3).view(), route(1, 0, 0), &mut changes)
            .is_ok()
    );
    rib.remove_face(FaceId(1), &mut changes);
    assert_eq!((rib.name_bytes(), rib.n_nodes()), (0, 1));
}

#[test]
fn origins_of_a_prefix_and_face_are_bounded() {
    let mut rib = Rib::new(RibLimits::default());
    let mut changes = Vec::new();
    let prefix = name("/a");
    let mut insert = |face, origin| {
        let route = RibRoute {
            origin,
            ..route(face, 0, 0)
        };
        rib.insert(prefix.view(), route, &mut changes)
    };
    for origin in 0..MAX_ORIGINS as u64 {
        assert_eq!(insert(1, origin), Ok(RouteInserted::Added));
    }
    assert_eq!(insert(1, 99), Err(RibError::TooManyOrigins));
    assert_eq!(insert(1, 3), Ok(RouteInserted::Replaced));
    assert_eq!(insert(2, 99), Ok(RouteInserted::Added));
}
