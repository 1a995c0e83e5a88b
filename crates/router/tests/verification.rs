//! Data under configured prefixes are verified before they are cached or answer anybody.

mod bed;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use bed::{Bed, generate};
use tachonym_client::{Controller, Endpoint, Received, wall_ms};
use tachonym_packet::{Component, Data, Interest, MonoNs, Name, PitToken};
use tachonym_security::{Certificate, CertificateRequest, Signer, SigningKey, Validity, key_name};

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE_MS: u64 = 20_000;

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

/// A key with its name.
fn signer(identity: &str) -> Signer {
    let key = SigningKey::generate_ecdsa().expect("randomness");
    Signer::named(key, key_name(&name(identity), &Component::generic("1")))
}

fn name_of(signer: &Signer) -> Name {
    match signer.locator() {
        Some(tachonym_packet::KeyLocator::Name(name)) => name.clone(),
        _ => unreachable!("made with a name"),
    }
}

/// Writes the certificate of `signer`, by `issuer`, that holds for ten days from some days
/// ago on; the file as TOML.
fn certify(file: &Path, signer: &Signer, issuer: &Signer, days_ago: u64) -> String {
    let request = CertificateRequest {
        key_name: name_of(signer),
        public_key: signer.key().public_key_der().expect("ECDSA").to_vec(),
        issuer_id: Component::generic("issuer"),
        version: 1,
        validity: Validity::days_from(wall_ms() - days_ago * 86_400_000 - 1_000, 10),
    };
    let certificate: Certificate = request.issue(issuer).expect("it signs");
    std::fs::write(file, certificate.to_base64()).expect("the folder is ours");
    format!("\"{}\"", file.display())
}

/// A site: its root, who may sign its data, and who may not.
struct Site {
    alice: Signer,
    carol: Signer,
    expired: Signer,
    bob: Signer,
    root: Signer,
}

impl Site {
    fn new() -> Self {
        Self {
            root: signer("/site"),
            alice: signer("/site/data/alice"),
            carol: signer("/site/data/carol"),
            expired: signer("/site/data"),
            bob: signer("/site/bob"),
        }
    }

    /// What the router is told of it.
    fn rule(&self, folder: &Path) -> String {
        let file = |name: &str| folder.join(name);
        let root = certify(&file("root"), &self.root, &self.root, 0);
        let signers = [
            certify(&file("alice"), &self.alice, &self.root, 0),
            certify(&file("carol"), &self.carol, &self.root, 0),
            certify(&file("expired"), &self.expired, &self.root, 11),
            certify(&file("bob"), &self.bob, &self.root, 0),
        ];
        format!(
            "[[verification]]\nprefix = \"/site/data\"\nanchors = [{root}]\n\
             certificates = [{}]\nsigners_under = \"/site/data\"\n",
            signers.join(", ")
        )
    }
}

fn signed(signer: &Signer, uri: &str) -> Vec<u8> {
    let data = Data {
        content: b"content".to_vec(),
        freshness_period_ms: Some(3_600_000),
        ..Data::new(name(uri))
    };
    signer.sign_data(&data).expect("it signs")
}

/// What a program was sent.
enum Packet {
    Interest(Name, Option<PitToken>),
    Data(Vec<u8>),
}

/// A program at a router.
struct Program {
    endpoint: Endpoint,
    inbox: VecDeque<Packet>,
}

impl Program {
    fn new(uri: &str) -> Self {
        let uri = uri.parse().expect("a FaceUri");
        let endpoint = Endpoint::connect(&uri).expect("the router listens");
        Self {
            endpoint,
            inbox: VecDeque::new(),
        }
    }

    fn register(&mut self, prefix: &str) {
        let mut controller = Controller::new(&mut self.endpoint, Signer::digest());
        controller.register(&name(prefix)).expect("it may");
    }

    fn ask(&mut self, uri: &str) {
        let mut interest = Interest::new(name(uri));
        interest.lifetime_ms = Some(PATIENCE_MS);
        self.endpoint.link().send_interest(&mut interest);
        self.poll(self.endpoint.now());
    }

    fn send(&mut self, wire: &[u8], token: Option<PitToken>) {
        self.endpoint.link().send_data(wire, token);
        self.poll(self.endpoint.now());
    }

    /// Sends what is queued, and keeps what has come.
    fn poll(&mut self, deadline: MonoNs) {
        let inbox = &mut self.inbox;
        let polled = self.endpoint.poll(Some(deadline), |_, received| {
            inbox.push_back(match received {
                Received::Interest(interest, headers) => {
                    Packet::Interest(interest.name().to_name(), headers.pit_token)
                }
                Received::Data(data, _) => Packet::Data(data.wire().to_vec()),
                Received::Nack(reason, interest, _) => {
                    panic!("{} is refused: {reason}", interest.name())
                }
            });
            ControlFlow::Continue(())
        });
        polled.expect("the connection stands");
    }

    fn next(&mut self) -> Packet {
        let deadline = self.endpoint.now() + Duration::from_millis(PATIENCE_MS);
        loop {
            if let Some(packet) = self.inbox.pop_front() {
                return packet;
            }
            assert!(self.endpoint.now() < deadline, "nothing came");
            self.poll(deadline);
        }
    }

    fn next_interest(&mut self) -> (Name, Option<PitToken>) {
        match self.next() {
            Packet::Interest(name, token) => (name, token),
            Packet::Data(_) => panic!("not asked"),
        }
    }

    fn next_data(&mut self) -> Vec<u8> {
        match self.next() {
            Packet::Data(wire) => wire,
            Packet::Interest(name, _) => panic!("asked for {name}"),
        }
    }
}

