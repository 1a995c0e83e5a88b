//! Unix and TCP connections.
//!
//! Owns one socket, what is left of a frame of which only a part has been
//! read, and what is known about the kernel's send queue. A connection that is
//! being established, or waits to be dialled again, is a state of the same
//! value, so that a permanent face outlives its sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use tachonym_packet::MonoNs;

use super::{DialTarget, Redial};
use crate::batch::STREAM_READ_BYTES;
use crate::sys::option;
use crate::turns::Turns;

/// A queue length is looked up at most once in this time.
const QUEUE_LOOK_NS: u64 = 1_000_000;

/// Smallest limit of a read.
const MIN_STREAM_READ_BYTES: usize = 1 << 10;

/// Silence of a TCP peer after which the kernel asks whether it is still there (RFC
/// 9293, section 3.8.4).
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time between two such questions, and how many there are.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;
/// A TCP connection ends whose peer has acknowledged nothing for so long of what was
/// sent (RFC 5482): as long as a silent peer has until its last question.
const USER_TIMEOUT: Duration = Duration::from_secs(90);

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamState {
    /// Being established; given up at the time.
    Connecting(MonoNs),
    /// It carries frames.
    Open,
    /// No socket; dialled at the time.
    Waiting(MonoNs),
}

/// See the module documentation.
pub(crate) struct Stream {
    socket: Option<Socket>,
    pub(crate) state: StreamState,
    /// The beginning of a frame.
    pub(crate) leftover: Vec<u8>,
    /// Since when that frame has been unfinished; NEVER: there is none.
    pub(crate) unfinished_since: MonoNs,
    /// Bytes that a read brings.
    pub(crate) turns: Turns,
    /// The kernel takes no more; readiness for writing is waited for.
    pub(crate) is_blocked: bool,
    pub(crate) queue: KernelQueue,
    /// What to dial, on faces that were dialled.
    pub(crate) dial: Option<(DialTarget, Redial)>,
}

/// What is known about the bytes that the kernel has taken and the peer has
/// not. Looking costs a system call, so an upper bound is kept, and looked up
/// only when it matters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelQueue {
    last_bytes: usize,
    sent_since_bytes: usize,
    looked_at: MonoNs,
}

impl KernelQueue {
    pub(crate) fn sent(&mut self, n_bytes: usize) {
        self.sent_since_bytes = self.sent_since_bytes.saturating_add(n_bytes);
    }

    /// No more than this is in the queue, unless the kernel charges more than
    /// the bytes themselves.
    #[inline]
    pub(crate) fn upper_bound_bytes(&self) -> usize {
        self.last_bytes.saturating_add(self.sent_since_bytes)
    }

    /// Whether a look could tell more.
    pub(crate) fn may_look(&self, now: MonoNs) -> bool {
        now.0.saturating_sub(self.looked_at.0) >= QUEUE_LOOK_NS
            && (self.sent_since_bytes > 0 || self.last_bytes > 0)
    }

    /// What the last look found.
    pub(crate) fn last_bytes(&self) -> usize {
        self.last_bytes
    }

    /// Looks.
    pub(crate) fn look(&mut self, now: MonoNs, fd: BorrowedFd<'_>) {
        // Where the kernel does not say, the queue counts as empty: better no
        // mark than wrong ones.
        self.last_bytes = option::send_queue_bytes(fd).unwrap_or(0);
        self.sent_since_bytes = 0;
        self.looked_at = now;
    }
}

impl Stream {
    /// A connection that exists.
    pub(crate) fn open(socket: Socket) -> Self {
        Self::new(Some(socket), StreamState::Open, None)
    }

    /// A connection that `socket` is establishing.
    pub(crate) fn connecting(
        socket: Socket,
        give_up_at: MonoNs,
        target: DialTarget,
        redial: Redial,
    ) -> Self {
        Self::new(
            Some(socket),
            StreamState::Connecting(give_up_at),
            Some((target, redial)),
        )
    }

