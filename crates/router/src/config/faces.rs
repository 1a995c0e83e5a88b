//! `[faces]`: listeners, and the limits of every face.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_face::{Localities, SystemOptions};

use super::faults::Faults;
use super::machine::{has_interface, socket_path_fault};
use super::{Config, Local};

/// Longest timeout, in seconds: about thirty years.
const MAX_IDLE_TIMEOUT_S: u64 = 1_000_000_000;
/// Largest receive buffer that a socket can have, in bytes: the kernel doubles it in an `int`.
const MAX_SOCKET_BUFFER_BYTES: usize = i32::MAX as usize / 2;

/// Where the router listens, and the limits of every face.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Faces {
    /// Most faces at the same time, 1 to 1048576. Part of the table is kept free for
    /// commands: a new face of a remote UDP peer is admitted while the table is less than
    /// 50 % full, of a remote TCP or WebSocket connection below 75 %, of a local UDP peer
    /// below 75 %, and of a local connection below 87.5 %. Beyond that, a new remote peer
    /// replaces the remote face that has been without an exchange for the longest time, if
    /// that is at least 10 seconds, or 1 second for a face that never had one; otherwise it
    /// is refused. Both are counted. An exchange is a Data packet sent to the face, or a
    /// requested Data packet received from it. Local faces and those created by `[[face]]`
    /// or by a command are never replaced. Raise it for more peers, and with it the limit
    /// of open files (`ulimit -n`).
    pub max_faces: usize,
    /// Most faces that the peers at one remote address may have at the same time, 0 to
    /// 1048576; 0 means no limit. One address is an IPv4 address or an IPv6 /64 network. A
    /// further peer replaces the face of the same address that has been without an exchange
    /// for the longest time, if that is at least 1 second; otherwise it is refused. The
    /// faces of one address also share one face's quota of pending Interests, of waiting
    /// commands and of memory for fragments. Local faces and those created by `[[face]]` or
    /// by a command are not counted and have a quota each. Raise it if many peers connect
    /// through one proxy or address translator.
    pub max_per_source: usize,
    /// Seconds after which a face created by a remote peer is closed if the peer has sent
    /// no Interest, 0 to 86400; 0 means never. A command is an Interest. Write 0 if another
    /// router connects to this one only to receive Interests from it, or configure that
    /// router here with `[[face]]`.
    pub silent_timeout_s: u64,
    /// Most bytes that wait to be sent on one face, 16384 to 268435456. Packets beyond that
    /// are dropped and counted on the face.
    pub max_backlog_bytes: usize,
    /// Seconds after which a connection is closed if its peer reads none of the bytes that
    /// wait for it or, over Unix and TCP, leaves a packet unfinished; 1 to 86400.
    pub stall_timeout_s: u64,
    /// Whether faces mark packets when their send queue grows (NDNLPv2 congestion marks).
    pub congestion_marking: bool,
    /// Length of the send queue from which a face marks packets, in bytes; 1 to
    /// 268435456, and no more than `max_backlog_bytes`.
    pub congestion_threshold_bytes: u64,
    /// Time between the first two marks of a congested face, in milliseconds; 1 to 60000.
    /// While the congestion lasts, marks become more frequent.
    pub congestion_interval_ms: u64,
    /// Receive buffer requested for each UDP socket, in bytes; 4096 to 1073741823. The
    /// socket of a single remote peer gets a quarter of it, at least 256 KiB. Without
    /// privileges the kernel grants at most `net.core.rmem_max`. Raise both if
    /// `tachonym status` shows packets dropped by the kernel.
    pub socket_buffer_bytes: usize,
    /// The Unix stream socket, for applications on this machine.
    pub unix: Unix,
    /// UDP between two machines.
    pub udp: Udp,
    /// TCP connections.
    pub tcp: Tcp,
    /// WebSocket connections: binary messages with one packet each.
    pub websocket: WebSocket,
    /// A UDP multicast group on one network interface: one face that reaches all members
    /// of the group. None by default.
    pub multicast: Vec<Multicast>,
}

