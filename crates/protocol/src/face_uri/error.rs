//! Why a text is no FaceUri, in words that say what to write instead.
//!
//! Owns the texts. Each carries an example that parses.

use super::MAX_FACE_URI_BYTES;

/// Schemes of the addresses that a face can be created to, for error texts.
const SCHEMES: &str = "udp4, udp6, udp, tcp4, tcp6, tcp, ws or unix";

/// Why a text is no FaceUri. The texts state what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaceUriError {
    /// There is no `://`.
    #[error(
        "a FaceUri has the form scheme://address, such as udp4://192.0.2.1:6363; \
         the scheme is {SCHEMES}"
    )]
    Malformed,
    /// The text is longer than [`MAX_FACE_URI_BYTES`].
    #[error("a FaceUri has at most {MAX_FACE_URI_BYTES} bytes")]
    TooLong,
    /// The scheme is unknown.
    #[error("unknown scheme; use {SCHEMES}, as in udp4://192.0.2.1:6363")]
    UnknownScheme,
    /// WebSocket over TLS; put a TLS proxy in front of `ws` instead.
    #[error(
        "WebSocket over TLS (wss) is not supported; use ws://192.0.2.1:9696, with a TLS proxy \
         in front of it"
    )]
    TlsUnsupported,
    /// The host is missing or contains what a host cannot.
    #[error(
        "bad host; write a host name, an IPv4 address or an IPv6 address in brackets, as in \
         udp4://192.0.2.1:6363 or udp6://[2001:db8::1]:6363"
    )]
    BadHost,
    /// The interface name is missing or contains what an interface name cannot.
    #[error("bad interface name; write at most 15 characters, as in dev://eth0")]
    BadInterface,
    /// The Ethernet address is not six bytes in hexadecimal.
    #[error("bad Ethernet address; write six bytes in brackets, as in ether://[08:00:27:01:01:01]")]
    BadEthernetAddress,
    /// The descriptor is not a decimal number.
    #[error("bad file descriptor; write a decimal number, as in fd://15")]
    BadDescriptor,
    /// The port is not a number in 1–65535; nor 0, where that means any.
    #[error("bad port; write a number from 1 to 65535, as in udp4://192.0.2.1:6363")]
    BadPort,
    /// A path where none is allowed, or a missing or relative one.
    #[error(
        "bad path; unix takes an absolute path, as in unix:///run/nfd/nfd.sock, and other \
         schemes take none"
    )]
    BadPath,
    /// The scheme asks for one IP version and the address has the other.
    #[error(
        "the scheme and the address are of different IP versions; write udp4://192.0.2.1:6363 \
         for IPv4, udp6://[2001:db8::1]:6363 for IPv6"
    )]
    FamilyMismatch,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaceUri;

    #[test]
    fn the_examples_in_error_texts_are_face_uris() {
        use FaceUriError::*;
        for error in [
            Malformed,
            UnknownScheme,
            TlsUnsupported,
            BadHost,
            BadInterface,
            BadEthernetAddress,
            BadDescriptor,
            BadPort,
            BadPath,
            FamilyMismatch,
        ] {
            let text = error.to_string();
            let words = text.split([' ', ',', ';']);
            let examples: Vec<_> = words.filter(|word| word.contains("://")).collect();
            assert!(!examples.is_empty(), "{text}");
            for example in examples {
                let is_form = example == "scheme://address";
                assert!(
                    is_form || example.parse::<FaceUri>().is_ok(),
                    "{example} in {text:?}"
                );
            }
        }
        for scheme in SCHEMES
            .split([',', ' '])
            .filter(|word| !matches!(*word, "" | "or"))
        {
            let address = if scheme == "unix" {
                "/run/a.sock"
            } else {
                "localhost"
            };
            let text = format!("{scheme}://{address}");
            assert!(text.parse::<FaceUri>().is_ok(), "{text}");
        }
    }
}
