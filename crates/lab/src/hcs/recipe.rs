//! Which store of two levels an experiment asks: the one place where it is made, so that a
//! curve can be had of another.

use std::sync::Arc;

use clap::ValueEnum;
use serde::Serialize;
use tachonym_store::device::Waiting;

use super::bed::{ensure_memory, first_bytes};
use super::catalogue::Catalogue;
use super::emulated::{Delay, Memory, Second, Serial};
use super::store::Hcs;
use super::two_levels::{Settings, TwoLevels};

/// What has both levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Store {
    /// The paper's serial algorithm: everything waits for a read
    Serial,
    /// The router's engine with its own second level, for which nothing waits, on an emulated
    /// device; `--delay counted` is then beside whatever else is done
    Router,
}

/// A store to be made as often as there are runs and workers. What the serial algorithm's
/// second level has is made once.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    catalogue: Catalogue,
    delay: Delay,
    kind: Made,
}

#[derive(Clone, Debug)]
enum Made {
    Serial(Arc<Second>),
    Router(Settings, Memory),
}

impl Recipe {
    /// The paper's serial algorithm before a second level that has all of a catalogue.
    ///
    /// # Errors
    /// If there is not as much memory for this and for `l1_chunks` in first levels.
    pub(super) fn serial(
        catalogue: Catalogue,
        l1_chunks: u64,
        batch_chunks: u32,
        memory: Memory,
        delay: Delay,
    ) -> anyhow::Result<Self> {
        ensure_memory(first_bytes(l1_chunks) + Second::bytes(catalogue, memory))?;
        let second = Arc::new(Second::new(catalogue, batch_chunks, memory));
        Ok(Self {
            catalogue,
            delay,
            kind: Made::Serial(second),
        })
    }

    /// The router's own two levels, on an emulated device with all of a catalogue.
    ///
    /// # Errors
    /// As [`Self::serial`].
    pub(super) fn router(
        catalogue: Catalogue,
        l1_chunks: u64,
        settings: Settings,
        memory: Memory,
        delay: Delay,
    ) -> anyhow::Result<Self> {
        // Records lie a little apart, and the index takes less than two bytes of a chunk.
        let second = Second::bytes(catalogue, memory) * 102 / 100 + catalogue.n_chunks() * 2;
        ensure_memory(first_bytes(l1_chunks) + second)?;
        Ok(Self {
            catalogue,
            delay,
            kind: Made::Router(settings, memory),
        })
    }

    /// A store with an empty first level of so many chunks, and so many Gbit/s behind it.
    ///
    /// # Errors
    /// If there is not as much memory as the indexes take.
    pub(super) fn make(
        &self,
        l1_chunks: usize,
        rate_gbps: f64,
    ) -> anyhow::Result<Box<dyn Hcs + Send>> {
        Ok(match &self.kind {
            Made::Serial(second) => Box::new(Serial::new(
                l1_chunks,
                second.clone(),
                self.delay,
                rate_gbps,
            )?),
            Made::Router(settings, memory) => {
                let waiting = match self.delay {
                    Delay::Busy => Waiting::Busy,
                    Delay::Sleep => Waiting::Sleep,
                    Delay::Counted => Waiting::Deferred,
                };
                let passes = (waiting, rate_gbps);
                let store =
                    TwoLevels::emulated(l1_chunks, self.catalogue, settings, *memory, passes)?;
                Box::new(store)
            }
        })
    }

    /// What the second level has.
    pub(super) const fn catalogue(&self) -> Catalogue {
        self.catalogue
    }
}
