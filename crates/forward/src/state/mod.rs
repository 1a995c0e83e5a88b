//! The state of an engine, in parts that are borrowed side by side.
//!
//! Owns no behaviour of packets: the ways of Interest, Data and Nack are functions over
//! [`State`] or its parts. [`Core`] is what every packet may touch: the tables, the world
//! around them (time, faces, strategies, counters, settings) and scratch buffers. The SSD
//! level and deferred work stand apart, so that both can be in use while a packet goes
//! through the core.

mod arrival;
mod remote_reads;
mod scratch;
mod second;
mod tables;
mod walks;
mod world;

use tachonym_packet::HashKey;
use tachonym_tables::TablesError;

pub(crate) use self::arrival::{
    Arrival, BorrowedData, NON_DISCOVERY, OTHER_PARAMETERS, STATES_LIFETIME,
};
pub use self::arrival::{Downstream, MAX_SERVED, Served};
pub use self::remote_reads::{MAX_REMOTE_READS, RemoteRead, Requester};
pub(crate) use self::remote_reads::{RemoteReads, is_remote};
pub(crate) use self::scratch::{Again, Scratch};
pub(crate) use self::second::{KnownStale, Second, credible, sharer_of};
pub(crate) use self::tables::Tables;
pub(crate) use self::walks::{MAX_ENTRIES_PER_CALL, Upkeep};
pub(crate) use self::world::{Settings, World};
use crate::config::EngineConfig;

/// What an engine owns, but for its FIB and the order of its work.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) second: Second,
    pub(crate) upkeep: Upkeep,
}

/// What every packet may touch.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) tables: Tables,
    pub(crate) world: World,
    pub(crate) scratch: Scratch,
}

/// Number of entries in each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Faces.
    pub n_faces: usize,
    /// Prefixes in the FIB.
    pub n_fib_entries: usize,
    /// Pending Interests.
    pub n_pit_entries: usize,
    /// Data in the content store.
    pub n_cs_entries: usize,
    /// Routes that strategies have measured.
    pub n_measurements: usize,
    /// Prefixes with a strategy of their own, the root included.
    pub n_strategy_choices: usize,
    /// Nonces in the dead nonce list.
    pub n_dead_nonces: usize,
}

impl State {
    /// # Errors
    /// If memory for the tables runs out, or the content store has no such policy.
    pub(crate) fn new(config: EngineConfig, key: HashKey, seed: u64) -> Result<Self, TablesError> {
        Ok(Self {
            core: Core {
                tables: Tables::new(&config, &key)?,
                world: World::new(config, key, seed),
                scratch: Scratch::default(),
            },
            second: Second::default(),
            upkeep: Upkeep::default(),
        })
    }

    pub(crate) fn sizes(&self, n_fib_entries: usize) -> TableSizes {
        let Core { tables, world, .. } = &self.core;
        TableSizes {
            n_faces: world.faces.len(),
            n_fib_entries,
            n_pit_entries: tables.pit_cs.pit().len(),
            n_cs_entries: tables.pit_cs.cs().len(),
            n_measurements: world.strategies.n_measurements(),
            n_strategy_choices: world.strategies.len(),
            n_dead_nonces: tables.dead_nonces.len(),
        }
    }
}
