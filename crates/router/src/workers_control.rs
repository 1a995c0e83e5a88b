//! How the workers stand, and what an operator can change of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustix::thread::{CpuSet, sched_getaffinity};
use tachonym_dispatch::{Key, LapsError, MapError, MigrationState, ServiceId, WorkerId};
use tachonym_face::monotonic_now;
use tachonym_manage::{ControlError, WorkersChange};
use tachonym_packet::Name;
use tachonym_protocol::{
    MovedName, ReceiverStatus, WaitingStatus, WorkerState, WorkerStatus, WorkersStatus,
};
use tachonym_workers::{Dispatcher, WaitingLengths, Worker};

use crate::config::{Governor, Workers};
use crate::handle::{Threads, WorkerGone};
use crate::plane::Plane;
use crate::scheduling::Scheduling;
use crate::services::{FORWARDING, VERIFICATION};

/// The manager's hold on the workers.
pub(crate) struct WorkersControl {
    threads: Threads,
    scheduling: Scheduling,
    waiting: Arc<WaitingLengths>,
    config: Workers,
    governor: Governor,
    dispatcher: Dispatcher,
    /// The names that an operator has pinned; others are known by their keys alone.
    pinned: BTreeMap<(ServiceId, Key), Name>,
}

/// What a thread tells of itself.
struct Told {
    thread: usize,
    state: Option<WorkerState>,
    cpu: Option<u64>,
    busy_permille: u64,
    n_received_pkts: u64,
    n_in_pkts: u64,
    n_crossed_pkts: u64,
    /// By worker, what found no room on the way there.
    n_dropped_pkts: Vec<u64>,
    n_pit_entries: u64,
    n_cs_entries: u64,
    waiting: WaitingStatus,
}

impl WorkersControl {
    pub(crate) fn new(
        threads: Threads,
        scheduling: Scheduling,
        waiting: Arc<WaitingLengths>,
        config: Workers,
        governor: Governor,
    ) -> Self {
        let dispatcher = scheduling.dispatcher(&config, &threads.team().blueprint);
        Self {
            threads,
            scheduling,
            waiting,
            config,
            governor,
            dispatcher,
            pinned: BTreeMap::new(),
        }
    }

    /// How the workers stand.
    pub(crate) fn status(&mut self) -> Result<WorkersStatus, WorkerGone> {
        let layout = &self.threads.team().layout;
        let n_workers = layout.n_worker_threads();
        let told = self.threads.each(move |plane| told(plane, n_workers))?;
        let scheduler = self.scheduling.lock();
        let (laps, homes) = (scheduler.laps(), scheduler.homes());
        let map_of = |worker| homes.map(laps.service_of(worker).unwrap_or(FORWARDING));
        let away = homes.migrations().iter();
        let away: Vec<_> = away
            .filter(|moved| moved.state != MigrationState::Returned)
            .filter(|moved| {
                moved.worker != homes.map(moved.service).home(moved.key)
                    || moved.state == MigrationState::Pinned
            })
            .collect();
        self.pinned.retain(|&key, _| {
            let mut pinned = away.iter().filter(|it| it.state == MigrationState::Pinned);
            pinned.any(|moved| (moved.service, moved.key) == key)
        });
        let moved_names = away.iter().take(MovedName::MAX).map(|moved| MovedName {
            key: moved.key.0,
            worker: moved.worker.0.into(),
            is_pinned: moved.state == MigrationState::Pinned,
            name: self.pinned.get(&(moved.service, moved.key)).cloned(),
        });
        let n_dropped = |worker: usize| told.iter().map(|told| told.n_dropped_pkts[worker]).sum();
        let workers = told
            .iter()
            .filter(|told| told.thread < n_workers)
            .map(|told| {
                let worker = WorkerId(told.thread as u16);
                let state = match told.state {
                    Some(WorkerState::Running) if !homes.workers().contains(worker) => {
                        match self.governor.governs_workers() {
                            false => WorkerState::Removed,
                            true => WorkerState::Asleep,
                        }
                    }
                    Some(state) => state,
                    None => WorkerState::Spare,
                };
                WorkerStatus {
                    worker: told.thread as u64,
                    state,
                    service: match laps.service_of(worker) {
                        Some(VERIFICATION) => "verification".into(),
                        _ => "forwarding".into(),
                    },
                    cpu: told.cpu,
                    busy_permille: Some(told.busy_permille),
                    n_queued_pkts: scheduler
                        .queue_lens()
                        .get(told.thread)
                        .map_or(0, |&len| len.into()),
                    share_permille: (1000.0 * map_of(worker).share(worker)).round() as u64,
                    n_in_pkts: told.n_in_pkts,
                    n_crossed_pkts: told.n_crossed_pkts,
                    n_dropped_pkts: n_dropped(told.thread),
                    n_pit_entries: told.n_pit_entries,
                    n_cs_entries: told.n_cs_entries,
                    waiting: Some(told.waiting.clone()),
                }
            });
        let receivers = told.iter().filter(|told| told.thread >= n_workers);
        let receivers = receivers.map(|told| ReceiverStatus {
            thread: (told.thread - n_workers) as u64,
            cpu: told.cpu,
            busy_permille: Some(told.busy_permille),
            n_received_pkts: told.n_received_pkts,
            waiting: Some(told.waiting.clone()),
        });
        Ok(WorkersStatus {
            feed: self.config.feed.as_str().into(),
            dispatch: self.config.dispatch_words(),
            is_frozen: laps.is_frozen(),
            map_version: homes.version(),
            n_buckets: homes.map(FORWARDING).buckets().len() as u64,
            n_moved: laps.counters().n_migrations,
            n_away: away.len() as u64,
            moved_names: moved_names.collect(),
            workers: workers.take(WorkerStatus::MAX).collect(),
            receivers: receivers.take(ReceiverStatus::MAX).collect(),
        })
    }

