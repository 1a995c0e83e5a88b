//! What the types of the configuration cannot say: ranges, addresses, names,
//! keys that contradict each other and keys that do nothing.
//!
//! Every check is linear in the file: a router may have a hundred thousand
//! routes.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use tachonym_face::{MAX_MTU_BYTES, MIN_MTU_BYTES, SystemOptions};
use tachonym_forward::MAX_BURST_DISTANCE;
use tachonym_manage::RibLimits;
use tachonym_packet::{DEFAULT_LIFETIME_MS, Name};
use tachonym_policy::PolicyError;
use tachonym_policy::eviction::MAX_SLOTS;
use tachonym_protocol::{FaceUri, FaceUriError};
use tachonym_tables::{CsCapacity, MAX_NEXT_HOPS, MAX_PREFIX_COMPONENTS};

use super::machine::{has_interface, socket_path_fault};
use super::{
    Admission, Config, Faces, Localhop, Multicast, Persistency, Tables, Tcp, Udp, Unix, WebSocket,
};
use crate::{strategies, trust};

/// How a name is to be written.
pub(crate) const NAME_REMEDY: &str = "write it like /example/prefix";
/// Words that are a log level by themselves.
const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Largest time-out, in seconds: some thirty years.
const MAX_IDLE_TIMEOUT_S: u64 = 1_000_000_000;
/// Largest buffer that a socket can be asked for, in bytes: the kernel doubles
/// it in an `int`.
const MAX_SOCKET_BUFFER_BYTES: usize = i32::MAX as usize / 2;

/// Most prefixes whose Data are verified: a Data is compared with each.
const MAX_VERIFICATION_RULES: usize = 256;
/// Least number of components behind a prefix that is pulled.
const MIN_LEVEL_PULLING: u32 = 8;

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
    super::workers::check(&config.workers, &mut found);
    content_store(config, &mut found);
    super::second_level::check(&config.second_level, config.workers.most(), &mut found);
    forwarding(config, &mut found);
    routes(config, &mut found);
    verification(config, &mut found);
    management(config, &mut found);
    super::locality::check(config, &mut found);
    if let Some(message) = level_fault(&config.log.level) {
        found.push(
            "log.level",
            message,
            "use off, error, warn, info, debug or trace, or parts of the form target=level, \
             like info,tachonym_router=debug",
        );
    }
    found.0
}

/// What is wrong with a filter of the log. A bare word that is no level would
/// be taken for a target, and all else be silent.
fn level_fault(filter: &str) -> Option<String> {
    let is_level = |word: &str| LOG_LEVELS.iter().any(|l| l.eq_ignore_ascii_case(word));
    for part in filter.split(',') {
        let good = match part.rsplit_once('=') {
            Some((target, level)) => !target.is_empty() && is_level(level),
            None => is_level(part),
        };
        if !good || part.contains(char::is_whitespace) {
            return Some(format!("`{part}` is no level"));
        }
    }
    let parsed = filter.parse::<tracing_subscriber::EnvFilter>();
    parsed.err().map(|e| e.to_string())
}

/// Reads a name as the configuration writes it: from its first slash on, so
/// that no other word passes for a name.
///
/// # Errors
/// What is wrong with it; [`NAME_REMEDY`] tells how to mend it.
pub(crate) fn parse_name(uri: &str) -> Result<Name, String> {
    let fault = |why: &str| Err(format!("`{uri}` is not a name: {why}"));
    let path = uri.strip_prefix("ndn:").unwrap_or(uri);
    if !path.starts_with('/') {
        return fault("it does not begin with `/`");
    }
    if path.starts_with("//") {
        return fault("it begins with two slashes");
    }
    uri.parse().or_else(|e| fault(&format!("{e}")))
}

