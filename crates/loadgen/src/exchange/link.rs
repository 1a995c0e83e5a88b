//! A connection that carries whole frames in big portions.
//!
//! A stream is read 256 KiB at a time and written with one call for all that
//! is queued; UDP uses recvmmsg and sendmmsg, with segmentation offload both
//! ways unless [`Link::without_offload`]. Nothing waits: the caller polls. Owns sockets and their buffers.
//! Refuses to look into frames: see [`super::flow`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use tachonym_packet::tlv;

use super::address::{Address, Transport};
use super::budget::Deadline;
use crate::sys::{self, RecvBatch, SendBatch, SendItem};

/// Read from a stream with one call.
const STREAM_READ_BYTES: usize = 256 << 10;
/// Largest frame accepted: an NDN packet with link headers is far smaller.
const MAX_FRAME_BYTES: usize = 16 << 10;
/// Messages, each perhaps of many segments, received with one call.
const RECV_MESSAGES: usize = 32;
/// Asked of the kernel for each socket; it grants what its limits allow.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Pause before a Unix listener whose queue was full is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// Most bytes queued for a peer that does not read.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

/// A connected socket with its receive buffer and its queue of frames to send.
pub struct Link {
    socket: File,
    transport: Transport,
    local_udp_addr: Option<SocketAddr>,
    inbox: Inbox,
    outbox: Outbox,
}

enum Inbox {
    Stream { buffer: Vec<u8>, n_filled: usize },
    Datagrams(RecvBatch),
}

/// Frames that wait to be sent.
pub struct Outbox {
    bytes: Vec<u8>,
    n_sent_bytes: usize,
    /// Lengths of the unsent frames; kept for datagrams only.
    frame_lens: Option<Vec<usize>>,
    batch: SendBatch,
    items: Vec<SendItem>,
    has_segmentation: bool,
}

impl Outbox {
    fn new(transport: Transport) -> Self {
        Self {
            bytes: Vec::new(),
            n_sent_bytes: 0,
            frame_lens: (transport == Transport::Udp).then(Vec::new),
            batch: SendBatch::default(),
            items: Vec::new(),
            has_segmentation: true,
        }
    }

