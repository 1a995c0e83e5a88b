//! From a configuration to a running router, and back to nothing.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use crossbeam_channel::{Receiver, Sender, unbounded};
use tachonym_client::transport;
use tachonym_face::{
    ChannelOptions, FaceInfo, FaceParams, FaceSystem, LinkOptions, MulticastOptions, SystemOptions,
};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, UnsolicitedDataPolicy};
use tachonym_manage::{Manager, ManagerConfig, RibLimits};
use tachonym_packet::{
    Component, DataView, FaceId, HashKey, Interest, InterestView, MonoNs, Name, SignatureInfo,
};
use tachonym_protocol::{
    CommandName, ControlParameters, ControlResponse, FacePersistency, FaceUri, LinkType,
    route_origin, status_code,
};
use tachonym_tables::{CsCapacity, NextHop, PitConfig};

use crate::config::{Config, Persistency, StaticRoute, UnsolicitedData};
use crate::control::{RouterControl, wall_ms};
use crate::handle::WorkerHandle;
use crate::internal::{InternalFace, QueueGauge, ToManager};
use crate::manager::ManagerThread;
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
    queue: Arc<QueueGauge>,
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
        add_management_route(&mut engine, LOCAL_MANAGEMENT)?;
        if config.management.localhop.enabled {
            add_management_route(&mut engine, NEIGHBOUR_MANAGEMENT)?;
        }
        for choice in &config.strategy {
            let prefix: Name = choice.prefix.parse()?;
            let strategy =
                strategies::find(&choice.strategy).with_context(|| choice.strategy.clone())?;
            engine.set_strategy(prefix.view(), strategy.view())?;
        }

        let (to_manager, inbox) = unbounded();
        let queue = Arc::new(QueueGauge::new(config.management.queue_commands));
        let internal = InternalFace::new(to_manager.clone(), Arc::clone(&queue));
        let waker = faces.waker();
        let (handle, jobs) = WorkerHandle::new(waker.clone());
        let stop = Arc::new(AtomicBool::new(false));
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
            RouterControl::new(handle.clone(), link_options(config)),
        );
        let mut manager = ManagerThread {
            manager,
            worker: handle.clone(),
            inbox,
            queue: Arc::clone(&queue),
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
            queue,
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
        self.queue.n_dropped()
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
    options.udp_receive_buffer_bytes = f.socket_buffer_bytes;
    options.udp_send_buffer_bytes = f.socket_buffer_bytes;
    options
}

fn link_options(config: &Config) -> LinkOptions {
    let f = &config.faces;
    LinkOptions {
        congestion_marking: f.congestion_marking,
        base_congestion_marking_interval: Duration::from_millis(f.congestion_interval_ms),
        default_congestion_threshold_bytes: f.congestion_threshold_bytes,
        ..LinkOptions::default()
    }
}

fn listen(config: &Config, faces: &mut FaceSystem) -> anyhow::Result<Vec<FaceUri>> {
    let f = &config.faces;
    let idle = |seconds| (seconds > 0).then(|| Duration::from_secs(seconds));
    let mut channels = Vec::new();
    if f.unix.enabled {
        let path = match f.unix.path.as_os_str().is_empty() {
            true => default_socket_path()?,
            false => with_folder(&f.unix.path)?,
        };
        let mut channel = ChannelOptions::unix(path);
        channel.unix_mode = u32::from_str_radix(&f.unix.mode, 8).context("faces.unix.mode")?;
        channels.push(channel);
    }
    for address in &f.udp.listen {
        let mut channel = ChannelOptions::udp(address.parse().context("faces.udp.listen")?);
        channel.idle_timeout = idle(f.udp.idle_timeout_s);
        channel.mtu_bytes = f.udp.mtu_bytes;
        channels.push(channel);
    }
    for address in &f.tcp.listen {
        let mut channel = ChannelOptions::tcp(address.parse().context("faces.tcp.listen")?);
        channel.idle_timeout = idle(f.tcp.idle_timeout_s);
        channels.push(channel);
    }
    for address in &f.websocket.listen {
        let address = address.parse().context("faces.websocket.listen")?;
        channels.push(ChannelOptions::websocket(address));
    }
    let mut listening = Vec::new();
    for mut channel in channels {
        channel.link = link_options(config);
        let uri = faces
            .listen(&channel)
            .with_context(|| format!("cannot listen on {:?}", channel.address))?;
        listening.push(uri);
    }
    for multicast in &f.multicast {
        let group = multicast.group.parse().context("faces.multicast.group")?;
        let mut options = MulticastOptions::new(group, &multicast.interface);
        options.hops = multicast.hops;
        options.mtu_bytes = multicast.mtu_bytes;
        options.link = link_options(config);
        faces
            .create_multicast(&options)
            .with_context(|| format!("cannot join {group} on {}", multicast.interface))?;
    }
    Ok(listening)
}

/// The first of the usual folders that can be had.
fn default_socket_path() -> anyhow::Result<PathBuf> {
    let mut folders = transport::socket_folders().into_iter();
    let folder = folders
        .find(|folder| is_usable(folder))
        .context("no folder for the Unix socket can be written; name one with faces.unix.path")?;
    Ok(folder.join(transport::SOCKET_NAME))
}

/// `path`, whose folder is made if it is not there.
fn with_folder(path: &Path) -> anyhow::Result<PathBuf> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(path.to_owned())
}

