//! A handle to a pending Interest.
//!
//! Owns the changes of an entry that touch more than the entry: its records count to the
//! shares of their faces and to the bytes of the table, its deadline stands in the wheel, its
//! word in the index. The entry is there for as long as the handle, so no method asks whether
//! it still is.

use std::ops::{Deref, DerefMut};

use tachonym_packet::{FaceId, MonoNs};

use super::records::{self, InRecord, OutRecord, Record, RecordsMut};
use super::shares::Share;
use super::{EntryIdx, Pit, PitEntry, PitRefusal};
use crate::buckets::BucketIndex;
use crate::place::pending;

/// A pending Interest that a lookup has found or made, to be read and changed.
#[derive(Debug)]
pub struct Pending<'t> {
    pit: &'t mut Pit,
    /// Where pending Interests are found.
    index: &'t mut BucketIndex,
    /// Invariant: the slot of an entry.
    slot: u32,
}

impl Deref for Pending<'_> {
    type Target = PitEntry;

    #[inline]
    fn deref(&self) -> &PitEntry {
        &self.pit.slots[self.slot]
    }
}

impl DerefMut for Pending<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut PitEntry {
        &mut self.pit.slots[self.slot]
    }
}

impl<'t> Pending<'t> {
    /// The entry in `slot`, which has one. `index` is where it is found.
    #[inline]
    pub(crate) fn new(pit: &'t mut Pit, index: &'t mut BucketIndex, slot: u32) -> Self {
        debug_assert!(pit.slots[slot].is_live(), "removed before");
        Self { pit, index, slot }
    }

    /// Its number, to be kept for later.
    #[must_use]
    #[inline]
    pub fn idx(&self) -> EntryIdx {
        self.pit.idx_of(self.slot)
    }

    /// Adds a downstream, or replaces that of the same face. Returns when the last of all
    /// downstreams stops waiting.
    ///
    /// # Errors
    /// If a new record would exceed a limit or the share of the face's source; counted. A
    /// source that waits for nothing is let in in any case.
    #[inline]
    pub fn insert_in_record(&mut self, record: InRecord) -> Result<MonoNs, PitRefusal> {
        self.pit.insert_in_record_at(self.slot, record)?;
        let expiries = self.in_records().map(|record| record.expiry);
        Ok(expiries.fold(record.expiry, MonoNs::max))
    }

    /// Removes the downstream on `face`.
    pub fn remove_in_record(&mut self, face: FaceId) -> Option<InRecord> {
        self.pit.remove_in_record_at(self.slot, face)
    }

    /// Removes the downstreams that `keep` does not accept.
    pub fn retain_in_records(&mut self, keep: impl FnMut(&InRecord) -> bool) {
        self.pit.retain_in_records_at(self.slot, keep);
    }

    /// Adds an upstream, or replaces that of the same face. What it costs counts to the
    /// shares of the downstreams.
    ///
    /// # Errors
    /// If a new record would exceed a limit; counted.
    #[inline]
    pub fn insert_out_record(&mut self, record: OutRecord) -> Result<(), PitRefusal> {
        self.pit.insert_out_record_at(self.slot, record)
    }

    /// Sets when the entry expires, sooner or later than before.
    #[inline]
    pub fn set_expiry(&mut self, at: MonoNs) {
        self.pit.wheel.schedule(&mut self.pit.slots, self.slot, at);
    }

    /// Removes the entry.
    pub fn remove(self) {
        let hash = self.pit.vacate(self.slot);
        self.index.remove(hash.0, pending(self.slot));
    }
}

