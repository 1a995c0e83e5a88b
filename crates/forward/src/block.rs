//! The blocks of the packet path, so that its cost can be told by block.
//!
//! Takemasa 2019 takes packet processing apart twice: section 3.3 with ten
//! blocks (Figure 3.3), section 5.1 with thirteen, which split off what cache
//! algorithms do (Figures 5.1 and 5.2). The numbers here are those of the
//! thirteen. The engine tells its [`Output`](crate::Output) which block it
//! enters; to an output that does not listen it costs nothing.

use std::fmt;

use tachonym_tables::PolicyStep;

/// A part of the packet path. It lasts until the next one is entered, or the
/// burst ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Block {
    /// An Interest is received and decoded, its name is hashed: B1 (B1 in Figure
    /// 3.3). The engine marks the hashing only; packets come decoded.
    InterestReception = 1,
    /// The policy of the content store notes a request or a hit: B2 (not in Figure 3.3).
    /// The router's measurement of popularity is part of it.
    HistoryUpdate = 2,
    /// Whether the content store has the Data: B3 (B2 in Figure 3.3).
    StoreLookup = 3,
    /// A cached Data is made ready to go: B4 (B3 in Figure 3.3).
    StoreFetch = 4,
    /// Who waits is written into the pending Interest table: B5 (B4 in Figure 3.3).
    PendingInsertion = 5,
    /// Longest prefix match: B6 (B5 in Figure 3.3).
    FibLookup = 6,
    /// An Interest leaves, the record of it included: B7 (B6 in Figure 3.3).
    InterestTransmission = 7,
    /// A Data is received and decoded, its name is hashed: B8 (B7 in Figure 3.3).
    /// As with B1, the engine marks the hashing only.
    DataReception = 8,
    /// Who waits is found in the pending Interest table, and the entry goes: B9 (B8
    /// in Figure 3.3).
    PendingRemoval = 9,
    /// A Data goes into the content store: B10 (B9 in Figure 3.3, which includes
    /// the eviction).
    StoreInsertion = 10,
    /// A Data leaves, the copy into the queue of its face included: B11 (B10 in
    /// Figure 3.3).
    DataTransmission = 11,
    /// The policy chooses a victim: B12 (within B9 in Figure 3.3). Emptying its place is
    /// part of B10.
    Eviction = 12,
    /// The policy decides whether a Data is admitted: B13 (not in Figure 3.3).
    Admission = 13,
    /// Hop limit, scope, loops: what the prototype of the figures leaves out.
    Checks = 14,
    /// Which strategy serves a name, and what it decides. The prototype knows one
    /// strategy, that has nothing to decide.
    Strategy = 15,
    /// Timers that are due.
    Timers = 16,
    /// Lines of tables that are fetched for a whole burst before their first use
    /// (section 4.4).
    Prefetch = 17,
}

impl Block {
    /// Every block, those of the figures first, by number.
    pub const ALL: [Self; 17] = [
        Self::InterestReception,
        Self::HistoryUpdate,
        Self::StoreLookup,
        Self::StoreFetch,
        Self::PendingInsertion,
        Self::FibLookup,
        Self::InterestTransmission,
        Self::DataReception,
        Self::PendingRemoval,
        Self::StoreInsertion,
        Self::DataTransmission,
        Self::Eviction,
        Self::Admission,
        Self::Checks,
        Self::Strategy,
        Self::Timers,
        Self::Prefetch,
    ];

    /// The block of a step of the policy, within the store's block `around`.
    #[inline(always)]
    pub(crate) const fn of_step(step: PolicyStep, around: Self) -> Self {
        match step {
            PolicyStep::History => Self::HistoryUpdate,
            PolicyStep::Admission => Self::Admission,
            PolicyStep::Eviction => Self::Eviction,
            PolicyStep::PendingRemoval => Self::PendingRemoval,
            PolicyStep::Store => around,
        }
    }

    /// The number in Figures 5.1 and 5.2; `None` for what they leave out.
    #[must_use]
    pub const fn number(self) -> Option<u8> {
        match self as u8 {
            number @ 1..=13 => Some(number),
            _ => None,
        }
    }

    /// The number in Figure 3.3, if it has such a block.
    #[must_use]
    pub const fn number_in_figure_3_3(self) -> Option<u8> {
        match self {
            Self::InterestReception => Some(1),
            Self::StoreLookup => Some(2),
            Self::StoreFetch => Some(3),
            Self::PendingInsertion => Some(4),
            Self::FibLookup => Some(5),
            Self::InterestTransmission => Some(6),
            Self::DataReception => Some(7),
            Self::PendingRemoval => Some(8),
            Self::StoreInsertion | Self::Eviction => Some(9),
            Self::DataTransmission => Some(10),
            _ => None,
        }
    }

    /// A short name, in words.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::InterestReception => "Interest reception",
            Self::HistoryUpdate => "history update",
            Self::StoreLookup => "store look-up",
            Self::StoreFetch => "store fetch",
            Self::PendingInsertion => "PIT insertion",
            Self::FibLookup => "FIB look-up",
            Self::InterestTransmission => "Interest transmission",
            Self::DataReception => "Data reception",
            Self::PendingRemoval => "PIT removal",
            Self::StoreInsertion => "store insertion",
            Self::DataTransmission => "Data transmission",
            Self::Eviction => "eviction",
            Self::Admission => "admission",
            Self::Checks => "checks",
            Self::Strategy => "strategy",
            Self::Timers => "timers",
            Self::Prefetch => "prefetch",
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_at_their_numbers() {
        for (i, block) in Block::ALL.into_iter().enumerate() {
            assert_eq!(block as usize, i + 1);
            assert_eq!(block.number().is_some(), i < 13);
        }
    }

    #[test]
    fn figure_3_3_has_each_of_its_ten_numbers() {
        let mut numbers: Vec<u8> = Block::ALL
            .iter()
            .filter_map(|block| block.number_in_figure_3_3())
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (1..=10).collect::<Vec<u8>>());
    }
}
