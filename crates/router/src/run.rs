//! From a configuration to a running router, and back to nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use crossbeam_channel::{Receiver, Sender, unbounded};
use tachonym_dispatch::{Laps, LapsConfig, MapKind, Publisher, WorkerId};
use tachonym_face::{FaceSystem, SystemOptions};
use tachonym_forward::{Engine, EngineConfig, Schedule, UnsolicitedDataPolicy};
use tachonym_manage::{Manager, ManagerConfig, RibLimits};
use tachonym_packet::{FaceId, HashKey, Name};
use tachonym_protocol::FaceUri;
use tachonym_tables::{
    CsCapacity, FibConfig, FibEngine, FibMatching, IndexKind, NextHop, PitConfig, PitCsLayout,
};
use tachonym_workers::{
    Dispatcher, LinkConfig, Links, ReceiverConfig, Scheduler, WaitingLengths, Worker,
};
use tracing::{info, warn};

use crate::blueprint::Blueprint;
use crate::config::{self, Config, NameHash, TableIndex, UnsolicitedData};
use crate::control::RouterControl;
use crate::drops;
use crate::handle::{JobInbox, Threads};
use crate::internal::{InternalFace, Queue, ToManager};
use crate::layout::Layout;
use crate::manager::ManagerThread;
use crate::plane::{Parts, Plane};
use crate::scheduling::{SchedulerThread, Scheduling};
use crate::start::{add_static_routes, link_options, listen};
use crate::strategies;
use crate::team::{Member, Team};
use crate::threads::{EndNotice, ForwarderThread};
use crate::trust;
use crate::worker::Forwarder;

/// Packets that wait for a worker from which on names move off it.
const HIGH_THRESHOLD_PKTS: u32 = 256;
/// Parts into which names are divided, as a power of two: workers have as many each, or one
/// more.
const N_BUCKETS_LOG2: u8 = 10;

/// Prefix of the management protocol for programs on this machine.
const LOCAL_MANAGEMENT: &str = "/localhost/nfd";
/// Prefix of the management protocol for neighbours.
const NEIGHBOUR_MANAGEMENT: &str = "/localhop/nfd";

/// A router that runs in threads of its own, until it is stopped or dropped.
pub struct Router {
    listening: Vec<FaceUri>,
    to_manager: Sender<ToManager>,
    commands: Vec<Arc<Queue>>,
    threads: Threads,
    forwarders: Vec<ForwarderThread>,
    scheduler: Option<SchedulerThread>,
    manager: JoinHandle<()>,
    ended: Receiver<()>,
}

/// How a router is at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Faces, the internal one not included.
    pub n_faces: usize,
    /// Pending Interests.
    pub n_pit_entries: usize,
    /// Data in the content store.
    pub n_cs_entries: usize,
    /// Packets that were dropped, by reason, since the start; reasons that
    /// never occurred are left out.
    pub drops: Vec<(&'static str, u64)>,
    /// Connections that were turned away.
    pub n_refused_connections: u64,
    /// Times that a listener rested for want of descriptors or memory.
    pub n_accept_pauses: u64,
    /// Connections given up because the other end took nothing for too long.
    pub n_stalled_connections: u64,
    /// Datagrams that the kernel dropped because a receive buffer was full.
    pub n_kernel_drops: u64,
    /// System calls made for faces.
    pub n_syscalls: u64,
    /// System calls per packet received or sent.
    pub syscalls_per_packet: f64,
}

impl Snapshot {
    /// Packets that were dropped for `reason`.
    #[must_use]
    pub fn n_dropped(&self, reason: &str) -> u64 {
        let of_reason = self.drops.iter().filter(|(name, _)| *name == reason);
        of_reason.map(|(_, n)| n).sum()
    }

    /// Packets that were dropped for any reason.
    #[must_use]
    pub fn n_drops(&self) -> u64 {
        self.drops.iter().map(|(_, n)| n).sum()
    }
}

