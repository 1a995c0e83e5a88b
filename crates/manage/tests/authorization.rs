//! Who is let through, and what the others hear.

mod support;

use support::*;
use tachonym_manage::{AuthorizeRule, DropReason, ManagementTrust, ManagerConfig, Module};
use tachonym_packet::{Interest, KeyLocator, SignatureInfo, types};
use tachonym_protocol::*;
use tachonym_security::{Certificate, Signer, TrustPolicy, VerifierCounters};

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
    assert_eq!(site.command_from(client, &wire).code, 200);
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
            localhop: Some(anchored(&certificate)),
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
    assert_eq!(site.manager.rib().n_routes(), 0);
    assert_eq!(site.router().n_fib_batches, 0);
    // Another face is served as ever, and so is this one when it has been
    // forgiven.
    let other = site.router().accept("fd://9");
    assert_eq!(site.command_from(other, &wire).code, 200);
    site.pass_ms(60_000);
    let wire = signed_command(REGISTER, &named("/b"));
    assert_eq!(site.command_from(client, &wire).code, 200);
}
