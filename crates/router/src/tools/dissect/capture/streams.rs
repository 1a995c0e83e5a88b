//! The TCP connections of a capture.
//!
//! Owns the state of every direction that is followed, and its bounds:
//! [`MAX_STREAMS`] directions, and [`MAX_HELD_BYTES`] of segments in all of them.
//! Beyond, the direction that has been silent for longest is given up, and that
//! is counted. RST ends both directions. FIN frees the bytes of its direction as
//! soon as all before it have come; what is left of it recognises segments that
//! are captured twice. Segments without payload begin nothing, except SYN.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use super::stream::Stream;

/// Directions of connections that are followed at once.
const MAX_STREAMS: usize = 2048;
/// Bytes of memory for segments of all connections.
const MAX_HELD_BYTES: usize = 64 << 20;

/// From where to where.
pub(super) type Flow = (SocketAddr, SocketAddr);

/// What a TCP segment says.
pub(super) struct Segment<'a> {
    pub(super) flow: Flow,
    pub(super) sequence: u32,
    pub(super) is_syn: bool,
    pub(super) is_fin: bool,
    pub(super) is_rst: bool,
    pub(super) payload: &'a [u8],
}

/// The directions of TCP connections in a capture, bounded in number and bytes.
#[derive(Default)]
pub(super) struct Streams {
    /// Each with the turn of its last segment.
    streams: HashMap<Flow, (u64, Stream)>,
    /// The one that has been silent for longest comes first.
    by_turn: BTreeMap<u64, Flow>,
    turn: u64,
    held_bytes: usize,
    /// Bytes without a packet in directions that are no longer followed.
    n_lost_bytes: u64,
    n_given_up: u64,
}

impl Streams {
    /// Takes a segment in. Returns the packets that become whole by it.
    pub(super) fn add(&mut self, segment: &Segment<'_>) -> Vec<Vec<u8>> {
        let flow = segment.flow;
        if segment.is_rst {
            self.remove(flow);
            self.remove((flow.1, flow.0));
            return Vec::new();
        }
        let (mut stream, is_new) = match self.take(flow) {
            Some(stream) => (stream, false),
            None => (Stream::default(), true),
        };
        if is_new && segment.payload.is_empty() && !segment.is_syn {
            return Vec::new();
        }
        let mut sequence = segment.sequence;
        if segment.is_syn {
            // SYN takes a number of its own.
            sequence = sequence.wrapping_add(1);
            stream.restart_at(sequence);
        }
        stream.add(sequence, segment.payload);
        if segment.is_fin {
            stream.end_at(sequence.wrapping_add(segment.payload.len() as u32));
        }
        let found = std::iter::from_fn(|| stream.next_element()).collect();
        stream.release();
        self.put(flow, stream);
        while self.streams.len() > MAX_STREAMS || self.held_bytes > MAX_HELD_BYTES {
            self.give_up_oldest();
        }
        found
    }

    /// Bytes that became part of no packet, those that wait included.
    pub(super) fn n_lost_bytes(&self) -> u64 {
        let waiting = self.streams.values();
        let waiting: u64 = waiting.map(|(_, stream)| stream.n_lost_bytes()).sum();
        self.n_lost_bytes + waiting
    }

    /// Directions that were given up before they were closed.
    pub(super) const fn n_given_up(&self) -> u64 {
        self.n_given_up
    }

    fn put(&mut self, flow: Flow, stream: Stream) {
        self.turn += 1;
        self.by_turn.insert(self.turn, flow);
        self.held_bytes += stream.held_bytes();
        self.streams.insert(flow, (self.turn, stream));
    }

    fn take(&mut self, flow: Flow) -> Option<Stream> {
        let (turn, stream) = self.streams.remove(&flow)?;
        self.by_turn.remove(&turn);
        self.held_bytes -= stream.held_bytes();
        Some(stream)
    }

    /// Follows a direction no longer.
    fn remove(&mut self, flow: Flow) -> Option<Stream> {
        let stream = self.take(flow)?;
        self.n_lost_bytes += stream.n_lost_bytes();
        Some(stream)
    }

