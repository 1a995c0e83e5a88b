//! Names of the policies, for configurations and command lines, and which of them go
//! together.

use std::fmt;
use std::str::FromStr;

/// How a Data is chosen that makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EvictionKind {
    /// First in, first out.
    Fifo,
    /// Any, with equal chances.
    Random,
    /// Least recently used.
    #[default]
    Lru,
    /// Least recently used among 16 neighbouring slots.
    LruLocal,
    /// Second chance: first in, first out, but for those asked for since the hand passed.
    Clock,
    /// CLOCK with counts up to 3, of which each passing of the hand takes one.
    Gclock,
    /// Segmented LRU: four fifths are for those asked for again.
    Slru,
    /// Least frequently used while cached, in constant time.
    Lfu,
    /// The same, with a memory of the counts of evicted names, a hundred for each Data.
    LfuPerfect,
    /// Least frequently used among 32 neighbouring slots.
    LfuLocal,
    /// Adaptive replacement cache.
    Arc,
    /// 2Q.
    TwoQ,
    /// Low inter-reference recency set.
    Lirs,
    /// S3-FIFO.
    S3Fifo,
    /// SIEVE.
    Sieve,
}

impl EvictionKind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Fifo,
        Self::Random,
        Self::Lru,
        Self::LruLocal,
        Self::Clock,
        Self::Gclock,
        Self::Slru,
        Self::Lfu,
        Self::LfuPerfect,
        Self::LfuLocal,
        Self::Arc,
        Self::TwoQ,
        Self::Lirs,
        Self::S3Fifo,
        Self::Sieve,
    ];

    /// The word for it in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Random => "random",
            Self::Lru => "lru",
            Self::LruLocal => "lru-local",
            Self::Clock => "clock",
            Self::Gclock => "gclock",
            Self::Slru => "slru",
            Self::Lfu => "lfu",
            Self::LfuPerfect => "lfu-perfect",
            Self::LfuLocal => "lfu-local",
            Self::Arc => "arc",
            Self::TwoQ => "2q",
            Self::Lirs => "lirs",
            Self::S3Fifo => "s3-fifo",
            Self::Sieve => "sieve",
        }
    }

    /// Most bytes that it takes for so many slots.
    #[must_use]
    pub const fn max_bytes(self, n_slots: usize) -> u64 {
        let by_slot = match self {
            Self::LfuPerfect => 4_096,
            Self::Arc | Self::TwoQ | Self::Lirs | Self::S3Fifo => 128,
            Self::Lfu => 64,
            _ => 16,
        };
        by_slot * n_slots as u64
    }

    /// Whether it learns from names that come back after it evicted them.
    #[must_use]
    pub const fn has_ghosts(self) -> bool {
        matches!(
            self,
            Self::LfuPerfect | Self::Arc | Self::TwoQ | Self::Lirs | Self::S3Fifo
        )
    }
}

/// How it is decided whether an arriving Data is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdmissionKind {
    /// All are.
    #[default]
    None,
    /// Each one with the same probability: leave copy with probability.
    Lcp,
    /// Those that went through a chain of LRU caches of names: k-LRU.
    KLru,
    /// Those asked for often enough lately.
    Filter,
    /// The same, with a threshold that follows the traffic.
    FilterAuto,
    /// Those asked for more often than what would have to go.
    TinyLfu,
    /// All enter a small window; what falls out of it has to beat what would have to go.
    WTinyLfu,
}

impl AdmissionKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Lcp,
        Self::KLru,
        Self::Filter,
        Self::FilterAuto,
        Self::TinyLfu,
        Self::WTinyLfu,
    ];

    /// The word for it in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lcp => "lcp",
            Self::KLru => "k-lru",
            Self::Filter => "filter",
            Self::FilterAuto => "filter-auto",
            Self::TinyLfu => "tinylfu",
            Self::WTinyLfu => "w-tinylfu",
        }
    }
}

/// How Filter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CountersKind {
    /// A row of 2^24 counters of 16 bits, one for each name, as published.
    Row,
    /// Cells of a cache line, each with 24 bits of a name's hash and a count of 8 bits: names
    /// hardly ever share one.
    #[default]
    Lines,
    /// A hash table that keeps names apart by their whole hashes.
    Exact,
}

impl CountersKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Row, Self::Lines, Self::Exact];

    /// The word for it in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Lines => "lines",
            Self::Exact => "exact",
        }
    }
}

/// The text names nothing of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown word; use one of {known}")]
pub struct UnknownKind {
    known: String,
}

macro_rules! words {
    ($kind:ty) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $kind {
            type Err = UnknownKind;

            fn from_str(text: &str) -> Result<Self, UnknownKind> {
                let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
                found.ok_or_else(|| UnknownKind {
                    known: Self::ALL.map(Self::as_str).join(", "),
                })
            }
        }
    };
}

words!(EvictionKind);
words!(AdmissionKind);
words!(CountersKind);

/// Why an admission and an eviction do not go together; `None` if they do.
///
/// ```
/// use tachonym_policy::{AdmissionKind, EvictionKind, senseless};
///
/// assert_eq!(senseless(AdmissionKind::Filter, EvictionKind::Fifo), None);
/// assert!(senseless(AdmissionKind::Filter, EvictionKind::Arc).is_some());
/// ```
#[must_use]
pub const fn senseless(admission: AdmissionKind, eviction: EvictionKind) -> Option<&'static str> {
    use {AdmissionKind as A, EvictionKind as E};
    match (admission, eviction) {
        (A::None, _) => None,
        (A::Lcp, E::LfuPerfect) => {
            Some("lfu-perfect counts every arrival of a name; lcp hides most of them from it")
        }
        (A::Lcp, _) => None,
        (_, E::TwoQ | E::S3Fifo) => Some(
            "it keeps newcomers on trial in a queue of its own, and what this admission \
             lets in has passed its trial: the queue would only take room",
        ),
        (_, E::Arc | E::Lirs) => Some(
            "it learns from names that come back after it evicted them; this admission \
             keeps names away that it would learn from",
        ),
        (_, E::LfuPerfect) => Some(
            "it remembers how often evicted names were asked for; this admission counts \
             the same again, and keeps names away that it would count",
        ),
        (A::KLru | A::Filter | A::FilterAuto | A::TinyLfu | A::WTinyLfu, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for kind in EvictionKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for kind in AdmissionKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for kind in CountersKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let unknown = "LRU".parse::<CountersKind>().expect_err("no such counters");
        assert_eq!(
            unknown.to_string(),
            "unknown word; use one of row, lines, exact"
        );
    }

    #[test]
    fn pairs_with_a_memory_of_evicted_names_are_senseless() {
        for admission in AdmissionKind::ALL {
            for eviction in EvictionKind::ALL {
                let is_senseless = senseless(admission, eviction).is_some();
                let expected = match admission {
                    AdmissionKind::None => false,
                    AdmissionKind::Lcp => eviction == EvictionKind::LfuPerfect,
                    _ => eviction.has_ghosts(),
                };
                assert_eq!(is_senseless, expected, "{admission} {eviction}");
            }
        }
    }
}
