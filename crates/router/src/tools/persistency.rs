//! How long a face lives, as an option of the tools.

use clap::ValueEnum;
use tachonym_protocol::FacePersistency;

/// How long a face lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Persistency {
    /// Made by a peer that connects or sends the first datagram; closed when it is idle
    /// or its peer disconnects. Commands make no such face.
    OnDemand,
    /// Kept until it is destroyed or its connection fails; the default of commands.
    Persistent,
    /// Kept until it is destroyed; connects again by itself, and its routes stay meanwhile.
    Permanent,
}

impl From<Persistency> for FacePersistency {
    fn from(persistency: Persistency) -> Self {
        match persistency {
            Persistency::OnDemand => Self::OnDemand,
            Persistency::Persistent => Self::Persistent,
            Persistency::Permanent => Self::Permanent,
        }
    }
}
