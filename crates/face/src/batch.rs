//! The receive batch: one arena for all faces, and what was found in it.

use std::ops::Range;

use tachonym_packet::FaceId;
use tachonym_packet::lp::Headers;

/// Bytes of the arena. A round of reading stops when less than one large read
/// is left of it.
const ARENA_BYTES: usize = 1 << 20;

/// One network-layer packet as it was received.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The face that it came from.
    pub face: FaceId,
    /// Its link-layer fields.
    pub headers: &'a Headers,
    /// The Interest or Data, not looked into yet.
    pub packet: &'a [u8],
    /// The prefix announcement that came with it.
    pub prefix_announcement: Option<&'a [u8]>,
}

struct Entry {
    face: FaceId,
    headers: Headers,
    packet: Range<usize>,
    prefix_announcement: Option<Range<usize>>,
}

/// Packets received in one round, and the memory they lie in. Reused from
/// round to round; nothing is allocated once it has grown to its working size.
pub struct RxBatch {
    arena: Box<[u8]>,
    n_used: usize,
    entries: Vec<Entry>,
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
            n_used: 0,
            entries: Vec::with_capacity(1024),
        }
    }

    /// The packets, in the order they were received on each face.
    pub fn frames(&self) -> impl Iterator<Item = RxFrame<'_>> {
        self.entries.iter().map(|entry| RxFrame {
            face: entry.face,
            headers: &entry.headers,
            packet: &self.arena[entry.packet.clone()],
            prefix_announcement: entry.prefix_announcement.clone().map(|r| &self.arena[r]),
        })
    }

    /// How many packets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.n_used = 0;
        self.entries.clear();
    }

    /// Free bytes at the end of the arena.
    pub(crate) fn n_free(&self) -> usize {
        self.arena.len() - self.n_used
    }

    /// The free end of the arena, and the offset at which it begins.
    pub(crate) fn free(&mut self) -> (usize, &mut [u8]) {
        (self.n_used, &mut self.arena[self.n_used..])
    }

    /// Takes `n_bytes` of the free end into use.
    pub(crate) fn commit(&mut self, n_bytes: usize) {
        self.n_used += n_bytes;
    }

    /// Copies `bytes` to the end; `None` if they do not fit.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Option<Range<usize>> {
        let (at, free) = self.free();
        free.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.commit(bytes.len());
        Some(at..at + bytes.len())
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.arena[range]
    }

    pub(crate) fn push(
        &mut self,
        face: FaceId,
        headers: Headers,
        packet: Range<usize>,
        prefix_announcement: Option<Range<usize>>,
    ) {
        self.entries.push(Entry {
            face,
            headers,
            packet,
            prefix_announcement,
        });
    }
}
