//! FaceUri: how management names the two ends of a face.
//!
//! Owns parsing, the canonical form and the text of it. An address given as a
//! number is canonical at once (a missing port becomes the default one, or any of
//! the address that is dialled from: [`FaceUri::parse_local`]); a host
//! name, or an IPv6 zone given by its name, stays a [`FaceUri::Unresolved`]
//! until a caller with a resolver looks it up and calls
//! [`FaceUri::resolve`]. Refuses TLS (`wss`), unknown schemes, user
//! information, queries and control characters. Does no I/O.
//! Source: NFD Management protocol, "FaceUri".

mod error;

use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

pub use error::FaceUriError;

/// Port of UDP and TCP where the URI names none.
pub const DEFAULT_PORT: u16 = 6363;
/// Port of UDP multicast where the URI names none.
pub const DEFAULT_MULTICAST_PORT: u16 = 56363;
/// Port of WebSocket where the URI names none.
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;
/// Longest URI that is parsed, in bytes.
pub const MAX_FACE_URI_BYTES: usize = 1024;

/// One end of a face, or the address of a listener.
///
/// Equality is equality of the canonical text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaceUri {
    /// `internal://`: the router's own management.
    Internal,
    /// `null://`: swallows everything.
    Null,
    /// `contentstore://`: packets that come out of the content store.
    ContentStore,
    /// `unix:///path`: a Unix stream socket, by its absolute path.
    Unix(String),
    /// `fd://N`: an accepted Unix connection, by its descriptor.
    Fd(u32),
    /// `udp4://` or `udp6://`.
    Udp(SocketAddr),
    /// `tcp4://` or `tcp6://`.
    Tcp(SocketAddr),
    /// `ws://`: a WebSocket server.
    WebSocket(SocketAddr),
    /// `wsclient://`: a client that connected to a WebSocket server of ours.
    WebSocketClient(SocketAddr),
    /// `udp4+dev://ifname:port` or `udp6+dev://…`: the local end of a multicast
    /// face that is bound to an interface.
    UdpDev {
        /// Address family of the group.
        family: IpFamily,
        /// Name of the network interface.
        interface: String,
        /// UDP port.
        port: u16,
    },
    /// `ether://[08:00:27:01:01:01]`.
    Ether([u8; 6]),
    /// `dev://ifname`: a network interface.
    Dev(String),
    /// An address that still has to be looked up. Not canonical.
    Unresolved(HostUri),
}

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A transport over IP that a FaceUri can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpTransport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// WebSocket, dialled or listened to.
    WebSocket,
    /// WebSocket, as the remote end of an accepted connection.
    WebSocketClient,
}

/// Host and port of a URI before its host has been looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostUri {
    /// The transport.
    pub transport: IpTransport,
    /// The family that the scheme demands; `None`: any.
    pub family: Option<IpFamily>,
    /// A host name, or an IPv6 address with the name of a zone
    /// (`fe80::1%eth0`).
    pub host: String,
    /// The port; `None`: the default one of the address that is found.
    pub port: Option<u16>,
}

impl FaceUri {
    /// Parses the address that a face is to be dialled from. An absent port of
    /// UDP, TCP or WebSocket, or 0, means any that the system chooses, and is 0
    /// in what this returns.
    ///
    /// # Errors
    /// As in parsing any other FaceUri.
    pub fn parse_local(text: &str) -> Result<Self, FaceUriError> {
        parse(text, Ports::Local)
    }

