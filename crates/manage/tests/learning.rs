//! Routes that are learnt from prefix announcements in Data.

mod support;

use support::*;
use tachonym_manage::{Brought, DropReason, ManagementTrust, ManagerConfig, RibLimits};
use tachonym_packet::{Data, FaceId, MonoNs, tlv};
use tachonym_protocol::{ControlParameters, prefix_announcement, route_origin};
use tachonym_security::{NameRule, Signer, TrustPolicy};

/// The wire of an announcement of `prefix` for `period_ms`, version 1.
fn announcement(owner: &Signer, prefix: &str, period_ms: u64) -> Vec<u8> {
    let announcement = prefix_announcement(&name(prefix), 1, period_ms);
    owner.sign_data(&announcement).unwrap()
}

/// A manager that believes announcements of `owner`, and a neighbour.
fn learning(limits: RibLimits) -> (Site, Signer, FaceId) {
    let (certificate, owner) = certified("/net/site");
    let mut announcements = TrustPolicy::new();
    announcements.add_anchor(&certificate).unwrap();
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            announcements,
            learns_routes: true,
            ..ManagementTrust::default()
        },
        rib: limits,
        ..ManagerConfig::default()
    });
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    (site, owner, neighbour)
}

fn bring(site: &mut Site, face: FaceId, uri: &str, wire: &[u8]) {
    let (now, wall_ms, data_name) = (site.now, site.wall_ms, name(uri));
    let brought = Brought {
        face,
        name: data_name.view(),
        wire,
    };
    site.manager
        .handle_announcement(now, wall_ms, brought, &mut |_| panic!("nobody has asked"));
}

fn unreachable(site: &mut Site, face: FaceId, uri: &str) {
    let data_name = name(uri);
    site.manager
        .handle_unreachable(face, data_name.view(), &mut |_| panic!("nobody has asked"));
}

fn n_dropped(site: &Site, reason: DropReason) -> u64 {
    site.manager.counters().n_dropped(reason)
}

#[test]
fn announcement_in_a_data_makes_a_route_and_is_kept_for_neighbours() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    let wire = announcement(&owner, "/net/site", 60_000);
    bring(&mut site, neighbour, "/net/site/file/1", &wire);
    let routes = site.routes();
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].name, name("/net/site"));
    let route = &routes[0].routes[0];
    assert_eq!(route.face_id, neighbour.0);
    assert_eq!(route.origin, route_origin::PREFIX_ANNOUNCEMENT);
    assert_eq!(
        (route.cost, route.expiration_period_ms),
        (2048, Some(60_000))
    );
    assert_eq!(site.router().fib[&name("/net/site")][&neighbour.0], 2048);
    assert_eq!(
        site.router().announcements[&name("/net/site")],
        (1, wire.clone())
    );
    assert_eq!(site.manager.counters().n_learnt_routes, 1);
    // Other Data of the same discovery bring nothing new, not even time.
    site.pass_ms(1_000);
    bring(&mut site, neighbour, "/net/site/file/2", &wire);
    assert_eq!(site.manager.counters().n_learnt_routes, 1);
    // Another neighbour is another route.
    let other = site.router().accept("udp4://192.0.2.2:6363");
    bring(&mut site, other, "/net/site/file/1", &wire);
    assert_eq!(site.routes()[0].routes.len(), 2);
    // It is handed on as long as there is any.
    site.lose(neighbour);
    assert_eq!(site.router().announcements.len(), 1);
    unreachable(&mut site, other, "/net/site/file/1");
    assert!(site.router().announcements.is_empty());
    assert_eq!(site.manager.counters().n_unlearnt_routes, 1);
}

#[test]
fn names_below_a_learnt_prefix_inherit_its_route() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    let client = site.client.0;
    site.register("/net/site/near", client, 0);
    let wire = announcement(&owner, "/net/site", 60_000);
    bring(&mut site, neighbour, "/net/site/1", &wire);
    let next_hops = &site.router().fib[&name("/net/site/near")];
    assert_eq!(next_hops[&neighbour.0], 2048);
}

