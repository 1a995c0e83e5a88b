//! What an entry is known by outside of the table.

/// Number of an entry in its [`Pit`](super::Pit). It does not outlive the entry: the number
/// of a removed entry finds nothing, even when the slot has a new tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryIdx {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl EntryIdx {
    pub(crate) const fn slot(self) -> u32 {
        self.slot
    }

    /// As a number, for those who keep it for a while.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// From such a number.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}
