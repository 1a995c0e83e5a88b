//! Certificates: public keys bound to names.
//!
//! Owns NDN Certificate Format Version 2: a Data named
//! `/<identity>/KEY/<key-id>/<issuer-id>/<version>` of content type KEY that
//! holds a SubjectPublicKeyInfo and a validity period. Whether a certificate is
//! to be believed is the business of `trust`.

use std::fmt;
use std::str::FromStr;

use tachonym_packet::types::{component, content_type};
use tachonym_packet::{
    Component, Data, DataView, DecodeError, KeyLocator, Name, NameView, SignatureInfo,
};

use crate::key::random_bytes;
use crate::{
    KeyError, Signer, SigningKey, Validity, ValidityError, VerifyError, VerifyingKey, sha256, text,
};

/// The component that separates an identity from its keys.
const KEY: &[u8] = b"KEY";
/// Components of a certificate's name after the identity.
const N_AFTER_IDENTITY: usize = 4;
/// For how long a certificate is fresh after arrival, in milliseconds; the
/// format wants it above 0 and recommends an hour.
const FRESHNESS_MS: u64 = 3_600_000;

/// Why bytes are not a certificate, or none can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// They are not a Data.
    #[error("the certificate is not a well-formed Data")]
    Decode(#[from] DecodeError),
    /// The name is not that of a certificate.
    #[error(
        "{0} is not the name of a certificate; it has the form \
         /<identity>/KEY/<key-id>/<issuer-id>/<version>"
    )]
    BadName(Name),
    /// The name is not that of a key.
    #[error("{0} is not the name of a key; it has the form /<identity>/KEY/<key-id>")]
    BadKeyName(Name),
    /// `ContentType` is not KEY (2).
    #[error("the content type of a certificate must be 2 (KEY), not {0}")]
    BadContentType(u64),
    /// The freshness period is absent or 0.
    #[error("the freshness period of a certificate must not be 0")]
    NotFresh,
    /// There is no validity period.
    #[error("the certificate has no validity period")]
    NoValidity,
    /// The validity period is not made of dates.
    #[error(transparent)]
    BadValidity(#[from] ValidityError),
    /// The text is not base64.
    #[error("the certificate file is {0}")]
    BadText(String),
    /// The key cannot be certified, or the issuer cannot sign.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A certificate.
///
/// Invariant: `wire` is a well-formed Data that keeps the format's rules; the
/// other fields repeat what it says.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    wire: Vec<u8>,
    name: Name,
    public_key: Vec<u8>,
    signature_info: SignatureInfo,
    validity: Validity,
}

impl Certificate {
    /// Reads `wire` as exactly one certificate. The signature is not checked,
    /// nor the key: see [`verify`](Self::verify) and
    /// [`verifying_key`](Self::verifying_key).
    ///
    /// # Errors
    /// If it is not a Data, or breaks a rule of the format.
    pub fn parse(wire: &[u8]) -> Result<Self, CertificateError> {
        let data = DataView::parse(wire)?;
        let name = data.name();
        if !is_certificate_name(name) {
            return Err(CertificateError::BadName(name.to_name()));
        }
        if data.content_type() != content_type::KEY {
            return Err(CertificateError::BadContentType(data.content_type()));
        }
        if data.freshness_period_ms() == 0 {
            return Err(CertificateError::NotFresh);
        }
        let period = data.signature_info().validity_period();
        let validity = Validity::from_wire(&period.ok_or(CertificateError::NoValidity)?)?;
        Ok(Self {
            wire: wire.to_vec(),
            name: name.to_name(),
            public_key: data.content().to_vec(),
            signature_info: data.signature_info().to_info(),
            validity,
        })
    }

    /// Reads the base64 form in which certificates rest in files, as
    /// `ndnsec cert-dump` prints it.
    ///
    /// # Errors
    /// If it is not base64, or not a certificate.
    pub fn from_base64(text: &str) -> Result<Self, CertificateError> {
        let wire = text::from_base64_lines(text.as_bytes()).map_err(CertificateError::BadText)?;
        Self::parse(&wire)
    }

