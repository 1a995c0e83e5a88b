//! One direction of a TCP connection: bytes in order, and the packets in them.
//!
//! Owns what waits to be put in order, [`MAX_STREAM_BYTES`] and
//! [`MAX_EARLY_SEGMENTS`] at most; beyond, it restarts with the next segment. Packets
//! follow each other in the bytes, or lie in WebSocket messages.

use std::collections::BTreeMap;

use tachonym_packet::tlv::element_len;

use crate::tools::dissect::tree::begins_frame;

/// Bytes of one direction of a connection that wait for others.
const MAX_STREAM_BYTES: usize = 1 << 18;
/// Segments of one direction of a connection that came too early.
const MAX_EARLY_SEGMENTS: usize = 256;
/// Largest head of HTTP before a WebSocket.
const MAX_HTTP_BYTES: usize = 8192;
/// Largest element of a stream that is believed.
const MAX_ELEMENT_BYTES: usize = 1 << 16;

/// One direction of a TCP connection.
#[derive(Default)]
pub(super) struct Stream {
    /// Sequence number and offset of the byte behind `ready`.
    next: Option<(u32, u64)>,
    /// Bytes in order; the first `n_read` have been taken out.
    ready: Vec<u8>,
    n_read: usize,
    /// Segments that came too early, by offset.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    /// Offset behind the last byte, once FIN has told.
    end: Option<u64>,
    is_websocket: bool,
    /// Bytes that became part of no packet.
    n_lost_bytes: u64,
}

impl Stream {
    /// Restarts: waiting segments are lost.
    pub(super) fn restart_at(&mut self, sequence: u32) {
        *self = Self {
            next: Some((sequence, 0)),
            n_lost_bytes: self.n_lost_bytes + self.n_waiting() as u64,
            ..Self::default()
        };
    }

    /// Bytes that wait for others.
    fn n_waiting(&self) -> usize {
        self.ready.len() - self.n_read + self.early_bytes
    }

    /// Bytes of memory that hold the bytes of segments.
    pub(super) fn held_bytes(&self) -> usize {
        self.ready.capacity() + self.early_bytes
    }

    /// Bytes that became part of no packet, those that wait included.
    pub(super) fn n_lost_bytes(&self) -> u64 {
        self.n_lost_bytes + self.n_waiting() as u64
    }

    /// Takes the end of the direction from a FIN, which `sequence` numbers.
    pub(super) fn end_at(&mut self, sequence: u32) {
        if let Some((next, offset)) = self.next
            && !self.is_closed()
        {
            let ahead = sequence.wrapping_sub(next);
            let ahead = if ahead < 1 << 31 { ahead } else { 0 };
            self.end = Some(offset + u64::from(ahead));
        }
    }

    /// Whether all bytes up to the FIN have come.
    pub(super) fn is_closed(&self) -> bool {
        let offset = self.next.map(|(_, offset)| offset);
        self.end.is_some() && self.end <= offset
    }

    /// Frees what is no longer needed: what has been taken out, and everything
    /// once the direction is closed.
    pub(super) fn release(&mut self) {
        if self.is_closed() {
            self.n_lost_bytes = self.n_lost_bytes();
            self.early = BTreeMap::new();
            self.early_bytes = 0;
            self.n_read = self.ready.len();
        }
        if self.n_read == self.ready.len() {
            self.ready = Vec::new();
        } else {
            self.ready.drain(..self.n_read);
        }
        self.n_read = 0;
    }

