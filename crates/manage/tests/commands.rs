//! Every command, by what it answers and what it changes in the router.

mod support;

use support::*;
use tachonym_manage::{ControlError, FaceReport, ManagerConfig, RibLimits};
use tachonym_packet::{Component, Data, DataView, FaceId, Interest, Name, SignatureInfo};
use tachonym_protocol::*;

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

fn uri(uri: &str) -> ControlParameters {
    ControlParameters {
        uri: Some(uri.into()),
        ..p()
    }
}

#[test]
fn creating_a_face_tells_its_properties_and_of_congestion_only_what_was_asked() {
    let mut site = site();
    let mut wanted = ControlParameters {
        local_uri: Some("udp4://192.0.2.2:6363".into()),
        face_persistency: Some(FacePersistency::Permanent),
        mtu_bytes: Some(1400),
        ..uri("udp://192.0.2.1")
    };
    wanted.set_flag(face_flags::LP_RELIABILITY, true);
    let (code, face) = site.outcome("faces", "create", &wanted);
    assert_eq!(code, 200);
    let id = face.face_id.unwrap();
    assert_eq!(site.router().faces[&id].uri, "udp4://192.0.2.1:6363");
    assert_eq!(
        face,
        ControlParameters {
            face_id: Some(id),
            uri: Some("udp4://192.0.2.1:6363".into()),
            local_uri: Some("udp4://192.0.2.2:6363".into()),
            flags: Some(face_flags::LP_RELIABILITY),
            face_persistency: Some(FacePersistency::Permanent),
            mtu_bytes: Some(1400),
            ..p()
        }
    );
    let wanted = ControlParameters {
        base_congestion_marking_interval_ns: Some(5_000_000),
        default_congestion_threshold_bytes: Some(1000),
        ..uri("udp://192.0.2.9")
    };
    let (code, face) = site.outcome("faces", "create", &wanted);
    assert_eq!(code, 200);
    assert_eq!(face.base_congestion_marking_interval_ns, Some(5_000_000));
    assert_eq!(face.default_congestion_threshold_bytes, Some(1000));
    assert_eq!(face.mtu_bytes, None);
}

#[test]
fn creating_a_face_that_exists_is_409_with_its_properties() {
    let mut site = site();
    let (_, first) = site.outcome("faces", "create", &uri("udp4://192.0.2.1:6363"));
    let (code, second) = site.outcome("faces", "create", &uri("udp4://192.0.2.1:6363"));
    assert_eq!((code, second), (409, first));
}

#[test]
fn faces_that_cannot_be_created_say_why() {
    let mut site = site();
    let n_faces = site.router().faces.len();
    for (text, code, says) in [
        ("not a uri", 400, "udp4://192.0.2.1:6363"),
        ("udp4://192.0.2.1:0", 400, "from 1 to 65535"),
        ("udp4://router.example.net:6363", 400, "host name"),
        ("gopher://192.0.2.1", 406, "gopher://; this router has"),
        ("wss://192.0.2.1", 406, "wss://; this router has"),
        (
            "ether://[08:00:27:01:01:01]",
            406,
            "udp4, udp6, tcp4, tcp6 and ws",
        ),
        ("unix:///run/other.sock", 406, "[[face]]"),
        ("tcp4://192.0.2.1:1", 504, "connection refused"),
        ("tcp4://192.0.2.1:2", 505, "permission denied"),
    ] {
        let response = site.command("faces", "create", &uri(text));
        assert_eq!(response.code, code, "{text}");
        assert!(response.text.contains(says), "{text}: {}", response.text);
    }
    let bad_local = ControlParameters {
        local_uri: Some("udp4://".into()),
        ..uri("udp4://192.0.2.1:6363")
    };
    assert_eq!(site.outcome("faces", "create", &bad_local).0, 400);
    let on_demand = ControlParameters {
        face_persistency: Some(FacePersistency::OnDemand),
        ..uri("udp4://192.0.2.1:6363")
    };
    assert_eq!(site.outcome("faces", "create", &on_demand).0, 406);
    let mut local_fields = uri("udp4://192.0.2.1:6363");
    local_fields.set_flag(face_flags::LOCAL_FIELDS, true);
    assert_eq!(site.outcome("faces", "create", &local_fields).0, 406);
    assert_eq!(site.outcome("faces", "create", &p()).0, 400);
    assert_eq!(site.router().faces.len(), n_faces);
}

