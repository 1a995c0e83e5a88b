//! How management values become TLV and come back.
//!
//! Owns the one reader and writer that all values of this crate share: each
//! value is a list of fields, and the macro [`management_value!`] states it once
//! for both directions. Fields are written in the order of the protocol's
//! grammar and read in any order (deployed clients differ). Refused are: a
//! repeated field, a missing required one, more of a field than there may be, a
//! number or text that does not fit its field, and unrecognised elements of
//! critical type.

use tachonym_packet::tlv::{self, Element};
use tachonym_packet::{DecodeError, Name, NameView, types};

/// A value that one element holds.
pub(crate) trait FieldValue: Sized {
    fn write(&self, typ: u32, out: &mut Vec<u8>);
    fn read(element: Element<'_>) -> Result<Self, DecodeError>;
}

impl FieldValue for u64 {
    fn write(&self, typ: u32, out: &mut Vec<u8>) {
        tlv::write_nni(out, typ, *self);
    }

    fn read(element: Element<'_>) -> Result<Self, DecodeError> {
        element.nni()
    }
}

/// A NonNegativeInteger, 0 or 1.
impl FieldValue for bool {
    fn write(&self, typ: u32, out: &mut Vec<u8>) {
        tlv::write_nni(out, typ, u64::from(*self));
    }

    fn read(element: Element<'_>) -> Result<Self, DecodeError> {
        match element.nni()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::BadValue { typ: element.typ }),
        }
    }
}

impl FieldValue for String {
    fn write(&self, typ: u32, out: &mut Vec<u8>) {
        tlv::write_tlv(out, typ, self.as_bytes());
    }

    fn read(element: Element<'_>) -> Result<Self, DecodeError> {
        std::str::from_utf8(element.value)
            .map(str::to_owned)
            .map_err(|_| DecodeError::BadValue { typ: element.typ })
    }
}

/// A Name element; or, under another type than Name, an element that nests one,
/// as Strategy does.
impl FieldValue for Name {
    fn write(&self, typ: u32, out: &mut Vec<u8>) {
        if typ == types::NAME {
            self.encode_into(out);
        } else {
            tlv::write_nested(out, typ, |out| self.encode_into(out));
        }
    }

    fn read(element: Element<'_>) -> Result<Self, DecodeError> {
        let name = if element.typ == types::NAME {
            NameView::parse_value(element.value)?
        } else {
            NameView::parse_element(element.value)?
        };
        Ok(name.to_name())
    }
}

macro_rules! closed_number_field {
    ($($kind:ty),+) => {$(
        impl FieldValue for $kind {
            fn write(&self, typ: u32, out: &mut Vec<u8>) {
                tlv::write_nni(out, typ, self.code());
            }

            fn read(element: Element<'_>) -> Result<Self, DecodeError> {
                Self::from_code(element.nni()?).ok_or(DecodeError::BadValue { typ: element.typ })
            }
        }
    )+};
}

closed_number_field!(
    crate::FacePersistency,
    crate::FaceScope,
    crate::LinkType,
    crate::FaceEventKind,
    crate::FaceState,
    crate::NextHopUse,
    crate::SsdFinding,
    crate::TraceDecision,
    crate::WorkerState
);

/// A value that its parent holds a bounded number of.
pub(crate) trait Bounded: FieldValue {
    const MAX: usize;
}

/// A place for the value of one field while its parent is read.
pub(crate) trait Slot: Default {
    type Field;
    fn fill(&mut self, element: Element<'_>) -> Result<(), DecodeError>;
    fn take(self, typ: u32) -> Result<Self::Field, DecodeError>;
}

/// A field that has to be there once.
pub(crate) struct Required<T>(Option<T>);
/// A field that may be there once.
pub(crate) struct Optional<T>(Option<T>);
/// A field that may be there any number of times.
pub(crate) struct Repeated<T>(Vec<T>);
/// A field that may be there as often as its [bound](Bounded) allows.
pub(crate) struct Few<T>(Vec<T>);

impl<T> Default for Required<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for Repeated<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

fn fill_once<T: FieldValue>(slot: &mut Option<T>, element: Element<'_>) -> Result<(), DecodeError> {
    if slot.is_some() {
        return Err(DecodeError::OutOfOrder { typ: element.typ });
    }
    *slot = Some(T::read(element)?);
    Ok(())
}

impl<T: FieldValue> Slot for Required<T> {
    type Field = T;

    fn fill(&mut self, element: Element<'_>) -> Result<(), DecodeError> {
        fill_once(&mut self.0, element)
    }

    fn take(self, typ: u32) -> Result<T, DecodeError> {
        self.0.ok_or(DecodeError::Missing { typ })
    }
}

impl<T: FieldValue> Slot for Optional<T> {
    type Field = Option<T>;

    fn fill(&mut self, element: Element<'_>) -> Result<(), DecodeError> {
        fill_once(&mut self.0, element)
    }

    fn take(self, _: u32) -> Result<Option<T>, DecodeError> {
        Ok(self.0)
    }
}

impl<T: FieldValue> Slot for Repeated<T> {
    type Field = Vec<T>;

    fn fill(&mut self, element: Element<'_>) -> Result<(), DecodeError> {
        self.0.push(T::read(element)?);
        Ok(())
    }

