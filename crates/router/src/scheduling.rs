//! The thread on which names are moved off workers that have too much to do.
//!
//! It looks at what receivers tell every millisecond as long as there is traffic, and ever
//! more seldom when there is none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use tachonym_face::monotonic_now;
use tachonym_workers::{Dispatcher, Scheduler, Services, Tokens};
use tracing::debug;

use crate::blueprint::Blueprint;
use crate::config::Workers;
use crate::handle::Threads;
use crate::power::{Looked, Power};
use crate::team::Team;
use crate::threads::EndNotice;

/// From one look to the next, while there is traffic, and when there is none.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The scheduler, for its thread and for commands.
#[derive(Clone)]
pub(crate) struct Scheduling {
    scheduler: Arc<Mutex<Scheduler>>,
    services: Arc<Services>,
    tokens: Option<Tokens>,
}

impl Scheduling {
    pub(crate) fn new(scheduler: Scheduler, services: Services, tokens: Option<Tokens>) -> Self {
        Self {
            scheduler: Arc::new(Mutex::new(scheduler)),
            services: Arc::new(services),
            tokens,
        }
    }

    /// The scheduler; its thread waits meanwhile.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Scheduler> {
        // It is asked for homes alone, which are whole.
        self.scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheduling {
    /// What finds homes for one more thread.
    pub(crate) fn dispatcher(&self, workers: &Workers, blueprint: &Blueprint) -> Dispatcher {
        let key = blueprint.key().clone();
        let dispatcher = Dispatcher::new(workers.dispatch_by(), key, self.lock().reader());
        dispatcher
            .with_services(Arc::clone(&self.services))
            .with_tokens(self.tokens)
    }
}

/// The thread; it ends with this value.
pub(crate) struct SchedulerThread {
    thread: Option<JoinHandle<()>>,
    stop: Option<Sender<()>>,
}

impl SchedulerThread {
    /// Starts it, with what governs the workers.
    pub(crate) fn spawn(
        scheduling: Scheduling,
        threads: Threads,
        power: Power,
        notice: EndNotice,
    ) -> anyhow::Result<Self> {
        let (stop, stopped) = bounded(0);
        let thread = std::thread::Builder::new()
            .name("scheduler".into())
            .spawn(move || {
                let _notice = notice;
                run(&scheduling, &power, threads.team(), &stopped);
            })
            .context("cannot start the scheduler thread")?;
        Ok(Self {
            thread: Some(thread),
            stop: Some(stop),
        })
    }
}

impl Drop for SchedulerThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been noticed by its end.
            let _ = thread.join();
        }
    }
}

fn run(scheduling: &Scheduling, power: &Power, team: &Team, stopped: &Receiver<()>) {
    let mut pause = SHORTEST_PAUSE;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let mut scheduler = scheduling.lock();
        let n_samples = scheduler.n_samples();
        let now = monotonic_now();
        let n_moved = scheduler.tick(now);
        let Looked {
            has_changed,
            is_busy,
        } = power.tick(now, team, &mut scheduler);
        if has_changed {
            scheduler.publish();
        }
        let is_in_effect = scheduler.is_in_effect();
        let is_busy = is_busy || scheduler.n_samples() > n_samples || !is_in_effect;
        drop(scheduler);
        if !is_in_effect {
            // Those that have nothing to do take what has changed, too.
            team.wake_all();
        }
        if n_moved > 0 {
            debug!("{n_moved} names migrated to other workers");
        }
        pause = match is_busy {
            true => SHORTEST_PAUSE,
            false => (2 * pause).min(LONGEST_PAUSE),
        };
    }
}
