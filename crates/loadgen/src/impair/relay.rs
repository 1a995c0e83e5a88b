//! The relay's sockets, clients and queue of held packets.
//!
//! One thread: it waits in poll(2) until a packet arrives or one is due.
//! Owns the sockets and every held packet, bounded by
//! [`Impairment::queue_packets`] in each direction. Refuses to decide about
//! packets: see [`super::model`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use tachonym_packet::MonoNs;

use super::model::{Fate, Impairment, LinkModel};
use crate::sys::{self, RecvBatch, SendBatch, SendItem};

/// Packets received or sent with one system call.
const BATCH_PKTS: usize = 64;
/// Receive rounds on one socket before others get their turn.
const ROUNDS_PER_SOCKET: usize = 4;
/// Asked of the kernel for each socket; it grants what its limits allow.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// The down direction's random sequence is the up direction's seed plus this.
const DOWN_SEED_OFFSET: u64 = 0x646F_776E;

/// Where a relay listens, where it forwards to and what it does on the way.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Address that clients send to; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address that their packets go to.
    pub forward: SocketAddr,
    /// The only client, known before it speaks; `None`: clients are learned.
    pub client: Option<SocketAddr>,
    /// Source address towards `forward` of the first client's packets; its
    /// port 0, or `None`, takes a free one.
    pub upstream_bind: Option<SocketAddr>,
    /// Most clients that are learned; packets of others are dropped.
    pub max_clients: usize,
    /// Both directions' impairment.
    pub impairment: Impairment,
    /// Seed of every random decision.
    pub seed: u64,
}

/// What happened in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionCounters {
    /// Packets that arrived at the relay.
    pub received_pkts: u64,
    /// Their payload bytes.
    pub received_bytes: u64,
    /// Packets dropped as lost, as asked.
    pub lost_pkts: u64,
    /// Packets dropped because the queue was full.
    pub queue_full_pkts: u64,
    /// Extra copies made, as asked.
    pub duplicated_pkts: u64,
    /// Packets that skipped the delay, as asked.
    pub overtaking_pkts: u64,
    /// Packets sent on, copies included.
    pub sent_pkts: u64,
    /// Packets that the kernel refused to send.
    pub send_failed_pkts: u64,
    /// Packets still held at the end.
    pub held_pkts: u64,
}

/// What a relay did until it stopped.
#[derive(Clone, Debug, Serialize)]
pub struct RelayReport {
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// Seed of every random decision.
    pub seed: u64,
    /// Both directions' impairment.
    pub impairment: Impairment,
    /// From the clients to the forward address.
    pub up: DirectionCounters,
    /// From the forward address to the clients.
    pub down: DirectionCounters,
    /// Clients known at the end.
    pub n_clients: usize,
    /// Packets of clients beyond the bound.
    pub refused_client_pkts: u64,
    /// Packets that the kernel dropped because the relay read too slowly:
    /// loss beyond the impairment.
    pub kernel_dropped_pkts: u64,
    /// Most packets held at once, both directions together.
    pub max_held_pkts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Up,
    Down,
}

/// A packet on its way. Ordered by departure, then by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at: MonoNs,
    arrival: u64,
    direction: Direction,
    client_idx: usize,
    bytes: Vec<u8>,
}

struct Client {
    addr: SocketAddr,
    upstream: UdpSocket,
}

/// A UDP relay between any number of clients and one forward address.
pub struct Relay {
    options: RelayOptions,
    listen: UdpSocket,
    clients: Vec<Client>,
    client_by_addr: HashMap<SocketAddr, usize>,
    plumbing: Plumbing,
    origin: Instant,
    refused_client_pkts: u64,
}

