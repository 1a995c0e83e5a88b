//! Listeners: opening them, and accepting connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use tachonym_packet::lp::FaceId;
use tachonym_protocol::{FacePersistency, FaceScope, FaceUri, LinkType};

use super::FaceSystem;
use super::eviction::CameBy;
use super::lifecycle::{NewFace, clamp_mtu, unix_uri};
use super::table::Keyed;
use crate::error::ListenError;
use crate::info::ChannelInfo;
use crate::locality::Locality;
use crate::options::{ChannelAddress, ChannelOptions, MulticastOptions};
use crate::poller::{Interest, SocketKey, Token};
use crate::share::{ListenerKind, Origin, Ticket};
use crate::sys::option;
use crate::transport::Transport;
use crate::transport::stream::{Stream, configure_tcp};
use crate::transport::udp::{ChannelDefaults, UdpRole, UdpSocket};
use crate::transport::websocket::WebSocketTransport;

/// Connections that wait to be accepted.
const LISTEN_BACKLOG: i32 = 1024;
/// Connections accepted from one listener in one poll. Each costs, until its face
/// is gone, as much as ten packets or more, and no listener may have more than a turn.
pub(super) const MAX_ACCEPTED: usize = 4;
/// How long a listener rests when there are no more descriptors.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that accepts connections.
pub(super) struct Listener {
    socket: Socket,
    generation: u32,
    /// Of a Unix listener.
    _file: Option<SocketFile>,
    pub(super) origin: Arc<Origin>,
}

/// The file of a Unix listener, removed with it unless somebody has put
/// another in its place.
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|meta| meta.dev() == self.device && meta.ino() == self.inode);
        if is_ours {
            // Nobody is left to hear of a failure.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Keyed for Listener {
    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }
}

impl Keyed for UdpSocket {
    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }
}

impl FaceSystem {
    /// Listens where `options` say, and returns the address, with the port
    /// that the kernel chose if it was to.
    ///
    /// Of several systems of a router one is told, and all listen: each has a UDP
    /// socket there, and a peer's datagrams always come to the same; accepted
    /// connections go to whoever has the fewest. The others begin in their next poll.
    ///
    /// # Errors
    /// If somebody listens there, or the system refuses.
    pub fn listen(&mut self, options: &ChannelOptions) -> Result<FaceUri, ListenError> {
        match &options.address {
            ChannelAddress::Unix(path) => self.listen_unix(path, options),
            ChannelAddress::Tcp(addr) => self.listen_tcp(*addr, ListenerKind::Tcp, options),
            ChannelAddress::WebSocket(addr) => {
                self.listen_tcp(*addr, ListenerKind::WebSocket, options)
            }
            ChannelAddress::Udp(addr) => self.listen_udp(*addr, options),
        }
    }

