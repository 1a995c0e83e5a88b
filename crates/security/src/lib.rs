//! Signing, verification, certificates and key storage for NDN packets.
//!
//! Keys are in [`SigningKey`] and [`VerifyingKey`]; what they make of packets is
//! in [`Signer`] and [`verify_data`]. [`Certificate`] and [`SafeBag`] are the
//! forms in which keys travel, [`KeyStore`] the directory in which they rest.
//! [`TrustPolicy`] says whose signatures count, and [`CommandVerifier`] checks
//! signed Interests against it and refuses replays. [`DataVerification`] checks Data on
//! their way by rules for prefixes.
//!
//! The crate reads no clock: wall time comes in as milliseconds since the Unix
//! epoch (`wall_ms`). Only [`KeyStore`] touches files. Bytes from outside are
//! errors at worst, never panics.
#![forbid(unsafe_code)]

mod certificate;
mod encrypted;
mod key;
mod keystore;
mod reject;
mod replay;
mod safe_bag;
mod signed_interest;
mod signer;
mod text;
mod trust;
mod validity;
mod verification;
mod verified;
mod verifier;

pub use certificate::{
    Certificate, CertificateError, CertificateRequest, identity_of_key, is_key_name, key_name,
    random_key_id,
};
pub use key::{KeyError, KeyKind, RsaBits, SigningKey, VerifyError, VerifyingKey, sha256};
pub use keystore::{
    CertificateEntry, IdentityEntry, KeyEntry, KeyStore, KeyStoreError, Listing, Skipped,
};
pub use reject::Reject;
pub use replay::{ReplayConfig, ReplayCounters};
pub use safe_bag::{SafeBag, SafeBagError};
pub use signed_interest::{SignedForm, SignedInterest};
pub use signer::{CommandSigner, Signer, verify_data, verify_interest};
pub use trust::{Endorsement, IssuerRule, NameRule, TrustError, TrustPolicy};
pub use validity::{Validity, ValidityError};
pub use verification::{
    DataVerification, Poison, RequiredSignature, Verdict, VerificationCounters, VerificationRule,
    VerificationRules,
};
pub use verifier::{Accepted, CommandVerifier, VerifierConfig, VerifierCounters};
