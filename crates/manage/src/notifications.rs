//! The notification stream of face events.
//!
//! Owns the sequence numbers and the latest events. A new notification goes out
//! at once if an Interest may wait for it in the PIT; it is kept for those that
//! come late, until [`MAX_RETAINED`] newer ones exist. A notification without a subscriber is
//! never encoded or signed: faces may come and go faster than subscribers read.
//! Source: NFD Management protocol, "Notification".

use std::collections::VecDeque;

use tachonym_packet::{Component, InterestView, MonoNs, Name, NameView, types};
use tachonym_protocol::FaceEventNotification;

use crate::replies;

/// Most notifications that are kept.
const MAX_RETAINED: usize = 1024;

/// How long a notification is the news, in milliseconds: an Interest that asks
/// for the latest and fresh one gets none older than this.
pub(crate) const FRESH_MS: u64 = 1000;

/// So long after an Interest that waits, others of which the manager knows nothing
/// may still be pending, in milliseconds: longer than any lifetime that a router
/// grants.
const LISTENING_MS: u64 = 2 * 3_600_000;

/// An event and when it happened.
#[derive(Debug)]
struct Retained {
    at: MonoNs,
    event: FaceEventNotification,
}

/// A stream of numbered notifications.
#[derive(Debug)]
pub(crate) struct NotificationStream {
    name: Name,
    /// Number of the oldest one that is kept.
    first_seq: u64,
    retained: VecDeque<Retained>,
    /// Until then Interests may wait.
    awaited_until: MonoNs,
}

impl NotificationStream {
    /// A stream whose items are called `name`/seq=N.
    pub(crate) fn new(name: Name) -> Self {
        Self {
            name,
            first_seq: 0,
            retained: VecDeque::new(),
            awaited_until: MonoNs::ZERO,
        }
    }

    /// Keeps `event`; its notification, if an Interest may wait for it.
    pub(crate) fn push(&mut self, now: MonoNs, event: FaceEventNotification) -> Option<Vec<u8>> {
        if self.retained.len() >= MAX_RETAINED {
            self.retained.pop_front();
            self.first_seq += 1;
        }
        self.retained.push_back(Retained { at: now, event });
        let last_idx = self.retained.len() - 1;
        (now < self.awaited_until)
            .then(|| self.notification(last_idx))
            .flatten()
    }

    fn notification(&self, idx: usize) -> Option<Vec<u8>> {
        let event = &self.retained.get(idx)?.event;
        let seq = self.first_seq + idx as u64;
        let name = self.name.clone().with(&Component::sequence(seq));
        replies::notification(name, event.encode())
    }

    /// The notification that an Interest can have at once; `None`: it waits for
    /// one to come, or comes too late.
    pub(crate) fn find(&mut self, now: MonoNs, interest: &InterestView<'_>) -> Option<Vec<u8>> {
        let (name, must_be_fresh) = (interest.name(), interest.must_be_fresh());
        let found = self.index_of(now, name, must_be_fresh);
        if found.is_none() && self.may_come(name) {
            self.awaited_until = now.plus_ms(LISTENING_MS);
        }
        found.and_then(|idx| self.notification(idx))
    }

    /// Whether a notification to come may be called so.
    fn may_come(&self, name: NameView<'_>) -> bool {
        let next = self.first_seq + self.retained.len() as u64;
        name == self.name || self.number_in(name).is_some_and(|number| number >= next)
    }

    /// The number in the name of a notification.
    fn number_in(&self, name: NameView<'_>) -> Option<u64> {
        let last = name.last()?;
        let is_one =
            last.typ() == types::component::SEQUENCE_NUM && name.len() == self.name.len() + 1;
        is_one.then(|| last.as_number()).flatten()
    }