#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn push(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: &str,
    ) {
        self.0.push(Fault {
            key: key.into(),
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    pub(super) fn range<T: PartialOrd + std::fmt::Display>(
        &mut self,
        key: &str,
        value: T,
        min: T,
        max: T,
    ) {
        if value < min || value > max {
            self.push(
                key,
                format!("{value} is out of range"),
                &format!("use a number from {min} to {max}"),
            );
        }
    }

    /// The name at `key`, if it is one of at most `max_components` components.
    fn name(&mut self, key: &str, uri: &str, max_components: usize) -> Option<Name> {
        match parse_name(uri) {
            Ok(name) if name.len() > max_components => {
                self.push(
                    key,
                    format!("`{uri}` has {} components", name.len()),
                    &format!("write a name of at most {max_components}"),
                );
                None
            }
            Ok(name) => Some(name),
            Err(message) => {
                self.push(key, message, NAME_REMEDY);
                None
            }
        }
    }

    /// The FaceUri at `key`, if it is one and names an address rather than a
    /// host: what starts a router does not depend on a name server.
    fn face_uri(&mut self, key: &str, uri: &str) -> Option<FaceUri> {
        self.canonical(key, uri, uri.parse())
    }

    /// `uri` as what it was `parsed` to, if that needs no resolver.
    fn canonical(
        &mut self,
        key: &str,
        uri: &str,
        parsed: Result<FaceUri, FaceUriError>,
    ) -> Option<FaceUri> {
        match parsed {
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

    fn mtu(&mut self, key: &str, mtu_bytes: u64) {
        self.range(key, mtu_bytes, MIN_MTU_BYTES, MAX_MTU_BYTES);
    }

    /// A key that has been set though `reason` makes it of no effect.
    pub(super) fn idle(&mut self, key: &str, reason: &str) {
        self.push(
            key,
            format!("it does nothing: {reason}"),
            "remove the key, or change the other",
        );
    }
}

fn faces(config: &Config, found: &mut Faults) {
    let f = &config.faces;
    found.range("faces.max_faces", f.max_faces, 1, 1 << 20);
    found.range("faces.max_per_source", f.max_per_source, 0, 1 << 20);
    found.range("faces.silent_timeout_s", f.silent_timeout_s, 0, 86_400);
    // All faces together may hold no more, so one may not either.
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
        found.push(
            "faces.congestion_threshold_bytes",
            "packets would be dropped before any is marked",
            "choose less than faces.max_backlog_bytes",
        );
    }
    unix(&f.unix, found);
    udp(&f.udp, found);
    tcp(&f.tcp, found);
    websocket(&f.websocket, found);
    // Both are TCP to the kernel.
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
        found.push(
            "faces",
            "no packet can come in: the router listens nowhere and has no face",
            "write unix.enabled = true, or list an address in udp.listen or tcp.listen",
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
            format!("`{}` is not a usable mode", unix.mode),
            "write three octal digits that let the owner read and write, like \"0660\"",
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
    let default = WebSocket::default();
    if websocket.listen.is_empty() && websocket.idle_timeout_s != default.idle_timeout_s {
        found.idle(timeout, "faces.websocket.listen is empty");
    }
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
                    "write it like \"0.0.0.0:6363\" or \"[::]:6363\"",
                );
                continue;
            };
            if address.ip().is_multicast() {
                found.push(
                    here,
                    format!("{address} is a multicast group"),
                    "join it with [[faces.multicast]]",
                );
                continue;
            }
            if let Some(other) = known.insert(address) {
                found.push(
                    here,
                    format!("{address} is taken by {other}"),
                    "remove one of them, or choose another port; WebSocket's is 9696 by custom",
                );
            }
        }
    }
}

/// Addresses that one protocol listens on.
#[derive(Default)]
struct Addresses {
    exact: HashSet<(IpAddr, u16)>,
    /// Of each port and family the first address, and the one that stands for
    /// all if it is there.
    ports: HashMap<(u16, bool), (SocketAddr, Option<SocketAddr>)>,
}