/// What an event of this kind on the face `id` makes the manager send.
fn happen(site: &mut Site, id: u64, kind: FaceEventKind) -> Vec<Data> {
    let mut status = site.router().faces[&id].clone();
    status.local_uri = "tcp4://192.0.2.99:50000".into();
    let event = FaceReport {
        event: support::router::event(kind, &status),
        cause: Some("connection refused".into()),
    };
    let mut sent = Vec::new();
    let now = site.now;
    site.manager.handle_face_event(now, event, &mut |wire| {
        sent.push(DataView::parse(&wire).unwrap().to_data());
    });
    sent
}

#[test]
fn creating_a_face_is_answered_when_it_is_connected_or_cannot_be() {
    use FaceEventKind::{Created, Destroyed, Down, Up};
    let create = CommandName::local("faces", "create");
    let mut site = site();
    let client = site.client;
    for (n, (kind, code)) in [(Up, 200), (Down, 200), (Destroyed, 504)]
        .into_iter()
        .enumerate()
    {
        let wire = signed_command(create, &uri(&format!("tcp4://192.0.2.{n}:6363")));
        assert!(site.send_from(client, &wire).is_empty(), "not before");
        // The same again is neither an error nor another face.
        let n_faces = site.router().faces.len();
        assert!(site.send_from(client, &wire).is_empty());
        assert_eq!(site.router().faces.len(), n_faces);
        assert_eq!(site.manager.counters().n_waiting, n as u64 + 1);

        let id = *site.router().faces.last_key_value().unwrap().0;
        assert!(happen(&mut site, id, Created).is_empty(), "nobody asked");
        let sent = happen(&mut site, id, kind);
        let reply = sent
            .iter()
            .find(|data| data.name.starts_with(&create.name()));
        let reply = reply.expect("an answer");
        let asked = tachonym_packet::InterestView::parse(&wire).unwrap();
        assert_eq!(asked.name(), reply.name);
        let response = ControlResponse::decode(&reply.content).unwrap();
        assert_eq!(response.code, code);
        let says_why = response.text.contains("connection refused");
        assert_eq!(says_why, kind != Up, "{}", response.text);
        let face = response.parameters().unwrap().unwrap();
        assert_eq!(face.face_id, (code == 200).then_some(id));
        if code == 200 {
            assert_eq!(face.local_uri.unwrap(), "tcp4://192.0.2.99:50000");
        }
        // Once only.
        assert!(happen(&mut site, id, kind).is_empty());
    }
}

#[test]
fn a_face_and_a_route_that_lead_back_to_the_router_are_warned_of() {
    let mut site = site();
    let from = |local: &str, remote: &str| ControlParameters {
        local_uri: Some(local.into()),
        ..uri(remote)
    };
    for (local, remote, is_own) in [
        ("udp4://192.0.2.2:0", "udp4://192.0.2.2:6363", true),
        ("udp4://192.0.2.2:0", "udp4://192.0.2.2:6364", false),
        ("udp4://192.0.2.2:0", "udp4://192.0.2.3:6363", false),
        ("udp6://[2001:db8::2]:0", "udp6://[2001:db8::2]:6363", false),
    ] {
        let created = site.command("faces", "create", &from(local, remote));
        let face_id = created.parameters().unwrap().unwrap().face_id;
        let route = ControlParameters {
            face_id,
            ..named("/a")
        };
        let registered = site.command("rib", "register", &route);
        for response in [created, registered] {
            assert_eq!(response.code, 200);
            let warns = response.text.contains("leads back to this router");
            assert_eq!(warns, is_own, "{remote}: {}", response.text);
        }
        // The number may be that of another face later.
        site.lose(FaceId(face_id.unwrap()));
        assert_eq!(site.command("rib", "unregister", &route).text, "OK");
    }
}

