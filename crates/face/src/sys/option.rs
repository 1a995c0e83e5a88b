//! Socket options and queue lengths that neither rustix nor socket2 offers.
//!
//! Each function is one system call. What the kernel lacks is an error here;
//! the caller decides whether it matters.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Words that `SO_MEMINFO` fills (`SK_MEMINFO_VARS`).
const MEMINFO_WORDS: usize = 9;

/// Memory of a socket's receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveQueue {
    /// Bytes held, bookkeeping included.
    pub(crate) used_bytes: u32,
    /// Bytes above which the kernel drops.
    pub(crate) capacity_bytes: u32,
    /// Datagrams that the kernel dropped so far.
    pub(crate) n_drops: u32,
}

fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the
    // call, and the kernel only reads it.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets the receive buffer to `bytes`, above the system's limit where the
/// process may, else up to it.
pub(crate) fn set_receive_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// The same for the send buffer.
pub(crate) fn set_send_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
        .or_else(|_| set_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes))
}

/// Asks for datagrams of one sender to arrive coalesced.
pub(crate) fn enable_udp_gro(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Whether the kernel cuts a large message into datagrams. The size set here
/// is 0: it applies to no message that does not ask for it.
pub(crate) fn has_udp_gso(fd: BorrowedFd<'_>) -> bool {
    set_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Asks for the local address with each datagram.
pub(crate) fn enable_packet_info(fd: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<()> {
    if is_ipv4 {
        set_int(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

/// Sends IPv4 multicast through the interface with this index, whatever its
/// addresses.
pub(crate) fn set_multicast_interface_v4(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let any = libc::in_addr { s_addr: 0 };
    let request = libc::ip_mreqn {
        imr_multiaddr: any,
        imr_address: any,
        imr_ifindex: i32::try_from(index).unwrap_or(i32::MAX),
    };
    // SAFETY: the pointer and the length describe `request`, which outlives
    // the call, and the kernel only reads it.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MULTICAST_IF,
            (&raw const request).cast(),
            size_of::<libc::ip_mreqn>() as libc::socklen_t,
        )
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// How full the receive queue of a socket is.
pub(crate) fn receive_queue(fd: BorrowedFd<'_>) -> io::Result<ReceiveQueue> {
    let mut words = [0_u32; MEMINFO_WORDS];
    let mut len = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the pointer and `len` describe `words`; the kernel writes at
    // most `len` bytes, and any bytes are a valid u32.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ReceiveQueue {
        used_bytes: words[libc::SK_MEMINFO_RMEM_ALLOC as usize],
        capacity_bytes: words[libc::SK_MEMINFO_RCVBUF as usize],
        n_drops: words[libc::SK_MEMINFO_DROPS as usize],
    })
}

/// The process at the other end of a Unix stream socket when it connected; `None` if the
/// kernel does not know it, or it is outside this PID namespace.
pub(crate) fn peer_pid(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the pointer and `len` describe `peer`; the kernel writes at most `len` bytes,
    // and any bytes are valid integers.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut len,
        )
    };
    // The kernel reports 0 for a process of another PID namespace.
    (rc == 0 && peer.pid > 0).then_some(peer.pid.unsigned_abs())
}

/// Bytes in a socket's send queue: unacknowledged ones for TCP, unread ones
/// with their bookkeeping for Unix sockets.
pub(crate) fn send_queue_bytes(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int, which `bytes` has room for.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if rc == 0 {
        Ok(usize::try_from(bytes).unwrap_or(0))
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn unread_bytes_are_seen_in_the_send_queue() {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        assert_eq!(send_queue_bytes(a.as_fd()).unwrap(), 0);
        a.write_all(&[7; 4096]).unwrap();
        assert!(send_queue_bytes(a.as_fd()).unwrap() >= 4096);
        b.read_exact(&mut [0; 4096]).unwrap();
        assert_eq!(send_queue_bytes(a.as_fd()).unwrap(), 0);
    }

    #[test]
    fn only_a_unix_socket_has_a_peer_process() {
        let (a, _b) = UnixStream::pair().unwrap();
        assert_eq!(peer_pid(a.as_fd()), Some(std::process::id()));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(peer_pid(udp.as_fd()), None);
    }

    #[test]
    fn unread_datagrams_are_seen_in_the_receive_queue() {
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        let empty = receive_queue(a.as_fd()).unwrap();
        assert_eq!(empty.used_bytes, 0);
        a.send_to(&[7; 1000], a.local_addr().unwrap()).unwrap();
        let queue = receive_queue(a.as_fd()).unwrap();
        assert!(queue.used_bytes >= 1000, "{queue:?}");
        assert!(queue.capacity_bytes >= queue.used_bytes);
    }

    #[test]
    fn a_larger_receive_buffer_is_granted_as_far_as_allowed() {
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_receive_buffer(a.as_fd(), 150_000).unwrap();
        assert!(receive_queue(a.as_fd()).unwrap().capacity_bytes >= 150_000);
    }
}
