//! What a face system is asked to be: plain values with documented defaults.

use std::time::Duration;

use crate::locality::Localities;
use crate::options::{Offload, UdpOptions};
use crate::share::SystemShare;

/// Limits and defaults of a whole face system, or of several of one router.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SystemOptions {
    /// Which of the systems of one router this is. Default the whole router. Of
    /// `max_faces`, `max_total_backlog_bytes` and `max_total_reassembly_bytes`,
    /// which are the router's, each system has an equal part, and takes no more
    /// though others have some left.
    pub share: SystemShare,
    /// Faces at a time. Default 65,536. A remote peer gets an on-demand face as
    /// long as half are free if it writes a datagram, or a quarter is if it
    /// connects; a program on this machine as long as a quarter is, or an eighth:
    /// remote peers lock out neither programs nor the operator. Beyond, a newcomer
    /// gets the face of the least useful remote peer that made one, if that gives way
    /// (see `system/eviction.rs`).
    pub max_faces: usize,
    /// On-demand faces at a time of one remote source: an IPv4 address, or an IPv6
    /// prefix of 64 bits; 0: no limit. All systems of a router count together. A
    /// further one replaces the least useful of them. Default 0.
    pub max_faces_per_source: usize,
    /// On-demand faces of remote peers that have sent no Interest in this time are
    /// closed; `None`: they are not. Default 10 s.
    pub silent_timeout: Option<Duration>,
    /// Bytes that may wait for one face to take them; beyond, packets to it
    /// are dropped. Default 16 MiB.
    pub max_face_backlog_bytes: usize,
    /// Bytes that may wait for any face, as far as `max_face_backlog_bytes`
    /// allows, however much waits for others. Default 64 KiB.
    pub face_backlog_reserve_bytes: usize,
    /// Bytes that may wait for all faces together beyond the reserve of each.
    /// No face may have more of them than are free. All that waits is bounded
    /// by `max_total_backlog_bytes + max_faces * face_backlog_reserve_bytes`.
    /// Default 256 MiB.
    pub max_total_backlog_bytes: usize,
    /// Connections whose peer has taken nothing of what waits, or left a packet
    /// unfinished, for this long are closed; the latter not of WebSockets.
    /// Default 30 s.
    pub stall_timeout: Duration,
    /// Bytes of incomplete packets, of all faces together. No source may have
    /// more of them than are free. Default 64 MiB.
    pub max_total_reassembly_bytes: usize,
    /// Receive buffer of each UDP socket, as far as the system allows.
    /// Default 8 MiB.
    pub udp_receive_buffer_bytes: usize,
    /// Send buffer of each UDP socket, as far as the system allows.
    /// Default 2 MiB.
    pub udp_send_buffer_bytes: usize,
    /// Whether UDP uses segmentation and coalescing by the kernel.
    pub udp_offload: Offload,
    /// How long a connection or handshake may take. Default 8 s.
    pub connect_timeout: Duration,
    /// A WebSocket from which nothing came for this long is sent a ping, and closed if
    /// nothing comes for as long again. Default 10 s.
    pub websocket_ping_interval: Duration,
    /// First wait before a permanent face dials again. Doubles with every
    /// failure up to `max_redial_wait`. Default 1 s.
    pub redial_wait: Duration,
    /// Longest wait before a permanent face dials again. Default 60 s.
    pub max_redial_wait: Duration,
    /// Which faces count as local, by their transport.
    pub localities: Localities,
}

impl Default for SystemOptions {
    fn default() -> Self {
        Self {
            share: SystemShare::default(),
            max_faces: 65_536,
            max_faces_per_source: 0,
            silent_timeout: Some(Duration::from_secs(10)),
            max_face_backlog_bytes: 16 << 20,
            face_backlog_reserve_bytes: 64 << 10,
            max_total_backlog_bytes: 256 << 20,
            stall_timeout: Duration::from_secs(30),
            max_total_reassembly_bytes: 64 << 20,
            udp_receive_buffer_bytes: 8 << 20,
            udp_send_buffer_bytes: 2 << 20,
            udp_offload: Offload::Auto,
            connect_timeout: Duration::from_secs(8),
            websocket_ping_interval: Duration::from_secs(10),
            redial_wait: Duration::from_secs(1),
            max_redial_wait: Duration::from_secs(60),
            localities: Localities::default(),
        }
    }
}

impl SystemOptions {
    /// For each UDP socket.
    pub(super) fn udp(&self) -> UdpOptions {
        UdpOptions {
            receive_buffer_bytes: self.udp_receive_buffer_bytes,
            send_buffer_bytes: self.udp_send_buffer_bytes,
            offload: self.udp_offload,
        }
    }
}
