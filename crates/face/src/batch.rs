//! Received packets, and the memory they lie in.
//!
//! A [`RxBatch`] is the one receive buffer of a worker: transports read into
//! its arena, and its frames point there. It is cleared with every poll, so
//! that a burst touches memory that the last one has left in the cache.

use tachonym_packet::MonoNs;
use tachonym_packet::lp::{FaceId, Headers};

use crate::sys::udp::{SLOT_BYTES, SLOT_STRIDE_BYTES};

/// A poll stops reading once it has this many packets. One read of one face
/// may bring more than are left to it, so that a batch can hold some more.
pub const BATCH_TARGET_PKTS: usize = 256;

/// Largest read from one stream face in one poll.
pub(crate) const STREAM_READ_BYTES: usize = 64 << 10;

/// Address space of the arena. Pages that were never used take no memory.
/// Twice the largest batch of datagrams, so that one fits after another that
/// filled few of its slots.
const ARENA_BYTES: usize = 2 * crate::sys::udp::MAX_RECEIVED * SLOT_STRIDE_BYTES;

/// Capacity for reassembled packets that is kept from one poll to the next.
const KEPT_ASSEMBLED_BYTES: usize = 1 << 20;

/// One received network-layer packet.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The face that brought it.
    pub face: FaceId,
    /// Its NDNLPv2 headers. They make sense on it and, as far as they are
    /// local fields, are enabled on the face.
    pub headers: &'a Headers,
    /// An Interest or a Data, going by its first byte; not parsed further.
    pub l3: &'a [u8],
    /// The TLV-VALUE of PrefixAnnouncement: a Data, not parsed.
    pub prefix_announcement: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// Where the bytes of a frame lie.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// As they were received.
    Arena,
    /// Put together from fragments.
    Assembled,
}

pub(crate) struct FrameRecord {
    pub(crate) face: FaceId,
    pub(crate) source: Source,
    pub(crate) headers: Headers,
    pub(crate) l3: Span,
    /// Empty: none.
    pub(crate) prefix_announcement: Span,
}

/// A burst of received packets. See the module documentation.
pub struct RxBatch {
    arena: Box<[u8]>,
    used_bytes: usize,
    pub(crate) frames: Frames,
    received_at: MonoNs,
}

/// The frames of a batch, apart from the arena, which they point into.
pub(crate) struct Frames {
    pub(crate) records: Vec<FrameRecord>,
    pub(crate) assembled: Vec<u8>,
}

impl Default for RxBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl RxBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            arena: vec![0; ARENA_BYTES].into_boxed_slice(),
            used_bytes: 0,
            frames: Frames {
                records: Vec::with_capacity(2 * BATCH_TARGET_PKTS),
                assembled: Vec::new(),
            },
            received_at: MonoNs::ZERO,
        }
    }

    /// How many packets it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.records.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.records.is_empty()
    }

    /// When the poll that filled it had finished waiting.
    #[must_use]
    pub fn received_at(&self) -> MonoNs {
        self.received_at
    }

    /// The packet `idx`, if there are that many.
    #[must_use]
    #[inline]
    pub fn get(&self, idx: usize) -> Option<Frame<'_>> {
        self.frames
            .records
            .get(idx)
            .map(|record| self.frame(record))
    }

    /// The packets, those of one face in the order of their arrival.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        self.frames.records.iter().map(|record| self.frame(record))
    }

    #[inline]
    fn frame<'a>(&'a self, record: &'a FrameRecord) -> Frame<'a> {
        let bytes: &[u8] = match record.source {
            Source::Arena => &self.arena,
            Source::Assembled => &self.frames.assembled,
        };
        let slice = |span: Span| &bytes[span.start as usize..(span.start + span.len) as usize];
        Frame {
            face: record.face,
            headers: &record.headers,
            l3: slice(record.l3),
            prefix_announcement: (record.prefix_announcement.len > 0)
                .then(|| slice(record.prefix_announcement)),
        }
    }

    /// Forgets everything, for the next poll.
    pub(crate) fn clear(&mut self) {
        self.used_bytes = 0;
        self.frames.records.clear();
        self.frames.assembled.clear();
        self.frames.assembled.shrink_to(KEPT_ASSEMBLED_BYTES);
    }

    pub(crate) fn set_received_at(&mut self, now: MonoNs) {
        self.received_at = now;
    }

    /// Packets and bytes that it holds: any read that brings something changes
    /// them.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.frames.records.len(), self.used_bytes)
    }

    /// Whether another read may add to it.
    pub(crate) fn has_room(&self) -> bool {
        self.frames.records.len() < BATCH_TARGET_PKTS
            && self.arena.len() - self.used_bytes >= MIN_FREE_BYTES
    }

    /// The part of the arena that is free, where it begins, and the frames.
    pub(crate) fn split(&mut self) -> (&mut [u8], usize, &mut Frames) {
        (
            &mut self.arena[self.used_bytes..],
            self.used_bytes,
            &mut self.frames,
        )
    }

    /// Keeps the first `n_bytes` of the free part.
    pub(crate) fn keep(&mut self, n_bytes: usize) {
        self.used_bytes = (self.used_bytes + n_bytes).min(self.arena.len());
    }
}

/// What every read may need: slots for the largest batch of datagrams, which are
/// more than a stream read behind what the last one left over. Whoever finds less
/// waits for the next poll, in which it comes first, rather than read a little each
/// time.
const MIN_FREE_BYTES: usize = crate::sys::udp::MAX_RECEIVED * SLOT_STRIDE_BYTES;
const _: () = assert!(MIN_FREE_BYTES >= STREAM_READ_BYTES + crate::framing::MAX_FRAME_BYTES);
const _: () = {
    assert!(MIN_FREE_BYTES >= SLOT_BYTES);
    assert!(ARENA_BYTES > MIN_FREE_BYTES);
    assert!(ARENA_BYTES < u32::MAX as usize);
};
