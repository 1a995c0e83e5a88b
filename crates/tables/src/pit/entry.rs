//! One pending Interest.
//!
//! Owns the Interest as it arrived, its records and the strategy's state, and
//! where each lies: what every lookup reads is in the first line, with the
//! beginning of the Interest; an Interest of [`MAX_INLINE_BYTES`] or less, one
//! downstream and one upstream need no other memory. What an entry is found by
//! never changes; what belongs to other structures (its deadline, the bytes it
//! holds) changes through [`Pit`](super::Pit) only.

use std::mem::offset_of;

use tachonym_memory::prefetch;
use tachonym_packet::{FaceId, InterestView, MonoNs, NameHash, NameView, Span};

use super::records::{InRecord, More, OutRecord, Records, RecordsMut};
use crate::wheel::{Timed, Timer};

/// Words of [`PitEntry::strategy_state`].
pub const N_STRATEGY_WORDS: usize = 3;

/// Longest Interest that its entry holds without a buffer of its own. Interests
/// of seven components and 100 bytes fit; a line less would not hold them, and a
/// line more would be carried by every entry.
pub const MAX_INLINE_BYTES: usize = 138;

const CAN_BE_PREFIX: u8 = 1;
const MUST_BE_FRESH: u8 = 2;
const HAS_DIGEST: u8 = 8;
const IS_LARGE: u8 = 16;
const AWAITS_STORE: u8 = 32;
const HAS_PARAMETERS: u8 = 64;

/// A pending Interest; lives in a [`Pit`](super::Pit).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PitEntry {
    // Line 0: every lookup reads it, and the timers.
    pub(super) name_hash: NameHash,
    expiry: MonoNs,
    pub(super) more: Option<Box<More>>,
    pub(super) generation: u32,
    timer: Timer,
    /// Zero if the slot is free.
    wire_len: u16,
    n_components: u16,
    name: Span,
    hint: Span,
    flags: u8,
    /// Whether Data has satisfied the entry; for the engine's use.
    pub satisfied: bool,
    // Lines 0 to 2: the Interest, unless it is large.
    wire: [u8; MAX_INLINE_BYTES],
    // Line 3: who waits.
    in_record: Option<InRecord>,
    // Line 4: who was asked.
    out_record: Option<OutRecord>,
    /// State of the strategy in charge, zero in a new entry. Its meaning is the
    /// strategy's own.
    pub strategy_state: [u64; N_STRATEGY_WORDS],
}

const _: () = {
    assert!(size_of::<PitEntry>() == 5 * 64);
    assert!(offset_of!(PitEntry, wire) == 54, "names begin in line 0");
    assert!(offset_of!(PitEntry, in_record) == 3 * 64);
    assert!(size_of::<Option<InRecord>>() <= 64);
    assert!(offset_of!(PitEntry, strategy_state) + 24 == 5 * 64);
};

impl Default for PitEntry {
    fn default() -> Self {
        Self {
            name_hash: NameHash(0),
            expiry: MonoNs::ZERO,
            more: None,
            generation: 0,
            timer: Timer::default(),
            wire_len: 0,
            n_components: 0,
            name: Span::default(),
            hint: Span::default(),
            flags: 0,
            satisfied: false,
            wire: [0; MAX_INLINE_BYTES],
            in_record: None,
            out_record: None,
            strategy_state: [0; N_STRATEGY_WORDS],
        }
    }
}

impl Timed for PitEntry {
    fn timer(&self) -> &Timer {
        &self.timer
    }

    fn timer_mut(&mut self) -> &mut Timer {
        &mut self.timer
    }

    fn deadline(&self) -> MonoNs {
        self.expiry
    }

    fn set_deadline(&mut self, at: MonoNs) {
        self.expiry = at;
    }
}

impl PitEntry {
    /// Turns a free slot into the entry of `interest`. If that is larger than
    /// [`MAX_INLINE_BYTES`], `more` has a buffer that begins with it.
    #[inline]
    pub(super) fn occupy(
        &mut self,
        interest: &InterestView<'_>,
        name_hash: NameHash,
        more: Option<Box<More>>,
    ) {
        let wire = interest.wire();
        self.name_hash = name_hash;
        self.wire_len = wire.len() as u16;
        self.name = interest.name_span();
        self.hint = interest.forwarding_hint_span();
        self.n_components = interest.name().len() as u16;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.flags = flag(interest.can_be_prefix(), CAN_BE_PREFIX)
            | flag(interest.must_be_fresh(), MUST_BE_FRESH)
            | flag(interest.application_parameters().is_some(), HAS_PARAMETERS)
            | flag(wire.len() > MAX_INLINE_BYTES, IS_LARGE);
        self.more = more;
        if let Some(inline) = self.wire.get_mut(..wire.len()) {
            inline.copy_from_slice(wire);
        }
        self.strategy_state = [0; N_STRATEGY_WORDS];
        self.satisfied = false;
    }

    /// Makes the slot free, and returns what it had beyond its lines.
    #[inline]
    pub(super) fn vacate(&mut self) -> Option<Box<More>> {
        self.wire_len = 0;
        self.generation = self.generation.wrapping_add(1);
        self.in_record = None;
        self.out_record = None;
        self.more.take()
    }

    /// Brings what an exchange reads of the entry into the cache: all lines but
    /// the third, which most Interests do not reach.
    pub(super) fn prefetch(&self) {
        prefetch(self);
        prefetch(&self.wire[64 - offset_of!(Self, wire)]);
        prefetch(&self.in_record);
        prefetch(&self.strategy_state);
    }

