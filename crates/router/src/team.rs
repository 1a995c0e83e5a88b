//! What the threads of the router know of each other.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_channel::Sender;
use tachonym_dispatch::{WorkerId, WorkerSet};
use tachonym_face::{DropReason, WaitFlag, Waker};
use tachonym_forward::FaceTraits;
use tachonym_packet::FaceId;

use crate::blueprint::Blueprint;
use crate::layout::Layout;

/// What threads tell each other of faces.
///
/// That there is one, all engines have to know before they get a packet of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FaceNews {
    /// There is one, or it has become so.
    Came(FaceId, FaceTraits),
    /// There is one no more.
    Gone(FaceId),
    /// So many packets of one were dropped, which its own thread counts.
    Dropped(FaceId, DropReason, u64),
}

/// All threads.
pub(crate) struct Team {
    pub(crate) layout: Layout,
    pub(crate) blueprint: Blueprint,
    members: Box<[Member]>,
}

/// What a thread has done since its start, as it alone writes it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct WorkDone {
    n_pkts: AtomicU64,
    busy_ns: AtomicU64,
}

impl WorkDone {
    /// Both, as they are after a round.
    pub(crate) fn set(&self, n_pkts: u64, busy_ns: u64) {
        self.n_pkts.store(n_pkts, Ordering::Relaxed);
        self.busy_ns.store(busy_ns, Ordering::Relaxed);
    }

    /// Packets that were at home there, and the time in which the thread did not wait.
    pub(crate) fn get(&self) -> (u64, u64) {
        let n_pkts = self.n_pkts.load(Ordering::Relaxed);
        (n_pkts, self.busy_ns.load(Ordering::Relaxed))
    }
}

/// What the others know of a thread.
#[repr(align(64))]
pub(crate) struct Member {
    /// Whether it waits, or is about to: it does not look into its rings then.
    flag: WaitFlag,
    done: WorkDone,
    waker: Waker,
    news: Sender<FaceNews>,
}

impl Member {
    /// A thread that is woken by `waker`, and told of faces by `news`.
    pub(crate) fn new(waker: Waker, news: Sender<FaceNews>) -> Self {
        Self {
            flag: WaitFlag::default(),
            done: WorkDone::default(),
            waker,
            news,
        }
    }
}

impl Team {
    pub(crate) fn new(layout: Layout, blueprint: Blueprint, members: Vec<Member>) -> Self {
        Self {
            layout,
            blueprint,
            members: members.into(),
        }
    }

    /// What a thread has done.
    pub(crate) fn done(&self, thread: WorkerId) -> &WorkDone {
        &self.members[thread.idx()].done
    }

    /// By what a thread says that it waits.
    pub(crate) fn flag(&self, thread: WorkerId) -> &WaitFlag {
        &self.members[thread.idx()].flag
    }

    /// Wakes those of `threads`, in whose rings there is something, that wait.
    pub(crate) fn wake(&self, threads: WorkerSet) {
        if threads.is_empty() {
            return;
        }
        fence(Ordering::SeqCst);
        for thread in threads {
            let member = &self.members[thread.idx()];
            if member.flag.call() {
                member.waker.wake();
            }
        }
    }

    /// Wakes all that wait.
    pub(crate) fn wake_all(&self) {
        let all = 0..self.members.len();
        self.wake(all.map(|thread| WorkerId(thread as u16)).collect());
    }

    /// Notes what has become of a face of `from`, and tells the other workers. They know it
    /// before whatever that thread sends them afterwards.
    pub(crate) fn tell(&self, from: WorkerId, news: FaceNews) {
        let mut settings = self.blueprint.settings();
        match news {
            FaceNews::Came(face, traits) => {
                settings.faces.insert(face, traits);
            }
            FaceNews::Gone(face) => {
                settings.faces.remove(&face);
            }
            FaceNews::Dropped(..) => {}
        }
        drop(settings);
        let others = self.members[..self.layout.n_worker_threads()].iter();
        for (_, member) in others.enumerate().filter(|&(idx, _)| idx != from.idx()) {
            // One that has ended need not know.
            let _ = member.news.send(news);
            member.waker.wake();
        }
    }

    /// Tells the thread of a face what was dropped of it elsewhere.
    pub(crate) fn tell_drops(&self, face: FaceId, reason: DropReason, n_dropped: u64) {
        if let Some(thread) = self.layout.thread_of_face(face) {
            let member = &self.members[thread.idx()];
            let _ = member.news.send(FaceNews::Dropped(face, reason, n_dropped));
            member.waker.wake();
        }
    }
}
