//! Who is let through, and what the others hear.

mod support;

use support::*;
use tachonym_manage::{
    AuthorizeRule, CommandTransport, DropReason, LocalhopRule, ManagementTrust, ManagerConfig,
    Module,
};
use tachonym_packet::{Data, FaceId, Interest, KeyLocator, MonoNs, SignatureInfo, tlv, types};
use tachonym_protocol::*;
use tachonym_security::{Certificate, NameRule, Signer, TrustPolicy, VerifierCounters};

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

/// A site where `rules` say who may do what.
fn site_with(rules: Vec<AuthorizeRule>) -> Site {
    Site::new(ManagerConfig {
        trust: ManagementTrust {
            local: rules,
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    })
}

fn counters(site: &Site) -> VerifierCounters {
    *site.manager.verifier_counters()
}

fn anchored(certificate: &Certificate) -> TrustPolicy {
    let mut policy = TrustPolicy::new();
    policy.add_anchor(certificate).unwrap();
    policy
}

const REGISTER: CommandName<'_> = CommandName::local("rib", "register");

fn by(signer: &Signer, name: &str) -> Vec<u8> {
    command_by(signer, REGISTER, &named(name))
}

#[test]
fn unsigned_commands_are_refused() {
    let mut site = site();
    let client = site.client;
    let command = REGISTER.with_parameters(&named("/a"));
    let plain = Interest::new(command.clone());
    let mut padded = Interest::new(command.clone());
    for part in ["1", "2", "3", "4"] {
        padded.name.push(part);
    }
    let with_parameters = Interest {
        application_parameters: Some(vec![]),
        ..Interest::new(command)
    };
    for interest in [plain, padded, with_parameters] {
        assert_eq!(site.command_from(client, &interest.encode()).code, 403);
    }
    assert_eq!(counters(&site).n_unsigned, 3);
    assert_eq!(site.manager.rib().n_routes(), 0);
    assert!(site.router().fib.is_empty());
}

#[test]
fn digests_that_do_not_match_are_refused() {
    let mut site = site();
    let client = site.client;
    for wire in [
        signed_command(REGISTER, &named("/a")),
        legacy_command(REGISTER, &named("/a")),
    ] {
        let mut wire = wire;
        *wire.last_mut().unwrap() ^= 1;
        assert_eq!(site.command_from(client, &wire).code, 403);
    }
    let counters = counters(&site);
    assert_eq!(
        counters.n_bad_parameters_digest + counters.n_bad_signature,
        2
    );
    assert_eq!(site.manager.rib().n_routes(), 0);
}

#[test]
fn a_digest_over_something_else_is_refused() {
    let mut site = site();
    let client = site.client;
    let wire = Interest::new(REGISTER.with_parameters(&named("/a")))
        .encode_signed(&fresh_info(SignatureInfo::digest()), |_| {
            Ok::<_, ()>(vec![0; 32])
        })
        .unwrap();
    assert_eq!(site.command_from(client, &wire).code, 403);
    assert_eq!(counters(&site).n_bad_signature, 1);
}

#[test]
fn commands_that_tell_no_time_are_believed_by_default() {
    let mut site = site();
    let client = site.client;
    let wire = Interest::new(REGISTER.with_parameters(&named("/a")))
        .encode_with_digest(&SignatureInfo::digest());
    // Nothing tells it from the one before: the client registers again after it
    // has unregistered.
    for _ in 0..3 {
        assert_eq!(site.command_from(client, &wire).code, 200);
    }
    assert_eq!(counters(&site).n_accepted, 3);
}

#[test]
fn keys_that_nobody_knows_are_believed_by_default() {
    let mut site = site();
    let client = site.client;
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(name("/me/KEY/1"))),
        ..SignatureInfo::new(types::signature_type::SHA256_WITH_ECDSA)
    };
    let wire = Interest::new(REGISTER.with_parameters(&named("/a")))
        .encode_signed(&fresh_info(info), |_| Ok::<_, ()>(vec![0; 70]))
        .unwrap();
    assert_eq!(site.command_from(client, &wire).code, 200);
}

