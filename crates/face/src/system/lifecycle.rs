//! How faces come, change and go.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use tachonym_packet::MonoNs;
use tachonym_packet::lp::FaceId;
use tachonym_protocol::{FaceEventKind, FacePersistency, FaceScope, FaceUri, LinkType};

use super::FaceSystem;
use super::eviction::CameBy;
use crate::counters::{DropReason, FaceCounters};
use crate::error::{CloseReason, CreateError, CreateOutcome, UpdateError};
use crate::face::{Face, FaceState};
use crate::info::FaceEvent;
use crate::link::Link;
use crate::locality::Locality;
use crate::options::{
    DEFAULT_MTU_BYTES, DEFAULT_UDP_IDLE_TIMEOUT, FaceParams, FaceUpdate, LinkOptions,
    MAX_MTU_BYTES, MIN_MTU_BYTES,
};
use crate::poller::{Interest, SocketKey, Token};
use crate::share::Ticket;
use crate::transport::stream::{Stream, StreamState, connect_unix, start_tcp_connect};
use crate::transport::udp::{ChannelDefaults, UdpRole, UdpSocket, source_towards};
use crate::transport::websocket::WebSocketTransport;
use crate::transport::{DialTarget, Redial, Transport, UdpPeer};

/// Everything that a new face needs to know.
pub(super) struct NewFace {
    pub(super) id: FaceId,
    pub(super) transport: Transport,
    pub(super) link: LinkOptions,
    pub(super) mtu_bytes: Option<usize>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) remote: FaceUri,
    pub(super) local: FaceUri,
    pub(super) scope: FaceScope,
    pub(super) link_type: LinkType,
    pub(super) persistency: FacePersistency,
    pub(super) ticket: Option<Ticket>,
}

pub(super) fn unix_uri(path: &Path) -> FaceUri {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    FaceUri::Unix(absolute.to_string_lossy().into_owned())
}

pub(super) fn clamp_mtu(mtu_bytes: u64) -> usize {
    mtu_bytes.clamp(MIN_MTU_BYTES, MAX_MTU_BYTES) as usize
}

impl FaceSystem {
    /// Adds a face whose socket is waited for already.
    pub(super) fn add_face(&mut self, new: NewFace) -> usize {
        let is_connecting = match &new.transport {
            Transport::Stream(stream) => stream.state != StreamState::Open,
            Transport::WebSocket(socket) => !socket.is_open(),
            Transport::Udp(_) | Transport::Multicast(_) => false,
        };
        // An accepted WebSocket has no scope before its handshake is read.
        let is_announced = !(is_connecting && new.persistency == FacePersistency::OnDemand);
        // What a listener offers to everybody is not for other machines.
        let link = LinkOptions {
            local_fields: new.link.local_fields && new.scope == FaceScope::Local,
            ..new.link
        };
        // Far apart, so that a peer never sees a sequence of an earlier face.
        self.next_sequence = self.next_sequence.wrapping_add(1 << 32);
        let id = new.id;
        let slot = self.faces.insert(Face {
            id,
            state: if is_connecting {
                FaceState::Connecting
            } else {
                FaceState::Up
            },
            is_announced,
            is_dirty: false,
            transport: new.transport,
            link: Link::new(link, new.mtu_bytes, self.next_sequence),
            tx: Default::default(),
            unsent_bytes: 0,
            counters: FaceCounters::default(),
            created_at: self.now,
            last_received_at: self.now,
            armed_at: MonoNs::NEVER,
            idle_timeout: new.idle_timeout,
            silent_timeout: self.options.silent_timeout,
            is_held: false,
            blocked_since: MonoNs::NEVER,
            stall_timeout: self.options.stall_timeout,
            remote: new.remote,
            local: new.local,
            scope: new.scope,
            link_type: new.link_type,
            persistency: new.persistency,
            peer_pid: None,
            _ticket: new.ticket,
        });
        let shared = self.faces[slot].source();
        let source = self.sources.join(id, shared);
        self.faces[slot].link.set_source(source);
        self.arm(slot);
        if is_announced {
            self.emit(slot, FaceEventKind::Created);
        }
        slot
    }

