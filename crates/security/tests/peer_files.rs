//! What another implementation wrote is read, and its signatures verify.
//! Origin of the files: `testdata/README.md`.

use tachonym_packet::{FaceId, InterestView, KeyLocator, MonoNs, Name};
use tachonym_security::{
    Accepted, Certificate, CommandVerifier, Endorsement, KeyKind, SafeBag, SignedForm,
    SignedInterest, Signer, TrustPolicy, VerifierConfig, VerifyingKey, verify_interest,
};

const SITE: &str = include_str!("../testdata/site.ndncert");
const OPERATOR: &str = include_str!("../testdata/operator.ndncert");
const OPERATOR_BAG: &str = include_str!("../testdata/operator.safebag");
const RSA_BAG: &str = include_str!("../testdata/rsa.safebag");
const LEGACY: &[u8] = include_bytes!("../testdata/ndn-cxx-command-legacy.tlv");
const V03: &[u8] = include_bytes!("../testdata/ndn-cxx-command-v03.tlv");
const DIGEST: &[u8] = include_bytes!("../testdata/ndn-cxx-command-digest.tlv");

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn certificate(text: &str) -> Certificate {
    Certificate::from_base64(text).expect("a certificate")
}

#[test]
fn a_certificate_file_is_read_and_written_alike() {
    let site = certificate(SITE);
    assert_eq!(site.identity(), name("/tachonym/site"));
    assert_eq!(
        site.key_name(),
        name("/tachonym/site/KEY/%E2%40H%83U%D6%7B%1D")
    );
    assert_eq!(site.issuer_id().to_string(), "self");
    assert_eq!(site.version().as_number(), Some(1_795_234_570_751));
    assert!(site.is_self_signed());
    let key = site.verifying_key().expect("a public key");
    assert_eq!(key.kind(), KeyKind::Ecdsa);
    assert_eq!(site.verify(&key), Ok(()));
    let flat = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(flat(&site.to_base64()), flat(SITE));
}

#[test]
fn an_issued_certificate_verifies_with_its_issuer_only() {
    let (site, operator) = (certificate(SITE), certificate(OPERATOR));
    assert!(!operator.is_self_signed());
    let issuer = site.verifying_key().expect("a public key");
    assert_eq!(operator.verify(&issuer), Ok(()));
    let own = operator.verifying_key().expect("a public key");
    assert!(operator.verify(&own).is_err());
    assert_eq!(
        operator.validity().to_string(),
        "20200101T000000 to 20991231T235959"
    );
    assert!(operator.is_valid_at(1_577_836_800_000));
    assert!(!operator.is_valid_at(1_577_836_799_999));
}

#[test]
fn safe_bags_open_with_their_password() {
    for (text, kind) in [(OPERATOR_BAG, KeyKind::Ecdsa), (RSA_BAG, KeyKind::Rsa)] {
        let bag = SafeBag::from_base64(text).expect("a SafeBag");
        let key = bag.open(b"secret").expect("the password");
        assert_eq!(key.kind(), kind);
        assert!(bag.certificate().certifies(&key));
        assert!(bag.open(b"Secret").is_err());
        let public = bag.certificate().verifying_key().expect("a public key");
        assert_eq!(bag.certificate().verify(&public), Ok(()));
        let again = SafeBag::parse(&bag.encode()).expect("own encoding");
        assert_eq!(again, bag);
    }
}

#[test]
fn commands_in_both_forms_verify() {
    let key = certificate(OPERATOR).verifying_key().expect("a public key");
    for (wire, form) in [(LEGACY, SignedForm::Legacy), (V03, SignedForm::V03)] {
        let interest = InterestView::parse(wire).expect("an Interest");
        let signed = SignedInterest::find(&interest)
            .expect("well-formed")
            .expect("signed");
        assert_eq!(signed.form(), form);
        assert_eq!(
            signed.command_name(),
            name("/localhost/nfd/rib/register/params")
        );
        assert!(
            signed
                .time_ms()
                .is_some_and(|ms| ms / 1_000_000_000 == 1795)
        );
        assert_eq!(signed.nonce().map(<[u8]>::len), Some(8));
        assert_eq!(verify_interest(&interest, &key), Ok(()));
        let other = certificate(SITE).verifying_key().expect("a public key");
        assert!(verify_interest(&interest, &other).is_err());
    }
    let interest = InterestView::parse(DIGEST).expect("an Interest");
    assert_eq!(verify_interest(&interest, &VerifyingKey::digest()), Ok(()));
}

#[test]
fn commands_are_accepted_along_a_chain() {
    let mut policy = TrustPolicy::new();
    policy.add_anchor(&certificate(SITE)).expect("room");
    let added = policy
        .add_certificate(&certificate(OPERATOR))
        .expect("room");
    assert_eq!(added, Endorsement::Trusted);
    let mut verifier = CommandVerifier::new(VerifierConfig::default(), MonoNs::ZERO);
    for wire in [LEGACY, V03] {
        let interest = InterestView::parse(wire).expect("an Interest");
        let signed = SignedInterest::find(&interest)
            .expect("well-formed")
            .expect("signed");
        let wall_ms = signed.time_ms().expect("a time") + 1000;
        let now = MonoNs(2_000_000_000);
        let policies = [&policy];
        let mut verify = || verifier.verify(&interest, None, &policies, FaceId(256), now, wall_ms);
        let expected = certificate(OPERATOR).key_name().to_name();
        assert_eq!(verify(), Ok(Accepted::Key(expected)));
        assert!(verify().is_err(), "a replay");
    }
}

#[test]
fn an_imported_key_issues_certificates() {
    let bag = SafeBag::from_base64(OPERATOR_BAG).expect("a SafeBag");
    let key = bag.open(b"secret").expect("the password");
    let name = bag.certificate().key_name().to_name();
    let signer = Signer::new(key.clone(), Some(KeyLocator::Name(name.clone())));
    let validity = bag.certificate().validity();
    let issued = Certificate::self_signed(&name, &key, 7, validity).expect("issues");
    assert_eq!(issued.verify(&key.verifying_key().expect("own")), Ok(()));
    assert!(issued.certifies(signer.key()));
}
