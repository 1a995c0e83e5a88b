//! Batches of datagrams: `recvmmsg` and `sendmmsg`.
//!
//! Owns the header arrays that both calls need, so that a batch costs no
//! allocation. A received message may hold several datagrams of one sender
//! (GRO), a sent one may be cut into several by the kernel (GSO). Refuses
//! nothing: errors are the caller's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::addr::SocketName;
use super::control::{Control, ControlInfo};

/// Messages that one call receives at most.
pub(crate) const MAX_RECEIVED: usize = 32;
/// Messages that one call sends at most.
pub(crate) const MAX_SENT: usize = 64;
/// Room for the largest message: the payload of a UDP datagram, or of as many
/// coalesced ones, is below 64 KiB.
pub(crate) const SLOT_BYTES: usize = 65_536;
/// Distance of two slots. Not a power of two: messages that begin at equal
/// offsets modulo 64 KiB would compete for the same sets of every cache.
pub(crate) const SLOT_STRIDE_BYTES: usize = SLOT_BYTES + 17 * 64;

/// One received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedMessage {
    /// Where it begins in the memory given to [`UdpReceiver::receive`].
    pub(crate) offset: usize,
    /// Its length.
    pub(crate) len_bytes: usize,
    /// Its sender; `None` if that is no IP address.
    pub(crate) from: Option<SocketAddr>,
    /// Segment size and local address.
    pub(crate) control: ControlInfo,
    /// It was longer than a slot; the rest is lost.
    pub(crate) is_truncated: bool,
}

impl ReceivedMessage {
    /// Length of its datagrams but the last; at least 1.
    pub(crate) fn segment_bytes(&self) -> usize {
        let segment_bytes = self.control.segment_bytes.unwrap_or(self.len_bytes);
        segment_bytes.max(1)
    }

    /// How many datagrams it holds.
    pub(crate) fn n_datagrams(&self) -> usize {
        self.len_bytes.div_ceil(self.segment_bytes()).max(1)
    }
}

/// One message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutMessage<'a> {
    /// One datagram, or several of `segment_bytes` each (the last may be
    /// shorter).
    pub(crate) bytes: &'a [u8],
    /// `None`: one datagram.
    pub(crate) segment_bytes: Option<u16>,
    /// `None`: the peer that the socket is connected to.
    pub(crate) to: Option<SocketAddr>,
    /// `None`: the kernel chooses.
    pub(crate) source: Option<IpAddr>,
}

fn new_header() -> libc::mmsghdr {
    // SAFETY: all zeros is a valid mmsghdr: null pointers and zero lengths.
    unsafe { std::mem::zeroed() }
}

fn new_iovec() -> libc::iovec {
    libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }
}

/// Receives batches of messages.
pub(crate) struct UdpReceiver {
    headers: Box<[libc::mmsghdr]>,
    iovecs: Box<[libc::iovec]>,
    names: Box<[SocketName]>,
    controls: Box<[Control]>,
}

// SAFETY: the raw pointers in `headers` and `iovecs` are set anew before each
// system call and followed by nobody after it.
unsafe impl Send for UdpReceiver {}

impl UdpReceiver {
    pub(crate) fn new() -> Self {
        Self {
            headers: (0..MAX_RECEIVED).map(|_| new_header()).collect(),
            iovecs: (0..MAX_RECEIVED).map(|_| new_iovec()).collect(),
            names: vec![SocketName::EMPTY; MAX_RECEIVED].into(),
            controls: vec![Control::EMPTY; MAX_RECEIVED].into(),
        }
    }

