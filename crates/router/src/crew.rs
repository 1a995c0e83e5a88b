//! From a configuration to threads that forward.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use crossbeam_channel::{Receiver as Inbox, Sender, unbounded};
use tachonym_dispatch::WorkerId;
use tachonym_face::{FaceSystem, Monitor, SystemOptions, Waiting, Waker, monotonic_now};
use tachonym_forward::Engine;
use tachonym_packet::Name;
use tachonym_store::SecondLevel;
use tachonym_workers::{
    LinkConfig, Links, Receiver, ReceiverConfig, ReceiverView, WaitingLengths, Worker,
};
use tracing::{debug, info, warn};

use crate::blueprint::Blueprint;
use crate::config::{Config, usable_cpus};
use crate::handle::{Job, JobInbox, Threads};
use crate::internal::{InternalFace, Queue, ToManager};
use crate::layout::Layout;
use crate::plane::{Parts, Plane};
use crate::scheduling::Scheduling;
use crate::second_level::Ssd;
use crate::team::{FaceNews, Member, Team};
use crate::threads::{EndNotice, ForwarderThread};
use crate::verification::DataGate;
use crate::worker::Forwarder;

/// The threads before they run: each has a place to wait, and is reached there.
pub(crate) struct Crew {
    team: Arc<Team>,
    inboxes: Vec<JobInbox>,
    posts: Vec<Post>,
}

/// What a thread waits for.
struct Post {
    faces: FaceSystem,
    waker: Waker,
    jobs: Inbox<Job>,
    news: Inbox<FaceNews>,
}

/// What all threads begin with.
pub(crate) struct Orders<'a> {
    pub(crate) config: &'a Config,
    /// The names that the manager serves.
    pub(crate) managed: &'a [Name],
    pub(crate) scheduling: &'a Scheduling,
    pub(crate) to_manager: &'a Sender<ToManager>,
    /// Whom the end of a thread is told.
    pub(crate) notices: &'a Sender<()>,
}

/// The threads while they run.
pub(crate) struct Running {
    pub(crate) threads: Threads,
    pub(crate) forwarders: Vec<ForwarderThread>,
    /// Commands that each has for the manager.
    pub(crate) commands: Vec<Arc<Queue>>,
    pub(crate) waiting: Arc<WaitingLengths>,
}

impl Crew {
    /// Threads of this layout, those that receive with `systems`, in their order.
    ///
    /// # Errors
    /// If the kernel grants no descriptors to wait with.
    pub(crate) fn new(
        layout: Layout,
        blueprint: Blueprint,
        systems: Vec<FaceSystem>,
    ) -> anyhow::Result<Self> {
        let mut systems = systems.into_iter();
        let (mut members, mut inboxes, mut posts) = (Vec::new(), Vec::new(), Vec::new());
        for thread in 0..layout.n_threads() {
            let own = layout.system_threads().contains(&thread);
            let faces = match own.then(|| systems.next()).flatten() {
                Some(system) => system,
                // It has no faces, and serves to wait.
                None => FaceSystem::new(SystemOptions::default())
                    .context("cannot create an epoll instance")?,
            };
            let waker = faces.waker();
            let (tell, news) = unbounded();
            let (inbox, jobs) = JobInbox::new(waker.clone());
            members.push(Member::new(waker.clone(), tell));
            inboxes.push(inbox);
            posts.push(Post {
                faces,
                waker,
                jobs,
                news,
            });
        }
        Ok(Self {
            team: Arc::new(Team::new(layout, blueprint, members)),
            inboxes,
            posts,
        })
    }

