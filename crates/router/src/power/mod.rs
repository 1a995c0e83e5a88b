//! How the power that the router takes follows its traffic.
//!
//! | module | what |
//! |---|---|
//! | `governor` | a governor of the crate `dispatch`, carried out on the running router |
//! | `levers` | what this machine lets the router govern and measure |
//! | `cpufreq`, `cpuidle`, `rapl` | the kernel's interfaces to it, in files |
//! | `sysfs` | these files, below `power.sysfs` |
//!
//! None of the files exists on most virtual machines: then the number of active workers alone
//! is governed. A governor without anything to govern says so once, at the start.

mod cpufreq;
mod cpuidle;
mod governor;
mod levers;
mod rapl;
mod sysfs;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, anyhow};
use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_face::monotonic_now;
use tachonym_packet::MonoNs;
use tachonym_protocol::{PowerStatus, PowerWork};
use tachonym_workers::Scheduler;
use tracing::warn;

pub(crate) use cpufreq::Cpufreq;
use governor::Governor;
pub(crate) use governor::Looked;
pub(crate) use levers::cpuinfo_khz;
use levers::{Cores, Levers};
pub(crate) use rapl::Rapl;
pub(crate) use sysfs::Folder;

use crate::config::{Config, usable_cpus};
use crate::handle::{Threads, WorkerGone};
use crate::layout::Layout;
use crate::team::Team;

/// The governor and its levers, for the scheduler's thread, which drives it, and for the
/// manager's, which reads its status.
#[derive(Clone)]
pub(crate) struct Power(Arc<Mutex<Inner>>);

struct Inner {
    kind: GovernorKind,
    name: &'static str,
    n_workers: usize,
    governor: Option<Governor>,
    levers: Levers,
    /// The server whose watts are computed, as TOML.
    model: String,
    /// Cycles of all threads so far, by the highest frequency, in nanoseconds.
    cycles_ns: f64,
    /// Work of each thread at the latest look.
    busy_ns: Vec<u64>,
}

impl Power {
    /// The governor that is configured, with what the machine gives it. `cpus` is the core of
    /// each thread, empty if they are not bound.
    ///
    /// # Errors
    /// If the model of the server can't be read.
    pub(crate) fn new(config: &Config, layout: &Layout, cpus: &[u16]) -> anyhow::Result<Self> {
        let governor = config.governor();
        let kind = governor.kind();
        let n_workers = layout.n_workers();
        let of_thread = |thread: usize| cpus.get(thread).map(|&cpu| u32::from(cpu));
        let receivers = layout.n_worker_threads()..layout.n_threads();
        let cores = Cores {
            of_workers: (0..n_workers).map(of_thread).collect(),
            of_receivers: receivers.filter_map(of_thread).collect(),
            usable: usable_cpus().into_iter().map(u32::from).collect(),
        };
        let sys = Folder::new(&config.power.sysfs);
        let (levers, missing) = Levers::take(&sys, &config.power.kept, kind, cores);
        for what in missing.0 {
            let name = governor.as_str();
            // A default that finds no lever is no news.
            match config.power.governor.is_some() {
                true => warn!("power.governor = \"{name}\": {what}"),
                false => tracing::debug!("power.governor = \"{name}\": {what}"),
            }
        }
        let server = config
            .power
            .server()
            .map_err(|it| anyhow!("power.model: {it}"))?;
        let model = toml::to_string(&server).context("power.model cannot be shown")?;
        let is_governed = kind != GovernorKind::None;
        let frequency = levers.frequency();
        Ok(Self(Arc::new(Mutex::new(Inner {
            kind,
            name: governor.as_str(),
            n_workers,
            governor: is_governed.then(|| Governor::new(kind, n_workers, frequency)),
            levers,
            model,
            cycles_ns: 0.0,
            busy_ns: vec![0; layout.n_threads()],
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in a look may leave a decision half carried out; the next look corrects it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is anything to do at a look.
    pub(crate) fn is_governed(&self) -> bool {
        self.lock().kind != GovernorKind::None
    }

    /// Looks at what the workers have done, and governs.
    pub(crate) fn tick(&self, now: MonoNs, team: &Team, scheduler: &mut Scheduler) -> Looked {
        let inner = &mut *self.lock();
        inner.count(team);
        let Some(governor) = &mut inner.governor else {
            return Looked::default();
        };
        governor.tick(now, team, scheduler, &mut inner.levers)
    }

    /// How it stands, with what all threads have done; `n_active` workers have names.
    ///
    /// # Errors
    /// If all threads have ended.
    pub(crate) fn status(
        &self,
        threads: &Threads,
        n_active: usize,
    ) -> Result<PowerStatus, WorkerGone> {
        let mut work = work(threads)?;
        let inner = &mut *self.lock();
        inner.count(threads.team());
        work.busy_ns = inner.busy_ns.iter().sum();
        work.cycles_ns = inner.cycles_ns as u64;
        work.max_khz = inner.levers.max_khz();
        let governor = inner.governor.as_ref();
        Ok(PowerStatus {
            governor: inner.name.to_owned(),
            n_active: n_active as u64,
            levers: inner.levers.told().to_vec(),
            workers: governor.map_or_else(Vec::new, |it| it.workers(&inner.levers)),
            tap: governor.and_then(Governor::tap),
            energy: inner.levers.energy(),
            model: inner.model.clone(),
            work,
        })
    }
}

impl Inner {
    /// Adds what threads have done since the latest look, at the frequencies of now. Threads
    /// that only receive count as at the highest.
    fn count(&mut self, team: &Team) {
        for (thread, before) in self.busy_ns.iter_mut().enumerate() {
            let (_, busy_ns) = team.done(tachonym_dispatch::WorkerId(thread as u16)).get();
            let done_ns = busy_ns.saturating_sub(*before) as f64;
            *before = busy_ns;
            let relative = match thread < self.n_workers {
                true => self.levers.relative_frequency(thread),
                false => 1.0,
            };
            self.cycles_ns += done_ns * relative;
        }
    }
}

/// What all threads count, without their times.
fn work(threads: &Threads) -> Result<PowerWork, WorkerGone> {
    let of_threads = threads.each(|plane| {
        // A thread that waits tells the governor nothing by itself.
        plane.publish_done(monotonic_now());
        let faces = plane.faces.counters();
        let mut work = PowerWork {
            n_in_pkts: faces.n_in_packets,
            n_out_pkts: faces.n_out_packets,
            ..PowerWork::default()
        };
        if let Some(engine) = plane.engine() {
            let counters = engine.counters();
            work.n_hits = counters.n_cs_hits;
            let n_misses = counters.n_cs_misses - counters.n_cs_misses_of_management;
            work.n_interests = counters.n_cs_hits + n_misses;
            work.n_data = counters.n_in_data;
            work.n_inserts = engine.cs().counters().n_inserts;
        }
        work
    })?;
    let mut sum = PowerWork {
        at_ns: monotonic_now().0,
        ..PowerWork::default()
    };
    for of_thread in of_threads {
        sum.n_in_pkts += of_thread.n_in_pkts;
        sum.n_out_pkts += of_thread.n_out_pkts;
        sum.n_interests += of_thread.n_interests;
        sum.n_hits += of_thread.n_hits;
        sum.n_data += of_thread.n_data;
        sum.n_inserts += of_thread.n_inserts;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
