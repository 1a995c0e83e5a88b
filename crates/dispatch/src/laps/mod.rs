//! The locality-aware packet scheduler (LAPS) of Iqbal 2013, chapters 4 and 5.
//!
//! Each service has a map of its own over its own workers, so that a worker does one kind
//! of work. Packets go where the map says, unless the migration table says otherwise. When
//! the queue of a packet's worker has reached a threshold and the packet's name is
//! [aggressive](crate::Detector), the name moves to the least loaded worker of its service
//! and stays there. Workers pass between services by [need](crate::Need).
//!
//! That is [`MoveRule::Published`]. By [`MoveRule::Evens`], loads are measured, and what
//! moves is the aggressive name of the overloaded worker whose move evens loads out best,
//! to the worker of the service with the least load; nothing moves that would not help,
//! and nothing that is still on its way. Packets of what moves keep their
//! [order](crate::order).
//!
//! What the thesis leaves open: the threshold's value ([`LapsConfig::high_threshold`]); a
//! name moves only to a worker whose queue is below the threshold, since a move from one
//! overloaded worker to another reorders packets and relieves nobody; there is one detector
//! for all services, as its Figure 5.5 is described, or one each
//! ([`DetectorScope`]); moved names whose worker leaves their service go where the map says.
//!
//! # In a simulator, and in a router
//!
//! [`Laps::dispatch`] is the published scheduler: it sees every packet and all queues. A
//! router that receives with several threads has one thread own the [`Laps`]. Receiving
//! threads read [snapshots](crate::Publisher) of its [`Homes`], and hand it samples of
//! what they saw ([`Laps::handle_sample`]); the owner looks at the lengths of queues every
//! now and then ([`Laps::handle_queue_lengths`]), publishes what changed, and tells when
//! changes have settled ([`Laps::settle`]): all receiving threads read the new version, what
//! they had queued before is done, and no Interest of that time is pending.

mod changes;
mod config;
mod loads;

pub use config::{DetectorScope, LapsConfig, MoveRule};

use loads::Loads;

use crate::allocation::{Allocator, Need, Transfer};
use crate::detector::Detector;
use crate::homes::Homes;
use crate::map::ServiceMap;
use crate::migration::{MigrationState, MigrationTable, Placed};
use crate::{Key, LapsError, MAX_WORKERS, ServiceId, WorkerId, WorkerSet};

/// What a [`Laps`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LapsCounters {
    /// Names that moved off an overloaded worker.
    pub n_migrations: u64,
    /// Names that went home to make room in the migration table for others, later.
    pub n_displaced: u64,
    /// Names that had to move and found no room: all places are pinned, or of names on their
    /// way home.
    pub n_refused: u64,
    /// Moved names that went home since their worker left their service.
    pub n_sent_home: u64,
    /// Workers that passed to another service, or to one from none.
    pub n_transfers: u64,
    /// Packets, or looks at queues, that met an overloaded worker and could move nothing:
    /// no name was aggressive, all workers of the service were overloaded, or no move would
    /// have evened loads out.
    pub n_stuck: u64,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Laps {
    homes: Homes,
    detectors: Vec<Detector>,
    allocator: Allocator,
    high_threshold: u32,
    rule: MoveRule,
    loads: Loads,
    /// The latest version that is in effect everywhere.
    in_effect: u64,
    /// The version in which the map of each service changed last.
    changed: Vec<u64>,
    /// The service of each worker.
    serves: Vec<Option<ServiceId>>,
    transfers: Vec<Transfer>,
    is_frozen: bool,
    counters: LapsCounters,
}

impl Laps {
    /// Divides the workers equally among the services: the first services have one more if
    /// they don't divide.
    ///
    /// # Errors
    /// If there are fewer workers than services, or something is out of its range.
    pub fn new(config: &LapsConfig) -> Result<Self, LapsError> {
        config.check()?;
        let n_services = config.worker_rates_pps.len();
        let mut serves = vec![None; MAX_WORKERS];
        let mut maps = Vec::with_capacity(n_services);
        let mut first = 0;
        for service in 0..n_services {
            let n_left = config.n_workers - first;
            let n = n_left.div_ceil(n_services - service);
            let workers: Vec<_> = (first..first + n).map(|w| WorkerId(w as u16)).collect();
            for worker in &workers {
                serves[worker.idx()] = Some(ServiceId(service as u8));
            }
            maps.push(ServiceMap::new(config.map, &workers)?);
            first += n;
        }
        let n_detectors = match config.detector_scope {
            DetectorScope::Shared => 1,
            DetectorScope::PerService => n_services,
        };
        let services = config.worker_rates_pps.iter().zip(&maps);
        let allocator = Allocator::new(
            services.map(|(&rate, map)| (rate, map.workers().len())),
            config.idle_ns,
            config.high_threshold,
        );
        Ok(Self {
            homes: Homes {
                maps,
                migrations: MigrationTable::new(config.n_migrations),
                workers: (0..config.n_workers).map(|w| WorkerId(w as u16)).collect(),
                version: 0,
            },
            detectors: vec![Detector::new(config.detector)?; n_detectors],
            allocator,
            high_threshold: config.high_threshold,
            rule: config.rule,
            loads: Loads::new(match config.rule {
                MoveRule::Published => u32::MAX,
                MoveRule::Evens { halve_every } => halve_every,
            }),
            in_effect: 0,
            changed: vec![0; n_services],
            serves,
            transfers: Vec::with_capacity(MAX_WORKERS),
            is_frozen: false,
            counters: LapsCounters::default(),
        })
    }

