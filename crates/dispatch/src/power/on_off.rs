//! Cores that are on or in deep sleep, without frequencies and without a forecast: Iqbal 2013,
//! section 6.4.6, by the resource manager of its sections 5.3.1 to 5.3.3.
//!
//! A pool of cores needs `C = sum of R_a / R_d1` of them (equation 5.1), over its services: under
//! [`OnOffLaps`] each service has a pool, under [`OnOffFcfs`] all share one. Cores wake where `C`
//! to the nearest is more than the pool has, or where its queues have grown to the threshold. Where
//! the pool has needed fewer for `Idle_th`, one of its cores is surplus and goes to deep sleep, and
//! so on after each interval.
//!
//! The thesis leaves open, and here is decided:
//! - A core is surplus only if those that stay suffice for `C` without rounding. By the nearest
//!   number, a core that the queue has just woken would be surplus at once.
//! - A surplus core leaves its service's map, as one that another service takes does; otherwise
//!   packets would wake it. The core that came last sleeps first.
//! - A service that needs a core wakes one that sleeps before it takes one of another service.
//! - `R_d1` is profiled under the same scheduler, so that it has its penalties.

use crate::allocation::ServiceLoad;
use crate::baselines::{Fcfs, Scheduler};
use crate::worker::{ServiceId, WorkerId, WorkerSet};
use crate::{Homes, Key, Laps, LapsError, MapError};

/// Section 5.3.3: how long a pool must need fewer cores before one is surplus.
pub const IDLE_NS: u64 = 10_000;

/// What a pool of cores needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pool {
    /// Since when it has needed fewer cores than it has.
    idle_since_ns: Option<u64>,
}

/// What is to change in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Wake(usize),
    Keep,
    SleepOne,
}

impl Pool {
    /// `needed` is equation 5.1; the queues of the pool's `n_cores` have grown to the threshold or
    /// have not.
    fn decide(&mut self, now_ns: u64, needed: f64, n_cores: usize, is_queued: bool) -> Change {
        let n_nearest = needed.round() as usize;
        let n_wanted = if is_queued {
            n_nearest.max(n_cores + 1)
        } else {
            n_nearest
        };
        if n_wanted > n_cores {
            self.idle_since_ns = None;
            return Change::Wake(n_wanted - n_cores);
        }
        if n_cores <= 1 || needed > n_cores as f64 - 1.0 {
            self.idle_since_ns = None;
            return Change::Keep;
        }
        match self.idle_since_ns {
            Some(since_ns) if now_ns.saturating_sub(since_ns) >= IDLE_NS => Change::SleepOne,
            Some(_) => Change::Keep,
            None => {
                self.idle_since_ns = Some(now_ns);
                Change::Keep
            }
        }
    }
}

/// Equation 5.1 without rounding.
fn needed(load: &ServiceLoad, interval_ns: u64, core_rate_pps: f64) -> f64 {
    load.n_arrived as f64 * 1e9 / interval_ns as f64 / core_rate_pps
}

/// LAPS whose surplus cores sleep.
#[derive(Debug)]
pub struct OnOffLaps {
    laps: Laps,
    pools: Vec<Pool>,
    high_threshold: u32,
    sleeping: WorkerSet,
}

impl OnOffLaps {
    /// All cores are on. Queues of `high_threshold` packets on average call for a core.
    #[must_use]
    pub fn new(laps: Laps, high_threshold: u32) -> Self {
        let pools = vec![Pool::default(); laps.needs().len()];
        Self {
            laps,
            pools,
            high_threshold,
            sleeping: WorkerSet::EMPTY,
        }
    }

    fn wake_one(&mut self, service: ServiceId) -> Result<bool, LapsError> {
        let Some(worker) = self.sleeping.into_iter().next() else {
            return Ok(false);
        };
        self.laps.add_worker(worker, service)?;
        self.sleeping.remove(worker);
        Ok(true)
    }

    fn sleep_one(&mut self, service: ServiceId) -> Result<(), LapsError> {
        let workers = self.laps.homes().map(service).workers();
        if let [_, .., last] = *workers {
            self.laps.remove_worker(last)?;
            self.sleeping.insert(last);
        }
        Ok(())
    }
}

impl Scheduler for OnOffLaps {
    fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        self.laps.dispatch(service, key, queue_lens)
    }

    fn n_shifts(&self) -> u64 {
        Scheduler::n_shifts(&self.laps)
    }

    fn handle_loads(
        &mut self,
        now_ns: u64,
        interval_ns: u64,
        loads: &mut [ServiceLoad],
        queue_lens: &[u32],
    ) {
        for (idx, load) in loads.iter().enumerate() {
            let service = ServiceId(idx as u8);
            let need = self.laps.needs()[idx];
            let is_queued = self.laps.mean_queue(service, queue_lens) >= self.high_threshold;
            let needed = needed(load, interval_ns, need.worker_rate_pps);
            let n_cores = need.n_workers as usize;
            // A map that can't change, for lack of room in its tables, stays as it is.
            match self.pools[idx].decide(now_ns, needed, n_cores, is_queued) {
                Change::Wake(n) => {
                    for _ in 0..n {
                        if !matches!(self.wake_one(service), Ok(true)) {
                            break;
                        }
                    }
                }
                Change::Keep => {}
                Change::SleepOne => drop(self.sleep_one(service)),
            }
        }
        Scheduler::handle_loads(&mut self.laps, now_ns, interval_ns, loads, queue_lens);
    }

    fn homes(&self) -> Option<&Homes> {
        Scheduler::homes(&self.laps)
    }

    fn handle_in_effect(&mut self, version: u64) {
        self.laps.handle_in_effect(version);
    }

    fn sleeping(&self) -> WorkerSet {
        self.sleeping
    }
}