impl Faces {
    /// When faces of each transport are local.
    pub(crate) fn localities(&self) -> Localities {
        Localities {
            unix: self.unix.local.into(),
            tcp: self.tcp.local.into(),
            udp: self.udp.local.into(),
            websocket: self.websocket.local.into(),
        }
    }
}

impl Default for Faces {
    fn default() -> Self {
        Self {
            max_faces: 4096,
            max_per_source: 64,
            silent_timeout_s: 10,
            max_backlog_bytes: 16 << 20,
            stall_timeout_s: 30,
            congestion_marking: true,
            congestion_threshold_bytes: 65_536,
            congestion_interval_ms: 100,
            socket_buffer_bytes: 8 << 20,
            unix: Unix::default(),
            udp: Udp::default(),
            tcp: Tcp::default(),
            websocket: WebSocket::default(),
            multicast: Vec::new(),
        }
    }
}

/// The Unix stream socket, for applications on this machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Unix {
    /// Whether the router listens on a Unix socket.
    pub enabled: bool,
    /// Path of the socket, at most 107 bytes; missing folders are created. Empty: the first
    /// of `/run/nfd/nfd.sock`, `$XDG_RUNTIME_DIR/nfd/nfd.sock` and
    /// `/tmp/tachonym-<uid>/nfd.sock` that can be created. The router prints the path at
    /// start.
    #[schemars(example = &"/run/nfd/nfd.sock")]
    pub path: PathBuf,
    /// Permissions of the socket, in octal: they decide which users may connect. They do
    /// not restrict other local transports; `management.transports` says which transports
    /// carry commands.
    pub mode: String,
    /// Whether faces on this socket are local (see `faces.tcp.local`): always with
    /// `loopback`. Write `never` if a proxy forwards packets of other machines to this
    /// socket.
    pub local: Local,
}

impl Default for Unix {
    fn default() -> Self {
        Self {
            enabled: true,
            path: PathBuf::new(),
            mode: "0666".into(),
            local: Local::Loopback,
        }
    }
}

/// UDP between two machines.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Udp {
    /// Addresses and ports to listen on. Empty: the router does not listen on UDP.
    pub listen: Vec<String>,
    /// Seconds without a packet after which an on-demand face is closed, 0 to 1000000000;
    /// 0 means never.
    pub idle_timeout_s: u64,
    /// Largest datagram payload that is sent, in bytes; 128 to 65507. Larger packets are
    /// sent in NDNLPv2 fragments. Write 1452 (Ethernet less the headers of IPv6 and UDP) if
    /// the network drops IP fragments.
    pub mtu_bytes: u64,
    /// When a face is local (see `faces.tcp.local`). With `never`, as in NFD, applications
    /// on this machine that use UDP register routes under `/localhop/nfd` (see
    /// `management.localhop`). With `loopback`, a face is local if its datagrams come from a
    /// loopback address. The router does not check by which interface they came: the kernel
    /// drops loopback addresses from outside, unless `route_localnet` is set.
    pub local: Local,
}

impl Default for Udp {
    fn default() -> Self {
        Self {
            listen: vec!["0.0.0.0:6363".into(), "[::]:6363".into()],
            idle_timeout_s: 600,
            mtu_bytes: 8800,
            local: Local::Never,
        }
    }
}

/// TCP connections.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tcp {
    /// Addresses and ports to listen on. Empty: the router does not listen on TCP.
    pub listen: Vec<String>,
    /// Seconds without a packet after which an on-demand face is closed, 0 to 1000000000;
    /// 0 keeps it until the peer closes the connection.
    pub idle_timeout_s: u64,
    /// When a face is local. A local face may use `/localhost`, which includes every
    /// command, may use NDNLPv2 local fields, and is admitted to a fuller face table. With
    /// `loopback`, a face is local if both its ends are loopback addresses. Write `never` if
    /// a TLS proxy, a tunnel or a sidecar on this machine connects to the router: its
    /// connections come from loopback addresses although their packets come from elsewhere.
    /// This also holds for faces that the router connects, unless `face.locality` says
    /// otherwise.
    pub local: Local,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            listen: vec!["0.0.0.0:6363".into(), "[::]:6363".into()],
            idle_timeout_s: 0,
            local: Local::Loopback,
        }
    }
}

