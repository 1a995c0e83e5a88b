//! What to expect of a cache size and a policy, by the [`model`](crate::model), from
//! popularity that is known or [measured](crate::popularity).
//!
//! Owns the choices that the model speaks of and what they cost; what of it is advised, and
//! how it is shown, is the affair of who asks.

use tachonym_memory::PagePreference;

use crate::kind::{AdmissionKind, EvictionKind};
use crate::model::{BlockCycles, EvictionModel, FilterModel, Popularity};
use crate::policy::PolicyConfig;

/// A policy that the model speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `Fifo`, `Random` or `Lru`.
    eviction: EvictionKind,
    /// Threshold and history of Filter; `None` admits everything.
    filter: Option<(u32, usize)>,
}

impl Choice {
    /// All that comes is admitted; `None` if the model does not know the eviction.
    #[must_use]
    pub fn all(eviction: EvictionKind) -> Option<Self> {
        model_of(eviction)?;
        Some(Self {
            eviction,
            filter: None,
        })
    }

    /// Filter decides; `None` if the model does not know the eviction.
    #[must_use]
    pub fn filter(eviction: EvictionKind, threshold: u32, history_len: usize) -> Option<Self> {
        model_of(eviction)?;
        Some(Self {
            eviction,
            filter: Some((threshold, history_len)),
        })
    }

    /// What makes room.
    #[must_use]
    pub const fn eviction(&self) -> EvictionKind {
        self.eviction
    }

    /// Threshold and history in requests, if Filter decides what is admitted.
    #[must_use]
    pub const fn threshold_and_history(&self) -> Option<(u32, usize)> {
        self.filter
    }

    /// As a configuration, for a cache of `capacity` Data.
    #[must_use]
    pub fn config(&self, capacity: usize) -> PolicyConfig {
        let admission = match self.filter {
            Some(_) => AdmissionKind::Filter,
            None => AdmissionKind::None,
        };
        let mut config = PolicyConfig::new(admission, self.eviction, capacity);
        config.pages = PagePreference::Base;
        if let Some((threshold, history_len)) = self.filter {
            config.threshold = threshold;
            config.history_len = Some(history_len);
        }
        config
    }

    /// What to expect of this with a cache of `capacity` Data.
    #[must_use]
    pub fn expected(&self, capacity: usize, popularity: &Popularity, costs: &Costs) -> Expectation {
        let (threshold, history_len) = self.filter.unwrap_or((1, 1));
        let model = FilterModel {
            capacity: capacity as f64,
            history_len: history_len as f64,
            threshold,
            eviction: model_of(self.eviction).unwrap_or_default(),
        };
        let expected = model.expected(popularity);
        let blocks = costs.blocks(self);
        Expectation {
            hit_ratio: expected.hit_ratio,
            insertion_ratio: expected.insertion_ratio,
            characteristic_requests: expected.characteristic_requests,
            cost_ns: match self.filter {
                Some(_) => blocks.with_admission(expected.hit_ratio, expected.insertion_ratio),
                None => blocks.with_eviction(expected.hit_ratio),
            },
            table_bytes: self.config(capacity).table_bytes(),
        }
    }
}

/// What to expect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Hits by requests, 0 to 1.
    pub hit_ratio: f64,
    /// Data that are inserted, by those that come; 0 to 1.
    pub insertion_ratio: f64,
    /// Requests for which a Data stays that is not asked for; infinite if all have room.
    pub characteristic_requests: f64,
    /// What an Interest costs and the Data that answers it, on average, in nanoseconds
    /// (equations 1 and 2).
    pub cost_ns: f64,
    /// Memory of the policy's tables, in bytes.
    pub table_bytes: u64,
}

/// What the blocks of the packet path cost, in nanoseconds, in the groups of
/// [`BlockCycles`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Each Interest, whether it hits or not, but for [`history`](Self::history): B1, B3.
    pub always: f64,
    /// Each hit: B4, B11.
    pub hit: f64,
    /// Each miss, its Data included: B5 to B9, B11.
    pub miss: f64,
    /// Inserting a Data, without making room: B10.
    pub insert: f64,
    /// Making room (B12) with FIFO, or at random.
    pub evict_fifo: f64,
    /// The same with LRU.
    pub evict_lru: f64,
    /// What Filter notes of an Interest (B2).
    pub history: f64,
    /// Deciding on admission (B13) with Filter.
    pub admit: f64,
}

