//! The internal face: where what the manager has to see leaves the worker,
//! management Interests above all.
//!
//! Signatures take tens of microseconds to check, so the manager lives on a
//! thread of its own. This end copies what it needs to see into a bounded
//! queue; what does not fit is dropped and counted, and forwarding goes on. No
//! source may use the queue up by any number of faces, and one that goes on with
//! commands that are refused is not listened to for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use tachonym_face::{DropReason, FaceEvent};
use tachonym_packet::{FaceId, MonoNs, Name, NameView, SourceId};
use tachonym_policy::Policy;

/// Prefix announcements that wait for the manager, and as many Nacks. A signature
/// takes some tens of microseconds to check, for which commands wait.
const MAX_WAITING_LESSONS: usize = 64;

/// Shares of sources above which those without waiting commands are looked for.
const MAX_IDLE_SHARES: usize = 1024;

/// How long a source that is not listened to is remembered beyond that, in milliseconds.
const MUTE_KEPT_MS: u64 = 10_000;

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
    /// A policy of the content store of which nothing is asked any more. To drop it may take
    /// long.
    Retired(Box<Policy>),
    /// The router stops.
    Stop,
}

/// The worker's end of the internal face. Messages of each kind have their own
/// bound, so that none crowds out another.
pub(crate) struct InternalFace {
    to_manager: Sender<ToManager>,
    /// What the manager serves.
    prefixes: Vec<Name>,
    interests: Arc<Queue>,
    /// How many of them are of which source.
    shares: HashMap<SourceId, Share>,
    /// Sources that are not listened to, and until when.
    muted: HashMap<SourceId, MonoNs>,
    /// Of faces that share a source with others.
    sources: HashMap<FaceId, SourceId>,
    /// How many of these a source has.
    n_faces: HashMap<SourceId, usize>,
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

/// How many messages of one source wait.
type Share = Arc<AtomicUsize>;

/// A message's place among those that wait; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Arc<Queue>,
    share: Option<Share>,
}

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

    fn n_free(&self) -> usize {
        let n_waiting = self.n_waiting.load(Ordering::Relaxed);
        self.capacity.saturating_sub(n_waiting)
    }

    /// Whether a source that has `n_held` places may have another: no source holds
    /// more than are free, so that there is always one for the others (Choudhury
    /// and Hahne 1998, with α = 1).
    fn has_place_beside(&self, n_held: usize) -> bool {
        n_held < self.n_free()
    }

    /// Only the worker takes places, so its check and its count cannot race.
    fn take_place(self: &Arc<Self>, share: Option<&Share>) -> Option<Place> {
        let n_held = share.map_or(0, |share| share.load(Ordering::Relaxed));
        if !self.has_place_beside(n_held) {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
        if let Some(share) = share {
            share.fetch_add(1, Ordering::Relaxed);
        }
        Some(Place {
            queue: Arc::clone(self),
            share: share.cloned(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.n_waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some(share) = &self.share {
            share.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl InternalFace {
    /// The manager serves `prefixes`; `max_interests` may wait for it at a time.
    pub(crate) fn new(
        to_manager: Sender<ToManager>,
        prefixes: Vec<Name>,
        max_interests: usize,
    ) -> Self {
        Self {
            to_manager,
            prefixes,
            interests: Queue::new(max_interests),
            shares: HashMap::new(),
            muted: HashMap::new(),
            sources: HashMap::new(),
            n_faces: HashMap::new(),
            announcements: Queue::new(MAX_WAITING_LESSONS),
            unreachables: Queue::new(MAX_WAITING_LESSONS),
        }
    }

    /// The Interests that wait.
    pub(crate) fn interests(&self) -> &Arc<Queue> {
        &self.interests
    }

    /// Why an Interest for `name` from `face` is not to be looked at, if it is
    /// one for the manager: what is dropped here costs no more than reading it.
    #[inline]
    pub(crate) fn refusal(
        &mut self,
        face: FaceId,
        name: NameView<'_>,
        now: MonoNs,
    ) -> Option<DropReason> {
        let is_calm = self.muted.is_empty() && self.interests.n_free() == self.interests.capacity;
        if is_calm || !self.prefixes.iter().any(|p| name.starts_with(p.view())) {
            return None;
        }
        let source = self.source_of(face);
        if let Some(&until) = self.muted.get(&source) {
            if now < until {
                return Some(DropReason::Throttled);
            }
            self.muted.remove(&source);
        }
        let share = self.shares.get(&source);
        let n_held = share.map_or(0, |share| share.load(Ordering::Relaxed));
        let has_place = self.interests.has_place_beside(n_held);
        (!has_place).then_some(DropReason::CommandShareFull)
    }

    /// Whose limits a face shares.
    fn source_of(&self, face: FaceId) -> SourceId {
        let source = self.sources.get(&face).copied();
        source.unwrap_or_else(|| face.into())
    }

    /// A new face shares the limits of `source`, until [`InternalFace::forget`].
    pub(crate) fn note_source(&mut self, face: FaceId, source: SourceId) {
        if self.sources.insert(face, source).is_none() {
            *self.n_faces.entry(source).or_default() += 1;
        }
    }

    /// Does not listen to the source of `face`, which must exist, until then.
    pub(crate) fn mute(&mut self, face: FaceId, until: MonoNs) {
        // Sources whose last face has gone ask no more when their time is over.
        self.muted
            .retain(|_, other| other.plus_ms(MUTE_KEPT_MS) >= until);
        self.muted.insert(self.source_of(face), until);
    }

    /// Hands an Interest to the manager, or counts that there was no room.
    pub(crate) fn deliver_interest(&mut self, incoming: FaceId, wire: Vec<u8>) {
        let source = self.source_of(incoming);
        let share = self.shares.entry(source).or_default();
        if let Some(place) = self.interests.take_place(Some(share)) {
            self.send(ToManager::Interest {
                incoming,
                wire,
                _place: place,
            });
        }
    }

    /// Hands the manager a prefix announcement, or counts that there was no room.
    pub(crate) fn deliver_announcement(&self, face: FaceId, name: NameView<'_>, wire: &[u8]) {
        if let Some(place) = self.announcements.take_place(None) {
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
        if let Some(place) = self.unreachables.take_place(None) {
            let name = name.to_name();
            self.send(ToManager::Unreachable {
                face,
                name,
                _place: place,
            });
        }
    }

    /// Forgets a face that has gone. A source that has others, or may come again by
    /// another, stays muted.
    pub(crate) fn forget(&mut self, face: FaceId) {
        let Some(source) = self.sources.remove(&face) else {
            self.shares.remove(&face.into());
            self.muted.remove(&face.into());
            return;
        };
        if let Some(n_faces) = self.n_faces.get_mut(&source) {
            *n_faces -= 1;
            if *n_faces == 0 {
                self.n_faces.remove(&source);
                self.forget_share(source);
            }
        }
    }

    /// Forgets the share of a source, unless a new face may come before the manager has
    /// seen what is left of it.
    fn forget_share(&mut self, source: SourceId) {
        let share = self.shares.get(&source);
        if share.is_some_and(|share| share.load(Ordering::Relaxed) == 0) {
            self.shares.remove(&source);
        }
        if self.shares.len() > MAX_IDLE_SHARES {
            self.shares
                .retain(|_, share| share.load(Ordering::Relaxed) > 0);
        }
    }

    /// Tells the manager of a face. Never dropped: routes hang on it.
    pub(crate) fn deliver_event(&self, event: FaceEvent) {
        self.send(ToManager::Face(Box::new(event)));
    }

    /// Leaves a policy to the manager's thread, which has the time to give its memory back.
    #[cold]
    pub(crate) fn hand_over(&self, policy: Policy) {
        self.send(ToManager::Retired(Box::new(policy)));
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
    use crossbeam_channel::{Receiver, unbounded};

    use super::*;

    #[test]
    fn each_kind_of_message_has_room_again_when_the_manager_has_seen_one() {
        let (mut internal, inbox) = internal(4);
        let a = name("/a");
        let deliver = |internal: &mut InternalFace| {
            internal.deliver_interest(FaceId(256), Vec::new());
            internal.deliver_announcement(FaceId(256), a.view(), b"");
            internal.deliver_unreachable(FaceId(256), a.view());
            (internal.interests.n_dropped(), internal.n_dropped_lessons())
        };
        for _ in 0..MAX_WAITING_LESSONS {
            deliver(&mut internal);
        }
        let n_interests_dropped = MAX_WAITING_LESSONS as u64 - 1;
        assert_eq!(deliver(&mut internal), (n_interests_dropped, 2));
        assert_eq!(inbox.try_iter().count(), 2 + 2 * MAX_WAITING_LESSONS);
        assert_eq!(deliver(&mut internal), (n_interests_dropped, 2));
        assert_eq!(inbox.len(), 3);
    }

    fn internal(max_interests: usize) -> (InternalFace, Receiver<ToManager>) {
        let (sender, inbox) = unbounded();
        let prefixes = vec![name("/localhost/nfd")];
        (InternalFace::new(sender, prefixes, max_interests), inbox)
    }

    fn name(uri: &str) -> Name {
        uri.parse().expect("a literal name")
    }

    /// Commands of `face` until it may send no more; how many those were.
    fn fill(internal: &mut InternalFace, face: FaceId) -> usize {
        let command = name("/localhost/nfd/rib/register");
        let is_welcome = |internal: &mut InternalFace| {
            let refusal = internal.refusal(face, command.view(), MonoNs::ZERO);
            assert!(matches!(refusal, None | Some(DropReason::CommandShareFull)));
            refusal.is_none()
        };
        let mut n_delivered = 0;
        while is_welcome(internal) {
            internal.deliver_interest(face, Vec::new());
            n_delivered += 1;
        }
        n_delivered
    }

    #[test]
    fn a_face_that_fills_the_queue_leaves_room_for_the_commands_of_others() {
        let (mut internal, inbox) = internal(16);
        let n_delivered: Vec<_> = (0..4)
            .map(|i| fill(&mut internal, FaceId(256 + i)))
            .collect();
        assert_eq!(n_delivered, [8, 4, 2, 1]);
        assert_eq!(internal.interests.n_dropped(), 0);
        // As many as the manager takes from it a face may send again.
        drop(inbox.try_iter().take(4).collect::<Vec<_>>());
        assert_eq!(fill(&mut internal, FaceId(256)), 1);
        assert_eq!(fill(&mut internal, FaceId(300)), 2);
        // What is not for the manager is not its business.
        let other = name("/localhost/else");
        let refusal = internal.refusal(FaceId(256), other.view(), MonoNs::ZERO);
        assert_eq!(refusal, None);
    }

    #[test]
    fn the_faces_of_a_source_have_one_share_and_are_muted_together() {
        let (mut internal, _inbox) = internal(16);
        let peer = "192.0.2.1:6363".parse().expect("an address");
        let source = SourceId::of_peer(&peer);
        let faces: Vec<_> = (300..350).map(FaceId).collect();
        for &face in &faces {
            internal.note_source(face, source);
        }
        let n_delivered: usize = faces.iter().map(|&face| fill(&mut internal, face)).sum();
        assert_eq!(n_delivered, 8, "as many as one face would have had");
        assert_eq!(fill(&mut internal, FaceId(256)), 4);
        let command = name("/localhost/nfd/rib/register");
        internal.mute(faces[0], MonoNs(100));
        let mut refusal = |face, at| internal.refusal(face, command.view(), MonoNs(at));
        assert_eq!(refusal(faces[1], 99), Some(DropReason::Throttled));
        assert_ne!(refusal(FaceId(256), 99), Some(DropReason::Throttled));
        // A new face of the source is muted too, though all others have gone.
        for &face in &faces {
            internal.forget(face);
        }
        internal.note_source(FaceId(400), source);
        let refusal = internal.refusal(FaceId(400), command.view(), MonoNs(99));
        assert_eq!(refusal, Some(DropReason::Throttled));
        internal.forget(FaceId(400));
        assert!(internal.sources.is_empty() && internal.n_faces.is_empty());
    }

    #[test]
    fn a_muted_face_is_heard_again_in_time_and_others_at_any_time() {
        let (mut internal, _inbox) = internal(16);
        let (hostile, honest) = (FaceId(256), FaceId(257));
        let command = name("/localhost/nfd/rib/register");
        internal.mute(hostile, MonoNs(100));
        let mut refusal = |face, at| internal.refusal(face, command.view(), MonoNs(at));
        assert_eq!(refusal(hostile, 99), Some(DropReason::Throttled));
        assert_eq!(refusal(honest, 99), None);
        assert_eq!(refusal(hostile, 100), None);
        assert_eq!(refusal(hostile, 99), None, "it is forgotten");
    }
}
