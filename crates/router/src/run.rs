//! From a configuration to a running router, and back to nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use crossbeam_channel::{Receiver, Sender, unbounded};
use tachonym_face::{FaceSystem, SystemOptions};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Schedule, UnsolicitedDataPolicy};
use tachonym_manage::{Manager, ManagerConfig, RibLimits};
use tachonym_packet::{FaceId, HashKey, Name};
use tachonym_protocol::FaceUri;
use tachonym_tables::{
    CsCapacity, FibConfig, FibEngine, FibMatching, IndexKind, NextHop, PitConfig, PitCsLayout,
};
use tracing::{info, warn};

use crate::config::{self, Config, NameHash, TableIndex, UnsolicitedData};
use crate::control::RouterControl;
use crate::handle::WorkerHandle;
use crate::internal::{InternalFace, Queue, ToManager};
use crate::manager::ManagerThread;
use crate::start::{add_static_routes, link_options, listen};
use crate::strategies;
use crate::threads::{EndNotice, WorkerThread};
use crate::trust;
use crate::worker::{Plane, Worker};

/// Prefix of the management protocol for programs on this machine.
const LOCAL_MANAGEMENT: &str = "/localhost/nfd";
/// Prefix of the management protocol for neighbours.
const NEIGHBOUR_MANAGEMENT: &str = "/localhop/nfd";

/// A router that runs in threads of its own, until it is stopped or dropped.
pub struct Router {
    listening: Vec<FaceUri>,
    to_manager: Sender<ToManager>,
    commands: Arc<Queue>,
    handle: WorkerHandle,
    worker: WorkerThread,
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
        let mut faces = FaceSystem::new(system_options(config)).context("cannot use epoll")?;
        let listening = listen(config, &mut faces)?;
        let mut engine = engine(config)?;
        engine.add_face(FaceId::INTERNAL, FaceTraits::LOCAL);
        let mut managed: Vec<Name> = vec![LOCAL_MANAGEMENT.parse()?];
        if config.management.localhop.enabled {
            managed.push(NEIGHBOUR_MANAGEMENT.parse()?);
        }
        for prefix in &managed {
            add_management_route(&mut engine, prefix)?;
        }
        for choice in &config.strategy {
            let prefix: Name = choice.prefix.parse()?;
            let strategy =
                strategies::find(&choice.strategy).with_context(|| choice.strategy.clone())?;
            engine.set_strategy(prefix.view(), strategy.view())?;
            if strategies::learns_routes(&strategy) && !config.management.announcements.learn {
                warn!(
                    "{prefix}: self-learning asks all neighbours for every Interest without a \
                     route, and learns none; set management.announcements.learn, unless other \
                     routers only shall learn from this one"
                );
            }
        }

        let (to_manager, inbox) = unbounded();
        let max_commands = config.management.queue_commands;
        let internal = InternalFace::new(to_manager.clone(), managed, max_commands);
        let commands = Arc::clone(internal.interests());
        let waker = faces.waker();
        let (handle, jobs) = WorkerHandle::new(waker.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let routes = engine.routes().clone();
        let worker = Worker::new(Plane::new(engine, faces, internal), jobs, Arc::clone(&stop));
        let (notices, ended) = unbounded();
        let worker = WorkerThread::spawn(worker, stop, waker, EndNotice(notices.clone()))?;

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
                handle.clone(),
                routes,
                link_options(config),
                config.memory.pages.into(),
                config.content_store.clone(),
            ),
        );
        let mut manager = ManagerThread {
            manager,
            worker: handle.clone(),
            inbox,
        };
        add_static_routes(config, &handle, &mut manager.manager)?;
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
            handle,
            worker,
            manager,
            ended,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn listening(&self) -> &[FaceUri] {
        &self.listening
    }

    /// Whether the worker still forwards.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.worker.is_running()
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
        self.commands.n_dropped()
    }

    /// How it is, as of now.
    ///
    /// # Errors
    /// If its worker has ended.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let snapshot = self.handle.call(|plane| {
            let faces = plane.faces.counters();
            let sizes = plane.engine.sizes();
            let of_faces = faces.drops.iter().map(|(r, n)| (r.as_str(), n));
            let of_engine = plane.engine.counters().drops();
            let of_engine = of_engine.map(|(r, n)| (r.label(), n));
            Snapshot {
                n_faces: plane.faces.n_faces(),
                n_pit_entries: sizes.n_pit_entries,
                n_cs_entries: sizes.n_cs_entries,
                drops: of_faces.chain(of_engine).filter(|&(_, n)| n > 0).collect(),
                n_refused_connections: faces.n_refused,
                n_accept_pauses: faces.n_accept_pauses,
                n_stalled_connections: faces.n_stalled,
                n_kernel_drops: faces.n_kernel_drops,
                n_syscalls: faces.n_syscalls(),
                syscalls_per_packet: faces.syscalls_per_packet(),
            }
        })?;
        Ok(snapshot)
    }

    /// Stops it and waits until its threads have ended.
    ///
    /// # Errors
    /// What ended the worker, if it was not this call.
    pub fn stop(mut self) -> anyhow::Result<()> {
        let result = self.worker.stop();
        // The manager may wait for a job that no worker will run; its queue's
        // end tells it.
        let _ = self.to_manager.send(ToManager::Stop);
        self.manager
            .join()
            .map_err(|_| anyhow!("the manager panicked"))?;
        result
    }
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

fn engine(config: &Config) -> anyhow::Result<Engine> {
    let t = &config.tables;
    let regions: Result<Vec<Name>, _> = config
        .forwarding
        .producer_region
        .iter()
        .map(|name| name.parse())
        .collect();
    let engine_config = EngineConfig {
        pit: PitConfig {
            max_entries: t.pit_entries,
            max_bytes: t.pit_bytes,
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
        cs_policy: config.content_store.policy(getrandom::u64()?),
        fib: fib(config),
        max_lifetime_ms: config.forwarding.max_interest_lifetime_ms,
        dead_nonce_lifetime: Duration::from_millis(t.dead_nonce_ms),
        dead_nonces_max: t.dead_nonces,
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
    };
    let key = hash_key(t.name_hash)?;
    Ok(Engine::new(engine_config, key, getrandom::u64()?)?)
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
        let fault = |_: &mut Plane| panic!("as if the worker had a fault");
        router.handle.post(fault).expect("it runs");
        let patience = Duration::from_secs(60);
        router.ended().recv_timeout(patience).expect("a message");
        let error = router.stop().expect_err("the worker ended before");
        assert!(error.to_string().contains("panicked"), "{error}");
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