#[test]
fn only_certified_signers_are_obeyed_where_certificates_are_asked_for() {
    let (certificate, operator) = certified("/operator");
    let (_, stranger) = certified("/stranger");
    let mut site = site_with(vec![AuthorizeRule {
        signers: anchored(&certificate),
        modules: Module::ALL.to_vec(),
    }]);
    let client = site.client;
    assert_eq!(site.command_from(client, &by(&operator, "/a")).code, 200);
    assert_eq!(site.command_from(client, &by(&stranger, "/b")).code, 403);
    let digest = signed_command(REGISTER, &named("/c"));
    assert_eq!(site.command_from(client, &digest).code, 403);
    // The name of the operator's key, over the stranger's signature.
    let forged = Signer::new(stranger.key().clone(), operator.locator().cloned());
    assert_eq!(site.command_from(client, &by(&forged, "/d")).code, 403);
    let counters = counters(&site);
    assert_eq!(counters.n_accepted, 1);
    assert_eq!(counters.n_unknown_key, 1);
    assert_eq!(counters.n_not_authorized, 1);
    assert_eq!(counters.n_bad_signature, 1);
    assert_eq!(site.manager.rib().n_routes(), 1);
}

#[test]
fn a_signer_commands_only_the_modules_of_its_rules() {
    let (routes, router_admin) = certified("/routes");
    let (faces, face_admin) = certified("/faces");
    let mut site = site_with(vec![
        AuthorizeRule {
            signers: anchored(&routes),
            modules: vec![Module::Rib],
        },
        AuthorizeRule {
            signers: anchored(&faces),
            modules: vec![Module::Faces, Module::Rib],
        },
    ]);
    let client = site.client;
    let destroy = CommandName::local("faces", "destroy");
    let face = ControlParameters {
        face_id: Some(4000),
        ..ControlParameters::default()
    };
    assert_eq!(
        site.command_from(client, &by(&router_admin, "/a")).code,
        200
    );
    assert_eq!(site.command_from(client, &by(&face_admin, "/b")).code, 200);
    let wire = command_by(&router_admin, destroy, &face);
    assert_eq!(site.command_from(client, &wire).code, 403);
    let wire = command_by(&face_admin, destroy, &face);
    assert_ne!(site.command_from(client, &wire).code, 403);
    let set = CommandName::local("strategy-choice", "set");
    let wire = command_by(&face_admin, set, &named("/a"));
    assert_eq!(
        site.command_from(client, &wire).code,
        403,
        "no rule opens it"
    );
}

#[test]
fn a_command_is_obeyed_once() {
    let (certificate, operator) = certified("/operator");
    let mut site = site_with(vec![AuthorizeRule {
        signers: anchored(&certificate),
        modules: Module::ALL.to_vec(),
    }]);
    let client = site.client;
    let wire = by(&operator, "/a");
    assert_eq!(site.command_from(client, &wire).code, 200);
    assert_eq!(site.command_from(client, &wire).code, 403);
    assert_eq!(counters(&site).n_replayed, 1);
    let mut old = fresh_info(SignatureInfo::digest());
    old.time_ms = old.time_ms.map(|ms| ms - 3_600_000);
    let interest = Interest::new(REGISTER.with_parameters(&named("/b")));
    let wire = operator.sign_interest(&interest, &old).unwrap();
    assert_eq!(site.command_from(client, &wire).code, 403);
    assert_eq!(counters(&site).n_outside_grace, 1);
}

#[test]
fn the_older_form_is_obeyed_once_too() {
    let (certificate, operator) = certified("/operator");
    let rule = |signers| AuthorizeRule {
        signers,
        modules: Module::ALL.to_vec(),
    };
    for signers in [anchored(&certificate), TrustPolicy::any()] {
        let mut site = site_with(vec![rule(signers)]);
        let client = site.client;
        let interest = Interest::new(REGISTER.with_parameters(&named("/a")));
        let wire = operator.sign_legacy_interest(&interest, START_MS).unwrap();
        assert_eq!(site.command_from(client, &wire).code, 200);
        assert_eq!(site.command_from(client, &wire).code, 403);
        assert_eq!(counters(&site).n_replayed, 1);
        let old = operator
            .sign_legacy_interest(&interest, START_MS - 3_600_000)
            .unwrap();
        assert_eq!(site.command_from(client, &old).code, 403);
        assert_eq!(counters(&site).n_outside_grace, 1);
    }
}

