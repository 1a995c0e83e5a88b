//! Routes through the manager: what the FIB gets, and when routes go.

mod support;

use std::time::Instant;

use support::*;
use tachonym_manage::ManagerConfig;
use tachonym_packet::{Interest, InterestView};
use tachonym_protocol::route_flags::{CAPTURE, CHILD_INHERIT};
use tachonym_protocol::*;

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

#[test]
fn a_face_that_goes_takes_its_routes_with_it() {
    let mut site = site();
    let client = site.client.0;
    let other = site.router().accept("fd://21");
    site.register("/", other.0, CHILD_INHERIT);
    site.register("/a", client, CHILD_INHERIT);
    site.register("/b", other.0, CHILD_INHERIT);
    assert_eq!(site.router().hops("/a"), [(client, 0), (other.0, 0)]);
    site.lose(other);
    assert_eq!(site.manager.rib().n_routes(), 1);
    assert_eq!(site.router().hops("/a"), [(client, 0)]);
    assert_eq!(site.router().fib.len(), 1);
    assert_eq!(site.manager.counters().n_routes_of_lost_faces, 2);
}

#[test]
fn a_captured_route_is_uncaptured_when_the_capturing_face_goes() {
    let mut site = site();
    let client = site.client.0;
    let other = site.router().accept("fd://21");
    site.register("/", client, CHILD_INHERIT);
    site.register("/a", other.0, CHILD_INHERIT | CAPTURE);
    site.register("/a/b", other.0, 0);
    site.register("/a/b", client, 0);
    site.register("/a/c", other.0, 0);
    assert_eq!(site.router().hops("/a"), [(other.0, 0)]);
    site.lose(other);
    assert_eq!(site.router().hops("/a"), []);
    assert_eq!(site.router().hops("/a/b"), [(client, 0)]);
    assert_eq!(site.router().hops("/"), [(client, 0)]);
    assert_eq!(site.router().fib.len(), 2);
}

#[test]
fn routes_expire_when_their_time_has_come() {
    let mut site = site();
    let client = site.client.0;
    let mut route = ControlParameters {
        expiration_period_ms: Some(1000),
        ..named("/a")
    };
    assert_eq!(site.outcome("rib", "register", &route).0, 200);
    assert_eq!(site.manager.poll_timeout(), Some(site.now.plus_ms(1000)));
    site.pass_ms(600);
    // Renewed in time.
    assert_eq!(site.outcome("rib", "register", &route).0, 200);
    site.pass_ms(600);
    let expire = |site: &mut Site| {
        let now = site.now;
        site.manager
            .handle_timeout(now, &mut |_| panic!("expiry is no news to anybody"));
    };
    expire(&mut site);
    assert_eq!(site.router().hops("/a"), [(client, 0)]);
    site.pass_ms(400);
    expire(&mut site);
    assert_eq!(site.router().hops("/a"), []);
    assert_eq!(site.manager.poll_timeout(), None);
    assert_eq!(site.manager.counters().n_expired_routes, 1);

    // The largest period means never, and none at all is over at once.
    route.expiration_period_ms = Some(u64::MAX);
    assert_eq!(site.outcome("rib", "register", &route).0, 200);
    assert_eq!(site.manager.poll_timeout(), None);
    route.expiration_period_ms = Some(0);
    assert_eq!(site.outcome("rib", "register", &route).0, 200);
    assert_eq!(site.router().hops("/a"), []);
}

/// Registers from a burst and returns the codes of the responses.
fn burst(site: &mut Site, wires: &[Vec<u8>]) -> Vec<u64> {
    let interests: Vec<_> = wires
        .iter()
        .map(|wire| InterestView::parse(wire).unwrap())
        .collect();
    let client = site.client;
    let (now, wall_ms) = (site.now, site.wall_ms);
    let mut replies = Vec::new();
    site.manager.handle_burst(
        now,
        wall_ms,
        interests.iter().map(|interest| (client, interest)),
        &mut |wire| replies.push(wire),
    );
    let codes = replies.iter().zip(&interests).map(|(wire, interest)| {
        let data = tachonym_packet::DataView::parse(wire).unwrap();
        assert_eq!(data.name(), interest.name());
        ControlResponse::decode(data.content()).unwrap().code
    });
    codes.collect()
}

fn register(uri: &str, face_id: Option<u64>) -> Vec<u8> {
    let route = ControlParameters {
        face_id,
        ..named(uri)
    };
    signed_command(CommandName::local("rib", "register"), &route)
}

#[test]
fn registrations_of_one_burst_reach_the_fib_as_one_batch() {
    let mut site = site();
    let wires: Vec<_> = (0..50)
        .map(|i| register(&format!("/a/{i}"), None))
        .collect();
    assert_eq!(burst(&mut site, &wires), vec![200; 50]);
    assert_eq!(
        (site.router().n_fib_batches, site.router().n_fib_changes),
        (1, 50)
    );
}

#[test]
fn what_waits_for_the_fib_is_bounded_whatever_a_burst_multiplies() {
    const N_BELOW: usize = 1000;
    let mut site = site();
    let other = site.router().accept("fd://21");
    for i in 0..N_BELOW {
        site.register(&format!("/p/{i}"), other.0, CHILD_INHERIT);
    }
    let unregister = || signed_command(CommandName::local("rib", "unregister"), &named("/p"));
    let wires: Vec<_> = (0..10)
        .flat_map(|_| [register("/p", None), unregister()])
        .collect();
    assert_eq!(burst(&mut site, &wires), vec![200; 20]);
    // 4096, and what the command that exceeds them adds.
    assert!(site.router().max_fib_batch <= 4096 + N_BELOW + 1);
    assert_eq!(
        site.router().n_fib_changes,
        N_BELOW + 20 * (N_BELOW + 1),
        "each command has its effect"
    );
    assert_eq!(site.router().hops("/p/7"), [(other.0, 0)]);
}

