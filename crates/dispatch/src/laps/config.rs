//! How a scheduler is set up.

use crate::detector::DetectorConfig;
use crate::map::MapKind;
use crate::{LapsError, MAX_SERVICES, MAX_WORKERS, ServiceId};

/// Most names that may be moved at once.
const MAX_MIGRATIONS: usize = 1 << 16;

/// For which packets aggressive names are looked for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectorScope {
    /// All: names of a service with many small packets may hide those of another.
    Shared,
    /// Those of one service.
    PerService,
}

/// Which name moves off an overloaded worker, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveRule {
    /// As published: the aggressive name that arrives, to the worker with the shortest
    /// queue; again as soon as that is overloaded, too.
    Published,
    /// An aggressive name of the worker whose move evens measured loads out. A name moves
    /// again only when its last move is in effect.
    Evens {
        /// Samples after which all counts are halved, from 2^10 on, and at most half of the
        /// detector's saturation: about as many as loads are measured over.
        halve_every: u32,
    },
}

impl MoveRule {
    /// The second rule, with counts of 16 bits. Of as many samples 16 workers have 2,000
    /// each, which are known to 2 %.
    pub const EVENS: Self = Self::Evens {
        halve_every: (1 << 15) - 1,
    };
}

/// Everything that a [`Laps`](crate::Laps) is told.
#[derive(Clone, Debug, PartialEq)]
pub struct LapsConfig {
    /// Workers, from 1 to [`MAX_WORKERS`].
    pub n_workers: usize,
    /// What one worker of each service does, in packets per second, above 0; its length is
    /// the number of services, from 1 to [`MAX_SERVICES`].
    pub worker_rates_pps: Vec<f64>,
    /// How names are divided among the workers of a service.
    pub map: MapKind,
    /// How aggressive names are found.
    pub detector: DetectorConfig,
    /// For which packets together.
    pub detector_scope: DetectorScope,
    /// Names that may be moved at once, up to 2^16.
    pub n_migrations: usize,
    /// Packets in a worker's queue from which on it is overloaded, from 1 on.
    pub high_threshold: u32,
    /// Which names move.
    pub rule: MoveRule,
    /// How long a service must need fewer workers before one is surplus.
    pub idle_ns: u64,
}

impl LapsConfig {
    /// One service on so many workers; otherwise as published, but for the rule. The thesis
    /// names neither the threshold nor the size of the migration table: here 80 packets, of
    /// queues of 100, and 1024 names.
    #[must_use]
    pub fn new(n_workers: usize) -> Self {
        Self {
            n_workers,
            worker_rates_pps: vec![1e6],
            map: MapKind::Linear,
            detector: DetectorConfig::default(),
            detector_scope: DetectorScope::Shared,
            n_migrations: 1_024,
            high_threshold: 80,
            rule: MoveRule::EVENS,
            idle_ns: 10_000,
        }
    }

    /// Whether it can be served, detector and maps aside.
    pub(crate) fn check(&self) -> Result<(), LapsError> {
        let (n_workers, n_services) = (self.n_workers, self.worker_rates_pps.len());
        if n_services == 0 || n_services > MAX_SERVICES {
            return Err(LapsError::Services { n_services });
        }
        if n_workers == 0 || n_workers > MAX_WORKERS {
            return Err(LapsError::Workers { n_workers });
        }
        if n_workers < n_services {
            return Err(LapsError::ServiceWithoutWorker {
                n_services,
                n_workers,
            });
        }
        for (service, &rate_pps) in self.worker_rates_pps.iter().enumerate() {
            if !(rate_pps.is_finite() && rate_pps > 0.0) {
                let service = ServiceId(service as u8);
                return Err(LapsError::Rate { service, rate_pps });
            }
        }
        let within = |what, value, min, max| {
            let is_within = (min..=max).contains(&value);
            is_within.then_some(()).ok_or(LapsError::Size {
                what,
                value,
                min,
                max,
            })
        };
        within("names moved", self.n_migrations, 1, MAX_MIGRATIONS)?;
        let threshold = self.high_threshold as usize;
        within("high threshold", threshold, 1, u32::MAX as usize)?;
        match self.rule {
            MoveRule::Published => Ok(()),
            MoveRule::Evens { halve_every } => {
                let what = "samples until counts are halved";
                let most = self.detector.saturation / 2;
                within(what, halve_every as usize, 1 << 10, most as usize)
            }
        }
    }
}
