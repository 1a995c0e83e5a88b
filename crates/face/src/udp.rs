//! A UDP socket and the faces that share it: datagrams in, told apart by their
//! senders, and datagrams out, in runs that the kernel cuts into segments.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use hashbrown::HashMap;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use tachonym_packet::FaceId;

use crate::sys::{self, MAX_SEGMENTS, MAX_SEND_BYTES, RecvBatch, SendBatch, SendItem};

/// Messages received with one call, each perhaps of many datagrams.
const RECV_MESSAGES: usize = 16;

/// One UDP socket.
pub(crate) struct UdpChannel {
    socket: Socket,
    pub(crate) local: SocketAddr,
    /// Whether unknown peers get a face.
    pub(crate) is_listening: bool,
    pub(crate) peers: HashMap<SocketAddr, FaceId, foldhash::fast::RandomState>,
    queue: Vec<u8>,
    /// Datagrams in `queue`: to whom, of which face, how long.
    datagrams: Vec<(SocketAddr, FaceId, usize)>,
    items: Vec<SendItem>,
    sender: SendBatch,
    has_segmentation: bool,
    pub(crate) is_blocked: bool,
}

impl UdpChannel {
    /// Opens a socket at `local`, with buffers of `buffer_bytes` if the kernel
    /// grants them.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn bind(
        local: SocketAddr,
        is_listening: bool,
        buffer_bytes: usize,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if local.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        // The privileged form may exceed the system's limit.
        if sockopt::set_socket_recv_buffer_size_force(&socket, buffer_bytes).is_err() {
            socket.set_recv_buffer_size(buffer_bytes)?;
        }
        socket.set_send_buffer_size(buffer_bytes)?;
        socket.bind(&local.into())?;
        // An older kernel hands datagrams over one by one.
        let _ = sys::enable_udp_gro(socket.as_fd());
        let local = socket.local_addr()?.as_socket().unwrap_or(local);
        Ok(Self {
            socket,
            local,
            is_listening,
            peers: HashMap::default(),
            queue: Vec::new(),
            datagrams: Vec::new(),
            items: Vec::new(),
            sender: SendBatch::default(),
            has_segmentation: true,
            is_blocked: false,
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Bytes that wait to be sent.
    pub(crate) fn backlog_bytes(&self) -> usize {
        self.queue.len()
    }

    /// Where frames are appended, and where their lengths are noted.
    pub(crate) fn queue_mut(&mut self) -> (&mut Vec<u8>, &mut Vec<(SocketAddr, FaceId, usize)>) {
        (&mut self.queue, &mut self.datagrams)
    }

    /// Whether the receive buffer is so full that senders should slow down.
    pub(crate) fn is_congested(&self) -> bool {
        sys::receive_queue_bytes(self.fd()).is_ok_and(|(used, size)| used > size / 4)
    }

    /// Sends what waits, as far as the kernel takes it. Returns the number of
    /// system calls, and tells `failed` of the face of each refused datagram.
    pub(crate) fn flush(&mut self, mut failed: impl FnMut(FaceId)) -> u64 {
        let mut n_calls = 0;
        self.is_blocked = false;
        while !self.datagrams.is_empty() {
            self.group();
            n_calls += 1;
            match self
                .sender
                .send(self.socket.as_fd(), &self.queue, &self.items)
            {
                Ok(n_items) => self.drop_front(n_items, |_| {}),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    break;
                }
                Err(error)
                    if self.has_segmentation
                        && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO)) =>
                {
                    // This kernel or this device cannot cut segments.
                    self.has_segmentation = false;
                }
                // A peer's closed port, or no route: it costs this message.
                Err(_) => self.drop_front(1, &mut failed),
            }
        }
        n_calls
    }

    /// Makes one message of each run of datagrams to one peer that are equally
    /// long; the last of a run may be shorter.
    fn group(&mut self) {
        let max_segments = if self.has_segmentation {
            MAX_SEGMENTS
        } else {
            1
        };
        self.items.clear();
        let (mut at, mut rest) = (0, &self.datagrams[..]);
        while let Some(&(to, _, segment)) = rest.first() {
            let (mut n, mut len) = (0, 0);
            for &(peer, _, bytes) in rest.iter().take(max_segments) {
                let fits = n == 0 || len + bytes <= MAX_SEND_BYTES;
                if peer != to || bytes > segment || !fits {
                    break;
                }
                n += 1;
                len += bytes;
                if bytes < segment {
                    break;
                }
            }
            let segment_bytes = if n > 1 {
                u16::try_from(segment).ok()
            } else {
                None
            };
            self.items.push(SendItem {
                start: at,
                len,
                segment_bytes,
                to: Some(to),
            });
            at += len;
            rest = &rest[n..];
        }
    }

    /// Forgets the datagrams of the first `n_items` messages.
    fn drop_front(&mut self, n_items: usize, mut each: impl FnMut(FaceId)) {
        let n_bytes: usize = self.items[..n_items].iter().map(|item| item.len).sum();
        let mut left = n_bytes;
        let mut n_datagrams = 0;
        for &(_, face, len) in &self.datagrams {
            if left == 0 {
                break;
            }
            left -= len;
            n_datagrams += 1;
            each(face);
        }
        self.datagrams.drain(..n_datagrams);
        self.queue.drain(..n_bytes);
    }
}

/// The storage with which every UDP socket of a system receives.
pub(crate) fn receive_storage() -> RecvBatch {
    RecvBatch::new(RECV_MESSAGES)
}