#[test]
fn a_trusted_key_has_to_tell_the_time() {
    let (certificate, operator) = certified("/operator");
    let mut site = site_with(vec![AuthorizeRule {
        signers: anchored(&certificate),
        modules: Module::ALL.to_vec(),
    }]);
    let client = site.client;
    let interest = Interest::new(REGISTER.with_parameters(&named("/a")));
    let timeless = SignatureInfo {
        time_ms: None,
        ..fresh_info(SignatureInfo::digest())
    };
    let wire = operator.sign_interest(&interest, &timeless).unwrap();
    let response = site.command_from(client, &wire);
    assert_eq!(response.code, 403);
    assert!(response.text.contains("SignatureTime"), "{}", response.text);
    assert_eq!(counters(&site).n_missing_time, 1);
}

#[test]
fn programs_with_one_key_may_have_clocks_that_differ() {
    let (certificate, operator) = certified("/operator");
    let mut site = site_with(vec![AuthorizeRule {
        signers: anchored(&certificate),
        modules: Module::ALL.to_vec(),
    }]);
    let client = site.client;
    for i in 0..20 {
        // One program is a second behind the other.
        let mut info = fresh_info(SignatureInfo::digest());
        info.time_ms = Some(START_MS + i - 1000 * (i % 2));
        let interest = Interest::new(REGISTER.with_parameters(&named("/a")));
        let wire = operator.sign_interest(&interest, &info).unwrap();
        assert_eq!(site.command_from(client, &wire).code, 200, "{i}");
    }
}

#[test]
fn sequence_numbers_of_a_key_only_grow() {
    let (certificate, operator) = certified("/operator");
    let mut site = site_with(vec![AuthorizeRule {
        signers: anchored(&certificate),
        modules: Module::ALL.to_vec(),
    }]);
    let client = site.client;
    for (seq_num, code) in [(5, 200), (6, 200), (6, 403), (4, 403), (9, 200)] {
        let mut info = fresh_info(SignatureInfo::digest());
        info.seq_num = Some(seq_num);
        let interest = Interest::new(REGISTER.with_parameters(&named("/a")));
        let wire = operator.sign_interest(&interest, &info).unwrap();
        assert_eq!(site.command_from(client, &wire).code, code, "{seq_num}");
    }
}

#[test]
fn what_is_forgotten_is_not_obeyed_again() {
    let (certificate, operator) = certified("/operator");
    let mut trust = ManagementTrust {
        local: vec![AuthorizeRule {
            signers: anchored(&certificate),
            modules: Module::ALL.to_vec(),
        }],
        ..ManagementTrust::default()
    };
    trust.verifier.replay.max_interests_per_key = 4;
    let mut site = Site::new(ManagerConfig {
        trust,
        ..ManagerConfig::default()
    });
    let client = site.client;
    let wires: Vec<_> = (0..20)
        .map(|i| {
            let mut info = fresh_info(SignatureInfo::digest());
            info.time_ms = Some(START_MS + i);
            let interest = Interest::new(REGISTER.with_parameters(&named("/a")));
            operator.sign_interest(&interest, &info).unwrap()
        })
        .collect();
    for wire in &wires {
        assert_eq!(site.command_from(client, wire).code, 200);
    }
    assert_eq!(site.manager.replay_counters().n_interests_evicted, 16);
    for wire in &wires {
        assert_eq!(site.command_from(client, wire).code, 403);
    }
    assert_eq!(counters(&site).n_replayed, 20);
}

/// A command that bears an announcement of `prefix` made by `owner`.
fn announcing(carrier: &Signer, owner: &Signer, prefix: &str, scope: Scope) -> Vec<u8> {
    let mut content = Vec::new();
    tlv::write_nni(&mut content, 109, 60_000);
    let announcement = Data {
        content_type: types::content_type::PREFIX_ANNOUNCEMENT,
        content,
        ..Data::new(name(&format!(
            "{}/32=PA/v=1/seg=0",
            prefix.trim_end_matches('/')
        )))
    };
    let command = CommandName {
        scope,
        module: "rib",
        verb: "announce",
    };
    let interest = Interest {
        application_parameters: Some(owner.sign_data(&announcement).unwrap()),
        ..Interest::new(command.name())
    };
    let info = fresh_info(SignatureInfo::digest());
    carrier.sign_interest(&interest, &info).unwrap()
}

