//! What packets meet besides tables: time, faces, strategies, counters, settings.

use tachonym_packet::{FaceId, HashKey, InterestView, MonoNs, Name};

use crate::announcements::Announcements;
use crate::burst::RxPacket;
use crate::config::{EngineConfig, UnsolicitedDataPolicy};
use crate::counters::{Counters, DropReason};
use crate::faces::{FaceTable, FaceTraits};
use crate::recent_drops::{Dropped, RecentDrops};
use crate::rng::Rng;
use crate::strategy::StrategyTable;

/// Time, randomness, faces, strategies, counters and settings of an engine.
#[derive(Debug)]
pub(crate) struct World {
    /// The time of the call in progress, or of the last one.
    pub(crate) now: MonoNs,
    pub(crate) key: HashKey,
    pub(crate) rng: Rng,
    pub(crate) faces: FaceTable,
    pub(crate) strategies: StrategyTable,
    /// Prefix announcements that management has found good.
    pub(crate) announcements: Announcements,
    pub(crate) counters: Counters,
    pub(crate) recent_drops: RecentDrops<DropReason>,
    pub(crate) settings: Settings,
}

/// Settings that packets are treated by.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) max_lifetime_ms: u64,
    pub(crate) dead_nonce_lifetime_ms: u64,
    pub(crate) unsolicited_data: UnsolicitedDataPolicy,
    pub(crate) producer_regions: Vec<Name>,
    pub(crate) verify_parameters_digest: bool,
    pub(crate) management_prefix: Option<Name>,
}

impl World {
    pub(super) fn new(config: EngineConfig, key: HashKey, seed: u64) -> Self {
        let mut faces = FaceTable::default();
        faces.insert(FaceId::INTERNAL, FaceTraits::LOCAL);
        let dead_nonce_lifetime_ms = config.dead_nonce_lifetime().as_millis();
        Self {
            now: MonoNs::ZERO,
            rng: Rng::from_seed(seed),
            faces,
            strategies: StrategyTable::new(key.clone()),
            key,
            announcements: Announcements::default(),
            counters: Counters::default(),
            recent_drops: RecentDrops::new(),
            settings: Settings {
                max_lifetime_ms: config.max_lifetime_ms,
                dead_nonce_lifetime_ms: u64::try_from(dead_nonce_lifetime_ms).unwrap_or(u64::MAX),
                unsolicited_data: config.unsolicited_data,
                producer_regions: config.producer_regions,
                verify_parameters_digest: config.verify_parameters_digest,
                management_prefix: config.management_prefix,
            },
        }
    }

    /// Counts a drop, and records which packet it was.
    #[cold]
    pub(crate) fn drop_packet(&mut self, reason: DropReason, packet: Dropped<'_>) {
        self.counters.count_drop(reason);
        self.recent_drops.record(self.now, reason, &packet);
    }

    /// Drops a packet whose face does not exist, or no longer.
    #[cold]
    pub(crate) fn drop_unknown_face(&mut self, packet: &RxPacket<'_>) {
        self.drop_packet(DropReason::UnknownFace, packet.as_dropped());
    }

    /// When an Interest that arrives now stops waiting.
    pub(crate) fn expiry_of(&self, interest: &InterestView<'_>) -> MonoNs {
        let lifetime_ms = interest.lifetime_ms().min(self.settings.max_lifetime_ms);
        self.now.plus_ms(lifetime_ms)
    }

    /// Sets the clock, which never goes back.
    pub(crate) fn advance(&mut self, now: MonoNs) {
        self.now = self.now.max(now);
    }
}