    /// Where a packet goes, as published: looks at it, moves its name if that is called
    /// for, and returns the home. `queue_lens` has the length of each worker's queue, by
    /// number. Allocates nothing.
    ///
    /// # Panics
    /// If there is no such service, or a worker without a length.
    pub fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        let detector = self.detector_idx(service);
        let is_sampled = self.detectors[detector].handle_packet(service, key);
        self.homes.migrations.touch(service, key);
        let home = self.homes.home(service, key);
        if is_sampled {
            self.count_sample(home);
        }
        if queue_lens[home.idx()] < self.high_threshold || self.is_frozen {
            return home;
        }
        if !self.detectors[detector].is_aggressive(key) {
            self.counters.n_stuck += 1;
            return home;
        }
        let has_moved = match self.rule {
            MoveRule::Published => (self.shortest(service, home, queue_lens))
                .is_some_and(|worker| self.migrate(service, key, worker)),
            MoveRule::Evens { .. } => self.even_out(service, home, queue_lens),
        };
        if !has_moved {
            self.counters.n_stuck += 1;
            return home;
        }
        self.homes.home(service, key)
    }

    /// Looks at a packet that a receiving thread chose: where sampling is, the detectors'
    /// own `sample_every` has no part.
    ///
    /// # Panics
    /// If there is no such service.
    pub fn handle_sample(&mut self, service: ServiceId, key: Key) {
        let detector = self.detector_idx(service);
        self.detectors[detector].handle_sample(service, key);
        self.homes.migrations.touch(service, key);
        self.count_sample(self.homes.home(service, key));
    }

    #[inline]
    fn count_sample(&mut self, home: WorkerId) {
        if let MoveRule::Evens { halve_every } = self.rule
            && self.loads.handle_sample(home, halve_every)
        {
            self.loads.halve();
            self.detectors.iter_mut().for_each(Detector::halve);
        }
    }

    /// Moves aggressive names off each worker whose queue has reached the threshold, and
    /// returns how many moved. For a router: see the [module](self).
    ///
    /// By [`MoveRule::Evens`] one name moves, the one whose move evens loads out best. By
    /// [`MoveRule::Published`] all aggressive names of the worker move to the shortest queue of
    /// the service, as section 4.4.4 of the thesis says of the time while a queue is above the
    /// threshold. Takes time linear in workers and names tracked; by the published rule,
    /// quadratic in names tracked. Allocates nothing.
    ///
    /// # Panics
    /// If there is a worker without a length.
    pub fn handle_queue_lengths(&mut self, queue_lens: &[u32]) -> usize {
        if self.is_frozen {
            return 0;
        }
        let mut n_moved = 0;
        for worker in self.homes.workers {
            let Some(service) = self.serves[worker.idx()] else {
                continue;
            };
            if queue_lens[worker.idx()] < self.high_threshold {
                continue;
            }
            let n = match self.rule {
                MoveRule::Published => self.move_all(service, worker, queue_lens),
                MoveRule::Evens { .. } => self.even_out(service, worker, queue_lens).into(),
            };
            self.counters.n_stuck += u64::from(n == 0);
            n_moved += n;
        }
        n_moved
    }

    /// Moves all aggressive names off an overloaded worker to the shortest queue, and returns
    /// how many moved.
    fn move_all(&mut self, service: ServiceId, from: WorkerId, queue_lens: &[u32]) -> usize {
        let Some(to) = self.shortest(service, from, queue_lens) else {
            return 0;
        };
        let detector = self.detector_idx(service);
        let mut n_moved = 0;
        for nth in 0..crate::detector::MAX_AGGRESSIVE {
            let Some(it) = self.detectors[detector].aggressive().nth(nth) else {
                break;
            };
            if it.service == service && self.homes.home(service, it.key) == from {
                n_moved += usize::from(self.migrate(service, it.key, to));
            }
        }
        n_moved
    }

    /// Moves the aggressive name off an overloaded worker that evens loads out best, and
    /// returns whether there is one.
    fn even_out(&mut self, service: ServiceId, from: WorkerId, queue_lens: &[u32]) -> bool {
        let workers = self.homes.maps[service.idx()].workers().iter().copied();
        let others = workers
            .filter(|&worker| worker != from && queue_lens[worker.idx()] < self.high_threshold);
        let least = others.min_by_key(|&worker| {
            (
                self.loads.of(worker),
                queue_lens[worker.idx()],
                worker.idx(),
            )
        });
        let Some(to) = least else {
            return false;
        };
        let (load, least_load) = (self.loads.of(from), self.loads.of(to));
        let names = self.detectors[self.detector_idx(service)].aggressive();
        let here = names.filter(|it| it.service == service && self.may_move(service, it.key, from));
        let ranked = here.filter_map(|it| {
            let count = u64::from(it.count);
            Some((loads::benefit(count, load, least_load)?, count, it.key))
        });
        let Some((_, count, key)) = ranked.max() else {
            return false;
        };
        let has_moved = self.migrate(service, key, to);
        if has_moved {
            self.loads.handle_move(from, to, count);
        }
        has_moved
    }

    /// Whether a name is at home at a worker, not pinned there, and not on its way.
    fn may_move(&self, service: ServiceId, key: Key, from: WorkerId) -> bool {
        let found = self.homes.migrations.find(service, key);
        self.homes.home(service, key) == from
            && found.is_none_or(|migration| {
                migration.state != MigrationState::Pinned && migration.version <= self.in_effect
            })
    }

    /// Hears that changes up to this version are in effect: whatever was dispatched by
    /// earlier ones is done. Names of these changes may move again. Versions that
    /// [settle](Self::settle) are in effect.
    pub fn handle_in_effect(&mut self, version: u64) {
        self.in_effect = self.in_effect.max(version);
    }

    /// The worker of a service with the shortest queue, if it is below the threshold.
    fn shortest(&self, service: ServiceId, home: WorkerId, queue_lens: &[u32]) -> Option<WorkerId> {
        let workers = self.homes.maps[service.idx()].workers();
        let least = (workers.iter().copied())
            .min_by_key(|worker| (queue_lens[worker.idx()], worker.idx()))?;
        (least != home && queue_lens[least.idx()] < self.high_threshold).then_some(least)
    }

    fn migrate(&mut self, service: ServiceId, key: Key, worker: WorkerId) -> bool {
        let found = self.homes.migrations.find(service, key);
        if found.is_some_and(|migration| migration.state == MigrationState::Pinned) {
            return false;
        }
        // Published, nobody cares what is on its way.
        let in_effect = match self.rule {
            MoveRule::Published => u64::MAX,
            MoveRule::Evens { .. } => self.in_effect,
        };
        let to = (worker, MigrationState::Migrated);
        match self.homes.migrate(service, key, to, in_effect) {
            Placed::Refused => self.counters.n_refused += 1,
            Placed::Later => self.counters.n_displaced += 1,
            Placed::Done => {
                self.counters.n_migrations += 1;
                return true;
            }
        }
        false
    }

    fn detector_idx(&self, service: ServiceId) -> usize {
        if self.detectors.len() == 1 {
            0
        } else {
            service.idx()
        }
    }

    /// Where names are at home.
    #[must_use]
    pub const fn homes(&self) -> &Homes {
        &self.homes
    }

    /// The detectors: one, or one for each service.
    #[must_use]
    pub fn detectors(&self) -> &[Detector] {
        &self.detectors
    }

    /// What each service needs and has.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        self.allocator.needs()
    }

    /// Mean length of the queues of a service's workers, rounded down.
    ///
    /// # Panics
    /// If there is no such service, or a worker without a length.
    #[must_use]
    pub fn mean_queue(&self, service: ServiceId, queue_lens: &[u32]) -> u32 {
        let workers = self.homes.map(service).workers();
        let sum: u64 = (workers.iter())
            .map(|worker| u64::from(queue_lens[worker.idx()]))
            .sum();
        (sum / workers.len().max(1) as u64) as u32
    }

    /// The service of a worker; `None` if it has none.
    #[must_use]
    pub fn service_of(&self, worker: WorkerId) -> Option<ServiceId> {
        self.serves.get(worker.idx()).copied().flatten()
    }

    /// Workers without a service.
    #[must_use]
    pub fn idle_workers(&self) -> WorkerSet {
        let workers = self.homes.workers.into_iter();
        workers
            .filter(|worker| self.serves[worker.idx()].is_none())
            .collect()
    }

    /// What it did.
    #[must_use]
    pub const fn counters(&self) -> &LapsCounters {
        &self.counters
    }

    /// Whether it only dispatches: see [`freeze`](Self::freeze).
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.is_frozen
    }
}
