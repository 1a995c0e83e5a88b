//! Data: the view of a received one and the value that programs build.
//!
//! Elements and their order are those of NDN Packet Format 0.3, section "Data
//! Packet".

use sha2::{Digest, Sha256};

use crate::interest::digest_of;
use crate::signature::{SignatureInfo, SignatureInfoView};
use crate::span::{Span, element_offset};
use crate::tlv::{self, Field, FieldReader, Fields};
use crate::types::{self, content_type};
use crate::{Component, ComponentView, DecodeError, InterestView, Name, NameView};

static FIELDS: Fields = Fields::new(&[
    Field::Once(types::NAME),
    Field::Once(types::META_INFO),
    Field::Once(types::CONTENT),
    Field::Once(types::SIGNATURE_INFO),
    Field::Once(types::SIGNATURE_VALUE),
]);

/// Applications may add elements of their own types, odd ones too: ndn-cxx lets them use
/// 128 to 252 (`MetaInfo::addAppMetaInfo`), and NFD forwards such Data.
static META_FIELDS: Fields = Fields::new(&[
    Field::Once(types::CONTENT_TYPE),
    Field::Once(types::FRESHNESS_PERIOD),
    Field::Once(types::FINAL_BLOCK_ID),
])
.skipping(128, 252);

/// A Data borrowed from a receive buffer.
///
/// Invariant: everything it refers to lies inside `wire` and is well-formed;
/// [`DataView::parse`] is the only constructor, but for copies of what it has read.
#[derive(Clone, Copy, Debug)]
pub struct DataView<'a> {
    wire: &'a [u8],
    name: NameView<'a>,
    content: Span,
    signature_info: Span,
    signature_value: Span,
    final_block_id: Span,
    freshness_period_ms: Option<u64>,
    content_type: u64,
}