impl Relay {
    /// Binds the sockets.
    ///
    /// # Errors
    /// Settings that cannot be (as `InvalidInput`) and what the kernel
    /// reports.
    pub fn new(options: RelayOptions) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        options.impairment.check().map_err(invalid)?;
        if options.listen == options.forward {
            return Err(invalid(
                "--listen and --forward are the same address".into(),
            ));
        }
        let listen = bind(options.listen)?;
        let mut relay = Self {
            plumbing: Plumbing::new(&options),
            listen,
            clients: Vec::new(),
            client_by_addr: HashMap::new(),
            origin: Instant::now(),
            refused_client_pkts: 0,
            options,
        };
        if let Some(addr) = relay.options.client {
            relay.add_client(addr)?;
        }
        Ok(relay)
    }

    /// Where clients reach the relay.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listen.local_addr()
    }

    /// Seed of every random decision.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Relays until `stop` becomes readable or `max_duration` has passed.
    ///
    /// # Errors
    /// A failure of poll(2) or of a socket that later packets would meet
    /// again. A packet that cannot be sent is counted instead.
    pub fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        max_duration: Option<Duration>,
    ) -> io::Result<RelayReport> {
        self.origin = Instant::now();
        let deadline = max_duration.map_or(MonoNs::NEVER, |d| MonoNs::ZERO + d);
        let mut readable = Vec::new();
        loop {
            let now = self.now();
            self.plumbing.send_due(now, &self.listen, &self.clients);
            if now >= deadline {
                break;
            }
            let wake = self.plumbing.next_due().min(deadline);
            let is_stopped = self.wait(stop, wake, &mut readable)?;
            let now = self.now();
            for &socket_idx in &readable {
                match socket_idx {
                    0 => self.receive_from_clients(now)?,
                    other => self.receive_from_upstream(now, other - 1)?,
                }
            }
            // What came before the stop is still counted.
            if is_stopped {
                break;
            }
        }
        self.report()
    }

    fn now(&self) -> MonoNs {
        MonoNs::ZERO + self.origin.elapsed()
    }

    /// Waits for packets until `wake`. Fills `readable` with 0 for the
    /// listening socket and n + 1 for client n; true if `stop` is readable.
    fn wait(
        &self,
        stop: BorrowedFd<'_>,
        wake: MonoNs,
        readable: &mut Vec<usize>,
    ) -> io::Result<bool> {
        let upstreams = self.clients.iter().map(|client| client.upstream.as_fd());
        let mut fds: Vec<PollFd<'_>> = [stop, self.listen.as_fd()]
            .into_iter()
            .chain(upstreams)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let wait = wake.saturating_since(self.now());
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        readable.clear();
        let timeout = (wake != MonoNs::NEVER).then_some(&timeout);
        match rustix::event::poll(&mut fds, timeout) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        readable.extend((0..fds.len() - 1).filter(|i| is_ready(&fds[i + 1])));
        Ok(is_ready(&fds[0]))
    }

    fn receive_from_clients(&mut self, now: MonoNs) -> io::Result<()> {
        let mut batch = self.plumbing.take_recv_batch();
        for _ in 0..ROUNDS_PER_SOCKET {
            if !receive(&mut batch, &self.listen)? {
                break;
            }
            for (from, bytes) in batch.datagrams() {
                let known = from.and_then(|addr| self.client_by_addr.get(&addr).copied());
                let client_idx = match (known, from) {
                    (Some(idx), _) => idx,
                    (None, Some(addr))
                        if self.options.client.is_none()
                            && self.clients.len() < self.options.max_clients =>
                    {
                        self.add_client(addr)?
                    }
                    _ => {
                        self.refused_client_pkts += 1;
                        continue;
                    }
                };
                self.plumbing.accept(now, Direction::Up, client_idx, bytes);
            }
            if !batch.is_full() {
                break;
            }
        }
        self.plumbing.recv = Some(batch);
        Ok(())
    }

    fn receive_from_upstream(&mut self, now: MonoNs, client_idx: usize) -> io::Result<()> {
        let mut batch = self.plumbing.take_recv_batch();
        for _ in 0..ROUNDS_PER_SOCKET {
            if !receive(&mut batch, &self.clients[client_idx].upstream)? {
                break;
            }
            for (_, bytes) in batch.datagrams() {
                self.plumbing
                    .accept(now, Direction::Down, client_idx, bytes);
            }
            if !batch.is_full() {
                break;
            }
        }
        self.plumbing.recv = Some(batch);
        Ok(())
    }

    fn add_client(&mut self, addr: SocketAddr) -> io::Result<usize> {
        let any: SocketAddr = match self.options.forward {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let chosen = self
            .options
            .upstream_bind
            .filter(|_| self.clients.is_empty());
        let upstream = bind(chosen.unwrap_or(any))?;
        upstream.connect(self.options.forward)?;
        let client_idx = self.clients.len();
        self.clients.push(Client { addr, upstream });
        self.client_by_addr.insert(addr, client_idx);
        Ok(client_idx)
    }

    fn report(&self) -> io::Result<RelayReport> {
        let mut kernel_dropped_pkts = sys::receive_drops(self.listen.as_fd())?;
        for client in &self.clients {
            kernel_dropped_pkts += sys::receive_drops(client.upstream.as_fd())?;
        }
        let held_in = |direction| self.plumbing.n_held[direction as usize] as u64;
        let counters_of = |direction: Direction| DirectionCounters {
            held_pkts: held_in(direction),
            ..self.plumbing.counters[direction as usize]
        };
        Ok(RelayReport {
            seconds: self.origin.elapsed().as_secs_f64(),
            seed: self.options.seed,
            impairment: self.options.impairment.clone(),
            up: counters_of(Direction::Up),
            down: counters_of(Direction::Down),
            n_clients: self.clients.len(),
            refused_client_pkts: self.refused_client_pkts,
            kernel_dropped_pkts,
            max_held_pkts: self.plumbing.max_held_pkts,
        })
    }
}

