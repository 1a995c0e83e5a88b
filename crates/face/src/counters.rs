//! What the faces count.
//!
//! Owns the counters of a face, those of the whole system, and the reasons for
//! which a packet is dropped. Nothing is dropped without one of them.

/// Defines the reasons for a drop, their number and their names.
macro_rules! drop_reasons {
    ($($(#[$meta:meta])* $variant:ident = $text:literal;)+) => {
        /// Why a packet or a datagram got no further.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DropReason {
            $($(#[$meta])* $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order of the counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name operators see: lower case, words joined by hyphens.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

drop_reasons! {
    /// Received: no LpPacket, Interest or Data, or a malformed one.
    Malformed = "malformed-frame";
    /// Received: a datagram that does not hold exactly one packet.
    BadDatagram = "bad-datagram";
    /// Received: an outer type that is not Interest, Data or LpPacket. It ends a
    /// stream: its peer speaks another protocol.
    NotNdn = "not-ndn";
    /// Received: a WebSocket handshake from an origin that is not accepted. It is
    /// answered with 403.
    OriginRefused = "origin-refused";
    /// Received: longer than a frame may be.
    TooLarge = "frame-too-large";
    /// Received: the fragment is neither Interest nor Data.
    UnknownPacketType = "unknown-packet-type";
    /// Received: a header field that makes no sense on its packet.
    MisplacedHeader = "misplaced-header";
    /// Received: an Interest or Nack with a local field, where those are not enabled.
    LocalFieldsDisabled = "local-fields-disabled";
    /// Received: a fragment without Sequence, with too high a FragCount, or
    /// one that contradicts the others of its packet.
    BadFragment = "bad-fragment";
    /// Received: a fragment or packet that had come before.
    Duplicate = "duplicate-fragment";
    /// Received: fragments whose packet was not complete in time.
    ReassemblyTimeout = "reassembly-timeout";
    /// Received: fragments that gave way to others, the memory for
    /// incomplete packets being bounded.
    ReassemblyOverflow = "reassembly-overflow";
    /// Received: from an address that no face belongs to, where none is made.
    UnknownPeer = "unknown-peer";
    /// Received: from a new peer, with no more faces allowed.
    TooManyFaces = "too-many-faces";
    /// Received: from a new peer whose source has as many faces as it may, all of them
    /// new.
    TooManyFacesOfSource = "too-many-faces-of-source";
    /// Received: from a new UDP peer, and no Interest: for an IDLE packet, a Data, a
    /// Nack or a later fragment no face is made.
    NoInterest = "no-interest-from-new-peer";
    /// Received: for management, from a face of which too many commands were
    /// refused. Counted by whoever takes the frames.
    Throttled = "throttled-command";
    /// Received: for management, where the face's share of the commands that
    /// may wait is used up. Counted by whoever takes the frames.
    CommandShareFull = "command-share-full";
    /// Received: a Data that has to be signed by a key, and is not. This and the following
    /// ones about signatures are counted by whoever takes the frames.
    UnsignedData = "unsigned-data";
    /// Received: a Data that is signed by a key that nobody here knows.
    UnknownKey = "unknown-key";
    /// Received: a Data that is signed by a key that may not sign it.
    KeyNotAuthorized = "key-not-authorized";
    /// Received: a Data whose name is not under the identity of the key that signed it.
    NameNotUnderSigner = "name-not-under-signer";
    /// Received: a Data that is signed by a key whose certificates do not hold now.
    KeyExpired = "key-expired";
    /// Received: a Data whose signature is of another type than it has to be.
    WrongSignatureType = "wrong-signature-type";
    /// Received: a Data whose signature is wrong.
    BadSignature = "bad-signature";
    /// Sending: there is no such face.
    NoSuchFace = "no-such-face";
    /// Sending: the face is down.
    FaceDown = "face-down";
    /// Sending: the face's backlog is full.
    BacklogFull = "backlog-full";
    /// Sending: the face's reserve is full, and so is what all faces share.
    TotalBacklogFull = "total-backlog-full";
    /// Sending: larger than a packet may be, or than the MTU lets fragments
    /// carry.
    OverMtu = "over-mtu";
    /// Sending: the kernel refused the datagram.
    SendError = "send-error";
    /// Sending: the packet was lost with its connection.
    ConnectionLost = "connection-lost";
    /// Sending: not acknowledged after every retransmission.
    RetransmissionsExhausted = "retransmissions-exhausted";
}

/// How many reasons there are.
pub const N_DROP_REASONS: usize = DropReason::ALL.len();

/// Drops by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCounts([u64; N_DROP_REASONS]);

impl Default for DropCounts {
    fn default() -> Self {
        Self([0; N_DROP_REASONS])
    }
}

impl DropCounts {
    /// How many were dropped for `reason`.
    #[must_use]
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// How many were dropped altogether.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().copied().zip(self.0.iter().copied())
    }

    #[inline]
    pub(crate) fn add(&mut self, reason: DropReason, n: u64) {
        self.0[reason as usize] += n;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// Counters of one face since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaceCounters {
    /// Interests received, after reassembly.
    pub n_in_interests: u64,
    /// Data received.
    pub n_in_data: u64,
    /// Nacks received.
    pub n_in_nacks: u64,
    /// Frames received: LpPackets (fragments and IDLE too) and bare packets.
    pub n_in_frames: u64,
    /// Bytes of frames received.
    pub n_in_bytes: u64,
    /// Interests sent.
    pub n_out_interests: u64,
    /// Data sent.
    pub n_out_data: u64,
    /// Nacks sent.
    pub n_out_nacks: u64,
    /// Frames sent: LpPackets (fragments, retransmissions and IDLE too) and
    /// bare packets.
    pub n_out_frames: u64,
    /// Bytes of frames sent.
    pub n_out_bytes: u64,
    /// Packets marked as congested here, received and sent.
    pub n_congestion_marked: u64,
    /// Fragments sent again.
    pub n_retransmitted: u64,
    /// Fragments sent unwatched because too many were waiting for their
    /// acknowledgement.
    pub n_unwatched: u64,
    /// Drops, received and sent.
    pub drops: DropCounts,
}

/// Counters of a face system since it was created, over all its faces, the
/// gone ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemCounters {
    /// System calls that receive.
    pub n_rx_syscalls: u64,
    /// System calls that send.
    pub n_tx_syscalls: u64,
    /// System calls that wait for readiness.
    pub n_poll_syscalls: u64,
    /// System calls that look at queue lengths or change what is waited for.
    pub n_control_syscalls: u64,
    /// Network-layer packets received.
    pub n_in_packets: u64,
    /// Network-layer packets sent.
    pub n_out_packets: u64,
    /// Datagrams that the kernel dropped because a receive buffer was full,
    /// as far as it was asked.
    pub n_kernel_drops: u64,
    /// Connections accepted.
    pub n_accepted: u64,
    /// Connections turned away because there were too many faces, or because
    /// the system did not let them be waited for. They are not accepted ones.
    pub n_refused: u64,
    /// Of these, connections turned away because their source had as many faces as it
    /// may.
    pub n_refused_of_source: u64,
    /// On-demand faces closed for a newcomer.
    pub n_evicted: u64,
    /// On-demand faces closed because their peer had never sent an Interest.
    pub n_silent: u64,
    /// WebSocket connections closed because a ping was not answered.
    pub n_unanswered_pings: u64,
    /// Times that a listener stopped accepting for a while, for want of
    /// descriptors or memory. Connections wait meanwhile.
    pub n_accept_pauses: u64,
    /// Connections given up because the other end took nothing for too long.
    pub n_stalled: u64,
    /// Drops of all faces, and of packets that belonged to none.
    pub drops: DropCounts,
}

impl SystemCounters {
    /// System calls per packet received or sent; 0 without any packet.
    #[must_use]
    pub fn syscalls_per_packet(&self) -> f64 {
        let n_packets = self.n_in_packets + self.n_out_packets;
        if n_packets == 0 {
            0.0
        } else {
            self.n_syscalls() as f64 / n_packets as f64
        }
    }

    /// System calls of every kind.
    #[must_use]
    pub const fn n_syscalls(&self) -> u64 {
        self.n_rx_syscalls + self.n_tx_syscalls + self.n_poll_syscalls + self.n_control_syscalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_counter_and_name() {
        let mut counts = DropCounts::default();
        for (n, &reason) in DropReason::ALL.iter().enumerate() {
            counts.add(reason, n as u64 + 1);
        }
        for (n, (reason, count)) in counts.iter().enumerate() {
            assert_eq!(count, n as u64 + 1);
            assert_eq!(counts.get(reason), count);
        }
        let mut names: Vec<_> = DropReason::ALL.iter().map(|r| r.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), N_DROP_REASONS);
    }
}