    fn give_up_oldest(&mut self) {
        if let Some((_, &flow)) = self.by_turn.first_key_value()
            && let Some(stream) = self.remove(flow)
            && !stream.is_closed()
        {
            self.n_given_up += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: [u8; 7] = [5, 5, 7, 3, 8, 1, b'a'];

    fn flow(client: u32) -> Flow {
        let client = SocketAddr::from((client.to_be_bytes(), 40_000));
        (client, SocketAddr::from(([192, 0, 2, 1], 6363)))
    }

    fn segment(flow: Flow, sequence: u32, payload: &[u8]) -> Segment<'_> {
        Segment {
            flow,
            sequence,
            is_syn: false,
            is_fin: false,
            is_rst: false,
            payload,
        }
    }

    /// That what is counted is what is there.
    fn check(streams: &Streams) {
        let held = streams.streams.values().map(|(_, s)| s.held_bytes());
        assert_eq!(streams.held_bytes, held.sum::<usize>());
        assert!(streams.held_bytes <= MAX_HELD_BYTES);
        assert_eq!(streams.by_turn.len(), streams.streams.len());
        assert!(streams.streams.len() <= MAX_STREAMS);
    }

    #[test]
    fn a_fin_frees_its_direction() {
        let mut streams = Streams::default();
        let (there, back) = (flow(1), (flow(1).1, flow(1).0));
        streams.add(&segment(back, 1, &PACKET[..4]));
        assert!(streams.add(&segment(there, 500, &PACKET[..4])).is_empty());
        let last = Segment {
            is_fin: true,
            ..segment(there, 504, &PACKET[4..])
        };
        assert_eq!(streams.add(&last), [PACKET]);
        let held: Vec<usize> = [there, back]
            .map(|flow| streams.streams[&flow].1.held_bytes())
            .into();
        assert!(held[0] == 0 && held[1] >= 4, "{held:?}");
        // As seen on two interfaces.
        assert!(streams.add(&last).is_empty());
        check(&streams);
        assert_eq!(streams.n_lost_bytes(), 4);
    }

    #[test]
    fn a_rst_frees_both_directions() {
        let mut streams = Streams::default();
        let (there, back) = (flow(1), (flow(1).1, flow(1).0));
        streams.add(&segment(there, 1, &PACKET[..4]));
        streams.add(&segment(back, 1, &PACKET[..5]));
        streams.add(&Segment {
            is_rst: true,
            ..segment(back, 6, &[])
        });
        assert!(streams.streams.is_empty());
        assert_eq!((streams.held_bytes, streams.n_lost_bytes()), (0, 9));
        check(&streams);
        // The next segment starts a new stream.
        assert_eq!(streams.add(&segment(there, 90, &PACKET)), [PACKET]);
    }

    #[test]
    fn segments_without_payload_begin_nothing() {
        let mut streams = Streams::default();
        for is_fin in [false, true] {
            streams.add(&Segment {
                is_fin,
                ..segment(flow(1), 1, &[])
            });
        }
        assert!(streams.streams.is_empty());
    }

    #[test]
    fn connections_make_room_for_others() {
        let mut streams = Streams::default();
        let n_streams = 3 * MAX_STREAMS as u32;
        for client in 0..n_streams {
            streams.add(&segment(flow(client), 1, &PACKET[..4]));
            // The first goes on, and so is kept.
            streams.add(&segment(flow(0), 1, &PACKET[..4]));
        }
        check(&streams);
        let n_given_up = u64::from(n_streams) - MAX_STREAMS as u64;
        assert_eq!(streams.n_given_up(), n_given_up);
        assert_eq!(streams.n_lost_bytes(), 4 * u64::from(n_streams));
        assert_eq!(streams.add(&segment(flow(0), 5, &PACKET[4..])), [PACKET]);
    }

    #[test]
    fn bytes_that_wait_are_bounded_over_all_connections() {
        let mut streams = Streams::default();
        let part = [9; 60_000];
        let n_parts = 3 * (MAX_HELD_BYTES / part.len()) as u32;
        for i in 0..n_parts {
            let client = i / 4;
            let first = segment(flow(client), 1, &PACKET[..4]);
            streams.add(&first);
            // A gap before each.
            streams.add(&segment(flow(client), 1000 + i % 4 * 60_001, &part));
            check(&streams);
        }
        assert!(streams.n_given_up() > 0);
        assert!(streams.held_bytes > MAX_HELD_BYTES / 2);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_counted_right(
            segments in prop::collection::vec(
                (0..3_u32, any::<bool>(), 0..40_u32, 0..30_usize, 0..16_u8), 0..60),
        ) {
            let mut streams = Streams::default();
            for (client, is_back, sequence, len, flags) in segments {
                let (there, back) = flow(client);
                streams.add(&Segment {
                    is_syn: flags & 3 == 3,
                    is_fin: flags & 12 == 12,
                    is_rst: flags == 5,
                    ..segment(
                        if is_back { (back, there) } else { (there, back) },
                        sequence.wrapping_sub(20),
                        &PACKET.repeat(5)[..len],
                    )
                });
                check(&streams);
            }
        }
    }
}
