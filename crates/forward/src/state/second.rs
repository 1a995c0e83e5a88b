//! The SSD level of the content store, and what is known of its Data.

use tachonym_packet::{DataView, MonoNs, NameHash, SourceId};
use tachonym_store::{SecondLevel, Sharer};

use super::RemoteReads;

/// How far the clock that freshness is kept by may be set back without being taken for wrong.
const CLOCK_SLACK_MS: u64 = 100;

/// Names of which it is known that the SSD level has no fresh Data.
const N_STALE: usize = 1_024;

/// How long that is known.
const STALE_MS: u64 = 1_000;

/// The SSD level with what the engine remembers of it.
#[derive(Debug, Default)]
pub(crate) struct Second {
    pub(crate) level: Option<Box<SecondLevel>>,
    pub(crate) known_stale: KnownStale,
    /// Until when Data may arrive that the SSD level has, since no read was free for their
    /// Interests.
    pub(crate) unread_until: MonoNs,
    /// Reads for Interests of other engines.
    pub(crate) remote: RemoteReads,
}

/// Names for which the SSD level had no fresh Data a moment ago: an application that asks
/// for fresh Data again and again does not have the same batch read each time.
#[derive(Debug)]
pub(crate) struct KnownStale {
    names: Box<[(NameHash, MonoNs)]>,
}

impl Default for KnownStale {
    fn default() -> Self {
        Self {
            names: vec![(NameHash(0), MonoNs::ZERO); N_STALE].into(),
        }
    }
}

impl KnownStale {
    fn place(name: NameHash) -> usize {
        name.0 as usize % N_STALE
    }

    pub(crate) fn add(&mut self, name: NameHash, now: MonoNs) {
        self.names[Self::place(name)] = (name, now.plus_ms(STALE_MS));
    }

    pub(crate) fn contains(&self, name: NameHash, now: MonoNs) -> bool {
        let (known, until) = self.names[Self::place(name)];
        known == name && now < until
    }
}

/// Until when a Data of the SSD level is fresh, which was stored with the time `noted`. No
/// Data is fresh for longer than its period, unless the clock was set back.
pub(crate) fn credible(noted: MonoNs, data: &DataView<'_>, now: MonoNs) -> MonoNs {
    let period_ms = data.freshness_period_ms();
    if noted <= now.plus_ms(period_ms.saturating_add(CLOCK_SLACK_MS)) {
        noted
    } else {
        MonoNs::ZERO
    }
}

/// The share of the reads that an Interest counts to, by the source of its face.
pub(crate) const fn sharer_of(source: SourceId) -> Sharer {
    source.to_bits()
}
