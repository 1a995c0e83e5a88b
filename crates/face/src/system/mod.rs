//! All faces of one worker.
//!
//! [`FaceSystem`] owns the listeners, the faces and everything that waits for
//! sockets. One thread drives it:
//!
//! ```text
//! poll      wait, read one burst into an RxBatch, run the timers
//! poll_event  until None: faces that came or went
//! send      as often as the burst asks for
//! flush     hand everything over to the kernel
//! ```
//!
//! A face that fails is removed by `flush`, by `destroy` or by the next `poll`
//! before it waits, never between `poll` and the frames it returned: whoever
//! takes the events first and the frames after them knows the face of every
//! frame. Next: `receive`, `send`, `lifecycle`, `eviction`, `listen`, `branches`,
//! `siblings`, `sources` and `timers` hold the parts of the implementation.

mod backlog;
mod branches;
mod eviction;
mod lifecycle;
mod listen;
mod options;
mod receive;
mod send;
mod siblings;
mod sources;
mod table;
mod timers;
mod wait;

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::BorrowedFd;

use tachonym_packet::MonoNs;
use tachonym_packet::lp::FaceId;

use crate::clock::monotonic_now;
use crate::counters::{DropCounts, DropReason, FaceCounters, SystemCounters};
use crate::error::CloseReason;
use crate::face::Face;
use crate::info::{ChannelInfo, FaceEvent, FaceInfo};
use crate::link::budget::ReassemblyBudget;
use crate::link::encode::Scratch;
use crate::poller::{Interest, Poller, SocketKey, Token};
use crate::share::{Membership, SystemShare};
use crate::sys::udp::{UdpReceiver, UdpSender};
use crate::transport::udp::UdpSocket;
use crate::tx_queue::TxPool;
use crate::waker::Waker;
use backlog::Backlogs;
use branches::{BranchCounts, Senders};
use eviction::Evictions;
use listen::Listener;
pub use options::SystemOptions;
pub use siblings::Placement;
use sources::Sources;
use table::{FaceTable, SocketTable};

/// Sources of a system that is alone, for tests of what counts by them.
#[cfg(test)]
pub(crate) fn sources_of_test() -> Sources {
    Sources::new(&SystemShare::default())
}

/// See the module documentation.
pub struct FaceSystem {
    options: SystemOptions,
    poller: Poller,
    waker: Waker,
    faces: FaceTable,
    sources: Sources,
    evictions: Evictions,
    udp: SocketTable<UdpSocket>,
    branch_counts: BranchCounts,
    senders: Senders,
    listeners: SocketTable<Listener>,
    /// Listeners that wait for descriptors to become free again.
    paused: Vec<SocketKey>,
    /// Sockets of a sibling's listeners that wait for the same.
    paused_parts: Vec<UdpSocket>,
    resume_listeners_at: MonoNs,

    now: MonoNs,
    is_next_wait_measured: bool,
    wait_cpu_ns: Option<u64>,
    alarms: BTreeSet<(MonoNs, FaceId)>,
    events: VecDeque<FaceEvent>,
    /// Faces in state Closing.
    closing: Vec<FaceId>,
    /// WebSocket faces that may have read more than they have handed out, each
    /// once.
    unread: VecDeque<FaceId>,
    /// Whose turn it is: that of the first of `unread`, or that of the next
    /// socket that is ready.
    is_unread_next: bool,

    /// Faces of a transport of their own with frames to send.
    dirty_faces: Vec<FaceId>,
    dirty_sockets: Vec<SocketKey>,
    backlogs: Backlogs,
    pool: TxPool,
    scratch: Scratch,
    plan: Vec<send::Planned>,
    udp_sender: UdpSender,

    udp_receiver: UdpReceiver,
    /// Buffers for the beginnings of frames, of streams that need none now.
    leftovers: Vec<Vec<u8>>,
    reassembly: ReassemblyBudget,

    next_sequence: u64,
    counters: SystemCounters,
    /// Drops of faces that are gone, and of packets that belonged to none.
    past_drops: DropCounts,

    /// Its place among other systems of the router, if there are.
    _membership: Option<Membership>,
}

