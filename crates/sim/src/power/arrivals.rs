//! When packets arrive at cores that sleep: drawn, or by given rates.

use crate::random::Random;

/// Packets of two days in some seconds of virtual time: this project's own rule, since
/// the published traces are in drawings only. A sine of two periods, and on it a deviation
/// that lasts some intervals; packets come by chance (Poisson).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoDays {
    /// Packets per second on average.
    pub mean_pps: f64,
    /// Amplitude of a day by the mean.
    pub swing: f64,
    /// Deviation of what lasts some intervals, by the mean.
    pub noise: f64,
    /// How long two days take.
    pub seconds: f64,
}

/// How long a rate lasts.
const RATE_S: f64 = 500e-6;

impl TwoDays {
    /// When packets arrive.
    #[must_use]
    pub fn arrivals_ns(&self, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut deviation = 0.0;
        let n_rates = (self.seconds / RATE_S).ceil() as u32;
        let rates = (0..n_rates).map(|nth| {
            // A tenth of the deviation is forgotten each time.
            deviation = 0.9 * deviation + random.normal(self.noise * 0.19_f64.sqrt());
            let day = (std::f64::consts::TAU * 2.0 * f64::from(nth) / f64::from(n_rates)).sin();
            self.mean_pps * (1.0 + self.swing * day + deviation)
        });
        let rates: Vec<_> = rates.collect();
        arrivals_of(&rates, self.seconds, seed)
    }
}

/// When packets arrive by chance, at these rates, in packets per second, that divide `seconds`
/// among them.
#[must_use]
pub fn arrivals_of(rates_pps: &[f64], seconds: f64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed.wrapping_add(1));
    let each_s = seconds / rates_pps.len().max(1) as f64;
    let mut arrivals = Vec::new();
    // How much of the next gap is left, in gaps of mean one.
    let mut left = random.exponential(1.0);
    for (nth, &rate) in rates_pps.iter().enumerate() {
        let mut at_s = nth as f64 * each_s;
        let end_s = at_s + each_s;
        while rate > 0.0 && at_s + left / rate < end_s {
            at_s += left / rate;
            arrivals.push((at_s * 1e9) as u64);
            left = random.exponential(1.0);
        }
        left = (left - (end_s - at_s) * rate.max(0.0)).max(0.0);
    }
    arrivals
}

/// Packets of each interval.
#[must_use]
pub fn counts(arrivals_ns: &[u64], interval_ns: u64, end_ns: u64) -> Vec<f64> {
    let mut counts = vec![0.0; (end_ns / interval_ns) as usize];
    for at_ns in arrivals_ns {
        if let Some(count) = counts.get_mut((at_ns / interval_ns) as usize) {
            *count += 1.0;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_repeats_and_has_its_mean() {
        let traffic = TwoDays {
            mean_pps: 100_000.0,
            swing: 0.2,
            noise: 0.05,
            seconds: 0.5,
        };
        let arrivals = traffic.arrivals_ns(7);
        assert_eq!(arrivals, traffic.arrivals_ns(7));
        assert!((arrivals.len() as f64 - 50_000.0).abs() < 2_000.0);
        assert!(arrivals.windows(2).all(|it| it[0] <= it[1]));
    }
}
