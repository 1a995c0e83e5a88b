//! Queueing packets, and handing the queues over to the kernel.

use std::io;

use tachonym_packet::MonoNs;
use tachonym_packet::lp::{FaceId, Headers};

use super::FaceSystem;
use crate::clock::monotonic_now;
use crate::counters::DropReason;
use crate::error::CloseReason;
use crate::face::FaceState;
use crate::link::{BareOutcome, Congested, MAX_DUE_BYTES, TxContext};
use crate::poller::{Interest, SocketKey, Token};
use crate::sys::udp::{MAX_SENT, OutMessage};
use crate::transport::udp::{Run, UdpRole, next_run};
use crate::transport::{Transport, UdpPeer};

/// A queue that has grown to this is handed over before the burst is done, so
/// that it stays in the cache and below its limit.
const FLUSH_AT_BYTES: usize = 128 << 10;
/// What headers add to a packet, about.
const HEADROOM_BYTES: usize = 128;

/// One message of a batch to be sent.
#[derive(Clone, Copy)]
pub(super) struct Planned {
    slot: usize,
    /// Where it begins in the face's queue.
    offset: usize,
    run: Run,
}

/// A backlog above this part of what it may be is nearly full: a consumer in
/// slow start doubles its window before the first mark reaches it, which waits
/// behind the backlog and what the kernel holds of a TCP connection besides.
const NEARLY_FULL_PART: usize = 16;

impl FaceSystem {
    /// Queues a packet for a face. `l3` is an Interest or a Data; `headers`
    /// say what travels with it, as far as the face's link service lets it.
    /// Nothing leaves before [`FaceSystem::flush`], or before much is queued.
    ///
    /// # Errors
    /// If the packet is dropped; it has been counted.
    #[inline]
    pub fn send(&mut self, id: FaceId, headers: &Headers, l3: &[u8]) -> Result<(), DropReason> {
        self.send_announcing(id, headers, None, l3)
    }

    /// Like [`FaceSystem::send`], with the TLV-VALUE of PrefixAnnouncement.
    ///
    /// # Errors
    /// As for [`FaceSystem::send`].
    pub fn send_announcing(
        &mut self,
        id: FaceId,
        headers: &Headers,
        prefix_announcement: Option<&[u8]>,
        l3: &[u8],
    ) -> Result<(), DropReason> {
        let size = l3.len() + prefix_announcement.map_or(0, <[u8]>::len);
        let slot = self.prepare(id, size)?;
        let congested = self.congested(slot);
        let face = &mut self.faces[slot];
        let before = face.backlog_bytes();
        let outcome = face.link.send(
            headers,
            prefix_announcement,
            l3,
            congested,
            &mut TxContext {
                now: self.now,
                queue: &mut face.tx,
                pool: &mut self.pool,
                counters: &mut face.counters,
                scratch: &mut self.scratch,
            },
        );
        self.after_sending(slot, before, outcome)
    }

    /// Like [`FaceSystem::send`], for a packet that `write` appends to the
    /// bytes it is given; where nothing has to be added it is written in
    /// place. A `write` that appends nothing sends nothing. `size_hint_bytes`
    /// is about how long the packet will be.
    ///
    /// # Errors
    /// As for [`FaceSystem::send`].
    pub fn send_with(
        &mut self,
        id: FaceId,
        headers: &Headers,
        size_hint_bytes: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), DropReason> {
        let slot = self.prepare(id, size_hint_bytes)?;
        let congested = self.congested(slot);
        let face = &mut self.faces[slot];
        if !face.link.sends_bare(headers, congested) {
            let mut l3 = std::mem::take(&mut self.scratch.l3);
            l3.clear();
            write(&mut l3);
            let outcome = if l3.is_empty() {
                Ok(())
            } else {
                self.send(id, headers, &l3)
            };
            self.scratch.l3 = l3;
            return outcome;
        }
        let before = face.backlog_bytes();
        let outcome = face.link.send_bare(
            write,
            &mut TxContext {
                now: self.now,
                queue: &mut face.tx,
                pool: &mut self.pool,
                counters: &mut face.counters,
                scratch: &mut self.scratch,
            },
        );
        match outcome {
            Ok(BareOutcome::Sent) => self.after_sending(slot, before, Ok(())),
            Ok(BareOutcome::TooLong) => {
                let l3 = std::mem::take(&mut self.scratch.l3);
                let outcome = self.send(id, headers, &l3);
                self.scratch.l3 = l3;
                outcome
            }
            Err(reason) => self.after_sending(slot, before, Err(reason)),
        }
    }