    pub(super) fn emit(&mut self, slot: usize, kind: FaceEventKind) {
        self.events.push_back(FaceEvent {
            kind,
            face: self.faces[slot].info(self.now),
            reason: None,
        });
    }

    /// Makes a face to `params.remote`, or finds the one that is there. Of several
    /// systems, [`FaceSystem::placement`] tells which is to be asked.
    /// Connections over IP are established in the background: see
    /// [`CreateOutcome::is_up`]. Packets sent meanwhile wait for it.
    ///
    /// # Errors
    /// If the parameters make no sense, a limit is reached, or the system
    /// refuses.
    pub fn create(&mut self, params: &FaceParams) -> Result<CreateOutcome, CreateError> {
        if params.persistency == FacePersistency::OnDemand {
            return Err(CreateError::BadPersistency);
        }
        match &params.remote {
            FaceUri::Udp(remote) => self.create_udp(*remote, params),
            FaceUri::Tcp(remote) | FaceUri::WebSocket(remote) => self.create_tcp(*remote, params),
            FaceUri::Unix(path) => self.create_unix(path, params),
            FaceUri::Unresolved(_) => Err(CreateError::NotCanonical),
            _ => Err(CreateError::UnsupportedScheme),
        }
    }

    /// When a face that is created counts as local.
    fn locality(&self, params: &FaceParams) -> Locality {
        let of_transport = || self.options.localities.of(&params.remote);
        params.locality.unwrap_or_else(of_transport)
    }

    fn check_limit(&mut self) -> Result<(), CreateError> {
        self.make_room(FaceScope::NonLocal, CameBy::Command, None)
            .map_err(|_| CreateError::TooManyFaces)
    }

    /// Gives a face the source that it has by what it has become.
    pub(super) fn settle_source(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        let former = face.link.source();
        let source = self.sources.join(face.id, face.source());
        face.link.change_source(source, &mut self.reassembly);
        self.sources.leave(face.id, former);
    }

    fn found(&self, id: FaceId) -> CreateOutcome {
        CreateOutcome {
            id,
            already_existed: true,
            is_up: self
                .faces
                .get(id)
                .is_some_and(|face| face.state == FaceState::Up),
        }
    }

    fn create_udp(
        &mut self,
        remote: SocketAddr,
        params: &FaceParams,
    ) -> Result<CreateOutcome, CreateError> {
        if remote.ip().is_multicast() || remote.ip().is_unspecified() || remote.port() == 0 {
            return Err(CreateError::NotCanonical);
        }
        let local = match &params.local {
            Some(FaceUri::Udp(local)) => local_end(*local, remote)?,
            Some(_) => return Err(CreateError::BadLocalUri),
            None => None,
        };
        let known = self
            .udp
            .iter()
            .find_map(|(_, socket)| socket.peers.get(&remote));
        match known.copied() {
            Some(id) if self.closing_reason(id).is_some() => {
                self.destroy(id);
            }
            Some(id) => return Ok(self.found(id)),
            None => {}
        }
        self.check_limit()?;
        let source = source_towards(remote)?;
        let own_ip = match local {
            Some(local) if !local.ip().is_unspecified() => local.ip(),
            _ => source,
        };
        let scope = self.locality(params).scope((own_ip, 0).into(), remote);
        if params.link.local_fields && scope == FaceScope::NonLocal {
            return Err(CreateError::NotLocal);
        }
        let key = match self.shared_socket(remote, source, local) {
            Some(key) => {
                self.draw_peer(key, remote)?;
                key
            }
            None => {
                let socket = match local {
                    Some(local) if local.port() != 0 => {
                        UdpSocket::bind(local, UdpRole::Dialled, self.options.udp())?
                    }
                    local => UdpSocket::connect(remote, local, self.options.udp())?,
                };
                self.add_udp_socket(socket)?
            }
        };
        let id = self.faces.allocate_id();
        let Some(socket) = self.udp.get_mut(key) else {
            return Err(CreateError::BadLocalUri);
        };
        socket.peers.insert(remote, id);
        // Elsewhere the kernel chooses, each time anew.
        let is_given = local.is_some_and(|local| local.ip() == own_ip);
        let source = (is_given && socket.is_wildcard()).then_some(own_ip);
        let local = local_udp_uri(socket.local, Some(own_ip));
        let has_gso = socket.has_gso;
        self.add_face(NewFace {
            id,
            transport: Transport::Udp(UdpPeer {
                socket: key,
                branch: None,
                remote,
                source,
                max_segment_bytes: max_segment_bytes(has_gso),
                may_branch: true,
            }),
            link: params.link,
            mtu_bytes: Some(clamp_mtu(params.mtu_bytes.unwrap_or(DEFAULT_MTU_BYTES))),
            idle_timeout: Some(DEFAULT_UDP_IDLE_TIMEOUT),
            remote: params.remote.clone(),
            local,
            scope,
            link_type: LinkType::PointToPoint,
            persistency: params.persistency,
            ticket: None,
        });
        self.branch_if_lasting(id);
        Ok(CreateOutcome {
            id,
            already_existed: false,
            is_up: true,
        })
    }

