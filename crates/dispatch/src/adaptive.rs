//! Adaptive hashing: bundles of names go to the worker with the highest weighted hash, and
//! weights follow the load.
//!
//! The scheme of Kencl and Le Boudec ("Adaptive load sharing for network processors",
//! INFOCOM 2002), which Iqbal 2013 has in section 2.3.2 as the complement of its migration
//! of aggressive names. Worker `j` has bundle `b` if `x_j * hash(b, j)` is the largest. Its
//! load is smoothed over intervals, and its weight `x_j` is multiplied by
//! `(threshold / load)^(1/n)` when the load is on the wrong side of a threshold half way
//! between the mean load and 1:
//!
//! - a mean of 1 or less: workers above the threshold get less, each by the factor of the
//!   one that is nearest to it;
//! - more: workers below it get more, likewise.
//!
//! A weight that falls moves bundles off its worker alone, one that rises moves bundles to
//! it alone. [`AdaptiveConfig::detector`] adds the migration of aggressive names, as Shi and
//! Kencl combine the two (section 2.3.2). This is a baseline to compare with: one service,
//! and a list of moved names without bound.

use std::collections::HashMap;

use crate::baselines::{Scheduler, shortest};
use crate::detector::{Detector, DetectorConfig};
use crate::{Key, LapsError, MAX_BUCKETS_LOG2, MapError, ServiceId, ServiceLoad, WorkerId};

/// How an [`AdaptiveHash`] is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveConfig {
    /// Workers.
    pub n_workers: usize,
    /// Bundles of names, as a power of two up to 2^16.
    pub n_bundles_log2: u8,
    /// Packets per second that one worker does, above 0.
    pub worker_rate_pps: f64,
    /// Share of the last interval in the smoothed load, above 0, up to 1.
    pub smoothing: f64,
    /// How far a threshold is from the mean load at least, as a share of it.
    pub hysteresis: f64,
    /// Aggressive names that move off an overloaded worker, if any do.
    pub detector: Option<DetectorConfig>,
    /// Packets in a worker's queue from which on aggressive names move off it.
    pub high_threshold: u32,
}

