//! The face system: every socket of a router behind one `epoll`.

mod create;
mod receive;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use hashbrown::HashMap;
use rustix::event::epoll::{self, EventData, EventFlags};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, MonoNs};
use tachonym_protocol::FacePersistency;

use crate::info::{
    CloseReason, DropReason, FaceCounters, FaceEvent, FaceInfo, FaceUpdate, SystemCounters,
    SystemOptions,
};
use crate::link::LinkService;
use crate::reassembly::Waiting;
use crate::stream::Stream;
use crate::sys::RecvBatch;
use crate::udp::{self, UdpChannel};
use crate::waker::Waker;

/// Events taken from the kernel with one call.
const MAX_EVENTS: usize = 256;
/// How often idle faces are looked for.
const IDLE_SCAN: Duration = Duration::from_secs(5);
/// Pause before a permanent face connects again, doubled up to the longest.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// What an `epoll` event speaks of; packed into its 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Waker,
    Listener(usize),
    Udp(usize),
    Face(FaceId),
}

impl Token {
    fn pack(self) -> EventData {
        EventData::new_u64(match self {
            Self::Waker => 0,
            Self::Listener(idx) => 1 | (idx as u64) << 2,
            Self::Udp(idx) => 2 | (idx as u64) << 2,
            Self::Face(id) => 3 | id.0 << 2,
        })
    }

    fn unpack(data: EventData) -> Self {
        let bits = data.u64();
        match bits & 3 {
            0 => Self::Waker,
            1 => Self::Listener((bits >> 2) as usize),
            2 => Self::Udp((bits >> 2) as usize),
            _ => Self::Face(FaceId(bits >> 2)),
        }
    }
}

enum Listener {
    Unix {
        socket: OwnedFd,
        path: std::path::PathBuf,
    },
    Tcp {
        socket: OwnedFd,
        local: SocketAddr,
    },
}

enum Transport {
    Stream(Stream),
    Udp {
        channel_idx: usize,
        peer: SocketAddr,
    },
}

struct Face {
    info: FaceInfo,
    link: LinkService,
    transport: Transport,
    last_received: MonoNs,
    is_dirty: bool,
    /// When a connection that is down is tried again, and the pause after.
    retry: Option<(MonoNs, Duration)>,
}

/// Every face and listener of a router.
///
/// One thread drives it: [`poll`](Self::poll) to receive, [`send`](Self::send)
/// and [`flush`](Self::flush) to send, [`poll_event`](Self::poll_event) to learn
/// which faces came and went.
pub struct FaceSystem {
    options: SystemOptions,
    epoll: OwnedFd,
    waker: Waker,
    faces: HashMap<FaceId, Face, foldhash::fast::RandomState>,
    listeners: Vec<Listener>,
    udp: Vec<UdpChannel>,
    datagrams: RecvBatch,
    events: VecDeque<FaceEvent>,
    /// Stream faces and UDP sockets with something to flush.
    dirty_faces: Vec<FaceId>,
    dirty_udp: Vec<usize>,
    /// Faces with incomplete packets.
    reassembling: Waiting,
    scratch: Vec<u8>,
    next_id: FaceId,
    next_scan: MonoNs,
    counters: SystemCounters,
    now: MonoNs,
}