    /// Receives what is there, without waiting, but at most `max_messages`, into
    /// slots of `memory`, which must hold at least one. Returns the number of messages, which
    /// [`UdpReceiver::message`] describes.
    pub(crate) fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        memory: &mut [u8],
        max_messages: usize,
    ) -> io::Result<usize> {
        let mut n_slots = 0;
        let slots = memory
            .chunks_mut(SLOT_STRIDE_BYTES)
            .filter(|slot| slot.len() >= SLOT_BYTES);
        for (idx, slot) in slots.take(max_messages.min(MAX_RECEIVED)).enumerate() {
            self.iovecs[idx] = libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: SLOT_BYTES,
            };
            let header = &mut self.headers[idx].msg_hdr;
            header.msg_name = (&raw mut self.names[idx]).cast();
            header.msg_namelen = SocketName::CAPACITY as libc::socklen_t;
            header.msg_iov = &raw mut self.iovecs[idx];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[idx]).cast();
            header.msg_controllen = Control::CAPACITY as _;
            header.msg_flags = 0;
            n_slots = idx + 1;
        }
        debug_assert!(n_slots > 0, "memory holds no slot");
        // SAFETY: the first `n_slots` headers were just pointed at memory that
        // lives through the call and is borrowed exclusively: a slot of
        // `memory`, and names, controls and iovecs of `self`, each with its
        // true length.
        let rc = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                n_slots as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(rc).map_err(|_| io::Error::last_os_error())
    }

    /// The message `idx` of the last successful [`UdpReceiver::receive`].
    pub(crate) fn message(&self, idx: usize) -> ReceivedMessage {
        let header = &self.headers[idx];
        ReceivedMessage {
            offset: idx * SLOT_STRIDE_BYTES,
            len_bytes: (header.msg_len as usize).min(SLOT_BYTES),
            from: self.names[idx].get(header.msg_hdr.msg_namelen as usize),
            control: self.controls[idx].get(header.msg_hdr.msg_controllen),
            is_truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        }
    }
}

/// Sends batches of messages.
pub(crate) struct UdpSender {
    headers: Box<[libc::mmsghdr]>,
    iovecs: Box<[libc::iovec]>,
    names: Box<[SocketName]>,
    controls: Box<[Control]>,
}

// SAFETY: as for `UdpReceiver`: no pointer is followed after the system call
// before which it was set.
unsafe impl Send for UdpSender {}

impl UdpSender {
    pub(crate) fn new() -> Self {
        Self {
            headers: (0..MAX_SENT).map(|_| new_header()).collect(),
            iovecs: (0..MAX_SENT).map(|_| new_iovec()).collect(),
            names: vec![SocketName::EMPTY; MAX_SENT].into(),
            controls: vec![Control::EMPTY; MAX_SENT].into(),
        }
    }

