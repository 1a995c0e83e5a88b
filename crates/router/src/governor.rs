//! How many workers run: TAP (Iqbal 2013, section 6.3) carried out on the running router.
//!
//! Called by the scheduler's thread at each of its looks. A worker that sleeps lightly keeps
//! its names. One that sleeps deep has given them to the others as if an operator had removed
//! it, so pending Interests stay where they are and are answered there; it keeps thread,
//! engine and content store, and its thread goes on receiving for its faces.

use tachonym_dispatch::power::tap::{Interval, Tap, TapConfig};
use tachonym_dispatch::{Migration, MigrationState, WorkerId};
use tachonym_packet::MonoNs;
use tachonym_workers::{ReceiverConfig, Scheduler};
use tracing::debug;

use crate::run::FORWARDING;
use crate::team::Team;

/// See the module.
pub(crate) struct Governor {
    tap: Tap,
    /// What the workers had done at the latest look.
    before: Vec<(u64, u64)>,
    queue_pkts: u32,
    /// Most that counts of a worker's queue: sockets do not tell how much they hold, and a
    /// thread without a pause counts ever more.
    max_queue_pkts: u32,
}

impl Governor {
    /// Governs workers 0 to `n_workers` - 1, which all run.
    pub(crate) fn new(n_workers: usize) -> Self {
        let max_queue_pkts = ReceiverConfig::default().max_queue_pkts;
        Self {
            tap: Tap::new(TapConfig::live(n_workers, max_queue_pkts.into())),
            before: vec![(0, 0); n_workers],
            queue_pkts: 0,
            max_queue_pkts,
        }
    }

    /// Takes what has happened since the latest look into account, and has workers sleep or
    /// wake. Whether any did.
    pub(crate) fn tick(&mut self, now: MonoNs, team: &Team, scheduler: &mut Scheduler) -> bool {
        let interval = self.interval(now, team, scheduler);
        self.tap.sample_queue(interval.queue_pkts);
        let mut has_changed = false;
        for decision in [self.tap.handle_interval(&interval), self.tap.handle_step()] {
            for worker in decision.deep {
                has_changed |= put_to_sleep(worker, scheduler);
            }
            for worker in decision.wake {
                has_changed |= wake(worker, scheduler);
            }
        }
        has_changed
    }

    fn interval(&mut self, now: MonoNs, team: &Team, scheduler: &Scheduler) -> Interval {
        let (mut n_done, mut busy_ns) = (0, 0);
        for (idx, before) in self.before.iter_mut().enumerate() {
            let done = team.done(WorkerId(idx as u16)).get();
            n_done += done.0.saturating_sub(before.0);
            busy_ns += done.1.saturating_sub(before.1);
            *before = done;
        }
        let queue_lens = scheduler.queue_lens().iter();
        let queue_pkts = queue_lens.map(|&len| len.min(self.max_queue_pkts)).sum();
        let queue_before = u64::from(std::mem::replace(&mut self.queue_pkts, queue_pkts));
        let n_arrived = (n_done + u64::from(queue_pkts)).saturating_sub(queue_before);
        Interval {
            now_ns: now.0,
            n_arrived,
            n_done,
            busy_ns,
            queue_pkts,
        }
    }
}

/// Gives a worker's names to the others, unless an operator has pinned any to it or has
/// removed it.
fn put_to_sleep(worker: WorkerId, scheduler: &mut Scheduler) -> bool {
    let is_pinned_here = |it: &Migration| it.worker == worker && it.state == MigrationState::Pinned;
    if scheduler.homes().migrations().iter().any(is_pinned_here)
        || scheduler.laps_mut().remove_worker(worker).is_err()
    {
        return false;
    }
    debug!("worker {worker} sleeps: the others do what comes");
    true
}

/// Gives a worker names again, if it has none.
fn wake(worker: WorkerId, scheduler: &mut Scheduler) -> bool {
    let is_asleep = !scheduler.homes().workers().contains(worker);
    if !is_asleep || scheduler.laps_mut().add_worker(worker, FORWARDING).is_err() {
        return false;
    }
    debug!("worker {worker} wakes");
    true
}