impl AdaptiveConfig {
    /// For these workers, without migration. Smoothing and hysteresis are choices of this
    /// module.
    #[must_use]
    pub const fn new(n_workers: usize, worker_rate_pps: f64) -> Self {
        Self {
            n_workers,
            n_bundles_log2: 10,
            worker_rate_pps,
            smoothing: 1.0 / 3.0,
            hysteresis: 0.01,
            detector: None,
            high_threshold: 80,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct AdaptiveHash {
    config: AdaptiveConfig,
    workers: Vec<WorkerId>,
    /// The worker of each bundle.
    bundles: Vec<WorkerId>,
    weights: Vec<f64>,
    /// Packets dispatched to each worker in this interval.
    dispatched: Vec<u64>,
    /// The part of each worker's rate that was dispatched to it; `None` before the first
    /// interval.
    loads: Vec<Option<f64>>,
    detector: Option<Detector>,
    moved: HashMap<Key, WorkerId>,
    n_bundles_moved: u64,
    n_names_moved: u64,
}

impl AdaptiveHash {
    /// All workers with the same weight.
    ///
    /// # Errors
    /// If there is no worker, there are too many bundles, a rate is not above 0, or the
    /// detector's sizes are out of their range.
    pub fn new(config: AdaptiveConfig) -> Result<Self, LapsError> {
        if config.n_workers == 0 {
            return Err(MapError::NoWorker.into());
        }
        if config.n_bundles_log2 > MAX_BUCKETS_LOG2 {
            return Err(MapError::Buckets {
                n_buckets_log2: config.n_bundles_log2,
                n_workers: config.n_workers,
            }
            .into());
        }
        let rate_pps = config.worker_rate_pps;
        if !(rate_pps.is_finite() && rate_pps > 0.0) {
            let service = ServiceId(0);
            return Err(LapsError::Rate { service, rate_pps });
        }
        let mut hash = Self {
            workers: (0..config.n_workers).map(|w| WorkerId(w as u16)).collect(),
            bundles: vec![WorkerId::default(); 1 << config.n_bundles_log2],
            weights: vec![1.0; config.n_workers],
            dispatched: vec![0; config.n_workers],
            loads: vec![None; config.n_workers],
            detector: config.detector.map(Detector::new).transpose()?,
            moved: HashMap::new(),
            n_bundles_moved: 0,
            n_names_moved: 0,
            config,
        };
        hash.assign();
        hash.n_bundles_moved = 0;
        Ok(hash)
    }

    /// Gives each bundle to the worker with the highest weighted hash.
    fn assign(&mut self) {
        for (bundle, owner) in self.bundles.iter_mut().enumerate() {
            let weighted = (self.weights.iter().enumerate()).map(|(worker, weight)| {
                let pair = Key((bundle as u64) << 32 | worker as u64);
                (weight * fraction(pair), worker)
            });
            let highest = weighted.max_by(|a, b| a.0.total_cmp(&b.0));
            let worker = WorkerId(highest.map_or(0, |it| it.1) as u16);
            if *owner != worker {
                *owner = worker;
                self.n_bundles_moved += 1;
            }
        }
    }

    /// Changes weights by the smoothed loads.
    fn adapt(&mut self) {
        let loads: Vec<f64> = self.loads.iter().flatten().copied().collect();
        if loads.len() < self.weights.len() {
            return;
        }
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let middle = f64::midpoint(1.0, mean);
        let far = |sign: f64| (1.0 + sign * self.config.hysteresis) * mean;
        let is_overload = mean > 1.0;
        let threshold = if is_overload {
            middle.min(far(-1.0))
        } else {
            middle.max(far(1.0))
        };
        let is_wrong = |load: f64| {
            if is_overload {
                load < threshold
            } else {
                load > threshold
            }
        };
        let wrong = || loads.iter().copied().filter(|&load| is_wrong(load));
        let nearest = if is_overload {
            wrong().fold(0.0, f64::max)
        } else {
            wrong().fold(f64::INFINITY, f64::min)
        };
        if wrong().next().is_none() || nearest <= 0.0 {
            return;
        }
        let factor = (threshold / nearest).powf(1.0 / loads.len() as f64);
        for (weight, &load) in self.weights.iter_mut().zip(&loads) {
            if is_wrong(load) {
                *weight *= factor;
            }
        }
        self.assign();
    }

    /// The worker of a name, if it was not moved on its own.
    fn home(&self, key: Key) -> WorkerId {
        let bundle = (key.spread() >> 32) << self.config.n_bundles_log2 >> 32;
        self.bundles[bundle as usize]
    }

    /// The weights of the workers.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Bundles that changed their worker so far.
    #[must_use]
    pub const fn n_bundles_moved(&self) -> u64 {
        self.n_bundles_moved
    }
}

/// A number in `0.0..1.0` that depends on all of the key.
fn fraction(key: Key) -> f64 {
    // Twice: pairs that differ in few bits must draw independently.
    (Key(key.spread()).spread() >> 11) as f64 / (1_u64 << 53) as f64
}

impl Scheduler for AdaptiveHash {
    fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        let mut worker = if self.moved.is_empty() {
            self.home(key)
        } else {
            self.moved
                .get(&key)
                .copied()
                .unwrap_or_else(|| self.home(key))
        };
        if let Some(detector) = &mut self.detector {
            detector.handle_packet(service, key);
            if queue_lens[worker.idx()] >= self.config.high_threshold && detector.is_aggressive(key)
            {
                let least = shortest(&self.workers, 0, queue_lens);
                if queue_lens[least.idx()] < self.config.high_threshold {
                    self.moved.insert(key, least);
                    self.n_names_moved += 1;
                    worker = least;
                }
            }
        }
        self.dispatched[worker.idx()] += 1;
        worker
    }

    fn n_shifts(&self) -> u64 {
        self.n_bundles_moved + self.n_names_moved
    }

    fn handle_loads(&mut self, _: u64, interval_ns: u64, _: &mut [ServiceLoad], _: &[u32]) {
        let whole = self.config.worker_rate_pps * interval_ns as f64 / 1e9;
        let smoothing = self.config.smoothing;
        for (load, n) in self.loads.iter_mut().zip(&mut self.dispatched) {
            let new = std::mem::take(n) as f64 / whole;
            *load = Some(load.map_or(new, |old| smoothing * new + (1.0 - smoothing) * old));
        }
        self.adapt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n_workers: usize) -> AdaptiveHash {
        let config = AdaptiveConfig {
            smoothing: 1.0,
            ..AdaptiveConfig::new(n_workers, 1e6)
        };
        AdaptiveHash::new(config).expect("workers")
    }

    /// An interval of a millisecond in which workers get this part of what they can do.
    fn interval(hash: &mut AdaptiveHash, loads: &[f64]) {
        for (n, load) in hash.dispatched.iter_mut().zip(loads) {
            *n = (load * 1e3) as u64;
        }
        let n_workers = loads.len();
        hash.handle_loads(0, 1_000_000, &mut [], &vec![0; n_workers]);
    }

    #[test]
    fn equal_weights_share_bundles_evenly() {
        let hash = hash(8);
        for worker in 0..8 {
            let is_here = |it: &&WorkerId| it.idx() == worker;
            let n = hash.bundles.iter().filter(is_here).count();
            assert!((90..170).contains(&n), "{worker}: {n} of 128 on average");
        }
    }

    #[test]
    fn underload_moves_bundles_off_the_overloaded_worker_alone() {
        let mut hash = hash(4);
        let before = hash.bundles.clone();
        interval(&mut hash, &[0.9, 0.5, 0.5, 0.5]);
        // Mean 0.6: the threshold is 0.8, and the factor (0.8 / 0.9)^(1/4).
        let factor = (0.8_f64 / 0.9).powf(0.25);
        assert!((hash.weights()[0] - factor).abs() < 1e-9);
        assert_eq!(hash.weights()[1..], [1.0; 3]);
        let pairs = before.iter().zip(&hash.bundles);
        let moved: Vec<_> = pairs.filter(|(was, is)| was != is).collect();
        assert!(!moved.is_empty());
        assert!(
            moved
                .iter()
                .all(|(was, is)| was.idx() == 0 && is.idx() != 0)
        );
        assert_eq!(hash.n_bundles_moved(), moved.len() as u64);
        let n_moved = hash.n_bundles_moved();
        interval(&mut hash, &[0.75, 0.5, 0.6, 0.55]);
        assert_eq!(hash.n_bundles_moved(), n_moved, "within the threshold");
    }

    #[test]
    fn overload_moves_bundles_to_the_worker_below_the_threshold_alone() {
        let mut hash = hash(4);
        let before = hash.bundles.clone();
        interval(&mut hash, &[0.9, 1.3, 1.3, 1.3]);
        // Mean 1.2: the threshold is 1.1.
        assert!((hash.weights()[0] - (1.1_f64 / 0.9).powf(0.25)).abs() < 1e-9);
        let mut moved = before.iter().zip(&hash.bundles).filter(|(a, b)| a != b);
        assert!(moved.all(|(was, is)| was.idx() != 0 && is.idx() == 0));
        assert!(hash.n_bundles_moved() > 0);
    }

    #[test]
    fn aggressive_names_move_off_a_full_queue() {
        let config = AdaptiveConfig {
            detector: Some(DetectorConfig::default()),
            ..AdaptiveConfig::new(2, 1e6)
        };
        let mut hash = AdaptiveHash::new(config).expect("workers");
        let key = Key(7);
        let home = hash.dispatch(ServiceId(0), key, &[0, 0]);
        let mut lens = [0, 0];
        lens[home.idx()] = 80;
        // The second time that it is met it is aggressive.
        let other = hash.dispatch(ServiceId(0), key, &lens);
        assert_ne!(other, home);
        assert_eq!(hash.dispatch(ServiceId(0), key, &[0, 0]), other);
        assert_eq!(hash.n_shifts(), 1);
        let home = hash.home(Key(8));
        assert_eq!(hash.dispatch(ServiceId(0), Key(8), &[80, 80]), home);
    }
}
