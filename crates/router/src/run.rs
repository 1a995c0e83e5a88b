//! Starts the threads of a router from its configuration, and stops them.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use crossbeam_channel::{Receiver, Sender, unbounded};
use tachonym_face::{FaceSystem, SystemOptions, monotonic_now};
use tachonym_forward::Engine;
use tachonym_manage::{Manager, ManagerConfig, RibLimits};
use tachonym_packet::Name;
use tachonym_protocol::FaceUri;
use tachonym_workers::Tokens;
use tracing::warn;

use crate::config::{Config, trust};
use crate::control::RouterControl;
use crate::crew::{Crew, Orders, cpus_of_threads};
use crate::drops;
use crate::engines;
use crate::handle::Threads;
use crate::internal::{Queue, ToManager};
use crate::layout::Layout;
use crate::manager::ManagerThread;
use crate::power::Power;
use crate::scheduling::{SchedulerThread, Scheduling};
use crate::second_level::Stores;
use crate::services::{scheduler, services};
use crate::start::{add_static_routes, link_options, listen};
use crate::threads::{EndNotice, ForwarderThread};
use crate::workers_control::WorkersControl;

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
    /// Data whose signatures were verified and good.
    pub n_verified: u64,
    /// Data that were known to be good, and not verified again.
    pub n_verified_before: u64,
    /// Connections that were turned away.
    pub n_refused_connections: u64,
    /// Faces of remote peers that gave way to new ones.
    pub n_evicted_faces: u64,
    /// Faces closed because their remote peer had sent no Interest in time.
    pub n_silent_faces: u64,
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
        let started = monotonic_now();
        for warning in config.warnings() {
            warn!("{warning}");
        }
        let (layout, shares) = Layout::new(&config.workers);
        let systems = shares.into_iter().map(|share| {
            let mut options = system_options(config);
            options.share = share;
            FaceSystem::new(options).context("cannot create an epoll instance")
        });
        let mut systems = systems.collect::<anyhow::Result<Vec<_>>>()?;
        let listening = listen(config, &mut systems[0])?;
        let mut managed: Vec<Name> = vec![LOCAL_MANAGEMENT.parse()?];
        if config.management.localhop.enabled {
            managed.push(NEIGHBOUR_MANAGEMENT.parse()?);
        }
        let stores = Stores::take(config)?;
        let ssds = stores.as_ref().map_or(Ok(Vec::new()), |stores| {
            let workers = 0..config.workers.most();
            workers.map(|worker| stores.open(config, worker)).collect()
        });
        let ssds: Vec<_> = ssds?;
        if let Some(stores) = stores {
            stores.tell_leftovers();
        }
        let secret = ssds.first().map(|(ssd, _)| Stores::secret(ssd));
        let (blueprint, first_engine) = engines::blueprint(config, &managed, secret)?;
        let services = services(config)?;
        // With services a token could bring a neighbour's Data to workers of another one.
        let has_tokens = config.workers.pit_tokens && !config.verifies_apart();
        let tokens = match has_tokens && !layout.is_single() {
            true => Some(Tokens::new(getrandom::u32()?)),
            false => None,
        };
        let scheduling = Scheduling::new(scheduler(config, &layout)?, services, tokens);
        let (to_manager, inbox) = unbounded();
        let (notices, ended) = unbounded();
        let orders = Orders {
            config,
            managed: &managed,
            scheduling: &scheduling,
            to_manager: &to_manager,
            notices: &notices,
        };
        let power = Power::new(config, &layout, &cpus_of_threads(config, &layout))?;
        let running = Crew::new(layout, blueprint, systems)?.start(&orders, first_engine, ssds)?;
        let threads = running.threads;
        let scheduler = (config.workers.most() > 1 || power.is_governed())
            .then(|| {
                let notice = EndNotice(notices.clone());
                let power = power.clone();
                SchedulerThread::spawn(scheduling.clone(), threads.clone(), power, notice)
            })
            .transpose()?;

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
                started,
                ..ManagerConfig::default()
            },
            RouterControl::new(
                threads.clone(),
                WorkersControl::new(
                    threads.clone(),
                    scheduling,
                    running.waiting,
                    config.workers.clone(),
                    config.governor(),
                ),
                power,
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
            .context("cannot start the manager thread")?;
        Ok(Self {
            listening,
            to_manager,
            commands: running.commands,
            threads,
            forwarders: running.forwarders,
            scheduler,
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
    /// before [`Router::stop`], which returns the cause.
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
                plane.gate.counters(),
                drops::collect(plane),
            )
        })?;
        let mut snapshot = Snapshot::default();
        let (mut n_packets, mut dropped) = (0, Vec::new());
        for (n_faces, sizes, faces, verification, drops) in of_threads {
            snapshot.n_verified += verification.n_good;
            snapshot.n_verified_before += verification.n_remembered;
            snapshot.n_faces += n_faces;
            snapshot.n_pit_entries += sizes.map_or(0, |sizes| sizes.n_pit_entries);
            snapshot.n_cs_entries += sizes.map_or(0, |sizes| sizes.n_cs_entries);
            snapshot.n_refused_connections += faces.n_refused;
            snapshot.n_evicted_faces += faces.n_evicted;
            snapshot.n_silent_faces += faces.n_silent;
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
        // The manager may wait for a job that no worker will run; the end of its
        // queue wakes it.
        let _ = self.to_manager.send(ToManager::Stop);
        self.manager
            .join()
            .map_err(|_| anyhow!("the manager thread panicked, which is a fault of the router"))?;
        result
    }
}