impl Router {
    /// Starts a router.
    ///
    /// # Errors
    /// If an address cannot be listened on, or a static face or route cannot be
    /// made.
    pub fn start(config: &Config) -> anyhow::Result<Self> {
        let (layout, shares) = Layout::new(&config.workers);
        let systems = shares.into_iter().map(|share| {
            let mut options = system_options(config);
            options.share = share;
            FaceSystem::new(options).context("cannot use epoll")
        });
        let mut systems = systems.collect::<anyhow::Result<Vec<_>>>()?;
        let listening = listen(config, &mut systems[0])?;
        let mut managed: Vec<Name> = vec![LOCAL_MANAGEMENT.parse()?];
        if config.management.localhop.enabled {
            managed.push(NEIGHBOUR_MANAGEMENT.parse()?);
        }
        let (blueprint, first_engine) = blueprint(config, &managed)?;
        let scheduling = Scheduling::new(scheduler(config, &layout)?);
        let (to_manager, inbox) = unbounded();
        let (notices, ended) = unbounded();
        let crew = Crew::muster(config, layout, blueprint, systems)?;
        let crew = crew.equip(config, first_engine, &scheduling, &managed, &to_manager)?;
        let commands = crew.planes.iter();
        let commands = commands
            .map(|plane| Arc::clone(plane.internal.interests()))
            .collect();
        let (threads, forwarders) = crew.start(config, &notices)?;
        let scheduler = (config.workers.most() > 1)
            .then(|| SchedulerThread::spawn(scheduling.clone(), EndNotice(notices.clone())));

        let rib = RibLimits {
            max_routes: config.tables.routes,
            max_name_bytes: config.tables.route_bytes,
            ..RibLimits::default()
        };
        let trust = trust::management_trust(&config.management)
            .map_err(|fault| anyhow!("management: {}: {}", fault.key, fault.message))?;
        let manager = Manager::new(
            ManagerConfig {
                rib,
                trust,
                ..ManagerConfig::default()
            },
            RouterControl::new(
                threads.clone(),
                link_options(config),
                config.memory.pages.into(),
                config.content_store.clone(),
            ),
        );
        let mut manager = ManagerThread {
            manager,
            threads: threads.clone(),
            inbox,
        };
        add_static_routes(config, &threads, &mut manager.manager)?;
        let manager = std::thread::Builder::new()
            .name("manager".into())
            .spawn(move || {
                let _notice = EndNotice(notices);
                manager.run();
            })
            .context("cannot start the manager")?;
        Ok(Self {
            listening,
            to_manager,
            commands,
            threads,
            forwarders,
            scheduler: scheduler.transpose()?,
            manager,
            ended,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn listening(&self) -> &[FaceUri] {
        &self.listening
    }

    /// Whether all its threads still run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.forwarders.iter().all(ForwarderThread::is_running)
    }

    /// Gets a message when one of its threads has ended, which should not happen
    /// before [`Router::stop`]; that tells why.
    #[must_use]
    pub const fn ended(&self) -> &Receiver<()> {
        &self.ended
    }

    /// Management Interests that found the manager's queue full.
    #[must_use]
    pub fn n_dropped_commands(&self) -> u64 {
        self.commands.iter().map(|queue| queue.n_dropped()).sum()
    }

    /// How it is, as of now.
    ///
    /// # Errors
    /// If its threads have ended.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let of_threads = self.threads.each(|plane| {
            let sizes = plane.engine().map(Engine::sizes);
            (
                plane.faces.n_faces(),
                sizes,
                plane.faces.counters(),
                drops::collect(plane),
            )
        })?;
        let mut snapshot = Snapshot::default();
        let (mut n_packets, mut dropped) = (0, Vec::new());
        for (n_faces, sizes, faces, drops) in of_threads {
            snapshot.n_faces += n_faces;
            snapshot.n_pit_entries += sizes.map_or(0, |sizes| sizes.n_pit_entries);
            snapshot.n_cs_entries += sizes.map_or(0, |sizes| sizes.n_cs_entries);
            snapshot.n_refused_connections += faces.n_refused;
            snapshot.n_accept_pauses += faces.n_accept_pauses;
            snapshot.n_stalled_connections += faces.n_stalled;
            snapshot.n_kernel_drops += faces.n_kernel_drops;
            snapshot.n_syscalls += faces.n_syscalls();
            n_packets += faces.n_in_packets + faces.n_out_packets;
            dropped.push(drops);
        }
        snapshot.syscalls_per_packet = match n_packets {
            0 => 0.0,
            n_packets => snapshot.n_syscalls as f64 / n_packets as f64,
        };
        let whole = drops::sum(dropped)
            .into_iter()
            .filter(|dropped| dropped.face.is_none());
        snapshot.drops = whole
            .map(|dropped| (dropped.reason, dropped.count))
            .collect();
        Ok(snapshot)
    }

    /// Stops it and waits until its threads have ended.
    ///
    /// # Errors
    /// What ended one of them, if it was not this call.
    pub fn stop(mut self) -> anyhow::Result<()> {
        for forwarder in &self.forwarders {
            forwarder.begin_stop();
        }
        let mut result = Ok(());
        for forwarder in &mut self.forwarders {
            result = result.and(forwarder.stop());
        }
        drop(self.scheduler.take());
        // The manager may wait for a job that no worker will run; its queue's
        // end tells it.
        let _ = self.to_manager.send(ToManager::Stop);
        self.manager
            .join()
            .map_err(|_| anyhow!("the manager panicked"))?;
        result
    }
}

