//! Bytes and names as they are written in tables.

use tachonym_packet::Name;

/// Hexadecimal digits as bytes; blanks are for the reader.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("hexadecimal"))
        .collect();
    assert!(digits.len().is_multiple_of(2), "{text}");
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

/// A name that is one.
pub(crate) fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}
