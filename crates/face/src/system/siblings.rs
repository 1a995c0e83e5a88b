//! A system among others of the same router.
//!
//! Owns what the systems do together: opening listeners, distributing accepted connections, and
//! choosing the system that creates a face.
//!
//! **UDP.** A peer's datagrams arrive at one system: at the one with a face to the peer that a
//! command created there, and otherwise at the one that the rule of `steering` chooses. A new
//! face to a peer whose datagrams were on their way to another system loses those
//! (`unknown-peer`).
//!
//! **Connections.** A listener of Unix, TCP or WebSocket is one socket of one system, which
//! gives each accepted connection to the system with the fewest. The kernel's hash would often
//! give one thread two of four neighbours and another none.
//!
//! None of it happens where a system is alone. Next: `share`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::{SockAddr, Socket};
use tachonym_packet::FaceId;
use tachonym_protocol::FaceUri;

use super::FaceSystem;
use super::lifecycle::local_end;
use super::listen::{ACCEPT_PAUSE, MAX_ACCEPTED, in_use};
use crate::error::{CreateError, ListenError};
use crate::face::FaceState;
use crate::options::FaceParams;
use crate::poller::SocketKey;
use crate::share::{Delivery, Origin, Siblings};
use crate::transport::udp::{ChannelDefaults, UdpRole, UdpSocket, bind_group, source_towards};

/// Whether a face can be made by a system that was asked; the first of the
/// answers of all systems, in this order, is the one to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// It has this face to the remote end.
    Exists(FaceId),
    /// No other can make it.
    Here,
    /// It can, and so can all that say so.
    Anywhere,
    /// The system with this index has to.
    Elsewhere(usize),
}

impl FaceSystem {
    /// The face to `remote` that [`FaceSystem::create`] would find.
    #[must_use]
    pub fn find(&self, remote: &FaceUri) -> Option<FaceId> {
        let is_staying = |id: &FaceId| self.closing_reason(*id).is_none();
        match remote {
            FaceUri::Udp(addr) => self
                .udp
                .iter()
                .filter_map(|(_, socket)| socket.peers.get(addr).copied())
                .find(is_staying),
            FaceUri::Tcp(_) | FaceUri::WebSocket(_) => self
                .faces
                .iter()
                .filter(|face| !matches!(face.state, FaceState::Closing(_)))
                .find(|face| face.remote == *remote)
                .map(|face| face.id),
            _ => None,
        }
    }

    /// What this system says to making the face that [`FaceSystem::create`] would.
    /// Of several systems each is to be asked before one is told to, and nobody is
    /// to be asked about another face before that has happened.
    #[must_use]
    pub fn placement(&self, params: &FaceParams) -> Placement {
        if let Some(id) = self.find(&params.remote) {
            return Placement::Exists(id);
        }
        let FaceUri::Udp(remote) = params.remote else {
            return Placement::Anywhere;
        };
        let local = match &params.local {
            Some(FaceUri::Udp(local)) => local_end(*local, remote),
            _ => Ok(None),
        };
        // What cannot be made anywhere is refused by whoever is told to.
        let (Ok(local), Ok(source)) = (local, source_towards(remote)) else {
            return Placement::Anywhere;
        };
        let Some(key) = self.shared_socket(remote, source, local) else {
            return Placement::Anywhere;
        };
        match self.siblings_at(key) {
            // A socket that only this one has.
            None => Placement::Here,
            Some(siblings) if siblings.can_move() => Placement::Anywhere,
            Some(siblings) => match siblings.home_of(&remote) {
                index if index == self.options.share.index() => Placement::Here,
                index => Placement::Elsewhere(index),
            },
        }
    }

    /// The siblings, if the socket `key` is one of several at an address.
    fn siblings_at(&self, key: SocketKey) -> Option<&Arc<Siblings>> {
        let socket = self.udp.get(key)?;
        let is_channel = matches!(socket.role, UdpRole::Channel(_));
        self.options.share.siblings().filter(|_| is_channel)
    }

    /// Sees that what `remote` writes to the channel `key` comes to this system,
    /// before a face is made for it.
    pub(super) fn draw_peer(&self, key: SocketKey, remote: SocketAddr) -> Result<(), CreateError> {
        match self.siblings_at(key) {
            Some(siblings) => siblings
                .move_peer(remote, self.options.share.index())
                .map_err(CreateError::Elsewhere),
            None => Ok(()),
        }
    }