    /// Sends up to [`MAX_SENT`] messages without waiting; returns how many the
    /// kernel took. An error is that of the first message.
    pub(crate) fn send<'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        messages: impl Iterator<Item = OutMessage<'a>>,
    ) -> io::Result<usize> {
        let mut n_messages = 0;
        for (idx, message) in messages.take(MAX_SENT).enumerate() {
            // The kernel only reads what it sends.
            self.iovecs[idx] = libc::iovec {
                iov_base: message.bytes.as_ptr().cast_mut().cast(),
                iov_len: message.bytes.len(),
            };
            let header = &mut self.headers[idx].msg_hdr;
            match &message.to {
                Some(to) => {
                    header.msg_namelen = self.names[idx].set(to) as libc::socklen_t;
                    header.msg_name = (&raw mut self.names[idx]).cast();
                }
                None => {
                    header.msg_namelen = 0;
                    header.msg_name = std::ptr::null_mut();
                }
            }
            header.msg_iov = &raw mut self.iovecs[idx];
            header.msg_iovlen = 1;
            let control_bytes = self.controls[idx].set(message.segment_bytes, message.source);
            header.msg_controllen = control_bytes as _;
            header.msg_control = if control_bytes == 0 {
                std::ptr::null_mut()
            } else {
                (&raw mut self.controls[idx]).cast()
            };
            header.msg_flags = 0;
            n_messages = idx + 1;
        }
        if n_messages == 0 {
            return Ok(0);
        }
        // SAFETY: the first `n_messages` headers were just pointed at memory
        // that lives through the call: the messages' bytes (borrowed for 'a),
        // and names, controls and iovecs of `self`, each with its true length;
        // the kernel writes only to the headers.
        let rc = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                n_messages as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        usize::try_from(rc).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::option;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    fn pair() -> (UdpSocket, UdpSocket) {
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        (a, b)
    }

    #[test]
    fn a_batch_arrives_as_it_was_sent() {
        let (a, b) = pair();
        let to = b.local_addr().unwrap();
        let datagrams: Vec<Vec<u8>> = (0..5_u8).map(|i| vec![i; 10 + usize::from(i)]).collect();
        let messages = datagrams.iter().map(|bytes| OutMessage {
            bytes,
            segment_bytes: None,
            to: Some(to),
            source: None,
        });
        assert_eq!(UdpSender::new().send(a.as_fd(), messages).unwrap(), 5);

        let mut memory = vec![0; 8 * SLOT_STRIDE_BYTES];
        let mut receiver = UdpReceiver::new();
        assert_eq!(
            receiver
                .receive(b.as_fd(), &mut memory, MAX_RECEIVED)
                .unwrap(),
            5
        );
        for (idx, datagram) in datagrams.iter().enumerate() {
            let message = receiver.message(idx);
            let got = &memory[message.offset..message.offset + message.len_bytes];
            assert_eq!(got, datagram);
            assert_eq!(message.from, Some(a.local_addr().unwrap()));
            assert!(!message.is_truncated);
        }
        let empty = receiver
            .receive(b.as_fd(), &mut memory, MAX_RECEIVED)
            .unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn segments_travel_as_one_message_where_the_kernel_can() {
        let (a, b) = pair();
        if !option::has_udp_gso(a.as_fd()) || option::enable_udp_gro(b.as_fd()).is_err() {
            eprintln!("this kernel has no UDP GSO or GRO");
            return;
        }
        let bytes: Vec<u8> = (0..2500).map(|i| (i / 1000) as u8).collect();
        let message = OutMessage {
            bytes: &bytes,
            segment_bytes: Some(1000),
            to: Some(b.local_addr().unwrap()),
            source: None,
        };
        let sent = UdpSender::new().send(a.as_fd(), std::iter::once(message));
        assert_eq!(sent.unwrap(), 1);

        let mut memory = vec![0; 4 * SLOT_STRIDE_BYTES];
        let mut receiver = UdpReceiver::new();
        let n = receiver
            .receive(b.as_fd(), &mut memory, MAX_RECEIVED)
            .unwrap();
        let mut got = Vec::new();
        for idx in 0..n {
            let message = receiver.message(idx);
            let segment = message.control.segment_bytes.unwrap_or(message.len_bytes);
            assert_eq!(segment, 1000.min(message.len_bytes));
            got.extend_from_slice(&memory[message.offset..message.offset + message.len_bytes]);
        }
        assert_eq!(got, bytes);
    }

    #[test]
    fn the_local_address_is_told_and_obeyed() {
        let a = UdpSocket::bind("0.0.0.0:0").unwrap();
        option::enable_packet_info(a.as_fd(), true).unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = a.local_addr().unwrap().port();
        b.send_to(b"x", ("127.0.0.9", port)).unwrap();

        let mut memory = vec![0; SLOT_BYTES];
        let mut receiver = UdpReceiver::new();
        assert_eq!(
            receiver
                .receive(a.as_fd(), &mut memory, MAX_RECEIVED)
                .unwrap(),
            1
        );
        let local_ip = receiver.message(0).control.local_ip;
        assert_eq!(local_ip, Some("127.0.0.9".parse().unwrap()));

        let answer = OutMessage {
            bytes: b"y",
            segment_bytes: None,
            to: Some(b.local_addr().unwrap()),
            source: local_ip,
        };
        UdpSender::new()
            .send(a.as_fd(), std::iter::once(answer))
            .unwrap();
        let (_, from) = b.recv_from(&mut [0; 8]).unwrap();
        assert_eq!(from, (std::net::Ipv4Addr::new(127, 0, 0, 9), port).into());
    }
}
