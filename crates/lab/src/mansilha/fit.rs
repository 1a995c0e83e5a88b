//! What operations take, inferred from throughput (Mansilha et al. 2017, section 4.3.2 and
//! Table 4).

use tachonym_bench::stats::LineFit;

use super::catalogue::CHUNK_BYTES;

/// A point of the curve that is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Requests that miss the first level, by all.
    pub(super) miss_ratio: f64,
    /// What reading a batch took, in nanoseconds.
    pub(super) read_ns: f64,
    /// Throughput, in Gbit/s.
    pub(super) gbps: f64,
}

/// d_L1.lookup and d_L1.insert with their asymptotic standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    /// Finding a chunk in the first level, in nanoseconds.
    pub(super) lookup_ns: f64,
    /// Its standard error.
    pub(super) lookup_error_ns: f64,
    /// Inserting a batch in the first level, in nanoseconds.
    pub(super) insert_ns: f64,
    /// Its standard error.
    pub(super) insert_error_ns: f64,
    /// Root of the mean square of what is left, over the degrees of freedom: in Gbit/s if
    /// throughput was fitted, in nanoseconds if it was time.
    pub(super) rmse: f64,
}

/// Most steps of the fit.
const MAX_STEPS: usize = 100;

/// How often a step of it is halved at most, which leads where a chunk takes no time.
const MAX_HALVINGS: usize = 60;

/// Bits of a chunk: nanoseconds divide them to Gbit/s.
const CHUNK_BITS: f64 = (CHUNK_BYTES * 8) as f64;

impl Fitted {
    /// Equations 7 to 10 with the least squares of throughput, by Gauss and Newton; `None`
    /// unless there are two points that differ in misses, and a third, or if steps do not end at
    /// times that make sense. Errors are the roots of the diagonal of `s² (JᵀJ)⁻¹`, as programs
    /// that fit curves give them.
    pub(super) fn by_throughput(points: &[Point]) -> Option<Self> {
        // Throughput has no meaning where a chunk takes no time.
        let makes_sense = |lookup: f64, insert: f64| {
            let mut all = points.iter();
            all.all(|point| chunk_ns(point, lookup, insert) > 0.0)
        };
        let line = Self::by_time(points)?;
        let (mut lookup, mut insert) = (line.lookup_ns, line.insert_ns);
        if !makes_sense(lookup, insert) {
            // This does: no chunk takes less than it took.
            lookup = points.iter().map(own_ns).fold(f64::MIN, f64::max);
            insert = 0.0;
        }
        let mut is_done = false;
        for _ in 0..MAX_STEPS {
            let normal = Normal::at(points, lookup, insert);
            let (by_lookup, by_insert) = normal.step()?;
            let parts = std::iter::successors(Some(1.0), |part| Some(part * 0.5));
            let mut parts = parts.take(MAX_HALVINGS);
            let part = parts
                .find(|part| makes_sense(lookup + part * by_lookup, insert + part * by_insert))?;
            lookup += part * by_lookup;
            insert += part * by_insert;
            is_done = by_lookup.abs() + by_insert.abs() < 1e-9 * (lookup.abs() + insert.abs());
            if is_done {
                break;
            }
        }
        if !is_done {
            return None;
        }
        let normal = Normal::at(points, lookup, insert);
        let variance = normal.squares / (points.len() - 2) as f64;
        let determinant = normal.determinant();
        Some(Self {
            lookup_ns: lookup,
            lookup_error_ns: (variance * normal.insert_insert / determinant).sqrt(),
            insert_ns: insert,
            insert_error_ns: (variance * normal.lookup_lookup / determinant).sqrt(),
            rmse: variance.sqrt(),
        })
    }

    /// The same equations with the least squares of a chunk's time without its part of
    /// reads, in which they are linear. Throughput counts most where it is highest, and there
    /// hardly anything is inserted; this does not. `None` as there.
    pub(super) fn by_time(points: &[Point]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let points: Vec<(f64, f64)> = points
            .iter()
            .map(|point| (point.miss_ratio, own_ns(point)))
            .collect();
        let line = LineFit::of(&points)?;
        let n = points.len() as f64;
        let mean = points.iter().map(|point| point.0).sum::<f64>() / n;
        let spread: f64 = points.iter().map(|point| (point.0 - mean).powi(2)).sum();
        let left = points.iter();
        let left = left.map(|(x, y)| (y - line.intercept - line.slope * x).powi(2));
        let variance = left.sum::<f64>() / (n - 2.0);
        Some(Self {
            lookup_ns: line.intercept,
            lookup_error_ns: (variance * (1.0 / n + mean * mean / spread)).sqrt(),
            insert_ns: line.slope,
            insert_error_ns: (variance / spread).sqrt(),
            rmse: variance.sqrt(),
        })
    }
}

/// What a chunk took without its part of reads.
fn own_ns(point: &Point) -> f64 {
    CHUNK_BITS / point.gbps - point.miss_ratio * point.read_ns
}

fn chunk_ns(point: &Point, lookup: f64, insert: f64) -> f64 {
    lookup + point.miss_ratio * (point.read_ns + insert)
}

/// `JᵀJ`, `Jᵀr` and the squares of what is left.
#[derive(Clone, Copy, Debug, Default)]
struct Normal {
    lookup_lookup: f64,
    lookup_insert: f64,
    insert_insert: f64,
    by_lookup: f64,
    by_insert: f64,
    squares: f64,
}

