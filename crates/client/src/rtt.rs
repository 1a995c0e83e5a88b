//! Round-trip time and retransmission time-out (RFC 6298).

use std::time::Duration;

/// Smallest retransmission time-out: short enough for a data centre, long
/// enough that a scheduling pause is not taken for loss (Linux uses the same).
const MIN_RTO: Duration = Duration::from_millis(200);
/// Largest retransmission time-out: a name may come back into reach.
const MAX_RTO: Duration = Duration::from_secs(4);
/// Time-out before the first measurement (RFC 6298, section 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// Estimates the round-trip time from samples, and the time-out from that.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    min: Duration,
    rto: Duration,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            min: Duration::MAX,
            rto: INITIAL_RTO,
        }
    }
}

impl RttEstimator {
    /// Takes one measurement; of a segment that was requested once only
    /// (Karn's algorithm).
    pub fn add_sample(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                let deviation = smoothed.abs_diff(rtt);
                self.variation = (self.variation * 3 + deviation) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
        let smoothed = self.smoothed.unwrap_or_default();
        self.rto = (smoothed + self.variation * 4).clamp(MIN_RTO, MAX_RTO);
    }

    /// Doubles the time-out after one has run out (RFC 6298, section 5.5).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(MAX_RTO);
    }

    /// The retransmission time-out.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[must_use]
    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Smallest round-trip time seen; `None` before the first sample.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_smoothed_and_half_of_it_as_variation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), INITIAL_RTO);
        rtt.add_sample(Duration::from_millis(100));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(100)));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn the_time_out_stays_between_its_bounds() {
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.add_sample(Duration::from_micros(50));
        }
        assert_eq!(rtt.rto(), MIN_RTO);
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), MAX_RTO);
        assert_eq!(rtt.min(), Some(Duration::from_micros(50)));
    }
}
