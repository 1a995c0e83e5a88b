//! A neural network of three layers: former values, hidden units, the next value.
//!
//! Trained by stochastic gradient descent, with weights that its seed repeats. The thesis
//! names only the number of layers.

use std::collections::VecDeque;

use super::Predictor;

const N_INPUTS: usize = 8;
const N_HIDDEN: usize = 6;
const EPOCHS: u32 = 60;

/// A network of 8 former values, 6 hidden units and the next value.
#[derive(Clone, Debug)]
pub struct Neural {
    mean: f64,
    deviation: f64,
    /// Weights of the inputs of each hidden unit, its bias last.
    hidden: [[f64; N_INPUTS + 1]; N_HIDDEN],
    /// Weights of hidden units, the bias last.
    output: [f64; N_HIDDEN + 1],
    latest: VecDeque<f64>,
}

impl Neural {
    /// Trained with values; `None` if they are too few or all the same.
    #[must_use]
    pub fn train(values: &[f64], seed: u64) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n).sqrt();
        if values.len() <= 2 * N_INPUTS || deviation <= 0.0 {
            return None;
        }
        let mut state = seed;
        let mut weight = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / (1_u64 << 31) as f64 * 0.6 - 0.3
        };
        let mut network = Self {
            mean,
            deviation,
            hidden: std::array::from_fn(|_| std::array::from_fn(|_| weight())),
            output: std::array::from_fn(|_| weight()),
            latest: vec![0.0; N_INPUTS].into(),
        };
        let values: Vec<_> = values.iter().map(|it| (it - mean) / deviation).collect();
        for epoch in 0..EPOCHS {
            let rate = 0.02 / (1.0 + f64::from(epoch) / 10.0);
            for window in values.windows(N_INPUTS + 1) {
                // The latest value first, as in `latest`.
                let inputs: [f64; N_INPUTS] = std::array::from_fn(|i| window[N_INPUTS - 1 - i]);
                network.learn(&inputs, window[N_INPUTS], rate);
            }
        }
        Some(network)
    }

    fn units(&self, inputs: impl Iterator<Item = f64> + Clone) -> [f64; N_HIDDEN] {
        std::array::from_fn(|unit| {
            let weights = &self.hidden[unit];
            let sum: f64 = inputs.clone().zip(weights).map(|(x, w)| x * w).sum();
            (sum + weights[N_INPUTS]).tanh()
        })
    }

    fn answer(&self, units: &[f64; N_HIDDEN]) -> f64 {
        let sum: f64 = units.iter().zip(&self.output).map(|(x, w)| x * w).sum();
        sum + self.output[N_HIDDEN]
    }

    fn learn(&mut self, inputs: &[f64; N_INPUTS], wanted: f64, rate: f64) {
        let units = self.units(inputs.iter().copied());
        let error = self.answer(&units) - wanted;
        for (unit, &value) in units.iter().enumerate() {
            let slope = error * self.output[unit] * (1.0 - value * value);
            self.output[unit] -= rate * error * value;
            for (weight, input) in self.hidden[unit].iter_mut().zip(inputs) {
                *weight -= rate * slope * input;
            }
            self.hidden[unit][N_INPUTS] -= rate * slope;
        }
        self.output[N_HIDDEN] -= rate * error;
    }
}

impl Predictor for Neural {
    fn observe(&mut self, value: f64) {
        self.latest.push_front((value - self.mean) / self.deviation);
        self.latest.truncate(N_INPUTS);
    }

    fn predict(&self) -> f64 {
        let units = self.units(self.latest.iter().copied());
        self.answer(&units) * self.deviation + self.mean
    }
}
