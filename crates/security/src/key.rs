//! Keys: making signatures over bytes and checking them.
//!
//! Owns the five kinds of signature of NDN Packet Format 0.3, section
//! "Signature", and the standard forms of keys: PKCS#8 (RFC 5208, RFC 5958) for
//! private ones, SubjectPublicKeyInfo (RFC 5280) for public ones. Knows no
//! packet; see `signer` for those, and `encrypted` for keys under a password.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaParameters, VerificationAlgorithm,
};
use aws_lc_rs::{digest, hmac, rsa};
use pkcs8::der::Decode;
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef, SubjectPublicKeyInfoRef};
use tachonym_packet::types::signature_type;
use zeroize::Zeroizing;

const OID_EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const OID_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const OID_ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Smallest RSA modulus that is accepted, in bits.
const MIN_RSA_BITS: u32 = 2048;
/// Largest encoding of a key that is read, in bytes: a private RSA key of 8192
/// bits is below 5000.
const MAX_KEY_BYTES: usize = 16 * 1024;
/// Largest HMAC secret, in bytes.
const MAX_HMAC_BYTES: usize = 4096;

/// Why a key cannot be read, written or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The bytes are not such a key, or the key is inconsistent or too weak.
    #[error("malformed or unacceptable {form}: {reason}")]
    Malformed {
        /// What the bytes should have been.
        form: &'static str,
        /// What is wrong with them.
        reason: String,
    },
    /// The key is of an algorithm that NDN has no signature type for.
    #[error(
        "unsupported key algorithm {oid}; supported are RSA of 2048 bits or more, \
         ECDSA on P-256, and Ed25519"
    )]
    UnsupportedAlgorithm {
        /// Its object identifier.
        oid: String,
    },
    /// The kind of key has no such form: a digest has no key, an HMAC secret no
    /// public part and no PKCS#8.
    #[error("a key of kind {kind} has no {form}")]
    NoSuchForm {
        /// The kind.
        kind: KeyKind,
        /// The form asked for.
        form: &'static str,
    },
    /// An encrypted key does not open with this password, or it is damaged.
    #[error("wrong password, or the encrypted key is damaged")]
    WrongPassword,
    /// An encrypted key asks for an encryption that is not supported, or for
    /// more work than this crate agrees to do for a stranger.
    #[error("unacceptable encryption of the key: {reason}")]
    UnacceptableEncryption {
        /// What was found.
        reason: String,
    },
    /// The cryptographic library or the system's random source failed.
    #[error("the cryptographic library failed to {operation}")]
    Library {
        /// What it failed to do.
        operation: &'static str,
    },
}

impl KeyError {
    fn malformed(form: &'static str, reason: impl fmt::Display) -> Self {
        Self::Malformed {
            form,
            reason: reason.to_string(),
        }
    }
}

/// Why a signature does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The packet's signature type is not that of the key.
    #[error("signature type {found} is not that of the key ({expected})")]
    WrongType {
        /// The packet's.
        found: u64,
        /// The key's.
        expected: u64,
    },
    /// The signature is wrong.
    #[error("signature does not verify")]
    BadSignature,
    /// The Interest carries no signature.
    #[error("not signed")]
    Unsigned,
    /// The digest of the parameters in the Interest's name is wrong.
    #[error("digest of the parameters does not verify")]
    BadParametersDigest,
    /// Elements of the signature are malformed.
    #[error("malformed signature")]
    Malformed(#[from] tachonym_packet::DecodeError),
}

/// The kinds of keys, one for each signature type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// No key at all: a SHA-256 digest, which anybody can make.
    Digest,
    /// RSASSA-PKCS1-v1_5 over SHA-256, 2048 to 8192 bits.
    Rsa,
    /// ECDSA on P-256 over SHA-256, signatures DER encoded.
    Ecdsa,
    /// HMAC with SHA-256, a shared secret.
    Hmac,
    /// Ed25519.
    Ed25519,
}

