//! Data are verified by the rule for their prefix, and bad ones are never taken.

use std::sync::LazyLock;

use proptest::prelude::*;
use tachonym_packet::{Component, Data, DataView, KeyLocator, Name, SignatureInfo};
use tachonym_security::{
    Certificate, CertificateRequest, DataVerification, KeyKind, Poison, RequiredSignature, RsaBits,
    Signer, SigningKey, TrustPolicy, Validity, Verdict, VerificationRule, VerificationRules,
    key_name,
};

const SECRET: [u8; 32] = [7; 32];
/// A day in 2023.
const NOW_MS: u64 = 1_700_000_000_000;
const NOW_S: i64 = (NOW_MS / 1000) as i64;
const GOOD: Verdict = Verdict::Good;

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn bad(poison: Poison) -> Verdict {
    Verdict::Poisoned(poison)
}

/// A key with a name.
struct Producer {
    name: Name,
    key: SigningKey,
}

impl Producer {
    fn new(identity: &str, key: SigningKey) -> Self {
        let name = key_name(&name(identity), &Component::generic("1"));
        Self { name, key }
    }

    fn ecdsa(identity: &str) -> Self {
        Self::new(identity, SigningKey::generate_ecdsa().expect("randomness"))
    }

    fn signer(&self) -> Signer {
        Signer::named(self.key.clone(), self.name.clone())
    }

    /// A certificate of it, by `issuer`.
    fn certified_by(&self, issuer: &Self, validity: Validity) -> Certificate {
        let request = CertificateRequest {
            key_name: self.name.clone(),
            public_key: self.key.public_key_der().expect("it has one").to_vec(),
            issuer_id: Component::generic("issuer"),
            version: 1,
            validity,
        };
        request.issue(&issuer.signer()).expect("it signs")
    }

    fn sign(&self, uri: &str, content: &[u8]) -> Vec<u8> {
        signed(&self.signer(), uri, content)
    }

    /// Trusts this one.
    fn policy(&self) -> TrustPolicy {
        let mut policy = TrustPolicy::new();
        let key = self.key.verifying_key().expect("its own");
        let added = policy.add_anchor_key(self.name.clone(), key);
        added.expect("a key's name");
        policy
    }
}

fn signed(signer: &Signer, uri: &str, content: &[u8]) -> Vec<u8> {
    let data = Data {
        content: content.to_vec(),
        freshness_period_ms: Some(1_000),
        ..Data::new(name(uri))
    };
    signer.sign_data(&data).expect("it signs")
}

/// One producer of each kind of key.
static PRODUCERS: LazyLock<Vec<Producer>> = LazyLock::new(|| {
    let keys = [
        SigningKey::generate_rsa(RsaBits::Bits2048),
        SigningKey::generate_ecdsa(),
        SigningKey::generate_ed25519(),
        SigningKey::generate_hmac(),
    ];
    let keys = keys.into_iter().map(|key| key.expect("randomness"));
    keys.map(|key| Producer::new("/site", key)).collect()
});

fn rule(prefix: &str, policy: TrustPolicy) -> VerificationRule {
    VerificationRule {
        prefix: name(prefix),
        signature: RequiredSignature::Key(policy.into()),
    }
}

fn verification(rules: Vec<VerificationRule>) -> DataVerification {
    DataVerification::new(VerificationRules::new(rules), 64, SECRET)
}

fn verify(verification: &mut DataVerification, wire: &[u8]) -> Verdict {
    verify_at(verification, wire, NOW_MS)
}

fn verify_at(verification: &mut DataVerification, wire: &[u8], wall_ms: u64) -> Verdict {
    verification.verify(&DataView::parse(wire).expect("a Data"), wall_ms)
}

#[test]
fn every_kind_of_key_is_verified_and_public_ones_are_remembered() {
    for producer in &*PRODUCERS {
        let mut verification = verification(vec![rule("/site", producer.policy())]);
        let wire = producer.sign("/site/a", b"content");
        for _ in 0..3 {
            assert_eq!(verify(&mut verification, &wire), GOOD);
        }
        let counters = *verification.counters();
        let n_remembered = match producer.key.kind() {
            // Its MAC costs no more than to look it up.
            KeyKind::Hmac => 0,
            _ => 2,
        };
        let kind = producer.key.kind();
        assert_eq!(counters.n_remembered, n_remembered, "{kind}");
        assert_eq!(counters.n_good, 3 - n_remembered, "{kind}");
        assert_eq!(counters.n_poisoned(), 0, "{kind}");
    }
}