impl Normal {
    fn at(points: &[Point], lookup: f64, insert: f64) -> Self {
        let mut normal = Self::default();
        for point in points {
            let chunk_ns = chunk_ns(point, lookup, insert);
            let left = point.gbps - CHUNK_BITS / chunk_ns;
            let to_lookup = -CHUNK_BITS / (chunk_ns * chunk_ns);
            let to_insert = to_lookup * point.miss_ratio;
            normal.lookup_lookup += to_lookup * to_lookup;
            normal.lookup_insert += to_lookup * to_insert;
            normal.insert_insert += to_insert * to_insert;
            normal.by_lookup += to_lookup * left;
            normal.by_insert += to_insert * left;
            normal.squares += left * left;
        }
        normal
    }

    fn determinant(&self) -> f64 {
        self.lookup_lookup * self.insert_insert - self.lookup_insert * self.lookup_insert
    }

    fn step(&self) -> Option<(f64, f64)> {
        let determinant = self.determinant();
        if determinant.is_nan() || determinant <= 0.0 {
            return None;
        }
        Some((
            (self.insert_insert * self.by_lookup - self.lookup_insert * self.by_insert)
                / determinant,
            (self.lookup_lookup * self.by_insert - self.lookup_insert * self.by_lookup)
                / determinant,
        ))
    }
}

/// Root of the mean square of differences; 0 of none.
pub(super) fn rmse(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (sum, n) = pairs.into_iter().fold((0.0, 0.0), |(sum, n), (a, b)| {
        (sum + (a - b) * (a - b), n + 1.0)
    });
    if n > 0.0 { f64::sqrt(sum / n) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::model::Delays;
    use super::*;
    use tachonym_bench::random::Random;

    fn points(noise: f64) -> Vec<Point> {
        let mut random = Random::new(2);
        let delays = Delays {
            lookup_ns: 7_400.0,
            insert_ns: 42_100.0,
            read_ns: 160_000.0,
        };
        (0..20)
            .map(|nth| {
                let miss_ratio = 0.004 * f64::from(nth);
                let off = 1.0 + noise * (random.next_fraction() - 0.5);
                Point {
                    miss_ratio,
                    read_ns: delays.read_ns,
                    gbps: delays.serial_gbps(miss_ratio) * off,
                }
            })
            .collect()
    }

    #[test]
    fn the_fit_finds_what_points_were_made_of() {
        let exact = Fitted::by_throughput(&points(0.0)).expect("enough points");
        assert!((exact.lookup_ns - 7_400.0).abs() < 1e-3, "{exact:?}");
        assert!((exact.insert_ns - 42_100.0).abs() < 1e-2, "{exact:?}");
        assert!(exact.rmse < 1e-9 && exact.insert_error_ns < 1e-3);
        let noisy = Fitted::by_throughput(&points(0.04)).expect("enough points");
        let off = [
            (noisy.lookup_ns - 7_400.0) / noisy.lookup_error_ns,
            (noisy.insert_ns - 42_100.0) / noisy.insert_error_ns,
        ];
        assert!(off.iter().all(|off| off.abs() < 3.0), "{noisy:?}");
        assert!(noisy.lookup_error_ns > 5.0 && noisy.lookup_error_ns < 200.0);
        // Noise of two hundredths either way has a deviation of 0.04/√12 of 2.5 to 8.6 Gbit/s.
        assert!((0.02..0.11).contains(&noisy.rmse), "{noisy:?}");
    }

    #[test]
    fn times_are_fitted_as_a_line() {
        let exact = Fitted::by_time(&points(0.0)).expect("enough points");
        assert!((exact.lookup_ns - 7_400.0).abs() < 1e-3, "{exact:?}");
        assert!((exact.insert_ns - 42_100.0).abs() < 1e-2, "{exact:?}");
        // The textbook example: slope 0.6 ± 0.283, intercept 2.2 ± 0.938, s² 0.8.
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let points = points.map(|(miss_ratio, chunk_ns)| Point {
            miss_ratio,
            read_ns: 0.0,
            gbps: CHUNK_BITS / chunk_ns,
        });
        let line = Fitted::by_time(&points).expect("five points");
        let errors = [line.lookup_error_ns, line.insert_error_ns, line.rmse];
        let expected = [0.938_083, 0.282_843, 0.894_427];
        for (error, expected) in errors.into_iter().zip(expected) {
            assert!((error - expected).abs() < 1e-5, "{line:?}");
        }
    }

    #[test]
    fn times_that_no_line_is_near_have_a_fit_too() {
        // The line of least squares has less than nothing for the last.
        let points = [(0.0, 100.0), (0.05, 10.0), (1.0, 1.0)].map(|(miss_ratio, chunk_ns)| Point {
            miss_ratio,
            read_ns: 0.0,
            gbps: CHUNK_BITS / chunk_ns,
        });
        let line = Fitted::by_time(&points).expect("three points");
        assert!(line.lookup_ns + line.insert_ns < 0.0, "{line:?}");
        let found = Fitted::by_throughput(&points).expect("three points");
        let times = points.map(|point| chunk_ns(&point, found.lookup_ns, found.insert_ns));
        assert!(times.iter().all(|&it| it > 0.0), "{times:?}");
        // Most of the squares are of the fastest.
        assert!((times[2] - 1.0).abs() < 0.01, "{times:?}");
    }

    #[test]
    fn points_that_do_not_differ_have_no_fit() {
        let same = vec![points(0.0)[3]; 5];
        assert_eq!(Fitted::by_throughput(&same), None);
        assert_eq!(Fitted::by_throughput(&points(0.0)[..2]), None);
    }

    #[test]
    fn differences_have_a_root_mean_square() {
        assert_eq!(rmse([(1.0, 4.0), (2.0, -2.0)]), f64::sqrt(12.5));
        assert_eq!(rmse([]), 0.0);
    }
}
