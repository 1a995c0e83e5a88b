//! Opens at start what the configuration names: listeners, multicast groups, static
//! faces and static routes.
//!
//! Each error names its key and a remedy. Faces and routes are created in batches: a job
//! for the worker costs more than a route.

use std::collections::{BTreeSet, HashMap};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tachonym_client::{transport, wall_ms};
use tachonym_face::{
    ChannelAddress, ChannelOptions, CreateError, CreateOutcome, FaceParams, FaceSystem, FaceUpdate,
    LinkOptions, ListenError, MulticastOptions, UpdateError,
};
use tachonym_manage::Manager;
use tachonym_packet::{Component, DataView, FaceId, Interest, InterestView, MonoNs, SignatureInfo};
use tachonym_protocol::{
    CommandName, ControlParameters, ControlResponse, FacePersistency, FaceUri, LinkType,
    route_origin, status_code,
};
use tracing::info;

use crate::config::{Config, Persistency, StaticRoute};
use crate::control::RouterControl;
use crate::face_jobs;
use crate::handle::Threads;
use crate::plane::Plane;

/// Most faces or routes that the worker makes in one job, so that packets never
/// wait long.
const MAX_BATCH: usize = 256;

/// The link service of every face, but for what single faces ask.
pub(crate) fn link_options(config: &Config) -> LinkOptions {
    let f = &config.faces;
    LinkOptions {
        congestion_marking: f.congestion_marking,
        base_congestion_marking_interval: Duration::from_millis(f.congestion_interval_ms),
        default_congestion_threshold_bytes: f.congestion_threshold_bytes,
        ..LinkOptions::default()
    }
}

/// Opens every listener and joins every group. Returns where it listens.
pub(crate) fn listen(config: &Config, faces: &mut FaceSystem) -> anyhow::Result<Vec<FaceUri>> {
    let mut listening = Vec::new();
    for (key, mut channel) in channels(config)? {
        channel.link = link_options(config);
        match faces.listen(&channel) {
            Ok(uri) => listening.push(uri),
            Err(error) if lacks_family(&error) && listens_by_default(config, &key) => {
                let address = shown(&channel.address);
                info!("not listening on {address}: this machine has no IPv6, or no IPv4");
            }
            Err(error) => {
                let message = format!("cannot listen on {}: {error}", shown(&channel.address));
                let remedy = listen_remedy(&error, &channel.address, &key);
                return Err(config.failure(&key, message, remedy).into());
            }
        }
    }
    for (i, multicast) in config.faces.multicast.iter().enumerate() {
        let group = multicast.group.parse().context("faces.multicast.group")?;
        let mut options = MulticastOptions::new(group, &multicast.interface);
        options.hops = multicast.hops;
        options.mtu_bytes = multicast.mtu_bytes;
        options.link = link_options(config);
        faces.create_multicast(&options).map_err(|error| {
            let group = FaceUri::Udp(group);
            let message = format!("cannot join {group} on {}: {error}", multicast.interface);
            let remedy = match error {
                ListenError::NoInterface => {
                    "use an interface to which `ip address` shows an address of this family"
                }
                ListenError::TooManyFaces => "raise faces.max_faces",
                _ => {
                    "check that the interface is up (`ip link`), or remove this [[faces.multicast]]"
                }
            };
            config.failure(format!("faces.multicast[{i}].interface"), message, remedy)
        })?;
    }
    Ok(listening)
}

