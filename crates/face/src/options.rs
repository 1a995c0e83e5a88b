//! What a listener and a face are asked to be.
//!
//! Owns plain values with documented defaults; [`crate::FaceSystem`] checks
//! them when they are used.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_protocol::{FacePersistency, FaceUri};

use crate::locality::Locality;

/// Smallest MTU that a face accepts, in bytes: room for the headers of a
/// fragment and some payload.
pub const MIN_MTU_BYTES: u64 = 128;
/// Largest MTU of a face, in bytes: what a UDP datagram can carry.
pub const MAX_MTU_BYTES: u64 = 65_507;
/// Usual MTU of a face, in bytes: that of the largest bare packet. One with
/// headers that does not fit is sent in fragments.
pub const DEFAULT_MTU_BYTES: u64 = MAX_PACKET_BYTES as u64;

/// Use of UDP segmentation (GSO) and coalescing (GRO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Where the kernel has it.
    Auto,
    /// Never.
    Off,
}

/// What every UDP socket of a face system is asked to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpOptions {
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) send_buffer_bytes: usize,
    pub(crate) offload: Offload,
}

/// What the link service of a face does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// NextHopFaceId and IncomingFaceId are honoured when received on Interests, which are
    /// dropped otherwise, and written when sent. Default no.
    pub local_fields: bool,
    /// Fragments that are not acknowledged are sent again. Default no.
    pub reliability: bool,
    /// Packets are marked while the link is congested. Default yes.
    pub congestion_marking: bool,
    /// Time that a queue must stay above its threshold before the first mark.
    /// Default 100 ms.
    pub base_congestion_marking_interval: Duration,
    /// Queue length that is congestion, in bytes. Default 64 KiB.
    pub default_congestion_threshold_bytes: u64,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            local_fields: false,
            reliability: false,
            congestion_marking: true,
            base_congestion_marking_interval: Duration::from_millis(100),
            default_congestion_threshold_bytes: 64 << 10,
        }
    }
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelAddress {
    /// A Unix stream socket. A socket file that nobody listens on is replaced.
    Unix(PathBuf),
    /// TCP; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// UDP; port 0 lets the kernel choose.
    Udp(SocketAddr),
    /// WebSocket over TCP, without TLS.
    WebSocket(SocketAddr),
}

/// How long an on-demand UDP face lives without a packet from its peer.
pub(crate) const DEFAULT_UDP_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A listener, and what the faces it makes are like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// Where to listen.
    pub address: ChannelAddress,
    /// On-demand faces that receive nothing for this long are closed; `None`:
    /// never. Default 600 s for UDP, whose peers do not say when they go, and `None`
    /// for connections.
    pub idle_timeout: Option<Duration>,
    /// Link service of the faces.
    pub link: LinkOptions,
    /// Largest datagram that the faces send, in bytes; other transports than
    /// UDP have no such limit. Default [`DEFAULT_MTU_BYTES`].
    pub mtu_bytes: u64,
    /// Permission bits of a Unix socket file. Default 0o666: whoever reaches
    /// the directory may connect.
    pub unix_mode: u32,
    /// Origins of the web pages that a WebSocket listener accepts, such as
    /// `https://app.example`; empty: all. Handshakes without `Origin` are accepted
    /// in any case. Default empty.
    pub origins: Arc<[String]>,
}

impl ChannelOptions {
    /// A listener at `address` with the default options.
    #[must_use]
    pub fn new(address: ChannelAddress) -> Self {
        let idle_timeout = match address {
            ChannelAddress::Udp(_) => Some(DEFAULT_UDP_IDLE_TIMEOUT),
            _ => None,
        };
        Self {
            address,
            idle_timeout,
            link: LinkOptions::default(),
            mtu_bytes: DEFAULT_MTU_BYTES,
            unix_mode: 0o666,
            origins: Arc::default(),
        }
    }