#[test]
fn a_signature_by_another_key_under_the_same_name_is_bad_for_each_kind() {
    for producer in &*PRODUCERS {
        let other = match producer.key.kind() {
            KeyKind::Rsa => SigningKey::generate_rsa(RsaBits::Bits2048),
            KeyKind::Ecdsa => SigningKey::generate_ecdsa(),
            KeyKind::Ed25519 => SigningKey::generate_ed25519(),
            _ => SigningKey::generate_hmac(),
        };
        let forger = Producer::new("/site", other.expect("randomness"));
        let mut verification = verification(vec![rule("/site", producer.policy())]);
        let wire = forger.sign("/site/a", b"content");
        let verdict = verify(&mut verification, &wire);
        assert_eq!(verdict, bad(Poison::BadSignature));
        // It is remembered neither as good nor as bad.
        let verdict = verify(&mut verification, &wire);
        assert_eq!(verdict, bad(Poison::BadSignature));
        assert_eq!(verification.counters().n_poisoned(), 2);
    }
}

#[test]
fn only_names_under_a_prefix_are_concerned_and_the_longest_one_counts() {
    let (site, alice) = (Producer::ecdsa("/site"), Producer::ecdsa("/site/alice"));
    let mut verification = verification(vec![
        rule("/site", site.policy()),
        rule("/site/alice", alice.policy()),
    ]);
    for (uri, is_concerned) in [
        ("/site", true),
        ("/site/x", true),
        ("/site/alice/x", true),
        ("/sites/x", false),
        ("/", false),
        ("/x/site", false),
    ] {
        assert_eq!(verification.is_concerned(name(uri).view()), is_concerned);
    }
    let by_site = |uri| site.sign(uri, b"");
    let by_alice = |uri| alice.sign(uri, b"");
    assert_eq!(verify(&mut verification, &by_site("/site/x")), GOOD);
    assert_eq!(verify(&mut verification, &by_alice("/site/alice/x")), GOOD);
    let unknown = bad(Poison::UnknownKey);
    assert_eq!(verify(&mut verification, &by_alice("/site/x")), unknown);
    assert_eq!(
        verify(&mut verification, &by_site("/site/alice/x")),
        unknown
    );
    // Nobody asks who signed this one, and it is not counted.
    let before = *verification.counters();
    let stranger = Producer::ecdsa("/else").sign("/else/x", b"");
    assert_eq!(verify(&mut verification, &stranger), GOOD);
    assert_eq!(*verification.counters(), before);
}

#[test]
fn without_rules_nothing_is_concerned() {
    let verification = DataVerification::new(VerificationRules::default(), 64, SECRET);
    assert!(!verification.is_concerned(name("/").view()));
    assert!(!verification.is_concerned(name("/site/x").view()));
}

#[test]
fn a_key_outside_the_prefix_of_signers_is_known_and_may_not_sign() {
    let root = Producer::ecdsa("/site");
    let (alice, bob) = (
        Producer::ecdsa("/site/data/alice"),
        Producer::ecdsa("/site/bob"),
    );
    let mut policy = root.policy().with_signers_under(name("/site/data"));
    for producer in [&alice, &bob] {
        let certificate = producer.certified_by(&root, Validity::FOREVER);
        policy.add_certificate(&certificate).expect("good");
    }
    let signers: Vec<_> = policy.signers().map(|(name, _)| name.clone()).collect();
    assert_eq!(signers, std::slice::from_ref(&alice.name));
    let mut verification = verification(vec![rule("/site/data", policy)]);
    let mut verdict = |producer: &Producer| {
        let wire = producer.sign("/site/data/x", b"content");
        verify(&mut verification, &wire)
    };
    assert_eq!(verdict(&alice), GOOD);
    assert_eq!(verdict(&bob), bad(Poison::NotAuthorized));
    assert_eq!(verdict(&root), bad(Poison::NotAuthorized));
}

#[test]
fn a_chain_counts_as_long_as_all_of_it_holds_even_for_what_is_remembered() {
    let (root, middle, alice) = (
        Producer::ecdsa("/site"),
        Producer::ecdsa("/site/dept"),
        Producer::ecdsa("/site/dept/alice"),
    );
    let until = |end_s| Validity {
        not_before_s: NOW_S - 100,
        not_after_s: end_s,
    };
    let mut policy = root.policy();
    policy
        .add_certificates([
            &alice.certified_by(&middle, until(NOW_S + 1_000)),
            &middle.certified_by(&root, until(NOW_S + 10)),
        ])
        .expect("good");
    let mut verification = verification(vec![rule("/site", policy)]);
    let wire = alice.sign("/site/dept/x", b"content");
    let mut verdict = |at_s: i64| {
        let wall_ms = at_s as u64 * 1000;
        verify_at(&mut verification, &wire, wall_ms)
    };
    assert_eq!(verdict(NOW_S - 101), bad(Poison::Expired));
    assert_eq!(verdict(NOW_S), GOOD);
    assert_eq!(verdict(NOW_S + 10), GOOD);
    assert_eq!(verdict(NOW_S + 11), bad(Poison::Expired));
    // A clock that is set back is believed.
    assert_eq!(verdict(NOW_S), GOOD);
    let counters = verification.counters();
    assert_eq!((counters.n_good, counters.n_remembered), (1, 2));
}

