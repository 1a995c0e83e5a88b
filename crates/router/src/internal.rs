//! The internal face: where what the manager has to see leaves the worker,
//! management Interests above all.
//!
//! Signatures take tens of microseconds to check, so the manager lives on a
//! thread of its own. This end copies what it needs to see into a bounded
//! queue; what does not fit is dropped and counted, and forwarding goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use tachonym_face::FaceEvent;
use tachonym_packet::{FaceId, Name, NameView};

/// Prefix announcements that wait for the manager, and as many Nacks. A signature
/// takes some tens of microseconds to check, for which commands wait.
const MAX_WAITING_LESSONS: usize = 64;

/// What the worker tells the manager.
#[derive(Debug)]
pub(crate) enum ToManager {
    /// An Interest under a management prefix.
    Interest {
        /// The face it came from.
        incoming: FaceId,
        /// The whole Interest.
        wire: Vec<u8>,
        _place: Place,
    },
    /// A Data brought a prefix announcement, from which a route may be learnt.
    Announcement {
        /// The face it came by.
        face: FaceId,
        /// Name of the Data.
        name: Name,
        /// The announcement.
        wire: Vec<u8>,
        _place: Place,
    },
    /// A neighbour has no route for a name.
    Unreachable {
        /// The face that leads to it.
        face: FaceId,
        /// The name.
        name: Name,
        _place: Place,
    },
    /// A face came, went or changed state.
    Face(Box<FaceEvent>),
    /// The router stops.
    Stop,
}

/// The worker's end of the internal face. Messages of each kind have their own
/// bound, so that none crowds out another.
pub(crate) struct InternalFace {
    to_manager: Sender<ToManager>,
    interests: Arc<Queue>,
    announcements: Arc<Queue>,
    unreachables: Arc<Queue>,
}

/// How many messages of a kind wait for the manager, and how many found no room.
#[derive(Debug)]
pub(crate) struct Queue {
    n_waiting: AtomicUsize,
    n_dropped: AtomicU64,
    capacity: usize,
}

/// A message's place among those that wait; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Queue>);

impl Queue {
    fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            n_waiting: AtomicUsize::new(0),
            n_dropped: AtomicU64::new(0),
            capacity,
        })
    }

    /// Messages that found no room.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Only the worker takes places, so its check and its count cannot race.
    fn take_place(self: &Arc<Self>) -> Option<Place> {
        if self.n_waiting.load(Ordering::Relaxed) >= self.capacity {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
        Some(Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.n_waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InternalFace {
    /// `max_interests` may wait for the manager at a time.
    pub(crate) fn new(to_manager: Sender<ToManager>, max_interests: usize) -> Self {
        Self {
            to_manager,
            interests: Queue::new(max_interests),
            announcements: Queue::new(MAX_WAITING_LESSONS),
            unreachables: Queue::new(MAX_WAITING_LESSONS),
        }
    }

    /// The Interests that wait.
    pub(crate) fn interests(&self) -> &Arc<Queue> {
        &self.interests
    }

    /// Hands an Interest to the manager, or counts that there was no room.
    pub(crate) fn deliver_interest(&self, incoming: FaceId, wire: Vec<u8>) {
        if let Some(place) = self.interests.take_place() {
            self.send(ToManager::Interest {
                incoming,
                wire,
                _place: place,
            });
        }
    }

    /// Hands the manager a prefix announcement, or counts that there was no room.
    pub(crate) fn deliver_announcement(&self, face: FaceId, name: NameView<'_>, wire: &[u8]) {
        if let Some(place) = self.announcements.take_place() {
            self.send(ToManager::Announcement {
                face,
                name: name.to_name(),
                wire: wire.to_vec(),
                _place: place,
            });
        }
    }

    /// Tells the manager that `face` does not lead to `name`, or counts that there
    /// was no room.
    pub(crate) fn deliver_unreachable(&self, face: FaceId, name: NameView<'_>) {
        if let Some(place) = self.unreachables.take_place() {
            let name = name.to_name();
            self.send(ToManager::Unreachable {
                face,
                name,
                _place: place,
            });
        }
    }

    /// Tells the manager of a face. Never dropped: routes hang on it.
    pub(crate) fn deliver_event(&self, event: FaceEvent) {
        self.send(ToManager::Face(Box::new(event)));
    }

    /// Announcements and Nacks that found no room.
    pub(crate) fn n_dropped_lessons(&self) -> u64 {
        self.announcements.n_dropped() + self.unreachables.n_dropped()
    }

    fn send(&self, message: ToManager) {
        // A manager that has gone leaves its Interests unanswered.
        let _ = self.to_manager.send(message);
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;

    #[test]
    fn each_kind_of_message_has_room_again_when_the_manager_has_seen_one() {
        let (sender, inbox) = unbounded();
        let internal = InternalFace::new(sender, 2);
        let name: Name = "/a".parse().unwrap();
        let deliver = || {
            internal.deliver_interest(FaceId(256), Vec::new());
            internal.deliver_announcement(FaceId(256), name.view(), b"");
            internal.deliver_unreachable(FaceId(256), name.view());
        };
        let n_dropped = || (internal.interests.n_dropped(), internal.n_dropped_lessons());
        for _ in 0..=MAX_WAITING_LESSONS {
            deliver();
        }
        let n_interests_dropped = MAX_WAITING_LESSONS as u64 - 1;
        assert_eq!(n_dropped(), (n_interests_dropped, 2));
        assert_eq!(inbox.try_iter().count(), 2 + 2 * MAX_WAITING_LESSONS);
        deliver();
        assert_eq!(n_dropped(), (n_interests_dropped, 2));
        assert_eq!(inbox.len(), 3);
    }
}
