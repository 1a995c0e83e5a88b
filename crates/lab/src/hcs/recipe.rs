//! Which store of two levels an experiment asks: the one place where it is made, so that every
//! curve can be had of each.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tachonym_store::device::Waiting;

use super::bed::{ensure_memory, first_bytes};
use super::catalogue::{Catalogue, Chunk, Share};
use super::emulated::{Delay, Memory, Second, Serial};
use super::store::Hcs;
use super::two_levels::{Settings, TwoLevels, volume_bytes};
use crate::ssd::disk::Disk;

/// Reads of the router's second level that may be under way at least.
const MIN_READS: usize = 64;

/// Number of reads with which one face, whose share is eight ninths of them, may have
/// `max_pending` under way; at least what a router has.
pub(super) const fn max_reads(max_pending: u16) -> usize {
    let n_shared = max_pending as usize + (max_pending as usize).div_ceil(8) + 1;
    match n_shared > MIN_READS {
        true => n_shared,
        false => MIN_READS,
    }
}

/// What has both levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Store {
    /// The paper's serial algorithm: everything waits for a read
    Serial,
    /// The router's engine with its own second level, for which nothing waits, on an emulated
    /// device; `--delay counted` is then beside whatever else is done
    Router,
    /// The same on a file of this machine's disk, which is as fast as it is
    Disk,
}

/// Which store it is, as the command line says.
#[derive(Args, Clone, Debug)]
pub(super) struct StoreArgs {
    /// Implementation of both levels (published: serial)
    #[arg(long, value_enum, default_value_t = Store::Serial)]
    store: Store,
    /// Most batches that the router's store reads ahead; 0: none
    #[arg(long, default_value_t = 8, value_name = "N")]
    ahead: u32,
    /// Most pending Interests in the router's store; with 1 each waits for the one before, as in
    /// the serial algorithm
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pending: u16,
    /// Directory on the disk for --store disk; files slightly larger than |L2| are there during the
    /// run
    #[arg(long, default_value = "/var/tmp", value_name = "DIR")]
    directory: PathBuf,
}

impl StoreArgs {
    /// The paper's serial algorithm.
    pub(super) fn serial() -> Self {
        Self {
            store: Store::Serial,
            ahead: 0,
            pending: 1,
            directory: PathBuf::new(),
        }
    }

    /// Whether the second level is a disk, of which no rate can be asked.
    pub(super) const fn is_disk(&self) -> bool {
        matches!(self.store, Store::Disk)
    }

    /// Whether each request waits for the one before, and nothing is read before it is asked
    /// for: what the equations are of.
    pub(super) fn is_one_by_one(&self) -> bool {
        self.store == Store::Serial || (self.ahead, self.pending) == (0, 1)
    }

    /// Refuses a disk.
    ///
    /// # Errors
    /// If it is one, with what to do instead.
    pub(super) fn refuse_disk(&self, instead: &str) -> anyhow::Result<()> {
        match self.is_disk() {
            true => bail!("the rate of a disk cannot be set: {instead}"),
            false => Ok(()),
        }
    }

    /// For a report.
    pub(super) fn told(&self, memory: Option<Memory>, delay: Option<Delay>) -> Told {
        let is_serial = self.store == Store::Serial;
        Told {
            store: self.store,
            max_ahead: (!is_serial).then_some(self.ahead),
            n_pending: (!is_serial).then_some(self.pending),
            memory: memory.filter(|_| !self.is_disk()),
            delay: delay.filter(|_| !self.is_disk()),
        }
    }
}

/// What a report tells of the store.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Told {
    store: Store,
    /// Of the router's.
    max_ahead: Option<u32>,
    n_pending: Option<u16>,
    /// Of an emulated second level; `None` if rows tell it.
    memory: Option<Memory>,
    delay: Option<Delay>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = match (
            self.max_ahead.unwrap_or_default(),
            self.n_pending.unwrap_or(1),
        ) {
            (0, 1) => "no read-ahead, and each Interest waits for the one before".to_owned(),
            (n_ahead, n_pending) => format!(
                "up to {n_ahead} batches ahead and up to {n_pending} Interests pending (models are \
                 of the serial algorithm, and a request for a chunk whose batch is being read is \
                 no hit)"
            ),
        };
        match self.store {
            Store::Serial => write!(f, "the paper's serial algorithm")?,
            Store::Router => write!(
                f,
                "the router's own two levels before an emulated device, {own}"
            )?,
            Store::Disk => return write!(f, "the router's own two levels on a disk, {own}"),
        }
        if let Some(memory) = self.memory {
            write!(f, ", {memory:?} memory")?;
        }
        match self.delay {
            Some(delay) => write!(f, ", {delay:?} delay (published: Busy)"),
            None => Ok(()),
        }
    }
}

