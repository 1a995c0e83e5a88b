//! System calls that no safe crate offers: batches of datagrams with
//! segmentation offload, and another process's CPU clock.
//!
//! Owns every `unsafe` block of this crate. Raw pointers are built right
//! before a call from buffers that the batch owns, and are never read
//! afterwards. Refuses to interpret packets: see [`crate::exchange::link`].

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use socket2::SockAddr;

/// Most datagrams that one segmented send may carry. The kernel's own bound
/// was 64 until Linux 6.9 (`UDP_MAX_SEGMENTS` in `include/linux/udp.h`).
pub(crate) const MAX_SEGMENTS: usize = 64;
/// Most bytes that one segmented send may carry: the largest UDP payload.
pub(crate) const MAX_SEND_BYTES: usize = 65_507;

/// Bytes of the longest IP socket address (`sockaddr_in6`).
const NAME_BYTES: usize = 28;

/// A control message with a segment size, as sent (`UDP_SEGMENT`).
#[repr(C)]
#[derive(Clone, Copy)]
struct SegmentControl {
    header: libc::cmsghdr,
    segment_bytes: u16,
    padding: [u8; size_of::<usize>() - 2],
}

/// A control message with a segment size, as received (`UDP_GRO`).
#[repr(C)]
#[derive(Clone, Copy)]
struct GroControl {
    header: libc::cmsghdr,
    segment_bytes: libc::c_int,
    padding: [u8; 12],
}

const NO_CONTROL: libc::cmsghdr = libc::cmsghdr {
    cmsg_len: 0,
    cmsg_level: 0,
    cmsg_type: 0,
};

const EMPTY_IOVEC: libc::iovec = libc::iovec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

fn empty_message() -> libc::mmsghdr {
    libc::mmsghdr {
        msg_hdr: libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: ptr::null_mut(),
            msg_iovlen: 0,
            msg_control: ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        },
        msg_len: 0,
    }
}

/// One message of a [`SendBatch`]: a range of the caller's bytes.
#[derive(Clone, Debug)]
pub(crate) struct SendItem {
    /// First byte of the payload.
    pub(crate) start: usize,
    /// Length of the payload in bytes, at most [`MAX_SEND_BYTES`].
    pub(crate) len: usize,
    /// With a size, the kernel cuts the payload into datagrams of that many
    /// bytes (the last may be shorter), at most [`MAX_SEGMENTS`] of them.
    pub(crate) segment_bytes: Option<u16>,
    /// Destination; `None` on a connected socket.
    pub(crate) to: Option<SocketAddr>,
}

/// Reusable storage for `sendmmsg`.
#[derive(Default)]
pub(crate) struct SendBatch {
    names: Vec<SockAddr>,
    controls: Vec<SegmentControl>,
    iovecs: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: `send` rewrites every pointer before the kernel follows it, and
// nothing follows one afterwards, so a move to another thread leaves none in use.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Sends `items` in order without waiting and says how many went out.
    ///
    /// # Errors
    /// The error of the first item, if not even that could be sent.
    ///
    /// # Panics
    /// If an item lies outside `bytes`: a mistake of the caller.
    pub(crate) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        bytes: &[u8],
        items: &[SendItem],
    ) -> io::Result<usize> {
        if items.is_empty() {
            return Ok(0);
        }
        self.names.clear();
        self.controls.clear();
        self.iovecs.clear();
        self.messages.clear();
        for item in items {
            let payload = &bytes[item.start..item.start + item.len];
            self.iovecs.push(libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: payload.len(),
            });
            self.controls.push(SegmentControl {
                header: libc::cmsghdr {
                    cmsg_len: size_of::<libc::cmsghdr>() + size_of::<u16>(),
                    cmsg_level: libc::SOL_UDP,
                    cmsg_type: libc::UDP_SEGMENT,
                },
                segment_bytes: item.segment_bytes.unwrap_or(0),
                padding: [0; size_of::<usize>() - 2],
            });
            // An entry for each item keeps the indices in step.
            let unused = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            self.names.push(SockAddr::from(item.to.unwrap_or(unused)));
        }
        for (i, item) in items.iter().enumerate() {
            let mut message = empty_message();
            message.msg_hdr.msg_iov = &raw mut self.iovecs[i];
            message.msg_hdr.msg_iovlen = 1;
            if item.segment_bytes.is_some() {
                message.msg_hdr.msg_control = (&raw mut self.controls[i]).cast();
                message.msg_hdr.msg_controllen = size_of::<SegmentControl>();
            }
            if item.to.is_some() {
                message.msg_hdr.msg_name = self.names[i].as_ptr().cast_mut().cast();
                message.msg_hdr.msg_namelen = self.names[i].len();
            }
            self.messages.push(message);
        }
        let n_messages = libc::c_uint::try_from(self.messages.len()).unwrap_or(libc::c_uint::MAX);
        // SAFETY: every message points to its own entry of `iovecs`,
        // `controls` and `names`, which were filled above and are not resized
        // before the call returns, and to `bytes`, which outlives the call and
        // which the kernel only reads.
        let sent = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                n_messages,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Reusable storage for `recvmmsg`, with room for coalesced datagrams.