    fn listen_unix(
        &mut self,
        path: &Path,
        options: &ChannelOptions,
    ) -> Result<FaceUri, ListenError> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
        let addr = SockAddr::unix(path)?;
        if let Err(error) = socket.bind(&addr) {
            if error.kind() != io::ErrorKind::AddrInUse {
                return Err(error.into());
            }
            remove_dead_socket(path)?;
            socket.bind(&addr)?;
        }
        let meta = std::fs::symlink_metadata(path)?;
        let file = SocketFile {
            path: path.to_owned(),
            device: meta.dev(),
            inode: meta.ino(),
        };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(options.unix_mode))?;
        let local = unix_uri(path);
        self.add_listener(socket, ListenerKind::Unix, Some(file), local, options)
    }

    fn listen_tcp(
        &mut self,
        addr: SocketAddr,
        kind: ListenerKind,
        options: &ChannelOptions,
    ) -> Result<FaceUri, ListenError> {
        if addr.ip().is_multicast() {
            return Err(ListenError::WrongAddress);
        }
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), None)?;
        socket.set_reuse_address(true)?;
        if addr.is_ipv6() {
            // IPv4 has listeners of its own.
            socket.set_only_v6(true)?;
        }
        socket.bind(&addr.into()).map_err(in_use)?;
        let local = socket.local_addr()?.as_socket().unwrap_or(addr);
        let uri = match kind {
            ListenerKind::WebSocket => FaceUri::WebSocket(local),
            _ => FaceUri::Tcp(local),
        };
        self.add_listener(socket, kind, None, uri, options)
    }

    fn add_listener(
        &mut self,
        socket: Socket,
        kind: ListenerKind,
        file: Option<SocketFile>,
        local: FaceUri,
        options: &ChannelOptions,
    ) -> Result<FaceUri, ListenError> {
        socket.listen(LISTEN_BACKLOG).map_err(in_use)?;
        let key = self.listeners.insert(Listener {
            socket,
            generation: 0,
            _file: file,
            origin: Arc::new(Origin {
                kind,
                local: local.clone(),
                options: options.clone(),
            }),
        });
        if let Some(listener) = self.listeners.get(key)
            && let Err(error) =
                self.poller
                    .add(&listener.socket, Token::Listener(key), Interest::Read)
        {
            self.listeners.remove(key);
            return Err(error.into());
        }
        Ok(local)
    }

    fn listen_udp(
        &mut self,
        addr: SocketAddr,
        options: &ChannelOptions,
    ) -> Result<FaceUri, ListenError> {
        if addr.ip().is_multicast() {
            return Err(ListenError::WrongAddress);
        }
        let defaults = ChannelDefaults {
            idle_timeout: options.idle_timeout,
            link: options.link,
            mtu_bytes: clamp_mtu(options.mtu_bytes),
            is_told: true,
        };
        if self.options.share.siblings().is_some() {
            return self.listen_udp_together(addr, defaults);
        }
        let role = UdpRole::Channel(defaults);
        let socket = UdpSocket::bind(addr, role, self.options.udp()).map_err(in_use)?;
        let local = FaceUri::Udp(socket.local);
        self.add_udp_socket(socket)?;
        Ok(local)
    }

    /// Adds a socket to those that are waited for.
    pub(super) fn add_udp_socket(&mut self, socket: UdpSocket) -> io::Result<SocketKey> {
        self.try_udp_socket(socket).map_err(|(_, error)| error)
    }

    /// The same; the socket comes back if it cannot be waited for.
    pub(super) fn try_udp_socket(
        &mut self,
        socket: UdpSocket,
    ) -> Result<SocketKey, (Option<Box<UdpSocket>>, io::Error)> {
        let key = self.udp.insert(socket);
        if let Some(socket) = self.udp.get(key)
            && let Err(error) = self
                .poller
                .add(socket.fd(), Token::Udp(key), Interest::Read)
        {
            return Err((self.udp.remove(key).map(Box::new), error));
        }
        Ok(key)
    }

    /// Makes a face to everybody in a multicast group on one interface. It is
    /// permanent and non-local. Of several systems of a router, one makes it.
    ///
    /// # Errors
    /// If the group or the interface is none, or the system refuses.
    pub fn create_multicast(&mut self, options: &MulticastOptions) -> Result<FaceId, ListenError> {
        if !options.group.ip().is_multicast() || options.group.port() == 0 {
            return Err(ListenError::WrongAddress);
        }
        if self.faces.len() >= self.options.max_faces {
            return Err(ListenError::TooManyFaces);
        }
        let id = self.faces.allocate_id();
        let socket =
            UdpSocket::join(options, id, self.options.udp()).map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::ENODEV | libc::EADDRNOTAVAIL) => ListenError::NoInterface,
                    _ => ListenError::Io(error),
                }
            })?;
        let UdpRole::Multicast { group, .. } = socket.role else {
            return Err(ListenError::WrongAddress);
        };
        let key = self.add_udp_socket(socket)?;
        self.add_face(NewFace {
            id,
            transport: Transport::Multicast(key),
            link: options.link,
            mtu_bytes: Some(clamp_mtu(options.mtu_bytes)),
            idle_timeout: None,
            remote: FaceUri::Udp(group),
            local: FaceUri::UdpDev {
                family: tachonym_protocol::IpFamily::of(&group),
                interface: options.interface.clone(),
                port: group.port(),
            },
            scope: FaceScope::NonLocal,
            link_type: LinkType::MultiAccess,
            persistency: FacePersistency::Permanent,
            ticket: None,
        });
        Ok(id)
    }

    /// Stops listening at `local`; the faces that it made stay, but for those
    /// of UDP. False if nobody listens there. Of several systems, the one that was
    /// told to listen is told; the others follow in their next poll.
    pub fn close_channel(&mut self, local: &FaceUri) -> bool {
        let listener = self
            .listeners
            .iter()
            .find_map(|(key, listener)| (listener.origin.local == *local).then_some(key));
        if let Some(key) = listener {
            // Its socket leaves the epoll set with its last descriptor.
            self.listeners.remove(key);
            return true;
        }
        let FaceUri::Udp(local) = local else {
            return false;
        };
        let is_told = self.udp.iter().any(|(_, socket)| {
            socket.local == *local
                && matches!(&socket.role, UdpRole::Channel(channel) if channel.is_told)
        });
        if is_told {
            self.tell_siblings_to_close(*local);
            self.close_udp(local);
        }
        is_told
    }

    /// Closes the socket of the channel at `local`, and its faces.
    pub(super) fn close_udp(&mut self, local: &SocketAddr) {
        let channel = self.udp.iter().find_map(|(key, socket)| {
            let is_it = matches!(socket.role, UdpRole::Channel(_)) && socket.local == *local;
            is_it.then(|| (key, socket.peers.values().copied().collect::<Vec<_>>()))
        });
        if let Some((key, ids)) = channel {
            for id in ids {
                self.destroy(id);
            }
            self.udp.remove(key);
        }
    }

    pub(super) fn channel_infos(&self) -> Vec<ChannelInfo> {
        let streams = self.listeners.iter().map(|(_, listener)| ChannelInfo {
            local: listener.origin.local.clone(),
        });
        let datagrams = self
            .udp
            .iter()
            .filter(|(_, socket)| matches!(&socket.role, UdpRole::Channel(of) if of.is_told))
            .map(|(_, socket)| ChannelInfo {
                local: FaceUri::Udp(socket.local),
            });
        streams.chain(datagrams).collect()
    }

    /// Accepts the connections that wait, up to a bound.
    pub(super) fn accept(&mut self, key: SocketKey) {
        for _ in 0..MAX_ACCEPTED {
            let Some(listener) = self.listeners.get(key) else {
                return;
            };
            self.counters.n_control_syscalls += 1;
            match listener.socket.accept() {
                Ok((socket, peer)) => {
                    let origin = Arc::clone(&listener.origin);
                    self.deal_out(origin, socket, peer);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        self.pause_listener(key);
                        return;
                    }
                    // The connection was gone before it was accepted.
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO) => {}
                    _ => return,
                },
            }
        }
    }

    /// Level-triggered readiness would keep the loop busy for nothing.
    fn pause_listener(&mut self, key: SocketKey) {
        self.counters.n_accept_pauses += 1;
        if let Some(listener) = self.listeners.get(key)
            && self.poller.remove(&listener.socket).is_ok()
        {
            self.paused.push(key);
            self.resume_listeners_at = self.now + ACCEPT_PAUSE;
        }
    }

    /// Lets paused listeners accept again.
    pub(super) fn resume_listeners(&mut self) {
        self.resume_listeners_at = tachonym_packet::MonoNs::NEVER;
        for part in std::mem::take(&mut self.paused_parts) {
            self.adopt(part);
        }
        for key in std::mem::take(&mut self.paused) {
            if let Some(listener) = self.listeners.get(key)
                && self
                    .poller
                    .add(&listener.socket, Token::Listener(key), Interest::Read)
                    .is_err()
            {
                self.paused.push(key);
                self.resume_listeners_at = self.now + ACCEPT_PAUSE;
            }
        }
    }

    /// Makes a face of a connection that a listener has accepted.
    pub(super) fn accept_one(
        &mut self,
        origin: &Origin,
        socket: Socket,
        peer: &SockAddr,
        ticket: Option<Ticket>,
    ) {
        let give_up_at = self.now + self.options.connect_timeout;
        let localities = self.options.localities;
        let made = match origin.kind {
            ListenerKind::Unix => Ok((
                FaceUri::Fd(u32::try_from(socket.as_raw_fd()).unwrap_or(0)),
                origin.local.clone(),
                localities.unix.unix_scope(),
                None,
            )),
            ListenerKind::Tcp => describe_tcp(&socket, peer, localities.tcp),
            ListenerKind::WebSocket => describe_tcp(&socket, peer, localities.websocket),
        };
        let peer_pid = match origin.kind {
            ListenerKind::Unix => {
                self.counters.n_control_syscalls += 1;
                option::peer_pid(socket.as_fd())
            }
            ListenerKind::Tcp | ListenerKind::WebSocket => None,
        };
        let is_websocket = matches!(origin.kind, ListenerKind::WebSocket);
        if let Ok((_, _, scope, _)) = &made
            && self
                .make_room(*scope, CameBy::Connection, peer.as_socket())
                .is_err()
        {
            // Closing it tells the peer sooner than letting it wait.
            self.counters.n_refused += 1;
            return;
        }
        let made = made.and_then(|(remote, local, scope, addrs)| {
            if !is_websocket {
                return Ok((
                    remote,
                    local,
                    scope,
                    Transport::Stream(Stream::open(socket)),
                ));
            }
            let (peer, own) = addrs.ok_or(io::ErrorKind::AddrNotAvailable)?;
            let origins = Arc::clone(&origin.options.origins);
            let stream = TcpStream::from(socket);
            let socket = WebSocketTransport::accept(stream, give_up_at, origins);
            Ok((
                FaceUri::WebSocketClient(peer),
                FaceUri::WebSocket(own),
                scope,
                Transport::WebSocket(Box::new(socket)),
            ))
        });
        // A connection that is gone already leaves no face.
        let Ok((remote, local, scope, transport)) = made else {
            self.sources.release();
            return;
        };
        let id = self.faces.allocate_id();
        let added = {
            let fd = match &transport {
                Transport::Stream(stream) => stream.fd(),
                Transport::WebSocket(socket) => socket.fd(),
                Transport::Udp(_) | Transport::Multicast(_) => None,
            };
            self.counters.n_control_syscalls += 1;
            fd.is_some_and(|fd| self.poller.add(fd, Token::Face(id), Interest::Read).is_ok())
        };
        if !added {
            self.sources.release();
            self.counters.n_refused += 1;
            return;
        }
        self.counters.n_accepted += 1;
        let slot = self.add_face(NewFace {
            id,
            transport,
            link: origin.options.link,
            mtu_bytes: None,
            idle_timeout: origin.options.idle_timeout,
            remote,
            local,
            scope,
            link_type: LinkType::PointToPoint,
            persistency: FacePersistency::OnDemand,
            ticket,
        });
        self.faces[slot].peer_pid = peer_pid;
    }
}

