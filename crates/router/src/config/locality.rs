//! Words for when a face is local, and for the transports that carry commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_face::Locality;
use tachonym_manage::CommandTransport;

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

#[cfg(test)]
mod tests {
    use tachonym_face::Localities;

    use super::*;
    use crate::config::Config;

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