impl Told {
    /// A rate of the second level, in Gbit/s, that was asked for.
    pub(super) fn rate(&self, gbps: f64) -> String {
        match self.store {
            Store::Serial | Store::Router => gbps.to_string(),
            Store::Disk => "the disk's".to_owned(),
        }
    }
}

/// What an experiment needs of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// What the second level has, all of it.
    pub(super) catalogue: Catalogue,
    /// Chunks of all first levels that there are at the same time.
    pub(super) l1_chunks: u64,
    /// Stores that there are at the same time.
    pub(super) n_stores: u64,
    /// B.
    pub(super) batch_chunks: u32,
    /// Where an emulated second level is.
    pub(super) memory: Memory,
}

/// How fast an emulated second level is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How the time of a read passes.
    pub(super) delay: Delay,
    /// In Gbit/s.
    pub(super) rate_gbps: f64,
}

/// A store to be made as often as there are runs and workers. What the serial algorithm's
/// second level has is made once.
#[derive(Debug)]
pub(super) struct Recipe {
    catalogue: Catalogue,
    kind: Made,
}

#[derive(Debug)]
enum Made {
    Serial(Arc<Second>),
    Router(Settings, Memory),
    Disk(Settings, Disk),
}

impl Recipe {
    /// Of what the command line says.
    ///
    /// # Errors
    /// If there is not as much memory, or room on the disk.
    pub(super) fn new(args: &StoreArgs, needs: &Needs) -> anyhow::Result<Self> {
        let catalogue = needs.catalogue;
        let first = first_bytes(needs.l1_chunks);
        let index = catalogue.n_chunks() * 2 * needs.n_stores;
        let settings = Settings {
            batch_chunks: needs.batch_chunks,
            max_ahead: args.ahead,
            max_reads: max_reads(args.pending),
            max_pending: args.pending.into(),
        };
        let kind = match args.store {
            Store::Serial => {
                ensure_memory(first + Second::bytes(catalogue, needs.memory))?;
                let second = Second::new(catalogue, needs.batch_chunks, needs.memory);
                Made::Serial(Arc::new(second))
            }
            Store::Router => {
                // Records lie a little apart. Shares are of one catalogue, whoever has the most.
                let second = Second::bytes(catalogue, needs.memory) * 102 / 100;
                ensure_memory(first + index + second)?;
                Made::Router(settings, needs.memory)
            }
            Store::Disk => {
                ensure_memory(first + index)?;
                let by_share = volume_bytes(0) * needs.n_stores;
                let bytes = volume_bytes(catalogue.n_chunks()) + by_share;
                Made::Disk(settings, Disk::new(&args.directory, bytes)?)
            }
        };
        Ok(Self { catalogue, kind })
    }

    /// A store with an empty first level of so many chunks and all of the catalogue behind it.
    ///
    /// # Errors
    /// If there is not as much memory as the indexes take, or the disk fails.
    pub(super) fn make(&self, l1_chunks: usize, pace: Pace) -> anyhow::Result<Box<dyn Hcs + Send>> {
        self.make_share(0, Share::all(self.catalogue), l1_chunks, pace)
    }

    /// The same for a worker that is asked for these chunks only, of whole batches. The router's
    /// store has nothing else; the serial algorithm's second level is one for all.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub(super) fn make_for(
        &self,
        worker: u16,
        is_here: &dyn Fn(Chunk) -> bool,
        l1_chunks: usize,
        pace: Pace,
    ) -> anyhow::Result<Box<dyn Hcs + Send>> {
        let share = Share::new(self.catalogue, is_here);
        self.make_share(worker, share, l1_chunks, pace)
    }

    fn make_share(
        &self,
        worker: u16,
        share: Share<'_>,
        l1_chunks: usize,
        pace: Pace,
    ) -> anyhow::Result<Box<dyn Hcs + Send>> {
        let Pace { delay, rate_gbps } = pace;
        Ok(match &self.kind {
            Made::Serial(second) => {
                Box::new(Serial::new(l1_chunks, second.clone(), delay, rate_gbps)?)
            }
            Made::Router(settings, memory) => {
                let waiting = match delay {
                    Delay::Busy => Waiting::Busy,
                    Delay::Sleep => Waiting::Sleep,
                    Delay::Counted => Waiting::Deferred,
                };
                let passes = (waiting, rate_gbps);
                let store = TwoLevels::emulated(l1_chunks, share, settings, *memory, passes)?;
                Box::new(store)
            }
            Made::Disk(settings, disk) => {
                let file = format!("worker-{worker}");
                Box::new(TwoLevels::on_disk(l1_chunks, share, settings, disk, &file)?)
            }
        })
    }

    /// What the second level has.
    pub(super) const fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// Whether it is on a disk.
    pub(super) const fn is_disk(&self) -> bool {
        matches!(self.kind, Made::Disk(..))
    }
}