impl KeyKind {
    /// The `SignatureType` of signatures by such keys.
    #[must_use]
    pub const fn signature_type(self) -> u64 {
        match self {
            Self::Digest => signature_type::DIGEST_SHA256,
            Self::Rsa => signature_type::SHA256_WITH_RSA,
            Self::Ecdsa => signature_type::SHA256_WITH_ECDSA,
            Self::Hmac => signature_type::HMAC_WITH_SHA256,
            Self::Ed25519 => signature_type::ED25519,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => "digest",
            Self::Rsa => "RSA",
            Self::Ecdsa => "ECDSA",
            Self::Hmac => "HMAC",
            Self::Ed25519 => "Ed25519",
        })
    }
}

/// Sizes of RSA keys that can be generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RsaBits {
    /// 2048 bits.
    #[default]
    Bits2048,
    /// 3072 bits.
    Bits3072,
    /// 4096 bits.
    Bits4096,
}

/// SHA-256 over the concatenation of `parts`.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest_of(parts).as_ref());
    out
}

fn digest_of(parts: &[&[u8]]) -> digest::Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    parts.iter().for_each(|part| context.update(part));
    context.finish()
}

fn hmac_of(key: &hmac::Key, parts: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    parts.iter().for_each(|part| context.update(part));
    context.sign()
}

/// A message that is hashed by SHA-256 at most once, whatever is asked of it.
pub(crate) struct Hashed<'m> {
    message: &'m [u8],
    digest: OnceCell<digest::Digest>,
}

impl<'m> Hashed<'m> {
    /// Hashes nothing yet.
    pub(crate) const fn new(message: &'m [u8]) -> Self {
        Self {
            message,
            digest: OnceCell::new(),
        }
    }

    /// Its SHA-256.
    pub(crate) fn sha256(&self) -> &[u8] {
        self.digest().as_ref()
    }

    fn digest(&self) -> &digest::Digest {
        self.digest.get_or_init(|| digest_of(&[self.message]))
    }
}

/// A key that makes signatures. Clones share it.
#[derive(Clone)]
pub struct SigningKey {
    secret: Arc<Secret>,
    /// SubjectPublicKeyInfo; empty for kinds without one.
    public_der: Arc<[u8]>,
}

enum Secret {
    Digest,
    Hmac(Zeroizing<Vec<u8>>, Box<hmac::Key>),
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// The key that is none: signatures are plain SHA-256 digests.
    #[must_use]
    pub fn digest() -> Self {
        Self {
            secret: Arc::new(Secret::Digest),
            public_der: Arc::from([]),
        }
    }

    /// A key from a shared secret.
    ///
    /// # Errors
    /// If the secret is empty or longer than 4096 bytes.
    pub fn hmac(secret: &[u8]) -> Result<Self, KeyError> {
        let key = hmac_key(secret)?;
        Ok(Self {
            secret: Arc::new(Secret::Hmac(Zeroizing::new(secret.to_vec()), key)),
            public_der: Arc::from([]),
        })
    }