    /// The scheme, as in `udp4`. A FaceQueryFilter's UriScheme compares with it.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Null => "null",
            Self::ContentStore => "contentstore",
            Self::Unix(_) => "unix",
            Self::Fd(_) => "fd",
            Self::Udp(addr) => IpTransport::Udp.scheme(Some(IpFamily::of(addr))),
            Self::Tcp(addr) => IpTransport::Tcp.scheme(Some(IpFamily::of(addr))),
            Self::WebSocket(_) => "ws",
            Self::WebSocketClient(_) => "wsclient",
            Self::UdpDev {
                family: IpFamily::V4,
                ..
            } => "udp4+dev",
            Self::UdpDev {
                family: IpFamily::V6,
                ..
            } => "udp6+dev",
            Self::Ether(_) => "ether",
            Self::Dev(_) => "dev",
            Self::Unresolved(host) => host.transport.scheme(host.family),
        }
    }

    /// Whether this says where to go without anything to look up.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        !matches!(self, Self::Unresolved(_))
    }

    /// The socket address, of the schemes that are one.
    #[must_use]
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match *self {
            Self::Udp(addr)
            | Self::Tcp(addr)
            | Self::WebSocket(addr)
            | Self::WebSocketClient(addr) => Some(addr),
            _ => None,
        }
    }

    /// Whether this is the UDP address of a multicast group.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        matches!(self, Self::Udp(addr) if addr.ip().is_multicast())
    }

    /// The canonical form of `host`, now that it was found to have the address
    /// `ip` (in the zone `scope_id`, 0 for none).
    ///
    /// # Errors
    /// [`FaceUriError::FamilyMismatch`] if the scheme demands another family:
    /// try the next address then.
    pub fn resolve(host: &HostUri, ip: IpAddr, scope_id: u32) -> Result<Self, FaceUriError> {
        let found = match ip {
            IpAddr::V4(_) => IpFamily::V4,
            IpAddr::V6(_) => IpFamily::V6,
        };
        if host.family.is_some_and(|family| family != found) {
            return Err(FaceUriError::FamilyMismatch);
        }
        let port = host
            .port
            .unwrap_or_else(|| host.transport.default_port(&ip));
        let addr = match ip {
            IpAddr::V4(_) => SocketAddr::new(ip, port),
            IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, scope_id).into(),
        };
        Ok(host.transport.uri(addr))
    }
}

