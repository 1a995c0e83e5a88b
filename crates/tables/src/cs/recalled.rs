//! Data that were cached elsewhere, and what their owner notes about Data.
//!
//! A store that is the first of two levels gets Data back from the second, and wants to be
//! told of some Data when they are asked for.

use tachonym_packet::{DataView, MonoNs, NameHash, NameView};

use super::entry::{DataRef, Marks};
use super::insertion::{NewData, need_bytes};
use super::{ContentStore, MAX_CS_COMPONENTS, find_exact};
use crate::buckets::BucketIndex;

/// How a Data comes back to the first of two levels.
#[derive(Clone, Copy, Debug)]
pub struct Regained {
    /// Fresh before this time; [`MonoNs::ZERO`] if it is not any more.
    pub fresh_until: MonoNs,
    /// What is noted about it.
    pub marks: Marks,
    /// Whether it has answered who wanted it, so that nobody is expected to read it soon.
    pub has_answered: bool,
}

impl ContentStore {
    /// As [`ContentStore::insert`], of a Data that was cached elsewhere: one of this name that is
    /// here stays, and the policy is asked whether it wants it only if it has answered already.
    /// What has come before it was asked for is wanted. Whether it is new here.
    pub(crate) fn insert_recalled(
        &mut self,
        index: &mut BucketIndex,
        data: &DataView<'_>,
        hashes: &[NameHash],
        regained: Regained,
    ) -> bool {
        let name = data.name();
        if name.is_empty()
            || name.len() > MAX_CS_COMPONENTS
            || need_bytes(data) > self.capacity.max_bytes
            || self.capacity.max_pkts == 0
        {
            return false;
        }
        let hash = hashes[name.len()];
        if find_exact(index, &self.slots, name, hash).is_some() {
            return false;
        }
        if regained.has_answered && !self.expects(data, hash, &mut |_| ()) {
            self.counters.n_not_admitted_policy += 1;
            return false;
        }
        let new = NewData {
            data,
            hashes,
            fresh_until: regained.fresh_until,
            word: None,
            is_read_soon: !regained.has_answered,
        };
        let slot = self.insert_new(index, &new, &mut |_| ());
        self.slots[slot].marks = regained.marks;
        true
    }

    /// Changes what is noted about the Data of a name, if it is cached.
    pub(crate) fn change_marks(
        &mut self,
        index: &BucketIndex,
        (name, hash): (NameView<'_>, NameHash),
        change: impl FnOnce(Marks) -> Marks,
    ) {
        if let Some(slot) = find_exact(index, &self.slots, name, hash) {
            let marks = &mut self.slots[slot].marks;
            *marks = change(*marks);
        }
    }

    /// The Data in a slot. Counts as no use of it.
    pub(crate) fn peek(&self, slot: u32) -> DataRef<'_> {
        self.slots[slot].data()
    }

    /// Whether a Data of this name is cached. Counts as no use of it.
    pub(crate) fn has_named(
        &self,
        index: &BucketIndex,
        name: NameView<'_>,
        hash: NameHash,
    ) -> bool {
        find_exact(index, &self.slots, name, hash).is_some()
    }
}