#[test]
fn another_certificate_of_the_key_takes_the_place_of_one_that_has_expired() {
    let (root, alice) = (Producer::ecdsa("/site"), Producer::ecdsa("/site/alice"));
    let span = |not_before_s, not_after_s| Validity {
        not_before_s,
        not_after_s,
    };
    let mut policy = root.policy();
    policy
        .add_certificates([
            &alice.certified_by(&root, span(NOW_S - 10, NOW_S + 10)),
            &alice.certified_by(&root, span(NOW_S, NOW_S + 100)),
        ])
        .expect("good");
    let mut verification = verification(vec![rule("/site", policy)]);
    let wire = alice.sign("/site/x", b"content");
    for after_s in [0, 50, 50, 101] {
        let expected = match after_s {
            101 => bad(Poison::Expired),
            _ => GOOD,
        };
        let wall_ms = (NOW_S + after_s) as u64 * 1000;
        assert_eq!(verify_at(&mut verification, &wire, wall_ms), expected);
    }
    // Found good under each certificate once.
    let counters = verification.counters();
    assert_eq!((counters.n_good, counters.n_remembered), (2, 1));
}

#[test]
fn the_reason_says_what_is_wrong() {
    let site = Producer::ecdsa("/site");
    let mut policy = site.policy();
    // The same key name for keys of two kinds.
    let rsa = &PRODUCERS[0];
    let key = rsa.key.verifying_key().expect("its own");
    policy
        .add_anchor_key(site.name.clone(), key)
        .expect("a key");
    let mut verification = verification(vec![rule("/site", policy)]);
    let stranger = Producer::ecdsa("/stranger");
    let without_locator = Signer::new(site.key.clone(), None);
    let null = Data {
        signature_info: SignatureInfo::new(200),
        ..Data::new(name("/site/x"))
    };
    let unknown_type = Data {
        signature_info: SignatureInfo {
            key_locator: Some(KeyLocator::Name(site.name.clone())),
            ..SignatureInfo::new(199)
        },
        ..Data::new(name("/site/x"))
    };
    let cases = [
        (signed(&Signer::digest(), "/site/x", b""), Poison::Unsigned),
        (null.encode(), Poison::Unsigned),
        (stranger.sign("/site/x", b""), Poison::UnknownKey),
        (signed(&without_locator, "/site/x", b""), Poison::UnknownKey),
        (unknown_type.encode(), Poison::WrongType),
    ];
    for (wire, poison) in &cases {
        assert_eq!(verify(&mut verification, wire), bad(*poison));
    }
    let by_rsa = Signer::named(rsa.key.clone(), site.name.clone());
    assert_eq!(
        verify(&mut verification, &signed(&by_rsa, "/site/x", b"")),
        GOOD
    );
    assert_eq!(verify(&mut verification, &site.sign("/site/x", b"")), GOOD);

    let counters = verification.counters();
    assert_eq!(counters.n_poisoned(), cases.len() as u64);
    for (poison, count) in counters.poisoned() {
        let n_expected = cases.iter().filter(|case| case.1 == poison).count();
        assert_eq!(count, n_expected as u64, "{poison}");
    }
}

#[test]
fn a_policy_that_accepts_any_signer_accepts_no_unknown_one_here() {
    let mut verification = verification(vec![rule("/site", TrustPolicy::any())]);
    let wire = Producer::ecdsa("/site").sign("/site/x", b"");
    assert_eq!(verify(&mut verification, &wire), bad(Poison::UnknownKey));
    let wire = signed(&Signer::digest(), "/site/x", b"");
    assert_eq!(verify(&mut verification, &wire), bad(Poison::Unsigned));
}

#[test]
fn a_key_locator_may_be_the_digest_of_the_key() {
    let site = Producer::ecdsa("/site");
    let der = site.key.public_key_der().expect("it has one");
    let digest = tachonym_security::sha256(&[der]).to_vec();
    let signer = Signer::new(site.key.clone(), Some(KeyLocator::Digest(digest)));
    let mut verification = verification(vec![rule("/site", site.policy())]);
    let wire = signed(&signer, "/site/x", b"");
    assert_eq!(verify(&mut verification, &wire), GOOD);
}

