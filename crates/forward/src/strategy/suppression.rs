//! When a retransmission is too early to go upstream again.
//!
//! Exponential back-off as NFD's developer guide describes it for best-route
//! and multicast (NFD Developer's Guide, section 5.3): the n-th retransmission
//! is held back if the last transmission is younger than
//! `initial × multiplier^(n-1)`, capped at a maximum.

use std::time::Duration;

/// Parameters of the back-off; the intervals are whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Suppression {
    pub(crate) initial_ms: u32,
    pub(crate) max_ms: u32,
    pub(crate) multiplier: f64,
}

impl Default for Suppression {
    fn default() -> Self {
        Self {
            initial_ms: 10,
            max_ms: 250,
            multiplier: 2.0,
        }
    }
}

/// The interval that one entry or one upstream has reached; fits the tables'
/// inline state. Zero stands for the initial interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IntervalMs(pub(crate) u32);

impl Suppression {
    /// Whether the last transmission, `age` ago, is too young at `interval`.
    pub(crate) fn holds_back(&self, interval: IntervalMs, age: Duration) -> bool {
        age < Duration::from_millis(u64::from(self.reached(interval)))
    }

    /// The interval after another retransmission went upstream.
    pub(crate) fn grown(&self, interval: IntervalMs) -> IntervalMs {
        // A float cast to u32 saturates, and `max_ms` bounds what it leaves.
        let grown_ms = (f64::from(self.reached(interval)) * self.multiplier) as u32;
        IntervalMs(grown_ms.min(self.max_ms))
    }

    fn reached(&self, interval: IntervalMs) -> u32 {
        if interval.0 == 0 {
            self.initial_ms
        } else {
            interval.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_doubles_from_10_ms_to_250_ms() {
        let suppression = Suppression::default();
        let mut interval = IntervalMs::default();
        let mut seen_ms = Vec::new();
        for _ in 0..7 {
            let ms = suppression.reached(interval);
            assert!(suppression.holds_back(
                interval,
                Duration::from_nanos(u64::from(ms) * 1_000_000 - 1)
            ));
            assert!(!suppression.holds_back(interval, Duration::from_millis(u64::from(ms))));
            seen_ms.push(ms);
            interval = suppression.grown(interval);
        }
        assert_eq!(seen_ms, [10, 20, 40, 80, 160, 250, 250]);
    }

    #[test]
    fn huge_multiplier_stops_at_the_maximum() {
        let suppression = Suppression {
            multiplier: f64::MAX,
            ..Suppression::default()
        };
        assert_eq!(suppression.grown(IntervalMs(100)), IntervalMs(250));
    }
}