    /// Whether `name` is that of a certificate,
    /// `/<identity>/KEY/<key-id>/<issuer-id>/<version>`.
    #[must_use]
    pub fn is_name(name: NameView<'_>) -> bool {
        is_certificate_name(name)
    }

    /// The base64 form, in lines of 64 characters.
    #[must_use]
    pub fn to_base64(&self) -> String {
        text::to_base64_lines(&self.wire).to_string()
    }

    /// A certificate of `key`, named `key_name`, by itself.
    ///
    /// # Errors
    /// If `key_name` is not a key's name, or the key has no public part.
    pub fn self_signed(
        key_name: &Name,
        key: &SigningKey,
        version: u64,
        validity: Validity,
    ) -> Result<Self, CertificateError> {
        let public_key = key.public_key_der().ok_or(KeyError::NoSuchForm {
            kind: key.kind(),
            form: "public key",
        })?;
        let request = CertificateRequest {
            key_name: key_name.clone(),
            public_key: public_key.to_vec(),
            issuer_id: Component::generic("self"),
            version,
            validity,
        };
        let signer = Signer::new(key.clone(), Some(KeyLocator::Name(key_name.clone())));
        request.issue(&signer)
    }

    /// The whole Data.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// The certificate's name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// The name of the key: without issuer and version.
    #[must_use]
    pub fn key_name(&self) -> NameView<'_> {
        self.name.prefix(self.name.len() - 2)
    }

    /// The name of the identity: what stands before `KEY`.
    #[must_use]
    pub fn identity(&self) -> NameView<'_> {
        self.name.prefix(self.name.len() - N_AFTER_IDENTITY)
    }

    /// The component that says who issued it.
    #[must_use]
    pub fn issuer_id(&self) -> Component {
        self.component(self.name.len() - 2)
    }

    /// The last component, the version.
    #[must_use]
    pub fn version(&self) -> Component {
        self.component(self.name.len() - 1)
    }

    /// The public key as SubjectPublicKeyInfo in DER, unchecked.
    #[must_use]
    pub fn public_key_der(&self) -> &[u8] {
        &self.public_key
    }

    /// SHA-256 over the public key, as key locators refer to it.
    #[must_use]
    pub fn public_key_digest(&self) -> [u8; 32] {
        sha256(&[&self.public_key])
    }

    /// The public key.
    ///
    /// # Errors
    /// If it is malformed or of an unsupported algorithm.
    pub fn verifying_key(&self) -> Result<VerifyingKey, KeyError> {
        VerifyingKey::from_spki(&self.public_key)
    }

    /// Whether its public key is that of `key`, however it is encoded.
    #[must_use]
    pub fn certifies(&self, key: &SigningKey) -> bool {
        let Some(own) = key.public_key_der() else {
            return false;
        };
        own == self.public_key
            || self
                .verifying_key()
                .is_ok_and(|public| public.canonical_der().as_deref() == Some(own))
    }

    /// The `SignatureType` of its signature.
    #[must_use]
    pub const fn signature_type(&self) -> u64 {
        self.signature_info.typ
    }

    /// Which key issued it.
    #[must_use]
    pub const fn key_locator(&self) -> Option<&KeyLocator> {
        self.signature_info.key_locator.as_ref()
    }

    /// Whether it claims to be issued by its own key.
    #[must_use]
    pub fn is_self_signed(&self) -> bool {
        match self.key_locator() {
            Some(KeyLocator::Name(name)) => locates_key(name.view(), self.key_name()),
            Some(KeyLocator::Digest(digest)) => *digest == self.public_key_digest(),
            None => false,
        }
    }

    /// When it holds.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.validity
    }

    /// Whether it holds at `wall_ms`, milliseconds since the Unix epoch.
    #[must_use]
    pub fn is_valid_at(&self, wall_ms: u64) -> bool {
        self.validity.contains(wall_ms)
    }

    /// Checks its signature with the issuer's key.
    ///
    /// # Errors
    /// If it does not verify.
    pub fn verify(&self, issuer: &VerifyingKey) -> Result<(), VerifyError> {
        crate::verify_data(&DataView::parse(&self.wire)?, issuer)
    }

    fn component(&self, idx: usize) -> Component {
        let component = self.name.get(idx);
        component.map_or_else(|| Component::generic(""), |c| c.to_component())
    }
}

