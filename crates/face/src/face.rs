//! One face: a transport, a link service, a queue, and what is known about it.

use std::time::Duration;

use tachonym_packet::lp::FaceId;
use tachonym_packet::{MonoNs, SourceId};
use tachonym_protocol::{FacePersistency, FaceScope, FaceUri, LinkType};

use crate::counters::{DropReason, FaceCounters};
use crate::error::CloseReason;
use crate::info::FaceInfo;
use crate::link::Link;
use crate::options::LinkOptions;
use crate::share::Ticket;
use crate::transport::Transport;
use crate::transport::handshake::Sender;
use crate::transport::stream::StreamState;
use crate::tx_queue::TxQueue;

/// Whether packets may be given to a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaceState {
    /// It sends.
    Up,
    /// It is being connected for the first time; packets wait for that.
    Connecting,
    /// It has failed and comes back by itself; packets are dropped.
    Down,
    /// It has failed, or was told to go, and is about to be removed.
    Closing(CloseReason),
}

/// See the module documentation.
pub(crate) struct Face {
    pub(crate) id: FaceId,
    pub(crate) state: FaceState,
    /// Whether its Created event was emitted. An accepted WebSocket exists without
    /// one until its handshake has said whose it is.
    pub(crate) is_announced: bool,
    pub(crate) is_dirty: bool,
    pub(crate) transport: Transport,
    pub(crate) link: Link,
    pub(crate) tx: TxQueue,
    /// Bytes that were taken from `tx` and lie in a buffer of the transport.
    pub(crate) unsent_bytes: usize,
    pub(crate) counters: FaceCounters,
    pub(crate) created_at: MonoNs,
    pub(crate) last_received_at: MonoNs,
    /// The time of its alarm; NEVER if none.
    pub(crate) armed_at: MonoNs,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) silent_timeout: Option<Duration>,
    /// What its link has to send waits until the kernel takes more.
    pub(crate) is_held: bool,
    /// Since when it has been blocked without the kernel taking anything;
    /// NEVER: it is not.
    pub(crate) blocked_since: MonoNs,
    pub(crate) stall_timeout: Duration,
    pub(crate) remote: FaceUri,
    pub(crate) local: FaceUri,
    pub(crate) scope: FaceScope,
    pub(crate) link_type: LinkType,
    pub(crate) persistency: FacePersistency,
    /// Process that connected to a Unix listener.
    pub(crate) peer_pid: Option<u32>,
    /// Of a connection that a listener of several systems has accepted.
    pub(crate) _ticket: Option<Ticket>,
}

impl Face {
    /// Whose limits it shares: those of its peer's address, if a remote peer made it.
    /// Local programs, multicast groups and faces that the operator asked for have
    /// limits of their own.
    pub(crate) fn source(&self) -> Option<SourceId> {
        let is_shared = self.scope == FaceScope::NonLocal
            && self.persistency == FacePersistency::OnDemand
            && self.link_type == LinkType::PointToPoint;
        let peer = self.remote.socket_addr().filter(|_| is_shared);
        peer.map(|peer| SourceId::of_peer(&peer))
    }

    /// Bytes that wait for the kernel to take them.
    #[inline]
    pub(crate) fn backlog_bytes(&self) -> usize {
        self.tx.len_bytes() + self.unsent_bytes
    }

    /// Whether it was accepted from a web page, or from the client of a proxy.
    pub(crate) fn is_indirect(&self) -> bool {
        match &self.transport {
            Transport::WebSocket(socket) => socket.sender() == Some(Sender::PageOrProxy),
            _ => false,
        }
    }

    /// Changes its scope. Local fields are for local faces alone.
    pub(crate) fn set_scope(&mut self, scope: FaceScope) {
        self.scope = scope;
        let options = *self.link.options();
        self.link.set_options(LinkOptions {
            local_fields: options.local_fields && scope == FaceScope::Local,
            ..options
        });
    }

    /// When it is closed for having received nothing.
    fn idle_deadline(&self) -> Option<MonoNs> {
        let timeout = self.idle_timeout?;
        (self.persistency == FacePersistency::OnDemand).then(|| self.last_received_at + timeout)
    }