#[test]
fn updating_without_a_face_id_means_the_incoming_face() {
    let mut site = site();
    let client = site.client.0;
    for face_id in [None, Some(0), Some(client)] {
        let on = face_id.is_none();
        let mut update = ControlParameters { face_id, ..p() };
        update.set_flag(face_flags::LOCAL_FIELDS, on);
        let (code, face) = site.outcome("faces", "update", &update);
        assert_eq!((code, face.face_id), (200, Some(client)));
        assert_eq!(face.flags, Some(u64::from(on)));
        // NFD's clients refuse a response with these.
        assert_eq!((face.mask, face.uri), (None, None));
        assert_eq!(site.router().faces[&client].flags, u64::from(on));
    }
}

#[test]
fn updates_are_refused_for_unknown_faces_and_impossible_properties() {
    let mut site = site();
    let unknown = ControlParameters {
        face_id: Some(9999),
        ..p()
    };
    assert_eq!(site.outcome("faces", "update", &unknown).0, 404);
    let (_, face) = site.outcome("faces", "create", &uri("udp4://192.0.2.1:6363"));
    let mut update = ControlParameters {
        face_id: face.face_id,
        ..p()
    };
    update.set_flag(face_flags::LOCAL_FIELDS, true);
    let (code, refused) = site.outcome("faces", "update", &update);
    assert_eq!(
        (code, refused.flag(face_flags::LOCAL_FIELDS)),
        (409, Some(true))
    );
}

#[test]
fn destroying_a_face_takes_its_routes_before_the_reply() {
    let mut site = site();
    let (_, face) = site.outcome("faces", "create", &uri("udp4://192.0.2.1:6363"));
    let id = face.face_id.unwrap();
    site.register("/a", id, 1);
    site.register("/a/b", site.client.0, 1);
    let destroy = ControlParameters {
        face_id: Some(id),
        ..p()
    };
    assert_eq!(
        site.outcome("faces", "destroy", &destroy),
        (200, destroy.clone())
    );
    assert!(!site.router().faces.contains_key(&id));
    assert_eq!(site.manager.rib().n_routes(), 1);
    let client = site.client.0;
    assert_eq!(site.router().hops("/a"), []);
    assert_eq!(site.router().hops("/a/b"), [(client, 0)]);
    // Once more: it is gone, and that is a success.
    assert_eq!(site.outcome("faces", "destroy", &destroy), (200, destroy));
}

#[test]
fn the_routers_own_faces_cannot_be_destroyed() {
    let mut site = site();
    for (id, code) in [(0, 400), (1, 409), (255, 409), (9999, 200)] {
        let destroy = ControlParameters {
            face_id: Some(id),
            ..p()
        };
        assert_eq!(site.outcome("faces", "destroy", &destroy).0, code, "{id}");
    }
}

#[test]
fn next_hops_are_added_updated_and_removed() {
    let mut site = site();
    let client = site.client.0;
    let with_cost = ControlParameters {
        cost: Some(7),
        ..named("/a")
    };
    let (code, hop) = site.outcome("fib", "add-nexthop", &with_cost);
    let effective = ControlParameters {
        face_id: Some(client),
        ..with_cost
    };
    assert_eq!((code, hop), (200, effective));
    assert_eq!(site.router().hops("/a"), [(client, 7)]);
    let (code, hop) = site.outcome("fib", "add-nexthop", &named("/a"));
    assert_eq!((code, hop.cost), (200, Some(0)));
    assert_eq!(site.router().hops("/a"), [(client, 0)]);
    for _ in 0..2 {
        let (code, hop) = site.outcome("fib", "remove-nexthop", &named("/a"));
        assert_eq!((code, hop.face_id), (200, Some(client)));
        assert_eq!(site.router().hops("/a"), []);
    }
}

