//! Waiting, and reading one burst.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tachonym_packet::lp::{FaceId, LpView};
use tachonym_packet::{InterestView, MonoNs, types};
use tachonym_protocol::FaceScope;

use super::FaceSystem;
use super::eviction::CameBy;
use crate::batch::{Frames, RxBatch, STREAM_READ_BYTES};
use crate::clock::{monotonic_now, thread_cpu_ns};
use crate::counters::DropReason;
use crate::error::CloseReason;
use crate::face::{Face, FaceState};
use crate::framing::{Front, front};
use crate::link::RxContext;
use crate::link::budget::ReassemblyBudget;
use crate::poller::{Ready, SocketKey, Token};
use crate::sys::udp::{MAX_RECEIVED, ReceivedMessage, SLOT_BYTES};
use crate::transport::Transport;
use crate::transport::handshake::Sender;
use crate::transport::stream::StreamState;
use crate::transport::udp::{BranchKind, UdpRole, UdpSocket};
use crate::transport::websocket::{Incoming, Progress};
use crate::turns::TURN_PKTS;

/// Messages that one WebSocket brings in one turn, those that carry no frame
/// included.
const MAX_WEBSOCKET_MESSAGES: usize = 32;

/// Buffers for the beginnings of frames that are kept for reuse.
const MAX_SPARE_LEFTOVERS: usize = 64;

/// What every received frame needs, whatever brought it.
struct Intake<'a> {
    now: MonoNs,
    frames: &'a mut Frames,
    budget: &'a mut ReassemblyBudget,
}

impl Intake<'_> {
    fn receive(
        &mut self,
        face: &mut Face,
        wire: &[u8],
        at: usize,
        peer: Option<SocketAddr>,
        is_congested: bool,
    ) {
        face.link.receive(
            wire,
            at,
            &mut RxContext {
                face: face.id,
                now: self.now,
                peer,
                is_congested,
                counters: &mut face.counters,
                frames: self.frames,
                budget: self.budget,
            },
        );
    }
}

/// Whether datagrams of an unknown peer make a face: if one of them is a whole
/// Interest, or the first fragment of one. Whatever else a peer sends first, there is
/// nothing to answer, and its address may be anybody's.
fn check_opening(bytes: &[u8], segment_bytes: usize) -> Result<(), DropReason> {
    let mut outcome = Err(DropReason::BadDatagram);
    for datagram in bytes.chunks(segment_bytes) {
        match LpView::parse(datagram) {
            Ok(frame) if opens_with_interest(&frame) => return Ok(()),
            Ok(frame) if !is_interest(&frame) => outcome = Err(DropReason::NoInterest),
            Ok(_) | Err(_) => {}
        }
    }
    outcome
}

/// Whether a frame seems to hold an Interest, or the beginning of one, that is not
/// sent back.
fn is_interest(frame: &LpView<'_>) -> bool {
    let headers = frame.headers();
    headers.nack.is_none()
        && headers.frag_index == 0
        && frame
            .fragment()
            .and_then(|fragment| fragment.first())
            .is_some_and(|&typ| u32::from(typ) == types::INTEREST)
}

/// Whether a frame holds an Interest, as far as it can be seen.
fn opens_with_interest(frame: &LpView<'_>) -> bool {
    let is_first = frame.headers().is_fragmented();
    is_interest(frame)
        && frame
            .fragment()
            .is_some_and(|fragment| is_first || InterestView::parse(fragment).is_ok())
}

/// Why a datagram or a message is not exactly one frame; `None`: it is.
#[inline]
fn message_fault(message: &[u8]) -> Option<DropReason> {
    match front(message) {
        Front::Frame(len) if len == message.len() => None,
        Front::NotNdn => Some(DropReason::NotNdn),
        _ => Some(DropReason::BadDatagram),
    }
}