impl Default for Costs {
    /// As measured: `docs/performance.md`, "Cycles by block of the packet path" (of 2.5 TSC
    /// cycles each nanosecond: 625 for every Interest, 651 more for a hit, 869 more
    /// for a miss with its Data, 283 for an insertion with LRU's eviction), and "Cache
    /// admission and eviction" for B2, B12 and B13 with what they read fetched ahead.
    fn default() -> Self {
        Self {
            always: 250.0,
            hit: 260.0,
            miss: 348.0,
            insert: 91.0,
            evict_fifo: 11.0,
            evict_lru: 28.0,
            history: 19.0,
            admit: 10.0,
        }
    }
}

impl Costs {
    /// The blocks of equations 1 and 2 for a policy.
    #[must_use]
    pub fn blocks(&self, choice: &Choice) -> BlockCycles {
        let history = if choice.filter.is_some() {
            self.history
        } else {
            0.0
        };
        BlockCycles {
            always: self.always + history,
            hit: self.hit,
            miss: self.miss,
            insert: self.insert,
            evict: match choice.eviction {
                EvictionKind::Lru => self.evict_lru,
                _ => self.evict_fifo,
            },
            admit: self.admit,
        }
    }
}

const fn model_of(eviction: EvictionKind) -> Option<EvictionModel> {
    match eviction {
        EvictionKind::Fifo | EvictionKind::Random => Some(EvictionModel::FifoOrRandom),
        EvictionKind::Lru => Some(EvictionModel::Lru),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn choices() -> Vec<Choice> {
        let evictions = [EvictionKind::Fifo, EvictionKind::Random, EvictionKind::Lru];
        let all = evictions.into_iter().filter_map(Choice::all);
        let filters = [(2, 10), (2, 1_000), (15, 4_097)];
        let filters = filters.into_iter().flat_map(|(threshold, history_len)| {
            evictions.map(|eviction| Choice::filter(eviction, threshold, history_len))
        });
        all.chain(filters.flatten()).collect()
    }

    #[test]
    fn tables_take_what_is_said_before_they_are_made() {
        for choice in choices() {
            for capacity in [1, 100, 1_024, 5_000] {
                let config = choice.config(capacity);
                let policy = Policy::new(&config).expect("little memory");
                assert_eq!(
                    config.table_bytes(),
                    policy.memory_bytes() as u64,
                    "{choice:?} {capacity}"
                );
            }
        }
    }

    #[test]
    fn no_policy_takes_more_than_is_said_before_it_is_made() {
        let mut n_compared = 0;
        for admission in AdmissionKind::ALL {
            for eviction in EvictionKind::ALL {
                for capacity in [100, 3_000] {
                    let mut config = PolicyConfig::new(admission, eviction, capacity);
                    config.pages = PagePreference::Base;
                    let Ok(policy) = Policy::new(&config) else {
                        continue;
                    };
                    let (said, taken) = (config.table_bytes(), policy.memory_bytes() as u64);
                    // A few words that every policy has do not count.
                    assert!(said + 1_024 >= taken, "{config:?}: {said}, {taken}");
                    n_compared += 1;
                }
            }
        }
        assert!(n_compared > 50, "{n_compared}");
    }

    #[test]
    fn costs_follow_equations_one_and_two() {
        let popularity = Popularity::zipf(100_000, 0.8);
        let costs = Costs::default();
        for choice in choices() {
            let expected = choice.expected(5_000, &popularity, &costs);
            let (hits, misses) = (expected.hit_ratio, 1.0 - expected.hit_ratio);
            let evict = if choice.eviction() == EvictionKind::Lru {
                28.0
            } else {
                11.0
            };
            let by_hand = if choice.threshold_and_history().is_some() {
                let inserted = expected.insertion_ratio * (91.0 + evict);
                269.0 + hits * 260.0 + misses * (348.0 + 10.0 + inserted)
            } else {
                250.0 + hits * 260.0 + misses * (348.0 + 91.0 + evict)
            };
            assert!((expected.cost_ns - by_hand).abs() < 1e-9, "{choice:?}");
        }
    }

    #[test]
    fn what_the_model_does_not_know_is_no_choice() {
        for eviction in EvictionKind::ALL {
            let is_known = matches!(eviction.as_str(), "fifo" | "random" | "lru");
            assert_eq!(Choice::all(eviction).is_some(), is_known);
            assert_eq!(Choice::filter(eviction, 2, 100).is_some(), is_known);
        }
    }
}