#[test]
fn next_hops_need_a_face_and_a_name_that_fits() {
    let mut site = site();
    let nowhere = ControlParameters {
        face_id: Some(9999),
        ..named("/a")
    };
    assert_eq!(site.outcome("fib", "add-nexthop", &nowhere).0, 410);
    assert_eq!(site.outcome("fib", "remove-nexthop", &nowhere).0, 200);
    let deep = named(&"/x".repeat(17));
    assert_eq!(site.outcome("fib", "add-nexthop", &deep).0, 414);
    assert_eq!(site.outcome("fib", "add-nexthop", &p()).0, 400);
    site.router().max_fib_entries = 0;
    assert_eq!(site.outcome("fib", "add-nexthop", &named("/a")).0, 503);
}

#[test]
fn the_content_store_is_configured_and_erased() {
    let mut site = site();
    let mut config = ControlParameters {
        capacity: Some(10),
        ..p()
    };
    config.set_flag(cs_flags::ENABLE_SERVE, false);
    let (code, effective) = site.outcome("cs", "config", &config);
    let wanted = ControlParameters {
        capacity: Some(10),
        flags: Some(cs_flags::ENABLE_ADMIT),
        ..p()
    };
    assert_eq!((code, effective), (200, wanted.clone()));
    assert_eq!(site.outcome("cs", "config", &p()), (200, wanted));
    let huge = ControlParameters {
        capacity: Some(u64::MAX),
        ..p()
    };
    assert_eq!(site.outcome("cs", "config", &huge).0, 503);

    let policy = |words: &str| ControlParameters {
        cs_policy: Some(words.to_owned()),
        ..p()
    };
    assert_eq!(
        site.outcome("cs", "config", &policy("eviction=fifo")).0,
        200
    );
    assert_eq!(site.router().cs_policy, "eviction=fifo");
    assert_eq!(site.outcome("cs", "config", &policy("fifo")).0, 400);
    let elsewhere = ControlParameters {
        cs_policy: policy("eviction=fifo").cs_policy,
        ..named("/a")
    };
    assert_eq!(site.outcome("cs", "erase", &elsewhere).0, 400);

    for i in 0..1024 + 1024 + 10 {
        let data: Name = format!("/a/seg={i}").parse().unwrap();
        site.router().cs_names.insert(data);
    }
    let some = ControlParameters {
        count: Some(10),
        ..named("/a")
    };
    assert_eq!(site.outcome("cs", "erase", &some), (200, some.clone()));
    // More than one command takes: Capacity says that it stopped early.
    for (n_erased, capacity) in [(1024, Some(1024)), (1024, None), (0, None)] {
        let (code, erased) = site.outcome("cs", "erase", &named("/a"));
        assert_eq!(
            (code, erased.count, erased.capacity),
            (200, Some(n_erased), capacity)
        );
    }
    assert_eq!(site.outcome("cs", "erase", &p()).0, 400);
}

#[test]
fn strategies_are_set_by_name_and_unset_below_the_root() {
    let mut site = site();
    let strategy = |site: &mut Site, prefix: &str, strategy: &str| {
        let set = ControlParameters {
            strategy: Some(name(strategy)),
            ..named(prefix)
        };
        site.outcome("strategy-choice", "set", &set)
    };
    let (code, chosen) = strategy(&mut site, "/a", "/localhost/nfd/strategy/multicast");
    let instance = name("/localhost/nfd/strategy/multicast/v=4");
    assert_eq!((code, chosen.strategy), (200, Some(instance.clone())));
    assert_eq!(site.router().strategies[&name("/a")], instance);
    for (prefix, wanted, code) in [
        ("/", "/localhost/nfd/strategy/best-route/v=5", 200),
        ("/a", "/localhost/nfd/strategy/best-route/v=99", 404),
        ("/a", "/localhost/nfd/strategy/unknown", 404),
        ("/a", "/localhost/nfd/strategy/best-route/v=5/p~1", 409),
        ("/a", "/", 404),
        (
            "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x",
            "/localhost/nfd/strategy/multicast",
            414,
        ),
    ] {
        assert_eq!(
            strategy(&mut site, prefix, wanted).0,
            code,
            "{prefix} {wanted}"
        );
    }
    assert_eq!(site.router().strategies[&name("/a")], instance);
    assert_eq!(site.outcome("strategy-choice", "set", &named("/a")).0, 400);
    for _ in 0..2 {
        assert_eq!(
            site.outcome("strategy-choice", "unset", &named("/a")),
            (200, named("/a"))
        );
        assert!(!site.router().strategies.contains_key(&name("/a")));
    }
    assert_eq!(site.outcome("strategy-choice", "unset", &named("/")).0, 400);
    assert!(site.router().strategies.contains_key(&Name::new()));
}