impl Addresses {
    /// Adds `address`. Returns one that listens where it does. The kernel gives
    /// two that ask for port 0 different ones.
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
                "use 224.0.23.170:56363, or [ff02::1234]:56363 for IPv6",
            );
        }
        if !has_interface(&face.interface) {
            found.push(
                format!("{key}.interface"),
                format!("there is no network interface `{}`", face.interface),
                "use a name that `ip link` shows",
            );
        }
        found.range(&format!("{key}.hops"), face.hops, 1, 255);
        found.mtu(&format!("{key}.mtu_bytes"), face.mtu_bytes);
        if group.is_some_and(|group| !known.insert((&face.interface, group))) {
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
    found.range("tables.cs_packets", t.cs_packets, 0, MAX_SLOTS);
    found.range("tables.cs_bytes", t.cs_bytes, 0, 1 << 42);
    found.range("tables.routes", t.routes, 16, 1 << 30);
    found.range("tables.route_bytes", t.route_bytes, 1 << 12, 1 << 40);
    found.range("tables.dead_nonce_ms", t.dead_nonce_ms, 6000, 600_000);
    found.range("tables.dead_nonces", t.dead_nonces, 1 << 10, 1 << 30);
    level_pulling(t, found);
}

/// Below too few components, what is pulled would be most of the FIB; and a FIB of few
/// routes has never as many.
fn level_pulling(t: &Tables, found: &mut Faults) {
    const KEY: &str = "tables.fib_level_pulling";
    match t.fib_level_pulling {
        0 => {}
        n @ 1..MIN_LEVEL_PULLING => found.push(
            KEY,
            format!("a prefix that {n} components follow saves searches nothing"),
            &format!("use 0 for none, or a number from {MIN_LEVEL_PULLING} on, like 64"),
        ),
        n if n as usize >= t.routes => found.push(
            KEY,
            format!("no prefix is followed by more than {n} components, for tables.routes allows {} routes", t.routes),
            "use 0 for none, or a number below tables.routes",
        ),
        _ => {}
    }
}

/// The policies know best what makes sense.
fn content_store(config: &Config, found: &mut Faults) {
    let (store, t) = (&config.content_store, &config.tables);
    let Err(error) = store.policy(0).check() else {
        let capacity = CsCapacity {
            max_pkts: t.cs_packets,
            max_bytes: t.cs_bytes,
        };
        if let Err(reason) = store.check_memory(capacity.max_slots(), t.cs_bytes) {
            let key = match (store.admission, store.filter_history) {
                (Admission::Filter, 1..) => "content_store.filter_history",
                _ => "tables.cs_packets",
            };
            found.push(key, reason, "lower it, or raise tables.cs_bytes");
        }
        return;
    };
    let (key, remedy) = match error {
        PolicyError::Senseless { .. } => (
            "eviction",
            "use fifo, clock, sieve or lru behind this admission, or admission = \"none\"",
        ),
        PolicyError::Probability(_) => ("lcp_probability", "use a number from 0 to 1"),
        PolicyError::Threshold { .. } => ("filter_threshold", "use 2 unless measured otherwise"),
        _ => (
            "filter_history",
            "use 0 for as many as the store holds Data, or at least as many as filter_threshold",
        ),
    };
    found.push(format!("content_store.{key}"), error.to_string(), remedy);
}

