//! One component of a name.
//!
//! Owns [`ComponentView`] and [`Component`] and their invariant: the type is in
//! 1–65535 and digest components are exactly 32 bytes. Text form: `uri`.

use std::cmp::Ordering;

use crate::DecodeError;
use crate::tlv::{self, parse_nni};
use crate::types::component as kind;

/// Length of a digest component's value, in bytes.
pub(crate) const DIGEST_BYTES: usize = 32;

/// A name component borrowed from checked bytes.
///
/// Ordered canonically: by type, then by length, then by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ComponentView<'a> {
    typ: u16,
    value: &'a [u8],
}

impl<'a> ComponentView<'a> {
    /// A component of any type.
    ///
    /// # Errors
    /// [`DecodeError::BadComponentType`] for type 0,
    /// [`DecodeError::BadDigestLength`] for a digest not of 32 bytes.
    pub fn new(typ: u16, value: &'a [u8]) -> Result<Self, DecodeError> {
        check_component(u32::from(typ), value.len())?;
        Ok(Self { typ, value })
    }

    /// A component of type GenericNameComponent.
    #[must_use]
    pub const fn generic(value: &'a [u8]) -> Self {
        Self {
            typ: kind::GENERIC,
            value,
        }
    }

    /// A component whose type and length [`check_component`] has passed.
    pub(crate) const fn from_checked(typ: u16, value: &'a [u8]) -> Self {
        Self { typ, value }
    }

    /// Decodes the element that is all of `wire`.
    ///
    /// # Errors
    /// If `wire` is not exactly one valid name component.
    pub fn parse_element(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = tlv::Reader::new(wire);
        let element = reader.read_element()?;
        reader.finish()?;
        let typ = check_component(element.typ, element.value.len())?;
        Ok(Self {
            typ,
            value: element.value,
        })
    }

    /// TLV-TYPE, 1–65535.
    #[must_use]
    pub const fn typ(&self) -> u16 {
        self.typ
    }

    /// TLV-VALUE.
    #[must_use]
    pub const fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The value as a number, if it is 1, 2, 4 or 8 bytes long. The type is not
    /// looked at: compare [`typ`](Self::typ) first.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        parse_nni(self.value)
    }

    /// Bytes that the component takes in a name, head included.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        tlv::tlv_len(self.typ as u32, self.value.len())
    }

    /// Appends the component's element.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        tlv::write_tlv(out, u32::from(self.typ), self.value);
    }

    /// An owned copy.
    #[must_use]
    pub fn to_component(&self) -> Component {
        Component {
            typ: self.typ,
            value: self.value.to_vec(),
        }
    }
}

/// Says whether a component may have this type and length; returns the type.
#[inline]
pub(crate) fn check_component(typ: u32, value_bytes: usize) -> Result<u16, DecodeError> {
    let typ = match u16::try_from(typ) {
        Ok(0) | Err(_) => return Err(DecodeError::BadComponentType),
        Ok(typ) => typ,
    };
    let is_digest = matches!(
        typ,
        kind::IMPLICIT_SHA256_DIGEST | kind::PARAMETERS_SHA256_DIGEST
    );
    if is_digest && value_bytes != DIGEST_BYTES {
        return Err(DecodeError::BadDigestLength);
    }
    Ok(typ)
}

impl Ord for ComponentView<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.typ, self.value.len(), self.value).cmp(&(other.typ, other.value.len(), other.value))
    }
}

impl PartialOrd for ComponentView<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> From<&'a Component> for ComponentView<'a> {
    fn from(component: &'a Component) -> Self {
        component.view()
    }
}

/// A GenericNameComponent with these bytes, unescaped.
impl<'a> From<&'a str> for ComponentView<'a> {
    fn from(text: &'a str) -> Self {
        Self::generic(text.as_bytes())
    }
}

/// A GenericNameComponent with these bytes.
impl<'a> From<&'a [u8]> for ComponentView<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::generic(bytes)
    }
}

/// A name component that owns its value. Ordered canonically.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    typ: u16,
    value: Vec<u8>,
}

impl Component {
    /// A component of any type.
    ///
    /// # Errors
    /// As [`ComponentView::new`].
    pub fn new(typ: u16, value: impl Into<Vec<u8>>) -> Result<Self, DecodeError> {
        let value = value.into();
        check_component(u32::from(typ), value.len())?;
        Ok(Self { typ, value })
    }

    /// A GenericNameComponent with these bytes, unescaped.
    #[must_use]
    pub fn generic(value: impl AsRef<[u8]>) -> Self {
        Self::of_type(kind::GENERIC, value.as_ref())
    }

