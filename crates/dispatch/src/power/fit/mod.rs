//! Parameters of a server from measured watts, by least squares.
//!
//! Here are the fits of one device each. [`samples`] reads a table of a power meter,
//! [`mod@server`] fits a whole server to it.

pub mod samples;
pub mod server;

pub use samples::{Sample, SamplesError, read_samples};
pub use server::{FitError, Fitted, Hardware, server};

use super::model::CoreCurve;

/// A fit and how much of the variance it explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit<T> {
    /// What was fitted.
    pub value: T,
    /// The share of the variance of the watts that it explains: 1 less the squares of what is
    /// left by the squares about the mean. 1 if watts do not vary.
    pub r_squared: f64,
}

/// How the largest power of a core grows with its frequency (equation 6.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// See [`super::model::Cpu::nu`].
    pub nu: f64,
    /// See [`super::model::Cpu::active_min_w`].
    pub active_min_w: f64,
}

/// Exponents of a core's curve that are tried.
const SIGMAS: (f64, f64) = (0.001, 4.0);
/// Logarithms of the exponents of equation 6.8 that are tried: 0.5 to 100,000.
const LN_NUS: (f64, f64) = (-0.7, 11.6);
/// Steps of the coarse search, and halvings of the fine one.
const N_STEPS: usize = 200;
const N_FINE: usize = 60;

/// The energy of a byte or packet, from pairs of a rate and watts: a line through 0
/// (equations 6.9 and 6.10). `None` without a rate above 0.
#[must_use]
pub fn energy_j(points: &[(f64, f64)]) -> Option<Fit<f64>> {
    let value = factor(points.iter().copied())?;
    let r_squared = r_squared(points, |rate| value * rate);
    Some(Fit { value, r_squared })
}

/// The curve of a core, from pairs of its utilization, above 0 and at most 1, and watts.
/// `None` if fewer than two utilizations differ or a number is out of its range.
#[must_use]
pub fn curve(points: &[(f64, f64)]) -> Option<Fit<CoreCurve>> {
    let is_valid = |&(x, y): &(f64, f64)| x > 0.0 && x <= 1.0 && y.is_finite();
    if !points.iter().all(is_valid) || !varies(points) {
        return None;
    }
    // With an exponent given, the largest power is a factor, so only the exponent is sought.
    let of = |sigma: f64| {
        let max_w = factor(points.iter().map(|it| (it.0.powf(sigma), it.1)))?;
        Some(CoreCurve { sigma, max_w })
    };
    let error = |sigma| of(sigma).map_or(f64::INFINITY, |it| squares(points, |x| it.power_w(x)));
    let value = of(least(SIGMAS, error))?;
    let r_squared = r_squared(points, |x| value.power_w(x));
    Some(Fit { value, r_squared })
}

/// The shape of equation 6.8, from pairs of a frequency by the highest one, above 0 and at
/// most 1, and the watts of a fully utilized core; `top_w` are those at the highest.
/// `None` if fewer than two frequencies differ or a number is out of its range.
#[must_use]
pub fn shape(points: &[(f64, f64)], top_w: f64) -> Option<Fit<Shape>> {
    let is_valid = |&(x, y): &(f64, f64)| x > 0.0 && x <= 1.0 && y >= 0.0 && y.is_finite();
    let is_top = top_w > 0.0 && top_w.is_finite();
    if !is_top || !points.iter().all(is_valid) || !varies(points) {
        return None;
    }
    let min_for = |nu: f64| {
        let error = |min_w| squares(points, |x| largest_w(x, top_w, nu, min_w));
        least((0.0, top_w), error)
    };
    let error = |ln_nu: f64| {
        let nu = ln_nu.exp();
        let min_w = min_for(nu);
        squares(points, |x| largest_w(x, top_w, nu, min_w))
    };
    let nu = least(LN_NUS, error).exp();
    let value = Shape {
        nu,
        active_min_w: min_for(nu),
    };
    let r_squared = r_squared(points, |x| largest_w(x, top_w, nu, value.active_min_w));
    Some(Fit { value, r_squared })
}

/// Equation 6.8 by the frequency divided by the highest.
fn largest_w(ratio: f64, top_w: f64, nu: f64, min_w: f64) -> f64 {
    let [low, top] = [min_w, top_w].map(|watts| watts.powf(1.0 / nu));
    (low + (top - low) * ratio).powf(nu)
}

fn varies(points: &[(f64, f64)]) -> bool {
    points.iter().any(|it| it.0 != points[0].0)
}

/// The factor of x that is nearest to y; `None` if no x differs from 0.
fn factor(points: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (xx, xy) = points.fold((0.0, 0.0), |(xx, xy), (x, y)| (xx + x * x, xy + x * y));
    (xx > 0.0 && xy.is_finite()).then(|| xy / xx)
}

