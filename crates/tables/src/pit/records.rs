//! Who asked, and who was asked: the records of a PIT entry.
//!
//! Owns [`InRecord`], [`OutRecord`] and the list they stand in: the first in the
//! entry itself, since most entries have one, the others with whatever else is
//! rare in [`More`].

use tachonym_packet::{FaceId, MonoNs, NackReason, NameHash, Nonce, PitToken};

use super::PitRefusal;

/// Longest vector, in records, that outlives its entry.
const MAX_KEPT: usize = 8;

/// Shortest vector.
const MIN_RECORDS: usize = 3;

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
    /// `HopLimit` that the latest Interest came with.
    pub hop_limit: Option<u8>,
    /// For the engine's use.
    pub flags: u8,
    /// Lifetime of the latest Interest in milliseconds, as far as it fits.
    pub lifetime_ms: u32,
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

/// What most entries do without: a large Interest, further records, the parent
/// of a name that ends in a digest. Outlives its entry, to serve another.
#[derive(Debug, Default)]
pub(super) struct More {
    /// The Interest in a buffer of the pool, if it is too large for the entry.
    pub(super) wire: Box<[u8]>,
    in_records: Vec<InRecord>,
    out_records: Vec<OutRecord>,
    /// Hash of the name but its last component, if that is an implicit digest.
    pub(super) digest_parent: Option<NameHash>,
    /// Bytes of out-records that the entry's downstreams were charged.
    pub(super) charged_bytes: usize,
}

impl More {
    /// With room for a few records of each kind: what outlives an entry may serve
    /// records of the other kind next.
    pub(super) fn for_records() -> Self {
        Self {
            in_records: Vec::with_capacity(MIN_RECORDS),
            out_records: Vec::with_capacity(MIN_RECORDS),
            ..Self::default()
        }
    }

    pub(super) fn is_for_records(&self) -> bool {
        self.in_records.capacity() > 0 && self.out_records.capacity() > 0
    }

    /// Heap bytes, this structure's included, but for the buffer of the pool.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.in_records.capacity() * size_of::<InRecord>()
            + self.out_records.capacity() * size_of::<OutRecord>()
    }

    /// Counts the memory of out-records, once there are any, as charged to the
    /// entry's downstreams; how much of it was not before.
    pub(super) fn charge_out_records(&mut self) -> usize {
        if self.out_records.is_empty() {
            return 0;
        }
        let n_bytes = self.out_records.capacity() * size_of::<OutRecord>();
        n_bytes - std::mem::replace(&mut self.charged_bytes, n_bytes)
    }

    /// Makes it ready for another entry, with vectors as small as most need.
    pub(super) fn clear(&mut self) {
        clear(&mut self.in_records);
        clear(&mut self.out_records);
        self.digest_parent = None;
        self.charged_bytes = 0;
    }
}

fn clear<T>(records: &mut Vec<T>) {
    if records.capacity() <= MAX_KEPT {
        records.clear();
    } else {
        *records = Vec::with_capacity(MIN_RECORDS);
    }
}

/// A record that stands for a face.
pub(super) trait Record: Copy {
    /// An entry has as many of this kind as it may.
    const TOO_MANY: PitRefusal;

    fn face(&self) -> FaceId;

    /// The records of this kind but the first.
    fn rest(more: &More) -> &Vec<Self>;

    fn rest_mut(more: &mut More) -> &mut Vec<Self>;
}

impl Record for InRecord {
    const TOO_MANY: PitRefusal = PitRefusal::TooManyInRecords;

    fn face(&self) -> FaceId {
        self.face
    }

    fn rest(more: &More) -> &Vec<Self> {
        &more.in_records
    }

    fn rest_mut(more: &mut More) -> &mut Vec<Self> {
        &mut more.in_records
    }
}

impl Record for OutRecord {
    const TOO_MANY: PitRefusal = PitRefusal::TooManyOutRecords;

    fn face(&self) -> FaceId {
        self.face
    }

    fn rest(more: &More) -> &Vec<Self> {
        &more.out_records
    }

    fn rest_mut(more: &mut More) -> &mut Vec<Self> {
        &mut more.out_records
    }
}

/// Records of one kind of one entry, each face once, in no particular order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records<'a, T> {
    pub(super) first: &'a Option<T>,
    pub(super) more: &'a Option<Box<More>>,
}

