//! Which store of two levels an experiment asks: the one place where it is made, so that a
//! curve can be had of another.

use std::sync::Arc;

use super::bed::{ensure_memory, first_bytes};
use super::catalogue::Catalogue;
use super::emulated::{Delay, Memory, Second, Serial};
use super::store::Hcs;

/// A store to be made as often as there are runs and workers. What the second level has is
/// made once.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    second: Arc<Second>,
    delay: Delay,
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
        Ok(Self {
            second: Arc::new(Second::new(catalogue, batch_chunks, memory)),
            delay,
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
        let store = Serial::new(l1_chunks, self.second.clone(), self.delay, rate_gbps)?;
        Ok(Box::new(store))
    }

    /// What the second level has.
    pub(super) fn catalogue(&self) -> Catalogue {
        self.second.catalogue()
    }
}
