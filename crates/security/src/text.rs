//! Base64 as files of keys and certificates hold it, and the PEM envelope.
//!
//! Owns the textual armour and nothing of what is inside. Writes lines of 64
//! characters; reads any white space anywhere.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

/// Largest text that is decoded, in bytes; certificates and keys are far below.
const MAX_TEXT_BYTES: usize = 64 * 1024;
const LINE_BYTES: usize = 64;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `bytes` as lines of base64, each ended.
pub(crate) fn to_base64_lines(bytes: &[u8]) -> Zeroizing<String> {
    let flat = Zeroizing::new(ENGINE.encode(bytes));
    let mut out = Zeroizing::new(String::with_capacity(flat.len() + flat.len() / 64 + 2));
    for line in flat.as_bytes().chunks(LINE_BYTES) {
        line.iter().for_each(|&b| out.push(char::from(b)));
        out.push('\n');
    }
    out
}

/// The bytes behind base64 text, or why it is none.
pub(crate) fn from_base64_lines(text: &[u8]) -> Result<Zeroizing<Vec<u8>>, String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "{} bytes of text, more than {MAX_TEXT_BYTES}",
            text.len()
        ));
    }
    let flat: Zeroizing<Vec<u8>> = Zeroizing::new(
        text.iter()
            .copied()
            .filter(|b| !b.is_ascii_whitespace())
            .collect(),
    );
    // Where the decoder stumbled says little: blanks are gone from what it saw.
    match ENGINE.decode(&*flat) {
        Ok(bytes) => Ok(Zeroizing::new(bytes)),
        Err(_) => Err("not base64".into()),
    }
}

/// `bytes` between the lines that PEM (RFC 7468) puts around them.
pub(crate) fn to_pem(label: &str, bytes: &[u8]) -> Zeroizing<String> {
    let body = to_base64_lines(bytes);
    Zeroizing::new(format!(
        "-----BEGIN {label}-----\n{}-----END {label}-----\n",
        &*body
    ))
}

/// The bytes of the first PEM block of this label; `None` if there is none.
pub(crate) fn from_pem(label: &str, text: &str) -> Option<Result<Zeroizing<Vec<u8>>, String>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    Some(from_base64_lines(body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = to_base64_lines(&bytes);
        assert!(text.lines().all(|line| line.len() <= LINE_BYTES));
        assert_eq!(
            *from_base64_lines(text.as_bytes()).expect("own text"),
            bytes
        );
        let spaced = text.replace('\n', " \r\n\t");
        assert_eq!(
            *from_base64_lines(spaced.as_bytes()).expect("spaced"),
            bytes
        );
    }

    #[test]
    fn missing_padding_is_forgiven_and_rubbish_is_not() {
        assert_eq!(*from_base64_lines(b"AQ").expect("unpadded"), [1]);
        assert!(from_base64_lines(b"A?").is_err());
        assert!(from_base64_lines(&vec![b'A'; MAX_TEXT_BYTES + 1]).is_err());
    }

    #[test]
    fn pem_blocks_are_found_by_label_among_other_text() {
        let text = format!("Key-Name: /a\n{}", *to_pem("PRIVATE KEY", b"abc"));
        let found = from_pem("PRIVATE KEY", &text).expect("there");
        assert_eq!(*found.expect("base64"), b"abc");
        assert!(from_pem("OTHER KEY", &text).is_none());
    }
}