/// The two directions of a link with `seed`, up first: what a relay with that
/// seed decides.
#[must_use]
pub fn link_models(impairment: &Impairment, seed: u64) -> [LinkModel; 2] {
    [seed, seed.wrapping_add(DOWN_SEED_OFFSET)].map(|seed| LinkModel::new(impairment.clone(), seed))
}

/// Held packets and the buffers that carry them, apart from the sockets.
struct Plumbing {
    models: [LinkModel; 2],
    counters: [DirectionCounters; 2],
    n_held: [usize; 2],
    held: BinaryHeap<Reverse<Held>>,
    max_held_pkts: usize,
    n_arrived: u64,
    spare_buffers: Vec<Vec<u8>>,
    recv: Option<RecvBatch>,
    send: SendBatch,
    outgoing: Vec<u8>,
    items: Vec<SendItem>,
}

impl Plumbing {
    fn new(options: &RelayOptions) -> Self {
        Self {
            models: link_models(&options.impairment, options.seed),
            counters: [DirectionCounters::default(); 2],
            n_held: [0; 2],
            held: BinaryHeap::new(),
            max_held_pkts: 0,
            n_arrived: 0,
            spare_buffers: Vec::new(),
            recv: Some(RecvBatch::new(BATCH_PKTS)),
            send: SendBatch::default(),
            outgoing: Vec::new(),
            items: Vec::new(),
        }
    }

    fn take_recv_batch(&mut self) -> RecvBatch {
        self.recv
            .take()
            .unwrap_or_else(|| RecvBatch::new(BATCH_PKTS))
    }

    fn next_due(&self) -> MonoNs {
        self.held.peek().map_or(MonoNs::NEVER, |held| held.0.at)
    }

    fn accept(&mut self, now: MonoNs, direction: Direction, client_idx: usize, bytes: &[u8]) {
        let side = direction as usize;
        let fate = self.models[side].offer(now, bytes.len(), self.n_held[side]);
        let counters = &mut self.counters[side];
        counters.received_pkts += 1;
        counters.received_bytes += bytes.len() as u64;
        match fate {
            Fate::Lost => counters.lost_pkts += 1,
            Fate::QueueFull => counters.queue_full_pkts += 1,
            Fate::Forward {
                at,
                copy_at,
                overtakes,
            } => {
                counters.overtaking_pkts += u64::from(overtakes);
                counters.duplicated_pkts += u64::from(copy_at.is_some());
                for at in [Some(at), copy_at].into_iter().flatten() {
                    self.hold(at, direction, client_idx, bytes);
                }
            }
        }
    }

