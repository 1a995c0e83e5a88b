//! A byte stream: Unix or TCP. Frames follow each other without marks; the
//! TLV head of each tells its length.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::SendFlags;
use tachonym_packet::tlv;
use tachonym_packet::types::MAX_PACKET_BYTES;

use crate::batch::RxBatch;
use crate::info::CloseReason;

/// Bytes asked for with one read.
pub(crate) const READ_BYTES: usize = 128 << 10;
/// Longest frame: a largest packet and the link headers around it.
const MAX_FRAME_BYTES: usize = MAX_PACKET_BYTES + 1024;

/// One end of a byte stream.
pub(crate) struct Stream {
    socket: OwnedFd,
    /// The beginning of a frame whose rest has not come yet.
    partial: Vec<u8>,
    /// Bytes to send, from `n_sent` on.
    queue: Vec<u8>,
    n_sent: usize,
    /// Whether the kernel took less than was offered, so that `EPOLLOUT` is
    /// being waited for.
    pub(crate) is_blocked: bool,
}

/// What one read brought.
pub(crate) enum Received {
    /// Frames may have come; the connection goes on.
    Open,
    /// The connection is over.
    Closed(CloseReason),
}

impl Stream {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            partial: Vec::new(),
            queue: Vec::new(),
            n_sent: 0,
            is_blocked: false,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Replaces the connection; what waited half-received or half-sent is gone.
    pub(crate) fn reconnect(&mut self, socket: OwnedFd) {
        *self = Self::new(socket);
    }

    /// Bytes that wait to be sent.
    pub(crate) fn backlog_bytes(&self) -> usize {
        self.queue.len() - self.n_sent
    }

    /// Where frames to send are appended.
    pub(crate) fn queue_mut(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    /// Reads once, and tells `frame` of each whole frame and where it lies.
    pub(crate) fn receive(
        &mut self,
        batch: &mut RxBatch,
        mut frame: impl FnMut(std::ops::Range<usize>, &mut RxBatch),
    ) -> Received {
        let n_partial = self.partial.len();
        let (start, free) = batch.free();
        free[..n_partial].copy_from_slice(&self.partial);
        let end = free.len().min(n_partial + READ_BYTES);
        let n_read = match rustix::io::read(&self.socket, &mut free[n_partial..end]) {
            Ok(0) => return Received::Closed(CloseReason::PeerClosed),
            Ok(n_read) => n_read,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Received::Open,
            Err(_) => return Received::Closed(CloseReason::ConnectionFailed),
        };
        self.partial.clear();
        let n_filled = n_partial + n_read;
        batch.commit(n_filled);
        let end = start + n_filled;
        let mut at = start;
        while at < end {
            match tlv::element_len(batch.bytes(at..end)) {
                Ok(Some(len)) if len > MAX_FRAME_BYTES => {
                    return Received::Closed(CloseReason::MalformedStream);
                }
                Ok(Some(len)) if at + len <= end => {
                    frame(at..at + len, batch);
                    at += len;
                }
                Ok(_) => {
                    self.partial.extend_from_slice(batch.bytes(at..end));
                    return Received::Open;
                }
                Err(_) => return Received::Closed(CloseReason::MalformedStream),
            }
        }
        Received::Open
    }

    /// Writes what waits, with one call.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::send(&self.socket, &self.queue[self.n_sent..], flags) {
            Ok(n) => self.n_sent += n,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.n_sent == self.queue.len() {
            self.queue.clear();
            self.n_sent = 0;
            // A burst may have made it large; an idle face keeps little.
            if self.queue.capacity() > READ_BYTES {
                self.queue.shrink_to(READ_BYTES);
            }
        } else if self.n_sent > self.queue.len() / 2 {
            self.queue.drain(..self.n_sent);
            self.n_sent = 0;
        }
        Ok(())
    }
}