/// Records of the entry in a slot, which has one.
impl Pit {
    #[inline]
    pub(super) fn insert_in_record_at(
        &mut self,
        slot: u32,
        record: InRecord,
    ) -> Result<(), PitRefusal> {
        let entry = &mut self.slots[slot];
        let n_bytes = entry.share_bytes();
        if let Some(known) = entry.in_list_mut().find(record.face) {
            *known = record;
            return Ok(());
        }
        let n_free_entries = self.config.max_entries.saturating_sub(self.len);
        let n_free_bytes = self.config.max_bytes.saturating_sub(self.used_bytes());
        let allows = |held: Share| {
            held.n_entries == 0
                || held.n_entries < n_free_entries && held.n_bytes + n_bytes <= n_free_bytes
        };
        if !self.shares.add(record.face, n_bytes, allows) {
            return Err(self.refusals.count(PitRefusal::SourceShareUsed));
        }
        let inserted = self.push_record(slot, record, PitEntry::in_list_mut);
        if inserted.is_err() {
            self.shares.remove(record.face, n_bytes);
        }
        inserted
    }

    pub(super) fn remove_in_record_at(&mut self, slot: u32, face: FaceId) -> Option<InRecord> {
        let entry = &mut self.slots[slot];
        let record = entry.in_list_mut().remove(face)?;
        self.shares.remove(face, entry.share_bytes());
        Some(record)
    }

    pub(super) fn retain_in_records_at(
        &mut self,
        slot: u32,
        mut keep: impl FnMut(&InRecord) -> bool,
    ) {
        let (entry, shares) = (&mut self.slots[slot], &mut self.shares);
        let n_bytes = entry.share_bytes();
        entry.in_list_mut().retain(|record| {
            let is_kept = keep(record);
            if !is_kept {
                shares.remove(record.face, n_bytes);
            }
            is_kept
        });
    }

    #[inline]
    pub(super) fn insert_out_record_at(
        &mut self,
        slot: u32,
        record: OutRecord,
    ) -> Result<(), PitRefusal> {
        if let Some(known) = self.slots[slot].out_list_mut().find(record.face) {
            *known = record;
            return Ok(());
        }
        self.push_record(slot, record, PitEntry::out_list_mut)?;
        let entry = &mut self.slots[slot];
        let n_bytes = entry.charge_records();
        if n_bytes > 0 {
            for record in entry.in_list().iter() {
                self.shares.grow(record.face, n_bytes);
            }
        }
        Ok(())
    }

    /// Adds a record of a face that has none of this kind.
    #[inline]
    fn push_record<T: Record>(
        &mut self,
        slot: u32,
        record: T,
        list: impl Fn(&mut PitEntry) -> RecordsMut<'_, T>,
    ) -> Result<(), PitRefusal> {
        let first = list(&mut self.slots[slot]).first;
        if first.is_none() && self.config.max_records_per_entry > 0 {
            *first = Some(record);
            return Ok(());
        }
        self.push_further_record(slot, record, list)
    }

    #[cold]
    fn push_further_record<T: Record>(
        &mut self,
        slot: u32,
        record: T,
        list: impl Fn(&mut PitEntry) -> RecordsMut<'_, T>,
    ) -> Result<(), PitRefusal> {
        let more = list(&mut self.slots[slot]).more.take();
        let n_records = 1 + more.as_ref().map_or(0, |more| T::rest(more).len());
        let used_bytes = self.used_bytes();
        // What is taken for it counts as used from then on.
        let mut more = more.unwrap_or_else(|| self.take_more_for_records());
        let new_bytes = self.used_bytes() - used_bytes + records::push_cost_bytes::<T>(&more);
        let refusal = if n_records >= self.config.max_records_per_entry {
            Some(T::TOO_MANY)
        } else if new_bytes > 0 && used_bytes + new_bytes > self.config.max_bytes {
            Some(PitRefusal::TooManyBytes)
        } else {
            None
        };
        if refusal.is_none() {
            self.more_bytes += records::push_cost_bytes::<T>(&more);
            records::push(&mut more, record);
        }
        self.slots[slot].more = Some(more);
        refusal.map_or(Ok(()), |refusal| Err(self.refusals.count(refusal)))
    }
}
