//! Which faces count as faces of this machine.
//!
//! Owns the rule by which the scope of a face follows from its listener or from
//! what created it, and from its two addresses. That both ends are loopback
//! addresses is not enough by itself: a proxy, a tunnel or a browser on this
//! machine carries what others send. Local faces may use `/localhost`, local
//! fields, and the faces that are kept for them.
//! Source: NFD Developer's Guide, "Face System" (static properties: scope).

use std::net::SocketAddr;

use tachonym_protocol::{FaceScope, FaceUri};

/// When a face counts as local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// Never.
    Never,
    /// If both ends are loopback addresses; a Unix face always.
    Loopback,
}

impl Locality {
    /// The scope of a face between two addresses.
    pub(crate) fn scope(self, own: SocketAddr, remote: SocketAddr) -> FaceScope {
        self.scope_if(own.ip().is_loopback() && remote.ip().is_loopback())
    }

    /// The scope of a face over a Unix socket.
    pub(crate) fn unix_scope(self) -> FaceScope {
        self.scope_if(true)
    }

    /// The scope of a face with these two ends, of whatever transport.
    pub(crate) fn scope_between(self, own: &FaceUri, remote: &FaceUri) -> FaceScope {
        match (own.socket_addr(), remote.socket_addr()) {
            (Some(own), Some(remote)) => self.scope(own, remote),
            // The ends of a Unix face have no address; of a multicast face, one has.
            (None, None) => self.unix_scope(),
            _ => FaceScope::NonLocal,
        }
    }

    fn scope_if(self, is_loopback: bool) -> FaceScope {
        if self == Self::Loopback && is_loopback {
            FaceScope::Local
        } else {
            FaceScope::NonLocal
        }
    }
}

/// When faces of each transport count as local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Localities {
    /// Unix sockets. Default [`Locality::Loopback`].
    pub unix: Locality,
    /// TCP. Default [`Locality::Loopback`].
    pub tcp: Locality,
    /// UDP. Default [`Locality::Never`], as in NFD: a datagram shows its sender by
    /// an address that the sender writes.
    pub udp: Locality,
    /// WebSocket. Default [`Locality::Never`]: any web page may connect.
    pub websocket: Locality,
}

impl Localities {
    /// For a face to `remote`, which may be dialled.
    pub(crate) fn of(&self, remote: &FaceUri) -> Locality {
        match remote {
            FaceUri::Unix(_) | FaceUri::Fd(_) => self.unix,
            FaceUri::Tcp(_) => self.tcp,
            FaceUri::Udp(_) => self.udp,
            FaceUri::WebSocket(_) | FaceUri::WebSocketClient(_) => self.websocket,
            _ => Locality::Never,
        }
    }
}

impl Default for Localities {
    fn default() -> Self {
        Self {
            unix: Locality::Loopback,
            tcp: Locality::Loopback,
            udp: Locality::Never,
            websocket: Locality::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_at_both_ends_is_local_and_only_where_that_counts() {
        let uri = |text: &str| text.parse::<FaceUri>().unwrap();
        let (here, there) = (uri("tcp4://127.0.0.1:1"), uri("tcp4://192.0.2.1:2"));
        let other = uri("tcp4://127.0.0.9:3");
        let group = uri("udp4://224.0.23.170:56363");
        let device = FaceUri::UdpDev {
            family: tachonym_protocol::IpFamily::V4,
            interface: "lo".into(),
            port: 56363,
        };
        let (socket, descriptor) = (uri("unix:///s"), uri("fd://7"));
        let cases = [
            (&here, &other, true),
            (&here, &there, false),
            (&there, &here, false),
            (&socket, &descriptor, true),
            (&device, &group, false),
        ];
        for (own, remote, is_local) in cases {
            let scope = Locality::Loopback.scope_between(own, remote);
            assert_eq!(scope == FaceScope::Local, is_local, "{own} {remote}");
            let scope = Locality::Never.scope_between(own, remote);
            assert_eq!(scope, FaceScope::NonLocal, "{own} {remote}");
        }
    }
}