/// The threads before they run.
struct Crew {
    team: Arc<Team>,
    inboxes: Vec<JobInbox>,
    queues: Vec<Receiver<crate::handle::Job>>,
    wakers: Vec<tachonym_face::Waker>,
    systems: Vec<FaceSystem>,
    news: Vec<Receiver<crate::team::FaceNews>>,
}

/// The same, with all that they own.
struct Equipped {
    team: Arc<Team>,
    inboxes: Vec<JobInbox>,
    queues: Vec<Receiver<crate::handle::Job>>,
    wakers: Vec<tachonym_face::Waker>,
    planes: Vec<Plane>,
}

impl Crew {
    /// Gives each thread a face system, if only to wait, and a way to be reached.
    fn muster(
        config: &Config,
        layout: Layout,
        blueprint: Blueprint,
        systems: Vec<FaceSystem>,
    ) -> anyhow::Result<Self> {
        let mut listening = systems.into_iter();
        let mut systems = Vec::with_capacity(layout.n_threads());
        for thread in 0..layout.n_threads() {
            let own = layout
                .system_threads()
                .contains(&thread)
                .then(|| listening.next());
            systems.push(match own.flatten() {
                Some(system) => system,
                None => FaceSystem::new(SystemOptions::default()).context("cannot use epoll")?,
            });
        }
        let (mut members, mut inboxes) = (Vec::new(), Vec::new());
        let (mut queues, mut wakers, mut all_news) = (Vec::new(), Vec::new(), Vec::new());
        for system in &systems {
            let waker = system.waker();
            let (tell, news) = unbounded();
            let (inbox, queue) = JobInbox::new(waker.clone());
            members.push(Member::new(waker.clone(), tell));
            inboxes.push(inbox);
            queues.push(queue);
            wakers.push(waker);
            all_news.push(news);
        }
        let n_busy = layout.n_workers() + config.workers.n_io_threads();
        let n_cpus = config::usable_cpus().len();
        if n_busy > n_cpus.max(1) {
            warn!(
                "{n_busy} threads share {n_cpus} processor cores: fewer workers.threads are faster"
            );
        }
        info!(
            "{} workers, names are at home by {}, packets come by {}",
            layout.n_workers(),
            config.workers.dispatch_words(),
            layout.feed().as_str()
        );
        Ok(Self {
            team: Arc::new(Team::new(layout, blueprint, members)),
            inboxes,
            queues,
            wakers,
            systems,
            news: all_news,
        })
    }

