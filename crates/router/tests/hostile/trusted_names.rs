//! What a trusted signer may speak for, and replays.

use std::io::{Read, Write};
use std::path::Path;

use tachonym_client::wall_ms;
use tachonym_packet::{
    Component, Data, DataView, Interest, InterestView, KeyLocator, SignatureInfo, tlv,
};
use tachonym_protocol::{
    COST, CommandName, ControlParameters, ControlResponse, RibEntry, Scope, prefix_announcement,
    route_flags,
};
use tachonym_security::{Certificate, CertificateRequest, Signer, SigningKey, Validity, key_name};

use crate::bed::*;

/// A campus: its root, and one of those whom it has certified.
struct Campus {
    root: Signer,
    alice: Signer,
}

impl Campus {
    fn new() -> Self {
        let [root, alice] = ["/campus", "/campus/alice"].map(|identity| {
            let key = SigningKey::generate_ecdsa().expect("randomness");
            Signer::named(key, key_name(&name(identity), &Component::generic("1")))
        });
        Self { root, alice }
    }

    /// `anchors` and `certificates` of a policy that trusts the root, and so Alice.
    fn policy(&self, folder: &Path) -> String {
        let certify = |file: &str, signer: &Signer| {
            let Some(KeyLocator::Name(key_name)) = signer.locator() else {
                unreachable!("made with a name");
            };
            let request = CertificateRequest {
                key_name: key_name.clone(),
                public_key: signer.key().public_key_der().expect("ECDSA").to_vec(),
                issuer_id: Component::generic("root"),
                version: 1,
                validity: Validity::days_from(wall_ms() - 60_000, 10),
            };
            let certificate: Certificate = request.issue(&self.root).expect("it signs");
            let file = folder.join(file);
            std::fs::write(&file, certificate.to_base64()).expect("the folder is ours");
            file.display().to_string()
        };
        format!(
            "anchors = [\"{}\"]\ncertificates = [\"{}\"]\n",
            certify("root", &self.root),
            certify("alice", &self.alice)
        )
    }
}

const REGISTER: CommandName<'_> = CommandName::local("rib", "register");

fn named(prefix: &str) -> ControlParameters {
    ControlParameters {
        name: Some(name(prefix)),
        ..ControlParameters::default()
    }
}

/// A command that `signer` signs now.
fn command(signer: &Signer, command: CommandName<'_>, parameters: &ControlParameters) -> Vec<u8> {
    let interest = Interest::new(command.with_parameters(parameters));
    sign(signer, &interest)
}

fn sign(signer: &Signer, interest: &Interest) -> Vec<u8> {
    let info = SignatureInfo {
        time_ms: Some(wall_ms()),
        nonce: Some(next_nonce()),
        ..SignatureInfo::digest()
    };
    signer.sign_interest(interest, &info).expect("it signs")
}

/// Tells commands of one millisecond apart.
fn next_nonce() -> Vec<u8> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static N_SIGNED: AtomicU64 = AtomicU64::new(0);
    let n_signed = N_SIGNED.fetch_add(1, Ordering::Relaxed);
    n_signed.to_be_bytes().to_vec()
}

/// What the router answers to a command.
fn response<S: Read + Write>(stream: &mut Stream<S>, wire: &[u8]) -> ControlResponse {
    stream.send(wire);
    let (_, reply) = stream.packet();
    let data = DataView::parse(&reply).expect("a Data");
    let asked = InterestView::parse(wire).expect("an Interest");
    assert_eq!(data.name(), asked.name());
    ControlResponse::decode(data.content()).expect("a response")
}

/// The RIB, which is small.
fn routes<S: Read + Write>(stream: &mut Stream<S>) -> Vec<RibEntry> {
    let asked = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        ..Interest::new(CommandName::local("rib", "list").name())
    };
    stream.send(&asked.encode());
    let (_, reply) = stream.packet();
    let data = DataView::parse(&reply).expect("a Data");
    RibEntry::decode_list(data.content()).expect("a RIB")
}