/// WebSocket connections: binary messages with one packet each.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocket {
    /// Addresses and ports to listen on. Empty: the router does not listen for WebSocket.
    pub listen: Vec<String>,
    /// Seconds without a packet after which an on-demand face is closed, 0 to 1000000000;
    /// 0 keeps it until the peer closes the connection.
    pub idle_timeout_s: u64,
    /// When a face is local (see `faces.tcp.local`). Even with `loopback`, a connection is
    /// not local if its handshake has an `Origin` header (a web page), or `Forwarded`, `Via`
    /// or `X-Forwarded-*` (a proxy).
    pub local: Local,
    /// Origins of the web pages that may connect, such as `https://app.example` or
    /// `http://127.0.0.1:8080`. Pages of other origins are refused with 403. Empty: every
    /// page may connect. Programs that send no `Origin` header may always connect.
    #[schemars(example = ["https://app.example"])]
    pub origins: Vec<String>,
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            listen: vec!["0.0.0.0:9696".into(), "[::]:9696".into()],
            idle_timeout_s: 0,
            local: Local::Never,
            origins: Vec::new(),
        }
    }
}

/// A UDP multicast group on one network interface.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// Name of the network interface, such as `eth0`; `ip link` lists them.
    #[schemars(example = &"eth0")]
    pub interface: String,
    /// Address and port of the group. Those of NDN are `224.0.23.170:56363` and
    /// `[ff02::1234]:56363`.
    #[serde(default = "ndn_group")]
    pub group: String,
    /// Most routers that a datagram passes (TTL or hop limit), 1 to 255; 1 keeps it on the
    /// link.
    #[serde(default = "one_hop")]
    pub hops: u8,
    /// Largest datagram payload that is sent, in bytes; 128 to 65507. Larger packets are
    /// sent in NDNLPv2 fragments.
    #[serde(default = "ethernet_payload")]
    pub mtu_bytes: u64,
}

/// The multicast group of NDN over IPv4.
fn ndn_group() -> String {
    "224.0.23.170:56363".into()
}

fn one_hop() -> u8 {
    1
}

/// Payload of a UDP datagram over IPv6 in one Ethernet frame.
fn ethernet_payload() -> u64 {
    1452
}

/// Checks `[faces]`.
pub(super) fn check(config: &Config, found: &mut Faults) {
    let f = &config.faces;
    found.range("faces.max_faces", f.max_faces, 1, 1 << 20);
    found.range("faces.max_per_source", f.max_per_source, 0, 1 << 20);
    found.range("faces.silent_timeout_s", f.silent_timeout_s, 0, 86_400);
    // One face may hold no more than all faces together.
    let max_backlog_bytes = SystemOptions::default().max_total_backlog_bytes;
    found.range(
        "faces.max_backlog_bytes",
        f.max_backlog_bytes,
        1 << 14,
        max_backlog_bytes,
    );
    found.range("faces.stall_timeout_s", f.stall_timeout_s, 1, 86_400);
    found.range(
        "faces.congestion_threshold_bytes",
        f.congestion_threshold_bytes,
        1,
        max_backlog_bytes as u64,
    );
    found.range(
        "faces.congestion_interval_ms",
        f.congestion_interval_ms,
        1,
        60_000,
    );
    found.range(
        "faces.socket_buffer_bytes",
        f.socket_buffer_bytes,
        1 << 12,
        MAX_SOCKET_BUFFER_BYTES,
    );
    if f.congestion_marking && f.congestion_threshold_bytes > f.max_backlog_bytes as u64 {
        found.conflict(
            "faces.congestion_threshold_bytes",
            "packets would be dropped before any is marked: the threshold is above \
             faces.max_backlog_bytes",
            "write a lower number than faces.max_backlog_bytes",
        );
    }
    unix(&f.unix, found);
    udp(&f.udp, found);
    tcp(&f.tcp, found);
    websocket(&f.websocket, found);
    // WebSocket and TCP share the kernel's TCP ports.
    addresses(
        &[
            ("faces.tcp.listen", &f.tcp.listen),
            ("faces.websocket.listen", &f.websocket.listen),
        ],
        found,
    );
    multicast(&f.multicast, found);
    let is_dialling = !config.face.is_empty() || !config.route.is_empty();
    if !is_dialling && !is_listening(f) {
        found.conflict(
            "faces",
            "no packet can arrive: the router listens nowhere and has no [[face]] or [[route]]",
            "write unix.enabled = true, or an address in udp.listen or tcp.listen",
        );
    }
}