    /// Gives each thread its worker, its receiver and its ends of rings.
    fn equip(
        self,
        config: &Config,
        first_engine: Engine,
        scheduling: &Scheduling,
        managed: &[Name],
        to_manager: &Sender<ToManager>,
    ) -> anyhow::Result<Equipped> {
        let Self {
            team,
            inboxes,
            queues,
            wakers,
            systems,
            news,
        } = self;
        let layout = &team.layout;
        let waiting = Arc::new(WaitingLengths::new(layout.n_worker_threads()));
        let links = Links::mesh(layout.n_threads(), LinkConfig::default());
        let mut first_engine = Some(first_engine);
        let mut planes = Vec::with_capacity(layout.n_threads());
        let mut views = Vec::new();
        for (thread, ((faces, links), news)) in systems.into_iter().zip(links).zip(news).enumerate()
        {
            let me = WorkerId(thread as u16);
            let dispatcher = || dispatcher(config, &team, scheduling);
            let worker = match thread < layout.n_workers() {
                true => {
                    let mut engine = match first_engine.take() {
                        Some(engine) => engine,
                        None => team.blueprint.build(me)?,
                    };
                    team.blueprint.introduce(&mut engine);
                    Some(Worker::new(me, engine, dispatcher(), Arc::clone(&waiting)))
                }
                false => None,
            };
            let receives = layout.system_threads().contains(&thread) && !layout.is_single();
            let receiver = receives.then(|| {
                let (receiver, view) = tachonym_workers::Receiver::new(
                    layout.worker_of_thread(thread),
                    layout.n_worker_threads(),
                    dispatcher(),
                    ReceiverConfig::default(),
                );
                views.push(view);
                receiver
            });
            let max_commands = config.management.queue_commands;
            let internal = InternalFace::new(to_manager.clone(), managed.to_vec(), max_commands);
            planes.push(Plane::new(Parts {
                me,
                team: Arc::clone(&team),
                faces,
                internal,
                links,
                worker,
                receiver,
                news,
            }));
        }
        scheduling.lock().set_receivers(views);
        Ok(Equipped {
            team,
            inboxes,
            queues,
            wakers,
            planes,
        })
    }
}

impl Equipped {
    /// Starts all threads.
    fn start(
        self,
        config: &Config,
        notices: &Sender<()>,
    ) -> anyhow::Result<(Threads, Vec<ForwarderThread>)> {
        let cpus = cpus(config, &self.team.layout);
        let mut forwarders = Vec::with_capacity(self.planes.len());
        let parts = self.planes.into_iter().zip(self.queues).zip(self.wakers);
        for (thread, ((plane, queue), waker)) in parts.enumerate() {
            let stop = Arc::new(AtomicBool::new(false));
            forwarders.push(ForwarderThread::spawn(
                self.team.layout.name_of_thread(thread),
                Forwarder::new(plane, queue, Arc::clone(&stop)),
                cpus.get(thread).copied(),
                stop,
                waker,
                EndNotice(notices.clone()),
            )?);
        }
        Ok((Threads::new(self.team, self.inboxes), forwarders))
    }
}

/// The core of each thread, if threads are to be pinned.
pub(crate) fn cpus(config: &Config, layout: &Layout) -> Vec<u16> {
    if !config.workers.cpus.is_empty() {
        return config.workers.cpus.clone();
    }
    let usable = config::usable_cpus();
    match !layout.is_single() && layout.n_threads() <= usable.len() {
        true => usable,
        false => Vec::new(),
    }
}

/// What finds homes for a thread.
fn dispatcher(config: &Config, team: &Team, scheduling: &Scheduling) -> Dispatcher {
    let by = config.workers.dispatch_by();
    Dispatcher::new(by, team.blueprint.key().clone(), scheduling.lock().reader())
}