impl FromStr for Certificate {
    type Err = CertificateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_base64(text)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({}, {})", self.name, self.validity)
    }
}

/// What an issuer certifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Name of the key, `/<identity>/KEY/<key-id>`.
    pub key_name: Name,
    /// The public key as SubjectPublicKeyInfo in DER.
    pub public_key: Vec<u8>,
    /// Says who issues it; any component but a digest.
    pub issuer_id: Component,
    /// Distinguishes certificates by the same issuer for the same key: usually
    /// milliseconds since the Unix epoch.
    pub version: u64,
    /// When the certificate shall hold.
    pub validity: Validity,
}

impl CertificateRequest {
    /// The certificate, signed by `issuer`.
    ///
    /// # Errors
    /// If the names are not those of a key and an issuer, the key is not one
    /// that can be used, the issuer cannot sign, or the result is too large.
    pub fn issue(&self, issuer: &Signer) -> Result<Certificate, CertificateError> {
        if !is_key_name(self.key_name.view()) {
            return Err(CertificateError::BadKeyName(self.key_name.clone()));
        }
        VerifyingKey::from_spki(&self.public_key)?;
        let name = self.key_name.clone().with(&self.issuer_id);
        let data = Data {
            name: name.with(&Component::version(self.version)),
            content_type: content_type::KEY,
            freshness_period_ms: Some(FRESHNESS_MS),
            content: self.public_key.clone(),
            ..Data::default()
        };
        let info = SignatureInfo {
            validity_period: Some(self.validity.to_wire()),
            ..issuer.signature_info()
        };
        let wire = data.encode_signed(&info, |parts| issuer.key().sign(parts))?;
        Certificate::parse(&wire)
    }
}

/// `/<identity>/KEY/<key-id>`.
#[must_use]
pub fn key_name(identity: &Name, key_id: &Component) -> Name {
    identity.clone().with(&Component::generic(KEY)).with(key_id)
}

/// A key id of eight random bytes.
///
/// # Errors
/// If the system has no randomness.
pub fn random_key_id() -> Result<Component, KeyError> {
    let mut id = [0; 8];
    random_bytes(&mut id)?;
    Ok(Component::generic(id))
}

/// Whether `name` is `/<identity>/KEY/<key-id>`.
#[must_use]
pub fn is_key_name(name: NameView<'_>) -> bool {
    name.len() >= 2 && is_key_component(name, name.len() - 2)
}

/// The identity of a key: its name without the last two components, if it is a
/// key's name.
#[must_use]
pub fn identity_of_key(key_name: NameView<'_>) -> Option<NameView<'_>> {
    is_key_name(key_name).then(|| key_name.prefix(key_name.len() - 2))
}

/// Whether `name` is `/<identity>/KEY/<key-id>/<issuer-id>/<version>`.
pub(crate) fn is_certificate_name(name: NameView<'_>) -> bool {
    name.len() >= N_AFTER_IDENTITY && is_key_component(name, name.len() - N_AFTER_IDENTITY)
}

fn is_key_component(name: NameView<'_>, idx: usize) -> bool {
    name.get(idx)
        .is_some_and(|c| c.typ() == component::GENERIC && c.value() == KEY)
}

/// Whether a key locator of this name refers to the key: it is the key's name,
/// or that of one of its certificates, in full or without its last components.
pub(crate) fn locates_key(locator: NameView<'_>, key_name: NameView<'_>) -> bool {
    // Issuer, version and implicit digest may follow.
    locator.starts_with(key_name) && locator.len() <= key_name.len() + 3
}
