//! Certificates, SafeBags, public keys, signed Interests and trust policies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs, Name};
use tachonym_security::{
    Certificate, CommandVerifier, DataVerification, RequiredSignature, SafeBag, SignedInterest,
    TrustPolicy, VerificationRule, VerificationRules, VerifierConfig, VerifyingKey,
};

const WALL_MS: u64 = 1_700_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(certificate) = Certificate::parse(bytes) {
        let _ = certificate.verifying_key();
        let _ = certificate.is_self_signed();
        let _ = certificate.is_valid_at(WALL_MS);
        let text = certificate.to_base64();
        let again = Certificate::from_base64(&text).expect("own encoding");
        assert_eq!(again.wire(), certificate.wire());
        let mut policy = TrustPolicy::new();
        let _ = policy.add_anchor(&certificate);
        let _ = policy.add_certificate(&certificate);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Certificate::from_base64(text);
    }
    let _ = SafeBag::parse(bytes);
    let _ = VerifyingKey::from_spki(bytes);
    let any = TrustPolicy::any();
    if let Ok(data) = DataView::parse(bytes) {
        let _ = any.verify_data(&data, WALL_MS);
        let mut policy = TrustPolicy::new();
        if let Ok(certificate) = Certificate::parse(bytes) {
            let _ = policy.add_anchor(&certificate);
        }
        let rule = VerificationRule {
            prefix: Name::new(),
            signature: RequiredSignature::Key(policy.into()),
        };
        let rules = VerificationRules::new(vec![rule]);
        let mut verification = DataVerification::new(rules, 8, [0; 32]);
        let verdict = verification.verify(&data, WALL_MS);
        let again = verification.verify(&data, WALL_MS);
        assert_eq!(again, verdict, "no verdict depends on what is remembered");
    }
    if let Ok(interest) = InterestView::parse(bytes) {
        let _ = SignedInterest::find(&interest);
        let mut verifier = CommandVerifier::new(VerifierConfig::default(), MonoNs::ZERO);
        let verdict = |verifier: &mut CommandVerifier| {
            verifier.verify(&interest, None, &[&any], FaceId(300), MonoNs(1), WALL_MS)
        };
        if verdict(&mut verifier).is_ok() {
            assert!(verdict(&mut verifier).is_err(), "nothing is accepted twice");
        }
    }
});
