//! Why a listener or a face could not be created, and why a face is gone.

use std::io;

use tachonym_packet::FaceId;

/// Why [`crate::FaceSystem::listen`] or
/// [`crate::FaceSystem::create_multicast`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// A program listens on the address already.
    #[error("address already in use")]
    AddressInUse,
    /// The path exists and is no socket.
    #[error("the path exists and is not a socket")]
    NotASocket,
    /// The address is no multicast group, or none where one is not allowed.
    #[error("a multicast face needs a multicast address, and a listener needs another one")]
    WrongAddress,
    /// There is no such network interface, or it has no address of the family.
    #[error("no such network interface, or it has no address of this IP version")]
    NoInterface,
    /// There are as many faces as are allowed.
    #[error("too many faces")]
    TooManyFaces,
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why [`crate::FaceSystem::create`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The scheme is none that can be dialled.
    #[error("no face can be created to this scheme; use udp4, udp6, tcp4, tcp6, ws or unix")]
    UnsupportedScheme,
    /// The URI needs a look-up first, or is a multicast group.
    #[error(
        "the remote address must be a unicast IP address and a port, as in udp4://192.0.2.1:6363"
    )]
    NotCanonical,
    /// The local URI is of another scheme, or of no use with this remote one.
    #[error("the local address must be one of this machine and have the remote scheme")]
    BadLocalUri,
    /// The persistency is not possible for such a face.
    #[error("a face of this transport cannot have this persistency")]
    BadPersistency,
    /// Local fields are for faces to applications on this machine.
    #[error("local fields are for local faces only")]
    NotLocal,
    /// There are as many faces as are allowed.
    #[error("too many faces")]
    TooManyFaces,
    /// Of several systems, the one with this index has to make the face: see
    /// [`crate::FaceSystem::placement`].
    #[error("face system {0} must create this face")]
    Elsewhere(usize),
    /// The operating system refused, or no program listens at the other end.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why [`crate::FaceSystem::update`] failed. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// There is no such face.
    #[error("no such face")]
    NoSuchFace,
    /// The persistency is not possible for this face.
    #[error("this face cannot have this persistency")]
    BadPersistency,
    /// Local fields are for faces to applications on this machine.
    #[error("local fields are for local faces only")]
    NotLocal,
}

/// The face that [`crate::FaceSystem::create`] made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateOutcome {
    /// Its number.
    pub id: FaceId,
    /// It was there before; none of the parameters was applied.
    pub already_existed: bool,
    /// It can send now. If not, it is connecting: an Up event follows when
    /// it is connected, or a Destroyed event when it failed.
    pub is_up: bool,
}

/// Why a face is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// [`crate::FaceSystem::destroy`] was called.
    Destroyed,
    /// The other end closed the connection.
    ClosedByPeer,
    /// The connection failed.
    Failed(io::ErrorKind),
    /// It could not be established.
    ConnectFailed(io::ErrorKind),
    /// The other end sent what is no sequence of packets.
    MalformedStream,
    /// The other end speaks another protocol than NDN.
    NotNdn,
    /// Nothing was received for too long.
    Idle,
    /// The other end took nothing of what was sent, or left a packet unfinished,
    /// for too long.
    Stalled,
    /// It gave way to a new face.
    Evicted,
    /// The peer, which made it, has not sent an Interest in time.
    Silent,
    /// The peer has not answered a ping.
    NoPong,
}

impl CloseReason {
    /// The words that tools print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Destroyed => "destroyed",
            Self::ClosedByPeer => "closed by the peer",
            Self::Failed(_) => "connection failed",
            Self::ConnectFailed(_) => "cannot connect",
            Self::MalformedStream => "the peer sent malformed packets",
            Self::NotNdn => "the peer does not speak NDN",
            Self::Idle => "idle timeout",
            Self::Stalled => "the peer did not read in time",
            Self::Evicted => "evicted for a new face",
            Self::Silent => "the peer sent no Interest in time",
            Self::NoPong => "the peer did not answer a ping",
        }
    }

    /// The cause alone, for texts that say by themselves that the connection failed.
    #[must_use]
    pub fn cause(self) -> String {
        match self {
            Self::Failed(kind) | Self::ConnectFailed(kind) => kind.to_string(),
            _ => self.as_str().to_owned(),
        }
    }
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(kind) | Self::ConnectFailed(kind) => {
                write!(f, "{}: {kind}", self.as_str())
            }
            _ => f.write_str(self.as_str()),
        }
    }
}