    /// What the entry costs each of its downstreams of their share.
    #[inline]
    pub(super) fn share_bytes(&self) -> usize {
        let Some(more) = &self.more else {
            return super::PIT_ENTRY_BYTES;
        };
        let wire_bytes = match self.flags & IS_LARGE {
            0 => 0,
            _ => size_of::<More>() + more.wire.len(),
        };
        super::PIT_ENTRY_BYTES + wire_bytes + more.charged_bytes
    }

    /// Charges the downstreams for what the upstreams have taken since; how many
    /// bytes that is.
    #[inline]
    pub(super) fn charge_records(&mut self) -> usize {
        self.more
            .as_mut()
            .map_or(0, |more| more.charge_out_records())
    }

    /// Whether the slot holds an entry.
    pub(super) const fn is_live(&self) -> bool {
        self.wire_len != 0
    }

    /// Whether the name ends in an implicit digest; [`More`] has its parent.
    pub(super) const fn has_digest(&self) -> bool {
        self.flags & HAS_DIGEST != 0
    }

    pub(super) fn set_has_digest(&mut self) {
        self.flags |= HAS_DIGEST;
    }

    pub(super) fn name_bytes(&self) -> &[u8] {
        self.name.of_wire(self.interest_wire()).unwrap_or_default()
    }

    pub(super) fn hint_bytes(&self) -> Option<&[u8]> {
        self.hint.of_wire(self.interest_wire())
    }

    pub(super) const fn in_list(&self) -> Records<'_, InRecord> {
        Records {
            first: &self.in_record,
            more: &self.more,
        }
    }

    pub(super) const fn in_list_mut(&mut self) -> RecordsMut<'_, InRecord> {
        RecordsMut {
            first: &mut self.in_record,
            more: &mut self.more,
        }
    }

    const fn out_list(&self) -> Records<'_, OutRecord> {
        Records {
            first: &self.out_record,
            more: &self.more,
        }
    }

    pub(super) const fn out_list_mut(&mut self) -> RecordsMut<'_, OutRecord> {
        RecordsMut {
            first: &mut self.out_record,
            more: &mut self.more,
        }
    }

    /// The Interest that made this entry, as it arrived.
    #[must_use]
    #[inline]
    pub fn interest_wire(&self) -> &[u8] {
        let wire_len = usize::from(self.wire_len);
        match &self.more {
            Some(more) if self.flags & IS_LARGE != 0 => &more.wire[..wire_len],
            _ => &self.wire[..wire_len],
        }
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
        self.flags & CAN_BE_PREFIX != 0
    }

    /// Whether its Data is being read from the second level of the content store: nobody
    /// else has been asked yet. For the engine's use.
    #[must_use]
    pub const fn awaits_store(&self) -> bool {
        self.flags & AWAITS_STORE != 0
    }

    /// Sets what [`PitEntry::awaits_store`] tells.
    pub const fn set_awaits_store(&mut self, awaits: bool) {
        match awaits {
            true => self.flags |= AWAITS_STORE,
            false => self.flags &= !AWAITS_STORE,
        }
    }

    /// Whether only fresh Data answers.
    #[must_use]
    pub const fn must_be_fresh(&self) -> bool {
        self.flags & MUST_BE_FRESH != 0
    }

    /// Whether the Interest carries a forwarding hint.
    #[must_use]
    pub const fn has_forwarding_hint(&self) -> bool {
        self.hint.is_some()
    }

    /// Whether the Interest that made this entry carries `ApplicationParameters`. Interests
    /// with others share it.
    #[must_use]
    pub const fn has_parameters(&self) -> bool {
        self.flags & HAS_PARAMETERS != 0
    }

    /// When [`Pit::expire`](super::Pit::expire) will report the entry; exact,
    /// while the report may come a tick later.
    #[must_use]
    pub const fn expiry(&self) -> MonoNs {
        self.expiry
    }

    /// Downstreams, in no particular order.
    #[inline]
    pub fn in_records(&self) -> impl Iterator<Item = &InRecord> {
        self.in_list().iter()
    }

    /// Number of downstreams.
    #[must_use]
    pub fn n_in_records(&self) -> usize {
        self.in_list().len()
    }

    /// The downstream on `face`.
    #[must_use]
    pub fn in_record(&self, face: FaceId) -> Option<&InRecord> {
        self.in_list().find(face)
    }

    /// Upstreams, in no particular order.
    #[inline]
    pub fn out_records(&self) -> impl Iterator<Item = &OutRecord> {
        self.out_list().iter()
    }

    /// Upstreams, to change all but their face.
    pub fn out_records_mut(&mut self) -> impl Iterator<Item = &mut OutRecord> {
        self.out_list_mut().iter()
    }

    /// Number of upstreams.
    #[must_use]
    pub fn n_out_records(&self) -> usize {
        self.out_list().len()
    }

    /// The upstream on `face`.
    #[must_use]
    pub fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.out_list().find(face)
    }

    /// The upstream on `face`, to change all but its face.
    pub fn out_record_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        self.out_list_mut().find(face)
    }

    /// Removes the upstream on `face`.
    pub fn remove_out_record(&mut self, face: FaceId) -> Option<OutRecord> {
        self.out_list_mut().remove(face)
    }

    /// Removes the upstreams that `keep` does not accept.
    pub fn retain_out_records(&mut self, keep: impl FnMut(&OutRecord) -> bool) {
        self.out_list_mut().retain(keep);
    }
}