    /// Queues the frame that `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        if let Some(frame_lens) = &mut self.frame_lens {
            frame_lens.push(self.bytes.len() - start);
        }
    }

    fn is_empty(&self) -> bool {
        self.n_sent_bytes == self.bytes.len()
    }

    fn mark_sent(&mut self, n_bytes: usize) {
        self.n_sent_bytes += n_bytes;
        if self.is_empty() {
            self.bytes.clear();
            self.n_sent_bytes = 0;
        }
    }

    /// One write for everything; what the kernel does not take stays.
    fn flush_stream(&mut self, mut socket: &File) -> io::Result<()> {
        let n_written = socket.write(&self.bytes[self.n_sent_bytes..])?;
        self.mark_sent(n_written);
        Ok(())
    }

    fn flush_datagrams(&mut self, socket: &File) -> io::Result<()> {
        let frame_lens = self.frame_lens.get_or_insert_default();
        let max_segments = if self.has_segmentation {
            sys::MAX_SEGMENTS
        } else {
            1
        };
        group_segments(frame_lens, self.n_sent_bytes, max_segments, &mut self.items);
        let result = self.batch.send(socket.as_fd(), &self.bytes, &self.items);
        let n_items = match result {
            Ok(n_items) => n_items,
            // A kernel without segmentation offload.
            Err(error) if self.has_segmentation && error.kind() == io::ErrorKind::InvalidInput => {
                self.has_segmentation = false;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let sent = &self.items[..n_items];
        let n_bytes: usize = sent.iter().map(|item| item.len).sum();
        let n_frames: usize = sent.iter().map(n_segments).sum();
        frame_lens.drain(..n_frames);
        self.mark_sent(n_bytes);
        Ok(())
    }
}

fn n_segments(item: &SendItem) -> usize {
    item.segment_bytes.map_or(1, |segment_bytes| {
        item.len.div_ceil(usize::from(segment_bytes).max(1))
    })
}

/// Makes one message of neighbours of equal length; the last of them may be
/// shorter.
fn group_segments(
    frame_lens: &[usize],
    start: usize,
    max_segments: usize,
    items: &mut Vec<SendItem>,
) {
    items.clear();
    let mut start = start;
    let mut rest = frame_lens;
    while let Some(&segment_len) = rest.first() {
        let (mut n_frames, mut len) = (0, 0);
        for &frame_len in rest.iter().take(max_segments) {
            if frame_len > segment_len || len + frame_len > sys::MAX_SEND_BYTES && n_frames > 0 {
                break;
            }
            n_frames += 1;
            len += frame_len;
            if frame_len < segment_len {
                break;
            }
        }
        items.push(SendItem {
            start,
            len,
            segment_bytes: u16::try_from(segment_len).ok().filter(|_| n_frames > 1),
            to: None,
        });
        start += len;
        rest = &rest[n_frames..];
    }
}

impl Link {
    /// Connects to a forwarder, however long it takes to accept.
    ///
    /// # Errors
    /// What the kernel reports, with the address.
    pub fn connect(address: &Address) -> io::Result<Self> {
        Self::connect_by(address, Deadline::NONE)
    }

    /// Connects to a forwarder by `deadline`.
    ///
    /// # Errors
    /// What the kernel reports, with the address; `TimedOut` or `WouldBlock` if
    /// it accepts nothing in time.
    pub fn connect_by(address: &Address, deadline: Deadline) -> io::Result<Self> {
        let link = match address {
            Address::Unix(path) => connect_unix(path, deadline).and_then(Self::from_unix),
            Address::Tcp(addr) => connect_tcp(*addr, deadline).and_then(Self::from_tcp),
            Address::Udp(addr) => {
                bind_loopback(*addr).and_then(|socket| Self::from_udp(socket, *addr))
            }
        };
        link.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot connect to {address}: {error}"),
            )
        })
    }

    /// Two links that are connected with each other.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn pair(transport: Transport) -> io::Result<(Self, Self)> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        match transport {
            Transport::Unix => {
                let (a, b) = UnixStream::pair()?;
                Ok((Self::from_unix(a)?, Self::from_unix(b)?))
            }
            Transport::Tcp => {
                let listener = TcpListener::bind(any)?;
                let a = TcpStream::connect(listener.local_addr()?)?;
                // Another program may have connected in between.
                loop {
                    let (b, from) = listener.accept()?;
                    if from == a.local_addr()? {
                        return Ok((Self::from_tcp(a)?, Self::from_tcp(b)?));
                    }
                }
            }
            Transport::Udp => {
                let (a, b) = (bind_loopback(any)?, bind_loopback(any)?);
                let (a_addr, b_addr) = (a.local_addr()?, b.local_addr()?);
                Ok((Self::from_udp(a, b_addr)?, Self::from_udp(b, a_addr)?))
            }
        }
    }

    fn from_unix(stream: UnixStream) -> io::Result<Self> {
        Self::new(OwnedFd::from(stream), Transport::Unix, None)
    }

    fn from_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Self::new(OwnedFd::from(stream), Transport::Tcp, None)
    }

    fn from_udp(socket: UdpSocket, peer: SocketAddr) -> io::Result<Self> {
        socket.connect(peer)?;
        // Without it datagrams arrive one by one, which is only dearer.
        let _ = sys::set_udp_gro(socket.as_fd(), true);
        let local_addr = socket.local_addr()?;
        Self::new(OwnedFd::from(socket), Transport::Udp, Some(local_addr))
    }

    fn new(
        socket: OwnedFd,
        transport: Transport,
        local_udp_addr: Option<SocketAddr>,
    ) -> io::Result<Self> {
        let options = socket2::SockRef::from(&socket);
        options.set_nonblocking(true)?;
        if transport != Transport::Tcp {
            // TCP's buffers grow by themselves.
            options.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
            options.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
        }
        let inbox = match transport {
            Transport::Unix | Transport::Tcp => Inbox::Stream {
                buffer: vec![0; STREAM_READ_BYTES],
                n_filled: 0,
            },
            Transport::Udp => Inbox::Datagrams(RecvBatch::new(RECV_MESSAGES)),
        };
        Ok(Self {
            socket: File::from(socket),
            transport,
            local_udp_addr,
            inbox,
            outbox: Outbox::new(transport),
        })
    }

    /// The link as a foreign program would have it: over UDP, each datagram is a message
    /// of its own in both directions. The kernel then cuts what the forwarder sends with
    /// segmentation offload, at the forwarder's expense.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn without_offload(mut self) -> io::Result<Self> {
        if self.transport == Transport::Udp {
            sys::set_udp_gro(self.socket.as_fd(), false)?;
            self.outbox.has_segmentation = false;
        }
        Ok(self)
    }

    /// Which kind of connection this is.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Own address of a UDP link.
    #[must_use]
    pub fn local_udp_addr(&self) -> Option<SocketAddr> {
        self.local_udp_addr
    }

    /// The process that opened the other end of a Unix link to connections.
    #[must_use]
    pub fn peer_pid(&self) -> Option<u32> {
        if self.transport != Transport::Unix {
            return None;
        }
        let peer = rustix::net::sockopt::socket_peercred(&self.socket).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    /// Datagrams that the kernel dropped because this link read too slowly.
    ///
    /// # Errors
    /// If the kernel does not list the socket.
    pub fn kernel_dropped_pkts(&self) -> io::Result<u64> {
        match self.transport {
            Transport::Udp => sys::receive_drops(self.socket.as_fd()),
            Transport::Unix | Transport::Tcp => Ok(0),
        }
    }

    /// The queue of frames to send; [`Link::flush`] sends them.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Whether frames wait to be sent.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Reads once, without waiting, and passes every whole frame to `each`,
    /// which may queue replies. Says how many frames there were.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer has closed, `InvalidData` if a stream
    /// carries what is no TLV, else what the kernel reports.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8], &mut Outbox)) -> io::Result<usize> {
        match &mut self.inbox {
            Inbox::Stream { buffer, n_filled } => {
                let mut socket = &self.socket;
                match unless_blocked(socket.read(&mut buffer[*n_filled..]))? {
                    None => return Ok(0),
                    Some(0) => return Err(closed_by_peer()),
                    Some(n_read) => *n_filled += n_read,
                }
                let mut start = 0;
                let mut n_frames = 0;
                while let Some(len) = frame_len(&buffer[start..*n_filled])? {
                    if start + len > *n_filled {
                        break;
                    }
                    each(&buffer[start..start + len], &mut self.outbox);
                    n_frames += 1;
                    start += len;
                }
                buffer.copy_within(start..*n_filled, 0);
                *n_filled -= start;
                Ok(n_frames)
            }
            Inbox::Datagrams(batch) => {
                if unless_blocked(batch.receive(self.socket.as_fd()))?.is_none() {
                    return Ok(0);
                }
                let mut n_frames = 0;
                for (_, datagram) in batch.datagrams() {
                    each(datagram, &mut self.outbox);
                    n_frames += 1;
                }
                Ok(n_frames)
            }
        }
    }

    /// Sends what is queued as far as the kernel takes it without waiting.
    ///
    /// # Errors
    /// What the kernel reports, and `OutOfMemory` for a peer that never reads.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.outbox.is_empty() {
            let flushed = match self.transport {
                Transport::Unix | Transport::Tcp => self.outbox.flush_stream(&self.socket),
                Transport::Udp => self.outbox.flush_datagrams(&self.socket),
            };
            if unless_blocked(flushed)?.is_none() {
                let n_backlog = self.outbox.bytes.len() - self.outbox.n_sent_bytes;
                if n_backlog > MAX_BACKLOG_BYTES {
                    let message = "the forwarder does not read";
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
                }
                break;
            }
        }
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn connect_unix(path: &Path, deadline: Deadline) -> io::Result<UnixStream> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let address = socket2::SockAddr::unix(path)?;
    loop {
        match socket.connect(&address) {
            Ok(()) => return Ok(UnixStream::from(OwnedFd::from(socket))),
            // The listener's queue is full.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && !deadline.is_over(Instant::now()) =>
            {
                std::thread::sleep(RETRY_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn connect_tcp(addr: SocketAddr, deadline: Deadline) -> io::Result<TcpStream> {
    match deadline.left(Instant::now()) {
        None => TcpStream::connect(addr),
        // No time at all is refused as an argument.
        Some(left) => TcpStream::connect_timeout(&addr, left.max(Duration::from_millis(1))),
    }
}

/// Waits until one of `links` can go on or `timeout` has passed, and fills
/// `ready` with the indices of those that can. A zero timeout only asks.
///
/// # Errors
/// What poll(2) reports.
pub fn wait<'a>(
    links: impl Iterator<Item = &'a Link>,
    timeout: Duration,
    ready: &mut Vec<usize>,
) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = links
        .map(|link| {
            let mut interest = PollFlags::IN;
            interest.set(PollFlags::OUT, link.has_backlog());
            PollFd::from_borrowed_fd(link.as_fd(), interest)
        })
        .collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    ready.clear();
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    ready.extend((0..fds.len()).filter(|&i| !fds[i].revents().is_empty()));
    Ok(())
}

/// `None` for an operation that must wait or was interrupted. A closed
/// connection reads the same whichever side of it notices.
fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Err(closed_by_peer()),
            _ => Err(error),
        },
    }
}