/// Every listener, and the key that asks for it.
fn channels(config: &Config) -> anyhow::Result<Vec<(String, ChannelOptions)>> {
    let f = &config.faces;
    let idle = |seconds| (seconds > 0).then(|| Duration::from_secs(seconds));
    let mut channels = Vec::new();
    if f.unix.enabled {
        let path = match f.unix.path.as_os_str().is_empty() {
            true => default_socket_path(config)?,
            false => with_folder(config, &f.unix.path)?,
        };
        let mut channel = ChannelOptions::unix(path);
        channel.unix_mode = u32::from_str_radix(&f.unix.mode, 8).context("faces.unix.mode")?;
        channels.push(("faces.unix.path".into(), channel));
    }
    for (i, address) in f.udp.listen.iter().enumerate() {
        let mut channel = ChannelOptions::udp(address.parse().context("faces.udp.listen")?);
        channel.idle_timeout = idle(f.udp.idle_timeout_s);
        channel.mtu_bytes = f.udp.mtu_bytes;
        channels.push((format!("faces.udp.listen[{i}]"), channel));
    }
    for (i, address) in f.tcp.listen.iter().enumerate() {
        let mut channel = ChannelOptions::tcp(address.parse().context("faces.tcp.listen")?);
        channel.idle_timeout = idle(f.tcp.idle_timeout_s);
        channels.push((format!("faces.tcp.listen[{i}]"), channel));
    }
    for (i, address) in f.websocket.listen.iter().enumerate() {
        let address = address.parse().context("faces.websocket.listen")?;
        let mut channel = ChannelOptions::websocket(address);
        channel.idle_timeout = idle(f.websocket.idle_timeout_s);
        channel.origins = f.websocket.origins.clone().into();
        channels.push((format!("faces.websocket.listen[{i}]"), channel));
    }
    Ok(channels)
}

/// An address as the rest of the router writes it.
fn shown(address: &ChannelAddress) -> String {
    match address {
        ChannelAddress::Unix(path) => format!("unix://{}", path.display()),
        ChannelAddress::Tcp(addr) => FaceUri::Tcp(*addr).to_string(),
        ChannelAddress::Udp(addr) => FaceUri::Udp(*addr).to_string(),
        ChannelAddress::WebSocket(addr) => FaceUri::WebSocket(*addr).to_string(),
    }
}

fn lacks_family(error: &ListenError) -> bool {
    let no_family = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    matches!(error, ListenError::Io(e) if e.raw_os_error() == Some(no_family))
}

/// Whether the listener at `key` is a default one, which machines without its IP version
/// leave out. The port does not count, because `--port` changes it.
fn listens_by_default(config: &Config, key: &str) -> bool {
    let (faces, default) = (&config.faces, Config::default().faces);
    let (listen, default) = match key.split('[').next() {
        Some("faces.udp.listen") => (&faces.udp.listen, &default.udp.listen),
        Some("faces.tcp.listen") => (&faces.tcp.listen, &default.tcp.listen),
        Some("faces.websocket.listen") => (&faces.websocket.listen, &default.websocket.listen),
        _ => return false,
    };
    ips(listen) == ips(default)
}

/// The IP addresses of a list of addresses to listen on.
fn ips(listen: &[String]) -> BTreeSet<IpAddr> {
    let addresses = listen.iter().filter_map(|it| it.parse::<SocketAddr>().ok());
    addresses.map(|address| address.ip()).collect()
}

fn listen_remedy(error: &ListenError, address: &ChannelAddress, key: &str) -> String {
    let list = key.split('[').next().unwrap_or(key);
    let is_unix = matches!(address, ChannelAddress::Unix(_));
    match error {
        ListenError::AddressInUse => in_use(list, is_unix),
        ListenError::NotASocket => format!("remove it, or change {list}"),
        ListenError::Io(e) if e.kind() == ErrorKind::AddrInUse => in_use(list, is_unix),
        ListenError::Io(e) if e.kind() == ErrorKind::PermissionDenied && is_unix => {
            format!("give this user write access to the directory, or change {list}")
        }
        ListenError::Io(e) if e.kind() == ErrorKind::PermissionDenied => {
            format!("use a port from 1024 in {list}, or grant CAP_NET_BIND_SERVICE")
        }
        ListenError::Io(e) if e.kind() == ErrorKind::AddrNotAvailable => {
            format!("use an address that `ip address` shows in {list}")
        }
        error if lacks_family(error) => {
            format!("this machine has no such IP version; remove the address from {list}")
        }
        _ => format!("change {list}"),
    }
}

