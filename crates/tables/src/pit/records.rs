//! Who asked, and who was asked: the records of a PIT entry.
//!
//! Owns [`InRecord`], [`OutRecord`] and the list they stand in: the first
//! inline, since most entries have one, the others in a vector that the entry
//! keeps for its next life while it is small.

use tachonym_packet::{FaceId, MonoNs, NackReason, Nonce, PitToken};

/// Longest vector, in records, that outlives its entry.
const MAX_KEPT: usize = 8;

/// A downstream: a face that expressed the Interest.
#[derive(Clone, Copy, Debug)]
pub struct InRecord {
    /// Where the Interest came from.
    pub face: FaceId,
    /// Nonce of the latest Interest from this face.
    pub nonce: Nonce,
    /// When this downstream stops waiting.
    pub expiry: MonoNs,
    /// Token to return with the answer.
    pub pit_token: Option<PitToken>,
    /// For the engine's use.
    pub flags: u8,
}

/// An upstream: a face that the Interest was sent to.
#[derive(Clone, Copy, Debug)]
pub struct OutRecord {
    /// Where the Interest went.
    pub face: FaceId,
    /// Nonce it was last sent with.
    pub nonce: Nonce,
    /// When an answer is no longer expected.
    pub expiry: MonoNs,
    /// When it was last sent.
    pub last_sent: MonoNs,
    /// What the upstream answered to the last one, if that was a Nack.
    pub nack: Option<NackReason>,
    /// State of the strategy in charge, whose meaning is the strategy's own.
    pub strategy_word: u32,
}

/// A record that stands for a face.
pub(crate) trait Record: Copy {
    fn face(&self) -> FaceId;
}

impl Record for InRecord {
    fn face(&self) -> FaceId {
        self.face
    }
}

impl Record for OutRecord {
    fn face(&self) -> FaceId {
        self.face
    }
}

/// Records of one entry, each face once, in no particular order.
#[derive(Debug)]
pub(crate) struct Records<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self {
            first: None,
            rest: Vec::new(),
        }
    }
}

impl<T: Record> Records<T> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    /// Adds a record of a face that has none. The vector grows in few steps and
    /// to what it needs, so that its bytes can be counted.
    pub(crate) fn push(&mut self, record: T) {
        if self.first.is_none() {
            self.first = Some(record);
            return;
        }
        if self.rest.len() == self.rest.capacity() {
            self.rest.reserve_exact(self.rest.len().max(3));
        }
        self.rest.push(record);
    }

    /// What [`Records::push`] would allocate, in bytes.
    pub(crate) fn push_cost_bytes(&self) -> usize {
        if self.first.is_some() && self.rest.len() == self.rest.capacity() {
            self.rest.len().max(3) * size_of::<T>()
        } else {
            0
        }
    }

    pub(crate) fn remove(&mut self, face: FaceId) -> Option<T> {
        if self
            .first
            .as_ref()
            .is_some_and(|record| record.face() == face)
        {
            return std::mem::replace(&mut self.first, self.rest.pop());
        }
        let idx = self.rest.iter().position(|record| record.face() == face)?;
        Some(self.rest.swap_remove(idx))
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.rest.retain(&mut keep);
        if self.first.as_ref().is_some_and(|record| !keep(record)) {
            self.first = self.rest.pop();
        }
    }

    /// Removes all records; `keeps` the vector for later ones, if it is small.
    pub(crate) fn clear(&mut self, keeps: bool) {
        self.first = None;
        if keeps && self.rest.capacity() <= MAX_KEPT {
            self.rest.clear();
        } else {
            self.rest = Vec::new();
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.rest.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Record for u64 {
        fn face(&self) -> FaceId {
            FaceId(*self)
        }
    }

    #[test]
    fn retaining_keeps_exactly_what_is_accepted() {
        for n_records in 0..6_u64 {
            for accepted in 0..1_u64 << n_records {
                let is_accepted = |record: &u64| accepted >> record & 1 == 1;
                let mut records = Records::default();
                (0..n_records).for_each(|record| records.push(record));
                records.retain(is_accepted);
                let mut kept: Vec<u64> = records.iter().copied().collect();
                kept.sort_unstable();
                let expected: Vec<u64> = (0..n_records).filter(is_accepted).collect();
                assert_eq!(kept, expected);
                assert_eq!(records.len(), expected.len());
            }
        }
    }
}
