//! Sockets of single UDP peers.
//!
//! All peers of a channel share its socket, and the queue that the kernel keeps
//! for it: whoever fills that queue takes the others' room. So a face that was
//! asked for gets a branch from the start, and of strangers whoever fills a read
//! of the shared socket; the rest go on sharing, which costs the kernel less.
//! Owns who gets a branch. Without one everything works as well, but for this.

use std::net::{IpAddr, SocketAddr};

use tachonym_packet::lp::FaceId;
use tachonym_protocol::FaceUri;

use super::FaceSystem;
use super::lifecycle::max_segment_bytes;
use crate::poller::SocketKey;
use crate::transport::Transport;
use crate::transport::udp::{Branch, UdpRole, UdpSocket};

/// Most branches of strangers. Before Linux 6.13 each of them costs a little for
/// every datagram to the port, and each takes memory of the kernel.
const MAX_STRANGER_BRANCHES: usize = 64;

/// Who has sent how many of the messages of one read.
#[derive(Default)]
pub(super) struct Senders(Vec<(FaceId, usize)>);

impl Senders {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Notes a message. A read has a few dozen, most of one sender.
    pub(super) fn note(&mut self, face: FaceId) {
        match self.0.iter_mut().find(|(sender, _)| *sender == face) {
            Some((_, n_messages)) => *n_messages += 1,
            None => self.0.push((face, 1)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Who sent most.
    pub(super) fn greatest(&self) -> Option<FaceId> {
        let greatest = self.0.iter().max_by_key(|(_, n_messages)| *n_messages);
        greatest.map(|&(face, _)| face)
    }
}

impl FaceSystem {
    /// A branch of `channel` for the face `id`, whose peer is at `remote` and
    /// writes to `own_ip`; `None` if the system refuses.
    pub(super) fn branch(
        &mut self,
        channel: SocketKey,
        (id, remote): (FaceId, SocketAddr),
        own_ip: IpAddr,
        is_of_stranger: bool,
    ) -> Option<SocketKey> {
        let socket = self.udp.get(channel)?;
        if !matches!(socket.role, UdpRole::Channel(_)) || own_ip.is_unspecified() {
            return None;
        }
        let mut local = socket.local;
        local.set_ip(own_ip);
        let branch = Branch {
            channel,
            face: id,
            peer: remote,
            is_of_stranger,
        };
        let socket = UdpSocket::branch(local, branch, &self.options).ok()?;
        let key = self.add_udp_socket(socket).ok()?;
        self.n_stranger_branches += usize::from(is_of_stranger);
        Some(key)
    }

    /// Gives the stranger `id` a branch of `channel`, if there are not too many.
    pub(super) fn branch_off(&mut self, channel: SocketKey, id: FaceId) {
        if self.n_stranger_branches >= MAX_STRANGER_BRANCHES {
            return;
        }
        let Some(face) = self.faces.get(id) else {
            return;
        };
        let (Transport::Udp(peer), FaceUri::Udp(local)) = (&face.transport, &face.local) else {
            return;
        };
        // What it sent before it had a branch is still read from the channel.
        if peer.socket != channel {
            return;
        }
        let (remote, own_ip) = (peer.remote, local.ip());
        let Some(key) = self.branch(channel, (id, remote), own_ip, true) else {
            return;
        };
        let has_gso = self.udp.get(key).is_some_and(|socket| socket.has_gso);
        if let Some(face) = self.faces.get_mut(id)
            && let Transport::Udp(peer) = &mut face.transport
        {
            peer.socket = key;
            peer.source = None;
            peer.max_segment_bytes = peer.max_segment_bytes.min(max_segment_bytes(has_gso));
        }
    }

    /// Removes the branch of a face that goes, if `key` is one, and says where
    /// the face is known besides.
    pub(super) fn cut_branch(&mut self, key: SocketKey) -> SocketKey {
        let Some(UdpRole::Branch(branch)) = self.udp.get(key).map(|socket| &socket.role) else {
            return key;
        };
        let branch = *branch;
        self.n_stranger_branches -= usize::from(branch.is_of_stranger);
        self.udp.remove(key);
        branch.channel
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
            senders.note(FaceId(face));
        }
        assert_eq!((senders.greatest(), senders.len()), (Some(FaceId(3)), 3));
        senders.clear();
        assert_eq!((senders.greatest(), senders.len()), (None, 0));
    }
}