/// Whether a connected socket has failed for a datagram that it has sent.
fn is_of_earlier(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

impl FaceSystem {
    /// Waits until something is ready, a timer of a face is due or `timeout` has
    /// passed (`None`: as long as it takes), then reads a burst into `batch`,
    /// which is emptied first, and does what is due. It may come back empty:
    /// woken by a [`crate::Waker`], for new faces, by a timer, or because of a
    /// signal.
    ///
    /// All take turns. A turn is about [`crate::TURN_PKTS`] packets of each peer
    /// (who has brought more lets turns pass until that is made good) and at most
    /// 64 KiB of a stream, 32 messages of a UDP socket, and 32 messages or 64 KiB
    /// of a WebSocket. No turn begins after
    /// [`crate::BATCH_TARGET_PKTS`] packets; whoever waits for one comes first
    /// in the next poll.
    ///
    /// # Errors
    /// If the wait itself fails; that of a single face only ends that face.
    pub fn poll(&mut self, timeout: Option<Duration>, batch: &mut RxBatch) -> io::Result<()> {
        batch.clear();
        self.finish_closing();
        if !self.poller.has_ready() {
            let is_waiting_for_nothing = !self.unread.is_empty() || !self.events.is_empty();
            let timeout = if is_waiting_for_nothing {
                Some(Duration::ZERO)
            } else {
                self.until_timer(timeout)
            };
            self.counters.n_poll_syscalls += 1;
            let cpu_ns = match std::mem::take(&mut self.is_next_wait_measured) {
                true => Some(thread_cpu_ns()),
                false => None,
            };
            self.poller.wait(timeout)?;
            self.wait_cpu_ns = cpu_ns.map(|before| thread_cpu_ns().saturating_sub(before));
        }
        self.now = monotonic_now().max(self.now);
        batch.set_received_at(self.now);
        self.read_burst(batch);
        self.counters.n_in_packets += batch.len() as u64;
        // After the reading: a face that has just been heard is not idle.
        self.handle_timeout();
        Ok(())
    }

    /// Serves the sockets that are ready and the WebSockets that may have
    /// messages in memory: in turns, from one poll to the next, since any turn
    /// may fill the batch.
    fn read_burst(&mut self, batch: &mut RxBatch) {
        // Those that are added meanwhile have had their turn.
        let mut n_unread = self.unread.len();
        while batch.has_room() {
            if n_unread > 0 && (self.is_unread_next || !self.poller.has_ready()) {
                n_unread -= 1;
                self.is_unread_next = false;
                let Some(id) = self.unread.pop_front() else {
                    continue;
                };
                if let Some(face) = self.faces.get_mut(id)
                    && let Transport::WebSocket(socket) = &mut face.transport
                {
                    socket.is_unread = false;
                    self.read_websocket(id, batch);
                }
            } else if let Some(ready) = self.poller.next_ready() {
                let before = batch.extent();
                self.handle_ready(ready, batch);
                // What brings nothing takes no turn.
                self.is_unread_next |= batch.extent() != before;
            } else {
                break;
            }
        }
    }

    /// `timeout`, or less if a timer is due before.
    pub(super) fn until_timer(&self, timeout: Option<Duration>) -> Option<Duration> {
        let at = self.next_timeout();
        if at == MonoNs::NEVER {
            return timeout;
        }
        let wait = at.saturating_since(monotonic_now());
        Some(timeout.map_or(wait, |timeout| timeout.min(wait)))
    }

    fn handle_ready(&mut self, ready: Ready, batch: &mut RxBatch) {
        match ready.token {
            Token::Waker => {
                self.counters.n_poll_syscalls += 1;
                self.waker.reset();
                self.take_deliveries();
            }
            // It has ended the wait, and that is all.
            Token::Watched => {}
            Token::Listener(key) => self.accept(key),
            Token::Udp(key) => {
                if ready.is_writable {
                    self.unblock_udp(key);
                }
                if ready.is_readable {
                    self.read_udp(key, batch);
                }
            }
            Token::Face(id) => {
                let Some(slot) = self.faces.slot_of(id) else {
                    return;
                };
                match &self.faces[slot].transport {
                    Transport::Stream(stream) => match stream.state {
                        StreamState::Connecting(_) => self.finish_connecting(slot),
                        StreamState::Open => {
                            if ready.is_writable {
                                self.unblock(slot);
                            }
                            if ready.is_readable {
                                self.read_stream(slot, batch);
                            }
                        }
                        StreamState::Waiting(_) => {}
                    },
                    Transport::WebSocket(socket) if socket.is_waiting() => {}
                    Transport::WebSocket(socket) if socket.is_open() => {
                        // Its turn comes from the other list.
                        let is_readable = ready.is_readable && !socket.is_unread;
                        if ready.is_writable {
                            self.unblock(slot);
                        }
                        if is_readable {
                            self.read_websocket(id, batch);
                        }
                    }
                    Transport::WebSocket(_) => self.advance_websocket(slot, batch),
                    Transport::Udp(_) | Transport::Multicast(_) => {}
                }
            }
        }
    }

    fn finish_connecting(&mut self, slot: usize) {
        self.counters.n_control_syscalls += 1;
        let Transport::Stream(stream) = &self.faces[slot].transport else {
            return;
        };
        match stream.take_connect_error() {
            Ok(()) => self.connected(slot),
            Err(error) => self.close(slot, CloseReason::ConnectFailed(error.kind())),
        }
    }

    /// Reads once from a stream, and cuts what came into frames.
    fn read_stream(&mut self, slot: usize, batch: &mut RxBatch) {
        let (memory, at, frames) = batch.split();
        let face = &mut self.faces[slot];
        if matches!(face.state, FaceState::Closing(_)) {
            return;
        }
        let Transport::Stream(stream) = &mut face.transport else {
            return;
        };
        let Some(read_bytes) = stream.turns.take() else {
            return;
        };
        let n_kept = stream.leftover.len();
        let room = (n_kept + read_bytes).min(memory.len());
        self.counters.n_rx_syscalls += 1;
        let n_read = match stream.receive(&mut memory[n_kept..room]) {
            Ok(0) => return self.close(slot, CloseReason::ClosedByPeer),
            Ok(n_read) => n_read,
            Err(error) => {
                let is_passing = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                );
                if !is_passing {
                    self.close(slot, CloseReason::Failed(error.kind()));
                }
                return;
            }
        };
        memory[..n_kept].copy_from_slice(&stream.leftover);
        let received = &memory[..n_kept + n_read];
        let mut leftover = std::mem::take(&mut stream.leftover);
        face.last_received_at = self.now;

        let mut intake = Intake {
            now: self.now,
            frames,
            budget: &mut self.reassembly,
        };
        let mut pos = 0;
        let mut n_frames = 0;
        let mut fault = None;
        while pos < received.len() {
            match front(&received[pos..]) {
                Front::Frame(len) => {
                    let wire = &received[pos..pos + len];
                    intake.receive(face, wire, at + pos, None, false);
                    pos += len;
                    n_frames += 1;
                }
                Front::Partial => break,
                Front::Malformed => {
                    fault = Some((DropReason::Malformed, CloseReason::MalformedStream));
                    break;
                }
                Front::NotNdn => {
                    fault = Some((DropReason::NotNdn, CloseReason::NotNdn));
                    break;
                }
            }
        }
        if let Transport::Stream(stream) = &mut face.transport {
            stream.turns.took(n_frames, 1);
        }
        let rest = &received[pos..];
        let is_unfinished = fault.is_none() && !rest.is_empty();
        if let Transport::Stream(stream) = &mut face.transport {
            if !is_unfinished {
                stream.unfinished_since = MonoNs::NEVER;
            } else if n_frames > 0 || stream.unfinished_since == MonoNs::NEVER {
                stream.unfinished_since = self.now;
            }
        }
        if !is_unfinished {
            if leftover.capacity() > 0 && self.leftovers.len() < MAX_SPARE_LEFTOVERS {
                self.leftovers.push(leftover);
            }
        } else {
            if leftover.capacity() == 0 {
                leftover = self.leftovers.pop().unwrap_or_default();
            }
            leftover.clear();
            leftover.extend_from_slice(rest);
            if let Transport::Stream(stream) = &mut face.transport {
                stream.leftover = leftover;
            }
        }
        let n_received = received.len();
        batch.keep(n_received);
        if let Some((reason, close_reason)) = fault {
            self.faces[slot].counters.drops.add(reason, 1);
            self.close(slot, close_reason);
        } else if is_unfinished {
            self.arm(slot);
        }
        self.after_receiving(slot);
    }

    /// Looks after acknowledgements and timers of a face that has received.
    #[inline]
    fn after_receiving(&mut self, slot: usize) {
        if self.faces[slot].link.has_timers() {
            if self.faces[slot].link.is_due(self.now) {
                self.mark_dirty(slot);
            }
            self.arm(slot);
        }
    }

    /// Receives one batch of datagrams.
    fn read_udp(&mut self, key: SocketKey, batch: &mut RxBatch) {
        let (memory, at, frames) = batch.split();
        let Some(socket) = self.udp.get_mut(key) else {
            return;
        };
        let Some(max_messages) = socket.turns.take() else {
            return;
        };
        let n_slots = (memory.len() / SLOT_BYTES).min(max_messages);
        self.counters.n_rx_syscalls += 1;
        let mut received = self.udp_receiver.receive(socket.fd(), memory, n_slots);
        if let Some(id) = socket.only_face()
            && let Err(error) = &received
            && is_of_earlier(error)
        {
            // It says nothing about the datagrams that have arrived.
            self.faces.count_returned(id, error.kind());
            self.counters.n_rx_syscalls += 1;
            received = self.udp_receiver.receive(socket.fd(), memory, n_slots);
        }
        let Ok(n_messages) = received else {
            return;
        };
        let lens = (0..n_messages).map(|idx| self.udp_receiver.message(idx).len_bytes);
        let taken_bytes: usize = lens.sum();
        let may_have_more = n_messages >= n_slots;
        if may_have_more || socket.was_filling(taken_bytes) {
            // There may be more than we keep up with.
            self.counters.n_control_syscalls += 1;
            self.counters.n_kernel_drops += socket.look_at_queue(taken_bytes);
        } else {
            socket.is_congested = false;
        }
        let is_congested = socket.is_congested;
        self.senders.clear();
        let mut end = 0;
        for idx in 0..n_messages {
            let message = self.udp_receiver.message(idx);
            end = message.offset + message.len_bytes;
            let bytes = &memory[message.offset..end];
            self.receive_message(
                key,
                &message,
                bytes,
                at + message.offset,
                frames,
                is_congested,
            );
        }
        batch.keep(end);
        let Some(socket) = self.udp.get_mut(key) else {
            return;
        };
        // What belongs to no face is not charged to those that share the socket.
        let n_datagrams = self.senders.n_datagrams();
        socket.turns.took(n_datagrams, self.senders.len().max(1));
        let was_much = n_messages == MAX_RECEIVED || n_datagrams >= TURN_PKTS;
        if may_have_more
            && was_much
            && matches!(socket.role, UdpRole::Channel(_))
            && let Some(id) = self.senders.greatest()
        {
            self.give_branch(id, BranchKind::Stranger);
        }
    }

    /// Takes one message: a datagram, or several of one sender.
    fn receive_message(
        &mut self,
        key: SocketKey,
        message: &ReceivedMessage,
        bytes: &[u8],
        at: usize,
        frames: &mut Frames,
        is_congested: bool,
    ) {
        let Some(from) = message.from else {
            self.past_drops.add(DropReason::UnknownPeer, 1);
            return;
        };
        let segment_bytes = message.segment_bytes();
        let Some((slot, peer)) = self.face_of_peer(key, &from, message, bytes) else {
            return;
        };
        let branch_ip = self.udp.get(key).and_then(UdpSocket::branch_ip);
        let face = &mut self.faces[slot];
        self.senders.note(face.id, message.n_datagrams());
        if let Transport::Udp(peer) = &mut face.transport
            && peer.source.is_some()
        {
            peer.source = message.control.local_ip.or(branch_ip).or(peer.source);
        }
        face.last_received_at = self.now;
        if message.is_truncated {
            face.counters.drops.add(DropReason::TooLarge, 1);
            return;
        }
        let mut intake = Intake {
            now: self.now,
            frames,
            budget: &mut self.reassembly,
        };
        if bytes.is_empty() {
            face.counters.drops.add(DropReason::BadDatagram, 1);
        }
        let mut offset = 0;
        for datagram in bytes.chunks(segment_bytes) {
            match message_fault(datagram) {
                None => intake.receive(face, datagram, at + offset, peer, is_congested),
                Some(reason) => face.counters.drops.add(reason, 1),
            }
            offset += datagram.len();
        }
        self.after_receiving(slot);
    }

    /// The face that a datagram is for, made if need be; and its sender, if
    /// the face has several.
    fn face_of_peer(
        &mut self,
        key: SocketKey,
        from: &SocketAddr,
        message: &ReceivedMessage,
        bytes: &[u8],
    ) -> Option<(usize, Option<SocketAddr>)> {
        let socket = self.udp.get(key)?;
        if let UdpRole::Multicast { face, own, .. } = &socket.role {
            if own.as_ref() == Some(from) {
                return None;
            }
            return Some((self.faces.slot_of(*face)?, Some(*from)));
        }
        let (key, socket, own_ip) = match &socket.role {
            UdpRole::Branch(branch) if branch.peer == *from => {
                return Some((self.faces.slot_of(branch.face)?, None));
            }
            // It came before the branch was connected, and was for the channel, unless
            // branches begin where they can hear nothing that is.
            UdpRole::Branch(_) if self.options.share.siblings().is_some() => {
                let n_datagrams = message.n_datagrams() as u64;
                self.past_drops.add(DropReason::UnknownPeer, n_datagrams);
                return None;
            }
            UdpRole::Branch(branch) => {
                let channel = self.udp.get(branch.channel)?;
                (branch.channel, channel, Some(socket.local.ip()))
            }
            _ => (key, socket, message.control.local_ip),
        };
        if let Some(&id) = socket.peers.get(from) {
            return Some((self.faces.slot_of(id)?, None));
        }
        let n_datagrams = message.n_datagrams() as u64;
        let UdpRole::Channel(defaults) = &socket.role else {
            self.past_drops.add(DropReason::UnknownPeer, n_datagrams);
            return None;
        };
        if let Err(reason) = check_opening(bytes, message.segment_bytes()) {
            self.past_drops.add(reason, n_datagrams);
            return None;
        }
        let defaults = *defaults;
        if self.is_drawn_elsewhere(from) {
            self.past_drops.add(DropReason::UnknownPeer, n_datagrams);
            return None;
        }
        let own_ip = if socket.is_wildcard() {
            own_ip
        } else {
            Some(socket.local.ip())
        };
        let own = own_ip.unwrap_or(socket.local.ip());
        let scope = self.options.localities.udp.scope((own, 0).into(), *from);
        if let Err(reason) = self.make_room(scope, CameBy::Datagram, Some(*from)) {
            self.past_drops.add(reason, n_datagrams);
            return None;
        }
        let created = self.create_on_demand(key, &defaults, *from, own_ip);
        self.sources.release();
        let id = created?;
        Some((self.faces.slot_of(id)?, None))
    }

    fn advance_websocket(&mut self, slot: usize, batch: &mut RxBatch) {
        let face = &mut self.faces[slot];
        let id = face.id;
        let Transport::WebSocket(socket) = &mut face.transport else {
            return;
        };
        if matches!(face.state, FaceState::Closing(_)) {
            return;
        }
        let was_connecting = socket.is_connecting();
        match socket.advance() {
            Ok(Progress::Pending) if was_connecting => {
                // The answer to the handshake is to be read now.
                let interest = crate::poller::Interest::Read;
                self.counters.n_control_syscalls += 1;
                if let Some(fd) = socket.fd()
                    && let Err(error) = self.poller.modify(fd, Token::Face(id), interest)
                {
                    self.close(slot, CloseReason::ConnectFailed(error.kind()));
                }
            }
            Ok(Progress::Pending) => {}
            Ok(Progress::Opened) => {
                if !self.admit_websocket(slot) {
                    return;
                }
                self.connected(slot);
                // Frames may have come with the handshake.
                self.read_websocket(id, batch);
            }
            Err(error) => {
                if socket.sender() == Some(Sender::UnacceptedOrigin) {
                    face.counters.drops.add(DropReason::OriginRefused, 1);
                }
                self.close(slot, CloseReason::ConnectFailed(error.kind()));
            }
        }
    }

    /// Settles the scope of a WebSocket whose handshake is over: an accepted one of
    /// a web page, or behind a proxy, is not local. False: as such it finds no room
    /// and is closed.
    fn admit_websocket(&mut self, slot: usize) -> bool {
        let face = &self.faces[slot];
        if face.scope == FaceScope::NonLocal || !face.is_indirect() {
            return true;
        }
        let peer = face.remote.socket_addr();
        let room = self.make_room(FaceScope::NonLocal, CameBy::Connection, peer);
        if room.is_err() {
            self.counters.n_refused += 1;
            self.close(slot, CloseReason::Destroyed);
            return false;
        }
        self.faces[slot].set_scope(FaceScope::NonLocal);
        self.settle_source(slot);
        true
    }

    /// Reads messages from a WebSocket until there are none, it has had its
    /// share, or the batch is full.
    fn read_websocket(&mut self, id: FaceId, batch: &mut RxBatch) {
        let Some(slot) = self.faces.slot_of(id) else {
            return;
        };
        if let Transport::WebSocket(socket) = &mut self.faces[slot].transport {
            socket.begin_round();
        }
        let (mut n_messages, mut n_read_bytes) = (0, 0);
        let mut outcome = loop {
            let face = &mut self.faces[slot];
            if matches!(face.state, FaceState::Closing(_)) {
                break Ok(());
            }
            let Transport::WebSocket(socket) = &mut face.transport else {
                break Ok(());
            };
            let has_had_its_share =
                n_messages == MAX_WEBSOCKET_MESSAGES || n_read_bytes > STREAM_READ_BYTES;
            if has_had_its_share || !batch.has_room() {
                // Messages that are in memory make no socket ready.
                if !std::mem::replace(&mut socket.is_unread, true) {
                    self.unread.push_back(id);
                }
                break Ok(());
            }
            n_messages += 1;
            match socket.receive() {
                Ok(Incoming::Frame(bytes)) => {
                    n_read_bytes += bytes.len();
                    face.last_received_at = self.now;
                    let (memory, at, frames) = batch.split();
                    let wire = &mut memory[..bytes.len()];
                    wire.copy_from_slice(&bytes);
                    let mut intake = Intake {
                        now: self.now,
                        frames,
                        budget: &mut self.reassembly,
                    };
                    match message_fault(wire) {
                        None => intake.receive(face, wire, at, None, false),
                        Some(reason) => face.counters.drops.add(reason, 1),
                    }
                    batch.keep(bytes.len());
                }
                Ok(Incoming::Nothing) => {}
                Ok(Incoming::Empty) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Transport::WebSocket(socket) = &mut self.faces[slot].transport {
            let ended = socket.end_round();
            outcome = outcome.and(ended);
            let (n_reads, n_writes) = socket.take_syscalls();
            self.counters.n_rx_syscalls += n_reads;
            self.counters.n_tx_syscalls += n_writes;
            self.count_unsent(slot);
        }
        if let Err(error) = outcome {
            let reason = match error.kind() {
                io::ErrorKind::InvalidData => {
                    let drops = &mut self.faces[slot].counters.drops;
                    drops.add(DropReason::Malformed, 1);
                    CloseReason::MalformedStream
                }
                io::ErrorKind::ConnectionReset => CloseReason::ClosedByPeer,
                kind => CloseReason::Failed(kind),
            };
            self.close(slot, reason);
        }
        self.after_receiving(slot);
    }
}
