//! Workers that come, go and change their service; what the operator decides.

use super::{Laps, MoveRule};
use crate::allocation::{ServiceLoad, Source, Transfer};
use crate::migration::{MigrationState, Placed};
use crate::{Key, LapsError, MapError, ServiceId, WorkerId};

impl Laps {
    /// Takes an interval into account and passes workers between services as their needs
    /// demand. Returns what changed, which is also published with the next snapshot.
    ///
    /// By [`MoveRule::Evens`], services whose last change is not
    /// [in effect](Self::handle_in_effect) neither get nor give a worker.
    ///
    /// `now_ns` is any clock that does not go backwards.
    ///
    /// # Panics
    /// If there are not as many loads as services, or the interval takes no time.
    pub fn handle_interval(
        &mut self,
        now_ns: u64,
        interval_ns: u64,
        loads: &[ServiceLoad],
    ) -> &[Transfer] {
        self.transfers.clear();
        self.allocator.handle_interval(now_ns, interval_ns, loads);
        // A bit for each service whose last change is on its way: the next one, on top of
        // it, would be decided by queues that tell of neither, and move names that wait.
        let mut on_their_way = 0_u64;
        if self.rule != MoveRule::Published {
            for (service, &version) in self.changed.iter().enumerate() {
                on_their_way |= u64::from(version > self.in_effect) << service;
            }
        }
        let may_change = |service: ServiceId| on_their_way >> service.idx() & 1 == 0;
        while !self.is_frozen && self.transfers.len() < crate::MAX_WORKERS {
            let n_idle = self.idle_workers().len();
            let Some((to, source)) = self.allocator.next(n_idle, may_change) else {
                break;
            };
            let from = match source {
                Source::Idle => None,
                Source::Surplus(from) | Source::Overload(from) => Some(from),
            };
            let worker = match from {
                // What came last goes first, so that it undoes what moved for it.
                Some(from) => self.homes.maps[from.idx()].workers().last().copied(),
                None => self.idle_workers().into_iter().next(),
            };
            let Some(worker) = worker else { break };
            if self.transfer(worker, from, to).is_err() {
                break;
            }
            self.allocator.handle_given(to, source);
        }
        &self.transfers
    }

    /// Has a worker pass from a service, or from none, to another.
    fn transfer(
        &mut self,
        worker: WorkerId,
        from: Option<ServiceId>,
        to: ServiceId,
    ) -> Result<(), MapError> {
        if let Some(from) = from {
            self.take(worker, from)?;
        }
        self.homes.version += 1;
        let map = &mut self.homes.maps[to.idx()];
        map.insert(worker, self.homes.version)?;
        self.loads.handle_map(map, None);
        self.changed[to.idx()] = self.homes.version;
        self.serves[worker.idx()] = Some(to);
        self.counters.n_transfers += 1;
        if self.transfers.len() < crate::MAX_WORKERS {
            self.transfers.push(Transfer { worker, from, to });
        }
        Ok(())
    }

    /// Takes a worker from a service, which has others.
    fn take(&mut self, worker: WorkerId, from: ServiceId) -> Result<(), MapError> {
        self.homes.version += 1;
        let map = &mut self.homes.maps[from.idx()];
        map.remove(worker, self.homes.version)?;
        self.loads.handle_map(map, Some(worker));
        self.changed[from.idx()] = self.homes.version;
        self.serves[worker.idx()] = None;
        let n_sent = self
            .homes
            .send_home(|it| it.service == from && it.worker == worker);
        self.counters.n_sent_home += n_sent as u64;
        Ok(())
    }

    /// Adds a worker to a service: at most 1/N of the service's names move to it, N being
    /// how many workers it has then.
    ///
    /// # Errors
    /// If there is no such service, the worker serves one, or it can't be one more.
    pub fn add_worker(&mut self, worker: WorkerId, service: ServiceId) -> Result<(), LapsError> {
        self.check_service(service)?;
        if worker.idx() >= crate::MAX_WORKERS {
            return Err(MapError::TooManyWorkers.into());
        }
        if self.serves[worker.idx()].is_some() {
            return Err(MapError::AlreadyThere { worker }.into());
        }
        self.transfer(worker, None, service)?;
        self.homes.workers.insert(worker);
        self.recount();
        Ok(())
    }