fn register_at_cost(uri: &str, cost: u64) -> Vec<u8> {
    let route = ControlParameters {
        cost: Some(cost),
        ..named(uri)
    };
    signed_command(CommandName::local("rib", "register"), &route)
}

#[test]
fn commands_whose_changes_are_applied_are_answered_before_the_others() {
    let mut site = site();
    let other = site.router().accept("fd://21");
    for i in 0..1500 {
        site.register(&format!("/p/{i}"), other.0, CHILD_INHERIT);
    }
    let mut wires: Vec<_> = (1..=3).map(|cost| register_at_cost("/p", cost)).collect();
    wires.push(register("/q", None));
    let interests: Vec<_> = wires
        .iter()
        .map(|wire| InterestView::parse(wire).unwrap())
        .collect();
    let (client, now, wall_ms) = (site.client, site.now, site.wall_ms);
    let mut rest = interests.iter().map(|interest| (client, interest));
    let mut n_replies = 0;
    let mut out = |_| n_replies += 1;
    site.manager.handle_some(now, wall_ms, &mut rest, &mut out);
    assert_eq!(rest.len(), 1);
    site.manager.handle_some(now, wall_ms, &mut rest, &mut out);
    assert_eq!((rest.len(), n_replies), (0, 4));
}

#[test]
fn in_a_burst_only_the_commands_that_failed_are_refused() {
    let mut site = site();
    let mut wires: Vec<_> = (0..6).map(|i| register(&format!("/a/{i}"), None)).collect();
    wires[2] = register("/gone", Some(9999));
    wires[4] = register(&"/x".repeat(17), None);
    wires.push(register("/a", Some(9999)));
    assert_eq!(
        burst(&mut site, &wires),
        [200, 200, 410, 200, 414, 200, 410]
    );
    assert_eq!(site.manager.rib().n_routes(), 4);
    // Nothing of what was refused is left in the FIB, inherited or not.
    let client = site.client.0;
    assert!(
        site.router()
            .fib
            .values()
            .all(|hops| hops.keys().eq([&client]))
    );
    assert_eq!(site.router().fib.len(), 4);
}

#[test]
fn other_commands_of_a_burst_see_the_routes_before_them() {
    let mut site = site();
    let list = Interest {
        can_be_prefix: true,
        ..Interest::new(name("/localhost/nfd/fib/list"))
    };
    let remove = signed_command(CommandName::local("fib", "remove-nexthop"), &named("/b"));
    let wires = [
        register("/a", None),
        register("/b", None),
        remove,
        list.encode(),
    ];
    let interests: Vec<_> = wires
        .iter()
        .map(|wire| InterestView::parse(wire).unwrap())
        .collect();
    let client = site.client;
    let (now, wall_ms) = (site.now, site.wall_ms);
    let mut contents = Vec::new();
    site.manager.handle_burst(
        now,
        wall_ms,
        interests.iter().map(|interest| (client, interest)),
        &mut |wire| {
            let data = tachonym_packet::DataView::parse(&wire).unwrap();
            contents.push(data.content().to_vec());
        },
    );
    let fib = FibEntry::decode_list(&contents[3]).unwrap();
    assert_eq!(fib.len(), 1);
    assert_eq!(fib[0].name, name("/a"));
}

/// A hundred thousand routes cost no more changes than there are next hops, one
/// pass over them prints what each costs.
#[test]
fn the_cost_of_a_route_does_not_grow_with_their_number() {
    const N: usize = 100_000;
    let mut site = site();
    let wires: Vec<_> = (0..N)
        .map(|i| {
            register(
                &format!("/ndn/site{}/router{}/app{i}", i % 100, i % 1000),
                None,
            )
        })
        .collect();
    let started = Instant::now();
    for chunk in wires.chunks(64) {
        assert!(burst(&mut site, chunk).iter().all(|&code| code == 200));
    }
    let ns = started.elapsed().as_nanos() / N as u128;
    println!("rib/register, 100,000 routes in bursts of 64: {ns} ns/route, test's router included");
    assert_eq!(site.router().n_fib_changes, N);
    assert_eq!(site.manager.rib().n_routes(), N);
    let started = Instant::now();
    assert_eq!(site.routes().len(), N);
    println!("rib/list of 100,000 routes: {:?}", started.elapsed());
    // One route above all of them, and its end: one change for each.
    let other = site.router().accept("fd://21");
    site.register("/ndn", other.0, CHILD_INHERIT);
    assert_eq!(site.router().n_fib_changes, 2 * N + 1);
    let client = site.client;
    let started = Instant::now();
    site.lose(client);
    println!("a face with 100,000 routes goes: {:?}", started.elapsed());
    assert_eq!(site.manager.rib().n_routes(), 1);
    assert_eq!(site.router().fib.len(), 1);
}

#[test]
fn refusals_of_inherited_next_hops_do_not_undo_the_route() {
    let mut site = site();
    let client = site.client.0;
    let other = site.router().accept("fd://21");
    site.register("/a/b", client, CHILD_INHERIT);
    // The FIB forgets /a/b and has room for one entry more only: /a.
    site.router().fib.clear();
    site.router().max_fib_entries = 1;
    site.register("/a", other.0, CHILD_INHERIT);
    assert_eq!(site.router().hops("/a"), [(other.0, 0)]);
    assert_eq!(site.manager.counters().n_fib_refusals, 1);
    assert_eq!(site.manager.rib().n_routes(), 2);
}
