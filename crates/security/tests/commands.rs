//! Signed Interests count once, and only for names that their signers have.

use std::time::Duration;

use tachonym_packet::{
    Component, Data, DataView, FaceId, Interest, InterestView, KeyLocator, MonoNs, Name,
    SignatureInfo,
};
use tachonym_security::{
    Accepted, CertificateRequest, CommandVerifier, NameRule, Reject, Signer, SigningKey,
    TrustPolicy, Validity, VerifierConfig, key_name,
};

/// A day in 2023.
const WALL_MS: u64 = 1_700_000_000_000;
const FACE: FaceId = FaceId(256);

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn signer(identity: &str) -> Signer {
    let key = SigningKey::generate_ecdsa().expect("randomness");
    Signer::named(key, key_name(&name(identity), &Component::generic("1")))
}

fn key_of(signer: &Signer) -> Name {
    match signer.locator() {
        Some(KeyLocator::Name(name)) => name.clone(),
        _ => unreachable!("made with a name"),
    }
}

/// Trusts `signers`.
fn policy(signers: &[&Signer]) -> TrustPolicy {
    let mut policy = TrustPolicy::new();
    for signer in signers {
        let key = signer.key().verifying_key().expect("its own");
        let added = policy.add_anchor_key(key_of(signer), key);
        added.expect("a key's name");
    }
    policy
}

/// A command that says it was signed at `time_ms`.
fn command(signer: &Signer, time_ms: Option<u64>, nonce: u8) -> Vec<u8> {
    let info = SignatureInfo {
        time_ms,
        nonce: Some(vec![nonce; 8]),
        ..SignatureInfo::digest()
    };
    let interest = Interest::new(name("/localhop/nfd/rib/register/params"));
    signer.sign_interest(&interest, &info).expect("it signs")
}

/// A router's verifier, and the clocks of its machine.
struct Machine {
    verifier: CommandVerifier,
    now: MonoNs,
    wall_ms: u64,
}