    fn new(socket: Option<Socket>, state: StreamState, dial: Option<(DialTarget, Redial)>) -> Self {
        Self {
            socket,
            state,
            leftover: Vec::new(),
            unfinished_since: MonoNs::NEVER,
            turns: Turns::new(MIN_STREAM_READ_BYTES, STREAM_READ_BYTES),
            is_blocked: false,
            queue: KernelQueue::default(),
            dial,
        }
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Gives up the socket, to wait until `at`.
    pub(crate) fn wait_until(&mut self, at: MonoNs) {
        self.socket = None;
        self.state = StreamState::Waiting(at);
        self.leftover = Vec::new();
        self.unfinished_since = MonoNs::NEVER;
        self.turns = Turns::new(MIN_STREAM_READ_BYTES, STREAM_READ_BYTES);
        self.is_blocked = false;
        self.queue = KernelQueue::default();
    }

    /// Goes on with a new socket that is being connected.
    pub(crate) fn redial(&mut self, socket: Socket, give_up_at: MonoNs) {
        self.socket = Some(socket);
        self.state = StreamState::Connecting(give_up_at);
    }

    /// Looks how much of what was sent is still queued.
    pub(crate) fn look_at_queue(&mut self, now: MonoNs) {
        if let Some(socket) = &self.socket {
            self.queue.look(now, socket.as_fd());
        }
    }

    /// The outcome of connecting, once the socket is ready for writing.
    pub(crate) fn take_connect_error(&self) -> io::Result<()> {
        match self.socket.as_ref().map(Socket::take_error) {
            Some(Ok(None)) => Ok(()),
            Some(Ok(Some(error)) | Err(error)) => Err(error),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The address of this end.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.as_ref()?.local_addr().ok()?.as_socket()
    }

    /// Reads what is there into `memory`: one system call.
    pub(crate) fn receive(&self, memory: &mut [u8]) -> io::Result<usize> {
        let fd = self.fd().ok_or(io::ErrorKind::NotConnected)?;
        let (n_bytes, _) = rustix::net::recv(fd, memory, RecvFlags::DONTWAIT)?;
        Ok(n_bytes)
    }

    /// Writes what the kernel takes of `bytes`: one system call.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let fd = self.fd().ok_or(io::ErrorKind::NotConnected)?;
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(rustix::net::send(fd, bytes, flags)?)
    }
}

/// Sets a TCP connection up: packets leave at once, and the kernel ends it in a minute
/// and a half when the peer is not there any more.
pub(crate) fn configure_tcp(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))
}

/// Begins to connect to `target`; the socket becomes writable when that has
/// succeeded or failed.
pub(crate) fn start_tcp_connect(target: &DialTarget) -> io::Result<Socket> {
    let domain = Domain::for_address(target.remote);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), None)?;
    configure_tcp(&socket)?;
    if let Some(local) = target.local {
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
    }
    match socket.connect(&target.remote.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Connects to a Unix socket. That waits for nothing: it succeeds or fails.
pub(crate) fn connect_unix(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_connection_is_ended_by_the_kernel_when_its_peer_is_gone() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = DialTarget {
            local: None,
            remote: listener.local_addr().unwrap(),
        };
        let dialled = start_tcp_connect(&target).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let accepted = Socket::from(accepted);
        configure_tcp(&accepted).unwrap();
        for socket in [dialled, accepted] {
            assert!(socket.keepalive().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_IDLE);
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_PROBES);
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(USER_TIMEOUT));
        }
    }

    #[test]
    fn the_upper_bound_grows_with_what_is_sent_until_a_look() {
        let (a, _b) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        let stream = Stream::open(a);
        let mut queue = KernelQueue::default();
        assert!(!queue.may_look(MonoNs(QUEUE_LOOK_NS)));
        queue.sent(stream.send(&[0; 1000]).unwrap());
        assert_eq!(queue.upper_bound_bytes(), 1000);
        assert!(queue.may_look(MonoNs(QUEUE_LOOK_NS)));
        queue.look(MonoNs(QUEUE_LOOK_NS), stream.fd().unwrap());
        assert!(queue.last_bytes() >= 1000);
        assert!(!queue.may_look(MonoNs(QUEUE_LOOK_NS + 1)));
    }
}