    /// A socket that faces share and that reaches `remote`, to which datagrams
    /// would leave from `source`; at `local`, if that is given.
    pub(super) fn shared_socket(
        &self,
        remote: SocketAddr,
        source: IpAddr,
        local: Option<SocketAddr>,
    ) -> Option<SocketKey> {
        let mut shared = self.udp.iter().filter(|(_, socket)| {
            matches!(socket.role, UdpRole::Channel(_) | UdpRole::Dialled)
                && socket.local.is_ipv4() == remote.is_ipv4()
        });
        match local {
            // A listener's port is as good as any.
            Some(mut local) if local.port() == 0 => shared.find(|(_, socket)| {
                local.set_port(socket.local.port());
                matches!(socket.role, UdpRole::Channel(_)) && socket.local == local
            }),
            Some(local) => shared.find(|(_, socket)| {
                let is_part = socket.is_wildcard() && socket.local.port() == local.port();
                socket.local == local || is_part
            }),
            None => shared.find(|(_, socket)| {
                matches!(socket.role, UdpRole::Channel(_))
                    && (socket.is_wildcard() || socket.local.ip() == source)
            }),
        }
        .map(|(key, _)| key)
    }

    fn create_tcp(
        &mut self,
        remote: SocketAddr,
        params: &FaceParams,
    ) -> Result<CreateOutcome, CreateError> {
        let is_websocket = matches!(params.remote, FaceUri::WebSocket(_));
        if remote.ip().is_multicast() || remote.ip().is_unspecified() || remote.port() == 0 {
            return Err(CreateError::NotCanonical);
        }
        let local = match (&params.local, is_websocket) {
            (Some(FaceUri::Tcp(local)), false)
            | (Some(FaceUri::WebSocket(local) | FaceUri::WebSocketClient(local)), true) => {
                local_end(*local, remote)?
            }
            (Some(_), _) => return Err(CreateError::BadLocalUri),
            (None, _) => None,
        };
        let locality = self.locality(params);
        // From another address than loopback, loopback cannot be dialled.
        let may_be_local = locality.scope(remote, remote) == FaceScope::Local;
        if params.link.local_fields && !may_be_local {
            return Err(CreateError::NotLocal);
        }
        if let Some(id) = self.find(&params.remote) {
            return Ok(self.found(id));
        }
        self.check_limit()?;
        let target = DialTarget { local, remote };
        let redial = Redial::new(self.options.redial_wait);
        let give_up_at = self.now + self.options.connect_timeout;
        let socket = start_tcp_connect(&target)?;
        let own = socket.local_addr()?.as_socket();
        let transport = if is_websocket {
            let stream = TcpStream::from(socket);
            let socket = WebSocketTransport::connecting(stream, give_up_at, target, redial);
            Transport::WebSocket(Box::new(socket))
        } else {
            Transport::Stream(Stream::connecting(socket, give_up_at, target, redial))
        };
        let id = self.faces.allocate_id();
        self.watch(id, &transport, Interest::Write)?;
        let own = own.unwrap_or(SocketAddr::new(unspecified_like(remote), 0));
        self.add_face(NewFace {
            id,
            transport,
            link: params.link,
            mtu_bytes: None,
            idle_timeout: None,
            remote: params.remote.clone(),
            local: if is_websocket {
                FaceUri::WebSocketClient(own)
            } else {
                FaceUri::Tcp(own)
            },
            scope: locality.scope(own, remote),
            link_type: LinkType::PointToPoint,
            persistency: params.persistency,
            ticket: None,
        });
        Ok(CreateOutcome {
            id,
            already_existed: false,
            is_up: false,
        })
    }