    /// Workers that have names.
    pub(crate) fn n_running(&self) -> usize {
        self.scheduling.lock().homes().workers().len()
    }

    /// The worker at which a name is at home now.
    pub(crate) fn home(&mut self, name: &Name) -> WorkerId {
        self.dispatcher.refresh();
        self.dispatcher.home(name.view())
    }

    /// Changes them; whether there are more or fewer afterwards, so that content stores have
    /// another size.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn change(&mut self, change: &WorkersChange) -> Result<bool, ControlError> {
        if self.threads.team().layout.n_worker_threads() == 1 {
            return Err(refusal(of_one(change)));
        }
        let is_number = matches!(change, WorkersChange::Add | WorkersChange::Remove { .. });
        if is_number && self.governor.governs_workers() {
            return Err(refusal(
                "the power governor decides how many workers run; set power.governor = \"none\" \
                 and restart the router",
            ));
        }
        match change {
            WorkersChange::Freeze => self.scheduling.lock().laps_mut().freeze(),
            WorkersChange::Thaw => self.scheduling.lock().laps_mut().thaw(),
            WorkersChange::Pin { name, worker } => self.pin(name, *worker)?,
            WorkersChange::Unpin { name } => {
                let key = self.key(name)?;
                if !self.scheduling.lock().laps_mut().unpin(key.0, key.1) {
                    return Err(refusal(
                        "this name is not pinned; `tachonym workers map` lists the pinned names",
                    ));
                }
                self.pinned.remove(&key);
            }
            WorkersChange::Add => {
                self.add()?;
                return Ok(true);
            }
            WorkersChange::Remove { worker } => {
                self.remove(*worker)?;
                return Ok(true);
            }
        }
        self.publish();
        Ok(false)
    }

    fn pin(&mut self, name: &Name, worker: u64) -> Result<(), ControlError> {
        let key = self.key(name)?;
        let worker = self.running(worker)?;
        let pinned = self.scheduling.lock().laps_mut().pin(key.0, key.1, worker);
        pinned.map_err(|error| refusal(error.to_string()))?;
        self.pinned.insert(key, name.clone());
        Ok(())
    }

    /// The service of a name, and what its packets are dispatched by.
    fn key(&mut self, name: &Name) -> Result<(ServiceId, Key), ControlError> {
        let least = match self.config.dispatch {
            crate::config::Dispatch::Prefix => self.config.prefix_components.into(),
            _ => 0,
        };
        if name.len() < least {
            return Err(refusal(format!(
                "names are dispatched by {least} components (workers.prefix_components); give a \
                 name of at least as many"
            )));
        }
        let key = self.dispatcher.key(name.view());
        key.ok_or_else(|| refusal("names under /localhost always stay at worker 0"))
    }

    /// The worker of this number, if names may be at home there.
    fn running(&self, worker: u64) -> Result<WorkerId, ControlError> {
        let workers = self.scheduling.lock().homes().workers();
        let found = workers
            .into_iter()
            .find(|running| u64::from(running.0) == worker);
        let or_sleeps = match self.governor.governs_workers() {
            true => ", or sleeps (with power.governor = \"none\" none does)",
            false => "",
        };
        found.ok_or_else(|| {
            refusal(format!(
                "worker {worker} does not run{or_sleeps}; `tachonym workers` shows those that do"
            ))
        })
    }

    fn add(&mut self) -> Result<(), ControlError> {
        let n_threads = self.threads.team().layout.n_worker_threads();
        let running = self.scheduling.lock().homes().workers();
        let mut others = (0..n_threads).map(|thread| WorkerId(thread as u16));
        let Some(added) = others.find(|&worker| !running.contains(worker)) else {
            return Err(refusal(
                "workers.max_threads allows no more workers; raise it and restart the router",
            ));
        };
        let mut with_it = running;
        with_it.insert(added);
        self.threads.team().blueprint.settings().running = with_it;
        let outcome = self.install(added);
        let outcome = outcome.and_then(|()| {
            let outcome = self
                .scheduling
                .lock()
                .laps_mut()
                .add_worker(added, FORWARDING);
            outcome.map_err(|error| refusal(error.to_string()))
        });
        if outcome.is_err() {
            self.threads.team().blueprint.settings().running = running;
        }
        outcome?;
        self.publish();
        Ok(())
    }

    /// Gives a thread a worker, unless it still has one.
    fn install(&self, worker: WorkerId) -> Result<(), ControlError> {
        let gone = |WorkerGone| ControlError::Unavailable;
        let has_one = self
            .threads
            .at(worker.idx(), |plane| plane.has_worker())
            .map_err(gone)?;
        if has_one {
            return Ok(());
        }
        let engine = self.threads.team().blueprint.build(worker);
        let engine = engine.map_err(|error| refusal(format!("{error:#}")))?;
        let blueprint = &self.threads.team().blueprint;
        let dispatcher = self.scheduling.dispatcher(&self.config, blueprint);
        let new = Worker::new(worker, engine, dispatcher, Arc::clone(&self.waiting));
        let set = self.threads.at(worker.idx(), |plane| plane.set_worker(new));
        set.map_err(gone)
    }

    fn remove(&self, worker: u64) -> Result<(), ControlError> {
        let worker = self.running(worker)?;
        let mut scheduler = self.scheduling.lock();
        scheduler
            .laps_mut()
            .remove_worker(worker)
            .map_err(|error| match error {
                LapsError::Map(MapError::LastWorker { .. }) => {
                    refusal("it is the last worker; add another one first")
                }
                error => refusal(error.to_string()),
            })?;
        let running = scheduler.homes().workers();
        drop(scheduler);
        self.threads.team().blueprint.settings().running = running;
        self.publish();
        Ok(())
    }

    /// Makes it known to all threads: they take it with their next burst.
    fn publish(&self) {
        self.scheduling.lock().tick(monotonic_now());
    }
}

