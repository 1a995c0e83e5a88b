//! Which Data earn their write.

use tachonym_memory::{MemoryError, PagePreference};
use tachonym_policy::admission::Filter;
use tachonym_policy::{CountersKind, Random};

use crate::config::Admission;

/// See the module.
#[derive(Debug)]
pub(crate) enum Gate {
    All,
    /// Those of which the upper half of a random number is below this.
    Some {
        of_2_32: u64,
        random: Random,
    },
    Asked(Box<Filter>),
}

impl Gate {
    pub(crate) fn new(admission: Admission, pages: PagePreference) -> Result<Self, MemoryError> {
        Ok(match admission {
            Admission::All => Self::All,
            Admission::Lcp { probability, seed } => Self::Some {
                of_2_32: (probability.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64,
                random: Random::new(seed),
            },
            Admission::Filter {
                threshold,
                history_len,
            } => Self::Asked(Box::new(Filter::new(
                history_len,
                threshold,
                CountersKind::default(),
                pages,
            )?)),
        })
    }

    /// Whether a Data that is not admitted now may be when it is asked for again.
    pub(crate) const fn learns(&self) -> bool {
        matches!(self, Self::Asked(_))
    }

    /// A name was asked for that the first level does not have, or has not offered with
    /// success.
    pub(crate) fn note_request(&mut self, name: u64) {
        if let Self::Asked(filter) = self {
            filter.handle_request(name);
        }
    }

    pub(crate) fn admits(&mut self, name: u64) -> bool {
        match self {
            Self::All => true,
            Self::Some { of_2_32, random } => random.next_u64() >> 32 < *of_2_32,
            Self::Asked(filter) => filter.admits(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(admission: Admission) -> Gate {
        Gate::new(admission, PagePreference::Auto).expect("memory")
    }

    #[test]
    fn what_was_asked_for_twice_has_earned_its_write() {
        let mut gate = gate(Admission::Filter {
            threshold: 2,
            history_len: 100,
        });
        gate.note_request(5);
        assert!(!gate.admits(5) && gate.learns());
        gate.note_request(5);
        assert!(gate.admits(5) && !gate.admits(6));
    }

    #[test]
    fn lots_fall_as_often_as_they_should() {
        let n_admitted = |probability| {
            let mut gate = gate(Admission::Lcp {
                probability,
                seed: 9,
            });
            (0..10_000).filter(|_| gate.admits(1)).count()
        };
        assert_eq!((n_admitted(0.0), n_admitted(1.0)), (0, 10_000));
        assert!((900..1_100).contains(&n_admitted(0.1)));
    }
}
