//! AR and ARMA, with orders that Akaike's criterion chooses.
//!
//! Fitted by least squares; the moving average of ARMA on residuals of a long AR (Hannan and
//! Rissanen 1982).

use std::collections::VecDeque;

use super::Predictor;

/// Which terms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearKind {
    /// Former values.
    Ar,
    /// Former values and former errors.
    Arma,
}

const MOST_AR: usize = 10;
const MOST_MA: usize = 3;

/// A value by former values and errors.
#[derive(Clone, Debug)]
pub struct Linear {
    mean: f64,
    ar: Vec<f64>,
    ma: Vec<f64>,
    values: VecDeque<f64>,
    errors: VecDeque<f64>,
}

impl Linear {
    /// Fitted to values; `None` if they are too few.
    #[must_use]
    pub fn fit(kind: LinearKind, values: &[f64]) -> Option<Self> {
        if values.len() < 8 * MOST_AR {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let values: Vec<_> = values.iter().map(|it| it - mean).collect();
        let none = vec![0.0; values.len()];
        let (_, long) = least_squares(&values, &none, (MOST_AR, 0))?;
        let mut residuals = none;
        for at in MOST_AR..values.len() {
            let known: f64 = (long.iter().enumerate())
                .map(|(lag, by)| by * values[at - 1 - lag])
                .sum();
            residuals[at] = values[at] - known;
        }
        let most_ma = match kind {
            LinearKind::Ar => 0,
            LinearKind::Arma => MOST_MA,
        };
        let mut best: Option<(f64, (usize, usize), Vec<f64>)> = None;
        for p in 1..=MOST_AR {
            for q in most_ma.min(1)..=most_ma {
                let Some((variance, found)) = least_squares(&values, &residuals, (p, q)) else {
                    continue;
                };
                // Akaike's criterion.
                let aic = values.len() as f64 * variance.ln() + 2.0 * (p + q) as f64;
                if best.as_ref().is_none_or(|it| aic < it.0) {
                    best = Some((aic, (p, q), found));
                }
            }
        }
        let (_, (p, q), mut ar) = best?;
        let ma = ar.split_off(p);
        Some(Self {
            mean,
            ar,
            ma,
            values: vec![0.0; p].into(),
            errors: vec![0.0; q].into(),
        })
    }

    /// Orders of the autoregressive part and of the moving average.
    #[must_use]
    pub fn orders(&self) -> (usize, usize) {
        (self.ar.len(), self.ma.len())
    }
}

impl Predictor for Linear {
    fn observe(&mut self, value: f64) {
        let error = value - self.predict();
        self.values.push_front(value - self.mean);
        self.values.truncate(self.ar.len());
        self.errors.push_front(error);
        self.errors.truncate(self.ma.len());
    }

    fn predict(&self) -> f64 {
        let by_values = self.ar.iter().zip(&self.values).map(|(a, b)| a * b);
        let by_errors = self.ma.iter().zip(&self.errors).map(|(a, b)| a * b);
        self.mean + by_values.sum::<f64>() + by_errors.sum::<f64>()
    }
}

/// Variance of what is left, and coefficients of `p` former values and `q` former errors.
fn least_squares(
    values: &[f64],
    errors: &[f64],
    (p, q): (usize, usize),
) -> Option<(f64, Vec<f64>)> {
    let n = p + q;
    let term = |at: usize, nth: usize| {
        if nth < p {
            values[at - 1 - nth]
        } else {
            errors[at - 1 - (nth - p)]
        }
    };
    // All orders are fitted to the same values, so that their criteria compare.
    let first = MOST_AR + MOST_MA;
    let mut rows = vec![vec![0.0; n + 1]; n];
    for (at, value) in values.iter().enumerate().skip(first) {
        for (i, row) in rows.iter_mut().enumerate() {
            for (j, cell) in row[..n].iter_mut().enumerate() {
                *cell += term(at, i) * term(at, j);
            }
            row[n] += term(at, i) * value;
        }
    }
    let found = solve(rows)?;
    let left = (first..values.len()).map(|at| {
        let known: f64 = found
            .iter()
            .enumerate()
            .map(|(i, by)| by * term(at, i))
            .sum();
        (values[at] - known).powi(2)
    });
    let variance = left.sum::<f64>() / (values.len() - first) as f64;
    (variance > 0.0).then_some((variance, found))
}

/// Gaussian elimination with pivots; `None` if there is no single solution.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for at in 0..n {
        let pivot = (at..n).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < 1e-12 {
            return None;
        }
        let lead = rows[at].clone();
        for (other, row) in rows.iter_mut().enumerate() {
            if other != at {
                let by = row[at] / lead[at];
                row.iter_mut()
                    .zip(&lead)
                    .for_each(|(cell, it)| *cell -= by * it);
            }
        }
    }
    Some((0..n).map(|at| rows[at][n] / rows[at][at]).collect())
}