/// Why nothing can be changed of one worker.
fn of_one(change: &WorkersChange) -> String {
    let what = match change {
        WorkersChange::Freeze | WorkersChange::Thaw => "no name migrates",
        WorkersChange::Pin { .. } | WorkersChange::Unpin { .. } => "all names belong to it",
        WorkersChange::Add => "none can be added at run time",
        WorkersChange::Remove { .. } => "it cannot be removed",
    };
    format!("the router runs one worker, so {what}; raise workers.threads and restart it")
}

fn refusal(text: impl Into<String>) -> ControlError {
    ControlError::Workers(text.into())
}

fn told(plane: &mut Plane, n_workers: usize) -> Told {
    let sizes = plane.engine().map(tachonym_forward::Engine::sizes);
    let links = plane.links();
    let n_dropped = (0..n_workers).map(|worker| links.n_dropped_to(WorkerId(worker as u16)));
    Told {
        thread: plane.thread().idx(),
        state: plane.has_worker().then_some(match plane.worker() {
            Some(_) => WorkerState::Running,
            None => WorkerState::Failed,
        }),
        cpu: bound_to(),
        busy_permille: plane.busy.permille,
        n_received_pkts: plane.faces.counters().n_in_packets,
        n_in_pkts: plane.counters.n_at_home,
        n_crossed_pkts: plane.counters.n_crossed,
        n_dropped_pkts: n_dropped.collect(),
        n_pit_entries: sizes.map_or(0, |sizes| sizes.n_pit_entries as u64),
        n_cs_entries: sizes.map_or(0, |sizes| sizes.n_cs_entries as u64),
        waiting: waiting(&plane.waiting.status()),
    }
}

fn waiting(status: &tachonym_face::WaitingStatus) -> WaitingStatus {
    WaitingStatus {
        spin_ns: status.spin_ns,
        gather_ns: status.gather_ns,
        wake_cost_ns: status.wake_cost_ns,
        n_wakeups: status.n_wakeups,
        n_gathers: status.n_gathers,
        monitor: Some(status.monitor.as_str().into()),
    }
}

/// The one CPU that this thread may run on, if it is one.
fn bound_to() -> Option<u64> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let cpu = cpus.next()?;
    cpus.next().is_none().then_some(cpu as u64)
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_setaffinity;

    use super::*;

    #[test]
    fn a_thread_on_one_cpu_is_bound_to_it() {
        // A thread of its own, which takes what it may run on with it.
        let thread = std::thread::spawn(|| {
            let allowed = sched_getaffinity(None).expect("it may ask");
            for cpu in (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)) {
                let mut only = CpuSet::new();
                only.set(cpu);
                sched_setaffinity(None, &only).expect("it was allowed there");
                assert_eq!(bound_to(), Some(cpu as u64));
            }
            sched_setaffinity(None, &allowed).expect("it was allowed there");
            assert_eq!(bound_to().is_some(), allowed.count() == 1);
        });
        thread.join().expect("no assertion failed");
    }
}