    /// A KeywordNameComponent with these bytes, such as `metadata`.
    #[must_use]
    pub fn keyword(value: impl AsRef<[u8]>) -> Self {
        Self::of_type(kind::KEYWORD, value.as_ref())
    }

    /// A segment number.
    #[must_use]
    pub fn segment(number: u64) -> Self {
        Self::number(kind::SEGMENT, number)
    }

    /// A byte offset.
    #[must_use]
    pub fn byte_offset(offset_bytes: u64) -> Self {
        Self::number(kind::BYTE_OFFSET, offset_bytes)
    }

    /// A version number.
    #[must_use]
    pub fn version(number: u64) -> Self {
        Self::number(kind::VERSION, number)
    }

    /// A point in time, in microseconds since the Unix epoch.
    #[must_use]
    pub fn timestamp(unix_us: u64) -> Self {
        Self::number(kind::TIMESTAMP, unix_us)
    }

    /// A sequence number.
    #[must_use]
    pub fn sequence(number: u64) -> Self {
        Self::number(kind::SEQUENCE_NUM, number)
    }

    /// The SHA-256 of a whole Data.
    #[must_use]
    pub fn implicit_digest(digest: &[u8; 32]) -> Self {
        Self::of_type(kind::IMPLICIT_SHA256_DIGEST, digest)
    }

    /// The SHA-256 of an Interest's parameters.
    #[must_use]
    pub fn parameters_digest(digest: &[u8; 32]) -> Self {
        Self::of_type(kind::PARAMETERS_SHA256_DIGEST, digest)
    }

    /// A GenericNameComponent whose value is a number in its shortest form, as
    /// NFD management and older naming conventions use it.
    #[must_use]
    pub fn generic_number(number: u64) -> Self {
        Self::number(kind::GENERIC, number)
    }

    fn of_type(typ: u16, value: &[u8]) -> Self {
        Self {
            typ,
            value: value.to_vec(),
        }
    }

    pub(super) fn number(typ: u16, number: u64) -> Self {
        let mut value = Vec::with_capacity(8);
        tlv::write_nni_value(&mut value, number);
        Self { typ, value }
    }

    /// The component as a view.
    #[must_use]
    pub fn view(&self) -> ComponentView<'_> {
        ComponentView {
            typ: self.typ,
            value: &self.value,
        }
    }

    /// TLV-TYPE, 1–65535.
    #[must_use]
    pub const fn typ(&self) -> u16 {
        self.typ
    }

    /// TLV-VALUE.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// As [`ComponentView::as_number`].
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        parse_nni(&self.value)
    }
}

impl Ord for Component {
    fn cmp(&self, other: &Self) -> Ordering {
        self.view().cmp(&other.view())
    }
}

impl PartialOrd for Component {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq<ComponentView<'_>> for Component {
    fn eq(&self, other: &ComponentView<'_>) -> bool {
        self.view() == *other
    }
}

impl PartialEq<Component> for ComponentView<'_> {
    fn eq(&self, other: &Component) -> bool {
        *self == other.view()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_type_zero_is_rejected() {
        assert_eq!(Component::new(0, *b"x"), Err(DecodeError::BadComponentType));
        assert_eq!(
            ComponentView::parse_element(&[254, 0, 1, 0, 0, 0]),
            Err(DecodeError::BadComponentType)
        );
        assert!(Component::new(65535, *b"x").is_ok());
    }

    #[test]
    fn digest_components_have_32_bytes() {
        for typ in [1, 2] {
            for len in [0, 31, 33] {
                let error = Component::new(typ, vec![0; len]);
                assert_eq!(error, Err(DecodeError::BadDigestLength));
            }
            assert!(Component::new(typ, vec![0; 32]).is_ok());
        }
    }

    #[test]
    fn canonical_order_is_type_then_length_then_bytes() {
        let ascending = [
            Component::implicit_digest(&[255; 32]),
            Component::parameters_digest(&[0; 32]),
            Component::generic(""),
            Component::generic("z"),
            Component::generic("aa"),
            Component::generic("ab"),
            Component::segment(0),
            Component::new(300, *b"").unwrap(),
        ];
        assert!(ascending.is_sorted());
    }

    #[test]
    fn numbers_come_back() {
        assert_eq!(Component::segment(256).as_number(), Some(256));
        assert_eq!(Component::version(7).value(), [7]);
        assert_eq!(Component::generic("abc").as_number(), None);
    }
}