#[test]
fn a_neighbour_registers_only_under_its_identity_and_within_bounds() {
    let campus = Campus::new();
    let bed = Bed::with(|folder| {
        let policy = campus.policy(folder);
        format!("[management.localhop]\nenabled = true\n{policy}")
    });
    let register = CommandName {
        scope: Scope::Localhop,
        ..REGISTER
    };
    let greedy = |prefix| ControlParameters {
        cost: Some(0),
        flags: Some(route_flags::CHILD_INHERIT | route_flags::CAPTURE),
        ..named(prefix)
    };
    let mut neighbour = bed.tcp();
    for prefix in ["/", "/campus", "/campus/bank", "/google"] {
        let wire = command(&campus.alice, register, &greedy(prefix));
        let refused = response(&mut neighbour, &wire);
        assert_eq!(refused.code, 403, "{prefix}: {}", refused.text);
        assert!(refused.text.contains("identity"), "{}", refused.text);
    }
    let wire = command(&campus.alice, register, &greedy("/campus/alice/x"));
    let granted = response(&mut neighbour, &wire);
    assert_eq!(granted.code, 200, "{}", granted.text);
    let told = granted.parameters().expect("well-formed").expect("a body");
    assert_eq!(told.flags, Some(route_flags::CHILD_INHERIT));
    assert_eq!(told.expiration_period_ms, Some(86_400_000));
    let wire = command(&campus.root, register, &named("/campus/bank"));
    assert_eq!(response(&mut neighbour, &wire).code, 200);
    let routes = routes(&mut bed.unix());
    let mut prefixes: Vec<_> = routes.iter().map(|entry| entry.name.to_string()).collect();
    prefixes.sort_unstable();
    assert_eq!(prefixes, ["/campus/alice/x", "/campus/bank"]);
    for entry in &routes {
        assert_eq!(entry.routes[0].flags, route_flags::CHILD_INHERIT);
        let expires_ms = entry.routes[0].expiration_period_ms;
        assert!(expires_ms.is_some_and(|ms| ms <= 86_400_000));
    }
    bed.router.stop().expect("it ends");
}

/// A command that bears an announcement by `owner`.
fn announcing(owner: &Signer, announcement: &Data) -> Vec<u8> {
    let interest = Interest {
        application_parameters: Some(owner.sign_data(announcement).expect("it signs")),
        ..Interest::new(CommandName::local("rib", "announce").name())
    };
    sign(&Signer::digest(), &interest)
}

#[test]
fn an_announcement_counts_only_under_the_identity_of_its_signer() {
    let campus = Campus::new();
    let bed = Bed::with(|folder| {
        let policy = campus.policy(folder);
        format!("[management.announcements]\n{policy}")
    });
    let mut program = bed.unix();
    for prefix in ["/campus/bank", "/campus", "/google"] {
        let announcement = prefix_announcement(&name(prefix), 1, 60_000);
        let wire = announcing(&campus.alice, &announcement);
        let refused = response(&mut program, &wire);
        assert_eq!(refused.code, 403, "{prefix}");
        assert!(refused.text.contains("identity"), "{}", refused.text);
    }
    let mut announcement = prefix_announcement(&name("/campus/alice"), 1, 60_000);
    tlv::write_nni(&mut announcement.content, COST, 77);
    let granted = response(&mut program, &announcing(&campus.alice, &announcement));
    assert_eq!(granted.code, 200, "{}", granted.text);
    let routes = routes(&mut program);
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].name, name("/campus/alice"));
    assert_eq!(routes[0].routes[0].cost, 77, "as it says");
    bed.router.stop().expect("it ends");
}

