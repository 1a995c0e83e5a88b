//! Round-trip times, and how long to wait for an answer.

use std::time::Duration;

const INITIAL_RTO: Duration = Duration::from_secs(1);
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(60);

/// Mean-deviation estimator of round-trip times (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RttEstimator {
    srtt_ns: u64,
    rttvar_ns: u64,
    has_samples: bool,
}

impl RttEstimator {
    pub(super) fn add(&mut self, rtt: Duration) {
        let rtt_ns = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX / 8);
        let rtt_ns = rtt_ns.min(u64::MAX / 8);
        if self.has_samples {
            let error_ns = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = (3 * self.rttvar_ns) / 4 + error_ns / 4;
            self.srtt_ns = self.srtt_ns / 8 * 7 + rtt_ns / 8;
        } else {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
            self.has_samples = true;
        }
    }

    /// Smoothed round-trip time; 0 before the first sample.
    pub(super) fn srtt_ns(&self) -> u64 {
        self.srtt_ns
    }

    /// How long to wait for an answer before taking it for lost.
    pub(super) fn rto(&self) -> Duration {
        if !self.has_samples {
            return INITIAL_RTO;
        }
        let rto_ns = self
            .srtt_ns
            .saturating_add(self.rttvar_ns.saturating_mul(4));
        Duration::from_nanos(rto_ns).clamp(MIN_RTO, MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rto_follows_the_mean_deviation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), INITIAL_RTO);
        rtt.add(Duration::from_millis(400));
        // SRTT 400 ms, RTTVAR 200 ms.
        assert_eq!(rtt.rto(), Duration::from_millis(1200));
        rtt.add(Duration::from_millis(400));
        assert_eq!(rtt.rto(), Duration::from_millis(1000));
        for _ in 0..200 {
            rtt.add(Duration::from_millis(1));
        }
        assert_eq!(rtt.rto(), MIN_RTO);
        rtt.add(Duration::MAX);
        assert_eq!(rtt.rto(), MAX_RTO);
    }
}