    /// Leaves a peer without a face here to whom the rule says.
    pub(super) fn let_peer_go(&self, remote: &SocketAddr) {
        if let Some(siblings) = self.options.share.siblings() {
            let mut sockets = self.udp.iter();
            if !sockets.any(|(_, socket)| socket.peers.contains_key(remote)) {
                siblings.release_peer(remote, self.options.share.index());
            }
        }
    }

    /// Whether `remote`, without a face here, got one elsewhere since it wrote what
    /// is being read.
    pub(super) fn is_drawn_elsewhere(&self, remote: &SocketAddr) -> bool {
        let share = &self.options.share;
        let drawn_to = share.siblings().and_then(|all| all.moved_to(remote));
        drawn_to.is_some_and(|index| index != share.index())
    }

    /// Binds a socket for each system, and hands them out.
    pub(super) fn listen_udp_together(
        &mut self,
        addr: SocketAddr,
        defaults: ChannelDefaults,
    ) -> Result<FaceUri, ListenError> {
        let share = self.options.share.clone();
        let Some(siblings) = share.siblings() else {
            return Err(ListenError::WrongAddress);
        };
        let sockets = bind_group(addr, siblings.len()).map_err(in_use)?;
        let local = siblings.add_group(share.index(), &sockets)?;
        if let Err(error) = self.hand_out(siblings, sockets, defaults) {
            siblings.remove_group(&local);
            return Err(error.into());
        }
        Ok(FaceUri::Udp(local))
    }

    fn hand_out(
        &mut self,
        siblings: &Siblings,
        sockets: Vec<Socket>,
        defaults: ChannelDefaults,
    ) -> io::Result<()> {
        let own = self.options.share.index();
        let parts = sockets.into_iter().enumerate().map(|(index, socket)| {
            let is_told = index == own;
            let role = UdpRole::Channel(ChannelDefaults {
                is_told,
                ..defaults
            });
            UdpSocket::of_group(socket, role, self.options.udp())
        });
        let mut parts = parts.collect::<io::Result<Vec<_>>>()?;
        parts.iter_mut().try_for_each(UdpSocket::hear)?;
        self.add_udp_socket(parts.remove(own))?;
        let others = (0..siblings.len()).filter(|index| *index != own);
        for (index, part) in others.zip(parts) {
            siblings.deliver(index, Delivery::Channel(Box::new(part)));
        }
        Ok(())
    }

    /// Lets the others close their sockets of the channel at `local`.
    pub(super) fn tell_siblings_to_close(&self, local: SocketAddr) {
        let share = &self.options.share;
        if let Some(siblings) = share.siblings() {
            siblings.remove_group(&local);
            let others = (0..siblings.len()).filter(|index| *index != share.index());
            for index in others {
                siblings.deliver(index, Delivery::CloseChannel(local));
            }
        }
    }

    /// Gives a connection that a listener has accepted to one of the systems.
    pub(super) fn deal_out(&mut self, origin: Arc<Origin>, socket: Socket, peer: SockAddr) {
        let Some(siblings) = self.options.share.siblings() else {
            return self.accept_one(&origin, socket, &peer, None);
        };
        let own = self.options.share.index();
        let (index, ticket) = siblings.next_for_connection(own);
        if index == own {
            return self.accept_one(&origin, socket, &peer, Some(ticket));
        }
        let delivery = Delivery::Connection {
            origin,
            socket,
            peer,
            ticket,
        };
        siblings.deliver(index, delivery);
    }

    /// Takes what the others have handed over, up to a bound.
    pub(super) fn take_deliveries(&mut self) {
        let share = self.options.share.clone();
        let Some(siblings) = share.siblings() else {
            return;
        };
        for _ in 0..MAX_ACCEPTED {
            match siblings.take(share.index()) {
                Some(Delivery::Connection {
                    origin,
                    socket,
                    peer,
                    ticket,
                }) => self.accept_one(&origin, socket, &peer, Some(ticket)),
                Some(Delivery::Channel(part)) => self.adopt(*part),
                Some(Delivery::CloseChannel(local)) => {
                    self.paused_parts.retain(|part| part.local != local);
                    self.close_udp(&local);
                }
                Some(Delivery::PeerMoved(peer)) => self.give_way(&peer),
                None => return,
            }
        }
        if siblings.has_deliveries(share.index()) {
            self.waker.wake();
        }
    }

