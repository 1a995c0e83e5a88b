//! One pending Interest.
//!
//! Owns the Interest as it arrived, its records and the strategy's state. What
//! an entry is found by never changes; what belongs to other structures (its
//! deadline, the bytes it holds) changes through [`Pit`](super::Pit) only.

use tachonym_packet::{FaceId, InterestView, MonoNs, NameHash, NameView};

use super::records::{InRecord, OutRecord, Records};

/// Words of [`PitEntry::strategy_state`].
pub const N_STRATEGY_WORDS: usize = 3;

/// A part of the entry's Interest.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u16,
    len: u16,
}

impl Span {
    /// Where `inner`, a subslice of `outer`, lies in it.
    fn of(outer: &[u8], inner: &[u8]) -> Self {
        let start = inner.as_ptr().addr().wrapping_sub(outer.as_ptr().addr());
        assert!(
            start <= outer.len() && inner.len() <= outer.len() - start,
            "views borrow from their packet"
        );
        Self {
            start: start as u16,
            len: inner.len() as u16,
        }
    }

    fn of_in(self, wire: &[u8]) -> &[u8] {
        &wire[usize::from(self.start)..][..usize::from(self.len)]
    }
}

/// A pending Interest; lives in a [`Pit`](super::Pit).
#[derive(Debug, Default)]
pub struct PitEntry {
    pub(super) name_hash: NameHash,
    /// Copy of the Interest, in a buffer that may be longer; empty if the slot
    /// is free.
    pub(super) buffer: Box<[u8]>,
    pub(super) generation: u32,
    wire_len: u16,
    name: Span,
    hint: Span,
    pub(super) n_components: u16,
    pub(super) can_be_prefix: bool,
    pub(super) must_be_fresh: bool,
    has_hint: bool,
    /// Hash of the name but its last component, if that is an implicit digest.
    pub(super) digest_parent: Option<NameHash>,
    pub(super) expiry: MonoNs,
    pub(super) in_records: Records<InRecord>,
    pub(super) out_records: Records<OutRecord>,
    /// State of the strategy in charge, zero in a new entry. Its meaning is the
    /// strategy's own.
    pub strategy_state: [u64; N_STRATEGY_WORDS],
    /// Whether Data has satisfied the entry; for the engine's use.
    pub satisfied: bool,
}

impl PitEntry {
    /// Turns a free slot into the entry of `interest`. `buffer` begins with a
    /// copy of its wire.
    pub(super) fn occupy(
        &mut self,
        interest: &InterestView<'_>,
        name_hash: NameHash,
        buffer: Box<[u8]>,
        expiry: MonoNs,
    ) {
        let wire = interest.wire();
        let name = interest.name();
        let hint = interest.forwarding_hint_bytes();
        self.name_hash = name_hash;
        self.buffer = buffer;
        self.wire_len = wire.len() as u16;
        self.name = Span::of(wire, name.value_bytes());
        self.hint = hint.map_or_else(Span::default, |hint| Span::of(wire, hint));
        self.has_hint = hint.is_some();
        self.n_components = name.len() as u16;
        self.can_be_prefix = interest.can_be_prefix();
        self.must_be_fresh = interest.must_be_fresh();
        self.expiry = expiry;
        self.strategy_state = [0; N_STRATEGY_WORDS];
        self.satisfied = false;
    }

    /// Heap bytes of the records.
    pub(super) fn record_bytes(&self) -> usize {
        self.in_records.heap_bytes() + self.out_records.heap_bytes()
    }

    /// What the entry costs each of its downstreams of their share.
    pub(super) fn share_bytes(&self) -> usize {
        super::PIT_ENTRY_BYTES + self.buffer.len() + self.out_records.heap_bytes()
    }

    /// Removes all records, and their vectors unless the slot `keeps` them.
    pub(super) fn clear_records(&mut self, keeps: bool) {
        self.in_records.clear(keeps);
        self.out_records.clear(keeps);
    }