type Described = (
    FaceUri,
    FaceUri,
    FaceScope,
    Option<(SocketAddr, SocketAddr)>,
);

fn describe_tcp(socket: &Socket, peer: &SockAddr, locality: Locality) -> io::Result<Described> {
    configure_tcp(socket)?;
    socket.set_nonblocking(true)?;
    let peer = peer.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let own = socket
        .local_addr()?
        .as_socket()
        .ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((
        FaceUri::Tcp(peer),
        FaceUri::Tcp(own),
        locality.scope(own, peer),
        Some((peer, own)),
    ))
}

pub(super) fn in_use(error: io::Error) -> ListenError {
    match error.kind() {
        io::ErrorKind::AddrInUse => ListenError::AddressInUse,
        _ => ListenError::Io(error),
    }
}

/// Removes the socket file at `path` if nobody listens on it.
fn remove_dead_socket(path: &Path) -> Result<(), ListenError> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !meta.file_type().is_socket() {
        return Err(ListenError::NotASocket);
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)?;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // It accepts, it has no room to (EAGAIN), or it may not be asked.
        _ => Err(ListenError::AddressInUse),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::SystemOptions;

    fn listening() -> (FaceSystem, SocketKey, tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nfd.sock");
        let mut system = FaceSystem::new(SystemOptions::default()).unwrap();
        system.listen(&ChannelOptions::unix(&path)).unwrap();
        let (key, _) = system.listeners.iter().next().unwrap();
        (system, key, dir, path)
    }

    #[test]
    fn a_listener_that_rests_refuses_nobody() {
        let (mut system, key, _dir, path) = listening();
        let _peer = UnixStream::connect(path).unwrap();
        system.pause_listener(key);
        assert_eq!(system.paused, [key]);
        assert_eq!(system.counters.n_refused, 0);
        assert_eq!(system.counters.n_accept_pauses, 1);

        // The peer has waited.
        system.resume_listeners();
        let mut batch = crate::RxBatch::new();
        while system.n_faces() == 0 {
            system.poll(None, &mut batch).unwrap();
        }
        assert_eq!(system.counters.n_accepted, 1);
        assert_eq!(system.counters.n_refused, 0);
    }

    #[test]
    fn a_connection_that_cannot_be_waited_for_is_refused_only() {
        let (mut system, key, _dir, path) = listening();
        let _peer = UnixStream::connect(path).unwrap();
        system.poller = crate::poller::Poller::broken();
        system.accept(key);
        assert_eq!(system.n_faces(), 0);
        assert_eq!(system.counters.n_accepted, 0);
        assert_eq!(system.counters.n_refused, 1);
    }
}