impl IpFamily {
    /// The family of `addr`.
    #[must_use]
    pub fn of(addr: &SocketAddr) -> Self {
        if addr.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl IpTransport {
    /// The FaceUri of `addr` over this transport.
    #[must_use]
    pub fn uri(self, addr: SocketAddr) -> FaceUri {
        // The flow label names no place; left in, it would break equality.
        let addr = match addr {
            SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
            v4 => v4,
        };
        match self {
            Self::Udp => FaceUri::Udp(addr),
            Self::Tcp => FaceUri::Tcp(addr),
            Self::WebSocket => FaceUri::WebSocket(addr),
            Self::WebSocketClient => FaceUri::WebSocketClient(addr),
        }
    }

    fn scheme(self, family: Option<IpFamily>) -> &'static str {
        match (self, family) {
            (Self::Udp, None) => "udp",
            (Self::Udp, Some(IpFamily::V4)) => "udp4",
            (Self::Udp, Some(IpFamily::V6)) => "udp6",
            (Self::Tcp, None) => "tcp",
            (Self::Tcp, Some(IpFamily::V4)) => "tcp4",
            (Self::Tcp, Some(IpFamily::V6)) => "tcp6",
            (Self::WebSocket, _) => "ws",
            (Self::WebSocketClient, _) => "wsclient",
        }
    }

    fn default_port(self, ip: &IpAddr) -> u16 {
        match self {
            Self::Udp if ip.is_multicast() => DEFAULT_MULTICAST_PORT,
            Self::Udp | Self::Tcp => DEFAULT_PORT,
            Self::WebSocket | Self::WebSocketClient => DEFAULT_WEBSOCKET_PORT,
        }
    }
}

impl FromStr for FaceUri {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<Self, FaceUriError> {
        parse(text, Ports::Remote)
    }
}

/// What an absent port means, and 0.
#[derive(Clone, Copy)]
enum Ports {
    /// The default one; 0 is none.
    Remote,
    /// Both: any.
    Local,
}

fn parse(text: &str, ports: Ports) -> Result<FaceUri, FaceUriError> {
    if text.len() > MAX_FACE_URI_BYTES {
        return Err(FaceUriError::TooLong);
    }
    let (scheme, rest) = text.split_once("://").ok_or(FaceUriError::Malformed)?;
    if rest.chars().any(char::is_control) {
        return Err(FaceUriError::BadHost);
    }
    let only = |uri: FaceUri| match rest {
        "" | "/" => Ok(uri),
        _ => Err(FaceUriError::BadPath),
    };
    let ip = |transport, family| parse_ip(transport, family, ports, rest);
    match scheme {
        "internal" => only(FaceUri::Internal),
        "null" => only(FaceUri::Null),
        "contentstore" => only(FaceUri::ContentStore),
        "unix" if rest.len() > 1 && rest.starts_with('/') => Ok(FaceUri::Unix(rest.to_owned())),
        "unix" => Err(FaceUriError::BadPath),
        "fd" => parse_decimal(rest)
            .map(FaceUri::Fd)
            .ok_or(FaceUriError::BadDescriptor),
        "dev" => parse_interface(rest).map(FaceUri::Dev),
        "ether" => parse_ether(rest).map(FaceUri::Ether),
        "udp4+dev" => parse_udp_dev(IpFamily::V4, rest),
        "udp6+dev" => parse_udp_dev(IpFamily::V6, rest),
        "udp" => ip(IpTransport::Udp, None),
        "udp4" => ip(IpTransport::Udp, Some(IpFamily::V4)),
        "udp6" => ip(IpTransport::Udp, Some(IpFamily::V6)),
        "tcp" => ip(IpTransport::Tcp, None),
        "tcp4" => ip(IpTransport::Tcp, Some(IpFamily::V4)),
        "tcp6" => ip(IpTransport::Tcp, Some(IpFamily::V6)),
        "ws" => ip(IpTransport::WebSocket, None),
        "wsclient" => ip(IpTransport::WebSocketClient, None),
        "wss" => Err(FaceUriError::TlsUnsupported),
        _ => Err(FaceUriError::UnknownScheme),
    }
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        match self {
            Self::Internal | Self::Null | Self::ContentStore => Ok(()),
            Self::Unix(path) => f.write_str(path),
            Self::Fd(fd) => write!(f, "{fd}"),
            Self::Udp(addr)
            | Self::Tcp(addr)
            | Self::WebSocket(addr)
            | Self::WebSocketClient(addr) => write!(f, "{addr}"),
            Self::UdpDev {
                interface, port, ..
            } => write!(f, "{interface}:{port}"),
            Self::Ether(mac) => {
                let [a, b, c, d, e, g] = mac;
                write!(f, "[{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}]")
            }
            Self::Dev(interface) => f.write_str(interface),
            Self::Unresolved(HostUri { host, port, .. }) => {
                if host.contains(':') {
                    write!(f, "[{host}]")?;
                } else {
                    f.write_str(host)?;
                }
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

/// A decimal number without sign or padding.
fn parse_decimal<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    (plain && !padded).then(|| text.parse().ok()).flatten()
}

fn parse_port(text: &str) -> Result<u16, FaceUriError> {
    match parse_decimal(text) {
        Some(0) | None => Err(FaceUriError::BadPort),
        Some(port) => Ok(port),
    }
}

fn parse_interface(text: &str) -> Result<String, FaceUriError> {
    let name = text.strip_suffix('/').unwrap_or(text);
    // Linux interface names have at most 15 bytes and no slash or blank.
    let fits = (1..=15).contains(&name.len());
    if fits && !name.contains(['/', ':', ' ', '%']) {
        Ok(name.to_owned())
    } else {
        Err(FaceUriError::BadInterface)
    }
}

fn parse_udp_dev(family: IpFamily, rest: &str) -> Result<FaceUri, FaceUriError> {
    let (interface, port) = rest.rsplit_once(':').ok_or(FaceUriError::BadPort)?;
    Ok(FaceUri::UdpDev {
        family,
        interface: parse_interface(interface)?,
        port: parse_port(port)?,
    })
}

fn parse_ether(rest: &str) -> Result<[u8; 6], FaceUriError> {
    let inner = rest
        .strip_suffix('/')
        .unwrap_or(rest)
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .ok_or(FaceUriError::BadEthernetAddress)?;
    let mut mac = [0; 6];
    let mut parts = inner.split(':');
    for byte in &mut mac {
        let part = parts.next().ok_or(FaceUriError::BadEthernetAddress)?;
        let hex = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
        *byte = match u8::from_str_radix(part, 16) {
            Ok(value) if hex => value,
            _ => return Err(FaceUriError::BadEthernetAddress),
        };
    }
    match parts.next() {
        None => Ok(mac),
        Some(_) => Err(FaceUriError::BadEthernetAddress),
    }
}

/// Parses `host`, `host:port`, `[v6]`, `[v6]:port`, with an optional slash
/// behind.
fn parse_ip(
    transport: IpTransport,
    family: Option<IpFamily>,
    ports: Ports,
    rest: &str,
) -> Result<FaceUri, FaceUriError> {
    let authority = match rest.find('/') {
        Some(at) if at + 1 == rest.len() => &rest[..at],
        Some(_) => return Err(FaceUriError::BadPath),
        None => rest,
    };
    let (host, port, bracketed) = if let Some(inner) = authority.strip_prefix('[') {
        let (host, after) = inner.split_once(']').ok_or(FaceUriError::BadHost)?;
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err(FaceUriError::BadPort),
        };
        (host, port, true)
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port), false),
            None => (authority, None, false),
        }
    };
    let port = match (ports, port) {
        (Ports::Local, None | Some("0")) => Some(0),
        (Ports::Local | Ports::Remote, port) => port.map(parse_port).transpose()?,
    };
    let mut pending = HostUri {
        transport,
        family,
        host: host.to_owned(),
        port,
    };
    if bracketed {
        let (ip, zone) = match pending.host.split_once('%') {
            Some((ip, zone)) => (ip, Some(zone)),
            None => (&*pending.host, None),
        };
        let ip: std::net::Ipv6Addr = ip.parse().map_err(|_| FaceUriError::BadHost)?;
        if family == Some(IpFamily::V4) {
            return Err(FaceUriError::FamilyMismatch);
        }
        return match zone {
            None => FaceUri::resolve(&pending, ip.into(), 0),
            Some(zone) => match parse_decimal(zone) {
                Some(scope_id) => FaceUri::resolve(&pending, ip.into(), scope_id),
                None => {
                    parse_interface(zone)?;
                    pending.host = format!("{ip}%{zone}");
                    Ok(FaceUri::Unresolved(pending))
                }
            },
        };
    }
    if let Ok(ip) = host.parse::<std::net::Ipv4Addr>() {
        return FaceUri::resolve(&pending, ip.into(), 0);
    }
    // Letters, digits, hyphens, underscores and dots; not an almost-address.
    let plausible = !host.is_empty()
        && host.len() <= 253
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && host.bytes().any(|b| b.is_ascii_alphabetic());
    if plausible {
        pending.host.make_ascii_lowercase();
        Ok(FaceUri::Unresolved(pending))
    } else {
        Err(FaceUriError::BadHost)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<FaceUri, FaceUriError> {
        text.parse()
    }

    #[test]
    fn canonical_uris_print_as_they_were_parsed() {
        for text in [
            "internal://",
            "null://",
            "contentstore://",
            "unix:///run/nfd/nfd.sock",
            "fd://17",
            "udp4://192.0.2.1:6363",
            "udp6://[2001:db8::1]:6363",
            "udp6://[fe80::1%3]:6363",
            "udp4://224.0.23.170:56363",
            "tcp4://127.0.0.1:6363",
            "tcp6://[::1]:7777",
            "ws://127.0.0.1:9696",
            "ws://[::]:9696",
            "wsclient://127.0.0.1:50000",
            "udp4+dev://eth0:56363",
            "udp6+dev://eth0:56363",
            "ether://[08:00:27:01:01:01]",
            "dev://eth0",
        ] {
            let uri = parse(text).unwrap();
            assert!(uri.is_canonical(), "{text}");
            assert_eq!(uri.to_string(), text);
            assert!(text.starts_with(uri.scheme()));
        }
    }

    #[test]
    fn numeric_addresses_become_canonical_with_the_default_port() {
        for (text, canonical) in [
            ("udp://192.0.2.1", "udp4://192.0.2.1:6363"),
            ("udp4://224.0.23.170", "udp4://224.0.23.170:56363"),
            ("udp://[ff02::1234]", "udp6://[ff02::1234]:56363"),
            ("udp://[2001:DB8:0:0::1]/", "udp6://[2001:db8::1]:6363"),
            ("tcp://[::1]:80", "tcp6://[::1]:80"),
            ("ws://127.0.0.1/", "ws://127.0.0.1:9696"),
            ("udp6://[fe80::1%25]", "udp6://[fe80::1%25]:6363"),
            ("ether://[8:0:27:1:1:1]", "ether://[08:00:27:01:01:01]"),
            ("dev://eth0/", "dev://eth0"),
        ] {
            let uri = parse(text).unwrap();
            assert!(uri.is_canonical());
            assert_eq!(uri.to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn a_local_address_without_a_port_has_any() {
        for (text, canonical) in [
            ("udp4://127.0.0.7", "udp4://127.0.0.7:0"),
            ("udp://127.0.0.7:0", "udp4://127.0.0.7:0"),
            ("tcp6://[::1]/", "tcp6://[::1]:0"),
            ("tcp4://127.0.0.7:70", "tcp4://127.0.0.7:70"),
            ("ws://[::1]:0", "ws://[::1]:0"),
            ("wsclient://127.0.0.7", "wsclient://127.0.0.7:0"),
            ("unix:///run/a.sock", "unix:///run/a.sock"),
        ] {
            let uri = FaceUri::parse_local(text).unwrap();
            assert_eq!(uri.to_string(), canonical, "{text}");
            assert_eq!(FaceUri::parse_local(canonical), Ok(uri));
        }
        let Ok(FaceUri::Unresolved(host)) = FaceUri::parse_local("tcp://here") else {
            panic!("a host name is not an address");
        };
        let found = FaceUri::resolve(&host, "192.0.2.7".parse().unwrap(), 0).unwrap();
        assert_eq!(found.to_string(), "tcp4://192.0.2.7:0");
        for text in [
            "tcp4://127.0.0.7:",
            "tcp4://127.0.0.7:00",
            "udp4://127.0.0.7:65536",
        ] {
            assert_eq!(FaceUri::parse_local(text), Err(FaceUriError::BadPort));
        }
    }

    #[test]
    fn host_names_and_named_zones_wait_for_a_resolver() {
        let uri = parse("udp://Router.example.net").unwrap();
        assert!(!uri.is_canonical());
        assert_eq!(uri.to_string(), "udp://router.example.net");
        let FaceUri::Unresolved(host) = uri else {
            panic!("a host name is not an address");
        };
        let found = FaceUri::resolve(&host, "192.0.2.7".parse().unwrap(), 0).unwrap();
        assert_eq!(found.to_string(), "udp4://192.0.2.7:6363");

        let uri = parse("tcp6://[fe80::1%eth0]:70").unwrap();
        assert_eq!(uri.to_string(), "tcp6://[fe80::1%eth0]:70");
        let FaceUri::Unresolved(host) = uri else {
            panic!("a zone's name is not its number");
        };
        let found = FaceUri::resolve(&host, "fe80::1".parse().unwrap(), 4).unwrap();
        assert_eq!(found.to_string(), "tcp6://[fe80::1%4]:70");
        assert_eq!(
            FaceUri::resolve(&host, "192.0.2.7".parse().unwrap(), 0),
            Err(FaceUriError::FamilyMismatch)
        );
    }

    #[test]
    fn bad_uris_are_refused_with_their_reason() {
        use FaceUriError::*;
        for (text, error) in [
            ("", Malformed),
            ("udp4:192.0.2.1", Malformed),
            ("http://192.0.2.1", UnknownScheme),
            ("wss://192.0.2.1", TlsUnsupported),
            ("udp4://", BadHost),
            ("udp4://:6363", BadHost),
            ("udp4://300.0.0.1", BadHost),
            ("udp4://user@host", BadHost),
            ("udp4://ho st", BadHost),
            ("udp4://host\n", BadHost),
            ("udp4://[192.0.2.1]", BadHost),
            ("udp6://[::1", BadHost),
            ("udp6://[::1]6363", BadPort),
            ("udp4://192.0.2.1:", BadPort),
            ("udp4://192.0.2.1:0", BadPort),
            ("udp4://192.0.2.1:06363", BadPort),
            ("udp4://192.0.2.1:65536", BadPort),
            ("udp4://192.0.2.1:+80", BadPort),
            ("udp4://192.0.2.1:6363/a", BadPath),
            ("udp4://[::1]:6363", FamilyMismatch),
            ("udp6://192.0.2.1:6363", FamilyMismatch),
            ("unix://relative", BadPath),
            ("unix:///", BadPath),
            ("fd://-1", BadDescriptor),
            ("internal://x", BadPath),
            ("dev://", BadInterface),
            ("dev://sixteen-byte-nam", BadInterface),
            ("ether://[08:00:27:01:01]", BadEthernetAddress),
            ("ether://[08:00:27:01:01:01:01]", BadEthernetAddress),
            ("ether://[08:00:27:01:01:+1]", BadEthernetAddress),
            ("udp4+dev://eth0", BadPort),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        assert_eq!(
            parse(&format!("unix:///{}", "x".repeat(MAX_FACE_URI_BYTES))),
            Err(TooLong)
        );
    }

    proptest! {
        #[test]
        fn whatever_parses_prints_to_what_parses_the_same(text in "\\PC{0,40}") {
            for scheme in ["", "udp://", "udp6://[", "tcp4://", "ws://", "unix:///", "ether://[", "dev://"] {
                if let Ok(uri) = parse(&format!("{scheme}{text}")) {
                    prop_assert_eq!(parse(&uri.to_string()), Ok(uri));
                }
                if let Ok(uri) = FaceUri::parse_local(&format!("{scheme}{text}")) {
                    prop_assert_eq!(FaceUri::parse_local(&uri.to_string()), Ok(uri));
                }
            }
        }

        #[test]
        fn every_socket_address_round_trips(ip: IpAddr, port in 1u16.., scope in 0u32..3) {
            let addr = match ip {
                IpAddr::V4(_) => SocketAddr::new(ip, port),
                IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, scope).into(),
            };
            for transport in [IpTransport::Udp, IpTransport::Tcp, IpTransport::WebSocket, IpTransport::WebSocketClient] {
                let uri = transport.uri(addr);
                prop_assert_eq!(uri.socket_addr(), Some(addr));
                prop_assert_eq!(parse(&uri.to_string()), Ok(uri));
            }
        }
    }
}