pub(crate) struct RecvBatch {
    buffers: Vec<u8>,
    names: Vec<[u8; NAME_BYTES]>,
    controls: Vec<GroControl>,
    iovecs: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    n_received: usize,
}

/// Room for one message. Not a power of two, so that the heads of the
/// buffers do not compete for the same cache sets.
const RECV_STRIDE_BYTES: usize = 65_536 + 1_088;

// SAFETY: `receive` rewrites every pointer before the kernel follows it, and
// nothing follows one afterwards, so a move to another thread leaves none in use.
unsafe impl Send for RecvBatch {}

impl RecvBatch {
    /// Room for `n_messages` messages of up to 65,535 bytes each; memory is
    /// touched only as far as messages fill it.
    pub(crate) fn new(n_messages: usize) -> Self {
        let control = GroControl {
            header: NO_CONTROL,
            segment_bytes: 0,
            padding: [0; 12],
        };
        Self {
            buffers: vec![0; n_messages * RECV_STRIDE_BYTES],
            names: vec![[0; NAME_BYTES]; n_messages],
            controls: vec![control; n_messages],
            iovecs: vec![EMPTY_IOVEC; n_messages],
            messages: (0..n_messages).map(|_| empty_message()).collect(),
            n_received: 0,
        }
    }

    /// Receives what is there without waiting and says how many messages.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there, else what the socket reports.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.n_received = 0;
        let buffers = self.buffers.chunks_exact_mut(RECV_STRIDE_BYTES);
        for (i, buffer) in buffers.enumerate() {
            self.iovecs[i] = libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            };
            self.controls[i].header = NO_CONTROL;
            let mut message = empty_message();
            message.msg_hdr.msg_name = (&raw mut self.names[i]).cast();
            message.msg_hdr.msg_namelen = NAME_BYTES as libc::socklen_t;
            message.msg_hdr.msg_iov = &raw mut self.iovecs[i];
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = (&raw mut self.controls[i]).cast();
            message.msg_hdr.msg_controllen = size_of::<GroControl>();
            self.messages[i] = message;
        }
        let n_messages = libc::c_uint::try_from(self.messages.len()).unwrap_or(libc::c_uint::MAX);
        // SAFETY: every message points to its own entry of `buffers`,
        // `names`, `controls` and `iovecs`, with their true lengths; none of
        // these vectors is resized after `new`.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                n_messages,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        self.n_received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        Ok(self.n_received)
    }

    /// Whether the latest call filled every place, so that more may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.n_received == self.messages.len()
    }

    /// The datagrams of the latest call with their senders; coalesced ones
    /// are taken apart again.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = (Option<SocketAddr>, &[u8])> {
        (0..self.n_received).flat_map(|i| {
            let message = &self.messages[i];
            let start = i * RECV_STRIDE_BYTES;
            let payload = &self.buffers[start..start + message.msg_len as usize];
            let from = decode_name(&self.names[i]);
            let control = &self.controls[i];
            let is_coalesced = control.header.cmsg_level == libc::SOL_UDP
                && control.header.cmsg_type == libc::UDP_GRO;
            let segment_bytes = match usize::try_from(control.segment_bytes) {
                Ok(bytes) if is_coalesced && bytes > 0 => bytes,
                _ => payload.len().max(1),
            };
            // `chunks` of an empty payload yields nothing: an empty datagram
            // carries no packet.
            payload
                .chunks(segment_bytes)
                .map(move |datagram| (from, datagram))
        })
    }
}

/// Reads a `sockaddr_in` or `sockaddr_in6` as the kernel wrote it.
fn decode_name(name: &[u8; NAME_BYTES]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes([name[0], name[1]]);
    let port = u16::from_be_bytes([name[2], name[3]]);
    match libc::c_int::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = name[4..8].try_into().ok()?;
            Some((Ipv4Addr::from(octets), port).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = name[8..24].try_into().ok()?;
            let scope_id = u32::from_ne_bytes(name[24..28].try_into().ok()?);
            Some(SocketAddrV6::new(octets.into(), port, 0, scope_id).into())
        }
        _ => None,
    }
}