fn forwarding(config: &Config, found: &mut Faults) {
    found.range(
        "forwarding.max_interest_lifetime_ms",
        config.forwarding.max_interest_lifetime_ms,
        DEFAULT_LIFETIME_MS,
        3_600_000,
    );
    found.range(
        "forwarding.burst_distance",
        config.forwarding.burst_distance.into(),
        1,
        MAX_BURST_DISTANCE as u64,
    );
    for (i, name) in config.forwarding.producer_region.iter().enumerate() {
        let key = format!("forwarding.producer_region[{i}]");
        found.name(&key, name, usize::MAX);
    }
    let mut known = HashSet::new();
    for (i, choice) in config.strategy.iter().enumerate() {
        let key = format!("strategy[{i}].prefix");
        let prefix = found.name(&key, &choice.prefix, MAX_PREFIX_COMPONENTS);
        if let Err(e) = strategies::find(&choice.strategy) {
            found.push(
                format!("strategy[{i}].strategy"),
                format!("`{}`: {e}", choice.strategy),
                &format!("use one of: {}", strategies::short_names().join(", ")),
            );
        }
        if prefix.is_some_and(|prefix| !known.insert(prefix)) {
            found.push(
                key,
                format!("{} has a strategy already", choice.prefix),
                "keep one [[strategy]] for each prefix",
            );
        }
    }
}

fn routes(config: &Config, found: &mut Faults) {
    let mut remotes = HashSet::new();
    static_faces(config, &mut remotes, found);
    let groups: HashSet<FaceUri> = config.faces.multicast.iter().flat_map(group_uri).collect();
    let max_components = RibLimits::default().max_name_components;
    let mut known: HashMap<Name, HashSet<FaceUri>> = HashMap::new();
    for (i, route) in config.route.iter().enumerate() {
        let prefix = format!("route[{i}].prefix");
        let name = found.name(&prefix, &route.prefix, max_components);
        let key = format!("route[{i}].next_hop");
        let Some(next_hop) = found.face_uri(&key, &route.next_hop) else {
            continue;
        };
        if groups.contains(&next_hop) {
            // By the faces of the group.
        } else if can_be_dialled(&next_hop) {
            remotes.insert(next_hop.clone());
        } else {
            found.undiallable(&key, &next_hop);
        }
        let Some(name) = name else { continue };
        let next_hops = known.entry(name).or_default();
        let message = format!("{} has a route to {next_hop} already", route.prefix);
        if !next_hops.insert(next_hop) {
            let remedy = "keep one [[route]] for each prefix and next hop";
            found.push(key, message, remedy);
        } else if next_hops.len() == MAX_NEXT_HOPS + 1 {
            found.push(
                prefix,
                format!("{} has too many routes", route.prefix),
                &format!("keep at most {MAX_NEXT_HOPS} for one prefix"),
            );
        }
    }
    let n_faces = remotes.len() + config.faces.multicast.len();
    if n_faces > config.faces.max_faces {
        found.push(
            "faces.max_faces",
            format!("[[face]], [[route]] and [[faces.multicast]] need {n_faces} faces"),
            "allow as many, and more for those who connect",
        );
    }
    let n_routes = config.route.len();
    if n_routes > config.tables.routes {
        found.push(
            "tables.routes",
            format!("there are {n_routes} [[route]]"),
            "allow as many, and more for programs that register",
        );
    }
}