fn is_listening(f: &Faces) -> bool {
    let lists = [&f.udp.listen, &f.tcp.listen, &f.websocket.listen];
    f.unix.enabled || !f.multicast.is_empty() || lists.iter().any(|list| !list.is_empty())
}

fn unix(unix: &Unix, found: &mut Faults) {
    match u32::from_str_radix(&unix.mode, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => {}
        _ => found.push(
            "faces.unix.mode",
            format!(
                "`{}` does not let the owner read and write, or is not octal",
                unix.mode
            ),
            "write an octal mode, as in mode = \"0660\"",
        ),
    }
    if unix.enabled {
        if !unix.path.as_os_str().is_empty()
            && let Some((message, remedy)) = socket_path_fault(&unix.path)
        {
            found.push("faces.unix.path", message, remedy);
        }
        return;
    }
    let default = Unix::default();
    let off = "faces.unix.enabled is false";
    if unix.path != default.path {
        found.idle("faces.unix.path", off);
    }
    if unix.mode != default.mode {
        found.idle("faces.unix.mode", off);
    }
}

fn udp(udp: &Udp, found: &mut Faults) {
    let timeout = "faces.udp.idle_timeout_s";
    found.range(timeout, udp.idle_timeout_s, 0, MAX_IDLE_TIMEOUT_S);
    found.mtu("faces.udp.mtu_bytes", udp.mtu_bytes);
    addresses(&[("faces.udp.listen", &udp.listen)], found);
    let default = Udp::default();
    let off = "faces.udp.listen is empty";
    if udp.listen.is_empty() && udp.idle_timeout_s != default.idle_timeout_s {
        found.idle(timeout, off);
    }
    if udp.listen.is_empty() && udp.mtu_bytes != default.mtu_bytes {
        found.idle("faces.udp.mtu_bytes", off);
    }
}

fn tcp(tcp: &Tcp, found: &mut Faults) {
    let timeout = "faces.tcp.idle_timeout_s";
    found.range(timeout, tcp.idle_timeout_s, 0, MAX_IDLE_TIMEOUT_S);
    if tcp.listen.is_empty() && tcp.idle_timeout_s != Tcp::default().idle_timeout_s {
        found.idle(timeout, "faces.tcp.listen is empty");
    }
}

fn websocket(websocket: &WebSocket, found: &mut Faults) {
    let timeout = "faces.websocket.idle_timeout_s";
    found.range(timeout, websocket.idle_timeout_s, 0, MAX_IDLE_TIMEOUT_S);
    origins(websocket, found);
    let default = WebSocket::default();
    if websocket.listen.is_empty() && websocket.idle_timeout_s != default.idle_timeout_s {
        found.idle(timeout, "faces.websocket.listen is empty");
    }
}

fn origins(websocket: &WebSocket, found: &mut Faults) {
    const KEY: &str = "faces.websocket.origins";
    if websocket.listen.is_empty() && !websocket.origins.is_empty() {
        found.idle(KEY, "faces.websocket.listen is empty");
    }
    for (i, origin) in websocket.origins.iter().enumerate() {
        if !is_origin(origin) {
            found.push(
                format!("{KEY}[{i}]"),
                format!("`{origin}` is not an origin"),
                "write scheme, host and port without a path, such as \"https://app.example\", \
                 or \"null\"",
            );
        }
    }
}

