//! Buffers that outlive a packet, so that no packet allocates.

use tachonym_packet::{HashSpan, NameHashes};
use tachonym_tables::EntryIdx;

use super::Downstream;
use crate::strategy::Departure;

/// Buffers whose contents are void between two packets.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Entries that a Data answers.
    pub(crate) matches: Vec<EntryIdx>,
    /// Entries that a walk over the PIT has chosen.
    pub(crate) walked: Vec<EntryIdx>,
    /// Transmissions of an Interest that goes to several faces.
    pub(crate) plan: Vec<Departure>,
    pub(crate) downstreams: Vec<Downstream>,
    /// An Interest that had to be rewritten when it came.
    pub(crate) amended: Vec<u8>,
    /// A prefix announcement to send with a Data.
    pub(crate) announcement: Vec<u8>,
    /// An Interest to return with a Nack.
    pub(crate) nack: Vec<u8>,
    /// The name of a Data whose neighbours are to be read.
    pub(crate) name: Vec<u8>,
    /// Hashes of the Data in a batch of the SSD level.
    pub(crate) batch_hashes: NameHashes,
    pub(crate) batch_spans: Vec<HashSpan>,
    /// Hashes of a forwarding hint's delegations, or of the management prefix.
    pub(crate) hint_hashes: NameHashes,
    /// Hashes of a pending Interest's name.
    pub(crate) name_hashes: NameHashes,
    pub(crate) again: Again,
}

/// A pending Interest that the router sends again by itself.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub(crate) wire: Vec<u8>,
    pub(crate) hashes: NameHashes,
}