    fn hold(&mut self, at: MonoNs, direction: Direction, client_idx: usize, bytes: &[u8]) {
        let mut buffer = self.spare_buffers.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.n_arrived += 1;
        self.n_held[direction as usize] += 1;
        self.held.push(Reverse(Held {
            at,
            arrival: self.n_arrived,
            direction,
            client_idx,
            bytes: buffer,
        }));
        self.max_held_pkts = self.max_held_pkts.max(self.held.len());
    }

    /// Sends what is due, in runs of packets that leave by the same socket.
    fn send_due(&mut self, now: MonoNs, listen: &UdpSocket, clients: &[Client]) {
        let mut route = None;
        while let Some(Reverse(held)) = self.held.peek()
            && held.at <= now
        {
            // Every client's packets go down by the listening socket.
            let next_route = (
                held.direction,
                match held.direction {
                    Direction::Up => held.client_idx,
                    Direction::Down => 0,
                },
            );
            if self.items.len() == BATCH_PKTS || route.is_some_and(|route| route != next_route) {
                self.flush(route, listen, clients);
            }
            route = Some(next_route);
            let Some(Reverse(held)) = self.held.pop() else {
                break;
            };
            self.n_held[held.direction as usize] -= 1;
            self.items.push(SendItem {
                start: self.outgoing.len(),
                len: held.bytes.len(),
                segment_bytes: None,
                to: match held.direction {
                    Direction::Up => None,
                    Direction::Down => Some(clients[held.client_idx].addr),
                },
            });
            self.outgoing.extend_from_slice(&held.bytes);
            if self.spare_buffers.len() < self.max_held_pkts {
                self.spare_buffers.push(held.bytes);
            }
        }
        self.flush(route, listen, clients);
    }

    fn flush(&mut self, route: Option<(Direction, usize)>, listen: &UdpSocket, clients: &[Client]) {
        let Some((direction, client_idx)) = route else {
            return;
        };
        let socket = match direction {
            Direction::Up => &clients[client_idx].upstream,
            Direction::Down => listen,
        };
        let counters = &mut self.counters[direction as usize];
        let mut rest = self.items.as_slice();
        while !rest.is_empty() {
            // An error belongs to the first packet only, or to an earlier
            // one whose refusal came back by ICMP; the next may succeed.
            let n_done = match self.send.send(socket.as_fd(), &self.outgoing, rest) {
                Ok(n_sent) => {
                    counters.sent_pkts += n_sent as u64;
                    n_sent
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    // Reported before anything was sent: try again. The
                    // kernel clears the error as it reports it.
                    match self.send.send(socket.as_fd(), &self.outgoing, rest) {
                        Ok(n_sent) => {
                            counters.sent_pkts += n_sent as u64;
                            n_sent
                        }
                        Err(_) => {
                            counters.send_failed_pkts += 1;
                            1
                        }
                    }
                }
                Err(_) => {
                    counters.send_failed_pkts += 1;
                    1
                }
            };
            rest = &rest[n_done.max(1)..];
        }
        self.items.clear();
        self.outgoing.clear();
    }
}

fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(addr).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot bind UDP address {addr}: {error}"),
        )
    })?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    options.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    Ok(socket)
}

/// Fills `batch`; false if nothing was there. An error that some peer caused
/// by ICMP says nothing about the socket.
fn receive(batch: &mut RecvBatch, socket: &UdpSocket) -> io::Result<bool> {
    match batch.receive(socket.as_fd()) {
        Ok(n_received) => Ok(n_received > 0),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable => Ok(false),
            _ => Err(error),
        },
    }
}
