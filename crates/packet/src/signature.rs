//! Signature information: what signed a packet, and which key checks it.
//!
//! Owns the elements that Data and Interest share (NDN Packet Format 0.3,
//! section "Signature"). The crate `security` makes and verifies signatures.

use crate::tlv::{self, Field, FieldReader, Fields};
use crate::types::{self, signature_type};
use crate::{DecodeError, Name, NameView};

/// Elements of a signature information element, in the order in which they
/// are written.
static FIELDS: Fields = Fields::new(&[
    Field::Once(types::SIGNATURE_TYPE),
    Field::Once(types::KEY_LOCATOR),
    Field::Once(types::SIGNATURE_NONCE),
    Field::Once(types::SIGNATURE_TIME),
    Field::Once(types::SIGNATURE_SEQ_NUM),
    Field::Once(types::VALIDITY_PERIOD),
    Field::Once(types::ADDITIONAL_DESCRIPTION),
]);

/// Which key made a signature, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLocatorView<'a> {
    /// Name of the key or of its certificate.
    Name(NameView<'a>),
    /// Digest of the public key.
    Digest(&'a [u8]),
}

/// Which key made a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLocator {
    /// Name of the key or of its certificate.
    Name(Name),
    /// Digest of the public key.
    Digest(Vec<u8>),
}

/// Time span in which a certificate holds: UTC, both ends included, as the
/// fifteen characters `YYYYMMDDThhmmss` of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// First second at which it holds.
    pub not_before: [u8; 15],
    /// Last second at which it holds.
    pub not_after: [u8; 15],
}

impl ValidityPeriod {
    fn parse(value: &[u8]) -> Result<Self, DecodeError> {
        static FIELDS: Fields = Fields::new(&[
            Field::Once(types::NOT_BEFORE),
            Field::Once(types::NOT_AFTER),
        ]);
        let mut fields = FieldReader::new(value, &FIELDS);
        let (mut not_before, mut not_after) = (None, None);
        while let Some(element) = fields.read_field()? {
            let time = <[u8; 15]>::try_from(element.value)
                .map_err(|_| DecodeError::BadLength { typ: element.typ })?;
            let digits = time.iter().enumerate().all(|(i, b)| match i {
                8 => *b == b'T',
                _ => b.is_ascii_digit(),
            });
            if !digits {
                return Err(DecodeError::BadValue { typ: element.typ });
            }
            match element.typ {
                types::NOT_BEFORE => not_before = Some(time),
                _ => not_after = Some(time),
            }
        }
        Ok(Self {
            not_before: not_before.ok_or(DecodeError::Missing {
                typ: types::NOT_BEFORE,
            })?,
            not_after: not_after.ok_or(DecodeError::Missing {
                typ: types::NOT_AFTER,
            })?,
        })
    }

    /// A period that says nothing is none: a packet is not dropped for it, and a
    /// certificate has to have one.
    ///
    /// Kept out of the reader of every Data's SignatureInfo: only certificates have a period.
    #[cold]
    #[inline(never)]
    fn find(value: &[u8]) -> Result<Option<Self>, DecodeError> {
        use DecodeError::{BadLength, BadValue, Missing, OutOfOrder, UnrecognisedCritical};
        match Self::parse(value) {
            Ok(period) => Ok(Some(period)),
            Err(
                BadLength { .. }
                | BadValue { .. }
                | Missing { .. }
                | OutOfOrder { .. }
                | UnrecognisedCritical { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, types::VALIDITY_PERIOD, |out| {
            tlv::write_tlv(out, types::NOT_BEFORE, &self.not_before);
            tlv::write_tlv(out, types::NOT_AFTER, &self.not_after);
        });
    }
}

/// Signature information, borrowed and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureInfoView<'a> {
    typ: u64,
    key_locator: Option<KeyLocatorView<'a>>,
    nonce: Option<&'a [u8]>,
    time_ms: Option<u64>,
    seq_num: Option<u64>,
    validity_period: Option<ValidityPeriod>,
    additional_description: Option<&'a [u8]>,
}

impl<'a> SignatureInfoView<'a> {
    /// Reads the TLV-VALUE of `SignatureInfo` or `InterestSignatureInfo`.
    ///
    /// # Errors
    /// If it is malformed or has no signature type.
    pub fn parse_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(value)
    }

    /// Whether [`parse_value`](Self::parse_value) would succeed.
    pub(crate) fn check(value: &'a [u8]) -> Result<(), DecodeError> {
        Self::read(value).map(drop)
    }

    /// Inlined, so that a check puts no fields together.
    #[inline(always)]
    fn read(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = FieldReader::new(value, &FIELDS);
        let mut typ = None;
        let mut info = Self {
            typ: 0,
            key_locator: None,
            nonce: None,
            time_ms: None,
            seq_num: None,
            validity_period: None,
            additional_description: None,
        };
        while let Some(element) = fields.read_field()? {
            match element.typ {
                types::SIGNATURE_TYPE => typ = Some(element.nni()?),
                types::KEY_LOCATOR => info.key_locator = parse_key_locator(element.value)?,
                types::SIGNATURE_NONCE if element.value.is_empty() => {
                    return Err(DecodeError::BadLength { typ: element.typ });
                }
                types::SIGNATURE_NONCE => info.nonce = Some(element.value),
                types::SIGNATURE_TIME => info.time_ms = Some(element.nni()?),
                types::SIGNATURE_SEQ_NUM => info.seq_num = Some(element.nni()?),
                types::VALIDITY_PERIOD => {
                    info.validity_period = ValidityPeriod::find(element.value)?;
                }
                _ => info.additional_description = Some(element.value),
            }
        }
        info.typ = typ.ok_or(DecodeError::Missing {
            typ: types::SIGNATURE_TYPE,
        })?;
        Ok(info)
    }

