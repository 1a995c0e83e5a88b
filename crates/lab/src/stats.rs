//! Figures from samples: a latency histogram of fixed size, and medians with
//! their spread over rounds.
//!
//! Refuses to know what is measured. Reports are built in
//! [`crate::exchange::report`].

use serde::Serialize;

/// Sub-buckets of each power of two: a recorded value is off by at most
/// 1/64, that is 1.6 %.
const SUB_BUCKETS: usize = 64;
const SUB_BITS: u32 = SUB_BUCKETS.trailing_zeros();
const N_BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB_BUCKETS;

/// Counts of durations in buckets whose width grows with the value.
///
/// Takes any `u64`; its memory does not depend on what is recorded.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    n_values: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; N_BUCKETS],
            n_values: 0,
            max_ns: 0,
        }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value_ns: u64) {
        self.counts[bucket_of(value_ns)] += 1;
        self.n_values += 1;
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.n_values += other.n_values;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many values were recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.n_values
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_values == 0
    }

    /// The largest value, exactly; 0 if nothing was recorded.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The smallest bucket bound that at least `permille` thousandths of the
    /// values do not exceed, never above the maximum; 0 if empty.
    #[must_use]
    pub fn quantile_ns(&self, permille: u64) -> u64 {
        let rank = (self.n_values * permille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (idx, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound_of(idx).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// Values below [`SUB_BUCKETS`] have a bucket each; above, the leading bit
/// chooses the group and the next bits the bucket in it.
fn bucket_of(value: u64) -> usize {
    let Some(leading) = value.checked_ilog2() else {
        return 0;
    };
    if leading < SUB_BITS {
        return value as usize;
    }
    let shift = leading - SUB_BITS;
    let sub = (value >> shift) as usize - SUB_BUCKETS;
    (shift as usize + 1) * SUB_BUCKETS + sub
}

/// The largest value that falls in bucket `idx`.
fn upper_bound_of(idx: usize) -> u64 {
    if idx < SUB_BUCKETS {
        return idx as u64;
    }
    let shift = (idx / SUB_BUCKETS - 1) as u32;
    let first = ((SUB_BUCKETS + idx % SUB_BUCKETS) as u64) << shift;
    first + ((1_u64 << shift) - 1)
}

/// Median and spread of one figure over several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
}

/// The value at `fraction` of the way through `sorted`, linear between
/// neighbours; 0 if empty.
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// How much y grows with each x.
    pub slope: f64,
    /// y where x is 0.
    pub intercept: f64,
    /// The share of y's variance that the line explains, 0 to 1; 1 if y does
    /// not vary.
    pub r_squared: f64,
}

impl Line {
    /// The line through `points`, each x and y; `None` unless two differ in x.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        for value in 0..64 {
            histogram.record(value);
        }
        assert_eq!(histogram.len(), 64);
        assert_eq!(histogram.quantile_ns(500), 31);
        assert_eq!(histogram.quantile_ns(1_000), 63);
        assert_eq!(histogram.quantile_ns(0), 0);
    }

    #[test]
    fn every_value_lies_within_its_bucket_and_a_64th() {
        let samples = (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [
                power - 1,
                power,
                power + power / 3,
                power.saturating_mul(2) - 1,
            ]
        });
        for value in samples.chain([u64::MAX]) {
            let idx = bucket_of(value);
            assert!(idx < N_BUCKETS, "{value}");
            let upper = upper_bound_of(idx);
            assert!(upper >= value, "{value} > {upper}");
            assert!(upper - value <= value / 64, "{value} is far from {upper}");
            assert!(idx == 0 || upper_bound_of(idx - 1) < value, "{value}");
        }
    }

    #[test]
    fn quantiles_agree_with_a_sorted_list() {
        let values: Vec<u64> = (1..=10_000_u64).map(|i| i * i % 7_919 * 131).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let (mut whole, mut half) = (Histogram::default(), Histogram::default());
        for (i, &value) in values.iter().enumerate() {
            if i % 2 == 0 { &mut whole } else { &mut half }.record(value);
        }
        whole.merge(&half);
        for permille in [1, 100, 500, 900, 990, 999, 1_000] {
            let exact = sorted[(10_000 * permille as usize).div_ceil(1_000) - 1];
            let got = whole.quantile_ns(permille);
            assert!(
                got >= exact && got - exact <= exact / 64,
                "p{permille}: {got} {exact}"
            );
        }
        assert_eq!(whole.max_ns(), sorted[9_999]);
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        assert!(Histogram::default().is_empty());
        assert_eq!(Histogram::default().quantile_ns(999), 0);
    }

    #[test]
    fn spread_interpolates_between_rounds() {
        let spread = Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).expect("five values");
        assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 5.0));
        assert!((spread.p10 - 1.4).abs() < 1e-9 && (spread.p90 - 4.6).abs() < 1e-9);
        assert_eq!(Spread::of(&[2.0, 4.0]).map(|s| s.median), Some(3.0));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_line_goes_through_points_that_lie_on_one() {
        let points: Vec<_> = (0..5)
            .map(|x| (f64::from(x), 7.0 + 3.0 * f64::from(x)))
            .collect();
        let line = Line::fit(&points).expect("five points");
        assert!((line.slope - 3.0).abs() < 1e-9 && (line.intercept - 7.0).abs() < 1e-9);
        assert!((line.r_squared - 1.0).abs() < 1e-9);
        // The textbook example: slope 0.6, intercept 2.2, r² 0.6.
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let line = Line::fit(&points).expect("five points");
        assert!((line.slope - 0.6).abs() < 1e-9 && (line.intercept - 2.2).abs() < 1e-9);
        assert!((line.r_squared - 0.6).abs() < 1e-9);
    }

    #[test]
    fn points_above_each_other_have_no_line() {
        assert_eq!(Line::fit(&[]), None);
        assert_eq!(Line::fit(&[(1.0, 1.0), (1.0, 2.0)]), None);
        let flat = Line::fit(&[(1.0, 4.0), (2.0, 4.0)]).expect("two points");
        assert_eq!((flat.slope, flat.r_squared), (0.0, 1.0));
    }
}
