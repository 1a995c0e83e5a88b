//! Predictors of a series, to compare with double exponential smoothing: Iqbal 2013,
//! section 6.4.3, Table 6.4.

mod linear;
mod neural;

use std::collections::VecDeque;

pub use linear::{Linear, LinearKind};
pub use neural::Neural;

use super::des::{Des, TrainedDes};

/// Values of the moving average of Table 6.4.
pub const MOVING_AVERAGE: usize = 8;

/// Predicts the next value of a series.
pub trait Predictor {
    /// Takes the next value into account.
    fn observe(&mut self, value: f64);
    /// What comes next; 0 before the first value.
    fn predict(&self) -> f64;
}

impl Predictor for Des {
    fn observe(&mut self, value: f64) {
        self.observe(value);
    }

    fn predict(&self) -> f64 {
        self.forecast()
    }
}

impl Predictor for TrainedDes {
    fn observe(&mut self, value: f64) {
        self.observe(value);
    }

    fn predict(&self) -> f64 {
        self.forecast()
    }
}

/// The mean of the latest values; with one, the last value.
#[derive(Clone, Debug)]
pub struct MovingAverage {
    values: VecDeque<f64>,
    n_values: usize,
}

impl MovingAverage {
    /// Of so many values, at least one.
    #[must_use]
    pub fn new(n_values: usize) -> Self {
        Self {
            values: VecDeque::new(),
            n_values: n_values.max(1),
        }
    }
}

impl Predictor for MovingAverage {
    fn observe(&mut self, value: f64) {
        if self.values.len() == self.n_values {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    fn predict(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }
}

/// Equation 6.8: mean square error by the variance of the series, which `predictor` is given
/// value by value. `None` for a series that never changes.
pub fn nmse(predictor: &mut dyn Predictor, values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n;
    let mut error = 0.0;
    for &value in values {
        error += (value - predictor.predict()).powi(2);
        predictor.observe(value);
    }
    (variance > 0.0).then(|| error / n / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An autoregressive series of the second order with noise of a fixed sequence.
    fn series(n: usize) -> Vec<f64> {
        let mut state = 1_u32;
        let mut values = vec![0.0, 0.0];
        for at in 2..n {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(state >> 8) / f64::from(1 << 24) - 0.5;
            values.push(1.2 * values[at - 1] - 0.5 * values[at - 2] + noise);
        }
        values.iter().map(|it| it + 20.0).collect()
    }

    fn error(predictor: &mut dyn Predictor, values: &[f64]) -> f64 {
        values[..600].iter().for_each(|&it| predictor.observe(it));
        nmse(predictor, &values[600..]).expect("the series changes")
    }

    #[test]
    fn models_of_the_series_beat_the_last_value_on_it() {
        let values = series(1_200);
        let last = error(&mut MovingAverage::new(1), &values);
        let train = &values[..600];
        let mut ar = Linear::fit(LinearKind::Ar, train).expect("enough values");
        let mut arma = Linear::fit(LinearKind::Arma, train).expect("enough values");
        let mut neural = Neural::train(train, 1).expect("enough values");
        assert!(ar.orders().0 >= 2, "{:?}", ar.orders());
        for predictor in [&mut ar as &mut dyn Predictor, &mut arma, &mut neural] {
            let found = error(predictor, &values);
            assert!(found < 0.95 * last, "{found} {last}");
        }
    }

    #[test]
    fn the_mean_has_an_error_of_one_and_the_truth_of_none() {
        struct Fixed(f64);
        impl Predictor for Fixed {
            fn observe(&mut self, _: f64) {}
            fn predict(&self) -> f64 {
                self.0
            }
        }
        let found = nmse(&mut Fixed(2.0), &[1.0, 2.0, 3.0]);
        assert!((found.expect("it changes") - 1.0).abs() < 1e-12);
        assert_eq!(nmse(&mut Fixed(2.0), &[2.0, 2.0]), None);
    }

    #[test]
    fn the_average_is_that_of_the_latest_values() {
        let mut average = MovingAverage::new(2);
        [1.0, 2.0, 4.0].iter().for_each(|&it| average.observe(it));
        assert!((average.predict() - 3.0).abs() < 1e-12);
    }
}
