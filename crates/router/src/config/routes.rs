//! `[[face]]` and `[[route]]`: faces and routes that are created at start.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_manage::RibLimits;
use tachonym_packet::Name;
use tachonym_protocol::FaceUri;
use tachonym_tables::MAX_NEXT_HOPS;

use super::faults::Faults;
use super::{Config, Local, Multicast};

/// Whether a face stays when its connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Persistency {
    /// The face is removed when it fails.
    Persistent,
    /// The face stays and reconnects by itself.
    Permanent,
}

/// A face that is created at start.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticFace {
    /// FaceUri of the remote end: `udp4://192.0.2.1:6363`, `tcp6://[2001:db8::1]:6363`,
    /// `ws://192.0.2.1:9696` or `unix:///run/other.sock`. Host names are not looked up.
    #[schemars(example = &"udp4://192.0.2.1:6363")]
    pub remote: String,
    /// FaceUri of the local end, with the scheme of `remote`. Without a port, or with port
    /// 0, the system chooses the port. Without this key the router chooses the address.
    #[schemars(example = &"udp4://192.0.2.2:6363")]
    #[serde(default)]
    pub local: Option<String>,
    /// `permanent`: the face stays when its connection fails, and reconnects by itself.
    /// `persistent`: it is removed, with its routes. Without this key a face is permanent,
    /// except that a face to a Unix socket is persistent.
    #[serde(default)]
    pub persistency: Option<Persistency>,
    /// Largest datagram payload that is sent, in bytes; 128 to 65507, only over UDP.
    /// Without this key: 8800.
    #[schemars(example = 1452)]
    #[serde(default)]
    pub mtu_bytes: Option<u64>,
    /// Whether lost frames are sent again (NDNLPv2 reliability). The peer must support it.
    #[serde(default)]
    pub reliability: bool,
    /// Whether the face marks packets when its send queue grows. Without this key:
    /// `faces.congestion_marking`.
    #[serde(default)]
    pub congestion_marking: Option<bool>,
    /// Whether the router sends the incoming face of each packet to the peer, and the peer
    /// may choose next hops (NDNLPv2 local fields). Only for local faces.
    #[serde(default)]
    pub local_fields: bool,
    /// When the face is local (see `faces.tcp.local`). Without this key: the `local` of its
    /// transport. Write `never` for a neighbour behind a tunnel that ends on this machine.
    #[serde(default)]
    pub locality: Option<Local>,
}

/// A route that is created at start.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticRoute {
    /// Name prefix.
    #[schemars(example = &"/example")]
    pub prefix: String,
    /// FaceUri of the next hop. If no `[[face]]` has it as `remote`, a permanent face is
    /// created. If it is the group of a `[[faces.multicast]]`, the route leads to each face
    /// of that group.
    #[schemars(example = &"udp4://192.0.2.1:6363")]
    pub next_hop: String,
    /// Cost: `best-route` tries the next hop with the lowest cost first.
    #[serde(default)]
    pub cost: u64,
}

/// Checks `[[face]]` and `[[route]]`.
pub(super) fn check(config: &Config, found: &mut Faults) {
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
            // Through the faces of the group.
        } else if can_be_dialled(&next_hop) {
            remotes.insert(next_hop.clone());
        } else {
            undiallable(found, &key, &next_hop);
        }
        let Some(name) = name else { continue };
        let next_hops = known.entry(name).or_default();
        let message = format!("{} already has a route to {next_hop}", route.prefix);
        if !next_hops.insert(next_hop) {
            let remedy = "keep one [[route]] for each prefix and next hop";
            found.conflict(key, message, remedy);
        } else if next_hops.len() == MAX_NEXT_HOPS + 1 {
            found.conflict(
                prefix,
                format!("{} has too many routes", route.prefix),
                &format!("keep at most {MAX_NEXT_HOPS} for one prefix"),
            );
        }
    }
    let n_faces = remotes.len() + config.faces.multicast.len();
    if n_faces > config.faces.max_faces {
        found.conflict(
            "faces.max_faces",
            format!("[[face]], [[route]] and [[faces.multicast]] need {n_faces} faces"),
            "write a higher number, with room for peers that connect",
        );
    }
    let n_routes = config.route.len();
    if n_routes > config.tables.routes {
        found.conflict(
            "tables.routes",
            format!("the file has {n_routes} [[route]]"),
            "write a higher number, with room for routes that applications register",
        );
    }
}

/// Checks `[[face]]` and adds their remotes to `remotes`.
fn static_faces(config: &Config, remotes: &mut HashSet<FaceUri>, found: &mut Faults) {
    for (i, face) in config.face.iter().enumerate() {
        if face.local_fields && face.locality == Some(Local::Never) {
            found.conflict(
                format!("face[{i}].local_fields"),
                "only local faces have local fields, and this face is never local",
                "remove the key, or change locality",
            );
        }
        let key = format!("face[{i}].remote");
        let Some(remote) = found.face_uri(&key, &face.remote) else {
            continue;
        };
        if !can_be_dialled(&remote) {
            undiallable(found, &key, &remote);
        }
        if let Some(local) = &face.local {
            let key = format!("face[{i}].local");
            if matches!(local.as_str(), "never" | "loopback") {
                found.push(
                    key,
                    format!("`{local}` is not the FaceUri of a local end"),
                    &format!("write locality = \"{local}\""),
                );
                continue;
            }
            let local = found.canonical(&key, local, FaceUri::parse_local(local));
            if local.is_some_and(|local| !is_local_end_of(&local, &remote)) {
                found.conflict(
                    key,
                    format!("a face to {remote} cannot begin at this address"),
                    "write a unicast address with the scheme and IP version of remote, or remove \
                     the key",
                );
            }
        }
        if let Some(mtu) = face.mtu_bytes {
            let key = format!("face[{i}].mtu_bytes");
            found.mtu(&key, mtu);
            if !matches!(remote, FaceUri::Udp(_)) {
                found.conflict(key, "only UDP has an MTU", "remove the key");
            }
        }
        let is_unix = matches!(remote, FaceUri::Unix(_));
        if is_unix && face.persistency == Some(Persistency::Permanent) {
            found.conflict(
                format!("face[{i}].persistency"),
                "a face to a Unix socket cannot be permanent",
                "write \"persistent\", or remove the key",
            );
        }
        if let Some(remote) = remotes.replace(remote) {
            found.conflict(
                key,
                format!("there is already a face to {remote}"),
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

fn undiallable(found: &mut Faults, key: &str, uri: &FaceUri) {
    found.push(
        key,
        format!("the router cannot create a face to {uri}"),
        "write a unicast address such as udp4://192.0.2.1:6363, or unix:///run/other.sock",
    );
}