    fn take(self, _: u32) -> Result<Vec<T>, DecodeError> {
        Ok(self.0)
    }
}

impl<T: Bounded> Slot for Few<T> {
    type Field = Vec<T>;

    fn fill(&mut self, element: Element<'_>) -> Result<(), DecodeError> {
        if self.0.len() == T::MAX {
            return Err(DecodeError::BadValue { typ: element.typ });
        }
        self.0.push(T::read(element)?);
        Ok(())
    }

    fn take(self, _: u32) -> Result<Vec<T>, DecodeError> {
        Ok(self.0)
    }
}

/// Writing fields, whether they are single, optional or lists.
pub(crate) trait WriteField {
    fn write_field(&self, typ: u32, out: &mut Vec<u8>);
}

impl<T: FieldValue> WriteField for T {
    fn write_field(&self, typ: u32, out: &mut Vec<u8>) {
        self.write(typ, out);
    }
}

impl<T: FieldValue> WriteField for Option<T> {
    fn write_field(&self, typ: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(typ, out);
        }
    }
}

impl<T: FieldValue> WriteField for Vec<T> {
    fn write_field(&self, typ: u32, out: &mut Vec<u8>) {
        for value in self {
            value.write(typ, out);
        }
    }
}

/// The type of a field, from its slot.
macro_rules! field_type {
    (Required, $ty:ty) => { $ty };
    (Optional, $ty:ty) => { Option<$ty> };
    (Repeated, $ty:ty) => { Vec<$ty> };
    (Few, $ty:ty) => { Vec<$ty> };
}
pub(crate) use field_type;

/// Defines a value, its writer and its reader from one list of fields:
/// `name: Slot<Type> = TLV-TYPE`, in the order in which they are written.
macro_rules! management_value {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$fmeta:meta])* $field:ident: $slot:ident<$ty:ty> = $typ:expr,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $crate::codec::field_type!($slot, $ty),)+
        }

        impl $name {
            /// Appends the fields without a head around them.
            pub fn encode_value_into(&self, out: &mut Vec<u8>) {
                $($crate::codec::WriteField::write_field(&self.$field, $typ, out);)+
            }

            /// Reads the fields, without a head around them.
            ///
            /// # Errors
            /// If a field is missing, repeated, of a wrong form, or an unrecognised
            /// element is of critical type.
            pub fn decode_value(
                value: &[u8],
            ) -> Result<Self, tachonym_packet::DecodeError> {
                $(let mut $field = $crate::codec::$slot::<$ty>::default();)+
                let mut reader = tachonym_packet::tlv::Reader::new(value);
                while !reader.is_empty() {
                    let element = reader.read_element()?;
                    match element.typ {
                        $(typ if typ == $typ => {
                            $crate::codec::Slot::fill(&mut $field, element)?;
                        })+
                        typ if tachonym_packet::tlv::is_critical(typ) => {
                            return Err(tachonym_packet::DecodeError::UnrecognisedCritical { typ });
                        }
                        _ => {}
                    }
                }
                Ok(Self {
                    $($field: $crate::codec::Slot::take($field, $typ)?,)+
                })
            }
        }
    };
    (
        $(#[$meta:meta])*
        $name:ident = $outer:literal {
            $($fields:tt)+
        }
    ) => {
        $crate::codec::management_value! { $(#[$meta])* $name { $($fields)+ } }

        impl $name {
            /// TLV-TYPE of the element that holds this value.
            pub const TLV_TYPE: u32 = $outer;

            /// Appends the whole element.
            pub fn encode_into(&self, out: &mut Vec<u8>) {
                tachonym_packet::tlv::write_nested(out, $outer, |out| self.encode_value_into(out));
            }

            /// The whole element.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                let mut out = Vec::new();
                self.encode_into(&mut out);
                out
            }

            /// Reads `wire`, which has to be exactly one element of this type.
            ///
            /// # Errors
            /// If it is another type, malformed, or [`Self::decode_value`] refuses it.
            pub fn decode(wire: &[u8]) -> Result<Self, tachonym_packet::DecodeError> {
                Self::decode_value(tachonym_packet::tlv::read_single(wire, $outer)?)
            }
        }

        impl $crate::codec::FieldValue for $name {
            fn write(&self, typ: u32, out: &mut Vec<u8>) {
                tachonym_packet::tlv::write_nested(out, typ, |out| self.encode_value_into(out));
            }

            fn read(
                element: tachonym_packet::tlv::Element<'_>,
            ) -> Result<Self, tachonym_packet::DecodeError> {
                Self::decode_value(element.value)
            }
        }
    };
}
pub(crate) use management_value;

/// Reads `content` as a dataset: elements of type `typ`, one after the other.
pub(crate) fn decode_list<T: FieldValue>(content: &[u8], typ: u32) -> Result<Vec<T>, DecodeError> {
    let mut reader = tlv::Reader::new(content);
    let mut items = Vec::new();
    while !reader.is_empty() {
        let element = reader.read_element()?;
        if element.typ == typ {
            items.push(T::read(element)?);
        } else if tlv::is_critical(element.typ) {
            return Err(DecodeError::UnrecognisedCritical { typ: element.typ });
        }
    }
    Ok(items)
}
