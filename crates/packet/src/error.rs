//! Why bytes were refused.
//!
//! Owns [`DecodeError`], which every decoder of the project's wire formats
//! returns. It is `Copy` and carries no strings, so that refusing a hostile
//! packet costs no allocation.

use std::fmt;

/// Why a sequence of bytes is not what it was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeError {
    /// An element, or a number in it, ends beyond its parent or the packet.
    Truncated {
        /// Bytes wanted from where the element or number begins; saturates.
        needed_bytes: u32,
        /// Bytes that were left there; saturates.
        have_bytes: u32,
    },
    /// A type or length is not in its shortest form.
    NonMinimalNumber,
    /// A TLV-TYPE is zero or above 4,294,967,295.
    InvalidType,
    /// The packet exceeds [`MAX_PACKET_BYTES`](crate::types::MAX_PACKET_BYTES).
    PacketTooLarge,
    /// Bytes follow the element that should have been the whole.
    TrailingBytes {
        /// How many; saturates.
        extra_bytes: u32,
    },
    /// An element has another type than the only one allowed here.
    UnexpectedType {
        /// The TLV-TYPE found.
        found: u32,
    },
    /// An unrecognised element has a critical type, or an NDNLPv2 header field
    /// may not be ignored.
    UnrecognisedCritical {
        /// Its TLV-TYPE.
        typ: u32,
    },
    /// A recognised element of critical type is repeated or out of order.
    OutOfOrder {
        /// Its TLV-TYPE.
        typ: u32,
    },
    /// A required element is absent.
    Missing {
        /// Its TLV-TYPE.
        typ: u32,
    },
    /// The TLV-LENGTH is not one that this type allows.
    BadLength {
        /// The TLV-TYPE of the element.
        typ: u32,
    },
    /// The length is right and the value makes no sense.
    BadValue {
        /// The TLV-TYPE of the element.
        typ: u32,
    },
    /// A name component's type is outside 1–65535.
    BadComponentType,
    /// A digest component is not exactly 32 bytes long.
    BadDigestLength,
    /// An Interest's name has no component.
    EmptyInterestName,
    /// A name has more than one ParametersSha256DigestComponent.
    RepeatedParametersDigest,
    /// An Interest has ApplicationParameters and its name no digest of them.
    MissingParametersDigest,
    /// FragIndex is not below FragCount.
    BadFragIndex,
    /// A number is larger than the field that shall hold it.
    NumberTooLarge {
        /// The TLV-TYPE of the element.
        typ: u32,
    },
}

impl DecodeError {
    /// [`DecodeError::Truncated`] from sizes of any width.
    pub(crate) fn truncated(needed_bytes: usize, have_bytes: usize) -> Self {
        Self::Truncated {
            needed_bytes: u32::try_from(needed_bytes).unwrap_or(u32::MAX),
            have_bytes: u32::try_from(have_bytes).unwrap_or(u32::MAX),
        }
    }

    /// [`DecodeError::TrailingBytes`] from a size of any width.
    pub(crate) fn trailing(extra_bytes: usize) -> Self {
        Self::TrailingBytes {
            extra_bytes: u32::try_from(extra_bytes).unwrap_or(u32::MAX),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated {
                needed_bytes,
                have_bytes,
            } => write!(
                f,
                "element needs {needed_bytes} bytes where {have_bytes} are left"
            ),
            Self::NonMinimalNumber => f.write_str("type or length is not in its shortest form"),
            Self::InvalidType => f.write_str("TLV-TYPE is zero or too large"),
            Self::PacketTooLarge => f.write_str("packet is larger than 8800 bytes"),
            Self::TrailingBytes { extra_bytes } => {
                write!(f, "{extra_bytes} bytes follow the element")
            }
            Self::UnexpectedType { found } => write!(f, "unexpected element of type {found}"),
            Self::UnrecognisedCritical { typ } => {
                write!(f, "unrecognised element of critical type {typ}")
            }
            Self::OutOfOrder { typ } => {
                write!(f, "element of type {typ} is repeated or out of order")
            }
            Self::Missing { typ } => write!(f, "element of type {typ} is missing"),
            Self::BadLength { typ } => write!(f, "element of type {typ} has a wrong length"),
            Self::BadValue { typ } => write!(f, "element of type {typ} has a bad value"),
            Self::BadComponentType => f.write_str("name component type is outside 1-65535"),
            Self::BadDigestLength => f.write_str("digest component is not 32 bytes long"),
            Self::EmptyInterestName => f.write_str("name of the Interest is empty"),
            Self::RepeatedParametersDigest => {
                f.write_str("name has more than one parameters digest component")
            }
            Self::MissingParametersDigest => {
                f.write_str("name lacks the digest of the ApplicationParameters")
            }
            Self::BadFragIndex => f.write_str("FragIndex is not below FragCount"),
            Self::NumberTooLarge { typ } => {
                write!(f, "number in the element of type {typ} is too large")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
