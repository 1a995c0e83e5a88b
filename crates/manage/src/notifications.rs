//! The notification stream of face events.
//!
//! Owns the sequence numbers and the latest notifications. A new notification
//! goes out at once and satisfies the Interests that wait for it in the PIT; it
//! is kept for those that come late, until [`MAX_RETAINED`] newer ones exist.
//! Source: NFD Management protocol, "Notification".

use std::collections::VecDeque;

use tachonym_packet::{Component, MonoNs, Name, NameView, types};

/// Most notifications that are kept.
const MAX_RETAINED: usize = 1024;

/// How long a notification is the news, in milliseconds: an Interest that asks
/// for the latest and fresh one gets none older than this.
pub(crate) const FRESH_MS: u64 = 1000;

/// One notification that was sent.
#[derive(Debug)]
struct Retained {
    at: MonoNs,
    wire: Vec<u8>,
}

/// A stream of numbered notifications.
#[derive(Debug)]
pub(crate) struct NotificationStream {
    name: Name,
    /// Number of the oldest one that is kept.
    first_seq: u64,
    retained: VecDeque<Retained>,
}

impl NotificationStream {
    /// A stream whose items are called `name`/seq=N.
    pub(crate) fn new(name: Name) -> Self {
        Self {
            name,
            first_seq: 0,
            retained: VecDeque::new(),
        }
    }

    /// Name of the next notification.
    pub(crate) fn next_name(&self) -> Name {
        let seq = self.first_seq + self.retained.len() as u64;
        self.name.clone().with(&Component::sequence(seq))
    }

    /// Keeps `wire`, the Data of the next notification.
    pub(crate) fn retain(&mut self, now: MonoNs, wire: Vec<u8>) {
        if self.retained.len() >= MAX_RETAINED {
            self.retained.pop_front();
            self.first_seq += 1;
        }
        self.retained.push_back(Retained { at: now, wire });
    }

    /// The notification that an Interest can have at once; `None`: it has to wait,
    /// or comes too late.
    pub(crate) fn find(
        &self,
        now: MonoNs,
        name: NameView<'_>,
        must_be_fresh: bool,
    ) -> Option<&[u8]> {
        if name == self.name {
            let fresh_until = |item: &Retained| item.at.plus_ms(FRESH_MS);
            let latest = self.retained.back()?;
            return (!must_be_fresh || now < fresh_until(latest)).then_some(&latest.wire);
        }
        let last = name.last()?;
        if last.typ() != types::component::SEQUENCE_NUM || name.len() != self.name.len() + 1 {
            return None;
        }
        let idx = last.as_number()?.checked_sub(self.first_seq)?;
        let item = self.retained.get(usize::try_from(idx).ok()?)?;
        Some(&item.wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream_of(n: u64) -> NotificationStream {
        let mut stream = NotificationStream::new("/n".parse().unwrap());
        for seq in 0..n {
            let name: Name = format!("/n/seq={seq}").parse().unwrap();
            assert_eq!(stream.next_name(), name);
            stream.retain(MonoNs::ZERO.plus_ms(seq), seq.to_be_bytes().to_vec());
        }
        stream
    }

    fn find(stream: &NotificationStream, now_ms: u64, uri: &str, fresh: bool) -> Option<u64> {
        let name: Name = uri.parse().unwrap();
        stream
            .find(MonoNs::ZERO.plus_ms(now_ms), name.view(), fresh)
            .map(|wire| u64::from_be_bytes(wire.try_into().unwrap()))
    }

    #[test]
    fn late_interests_get_what_is_retained_and_early_ones_wait() {
        let stream = stream_of(3);
        assert_eq!(find(&stream, 3, "/n/seq=1", false), Some(1));
        assert_eq!(find(&stream, 3, "/n/seq=3", false), None);
        assert_eq!(find(&stream, 3, "/n/v=1", false), None);
        assert_eq!(find(&stream, 3, "/n/x/seq=1", false), None);
        assert_eq!(find(&stream_of(0), 3, "/n", false), None);
    }

    #[test]
    fn the_latest_notification_is_fresh_for_a_second() {
        let stream = stream_of(3);
        assert_eq!(find(&stream, 1001, "/n", true), Some(2));
        assert_eq!(find(&stream, 1002, "/n", true), None);
        assert_eq!(find(&stream, 5000, "/n", false), Some(2));
    }

    #[test]
    fn old_notifications_make_room() {
        let stream = stream_of(MAX_RETAINED as u64 + 10);
        assert_eq!(stream.retained.len(), MAX_RETAINED);
        assert_eq!(find(&stream, 0, "/n/seq=9", false), None);
        assert_eq!(find(&stream, 0, "/n/seq=10", false), Some(10));
        assert_eq!(find(&stream, 0, "/n/seq=1033", false), Some(1033));
    }
}