#[test]
fn learnt_route_lasts_as_its_announcement_and_ten_minutes_at_most() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    let short = announcement(&owner, "/net/site/short", 60_000);
    let long = announcement(&owner, "/net/site/long", 24 * 3_600_000);
    bring(&mut site, neighbour, "/net/site/short/1", &short);
    bring(&mut site, neighbour, "/net/site/long/1", &long);
    let names = |site: &mut Site, now: MonoNs| {
        site.manager.handle_timeout(now, &mut |_| {});
        let routes = site.routes();
        routes
            .iter()
            .map(|entry| entry.name.to_string())
            .collect::<Vec<_>>()
    };
    let start = site.now;
    let long_only = ["/net/site/long"];
    assert_eq!(names(&mut site, start.plus_ms(59_999)).len(), 2);
    assert_eq!(names(&mut site, start.plus_ms(60_000)), long_only);
    assert_eq!(names(&mut site, start.plus_ms(599_999)), long_only);
    assert!(names(&mut site, start.plus_ms(600_000)).is_empty());
    assert!(site.router().announcements.is_empty());
}

#[test]
fn nothing_is_learnt_unless_that_is_configured() {
    let mut site = Site::new(ManagerConfig::default());
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    let wire = announcement(&Signer::digest(), "/a", 60_000);
    bring(&mut site, neighbour, "/a/1", &wire);
    assert!(site.routes().is_empty());
    assert!(site.router().announcements.is_empty());
    assert_eq!(n_dropped(&site, DropReason::AnnouncementUnwanted), 1);
}

#[test]
fn announcements_that_do_not_count_are_refused() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    let (_, stranger) = certified("/net/site");
    let mut forged = announcement(&owner, "/net/site", 60_000);
    *forged.last_mut().unwrap() ^= 1;
    let by_strangers = 3;
    let refused = [
        ("/net/site/1", announcement(&stranger, "/net/site", 60_000)),
        (
            "/net/site/1",
            announcement(&Signer::digest(), "/net/site", 60_000),
        ),
        ("/net/site/1", forged),
        // Of another prefix than the Data's.
        ("/net/site/1", announcement(&owner, "/net/site/2", 60_000)),
        ("/net/other/1", announcement(&owner, "/net/site", 60_000)),
        // Of everything.
        ("/net/site/1", announcement(&owner, "/", 60_000)),
        // Of what is local.
        (
            "/localhost/x/1",
            announcement(&owner, "/localhost/x", 60_000),
        ),
        ("/localhop/x/1", announcement(&owner, "/localhop/x", 60_000)),
        // Not now, or no announcement at all.
        ("/net/site/1", announcement(&owner, "/net/site", 0)),
        (
            "/net/site/1",
            owner.sign_data(&Data::new(name("/net/site"))).unwrap(),
        ),
        ("/net/site/1", b"\x06\x7fgarbage".to_vec()),
        ("/net/site/1", Vec::new()),
    ];
    for (n, (uri, wire)) in refused.iter().enumerate() {
        bring(&mut site, neighbour, uri, wire);
        let n_refused = n_dropped(&site, DropReason::AnnouncementRefused);
        assert_eq!(n_refused, n as u64 + 1, "{uri}: case {n}");
    }
    assert_eq!(
        site.manager.counters().n_announcements_rejected,
        by_strangers
    );
    assert!(site.routes().is_empty());
    assert!(site.router().announcements.is_empty());
}

#[test]
fn limits_of_announcements_and_routes_are_counted() {
    let (mut site, owner, neighbour) = learning(RibLimits {
        max_routes: 1,
        ..RibLimits::default()
    });
    let bring_new = |site: &mut Site, n: u32| {
        let wire = announcement(&owner, &format!("/net/site/{n}"), 60_000);
        bring(site, neighbour, &format!("/net/site/{n}/file"), &wire);
        n_dropped(site, DropReason::AnnouncementBeyondLimit)
    };
    site.router().max_announcements = 0;
    assert_eq!(bring_new(&mut site, 1), 1);
    assert!(site.routes().is_empty());
    site.router().max_announcements = 9;
    site.router().max_fib_entries = 0;
    assert_eq!(bring_new(&mut site, 2), 2);
    assert!(
        site.routes().is_empty(),
        "the RIB has nothing that the FIB refused"
    );
    assert!(site.router().announcements.is_empty());
    site.router().max_fib_entries = 9;
    assert_eq!(bring_new(&mut site, 3), 2);
    assert_eq!(bring_new(&mut site, 4), 3);
    assert_eq!(site.routes().len(), 1);
    assert_eq!(site.router().announcements.len(), 1);
}

