//! SafeBag: a certificate and its private key under a password, for travel.
//!
//! Owns the element that `ndnsec export` writes: type 128 around the
//! certificate (a Data) and the encrypted PKCS#8 key (type 129). The
//! encryption itself is in `encrypted`.

use tachonym_packet::tlv::{self, Field, FieldReader, Fields};
use tachonym_packet::{DecodeError, types};

use crate::{Certificate, CertificateError, KeyError, SigningKey, text};

/// `SafeBag`.
const SAFE_BAG: u32 = 128;
/// `EncryptedKey` in a SafeBag.
const ENCRYPTED_KEY: u32 = 129;
/// Largest encrypted key that is read, in bytes.
const MAX_ENCRYPTED_KEY_BYTES: usize = 16 * 1024;

static FIELDS: Fields = Fields::new(&[Field::Once(types::DATA), Field::Once(ENCRYPTED_KEY)]);

/// Why a SafeBag cannot be read, opened or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SafeBagError {
    /// The bytes are not a SafeBag.
    #[error("not a well-formed SafeBag")]
    Decode(#[from] DecodeError),
    /// The text is not base64.
    #[error("the SafeBag file is {0}")]
    BadText(String),
    /// What it holds is not a certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The key does not open or cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The private key is not that of the certificate.
    #[error("the private key in the SafeBag does not belong to its certificate")]
    Mismatch,
}

/// A certificate with its private key, encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeBag {
    certificate: Certificate,
    encrypted_key: Vec<u8>,
}

impl SafeBag {
    /// Puts `key` under `password` beside its certificate.
    ///
    /// # Errors
    /// If the certificate is not of this key, or the key has no PKCS#8 form.
    pub fn seal(
        certificate: Certificate,
        key: &SigningKey,
        password: &[u8],
    ) -> Result<Self, SafeBagError> {
        if !certificate.certifies(key) {
            return Err(SafeBagError::Mismatch);
        }
        Ok(Self {
            certificate,
            encrypted_key: key.to_encrypted_pkcs8(password)?,
        })
    }

    /// The private key.
    ///
    /// # Errors
    /// If the password is wrong, or the key is not the certificate's.
    pub fn open(&self, password: &[u8]) -> Result<SigningKey, SafeBagError> {
        let key = SigningKey::from_encrypted_pkcs8(&self.encrypted_key, password)?;
        if !self.certificate.certifies(&key) {
            return Err(SafeBagError::Mismatch);
        }
        Ok(key)
    }

    /// The certificate.
    #[must_use]
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The key as encrypted PKCS#8 in DER.
    #[must_use]
    pub fn encrypted_key(&self) -> &[u8] {
        &self.encrypted_key
    }

    /// Reads `wire` as exactly one SafeBag.
    ///
    /// # Errors
    /// If it is malformed, or holds no certificate.
    pub fn parse(wire: &[u8]) -> Result<Self, SafeBagError> {
        let value = tlv::read_single(wire, SAFE_BAG)?;
        let mut fields = FieldReader::new(value, &FIELDS);
        let (mut certificate, mut encrypted_key) = (None, None);
        while let Some(element) = fields.read_field()? {
            match element.typ {
                types::DATA => {
                    let mut data = Vec::new();
                    tlv::write_tlv(&mut data, types::DATA, element.value);
                    certificate = Some(Certificate::parse(&data)?);
                }
                _ => encrypted_key = Some(element.value),
            }
        }
        let missing = |typ| DecodeError::Missing { typ };
        let encrypted_key = encrypted_key.ok_or(missing(ENCRYPTED_KEY))?;
        if encrypted_key.len() > MAX_ENCRYPTED_KEY_BYTES {
            return Err(DecodeError::BadLength { typ: ENCRYPTED_KEY }.into());
        }
        Ok(Self {
            certificate: certificate.ok_or(missing(types::DATA))?,
            encrypted_key: encrypted_key.to_vec(),
        })
    }

    /// The wire form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nested(&mut out, SAFE_BAG, |out| {
            out.extend_from_slice(self.certificate.wire());
            tlv::write_tlv(out, ENCRYPTED_KEY, &self.encrypted_key);
        });
        out
    }

    /// Reads the base64 form, as `ndnsec export` prints it.
    ///
    /// # Errors
    /// If it is not base64, or not a SafeBag.
    pub fn from_base64(text: &str) -> Result<Self, SafeBagError> {
        let wire = text::from_base64_lines(text.as_bytes()).map_err(SafeBagError::BadText)?;
        Self::parse(&wire)
    }

    /// The base64 form, in lines of 64 characters.
    #[must_use]
    pub fn to_base64(&self) -> String {
        text::to_base64_lines(&self.encode()).to_string()
    }
}