impl<'a, T: Record> Records<'a, T> {
    fn rest(self) -> &'a [T] {
        match self.more {
            Some(more) => T::rest(more),
            None => &[],
        }
    }

    pub(super) fn len(self) -> usize {
        usize::from(self.first.is_some()) + self.rest().len()
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'a T> {
        self.first.iter().chain(self.rest())
    }

    pub(super) fn find(self, face: FaceId) -> Option<&'a T> {
        match self.first {
            Some(first) if first.face() == face => Some(first),
            _ => self.rest().iter().find(|record| record.face() == face),
        }
    }
}

/// As [`Records`], to change them.
#[derive(Debug)]
pub(super) struct RecordsMut<'a, T> {
    pub(super) first: &'a mut Option<T>,
    pub(super) more: &'a mut Option<Box<More>>,
}

fn rest_of<T: Record>(more: &mut Option<Box<More>>) -> &mut [T] {
    match more {
        Some(more) => T::rest_mut(more),
        None => &mut [],
    }
}

impl<'a, T: Record> RecordsMut<'a, T> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'a mut T> {
        self.first.iter_mut().chain(rest_of(self.more))
    }

    pub(super) fn find(self, face: FaceId) -> Option<&'a mut T> {
        if self
            .first
            .as_ref()
            .is_some_and(|first| first.face() == face)
        {
            return self.first.as_mut();
        }
        rest_of(self.more)
            .iter_mut()
            .find(|record: &&mut T| record.face() == face)
    }

    pub(super) fn remove(self, face: FaceId) -> Option<T> {
        let rest = self.more.as_mut().map(|more| T::rest_mut(more));
        if self
            .first
            .as_ref()
            .is_some_and(|record| record.face() == face)
        {
            return std::mem::replace(self.first, rest.and_then(Vec::pop));
        }
        let rest = rest?;
        let idx = rest.iter().position(|record| record.face() == face)?;
        Some(rest.swap_remove(idx))
    }

    pub(super) fn retain(self, mut keep: impl FnMut(&T) -> bool) {
        let mut rest = self.more.as_mut().map(|more| T::rest_mut(more));
        if let Some(rest) = &mut rest {
            rest.retain(&mut keep);
        }
        if self.first.as_ref().is_some_and(|record| !keep(record)) {
            *self.first = rest.and_then(Vec::pop);
        }
    }
}

/// What adding a record behind the first would allocate, in bytes. Vectors grow
/// in few steps and to what they need, so that their bytes can be counted.
pub(super) fn push_cost_bytes<T: Record>(more: &More) -> usize {
    let rest = T::rest(more);
    if rest.len() == rest.capacity() {
        rest.len().max(MIN_RECORDS) * size_of::<T>()
    } else {
        0
    }
}

/// Adds a record of a face that has none.
pub(super) fn push<T: Record>(more: &mut More, record: T) {
    let rest = T::rest_mut(more);
    if rest.len() == rest.capacity() {
        rest.reserve_exact(rest.len().max(MIN_RECORDS));
    }
    rest.push(record);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(face: u64) -> InRecord {
        InRecord {
            face: FaceId(face),
            nonce: Nonce([0; 4]),
            expiry: MonoNs::ZERO,
            pit_token: None,
            hop_limit: None,
            flags: 0,
            lifetime_ms: 4_000,
        }
    }

    #[test]
    fn retaining_keeps_exactly_what_is_accepted() {
        for n_records in 0..6_u64 {
            for accepted in 0..1_u64 << n_records {
                let is_accepted = |face: u64| accepted >> face & 1 == 1;
                let mut first = (n_records > 0).then(|| record(0));
                let mut more = Some(Box::new(More::default()));
                for face in 1..n_records {
                    push(more.as_mut().unwrap(), record(face));
                }
                let (first, more) = (&mut first, &mut more);
                RecordsMut { first, more }.retain(|record| is_accepted(record.face.0));
                let records = Records { first, more };
                let mut kept: Vec<u64> = records.iter().map(|record| record.face.0).collect();
                kept.sort_unstable();
                let expected: Vec<u64> = (0..n_records).filter(|&face| is_accepted(face)).collect();
                assert_eq!(kept, expected);
                assert_eq!(records.len(), expected.len());
            }
        }
    }
}