    /// Whether it has been idle for too long.
    pub(crate) fn is_idle(&self, now: MonoNs) -> bool {
        self.idle_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When it is closed for its peer having made it and said nothing. What is said is an
    /// Interest, a command included, or a Data that was asked for.
    fn silent_deadline(&self) -> Option<MonoNs> {
        let timeout = self.silent_timeout?;
        let has_spoken =
            self.counters.n_in_interests > 0 || self.link.last_exchange_at() != MonoNs::ZERO;
        let is_expected = self.persistency == FacePersistency::OnDemand
            && self.scope == FaceScope::NonLocal
            && !has_spoken;
        is_expected.then(|| self.created_at + timeout)
    }

    /// Whether its peer has been silent since it made it, for too long.
    pub(crate) fn is_silent(&self, now: MonoNs) -> bool {
        self.silent_deadline()
            .is_some_and(|deadline| deadline <= now)
    }

    /// When it is closed for the peer having taken nothing, or not having finished
    /// a packet.
    fn stall_deadline(&self) -> Option<MonoNs> {
        let unfinished_since = match &self.transport {
            Transport::Stream(stream) => stream.unfinished_since,
            _ => MonoNs::NEVER,
        };
        let since = self.blocked_since.min(unfinished_since);
        (since != MonoNs::NEVER).then(|| since + self.stall_timeout)
    }

    /// Whether the peer has been in the middle of something for too long.
    pub(crate) fn is_stalled(&self, now: MonoNs) -> bool {
        self.stall_deadline()
            .is_some_and(|deadline| deadline <= now)
    }

    /// Counts the packet that will not be finished any more, if there is one.
    pub(crate) fn count_unfinished(&mut self) {
        if let Transport::Stream(stream) = &mut self.transport
            && stream.unfinished_since != MonoNs::NEVER
        {
            stream.unfinished_since = MonoNs::NEVER;
            self.counters.drops.add(DropReason::Malformed, 1);
        }
    }

    /// When its connection must be looked after.
    pub(crate) fn transport_deadline(&self) -> Option<MonoNs> {
        match &self.transport {
            Transport::Stream(stream) => match stream.state {
                StreamState::Open => None,
                StreamState::Connecting(at) | StreamState::Waiting(at) => Some(at),
            },
            Transport::WebSocket(socket) => socket.deadline(),
            Transport::Udp(_) | Transport::Multicast(_) => None,
        }
    }

    /// When its peer is looked after.
    pub(crate) fn check_deadline(&self) -> Option<MonoNs> {
        match &self.transport {
            Transport::WebSocket(socket) => socket.check_deadline(),
            _ => None,
        }
    }

    /// When it next needs attention.
    pub(crate) fn deadline(&self) -> MonoNs {
        [
            self.idle_deadline(),
            self.silent_deadline(),
            self.stall_deadline(),
            self.transport_deadline(),
            self.check_deadline(),
            self.link.reassembly_timeout(),
            // A link that cannot send has nothing to send.
            self.link
                .due_at()
                .filter(|_| self.state == FaceState::Up && !self.is_held),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(MonoNs::NEVER)
    }

    pub(crate) fn info(&self, now: MonoNs) -> FaceInfo {
        FaceInfo {
            id: self.id,
            remote: self.remote.clone(),
            local: self.local.clone(),
            scope: self.scope,
            link_type: self.link_type,
            persistency: self.persistency,
            link: *self.link.options(),
            mtu_bytes: self.link.mtu_bytes().map(|mtu| mtu as u64),
            source: self.source(),
            state: match self.state {
                FaceState::Up => tachonym_protocol::FaceState::Up,
                FaceState::Connecting => tachonym_protocol::FaceState::Connecting,
                FaceState::Down | FaceState::Closing(_) => tachonym_protocol::FaceState::Down,
            },
            peer_pid: self.peer_pid,
            expires_in: self
                .idle_deadline()
                .map(|deadline| deadline.saturating_since(now)),
            backlog_bytes: self.backlog_bytes(),
            counters: self.counters,
        }
    }
}
