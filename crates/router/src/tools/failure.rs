//! Failures that a tool detects itself and that have an exit code of their own.
//!
//! Failures of the router or a producer are errors of `tachonym-client`; `code_of` in the
//! parent module knows both.

use std::path::PathBuf;

use tachonym_packet::Name;
use tachonym_protocol::FaceUri;
use tachonym_security::Validity;

use super::exit;

/// Such a failure.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// No Interest for a Data came.
    #[error("no Interest for {0} came in time")]
    NoInterest(Name),
    /// Fewer Interests for a Data came than it waits for.
    #[error("only {n_answered} of {count} Interests for {name} came in time")]
    TooFewInterests {
        /// Of the Data.
        name: Name,
        /// Interests that came.
        n_answered: u64,
        /// Interests that it waits for.
        count: u64,
    },
    /// The signature of a certificate is right, but its validity period is over or has not
    /// begun.
    #[error("signed by {issuer}, but not valid now: it is valid {validity}")]
    NotValidNow {
        /// Name of the key that has signed.
        issuer: Name,
        /// Its validity period.
        validity: Validity,
    },
    /// A face to a multicast group; the router makes those from its configuration only.
    #[error(
        "{0} is a multicast group; add it under [[faces.multicast]] in the router's \
         configuration and restart the router"
    )]
    MulticastGroup(FaceUri),
    /// The content of a file is invalid.
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
    /// The router received no Interest yet that could be measured.
    #[error("the router received no Interest yet; try again after some traffic")]
    NothingMeasured,
    /// A command without any change.
    #[error("nothing to change: give at least one option, as listed by --help")]
    NothingToChange,
}

impl Failure {
    /// What it means to a shell.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::NoInterest(_) | Self::TooFewInterests { .. } => exit::TIMED_OUT,
            Self::NotValidNow { .. } => exit::UNTRUSTED,
            Self::NothingMeasured => exit::FAILURE,
            Self::NoTrace(_) => exit::REFUSED,
            Self::MulticastGroup(_) | Self::NothingToChange | Self::BadFile { .. } => exit::USAGE,
        }
    }
}
