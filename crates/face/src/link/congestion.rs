//! When to mark packets as congested.
//!
//! The law is that of NFD's link service (Schneider et al., "A Practical
//! Congestion Control Scheme for Named Data Networking", ACM ICN 2016, section
//! 4, after CoDel): mark once the queue has been above its threshold for an
//! interval, then again and again at the interval divided by the square root
//! of the marks so far, until the queue is below. Owns that state; the caller
//! measures the queue and reads the clock.

use std::time::Duration;

use tachonym_packet::MonoNs;

/// When the first mark of a congestion comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstMark {
    /// After one interval: a queue that we fill and drain may be a burst.
    AfterInterval,
    /// At once: a receive queue that overflows loses packets.
    AtOnce,
}

/// Marking state of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    /// [`MonoNs::NEVER`] while there is no congestion.
    next_mark: MonoNs,
    n_marked: u32,
}

impl Default for Congestion {
    fn default() -> Self {
        Self {
            next_mark: MonoNs::NEVER,
            n_marked: 0,
        }
    }
}

impl Congestion {
    /// Whether the packet at hand is to be marked.
    #[inline]
    pub(crate) fn check(
        &mut self,
        now: MonoNs,
        is_congested: bool,
        first: FirstMark,
        interval: Duration,
    ) -> bool {
        if !is_congested {
            *self = Self::default();
            return false;
        }
        if self.next_mark == MonoNs::NEVER {
            match first {
                FirstMark::AfterInterval => {
                    self.next_mark = now + interval;
                    return false;
                }
                FirstMark::AtOnce => self.next_mark = now,
            }
        }
        if now < self.next_mark {
            return false;
        }
        self.n_marked = self.n_marked.saturating_add(1);
        let wait = interval.div_f64(f64::from(self.n_marked.saturating_add(1)).sqrt());
        // Marks that came due while there was nothing to mark are forgotten.
        self.next_mark = if (self.next_mark + wait) < now {
            now + wait
        } else {
            self.next_mark + wait
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    fn ms(n: u64) -> MonoNs {
        MonoNs::ZERO.plus_ms(n)
    }

    #[test]
    fn a_short_burst_is_not_marked() {
        let mut state = Congestion::default();
        for t in 0..100 {
            assert!(!state.check(ms(t), true, FirstMark::AfterInterval, INTERVAL));
        }
        assert!(!state.check(ms(100), false, FirstMark::AfterInterval, INTERVAL));
        assert!(!state.check(ms(101), true, FirstMark::AfterInterval, INTERVAL));
    }

    #[test]
    fn marks_come_faster_while_congestion_lasts_and_start_over_after_it() {
        let mut state = Congestion::default();
        let marked: Vec<u64> = (0..1000)
            .filter(|&t| state.check(ms(t), true, FirstMark::AfterInterval, INTERVAL))
            .collect();
        assert_eq!(marked[0], 100);
        let gaps: Vec<u64> = marked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            gaps.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{gaps:?}"
        );
        assert!(gaps[0] >= 70 && gaps[0] <= 72, "{gaps:?}");
        state.check(ms(1000), false, FirstMark::AfterInterval, INTERVAL);
        let again =
            (1001..1200).find(|&t| state.check(ms(t), true, FirstMark::AfterInterval, INTERVAL));
        assert_eq!(again, Some(1101));
    }

    #[test]
    fn a_full_receive_queue_is_marked_at_once() {
        let mut state = Congestion::default();
        assert!(state.check(ms(5), true, FirstMark::AtOnce, INTERVAL));
        assert!(!state.check(ms(5), true, FirstMark::AtOnce, INTERVAL));
    }

    #[test]
    fn marks_missed_in_silence_are_not_made_up_for() {
        let mut state = Congestion::default();
        assert!(state.check(ms(0), true, FirstMark::AtOnce, INTERVAL));
        assert!(state.check(ms(10_000), true, FirstMark::AtOnce, INTERVAL));
        assert!(!state.check(ms(10_001), true, FirstMark::AtOnce, INTERVAL));
    }
}
