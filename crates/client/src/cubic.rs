//! The congestion window: CUBIC (RFC 9438), counted in segments, with one
//! reduction for each round trip in which a mark or a loss is seen, and slow
//! start that ends when round trips grow (HyStart, Ha and Rhee 2011, with the
//! thresholds of RFC 9406).

use std::time::Duration;

use tachonym_packet::MonoNs;

/// Scale of the cubic curve (RFC 9438, section 5).
const C: f64 = 0.4;
/// What a reduction leaves of the window (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// Window at start and after an idle restart, in segments.
const INITIAL_WINDOW: f64 = 10.0;
/// A window never falls below this, in segments.
const MIN_WINDOW: f64 = 2.0;

/// Samples of a round trip after which its shortest time counts (RFC 9406,
/// section 4.3).
const MIN_SAMPLES: u32 = 8;
/// Bounds of the growth of round trips that ends slow start (RFC 9406, section
/// 4.3).
const MIN_RTT_GROWTH: Duration = Duration::from_millis(4);
const MAX_RTT_GROWTH: Duration = Duration::from_millis(16);

/// A congestion window in segments.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: f64,
    slow_start_threshold: f64,
    /// Window before the last reduction (`W_max`).
    max_before: f64,
    /// When the present growth along the curve began.
    epoch: Option<MonoNs>,
    /// Time the curve takes to come back to `max_before`, in seconds (`K`).
    k_s: f64,
    /// Window a Reno flow would have by now (`W_est`).
    reno: f64,
    limit: f64,
    /// Shortest time of the last round trip, and of the present one.
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    n_samples: u32,
}

impl Cubic {
    /// A window that never exceeds `limit` segments.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let limit = (limit as f64).max(MIN_WINDOW);
        Self {
            window: INITIAL_WINDOW.min(limit),
            slow_start_threshold: f64::INFINITY,
            max_before: 0.0,
            epoch: None,
            k_s: 0.0,
            reno: 0.0,
            limit,
            last_round: None,
            this_round: None,
            n_samples: 0,
        }
    }

    /// All that was in flight when the last round began has been answered.
    pub fn on_round(&mut self) {
        self.last_round = self.this_round.take().or(self.last_round);
        self.n_samples = 0;
    }

    /// One round-trip time was measured. In slow start, if they have grown over
    /// the last round's by an eighth (4 to 16 ms), a queue is building up and
    /// doubling ends.
    pub fn on_rtt_sample(&mut self, rtt: Duration) {
        self.this_round = Some(self.this_round.map_or(rtt, |shortest| shortest.min(rtt)));
        self.n_samples += 1;
        if self.n_samples < MIN_SAMPLES || self.window >= self.slow_start_threshold {
            return;
        }
        if let (Some(last), Some(this)) = (self.last_round, self.this_round) {
            let growth = (last / 8).clamp(MIN_RTT_GROWTH, MAX_RTT_GROWTH);
            if this >= last + growth {
                self.slow_start_threshold = self.window;
                self.max_before = self.window;
            }
        }
    }

    /// Segments that may be in flight now.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window as usize
    }

    /// A segment arrived that was waited for; `rtt` is the smoothed round-trip
    /// time.
    pub fn on_data(&mut self, now: MonoNs, rtt: Duration) {
        if self.window < self.slow_start_threshold {
            self.window = (self.window + 1.0).min(self.limit);
            return;
        }
        let epoch = *self.epoch.get_or_insert_with(|| {
            // Growth begins: aim for the window before the last reduction.
            self.k_s = ((self.max_before - self.window).max(0.0) / C).cbrt();
            self.reno = self.window;
            now
        });
        let t_s = (now.saturating_since(epoch) + rtt).as_secs_f64();
        let target = C * (t_s - self.k_s).powi(3) + self.max_before;
        let target = target.clamp(self.window, 1.5 * self.window);
        // RFC 9438, section 4.3: never slower than Reno with this reduction.
        self.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA) / self.window;
        let grown = self.window + (target - self.window) / self.window;
        self.window = grown.max(self.reno).min(self.limit);
    }

    /// A congestion mark, or a loss: at most once a round trip, which the
    /// caller sees to.
    pub fn on_congestion(&mut self) {
        // Fast convergence (RFC 9438, section 4.7): leave room for newcomers.
        self.max_before = if self.window < self.max_before {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.window = (self.window * BETA).max(MIN_WINDOW);
        self.slow_start_threshold = self.window;
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    fn grow(cubic: &mut Cubic, now: &mut MonoNs, round_trips: usize) {
        for _ in 0..round_trips {
            *now = *now + RTT;
            for _ in 0..cubic.window() {
                cubic.on_data(*now, RTT);
            }
        }
    }

    #[test]
    fn slow_start_doubles_each_round_trip_up_to_the_limit() {
        let mut cubic = Cubic::new(100);
        let mut now = MonoNs(1);
        assert_eq!(cubic.window(), 10);
        grow(&mut cubic, &mut now, 1);
        assert_eq!(cubic.window(), 20);
        grow(&mut cubic, &mut now, 10);
        assert_eq!(cubic.window(), 100);
    }

    #[test]
    fn a_reduction_leaves_seven_tenths_and_the_curve_returns_to_the_old_window() {
        let mut cubic = Cubic::new(10_000);
        let mut now = MonoNs(1);
        grow(&mut cubic, &mut now, 4);
        let before = cubic.window();
        cubic.on_congestion();
        assert_eq!(cubic.window(), before * 7 / 10);
        // K = cbrt(W_max · 0.3 / 0.4): here under six seconds.
        grow(&mut cubic, &mut now, 300);
        assert!(cubic.window() >= before, "{} < {before}", cubic.window());
    }

    #[test]
    fn slow_start_ends_when_round_trips_grow() {
        let mut cubic = Cubic::new(10_000);
        let mut now = MonoNs(1);
        let mut rtt = RTT;
        while rtt < 2 * RTT {
            cubic.on_round();
            for _ in 0..cubic.window() {
                cubic.on_rtt_sample(rtt);
                cubic.on_data(now, rtt);
            }
            now = now + rtt;
            rtt += Duration::from_millis(2);
        }
        // Each round takes 2 ms longer than the one before: too little.
        let doubled = cubic.window();
        assert!(doubled > 1000);
        cubic.on_round();
        for _ in 0..doubled {
            cubic.on_rtt_sample(rtt + Duration::from_millis(5));
            cubic.on_data(now, rtt);
        }
        assert!(cubic.window() < doubled + doubled / 4);
    }

    #[test]
    fn the_window_never_falls_below_its_minimum() {
        let mut cubic = Cubic::new(10);
        for _ in 0..50 {
            cubic.on_congestion();
        }
        assert_eq!(cubic.window(), 2);
    }
}
