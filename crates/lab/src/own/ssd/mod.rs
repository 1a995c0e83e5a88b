//! The SSD level of the content store on a disk of this machine.
//!
//! Each experiment measures a target on a file in a folder of its own, through the router's
//! engine and the same device that the router opens, and removes the file afterwards. Packets
//! come from memory: faces are measured elsewhere. What is compared takes turns in every round.

mod amplification;
pub(crate) mod disk;
mod fio;
mod foyer;
mod hit_path;
mod index;
mod latency;
mod packets;
mod raw;
mod recovery;
mod rig;
mod serve;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tachonym_bench::stats::Spread;
use tachonym_bench::{Bound, Context, Kind, Param, ParamKind, Record, Table, cells};
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

pub(crate) use self::amplification::EXPERIMENTS as AMPLIFICATION;
pub(crate) use self::foyer::EXPERIMENTS as FOYER;
pub(crate) use self::hit_path::EXPERIMENTS as HIT_PATH;
pub(crate) use self::index::EXPERIMENTS as INDEX;
pub(crate) use self::latency::EXPERIMENTS as LATENCY;
pub(crate) use self::recovery::EXPERIMENTS as RECOVERY;
pub(crate) use self::serve::EXPERIMENTS as SERVE;

use self::disk::Disk;
use self::packets::{ChunkId, Packets, in_order};
use self::raw::Raw;
use self::rig::{Rig, RigOptions};

const DIRECTORY: Param = Param::new(
    "directory",
    "folder on the file system to measure",
    ParamKind::Text,
    ["/var/tmp"; 3],
);
const BATCH: Param = Param::new(
    "batch",
    "segments in a batch",
    ParamKind::Count { min: 1, max: 16 },
    ["10"; 3],
);
const OBJECT_CHUNKS: Param = Param::count("object_chunks", "segments in an object", ["1k"; 3]);

/// The size of a store.
const fn store_mib(defaults: [&'static str; 3]) -> Param {
    Param::new(
        "store_mib",
        "size of a store, MiB",
        ParamKind::Count {
            min: 16,
            max: 1 << 24,
        },
        defaults,
    )
}

/// The size of Data packets.
const fn packet_bytes(defaults: [&'static str; 3]) -> Param {
    Param::new(
        "packet_bytes",
        "size of a Data packet, 256 to 8,800 bytes; 0: its content has 8,192",
        ParamKind::Count { min: 0, max: 8_800 },
        defaults,
    )
}

/// Where a store is, and what it holds.
#[derive(Clone, Debug)]
struct StoreArgs {
    directory: PathBuf,
    bytes: u64,
    batch_len: usize,
    object_chunks: u64,
    packets: Packets,
}

impl StoreArgs {
    fn of(context: &Context) -> Self {
        Self {
            directory: context.text("directory").into(),
            bytes: context.count("store_mib") << 20,
            batch_len: context.size("batch"),
            object_chunks: context.count("object_chunks"),
            packets: Packets::of(context.size("packet_bytes")),
        }
    }

    /// The folder, with room for `n_stores` stores.
    fn disk(&self, n_stores: u64) -> anyhow::Result<Disk> {
        Disk::new(&self.directory, n_stores * self.bytes)
    }

    /// Chunks that fill most of a store, so that none has to be evicted for another.
    fn n_chunks(&self) -> u64 {
        self.n_chunks_of(&self.packets)
    }

    /// The same of other packets.
    fn n_chunks_of(&self, packets: &Packets) -> u64 {
        const STORED_PCT: u64 = 90;
        // A batch of one has its head alone.
        const HEAD_BYTES: u64 = 192;
        self.bytes / (packets.data_bytes() as u64 + HEAD_BYTES) * STORED_PCT / 100
    }

    /// Entries of an index for them.
    fn max_batches(&self, batch_len: usize) -> usize {
        self.max_batches_of(&self.packets, batch_len)
    }

    /// The same of other packets.
    fn max_batches_of(&self, packets: &Packets, batch_len: usize) -> usize {
        let n_batches = self.n_chunks_of(packets) as usize / batch_len;
        n_batches + n_batches / 4 + 4_096
    }

    /// The chunk at a place of all, object by object.
    const fn chunk(&self, place: u64) -> ChunkId {
        ChunkId {
            object: place / self.object_chunks,
            number: place % self.object_chunks,
        }
    }

    /// A sentence for the record.
    fn note(&self) -> String {
        format!(
            "{} MiB of Data of {} bytes in batches of {}, objects of {} segments; on a file of \
             this machine's disk, past the page cache; packets in memory, one thread that sleeps \
             while there is nothing to do.",
            self.bytes >> 20,
            self.packets.data_bytes(),
            self.batch_len,
            self.object_chunks
        )
    }
}

/// Figures over rounds, and targets.
struct Figures {
    record: Record,
    table: Table,
}

impl Figures {
    fn new(store: &StoreArgs) -> Self {
        let mut record = Record::new(Kind::Measured);
        record.note(store.note());
        Self {
            record,
            table: Table::new("", ["", "median (p10–p90)", "unit"]),
        }
    }

    /// Adds a figure of each round.
    fn add(&mut self, what: impl Into<String>, unit: &str, rounds: &[f64]) {
        let unit = match unit {
            "" => "–",
            unit => unit,
        };
        self.table
            .row(cells![what.into(), Spread::of(rounds), unit]);
    }

    /// Adds a target, judged by the median of the rounds.
    fn judge(
        &mut self,
        what: impl Into<String>,
        unit: &str,
        bound: Bound,
        rounds: &[f64],
    ) -> anyhow::Result<()> {
        let spread = Spread::of(rounds).context("no round was measured")?;
        self.record.judge(what, unit, bound, spread);
        Ok(())
    }

    fn finish(mut self) -> Record {
        self.record.tables.push(self.table);
        self.record
    }
}

/// Each round's ratio.
fn ratios(these: &[f64], those: &[f64]) -> Vec<f64> {
    these.iter().zip(those).map(|(a, b)| a / b).collect()
}

/// Bytes in MiB.
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// How fast the disk of a folder is read in order, in MiB/s, past the page cache: batches of
/// ten packets, 32 at a time, of a store of `store_mib` that was written for this.
///
/// # Errors
/// If the disk has not enough room or fails.
pub(crate) fn read_mib_per_s(directory: &Path, store_mib: u32) -> anyhow::Result<f64> {
    const FILE: &str = "read";
    const DEPTH: usize = 32;
    let store = StoreArgs {
        directory: directory.to_path_buf(),
        bytes: u64::from(store_mib.max(16)) << 20,
        batch_len: 10,
        object_chunks: 1_000,
        packets: Packets::of(0),
    };
    let disk = store.disk(1)?;
    let options = RigOptions {
        l1_pkts: 1_024,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len: store.batch_len,
            max_batches: store.max_batches(store.batch_len),
            ..Config::default()
        },
    };
    let volume = disk.format(FILE, store.bytes, store.batch_len)?;
    let mut rig = Rig::with_store(&options, volume, Beginning::New)?;
    rig.fill(
        &store.packets,
        in_order(store.n_chunks(), store.object_chunks),
    )?;
    rig.flush()?;
    let used_bytes = rig.second()?.counters().n_written_bytes;
    rig.stop();
    let read_bytes = store.batch_len * store.packets.data_bytes();
    let volume = disk.volume(FILE, store.bytes)?;
    let mut raw = Raw::new((volume, used_bytes), read_bytes, DEPTH)?;
    Ok(raw
        .read_in_order(Duration::from_secs(10), used_bytes)?
        .mib_per_s)
}