fn scheduler(config: &Config, layout: &Layout) -> anyhow::Result<Scheduler> {
    let mut laps = Laps::new(&LapsConfig {
        map: MapKind::Buckets {
            n_buckets_log2: N_BUCKETS_LOG2,
        },
        high_threshold: HIGH_THRESHOLD_PKTS,
        ..LapsConfig::new(layout.n_workers())
    })?;
    if !config.workers.balance {
        laps.freeze();
    }
    let publisher = Publisher::new(laps.homes());
    let lifetime_ms = config.forwarding.max_interest_lifetime_ms;
    let n_workers = layout.n_worker_threads();
    Ok(Scheduler::new(
        laps,
        n_workers,
        publisher,
        Vec::new(),
        lifetime_ms,
    ))
}

/// What engines are made of, and the first of them.
fn blueprint(config: &Config, managed: &[Name]) -> anyhow::Result<(Blueprint, Engine)> {
    let t = &config.tables;
    let n_workers = usize::from(config.workers.threads);
    let all_stores = CsCapacity {
        max_pkts: t.cs_packets,
        max_bytes: t.cs_bytes,
    };
    let key = hash_key(t.name_hash)?;
    let mut engine_config = engine_config(config)?;
    engine_config.cs = CsCapacity {
        max_pkts: t.cs_packets.div_ceil(n_workers),
        max_bytes: t.cs_bytes.div_ceil(n_workers),
    };
    let mut first = Engine::new(engine_config.clone(), key.clone(), getrandom::u64()?)?;
    first.add_face(FaceId::INTERNAL, tachonym_forward::FaceTraits::LOCAL);
    for prefix in managed {
        add_management_route(&mut first, prefix)?;
    }
    let blueprint = Blueprint::new(&first, engine_config, key, all_stores, n_workers);
    let mut settings = blueprint.settings();
    for choice in &config.strategy {
        let prefix: Name = choice.prefix.parse()?;
        let strategy =
            strategies::find(&choice.strategy).with_context(|| choice.strategy.clone())?;
        if strategies::learns_routes(&strategy) && !config.management.announcements.learn {
            warn!(
                "{prefix}: self-learning asks all neighbours for every Interest without a \
                 route, and learns none; set management.announcements.learn, unless other \
                 routers only shall learn from this one"
            );
        }
        settings.strategies.insert(prefix, strategy);
    }
    drop(settings);
    blueprint.configure(&mut first)?;
    Ok((blueprint, first))
}

fn system_options(config: &Config) -> SystemOptions {
    let f = &config.faces;
    let mut options = SystemOptions::default();
    options.max_faces = f.max_faces;
    options.max_face_backlog_bytes = f.max_backlog_bytes;
    options.stall_timeout = Duration::from_secs(f.stall_timeout_s);
    options.udp_receive_buffer_bytes = f.socket_buffer_bytes;
    options.udp_send_buffer_bytes = f.socket_buffer_bytes;
    options
}

/// Of a worker: its part of the tables.
fn engine_config(config: &Config) -> anyhow::Result<EngineConfig> {
    let t = &config.tables;
    let n_workers = config.workers.most();
    let regions: Result<Vec<Name>, _> = config
        .forwarding
        .producer_region
        .iter()
        .map(|name| name.parse())
        .collect();
    Ok(EngineConfig {
        pit: PitConfig {
            max_entries: t.pit_entries.div_ceil(n_workers),
            max_bytes: t.pit_bytes.div_ceil(n_workers),
            index: match t.index {
                TableIndex::Single => IndexKind::Single,
                TableIndex::DLeft => IndexKind::DLeft,
            },
            pages: config.memory.pages.into(),
            ..PitConfig::default()
        },
        cs: CsCapacity {
            max_pkts: t.cs_packets,
            max_bytes: t.cs_bytes,
        },
        pit_cs: match t.pit_cs {
            config::PitCsLayout::Separate => PitCsLayout::Separate,
            config::PitCsLayout::Composite => PitCsLayout::Composite,
        },
        cs_policy: config
            .content_store
            .policy(getrandom::u64()?)
            .for_one_of(config.workers.threads.into()),
        fib: fib(config),
        max_lifetime_ms: config.forwarding.max_interest_lifetime_ms,
        dead_nonce_lifetime: Duration::from_millis(t.dead_nonce_ms),
        dead_nonces_max: t.dead_nonces.div_ceil(n_workers),
        unsolicited_data: match config.forwarding.unsolicited_data {
            UnsolicitedData::DropAll => UnsolicitedDataPolicy::DropAll,
            UnsolicitedData::AdmitLocal => UnsolicitedDataPolicy::AdmitLocal,
            UnsolicitedData::AdmitNetwork => UnsolicitedDataPolicy::AdmitNetwork,
            UnsolicitedData::AdmitAll => UnsolicitedDataPolicy::AdmitAll,
        },
        producer_regions: regions?,
        verify_parameters_digest: config.forwarding.verify_parameters_digest,
        schedule: match config.forwarding.schedule {
            config::Schedule::Naive => Schedule::Naive,
            config::Schedule::BucketPrefetch => Schedule::BucketPrefetch,
            config::Schedule::PreHash => Schedule::PreHash,
            config::Schedule::Shtl => Schedule::Shtl,
            config::Schedule::Burst => Schedule::Burst,
        },
        burst_distance: config.forwarding.burst_distance.into(),
    })
}