    /// A Unix stream listener.
    #[must_use]
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::new(ChannelAddress::Unix(path.into()))
    }

    /// A TCP listener.
    #[must_use]
    pub fn tcp(addr: SocketAddr) -> Self {
        Self::new(ChannelAddress::Tcp(addr))
    }

    /// A UDP listener.
    #[must_use]
    pub fn udp(addr: SocketAddr) -> Self {
        Self::new(ChannelAddress::Udp(addr))
    }

    /// A WebSocket listener.
    #[must_use]
    pub fn websocket(addr: SocketAddr) -> Self {
        Self::new(ChannelAddress::WebSocket(addr))
    }
}

/// A UDP multicast face to ask for: one for each group and interface.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MulticastOptions {
    /// Address of the group, and the port that is sent to and listened on.
    pub group: SocketAddr,
    /// Name of the network interface.
    pub interface: String,
    /// How many routers a datagram may pass: TTL or hop limit. Default 1.
    pub hops: u8,
    /// Whether other programs on this machine hear what the face sends.
    /// Default [`Loopback::Off`].
    pub loopback: Loopback,
    /// Link service of the face.
    pub link: LinkOptions,
    /// Largest datagram that is sent, in bytes. Default [`DEFAULT_MTU_BYTES`].
    pub mtu_bytes: u64,
}

/// Whether multicast datagrams come back to the machine that sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    /// They do not.
    Off,
    /// They do; the face ignores its own.
    On,
}

impl MulticastOptions {
    /// A face to `group` on the interface named `interface`.
    #[must_use]
    pub fn new(group: SocketAddr, interface: impl Into<String>) -> Self {
        Self {
            group,
            interface: interface.into(),
            hops: 1,
            loopback: Loopback::Off,
            link: LinkOptions::default(),
            mtu_bytes: DEFAULT_MTU_BYTES,
        }
    }
}

/// A face to dial.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FaceParams {
    /// The other end: `udp4`, `udp6`, `tcp4`, `tcp6`, `unix` or `ws`, canonical.
    pub remote: FaceUri,
    /// This end, of the same scheme, or `wsclient` for `ws`; port 0: any. A UDP
    /// face uses a listener's socket if one has the address. `None`: the system
    /// chooses.
    pub local: Option<FaceUri>,
    /// Persistent or permanent. Default persistent.
    pub persistency: FacePersistency,
    /// Link service.
    pub link: LinkOptions,
    /// Largest datagram, in bytes; only UDP has such a limit. `None`:
    /// [`DEFAULT_MTU_BYTES`].
    pub mtu_bytes: Option<u64>,
    /// When it counts as local; `None`: as [`crate::SystemOptions::localities`] says for
    /// its transport.
    pub locality: Option<Locality>,
}

impl FaceParams {
    /// A persistent face to `remote` with the default options.
    #[must_use]
    pub fn new(remote: FaceUri) -> Self {
        Self {
            remote,
            local: None,
            persistency: FacePersistency::Persistent,
            link: LinkOptions::default(),
            mtu_bytes: None,
            locality: None,
        }
    }
}

/// What to change about a face; `None` leaves as is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaceUpdate {
    /// How long it lives.
    pub persistency: Option<FacePersistency>,
    /// Largest datagram, in bytes; values outside [`MIN_MTU_BYTES`] and
    /// [`MAX_MTU_BYTES`] are taken as the nearer of the two.
    pub mtu_bytes: Option<u64>,
    /// Local fields.
    pub local_fields: Option<bool>,
    /// Retransmission.
    pub reliability: Option<bool>,
    /// Congestion marking.
    pub congestion_marking: Option<bool>,
    /// Time before the first mark.
    pub base_congestion_marking_interval: Option<Duration>,
    /// Queue length that is congestion, in bytes.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// When it counts as local. An accepted WebSocket of a web page or behind a
    /// proxy never does.
    pub locality: Option<Locality>,
}