/// First come, first served, on as many cores as all packets need.
#[derive(Clone, Debug)]
pub struct OnOffFcfs {
    fcfs: Fcfs,
    n_cores: usize,
    core_rates_pps: Vec<f64>,
    pool: Pool,
    high_threshold: u32,
}

impl OnOffFcfs {
    /// All cores are on. A core does `core_rates_pps` of each service.
    ///
    /// # Errors
    /// If there is no core.
    pub fn new(
        n_cores: usize,
        core_rates_pps: Vec<f64>,
        high_threshold: u32,
    ) -> Result<Self, MapError> {
        Ok(Self {
            fcfs: Fcfs::new(n_cores)?,
            n_cores,
            core_rates_pps,
            pool: Pool::default(),
            high_threshold,
        })
    }
}

impl Scheduler for OnOffFcfs {
    fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        self.fcfs.dispatch(service, key, queue_lens)
    }

    fn n_shifts(&self) -> u64 {
        0
    }

    fn handle_loads(
        &mut self,
        now_ns: u64,
        interval_ns: u64,
        loads: &mut [ServiceLoad],
        queue_lens: &[u32],
    ) {
        let of_services = loads.iter().zip(&self.core_rates_pps);
        let needed = of_services.map(|(load, &rate_pps)| needed(load, interval_ns, rate_pps));
        let needed = needed.sum();
        let n_active = self.fcfs.n_workers();
        let queued: u64 = (queue_lens.iter().take(n_active))
            .map(|&len| u64::from(len))
            .sum();
        let is_queued = queued >= u64::from(self.high_threshold) * n_active as u64;
        let n_active = match self.pool.decide(now_ns, needed, n_active, is_queued) {
            Change::Wake(n) => (n_active + n).min(self.n_cores),
            Change::Keep => n_active,
            Change::SleepOne => n_active - 1,
        };
        self.fcfs.set_workers(n_active);
    }

    fn sleeping(&self) -> WorkerSet {
        let sleeping = self.fcfs.n_workers()..self.n_cores;
        sleeping.map(|worker| WorkerId(worker as u16)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LapsConfig;

    const INTERVAL_NS: u64 = 1_000_000;
    const EMPTY: [u32; 4] = [0; 4];

    fn load(n_arrived: u64) -> ServiceLoad {
        ServiceLoad {
            n_arrived,
            n_departed: n_arrived,
            mean_queue: 0,
        }
    }

    /// Cores on after each interval, whose `loads` are thousands of packets a second by service. A
    /// core does a million.
    fn n_active<const N: usize>(
        scheduler: &mut dyn Scheduler,
        loads: &[[u64; N]],
        queue_lens: [u32; 4],
    ) -> Vec<usize> {
        let mut now_ns = 0;
        let of = |loads: &[u64; N]| {
            now_ns += INTERVAL_NS;
            let mut loads: Vec<_> = loads.iter().map(|&n| load(n)).collect();
            scheduler.handle_loads(now_ns, INTERVAL_NS, &mut loads, &queue_lens);
            4 - scheduler.sleeping().len()
        };
        loads.iter().map(of).collect()
    }

    #[test]
    fn surplus_cores_sleep_one_an_interval_and_wake_together() {
        let mut fcfs = OnOffFcfs::new(4, vec![1e6], 80).expect("four cores");
        let few = [1_500];
        let found = n_active(&mut fcfs, &[few, few, few, few, [3_600]], EMPTY);
        assert_eq!(found, [4, 3, 2, 2, 4]);
    }

    #[test]
    fn cores_that_suffice_only_by_rounding_do_not_sleep() {
        let mut fcfs = OnOffFcfs::new(4, vec![1e6], 80).expect("four cores");
        let found = n_active(&mut fcfs, &[[2_400]; 5], EMPTY);
        assert_eq!(found, [4, 3, 3, 3, 3]);
    }

    #[test]
    fn full_queues_wake_a_core() {
        let mut fcfs = OnOffFcfs::new(4, vec![1e6], 80).expect("four cores");
        assert_eq!(n_active(&mut fcfs, &[[500]; 6], EMPTY)[5], 1);
        assert_eq!(n_active(&mut fcfs, &[[500]], [80, 0, 0, 0]), [2]);
    }

    #[test]
    fn cores_of_a_service_sleep_and_serve_another_when_they_wake() {
        let config = LapsConfig {
            worker_rates_pps: vec![1e6; 2],
            ..LapsConfig::new(4)
        };
        let mut laps = OnOffLaps::new(Laps::new(&config).expect("two services"), 80);
        let found = n_active(&mut laps, &[[500, 1_500]; 4], EMPTY);
        assert_eq!(found, [4, 3, 3, 3]);
        assert!(laps.sleeping().contains(WorkerId(1)));
        let found = n_active(&mut laps, &[[500, 2_800]], EMPTY);
        assert_eq!(found, [4]);
        let workers = laps.laps.homes().map(ServiceId(1)).workers();
        assert!(workers.contains(&WorkerId(1)), "{workers:?}");
        let home = laps.dispatch(ServiceId(0), Key(7), &EMPTY);
        assert_eq!(home, WorkerId(0));
    }
}
