//! Memory of incomplete packets.
//!
//! Owns how much of it all faces of a system hold, and each source, and the emptied
//! packets that are used again. What is in a packet is `partial`'s.

use super::partial::Partial;
use crate::source::SourceIdx;

/// Emptied packets that are kept for reuse, for all faces together.
pub(super) const MAX_SPARE_BYTES: usize = 1 << 20;

/// Memory of incomplete packets, shared by all faces.
pub(crate) struct ReassemblyBudget {
    used_bytes: usize,
    limit_bytes: usize,
    /// Of `used_bytes`, those of each source, by its index.
    pub(super) held_bytes: Vec<usize>,
    /// Emptied packets with their buffers. Boxed, so that the lists of the
    /// faces, which are not charged, stay small.
    #[expect(clippy::vec_box, reason = "the boxes move between lists")]
    pub(super) spare: Vec<Box<Partial>>,
    pub(super) spare_bytes: usize,
}

impl ReassemblyBudget {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            used_bytes: 0,
            limit_bytes,
            held_bytes: Vec::new(),
            spare: Vec::new(),
            spare_bytes: 0,
        }
    }

    /// Grants `n_bytes` to a source, if it then has no more than is left free: as with
    /// backlogs, sources that take what they can share the memory among them and leave
    /// as much to the others.
    pub(super) fn take(&mut self, source: SourceIdx, n_bytes: usize) -> bool {
        if source.idx() >= self.held_bytes.len() {
            self.held_bytes.resize(source.idx() + 1, 0);
        }
        let held_bytes = &mut self.held_bytes[source.idx()];
        let free_bytes = self.limit_bytes - self.used_bytes;
        let is_fair = *held_bytes + n_bytes <= free_bytes;
        if is_fair {
            *held_bytes += n_bytes;
            self.used_bytes += n_bytes;
        }
        is_fair
    }

    /// Grants `n_bytes` that were just given back by another source.
    pub(super) fn take_unfairly(&mut self, source: SourceIdx, n_bytes: usize) {
        if source.idx() >= self.held_bytes.len() {
            self.held_bytes.resize(source.idx() + 1, 0);
        }
        self.held_bytes[source.idx()] += n_bytes;
        self.used_bytes += n_bytes;
    }

    pub(super) fn give(&mut self, source: SourceIdx, n_bytes: usize) {
        if let Some(held_bytes) = self.held_bytes.get_mut(source.idx()) {
            *held_bytes -= n_bytes;
            self.used_bytes -= n_bytes;
        }
    }

    pub(super) fn take_partial(&mut self) -> Box<Partial> {
        match self.spare.pop() {
            Some(partial) => {
                self.spare_bytes -= partial.footprint_bytes();
                partial
            }
            None => Box::new(Partial::new()),
        }
    }

    pub(super) fn give_partial(&mut self, partial: Box<Partial>) {
        let footprint_bytes = partial.footprint_bytes();
        if self.spare_bytes + footprint_bytes <= MAX_SPARE_BYTES {
            self.spare_bytes += footprint_bytes;
            self.spare.push(partial);
        }
    }

    /// What all faces hold.
    #[cfg(test)]
    pub(super) fn used_bytes(&self) -> usize {
        self.used_bytes
    }
}
