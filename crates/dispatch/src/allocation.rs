//! How many workers each service should have: the policies of Iqbal 2013, sections 5.3.1
//! to 5.3.3.
//!
//! Per interval, a service needs `C = R_a / R_d1` workers, to the nearest whole number:
//! its arrivals by what one worker does. It is *needy* if that is more than it has, or if
//! its queues have grown to the threshold although it is not. Needs are served from
//!
//! 1. workers of its own that were marked as surplus, which costs nothing;
//! 2. workers that nobody has;
//! 3. *underload*: the service that has had surplus workers for longest;
//! 4. *overload*, when all need more than there is: a service below its proportional share
//!    `C_i / sum(C)` of the workers takes from one above its share.
//!
//! A service that needs fewer than it has for `idle_ns` has one more marked as surplus.
//!
//! What the thesis leaves open: the queues of a service have grown to the threshold when
//! their mean has. A service keeps one worker at least, however little it has to do. Among
//! needy services the neediest comes first, then the lower number; among those above
//! their share, the one that is furthest above it gives. In overload, a worker changes only
//! if shares then are met better in the sum of squares: by the published conditions alone,
//! two services between whose shares lies a fraction of a worker would pass it to and fro
//! for ever. As many are given in an interval as are demanded, one after another.

use crate::{ServiceId, WorkerId};

/// What a service did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceLoad {
    /// Packets put into its workers' queues. As published, those that found no room are not
    /// among them; a caller that counts them has needs served sooner.
    pub n_arrived: u64,
    /// Packets that its workers finished.
    pub n_departed: u64,
    /// Mean length of its workers' queues, in packets.
    pub mean_queue: u32,
}

/// What one service needs and has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Packets per second that one worker does, as profiled: `R_d1`.
    pub worker_rate_pps: f64,
    /// Workers it has: `K`.
    pub n_workers: u32,
    /// Workers it needs: `C`, at least one.
    pub n_needed: u32,
    /// Workers marked as surplus.
    pub n_surplus: u32,
    /// Since when it has needed fewer than it has, marked ones left aside.
    idle_since_ns: Option<u64>,
    /// Since when it has had a surplus.
    surplus_since_ns: Option<u64>,
}

/// Where a worker for a needy service comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody had it.
    Idle,
    /// A service with surplus workers.
    Surplus(ServiceId),
    /// A service above its share, in overload.
    Overload(ServiceId),
}

/// A worker that changed its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which.
    pub worker: WorkerId,
    /// Whose it was; `None` if nobody's.
    pub from: Option<ServiceId>,
    /// Whose it is.
    pub to: ServiceId,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Allocator {
    needs: Vec<Need>,
    idle_ns: u64,
    high_threshold: u32,
}

impl Allocator {
    /// Services by what one worker of each does, in packets per second, and how many it
    /// has. A surplus is marked after `idle_ns`; queues of `high_threshold` packets call
    /// for a worker.
    pub(crate) fn new(
        services: impl Iterator<Item = (f64, usize)>,
        idle_ns: u64,
        high_threshold: u32,
    ) -> Self {
        let need = |(worker_rate_pps, n_workers)| Need {
            worker_rate_pps,
            n_workers: n_workers as u32,
            n_needed: n_workers as u32,
            n_surplus: 0,
            idle_since_ns: None,
            surplus_since_ns: None,
        };
        Self {
            needs: services.map(need).collect(),
            idle_ns,
            high_threshold,
        }
    }

    /// What each service needs and has.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Takes what an interval brought into account.
    ///
    /// # Panics
    /// If there are not as many loads as services, or the interval takes no time.
    pub(crate) fn handle_interval(&mut self, now_ns: u64, interval_ns: u64, loads: &[ServiceLoad]) {
        assert_eq!(loads.len(), self.needs.len(), "a load for each service");
        assert!(interval_ns > 0, "an interval takes time");
        for (need, load) in self.needs.iter_mut().zip(loads) {
            let arrived_pps = load.n_arrived as f64 * 1e9 / interval_ns as f64;
            let n_needed = (arrived_pps / need.worker_rate_pps).round();
            // Far more than there can be need not be told from more.
            need.n_needed = (n_needed as u32).clamp(1, 1 << 16);
            if load.mean_queue >= self.high_threshold {
                need.n_needed = need.n_needed.max(need.n_workers + 1);
            }
            if need.n_needed >= need.n_workers {
                need.n_surplus = 0;
                need.idle_since_ns = None;
                need.surplus_since_ns = None;
                continue;
            }
            let n_beyond = need.n_workers - need.n_needed;
            need.n_surplus = need.n_surplus.min(n_beyond);
            if need.n_surplus == n_beyond {
                need.idle_since_ns = None;
                continue;
            }
            let since = *need.idle_since_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(since) >= self.idle_ns {
                need.n_surplus += 1;
                need.surplus_since_ns.get_or_insert(now_ns);
                need.idle_since_ns = (need.n_surplus < n_beyond).then_some(now_ns);
            }
        }
    }

