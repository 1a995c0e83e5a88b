//! Where the signature of an Interest is, in either of its two forms.
//!
//! Owns telling apart the signed Interest of NDN Packet Format 0.3 (section
//! "Signed Interest") and the older command Interest, whose name ends in
//! timestamp, random value, signature information and signature value, as
//! NFD's management protocol has used it. Checks no signature: that is
//! `verify` with a key, or `verifier` with a policy.

use tachonym_packet::types::{self, component};
use tachonym_packet::{DecodeError, InterestView, NameView, SignatureInfoView, tlv};

use crate::{VerifyError, VerifyingKey};

/// Components that the older form appends to a command's name.
pub(crate) const N_LEGACY_COMPONENTS: usize = 4;

/// The forms of signed Interests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignedForm {
    /// Elements after the ApplicationParameters (Packet Format 0.3).
    V03,
    /// The last four name components (before Packet Format 0.3).
    Legacy,
}

/// The signature of a signed Interest, and what it covers.
#[derive(Clone, Copy, Debug)]
pub struct SignedInterest<'a> {
    interest: InterestView<'a>,
    form: SignedForm,
    info: SignatureInfoView<'a>,
    value: &'a [u8],
    parts: [&'a [u8]; 3],
    time_ms: Option<u64>,
    nonce: Option<&'a [u8]>,
}

impl<'a> SignedInterest<'a> {
    /// Finds the signature of `interest`; `None` if it has none.
    ///
    /// # Errors
    /// If the older form's components are there, and make no sense.
    pub fn find(interest: &InterestView<'a>) -> Result<Option<Self>, DecodeError> {
        match interest.signature_info().zip(interest.signature_value()) {
            Some((info, value)) => Ok(Some(Self {
                interest: *interest,
                form: SignedForm::V03,
                info,
                value,
                parts: interest.signed_portion(),
                time_ms: info.time_ms(),
                nonce: info.nonce(),
            })),
            None => Self::find_legacy(interest),
        }
    }

    fn find_legacy(interest: &InterestView<'a>) -> Result<Option<Self>, DecodeError> {
        let name = interest.name();
        let Some(n_command) = name.len().checked_sub(N_LEGACY_COMPONENTS) else {
            return Ok(None);
        };
        let tail = name.suffix(n_command);
        let part = |idx| tail.get(idx).filter(|c| c.typ() == component::GENERIC);
        let (Some(time), Some(nonce), Some(info), Some(value)) =
            (part(0), part(1), part(2), part(3))
        else {
            return Ok(None);
        };
        let holds = |wire: &[u8], typ| tlv::Reader::new(wire).peek_type() == Ok(Some(typ));
        if !holds(value.value(), types::SIGNATURE_VALUE)
            || !holds(info.value(), types::SIGNATURE_INFO)
        {
            return Ok(None);
        }
        let value = tlv::read_single(value.value(), types::SIGNATURE_VALUE)?;
        let info = tlv::read_single(info.value(), types::SIGNATURE_INFO)?;
        let covered = name.prefix(name.len() - 1).value_bytes();
        let time_ms = time.as_number().ok_or(DecodeError::BadValue {
            typ: u32::from(component::GENERIC),
        })?;
        Ok(Some(Self {
            interest: *interest,
            form: SignedForm::Legacy,
            info: SignatureInfoView::parse_value(info)?,
            value,
            parts: [covered, &[], &[]],
            time_ms: Some(time_ms),
            nonce: Some(nonce.value()),
        }))
    }

    /// Which form it has.
    #[must_use]
    pub const fn form(&self) -> SignedForm {
        self.form
    }

    /// The name without what the signature added to it: for a command, module,
    /// verb and parameters.
    #[must_use]
    pub fn command_name(&self) -> NameView<'a> {
        let name = self.interest.name();
        let is_digest =
            |c: tachonym_packet::ComponentView<'_>| c.typ() == component::PARAMETERS_SHA256_DIGEST;
        match self.form {
            SignedForm::Legacy => name.prefix(name.len() - N_LEGACY_COMPONENTS),
            SignedForm::V03 if name.last().is_some_and(is_digest) => name.prefix(name.len() - 1),
            SignedForm::V03 => name,
        }
    }

    /// What made the signature.
    #[must_use]
    pub const fn info(&self) -> SignatureInfoView<'a> {
        self.info
    }

    /// The signature.
    #[must_use]
    pub const fn value(&self) -> &'a [u8] {
        self.value
    }

    /// What the signature covers, in parts.
    #[must_use]
    pub const fn signed_parts(&self) -> [&'a [u8]; 3] {
        self.parts
    }

    /// When it was signed: milliseconds since the Unix epoch, if it tells. The
    /// older form always does.
    #[must_use]
    pub const fn time_ms(&self) -> Option<u64> {
        self.time_ms
    }

    /// The random bytes that make it unique, if there are any.
    #[must_use]
    pub const fn nonce(&self) -> Option<&'a [u8]> {
        self.nonce
    }

    /// Its sequence number, if there is one; only in the form of 0.3.
    #[must_use]
    pub const fn seq_num(&self) -> Option<u64> {
        self.info.seq_num()
    }

    /// Whether the parameters' digest in the name is right; it is where there
    /// are no parameters.
    #[must_use]
    pub fn verifies_parameters_digest(&self) -> bool {
        self.interest.verify_parameters_digest()
    }

    /// Checks the signature with `key`, and the parameters' digest in the name.
    ///
    /// # Errors
    /// If one of them is wrong.
    pub fn verify(&self, key: &VerifyingKey) -> Result<(), VerifyError> {
        if !self.verifies_parameters_digest() {
            return Err(VerifyError::BadParametersDigest);
        }
        key.verify(self.info.typ(), &self.parts, self.value)
    }
}