    fn create_unix(
        &mut self,
        path: &str,
        params: &FaceParams,
    ) -> Result<CreateOutcome, CreateError> {
        if params.local.is_some() {
            return Err(CreateError::BadLocalUri);
        }
        if params.persistency == FacePersistency::Permanent {
            return Err(CreateError::BadPersistency);
        }
        let scope = self.locality(params).unix_scope();
        if params.link.local_fields && scope == FaceScope::NonLocal {
            return Err(CreateError::NotLocal);
        }
        self.check_limit()?;
        let path = Path::new(path);
        let stream = Stream::open(connect_unix(path)?);
        let descriptor = stream.fd().map_or(0, |fd| {
            u32::try_from(std::os::fd::AsRawFd::as_raw_fd(&fd)).unwrap_or(0)
        });
        let transport = Transport::Stream(stream);
        let id = self.faces.allocate_id();
        self.watch(id, &transport, Interest::Read)?;
        self.add_face(NewFace {
            id,
            transport,
            link: params.link,
            mtu_bytes: None,
            idle_timeout: None,
            remote: unix_uri(path),
            local: FaceUri::Fd(descriptor),
            scope,
            link_type: LinkType::PointToPoint,
            persistency: params.persistency,
            ticket: None,
        });
        Ok(CreateOutcome {
            id,
            already_existed: false,
            is_up: true,
        })
    }

    /// Begins to wait for the socket of a face.
    pub(super) fn watch(
        &mut self,
        id: FaceId,
        transport: &Transport,
        interest: Interest,
    ) -> io::Result<()> {
        self.counters.n_control_syscalls += 1;
        match own_fd(transport) {
            Some(fd) => self.poller.add(fd, Token::Face(id), interest),
            None => Ok(()),
        }
    }

    /// Makes an on-demand face for a peer that has written to a UDP channel.
    pub(super) fn create_on_demand(
        &mut self,
        key: SocketKey,
        defaults: &ChannelDefaults,
        remote: SocketAddr,
        own_ip: Option<IpAddr>,
    ) -> Option<FaceId> {
        let id = self.faces.allocate_id();
        let socket = self.udp.get_mut(key)?;
        socket.peers.insert(remote, id);
        let local = socket.local;
        let own = SocketAddr::new(own_ip.unwrap_or(local.ip()), local.port());
        let source = own_ip.filter(|_| local.ip().is_unspecified());
        let has_gso = socket.has_gso;
        self.add_face(NewFace {
            id,
            transport: Transport::Udp(UdpPeer {
                socket: key,
                branch: None,
                remote,
                source,
                max_segment_bytes: max_segment_bytes(has_gso),
                may_branch: true,
            }),
            link: defaults.link,
            mtu_bytes: Some(defaults.mtu_bytes),
            idle_timeout: defaults.idle_timeout,
            remote: FaceUri::Udp(remote),
            local: local_udp_uri(local, own_ip),
            scope: self.options.localities.udp.scope(own, remote),
            link_type: LinkType::PointToPoint,
            persistency: FacePersistency::OnDemand,
            ticket: None,
        });
        Some(id)
    }