/// What to do about a taken address of `list`.
fn in_use(list: &str, is_unix: bool) -> String {
    match is_unix {
        true => format!("stop the other router, or use another socket (--socket, or {list})"),
        false => format!("stop the other program, or use another port (--port, or {list})"),
    }
}

/// The default socket in the first usable directory of the usual ones.
fn default_socket_path(config: &Config) -> anyhow::Result<PathBuf> {
    let mut folders = transport::socket_folders().into_iter();
    let folder = folders.find(|folder| is_usable(folder)).ok_or_else(|| {
        config.failure(
            "faces.unix.path",
            "no default directory for the Unix socket is writable",
            "name a socket with --socket or this key, such as /tmp/router.sock",
        )
    })?;
    Ok(folder.join(transport::SOCKET_NAME))
}

/// `path`, whose folder is made if it is not there.
fn with_folder(config: &Config, path: &Path) -> anyhow::Result<PathBuf> {
    let missing = path.parent().filter(|folder| !folder.exists());
    if let Some(folder) = missing.filter(|folder| !folder.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.map_err(|error| {
            config.failure(
                "faces.unix.path",
                format!("cannot create the directory {}: {error}", folder.display()),
                "create it, or use another path (--socket, or this key)",
            )
        })?;
    }
    Ok(path.to_owned())
}

/// Whether only this user can put a socket into `folder`, which is created if it is
/// missing.
fn is_usable(folder: &Path) -> bool {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
    made.is_ok()
        && transport::is_trusted(folder)
        && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Makes the faces and routes of the configuration. Routes go the way of every
/// command, so that the RIB knows them.
pub(crate) fn add_static_routes(
    config: &Config,
    threads: &Threads,
    manager: &mut Manager<RouterControl>,
) -> anyhow::Result<()> {
    let mut wanted = Vec::new();
    for (i, face) in config.face.iter().enumerate() {
        let mut params = FaceParams::new(face.remote.parse()?);
        params.link = link_options(config);
        params.link.reliability = face.reliability;
        params.link.local_fields = face.local_fields;
        if let Some(congestion_marking) = face.congestion_marking {
            params.link.congestion_marking = congestion_marking;
        }
        params.mtu_bytes = face.mtu_bytes;
        params.locality = face.locality.map(Into::into);
        params.local = face
            .local
            .as_deref()
            .map(FaceUri::parse_local)
            .transpose()?;
        params.persistency = match face.persistency {
            Some(Persistency::Persistent) => FacePersistency::Persistent,
            Some(Persistency::Permanent) => FacePersistency::Permanent,
            None => lasting(&params.remote),
        };
        wanted.push((format!("face[{i}].remote"), params));
    }
    make_faces(config, threads, wanted)?;
    let mut faces = faces_by_remote(threads)?;
    for (n, routes) in config.route.chunks(MAX_BATCH).enumerate() {
        add_routes(config, n * MAX_BATCH, routes, &mut faces, threads, manager)?;
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

/// Makes faces, each for the key beside it. Returns them in this order.
fn make_faces(
    config: &Config,
    threads: &Threads,
    wanted: Vec<(String, FaceParams)>,
) -> anyhow::Result<Vec<FaceId>> {
    let mut made = Vec::with_capacity(wanted.len());
    let mut wanted = wanted.into_iter().peekable();
    while wanted.peek().is_some() {
        let (keys, batch): (Vec<_>, Vec<_>) = wanted.by_ref().take(MAX_BATCH).unzip();
        let remotes: Vec<_> = batch.iter().map(|params| params.remote.clone()).collect();
        let outcomes = face_jobs::create_each(threads, batch, make_face)?;
        for ((key, remote), outcome) in keys.into_iter().zip(remotes).zip(outcomes) {
            let outcome = outcome.map_err(|error| {
                let message = format!("cannot create the face to {remote}: {error}");
                config.failure(key, message, create_remedy(&error))
            })?;
            made.push(outcome.id);
        }
    }
    Ok(made)
}

/// Creates a face, or changes the on-demand face that its peer already has to what the
/// configuration asks for.
fn make_face(plane: &mut Plane, params: &FaceParams) -> Result<CreateOutcome, CreateError> {
    let outcome = plane.faces.create(params)?;
    if outcome.already_existed {
        let update = FaceUpdate {
            persistency: Some(params.persistency),
            mtu_bytes: params.mtu_bytes,
            locality: params.locality,
            local_fields: Some(params.link.local_fields),
            reliability: Some(params.link.reliability),
            congestion_marking: Some(params.link.congestion_marking),
            ..FaceUpdate::default()
        };
        match plane.faces.update(outcome.id, &update) {
            Ok(()) => plane.renew_traits(outcome.id),
            Err(UpdateError::NotLocal) => return Err(CreateError::NotLocal),
            Err(UpdateError::BadPersistency) => return Err(CreateError::BadPersistency),
            // It went this moment: there is one no more.
            Err(_) => return plane.faces.create(params),
        }
    }
    Ok(outcome)
}

fn create_remedy(error: &CreateError) -> &'static str {
    match error {
        CreateError::TooManyFaces => "raise faces.max_faces",
        CreateError::BadLocalUri => "change its key local, or remove it",
        CreateError::BadPersistency => "change its key persistency, or remove it",
        CreateError::NotLocal => "remove its local_fields: they are for local faces (see locality)",
        CreateError::Io(e) => match e.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                "start the program that listens there first, or correct the address"
            }
            ErrorKind::PermissionDenied => "give this user access to it, or remove the face",
            ErrorKind::AddrInUse => {
                "another face or program uses the local address; change the key local"
            }
            ErrorKind::AddrNotAvailable => "use a local address that `ip address` shows",
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                "check that the network is up and has a route there (`ip route`)"
            }
            _ => "correct the address, or remove the face",
        },
        _ => "correct the address",
    }
}

