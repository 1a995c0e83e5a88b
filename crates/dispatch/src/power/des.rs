//! Double exponential smoothing: Iqbal 2013, section 6.3.1, equations 6.1 to 6.3.

use std::collections::VecDeque;

/// The smoothing constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DesConstants {
    /// How much of the level is the latest value: alpha.
    pub alpha: f64,
    /// How much of the trend is the latest change of the level: gamma.
    pub gamma: f64,
}

impl Default for DesConstants {
    /// Where nothing was learned; the thesis names no values.
    fn default() -> Self {
        Self {
            alpha: 0.3,
            gamma: 0.05,
        }
    }
}

impl DesConstants {
    /// Those with the least squared error over these values: a grid in steps of a tenth, then
    /// steps that are halved down to 0.003. Defaults for fewer than four values.
    #[must_use]
    pub fn fit(values: &[f64]) -> Self {
        if values.len() < 4 {
            return Self::default();
        }
        let mut best = (f64::INFINITY, Self::default());
        let mut consider = |alpha: f64, gamma: f64| {
            let constants = Self {
                alpha: alpha.clamp(0.0, 1.0),
                gamma: gamma.clamp(0.0, 1.0),
            };
            let error = constants.squared_error(values);
            if error < best.0 {
                best = (error, constants);
            }
            best.1
        };
        let mut at = Self::default();
        for alpha in 1..=10 {
            for gamma in 0..=10 {
                at = consider(f64::from(alpha) / 10.0, f64::from(gamma) / 10.0);
            }
        }
        let mut step = 0.05;
        while step > 0.002 {
            let before = at;
            for (up, right) in [(step, 0.0), (-step, 0.0), (0.0, step), (0.0, -step)] {
                at = consider(before.alpha + up, before.gamma + right);
            }
            if at == before {
                step /= 2.0;
            }
        }
        at
    }

    /// The sum of squares of the errors of all forecasts but the first.
    #[must_use]
    pub fn squared_error(self, values: &[f64]) -> f64 {
        let mut des = Des::new(self);
        let mut sum = 0.0;
        for (nth, &value) in values.iter().enumerate() {
            if nth > 0 {
                sum += (value - des.forecast()).powi(2);
            }
            des.observe(value);
        }
        sum
    }
}

/// Level and trend of a series.
#[derive(Clone, Copy, Debug)]
pub struct Des {
    constants: DesConstants,
    level: Option<f64>,
    trend: f64,
}

impl Des {
    /// A series of which nothing is known.
    #[must_use]
    pub const fn new(constants: DesConstants) -> Self {
        Self {
            constants,
            level: None,
            trend: 0.0,
        }
    }

    /// Takes the next value into account: equations 6.2 and 6.3.
    pub fn observe(&mut self, value: f64) {
        let Some(before) = self.level else {
            self.level = Some(value);
            return;
        };
        let DesConstants { alpha, gamma } = self.constants;
        let level = alpha * value + (1.0 - alpha) * (before + self.trend);
        self.trend = gamma * (level - before) + (1.0 - gamma) * self.trend;
        self.level = Some(level);
    }

    /// What comes next: equation 6.1. 0 before the first value.
    #[must_use]
    pub fn forecast(&self) -> f64 {
        self.level.map_or(0.0, |level| level + self.trend)
    }
}

/// How constants are learned on line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refit {
    /// Values between two fits.
    pub every: usize,
    /// The latest values that are fitted.
    pub window: usize,
}

/// A series whose constants follow it, or stay as they were trained.
#[derive(Clone, Debug)]
pub struct TrainedDes {
    des: Des,
    refit: Option<Refit>,
    window: VecDeque<f64>,
    n_since_fit: usize,
}

impl TrainedDes {
    /// With constants trained off line, which are learned on line from then on if there is a
    /// `refit`.
    #[must_use]
    pub fn new(constants: DesConstants, refit: Option<Refit>) -> Self {
        Self {
            des: Des::new(constants),
            refit,
            window: VecDeque::with_capacity(refit.map_or(0, |it| it.window)),
            n_since_fit: 0,
        }
    }

    /// Takes the next value into account.
    pub fn observe(&mut self, value: f64) {
        self.des.observe(value);
        let Some(Refit { every, window }) = self.refit else {
            return;
        };
        if self.window.len() >= window.max(1) {
            self.window.pop_front();
        }
        self.window.push_back(value);
        self.n_since_fit += 1;
        if self.n_since_fit >= every {
            self.n_since_fit = 0;
            self.des.constants = DesConstants::fit(self.window.make_contiguous());
        }
    }

    /// What comes next.
    #[must_use]
    pub fn forecast(&self) -> f64 {
        self.des.forecast()
    }

    /// The constants in use.
    #[must_use]
    pub const fn constants(&self) -> DesConstants {
        self.des.constants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_forecast_exactly_once_its_trend_is_known() {
        let mut des = Des::new(DesConstants {
            alpha: 1.0,
            gamma: 1.0,
        });
        [3.0, 5.0, 7.0].iter().for_each(|&value| des.observe(value));
        assert!((des.forecast() - 9.0).abs() < 1e-12);
    }

    #[test]
    fn equations_hold_step_by_step() {
        let mut des = Des::new(DesConstants {
            alpha: 0.5,
            gamma: 0.25,
        });
        [10.0, 20.0].iter().for_each(|&value| des.observe(value));
        // S = 5 + 5 · 1, b = 0.25 · 5.
        assert!((des.forecast() - 16.25).abs() < 1e-12);
    }

    #[test]
    fn training_is_not_worse_than_any_point_of_the_grid() {
        let values: Vec<f64> = (0..300)
            .map(|at| (f64::from(at) / 20.0).sin() * 50.0 + f64::from(at * 7919 % 13))
            .collect();
        let fitted = DesConstants::fit(&values).squared_error(&values);
        for alpha in 1..=10 {
            for gamma in 0..=10 {
                let other = DesConstants {
                    alpha: f64::from(alpha) / 10.0,
                    gamma: f64::from(gamma) / 10.0,
                };
                assert!(fitted <= other.squared_error(&values));
            }
        }
    }

    #[test]
    fn constants_follow_the_series_on_line_only_if_asked() {
        let refit = Refit {
            every: 16,
            window: 32,
        };
        let mut learns = TrainedDes::new(DesConstants::default(), Some(refit));
        let mut stays = TrainedDes::new(DesConstants::default(), None);
        for at in 0..64 {
            learns.observe(f64::from(at * at));
            stays.observe(f64::from(at * at));
        }
        assert_ne!(learns.constants(), DesConstants::default());
        assert_eq!(stays.constants(), DesConstants::default());
        assert_eq!(learns.window.len(), 32);
    }
}
