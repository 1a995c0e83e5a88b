//! Which faces are local, and which transports carry commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_face::{Localities, Locality};
use tachonym_manage::CommandTransport;

use super::faults::Faults;
use super::{Config, Faces, Management};

/// When a face is local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Local {
    /// Never.
    Never,
    /// If both ends are loopback addresses; a Unix socket always.
    Loopback,
}

impl From<Local> for Locality {
    fn from(local: Local) -> Self {
        match local {
            Local::Never => Self::Never,
            Local::Loopback => Self::Loopback,
        }
    }
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

/// A transport of local faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Unix sockets.
    Unix,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// WebSocket.
    Websocket,
}

impl From<Transport> for CommandTransport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Unix => Self::Unix,
            Transport::Tcp => Self::Tcp,
            Transport::Udp => Self::Udp,
            Transport::Websocket => Self::WebSocket,
        }
    }
}

/// Checks which faces are local, and that commands can arrive.
pub(super) fn check(config: &Config, found: &mut Faults) {
    origins(config, found);
    for (i, face) in config.face.iter().enumerate() {
        if face.local_fields && face.locality == Some(Local::Never) {
            found.conflict(
                format!("face[{i}].local_fields"),
                "only local faces have local fields, and this face is never local",
                "remove the key, or change locality",
            );
        }
    }
    transports(config, found);
}

fn origins(config: &Config, found: &mut Faults) {
    const KEY: &str = "faces.websocket.origins";
    let websocket = &config.faces.websocket;
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

/// Transports whose faces are never local carry no commands.
fn transports(config: &Config, found: &mut Faults) {
    let f = &config.faces;
    let is_dialled_locally = || {
        let mut faces = config.face.iter();
        faces.any(|face| face.locality == Some(Local::Loopback))
    };
    for (i, transport) in config.management.transports.iter().enumerate() {
        let (name, local) = match transport {
            Transport::Unix => ("unix", f.unix.local),
            Transport::Tcp => ("tcp", f.tcp.local),
            Transport::Udp => ("udp", f.udp.local),
            Transport::Websocket => ("websocket", f.websocket.local),
        };
        let is_default = Management::default().transports.contains(transport);
        if local == Local::Never && !is_default && !is_dialled_locally() {
            let reason = format!("faces.{name}.local is \"never\"");
            found.idle(&format!("management.transports[{i}]"), &reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and text of the one complaint about `text`.
    fn complaint(text: &str) -> (String, String) {
        let mut complaints = Config::parse(text).expect_err("a bad configuration");
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        let complaint = complaints.remove(0);
        let text = format!("{}; {}", complaint.message, complaint.remedy);
        (complaint.key, text)
    }

    #[test]
    fn unix_and_tcp_are_local_by_default_and_carry_commands() {
        let config = Config::default();
        assert_eq!(config.faces.localities(), Localities::default());
        let transports = &config.management.transports;
        assert_eq!(transports[..], [Transport::Unix, Transport::Tcp]);
        let text = "faces.tcp.local = \"never\"\nfaces.udp.local = \"loopback\"\n\
                    management.transports = []\n";
        let localities = Config::parse(text).expect("good").faces.localities();
        assert_eq!(localities.tcp, Locality::Never);
        assert_eq!(localities.udp, Locality::Loopback);
    }

    #[test]
    fn what_contradicts_the_scope_of_faces_is_reported() {
        let face = "[[face]]\nremote = \"tcp4://127.0.0.1:7000\"\n";
        let (key, text) = complaint(&format!("{face}local = \"never\"\n"));
        assert_eq!(key, "face[0].local");
        assert!(text.contains("locality = \"never\""), "{text}");
        let keys = "locality = \"never\"\nlocal_fields = true\n";
        let (key, _) = complaint(&format!("{face}{keys}"));
        assert_eq!(key, "face[0].local_fields");
        let (key, text) = complaint("management.transports = [\"unix\", \"udp\"]\n");
        assert_eq!(key, "management.transports[1]");
        assert!(text.contains("faces.udp.local"), "{text}");
        let dialled = "management.transports = [\"unix\", \"udp\"]\n\
                       [[face]]\nremote = \"udp4://127.0.0.1:7000\"\nlocality = \"loopback\"\n";
        Config::parse(dialled).expect("a face may be local");
    }

    #[test]
    fn an_origin_has_scheme_and_host_and_no_path() {
        let with = |origin: &str| format!("faces.websocket.origins = [\"{origin}\"]\n");
        for good in [
            "null",
            "https://a.example",
            "http://127.0.0.1:8080",
            "http://[::1]:80",
            "moz-extension://0f3a",
        ] {
            Config::parse(&with(good)).expect(good);
        }
        for bad in [
            "",
            "*",
            "a.example",
            "https://a.example/",
            "https://",
            "https://a b",
        ] {
            let (key, _) = complaint(&with(bad));
            assert_eq!(key, "faces.websocket.origins[0]", "{bad}");
        }
        let unused = format!("faces.websocket.listen = []\n{}", with("null"));
        assert_eq!(complaint(&unused).0, "faces.websocket.origins");
    }
}
