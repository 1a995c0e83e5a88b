//! How the time of one run is divided among its parts.
//!
//! Owns the rule that nothing lasts longer than the whole: connecting,
//! registering, probing, warming up, measuring and cleaning up all end by one
//! deadline. Refuses clocks: the present time is an argument.

use std::time::{Duration, Instant};

/// Most that is kept for taking the routes back.
const MAX_CLEAN_UP: Duration = Duration::from_secs(1);
/// That is at most this part of the whole.
const CLEAN_UP_PART: u32 = 10;
/// Warming up may take this part of what is left when it begins.
const WARM_UP_PART: u32 = 2;
/// Waiting for the last replies may take this part of a phase.
const DRAIN_PART: u32 = 4;

/// A moment by which something must have ended, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Nothing ends for want of time, except by its own patience.
    pub const NONE: Self = Self(None);

    /// By `end`.
    #[must_use]
    pub fn at(end: Instant) -> Self {
        Self(Some(end))
    }

    /// What is left of it; `None` if there is no end.
    #[must_use]
    pub fn left(self, now: Instant) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(now))
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_over(self, now: Instant) -> bool {
        self.left(now) == Some(Duration::ZERO)
    }

    /// `patience`, or what is left if that is less.
    #[must_use]
    pub fn cap(self, now: Instant, patience: Duration) -> Duration {
        self.left(now).map_or(patience, |left| left.min(patience))
    }
}

/// A time of sending, and a time of waiting for the last replies.
///
/// Invariant: `send_until <= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    send_until: Instant,
    end: Instant,
}

impl Phase {
    /// Sending for `duration`, and waiting for a lifetime after it.
    #[must_use]
    pub fn lasting(now: Instant, duration: Duration, lifetime: Duration) -> Self {
        let send_until = now + duration;
        Self {
            send_until,
            end: send_until + lifetime,
        }
    }

    /// Everything by `end`: of the time until then a quarter, or a lifetime if
    /// that is less, is kept for the last replies.
    #[must_use]
    pub fn within(now: Instant, end: Instant, lifetime: Duration) -> Self {
        let end = end.max(now);
        let drain = lifetime.min((end - now) / DRAIN_PART);
        Self {
            send_until: end - drain,
            end,
        }
    }

    /// When sending ends.
    #[must_use]
    pub fn send_until(&self) -> Instant {
        self.send_until
    }

    /// When what is in flight is given up.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.end
    }
}

/// The time of one run, from its start to its report.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    start: Instant,
    whole: Duration,
}

impl Budget {
    /// `whole` from `start` on.
    #[must_use]
    pub fn new(start: Instant, whole: Duration) -> Self {
        Self { start, whole }
    }

    /// By when everything has ended.
    #[must_use]
    pub fn end(&self) -> Deadline {
        Deadline::at(self.start + self.whole)
    }

    fn clean_up_from(&self) -> Instant {
        self.start + self.whole - MAX_CLEAN_UP.min(self.whole / CLEAN_UP_PART)
    }

    /// By when connecting, registering and probing have to be done: there is
    /// time for nothing else after it.
    #[must_use]
    pub fn set_up(&self) -> Deadline {
        Deadline::at(self.clean_up_from())
    }

    /// The warm-up, if it begins `now`.
    #[must_use]
    pub fn warm_up(&self, now: Instant, lifetime: Duration) -> Phase {
        let left = self.clean_up_from().saturating_duration_since(now);
        Phase::within(now, now + left / WARM_UP_PART, lifetime)
    }

    /// The measurement, if it begins `now`.
    #[must_use]
    pub fn measurement(&self, now: Instant, lifetime: Duration) -> Phase {
        Phase::within(now, self.clean_up_from(), lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn no_part_outlives_the_whole_however_long_the_others_took() {
        let start = Instant::now();
        for whole_ms in [1, 7, 1_000, 2_000, 20_000, 600_000] {
            let whole = whole_ms * MS;
            let budget = Budget::new(start, whole);
            let end = start + whole;
            for lifetime_ms in [50, 2_000, 60_000] {
                let lifetime = lifetime_ms * MS;
                for elapsed_pct in [0, 1, 50, 89, 95, 100, 130, 1_000] {
                    let now = start + whole * elapsed_pct / 100;
                    assert!(now + budget.set_up().cap(now, lifetime) <= end.max(now));
                    assert!(now + budget.end().cap(now, lifetime) <= end.max(now));
                    for phase in [
                        budget.warm_up(now, lifetime),
                        budget.measurement(now, lifetime),
                    ] {
                        assert!(now <= phase.send_until && phase.send_until <= phase.end);
                        assert!(phase.end <= end.max(now), "{whole:?} {elapsed_pct} %");
                        assert!(phase.end - phase.send_until <= lifetime);
                    }
                }
            }
        }
    }

    #[test]
    fn a_warm_up_to_its_end_leaves_time_to_measure_and_to_clean_up() {
        let start = Instant::now();
        let budget = Budget::new(start, 2_000 * MS);
        let warm_up = budget.warm_up(start, 60_000 * MS);
        assert_eq!(warm_up.end - start, 900 * MS);
        let measurement = budget.measurement(warm_up.end, 60_000 * MS);
        assert_eq!(measurement.send_until - warm_up.end, 675 * MS);
        assert_eq!(measurement.end - start, 1_800 * MS);
        assert_eq!(budget.end().left(measurement.end), Some(200 * MS));
    }

    #[test]
    fn without_a_deadline_patience_is_not_cut() {
        let now = Instant::now();
        assert_eq!(Deadline::NONE.cap(now, MS), MS);
        assert!(!Deadline::NONE.is_over(now));
        assert!(Deadline::at(now).is_over(now));
    }
}
