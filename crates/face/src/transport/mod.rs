//! What carries frames: streams, datagrams, WebSocket messages.
//!
//! Each module owns the sockets of one kind and their states. None of them
//! looks into a frame, and none knows the other faces. Next: `stream` for Unix
//! and TCP, `udp` for sockets that many faces share, `websocket`.

pub(crate) mod handshake;
pub(crate) mod stream;
pub(crate) mod udp;
pub(crate) mod websocket;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tachonym_packet::MonoNs;

use crate::poller::SocketKey;
use stream::Stream;
use websocket::WebSocketTransport;

/// How a face reaches its peers.
pub(crate) enum Transport {
    /// A connection of its own, Unix or TCP.
    Stream(Stream),
    /// One peer of a UDP socket.
    Udp(UdpPeer),
    /// All peers of a multicast socket.
    Multicast(SocketKey),
    /// A WebSocket connection of its own.
    WebSocket(Box<WebSocketTransport>),
}

/// One peer of a UDP socket.
pub(crate) struct UdpPeer {
    pub(crate) socket: SocketKey,
    /// Where what it sends arrives, if that is not `socket`.
    pub(crate) branch: Option<SocketKey>,
    pub(crate) remote: SocketAddr,
    /// The address of ours that it uses, where the socket has several.
    pub(crate) source: Option<IpAddr>,
    /// Datagrams up to this size may leave segmented by the kernel.
    pub(crate) max_segment_bytes: u32,
    /// Whether a branch may be opened for it: the last attempt has not failed.
    pub(crate) may_branch: bool,
}

/// Where to dial, again and again if need be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DialTarget {
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: SocketAddr,
}

/// When to dial next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redial {
    wait: Duration,
}

impl Redial {
    pub(crate) fn new(first_wait: Duration) -> Self {
        Self { wait: first_wait }
    }

    /// When to dial after a failure now; the next wait is twice as long.
    pub(crate) fn next(&mut self, now: MonoNs, max_wait: Duration) -> MonoNs {
        let at = now + self.wait;
        self.wait = (self.wait * 2).min(max_wait);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let mut redial = Redial::new(Duration::from_secs(1));
        let waits: Vec<u64> = (0..8)
            .map(|_| redial.next(MonoNs::ZERO, Duration::from_secs(60)).0 / 1_000_000_000)
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