    /// Finds the face, and room for about `size_bytes` in its queue.
    #[inline]
    fn prepare(&mut self, id: FaceId, size_bytes: usize) -> Result<usize, DropReason> {
        let Some(slot) = self.faces.slot_of(id) else {
            self.past_drops.add(DropReason::NoSuchFace, 1);
            return Err(DropReason::NoSuchFace);
        };
        let face = &mut self.faces[slot];
        if !matches!(face.state, FaceState::Up | FaceState::Connecting) {
            face.counters.drops.add(DropReason::FaceDown, 1);
            return Err(DropReason::FaceDown);
        }
        if face.tx.len_bytes() >= FLUSH_AT_BYTES {
            self.flush_face(slot);
        }
        let needed_bytes = size_bytes + HEADROOM_BYTES;
        let allowance_bytes = self.backlogs.allowance_bytes();
        let face = &mut self.faces[slot];
        let backlog_bytes = face.backlog_bytes() + needed_bytes;
        if backlog_bytes > self.options.max_face_backlog_bytes {
            face.counters.drops.add(DropReason::BacklogFull, 1);
            return Err(DropReason::BacklogFull);
        }
        if backlog_bytes > allowance_bytes {
            face.counters.drops.add(DropReason::TotalBacklogFull, 1);
            return Err(DropReason::TotalBacklogFull);
        }
        Ok(slot)
    }

    #[inline]
    fn after_sending(
        &mut self,
        slot: usize,
        before_bytes: usize,
        outcome: Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let face = &mut self.faces[slot];
        self.backlogs.changed(before_bytes, face.backlog_bytes());
        let has_timers = face.link.has_timers();
        match outcome {
            Ok(()) => self.counters.n_out_packets += 1,
            Err(reason) => face.counters.drops.add(reason, 1),
        }
        self.mark_dirty(slot);
        if has_timers {
            self.arm(slot);
        }
        outcome
    }

    /// How congested the way out of a face is.
    #[inline]
    fn congested(&mut self, slot: usize) -> Congested {
        let face = &mut self.faces[slot];
        let options = face.link.options();
        if !options.congestion_marking {
            return Congested::No;
        }
        let threshold = options.default_congestion_threshold_bytes;
        let own_bytes = face.backlog_bytes();
        if own_bytes > self.options.max_face_backlog_bytes / NEARLY_FULL_PART {
            return Congested::SendQueueNearlyFull;
        }
        let is_long = match &mut face.transport {
            Transport::Stream(stream) => {
                let queue = &mut stream.queue;
                if ((own_bytes + queue.upper_bound_bytes()) as u64) <= threshold {
                    return Congested::No;
                }
                if queue.may_look(self.now) {
                    self.counters.n_control_syscalls += 1;
                    stream.look_at_queue(self.now);
                }
                (own_bytes + stream.queue.last_bytes()) as u64 > threshold
            }
            Transport::WebSocket(_) => own_bytes as u64 > threshold,
            Transport::Udp(peer) => {
                let socket = self.udp.get(peer.branch.unwrap_or(peer.socket));
                if socket.is_some_and(|socket| socket.is_congested) {
                    return Congested::ReceiveQueue;
                }
                own_bytes as u64 > threshold
            }
            Transport::Multicast(_) => own_bytes as u64 > threshold,
        };
        if is_long {
            Congested::SendQueue
        } else {
            Congested::No
        }
    }

    /// Notes that a face has something to send.
    #[inline]
    pub(super) fn mark_dirty(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        if face.is_dirty {
            return;
        }
        face.is_dirty = true;
        let key = match &face.transport {
            Transport::Stream(_) | Transport::WebSocket(_) => {
                self.dirty_faces.push(face.id);
                return;
            }
            Transport::Udp(peer) => peer.socket,
            Transport::Multicast(key) => *key,
        };
        if let Some(socket) = self.udp.get_mut(key) {
            if socket.dirty.is_empty() {
                self.dirty_sockets.push(key);
            }
            socket.dirty.push(face.id);
        }
    }

