//! How much traffic comes: Holt-Winters, as Iqbal 2013 has it (section 3.4.2).

use crate::random::Random;

/// Equation 3.8: a baseline, a trend, a season and noise.
///
/// The thesis leaves open the shape of the season, here a sine; the length of an interval,
/// here a second; and how the noise is proportional to the baseline: here its deviation is
/// `sigma` times that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateModel {
    /// Baseline, in millions of packets per second.
    pub a: f64,
    /// Trend, in millions of packets per second, per second.
    pub b: f64,
    /// Amplitude of the season, in millions of packets per second.
    pub c: f64,
    /// Length of the season, in seconds.
    pub m: f64,
    /// Deviation of the noise by the baseline.
    pub sigma: f64,
}

impl RateModel {
    /// The same rate for ever, in packets per second.
    #[must_use]
    pub const fn constant(rate_pps: f64) -> Self {
        Self {
            a: rate_pps / 1e6,
            b: 0.0,
            c: 0.0,
            m: 1.0,
            sigma: 0.0,
        }
    }

    /// The rate in the interval that begins this many seconds after the start, in packets per
    /// second; never below 0.
    pub fn rate_pps(&self, at_s: f64, random: &mut Random) -> f64 {
        let season = (std::f64::consts::TAU * (at_s % self.m) / self.m).sin();
        let noise = random.normal(self.sigma * self.a);
        ((self.a + self.b * at_s + self.c * season + noise) * 1e6).max(0.0)
    }
}

/// Table 5.1, set 1: the sum is less than 16 cores do.
pub const SET_1: [RateModel; 4] = [
    model(0.6, 0.03, 0.3, 40.0, 0.1),
    model(0.7, -0.025, 0.1, 25.0, 0.05),
    model(0.3, 0.01, 0.07, 60.0, 0.25),
    model(0.1, 0.005, 0.09, 600.0, 0.3),
];

/// Table 5.1, set 2: the sum is more than 16 cores do.
pub const SET_2: [RateModel; 4] = [
    model(1.2, 0.002, 0.3, 100.0, 0.3),
    model(1.0, -0.02, 0.15, 25.0, 0.05),
    model(0.7, 0.004, 0.25, 30.0, 0.25),
    model(0.4, 0.01, 0.18, 200.0, 0.3),
];

const fn model(a: f64, b: f64, c: f64, m: f64, sigma: f64) -> RateModel {
    RateModel { a, b, c, m, sigma }
}

/// The forecast by exponential smoothing, equations 3.4 to 3.7.
#[derive(Clone, Debug)]
pub struct HoltWinters {
    alpha: f64,
    beta: f64,
    gamma: f64,
    level: f64,
    slope: f64,
    season: Vec<f64>,
    /// Intervals seen, the first season's included.
    n_seen: usize,
}

impl HoltWinters {
    /// Starts from one season of values, whose mean is the level and whose distances from
    /// it are the season; the slope is 0.
    ///
    /// # Panics
    /// If the season is empty.
    #[must_use]
    pub fn new([alpha, beta, gamma]: [f64; 3], first_season: &[f64]) -> Self {
        assert!(!first_season.is_empty(), "a season has an interval");
        let level = first_season.iter().sum::<f64>() / first_season.len() as f64;
        Self {
            alpha,
            beta,
            gamma,
            level,
            slope: 0.0,
            season: first_season.iter().map(|y| y - level).collect(),
            n_seen: first_season.len(),
        }
    }

    /// What the next interval will bring.
    #[must_use]
    pub fn forecast(&self) -> f64 {
        self.level + self.slope + self.season[self.n_seen % self.season.len()]
    }

    /// Learns what it brought.
    pub fn handle_value(&mut self, y: f64) {
        let place = self.n_seen % self.season.len();
        let season = self.season[place];
        let level = self.alpha * (y - season) + (1.0 - self.alpha) * (self.level + self.slope);
        self.slope = self.beta * (level - self.level) + (1.0 - self.beta) * self.slope;
        self.season[place] = self.gamma * (y - level) + (1.0 - self.gamma) * season;
        self.level = level;
        self.n_seen += 1;
    }

    /// The parameters, in steps of a tenth, whose forecasts of these values have the
    /// least mean squared error, and that error. The season has `m` values; `None` if
    /// there are no more than that.
    #[must_use]
    pub fn fit(values: &[f64], m: usize) -> Option<([f64; 3], f64)> {
        if m == 0 || values.len() <= m {
            return None;
        }
        let (first, rest) = values.split_at(m);
        let grid = || (0..=10).map(|n| f64::from(n) / 10.0);
        let mut best: Option<([f64; 3], f64)> = None;
        for parameters in
            grid().flat_map(|a| grid().flat_map(move |b| grid().map(move |c| [a, b, c])))
        {
            let mut model = Self::new(parameters, first);
            let mut sum = 0.0;
            for &y in rest {
                sum += (y - model.forecast()).powi(2);
                model.handle_value(y);
            }
            let error = sum / rest.len() as f64;
            if best.is_none_or(|(_, least)| error < least) {
                best = Some((parameters, error));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_baseline_trend_season_and_noise() {
        let mut random = Random::new(4);
        let still = RateModel {
            sigma: 0.0,
            ..SET_1[0]
        };
        assert!((still.rate_pps(0.0, &mut random) - 6e5).abs() < 1e-3);
        // A quarter of the season of 40 s.
        assert!((still.rate_pps(10.0, &mut random) - 1.2e6).abs() < 1e-3);
        let n = 20_000;
        let draws: Vec<f64> = (0..n)
            .map(|_| SET_1[0].rate_pps(0.0, &mut random))
            .collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 6e5).abs() < 2e3 && (variance.sqrt() - 6e4).abs() < 2e3);
        // S2 of set 1 would fall below nothing.
        let falling = RateModel {
            sigma: 0.0,
            ..SET_1[1]
        };
        assert!(falling.rate_pps(60.0, &mut random).abs() < 1e-9);
    }

    #[test]
    fn a_season_with_a_trend_is_learnt() {
        let y = |n: usize| 100.0 + 2.0 * n as f64 + [0.0, 9.0, -4.0, 3.0][n % 4];
        let values: Vec<f64> = (0..400).map(y).collect();
        let (parameters, error) = HoltWinters::fit(&values, 4).expect("enough values");
        let mut model = HoltWinters::new(parameters, &values[..4]);
        values[4..].iter().for_each(|&y| model.handle_value(y));
        assert!((model.forecast() - y(400)).abs() < 0.01, "{parameters:?}");
        assert!(error < 2.0, "{error}");
        assert!(HoltWinters::fit(&values[..4], 4).is_none());
    }
}