const _: () = assert!(size_of::<DataView<'_>>() <= 80);

impl<'a> DataView<'a> {
    /// Reads `wire` as exactly one Data.
    ///
    /// # Errors
    /// If it is too large, malformed, unsigned, or breaks an evolvability rule.
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, DecodeError> {
        if wire.len() > types::MAX_PACKET_BYTES {
            return Err(DecodeError::PacketTooLarge);
        }
        let value = tlv::read_single(wire, types::DATA)?;
        let (name, rest) = tlv::split_first_field(value, types::NAME)?;
        let mut view = Self {
            wire,
            name: NameView::parse_packet_name(name)?,
            content: Span::default(),
            signature_info: Span::default(),
            signature_value: Span::default(),
            final_block_id: Span::default(),
            freshness_period_ms: None,
            content_type: content_type::BLOB,
        };
        view.read_fields(rest)?;
        let missing = |typ| Err(DecodeError::Missing { typ });
        if !view.signature_value.is_some() {
            return missing(types::SIGNATURE_VALUE);
        }
        if !view.signature_info.is_some() {
            return missing(types::SIGNATURE_INFO);
        }
        Ok(view)
    }

    /// Reads what follows the name. By itself, so that each field is written to its
    /// place and no other one moves.
    #[inline(never)]
    fn read_fields(&mut self, rest: &'a [u8]) -> Result<(), DecodeError> {
        let mut fields = FieldReader::after_first(rest, &FIELDS);
        while let Some(element) = fields.read_field()? {
            match element.typ {
                types::META_INFO => self.read_meta_info(element.value)?,
                types::CONTENT => self.content = Span::of(self.wire, element.value),
                types::SIGNATURE_INFO => {
                    SignatureInfoView::check(element.value)?;
                    self.signature_info = Span::of(self.wire, element.value);
                }
                _ => self.signature_value = Span::of(self.wire, element.value),
            }
        }
        Ok(())
    }

    #[inline]
    fn read_meta_info(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        let mut fields = FieldReader::new(value, &META_FIELDS);
        while let Some(element) = fields.read_field()? {
            match element.typ {
                types::CONTENT_TYPE => self.content_type = element.nni()?,
                types::FRESHNESS_PERIOD => self.freshness_period_ms = Some(element.nni()?),
                _ => {
                    ComponentView::parse_element(element.value)?;
                    self.final_block_id = Span::of(self.wire, element.value);
                }
            }
        }
        Ok(())
    }

    /// The view of a copy of the packet, whose name's components are `name`.
    #[inline]
    pub(crate) const fn of_copy<'c>(&self, wire: &'c [u8], name: &'c [u8]) -> DataView<'c> {
        DataView {
            wire,
            name: self.name.of_copy(name),
            content: self.content,
            signature_info: self.signature_info,
            signature_value: self.signature_value,
            final_block_id: self.final_block_id,
            freshness_period_ms: self.freshness_period_ms,
            content_type: self.content_type,
        }
    }

    /// The whole element.
    #[must_use]
    #[inline]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The name.
    #[must_use]
    #[inline]
    pub const fn name(&self) -> NameView<'a> {
        self.name
    }

    /// Where the TLV-VALUE of the name lies in [`wire`](Self::wire).
    #[must_use]
    #[inline]
    pub fn name_span(&self) -> Span {
        Span::of(self.wire, self.name.value_bytes())
    }

    /// `ContentType`; see [`content_type`].
    #[must_use]
    pub const fn content_type(&self) -> u64 {
        self.content_type
    }

    /// For how long it is fresh after arrival, in milliseconds; 0 if it does not
    /// say: never fresh.
    #[must_use]
    #[inline]
    pub fn freshness_period_ms(&self) -> u64 {
        self.freshness_period_ms.unwrap_or(0)
    }

    /// The final component of the last name in its sequence, if it tells.
    #[must_use]
    pub fn final_block_id(&self) -> Option<ComponentView<'a>> {
        let element = self.final_block_id.of_wire(self.wire)?;
        // `parse` has read it before.
        ComponentView::parse_element(element).ok()
    }

    /// The content; empty if there is none.
    #[must_use]
    pub fn content(&self) -> &'a [u8] {
        self.content.of_wire(self.wire).unwrap_or_default()
    }

    /// What signed it. Reads the element again, so not meant for the packet path.
    #[must_use]
    pub fn signature_info(&self) -> SignatureInfoView<'a> {
        let value = self.signature_info.of_wire(self.wire).unwrap_or_default();
        SignatureInfoView::parse_value(value).expect("`parse` has read it before")
    }

    /// The signature.
    #[must_use]
    pub fn signature_value(&self) -> &'a [u8] {
        self.signature_value.of_wire(self.wire).unwrap_or_default()
    }

    /// What the signature covers: from the name up to the signature value.
    #[must_use]
    pub fn signed_portion(&self) -> &'a [u8] {
        let start = element_offset(self.wire, types::NAME, self.name.value_bytes());
        let value = self.signature_value();
        let end = element_offset(self.wire, types::SIGNATURE_VALUE, value);
        &self.wire[start..end]
    }

    /// Its ImplicitSha256DigestComponent: SHA-256 over the whole.
    #[must_use]
    pub fn implicit_digest(&self) -> [u8; 32] {
        Sha256::digest(self.wire).into()
    }

    /// A value of the same content.
    #[must_use]
    pub fn to_data(&self) -> Data {
        Data {
            name: self.name.to_name(),
            content_type: self.content_type,
            freshness_period_ms: self.freshness_period_ms,
            final_block_id: self.final_block_id().map(|id| id.to_component()),
            content: self.content().to_vec(),
            signature_info: self.signature_info().to_info(),
            signature_value: self.signature_value().to_vec(),
        }
    }
}

/// A Data as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// The name.
    pub name: Name,
    /// `ContentType`; see [`content_type`].
    pub content_type: u64,
    /// For how long it is fresh after arrival, in milliseconds; `None`: never.
    pub freshness_period_ms: Option<u64>,
    /// The final component of the last name in its sequence.
    pub final_block_id: Option<Component>,
    /// The content.
    pub content: Vec<u8>,
    /// What signed it.
    pub signature_info: SignatureInfo,
    /// The signature.
    pub signature_value: Vec<u8>,
}

