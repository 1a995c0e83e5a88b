//! Receiving: from readiness to a batch of packets.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use rustix::net::{self, SocketFlags};
use tachonym_packet::{FaceId, MonoNs};
use tachonym_protocol::{FacePersistency, FaceUri};

use super::{FaceSystem, Listener, MAX_EVENTS, Token, Transport};
use crate::batch::RxBatch;
use crate::info::CloseReason;
use crate::stream::{READ_BYTES, Received};

/// Bytes of the arena that a read may need: a partial frame and a full read.
const READ_ROOM_BYTES: usize = READ_BYTES + 16_384;
/// Packets after which a round ends, so that they are forwarded soon.
const MAX_FRAMES: usize = 512;
/// Peers accepted with one readiness, so that packets are not kept waiting.
const MAX_ACCEPTS: usize = 16;

impl FaceSystem {
    /// Waits up to `timeout` for something to happen (`None`: as long as it
    /// takes) and reads what is there into `batch`. `clock` tells the time after
    /// the wait.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub fn poll(
        &mut self,
        timeout: Option<Duration>,
        batch: &mut RxBatch,
        clock: impl FnOnce() -> MonoNs,
    ) -> io::Result<MonoNs> {
        batch.clear();
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        self.counters.n_poll_calls += 1;
        let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS];
        let ready: &[epoll::Event] = match epoll::wait(&self.epoll, &mut room[..], timeout.as_ref())
        {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        self.now = clock();
        for event in ready {
            match Token::unpack(event.data) {
                Token::Waker => self.waker.reset(),
                Token::Listener(idx) => self.accept(idx),
                Token::Udp(idx) => self.udp_ready(idx, event.flags, batch),
                Token::Face(id) => self.face_ready(id, event.flags, batch),
            }
            if batch.n_free() < READ_ROOM_BYTES || batch.len() >= MAX_FRAMES {
                // The others are still ready at the next call.
                break;
            }
        }
        self.counters.n_rx_frames += batch.len() as u64;
        self.handle_timeout(self.now);
        Ok(self.now)
    }

    fn face_ready(&mut self, id: FaceId, flags: EventFlags, batch: &mut RxBatch) {
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        let Transport::Stream(stream) = &mut face.transport else {
            return;
        };
        if !face.info.is_up {
            self.connected(id);
            return;
        }
        if flags.contains(EventFlags::OUT) && stream.is_blocked {
            stream.is_blocked = false;
            let _ = epoll::modify(
                &self.epoll,
                stream.fd(),
                Token::Face(id).pack(),
                EventFlags::IN,
            );
            self.dirty_faces.push(id);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.counters.n_rx_calls += 1;
            let (link, now) = (&mut face.link, self.now);
            face.last_received = now;
            let received =
                stream.receive(batch, |at, batch| link.receive(now, id, at, false, batch));
            if link.reassembler.next_deadline().is_some() && !self.reassembling.contains(&id) {
                self.reassembling.push(id);
            }
            if let Received::Closed(reason) = received {
                self.connection_lost(id, reason);
            }
        }
    }

    fn udp_ready(&mut self, idx: usize, flags: EventFlags, batch: &mut RxBatch) {
        if flags.contains(EventFlags::OUT) {
            self.dirty_udp.push(idx);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::ERR) {
            return;
        }
        let is_congested = self.udp[idx].is_congested();
        self.counters.n_rx_calls += 1;
        let mut datagrams = std::mem::replace(&mut self.datagrams, crate::sys::RecvBatch::new(0));
        // An error is an ICMP message about an earlier datagram, or nothing there.
        if datagrams.receive(self.udp[idx].fd()).is_ok() {
            for (from, datagram) in datagrams.datagrams() {
                if let Some(from) = from {
                    self.take_datagram(idx, from, datagram, is_congested, batch);
                }
            }
        }
        self.datagrams = datagrams;
    }

    fn take_datagram(
        &mut self,
        idx: usize,
        from: SocketAddr,
        datagram: &[u8],
        is_congested: bool,
        batch: &mut RxBatch,
    ) {
        let channel = &self.udp[idx];
        let id = match channel.peers.get(&from) {
            Some(&id) => id,
            None if channel.is_listening => match self.add_udp_peer(idx, from) {
                Some(id) => id,
                None => return,
            },
            None => return,
        };
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        let now = self.now;
        face.last_received = now;
        let Some(at) = batch.append(datagram) else {
            face.link
                .counters
                .count_drop(crate::info::DropReason::BatchFull);
            return;
        };
        face.link.receive(now, id, at, is_congested, batch);
        if face.link.reassembler.next_deadline().is_some() && !self.reassembling.contains(&id) {
            self.reassembling.push(id);
        }
    }

    fn add_udp_peer(&mut self, idx: usize, from: SocketAddr) -> Option<FaceId> {
        let local = FaceUri::Udp(self.udp[idx].local);
        let transport = Transport::Udp {
            channel_idx: idx,
            peer: from,
        };
        let options = self.options.on_demand;
        let remote = FaceUri::Udp(from);
        let id = self.add_face(
            remote,
            local,
            FacePersistency::OnDemand,
            options,
            transport,
            true,
        );
        match id {
            Ok(id) => {
                self.udp[idx].peers.insert(from, id);
                Some(id)
            }
            Err(_) => {
                self.counters.n_refused_peers += 1;
                None
            }
        }
    }

    fn accept(&mut self, idx: usize) {
        for _ in 0..MAX_ACCEPTS {
            let (listening, path) = match &self.listeners[idx] {
                Listener::Unix { socket, path } => (socket, Some(path.clone())),
                Listener::Tcp { socket, .. } => (socket, None),
            };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(socket) = net::accept_with(listening, flags) else {
                return;
            };
            let added = match path {
                Some(path) => self.add_unix_peer(socket, &path),
                None => self.add_tcp_peer(socket),
            };
            if added.is_none() {
                self.counters.n_refused_peers += 1;
            }
        }
    }

    fn add_unix_peer(&mut self, socket: OwnedFd, path: &std::path::Path) -> Option<FaceId> {
        use std::os::fd::AsRawFd as _;
        let remote = FaceUri::Fd(u32::try_from(socket.as_raw_fd()).ok()?);
        let local = FaceUri::Unix(path.to_string_lossy().into_owned());
        self.add_stream_peer(socket, remote, local)
    }

    fn add_tcp_peer(&mut self, socket: OwnedFd) -> Option<FaceId> {
        let remote = SocketAddr::try_from(net::getpeername(&socket).ok()??).ok()?;
        let local = SocketAddr::try_from(net::getsockname(&socket).ok()?).ok()?;
        net::sockopt::set_tcp_nodelay(&socket, true).ok()?;
        self.add_stream_peer(socket, FaceUri::Tcp(remote), FaceUri::Tcp(local))
    }

    fn add_stream_peer(
        &mut self,
        socket: OwnedFd,
        remote: FaceUri,
        local: FaceUri,
    ) -> Option<FaceId> {
        let transport = Transport::Stream(crate::stream::Stream::new(socket));
        let options = self.options.on_demand;
        self.add_face(
            remote,
            local,
            FacePersistency::OnDemand,
            options,
            transport,
            true,
        )
        .ok()
    }

    /// A connection that was being made has been made, or has failed.
    fn connected(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        let Transport::Stream(stream) = &face.transport else {
            return;
        };
        let failed = !matches!(net::sockopt::socket_error(stream.fd()), Ok(Ok(())));
        if failed {
            self.connection_lost(id, CloseReason::ConnectionFailed);
            return;
        }
        face.info.is_up = true;
        face.retry = None;
        let _ = epoll::modify(
            &self.epoll,
            stream.fd(),
            Token::Face(id).pack(),
            EventFlags::IN,
        );
        self.dirty_faces.push(id);
        self.events
            .push_back(crate::info::FaceEvent::Up(face.info.clone()));
    }
}