    /// Whether the slot holds an entry.
    pub(super) fn is_live(&self) -> bool {
        !self.buffer.is_empty()
    }

    pub(super) fn name_bytes(&self) -> &[u8] {
        self.name.of_in(&self.buffer)
    }

    pub(super) fn hint_bytes(&self) -> Option<&[u8]> {
        self.has_hint.then(|| self.hint.of_in(&self.buffer))
    }

    /// The Interest that made this entry, as it arrived.
    #[must_use]
    pub fn interest_wire(&self) -> &[u8] {
        &self.buffer[..usize::from(self.wire_len)]
    }

    /// The Interest that made this entry. Checks its bytes again, so not meant
    /// for the packet path.
    #[must_use]
    pub fn interest(&self) -> InterestView<'_> {
        InterestView::parse(self.interest_wire()).expect("copied from an Interest")
    }

    /// The name. Checks its bytes again, so not meant for the packet path.
    #[must_use]
    pub fn name(&self) -> NameView<'_> {
        NameView::parse_value(self.name_bytes()).expect("copied from a name")
    }

    /// Hash of the whole name, as passed in by the entry's first Interest.
    #[must_use]
    pub const fn name_hash(&self) -> NameHash {
        self.name_hash
    }

    /// Number of components of the name.
    #[must_use]
    pub const fn n_components(&self) -> usize {
        self.n_components as usize
    }

    /// Whether Data under the name answers too.
    #[must_use]
    pub const fn can_be_prefix(&self) -> bool {
        self.can_be_prefix
    }

    /// Whether only fresh Data answers.
    #[must_use]
    pub const fn must_be_fresh(&self) -> bool {
        self.must_be_fresh
    }

    /// Whether the Interest carries a forwarding hint.
    #[must_use]
    pub const fn has_forwarding_hint(&self) -> bool {
        self.has_hint
    }

    /// When [`Pit::expire`](super::Pit::expire) will report the entry; exact,
    /// while the report may come a tick later.
    #[must_use]
    pub const fn expiry(&self) -> MonoNs {
        self.expiry
    }

    /// Downstreams, in no particular order.
    pub fn in_records(&self) -> impl Iterator<Item = &InRecord> {
        self.in_records.iter()
    }

    /// Number of downstreams.
    #[must_use]
    pub fn n_in_records(&self) -> usize {
        self.in_records.len()
    }

    /// The downstream on `face`.
    #[must_use]
    pub fn in_record(&self, face: FaceId) -> Option<&InRecord> {
        self.in_records.iter().find(|record| record.face == face)
    }

    /// Downstreams, to change all but their face.
    pub fn in_records_mut(&mut self) -> impl Iterator<Item = &mut InRecord> {
        self.in_records.iter_mut()
    }

    /// Upstreams, in no particular order.
    pub fn out_records(&self) -> impl Iterator<Item = &OutRecord> {
        self.out_records.iter()
    }

    /// Upstreams, to change all but their face.
    pub fn out_records_mut(&mut self) -> impl Iterator<Item = &mut OutRecord> {
        self.out_records.iter_mut()
    }

    /// Number of upstreams.
    #[must_use]
    pub fn n_out_records(&self) -> usize {
        self.out_records.len()
    }

    /// The upstream on `face`.
    #[must_use]
    pub fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.out_records.iter().find(|record| record.face == face)
    }

    /// The upstream on `face`, to change all but its face.
    pub fn out_record_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        self.out_records
            .iter_mut()
            .find(|record| record.face == face)
    }

    /// Removes the upstream on `face`.
    pub fn remove_out_record(&mut self, face: FaceId) -> Option<OutRecord> {
        self.out_records.remove(face)
    }

    /// Removes the upstreams that `keep` does not accept.
    pub fn retain_out_records(&mut self, keep: impl FnMut(&OutRecord) -> bool) {
        self.out_records.retain(keep);
    }
}
