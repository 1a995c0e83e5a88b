//! What a face is and what became of it: options, status, counters, events,
//! errors.

use std::time::Duration;

use tachonym_packet::FaceId;
use tachonym_protocol::{FacePersistency, FaceScope, FaceUri, LinkType};

/// Limits and defaults of a [`FaceSystem`](crate::FaceSystem).
#[derive(Clone, Debug)]
pub struct SystemOptions {
    /// Most faces at once.
    pub max_faces: usize,
    /// Most bytes that wait to be sent on one stream face, or on one UDP socket.
    pub max_backlog_bytes: usize,
    /// Receive and send buffer asked of the kernel for each UDP socket, in bytes.
    pub socket_buffer_bytes: usize,
    /// Silence after which an on-demand UDP face goes; `None`: never.
    pub udp_idle_timeout: Option<Duration>,
    /// Silence after which an on-demand TCP face goes; `None`: never.
    pub tcp_idle_timeout: Option<Duration>,
    /// Options of faces that peers open.
    pub on_demand: FaceOptions,
}

impl Default for SystemOptions {
    fn default() -> Self {
        Self {
            max_faces: 4096,
            max_backlog_bytes: 1 << 20,
            socket_buffer_bytes: 8 << 20,
            udp_idle_timeout: Some(Duration::from_secs(600)),
            tcp_idle_timeout: None,
            on_demand: FaceOptions::default(),
        }
    }
}

/// Options of one face's link service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaceOptions {
    /// Whether local fields are honoured and sent.
    pub local_fields: bool,
    /// Whether packets are marked while the send queue is long.
    pub congestion_marking: bool,
    /// First interval between two marks.
    pub congestion_interval: Duration,
    /// Length of the send queue from which packets are marked, in bytes.
    pub congestion_threshold_bytes: u64,
    /// Largest frame sent, in bytes; datagram faces fragment what is larger.
    pub mtu_bytes: usize,
}

impl Default for FaceOptions {
    fn default() -> Self {
        Self {
            local_fields: false,
            congestion_marking: true,
            congestion_interval: Duration::from_millis(100),
            congestion_threshold_bytes: 65_536,
            mtu_bytes: tachonym_packet::types::MAX_PACKET_BYTES,
        }
    }
}

/// Which face to open.
#[derive(Clone, Debug)]
pub struct FaceParams {
    /// Where to; canonical.
    pub remote: FaceUri,
    /// From where; `None`: the system chooses.
    pub local: Option<FaceUri>,
    /// What ends the face.
    pub persistency: FacePersistency,
    /// Everything else.
    pub options: FaceOptions,
}

/// What to change of a face; `None` leaves a property as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaceUpdate {
    /// What ends the face.
    pub persistency: Option<FacePersistency>,
    /// Everything else.
    pub options: Option<FaceOptions>,
}

/// What came of opening a face.
#[derive(Clone, Debug)]
pub enum CreateOutcome {
    /// A new face.
    New(FaceId),
    /// There was one to that peer already; it is as it was.
    Existing(FaceId),
}

/// Why a face could not be opened, or a listener not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Nothing here opens faces of this scheme.
    #[error("faces of scheme {0} cannot be opened")]
    UnsupportedScheme(&'static str),
    /// The FaceUri names no address.
    #[error("FaceUri is not canonical: name an address and a port")]
    NotCanonical,
    /// The limit on faces is reached.
    #[error("there are {0} faces already, the configured limit")]
    TooManyFaces(usize),
    /// Another program listens on this Unix socket.
    #[error("a program listens on {0} already; stop it or choose another path")]
    AddressInUse(String),
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Why a face went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// Management asked for it.
    Requested,
    /// The peer closed the connection.
    PeerClosed,
    /// What came on a stream was no sequence of NDN packets.
    MalformedStream,
    /// The connection failed.
    ConnectionFailed,
    /// Nothing came for too long.
    Idle,
}

/// Why a frame was dropped on a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum DropReason {
    /// Neither an LpPacket nor an Interest or Data, or malformed.
    Malformed,
    /// A local field came where they are not enabled.
    LocalFieldDisabled,
    /// A header field makes no sense on its packet.
    MisplacedHeader,
    /// A fragment without its sequence number, or of too many.
    BadFragment,
    /// No room for another partial packet; the oldest one went.
    ReassemblyFull,
    /// A packet's missing fragments did not come in time.
    ReassemblyTimeout,
    /// The send queue was full.
    BacklogFull,
    /// The packet does not fit the MTU and this face does not fragment.
    ExceedsMtu,
    /// The operating system refused to send it.
    SendFailed,
    /// The batch had no room for the packet.
    BatchFull,
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::LocalFieldDisabled,
        Self::MisplacedHeader,
        Self::BadFragment,
        Self::ReassemblyFull,
        Self::ReassemblyTimeout,
        Self::BacklogFull,
        Self::ExceedsMtu,
        Self::SendFailed,
        Self::BatchFull,
    ];
}

/// Counters of one face.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaceCounters {
    /// Interests received.
    pub n_in_interests: u64,
    /// Data received.
    pub n_in_data: u64,
    /// Nacks received.
    pub n_in_nacks: u64,
    /// Interests sent.
    pub n_out_interests: u64,
    /// Data sent.
    pub n_out_data: u64,
    /// Nacks sent.
    pub n_out_nacks: u64,
    /// Bytes of frames received.
    pub n_in_bytes: u64,
    /// Bytes of frames sent.
    pub n_out_bytes: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl FaceCounters {
    /// Frames dropped for `reason`.
    #[must_use]
    pub const fn n_dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

/// System calls and frames of the whole system: their quotient is what a packet
/// costs the kernel's door.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemCounters {
    /// Calls that waited for readiness.
    pub n_poll_calls: u64,
    /// Calls that received.
    pub n_rx_calls: u64,
    /// Calls that sent.
    pub n_tx_calls: u64,
    /// Frames received.
    pub n_rx_frames: u64,
    /// Frames sent.
    pub n_tx_frames: u64,
    /// Peers turned away because there were too many faces.
    pub n_refused_peers: u64,
}

/// What a face is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceInfo {
    /// Its number, never used again.
    pub id: FaceId,
    /// The peer.
    pub remote: FaceUri,
    /// This end.
    pub local: FaceUri,
    /// How far it reaches.
    pub scope: FaceScope,
    /// What ends it.
    pub persistency: FacePersistency,
    /// What kind of link it is.
    pub link_type: LinkType,
    /// Its link service.
    pub options: FaceOptions,
    /// Whether it can send now.
    pub is_up: bool,
}

/// A face came, went, or changed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaceEvent {
    /// A face is there.
    Created(FaceInfo),
    /// A face is gone.
    Destroyed {
        /// What it was.
        info: FaceInfo,
        /// Why it went.
        reason: CloseReason,
    },
    /// A face can send again.
    Up(FaceInfo),
    /// A face cannot send for now.
    Down(FaceInfo),
}