/// The faces to each remote.
type FacesByRemote = HashMap<FaceUri, Vec<FaceId>>;

fn faces_by_remote(threads: &Threads) -> anyhow::Result<FacesByRemote> {
    let faces = threads.each_system(|plane| {
        let faces = plane.faces.faces();
        let told = faces.map(|face| (face.remote.clone(), face.id, face.link_type));
        told.collect::<Vec<_>>()
    })?;
    let mut by_remote = FacesByRemote::new();
    for (remote, id, link_type) in faces.into_iter().flatten() {
        let remote = match link_type {
            LinkType::MultiAccess => without_interface(remote),
            _ => remote,
        };
        by_remote.entry(remote).or_default().push(id);
    }
    Ok(by_remote)
}

/// The group `remote` whatever the interface: an IPv6 group is another one on
/// each. Any other remote is left as it is.
fn without_interface(remote: FaceUri) -> FaceUri {
    match remote {
        FaceUri::Udp(addr) if addr.ip().is_multicast() => {
            FaceUri::Udp(SocketAddr::new(addr.ip(), addr.port()))
        }
        other => other,
    }
}

/// Adds `routes`, of which the first is the `first`th of the configuration, and
/// the faces that they lack.
fn add_routes(
    config: &Config,
    first: usize,
    routes: &[StaticRoute],
    faces: &mut FacesByRemote,
    threads: &Threads,
    manager: &mut Manager<RouterControl>,
) -> anyhow::Result<()> {
    let mut remotes = Vec::with_capacity(routes.len());
    let mut missing: HashMap<FaceUri, usize> = HashMap::new();
    for (i, route) in routes.iter().enumerate() {
        let remote = without_interface(route.next_hop.parse()?);
        if !faces.contains_key(&remote) {
            missing.entry(remote.clone()).or_insert(first + i);
        }
        remotes.push(remote);
    }
    let mut missing: Vec<_> = missing.into_iter().collect();
    missing.sort_by_key(|&(_, i)| i);
    let wanted = missing.iter().map(|(remote, i)| {
        let mut params = FaceParams::new(remote.clone());
        params.link = link_options(config);
        params.persistency = lasting(remote);
        (format!("route[{i}].next_hop"), params)
    });
    let made = make_faces(config, threads, wanted.collect())?;
    for ((remote, _), id) in missing.into_iter().zip(made) {
        faces.insert(remote, vec![id]);
    }

    let mut commands = Vec::with_capacity(routes.len());
    for (i, (route, remote)) in routes.iter().zip(&remotes).enumerate() {
        for &face in faces.get(remote).into_iter().flatten() {
            commands.push((first + i, register_command(route, face)?));
        }
    }
    let views: Result<Vec<_>, _> = commands
        .iter()
        .map(|(i, wire)| InterestView::parse(wire).map(|view| (*i, view)))
        .collect();
    let views = views?;
    let mut replies = Vec::with_capacity(views.len());
    let burst = views.iter().map(|(_, view)| (FaceId::INTERNAL, view));
    manager.handle_burst(MonoNs::ZERO, wall_ms(), burst, &mut |wire| {
        replies.push(wire);
    });
    anyhow::ensure!(
        replies.len() == views.len(),
        "the manager does not respond, which is a fault of the router"
    );
    for wire in &replies {
        let data = DataView::parse(wire).map_err(|e| anyhow!("{e}"))?;
        let response = ControlResponse::decode(data.content()).map_err(|e| anyhow!("{e}"))?;
        if response.code == status_code::OK {
            continue;
        }
        let of = views.iter().find(|(_, view)| view.name() == data.name());
        let i = of.map_or(first, |&(i, _)| i);
        let prefix = &config.route[i].prefix;
        let message = format!("cannot add the route {prefix}: {}", response.text);
        return Err(config
            .failure(format!("route[{i}].prefix"), message, "remove the route")
            .into());
    }
    Ok(())
}