    /// Changes a face: all of `update`, or nothing.
    ///
    /// # Errors
    /// If there is no such face, or it cannot be so.
    pub fn update(&mut self, id: FaceId, update: &FaceUpdate) -> Result<(), UpdateError> {
        let slot = self.faces.slot_of(id).ok_or(UpdateError::NoSuchFace)?;
        let face = &mut self.faces[slot];
        if let Some(persistency) = update.persistency
            && !can_become(face, persistency)
        {
            return Err(UpdateError::BadPersistency);
        }
        let scope = match update.locality {
            Some(_) if face.is_indirect() => FaceScope::NonLocal,
            Some(locality) => locality.scope_between(&face.local, &face.remote),
            None => face.scope,
        };
        if update.local_fields == Some(true) && scope == FaceScope::NonLocal {
            return Err(UpdateError::NotLocal);
        }
        let is_rescoped = scope != face.scope;
        if is_rescoped {
            face.set_scope(scope);
        }
        if let Some(persistency) = update.persistency {
            face.persistency = persistency;
            // Idleness counts from now on.
            face.last_received_at = self.now;
        }
        if let Some(mtu_bytes) = update.mtu_bytes {
            face.link.set_mtu_bytes(clamp_mtu(mtu_bytes));
        }
        let old = *face.link.options();
        face.link.set_options(LinkOptions {
            local_fields: update.local_fields.unwrap_or(old.local_fields),
            reliability: update.reliability.unwrap_or(old.reliability),
            congestion_marking: update.congestion_marking.unwrap_or(old.congestion_marking),
            base_congestion_marking_interval: update
                .base_congestion_marking_interval
                .unwrap_or(old.base_congestion_marking_interval),
            default_congestion_threshold_bytes: update
                .default_congestion_threshold_bytes
                .unwrap_or(old.default_congestion_threshold_bytes),
        });
        if is_rescoped || update.persistency.is_some() {
            self.settle_source(slot);
        }
        self.arm(slot);
        self.branch_if_lasting(id);
        Ok(())
    }

    /// Removes a face at once. False if there is none.
    pub fn destroy(&mut self, id: FaceId) -> bool {
        let Some(face) = self.faces.remove(id) else {
            return false;
        };
        let reason = match face.state {
            // It was going anyway.
            FaceState::Closing(reason) => {
                self.closing.retain(|closing| *closing != id);
                reason
            }
            _ => CloseReason::Destroyed,
        };
        self.bury(face, reason);
        true
    }

    /// The transport of a face has failed, or the face has to go.
    pub(super) fn close(&mut self, slot: usize, reason: CloseReason) {
        let face = &mut self.faces[slot];
        if matches!(face.state, FaceState::Closing(_)) {
            return;
        }
        if face.persistency == FacePersistency::Permanent && self.stand_by(slot, reason) {
            return;
        }
        let face = &mut self.faces[slot];
        face.state = FaceState::Closing(reason);
        self.closing.push(face.id);
        self.sources.uncount(face.id, face.link.source());
        if let Some(fd) = own_fd(&face.transport) {
            // It is dropped soon, but must not wake the loop meanwhile.
            self.counters.n_control_syscalls += 1;
            let _ = self.poller.remove(fd);
        }
    }

    /// Lets a permanent face that `reason` took down wait for its next connection
    /// attempt. False if it cannot be dialled.
    fn stand_by(&mut self, slot: usize, reason: CloseReason) -> bool {
        let max_wait = self.options.max_redial_wait;
        let face = &mut self.faces[slot];
        face.count_unfinished();
        match &mut face.transport {
            Transport::Stream(stream) => {
                let Some((_, redial)) = &mut stream.dial else {
                    return false;
                };
                let at = redial.next(self.now, max_wait);
                stream.wait_until(at);
            }
            Transport::WebSocket(socket) => {
                let Some((_, redial)) = &mut socket.dial else {
                    return false;
                };
                let at = redial.next(self.now, max_wait);
                socket.wait_until(at);
            }
            Transport::Udp(_) | Transport::Multicast(_) => return true,
        }
        let was_down = face.state == FaceState::Down;
        face.state = FaceState::Down;
        face.blocked_since = MonoNs::NEVER;
        face.is_held = false;
        face.link.reset(&mut self.reassembly);
        self.drop_backlog(slot);
        self.arm(slot);
        if !was_down {
            self.events.push_back(FaceEvent {
                kind: FaceEventKind::Down,
                face: self.faces[slot].info(self.now),
                reason: Some(reason),
            });
        }
        true
    }

