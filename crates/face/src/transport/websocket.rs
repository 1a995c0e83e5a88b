//! WebSocket connections, as server and as client: each binary message is one
//! frame.
//!
//! Owns the connection through its stages: TCP being connected, handshake,
//! open, waiting to be dialled again. The protocol itself is tungstenite's,
//! which allocates each message: this transport is for browsers, not for
//! speed. Text messages and messages over the frame limit end the connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use tachonym_packet::MonoNs;
use tungstenite::error::ProtocolError;
use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::client::ClientHandshake;
use tungstenite::handshake::server::ServerHandshake;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use super::handshake::{RequestCheck, Sender};
use super::{DialTarget, Redial};
use crate::batch::STREAM_READ_BYTES;
use crate::framing::MAX_FRAME_BYTES;

const READ_BUFFER_BYTES: usize = 16 << 10;
/// What the protocol collects before it writes. As it is written before more is added,
/// it holds no more than this and a frame, which counts to the face's backlog.
const WRITE_BUFFER_BYTES: usize = 16 << 10;
const MAX_WRITE_BUFFER_BYTES: usize = WRITE_BUFFER_BYTES + 2 * MAX_FRAME_BYTES;

/// A TCP stream that counts its system calls, yields no more than it may, and
/// holds back what is written while messages are read.
pub(crate) struct CountingStream {
    stream: TcpStream,
    n_reads: u64,
    n_writes: u64,
    /// Bytes that may yet be read in this round. The protocol reads on until a
    /// message is whole, and a peer can make one of pieces without end.
    granted_bytes: usize,
    /// The protocol writes a pong for every ping before it reads on. It keeps
    /// what is not taken, for the end of the round.
    is_held: bool,
    /// What the protocol could not write when it last tried.
    unsent_bytes: usize,
}

impl CountingStream {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            n_reads: 0,
            n_writes: 0,
            granted_bytes: STREAM_READ_BYTES,
            is_held: false,
            unsent_bytes: 0,
        }
    }
}

impl Read for CountingStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = out.len().min(self.granted_bytes);
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.n_reads += 1;
        let n_bytes = self.stream.read(&mut out[..room])?;
        self.granted_bytes -= n_bytes;
        Ok(n_bytes)
    }
}

impl Write for CountingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The protocol offers all that it has.
        self.unsent_bytes = bytes.len();
        if self.is_held {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.n_writes += 1;
        let n_bytes = self.stream.write(bytes)?;
        self.unsent_bytes -= n_bytes;
        Ok(n_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum State {
    /// TCP is being connected.
    Connecting(CountingStream),
    ServerHandshake(MidHandshake<ServerHandshake<CountingStream, RequestCheck>>),
    ClientHandshake(MidHandshake<ClientHandshake<CountingStream>>),
    Open(WebSocket<CountingStream>),
    /// No connection; dialled at the time.
    Waiting(MonoNs),
}

/// See the module documentation.
pub(crate) struct WebSocketTransport {
    state: State,
    /// Until when the connection must be open.
    give_up_at: MonoNs,
    /// The kernel takes no more; readiness for writing is waited for.
    pub(crate) is_blocked: bool,
    /// It is in the queue of those that wait to be read whether or not their
    /// socket is ready.
    pub(crate) is_unread: bool,
    /// A ping came in this round.
    owes_pong: bool,
    /// Something came since the peer was last looked after.
    is_heard: bool,
    /// It was sent a ping then.
    is_pinged: bool,
    /// When it is looked after next.
    check_at: MonoNs,
    /// What to dial, on faces that were dialled.
    pub(crate) dial: Option<(DialTarget, Redial)>,
    /// Of the request, on faces that were accepted.
    check: Option<RequestCheck>,
}

/// Where a connection is after it has been looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not open yet; wait for the socket.
    Pending,
    /// Open since just now.
    Opened,
}

/// What reading yields.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A frame.
    Frame(Bytes),
    /// Something that is not ours to see; read on.
    Nothing,
    /// Nothing more for now.
    Empty,
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(MAX_WRITE_BUFFER_BYTES)
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES))
}

/// The I/O error that stands for a protocol error.
fn to_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            io::ErrorKind::ConnectionReset.into()
        }
        _ => io::ErrorKind::InvalidData.into(),
    }
}