fn fib(config: &Config) -> FibConfig {
    let t = &config.tables;
    FibConfig {
        pages: config.memory.pages.into(),
        engine: match t.fib_engine {
            config::FibEngine::LongestFirst => FibEngine::LongestFirst,
            config::FibEngine::TwoStage => FibEngine::TwoStage { first: 0 },
            config::FibEngine::BinarySearch => FibEngine::BinarySearch,
            config::FibEngine::ShortestFirst => FibEngine::ShortestFirst,
        },
        matching: match t.fib_matching {
            config::FibMatching::AtEnd => FibMatching::AtEnd,
            config::FibMatching::Always => FibMatching::Always,
        },
        level_pulling: t.fib_level_pulling,
        // The routes of management come on top.
        ..FibConfig::with_max_entries(t.routes + 2)
    }
}

/// A new key for the function that `choice` asks for, which the log tells.
fn hash_key(choice: NameHash) -> anyhow::Result<HashKey> {
    let kind = choice.kind();
    info!("names are hashed by {kind}");
    if !kind.is_native() {
        warn!(
            "tables.name_hash: this processor has no instructions for {kind}, which slows every \
             packet down; choose \"auto\""
        );
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(HashKey::new(kind, &secret))
}

/// Management is reached like any producer: by a route to the internal face.
fn add_management_route(engine: &mut Engine, prefix: &Name) -> anyhow::Result<()> {
    let hop = NextHop::new(FaceId::INTERNAL, 0);
    engine
        .add_next_hop(prefix.view(), hop)
        .map_err(|e| anyhow!("{e}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(folder: &Path, extra: &str) -> Config {
        let text = format!(
            "faces.unix.path = \"{}\"\nfaces.udp.listen = []\nfaces.tcp.listen = []\n\
             faces.websocket.listen = []\n{extra}",
            folder.join("s").display()
        );
        Config::parse(&text).expect("good")
    }

    #[test]
    fn the_end_of_a_thread_is_noticed_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let router = Router::start(&config(folder.path(), "")).expect("it starts");
        assert!(router.ended().is_empty());
        let fault = |plane: &mut Plane| plane.fail(anyhow!("as if memory were short"));
        router.threads.post(0, fault).expect("it runs");
        let patience = Duration::from_secs(60);
        router.ended().recv_timeout(patience).expect("a message");
        let error = router.stop().expect_err("the worker ended before");
        assert!(
            format!("{error:#}").contains("memory were short"),
            "{error:#}"
        );
    }

    #[test]
    fn a_router_that_cannot_start_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let nobody = folder.path().join("nobody");
        let face = format!("[[face]]\nremote = \"unix://{}\"\n", nobody.display());
        assert!(Router::start(&config(folder.path(), &face)).is_err());
        assert!(!folder.path().join("s").exists());
    }
}