    /// Dials again for a face whose wait is over.
    pub(super) fn redial(&mut self, slot: usize) {
        let give_up_at = self.now + self.options.connect_timeout;
        let face = &mut self.faces[slot];
        let target = match &face.transport {
            Transport::Stream(stream) => stream.dial.as_ref().map(|(target, _)| *target),
            Transport::WebSocket(socket) => socket.dial.as_ref().map(|(target, _)| *target),
            Transport::Udp(_) | Transport::Multicast(_) => None,
        };
        let Some(target) = target else {
            return;
        };
        let watched = start_tcp_connect(&target).and_then(|socket| {
            match &mut face.transport {
                Transport::Stream(stream) => stream.redial(socket, give_up_at),
                Transport::WebSocket(websocket) => {
                    websocket.redial(TcpStream::from(socket), give_up_at);
                }
                Transport::Udp(_) | Transport::Multicast(_) => {}
            }
            match own_fd(&face.transport) {
                Some(fd) => self.poller.add(fd, Token::Face(face.id), Interest::Write),
                None => Ok(()),
            }
        });
        self.counters.n_control_syscalls += 1;
        match watched {
            Ok(()) => self.arm(slot),
            Err(error) => self.close(slot, CloseReason::ConnectFailed(error.kind())),
        }
    }

    /// The connection of a face is established.
    pub(super) fn connected(&mut self, slot: usize) {
        let redial_wait = self.options.redial_wait;
        let face = &mut self.faces[slot];
        let mut own = None;
        match &mut face.transport {
            Transport::Stream(stream) => {
                stream.state = StreamState::Open;
                own = stream.local_addr().map(FaceUri::Tcp);
                if let Some((_, redial)) = &mut stream.dial {
                    *redial = Redial::new(redial_wait);
                }
            }
            Transport::WebSocket(socket) => {
                let addr = socket.local_addr();
                if let Some((_, redial)) = &mut socket.dial {
                    own = addr.map(FaceUri::WebSocketClient);
                    *redial = Redial::new(redial_wait);
                }
            }
            Transport::Udp(_) | Transport::Multicast(_) => {}
        }
        if let Some(own) = own {
            face.local = own;
        }
        if let Some(fd) = own_fd(&face.transport) {
            self.counters.n_control_syscalls += 1;
            if let Err(error) = self.poller.modify(fd, Token::Face(face.id), Interest::Read) {
                self.close(slot, CloseReason::Failed(error.kind()));
                return;
            }
        }
        face.state = FaceState::Up;
        let has_backlog = !face.tx.is_empty();
        let was_announced = std::mem::replace(&mut face.is_announced, true);
        self.arm(slot);
        self.emit(
            slot,
            if was_announced {
                FaceEventKind::Up
            } else {
                FaceEventKind::Created
            },
        );
        if has_backlog {
            self.mark_dirty(slot);
        }
    }

    /// Removes the faces that have failed.
    pub(super) fn finish_closing(&mut self) {
        while let Some(id) = self.closing.pop() {
            if let Some(face) = self.faces.remove(id) {
                let reason = match face.state {
                    FaceState::Closing(reason) => reason,
                    _ => CloseReason::Destroyed,
                };
                self.bury(face, reason);
            }
        }
    }