fn system_options(config: &Config) -> SystemOptions {
    let f = &config.faces;
    let mut options = SystemOptions::default();
    options.max_faces = f.max_faces;
    options.max_faces_per_source = f.max_per_source;
    options.silent_timeout =
        (f.silent_timeout_s > 0).then(|| Duration::from_secs(f.silent_timeout_s));
    options.max_face_backlog_bytes = f.max_backlog_bytes;
    options.stall_timeout = Duration::from_secs(f.stall_timeout_s);
    options.udp_receive_buffer_bytes = f.socket_buffer_bytes;
    options.udp_send_buffer_bytes = f.socket_buffer_bytes;
    options.localities = f.localities();
    options
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::Instant;

    use tachonym_face::monotonic_now;
    use tachonym_forward::Engine;
    use tachonym_packet::{Interest, tlv};

    use super::*;
    use crate::plane::Plane;

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

    /// Whether some Interests of one consumer are all answered with Nacks, for there is no
    /// route: each worker has to answer some of them.
    fn are_answered(folder: &Path, round: usize) -> bool {
        const N_ASKED: usize = 64;
        let mut stream = UnixStream::connect(folder.join("s")).expect("it listens");
        let patience = Duration::from_millis(250);
        stream.set_read_timeout(Some(patience)).expect("a time-out");
        for number in 0..N_ASKED {
            let name: Name = format!("/nowhere/{round}/{number}")
                .parse()
                .expect("a name");
            let wire = Interest::new(name).encode();
            stream.write_all(&wire).expect("the router reads");
        }
        let (mut pending, mut n_answered) = (Vec::new(), 0);
        while n_answered < N_ASKED {
            while let Ok(Some(len)) = tlv::element_len(&pending)
                && len <= pending.len()
            {
                pending.drain(..len);
                n_answered += 1;
            }
            let mut room = [0; 4_096];
            match stream.read(&mut room) {
                Ok(n_read) if n_read > 0 => pending.extend_from_slice(&room[..n_read]),
                _ => break,
            }
        }
        n_answered == N_ASKED
    }

    #[test]
    fn a_worker_that_fails_is_replaced_and_the_others_go_on() {
        for feed in ["run-to-completion", "io-threads"] {
            let folder = tempfile::tempdir().expect("a folder");
            let extra = format!(
                "workers.threads = 2\nworkers.feed = \"{feed}\"\nworkers.dispatch = \"name\""
            );
            let router = Router::start(&config(folder.path(), &extra)).expect("it starts");
            let mut rounds = 1_000..1_040;
            assert!(rounds.any(|round| are_answered(folder.path(), round)));
            for n_failures in 1..=2 {
                let fault = |_: &mut Plane| panic!("as if the worker had a fault");
                router.threads.post(1, fault).expect("it runs");
                let n_rounds = (1..200)
                    .take_while(|&i| !are_answered(folder.path(), i))
                    .count();
                assert!(n_rounds < 199, "{feed}: never again");
                let count = |plane: &mut Plane| plane.counters.n_failures;
                let counted = router.threads.at(1, count).expect("it runs");
                assert_eq!(counted, n_failures);
            }
            assert!(router.is_running() && router.ended().is_empty());
            router.stop().expect("nothing ended before");
        }
    }

    /// When something is erased of a worker that has failed.
    #[derive(Clone, Copy, Debug)]
    enum Erased {
        BeforeItIsReplaced,
        /// Its store comes when what the former one has asked for has ended.
        BeforeItHasItsStore,
    }

    #[test]
    fn what_is_erased_while_a_worker_has_no_store_is_erased_when_it_has_one() {
        for when in [Erased::BeforeItIsReplaced, Erased::BeforeItHasItsStore] {
            let folder = tempfile::tempdir().expect("a folder");
            let extra = format!(
                "[[second_level.volume]]\npath = \"{}\"\nbytes = 67108864\n",
                folder.path().display()
            );
            let router = Router::start(&config(folder.path(), &extra)).expect("it starts");
            let erase = move |plane: &mut Plane| {
                plane.run(|_| panic!("as if the worker had a fault"));
                if let Erased::BeforeItHasItsStore = when {
                    plane.handle_timeout(monotonic_now());
                }
                let has_engine = plane.engine().is_some();
                assert_eq!(has_engine, matches!(when, Erased::BeforeItHasItsStore));
                let second = plane.engine().and_then(Engine::second_level);
                assert!(second.is_none());
                let erased = "/erased".parse().expect("a name");
                plane.erase(&erased, usize::MAX, true)
            };
            let outcome = router.threads.at(0, erase).expect("it runs");
            assert_eq!(outcome, (0, false));
            let deadline = Instant::now() + Duration::from_secs(60);
            let n_erased = loop {
                let of_store = |plane: &mut Plane| {
                    let second = plane.engine()?.second_level()?;
                    Some(second.counters().n_erased_prefixes)
                };
                match router.threads.at(0, of_store).expect("it runs") {
                    Some(n_erased) => break n_erased,
                    None => assert!(Instant::now() < deadline, "{when:?}: it has none"),
                }
            };
            assert_eq!(n_erased, 1, "{when:?}");
            router.stop().expect("nothing ended before");
        }
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
