//! One cached Data.
//!
//! Owns the Data as it arrived and what lookups need of it. A slot of the
//! content store; a free one has no buffer.

use tachonym_packet::{DataView, MonoNs, NameHash, NameView, Span};

/// A cached Data; one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct CsEntry {
    pub(super) name_hash: NameHash,
    /// Copy of the Data, in a buffer that may be longer; empty if the slot is
    /// free.
    pub(super) buffer: Box<[u8]>,
    /// Fresh before this time; zero if it never is.
    pub(super) fresh_until: MonoNs,
    /// That in the tree of prefixes; `None` while the Data waits to be entered.
    pub(super) vertex: Option<u32>,
    pub(super) wire_len: u16,
    name: Span,
    /// Whether the store has kept its implicit digest.
    pub(super) has_digest: bool,
    /// Which of the store's policies holds it.
    pub(super) policy_number: u8,
    /// What its owner wants to be told when it answers.
    pub(super) marks: Marks,
}

const _: () = assert!(size_of::<CsEntry>() == 64);

/// A cached Data, borrowed from the store.
#[derive(Clone, Copy, Debug)]
pub struct DataRef<'a> {
    wire: &'a [u8],
    marks: Marks,
}

impl<'a> DataRef<'a> {
    /// The packet as it arrived.
    #[must_use]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// What its owner has noted about it.
    #[must_use]
    #[inline]
    pub const fn marks(&self) -> Marks {
        self.marks
    }

    /// The packet as a view. Checks its bytes again.
    #[must_use]
    pub fn view(&self) -> DataView<'a> {
        DataView::parse(self.wire).expect("copied from a Data")
    }
}

/// What the owner of a store wants to be told when a Data answers: marks whose meaning is the
/// owner's own, told at once or after some more answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    bits: u8,
    /// Answers that come before they are told.
    pause: u8,
}

impl Marks {
    /// Nothing.
    pub const NONE: Self = Self::new(0);

    /// Most answers after which marks are told again.
    pub const MAX_PAUSE: u8 = u8::MAX;

    /// These bits, to be told at once.
    #[must_use]
    pub const fn new(bits: u8) -> Self {
        Self { bits, pause: 0 }
    }

    /// The same, to be told after so many answers without.
    #[must_use]
    pub const fn after(self, n_answers: u8) -> Self {
        Self {
            pause: n_answers,
            ..self
        }
    }

    /// What is told with an answer.
    #[inline]
    pub(super) const fn tell(&mut self) -> Self {
        if self.pause == 0 {
            return *self;
        }
        self.pause -= 1;
        Self::NONE
    }

    /// These and those.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self {
            bits: self.bits | others.bits,
            ..self
        }
    }

    /// These without those.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self {
            bits: self.bits & !others.bits,
            ..self
        }
    }

    /// Whether all of those are among these.
    #[must_use]
    pub const fn include(self, others: Self) -> bool {
        self.bits & others.bits == others.bits
    }

    /// Whether there is nothing to tell.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }
}

/// Until when a Data that arrives now is fresh; [`MonoNs::ZERO`] if it never is.
#[inline]
pub(super) fn fresh_until(data: &DataView<'_>, now: MonoNs) -> MonoNs {
    match data.freshness_period_ms() {
        0 => MonoNs::ZERO,
        period_ms => now.plus_ms(period_ms),
    }
}

impl CsEntry {
    /// Puts `data` into the slot, whose buffer begins with a copy of its wire.
    #[inline]
    pub(super) fn occupy(&mut self, data: &DataView<'_>, name_hash: NameHash, fresh_until: MonoNs) {
        self.name_hash = name_hash;
        self.wire_len = data.wire().len() as u16;
        self.name = data.name_span();
        self.has_digest = false;
        self.marks = Marks::default();
        self.fresh_until = fresh_until;
    }

    /// Whether the slot holds a Data.
    pub(super) const fn is_live(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Whether this is the name, and its hash.
    #[inline]
    pub(super) fn is_named(&self, name: NameView<'_>, hash: NameHash) -> bool {
        self.name_hash == hash && self.name_bytes() == name.value_bytes()
    }

    pub(super) fn is_fresh(&self, now: MonoNs) -> bool {
        now < self.fresh_until
    }

    pub(super) fn name_bytes(&self) -> &[u8] {
        self.name.of_wire(&self.buffer).unwrap_or_default()
    }

    /// The Data, to be given out, with what is to be told.
    #[inline]
    pub(super) fn answer(&mut self) -> DataRef<'_> {
        let marks = self.marks.tell();
        DataRef {
            wire: self.wire(),
            marks,
        }
    }

    /// The Data, to be given out.
    #[inline]
    pub(super) fn data(&self) -> DataRef<'_> {
        DataRef {
            wire: self.wire(),
            marks: Marks::NONE,
        }
    }

    pub(super) fn wire(&self) -> &[u8] {
        &self.buffer[..usize::from(self.wire_len)]
    }

    /// Whether the name begins with `prefix`.
    pub(super) fn is_below(&self, prefix: NameView<'_>) -> bool {
        self.name_bytes().starts_with(prefix.value_bytes())
    }

    /// The name, as a view.
    pub(super) fn name(&self) -> NameView<'_> {
        NameView::parse_value(self.name_bytes()).expect("copied from a name")
    }
}