    /// Hands everything queued over to the kernel, as far as it takes it, and
    /// removes the faces that have failed. Call it after each burst.
    pub fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty_faces);
        for id in dirty.drain(..) {
            if let Some(slot) = self.faces.slot_of(id) {
                self.faces[slot].is_dirty = false;
                self.flush_face(slot);
            }
        }
        // What could not be sent for a passing reason has been added anew.
        dirty.append(&mut self.dirty_faces);
        self.dirty_faces = dirty;
        let mut dirty = std::mem::take(&mut self.dirty_sockets);
        for key in dirty.drain(..) {
            self.flush_udp(key);
        }
        dirty.append(&mut self.dirty_sockets);
        self.dirty_sockets = dirty;
        self.finish_closing();
        self.now = monotonic_now().max(self.now);
    }

    /// Hands over the queue of one face, or of all that share its socket, and
    /// what its link has to send besides.
    fn flush_face(&mut self, slot: usize) {
        if self.faces[slot].tx.len_bytes() >= MAX_DUE_BYTES {
            self.hand_over(slot);
        }
        self.write_due(slot);
        self.hand_over(slot);
    }

    fn hand_over(&mut self, slot: usize) {
        match &self.faces[slot].transport {
            Transport::Stream(_) => self.flush_stream(slot),
            Transport::WebSocket(_) => self.flush_websocket(slot),
            Transport::Udp(peer) => {
                let key = peer.socket;
                self.flush_udp(key);
            }
            Transport::Multicast(key) => {
                let key = *key;
                self.flush_udp(key);
            }
        }
    }

    /// Queues the retransmissions and acknowledgements of a face, unless much
    /// waits already or the kernel takes nothing: the peer decides how many
    /// there are.
    fn write_due(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        let was_held = std::mem::take(&mut face.is_held);
        if !face.link.is_due(self.now) || face.state != FaceState::Up {
            if was_held {
                self.arm(slot);
            }
            return;
        }
        face.is_held = match &face.transport {
            Transport::Stream(stream) => stream.is_blocked,
            Transport::WebSocket(socket) => socket.is_blocked,
            Transport::Udp(UdpPeer { socket: key, .. }) | Transport::Multicast(key) => {
                self.udp.get(*key).is_some_and(|socket| socket.is_blocked)
            }
        };
        let before = face.backlog_bytes();
        if !face.is_held && before < MAX_DUE_BYTES {
            face.link.write_due(&mut TxContext {
                now: self.now,
                queue: &mut face.tx,
                pool: &mut self.pool,
                counters: &mut face.counters,
                scratch: &mut self.scratch,
            });
            self.backlogs.changed(before, face.backlog_bytes());
        }
        self.arm(slot);
    }

    fn flush_stream(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        let Transport::Stream(stream) = &mut face.transport else {
            return;
        };
        if face.state != FaceState::Up || stream.is_blocked || face.tx.is_empty() {
            return;
        }
        self.counters.n_tx_syscalls += 1;
        match stream.send(face.tx.bytes()) {
            Ok(n_sent) => {
                stream.queue.sent(n_sent);
                face.blocked_since = MonoNs::NEVER;
                self.consume(slot, n_sent);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.mark_dirty(slot);
                return;
            }
            Err(error) => {
                self.close(slot, CloseReason::Failed(error.kind()));
                return;
            }
        }
        if !self.faces[slot].tx.is_empty() {
            self.block(slot);
        }
    }

    fn flush_websocket(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        let before_bytes = face.backlog_bytes();
        let Transport::WebSocket(socket) = &mut face.transport else {
            return;
        };
        if face.state != FaceState::Up || socket.is_blocked {
            return;
        }
        let mut outcome = match face.unsent_bytes {
            0 => Ok(true),
            // No more is added to what waits there already.
            _ => socket.flush(),
        };
        while let Ok(true) = outcome
            && let Some(&len) = face.tx.frame_lens().first()
        {
            let len = len as usize;
            outcome = socket.send(&face.tx.bytes()[..len]);
            if let Ok(true) = outcome {
                face.tx.consume(&mut self.pool, len);
                outcome = Ok(!socket.is_blocked);
            }
        }
        if let Ok(true) = outcome {
            outcome = socket.flush();
        }
        socket.is_blocked = false;
        let (n_reads, n_writes) = socket.take_syscalls();
        self.counters.n_rx_syscalls += n_reads;
        self.counters.n_tx_syscalls += n_writes;
        face.unsent_bytes = socket.unsent_bytes();
        self.backlogs.changed(before_bytes, face.backlog_bytes());
        match outcome {
            Ok(true) => {}
            Ok(false) => self.block(slot),
            Err(error) => self.close(slot, CloseReason::Failed(error.kind())),
        }
    }

    /// Accounts for what the buffer of a WebSocket holds after it was written to.
    pub(super) fn count_unsent(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        let before_bytes = face.backlog_bytes();
        if let Transport::WebSocket(socket) = &face.transport {
            face.unsent_bytes = socket.unsent_bytes();
        }
        self.backlogs.changed(before_bytes, face.backlog_bytes());
    }

    /// Waits until the kernel takes more from a face, but not for ever.
    fn block(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        if face.blocked_since == MonoNs::NEVER {
            face.blocked_since = self.now;
        }
        self.set_blocked(slot, true);
        self.arm(slot);
    }

    /// The kernel takes more from a face.
    pub(super) fn unblock(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        let was_blocked = match &mut face.transport {
            Transport::Stream(stream) => std::mem::take(&mut stream.is_blocked),
            Transport::WebSocket(socket) => {
                // How much it takes of its own buffer is not to be seen, but
                // it takes something whenever it is ready.
                face.blocked_since = MonoNs::NEVER;
                std::mem::take(&mut socket.is_blocked)
            }
            Transport::Udp(_) | Transport::Multicast(_) => false,
        };
        if !was_blocked {
            return;
        }
        self.flush_face(slot);
        let still_blocked = match &self.faces[slot].transport {
            Transport::Stream(stream) => stream.is_blocked,
            Transport::WebSocket(socket) => socket.is_blocked,
            Transport::Udp(_) | Transport::Multicast(_) => false,
        };
        if !still_blocked {
            self.faces[slot].blocked_since = MonoNs::NEVER;
            self.set_blocked(slot, false);
        }
    }

    fn set_blocked(&mut self, slot: usize, is_blocked: bool) {
        let face = &mut self.faces[slot];
        if matches!(face.state, FaceState::Closing(_)) {
            return;
        }
        let interest = if is_blocked {
            Interest::ReadWrite
        } else {
            Interest::Read
        };
        match &mut face.transport {
            Transport::Stream(stream) => stream.is_blocked = is_blocked,
            Transport::WebSocket(socket) => socket.is_blocked = is_blocked,
            Transport::Udp(_) | Transport::Multicast(_) => return,
        }
        let Some(fd) = super::lifecycle::own_fd(&face.transport) else {
            return;
        };
        self.counters.n_control_syscalls += 1;
        if let Err(error) = self.poller.modify(fd, Token::Face(face.id), interest) {
            self.close(slot, CloseReason::Failed(error.kind()));
        }
    }

    /// The kernel takes more from a UDP socket.
    pub(super) fn unblock_udp(&mut self, key: SocketKey) {
        let Some(socket) = self.udp.get_mut(key) else {
            return;
        };
        if !std::mem::take(&mut socket.is_blocked) {
            return;
        }
        self.flush_udp(key);
        if let Some(socket) = self.udp.get(key)
            && !socket.is_blocked
        {
            self.counters.n_control_syscalls += 1;
            // Should it fail, the socket is woken for nothing.
            let _ = self
                .poller
                .modify(socket.fd(), Token::Udp(key), Interest::Read);
        }
    }

    /// Hands over the queues of all faces of a UDP socket.
    fn flush_udp(&mut self, key: SocketKey) {
        let Some(socket) = self.udp.get_mut(key) else {
            return;
        };
        let mut dirty = std::mem::take(&mut socket.dirty);
        for &id in &dirty {
            if let Some(slot) = self.faces.slot_of(id) {
                self.faces[slot].is_dirty = false;
                self.write_due(slot);
            }
        }
        let is_drained = self.send_queues(key, &dirty);
        if is_drained && self.udp.get(key).is_none_or(|socket| !socket.is_blocked) {
            dirty.clear();
        } else {
            // Those that still have something stay on the list.
            dirty.retain(|&id| {
                self.faces.get_mut(id).is_some_and(|face| {
                    face.is_dirty = !face.tx.is_empty() || face.is_held;
                    face.is_dirty
                })
            });
        }
        if let Some(socket) = self.udp.get_mut(key) {
            if !dirty.is_empty() && !socket.is_blocked {
                self.dirty_sockets.push(key);
            }
            socket.dirty = dirty;
        }
    }

    /// Sends the queues of these faces. False if the kernel takes no more.
    fn send_queues(&mut self, key: SocketKey, ids: &[FaceId]) -> bool {
        // Of a connected socket, a call may fail for what came back of an earlier
        // datagram; the next one will tell.
        let mut first_failure = None;
        loop {
            self.plan(ids);
            if self.plan.is_empty() {
                return true;
            }
            let Some(socket) = self.udp.get_mut(key) else {
                return true;
            };
            if socket.is_blocked {
                return false;
            }
            let to_group = match socket.role {
                UdpRole::Multicast { group, .. } => Some(group),
                _ => None,
            };
            let is_connected = matches!(socket.role, UdpRole::Connected);
            let faces = &self.faces;
            let messages = self.plan.iter().map(|planned| {
                let face = &faces[planned.slot];
                let (to, source) = match &face.transport {
                    Transport::Udp(peer) if !is_connected => (Some(peer.remote), peer.source),
                    _ => (to_group, None),
                };
                let end = planned.offset + planned.run.n_bytes;
                OutMessage {
                    bytes: &face.tx.bytes()[planned.offset..end],
                    segment_bytes: planned.run.segment_bytes,
                    to,
                    source,
                }
            });
            self.counters.n_tx_syscalls += 1;
            match self.udp_sender.send(socket.fd(), messages) {
                Ok(n_sent) => {
                    if let Some(kind) = first_failure.take()
                        && let Some(id) = socket.only_face()
                    {
                        self.faces.count_returned(id, kind);
                    }
                    for idx in 0..n_sent {
                        let planned = self.plan[idx];
                        self.consume(planned.slot, planned.run.n_bytes);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_blocked = true;
                    self.counters.n_control_syscalls += 1;
                    let fd = socket.fd();
                    // Should it fail, the next flush tries again.
                    let waits = self.poller.modify(fd, Token::Udp(key), Interest::ReadWrite);
                    socket.is_blocked = waits.is_ok();
                    return false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_connected && first_failure.is_none() => {
                    first_failure = Some(error.kind());
                }
                Err(error) => self.handle_send_error(key, &error),
            }
        }
    }

    /// Cuts the queues of these faces into messages, as many as one system
    /// call takes.
    fn plan(&mut self, ids: &[FaceId]) {
        self.plan.clear();
        for &id in ids {
            let Some(slot) = self.faces.slot_of(id) else {
                continue;
            };
            let face = &self.faces[slot];
            let max_segment_bytes = match &face.transport {
                Transport::Udp(peer) => peer.max_segment_bytes,
                _ => 0,
            };
            let mut lens = face.tx.frame_lens();
            let mut offset = 0;
            while !lens.is_empty() {
                if self.plan.len() == MAX_SENT {
                    return;
                }
                let run = next_run(lens, max_segment_bytes);
                self.plan.push(Planned { slot, offset, run });
                lens = &lens[run.n_frames..];
                offset += run.n_bytes;
            }
        }
    }

    fn consume(&mut self, slot: usize, n_bytes: usize) {
        let face = &mut self.faces[slot];
        let before_bytes = face.backlog_bytes();
        face.tx.consume(&mut self.pool, n_bytes);
        self.backlogs.changed(before_bytes, face.backlog_bytes());
    }

    /// The first planned message was refused: it goes another way, or goes
    /// lost, but the ones behind it are sent.
    fn handle_send_error(&mut self, key: SocketKey, error: &io::Error) {
        let Some(&Planned { slot, run, .. }) = self.plan.first() else {
            return;
        };
        let face = &mut self.faces[slot];
        if let (Some(segment_bytes), Transport::Udp(peer)) =
            (run.segment_bytes, &mut face.transport)
        {
            match error.raw_os_error() {
                // Segments may not be larger than the link's MTU; single
                // datagrams may, and leave as IP fragments.
                Some(libc::EINVAL | libc::EMSGSIZE) => {
                    peer.max_segment_bytes = u32::from(segment_bytes) - 1;
                    return;
                }
                // The device of this route cannot do it.
                Some(libc::EIO | libc::EOPNOTSUPP) => {
                    peer.max_segment_bytes = 0;
                    if let Some(socket) = self.udp.get_mut(key) {
                        socket.has_gso = false;
                    }
                    return;
                }
                _ => {}
            }
        }
        face.counters
            .drops
            .add(DropReason::SendError, run.n_frames as u64);
        self.consume(slot, run.n_bytes);
    }
}