impl FaceSystem {
    /// A system without listeners and faces.
    ///
    /// # Errors
    /// If the kernel grants no epoll or event descriptor, or a system of the same
    /// share, one of several, has been made before.
    pub fn new(mut options: SystemOptions) -> io::Result<Self> {
        let poller = Poller::new()?;
        let waker = Waker::new()?;
        poller.add(waker.as_fd(), Token::Waker, Interest::Read)?;
        let share = options.share.clone();
        for limit in [
            &mut options.max_faces,
            &mut options.max_total_backlog_bytes,
            &mut options.max_total_reassembly_bytes,
        ] {
            *limit = share.part_of(*limit);
        }
        Ok(Self {
            _membership: Membership::claim(&share, &waker)?,
            reassembly: ReassemblyBudget::new(options.max_total_reassembly_bytes),
            backlogs: Backlogs::new(
                options.face_backlog_reserve_bytes,
                options.max_total_backlog_bytes,
            ),
            options,
            poller,
            waker,
            faces: FaceTable::new(&share),
            sources: Sources::new(&share),
            evictions: Evictions::default(),
            udp: SocketTable::default(),
            branch_counts: BranchCounts::new(&share),
            senders: Senders::default(),
            listeners: SocketTable::default(),
            paused: Vec::new(),
            paused_parts: Vec::new(),
            resume_listeners_at: MonoNs::NEVER,
            now: monotonic_now(),
            is_next_wait_measured: false,
            wait_cpu_ns: None,
            alarms: BTreeSet::new(),
            events: VecDeque::new(),
            closing: Vec::new(),
            unread: VecDeque::new(),
            is_unread_next: false,
            dirty_faces: Vec::new(),
            dirty_sockets: Vec::new(),
            pool: TxPool::default(),
            scratch: Scratch::default(),
            plan: Vec::new(),
            udp_sender: UdpSender::new(),
            udp_receiver: UdpReceiver::new(),
            leftovers: Vec::new(),
            // Somewhere: peers remember sequences for a while.
            next_sequence: RandomState::new().hash_one(0),
            counters: SystemCounters::default(),
            past_drops: DropCounts::default(),
        })
    }

    /// A handle with which other threads end the wait of
    /// [`FaceSystem::poll`].
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Has [`FaceSystem::poll`] end its wait whenever `fd` is readable, until it is closed.
    /// Whoever waits makes it unreadable again, or no wait will last.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wake_with(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.poller.add(fd, Token::Watched, Interest::Read)
    }

    /// The next thing that happened to a face. Ask until there is none, after
    /// each [`FaceSystem::poll`] and before looking at its frames.
    pub fn poll_event(&mut self) -> Option<FaceEvent> {
        self.events.pop_front()
    }

    /// Which of the systems of one router this is.
    #[must_use]
    pub fn share(&self) -> &SystemShare {
        &self.options.share
    }

    /// How many faces there are.
    #[must_use]
    pub fn n_faces(&self) -> usize {
        self.faces.len()
    }

    /// The face with this number.
    #[must_use]
    pub fn info(&self, id: FaceId) -> Option<FaceInfo> {
        let face = self.faces.get(id).filter(|face| face.is_announced);
        face.map(|face| face.info(self.now))
    }

    /// Why a datagram of the UDP face `id` came back last, such as
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) from a closed port; `None`
    /// if none has, if the face shares its socket, or if one of another face came back
    /// later.
    #[must_use]
    pub fn returned(&self, id: FaceId) -> Option<io::ErrorKind> {
        self.faces.returned(id)
    }

    /// The counters of a face: less work than [`FaceSystem::info`].
    #[must_use]
    pub fn face_counters(&self, id: FaceId) -> Option<&FaceCounters> {
        self.faces.get(id).map(|face| &face.counters)
    }

    /// Counts a packet of a face that was dropped by whoever took the frames.
    pub fn count_drop(&mut self, id: FaceId, reason: DropReason) {
        self.count_drops(id, reason, 1);
    }

    /// Counts so many of them.
    pub fn count_drops(&mut self, id: FaceId, reason: DropReason, n: u64) {
        match self.faces.get_mut(id) {
            Some(face) => face.counters.drops.add(reason, n),
            None => self.past_drops.add(reason, n),
        }
    }

    /// The numbers of all faces, in no particular order. As everywhere here, a
    /// WebSocket whose handshake is not over is none yet, though it is one of
    /// [`FaceSystem::n_faces`].
    pub fn face_ids(&self) -> impl Iterator<Item = FaceId> {
        self.announced().map(|face| face.id)
    }

    fn announced(&self) -> impl Iterator<Item = &Face> {
        self.faces.iter().filter(|face| face.is_announced)
    }

    /// All faces, in no particular order.
    pub fn faces(&self) -> impl Iterator<Item = FaceInfo> + '_ {
        self.announced().map(|face| face.info(self.now))
    }

    /// The drops of every face, in no particular order: less work than
    /// [`FaceSystem::faces`].
    pub fn face_drops(&self) -> impl Iterator<Item = (FaceId, &DropCounts)> {
        self.announced().map(|face| (face.id, &face.counters.drops))
    }

    /// Counters over all faces, past and present.
    #[must_use]
    pub fn counters(&self) -> SystemCounters {
        let mut counters = self.counters;
        counters.drops = self.past_drops;
        for face in self.faces.iter() {
            counters.drops.merge(&face.counters.drops);
        }
        counters
    }

    /// The listeners of this system: of several systems, one tells of each.
    #[must_use]
    pub fn channels(&self) -> Vec<ChannelInfo> {
        self.channel_infos()
    }

    /// Why a face that is about to be removed is; `None`: it is not.
    #[must_use]
    pub fn closing_reason(&self, id: FaceId) -> Option<CloseReason> {
        match self.faces.get(id)?.state {
            crate::face::FaceState::Closing(reason) => Some(reason),
            _ => None,
        }
    }
}
