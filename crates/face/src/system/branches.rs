//! Peer sockets: UDP sockets that receive from one peer only.
//!
//! All peers of a channel share its socket, and its queue in the kernel: a peer that fills the
//! queue takes the others' room. So some peers get a socket bound to the same address and
//! connected to them, to which the kernel delivers their datagrams and no others. A peer socket
//! only receives; everything is sent by the channel's socket. Without one (no descriptors, or
//! the peer writes to another local address) everything works through the channel.
//!
//! - A face that was configured or created by a command gets one when it is created: it is a
//!   neighbour that matters. Of on-demand faces, the one that sent most of a full read gets one,
//!   and may lose it after a second of silence. Others share the channel, since few packets of
//!   many peers are cheapest in one read.
//! - A channel binds alone and allows peer sockets (`SO_REUSEPORT`) only after that, so that a
//!   second router at the same address still fails to start.
//! - A datagram that arrives before the socket is connected counts as the channel's. With
//!   several systems at the address the socket is bound to the wildcard address until then,
//!   where it receives no other peer's datagrams; it is given up if the kernel would then answer
//!   from another address than the one that the peer writes to.
//!
//! Owns which faces have a peer socket.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tachonym_packet::lp::FaceId;
use tachonym_protocol::{FacePersistency, FaceUri};

use super::FaceSystem;
use super::lifecycle::unspecified_like;
use crate::poller::SocketKey;
use crate::share::SystemShare;
use crate::transport::Transport;
use crate::transport::udp::{Branch, BranchKind, UdpRole, UdpSocket};

/// Most branches of each kind in a router. Before Linux 6.13 each of them costs a little for
/// every datagram to the port, and each takes memory of the kernel.
const MAX_ASKED_BRANCHES: usize = 256;
const MAX_STRANGER_BRANCHES: usize = 64;
/// A stranger that is silent for so long may lose its branch to another.
const SILENCE: Duration = Duration::from_secs(1);

/// How many branches there are.
pub(super) struct BranchCounts {
    n_asked: usize,
    n_strangers: usize,
    max_asked: usize,
    max_strangers: usize,
}

impl BranchCounts {
    /// None, of this share of those that may be.
    pub(super) fn new(share: &SystemShare) -> Self {
        Self {
            n_asked: 0,
            n_strangers: 0,
            max_asked: share.part_of(MAX_ASKED_BRANCHES),
            max_strangers: share.part_of(MAX_STRANGER_BRANCHES),
        }
    }

    fn of(&mut self, kind: BranchKind) -> &mut usize {
        match kind {
            BranchKind::Asked => &mut self.n_asked,
            BranchKind::Stranger => &mut self.n_strangers,
        }
    }