impl WebSocketTransport {
    /// Waits for the handshake on an accepted connection. Web pages are accepted
    /// from `origins`; empty: from all.
    pub(crate) fn accept(stream: TcpStream, give_up_at: MonoNs, origins: Arc<[String]>) -> Self {
        let stream = CountingStream::new(stream);
        let check = RequestCheck::new(origins);
        let handshake = ServerHandshake::start(stream, check.clone(), Some(config()));
        Self {
            state: State::ServerHandshake(handshake),
            give_up_at,
            is_blocked: false,
            is_unread: false,
            owes_pong: false,
            is_heard: true,
            is_pinged: false,
            check_at: give_up_at,
            dial: None,
            check: Some(check),
        }
    }

    /// Who asked for the connection; `None`: this end, or the request is not read
    /// yet.
    pub(crate) fn sender(&self) -> Option<Sender> {
        self.check.as_ref().and_then(RequestCheck::sender)
    }

    /// Waits for `stream` to be connected, to begin the handshake then.
    pub(crate) fn connecting(
        stream: TcpStream,
        give_up_at: MonoNs,
        target: DialTarget,
        redial: Redial,
    ) -> Self {
        let mut this = Self {
            state: State::Waiting(MonoNs::NEVER),
            give_up_at,
            is_blocked: false,
            is_unread: false,
            owes_pong: false,
            is_heard: true,
            is_pinged: false,
            check_at: give_up_at,
            dial: Some((target, redial)),
            check: None,
        };
        this.redial(stream, give_up_at);
        this
    }

    /// Goes on with a new stream that is being connected.
    pub(crate) fn redial(&mut self, stream: TcpStream, give_up_at: MonoNs) {
        self.state = State::Connecting(CountingStream::new(stream));
        self.give_up_at = give_up_at;
        (self.is_heard, self.is_pinged, self.check_at) = (true, false, give_up_at);
    }

    /// Gives up the connection, to wait until `at`.
    pub(crate) fn wait_until(&mut self, at: MonoNs) {
        self.state = State::Waiting(at);
        self.is_blocked = false;
    }

