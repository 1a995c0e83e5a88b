//! Waiting for sockets to become ready: level-triggered epoll.
//!
//! Owns the epoll descriptor and the meaning of the 64 bits that come with an
//! event. Nobody is woken for writing unless something waits to be written.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;
use tachonym_packet::FaceId;

/// Events that one wait returns at most.
const MAX_EVENTS: usize = 256;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Another thread wants attention.
    Waker,
    /// The own socket of a stream or WebSocket face.
    Face(FaceId),
    /// Something that is no socket of this system: whoever watches it looks after it.
    Watched,
    /// A UDP socket.
    Udp(SocketKey),
    /// A socket that accepts connections.
    Listener(SocketKey),
}

/// A socket that is no face: its place, and a number that no other socket in
/// that place has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketKey {
    pub(crate) idx: u32,
    pub(crate) generation: u32,
}

const KIND_SHIFT: u32 = 62;
const GENERATION_MASK: u64 = (1 << 30) - 1;

impl SocketKey {
    /// `generation` counts modulo 2^30.
    pub(crate) fn new(idx: usize, generation: u32) -> Self {
        Self {
            idx: idx as u32,
            generation: generation & GENERATION_MASK as u32,
        }
    }

    fn bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.idx)
    }

    fn from_bits(bits: u64) -> Self {
        Self {
            idx: bits as u32,
            generation: (bits >> 32 & GENERATION_MASK) as u32,
        }
    }
}

impl Token {
    fn bits(self) -> u64 {
        match self {
            Self::Waker => 0,
            Self::Watched => 1,
            // Numbers of faces grow by a few each: 2^62 are never reached.
            Self::Face(id) => 1 << KIND_SHIFT | id.0,
            Self::Udp(key) => 2 << KIND_SHIFT | key.bits(),
            Self::Listener(key) => 3 << KIND_SHIFT | key.bits(),
        }
    }

    fn from_bits(bits: u64) -> Self {
        match bits >> KIND_SHIFT {
            0 if bits == 0 => Self::Waker,
            0 => Self::Watched,
            1 => Self::Face(FaceId(bits & !(3 << KIND_SHIFT))),
            2 => Self::Udp(SocketKey::from_bits(bits)),
            _ => Self::Listener(SocketKey::from_bits(bits)),
        }
    }
}

/// What to wait for, beside errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    ReadWrite,
    /// A connection that is being established.
    Write,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::ReadWrite => EventFlags::IN | EventFlags::OUT,
            Self::Write => EventFlags::OUT,
        }
    }
}

/// A socket that is ready. Errors and hang-ups count as readable and, where
/// that was waited for, as writable: the next call will tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: Token,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
}

/// See the module documentation.
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Token and flags of each event: the kernel's own form holds a pointer,
    /// which may not change threads.
    events: Vec<(u64, EventFlags)>,
    /// First event that has not been handed out.
    next: usize,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(MAX_EVENTS),
            next: 0,
        })
    }

    /// One that takes no socket.
    #[cfg(test)]
    pub(crate) fn broken() -> Self {
        let (no_epoll, _) = std::os::unix::net::UnixStream::pair().expect("descriptors");
        Self {
            epoll: no_epoll.into(),
            events: Vec::new(),
            next: 0,
        }
    }

    pub(crate) fn add(&self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token.bits());
        Ok(epoll::add(&self.epoll, fd, data, interest.flags())?)
    }

    pub(crate) fn modify(&self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token.bits());
        Ok(epoll::modify(&self.epoll, fd, data, interest.flags())?)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Whether events of an earlier wait are still to be handed out. They come
    /// first: whoever waited for longest is served first, and a busy face
    /// cannot keep the others waiting.
    pub(crate) fn has_ready(&self) -> bool {
        self.next < self.events.len()
    }

    /// Waits; an interruption by a signal ends the wait without events.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        self.next = 0;
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()) as _,
        });
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        match epoll::wait(&self.epoll, &mut room[..], timeout.as_ref()) {
            Ok((events, _)) => {
                let events = events.iter().map(|event| (event.data.u64(), event.flags));
                self.events.extend(events);
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next socket that is ready.
    pub(crate) fn next_ready(&mut self) -> Option<Ready> {
        let (data, flags) = *self.events.get(self.next)?;
        self.next += 1;
        let is_broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        Some(Ready {
            token: Token::from_bits(data),
            is_readable: is_broken || flags.contains(EventFlags::IN),
            is_writable: is_broken || flags.contains(EventFlags::OUT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_kernel() {
        let key = SocketKey::new(7, u32::MAX);
        for token in [
            Token::Waker,
            Token::Watched,
            Token::Face(FaceId(256)),
            Token::Face(FaceId((1 << 62) - 1)),
            Token::Udp(key),
            Token::Listener(SocketKey::new(u32::MAX as usize, 0)),
        ] {
            assert_eq!(Token::from_bits(token.bits()), token);
        }
    }
}