/// Whether `text` is an origin as browsers write it (RFC 6454, section 6.2).
fn is_origin(text: &str) -> bool {
    let is_plain = |part: &str| {
        let is_of_part = |c: char| c.is_ascii_alphanumeric() || "+-.:[]".contains(c);
        !part.is_empty() && part.chars().all(is_of_part)
    };
    let parts = text.split_once("://");
    text == "null" || parts.is_some_and(|(scheme, host)| is_plain(scheme) && is_plain(host))
}

/// Checks lists of addresses that share the ports of one protocol.
fn addresses(lists: &[(&str, &[String])], found: &mut Faults) {
    let mut known = Addresses::default();
    for (key, list) in lists {
        for (i, text) in list.iter().enumerate() {
            let here = format!("{key}[{i}]");
            let Ok(address) = text.parse::<SocketAddr>() else {
                found.push(
                    here,
                    format!("`{text}` is not an address and port"),
                    "write an IP address with a port, such as \"0.0.0.0:6363\" or \"[::]:6363\"",
                );
                continue;
            };
            if address.ip().is_multicast() {
                found.push(
                    here,
                    format!("{address} is a multicast group"),
                    "write [[faces.multicast]] to join it",
                );
                continue;
            }
            if let Some(other) = known.insert(address) {
                found.push(
                    here,
                    format!("{address} is already taken by {other}"),
                    "remove one of them, or choose another port; the usual port of WebSocket \
                     is 9696",
                );
            }
        }
    }
}

/// Addresses that one protocol listens on.
#[derive(Default)]
struct Addresses {
    exact: HashSet<(IpAddr, u16)>,
    /// By port and family: the first address, and the unspecified one if it is listed.
    ports: HashMap<(u16, bool), (SocketAddr, Option<SocketAddr>)>,
}

impl Addresses {
    /// Adds `address`. Returns an address that conflicts with it. Port 0 never does: the
    /// kernel chooses a free one each time.
    fn insert(&mut self, address: SocketAddr) -> Option<SocketAddr> {
        if address.port() == 0 {
            return None;
        }
        let is_all = address.ip().is_unspecified();
        let is_new = self.exact.insert((address.ip(), address.port()));
        let port = (address.port(), address.is_ipv4());
        let mut is_first = false;
        let (first, all) = self.ports.entry(port).or_insert_with(|| {
            is_first = true;
            (address, None)
        });
        let other = match *all {
            Some(all) => Some(all),
            None if !is_new => Some(address),
            None => (is_all && !is_first).then_some(*first),
        };
        if is_all {
            *all = Some(address);
        }
        other
    }
}

fn multicast(faces: &[Multicast], found: &mut Faults) {
    let mut known = HashSet::new();
    for (i, face) in faces.iter().enumerate() {
        let key = format!("faces.multicast[{i}]");
        let group = face.group.parse::<SocketAddr>().ok();
        let group = group.filter(|group| group.ip().is_multicast() && group.port() != 0);
        if group.is_none() {
            found.push(
                format!("{key}.group"),
                format!("`{}` is not a multicast address and port", face.group),
                "write \"224.0.23.170:56363\", or \"[ff02::1234]:56363\" for IPv6",
            );
        }
        if !has_interface(&face.interface) {
            found.push(
                format!("{key}.interface"),
                format!("this machine has no network interface `{}`", face.interface),
                "write a name that `ip link` lists",
            );
        }
        found.range(&format!("{key}.hops"), face.hops, 1, 255);
        found.mtu(&format!("{key}.mtu_bytes"), face.mtu_bytes);
        if group.is_some_and(|group| !known.insert((&face.interface, group))) {
            found.push(
                format!("{key}.group"),
                format!("{} is already joined on {}", face.group, face.interface),
                "keep one [[faces.multicast]] for each group and interface",
            );
        }
    }
}