#[test]
fn digests_alone_show_damage() {
    let mut verification = verification(vec![VerificationRule {
        prefix: name("/site"),
        signature: RequiredSignature::Digest,
    }]);
    let wire = signed(&Signer::digest(), "/site/x", b"content");
    assert_eq!(verify(&mut verification, &wire), GOOD);
    let mut damaged = wire.clone();
    let at = wire.windows(7).position(|w| w == b"content");
    damaged[at.expect("it is there")] ^= 1;
    assert_eq!(
        verify(&mut verification, &damaged),
        bad(Poison::BadSignature)
    );
    let by_key = Producer::ecdsa("/site").sign("/site/x", b"content");
    assert_eq!(verify(&mut verification, &by_key), bad(Poison::WrongType));
}

#[test]
fn what_is_bad_displaces_nothing_that_is_remembered() {
    let (site, forger) = (Producer::ecdsa("/site"), Producer::ecdsa("/site"));
    let rules = VerificationRules::new(vec![rule("/site", site.policy())]);
    let mut verification = DataVerification::new(rules, 8, SECRET);
    let good: Vec<_> = (0..8)
        .map(|i| site.sign(&format!("/site/{i}"), b""))
        .collect();
    for wire in &good {
        assert_eq!(verify(&mut verification, wire), GOOD);
    }
    for i in 0..50 {
        let wire = forger.sign(&format!("/site/{i}"), b"");
        assert_eq!(verify(&mut verification, &wire), bad(Poison::BadSignature));
    }
    for wire in &good {
        assert_eq!(verify(&mut verification, wire), GOOD);
    }
    let counters = verification.counters();
    assert_eq!((counters.n_good, counters.n_remembered), (8, 8));
}

#[test]
fn labels_are_distinct() {
    let mut labels: Vec<_> = Poison::ALL.iter().map(|poison| poison.label()).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), Poison::ALL.len());
}

/// How one Data differs from a good one.
fn changed(wire: &[u8], at: usize, by: u8) -> Vec<u8> {
    let mut changed = wire.to_vec();
    let at = at % changed.len();
    changed[at] ^= by;
    changed
}

proptest! {
    /// Whatever byte of a good Data is changed, before it was seen or after: what is left
    /// is no Data, is not concerned, or is bad.
    #[test]
    fn nothing_that_was_tampered_with_is_taken(
        which in 0_usize..4,
        content in proptest::collection::vec(any::<u8>(), 0..300),
        changes in proptest::collection::vec((any::<usize>(), 1_u8..), 1..20),
        is_seen_before: bool,
    ) {
        let producer = &PRODUCERS[which];
        let mut verification = verification(vec![rule("/site", producer.policy())]);
        let wire = producer.sign("/site/some/name", &content);
        if is_seen_before {
            prop_assert_eq!(verify(&mut verification, &wire), GOOD);
        }
        for (at, by) in changes {
            let changed = changed(&wire, at, by);
            let Ok(data) = DataView::parse(&changed) else {
                continue;
            };
            if verification.is_concerned(data.name()) {
                let verdict = verification.verify(&data, NOW_MS);
                prop_assert!(matches!(verdict, Verdict::Poisoned(_)), "{data:?}");
            }
        }
        prop_assert_eq!(verify(&mut verification, &wire), GOOD);
    }

    /// A memory of any size changes no verdict, whatever comes in whatever order.
    #[test]
    fn what_is_remembered_changes_no_verdict(
        n_remembered in 0_usize..40,
        order in proptest::collection::vec((0_usize..24, 0_u64..4), 0..60),
    ) {
        static SENT: LazyLock<(TrustPolicy, Vec<Vec<u8>>)> = LazyLock::new(|| {
            let (root, alice) = (Producer::ecdsa("/site"), Producer::ecdsa("/site/alice"));
            let forger = Producer::ecdsa("/site");
            let mut policy = root.policy();
            let validity = Validity { not_before_s: NOW_S, not_after_s: NOW_S + 1 };
            policy.add_certificate(&alice.certified_by(&root, validity)).expect("good");
            let producers = [&root, &alice, &forger];
            let wires = (0..24).map(|i| producers[i % 3].sign(&format!("/site/{}", i / 3), b""));
            (policy, wires.collect())
        });
        let (policy, wires) = &*SENT;
        let rules = VerificationRules::new(vec![rule("/site", policy.clone())]);
        let mut with = DataVerification::new(rules.clone(), n_remembered, SECRET);
        let mut without = DataVerification::new(rules, 0, SECRET);
        for (which, after_s) in order {
            let wall_ms = NOW_MS + 1_000 * after_s;
            let verdict = verify_at(&mut with, &wires[which], wall_ms);
            prop_assert_eq!(verdict, verify_at(&mut without, &wires[which], wall_ms));
        }
        let (with, without) = (with.counters(), without.counters());
        prop_assert_eq!(with.n_good + with.n_remembered, without.n_good);
        prop_assert_eq!(without.n_remembered, 0);
        prop_assert!(with.poisoned().eq(without.poisoned()));
    }
}