#[test]
fn registering_tells_the_defaults_that_took_effect() {
    let mut site = site();
    let client = site.client.0;
    let (code, route) = site.outcome("rib", "register", &named("/a"));
    let wanted = ControlParameters {
        face_id: Some(client),
        origin: Some(route_origin::APP),
        cost: Some(0),
        flags: Some(route_flags::CHILD_INHERIT),
        ..named("/a")
    };
    assert_eq!((code, route), (200, wanted));
    assert_eq!(site.router().hops("/a"), [(client, 0)]);
    let full = ControlParameters {
        face_id: Some(client),
        origin: Some(route_origin::STATIC),
        cost: Some(9),
        flags: Some(route_flags::CAPTURE),
        expiration_period_ms: Some(60_000),
        ..named("/a/b")
    };
    assert_eq!(site.outcome("rib", "register", &full), (200, full.clone()));
    site.pass_ms(1500);
    let listed = &site.routes()[1];
    assert_eq!(listed.name, name("/a/b"));
    assert_eq!(
        listed.routes,
        [Route {
            face_id: client,
            origin: 255,
            cost: 9,
            flags: 2,
            expiration_period_ms: Some(58_500),
        }]
    );
}

#[test]
fn unregistering_removes_one_origin_and_is_200_where_nothing_is() {
    let mut site = site();
    let client = site.client.0;
    site.register("/a", client, 1);
    let by_operator = ControlParameters {
        origin: Some(255),
        cost: Some(5),
        ..named("/a")
    };
    assert_eq!(site.outcome("rib", "register", &by_operator).0, 200);
    assert_eq!(site.router().hops("/a"), [(client, 0)]);
    let (code, gone) = site.outcome("rib", "unregister", &named("/a"));
    let wanted = ControlParameters {
        face_id: Some(client),
        origin: Some(0),
        ..named("/a")
    };
    assert_eq!((code, gone), (200, wanted));
    assert_eq!(site.router().hops("/a"), [(client, 5)]);
    assert_eq!(site.outcome("rib", "unregister", &named("/a")).0, 200);
    assert_eq!(site.outcome("rib", "unregister", &named("/b")).0, 200);
    assert_eq!(site.router().hops("/a"), [(client, 5)]);
    let nobody = ControlParameters {
        face_id: Some(9999),
        ..named("/a")
    };
    assert_eq!(site.outcome("rib", "unregister", &nobody).0, 200);
}

#[test]
fn a_route_that_the_fib_refuses_does_not_stay_in_the_rib() {
    let mut site = site();
    let nowhere = ControlParameters {
        face_id: Some(9999),
        ..named("/a")
    };
    assert_eq!(site.outcome("rib", "register", &nowhere).0, 410);
    assert_eq!(
        site.outcome("rib", "register", &named(&"/x".repeat(17))).0,
        414
    );
    site.router().max_fib_entries = 0;
    assert_eq!(site.outcome("rib", "register", &named("/a")).0, 503);
    assert_eq!(site.manager.rib().n_routes(), 0);
    assert_eq!(site.routes(), []);
    site.router().max_fib_entries = 1;
    assert_eq!(site.outcome("rib", "register", &named("/a")).0, 200);
}

#[test]
fn the_ribs_own_limits_are_told_apart() {
    let mut site = Site::new(ManagerConfig {
        rib: RibLimits {
            max_routes: 1,
            max_name_components: 3,
            max_name_bytes: 64,
        },
        ..ManagerConfig::default()
    });
    assert_eq!(site.outcome("rib", "register", &named("/a/b/c/d")).0, 414);
    let long = named(&format!("/{}", "x".repeat(64)));
    assert_eq!(site.outcome("rib", "register", &long).0, 503);
    assert_eq!(site.outcome("rib", "register", &named("/a/b/c")).0, 200);
    assert_eq!(site.outcome("rib", "register", &named("/a")).0, 503);
    let counters = site.manager.counters();
    assert_eq!(counters.n_routes_beyond_limit, 1);
    assert_eq!(counters.n_routes_beyond_name_bytes, 1);
    assert_eq!(counters.n_routes_beyond_origins, 0);
}

