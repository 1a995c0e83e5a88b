//! Who is let through, and what the others hear.

mod support;

use support::*;
use tachonym_manage::{DropReason, ManagerConfig, RejectReason};
use tachonym_packet::{Interest, SignatureInfo, types};
use tachonym_protocol::*;

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

fn rejected(site: &Site, reason: RejectReason) -> u64 {
    site.manager.counters().n_rejected(reason)
}

#[test]
fn unsigned_commands_are_refused() {
    let mut site = site();
    let client = site.client;
    let command = CommandName::local("rib", "register").with_parameters(&named("/a"));
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
    assert_eq!(rejected(&site, RejectReason::Unsigned), 3);
    assert_eq!(site.manager.rib().n_routes(), 0);
    assert!(site.router().fib.is_empty());
}

#[test]
fn digests_that_do_not_match_are_refused() {
    let mut site = site();
    let client = site.client;
    let register = CommandName::local("rib", "register");
    // Any bit of what is signed, or of the signature.
    for (wire, reason) in [
        (
            signed_command(register, &named("/a")),
            RejectReason::BadDigest,
        ),
        (
            legacy_command(register, &named("/a")),
            RejectReason::BadSignature,
        ),
    ] {
        let mut wire = wire;
        *wire.last_mut().unwrap() ^= 1;
        if reason == RejectReason::BadSignature {
            // The last bytes of the older form are the lifetime or the name's end.
            assert_eq!(rejected(&site, reason), 0);
        }
        assert_eq!(site.command_from(client, &wire).code, 403);
        assert_eq!(rejected(&site, reason), 1, "{reason}");
    }
    assert_eq!(site.manager.rib().n_routes(), 0);
}

#[test]
fn a_digest_over_something_else_is_refused() {
    let mut site = site();
    let client = site.client;
    let register = CommandName::local("rib", "register").with_parameters(&named("/a"));
    let wire = Interest::new(register)
        .encode_signed(&SignatureInfo::digest(), |_| Ok::<_, ()>(vec![0; 32]))
        .unwrap();
    assert_eq!(site.command_from(client, &wire).code, 403);
    assert_eq!(rejected(&site, RejectReason::BadSignature), 1);
}

#[test]
fn keys_that_nobody_knows_are_believed_by_default() {
    let mut site = site();
    let client = site.client;
    let register = CommandName::local("rib", "register").with_parameters(&named("/a"));
    let info = SignatureInfo {
        key_locator: Some(tachonym_packet::KeyLocator::Name(name("/me/KEY/1"))),
        ..SignatureInfo::new(types::signature_type::SHA256_WITH_ECDSA)
    };
    let wire = Interest::new(register)
        .encode_signed(&info, |_| Ok::<_, ()>(vec![0; 70]))
        .unwrap();
    assert_eq!(site.command_from(client, &wire).code, 200);
}

#[test]
fn neighbours_are_not_served_by_default() {
    let mut site = site();
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    let command = CommandName {
        scope: Scope::Localhop,
        module: "rib",
        verb: "register",
    };
    let wire = signed_command(command, &named("/a"));
    assert!(site.send_from(neighbour, &wire).is_empty());
    let reason = DropReason::LocalhopDisabled;
    assert_eq!(site.manager.counters().n_dropped(reason), 1);
}

#[test]
fn a_hundred_thousand_bad_signatures_are_counted_and_leave_nothing_behind() {
    let mut site = site();
    let client = site.client;
    let register = CommandName::local("rib", "register");
    let wire = signed_command(register, &named("/a"));
    let value_at = wire.len() - 1;
    for i in 0..100_000u32 {
        let mut wire = wire.clone();
        wire[value_at] ^= 1 + (i % 255) as u8;
        assert_eq!(site.command_from(client, &wire).code, 403);
    }
    assert_eq!(rejected(&site, RejectReason::BadDigest), 100_000);
    assert_eq!(site.manager.rib().n_routes(), 0);
    assert_eq!(site.router().n_fib_batches, 0);
    // The next good one is served as ever.
    assert_eq!(site.command_from(client, &wire).code, 200);
}