    fn index_of(&self, now: MonoNs, name: NameView<'_>, must_be_fresh: bool) -> Option<usize> {
        if name == self.name {
            let latest = self.retained.back()?;
            let is_fresh = now < latest.at.plus_ms(FRESH_MS);
            return (!must_be_fresh || is_fresh).then(|| self.retained.len() - 1);
        }
        let idx = usize::try_from(self.number_in(name)?.checked_sub(self.first_seq)?).ok()?;
        (idx < self.retained.len()).then_some(idx)
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{DataView, Interest};
    use tachonym_protocol::{FaceEventKind, FacePersistency, FaceScope, LinkType};

    use super::*;

    fn event(face_id: u64) -> FaceEventNotification {
        FaceEventNotification {
            kind: FaceEventKind::Created,
            face_id,
            uri: "fd://7".into(),
            local_uri: "unix:///s".into(),
            face_scope: FaceScope::Local,
            face_persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            flags: 0,
        }
    }

    fn at(ms: u64) -> MonoNs {
        MonoNs::ZERO.plus_ms(ms)
    }

    /// As many events, one each millisecond, for which no Interest waits.
    fn stream_of(n: u64) -> NotificationStream {
        let mut stream = NotificationStream::new("/n".parse().unwrap());
        for seq in 0..n {
            assert_eq!(stream.push(at(seq), event(seq)), None);
        }
        stream
    }

    /// Face of the event in a notification, which must be called by its number.
    fn face_in(wire: &[u8]) -> u64 {
        let data = DataView::parse(wire).expect("a Data");
        let event = FaceEventNotification::decode(data.content()).expect("an event");
        let name: Name = format!("/n/seq={}", event.face_id).parse().unwrap();
        assert!(
            data.name() == name,
            "{} for face {}",
            data.name(),
            event.face_id
        );
        event.face_id
    }

    fn find(stream: &mut NotificationStream, now_ms: u64, uri: &str, fresh: bool) -> Option<u64> {
        let wire = Interest {
            must_be_fresh: fresh,
            can_be_prefix: true,
            ..Interest::new(uri.parse().unwrap())
        }
        .encode();
        let interest = InterestView::parse(&wire).expect("an Interest");
        stream
            .find(at(now_ms), &interest)
            .map(|wire| face_in(&wire))
    }

    #[test]
    fn late_interests_get_what_is_retained_and_early_ones_wait() {
        let mut stream = stream_of(3);
        assert_eq!(find(&mut stream, 3, "/n/seq=1", false), Some(1));
        assert_eq!(find(&mut stream, 3, "/n/seq=3", false), None);
        assert_eq!(find(&mut stream, 3, "/n/v=1", false), None);
        assert_eq!(find(&mut stream, 3, "/n/x/seq=1", false), None);
        assert_eq!(find(&mut stream_of(0), 3, "/n", false), None);
    }

    #[test]
    fn only_what_somebody_may_wait_for_goes_out_at_once() {
        let mut stream = stream_of(3);
        assert_eq!(find(&mut stream, 3, "/n/seq=1", false), Some(1));
        assert_eq!(
            stream.push(at(3), event(3)),
            None,
            "that one has its answer"
        );
        assert_eq!(find(&mut stream, 4, "/n/seq=4", false), None);
        for (seq, ms) in [(4, 4), (5, 5), (6, 4 + LISTENING_MS - 1)] {
            let sent = stream.push(at(ms), event(seq)).expect("a consumer waits");
            assert_eq!(face_in(&sent), seq);
        }
        let late = stream.push(at(4 + LISTENING_MS), event(7));
        assert_eq!(late, None, "no longer");
    }

    #[test]
    fn whoever_asks_for_what_never_comes_does_not_wait() {
        let mut stream = stream_of(MAX_RETAINED as u64 + 10);
        for uri in ["/n/v=1", "/n/x/seq=1", "/n/seq=3", "/m"] {
            assert_eq!(find(&mut stream, 5_000, uri, false), None);
        }
        assert_eq!(stream.push(at(5_000), event(1034)), None);
    }

    #[test]
    fn the_latest_notification_is_fresh_for_a_second() {
        let mut stream = stream_of(3);
        assert_eq!(find(&mut stream, 1001, "/n", true), Some(2));
        assert_eq!(find(&mut stream, 1002, "/n", true), None);
        assert_eq!(find(&mut stream, 5000, "/n", false), Some(2));
    }

    #[test]
    fn old_notifications_make_room() {
        let mut stream = stream_of(MAX_RETAINED as u64 + 10);
        assert_eq!(stream.retained.len(), MAX_RETAINED);
        assert_eq!(find(&mut stream, 0, "/n/seq=9", false), None);
        assert_eq!(find(&mut stream, 0, "/n/seq=10", false), Some(10));
        assert_eq!(find(&mut stream, 0, "/n/seq=1033", false), Some(1033));
    }
}
