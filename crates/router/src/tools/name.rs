//! Names on the command line.
//!
//! Owns which texts a tool accepts as a name. The library reads an empty text as the root
//! name; a tool refuses it, because a shell passes one for an unset variable.

use tachonym_packet::{Name, NameUriError};

/// Why an argument is not a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum NameArgumentError {
    /// It does not begin with a slash.
    #[error("a name begins with a slash; write it like /example/prefix")]
    NoSlash,
    /// Its first component is empty, or it has an authority; the library would skip either.
    #[error("its first component is empty; write it like /example/prefix")]
    EmptyComponent,
    /// A component is malformed.
    #[error(transparent)]
    Uri(#[from] NameUriError),
}

/// The name that `text` is: `/example/prefix` or `ndn:/example/prefix`.
pub(super) fn parse(text: &str) -> Result<Name, NameArgumentError> {
    let path = text.strip_prefix("ndn:").unwrap_or(text);
    if !path.starts_with('/') {
        return Err(NameArgumentError::NoSlash);
    }
    if path.starts_with("//") {
        return Err(NameArgumentError::EmptyComponent);
    }
    Ok(text.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_a_slash() {
        for text in ["", "a", "ndn", "ndn:", "ndn:a", "x y", " /a", "a/b"] {
            assert_eq!(parse(text), Err(NameArgumentError::NoSlash), "{text:?}");
        }
        for text in ["//", "//a/b", "ndn://", "ndn://authority/a"] {
            let error = Err(NameArgumentError::EmptyComponent);
            assert_eq!(parse(text), error, "{text:?}");
        }
        assert!(parse("/a//b").is_err());
        for text in ["/", "ndn:/", "ndn:/a/b", "/a/b/"] {
            let lenient: Name = text.parse().expect("a name");
            assert_eq!(parse(text), Ok(lenient), "{text:?}");
        }
    }
}