fn closed_by_peer() -> io::Error {
    let message = "the forwarder has closed the connection";
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

/// Length of the frame that `bytes` begins with; `None` if its head is not
/// complete.
fn frame_len(bytes: &[u8]) -> io::Result<Option<usize>> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let len = tlv::element_len(bytes)
        .map_err(|error| invalid(format!("the forwarder sent malformed TLV: {error}")))?;
    match len {
        Some(len) if len > MAX_FRAME_BYTES => Err(invalid(format!(
            "the forwarder sent a frame of {len} bytes"
        ))),
        other => Ok(other),
    }
}

fn bind_loopback(like: SocketAddr) -> io::Result<UdpSocket> {
    match like {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        tlv::write_head(&mut frame, 0x80, len);
        frame.extend((0..len).map(|i| (i * len) as u8));
        frame
    }

    fn carry(transport: Transport, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut a, mut b) = Link::pair(transport).expect("loopback");
        let mut got = Vec::new();
        let mut ready = Vec::new();
        for frame in frames {
            a.outbox().push(|out| out.extend_from_slice(frame));
        }
        while got.len() < frames.len() {
            a.flush().expect("b is open");
            wait([&b].into_iter(), Duration::from_secs(20), &mut ready).expect("poll works");
            assert_eq!(ready, [0], "{transport}: nothing arrives any more");
            b.receive(|frame, _| got.push(frame.to_vec()))
                .expect("a is open");
        }
        got
    }

    #[test]
    fn frames_of_any_length_arrive_whole_and_in_order() {
        let lens = [0, 1, 300, 300, 300, 299, 8_800, 8_800, 8_800, 5, 300];
        let frames: Vec<_> = lens
            .iter()
            .cycle()
            .take(330)
            .map(|&len| frame(len))
            .collect();
        for transport in [Transport::Unix, Transport::Tcp, Transport::Udp] {
            assert_eq!(carry(transport, &frames), frames, "{transport}");
        }
    }

    #[test]
    fn replies_go_back_from_within_receive() {
        for transport in [Transport::Unix, Transport::Tcp, Transport::Udp] {
            let (mut a, mut b) = Link::pair(transport).expect("loopback");
            a.outbox().push(|out| out.extend_from_slice(&frame(10)));
            a.flush().expect("b is open");
            let mut ready = Vec::new();
            wait([&b].into_iter(), Duration::from_secs(20), &mut ready).expect("poll works");
            let n_frames = b.receive(|frame, outbox| outbox.push(|out| out.extend(frame)));
            assert_eq!(n_frames.expect("a is open"), 1);
            assert!(b.has_backlog());
            b.flush().expect("a is open");
            assert!(!b.has_backlog());
            wait([&a].into_iter(), Duration::from_secs(20), &mut ready).expect("poll works");
            let mut got = Vec::new();
            a.receive(|frame, _| got.extend_from_slice(frame))
                .expect("b is open");
            assert_eq!(got, frame(10));
        }
    }

    #[test]
    fn equal_neighbours_share_a_message() {
        let mut items = Vec::new();
        let summary = |items: &[SendItem]| -> Vec<_> {
            items
                .iter()
                .map(|i| (i.start, i.len, i.segment_bytes))
                .collect()
        };
        group_segments(&[10, 10, 4, 10, 12, 12], 100, 64, &mut items);
        assert_eq!(
            summary(&items),
            [(100, 24, Some(10)), (124, 10, None), (134, 24, Some(12))]
        );
        assert_eq!(items.iter().map(n_segments).sum::<usize>(), 6);
        group_segments(&[1_000; 130], 0, 64, &mut items);
        let n_frames: Vec<_> = items.iter().map(n_segments).collect();
        assert_eq!(n_frames, [64, 64, 2]);
        group_segments(&[8_000; 9], 0, 64, &mut items);
        assert_eq!(items[0].len, 64_000, "a message fits a datagram");
    }

    #[test]
    fn a_udp_link_without_offload_sends_and_takes_single_datagrams() {
        const N_FRAMES: usize = 10;
        /// Messages of the kernel in which the frames that `from` sends come to `to`.
        fn n_messages(from: &mut Link, to: &mut Link) -> usize {
            for _ in 0..N_FRAMES {
                from.outbox().push(|out| out.extend(frame(100)));
            }
            from.flush().expect("open");
            let (mut n_messages, mut n_frames) = (0, 0);
            while n_frames < N_FRAMES {
                let mut ready = Vec::new();
                wait([&*to].into_iter(), Duration::from_secs(20), &mut ready).expect("poll works");
                assert_eq!(ready, [0], "nothing arrives any more");
                let Inbox::Datagrams(batch) = &mut to.inbox else {
                    panic!("a UDP link");
                };
                n_messages += batch.receive(to.socket.as_fd()).expect("readable");
                n_frames += batch.datagrams().count();
            }
            n_messages
        }
        let (mut offloaded, peer) = Link::pair(Transport::Udp).expect("loopback");
        let mut single = peer.without_offload().expect("any kernel");
        assert_eq!(n_messages(&mut single, &mut offloaded), N_FRAMES);
        assert_eq!(n_messages(&mut offloaded, &mut single), N_FRAMES);
        let (mut a, mut b) = Link::pair(Transport::Udp).expect("loopback");
        assert_eq!(n_messages(&mut a, &mut b), 1, "offload joins what is equal");
    }

    #[test]
    fn a_closed_peer_and_garbage_are_errors() {
        let (mut a, b) = Link::pair(Transport::Unix).expect("loopback");
        drop(b);
        let error = a.receive(|_, _| {}).expect_err("closed");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let (mut a, mut b) = Link::pair(Transport::Unix).expect("loopback");
        b.outbox()
            .push(|out| out.extend_from_slice(&[0x80, 0xFE, 0x7F, 0, 0, 0]));
        b.flush().expect("a is open");
        let error = a.receive(|_, _| {}).expect_err("two gigabytes");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_peer_that_never_reads_is_given_up() {
        let (mut a, _b) = Link::pair(Transport::Unix).expect("loopback");
        let big = frame(8_000);
        let error = (0..20_000).find_map(|_| {
            a.outbox().push(|out| out.extend_from_slice(&big));
            a.flush().err()
        });
        let error = error.expect("160 MB exceed the bound");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