    /// The neediest service that another worker can be had for, and where from, if nobody
    /// has `n_idle` workers. To be asked again once the worker is its. Services that
    /// `may_change` refuses neither get nor give one.
    pub(crate) fn next(
        &self,
        n_idle: usize,
        may_change: impl Fn(ServiceId) -> bool,
    ) -> Option<(ServiceId, Source)> {
        let may_change = |idx: usize| may_change(ServiceId(idx as u8));
        let mut needy = None;
        for (idx, need) in self.needs.iter().enumerate() {
            let n_missing = need.n_needed.saturating_sub(need.n_workers);
            if n_missing > 0
                && needy.is_none_or(|(most, _, _)| n_missing > most)
                && may_change(idx)
                && let Some(source) = self.source(idx, n_idle, may_change)
            {
                needy = Some((n_missing, idx, source));
            }
        }
        needy.map(|(_, idx, source)| (ServiceId(idx as u8), source))
    }

    fn source(
        &self,
        needy: usize,
        n_idle: usize,
        may_change: impl Fn(usize) -> bool,
    ) -> Option<Source> {
        if n_idle > 0 {
            return Some(Source::Idle);
        }
        let longest = (self.needs.iter().enumerate())
            .filter(|&(idx, need)| need.n_surplus > 0 && need.n_workers > 1 && may_change(idx))
            .min_by_key(|&(idx, need)| (need.surplus_since_ns, idx));
        if let Some((idx, _)) = longest {
            return Some(Source::Surplus(ServiceId(idx as u8)));
        }
        let n_workers: u32 = self.needs.iter().map(|need| need.n_workers).sum();
        let n_needed: u32 = self.needs.iter().map(|need| need.n_needed).sum();
        if n_needed <= n_workers {
            return None;
        }
        let (n_workers, n_needed) = (f64::from(n_workers), f64::from(n_needed));
        let above_share = |need: &Need| {
            f64::from(need.n_workers) - f64::from(need.n_needed) / n_needed * n_workers
        };
        let below = -above_share(&self.needs[needy]);
        if below <= 0.0 {
            return None;
        }
        let (idx, above) = (self.needs.iter().enumerate())
            .filter(|&(idx, need)| idx != needy && need.n_workers > 1 && may_change(idx))
            .map(|(idx, need)| (idx, above_share(need)))
            .fold(None, |most: Option<(usize, f64)>, it| match most {
                Some(most) if most.1 >= it.1 => Some(most),
                _ => Some(it),
            })?;
        let is_better = above > 0.0 && above + below > 1.0 + 1e-9;
        is_better.then_some(Source::Overload(ServiceId(idx as u8)))
    }

    /// Counts a worker that a service got.
    pub(crate) fn handle_given(&mut self, to: ServiceId, from: Source) {
        self.needs[to.idx()].n_workers += 1;
        match from {
            Source::Idle => {}
            Source::Overload(from) => self.needs[from.idx()].n_workers -= 1,
            Source::Surplus(from) => {
                let need = &mut self.needs[from.idx()];
                need.n_workers -= 1;
                need.n_surplus -= 1;
                if need.n_surplus == 0 {
                    need.surplus_since_ns = None;
                }
            }
        }
    }

    /// Counts workers anew after the operator, or a fault, changed them.
    pub(crate) fn recount(&mut self, service: ServiceId, n_workers: usize) {
        let need = &mut self.needs[service.idx()];
        need.n_workers = n_workers as u32;
        need.n_surplus = need.n_surplus.min(need.n_workers.saturating_sub(1));
        if need.n_surplus == 0 {
            need.surplus_since_ns = None;
        }
    }
}