#[test]
fn announcements_lead_to_their_bearer_for_their_time() {
    let (certificate, owner) = certified("/net/site");
    let (_, stranger) = certified("/net/site");
    let (router_certificate, carrier) = certified("/neighbour");
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            localhop: Some(LocalhopRule::new(anchored(&router_certificate))),
            announcements: anchored(&certificate),
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    let good = announcing(&carrier, &owner, "/net/site", Scope::Localhop);
    assert_eq!(site.command_from(neighbour, &good).code, 200);
    let routes = site.routes();
    assert_eq!(routes[0].name, name("/net/site"));
    assert_eq!(routes[0].routes[0].face_id, neighbour.0);
    assert_eq!(
        routes[0].routes[0].origin,
        route_origin::PREFIX_ANNOUNCEMENT
    );
    assert_eq!(site.router().announcements[&name("/net/site")].0, 1);
    // Who owns the prefix counts, and so does who bears the announcement.
    for (carrier, owner) in [(&carrier, &stranger), (&stranger, &owner)] {
        let wire = announcing(carrier, owner, "/net/other", Scope::Localhop);
        assert_eq!(site.command_from(neighbour, &wire).code, 403);
    }
    assert_eq!(site.manager.counters().n_announcements_rejected, 1);
    let digest = announcing(&carrier, &Signer::digest(), "/net/other", Scope::Localhop);
    assert_eq!(site.command_from(neighbour, &digest).code, 403);
    let local = announcing(&carrier, &owner, "/localhop/x", Scope::Localhop);
    assert_eq!(site.command_from(neighbour, &local).code, 403);
    assert_eq!(site.routes().len(), 1);
    assert_eq!(site.router().announcements.len(), 1);
    site.pass_ms(60_001);
    let now = site.now;
    site.manager.handle_timeout(now, &mut |_| {});
    assert!(site.routes().is_empty(), "it has expired");
    assert!(site.router().announcements.is_empty());
}

#[test]
fn announcements_of_anybody_are_believed_by_default() {
    let mut site = site();
    let client = site.client;
    let digest = Signer::digest();
    let wire = announcing(&digest, &digest, "/mine", Scope::Localhost);
    assert_eq!(site.command_from(client, &wire).code, 200);
    let (_, owner) = certified("/mine");
    let wire = announcing(&digest, &owner, "/mine/too", Scope::Localhost);
    assert_eq!(site.command_from(client, &wire).code, 200);
    let mut forged = announcing(&digest, &digest, "/forged", Scope::Localhost);
    let at = forged
        .windows(6)
        .position(|bytes| bytes == b"forged")
        .unwrap();
    forged[at] ^= 1;
    assert_eq!(site.command_from(client, &forged).code, 403);
}

fn from_neighbour(signer: &Signer, prefix: &str) -> Vec<u8> {
    let command = CommandName {
        scope: Scope::Localhop,
        module: "rib",
        verb: "register",
    };
    command_by(signer, command, &named(prefix))
}

#[test]
fn neighbours_are_not_served_by_default() {
    let mut site = site();
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    let (_, signer) = certified("/neighbour");
    let wire = from_neighbour(&signer, "/a");
    assert!(site.send_from(neighbour, &wire).is_empty());
    let reason = DropReason::LocalhopDisabled;
    assert_eq!(site.manager.counters().n_dropped(reason), 1);
}

#[test]
fn certified_neighbours_register_routes_to_themselves() {
    let (certificate, signer) = certified("/neighbour");
    let (_, stranger) = certified("/stranger");
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            localhop: Some(LocalhopRule::new(anchored(&certificate))),
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    let good = from_neighbour(&signer, "/a");
    assert_eq!(site.command_from(neighbour, &good).code, 200);
    let entries = site.routes();
    assert_eq!(entries[0].name, name("/a"));
    assert_eq!(entries[0].routes[0].face_id, neighbour.0);
    let bad = from_neighbour(&stranger, "/b");
    assert_eq!(site.command_from(neighbour, &bad).code, 403);
    // To others they may not, and nothing but routes is served to them.
    let client = site.client;
    let towards_other = ControlParameters {
        face_id: Some(client.0),
        ..named("/c")
    };
    let command = |module, verb| CommandName {
        scope: Scope::Localhop,
        module,
        verb,
    };
    let wire = command_by(&signer, command("rib", "register"), &towards_other);
    assert_eq!(site.command_from(neighbour, &wire).code, 403);
    let wire = command_by(&signer, command("cs", "erase"), &named("/a"));
    assert!(site.send_from(neighbour, &wire).is_empty());
    let entries = site.routes();
    assert_eq!(entries.len(), 1);
}

