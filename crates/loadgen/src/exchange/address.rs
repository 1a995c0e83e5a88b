//! Where a forwarder listens: `unix:///path`, `udp://127.0.0.1:6363` or
//! `tcp://[::1]:6363`.
//!
//! Refuses every address but loopback ones: load does not belong on a network.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Kinds of connection to a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Unix stream socket.
    Unix,
    /// UDP unicast.
    Udp,
    /// TCP.
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

/// How the generator's UDP sockets hand datagrams to the kernel and take them.
///
/// A datagram carries one packet in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UdpPeers {
    /// Many at once: segmentation offload (GSO) and coalescing (GRO), as the router does.
    #[default]
    Offload,
    /// Each as a message of its own, as foreign programs do.
    Single,
}

/// A forwarder's listening socket on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Path of a Unix stream socket.
    Unix(PathBuf),
    /// Loopback UDP address.
    Udp(SocketAddr),
    /// Loopback TCP address.
    Tcp(SocketAddr),
}

impl Address {
    /// Which kind of connection it takes.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self {
            Self::Unix(_) => Transport::Unix,
            Self::Udp(_) => Transport::Udp,
            Self::Tcp(_) => Transport::Tcp,
        }
    }
}

/// Why a text is not an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// None of the schemes, or none at all.
    UnknownScheme,
    /// `unix:` without an absolute path.
    RelativePath,
    /// Not a literal IP address with a port.
    BadSocketAddress,
    /// An address of another machine, or of all interfaces.
    NotLoopback(SocketAddr),
}

impl std::error::Error for AddressError {}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScheme => {
                f.write_str("write unix:///path, udp://127.0.0.1:6363 or tcp://127.0.0.1:6363")
            }
            Self::RelativePath => f.write_str("write the absolute path: unix:///run/nfd/nfd.sock"),
            Self::BadSocketAddress => {
                f.write_str("write an IP address and a port, as in tcp://127.0.0.1:6363")
            }
            Self::NotLoopback(addr) => {
                write!(
                    f,
                    "{addr} is not a loopback address; the load generator uses this machine only"
                )
            }
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::UnknownScheme)?;
        let loopback = || -> Result<SocketAddr, AddressError> {
            let addr: SocketAddr = rest.parse().map_err(|_| AddressError::BadSocketAddress)?;
            if addr.ip().is_loopback() {
                Ok(addr)
            } else {
                Err(AddressError::NotLoopback(addr))
            }
        };
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            "unix" => Err(AddressError::RelativePath),
            "udp" | "udp4" | "udp6" => loopback().map(Self::Udp),
            "tcp" | "tcp4" | "tcp6" => loopback().map(Self::Tcp),
            _ => Err(AddressError::UnknownScheme),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Udp(addr) => write!(f, "udp://{addr}"),
            Self::Tcp(addr) => write!(f, "tcp://{addr}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_are_read_and_written() {
        for text in [
            "unix:///run/nfd/nfd.sock",
            "udp://127.0.0.1:6363",
            "tcp://[::1]:6363",
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(
            "udp4://127.0.0.9:1"
                .parse::<Address>()
                .map(|a| a.transport()),
            Ok(Transport::Udp)
        );
    }

    #[test]
    fn other_machines_are_refused() {
        for text in ["udp://10.0.0.1:6363", "tcp://0.0.0.0:6363", "tcp://[::]:1"] {
            assert!(
                matches!(text.parse::<Address>(), Err(AddressError::NotLoopback(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_names_no_socket_is_refused() {
        use AddressError::{BadSocketAddress, RelativePath, UnknownScheme};
        for (text, error) in [
            ("/run/nfd.sock", UnknownScheme),
            ("ws://127.0.0.1:9696", UnknownScheme),
            ("unix://nfd.sock", RelativePath),
            ("udp://localhost:6363", BadSocketAddress),
            ("udp://127.0.0.1", BadSocketAddress),
        ] {
            assert_eq!(text.parse::<Address>(), Err(error), "{text}");
        }
    }
}
