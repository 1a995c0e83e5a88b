//! The internal face: where management Interests leave the worker.
//!
//! Signatures take tens of microseconds to check, so the manager lives on a
//! thread of its own. This end copies what it needs to see into a bounded
//! queue; what does not fit is dropped and counted, and forwarding goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use tachonym_face::FaceEvent;
use tachonym_packet::{FaceId, Name, NameView};

/// What the worker tells the manager.
#[derive(Debug)]
pub(crate) enum ToManager {
    /// An Interest under a management prefix.
    Interest {
        /// The face it came from.
        incoming: FaceId,
        /// The whole Interest.
        wire: Vec<u8>,
    },
    /// A Data brought a prefix announcement, from which a route may be learnt.
    Announcement {
        /// The face it came by.
        face: FaceId,
        /// Name of the Data.
        name: Name,
        /// The announcement.
        wire: Vec<u8>,
    },
    /// A neighbour has no route for a name.
    Unreachable {
        /// The face that leads to it.
        face: FaceId,
        /// The name.
        name: Name,
    },
    /// A face came, went or changed state.
    Face(Box<FaceEvent>),
    /// The router stops.
    Stop,
}

/// The worker's end of the internal face.
pub(crate) struct InternalFace {
    to_manager: Sender<ToManager>,
    queue: Arc<QueueGauge>,
    lessons: Arc<QueueGauge>,
}

/// How many messages of a kind wait for the manager, and how many found no room.
#[derive(Debug)]
pub(crate) struct QueueGauge {
    n_waiting: AtomicUsize,
    n_dropped: AtomicU64,
    capacity: usize,
}

impl QueueGauge {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            n_waiting: AtomicUsize::new(0),
            n_dropped: AtomicU64::new(0),
            capacity,
        }
    }

    /// One was taken from the queue.
    pub(crate) fn leave(&self) {
        self.n_waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Messages that found the queue full.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Only the worker enters, so its check and its count cannot race.
    fn enter(&self) -> bool {
        if self.n_waiting.load(Ordering::Relaxed) >= self.capacity {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl InternalFace {
    /// `queue` counts Interests, `lessons` what routes are learnt from.
    pub(crate) fn new(
        to_manager: Sender<ToManager>,
        queue: Arc<QueueGauge>,
        lessons: Arc<QueueGauge>,
    ) -> Self {
        Self {
            to_manager,
            queue,
            lessons,
        }
    }

    /// Hands an Interest to the manager, or counts that there was no room.
    pub(crate) fn deliver_interest(&self, incoming: FaceId, wire: Vec<u8>) {
        if self.queue.enter() {
            // A manager that has gone leaves its Interests unanswered.
            let _ = self.to_manager.send(ToManager::Interest { incoming, wire });
        }
    }

    /// Hands the manager a prefix announcement, or counts that there was no room.
    pub(crate) fn deliver_announcement(&self, face: FaceId, name: NameView<'_>, wire: &[u8]) {
        if self.lessons.enter() {
            let (name, wire) = (name.to_name(), wire.to_vec());
            let _ = self
                .to_manager
                .send(ToManager::Announcement { face, name, wire });
        }
    }

    /// Tells the manager that `face` does not lead to `name`, or counts that there
    /// was no room.
    pub(crate) fn deliver_unreachable(&self, face: FaceId, name: NameView<'_>) {
        if self.lessons.enter() {
            let name = name.to_name();
            let _ = self.to_manager.send(ToManager::Unreachable { face, name });
        }
    }

    /// What of that found no room.
    pub(crate) fn n_dropped_lessons(&self) -> u64 {
        self.lessons.n_dropped()
    }

    /// Interests that found the queue full.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.queue.n_dropped()
    }

    /// Tells the manager of a face. Never dropped: routes hang on it.
    pub(crate) fn deliver_event(&self, event: FaceEvent) {
        let _ = self.to_manager.send(ToManager::Face(Box::new(event)));
    }
}