impl Data {
    /// A Data of this name with nothing else set, signature included.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// The wire form with the signature it has.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut signed = Vec::new();
        self.write_signed_portion(&self.signature_info, &mut signed);
        finish(signed, &self.signature_value)
    }

    /// The wire form with a new signature. `sign` is given what the signature
    /// covers, in parts, and returns it.
    ///
    /// # Errors
    /// Those of `sign`.
    pub fn encode_signed<E>(
        &self,
        info: &SignatureInfo,
        sign: impl FnOnce(&[&[u8]]) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let mut signed = Vec::new();
        self.write_signed_portion(info, &mut signed);
        let signature = sign(&[&signed])?;
        Ok(finish(signed, &signature))
    }

    /// The wire form with a plain SHA-256 digest for a signature.
    #[must_use]
    pub fn encode_with_digest(&self) -> Vec<u8> {
        let Ok(wire) = self.encode_signed(&SignatureInfo::digest(), |parts| {
            Ok::<_, std::convert::Infallible>(digest_of(parts).to_vec())
        });
        wire
    }

    fn write_signed_portion(&self, info: &SignatureInfo, out: &mut Vec<u8>) {
        self.name.encode_into(out);
        let has_meta = self.content_type != content_type::BLOB
            || self.freshness_period_ms.is_some()
            || self.final_block_id.is_some();
        if has_meta {
            tlv::write_nested(out, types::META_INFO, |out| {
                if self.content_type != content_type::BLOB {
                    tlv::write_nni(out, types::CONTENT_TYPE, self.content_type);
                }
                if let Some(ms) = self.freshness_period_ms {
                    tlv::write_nni(out, types::FRESHNESS_PERIOD, ms);
                }
                if let Some(id) = &self.final_block_id {
                    tlv::write_nested(out, types::FINAL_BLOCK_ID, |out| {
                        id.view().encode_into(out);
                    });
                }
            });
        }
        tlv::write_tlv(out, types::CONTENT, &self.content);
        info.write(out, types::SIGNATURE_INFO);
    }
}

/// Wraps a signed portion and its signature into a Data.
fn finish(signed: Vec<u8>, signature: &[u8]) -> Vec<u8> {
    let len = signed.len() + tlv::tlv_len(types::SIGNATURE_VALUE, signature.len());
    let mut out = Vec::with_capacity(len + 4);
    tlv::write_head(&mut out, types::DATA, len);
    out.extend_from_slice(&signed);
    tlv::write_tlv(&mut out, types::SIGNATURE_VALUE, signature);
    out
}

impl From<DataView<'_>> for Data {
    fn from(view: DataView<'_>) -> Self {
        view.to_data()
    }
}

/// A network-layer packet.
#[derive(Clone, Copy, Debug)]
pub enum PacketView<'a> {
    /// An Interest.
    Interest(InterestView<'a>),
    /// A Data.
    Data(DataView<'a>),
}

impl<'a> PacketView<'a> {
    /// Reads `wire` as exactly one Interest or Data.
    ///
    /// # Errors
    /// If it is neither, or malformed.
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, DecodeError> {
        const INTEREST: u8 = types::INTEREST as u8;
        const DATA: u8 = types::DATA as u8;
        match wire {
            [INTEREST, ..] => InterestView::parse(wire).map(Self::Interest),
            [DATA, ..] => DataView::parse(wire).map(Self::Data),
            _ => Err(type_error(wire)),
        }
    }

    /// The whole element.
    #[must_use]
    pub const fn wire(&self) -> &'a [u8] {
        match self {
            Self::Interest(interest) => interest.wire(),
            Self::Data(data) => data.wire(),
        }
    }
}

/// Why `wire` is neither an Interest nor a Data.
#[cold]
fn type_error(wire: &[u8]) -> DecodeError {
    match tlv::Reader::new(wire).peek_type() {
        Ok(Some(found)) => DecodeError::UnexpectedType { found },
        Ok(None) => DecodeError::Missing {
            typ: types::INTEREST,
        },
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Data {
        Data {
            name: "/a/seg=3".parse().expect("a literal name"),
            content_type: content_type::KEY,
            freshness_period_ms: Some(1000),
            final_block_id: Some(Component::segment(9)),
            content: vec![7; 300],
            signature_info: SignatureInfo::new(types::signature_type::NULL),
            signature_value: vec![1, 2],
        }
    }

    #[test]
    fn every_field_is_read_back() {
        let wire = full().encode();
        let view = DataView::parse(&wire).expect("own encoding");
        assert_eq!(view.to_data(), full());
        assert_eq!(view.to_data().encode(), wire);
    }

    #[test]
    fn the_digest_covers_everything_from_name_to_signature_info() {
        let wire = full().encode_with_digest();
        let view = DataView::parse(&wire).expect("own encoding");
        let digest: [u8; 32] = Sha256::digest(view.signed_portion()).into();
        assert_eq!(view.signature_value(), digest);
    }

    #[test]
    fn unsigned_data_is_rejected() {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::DATA, |out| full().name.encode_into(out));
        assert!(DataView::parse(&wire).is_err());
    }

    #[test]
    fn freshness_is_zero_where_absent() {
        let wire = Data::new(full().name).encode_with_digest();
        let view = DataView::parse(&wire).expect("own encoding");
        assert_eq!(view.freshness_period_ms(), 0);
        assert_eq!(view.content(), b"");
    }
}
