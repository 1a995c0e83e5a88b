//! Failures that a tool finds itself and that have an exit code of their own.
//!
//! What the router or a producer says is an error of `tachonym-client`; `code_of`
//! beside this knows both.

use std::path::PathBuf;

use tachonym_packet::Name;
use tachonym_protocol::FaceUri;
use tachonym_security::Validity;

use super::exit;

/// Such a failure.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// A Data was never asked for.
    #[error("nobody asked for {0} in time")]
    NobodyAsked(Name),
    /// A Data was asked for less often than it should have been.
    #[error("{name} was asked for {n_answered} of {count} times in time")]
    AskedTooSeldom {
        /// Of the Data.
        name: Name,
        /// How often it was.
        n_answered: u64,
        /// How often it should have been.
        count: u64,
    },
    /// A certificate is signed well, but holds no longer, or not yet.
    #[error("signed by {issuer}, but it holds {validity}")]
    NotValidNow {
        /// Name of the key that has signed.
        issuer: Name,
        /// When it holds.
        validity: Validity,
    },
    /// A face to a multicast group is asked for; the router makes those from its
    /// configuration only.
    #[error("{0} is a multicast group; faces to groups are configured, in [[faces.multicast]]")]
    MulticastGroup(FaceUri),
    /// A file says what makes no sense.
    #[error("{}: {problem}", file.display())]
    BadFile {
        /// The file.
        file: PathBuf,
        /// What is wrong, and in which line if that is known.
        problem: String,
    },
    /// The forwarder, by what it calls itself, cannot show packets.
    #[error(
        "this forwarder ({0}) has no trace of packets: only Tachonym has one, from the version \
         that this tool is of"
    )]
    NoTrace(String),
    /// No Interest has come yet from which anything could be told.
    #[error("the router has seen no request yet: ask again when it has")]
    NothingMeasured,
    /// A change is asked for that changes nothing.
    #[error("nothing to change: give an option that says what")]
    NothingToChange,
}

impl Failure {
    /// What it means to a shell.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::NobodyAsked(_) | Self::AskedTooSeldom { .. } => exit::TIMED_OUT,
            Self::NotValidNow { .. } => exit::UNTRUSTED,
            Self::NothingMeasured => exit::FAILURE,
            Self::NoTrace(_) => exit::REFUSED,
            Self::MulticastGroup(_) | Self::NothingToChange | Self::BadFile { .. } => exit::USAGE,
        }
    }
}