/// Checks `[[face]]` and adds their remotes to `remotes`.
fn static_faces(config: &Config, remotes: &mut HashSet<FaceUri>, found: &mut Faults) {
    for (i, face) in config.face.iter().enumerate() {
        let key = format!("face[{i}].remote");
        let Some(remote) = found.face_uri(&key, &face.remote) else {
            continue;
        };
        if !can_be_dialled(&remote) {
            found.undiallable(&key, &remote);
        }
        if let Some(local) = &face.local {
            let key = format!("face[{i}].local");
            if matches!(local.as_str(), "never" | "loopback") {
                found.push(
                    key,
                    format!("`{local}` is not the address that the face is dialled from"),
                    &format!("write locality = \"{local}\""),
                );
                continue;
            }
            let local = found.canonical(&key, local, FaceUri::parse_local(local));
            if local.is_some_and(|local| !is_local_end_of(&local, &remote)) {
                found.push(
                    key,
                    format!("no face to {remote} begins there"),
                    "write a unicast address of the remote's scheme and IP version, or leave it out",
                );
            }
        }
        if let Some(mtu) = face.mtu_bytes {
            let key = format!("face[{i}].mtu_bytes");
            found.mtu(&key, mtu);
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
        if let Some(remote) = remotes.replace(remote) {
            found.push(
                key,
                format!("there is a face to {remote} already"),
                "keep one [[face]] for each remote",
            );
        }
    }
}

fn is_local_end_of(local: &FaceUri, remote: &FaceUri) -> bool {
    match (local, remote) {
        (FaceUri::Udp(a), FaceUri::Udp(b))
        | (FaceUri::Tcp(a), FaceUri::Tcp(b))
        | (FaceUri::WebSocket(a) | FaceUri::WebSocketClient(a), FaceUri::WebSocket(b)) => {
            a.is_ipv4() == b.is_ipv4() && !a.ip().is_multicast()
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

fn verification(config: &Config, found: &mut Faults) {
    let (rules, t) = (&config.verification, &config.tables);
    let remembered = "tables.verified_data";
    found.range(remembered, t.verified_data, 0, 1 << 24);
    if rules.is_empty() && t.verified_data != Tables::default().verified_data {
        found.idle(remembered, "there is no [[verification]]");
    }
    let mut known = HashSet::new();
    for (i, rule) in rules.iter().enumerate() {
        let key = format!("verification[{i}].prefix");
        let prefix = found.name(&key, &rule.prefix, MAX_PREFIX_COMPONENTS);
        if prefix.is_some_and(|prefix| !known.insert(prefix)) {
            found.push(
                key.as_str(),
                format!("Data under {} are verified already", rule.prefix),
                "keep one [[verification]] for each prefix; it may name several anchors",
            );
        }
        if i == MAX_VERIFICATION_RULES {
            found.push(
                key,
                format!("there are more than {MAX_VERIFICATION_RULES} [[verification]]"),
                "put prefixes with the same signers under a shorter one: each Data is \
                 compared with all of them",
            );
        }
        if let Err(fault) = trust::required_signature(rule) {
            let key = format!("verification[{i}].{}", fault.key);
            found.push(key, fault.message, fault.remedy);
        }
    }
}

fn management(config: &Config, found: &mut Faults) {
    let m = &config.management;
    found.range("management.queue_commands", m.queue_commands, 1, 1 << 20);
    for (i, rule) in m.authorize.iter().enumerate() {
        if let Err(fault) = trust::authorize_rule(rule) {
            let key = format!("management.authorize[{i}].{}", fault.key);
            found.push(key, fault.message, fault.remedy);
        }
    }
    let localhop = &m.localhop;
    if !localhop.enabled {
        let set = [
            ("any", localhop.any),
            ("anchors", !localhop.anchors.is_empty()),
            ("certificates", !localhop.certificates.is_empty()),
            ("signers_under", localhop.signers_under.is_some()),
            ("names", localhop.names.is_some()),
            (
                "min_cost",
                localhop.min_cost != Localhop::default().min_cost,
            ),
            ("allow_capture", localhop.allow_capture),
            (
                "max_expiry_s",
                localhop.max_expiry_s != Localhop::default().max_expiry_s,
            ),
        ];
        for (key, _) in set.iter().filter(|(_, is_set)| *is_set) {
            let key = format!("management.localhop.{key}");
            found.idle(&key, "management.localhop.enabled is false");
        }
    }
    let longest_s = 366 * 86_400;
    found.range(
        "management.localhop.max_expiry_s",
        localhop.max_expiry_s,
        0,
        longest_s,
    );
    if let Err(fault) = trust::announcements_policy(&m.announcements) {
        let key = format!("management.announcements.{}", fault.key);
        found.push(key, fault.message, fault.remedy);
    }
    if let Err(fault) = trust::localhop_rule(localhop) {
        let key = format!("management.localhop.{}", fault.key);
        found.push(key, fault.message, fault.remedy);
    }
}
