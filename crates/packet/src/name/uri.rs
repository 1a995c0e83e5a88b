//! Names as text.
//!
//! Owns both directions of the `ndn:` URI (packet format, section "NDN URI
//! Scheme") with the alternate forms of the naming conventions: `seg=`, `off=`,
//! `v=`, `t=`, `seq=`. What [`Display`](fmt::Display) prints parses back to
//! the same bytes. Parsing is lenient where it is harmless: the leading and one
//! trailing slash may be missing or present, and characters that need no
//! escape to be understood may come unescaped.

use std::fmt::{self, Write};
use std::str::FromStr;

use super::component::{Component, ComponentView};
use super::{Name, NameView};
use crate::tlv;
use crate::types::component as kind;

/// Why a text is not the URI of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameUriError {
    /// A percent sign without two hexadecimal digits.
    BadEscape,
    /// A component of fewer than three periods and nothing else; the empty
    /// component is written `...`.
    TooFewPeriods,
    /// The type before `=` is not a number of 1–65535 without leading zeros.
    BadType,
    /// The word before `=` names no component type.
    UnknownPrefix,
    /// A digest is not 64 hexadecimal digits, or not 32 bytes.
    BadDigest,
    /// The value after `seg=` and the like is not a decimal number of 64 bits
    /// without leading zeros.
    BadNumber,
}

impl fmt::Display for NameUriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadEscape => "percent sign without two hexadecimal digits",
            Self::TooFewPeriods => "empty component, '.' or '..' (the empty one is written '...')",
            Self::BadType => "component type is not a number of 1-65535",
            Self::UnknownPrefix => "unknown word before '='",
            Self::BadDigest => "digest is not 64 hexadecimal digits",
            Self::BadNumber => "value is not a decimal number",
        })
    }
}

impl std::error::Error for NameUriError {}

/// Component types whose value is a number, and how they are written.
const NUMBER_PREFIXES: [(u16, &str); 5] = [
    (kind::SEGMENT, "seg"),
    (kind::BYTE_OFFSET, "off"),
    (kind::VERSION, "v"),
    (kind::TIMESTAMP, "t"),
    (kind::SEQUENCE_NUM, "seq"),
];

/// Component types whose value is a digest, and how they are written.
const DIGEST_PREFIXES: [(u16, &str); 2] = [
    (kind::IMPLICIT_SHA256_DIGEST, "sha256digest"),
    (kind::PARAMETERS_SHA256_DIGEST, "params-sha256"),
];

impl FromStr for Name {
    type Err = NameUriError;

    /// Parses a URI: `ndn:/a/b`, `/a/b`, `ndn://ignored/a/b`, `a/b`.
    fn from_str(uri: &str) -> Result<Self, NameUriError> {
        let path = match uri.strip_prefix("ndn:") {
            Some(rest) => rest,
            None => uri,
        };
        let path = match path.strip_prefix("//") {
            // The authority is ignored.
            Some(rest) => rest.find('/').map_or("", |slash| &rest[slash..]),
            None => path,
        };
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut name = Self::new();
        if !path.is_empty() {
            for component in path.split('/') {
                name.push(&component.parse::<Component>()?);
            }
        }
        Ok(name)
    }
}

impl FromStr for Component {
    type Err = NameUriError;

    /// Parses one component of a URI, such as `a%20b`, `54=%00` or `seg=3`.
    fn from_str(text: &str) -> Result<Self, NameUriError> {
        let Some((prefix, value)) = text.split_once('=') else {
            return Ok(Self::generic(unescape(text)?));
        };
        if prefix.starts_with(|c: char| c.is_ascii_digit()) {
            let typ = parse_decimal(prefix)
                .and_then(|number| u16::try_from(number).ok())
                .filter(|&typ| typ != 0)
                .ok_or(NameUriError::BadType)?;
            return Self::new(typ, unescape(value)?).map_err(|_| NameUriError::BadDigest);
        }
        if let Some(&(typ, _)) = DIGEST_PREFIXES.iter().find(|(_, p)| *p == prefix) {
            let digest = parse_hex(value).ok_or(NameUriError::BadDigest)?;
            return Self::new(typ, digest).map_err(|_| NameUriError::BadDigest);
        }
        if let Some(&(typ, _)) = NUMBER_PREFIXES.iter().find(|(_, p)| *p == prefix) {
            let number = parse_decimal(value).ok_or(NameUriError::BadNumber)?;
            return Ok(Self::number(typ, number));
        }
        Err(NameUriError::UnknownPrefix)
    }
}

/// A number of 64 bits in decimal digits only, without leading zeros.
fn parse_decimal(text: &str) -> Option<u64> {
    let digits_only = text.bytes().all(|b| b.is_ascii_digit());
    let is_shortest = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| digits_only && is_shortest)
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(hex_pair).collect()
}

fn hex_pair(pair: &[u8]) -> Option<u8> {
    let &[high, low] = pair else { return None };
    let high = char::from(high).to_digit(16)?;
    let low = char::from(low).to_digit(16)?;
    u8::try_from(high << 4 | low).ok()
}

/// Undoes percent encoding and the three additional periods.
fn unescape(text: &str) -> Result<Vec<u8>, NameUriError> {
    let mut value = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let pair = tail.get(..2).ok_or(NameUriError::BadEscape)?;
            value.push(hex_pair(pair).ok_or(NameUriError::BadEscape)?);
            rest = &tail[2..];
        } else {
            value.push(byte);
            rest = tail;
        }
    }
    if value.iter().all(|&b| b == b'.') {
        let n_periods = value.len();
        value.truncate(
            n_periods
                .checked_sub(3)
                .ok_or(NameUriError::TooFewPeriods)?,
        );
    }
    Ok(value)
}