#[test]
fn a_hundred_thousand_bad_signatures_are_counted_and_leave_nothing_behind() {
    let mut site = site();
    let client = site.client;
    let wire = signed_command(REGISTER, &named("/a"));
    let value_at = wire.len() - 1;
    for i in 0..100_000u32 {
        let mut wire = wire.clone();
        wire[value_at] ^= 1 + (i % 255) as u8;
        assert_eq!(site.command_from(client, &wire).code, 403);
    }
    let counters = counters(&site);
    assert_eq!(
        counters.n_bad_parameters_digest + counters.n_bad_signature + counters.n_throttled,
        100_000
    );
    // Most of them cost no cryptography.
    assert!(counters.n_throttled > 99_000);
    // Whoever hands over Interests learns once whose to withhold.
    assert_eq!(site.manager.take_throttled(), [client]);
    assert_eq!(site.manager.take_throttled(), []);
    assert_eq!(site.manager.rib().n_routes(), 0);
    assert_eq!(site.router().n_fib_batches, 0);
    // Another face is served as ever, and so is this one when it has been
    // forgiven.
    let other = site.router().accept("fd://9");
    assert_eq!(site.command_from(other, &wire).code, 200);
    site.pass_ms(60_000);
    let wire = signed_command(REGISTER, &named("/b"));
    assert_eq!(site.command_from(client, &wire).code, 200);
    assert_eq!(site.manager.take_throttled(), []);
}

#[test]
fn faces_of_one_source_are_forgiven_and_throttled_together() {
    let mut site = site();
    let peer = "192.0.2.1:6363".parse().expect("an address");
    let source = tachonym_packet::SourceId::of_peer(&peer);
    let faces: Vec<_> = (0..50)
        .map(|n| {
            let face = site.router().accept(&format!("tcp4://192.0.2.1:{n}"));
            site.manager.note_source(face, source);
            face
        })
        .collect();
    let mut wrong = signed_command(REGISTER, &named("/a"));
    *wrong.last_mut().expect("a signature") ^= 1;
    for n in 0..300 {
        site.command_from(faces[n % faces.len()], &wrong);
    }
    assert!(counters(&site).n_throttled >= 199);
    assert!(!site.manager.take_throttled().is_empty());
    let wire = signed_command(REGISTER, &named("/b"));
    let other = site.router().accept("tcp4://192.0.2.2:1");
    assert_eq!(site.command_from(other, &wire).code, 200);
}

#[test]
fn whatever_a_face_is_refused_for_it_is_not_listened_to_for_ever() {
    let plain = tachonym_packet::Interest::new(REGISTER.with_parameters(&named("/a"))).encode();
    let mut wrong = signed_command(REGISTER, &named("/a"));
    *wrong.last_mut().expect("a signature") ^= 1;
    // Unsigned, and signed wrongly; and what is in order, over and over.
    for wire in [plain, wrong, signed_command(REGISTER, &named("/a"))] {
        let mut site = site();
        let client = site.client;
        let n_checked = (0..300).filter(|_| {
            site.command_from(client, &wire);
            site.manager.take_throttled().is_empty()
        });
        assert!(n_checked.count() <= 101);
        assert!(counters(&site).n_throttled >= 199);
        let other = site.router().accept("fd://9");
        let wire = signed_command(REGISTER, &named("/b"));
        assert_eq!(site.command_from(other, &wire).code, 200);
    }
}

/// A site whose neighbours register by `rule`, and a neighbour.
fn open_to_neighbours(rule: LocalhopRule) -> (Site, FaceId) {
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            localhop: Some(rule),
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    (site, neighbour)
}

