//! The tables of an engine, but for the FIB.

use tachonym_packet::HashKey;
use tachonym_policy::{Policy, PolicyConfig};
use tachonym_tables::{CsConfig, DeadNonceList, PitCs, PitCsConfig, TablesError};

use crate::config::EngineConfig;
use crate::wakeups::Wakeups;

/// Pending Interests, cached Data, and what is kept of Interests that have ended.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) pit_cs: PitCs,
    pub(crate) dead_nonces: DeadNonceList,
    /// Timeouts that strategies have set for out-records.
    pub(crate) wakeups: Wakeups,
}

impl Tables {
    /// # Errors
    /// If memory runs out, or the content store has no such policy.
    pub(super) fn new(config: &EngineConfig, key: &HashKey) -> Result<Self, TablesError> {
        let pages = config.pit.pages;
        let tables = PitCsConfig {
            cs: CsConfig {
                capacity: config.cs,
                index: config.pit.index,
                pages,
            },
            pit: config.pit,
            layout: config.pit_cs,
        };
        let n_slots = config.cs.max_slots();
        let policy = PolicyConfig {
            capacity: n_slots,
            pages,
            ..config.cs_policy
        };
        let policy = Policy::with_slots(&policy, n_slots)?.measuring();
        let lifetime = config.dead_nonce_lifetime();
        Ok(Self {
            pit_cs: PitCs::new(tables, policy, key.clone())?,
            dead_nonces: DeadNonceList::new(lifetime, config.dead_nonces_max, pages)?,
            wakeups: Wakeups::default(),
        })
    }
}