    fn stream(&self) -> Option<&CountingStream> {
        match &self.state {
            State::Connecting(stream) => Some(stream),
            State::ServerHandshake(handshake) => Some(handshake.get_ref().get_ref()),
            State::ClientHandshake(handshake) => Some(handshake.get_ref().get_ref()),
            State::Open(socket) => Some(socket.get_ref()),
            State::Waiting(_) => None,
        }
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream().map(|stream| stream.stream.as_fd())
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.stream()?.stream.local_addr().ok()
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether TCP itself is still being connected.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.state, State::Connecting(_))
    }

    /// When to give up or to dial, unless it is open.
    pub(crate) fn deadline(&self) -> Option<MonoNs> {
        match self.state {
            State::Open(_) => None,
            State::Waiting(at) => Some(at),
            _ => Some(self.give_up_at),
        }
    }

    /// When [`WebSocketTransport::check_peer`] is due, if it is open.
    pub(crate) fn check_deadline(&self) -> Option<MonoNs> {
        self.is_open().then_some(self.check_at)
    }

    /// Sends a ping if nothing came in the last `interval` (RFC 6455, section 5.5.2).
    /// False if nothing has come since the last ping either: the peer is gone. One that
    /// takes nothing of what waits is left to those who wait for that.
    pub(crate) fn check_peer(&mut self, now: MonoNs, interval: Duration) -> io::Result<bool> {
        self.check_at = now + interval;
        if std::mem::take(&mut self.is_heard) || self.is_blocked {
            self.is_pinged = false;
            return Ok(true);
        }
        if std::mem::replace(&mut self.is_pinged, true) {
            return Ok(false);
        }
        if let State::Open(socket) = &mut self.state {
            match socket.write(Message::Ping(Bytes::new())) {
                Ok(()) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(to_io(error)),
            }
            // What the socket does not take leaves with the next of anything.
            self.flush()?;
        }
        Ok(true)
    }

    /// Bytes that were handed over and not taken by the kernel.
    pub(crate) fn unsent_bytes(&self) -> usize {
        match &self.state {
            State::Open(socket) => socket.get_ref().unsent_bytes,
            _ => 0,
        }
    }

    /// Whether it waits to be dialled.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// Goes on with connecting or the handshake, as far as the socket lets it.
    pub(crate) fn advance(&mut self) -> io::Result<Progress> {
        self.begin_round();
        let state = std::mem::replace(&mut self.state, State::Waiting(MonoNs::NEVER));
        self.state = match state {
            State::Connecting(stream) => {
                if let Some(error) = stream.stream.take_error()? {
                    return Err(error);
                }
                let Some((target, _)) = &self.dial else {
                    return Err(io::ErrorKind::NotConnected.into());
                };
                let request = format!("ws://{}/", target.remote);
                client_state(tungstenite::client::client_with_config(
                    request.as_str(),
                    stream,
                    Some(config()),
                ))?
            }
            State::ClientHandshake(handshake) => client_state(handshake.handshake())?,
            State::ServerHandshake(handshake) => match handshake.handshake() {
                Ok(socket) => State::Open(socket),
                Err(HandshakeError::Interrupted(handshake)) => State::ServerHandshake(handshake),
                Err(HandshakeError::Failure(error)) => return Err(to_io(error)),
            },
            other => other,
        };
        Ok(if self.is_open() {
            Progress::Opened
        } else {
            Progress::Pending
        })
    }

    /// Begins a round of reading, to be ended by
    /// [`WebSocketTransport::end_round`] if the connection is open:
    /// [`STREAM_READ_BYTES`] at most leave the socket, and what is left keeps it
    /// ready.
    pub(crate) fn begin_round(&mut self) {
        let stream = match &mut self.state {
            State::Connecting(stream) => stream,
            State::ServerHandshake(handshake) => handshake.get_mut().get_mut(),
            State::ClientHandshake(handshake) => handshake.get_mut().get_mut(),
            State::Open(socket) => {
                // The end of a connection is not held back.
                socket.get_mut().is_held = socket.can_write();
                socket.get_mut()
            }
            State::Waiting(_) => return,
        };
        stream.granted_bytes = STREAM_READ_BYTES;
    }

    /// Ends a round of reading: the pongs leave together.
    pub(crate) fn end_round(&mut self) -> io::Result<()> {
        if let State::Open(socket) = &mut self.state {
            socket.get_mut().is_held = false;
        }
        if std::mem::take(&mut self.owes_pong) {
            // What the socket does not take leaves with the next of anything.
            self.flush()?;
        }
        Ok(())
    }

    /// Reads the next message. Until this says that there is nothing more,
    /// readiness of the socket tells nothing: messages may wait in memory.
    pub(crate) fn receive(&mut self) -> io::Result<Incoming> {
        let State::Open(socket) = &mut self.state else {
            return Ok(Incoming::Empty);
        };
        let message = socket.read();
        self.is_heard |= message.is_ok();
        match message {
            Ok(Message::Binary(bytes)) => Ok(Incoming::Frame(bytes)),
            Ok(Message::Text(_)) => Err(io::ErrorKind::InvalidData.into()),
            Ok(Message::Close(_)) => {
                // The answer goes at once, behind the pongs.
                socket.get_mut().is_held = false;
                Ok(Incoming::Nothing)
            }
            Ok(message) => {
                self.owes_pong |= message.is_ping();
                Ok(Incoming::Nothing)
            }
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(Incoming::Empty)
            }
            Err(error) => Err(to_io(error)),
        }
    }

    /// Hands over a frame. False if there is no room for it now.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        let State::Open(socket) = &mut self.state else {
            return Ok(false);
        };
        match socket.write(Message::Binary(Bytes::copy_from_slice(frame))) {
            Ok(()) => Ok(true),
            Err(Error::WriteBufferFull(_)) => Ok(false),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                // It was taken; the socket takes no more.
                self.is_blocked = true;
                Ok(true)
            }
            Err(error) => Err(to_io(error)),
        }
    }

    /// Writes what was handed over. False if the socket takes no more for now.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let State::Open(socket) = &mut self.state else {
            return Ok(true);
        };
        match socket.flush() {
            Ok(()) => Ok(true),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(to_io(error)),
        }
    }

    /// Tells the peer that this is the end, if it still listens.
    pub(crate) fn say_goodbye(&mut self) {
        if let State::Open(socket) = &mut self.state {
            // The connection is dropped next, whatever becomes of this.
            let _ = socket.close(None);
            let _ = socket.flush();
        }
    }

    /// System calls for reading and writing since the last call.
    pub(crate) fn take_syscalls(&mut self) -> (u64, u64) {
        let State::Open(socket) = &mut self.state else {
            return (0, 0);
        };
        let stream = socket.get_mut();
        let counts = (stream.n_reads, stream.n_writes);
        stream.n_reads = 0;
        stream.n_writes = 0;
        counts
    }
}

fn client_state(
    outcome: Result<
        (
            WebSocket<CountingStream>,
            tungstenite::handshake::client::Response,
        ),
        HandshakeError<ClientHandshake<CountingStream>>,
    >,
) -> io::Result<State> {
    match outcome {
        Ok((socket, _)) => Ok(State::Open(socket)),
        Err(HandshakeError::Interrupted(handshake)) => Ok(State::ClientHandshake(handshake)),
        Err(HandshakeError::Failure(error)) => Err(to_io(error)),
    }
}