    /// Takes a worker out. Its names go to the others of its service; if there is none,
    /// one of another service takes its place. It stays a former holder of its names until
    /// that [settles](Self::settle); a worker that died has nothing any more:
    /// [`forget_worker`](Self::forget_worker).
    ///
    /// # Errors
    /// If it isn't there, or no worker would be left for its service. Nothing has changed
    /// then.
    pub fn remove_worker(&mut self, worker: WorkerId) -> Result<(), LapsError> {
        if !self.homes.workers.contains(worker) {
            return Err(MapError::NotThere { worker }.into());
        }
        if let Some(service) = self.serves[worker.idx()] {
            if self.homes.maps[service.idx()].workers().len() == 1 {
                let (other, from) = self.spare().ok_or(MapError::LastWorker { worker })?;
                self.transfer(other, from, service)?;
            }
            self.take(worker, service)?;
        }
        self.homes.workers.remove(worker);
        self.recount();
        Ok(())
    }

    /// A worker without a service, or the last one of the service that has most, if it has
    /// another.
    fn spare(&self) -> Option<(WorkerId, Option<ServiceId>)> {
        if let Some(idle) = self.idle_workers().into_iter().next() {
            return Some((idle, None));
        }
        let maps = self.homes.maps.iter().enumerate();
        let (service, map) =
            maps.max_by_key(|&(idx, map)| (map.workers().len(), std::cmp::Reverse(idx)))?;
        match *map.workers() {
            [.., _, last] => Some((last, Some(ServiceId(service as u8)))),
            _ => None,
        }
    }

    /// Forgets a worker as former holder of any name: it has no pending Interests any more.
    pub fn forget_worker(&mut self, worker: WorkerId) {
        self.homes.version += 1;
        self.homes.forget(worker);
    }

    /// Forgets former holders, as far as they stem from changes up to this version.
    pub fn settle(&mut self, version: u64) {
        self.homes.version += 1;
        self.homes.settle(version);
        self.handle_in_effect(version);
    }

    /// Keeps a name at a worker of its service, whatever the queues say. The pin ends when
    /// the worker leaves the service.
    ///
    /// # Errors
    /// If there is no such service, the worker isn't one of it, or there is no room.
    pub fn pin(&mut self, service: ServiceId, key: Key, worker: WorkerId) -> Result<(), LapsError> {
        self.check_service(service)?;
        if self.service_of(worker) != Some(service) {
            return Err(LapsError::OtherService { worker, service });
        }
        let to = (worker, MigrationState::Pinned);
        match self.homes.migrate(service, key, to, self.in_effect) {
            Placed::Refused => Err(LapsError::Pinned),
            Placed::Later => {
                self.counters.n_displaced += 1;
                Err(LapsError::NotYet)
            }
            Placed::Done => Ok(()),
        }
    }

    /// Lets a pinned name go home. Returns whether it was pinned.
    pub fn unpin(&mut self, service: ServiceId, key: Key) -> bool {
        self.homes.version += 1;
        let n_sent = self.homes.send_home(|it| {
            it.state == MigrationState::Pinned && it.service == service && it.key == key
        });
        n_sent > 0
    }

    /// Moves no name and no worker from now on.
    pub const fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// Ends [`freeze`](Self::freeze).
    pub const fn thaw(&mut self) {
        self.is_frozen = false;
    }

    fn check_service(&self, service: ServiceId) -> Result<(), LapsError> {
        if service.idx() < self.homes.n_services() {
            Ok(())
        } else {
            Err(LapsError::NoSuchService { service })
        }
    }

    fn recount(&mut self) {
        for (service, map) in self.homes.maps.iter().enumerate() {
            (self.allocator).recount(ServiceId(service as u8), map.workers().len());
        }
    }
}