fn squares(points: &[(f64, f64)], model: impl Fn(f64) -> f64) -> f64 {
    let left = points.iter().map(|&(x, y)| y - model(x));
    left.map(|it| it * it).sum()
}

fn r_squared(points: &[(f64, f64)], model: impl Fn(f64) -> f64) -> f64 {
    let mean = points.iter().map(|it| it.1).sum::<f64>() / points.len() as f64;
    let all = squares(points, |_| mean);
    if all > 0.0 {
        1.0 - squares(points, model) / all
    } else {
        1.0
    }
}

/// Where a function is least: by steps, then by golden sections about the best step.
fn least((from, to): (f64, f64), error: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / N_STEPS as f64;
    let at = |idx: usize| from + step * idx as f64;
    let errors = (0..=N_STEPS).map(|idx| (at(idx), error(at(idx))));
    let best = errors.min_by(|a, b| a.1.total_cmp(&b.1));
    let best = best.map_or(from, |it| it.0);
    let (mut low, mut high) = ((best - step).max(from), (best + step).min(to));
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..N_FINE {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if error(left) <= error(right) {
            high = right;
        } else {
            low = left;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::super::servers::Server;
    use super::*;

    #[test]
    fn curves_of_the_published_servers_come_out() {
        for name in Server::PUBLISHED {
            let cpu = Server::published(name).expect(name).cpu;
            let alone = cpu.p_states.iter().map(|it| it.curve());
            for curve_in in alone.chain(cpu.further_cores.iter().copied()) {
                // Noise that has no trend: up, down, down, up.
                let noise = |n: u32| if n % 4 < 2 { 0.02 } else { -0.02 };
                let point = |n: u32| {
                    let x = f64::from(n) / 40.0;
                    (x, curve_in.power_w(x) * (1.0 + noise(n)))
                };
                let fit = curve(&(1..=40).map(point).collect::<Vec<_>>()).expect("points");
                let off = (fit.value.max_w / curve_in.max_w - 1.0).abs();
                assert!(off < 0.01, "{name} {curve_in:?}: {fit:?}");
                let off = (fit.value.sigma - curve_in.sigma).abs();
                assert!(off < 0.02, "{name} {curve_in:?}: {fit:?}");
                assert!(fit.r_squared > 0.7 && fit.r_squared < 1.0, "{fit:?}");
            }
        }
    }

    #[test]
    fn shapes_of_the_published_servers_come_out() {
        for name in Server::PUBLISHED {
            let cpu = Server::published(name).expect(name).cpu;
            let top = cpu.top();
            let ratio = |hz: f64| hz / top.frequency_hz;
            let point = |hz: f64| (ratio(hz), cpu.largest_w(hz));
            let points = cpu.p_states.iter().map(|it| point(it.frequency_hz));
            let fit = shape(&points.collect::<Vec<_>>(), top.max_w).expect("points");
            assert!(
                (fit.value.active_min_w - cpu.active_min_w).abs() < 0.1,
                "{name} {fit:?}"
            );
            if cpu.nu < 100.0 {
                assert!((fit.value.nu / cpu.nu - 1.0).abs() < 0.01, "{name} {fit:?}");
            } else {
                // From here on the equation is an exponential, whatever the exponent.
                assert!(fit.value.nu > 100.0, "{name} {fit:?}");
            }
            assert!(fit.r_squared > 0.9999, "{name} {fit:?}");
            for row in &cpu.p_states {
                let x = ratio(row.frequency_hz);
                let watts = largest_w(x, top.max_w, fit.value.nu, fit.value.active_min_w);
                assert!((watts - row.max_w).abs() < 0.05, "{name} {row:?} {watts}");
            }
        }
    }

    #[test]
    fn energies_come_out_and_nonsense_is_refused() {
        let points = [(1e9, 0.61), (2e9, 1.23), (4e9, 2.43)];
        let fit = energy_j(&points).expect("points");
        assert!((fit.value / 0.61e-9 - 1.0).abs() < 0.01 && fit.r_squared > 0.999);
        assert_eq!(energy_j(&[(0.0, 1.0)]), None);
        assert_eq!(energy_j(&[]), None);
        assert_eq!(curve(&[(0.5, 1.0), (0.5, 1.0)]), None);
        assert_eq!(curve(&[(0.5, 1.0), (1.5, 1.0)]), None);
        assert_eq!(curve(&[]), None);
        assert_eq!(shape(&[(0.5, 1.0), (1.0, f64::NAN)], 1.0), None);
        assert_eq!(shape(&[(0.5, 1.0), (1.0, 2.0)], 0.0), None);
        // Watts that fall with the load are explained worse than by their mean.
        let falling = energy_j(&[(1.0, 2.0), (2.0, 1.0)]).expect("points");
        assert!(falling.r_squared < 0.0, "{falling:?}");
    }
}