fn write_escaped(f: &mut impl Write, value: &[u8]) -> fmt::Result {
    if value.iter().all(|&b| b == b'.') {
        f.write_str("...")?;
    }
    for &byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            f.write_char(char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

impl fmt::Display for ComponentView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typ = self.typ();
        if let Some((_, prefix)) = DIGEST_PREFIXES.iter().find(|(t, _)| *t == typ) {
            write!(f, "{prefix}=")?;
            return self.value().iter().try_for_each(|b| write!(f, "{b:02x}"));
        }
        if let Some((_, prefix)) = NUMBER_PREFIXES.iter().find(|(t, _)| *t == typ) {
            // A number longer than needed has no short form that brings the
            // same bytes back.
            let shortest = |&n: &u64| tlv::nni_len(n) == self.value().len();
            if let Some(number) = self.as_number().filter(shortest) {
                return write!(f, "{prefix}={number}");
            }
        }
        if typ != kind::GENERIC {
            write!(f, "{typ}=")?;
        }
        write_escaped(f, self.value())
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Display for NameView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_char('/');
        }
        self.components()
            .try_for_each(|component| write!(f, "/{component}"))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Debug for NameView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    #[test]
    fn printed_names_are_in_normal_form() {
        let digest = "893259d98aca58c451453f29ec7dc38688e690dd0b59ef4f3b9d33738bff0b8d";
        for (text, printed) in [
            ("", "/"),
            ("/", "/"),
            ("ndn:", "/"),
            ("ndn:/", "/"),
            ("ndn:/a/b", "/a/b"),
            ("ndn://authority/a/b", "/a/b"),
            ("//authority", "/"),
            ("a/b/", "/a/b"),
            ("/Hello%20world", "/Hello%20world"),
            ("/8=Hello world", "/Hello%20world"),
            ("/42=Hello%20world", "/42=Hello%20world"),
            ("/...", "/..."),
            ("/....", "/...."),
            ("/%2e%2E%2e", "/..."),
            ("/8=...", "/..."),
            ("/42=...", "/42=..."),
            ("/..a", "/..a"),
            ("/32=metadata", "/32=metadata"),
            ("/seg=0", "/seg=0"),
            ("/50=%01%00", "/seg=256"),
            ("/off=1/v=2/t=3/seq=4", "/off=1/v=2/t=3/seq=4"),
            ("/52=%01/54=%02/56=%03/58=%04", "/off=1/v=2/t=3/seq=4"),
            ("/seg=18446744073709551615", "/seg=18446744073709551615"),
            ("/-._~", "/-._~"),
            ("/%C3%A9", "/%C3%A9"),
            ("/é", "/%C3%A9"),
        ] {
            assert_eq!(name(text).to_string(), printed, "{text}");
            assert_eq!(name(printed), name(text));
        }
        let long = format!("/sha256digest={digest}/params-sha256={digest}");
        assert_eq!(name(&long).to_string(), long);
        assert_eq!(
            name(
                &long
                    .to_uppercase()
                    .replace("SHA256DIGEST", "sha256digest")
                    .replace("PARAMS-SHA256", "params-sha256")
            ),
            name(&long)
        );
    }

    #[test]
    fn numbers_longer_than_needed_keep_their_bytes() {
        for value in [&[0, 1][..], &[], &[1, 2, 3], &[0; 9]] {
            let component = Component::new(kind::SEGMENT, value).unwrap();
            let text = component.to_string();
            assert!(text.starts_with("50="), "{text}");
            assert_eq!(text.parse(), Ok(component));
        }
    }

    #[test]
    fn malformed_uris_are_rejected() {
        for (text, error) in [
            ("/a//b", NameUriError::TooFewPeriods),
            ("/.", NameUriError::TooFewPeriods),
            ("/a/..", NameUriError::TooFewPeriods),
            ("/8=", NameUriError::TooFewPeriods),
            ("/%", NameUriError::BadEscape),
            ("/%2", NameUriError::BadEscape),
            ("/%2g", NameUriError::BadEscape),
            ("/%+1", NameUriError::BadEscape),
            ("/0=a", NameUriError::BadType),
            ("/08=a", NameUriError::BadType),
            ("/65536=a", NameUriError::BadType),
            ("/8x=a", NameUriError::BadType),
            ("/=a", NameUriError::UnknownPrefix),
            ("/foo=a", NameUriError::UnknownPrefix),
            ("/SEG=1", NameUriError::UnknownPrefix),
            ("/seg=", NameUriError::BadNumber),
            ("/seg=+1", NameUriError::BadNumber),
            ("/seg=00", NameUriError::BadNumber),
            ("/v=01", NameUriError::BadNumber),
            ("/seg=18446744073709551616", NameUriError::BadNumber),
            ("/sha256digest=00", NameUriError::BadDigest),
            ("/sha256digest=0", NameUriError::BadDigest),
            ("/params-sha256=zz", NameUriError::BadDigest),
            ("/1=abc", NameUriError::BadDigest),
        ] {
            assert_eq!(text.parse::<Name>().err(), Some(error), "{text}");
        }
    }
}
