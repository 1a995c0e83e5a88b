//! Statistics: medians with their spread, means with their confidence, lines, histograms.

use serde::{Deserialize, Serialize};

/// Median and spread of one figure over several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the rounds lie below.
    pub median: f64,
    /// A tenth of the rounds lie below (interpolated).
    pub p10: f64,
    /// A tenth of the rounds lie above (interpolated).
    pub p90: f64,
    /// Smallest round.
    pub min: f64,
    /// Largest round.
    pub max: f64,
    /// How many rounds.
    pub n_rounds: usize,
}

impl Spread {
    /// The spread of `values`; `None` if there are none. NaN sorts last.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median: interpolated(&sorted, 0.5),
            p10: interpolated(&sorted, 0.1),
            p90: interpolated(&sorted, 0.9),
            min: *sorted.first()?,
            max: *sorted.last()?,
            n_rounds: sorted.len(),
        })
    }

    /// The spread in another unit: every value times `factor`, which is positive.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            p10: self.p10 * factor,
            p90: self.p90 * factor,
            min: self.min * factor,
            max: self.max * factor,
            n_rounds: self.n_rounds,
        }
    }

    /// The spread of the ratios of `of` to `by`, round by round.
    #[must_use]
    pub fn of_ratios(of: &[f64], by: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = of.iter().zip(by).map(|(of, by)| of / by).collect();
        Self::of(&ratios)
    }
}

/// The mean of some runs, and how far the true mean may be with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half of the confidence interval's width; `None` of one run.
    pub half_width: Option<f64>,
}

/// 0.975 quantiles of Student's t by degrees of freedom, from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Mean {
    /// The mean of `values` with Student's interval; `None` if there are none. Beyond 31
    /// values the last quantile is taken, which is a little too large.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = (n > 1).then(|| {
            let deviation = (squares / (n - 1) as f64).sqrt();
            STUDENT[(n - 2).min(STUDENT.len() - 1)] * deviation / (n as f64).sqrt()
        });
        Some(Self { mean, half_width })
    }

    /// Whether the interval is narrower than the mean: a wider one tells not even the order
    /// of magnitude. One run is taken for what it is.
    #[must_use]
    pub fn is_informative(self) -> bool {
        self.half_width
            .is_none_or(|it| it < self.mean.abs() || it == 0.0)
    }

    /// The mean, unless its interval is so wide that it tells nothing.
    #[must_use]
    pub fn informed(self) -> Option<f64> {
        self.is_informative().then_some(self.mean)
    }
}

/// The median of `values`; 0 if there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(0.0, |spread| spread.median)
}

/// The value at `fraction` of the way through `sorted`, linear between neighbours; 0 if
/// empty.
fn interpolated(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last_idx) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let position = fraction * last_idx as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

/// The straight line that lies closest to some points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineFit {
    /// How much y grows with each x.
    pub slope: f64,
    /// y where x is 0.
    pub intercept: f64,
    /// The share of y's variance that the line explains, 0 to 1; 1 if y does not vary.
    pub r_squared: f64,
}

impl LineFit {
    /// The line through `points`, each x and y; `None` unless two differ in x.
    #[must_use]
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
        let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            points
                .iter()
                .map(|p| term(p.0 - mean_x, p.1 - mean_y))
                .sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        // Written so that NaN, from no point at all, is refused as well.
        if xx.is_nan() || xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        Some(Self {
            slope,
            intercept: mean_y - slope * mean_x,
            r_squared: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 },
        })
    }
}

/// Counts of durations with two significant digits, in memory that does not depend on
/// what is recorded.
#[derive(Clone, Debug)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        let bounds = hdrhistogram::Histogram::new_with_bounds(1, MAX_NS, 2);
        Self(bounds.expect("bounds that are in order"))
    }
}

/// An hour; longer durations count as this.
const MAX_NS: u64 = 3_600_000_000_000;

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, value_ns: u64) {
        self.0.saturating_record(value_ns);
    }

    /// Adds what `other` has counted.
    ///
    /// # Panics
    /// Never: all have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the same bounds");
    }

    /// How many durations were recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The largest duration, within 1 %; 0 if nothing was recorded.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The duration that at least `permille` thousandths do not exceed, within 1 %; 0 if
    /// nothing was recorded.
    #[must_use]
    pub fn quantile_ns(&self, permille: u64) -> u64 {
        self.0.value_at_quantile(permille as f64 / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_interpolates_between_rounds() {
        let spread = Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).expect("five rounds");
        assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 5.0));
        assert!((spread.p10 - 1.4).abs() < 1e-12 && (spread.p90 - 4.6).abs() < 1e-12);
        assert_eq!(Spread::of(&[]), None);
        let ratios = Spread::of_ratios(&[2.0, 9.0], &[1.0, 3.0]).expect("two rounds");
        assert_eq!((ratios.min, ratios.max), (2.0, 3.0));
        let scaled = ratios.scaled(1_000.0);
        assert_eq!((scaled.median, scaled.n_rounds), (2_500.0, 2));
        assert_eq!(median(&[4.0, 1.0]), 2.5);
    }

    #[test]
    fn means_have_students_interval() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        // 2.776 √2.5 / √5.
        assert!((mean.mean - 3.0).abs() < 1e-12);
        assert!((mean.half_width.expect("several runs") - 1.963).abs() < 1e-3);
        assert_eq!(mean.informed(), Some(3.0));
        let one = Mean::of(&[4.0]).expect("one value");
        assert_eq!(
            (one.mean, one.half_width, one.informed()),
            (4.0, None, Some(4.0))
        );
        // 12.706 times 1 around 2.
        let wide = Mean::of(&[1.0, 3.0]).expect("two values");
        assert_eq!(wide.informed(), None);
        assert_eq!(Mean::of(&[]), None);
    }

    #[test]
    fn a_line_goes_through_its_points() {
        let line = LineFit::of(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).expect("three points");
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 1.0).abs() < 1e-12);
        assert!((line.r_squared - 1.0).abs() < 1e-12);
        assert_eq!(LineFit::of(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(LineFit::of(&[]), None);
    }

    #[test]
    fn a_histogram_has_quantiles_within_a_hundredth() {
        let mut one = Histogram::default();
        let mut other = Histogram::default();
        for value in 1..=1_000_u64 {
            if value % 2 == 0 { &mut one } else { &mut other }.record(value * 1_000);
        }
        one.merge(&other);
        assert_eq!(one.len(), 1_000);
        let median = one.quantile_ns(500) as f64;
        assert!((median / 500_000.0 - 1.0).abs() < 0.01, "{median}");
        one.record(u64::MAX);
        assert!(one.max_ns() >= MAX_NS);
        assert_eq!(Histogram::default().quantile_ns(990), 0);
    }
}