    /// Drops what a face could not send.
    pub(super) fn drop_backlog(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        self.backlogs.changed(face.backlog_bytes(), 0);
        face.unsent_bytes = 0;
        let n_lost = face.tx.n_frames() as u64;
        face.counters.drops.add(DropReason::ConnectionLost, n_lost);
        face.tx.clear(&mut self.pool);
    }

    /// Gives everything back that a face, already taken out, has had.
    fn bury(&mut self, mut face: Face, reason: CloseReason) {
        self.backlogs.changed(face.backlog_bytes(), 0);
        face.unsent_bytes = 0;
        let n_lost = face.tx.n_frames() as u64;
        face.counters.drops.add(DropReason::ConnectionLost, n_lost);
        face.tx.clear(&mut self.pool);
        face.count_unfinished();
        face.link.reset(&mut self.reassembly);
        self.sources.leave(face.id, face.link.source());
        if face.armed_at != MonoNs::NEVER {
            self.alarms.remove(&(face.armed_at, face.id));
        }
        match &mut face.transport {
            Transport::Udp(peer) => {
                if let Some(branch) = peer.branch {
                    self.remove_branch(branch);
                }
                let remote = peer.remote;
                if let Some(socket) = self.udp.get_mut(peer.socket) {
                    socket.peers.remove(&remote);
                    let is_of_no_use = socket.peers.is_empty()
                        && matches!(socket.role, UdpRole::Dialled | UdpRole::Connected);
                    if is_of_no_use {
                        self.udp.remove(peer.socket);
                    }
                }
                self.let_peer_go(&remote);
            }
            Transport::Multicast(key) => {
                self.udp.remove(*key);
            }
            Transport::WebSocket(socket) => socket.say_goodbye(),
            Transport::Stream(_) => {}
        }
        self.past_drops.merge(&face.counters.drops);
        face.state = FaceState::Closing(reason);
        if face.is_announced {
            self.events.push_back(FaceEvent {
                kind: FaceEventKind::Destroyed,
                face: face.info(self.now),
                reason: Some(reason),
            });
        }
    }
}

/// The descriptor that belongs to one face alone.
pub(super) fn own_fd(transport: &Transport) -> Option<std::os::fd::BorrowedFd<'_>> {
    match transport {
        Transport::Stream(stream) => stream.fd(),
        Transport::WebSocket(socket) => socket.fd(),
        Transport::Udp(_) | Transport::Multicast(_) => None,
    }
}

/// Where to dial `remote` from; `None` if `local` leaves that open.
pub(super) fn local_end(
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<Option<SocketAddr>, CreateError> {
    if local.is_ipv4() != remote.is_ipv4() || local.ip().is_multicast() {
        return Err(CreateError::BadLocalUri);
    }
    let is_any = local.ip().is_unspecified() && local.port() == 0;
    Ok((!is_any).then_some(local))
}

fn max_segment_bytes(has_gso: bool) -> u32 {
    if has_gso { u32::MAX } else { 0 }
}

fn local_udp_uri(local: SocketAddr, own_ip: Option<IpAddr>) -> FaceUri {
    let mut own = local;
    if local.ip().is_unspecified()
        && let Some(ip) = own_ip
    {
        own.set_ip(ip);
    }
    FaceUri::Udp(own)
}

pub(super) fn unspecified_like(addr: SocketAddr) -> IpAddr {
    match addr {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    }
}

fn can_become(face: &Face, persistency: FacePersistency) -> bool {
    if persistency == face.persistency {
        return true;
    }
    match &face.transport {
        Transport::Udp(_) => true,
        Transport::Multicast(_) => false,
        // Only who has dialled can dial again; an accepted TCP connection may
        // be kept though it is idle.
        Transport::Stream(stream) => match persistency {
            FacePersistency::Permanent => stream.dial.is_some(),
            FacePersistency::Persistent => !matches!(face.local, FaceUri::Unix(_)),
            FacePersistency::OnDemand => false,
        },
        Transport::WebSocket(socket) => {
            socket.dial.is_some() && persistency != FacePersistency::OnDemand
        }
    }
}