impl FaceSystem {
    /// A system without faces or listeners.
    ///
    /// # Errors
    /// If the kernel gives no file descriptors.
    pub fn new(options: SystemOptions) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        epoll::add(&epoll, waker.event(), Token::Waker.pack(), EventFlags::IN)?;
        Ok(Self {
            options,
            epoll,
            waker,
            faces: HashMap::default(),
            listeners: Vec::new(),
            udp: Vec::new(),
            datagrams: udp::receive_storage(),
            events: VecDeque::new(),
            dirty_faces: Vec::new(),
            dirty_udp: Vec::new(),
            reassembling: Vec::new(),
            scratch: Vec::new(),
            next_id: FaceId::FIRST_DYNAMIC,
            next_scan: MonoNs::ZERO + IDLE_SCAN,
            counters: SystemCounters::default(),
            now: MonoNs::ZERO,
        })
    }

    /// Wakes [`poll`](Self::poll) from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The next thing that happened to a face.
    pub fn poll_event(&mut self) -> Option<FaceEvent> {
        self.events.pop_front()
    }

    /// What a face is.
    #[must_use]
    pub fn info(&self, id: FaceId) -> Option<&FaceInfo> {
        self.faces.get(&id).map(|face| &face.info)
    }

    /// Every face with its counters, in no order.
    pub fn faces(&self) -> impl Iterator<Item = (&FaceInfo, &FaceCounters)> {
        self.faces
            .values()
            .map(|face| (&face.info, &face.link.counters))
    }

    /// Counters of a face.
    #[must_use]
    pub fn counters(&self, id: FaceId) -> Option<&FaceCounters> {
        self.faces.get(&id).map(|face| &face.link.counters)
    }

    /// System calls and frames so far.
    #[must_use]
    pub const fn system_counters(&self) -> &SystemCounters {
        &self.counters
    }

    /// Counts a packet of this face that was dropped outside.
    pub fn count_drop(&mut self, id: FaceId, reason: DropReason) {
        if let Some(face) = self.faces.get_mut(&id) {
            face.link.counters.count_drop(reason);
        }
    }

    /// Queues `packet` with `headers` to a face. A face that is gone, or whose
    /// queue is full, costs the packet, and the latter is counted.
    pub fn send(&mut self, now: MonoNs, id: FaceId, headers: &Headers, packet: &[u8]) {
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        let backlog = match &face.transport {
            Transport::Stream(stream) => stream.backlog_bytes(),
            Transport::Udp { channel_idx, .. } => self.udp[*channel_idx].backlog_bytes(),
        };
        if backlog + packet.len() > self.options.max_backlog_bytes {
            face.link.counters.count_drop(DropReason::BacklogFull);
            return;
        }
        let n_frames = &mut self.counters.n_tx_frames;
        let result = match &mut face.transport {
            Transport::Stream(stream) => {
                let queue = stream.queue_mut();
                face.link.send(now, backlog, headers, packet, queue, |_| {
                    *n_frames += 1;
                })
            }
            Transport::Udp { channel_idx, peer } => {
                let channel = &mut self.udp[*channel_idx];
                if channel.backlog_bytes() == 0 {
                    self.dirty_udp.push(*channel_idx);
                }
                let (queue, datagrams) = channel.queue_mut();
                face.link.send(now, backlog, headers, packet, queue, |len| {
                    *n_frames += 1;
                    datagrams.push((*peer, id, len));
                })
            }
        };
        if let Err(reason) = result {
            face.link.counters.count_drop(reason);
        }
        if matches!(face.transport, Transport::Stream(_)) && !face.is_dirty {
            face.is_dirty = true;
            self.dirty_faces.push(id);
        }
    }

    /// As [`send`](Self::send), for a packet that `write` appends to a buffer.
    pub fn send_with(
        &mut self,
        now: MonoNs,
        id: FaceId,
        headers: &Headers,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        write(&mut scratch);
        self.send(now, id, headers, &scratch);
        self.scratch = scratch;
    }

    /// Sends what is queued: one call for each stream, and one for each UDP
    /// socket where the kernel takes it whole.
    pub fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty_faces);
        for id in dirty.drain(..) {
            self.flush_face(id);
        }
        self.dirty_faces = dirty;
        let mut dirty = std::mem::take(&mut self.dirty_udp);
        for channel_idx in dirty.drain(..) {
            self.flush_udp(channel_idx);
        }
        self.dirty_udp = dirty;
    }

    fn flush_face(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        face.is_dirty = false;
        let Transport::Stream(stream) = &mut face.transport else {
            return;
        };
        if !face.info.is_up || stream.is_blocked || stream.backlog_bytes() == 0 {
            return;
        }
        self.counters.n_tx_calls += 1;
        if stream.flush().is_err() {
            self.connection_lost(id, CloseReason::ConnectionFailed);
        } else if stream.backlog_bytes() > 0 {
            stream.is_blocked = true;
            let flags = EventFlags::IN | EventFlags::OUT;
            let _ = epoll::modify(&self.epoll, stream.fd(), Token::Face(id).pack(), flags);
        }
    }

    fn flush_udp(&mut self, channel_idx: usize) {
        let channel = &mut self.udp[channel_idx];
        let was_blocked = channel.is_blocked;
        let faces = &mut self.faces;
        self.counters.n_tx_calls += channel.flush(|id| {
            if let Some(face) = faces.get_mut(&id) {
                face.link.counters.count_drop(DropReason::SendFailed);
            }
        });
        if channel.is_blocked != was_blocked {
            let flags = if channel.is_blocked {
                EventFlags::IN | EventFlags::OUT
            } else {
                EventFlags::IN
            };
            let token = Token::Udp(channel_idx).pack();
            let _ = epoll::modify(&self.epoll, channel.fd(), token, flags);
        }
    }

    /// Closes a face; whether there was one.
    pub fn destroy(&mut self, id: FaceId, reason: CloseReason) -> bool {
        let Some(face) = self.faces.remove(&id) else {
            return false;
        };
        match &face.transport {
            // Dropping the socket takes it out of `epoll`.
            Transport::Stream(_) => {}
            Transport::Udp { channel_idx, peer } => {
                self.udp[*channel_idx].peers.remove(peer);
            }
        }
        self.events.push_back(FaceEvent::Destroyed {
            info: face.info,
            reason,
        });
        true
    }

    /// Changes a face; the state afterwards, or `None` if there is no such face.
    pub fn update(&mut self, id: FaceId, update: &FaceUpdate) -> Option<&FaceInfo> {
        let face = self.faces.get_mut(&id)?;
        if let Some(persistency) = update.persistency {
            face.info.persistency = persistency;
        }
        if let Some(options) = update.options {
            face.info.options = options;
            face.link.options = options;
        }
        Some(&face.info)
    }

    /// What is left of a stream face whose connection is gone.
    fn connection_lost(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        if face.info.persistency != FacePersistency::Permanent {
            self.destroy(id, reason);
            return;
        }
        if let Transport::Stream(stream) = &face.transport {
            let _ = epoll::delete(&self.epoll, stream.fd());
        }
        let pause = face.retry.map_or(FIRST_RETRY, |(_, pause)| pause);
        face.retry = Some((self.now + pause, (pause * 2).min(LONGEST_RETRY)));
        if std::mem::replace(&mut face.info.is_up, false) {
            self.events.push_back(FaceEvent::Down(face.info.clone()));
        }
    }

    /// Does what is due: idle faces go, incomplete packets are dropped, lost
    /// connections are tried again.
    pub fn handle_timeout(&mut self, now: MonoNs) {
        self.now = now;
        let faces = &mut self.faces;
        self.reassembling.retain(|id| {
            let Some(face) = faces.get_mut(id) else {
                return false;
            };
            for _ in 0..face.link.reassembler.expire(now) {
                face.link.counters.count_drop(DropReason::ReassemblyTimeout);
            }
            face.link.reassembler.next_deadline().is_some()
        });
        if now < self.next_scan {
            return;
        }
        self.next_scan = now + IDLE_SCAN;
        let mut idle = Vec::new();
        let mut retry = Vec::new();
        for (&id, face) in &self.faces {
            let timeout = match (&face.transport, face.info.persistency) {
                (Transport::Udp { .. }, FacePersistency::OnDemand) => self.options.udp_idle_timeout,
                (Transport::Stream(_), FacePersistency::OnDemand)
                    if matches!(face.info.remote, tachonym_protocol::FaceUri::Tcp(_)) =>
                {
                    self.options.tcp_idle_timeout
                }
                _ => None,
            };
            if timeout.is_some_and(|t| now.saturating_since(face.last_received) >= t) {
                idle.push(id);
            }
            if !face.info.is_up && face.retry.is_some_and(|(at, _)| at <= now) {
                retry.push(id);
            }
        }
        for id in idle {
            self.destroy(id, CloseReason::Idle);
        }
        for id in retry {
            self.reconnect(id);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) next has work.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let partial = self
            .reassembling
            .iter()
            .filter_map(|id| self.faces.get(id)?.link.reassembler.next_deadline())
            .min();
        let scan = (!self.faces.is_empty()).then_some(self.next_scan);
        partial.into_iter().chain(scan).min()
    }
}

impl Drop for FaceSystem {
    fn drop(&mut self) {
        for listener in &self.listeners {
            if let Listener::Unix { path, .. } = listener {
                // A path that is gone already needs no removing.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