#[test]
fn malformed_parameters_are_400() {
    let mut site = site();
    let client = site.client;
    let base = CommandName::local("rib", "register").name();
    let garbage = base.clone().with(&b"garbage"[..]);
    let wrong_type = base.clone().with(&Component::keyword(named("/a").encode()));
    for name in [base, garbage, wrong_type] {
        let wire = Interest::new(name).encode_with_digest(&fresh_info(SignatureInfo::digest()));
        assert_eq!(site.command_from(client, &wire).code, 400);
    }
    let forbidden = ControlParameters {
        mtu_bytes: Some(1),
        ..named("/a")
    };
    let response = site.command("rib", "register", &forbidden);
    assert_eq!(
        (response.code, &*response.text),
        (400, "Mtu is forbidden but present")
    );
}

#[test]
fn unknown_modules_and_verbs_are_501() {
    let mut site = site();
    assert_eq!(site.outcome("rib", "dance", &named("/a")).0, 501);
    assert_eq!(site.outcome("disco", "dance", &named("/a")).0, 501);
}

#[test]
fn a_router_that_cannot_be_reached_is_503() {
    let mut site = site();
    site.router().failure = Some(ControlError::Unavailable);
    for (module, verb, parameters) in [
        ("faces", "create", uri("udp4://192.0.2.1:6363")),
        (
            "faces",
            "destroy",
            ControlParameters {
                face_id: Some(300),
                ..p()
            },
        ),
        ("fib", "add-nexthop", named("/a")),
        ("rib", "register", named("/a")),
        ("cs", "config", p()),
        ("strategy-choice", "unset", named("/a")),
    ] {
        assert_eq!(
            site.outcome(module, verb, &parameters).0,
            503,
            "{module}/{verb}"
        );
    }
}

#[test]
fn both_forms_of_a_signed_command_are_taken() {
    let mut site = site();
    let client = site.client;
    let register = CommandName::local("rib", "register");
    let response = site.command_from(client, &legacy_command(register, &named("/old")));
    assert_eq!(response.code, 200);
    let response = site.command_from(client, &signed_command(register, &named("/new")));
    assert_eq!(response.code, 200);
    assert_eq!(site.manager.rib().n_routes(), 2);
}

#[test]
fn a_reply_that_does_not_fit_leaves_out_its_body() {
    let mut site = site();
    let client = site.client;
    // The name of the reply has the prefix once already.
    let long = Name::new().with(&*vec![b'x'; 4400]);
    let parameters = ControlParameters {
        name: Some(long),
        ..p()
    };
    let wire = signed_command(CommandName::local("rib", "register"), &parameters);
    let response = site.command_from(client, &wire);
    assert_eq!((response.code, response.body.len()), (200, 0));
    assert_eq!(site.manager.rib().n_routes(), 1);
    // And one whose name alone fills a packet gets none, and is counted.
    let parameters = ControlParameters {
        name: Some(Name::new().with(&*vec![b'x'; 8650])),
        ..p()
    };
    let wire = legacy_command(CommandName::local("rib", "register"), &parameters);
    assert!(site.send_from(client, &wire).is_empty());
    let reason = tachonym_manage::DropReason::ReplyTooLarge;
    assert_eq!(site.manager.counters().n_dropped(reason), 1);
}

#[test]
fn interests_that_are_not_management_are_counted() {
    let mut site = site();
    let wire = Interest::new(name("/localhost/nfd/rib")).encode();
    assert!(site.send_from(FaceId(256), &wire).is_empty());
    let reason = tachonym_manage::DropReason::NotManagement;
    assert_eq!(site.manager.counters().n_dropped(reason), 1);
}
