//! A packet of which fragments are missing.

use std::net::SocketAddr;
use std::time::Duration;

use tachonym_packet::MonoNs;
use tachonym_packet::lp::Headers;
use tachonym_packet::types::MAX_PACKET_BYTES;

use crate::counters::DropReason;

/// How long an incomplete packet waits for its next fragment.
pub(crate) const REASSEMBLY_TIMEOUT: Duration = Duration::from_millis(500);
/// How long it is kept altogether, whatever comes: long enough for fragments
/// that are sent again.
const MAX_REASSEMBLY_TIME: Duration = Duration::from_secs(2);
/// What an incomplete packet costs beside its buffers, about.
const PARTIAL_OVERHEAD_BYTES: usize = 512;

/// What became of a fragment.
#[derive(Debug)]
pub(crate) enum Reassembled {
    /// It waits for others.
    Waiting,
    /// It was the last one. The packet was appended to the output, then its
    /// prefix announcement of the given length.
    Complete {
        headers: Headers,
        l3_bytes: usize,
        prefix_announcement_bytes: usize,
    },
    /// It, or the packet it belongs to, was dropped.
    Dropped(DropReason),
}

#[derive(Clone, Copy)]
struct Piece {
    start: u32,
    len: u32,
}

impl Piece {
    const ABSENT: Self = Self { start: 0, len: 0 };
}

/// A packet of which fragments are missing.
pub(super) struct Partial {
    pub(super) peer: Option<SocketAddr>,
    pub(super) base_sequence: u64,
    n_missing: u32,
    began_at: MonoNs,
    pub(super) deadline: MonoNs,
    /// Fragments in the order of their arrival.
    bytes: Vec<u8>,
    /// By FragIndex; fragments are never empty, so length 0 means absent.
    pieces: Vec<Piece>,
    /// Of the first fragment.
    headers: Headers,
    prefix_announcement: Vec<u8>,
    /// The largest CongestionMark of any fragment.
    congestion_mark: u64,
    pub(super) charged_bytes: usize,
}

/// How far a packet is with one more fragment.
pub(super) enum Added {
    Incomplete,
    Complete,
    Repeated,
}

impl Partial {
    pub(super) fn new() -> Self {
        Self {
            peer: None,
            base_sequence: 0,
            n_missing: 0,
            began_at: MonoNs::ZERO,
            deadline: MonoNs::NEVER,
            bytes: Vec::new(),
            pieces: Vec::new(),
            headers: Headers::default(),
            prefix_announcement: Vec::new(),
            congestion_mark: 0,
            charged_bytes: 0,
        }
    }

    /// The memory it occupies, whatever of it is in use.
    pub(super) fn footprint_bytes(&self) -> usize {
        PARTIAL_OVERHEAD_BYTES
            + self.bytes.capacity()
            + self.pieces.capacity() * size_of::<Piece>()
            + self.prefix_announcement.capacity()
    }

    pub(super) fn reset(
        &mut self,
        now: MonoNs,
        peer: Option<SocketAddr>,
        base_sequence: u64,
        frag_count: u64,
    ) {
        // At most MAX_FRAGMENTS: the caller has checked.
        let n_pieces = frag_count as usize;
        self.peer = peer;
        self.base_sequence = base_sequence;
        self.n_missing = n_pieces as u32;
        self.began_at = now;
        self.bytes.clear();
        self.pieces.clear();
        self.pieces.resize(n_pieces, Piece::ABSENT);
        self.headers = Headers::default();
        self.prefix_announcement.clear();
        self.congestion_mark = 0;
    }

    pub(super) fn add(
        &mut self,
        now: MonoNs,
        headers: &Headers,
        prefix_announcement: &[u8],
        fragment: &[u8],
    ) -> Result<Added, DropReason> {
        if self.pieces.len() as u64 != headers.frag_count {
            return Err(DropReason::BadFragment);
        }
        let piece = &mut self.pieces[headers.frag_index as usize];
        if piece.len > 0 {
            return Ok(Added::Repeated);
        }
        if self.bytes.len() + fragment.len() > MAX_PACKET_BYTES {
            return Err(DropReason::TooLarge);
        }
        *piece = Piece {
            start: self.bytes.len() as u32,
            len: fragment.len() as u32,
        };
        self.bytes.extend_from_slice(fragment);
        if headers.frag_index == 0 {
            self.headers = *headers;
            self.prefix_announcement
                .extend_from_slice(prefix_announcement);
        }
        self.congestion_mark = self.congestion_mark.max(headers.congestion_mark);
        self.n_missing -= 1;
        self.deadline = (now + REASSEMBLY_TIMEOUT).min(self.began_at + MAX_REASSEMBLY_TIME);
        Ok(if self.n_missing == 0 {
            Added::Complete
        } else {
            Added::Incomplete
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Reassembled {
        for piece in &self.pieces {
            let start = piece.start as usize;
            out.extend_from_slice(&self.bytes[start..start + piece.len as usize]);
        }
        out.extend_from_slice(&self.prefix_announcement);
        Reassembled::Complete {
            headers: Headers {
                congestion_mark: self.congestion_mark,
                ..self.headers
            },
            l3_bytes: self.bytes.len(),
            prefix_announcement_bytes: self.prefix_announcement.len(),
        }
    }
}