#[test]
fn a_neighbour_registers_only_names_under_its_identity() {
    let (certificate, signer) = certified("/campus/alice");
    let signers = anchored(&certificate).with_name_rule(NameRule::UnderSigner);
    let (mut site, neighbour) = open_to_neighbours(LocalhopRule::new(signers));
    for (verb, of_last) in [("register", 200), ("unregister", 200)] {
        let command = CommandName {
            scope: Scope::Localhop,
            module: "rib",
            verb,
        };
        for (prefix, code) in [
            ("/", 403),
            ("/campus", 403),
            ("/campus/bank", 403),
            ("/campus/alicex", 403),
            ("/campus/alice", 200),
            ("/campus/alice/x", of_last),
        ] {
            let wire = command_by(&signer, command, &named(prefix));
            let response = site.command_from(neighbour, &wire);
            assert_eq!(response.code, code, "{verb} {prefix}: {}", response.text);
        }
    }
    assert_eq!(counters(&site).n_foreign_name, 8);
    assert!(site.routes().is_empty());
    // Programs on this machine are bound by no such rule.
    assert_eq!(
        site.outcome("rib", "register", &named("/campus/bank")).0,
        200
    );
}

#[test]
fn what_neighbours_register_is_bounded_and_the_response_tells() {
    let (certificate, signer) = certified("/neighbour");
    let command = CommandName {
        scope: Scope::Localhop,
        module: "rib",
        verb: "register",
    };
    let wanted = ControlParameters {
        cost: Some(5),
        flags: Some(route_flags::CHILD_INHERIT | route_flags::CAPTURE),
        expiration_period_ms: None,
        ..named("/neighbour")
    };
    let day = Some(86_400_000);
    let ask = |rule: &LocalhopRule, expiration_period_ms| {
        let (mut site, neighbour) = open_to_neighbours(rule.clone());
        let parameters = ControlParameters {
            expiration_period_ms,
            ..wanted.clone()
        };
        let wire = command_by(&signer, command, &parameters);
        let response = site.command_from(neighbour, &wire);
        assert_eq!(response.code, 200, "{}", response.text);
        let told = response.parameters().unwrap().unwrap();
        let route = site.routes()[0].routes[0].clone();
        assert_eq!(told.cost, Some(route.cost));
        assert_eq!(told.flags, Some(route.flags));
        assert_eq!(
            told.expiration_period_ms.filter(|&ms| ms != u64::MAX),
            route.expiration_period_ms
        );
        route
    };
    let rule = LocalhopRule::new(anchored(&certificate));
    for (asked_ms, granted_ms) in [
        (None, day),
        (Some(u64::MAX), day),
        (Some(86_400_001), day),
        (Some(1_000), Some(1_000)),
    ] {
        let route = ask(&rule, asked_ms);
        assert_eq!(route.cost, 5);
        assert_eq!(route.flags, route_flags::CHILD_INHERIT);
        assert_eq!(route.expiration_period_ms, granted_ms);
    }
    let open = LocalhopRule {
        min_cost: 100,
        allows_capture: true,
        max_expiry_ms: None,
        ..rule
    };
    for asked_ms in [None, Some(7_200_000)] {
        let route = ask(&open, asked_ms);
        assert_eq!((route.cost, route.flags), (100, 3));
        assert_eq!(route.expiration_period_ms, asked_ms);
    }
    // What programs on this machine ask for they get.
    let (mut site, _) = open_to_neighbours(LocalhopRule::new(anchored(&certificate)));
    let (code, told) = site.outcome("rib", "register", &wanted);
    assert_eq!((code, told.flags), (200, Some(3)));
    assert_eq!(told.expiration_period_ms, None);
}

#[test]
fn an_announcer_announces_only_names_under_its_identity() {
    let (certificate, owner) = certified("/campus/alice");
    let bound = anchored(&certificate).with_name_rule(NameRule::UnderSigner);
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            announcements: bound,
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let client = site.client;
    for (prefix, code) in [
        ("/campus/bank", 403),
        ("/campus", 403),
        ("/campus/alice", 200),
        ("/campus/alice/x", 200),
    ] {
        let wire = announcing(&Signer::digest(), &owner, prefix, Scope::Localhost);
        assert_eq!(site.command_from(client, &wire).code, code, "{prefix}");
    }
    assert_eq!(site.manager.counters().n_announcements_rejected, 2);
    // A key may have an identity that goes on where the prefix ends.
    let (certificate, owner) = certified("/a/32=PA");
    let bound = anchored(&certificate).with_name_rule(NameRule::UnderSigner);
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            announcements: bound,
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let client = site.client;
    let wire = announcing(&Signer::digest(), &owner, "/a", Scope::Localhost);
    assert_eq!(site.command_from(client, &wire).code, 403);
}

