//! Faces and listeners as they are reported.

use std::time::Duration;

use tachonym_packet::{FaceId, SourceId};
use tachonym_protocol::{
    FaceEventKind, FacePersistency, FaceScope, FaceState, FaceUri, LinkType, face_flags,
};

use crate::counters::FaceCounters;
use crate::error::CloseReason;
use crate::options::LinkOptions;

/// A face at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaceInfo {
    /// Its number.
    pub id: FaceId,
    /// The other end.
    pub remote: FaceUri,
    /// This end.
    pub local: FaceUri,
    /// Whether the other end runs on this machine.
    pub scope: FaceScope,
    /// How many peers it reaches.
    pub link_type: LinkType,
    /// How long it lives.
    pub persistency: FacePersistency,
    /// What its link service does.
    pub link: LinkOptions,
    /// Largest datagram that it sends, in bytes; `None`: no limit.
    pub mtu_bytes: Option<u64>,
    /// Whose limits it shares; `None`: it has limits of its own.
    pub source: Option<SourceId>,
    /// Whether it can send.
    pub state: FaceState,
    /// Process that connected to a Unix listener, as SO_PEERCRED reports it; `None`:
    /// another transport, or a process outside this PID namespace.
    pub peer_pid: Option<u32>,
    /// Time until it is closed, if nothing is received.
    pub expires_in: Option<Duration>,
    /// Bytes that wait for it to take them.
    pub backlog_bytes: usize,
    /// Its counters.
    pub counters: FaceCounters,
}

impl FaceInfo {
    /// Whether it can send.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == FaceState::Up
    }

    /// The Flags of the management protocol.
    #[must_use]
    pub const fn flags(&self) -> u64 {
        let mut flags = 0;
        if self.link.local_fields {
            flags |= face_flags::LOCAL_FIELDS;
        }
        if self.link.reliability {
            flags |= face_flags::LP_RELIABILITY;
        }
        if self.link.congestion_marking {
            flags |= face_flags::CONGESTION_MARKING;
        }
        flags
    }
}

/// Something happened to a face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceEvent {
    /// What happened.
    pub kind: FaceEventKind,
    /// The face just after it; if it is gone, as it was last.
    pub face: FaceInfo,
    /// Why it is down or gone, if it is.
    pub reason: Option<CloseReason>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Where it listens, the port that the kernel chose included.
    pub local: FaceUri,
}