    /// Removes the face of a peer that came just when one was made elsewhere.
    fn give_way(&mut self, peer: &SocketAddr) {
        let faces: Vec<FaceId> = self
            .udp
            .iter()
            .filter(|(_, socket)| matches!(socket.role, UdpRole::Channel(_)))
            .filter_map(|(_, socket)| socket.peers.get(peer).copied())
            .collect();
        // It may have come back since.
        if self.is_drawn_elsewhere(peer) {
            for id in faces {
                self.destroy(id);
            }
        }
    }

    /// Adds its part of a sibling's channel; later if it cannot be now.
    pub(super) fn adopt(&mut self, part: UdpSocket) {
        if let Err((part, _)) = self.try_udp_socket(part) {
            self.counters.n_accept_pauses += 1;
            self.paused_parts.extend(part.map(|part| *part));
            self.resume_listeners_at = self.now + ACCEPT_PAUSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Program;
    use std::time::{Duration, Instant};

    use tachonym_packet::Interest;

    use super::*;
    use crate::transport::Transport;
    use crate::transport::udp::BranchKind;
    use crate::{ChannelOptions, RxBatch, SystemOptions, SystemShare};

    fn systems(n_systems: usize) -> Vec<FaceSystem> {
        let with_share = |share| SystemOptions {
            share,
            ..SystemOptions::default()
        };
        SystemShare::split(n_systems)
            .into_iter()
            .map(|share| FaceSystem::new(with_share(share)).unwrap())
            .collect()
    }

    fn read_all(systems: &mut [FaceSystem]) {
        let mut batch = RxBatch::new();
        for system in systems {
            for _ in 0..8 {
                system.poll(Some(Duration::ZERO), &mut batch).unwrap();
            }
        }
    }

    /// Whether IPv6 can be had on this machine is for other tests to say.
    fn addresses() -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        let v6 = Program::bind("[::1]:0").map(|_| [("[::1]:0", "[::1]:0"), ("[::]:0", "[::1]:0")]);
        [("127.0.0.1:0", "127.0.0.1:0"), ("0.0.0.0:0", "127.0.0.1:0")]
            .into_iter()
            .chain(v6.into_iter().flatten())
            .map(|(ours, theirs)| (ours.parse().unwrap(), theirs.parse().unwrap()))
    }

    #[test]
    fn the_kernel_chooses_as_the_rule_says_moved_peers_included() {
        let with_moved = |n| addresses().map(move |(ours, theirs)| (ours, theirs, n));
        for (ours, theirs, n_moved) in [0, 50].into_iter().flat_map(with_moved) {
            let mut systems = systems(3);
            let uri = systems[1].listen(&ChannelOptions::udp(ours)).unwrap();
            let to = SocketAddr::new(theirs.ip(), uri.socket_addr().unwrap().port());
            let siblings = Arc::clone(systems[0].options.share.siblings().unwrap());
            let programs: Vec<_> = (0..90).map(|_| Program::bind(theirs).unwrap()).collect();
            for (i, program) in programs.iter().enumerate().take(n_moved) {
                let peer = program.local_addr().unwrap();
                siblings.move_peer(peer, i % 3).unwrap();
            }
            programs.iter().for_each(|program| write(program, to, 1));
            read_all(&mut systems);
            for (i, program) in programs.iter().enumerate() {
                let peer = program.local_addr().unwrap();
                let remote = FaceUri::Udp(peer);
                let found: Vec<_> = systems.iter().map(|s| s.find(&remote).is_some()).collect();
                let home = siblings.home_of(&peer);
                assert!(i >= n_moved || home == i % 3);
                let wanted: Vec<_> = (0..3).map(|index| index == home).collect();
                assert_eq!(found, wanted, "{peer} at {ours}");
            }
        }
    }

    fn write(program: &Program, to: SocketAddr, n_datagrams: usize) {
        let interest = Interest::new("/a".parse().unwrap()).encode();
        for _ in 0..n_datagrams {
            program.send_to(&interest, to).unwrap();
        }
    }

    /// A program that writes to `to`, and its face, which is that of the system
    /// `index`.
    fn peer_of(systems: &mut [FaceSystem], index: usize, to: SocketAddr) -> (Program, FaceId) {
        loop {
            let program = Program::bind(SocketAddr::new(to.ip(), 0)).unwrap();
            write(&program, to, 1);
            read_all(systems);
            let remote = FaceUri::Udp(program.local_addr().unwrap());
            if let Some(id) = systems[index].find(&remote) {
                return (program, id);
            }
        }
    }

    fn branch_of(system: &FaceSystem, id: FaceId) -> Option<SocketKey> {
        match &system.faces.get(id)?.transport {
            Transport::Udp(peer) => peer.branch,
            _ => None,
        }
    }

    #[test]
    fn a_peer_with_a_socket_of_its_own_fills_no_other() {
        for (ours, theirs) in addresses() {
            let mut systems = systems(2);
            let uri = systems[0].listen(&ChannelOptions::udp(ours)).unwrap();
            let to = SocketAddr::new(theirs.ip(), uri.socket_addr().unwrap().port());
            for index in [0, 1] {
                let (program, id) = peer_of(&mut systems, index, to);
                systems[index].give_branch(id, BranchKind::Stranger);
                let branch = branch_of(&systems[index], id).expect("a socket of its own");
                write(&program, to, 5);
                for (of, system) in systems.iter().enumerate() {
                    for (key, socket) in system.udp.iter() {
                        let is_its = (of, key) == (index, branch);
                        assert_eq!(socket.has_nothing(), !is_its, "{ours}");
                    }
                }
                read_all(&mut systems);
            }
        }
    }

    #[test]
    fn peers_keep_their_socket_while_another_system_opens_some() {
        const N_ROUNDS: u64 = 200;
        const N_WRITTEN: usize = 50;
        const PATIENCE: Duration = Duration::from_secs(1);
        for (ours, theirs) in addresses() {
            let mut systems = systems(2);
            let uri = systems[0].listen(&ChannelOptions::udp(ours)).unwrap();
            let to = SocketAddr::new(theirs.ip(), uri.socket_addr().unwrap().port());
            let (_stranger, stranger) = peer_of(&mut systems, 0, to);
            let (program, id) = peer_of(&mut systems, 1, to);
            // With a socket of its own it would not share the listener's with the stranger.
            if let Transport::Udp(peer) = &mut systems[1].faces.get_mut(id).unwrap().transport {
                peer.may_branch = false;
            }
            let n_faces: usize = systems.iter().map(FaceSystem::n_faces).sum();
            let before = systems[1].face_counters(id).unwrap().n_in_interests;
            let n_read = |systems: &[FaceSystem]| {
                systems[1].face_counters(id).unwrap().n_in_interests - before
            };
            for _ in 0..N_ROUNDS {
                std::thread::scope(|scope| {
                    let writer = scope.spawn(|| write(&program, to, N_WRITTEN));
                    while !writer.is_finished() {
                        systems[0].give_branch(stranger, BranchKind::Stranger);
                        assert!(branch_of(&systems[0], stranger).is_some());
                        systems[0].take_branch(stranger);
                    }
                });
                read_all(&mut systems);
            }
            let n_written = N_ROUNDS * N_WRITTEN as u64;
            // On a busy machine the kernel delivers some after the writer has ended.
            let begun = Instant::now();
            while n_read(&systems) < n_written && begun.elapsed() < PATIENCE {
                read_all(&mut systems);
            }
            // While a socket that is bound to all addresses connects, the kernel loses about
            // one in ten thousand datagrams of other peers on a busy machine: most likely its
            // search stands at that socket when it moves to another hash chain.
            let max_lost = match ours.ip().is_unspecified() {
                true => n_written / 1_000,
                false => 0,
            };
            let n_lost = n_written - n_read(&systems);
            assert!(n_lost <= max_lost, "{ours}: {n_lost} lost");
            let n_in_the_end: usize = systems.iter().map(FaceSystem::n_faces).sum();
            assert_eq!(n_in_the_end, n_faces);
        }
    }

    #[test]
    fn a_part_that_cannot_be_waited_for_is_taken_later() {
        let mut systems = systems(2);
        let loopback = "127.0.0.1:0".parse().unwrap();
        systems[0].listen(&ChannelOptions::udp(loopback)).unwrap();
        let poller = std::mem::replace(&mut systems[1].poller, crate::poller::Poller::broken());
        systems[1].take_deliveries();
        assert_eq!(systems[1].paused_parts.len(), 1);
        assert_eq!(systems[1].udp.iter().count(), 0);
        systems[1].poller = poller;
        systems[1].resume_listeners();
        assert_eq!(systems[1].udp.iter().count(), 1);
        assert!(systems[1].paused_parts.is_empty());
    }
}
