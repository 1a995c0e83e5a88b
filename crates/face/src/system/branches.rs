//! Sockets of single UDP peers.
//!
//! All peers of a channel share its socket, and the queue that the kernel keeps
//! for it: whoever fills that queue takes the others' room. So a face that was
//! asked for gets a branch from the start, and of strangers whoever fills a read
//! of the shared socket; the rest go on sharing, which costs the kernel less.
//! Owns who has a branch. Without one everything works as well, but for this.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tachonym_packet::lp::FaceId;
use tachonym_protocol::{FacePersistency, FaceUri};

use super::FaceSystem;
use super::lifecycle::max_segment_bytes;
use crate::poller::SocketKey;
use crate::transport::Transport;
use crate::transport::udp::{Branch, BranchKind, UdpRole, UdpSocket};

/// Most branches of each kind. Before Linux 6.13 each of them costs a little for
/// every datagram to the port, and each takes memory of the kernel.
const MAX_ASKED_BRANCHES: usize = 256;
const MAX_STRANGER_BRANCHES: usize = 64;
/// A stranger that is silent for so long may lose its branch to another.
const SILENCE: Duration = Duration::from_secs(1);

/// How many branches there are.
#[derive(Default)]
pub(super) struct BranchCounts {
    n_asked: usize,
    n_strangers: usize,
}

impl BranchCounts {
    fn of(&mut self, kind: BranchKind) -> &mut usize {
        match kind {
            BranchKind::Asked => &mut self.n_asked,
            BranchKind::Stranger => &mut self.n_strangers,
        }
    }

    fn has_room(&self, kind: BranchKind) -> bool {
        match kind {
            BranchKind::Asked => self.n_asked < MAX_ASKED_BRANCHES,
            BranchKind::Stranger => self.n_strangers < MAX_STRANGER_BRANCHES,
        }
    }
}

/// Who has sent how many of the datagrams of one read.
#[derive(Default)]
pub(super) struct Senders(Vec<(FaceId, usize)>);