    /// `SignatureType`; see [`signature_type`].
    #[must_use]
    pub const fn typ(&self) -> u64 {
        self.typ
    }

    /// Which key made the signature.
    #[must_use]
    pub const fn key_locator(&self) -> Option<KeyLocatorView<'a>> {
        self.key_locator
    }

    /// `SignatureNonce` of a signed Interest.
    #[must_use]
    pub const fn nonce(&self) -> Option<&'a [u8]> {
        self.nonce
    }

    /// `SignatureTime` of a signed Interest: milliseconds since the Unix epoch.
    #[must_use]
    pub const fn time_ms(&self) -> Option<u64> {
        self.time_ms
    }

    /// `SignatureSeqNum` of a signed Interest.
    #[must_use]
    pub const fn seq_num(&self) -> Option<u64> {
        self.seq_num
    }

    /// `ValidityPeriod` of a certificate, unless its times are malformed.
    #[must_use]
    pub const fn validity_period(&self) -> Option<ValidityPeriod> {
        self.validity_period
    }

    /// A value of the same content.
    #[must_use]
    pub fn to_info(&self) -> SignatureInfo {
        SignatureInfo {
            typ: self.typ,
            key_locator: self.key_locator.map(|locator| match locator {
                KeyLocatorView::Name(name) => KeyLocator::Name(name.to_name()),
                KeyLocatorView::Digest(digest) => KeyLocator::Digest(digest.to_vec()),
            }),
            nonce: self.nonce.map(<[u8]>::to_vec),
            time_ms: self.time_ms,
            seq_num: self.seq_num,
            validity_period: self.validity_period,
            additional_description: self.additional_description.map(<[u8]>::to_vec),
        }
    }
}

/// A locator of a kind not known here locates nothing, and is no error.
fn parse_key_locator(value: &[u8]) -> Result<Option<KeyLocatorView<'_>>, DecodeError> {
    if value.is_empty() {
        return Ok(None);
    }
    let element = tlv::Reader::new(value).read_element()?;
    Ok(match element.typ {
        types::NAME => Some(KeyLocatorView::Name(NameView::parse_value(element.value)?)),
        types::KEY_DIGEST => Some(KeyLocatorView::Digest(element.value)),
        _ => None,
    })
}

/// Signature information as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureInfo {
    /// `SignatureType`; see [`signature_type`].
    pub typ: u64,
    /// Which key made the signature.
    pub key_locator: Option<KeyLocator>,
    /// `SignatureNonce` of a signed Interest; not empty.
    pub nonce: Option<Vec<u8>>,
    /// `SignatureTime` of a signed Interest: milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// `SignatureSeqNum` of a signed Interest.
    pub seq_num: Option<u64>,
    /// `ValidityPeriod` of a certificate.
    pub validity_period: Option<ValidityPeriod>,
    /// `AdditionalDescription` of a certificate, its TLV-VALUE.
    pub additional_description: Option<Vec<u8>>,
}

impl SignatureInfo {
    /// Information for a signature of type `typ` without a key locator.
    #[must_use]
    pub fn new(typ: u64) -> Self {
        Self {
            typ,
            ..Self::default()
        }
    }

    /// Information for a plain SHA-256 digest.
    #[must_use]
    pub fn digest() -> Self {
        Self::new(signature_type::DIGEST_SHA256)
    }

    /// Writes it as an element of type `typ`: `SignatureInfo` or
    /// `InterestSignatureInfo`.
    pub fn write(&self, out: &mut Vec<u8>, typ: u32) {
        tlv::write_nested(out, typ, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, self.typ);
            match &self.key_locator {
                Some(KeyLocator::Name(name)) => {
                    tlv::write_tlv(out, types::KEY_LOCATOR, &name.encode());
                }
                Some(KeyLocator::Digest(digest)) => {
                    tlv::write_nested(out, types::KEY_LOCATOR, |out| {
                        tlv::write_tlv(out, types::KEY_DIGEST, digest);
                    });
                }
                None => {}
            }
            if let Some(nonce) = &self.nonce {
                tlv::write_tlv(out, types::SIGNATURE_NONCE, nonce);
            }
            if let Some(time_ms) = self.time_ms {
                tlv::write_nni(out, types::SIGNATURE_TIME, time_ms);
            }
            if let Some(seq_num) = self.seq_num {
                tlv::write_nni(out, types::SIGNATURE_SEQ_NUM, seq_num);
            }
            if let Some(period) = &self.validity_period {
                period.write(out);
            }
            if let Some(description) = &self.additional_description {
                tlv::write_tlv(out, types::ADDITIONAL_DESCRIPTION, description);
            }
        });
    }
}
