//! What the types of the configuration cannot say: ranges, addresses, names,
//! and keys that contradict each other.

use std::net::SocketAddr;

use tachonym_packet::Name;
use tachonym_protocol::FaceUri;

use super::{Config, Multicast};
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

    fn face_uri(&mut self, key: &str, uri: &str) {
        if let Err(e) = uri.parse::<FaceUri>() {
            self.push(
                key,
                format!("`{uri}` is not a FaceUri: {e}"),
                "write it like udp4://192.0.2.1:6363",
            );
        }
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
    addresses("faces.udp.listen", &f.udp.listen, found);
    addresses("faces.tcp.listen", &f.tcp.listen, found);
    addresses("faces.websocket.listen", &f.websocket.listen, found);
    multicast(&f.multicast, found);
    for (i, address) in f.websocket.listen.iter().enumerate() {
        // The kernel gives two that ask for port 0 different ones.
        if f.tcp.listen.contains(address) && !address.ends_with(":0") {
            found.push(
                format!("faces.websocket.listen[{i}]"),
                format!("{address} is also in faces.tcp.listen"),
                "give WebSocket a port of its own, 9696 by custom",
            );
        }
    }
}

fn addresses(key: &str, list: &[String], found: &mut Faults) {
    for (i, address) in list.iter().enumerate() {
        let here = format!("{key}[{i}]");
        if address.parse::<SocketAddr>().is_err() {
            found.push(
                here,
                format!("`{address}` is not an address and port"),
                "write it like \"0.0.0.0:6363\" or \"[::]:6363\"",
            );
        } else if list[..i].contains(address) {
            found.push(
                here,
                format!("{address} is listed twice"),
                "remove one of them",
            );
        }
    }
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
        if strategies::find(&choice.strategy).is_none() {
            found.push(
                format!("strategy[{i}].strategy"),
                format!("there is no strategy `{}`", choice.strategy),
                &format!("use one of: {}", strategies::short_names().join(", ")),
            );
        }
        if config.strategy[..i]
            .iter()
            .any(|earlier| earlier.prefix == choice.prefix)
        {
            found.push(
                format!("strategy[{i}].prefix"),
                format!("{} has a strategy already", choice.prefix),
                "keep one [[strategy]] for each prefix",
            );
        }
    }
}

fn routes(config: &Config, found: &mut Faults) {
    for (i, face) in config.face.iter().enumerate() {
        found.face_uri(&format!("face[{i}].remote"), &face.remote);
        if let Some(local) = &face.local {
            found.face_uri(&format!("face[{i}].local"), local);
        }
        if let Some(mtu) = face.mtu_bytes {
            found.range(&format!("face[{i}].mtu_bytes"), mtu, 64, 65_507);
        }
    }
    for (i, route) in config.route.iter().enumerate() {
        found.name(&format!("route[{i}].prefix"), &route.prefix);
        found.face_uri(&format!("route[{i}].next_hop"), &route.next_hop);
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