#[test]
fn route_to_a_face_that_has_gone_is_not_learnt() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    site.router().lose(neighbour);
    let wire = announcement(&owner, "/net/site", 60_000);
    bring(&mut site, neighbour, "/net/site/1", &wire);
    assert!(site.routes().is_empty());
}

#[test]
fn neighbour_without_a_route_loses_the_learnt_one_and_no_other() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    let static_route = ControlParameters {
        face_id: Some(neighbour.0),
        origin: Some(route_origin::STATIC),
        ..named("/net/site/a")
    };
    assert_eq!(site.outcome("rib", "register", &static_route).0, 200);
    for prefix in ["/net/site", "/net/site/a", "/net/site/b"] {
        let wire = announcement(&owner, prefix, 60_000);
        bring(&mut site, neighbour, &format!("{prefix}/1"), &wire);
    }
    assert_eq!(site.router().fib[&name("/net/site/a")][&neighbour.0], 0);
    let other = site.router().accept("udp4://192.0.2.2:6363");
    unreachable(&mut site, other, "/net/site/a/1");
    unreachable(&mut site, neighbour, "/net");
    assert_eq!(site.manager.counters().n_unlearnt_routes, 0);
    unreachable(&mut site, neighbour, "/net/site/a/1");
    assert_eq!(site.manager.counters().n_unlearnt_routes, 1);
    let routes = site.routes();
    let origins: Vec<_> = routes
        .iter()
        .map(|entry| (entry.name.to_string(), entry.routes[0].origin))
        .collect();
    let learnt = route_origin::PREFIX_ANNOUNCEMENT;
    assert_eq!(
        origins,
        [
            ("/net/site".to_owned(), learnt),
            ("/net/site/a".to_owned(), route_origin::STATIC),
            ("/net/site/b".to_owned(), learnt),
        ]
    );
    unreachable(&mut site, neighbour, "/net/site/b");
    assert!(!site.router().fib.contains_key(&name("/net/site/b")));
}

#[test]
fn learnt_route_is_found_for_names_of_thousands_of_components() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    let wire = announcement(&owner, "/net/site", 60_000);
    bring(&mut site, neighbour, "/net/site/1", &wire);
    let deep = format!("/net/site{}", "/x".repeat(2_500));
    unreachable(&mut site, neighbour, &deep);
    assert!(site.routes().is_empty());
}

#[test]
fn a_learnt_route_costs_what_its_announcement_says() {
    let (mut site, owner, neighbour) = learning(RibLimits::default());
    for (prefix, cost) in [("/net/site/near", 7), ("/net/site/far", 5_000)] {
        let mut announcement = prefix_announcement(&name(prefix), 1, 60_000);
        tlv::write_nni(&mut announcement.content, tachonym_protocol::COST, cost);
        let wire = owner.sign_data(&announcement).unwrap();
        bring(&mut site, neighbour, &format!("{prefix}/1"), &wire);
        assert_eq!(site.router().fib[&name(prefix)][&neighbour.0], cost);
    }
}

#[test]
fn a_route_is_learnt_only_under_the_identity_of_the_announcer() {
    let (certificate, owner) = certified("/net/site");
    let mut announcements = TrustPolicy::new().with_name_rule(NameRule::UnderSigner);
    announcements.add_anchor(&certificate).unwrap();
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            announcements,
            learns_routes: true,
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    for (prefix, n_routes) in [("/net", 0), ("/net/bank", 0), ("/net/site/x", 1)] {
        let wire = announcement(&owner, prefix, 60_000);
        bring(&mut site, neighbour, &format!("{prefix}/1"), &wire);
        assert_eq!(site.routes().len(), n_routes, "{prefix}");
    }
    assert_eq!(n_dropped(&site, DropReason::AnnouncementRefused), 2);
}
