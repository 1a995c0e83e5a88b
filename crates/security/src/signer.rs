//! Signed packets: a key together with what it says of itself.
//!
//! Owns signing Data and Interests, the latter in both forms (see
//! `signed_interest`), and checking them with one given key. Which key to
//! believe is the business of `trust`; whether an Interest is a replay, of
//! `replay`.

use tachonym_packet::{
    Component, Data, DataView, Interest, InterestView, KeyLocator, Name, SignatureInfo, tlv, types,
};

use crate::key::random_bytes;
use crate::{KeyError, SignedInterest, SigningKey, VerifyError, VerifyingKey};

/// A signing key, and the key locator that its signatures carry.
#[derive(Clone, Debug)]
pub struct Signer {
    key: SigningKey,
    locator: Option<KeyLocator>,
}

impl Signer {
    /// A signer of this key and key locator.
    #[must_use]
    pub const fn new(key: SigningKey, locator: Option<KeyLocator>) -> Self {
        Self { key, locator }
    }

    /// A signer by plain SHA-256 digest, which proves nothing of who signed.
    #[must_use]
    pub fn digest() -> Self {
        Self::new(SigningKey::digest(), None)
    }

    /// A signer whose key locator is the name of the key or of a certificate.
    #[must_use]
    pub const fn named(key: SigningKey, name: Name) -> Self {
        Self::new(key, Some(KeyLocator::Name(name)))
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The key locator, if signatures carry one.
    #[must_use]
    pub const fn locator(&self) -> Option<&KeyLocator> {
        self.locator.as_ref()
    }

    /// Signature information of its type and key locator, with nothing else.
    #[must_use]
    pub fn signature_info(&self) -> SignatureInfo {
        SignatureInfo {
            key_locator: self.locator.clone(),
            ..SignatureInfo::new(self.key.signature_type())
        }
    }

    /// The wire form of `data`, signed. What it says of a signature is not
    /// looked at.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign_data(&self, data: &Data) -> Result<Vec<u8>, KeyError> {
        data.encode_signed(&self.signature_info(), |parts| self.key.sign(parts))
    }

    /// The wire form of `interest` as a signed Interest of Packet Format 0.3.
    /// Of `extra`, nonce, time and sequence number are taken.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign_interest(
        &self,
        interest: &Interest,
        extra: &SignatureInfo,
    ) -> Result<Vec<u8>, KeyError> {
        let info = SignatureInfo {
            nonce: extra.nonce.clone(),
            time_ms: extra.time_ms,
            seq_num: extra.seq_num,
            ..self.signature_info()
        };
        interest.encode_signed(&info, |parts| self.key.sign(parts))
    }

    /// The wire form of `interest` as an older command Interest: its name gets
    /// a timestamp, eight random bytes, signature information and signature.
    ///
    /// # Errors
    /// If the cryptographic library fails, or there is no randomness.
    pub fn sign_legacy_interest(
        &self,
        interest: &Interest,
        time_ms: u64,
    ) -> Result<Vec<u8>, KeyError> {
        let mut nonce = [0; 8];
        random_bytes(&mut nonce)?;
        let mut info = Vec::new();
        self.signature_info()
            .write(&mut info, types::SIGNATURE_INFO);
        let mut signed = interest.clone();
        signed.name.push(&Component::generic_number(time_ms));
        signed.name.push(&Component::generic(nonce));
        signed.name.push(&Component::generic(info));
        let signature = self.key.sign(&[signed.name.value_bytes()])?;
        let mut value = Vec::new();
        tlv::write_tlv(&mut value, types::SIGNATURE_VALUE, &signature);
        signed.name.push(&Component::generic(value));
        Ok(signed.encode())
    }
}

/// Signs commands: each with a timestamp later than the last one's, and a
/// random nonce.
#[derive(Clone, Debug)]
pub struct CommandSigner {
    signer: Signer,
    last_time_ms: u64,
}

impl CommandSigner {
    /// Signs commands with `signer`.
    #[must_use]
    pub const fn new(signer: Signer) -> Self {
        Self {
            signer,
            last_time_ms: 0,
        }
    }

    /// The signer.
    #[must_use]
    pub const fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The wire form of `interest` as a signed Interest of Packet Format 0.3
    /// with nonce and time. `wall_ms` is now, in milliseconds since the Unix
    /// epoch.
    ///
    /// # Errors
    /// If the cryptographic library fails, or there is no randomness.
    pub fn sign(&mut self, interest: &Interest, wall_ms: u64) -> Result<Vec<u8>, KeyError> {
        let mut nonce = vec![0; 8];
        random_bytes(&mut nonce)?;
        let extra = SignatureInfo {
            nonce: Some(nonce),
            time_ms: Some(self.next_time_ms(wall_ms)),
            ..SignatureInfo::default()
        };
        self.signer.sign_interest(interest, &extra)
    }

    /// The wire form of `interest` as an older command Interest. `wall_ms` is
    /// now, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// If the cryptographic library fails, or there is no randomness.
    pub fn sign_legacy(&mut self, interest: &Interest, wall_ms: u64) -> Result<Vec<u8>, KeyError> {
        let time_ms = self.next_time_ms(wall_ms);
        self.signer.sign_legacy_interest(interest, time_ms)
    }

    fn next_time_ms(&mut self, wall_ms: u64) -> u64 {
        self.last_time_ms = wall_ms.max(self.last_time_ms.saturating_add(1));
        self.last_time_ms
    }
}

/// Checks the signature of `data` with `key`.
///
/// # Errors
/// If it is of another type than the key's, or wrong.
pub fn verify_data(data: &DataView<'_>, key: &VerifyingKey) -> Result<(), VerifyError> {
    key.verify(
        data.signature_info().typ(),
        &[data.signed_portion()],
        data.signature_value(),
    )
}

/// Checks the signature of `interest`, in either form, with `key`, and the
/// parameters' digest in its name.
///
/// # Errors
/// If it is not signed, or one of them is wrong.
pub fn verify_interest(interest: &InterestView<'_>, key: &VerifyingKey) -> Result<(), VerifyError> {
    SignedInterest::find(interest)?
        .ok_or(VerifyError::Unsigned)?
        .verify(key)
}
