//! Which store of two levels an experiment asks: the one place where it is made, so that every
//! curve can be measured with each.

use std::path::PathBuf;
use std::sync::Arc;

use tachonym_bench::{Cell, Context, Kind, Param, ParamKind};
use tachonym_store::device::Waiting;

use super::bed::{ensure_memory, first_bytes};
use super::catalogue::{Catalogue, Chunk, Share};
use super::emulated::{Delay, Memory, Second, Serial};
use super::store::Hcs;
use super::two_levels::{Settings, TwoLevels, volume_bytes};
use crate::own::ssd::disk::Disk;

/// The implementation of both levels.
pub(super) const STORE: Param = Param::choice(
    "store",
    "both levels: the paper's serial algorithm, or the router's on an emulated device or a disk",
    &["serial", "router", "disk"],
    "serial",
);
/// The same where the rate of L2 is set, which a disk does not let one do.
pub(super) const EMULATED_STORE: Param = Param::choice(
    "store",
    "both levels: the paper's serial algorithm, or the router's on an emulated device",
    &["serial", "router"],
    "serial",
);
pub(super) const AHEAD: Param = Param::new(
    "ahead",
    "batches that the router's store reads ahead at most",
    ParamKind::Count { min: 0, max: 64 },
    ["8"; 3],
);
pub(super) const PENDING: Param = Param::new(
    "pending",
    "pending Interests of the router's store at most; 1: each waits for the one before",
    ParamKind::Count {
        min: 1,
        max: 65_535,
    },
    ["64"; 3],
);
pub(super) const DIRECTORY: Param = Param::new(
    "directory",
    "folder on the disk; files a little larger than L2 are there during the run",
    ParamKind::Text,
    ["/var/tmp"; 3],
);

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// The paper's serial algorithm: everything waits for a read.
    Serial,
    /// The router's engine with its own SSD level, on an emulated device. Only Interests for
    /// what is being read wait; counted delay passes while other work is done.
    Router,
    /// The same on a file of this machine's disk.
    Disk,
}

/// Which store it is, as the parameters say.
#[derive(Clone, Debug)]
pub(super) struct StoreArgs {
    store: Store,
    ahead: u32,
    pending: u16,
    directory: PathBuf,
}

impl StoreArgs {
    /// As the parameters say.
    pub(super) fn of(context: &Context) -> Self {
        Self {
            store: match context.text("store") {
                "serial" => Store::Serial,
                "router" => Store::Router,
                _ => Store::Disk,
            },
            ahead: context.values.count32("ahead"),
            pending: u16::try_from(context.count("pending")).unwrap_or(u16::MAX),
            directory: context.text("directory").into(),
        }
    }

    /// The paper's serial algorithm.
    pub(super) fn serial() -> Self {
        Self {
            store: Store::Serial,
            ahead: 0,
            pending: 1,
            directory: PathBuf::new(),
        }
    }

    /// Whether L2 is a disk, whose rate cannot be set.
    pub(super) fn is_disk(&self) -> bool {
        self.store == Store::Disk
    }

    /// Whether each request waits for the one before, and nothing is read before it is asked
    /// for: the case that the equations describe.
    pub(super) fn is_one_by_one(&self) -> bool {
        self.store == Store::Serial || (self.ahead, self.pending) == (0, 1)
    }

    /// How numbers come about: only a disk is not imitated.
    pub(super) fn kind(&self) -> Kind {
        match self.is_disk() {
            true => Kind::Measured,
            false => Kind::Emulated,
        }
    }

    /// The rate of L2 that was asked for, in Gbit/s.
    pub(super) fn rate(&self, gbps: f64) -> Cell {
        match self.is_disk() {
            true => "the disk's".into(),
            false => gbps.into(),
        }
    }

    /// A sentence for the record; memory and delay unless rows have them.
    pub(super) fn note(&self, memory: Option<Memory>, delay: Option<Delay>) -> String {
        let mut text = match self.store {
            Store::Serial => "Both levels are the paper's serial algorithm",
            Store::Router => "Both levels are the router's own, L2 on an emulated device",
            Store::Disk => "Both levels are the router's own, L2 on a disk",
        }
        .to_owned();
        if self.store != Store::Serial {
            text += &match (self.ahead, self.pending) {
                (0, 1) => ", without read-ahead; each Interest waits for the one before".to_owned(),
                (n_ahead, n_pending) => format!(
                    ", up to {n_ahead} batches ahead and {n_pending} Interests pending; models are \
                     of the serial algorithm, and a request for a chunk whose batch is being read \
                     is no hit"
                ),
            };
        }
        if let Some(memory) = memory.filter(|_| !self.is_disk()) {
            text += &format!("; {} memory", memory.label());
        }
        if let Some(delay) = delay.filter(|_| !self.is_disk()) {
            text += &format!("; {} delay (published: Busy)", delay.label());
        }
        text + "."
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
    /// The store that the parameters name.
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
                // Records lie a little apart. All shares together are one catalogue.
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

    /// A store with an empty L1 of `l1_chunks` and all of the catalogue behind it.
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