impl Senders {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Notes a message. A read has a few dozen, most of one sender.
    pub(super) fn note(&mut self, face: FaceId, n_datagrams: usize) {
        match self.0.iter_mut().find(|(sender, _)| *sender == face) {
            Some((_, n)) => *n += n_datagrams,
            None => self.0.push((face, n_datagrams)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Datagrams of all of them.
    pub(super) fn n_datagrams(&self) -> usize {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// Who sent most.
    pub(super) fn greatest(&self) -> Option<FaceId> {
        let greatest = self.0.iter().max_by_key(|(_, n)| *n);
        greatest.map(|&(face, _)| face)
    }
}

impl FaceSystem {
    /// Gives the UDP face `id` a branch of its channel, if it shares that one's
    /// socket and the system lets it. One that has it as a stranger keeps it as
    /// `kind`.
    pub(super) fn move_to_branch(&mut self, id: FaceId, kind: BranchKind) {
        let Some(face) = self.faces.get_mut(id) else {
            return;
        };
        let (Transport::Udp(peer), FaceUri::Udp(local)) = (&mut face.transport, &face.local) else {
            return;
        };
        let own_ip = peer.source.unwrap_or(local.ip());
        let (channel, remote) = (peer.socket, peer.remote);
        if !self.may_branch(channel, id, kind) {
            return;
        }
        let opened = self.open_branch(channel, id, (own_ip, remote), kind);
        let has_gso = opened.and_then(|key| Some(self.udp.get(key)?.has_gso));
        let Some(face) = self.faces.get_mut(id) else {
            return;
        };
        if let Transport::Udp(peer) = &mut face.transport {
            peer.may_branch = opened.is_some();
            peer.socket = opened.unwrap_or(channel);
            let max_segment_bytes = max_segment_bytes(has_gso.unwrap_or(true));
            peer.max_segment_bytes = peer.max_segment_bytes.min(max_segment_bytes);
        }
    }

    /// Whether the face may have a branch of this kind beside the socket `key`.
    fn may_branch(&mut self, key: SocketKey, id: FaceId, kind: BranchKind) -> bool {
        let Some(socket) = self.udp.get_mut(key) else {
            return false;
        };
        match &mut socket.role {
            UdpRole::Channel(_) => {
                let is_new = self.faces.get(id).is_some_and(
                    |face| matches!(&face.transport, Transport::Udp(peer) if peer.may_branch),
                );
                is_new && (self.branch_counts.has_room(kind) || self.displace_stranger(kind))
            }
            UdpRole::Branch(branch) => {
                if branch.kind == BranchKind::Stranger && kind == BranchKind::Asked {
                    branch.kind = kind;
                    socket.size_buffers(&self.options);
                    *self.branch_counts.of(BranchKind::Stranger) -= 1;
                    *self.branch_counts.of(kind) += 1;
                }
                false
            }
            _ => false,
        }
    }

    /// Takes the branch of the stranger that was silent for longest, if that is
    /// long enough.
    fn displace_stranger(&mut self, kind: BranchKind) -> bool {
        if kind != BranchKind::Stranger {
            return false;
        }
        let strangers = self
            .udp
            .iter()
            .filter_map(|(_, socket)| match &socket.role {
                UdpRole::Branch(branch) if branch.kind == kind => self.faces.get(branch.face),
                _ => None,
            });
        let silent = strangers.min_by_key(|face| face.last_received_at);
        let Some(silent) = silent.filter(|face| face.last_received_at + SILENCE <= self.now) else {
            return false;
        };
        let id = silent.id;
        self.move_to_channel(id)
    }

    /// A socket beside `channel` for the face `id`, whose peer is at `remote` and
    /// writes to `own_ip`; `None` if the system refuses.
    fn open_branch(
        &mut self,
        channel: SocketKey,
        id: FaceId,
        (own_ip, remote): (IpAddr, SocketAddr),
        kind: BranchKind,
    ) -> Option<SocketKey> {
        if own_ip.is_unspecified() {
            return None;
        }
        let mut local = SocketAddr::new(own_ip, self.udp.get(channel)?.local.port());
        if let (SocketAddr::V6(local), SocketAddr::V6(remote)) = (&mut local, &remote)
            && local.ip().is_unicast_link_local()
        {
            local.set_scope_id(remote.scope_id());
        }
        let branch = Branch {
            channel,
            face: id,
            peer: remote,
            kind,
        };
        let socket = UdpSocket::branch(local, branch, &self.options).ok()?;
        let key = self.add_udp_socket(socket).ok()?;
        *self.branch_counts.of(kind) += 1;
        Some(key)
    }

    /// Lets the face `id` share its channel's socket again; false if it has no
    /// branch.
    pub(super) fn move_to_channel(&mut self, id: FaceId) -> bool {
        let Some(slot) = self.faces.slot_of(id) else {
            return false;
        };
        let Transport::Udp(peer) = &self.faces[slot].transport else {
            return false;
        };
        let key = peer.socket;
        let channel = self.remove_branch(key);
        if channel == key {
            return false;
        }
        let has_gso = self.udp.get(channel).is_some_and(|socket| socket.has_gso);
        let face = &mut self.faces[slot];
        if let Transport::Udp(peer) = &mut face.transport {
            peer.socket = channel;
            peer.max_segment_bytes = max_segment_bytes(has_gso);
        }
        // It may be on the list of the socket that is gone.
        if std::mem::take(&mut face.is_dirty) || !face.tx.is_empty() {
            self.mark_dirty(slot);
        }
        true
    }

    /// Opens no branch for the face `id` any more.
    pub(super) fn keep_from_branch(&mut self, id: FaceId) {
        if let Some(face) = self.faces.get_mut(id)
            && let Transport::Udp(peer) = &mut face.transport
        {
            peer.may_branch = false;
        }
    }

    /// Removes the branch `key`, if it is one, and says where its face is known
    /// besides.
    pub(super) fn remove_branch(&mut self, key: SocketKey) -> SocketKey {
        let Some(socket) = self.udp.get_mut(key) else {
            return key;
        };
        let UdpRole::Branch(branch) = &socket.role else {
            return key;
        };
        let Branch { channel, kind, .. } = *branch;
        self.counters.n_kernel_drops += socket.look_at_queue(0);
        *self.branch_counts.of(kind) -= 1;
        self.udp.remove(key);
        channel
    }

    /// Sees that a UDP face that is to last has a branch, if it can be had.
    pub(super) fn branch_if_lasting(&mut self, id: FaceId) {
        let is_lasting = self
            .faces
            .get(id)
            .is_some_and(|face| face.persistency != FacePersistency::OnDemand);
        if is_lasting {
            self.move_to_branch(id, BranchKind::Asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_sender_is_found_among_others() {
        let mut senders = Senders::default();
        assert_eq!(senders.greatest(), None);
        for face in [3, 1, 3, 2, 3, 1] {
            senders.note(FaceId(face), 2);
        }
        assert_eq!((senders.greatest(), senders.len()), (Some(FaceId(3)), 3));
        assert_eq!(senders.n_datagrams(), 12);
        senders.clear();
        assert_eq!((senders.greatest(), senders.len()), (None, 0));
    }
}