#[test]
fn root_and_local_prefixes_are_not_announced() {
    let bed = Bed::new("");
    let mut program = bed.unix();
    for prefix in [
        "/",
        "/localhost",
        "/localhost/x",
        "/localhop",
        "/localhop/nfd",
    ] {
        let announcement = prefix_announcement(&name(prefix), 1, 60_000);
        let wire = announcing(&Signer::digest(), &announcement);
        assert_eq!(response(&mut program, &wire).code, 403, "{prefix}");
    }
    assert!(routes(&mut program).is_empty());
    let announcement = prefix_announcement(&name("/mine"), 1, 60_000);
    let wire = announcing(&Signer::digest(), &announcement);
    assert_eq!(response(&mut program, &wire).code, 200);
    bed.router.stop().expect("it ends");
}

#[test]
fn a_data_for_anothers_name_neither_answers_nor_is_cached() {
    let campus = Campus::new();
    let bed = Bed::with(|folder| {
        let policy = campus.policy(folder);
        format!("[[verification]]\nprefix = \"/campus\"\n{policy}")
    });
    let mut producer = bed.unix();
    producer.register("/campus");
    let mut consumer = bed.unix();
    let ask = |consumer: &mut Stream<_>, producer: &mut Stream<_>, uri: &str| {
        consumer.send(&interest(uri));
        let (headers, asked) = producer.packet();
        let asked = InterestView::parse(&asked).expect("an Interest");
        assert_eq!(asked.name(), name(uri));
        headers.pit_token
    };
    let signed = |signer: &Signer, uri: &str| {
        let data = Data {
            freshness_period_ms: Some(60_000),
            ..Data::new(name(uri))
        };
        signer.sign_data(&data).expect("it signs")
    };
    let token = ask(&mut consumer, &mut producer, "/campus/bank/x");
    let forged = signed(&campus.alice, "/campus/bank/x");
    producer.send(&framed(token, &forged));
    bed.drops_become(1, "Alice speaks for the bank");
    let snapshot = bed.router.snapshot().expect("it runs");
    assert_eq!(snapshot.n_dropped("name-not-under-signer"), 1);
    assert_eq!(snapshot.n_cs_entries, 0);
    // The right one, which comes later, arrives; and so does what Alice says of herself.
    let good = signed(&campus.root, "/campus/bank/x");
    producer.send(&framed(token, &good));
    assert_eq!(consumer.packet().1, good);
    let token = ask(&mut consumer, &mut producer, "/campus/alice/x");
    let own = signed(&campus.alice, "/campus/alice/x");
    producer.send(&framed(token, &own));
    assert_eq!(consumer.packet().1, own);
    bed.router.stop().expect("it ends");
}

#[test]
fn a_command_is_not_obeyed_again_after_a_restart() {
    let campus = Campus::new();
    for is_trusted in [true, false] {
        let mut bed = Bed::with(|folder| {
            let policy = campus.policy(folder);
            let rule = format!("[[management.authorize]]\nmodules = [\"rib\"]\n{policy}");
            if is_trusted { rule } else { String::new() }
        });
        let signer = match is_trusted {
            true => &campus.alice,
            false => &Signer::digest(),
        };
        let wire = command(signer, REGISTER, &named("/replayed"));
        let mut program = bed.unix();
        assert_eq!(response(&mut program, &wire).code, 200);
        assert_eq!(response(&mut program, &wire).code, 403, "again");
        // Times have a resolution of a millisecond, and a router starts within one.
        let signed_before_ms = wall_ms() + 5;
        while wall_ms() < signed_before_ms {
            std::thread::yield_now();
        }
        bed = bed.restart();
        let mut attacker = bed.unix();
        let refused = response(&mut attacker, &wire);
        assert_eq!(refused.code, 403, "after a restart");
        assert!(refused.text.contains("started"), "{}", refused.text);
        assert!(routes(&mut attacker).is_empty());
        // What is signed now is obeyed at once, and then the old one still is not.
        let wire_now = command(signer, REGISTER, &named("/new"));
        assert_eq!(response(&mut attacker, &wire_now).code, 200);
        assert_eq!(response(&mut attacker, &wire).code, 403);
        assert_eq!(routes(&mut attacker).len(), 1);
        bed.router.stop().expect("it ends");
    }
}