    /// Starts all threads, with workers of which the first has `first_engine`. Each that is
    /// or may become a worker has one of `ssds`, if there are any.
    ///
    /// # Errors
    /// If there is not enough memory for the tables, or for threads.
    pub(crate) fn start(
        self,
        orders: &Orders<'_>,
        first_engine: Engine,
        ssds: Vec<(Ssd, SecondLevel)>,
    ) -> anyhow::Result<Running> {
        let Self {
            team,
            inboxes,
            posts,
        } = self;
        let layout = &team.layout;
        tell(orders.config, layout);
        let waiting = Arc::new(WaitingLengths::new(layout.n_worker_threads()));
        let mut first_engine = Some(first_engine);
        let mut ssds = ssds.into_iter();
        let (mut planes, mut views, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        let limits = orders
            .config
            .workers
            .waiting_limits(layout.n_threads(), usable_cpus().len());
        let monitor = ring_monitor(layout);
        let mut links = Links::mesh(layout.n_threads(), LinkConfig::default()).into_iter();
        for (thread, post) in posts.into_iter().enumerate() {
            let me = WorkerId(thread as u16);
            let engine = match thread < layout.n_workers() {
                true => Some(match first_engine.take() {
                    Some(engine) => engine,
                    None => team.blueprint.build(me)?,
                }),
                false => None,
            };
            let (mut ssd, store) = match thread < layout.n_worker_threads() {
                true => ssds.next().unzip(),
                false => (None, None),
            };
            if let (None, Some(ssd)) = (&engine, &mut ssd) {
                ssd.begin_anew(monotonic_now());
            }
            if let Some(fd) = ssd.as_ref().and_then(Ssd::wake_fd) {
                let watched = post.faces.wake_with(fd);
                watched.context("cannot wait for completions of the SSD level")?;
            }
            let worker = engine.map(|mut engine| {
                engine.cs_mut().set_second_level(store);
                team.blueprint.introduce(&mut engine);
                Worker::new(me, engine, orders.dispatcher(&team), Arc::clone(&waiting))
            });
            let max_commands = orders.config.management.queue_commands;
            let waits = Waiting::new(limits, monotonic_now());
            let managed = orders.managed.to_vec();
            let internal = InternalFace::new(orders.to_manager.clone(), managed, max_commands);
            commands.push(Arc::clone(internal.interests()));
            let plane = Plane::new(Parts {
                me,
                faces: post.faces,
                internal,
                gate: DataGate::new(orders.config, layout.n_threads())?,
                links: links.next().context("as many as there are threads")?,
                worker,
                receiver: orders.receiver(&team, thread, &mut views),
                news: post.news,
                ssd,
                waiting: match layout.system_threads().contains(&thread) {
                    true => waits,
                    false => waits.with_monitor(monitor.clone()),
                },
                team: Arc::clone(&team),
            });
            planes.push((plane, post.jobs, post.waker));
        }
        orders.scheduling.lock().set_receivers(views);
        let cpus = cpus_of_threads(orders.config, layout);
        let mut forwarders = Vec::with_capacity(planes.len());
        for (thread, (plane, jobs, waker)) in planes.into_iter().enumerate() {
            let stop = Arc::new(AtomicBool::new(false));
            forwarders.push(ForwarderThread::spawn(
                layout.name_of_thread(thread),
                Forwarder::new(plane, jobs, Arc::clone(&stop)),
                cpus.get(thread).copied(),
                stop,
                waker,
                EndNotice(orders.notices.clone()),
            )?);
        }
        Ok(Running {
            threads: Threads::new(team, inboxes),
            forwarders,
            commands,
            waiting,
        })
    }
}

impl Orders<'_> {
    fn dispatcher(&self, team: &Team) -> tachonym_workers::Dispatcher {
        let workers = &self.config.workers;
        self.scheduling.dispatcher(workers, &team.blueprint)
    }

    /// What takes packets to their homes, for a thread that receives some; none if all are at
    /// home there.
    fn receiver(
        &self,
        team: &Team,
        thread: usize,
        views: &mut Vec<ReceiverView>,
    ) -> Option<Receiver> {
        let layout = &team.layout;
        if layout.is_single() || !layout.system_threads().contains(&thread) {
            return None;
        }
        let own = layout.worker_of_thread(thread);
        let (receiver, view) = Receiver::new(
            own,
            layout.n_worker_threads(),
            self.dispatcher(team),
            ReceiverConfig::default(),
        );
        views.push(view);
        Some(receiver)
    }
}

/// What threads without sockets watch their rings with, if there are such threads.
fn ring_monitor(layout: &Layout) -> Monitor {
    if layout.system_threads().len() == layout.n_threads() {
        return Monitor::default();
    }
    let monitor = Monitor::detect();
    let kind = monitor.kind().as_str();
    debug!(
        monitor = kind,
        "threads without sockets watch their rings while they poll"
    );
    monitor
}

/// Says how many threads there are, and whether they are too many.
fn tell(config: &Config, layout: &Layout) {
    if layout.is_single() {
        return;
    }
    let (n_workers, n_io_threads) = (layout.n_workers(), config.workers.n_io_threads());
    info!(
        "{n_workers} worker threads; names are dispatched by {}, feed {}",
        config.workers.dispatch_words(),
        config.workers.feed.as_str()
    );
    let (n_busy, n_cpus) = (n_workers + n_io_threads, usable_cpus().len());
    if n_busy > n_cpus.max(1) {
        warn!(
            "{n_busy} busy threads share {n_cpus} processor cores, which slows all of them; lower \
             workers.threads"
        );
    }
}

/// The core of each thread, if threads are to be pinned.
pub(crate) fn cpus_of_threads(config: &Config, layout: &Layout) -> Vec<u16> {
    if !config.workers.cpus.is_empty() {
        return config.workers.cpus.clone();
    }
    let usable = usable_cpus();
    match !layout.is_single() && layout.n_threads() <= usable.len() {
        true => usable,
        false => Vec::new(),
    }
}