/// Whether the kernel hands over datagrams of one sender coalesced.
///
/// # Errors
/// What the kernel reports, for instance that it is too old.
pub(crate) fn set_udp_gro(fd: BorrowedFd<'_>, is_on: bool) -> io::Result<()> {
    let on = libc::c_int::from(is_on);
    // SAFETY: the option value is a live `c_int` and the length is its size.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Packets that the kernel has dropped at a socket since it was opened, mostly
/// because its receive buffer was full.
///
/// # Errors
/// What the kernel reports; before Linux 4.12 it cannot tell.
pub(crate) fn receive_drops(fd: BorrowedFd<'_>) -> io::Result<u64> {
    // `SK_MEMINFO_VARS` and `SK_MEMINFO_DROPS` of include/uapi/linux/sock_diag.h.
    const N_FIGURES: usize = 9;
    const DROPS_IDX: usize = 8;
    let mut figures = [0_u32; N_FIGURES];
    let mut len_bytes = size_of_val(&figures) as libc::socklen_t;
    // SAFETY: `figures` is live and `len_bytes` holds its size, which bounds
    // what the kernel writes.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut len_bytes,
        )
    };
    if result == 0 {
        Ok(u64::from(figures[DROPS_IDX]))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// CPU time, user and system, that process `pid` has used since its start,
/// in nanoseconds: every thread, also those that have ended.
///
/// # Errors
/// `NotFound` if there is no such process, else what the kernel reports.
pub(crate) fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    let pid =
        libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a live `clockid_t` for the call to fill.
    let error = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if error != 0 {
        return Err(match error {
            libc::ESRCH => io::Error::new(io::ErrorKind::NotFound, format!("no process {pid}")),
            other => io::Error::from_raw_os_error(other),
        });
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live `timespec` for the call to fill.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;

    fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports")
    }

    fn wait_readable(socket: &UdpSocket) {
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("a timeout is accepted");
        socket.peek(&mut [0]).expect("a datagram arrives");
    }

    #[test]
    fn segments_arrive_as_datagrams_with_their_sender() {
        let (a, b) = (socket(), socket());
        let to = b.local_addr().expect("bound");
        let bytes: Vec<u8> = (0..=255)
            .cycle()
            .take(1_050)
            .map(|b: u16| b as u8)
            .collect();
        let item = SendItem {
            start: 0,
            len: bytes.len(),
            segment_bytes: Some(100),
            to: Some(to),
        };
        let sent = SendBatch::default().send(a.as_fd(), &bytes, &[item]);
        assert_eq!(sent.expect("segmentation is supported"), 1);
        wait_readable(&b);
        let mut batch = RecvBatch::new(32);
        assert_eq!(batch.receive(b.as_fd()).expect("readable"), 11);
        assert!(!batch.is_full());
        let got: Vec<_> = batch.datagrams().collect();
        assert!(got.iter().all(|(from, _)| *from == a.local_addr().ok()));
        assert_eq!(got[10].1.len(), 50);
        let joined: Vec<u8> = got.iter().flat_map(|(_, d)| d.iter().copied()).collect();
        assert_eq!(joined, bytes);
    }

    #[test]
    fn coalesced_datagrams_are_taken_apart() {
        let (a, b) = (socket(), socket());
        set_udp_gro(b.as_fd(), true).expect("supported since Linux 5.0");
        a.connect(b.local_addr().expect("bound")).expect("loopback");
        let bytes = [7; 250];
        let item = SendItem {
            start: 0,
            len: 250,
            segment_bytes: Some(100),
            to: None,
        };
        SendBatch::default()
            .send(a.as_fd(), &bytes, &[item])
            .expect("segmentation is supported");
        wait_readable(&b);
        let mut batch = RecvBatch::new(4);
        batch.receive(b.as_fd()).expect("readable");
        let lengths: Vec<_> = batch.datagrams().map(|(_, d)| d.len()).collect();
        assert_eq!(lengths, [100, 100, 50]);
    }

    #[test]
    fn an_empty_socket_would_block() {
        let error = RecvBatch::new(1).receive(socket().as_fd());
        assert_eq!(
            error.expect_err("nothing was sent").kind(),
            io::ErrorKind::WouldBlock
        );
    }

    #[test]
    fn an_overrun_socket_shows_its_drops() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        assert_eq!(
            receive_drops(receiver.as_fd()).expect("any socket has them"),
            0
        );
        let options = socket2::SockRef::from(&receiver);
        options
            .set_recv_buffer_size(1)
            .expect("the kernel rounds up");
        let to = receiver.local_addr().expect("bound");
        for _ in 0..100 {
            sender.send_to(&[0; 1_000], to).expect("loopback");
        }
        assert!(receive_drops(receiver.as_fd()).expect("any socket has them") > 50);
    }

    #[test]
    fn own_cpu_clock_advances_and_an_absent_process_is_an_error() {
        let before_ns = process_cpu_ns(std::process::id()).expect("this process");
        let mut x = 1_u64;
        while process_cpu_ns(std::process::id()).expect("this process") < before_ns + 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let absent = process_cpu_ns(u32::MAX / 2 - 1).expect_err("pids end far below");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
}
