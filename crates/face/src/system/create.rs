//! Listening and dialling.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::event::epoll::{self, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use socket2::{Domain, Protocol, Socket, Type};
use tachonym_packet::FaceId;
use tachonym_protocol::{FacePersistency, FaceScope, FaceUri, LinkType};

use super::{Face, FaceSystem, Listener, Token, Transport};
use crate::info::{CreateError, CreateOutcome, FaceEvent, FaceInfo, FaceOptions, FaceParams};
use crate::link::{Framing, LinkService};
use crate::stream::Stream;
use crate::udp::UdpChannel;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> CreateError {
    let what = what.into();
    move |source| CreateError::System { what, source }
}

impl FaceSystem {
    /// Listens on a Unix socket at `path` with these permissions. The socket of
    /// a program that has died is replaced.
    ///
    /// # Errors
    /// If a program listens there, or the system refuses.
    pub fn listen_unix(&mut self, path: &Path, mode: u32) -> Result<FaceUri, CreateError> {
        let shown = path.display().to_string();
        if fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(system(format!("cannot replace {shown}")))?;
                }
                _ => return Err(CreateError::AddressInUse(shown)),
            }
        }
        let listener = UnixListener::bind(path).map_err(system(format!("cannot bind {shown}")))?;
        listener
            .set_nonblocking(true)
            .map_err(system("cannot set up the socket"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(system(format!("cannot set permissions of {shown}")))?;
        self.add_listener(Listener::Unix {
            socket: listener.into(),
            path: path.into(),
        })?;
        Ok(FaceUri::Unix(shown))
    }

    /// Listens for TCP connections.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn listen_tcp(&mut self, local: SocketAddr) -> Result<FaceUri, CreateError> {
        let bind = || -> io::Result<(OwnedFd, SocketAddr)> {
            let socket = Socket::new(
                Domain::for_address(local),
                Type::STREAM,
                Some(Protocol::TCP),
            )?;
            socket.set_reuse_address(true)?;
            if local.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.set_nonblocking(true)?;
            socket.bind(&local.into())?;
            socket.listen(BACKLOG)?;
            let bound = socket.local_addr()?.as_socket().unwrap_or(local);
            Ok((socket.into(), bound))
        };
        let (socket, local) = bind().map_err(system(format!("cannot listen on tcp {local}")))?;
        self.add_listener(Listener::Tcp { socket, local })?;
        Ok(FaceUri::Tcp(local))
    }

    /// Listens for UDP datagrams.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn listen_udp(&mut self, local: SocketAddr) -> Result<FaceUri, CreateError> {
        let idx = self.add_udp(local, true)?;
        Ok(FaceUri::Udp(self.udp[idx].local))
    }

    /// Where peers are listened for.
    pub fn channels(&self) -> impl Iterator<Item = FaceUri> {
        let streams = self.listeners.iter().map(|listener| match listener {
            Listener::Unix { path, .. } => FaceUri::Unix(path.to_string_lossy().into_owned()),
            Listener::Tcp { local, .. } => FaceUri::Tcp(*local),
        });
        let listening = self.udp.iter().filter(|channel| channel.is_listening);
        streams.chain(listening.map(|channel| FaceUri::Udp(channel.local)))
    }

    fn add_listener(&mut self, listener: Listener) -> Result<(), CreateError> {
        let token = Token::Listener(self.listeners.len()).pack();
        let (Listener::Unix { socket, .. } | Listener::Tcp { socket, .. }) = &listener;
        epoll::add(&self.epoll, socket, token, EventFlags::IN)
            .map_err(|e| system("cannot wait for connections")(e.into()))?;
        self.listeners.push(listener);
        Ok(())
    }

    fn add_udp(&mut self, local: SocketAddr, is_listening: bool) -> Result<usize, CreateError> {
        let channel = UdpChannel::bind(local, is_listening, self.options.socket_buffer_bytes)
            .map_err(system(format!("cannot bind udp {local}")))?;
        let idx = self.udp.len();
        epoll::add(
            &self.epoll,
            channel.fd(),
            Token::Udp(idx).pack(),
            EventFlags::IN,
        )
        .map_err(|e| system("cannot wait for datagrams")(e.into()))?;
        self.udp.push(channel);
        Ok(idx)
    }

    /// Opens a face, or finds the one that goes there already. A TCP face is
    /// there at once and comes up when the peer has answered.
    ///
    /// # Errors
    /// If the scheme is not supported here, a limit is reached, or the system
    /// refuses.
    pub fn create(&mut self, params: &FaceParams) -> Result<CreateOutcome, CreateError> {
        let same = |face: &&Face| {
            face.info.remote == params.remote
                && params
                    .local
                    .as_ref()
                    .is_none_or(|local| *local == face.info.local)
        };
        if let Some(face) = self.faces.values().find(same) {
            return Ok(CreateOutcome::Existing(face.info.id));
        }
        let id = match &params.remote {
            FaceUri::Udp(peer) if !peer.ip().is_multicast() => self.dial_udp(*peer, params)?,
            FaceUri::Tcp(peer) => self.dial_tcp(*peer, params)?,
            FaceUri::Unix(path) => self.dial_unix(path, params)?,
            FaceUri::Unresolved(_) => return Err(CreateError::NotCanonical),
            other => return Err(CreateError::UnsupportedScheme(other.scheme())),
        };
        Ok(CreateOutcome::New(id))
    }

    fn dial_udp(&mut self, peer: SocketAddr, params: &FaceParams) -> Result<FaceId, CreateError> {
        let wanted = params.local.as_ref().and_then(FaceUri::socket_addr);
        let fits = |channel: &UdpChannel| match wanted {
            Some(local) => channel.local == local,
            None => channel.local.is_ipv4() == peer.is_ipv4(),
        };
        let idx = match self.udp.iter().position(fits) {
            Some(idx) => idx,
            None => {
                let any: SocketAddr = if peer.is_ipv4() {
                    (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
                } else {
                    (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
                };
                self.add_udp(wanted.unwrap_or(any), false)?
            }
        };
        let local = FaceUri::Udp(self.udp[idx].local);
        let transport = Transport::Udp {
            channel_idx: idx,
            peer,
        };
        let (remote, options) = (params.remote.clone(), params.options);
        let id = self.add_face(remote, local, params.persistency, options, transport, true)?;
        self.udp[idx].peers.insert(peer, id);
        Ok(id)
    }

    fn dial_unix(&mut self, path: &str, params: &FaceParams) -> Result<FaceId, CreateError> {
        let connect = || -> io::Result<OwnedFd> {
            let socket = UnixStream::connect(path)?;
            socket.set_nonblocking(true)?;
            Ok(socket.into())
        };
        let socket = connect().map_err(system(format!("cannot connect to {path}")))?;
        let local = FaceUri::Unix(path.into());
        let transport = Transport::Stream(Stream::new(socket));
        let (remote, options) = (params.remote.clone(), params.options);
        self.add_face(remote, local, params.persistency, options, transport, true)
    }

    fn dial_tcp(&mut self, peer: SocketAddr, params: &FaceParams) -> Result<FaceId, CreateError> {
        let socket = connect_tcp(peer).map_err(system(format!("cannot connect to {peer}")))?;
        let local = rustix::net::getsockname(&socket)
            .ok()
            .and_then(|addr| SocketAddr::try_from(addr).ok())
            .unwrap_or(peer);
        let transport = Transport::Stream(Stream::new(socket));
        let (remote, options) = (params.remote.clone(), params.options);
        let local = FaceUri::Tcp(local);
        self.add_face(remote, local, params.persistency, options, transport, false)
    }

    /// Tries a permanent face's connection again.
    pub(super) fn reconnect(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(&id) else {
            return;
        };
        let FaceUri::Tcp(peer) = face.info.remote else {
            return;
        };
        let (Transport::Stream(stream), Ok(socket)) = (&mut face.transport, connect_tcp(peer))
        else {
            return;
        };
        face.retry = face
            .retry
            .map(|(_, pause)| (tachonym_packet::MonoNs::NEVER, pause));
        let token = Token::Face(id).pack();
        if epoll::add(
            &self.epoll,
            &socket,
            token,
            EventFlags::IN | EventFlags::OUT,
        )
        .is_ok()
        {
            stream.reconnect(socket);
        }
    }

    pub(super) fn add_face(
        &mut self,
        remote: FaceUri,
        local: FaceUri,
        persistency: FacePersistency,
        options: FaceOptions,
        transport: Transport,
        is_up: bool,
    ) -> Result<FaceId, CreateError> {
        if self.faces.len() >= self.options.max_faces {
            return Err(CreateError::TooManyFaces(self.options.max_faces));
        }
        let id = self.next_id;
        if let Transport::Stream(stream) = &transport {
            let flags = if is_up {
                EventFlags::IN
            } else {
                EventFlags::IN | EventFlags::OUT
            };
            epoll::add(&self.epoll, stream.fd(), Token::Face(id).pack(), flags)
                .map_err(|e| system("cannot wait for packets")(e.into()))?;
        }
        let framing = match &transport {
            Transport::Stream(_) => Framing::Stream,
            Transport::Udp { .. } => Framing::Datagram,
        };
        self.next_id = FaceId(id.0 + 1);
        let info = FaceInfo {
            id,
            scope: scope_of(&remote),
            remote,
            local,
            persistency,
            link_type: LinkType::PointToPoint,
            options,
            is_up,
        };
        self.events.push_back(FaceEvent::Created(info.clone()));
        let face = Face {
            info,
            link: LinkService::new(options, framing),
            transport,
            last_received: self.now,
            is_dirty: false,
            retry: None,
        };
        self.faces.insert(id, face);
        Ok(id)
    }
}

/// Begins a connection without waiting for it.
fn connect_tcp(peer: SocketAddr) -> io::Result<OwnedFd> {
    let family = if peer.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &peer) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Unix sockets and loopback addresses stay on this machine.
fn scope_of(remote: &FaceUri) -> FaceScope {
    let is_local = match remote {
        FaceUri::Unix(_) | FaceUri::Fd(_) | FaceUri::Internal => true,
        other => other
            .socket_addr()
            .is_some_and(|addr| addr.ip().is_loopback()),
    };
    if is_local {
        FaceScope::Local
    } else {
        FaceScope::NonLocal
    }
}