    /// A new secret of 32 random bytes.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn generate_hmac() -> Result<Self, KeyError> {
        let mut secret = Zeroizing::new([0; 32]);
        random_bytes(secret.as_mut())?;
        Self::hmac(secret.as_ref())
    }

    /// A new key on P-256.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn generate_ecdsa() -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)
            .map_err(library("generate a key"))?;
        Self::from_ecdsa(pair)
    }

    /// A new RSA key. Takes from a tenth of a second to several seconds.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn generate_rsa(bits: RsaBits) -> Result<Self, KeyError> {
        let size = match bits {
            RsaBits::Bits2048 => rsa::KeySize::Rsa2048,
            RsaBits::Bits3072 => rsa::KeySize::Rsa3072,
            RsaBits::Bits4096 => rsa::KeySize::Rsa4096,
        };
        Self::from_rsa(RsaKeyPair::generate(size).map_err(library("generate a key"))?)
    }

    /// A new Ed25519 key.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn generate_ed25519() -> Result<Self, KeyError> {
        Self::from_ed25519(Ed25519KeyPair::generate().map_err(library("generate a key"))?)
    }

    /// Reads an unencrypted PKCS#8 private key in DER.
    ///
    /// # Errors
    /// If it is malformed, inconsistent, of another algorithm, on another curve
    /// than P-256, or an RSA key outside 2048–8192 bits.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        const FORM: &str = "PKCS#8 private key";
        if der.len() > MAX_KEY_BYTES {
            return Err(KeyError::malformed(FORM, "too large"));
        }
        let oid = PrivateKeyInfoRef::from_der(der)
            .map_err(|e| KeyError::malformed(FORM, e))?
            .algorithm
            .oid;
        let rejected = |e| KeyError::malformed(FORM, e);
        match oid {
            OID_EC => Self::from_ecdsa(
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der).map_err(rejected)?,
            ),
            OID_RSA => Self::from_rsa(RsaKeyPair::from_pkcs8(der).map_err(rejected)?),
            OID_ED25519 => Self::from_ed25519(Ed25519KeyPair::from_pkcs8(der).map_err(rejected)?),
            _ => Err(KeyError::UnsupportedAlgorithm {
                oid: oid.to_string(),
            }),
        }
    }

    /// The private key as unencrypted PKCS#8 (version 1) in DER.
    ///
    /// # Errors
    /// If the key is a digest or an HMAC secret, which have no such form.
    pub fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let failed = library("export the key");
        let der = match &*self.secret {
            Secret::Digest | Secret::Hmac(..) => {
                return Err(KeyError::NoSuchForm {
                    kind: self.kind(),
                    form: "PKCS#8 form",
                });
            }
            Secret::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(failed)?;
                der.as_ref().to_vec()
            }
            Secret::Ecdsa(pair) => pair.to_pkcs8v1().map_err(failed)?.as_ref().to_vec(),
            Secret::Ed25519(pair) => pair.to_pkcs8v1().map_err(failed)?.as_ref().to_vec(),
        };
        Ok(Zeroizing::new(der))
    }

    /// The shared secret of an HMAC key.
    #[must_use]
    pub fn hmac_secret(&self) -> Option<&[u8]> {
        match &*self.secret {
            Secret::Hmac(secret, _) => Some(secret),
            _ => None,
        }
    }

    /// The kind of key.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        match &*self.secret {
            Secret::Digest => KeyKind::Digest,
            Secret::Hmac(..) => KeyKind::Hmac,
            Secret::Rsa(_) => KeyKind::Rsa,
            Secret::Ecdsa(_) => KeyKind::Ecdsa,
            Secret::Ed25519(_) => KeyKind::Ed25519,
        }
    }

    /// The `SignatureType` of its signatures.
    #[must_use]
    pub fn signature_type(&self) -> u64 {
        self.kind().signature_type()
    }

    /// The public key as SubjectPublicKeyInfo in DER; `None` for digest and
    /// HMAC, which have no public key.
    #[must_use]
    pub fn public_key_der(&self) -> Option<&[u8]> {
        (!self.public_der.is_empty()).then_some(&*self.public_der)
    }

    /// The key that checks this key's signatures.
    ///
    /// # Errors
    /// If the cryptographic library does not take its own public key.
    pub fn verifying_key(&self) -> Result<VerifyingKey, KeyError> {
        match &*self.secret {
            Secret::Digest => Ok(VerifyingKey::digest()),
            Secret::Hmac(secret, _) => VerifyingKey::hmac(secret),
            _ => VerifyingKey::from_spki(&self.public_der),
        }
    }

    /// Signs the concatenation of `parts`.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, KeyError> {
        let failed = library("sign");
        Ok(match &*self.secret {
            Secret::Digest => digest_of(parts).as_ref().to_vec(),
            Secret::Hmac(_, key) => hmac_of(key, parts).as_ref().to_vec(),
            Secret::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    &parts.concat(),
                    &mut signature,
                )
                .map_err(failed)?;
                signature
            }
            Secret::Ecdsa(pair) => {
                let signature = pair.sign(&SystemRandom::new(), &parts.concat());
                signature.map_err(failed)?.as_ref().to_vec()
            }
            Secret::Ed25519(pair) => {
                let signature = pair.try_sign(&parts.concat());
                signature.map_err(failed)?.as_ref().to_vec()
            }
        })
    }

    fn from_ecdsa(pair: EcdsaKeyPair) -> Result<Self, KeyError> {
        let spki = spki_of(pair.public_key())?;
        Ok(Self::of(Secret::Ecdsa(pair), spki))
    }

    fn from_rsa(pair: RsaKeyPair) -> Result<Self, KeyError> {
        let spki = spki_of(pair.public_key())?;
        check_rsa_size(&spki)?;
        Ok(Self::of(Secret::Rsa(pair), spki))
    }

    fn from_ed25519(pair: Ed25519KeyPair) -> Result<Self, KeyError> {
        let spki = spki_of(pair.public_key())?;
        Ok(Self::of(Secret::Ed25519(pair), spki))
    }

    fn of(secret: Secret, spki: Vec<u8>) -> Self {
        Self {
            secret: Arc::new(secret),
            public_der: spki.into(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kind())
    }
}