/// The command that registers `route` by `face`.
fn register_command(route: &StaticRoute, face: FaceId) -> anyhow::Result<Vec<u8>> {
    let parameters = ControlParameters {
        name: Some(route.prefix.parse()?),
        face_id: Some(face.0),
        origin: Some(route_origin::STATIC),
        cost: Some(route.cost),
        ..ControlParameters::default()
    };
    let name = CommandName::local("rib", "register").name();
    let name = name.with(&Component::generic(parameters.encode()));
    Ok(Interest::new(name).encode_with_digest(&SignatureInfo::digest()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrides::Overrides;

    #[test]
    fn only_listeners_that_nobody_asked_for_may_lack_their_address_family() {
        let mut config = Config::default();
        config.faces.tcp.listen = vec!["[::]:6363".into()];
        assert!(listens_by_default(&config, "faces.udp.listen[1]"));
        assert!(listens_by_default(&config, "faces.websocket.listen[1]"));
        assert!(!listens_by_default(&config, "faces.tcp.listen[0]"));
        assert!(!listens_by_default(&config, "faces.unix.path"));
        let error = |errno: rustix::io::Errno| ListenError::Io(errno.into());
        assert!(lacks_family(&error(rustix::io::Errno::AFNOSUPPORT)));
        assert!(!lacks_family(&error(rustix::io::Errno::ADDRINUSE)));
    }

    #[test]
    fn listeners_at_another_port_are_still_default_ones() {
        let overrides = Overrides {
            port: Some(7000),
            ..Overrides::default()
        };
        let mut config = Config::default();
        overrides.apply(&mut config);
        assert!(listens_by_default(&config, "faces.udp.listen[1]"));
        assert!(listens_by_default(&config, "faces.tcp.listen[1]"));
        // The port drops the default WebSocket listeners.
        assert!(!listens_by_default(&config, "faces.websocket.listen[0]"));
        config.faces.udp.listen = vec!["0.0.0.0:7000".into(), "[::1]:7000".into()];
        overrides.apply(&mut config);
        assert!(!listens_by_default(&config, "faces.udp.listen[1]"));
    }
}