impl Machine {
    fn start(now: MonoNs, wall_ms: u64) -> Self {
        let mut config = VerifierConfig::default();
        config.replay.require_time = false;
        Self {
            verifier: CommandVerifier::new(config, now),
            now,
            wall_ms,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.wall_ms += u64::try_from(time.as_millis()).expect("a short time");
    }

    /// The router ends, and another one starts at once.
    fn restart(&mut self) {
        *self = Self::start(self.now, self.wall_ms);
    }

    fn verify(&mut self, wire: &[u8], policy: &TrustPolicy) -> Result<Accepted, Reject> {
        self.verify_about(wire, None, policy)
    }

    fn verify_about(
        &mut self,
        wire: &[u8],
        about: Option<&Name>,
        policy: &TrustPolicy,
    ) -> Result<Accepted, Reject> {
        let interest = InterestView::parse(wire).expect("an Interest");
        let about = about.map(Name::view);
        self.verifier
            .verify(&interest, about, &[policy], FACE, self.now, self.wall_ms)
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_command_is_not_accepted_again_after_a_restart() {
    let operator = signer("/operator");
    for (policy, signer) in [
        (policy(&[&operator]), &operator),
        // A digest and a key that no policy knows tell the time, too.
        (TrustPolicy::any(), &operator),
        (TrustPolicy::any(), &Signer::digest()),
    ] {
        let mut machine = Machine::start(MonoNs(77), WALL_MS);
        machine.pass(10 * SECOND);
        let wire = command(signer, Some(machine.wall_ms), 1);
        assert!(machine.verify(&wire, &policy).is_ok());
        assert_eq!(machine.verify(&wire, &policy), Err(Reject::Replayed));
        for _ in 0..3 {
            machine.pass(20 * SECOND);
            machine.restart();
            machine.pass(SECOND / 10);
            assert_eq!(machine.verify(&wire, &policy), Err(Reject::BeforeStart));
            assert_eq!(machine.verifier.counters().n_before_start, 1);
        }
        machine.pass(120 * SECOND);
        assert_eq!(machine.verify(&wire, &policy), Err(Reject::OutsideGrace));
        // What is signed now is accepted.
        let wire = command(signer, Some(machine.wall_ms), 2);
        assert!(machine.verify(&wire, &policy).is_ok());
    }
}

#[test]
fn an_older_command_of_a_key_that_is_known_again_is_refused_too() {
    let operator = signer("/operator");
    let policy = policy(&[&operator]);
    let mut machine = Machine::start(MonoNs(77), WALL_MS);
    let old = command(&operator, Some(machine.wall_ms), 1);
    assert!(machine.verify(&old, &policy).is_ok());
    machine.pass(SECOND);
    machine.restart();
    let new = command(&operator, Some(machine.wall_ms), 2);
    assert!(machine.verify(&new, &policy).is_ok());
    assert_eq!(machine.verify(&old, &policy), Err(Reject::BeforeStart));
}

#[test]
fn what_is_signed_at_the_moment_of_the_start_is_accepted() {
    let operator = signer("/operator");
    let policy = policy(&[&operator]);
    // Any part of a millisecond may have passed on one clock, not yet on the other.
    for (start_ns, now_ns) in [(0, 1), (900_000, 1_000_001), (999_999, 1_000_000)] {
        let mut machine = Machine::start(MonoNs(start_ns), WALL_MS);
        machine.now = MonoNs(now_ns);
        machine.wall_ms = WALL_MS + now_ns / 1_000_000;
        let wire = command(&operator, Some(WALL_MS), 1);
        assert!(machine.verify(&wire, &policy).is_ok(), "{now_ns}");
    }
}

#[test]
fn a_signer_whose_clock_is_behind_waits_for_as_long_after_a_start() {
    let operator = signer("/operator");
    let policy = policy(&[&operator]);
    let mut machine = Machine::start(MonoNs(77), WALL_MS);
    let behind_ms = 5_000;
    machine.pass(SECOND);
    let wire = command(&operator, Some(machine.wall_ms - behind_ms), 1);
    let refused = machine.verify(&wire, &policy).expect_err("too early");
    assert_eq!(refused, Reject::BeforeStart);
    assert!(refused.to_string().contains("sign it again"), "{refused}");
    machine.pass(5 * SECOND);
    let wire = command(&operator, Some(machine.wall_ms - behind_ms), 2);
    assert!(machine.verify(&wire, &policy).is_ok());
}

#[test]
fn setting_the_clock_neither_admits_a_repetition_nor_locks_signers_out() {
    let operator = signer("/operator");
    let policy = policy(&[&operator]);
    for step_s in [-86_400_i64, -60, 60, 1_000_000_000] {
        // The clock is wrong at the start, and set right a minute later.
        let right_ms = WALL_MS;
        let old = command(&operator, Some(right_ms - 50), 1);
        let mut machine =
            Machine::start(MonoNs(77), right_ms.saturating_add_signed(-step_s * 1000));
        machine.pass(60 * SECOND);
        machine.wall_ms = right_ms + 60_000;
        let refused = machine.verify(&old, &policy);
        assert_eq!(refused, Err(Reject::BeforeStart), "{step_s}");
        let new = command(&operator, Some(machine.wall_ms), 2);
        assert!(machine.verify(&new, &policy).is_ok(), "{step_s}");
    }
}

#[test]
fn commands_without_time_and_key_are_accepted_after_a_start() {
    let mut machine = Machine::start(MonoNs(77), WALL_MS);
    let interest = Interest::new(name("/localhost/nfd/rib/register/params"));
    let wire = interest.encode_with_digest(&SignatureInfo::digest());
    for _ in 0..2 {
        assert_eq!(
            machine.verify(&wire, &TrustPolicy::any()),
            Ok(Accepted::Digest)
        );
        machine.restart();
    }
    // A trusted key has to tell the time, so nothing of it can be repeated.
    let operator = signer("/operator");
    let wire = command(&operator, None, 1);
    let refused = machine.verify(&wire, &policy(&[&operator]));
    assert_eq!(refused, Err(Reject::MissingTime));
}

#[test]
fn a_key_that_was_forgotten_repeats_nothing_when_it_comes_back() {
    let (first, second) = (signer("/first"), signer("/second"));
    let policy = policy(&[&first, &second]);
    let mut config = VerifierConfig::default();
    config.replay.max_keys = 1;
    let mut verifier = CommandVerifier::new(config, MonoNs::ZERO);
    let mut verify = |wire: &[u8]| {
        let interest = InterestView::parse(wire).expect("an Interest");
        let now = MonoNs(100_000_000_000);
        verifier.verify(&interest, None, &[&policy], FACE, now, WALL_MS)
    };
    let old = command(&first, Some(WALL_MS - 2), 1);
    assert!(verify(&old).is_ok());
    assert!(verify(&command(&second, Some(WALL_MS - 1), 2)).is_ok());
    // It is known again from here on, but not for what it signed before.
    assert!(verify(&command(&first, Some(WALL_MS), 3)).is_ok());
    assert_eq!(verify(&old), Err(Reject::Replayed));
}

#[test]
fn a_key_bound_to_its_identity_commands_only_what_is_under_it() {
    let (alice, root) = (signer("/campus/alice"), signer("/campus"));
    let any = policy(&[&alice, &root]);
    let bound = any.clone().with_name_rule(NameRule::UnderSigner);
    let mut machine = Machine::start(MonoNs(77), WALL_MS);
    let mut nonce = 0;
    let mut verify = |signer: &Signer, about: &str, policy: &TrustPolicy| {
        nonce += 1;
        let wire = command(signer, Some(WALL_MS), nonce);
        machine.verify_about(&wire, Some(&name(about)), policy)
    };
    for about in ["/campus/alice", "/campus/alice/x"] {
        assert!(verify(&alice, about, &bound).is_ok(), "{about}");
        assert!(verify(&root, about, &bound).is_ok(), "{about}");
    }
    for about in [
        "/",
        "/campus",
        "/campus/bob",
        "/campus/alic",
        "/campus/alicex",
    ] {
        let refused = verify(&alice, about, &bound);
        assert_eq!(refused, Err(Reject::ForeignName), "{about}");
        assert!(verify(&alice, about, &any).is_ok(), "{about}");
    }
    assert_eq!(machine.verifier.counters().n_foreign_name, 5);
    // What speaks of no name is not bound to one.
    let wire = command(&alice, Some(WALL_MS), 200);
    assert!(machine.verify(&wire, &bound).is_ok());
}

#[test]
fn one_key_of_two_identities_signs_for_both() {
    let key = SigningKey::generate_ecdsa().expect("randomness");
    let named = |identity: &str| {
        let name = key_name(&name(identity), &Component::generic("1"));
        Signer::named(key.clone(), name)
    };
    let (a, b) = (named("/a"), named("/b"));
    let bound = policy(&[&a, &b]).with_name_rule(NameRule::UnderSigner);
    // The locator is the digest of the key, which both names have.
    let request = CertificateRequest {
        key_name: key_of(&a),
        public_key: key.public_key_der().expect("ECDSA").to_vec(),
        issuer_id: Component::generic("self"),
        version: 1,
        validity: Validity::days_from(WALL_MS, 1),
    };
    let certificate = request.issue(&a).expect("it signs");
    let digest = certificate.public_key_digest().to_vec();
    let by_digest = Signer::new(key.clone(), Some(KeyLocator::Digest(digest)));
    let mut machine = Machine::start(MonoNs(77), WALL_MS);
    for (about, nonce) in [("/a/x", 1), ("/b/x", 2)] {
        let wire = command(&by_digest, Some(WALL_MS), nonce);
        let accepted = machine.verify_about(&wire, Some(&name(about)), &bound);
        assert!(accepted.is_ok(), "{about}: {accepted:?}");
    }
    let wire = command(&by_digest, Some(WALL_MS), 3);
    let refused = machine.verify_about(&wire, Some(&name("/c")), &bound);
    assert_eq!(refused, Err(Reject::ForeignName));
}

#[test]
fn a_data_speaks_for_its_own_name_or_for_what_it_is_about() {
    let alice = signer("/campus/alice");
    let bound = policy(&[&alice]).with_name_rule(NameRule::UnderSigner);
    let sign = |uri: &str| alice.sign_data(&Data::new(name(uri))).expect("it signs");
    let own = sign("/campus/alice/x");
    let own = DataView::parse(&own).expect("a Data");
    assert!(bound.verify_data(&own, WALL_MS).is_ok());
    let foreign = sign("/campus/bob/x");
    let foreign = DataView::parse(&foreign).expect("a Data");
    assert_eq!(
        bound.verify_data(&foreign, WALL_MS),
        Err(Reject::ForeignName)
    );
    // The name has the identity for a prefix; what it announces is shorter.
    let campus = name("/campus");
    assert_eq!(
        bound.verify_statement(&own, campus.view(), WALL_MS),
        Err(Reject::ForeignName)
    );
}