/// A key that checks signatures.
#[derive(Clone)]
pub struct VerifyingKey {
    inner: Checker,
}

#[derive(Clone)]
enum Checker {
    Digest,
    Hmac(Box<hmac::Key>),
    Public(KeyKind, ParsedPublicKey),
}

impl VerifyingKey {
    /// The key that is none: signatures are plain SHA-256 digests.
    #[must_use]
    pub const fn digest() -> Self {
        Self {
            inner: Checker::Digest,
        }
    }

    /// A key from a shared secret.
    ///
    /// # Errors
    /// If the secret is empty or longer than 4096 bytes.
    pub fn hmac(secret: &[u8]) -> Result<Self, KeyError> {
        Ok(Self {
            inner: Checker::Hmac(hmac_key(secret)?),
        })
    }

    /// Reads a SubjectPublicKeyInfo in DER, as it is in certificates.
    ///
    /// # Errors
    /// If it is malformed, of another algorithm, on another curve than P-256,
    /// or an RSA key outside 2048–8192 bits.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        const FORM: &str = "public key";
        if der.len() > MAX_KEY_BYTES {
            return Err(KeyError::malformed(FORM, "too large"));
        }
        let oid = SubjectPublicKeyInfoRef::from_der(der)
            .map_err(|e| KeyError::malformed(FORM, e))?
            .algorithm
            .oid;
        let (kind, algorithm): (_, &'static dyn VerificationAlgorithm) = match oid {
            OID_EC => (KeyKind::Ecdsa, &ECDSA_P256_SHA256_ASN1),
            OID_RSA => (KeyKind::Rsa, &RSA_PKCS1_2048_8192_SHA256),
            OID_ED25519 => (KeyKind::Ed25519, &ED25519),
            _ => {
                return Err(KeyError::UnsupportedAlgorithm {
                    oid: oid.to_string(),
                });
            }
        };
        if kind == KeyKind::Rsa {
            check_rsa_size(der)?;
        }
        let key = ParsedPublicKey::new(algorithm, der).map_err(|e| KeyError::malformed(FORM, e))?;
        Ok(Self {
            inner: Checker::Public(kind, key),
        })
    }

    /// The kind of key.
    #[must_use]
    pub const fn kind(&self) -> KeyKind {
        match &self.inner {
            Checker::Digest => KeyKind::Digest,
            Checker::Hmac(_) => KeyKind::Hmac,
            Checker::Public(kind, _) => *kind,
        }
    }

    /// The public key as SubjectPublicKeyInfo in DER, as it was read; `None`
    /// for digest and HMAC.
    #[must_use]
    pub fn public_key_der(&self) -> Option<&[u8]> {
        match &self.inner {
            Checker::Public(_, key) => Some(key.as_ref()),
            _ => None,
        }
    }

    /// The public key as SubjectPublicKeyInfo in DER, encoded anew: two keys
    /// are the same if these are. `None` for digest and HMAC.
    pub(crate) fn canonical_der(&self) -> Option<Vec<u8>> {
        match &self.inner {
            Checker::Public(_, key) => spki_of(key).ok(),
            _ => None,
        }
    }

    /// Checks `signature`, which claims to be of type `signature_type`, over
    /// the concatenation of `parts`.
    ///
    /// # Errors
    /// If it is not of this key's type, or wrong.
    pub fn verify(
        &self,
        signature_type: u64,
        parts: &[&[u8]],
        signature: &[u8],
    ) -> Result<(), VerifyError> {
        let expected = self.kind().signature_type();
        if signature_type != expected {
            return Err(VerifyError::WrongType {
                found: signature_type,
                expected,
            });
        }
        match &self.inner {
            Checker::Digest => verify_slices_are_equal(digest_of(parts).as_ref(), signature),
            Checker::Hmac(key) => verify_slices_are_equal(hmac_of(key, parts).as_ref(), signature),
            Checker::Public(KeyKind::Ed25519, key) => key.verify_sig(&parts.concat(), signature),
            Checker::Public(_, key) => key.verify_digest_sig(&digest_of(parts), signature),
        }
        .map_err(|_| VerifyError::BadSignature)
    }

    /// Checks `signature`, which is of this key's type, over a message.
    ///
    /// # Errors
    /// If it is wrong.
    pub(crate) fn verify_hashed(
        &self,
        hashed: &Hashed<'_>,
        signature: &[u8],
    ) -> Result<(), VerifyError> {
        let message = hashed.message;
        match &self.inner {
            Checker::Digest => verify_slices_are_equal(hashed.sha256(), signature),
            Checker::Hmac(key) => {
                verify_slices_are_equal(hmac_of(key, &[message]).as_ref(), signature)
            }
            Checker::Public(KeyKind::Ed25519, key) => key.verify_sig(message, signature),
            Checker::Public(_, key) => key.verify_digest_sig(hashed.digest(), signature),
        }
        .map_err(|_| VerifyError::BadSignature)
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", self.kind())
    }
}

