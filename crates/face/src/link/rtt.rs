//! Retransmission time-out of a link, by RFC 6298.
//!
//! Owns the estimate; takes samples and time-outs as arguments.

use std::time::Duration;

const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Peers gather acknowledgements for some milliseconds, and the machines at
/// both ends may be busy for longer.
const MIN_RTO: Duration = Duration::from_millis(50);
const MAX_RTO: Duration = Duration::from_secs(10);

/// The estimate of one link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    rto: Duration,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            rto: INITIAL_RTO,
        }
    }
}

impl RttEstimator {
    /// How long to wait for an acknowledgement.
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }

    /// Takes the round-trip time of something that was sent once (RFC 6298,
    /// section 2; Karn's rule is the caller's).
    pub(crate) fn add_sample(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
        let rto = self.smoothed.unwrap_or(rtt) + self.variation * 4;
        self.rto = rto.clamp(MIN_RTO, MAX_RTO);
    }

    /// Waits twice as long from now on (section 5.5), until the next sample.
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(MAX_RTO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_link_is_waited_for_a_little_longer_than_its_round_trip() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), INITIAL_RTO);
        for _ in 0..100 {
            rtt.add_sample(Duration::from_millis(200));
        }
        assert!(rtt.rto() >= Duration::from_millis(200));
        assert!(rtt.rto() < Duration::from_millis(210), "{:?}", rtt.rto());
    }

    #[test]
    fn waiting_doubles_up_to_a_limit_and_a_sample_ends_that() {
        let mut rtt = RttEstimator::default();
        for _ in 0..10 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), MAX_RTO);
        rtt.add_sample(Duration::from_micros(10));
        assert_eq!(rtt.rto(), MIN_RTO);
    }
}
