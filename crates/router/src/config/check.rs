//! What the types of the configuration cannot say: ranges, addresses, names,
//! and keys that contradict each other.

use std::net::SocketAddr;

use tachonym_packet::Name;
use tachonym_protocol::FaceUri;

use super::{Config, Multicast, Persistency, StrategyChoice};
use crate::{strategies, trust};

/// A value that cannot be used.
pub(super) struct Fault {
    pub(super) key: String,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// Everything wrong with `config`.
pub(super) fn faults(config: &Config) -> Vec<Fault> {
    let mut found = Faults::default();
    faces(config, &mut found);
    tables(config, &mut found);
    forwarding(config, &mut found);
    routes(config, &mut found);
    management(config, &mut found);
    if let Err(e) = config.log.level.parse::<tracing_subscriber::EnvFilter>() {
        found.push(
            "log.level",
            format!("{e}"),
            "use error, warn, info, debug or trace",
        );
    }
    found.0
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn push(&mut self, key: impl Into<String>, message: impl Into<String>, remedy: &str) {
        self.0.push(Fault {
            key: key.into(),
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    fn range<T: PartialOrd + std::fmt::Display>(&mut self, key: &str, value: T, min: T, max: T) {
        if value < min || value > max {
            self.push(
                key,
                format!("{value} is out of range"),
                &format!("use a number from {min} to {max}"),
            );
        }
    }

    fn name(&mut self, key: &str, uri: &str) {
        if let Err(e) = uri.parse::<Name>() {
            self.push(
                key,
                format!("`{uri}` is not a name: {e}"),
                "write it like /example/prefix",
            );
        }
    }

    /// The FaceUri at `key`, if it is one and names an address rather than a
    /// host: what starts a router does not depend on a name server.
    fn face_uri(&mut self, key: &str, uri: &str) -> Option<FaceUri> {
        match uri.parse() {
            Ok(FaceUri::Unresolved(_)) => {
                self.push(
                    key,
                    format!("`{uri}` names a host, not an address"),
                    "write the address, like udp4://192.0.2.1:6363",
                );
                None
            }
            Ok(uri) => Some(uri),
            Err(e) => {
                self.push(
                    key,
                    format!("`{uri}` is not a FaceUri: {e}"),
                    "write it like udp4://192.0.2.1:6363",
                );
                None
            }
        }
    }

    fn undiallable(&mut self, key: &str, uri: &FaceUri) {
        self.push(
            key,
            format!("no face can be made to {uri}"),
            "name one host's udp4, udp6, tcp4, tcp6, ws or unix address",
        );
    }
}

fn faces(config: &Config, found: &mut Faults) {
    let f = &config.faces;
    found.range("faces.max_faces", f.max_faces, 1, 1 << 20);
    found.range(
        "faces.max_backlog_bytes",
        f.max_backlog_bytes,
        1 << 14,
        1 << 30,
    );
    found.range(
        "faces.congestion_threshold_bytes",
        f.congestion_threshold_bytes,
        1,
        1 << 30,
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
        1 << 30,
    );
    if f.congestion_threshold_bytes > f.max_backlog_bytes as u64 {
        found.push(
            "faces.congestion_threshold_bytes",
            "packets would be dropped before any is marked",
            "choose less than faces.max_backlog_bytes",
        );
    }
    found.range("faces.udp.mtu_bytes", f.udp.mtu_bytes, 64, 65_507);
    match u32::from_str_radix(&f.unix.mode, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => {}
        _ => found.push(
            "faces.unix.mode",
            format!("`{}` is not a usable mode", f.unix.mode),
            "write three octal digits that let the owner read and write, like \"0660\"",
        ),
    }
    if f.unix.path.as_os_str().len() > 107 {
        found.push(
            "faces.unix.path",
            "a Unix socket's path has at most 107 bytes",
            "choose a shorter path",
        );
    }
    addresses(&[("faces.udp.listen", &f.udp.listen)], found);
    // Both are TCP to the kernel.
    addresses(
        &[
            ("faces.tcp.listen", &f.tcp.listen),
            ("faces.websocket.listen", &f.websocket.listen),
        ],
        found,
    );
    multicast(&f.multicast, found);
}

/// Checks lists of addresses that share the ports of one protocol.
fn addresses(lists: &[(&str, &[String])], found: &mut Faults) {
    let mut known: Vec<SocketAddr> = Vec::new();
    for (key, list) in lists {
        for (i, text) in list.iter().enumerate() {
            let here = format!("{key}[{i}]");
            let Ok(address) = text.parse() else {
                found.push(
                    here,
                    format!("`{text}` is not an address and port"),
                    "write it like \"0.0.0.0:6363\" or \"[::]:6363\"",
                );
                continue;
            };
            if let Some(other) = known.iter().find(|other| overlap(other, &address)) {
                found.push(
                    here,
                    format!("{address} is taken by {other}"),
                    "remove one of them, or choose another port; WebSocket's is 9696 by custom",
                );
            }
            known.push(address);
        }
    }
}

/// Whether one socket listens where the other does. The kernel gives two that
/// ask for port 0 different ones.
fn overlap(a: &SocketAddr, b: &SocketAddr) -> bool {
    let covers = |a: &SocketAddr, b: &SocketAddr| a.ip().is_unspecified() || a.ip() == b.ip();
    a.port() == b.port()
        && a.port() != 0
        && a.is_ipv4() == b.is_ipv4()
        && (covers(a, b) || covers(b, a))
}

fn multicast(faces: &[Multicast], found: &mut Faults) {
    for (i, face) in faces.iter().enumerate() {
        let key = format!("faces.multicast[{i}]");
        match face.group.parse::<SocketAddr>() {
            Ok(group) if group.ip().is_multicast() => {}
            _ => found.push(
                format!("{key}.group"),
                format!("`{}` is not a multicast address and port", face.group),
                "use 224.0.23.170:56363, or [ff02::1234]:56363 for IPv6",
            ),
        }
        if face.interface.is_empty() || face.interface.len() > 15 {
            found.push(
                format!("{key}.interface"),
                format!("`{}` is no network interface", face.interface),
                "use a name that `ip link` shows",
            );
        }
        found.range(&format!("{key}.hops"), face.hops, 1, 255);
        found.range(&format!("{key}.mtu_bytes"), face.mtu_bytes, 128, 65_507);
        let repeated =
            |other: &Multicast| other.interface == face.interface && other.group == face.group;
        if faces[..i].iter().any(repeated) {
            found.push(
                format!("{key}.group"),
                format!("{} is joined on {} already", face.group, face.interface),
                "list each group once for each interface",
            );
        }
    }
}

fn tables(config: &Config, found: &mut Faults) {
    let t = &config.tables;
    found.range("tables.pit_entries", t.pit_entries, 1, 1 << 28);
    found.range("tables.pit_bytes", t.pit_bytes, 1 << 16, 1 << 40);
    found.range("tables.cs_packets", t.cs_packets, 0, 1 << 30);
    found.range("tables.cs_bytes", t.cs_bytes, 0, 1 << 42);
    found.range("tables.routes", t.routes, 16, 1 << 30);
    found.range("tables.dead_nonce_ms", t.dead_nonce_ms, 6000, 600_000);
}

fn forwarding(config: &Config, found: &mut Faults) {
    for (i, name) in config.forwarding.producer_region.iter().enumerate() {
        found.name(&format!("forwarding.producer_region[{i}]"), name);
    }
    for (i, choice) in config.strategy.iter().enumerate() {
        found.name(&format!("strategy[{i}].prefix"), &choice.prefix);
        if let Err(e) = strategies::find(&choice.strategy) {
            found.push(
                format!("strategy[{i}].strategy"),
                format!("`{}`: {e}", choice.strategy),
                &format!("use one of: {}", strategies::short_names().join(", ")),
            );
        }
        let same = |earlier: &StrategyChoice| {
            earlier.prefix.parse::<Name>().ok() == choice.prefix.parse().ok()
        };
        if config.strategy[..i].iter().any(same) {
            found.push(
                format!("strategy[{i}].prefix"),
                format!("{} has a strategy already", choice.prefix),
                "keep one [[strategy]] for each prefix",
            );
        }
    }
}

fn routes(config: &Config, found: &mut Faults) {
    let mut remotes = Vec::new();
    for (i, face) in config.face.iter().enumerate() {
        let key = format!("face[{i}].remote");
        let Some(remote) = found.face_uri(&key, &face.remote) else {
            continue;
        };
        if !can_be_dialled(&remote) {
            found.undiallable(&key, &remote);
        }
        if remotes.contains(&remote) {
            found.push(
                key,
                format!("there is a face to {remote} already"),
                "keep one [[face]] for each remote",
            );
        }
        if let Some(local) = &face.local {
            let key = format!("face[{i}].local");
            let local = found.face_uri(&key, local);
            if local.is_some_and(|local| !is_local_end_of(&local, &remote)) {
                found.push(
                    key,
                    format!("no face to {remote} begins there"),
                    "write an address of the same scheme as the remote, udp or tcp",
                );
            }
        }
        if let Some(mtu) = face.mtu_bytes {
            let key = format!("face[{i}].mtu_bytes");
            found.range(&key, mtu, 64, 65_507);
            if !matches!(remote, FaceUri::Udp(_)) {
                found.push(key, "a stream has no largest frame", "remove it");
            }
        }
        let is_unix = matches!(remote, FaceUri::Unix(_));
        if is_unix && face.persistency == Some(Persistency::Permanent) {
            found.push(
                format!("face[{i}].persistency"),
                "a face to a Unix socket is never permanent",
                "write persistent, or leave the key out",
            );
        }
        remotes.push(remote);
    }
    let groups: Vec<FaceUri> = config.faces.multicast.iter().flat_map(group_uri).collect();
    let mut known = Vec::new();
    for (i, route) in config.route.iter().enumerate() {
        found.name(&format!("route[{i}].prefix"), &route.prefix);
        let key = format!("route[{i}].next_hop");
        let Some(next_hop) = found.face_uri(&key, &route.next_hop) else {
            continue;
        };
        if !can_be_dialled(&next_hop) && !groups.contains(&next_hop) {
            found.undiallable(&key, &next_hop);
        }
        let Ok(prefix) = route.prefix.parse::<Name>() else {
            continue;
        };
        let this = (prefix, next_hop);
        if known.contains(&this) {
            found.push(
                key,
                format!("{} has a route to {} already", this.0, this.1),
                "keep one [[route]] for each prefix and next hop",
            );
        }
        known.push(this);
    }
}

fn is_local_end_of(local: &FaceUri, remote: &FaceUri) -> bool {
    match (local, remote) {
        (FaceUri::Udp(a), FaceUri::Udp(b)) | (FaceUri::Tcp(a), FaceUri::Tcp(b)) => {
            a.is_ipv4() == b.is_ipv4()
        }
        _ => false,
    }
}

/// The remote of the face that joins a group.
fn group_uri(multicast: &Multicast) -> Option<FaceUri> {
    multicast.group.parse().ok().map(FaceUri::Udp)
}

fn can_be_dialled(remote: &FaceUri) -> bool {
    match remote {
        FaceUri::Unix(_) => true,
        FaceUri::Udp(addr) | FaceUri::Tcp(addr) | FaceUri::WebSocket(addr) => {
            !addr.ip().is_multicast() && !addr.ip().is_unspecified()
        }
        _ => false,
    }
}

fn management(config: &Config, found: &mut Faults) {
    let m = &config.management;
    found.range("management.queue_commands", m.queue_commands, 1, 1 << 20);
    for (i, rule) in config.management.authorize.iter().enumerate() {
        if let Err(fault) = trust::authorize_rule(rule) {
            let key = format!("management.authorize[{i}].{}", fault.key);
            found.push(key, fault.message, fault.remedy);
        }
    }
    if let Err(fault) = trust::localhop_policy(&config.management.localhop) {
        let key = format!("management.localhop.{}", fault.key);
        found.push(key, fault.message, fault.remedy);
    }
}