#[test]
fn a_poisoned_data_is_dropped_and_counted_and_the_good_one_after_it_delivered_and_cached() {
    let site = Site::new();
    let bed = Bed::with(|folder| site.rule(folder));
    for transport in [&bed.listening("tcp4"), &bed.transport] {
        let uri = match transport.starts_with("tcp4") {
            true => "/site/data/alice/over-tcp",
            false => "/site/data/alice/over-unix",
        };
        let mut producer = Program::new(transport);
        producer.register(uri);
        let mut consumer = Program::new(&bed.transport);
        let before = bed.router.snapshot().expect("it runs");
        consumer.ask(uri);
        let (asked, token) = producer.next_interest();
        assert_eq!(asked, name(uri));

        let forger = Signer::named(
            SigningKey::generate_ecdsa().expect("randomness"),
            name_of(&site.alice),
        );
        let mut damaged = signed(&site.alice, uri);
        let at = damaged.windows(7).position(|w| w == b"content");
        damaged[at.expect("it is there")] ^= 0x20;
        let poisoned = [
            (signed(&Signer::digest(), uri), "unsigned-data", 1),
            (signed(&signer("/stranger"), uri), "unknown-key", 1),
            (signed(&site.bob, uri), "key-not-authorized", 1),
            (signed(&site.carol, uri), "name-not-under-signer", 1),
            (signed(&site.expired, uri), "key-expired", 1),
            (signed(&forger, uri), "bad-signature", 2),
            (damaged, "bad-signature", 2),
        ];
        let good = signed(&site.alice, uri);
        for (wire, ..) in &poisoned {
            producer.send(wire, token);
        }
        producer.send(&good, token);
        assert_eq!(consumer.next_data(), good);

        // The producer is not asked again.
        consumer.ask(uri);
        assert_eq!(consumer.next_data(), good);
        let after = bed.router.snapshot().expect("it runs");
        assert_eq!(after.n_cs_entries, before.n_cs_entries + 1);
        assert_eq!(after.n_verified, before.n_verified + 1);
        assert_eq!(after.n_dropped("unsolicited-data"), 0);
        for (_, reason, count) in &poisoned {
            let n_dropped = after.n_dropped(reason) - before.n_dropped(reason);
            assert_eq!(n_dropped, *count, "{reason} over {transport}");
        }
        let told = bed.json(&["status"])["drops"].clone();
        assert_eq!(told["bad-signature"], after.n_dropped("bad-signature"));
        if transport.starts_with("tcp4") {
            let face = producer.endpoint.local_uri().expect("TCP has one");
            let face = bed.json(&["face", "show", &face.to_string()]);
            for (_, reason, count) in &poisoned {
                assert_eq!(face["drops"][reason], *count, "{face}");
            }
        }
    }
}

#[test]
fn data_that_come_again_are_not_verified_again_and_others_never() {
    let site = Site::new();
    let bed = Bed::with(|folder| site.rule(folder));
    let mut producer = Program::new(&bed.transport);
    producer.register("/site");
    let mut consumer = Program::new(&bed.transport);
    let good = signed(&site.alice, "/site/data/alice/x");
    for _ in 0..3 {
        consumer.ask("/site/data/alice/x");
        let (_, token) = producer.next_interest();
        producer.send(&good, token);
        assert_eq!(consumer.next_data(), good);
        bed.text(&["cs", "erase", "/site"]);
    }
    // Nobody asks who has signed what is elsewhere.
    let digest = signed(&Signer::digest(), "/site/other");
    consumer.ask("/site/other");
    let (_, token) = producer.next_interest();
    producer.send(&digest, token);
    assert_eq!(consumer.next_data(), digest);

    let snapshot = bed.router.snapshot().expect("it runs");
    assert_eq!((snapshot.n_verified, snapshot.n_verified_before), (1, 2));
    assert_eq!(snapshot.n_drops(), 0, "{:?}", snapshot.drops);
}

#[test]
fn what_put_signs_by_the_right_identity_arrives_and_by_digest_does_not() {
    let bed = Bed::with(|folder| {
        let certificate = generate(&folder.join("keys"), "/producer");
        let file = folder.join("producer.ndncert");
        std::fs::write(&file, certificate).expect("the folder is ours");
        format!(
            "[[verification]]\nprefix = \"/producer\"\nanchors = [\"{}\"]\n\
             [[verification]]\nprefix = \"/digests\"\ndigest_only = true\n",
            file.display()
        )
    });
    let store = bed.path("keys");
    let store = store.to_str().expect("text");
    let content = bed::noise(20_000);
    let identity = ["--identity", "/producer", "--key-store", store];
    let signed = ["put", "/producer/signed", "-", "--json"];
    let _signed = bed.serve(&[&signed[..], &identity[..]].concat(), &content);
    let _digest = bed.serve(&["put", "/producer/digest", "-", "--json"], &content);
    let _plain = bed.serve(&["put", "/digests/plain", "-", "--json"], &content);
    for good in ["/producer/signed", "/digests/plain"] {
        let output = bed.run(&["get", good, "--quiet"]);
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout == content, "{good}");
    }
    let peek = [
        "peek",
        "/producer/digest",
        "--prefix",
        "--lifetime-ms",
        "300",
    ];
    let (code, error) = bed.failure(&peek);
    assert_eq!(code, 3, "{error}");
    let drops = bed.json(&["status"])["drops"].clone();
    assert!(drops["unsigned-data"].as_u64() >= Some(1), "{drops}");
}
