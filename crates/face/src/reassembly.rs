//! Reassembly of NDNLPv2 fragments, bounded in number, bytes and time.

use std::time::Duration;

use hashbrown::HashMap;
use tachonym_packet::lp::Headers;
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{FaceId, MonoNs};

use crate::info::DropReason;

/// For how long a packet may stay incomplete.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);
/// Most incomplete packets of one face.
const MAX_PARTIALS: usize = 64;
/// Most fragments of one packet.
const MAX_FRAGMENTS: u64 = 256;

struct Partial {
    pieces: Vec<Option<Vec<u8>>>,
    n_missing: usize,
    n_bytes: usize,
    deadline: MonoNs,
    headers: Headers,
    prefix_announcement: Option<Vec<u8>>,
}

/// A packet whose fragments are all here.
pub(crate) struct Whole {
    pub(crate) headers: Headers,
    pub(crate) packet: Vec<u8>,
    pub(crate) prefix_announcement: Option<Vec<u8>>,
}

/// Incomplete packets of one peer, by the sequence of their first fragment.
#[derive(Default)]
pub(crate) struct Reassembler {
    partials: HashMap<u64, Partial, foldhash::fast::RandomState>,
}

impl Reassembler {
    /// Takes one fragment. Returns the packet that it completes.
    ///
    /// # Errors
    /// Why the fragment, or an older packet in its favour, was dropped.
    pub(crate) fn insert(
        &mut self,
        now: MonoNs,
        headers: &Headers,
        fragment: &[u8],
        prefix_announcement: Option<&[u8]>,
    ) -> Result<Option<Whole>, DropReason> {
        let first = headers
            .sequence
            .and_then(|s| s.checked_sub(headers.frag_index));
        let Some(first) = first.filter(|_| headers.frag_count <= MAX_FRAGMENTS) else {
            return Err(DropReason::BadFragment);
        };
        let evicted = self.make_room(first);
        let n_pieces = headers.frag_count as usize;
        let partial = self.partials.entry(first).or_insert_with(|| Partial {
            pieces: vec![None; n_pieces],
            n_missing: n_pieces,
            n_bytes: 0,
            deadline: now + TIMEOUT,
            headers: Headers::default(),
            prefix_announcement: None,
        });
        if partial.pieces.len() != n_pieces || partial.n_bytes + fragment.len() > MAX_PACKET_BYTES {
            self.partials.remove(&first);
            return Err(DropReason::BadFragment);
        }
        let piece = &mut partial.pieces[headers.frag_index as usize];
        if piece.is_none() {
            *piece = Some(fragment.to_vec());
            partial.n_missing -= 1;
            partial.n_bytes += fragment.len();
        }
        if headers.frag_index == 0 {
            // What is said of the packet comes with its first fragment.
            partial.headers = Headers {
                sequence: None,
                frag_index: 0,
                frag_count: 1,
                ..*headers
            };
            partial.prefix_announcement = prefix_announcement.map(<[u8]>::to_vec);
        } else {
            let mark = partial.headers.congestion_mark.max(headers.congestion_mark);
            partial.headers.congestion_mark = mark;
        }
        if partial.n_missing == 0
            && let Some(done) = self.partials.remove(&first)
        {
            return Ok(Some(Whole {
                headers: done.headers,
                packet: done.pieces.into_iter().flatten().flatten().collect(),
                prefix_announcement: done.prefix_announcement,
            }));
        }
        if evicted {
            Err(DropReason::ReassemblyFull)
        } else {
            Ok(None)
        }
    }

    /// Drops the oldest packet if a further one has no room.
    fn make_room(&mut self, first: u64) -> bool {
        if self.partials.len() < MAX_PARTIALS || self.partials.contains_key(&first) {
            return false;
        }
        let oldest = self
            .partials
            .iter()
            .min_by_key(|(_, p)| p.deadline)
            .map(|(&key, _)| key);
        oldest.is_some_and(|key| self.partials.remove(&key).is_some())
    }

    /// Drops what has waited too long; returns how many packets.
    pub(crate) fn expire(&mut self, now: MonoNs) -> u64 {
        let before = self.partials.len();
        self.partials.retain(|_, partial| partial.deadline > now);
        (before - self.partials.len()) as u64
    }

    pub(crate) fn next_deadline(&self) -> Option<MonoNs> {
        self.partials.values().map(|partial| partial.deadline).min()
    }
}

/// Faces with incomplete packets, so that nobody else is asked for time-outs.
pub(crate) type Waiting = Vec<FaceId>;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fragment(sequence: u64, index: u64, count: u64) -> Headers {
        Headers {
            sequence: Some(sequence),
            frag_index: index,
            frag_count: count,
            ..Headers::default()
        }
    }

    #[test]
    fn fragments_are_joined_whatever_their_order_and_repetition() {
        let mut reassembler = Reassembler::default();
        let mut take = |index: u64, bytes: &[u8]| {
            let headers = fragment(70 + index, index, 3);
            reassembler
                .insert(MonoNs(1), &headers, bytes, None)
                .expect("room")
        };
        assert!(take(2, b"c").is_none());
        assert!(take(0, b"a").is_none());
        assert!(take(0, b"a").is_none());
        assert_eq!(take(1, b"b").expect("complete").packet, b"abc");
    }

    #[test]
    fn an_incomplete_packet_goes_after_half_a_second() {
        let mut reassembler = Reassembler::default();
        let headers = fragment(1, 0, 2);
        reassembler
            .insert(MonoNs(0), &headers, b"a", None)
            .expect("room");
        assert_eq!(reassembler.expire(MonoNs(0).plus_ms(499)), 0);
        assert_eq!(reassembler.expire(MonoNs(0).plus_ms(500)), 1);
        assert_eq!(reassembler.next_deadline(), None);
    }

    #[test]
    fn incomplete_packets_are_bounded_in_number() {
        let mut reassembler = Reassembler::default();
        let mut n_evicted = 0;
        for i in 0..1000 {
            let headers = fragment(i * 10, 0, 2);
            let result = reassembler.insert(MonoNs(i), &headers, b"a", None);
            n_evicted += usize::from(result.is_err());
        }
        assert_eq!(reassembler.partials.len(), MAX_PARTIALS);
        assert_eq!(n_evicted, 1000 - MAX_PARTIALS);
    }

    #[test]
    fn a_packet_beyond_the_largest_size_is_dropped() {
        let mut reassembler = Reassembler::default();
        let half = vec![0; MAX_PACKET_BYTES / 2 + 1];
        assert!(
            reassembler
                .insert(MonoNs(0), &fragment(1, 0, 2), &half, None)
                .is_ok()
        );
        let second = reassembler.insert(MonoNs(0), &fragment(2, 1, 2), &half, None);
        assert_eq!(second.err(), Some(DropReason::BadFragment));
    }

    proptest! {
        #[test]
        fn any_fragments_leave_memory_bounded(
            fragments in proptest::collection::vec((0_u64..300, 0_u64..300, 1_u64..300), 0..400)
        ) {
            let mut reassembler = Reassembler::default();
            for (sequence, index, count) in fragments {
                // The decoder lets no other index through.
                let headers = fragment(sequence, index % count, count);
                let _ = reassembler.insert(MonoNs(0), &headers, &[7; 100], None);
                prop_assert!(reassembler.partials.len() <= MAX_PARTIALS);
            }
        }
    }
}