    fn has_room(&self, kind: BranchKind) -> bool {
        match kind {
            BranchKind::Asked => self.n_asked < self.max_asked,
            BranchKind::Stranger => self.n_strangers < self.max_strangers,
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
    /// Gives the UDP face `id` a branch of its channel, if the system lets it. One
    /// that has it as a stranger keeps it as `kind`.
    pub(super) fn give_branch(&mut self, id: FaceId, kind: BranchKind) {
        let Some(face) = self.faces.get(id) else {
            return;
        };
        let (Transport::Udp(peer), FaceUri::Udp(local)) = (&face.transport, &face.local) else {
            return;
        };
        if let Some(key) = peer.branch {
            return self.promote(key, kind);
        }
        let is_of_channel = self
            .udp
            .get(peer.socket)
            .is_some_and(|socket| matches!(socket.role, UdpRole::Channel(_)));
        if !is_of_channel || !peer.may_branch {
            return;
        }
        let branch = Branch {
            channel: peer.socket,
            face: id,
            peer: peer.remote,
            kind,
        };
        let own_ip = peer.source.unwrap_or(local.ip());
        if !self.branch_counts.has_room(kind) {
            if kind == BranchKind::Asked {
                return;
            }
            let Some(silent) = self.silent_stranger() else {
                return;
            };
            self.take_branch(silent);
        }
        let opened = self.open_branch(branch, own_ip);
        if let Some(face) = self.faces.get_mut(id)
            && let Transport::Udp(peer) = &mut face.transport
        {
            peer.branch = opened;
            peer.may_branch = opened.is_some();
        }
    }

    /// Sees that a UDP face that is to last has a branch, if it can be had.
    pub(super) fn branch_if_lasting(&mut self, id: FaceId) {
        let is_lasting = self
            .faces
            .get(id)
            .is_some_and(|face| face.persistency != FacePersistency::OnDemand);
        if is_lasting {
            self.give_branch(id, BranchKind::Asked);
        }
    }

    /// Makes a stranger's branch one that was asked for, if there is room.
    fn promote(&mut self, key: SocketKey, kind: BranchKind) {
        if kind != BranchKind::Asked || !self.branch_counts.has_room(kind) {
            return;
        }
        if let Some(socket) = self.udp.get_mut(key)
            && let UdpRole::Branch(branch) = &mut socket.role
        {
            *self.branch_counts.of(branch.kind) -= 1;
            *self.branch_counts.of(kind) += 1;
            branch.kind = kind;
            socket.size_buffers(self.options.udp());
        }
    }

    /// The stranger with a branch that was silent for longest, if that is long
    /// enough and nothing of it waits to be read.
    fn silent_stranger(&self) -> Option<FaceId> {
        let strangers = self
            .udp
            .iter()
            .filter_map(|(_, socket)| match &socket.role {
                UdpRole::Branch(branch) if branch.kind == BranchKind::Stranger => {
                    Some((socket, self.faces.get(branch.face)?))
                }
                _ => None,
            });
        strangers
            .filter(|(socket, face)| {
                face.last_received_at + SILENCE <= self.now && socket.has_nothing()
            })
            .min_by_key(|(_, face)| face.last_received_at)
            .map(|(_, face)| face.id)
    }

    /// A socket for the peer of `branch`, which writes to `own_ip`; `None` if the
    /// system refuses.
    fn open_branch(&mut self, branch: Branch, own_ip: IpAddr) -> Option<SocketKey> {
        if own_ip.is_unspecified() {
            return None;
        }
        let mut local = SocketAddr::new(own_ip, self.udp.get(branch.channel)?.local.port());
        if let (SocketAddr::V6(local), SocketAddr::V6(remote)) = (&mut local, &branch.peer)
            && local.ip().is_unicast_link_local()
        {
            local.set_scope_id(remote.scope_id());
        }
        if self.options.share.siblings().is_some() {
            // At an address of its own it would hear others' peers until it is
            // connected. Elsewhere than here the kernel chooses another socket.
            local.set_ip(unspecified_like(local));
        }
        let socket = UdpSocket::branch(local, branch, self.options.udp()).ok()?;
        if socket.local.ip() != own_ip {
            return None;
        }
        let key = self.add_udp_socket(socket).ok()?;
        *self.branch_counts.of(branch.kind) += 1;
        Some(key)
    }

    /// Lets the face `id` share its channel's socket again.
    pub(super) fn take_branch(&mut self, id: FaceId) {
        let key = self
            .faces
            .get_mut(id)
            .and_then(|face| match &mut face.transport {
                Transport::Udp(peer) => peer.branch.take(),
                _ => None,
            });
        if let Some(key) = key {
            self.remove_branch(key);
        }
    }

    /// Removes the branch `key` of a face that does not name it any more.
    pub(super) fn remove_branch(&mut self, key: SocketKey) {
        if let Some(socket) = self.udp.get_mut(key)
            && let UdpRole::Branch(branch) = &socket.role
        {
            *self.branch_counts.of(branch.kind) -= 1;
            self.counters.n_kernel_drops += socket.look_at_queue(0);
            self.udp.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Program;

    use tachonym_packet::Interest;

    use super::*;
    use crate::{ChannelOptions, FaceUpdate, RxBatch, SystemOptions};

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

    /// A system, and strangers who have a face each.
    struct Bed {
        system: FaceSystem,
        strangers: Vec<(Program, FaceId)>,
    }

    impl Bed {
        fn new(n_strangers: usize) -> Self {
            let mut system = FaceSystem::new(SystemOptions::default()).unwrap();
            let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
            let uri = system.listen(&ChannelOptions::udp(loopback)).unwrap();
            let mut bed = Self {
                system,
                strangers: Vec::new(),
            };
            for i in 0..n_strangers {
                let program = Program::bind(loopback).unwrap();
                program.connect(uri.socket_addr().unwrap()).unwrap();
                speak(&program);
                while bed.system.n_faces() == i {
                    bed.read();
                }
                let newest = bed.system.face_ids().max().expect("just made");
                bed.strangers.push((program, newest));
            }
            // One after the other, however long that took.
            for (i, (_, id)) in bed.strangers.iter().enumerate() {
                let face = bed.system.faces.get_mut(*id).unwrap();
                face.last_received_at = bed.system.now.plus_ms(i as u64);
            }
            bed
        }

        fn read(&mut self) {
            let mut batch = RxBatch::new();
            self.system.poll(Some(SILENCE), &mut batch).unwrap();
            self.system.flush();
        }

        fn give(&mut self, n: usize) {
            let (_, id) = self.strangers[n];
            self.system.give_branch(id, BranchKind::Stranger);
        }

        fn has_branch(&self, n: usize) -> bool {
            let face = self.system.faces.get(self.strangers[n].1).unwrap();
            matches!(&face.transport, Transport::Udp(peer) if peer.branch.is_some())
        }

        fn counts(&self) -> (usize, usize) {
            let counts = &self.system.branch_counts;
            (counts.n_asked, counts.n_strangers)
        }
    }

    fn speak(program: &Program) {
        let interest = Interest::new("/a".parse().unwrap()).encode();
        program.send(&interest).unwrap();
    }

    #[test]
    fn one_too_many_takes_the_branch_of_who_was_silent_for_longest() {
        let mut bed = Bed::new(MAX_STRANGER_BRANCHES + 2);
        for n in 0..=MAX_STRANGER_BRANCHES {
            bed.give(n);
        }
        assert_eq!(bed.counts(), (0, MAX_STRANGER_BRANCHES));
        assert!(!bed.has_branch(MAX_STRANGER_BRANCHES), "every peer sends");
        bed.system.now = bed.system.now + 2 * SILENCE;
        // What it has said has not been read yet.
        speak(&bed.strangers[0].0);
        bed.give(MAX_STRANGER_BRANCHES);
        assert_eq!(bed.counts(), (0, MAX_STRANGER_BRANCHES));
        assert!(bed.has_branch(MAX_STRANGER_BRANCHES));
        let has = [0, 1, 2].map(|n| bed.has_branch(n));
        assert_eq!(has, [true, false, true]);
        // Who has lost it is heard all the same, and may have one again.
        let (program, id) = &bed.strangers[1];
        let before = bed.system.face_counters(*id).unwrap().n_in_bytes;
        speak(program);
        let id = *id;
        while bed.system.face_counters(id).unwrap().n_in_bytes == before {
            bed.read();
        }
        bed.give(1);
        assert!(bed.has_branch(1) && !bed.has_branch(2));
    }

    #[test]
    fn a_stranger_that_is_to_stay_leaves_its_place_to_another_and_all_places_are_given_back() {
        let mut bed = Bed::new(2);
        bed.give(0);
        bed.give(0);
        assert_eq!(bed.counts(), (0, 1));
        let lasting = FaceUpdate {
            persistency: Some(FacePersistency::Permanent),
            ..FaceUpdate::default()
        };
        let [first, second] = [0, 1].map(|n| bed.strangers[n].1);
        bed.system.update(first, &lasting).unwrap();
        assert_eq!(bed.counts(), (1, 0));
        // Where there is no room for more of them, it stays what it is.
        bed.give(1);
        bed.system.branch_counts.n_asked = MAX_ASKED_BRANCHES;
        bed.system.update(second, &lasting).unwrap();
        assert_eq!(bed.counts(), (MAX_ASKED_BRANCHES, 1));
        bed.system.branch_counts.n_asked = 1;
        for id in [first, second] {
            assert!(bed.system.destroy(id));
        }
        assert_eq!(bed.counts(), (0, 0));
        let n_sockets = bed.system.udp.iter().count();
        assert_eq!(n_sockets, 1, "that of the listener");
    }
}
