//! Which thread does what.
//!
//! A thread may have a worker, which forwards, and a face system, by which packets come and
//! go. Threads are numbered, those with workers first, so that a worker has its thread's
//! number; see [`Workers`].

use tachonym_dispatch::WorkerId;
use tachonym_face::SystemShare;
use tachonym_packet::FaceId;

use crate::config::{Feed, Workers};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    feed: Feed,
    n_workers: usize,
    /// Those that may be added included.
    n_worker_threads: usize,
    n_systems: usize,
    is_single: bool,
    /// Of any system, to tell whose a face is.
    share: SystemShare,
}

impl Layout {
    /// The layout that is asked for, and the share of each face system.
    pub(crate) fn new(workers: &Workers) -> (Self, Vec<SystemShare>) {
        let n_systems = match workers.feed {
            Feed::RunToCompletion => usize::from(workers.threads),
            Feed::IoThreads => workers.n_io_threads(),
        };
        let shares = SystemShare::split(n_systems);
        let n_worker_threads = workers.most();
        let layout = Self {
            feed: workers.feed,
            n_workers: workers.threads.into(),
            n_worker_threads,
            n_systems,
            is_single: workers.feed == Feed::RunToCompletion && n_worker_threads == 1,
            share: shares[0].clone(),
        };
        (layout, shares)
    }

    /// Workers at start.
    pub(crate) const fn n_workers(&self) -> usize {
        self.n_workers
    }

    /// Threads that have a worker, or may get one.
    pub(crate) const fn n_worker_threads(&self) -> usize {
        self.n_worker_threads
    }

    /// Threads.
    pub(crate) fn n_threads(&self) -> usize {
        match self.feed {
            Feed::RunToCompletion => self.n_worker_threads,
            Feed::IoThreads => self.n_worker_threads + self.n_systems,
        }
    }

    /// Whether one thread does everything.
    #[inline]
    pub(crate) const fn is_single(&self) -> bool {
        self.is_single
    }

    /// The threads with a face system, in the order of the systems.
    pub(crate) fn system_threads(&self) -> std::ops::Range<usize> {
        let first = match self.feed {
            Feed::RunToCompletion => 0,
            Feed::IoThreads => self.n_worker_threads,
        };
        first..first + self.n_systems
    }

    /// The thread of this face system.
    pub(crate) fn thread_of_system(&self, index: usize) -> usize {
        self.system_threads().start + index
    }

    /// The thread by which a face sends; `None` if no face has such a number.
    #[inline]
    pub(crate) fn thread_of_face(&self, face: FaceId) -> Option<WorkerId> {
        let index = self.share.owner_of(face)?;
        Some(WorkerId(self.thread_of_system(index) as u16))
    }

    /// The worker of a thread, if it has one or may get one.
    pub(crate) fn worker_of_thread(&self, thread: usize) -> Option<WorkerId> {
        (thread < self.n_worker_threads).then_some(WorkerId(thread as u16))
    }

    /// What the thread is called where threads are listed.
    pub(crate) fn name_of_thread(&self, thread: usize) -> String {
        match self.worker_of_thread(thread) {
            Some(worker) => format!("worker-{worker}"),
            None => format!("io-{}", thread - self.n_worker_threads),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_and_worker_has_a_thread() {
        let workers = |feed| Workers {
            threads: 2,
            max_threads: 3,
            io_threads: 4,
            feed,
            ..Workers::default()
        };
        let (layout, shares) = Layout::new(&workers(Feed::RunToCompletion));
        assert_eq!((layout.n_threads(), shares.len()), (3, 2));
        assert_eq!(layout.system_threads(), 0..2);
        assert_eq!(layout.thread_of_face(FaceId(257)), Some(WorkerId(1)));
        assert_eq!(layout.thread_of_face(FaceId::INTERNAL), None);
        let (layout, shares) = Layout::new(&workers(Feed::IoThreads));
        assert_eq!((layout.n_threads(), shares.len()), (7, 4));
        assert_eq!(layout.system_threads(), 3..7);
        assert_eq!(layout.thread_of_face(FaceId(259)), Some(WorkerId(6)));
        assert_eq!(layout.worker_of_thread(3), None);
        assert_eq!(layout.name_of_thread(2), "worker-2");
        assert_eq!(layout.name_of_thread(3), "io-0");
        let (layout, _) = Layout::new(&Workers::default());
        assert!(layout.is_single());
    }
}