#[test]
fn root_and_local_prefixes_are_not_announced() {
    let mut site = site();
    let client = site.client;
    let digest = Signer::digest();
    for prefix in [
        "/",
        "/localhost",
        "/localhost/x",
        "/localhop",
        "/localhop/x/y",
    ] {
        let wire = announcing(&digest, &digest, prefix, Scope::Localhost);
        let response = site.command_from(client, &wire);
        assert_eq!(response.code, 403, "{prefix}");
        assert!(response.text.contains("announce"), "{}", response.text);
    }
    assert!(site.routes().is_empty());
    assert!(site.router().announcements.is_empty());
    // A name that only looks local is like any other.
    let wire = announcing(&digest, &digest, "/localhosts", Scope::Localhost);
    assert_eq!(site.command_from(client, &wire).code, 200);
}

#[test]
fn commands_that_a_former_router_may_have_obeyed_are_refused() {
    let (certificate, operator) = certified("/operator");
    let trust = ManagementTrust {
        local: vec![AuthorizeRule {
            signers: anchored(&certificate),
            modules: Module::ALL.to_vec(),
        }],
        ..ManagementTrust::default()
    };
    let mut site = Site::new(ManagerConfig {
        trust,
        started: MonoNs(1_000_000_000),
        ..ManagerConfig::default()
    });
    let client = site.client;
    let wire = by(&operator, "/a");
    site.pass_ms(1_000);
    site.wall_ms += 1;
    let response = site.command_from(client, &wire);
    assert_eq!(response.code, 403);
    assert!(
        response.text.contains("before the router started"),
        "{}",
        response.text
    );
    site.wall_ms -= 1;
    assert_eq!(site.command_from(client, &by(&operator, "/a")).code, 200);
    assert_eq!(counters(&site).n_before_start, 1);
}

#[test]
fn a_neighbour_answers_for_what_it_announces_where_any_announcement_counts() {
    let (certificate, alice) = certified("/campus/alice");
    let signers = anchored(&certificate).with_name_rule(NameRule::UnderSigner);
    let (mut site, neighbour) = open_to_neighbours(LocalhopRule::new(signers));
    let digest = Signer::digest();
    for (prefix, code) in [("/google", 403), ("/campus", 403), ("/campus/alice/x", 200)] {
        let wire = announcing(&alice, &digest, prefix, Scope::Localhop);
        assert_eq!(site.command_from(neighbour, &wire).code, code, "{prefix}");
    }
    assert_eq!(counters(&site).n_foreign_name, 2);
    assert_eq!(site.routes().len(), 1);
}

#[test]
fn faces_of_other_transports_read_datasets_and_command_nothing() {
    let mut site = Site::new(ManagerConfig {
        trust: ManagementTrust {
            transports: Some(vec![CommandTransport::Unix]),
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    });
    let (unix, tcp) = (site.client, site.router().accept("tcp4://127.0.0.1:50000"));
    for face in [unix, tcp] {
        let mut status = site.router().faces[&face.0].clone();
        if face == tcp {
            status.local_uri = "tcp4://127.0.0.1:6363".into();
        }
        let event = support::router::event(FaceEventKind::Created, &status);
        let now = site.now;
        site.manager
            .handle_face_event(now, event, &mut |_| panic!("no reply is due"));
    }
    let refused = site.command_from(tcp, &signed_command(REGISTER, &named("/a")));
    assert_eq!(refused.code, 403);
    assert!(
        refused.text.contains("management.transports"),
        "{refused:?}"
    );
    let n_dropped = site
        .manager
        .counters()
        .n_dropped(DropReason::CommandTransport);
    assert_eq!(n_dropped, 1);
    assert_eq!(site.manager.rib().n_routes(), 0);
    let dataset = Interest {
        can_be_prefix: true,
        ..Interest::new(CommandName::local("rib", "list").name())
    };
    assert_eq!(site.send_from(tcp, &dataset.encode()).len(), 1);
    let given = site.command_from(unix, &signed_command(REGISTER, &named("/a")));
    assert_eq!(given.code, 200);
}