    /// Puts a segment in its place.
    pub(super) fn add(&mut self, sequence: u32, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        if self.is_closed()
            && let Some((next, _)) = self.next
        {
            let behind = next.wrapping_sub(sequence.wrapping_add(payload.len() as u32));
            if behind < 1 << 31 {
                // Sent again, or captured twice.
                return;
            }
            // Another connection, the first segment of which is not there.
            self.restart_at(sequence);
        }
        let (next, offset) = *self.next.get_or_insert((sequence, 0));
        let is_too_much = self.n_waiting() + payload.len() > MAX_STREAM_BYTES
            || self.early.len() >= MAX_EARLY_SEGMENTS;
        if is_too_much {
            // Something is missing for good, or it is not what we take it for.
            let is_websocket = self.is_websocket;
            self.restart_at(sequence);
            self.is_websocket = is_websocket;
            self.append(payload);
            return;
        }
        let behind = next.wrapping_sub(sequence);
        if behind < 1 << 31 {
            // Perhaps sent again, with more behind it.
            self.append(payload.get(behind as usize..).unwrap_or_default());
        } else {
            let at = offset + u64::from(sequence.wrapping_sub(next));
            let segment = self.early.entry(at).or_default();
            if segment.len() < payload.len() {
                self.early_bytes += payload.len() - segment.len();
                *segment = payload.to_vec();
            }
        }
        while let Some((_, offset)) = self.next
            && let Some(first) = self.early.first_entry()
            && *first.key() <= offset
        {
            let (at, segment) = first.remove_entry();
            self.early_bytes -= segment.len();
            let n_known = usize::try_from(offset - at).unwrap_or(usize::MAX);
            self.append(segment.get(n_known..).unwrap_or_default());
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.ready.extend_from_slice(bytes);
        self.next = self.next.map(|(sequence, offset)| {
            let len = bytes.len();
            (sequence.wrapping_add(len as u32), offset + len as u64)
        });
    }

    /// What has not been taken out.
    fn unread(&self) -> &[u8] {
        self.ready.get(self.n_read..).unwrap_or_default()
    }

    /// Gives up what is ready; a later segment may begin with a packet.
    fn pass_over(&mut self) {
        self.n_lost_bytes += self.unread().len() as u64;
        self.n_read = self.ready.len();
    }

    /// The next whole packet.
    pub(super) fn next_element(&mut self) -> Option<Vec<u8>> {
        if self.unread().is_empty() {
            return None;
        }
        let is_http = [&b"GET "[..], b"HTTP/"].iter().any(|start| {
            let len = start.len().min(self.unread().len());
            self.unread()[..len] == start[..len]
        });
        if is_http && !self.is_websocket {
            let Some(end) = self.unread().windows(4).position(|w| w == b"\r\n\r\n") else {
                if self.unread().len() > MAX_HTTP_BYTES {
                    self.pass_over();
                }
                return None;
            };
            self.n_read += end + 4;
            self.is_websocket = true;
        }
        if self.is_websocket {
            return self.next_message();
        }
        match element_len(self.unread()) {
            _ if !begins_frame(self.unread()) => self.pass_over(),
            Ok(Some(len)) if len <= self.unread().len() => {
                let wire = self.unread()[..len].to_vec();
                self.n_read += len;
                return Some(wire);
            }
            Ok(Some(len)) if len <= MAX_ELEMENT_BYTES => {}
            Ok(None) => {}
            _ => self.pass_over(),
        }
        None
    }

    /// The next WebSocket message that is binary and in one frame (RFC 6455,
    /// section 5.2). Messages in several frames are passed over.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        loop {
            let bytes = self.unread();
            let [first, second, ..] = *bytes else {
                return None;
            };
            let (len, mut at) = match second & 0x7f {
                126 => {
                    let len: [u8; 2] = bytes.get(2..4)?.try_into().ok()?;
                    (u64::from(u16::from_be_bytes(len)), 4)
                }
                127 => {
                    let len: [u8; 8] = bytes.get(2..10)?.try_into().ok()?;
                    (u64::from_be_bytes(len), 10)
                }
                len => (u64::from(len), 2),
            };
            let len = match usize::try_from(len) {
                Ok(len) if len <= MAX_ELEMENT_BYTES => len,
                _ => {
                    self.pass_over();
                    return None;
                }
            };
            let mut mask = [0; 4];
            if second & 0x80 != 0 {
                mask = bytes.get(at..at + 4)?.try_into().ok()?;
                at += 4;
            }
            let mut message = bytes.get(at..at + len)?.to_vec();
            self.n_read += at + len;
            for (i, byte) in message.iter_mut().enumerate() {
                *byte ^= mask[i % 4];
            }
            match first & 0x8f {
                0x82 => return Some(message),
                // Control frames belong to the connection.
                0x88..=0x8f => {}
                _ => self.n_lost_bytes += len as u64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: [u8; 7] = [5, 5, 7, 3, 8, 1, b'a'];

    fn starting_at(sequence: u32) -> Stream {
        let mut stream = Stream::default();
        stream.restart_at(sequence);
        stream
    }

    #[test]
    fn segments_are_put_in_order_and_repeated_ones_ignored() {
        let two = [PACKET, PACKET].concat();
        let mut stream = starting_at(u32::MAX - 2);
        let at = |offset: u32| (u32::MAX - 2).wrapping_add(offset);
        stream.add(at(9), &two[9..]);
        stream.add(at(0), &two[..4]);
        assert_eq!(stream.next_element(), None);
        stream.add(at(2), &two[2..9]);
        stream.add(at(0), &two[..4]);
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        assert_eq!(stream.next_element(), None);
    }

    #[test]
    fn websocket_messages_are_unmasked() {
        let mut stream = starting_at(0);
        let mut bytes = b"GET / HTTP/1.1\r\n\r\n".to_vec();
        bytes.extend([0x82, 0x87, 1, 2, 3, 4]);
        bytes.extend(
            PACKET
                .iter()
                .zip([1, 2, 3, 4].into_iter().cycle())
                .map(|(b, m)| b ^ m),
        );
        for (i, byte) in bytes.iter().enumerate() {
            assert_eq!(stream.next_element(), None);
            stream.add(i as u32, &[*byte]);
        }
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
    }

    #[test]
    fn a_stream_of_something_else_is_passed_over() {
        let mut stream = starting_at(0);
        stream.add(0, &[0; 5000]);
        assert_eq!(stream.next_element(), None);
        assert_eq!(stream.n_lost_bytes, 5000);
        for i in 0..4000_u32 {
            stream.add(1_000_000 + i * 2000, &[7; 1000]);
            assert_eq!(stream.next_element(), None);
            let early: usize = stream.early.values().map(Vec::len).sum();
            assert_eq!(stream.early_bytes, early);
            assert!(stream.n_waiting() <= MAX_STREAM_BYTES);
            assert!(stream.early.len() <= MAX_EARLY_SEGMENTS);
        }
        // A packet at the start of a segment is found again.
        stream.add(20_000_000, &[9; 100]);
        for i in 0..2 * MAX_EARLY_SEGMENTS as u32 {
            stream.add(30_000_000 + i * 100, &PACKET);
        }
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
    }

    #[test]
    fn nothing_is_held_behind_a_fin_and_repeated_segments_are_ignored() {
        let mut stream = starting_at(u32::MAX - 3);
        stream.add(2, &[9; 10]);
        stream.add(u32::MAX - 3, &PACKET[..3]);
        // The FIN comes before what it ends.
        stream.end_at(3);
        stream.release();
        assert!(!stream.is_closed());
        stream.add(u32::MAX, &PACKET[3..]);
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        stream.release();
        assert!(stream.is_closed());
        // What lies behind the end is lost.
        assert_eq!((stream.held_bytes(), stream.n_lost_bytes()), (0, 9));
        stream.add(u32::MAX, &PACKET[3..]);
        stream.add(u32::MAX - 3, &PACKET);
        assert_eq!(stream.next_element(), None);
        // The ports are used again.
        stream.add(70_000, &PACKET);
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        assert!(!stream.is_closed());
    }

    #[test]
    fn early_segments_may_overlap_what_is_there() {
        let three = [PACKET, PACKET, PACKET].concat();
        let mut stream = starting_at(100);
        stream.add(105, &three[5..12]);
        stream.add(105, &three[5..9]);
        stream.add(110, &three[10..]);
        stream.add(100, &three[..8]);
        for _ in 0..3 {
            assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        }
        assert_eq!((stream.n_waiting(), stream.n_lost_bytes), (0, 0));
    }

    proptest! {
        #[test]
        fn segments_in_any_order_make_the_same_packets(
            cuts in prop::collection::vec(0..70_usize, 0..20),
            seed in any::<u64>(),
        ) {
            let bytes = PACKET.repeat(10);
            let mut cuts = [cuts, vec![0, 70]].concat();
            cuts.sort_unstable();
            let mut segments: Vec<_> = cuts.windows(2).map(|w| (w[0], &bytes[w[0]..w[1]])).collect();
            segments.sort_by_key(|(at, _)| (*at as u64 + 1).wrapping_mul(seed | 1));
            let mut stream = starting_at(u32::MAX - 30);
            let mut n_found = 0;
            for (at, segment) in segments {
                stream.add((u32::MAX - 30).wrapping_add(at as u32), segment);
                while let Some(wire) = stream.next_element() {
                    prop_assert_eq!(wire, PACKET.to_vec());
                    n_found += 1;
                }
            }
            prop_assert_eq!(n_found, 10);
        }
    }
}