/// Whether nobody but this user can put a socket of his own into `folder`,
/// which is made if it is not there.
fn is_usable(folder: &Path) -> bool {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
    made.is_ok()
        && transport::is_trusted(folder)
        && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
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
            ..PitConfig::default()
        },
        cs: CsCapacity {
            max_pkts: t.cs_packets,
            max_bytes: t.cs_bytes,
        },
        // The routes of management come on top.
        fib_max_entries: t.routes + 2,
        dead_nonce_lifetime: Duration::from_millis(t.dead_nonce_ms),
        unsolicited_data: match config.forwarding.unsolicited_data {
            UnsolicitedData::DropAll => UnsolicitedDataPolicy::DropAll,
            UnsolicitedData::AdmitLocal => UnsolicitedDataPolicy::AdmitLocal,
            UnsolicitedData::AdmitNetwork => UnsolicitedDataPolicy::AdmitNetwork,
            UnsolicitedData::AdmitAll => UnsolicitedDataPolicy::AdmitAll,
        },
        producer_regions: regions?,
        verify_parameters_digest: config.forwarding.verify_parameters_digest,
        ..EngineConfig::default()
    };
    let key = HashKey::from_u64s(getrandom::u64()?, getrandom::u64()?);
    Ok(Engine::new(engine_config, key, getrandom::u64()?))
}

/// Management is reached like any producer: by a route to the internal face.
fn add_management_route(engine: &mut Engine, prefix: &str) -> anyhow::Result<()> {
    let prefix: Name = prefix.parse()?;
    let hop = NextHop {
        face: FaceId::INTERNAL,
        cost: 0,
    };
    engine
        .add_next_hop(prefix.view(), hop)
        .map_err(|e| anyhow!("{e}"))
}

/// Makes the faces and routes of the configuration. Routes go the way of every
/// command, so that the RIB knows them.
fn add_static_routes(
    config: &Config,
    worker: &WorkerHandle,
    manager: &mut Manager<RouterControl>,
) -> anyhow::Result<()> {
    for face in &config.face {
        let mut params = FaceParams::new(face.remote.parse()?);
        params.link = link_options(config);
        params.link.reliability = face.reliability;
        params.mtu_bytes = face.mtu_bytes;
        params.local = face.local.as_ref().map(|uri| uri.parse()).transpose()?;
        params.persistency = match face.persistency {
            Some(Persistency::Persistent) => FacePersistency::Persistent,
            Some(Persistency::Permanent) => FacePersistency::Permanent,
            None => lasting(&params.remote),
        };
        make_face(worker, params)?;
    }
    for route in &config.route {
        let remote = route.next_hop.parse()?;
        for face in faces_to(remote, config, worker)? {
            add_route(route, face, manager)
                .with_context(|| format!("cannot add the route of {}", route.prefix))?;
        }
    }
    Ok(())
}

/// The persistency that keeps a face to `remote` longest.
fn lasting(remote: &FaceUri) -> FacePersistency {
    match remote {
        FaceUri::Unix(_) => FacePersistency::Persistent,
        _ => FacePersistency::Permanent,
    }
}

/// The faces to `remote`; a new one if there is none.
fn faces_to(
    remote: FaceUri,
    config: &Config,
    worker: &WorkerHandle,
) -> anyhow::Result<Vec<FaceId>> {
    let wanted = remote.clone();
    let found: Vec<FaceId> = worker.call(move |plane| {
        let faces = plane.faces.faces();
        let there = faces.filter(|face| face.remote == wanted || are_one_group(face, &wanted));
        there.map(|face| face.id).collect()
    })?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mut params = FaceParams::new(remote);
    params.link = link_options(config);
    params.persistency = lasting(&params.remote);
    Ok(vec![make_face(worker, params)?])
}

/// Whether `face` is to the group `remote`, which may leave the interface open:
/// an IPv6 group is another one on each.
fn are_one_group(face: &FaceInfo, remote: &FaceUri) -> bool {
    match (&face.remote, remote) {
        (FaceUri::Udp(a), FaceUri::Udp(b)) => {
            face.link_type == LinkType::MultiAccess && a.ip() == b.ip() && a.port() == b.port()
        }
        _ => false,
    }
}

fn add_route(
    route: &StaticRoute,
    face: FaceId,
    manager: &mut Manager<RouterControl>,
) -> anyhow::Result<()> {
    let parameters = ControlParameters {
        name: Some(route.prefix.parse()?),
        face_id: Some(face.0),
        origin: Some(route_origin::STATIC),
        cost: Some(route.cost),
        ..ControlParameters::default()
    };
    let name = CommandName::local("rib", "register").name();
    let name = name.with(&Component::generic(parameters.encode()));
    let wire = Interest::new(name).encode_with_digest(&SignatureInfo::digest());
    let command = InterestView::parse(&wire)?;
    let mut response = None;
    let internal = FaceId::INTERNAL;
    manager.handle_interest(MonoNs::ZERO, wall_ms(), internal, &command, &mut |wire| {
        response = Some(wire);
    });
    check_response(response.as_deref())
}

fn check_response(wire: Option<&[u8]>) -> anyhow::Result<()> {
    let wire = wire.context("the manager does not answer")?;
    let data = DataView::parse(wire).map_err(|e| anyhow!("{e}"))?;
    let response = ControlResponse::decode(data.content()).map_err(|e| anyhow!("{e}"))?;
    anyhow::ensure!(response.code == status_code::OK, "{}", response.text);
    Ok(())
}

fn make_face(worker: &WorkerHandle, params: FaceParams) -> anyhow::Result<FaceId> {
    let remote = params.remote.to_string();
    let outcome = worker.call(move |plane| {
        let outcome = plane.faces.create(&params);
        plane.handle_face_events();
        outcome
    })?;
    let outcome = outcome.with_context(|| format!("cannot make the face to {remote}"))?;
    Ok(outcome.id)
}

#[cfg(test)]
mod tests {
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