/// Fills `out` from the system's random source.
pub(crate) fn random_bytes(out: &mut [u8]) -> Result<(), KeyError> {
    getrandom::fill(out).map_err(library("read the system's random source"))
}

fn library<E>(operation: &'static str) -> impl Fn(E) -> KeyError {
    move |_| KeyError::Library { operation }
}

fn hmac_key(secret: &[u8]) -> Result<Box<hmac::Key>, KeyError> {
    if secret.is_empty() || secret.len() > MAX_HMAC_BYTES {
        return Err(KeyError::malformed(
            "HMAC secret",
            format_args!("{} bytes, not 1 to {MAX_HMAC_BYTES}", secret.len()),
        ));
    }
    Ok(Box::new(hmac::Key::new(hmac::HMAC_SHA256, secret)))
}

fn spki_of<K: AsDer<PublicKeyX509Der<'static>>>(public: &K) -> Result<Vec<u8>, KeyError> {
    let der = public.as_der().map_err(library("export the public key"))?;
    Ok(der.as_ref().to_vec())
}

fn check_rsa_size(spki: &[u8]) -> Result<(), KeyError> {
    const FORM: &str = "RSA public key";
    let key = rsa::PublicKey::from_der(spki).map_err(|e| KeyError::malformed(FORM, e))?;
    let n_bits = RsaParameters::public_modulus_len(key.as_ref())
        .map_err(|e| KeyError::malformed(FORM, e))?;
    if !(MIN_RSA_BITS..=8192).contains(&n_bits) {
        let reason = format_args!("{n_bits} bits, not {MIN_RSA_BITS} to 8192");
        return Err(KeyError::malformed(FORM, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<SigningKey> {
        vec![
            SigningKey::digest(),
            SigningKey::generate_hmac().expect("randomness"),
            SigningKey::generate_ecdsa().expect("randomness"),
            SigningKey::generate_ed25519().expect("randomness"),
            SigningKey::generate_rsa(RsaBits::Bits2048).expect("randomness"),
        ]
    }

    #[test]
    fn a_signature_verifies_and_any_flipped_bit_does_not() {
        let message = b"/a/name and some content".to_vec();
        for key in every_kind() {
            let checker = key.verifying_key().expect("own public key");
            let typ = key.signature_type();
            let signature = key.sign(&[&message[..7], &message[7..]]).expect("signs");
            assert_eq!(checker.verify(typ, &[&message], &signature), Ok(()));
            for bit in 0..signature.len() * 8 {
                let mut bad = signature.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                let result = checker.verify(typ, &[&message], &bad);
                assert_eq!(result, Err(VerifyError::BadSignature), "{key:?} bit {bit}");
            }
            for bit in 0..message.len() * 8 {
                let mut bad = message.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                let result = checker.verify(typ, &[&bad], &signature);
                assert_eq!(result, Err(VerifyError::BadSignature), "{key:?} bit {bit}");
            }
        }
    }

    #[test]
    fn a_signature_of_another_type_is_refused() {
        let ecdsa = SigningKey::generate_ecdsa().expect("randomness");
        let checker = ecdsa.verifying_key().expect("own public key");
        let digest = SigningKey::digest().sign(&[b"m"]).expect("signs");
        assert!(matches!(
            checker.verify(0, &[b"m"], &digest),
            Err(VerifyError::WrongType { found: 0, .. })
        ));
    }

    #[test]
    fn truncated_and_empty_signatures_are_refused() {
        for key in every_kind() {
            let checker = key.verifying_key().expect("own public key");
            let signature = key.sign(&[b"m"]).expect("signs");
            for n_bytes in 0..signature.len() {
                let result = checker.verify(key.signature_type(), &[b"m"], &signature[..n_bytes]);
                assert_eq!(result, Err(VerifyError::BadSignature));
            }
        }
    }

    #[test]
    fn private_keys_survive_pkcs8() {
        for key in every_kind() {
            if matches!(key.kind(), KeyKind::Digest | KeyKind::Hmac) {
                assert!(key.to_pkcs8().is_err());
                continue;
            }
            let der = key.to_pkcs8().expect("exports");
            let again = SigningKey::from_pkcs8(&der).expect("own export");
            assert_eq!(again.kind(), key.kind());
            assert_eq!(again.public_key_der(), key.public_key_der());
            let signature = again.sign(&[b"m"]).expect("signs");
            let checker = key.verifying_key().expect("own public key");
            assert_eq!(
                checker.verify(key.signature_type(), &[b"m"], &signature),
                Ok(())
            );
        }
    }

    #[test]
    fn damaged_private_keys_are_errors() {
        let key = SigningKey::generate_ecdsa().expect("randomness");
        let der = key.to_pkcs8().expect("exports");
        for n_bytes in 0..der.len() {
            assert!(SigningKey::from_pkcs8(&der[..n_bytes]).is_err());
        }
        assert!(SigningKey::from_pkcs8(&vec![0x30; MAX_KEY_BYTES + 1]).is_err());
    }

    #[test]
    fn a_short_rsa_key_is_refused() {
        // SubjectPublicKeyInfo of a 1024-bit key, modulus of ones: parsing
        // stops at its size whatever its factors.
        let mut spki = vec![
            0x30, 0x81, 0x9f, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01,
            0x01, 0x01, 0x05, 0x00, 0x03, 0x81, 0x8d, 0x00, 0x30, 0x81, 0x89, 0x02, 0x81, 0x81,
            0x00,
        ];
        spki.extend_from_slice(&[0xff; 128]);
        spki.extend_from_slice(&[0x02, 0x03, 0x01, 0x00, 0x01]);
        let error = VerifyingKey::from_spki(&spki).expect_err("too short");
        assert!(error.to_string().contains("1024 bits"), "{error}");
    }

    #[test]
    fn an_empty_secret_is_refused() {
        assert!(SigningKey::hmac(b"").is_err());
        assert!(VerifyingKey::hmac(&[0; MAX_HMAC_BYTES + 1]).is_err());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let key = SigningKey::hmac(b"hunter2").expect("a secret");
        assert_eq!(format!("{key:?}"), "SigningKey(HMAC)");
    }
}
