//! `[second_level]`: Data on SSD behind those in memory.

use std::collections::HashSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_memory::PagePreference;
use tachonym_policy::CountersKind;
use tachonym_policy::admission::{AutoFilter, Filter, HISTORY_BY_LEN, TinyLfu};
use tachonym_store::device::Backend;
use tachonym_store::layout::MAX_BATCH_LEN;
use tachonym_store::{Geometry, Index};

use super::check::Faults;
use super::machine::volume_fault;

/// The second level of the content store: Data on SSD behind those in memory, if
/// `[[second_level.volume]]` names any place for them. It survives restarts. Segments of an
/// object are written and read together, a batch at a time; an Interest for one waits while
/// its batch is read, and finds the neighbours in memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecondLevel {
    /// Directories and block devices.
    pub volume: Vec<Volume>,
    /// Segments of a batch, 1 to 16. It cannot be changed for volumes that are in use.
    pub batch: usize,
    /// Memory of the index, for all workers together, in bytes: some 12 for each batch, and as
    /// much for each prefix of names. 0: enough for batches of packets of 2 KiB, so four times
    /// too much for packets of 8 KiB. When it is full, what is oldest is forgotten early, which
    /// the log tells.
    pub index_bytes: usize,
    /// Most batches that are read ahead of a consumer; 0: none.
    pub read_ahead: u32,
    /// Reads that each worker may have under way; one face has a share of them. An Interest
    /// beyond goes upstream.
    pub reads: usize,
    /// Memory of each worker for batches that are being put together, in bytes.
    pub assembly_bytes: usize,
    /// How long a batch waits for what is missing in it, in milliseconds.
    pub assembly_ms: u64,
    /// Whether an arriving Data is written. `filter` takes what was asked for
    /// `filter_threshold` times among the last `filter_history` Interests for Data that are
    /// not in memory, or there without having been written; `filter-auto` takes all while there
    /// is room, and then the same with a threshold of its own, such that about half of a
    /// twentieth of `filter_history` names reach it, or of as many as volumes have room for;
    /// `tinylfu` takes all while there is room, and then what was asked for more than once and
    /// more often than what had to go last, by counts that are halved after `filter_history`
    /// Interests; `lcp` takes each with `lcp_probability`.
    pub admission: Admission,
    /// With `filter`: how often a name has to be asked for.
    pub filter_threshold: u32,
    /// With `filter`, `filter-auto` and `tinylfu`: Interests that are remembered, by all workers
    /// together. They may take as much memory as volumes have room, or 64 MiB.
    pub filter_history: usize,
    /// With `lcp`: the probability, 0 to 1.
    pub lcp_probability: f64,
    /// How requests reach the disks: by io_uring, or by threads where there is none.
    pub io: Io,
    /// How long a request may take, in milliseconds, until its volume is taken out of service;
    /// a sync six times as long.
    pub stall_ms: u64,
}

/// A place for the second level of the content store.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// A directory, in which files are made; or a block device, from its beginning.
    pub path: PathBuf,
    /// How much of it is used, in bytes, by all workers together.
    pub bytes: u64,
}

/// Whether an arriving Data is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// All are.
    #[default]
    None,
    /// Each with the same probability.
    Lcp,
    /// Those asked for often enough lately.
    Filter,
    /// The same, with a threshold that follows what is asked for.
    FilterAuto,
    /// Those asked for more often than what had to go.
    #[serde(rename = "tinylfu")]
    TinyLfu,
    /// Refused: the window before it is the memory.
    #[serde(rename = "w-tinylfu")]
    #[schemars(skip)]
    WTinyLfu,
}

/// How requests reach the disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// By io_uring if the kernel has it, or else by threads.
    #[default]
    Auto,
    /// By io_uring.
    Uring,
    /// By threads.
    Threads,
}

impl From<Io> for Backend {
    fn from(io: Io) -> Self {
        match io {
            Io::Auto => Self::Auto,
            Io::Uring => Self::Uring,
            Io::Threads => Self::Threads,
        }
    }
}

/// Memory of the admission that is allowed though volumes are smaller.
const MIN_ADMISSION_BYTES: u64 = 64 << 20;

/// Bytes of a packet for which an index is made that nobody has said the size of.
const ASSUMED_PACKET_BYTES: u64 = 2_048;

impl Default for SecondLevel {
    fn default() -> Self {
        let store = tachonym_store::Config::default();
        Self {
            volume: Vec::new(),
            batch: store.batch_len,
            index_bytes: 0,
            read_ahead: store.max_ahead,
            reads: store.max_reads,
            assembly_bytes: store.assembly_bytes,
            assembly_ms: store.assembly_ms,
            admission: Admission::default(),
            filter_threshold: 2,
            filter_history: 1 << 20,
            lcp_probability: 0.1,
            io: Io::default(),
            stall_ms: store.stall_ms,
        }
    }
}

impl SecondLevel {
    /// Whether there is one.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.volume.is_empty()
    }

    /// Bytes of each volume for one of so many workers.
    pub(crate) fn part_bytes(&self, n_workers: usize) -> Vec<u64> {
        let parts = self
            .volume
            .iter()
            .map(|it| it.bytes / n_workers.max(1) as u64);
        parts.map(|bytes| bytes - bytes % 4096).collect()
    }

    /// What the store of one of so many workers is made with.
    pub(crate) fn store_config(
        &self,
        n_workers: usize,
        pages: PagePreference,
        seed: u64,
    ) -> tachonym_store::Config {
        let index_bytes = match self.index_bytes {
            0 => {
                let n_bytes = total(self.part_bytes(n_workers));
                let n_batches = n_bytes / (self.batch.max(1) as u64 * ASSUMED_PACKET_BYTES);
                Index::bytes_for(n_batches.max(10_000) as usize)
            }
            bytes => bytes / n_workers.max(1),
        };
        tachonym_store::Config {
            batch_len: self.batch,
            max_batches: Index::entries_in(index_bytes),
            max_reads: self.reads,
            assembly_bytes: self.assembly_bytes,
            assembly_ms: self.assembly_ms,
            max_ahead: self.read_ahead,
            stall_ms: self.stall_ms,
            admission: self.store_admission(n_workers, seed),
            pages,
            seed,
            ..tachonym_store::Config::default()
        }
    }

    /// Memory that the admissions of so many workers take, in bytes.
    fn admission_bytes(&self, n_workers: usize) -> u64 {
        let of_one = match self.store_admission(n_workers, 0) {
            tachonym_store::Admission::Filter { history_len, .. } => {
                Filter::bytes_for(history_len, CountersKind::default())
            }
            tachonym_store::Admission::FilterAuto { capacity } => AutoFilter::bytes_for(capacity),
            tachonym_store::Admission::TinyLfu { window_len } => TinyLfu::bytes_for(window_len),
            _ => 0,
        };
        of_one.saturating_mul(n_workers.max(1) as u64)
    }

    fn store_admission(&self, n_workers: usize, seed: u64) -> tachonym_store::Admission {
        let history_len = (self.filter_history / n_workers.max(1)).max(1);
        match self.admission {
            Admission::None => tachonym_store::Admission::All,
            Admission::Lcp => tachonym_store::Admission::Lcp {
                probability: self.lcp_probability,
                seed,
            },
            Admission::Filter => tachonym_store::Admission::Filter {
                threshold: self.filter_threshold,
                history_len,
            },
            Admission::FilterAuto => {
                let n_bytes = total(self.part_bytes(n_workers));
                let n_fit = usize::try_from(n_bytes / ASSUMED_PACKET_BYTES).unwrap_or(usize::MAX);
                tachonym_store::Admission::FilterAuto {
                    capacity: (history_len / HISTORY_BY_LEN).min(n_fit).max(1),
                }
            }
            // The latter is refused before.
            Admission::TinyLfu | Admission::WTinyLfu => tachonym_store::Admission::TinyLfu {
                window_len: history_len,
            },
        }
    }
}

/// Bytes of all, whatever somebody has written for each.
fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// What is wrong with it.
pub(super) fn check(level: &SecondLevel, n_workers: usize, found: &mut Faults) {
    let default = SecondLevel::default();
    if !level.is_on() {
        if *level != default {
            found.push(
                "second_level",
                "there is no volume for it",
                "add [[second_level.volume]] with path and bytes, or remove it",
            );
        }
        return;
    }
    found.range("second_level.batch", level.batch, 1, MAX_BATCH_LEN);
    found.range("second_level.reads", level.reads, 4, 4_096);
    found.range("second_level.read_ahead", level.read_ahead, 0, 64);
    found.range(
        "second_level.assembly_bytes",
        level.assembly_bytes,
        1 << 20,
        1 << 40,
    );
    found.range("second_level.index_bytes", level.index_bytes, 0, 1 << 44);
    found.range("second_level.assembly_ms", level.assembly_ms, 1, 3_600_000);
    found.range("second_level.stall_ms", level.stall_ms, 100, 3_600_000);
    found.range(
        "second_level.lcp_probability",
        level.lcp_probability,
        0.0,
        1.0,
    );
    found.range(
        "second_level.filter_threshold",
        level.filter_threshold,
        1,
        15,
    );
    found.range(
        "second_level.filter_history",
        level.filter_history,
        1,
        1 << 32,
    );
    let needed_bytes = level.admission_bytes(n_workers);
    let allowed_bytes = total(level.volume.iter().map(|it| it.bytes));
    if needed_bytes > allowed_bytes.max(MIN_ADMISSION_BYTES) {
        found.push(
            "second_level.filter_history",
            format!(
                "{} Interests take {} MiB of memory, more than all volumes have",
                level.filter_history,
                needed_bytes >> 20
            ),
            "remember fewer",
        );
    }
    if level.admission == Admission::WTinyLfu {
        found.push(
            "second_level.admission",
            "w-tinylfu has a window before it that all Data enter; here that is the memory",
            "use tinylfu",
        );
    }
    let mut paths = HashSet::new();
    for (i, volume) in level.volume.iter().enumerate() {
        if !volume.path.is_absolute() {
            found.push(
                format!("second_level.volume[{i}].path"),
                format!("{} does not begin at the root", volume.path.display()),
                "write it from the first slash on",
            );
        } else if !paths.insert(&volume.path) {
            found.push(
                format!("second_level.volume[{i}].path"),
                format!("{} is named twice", volume.path.display()),
                "name each place once",
            );
        } else if let Some((message, remedy)) = volume_fault(&volume.path) {
            found.push(format!("second_level.volume[{i}].path"), message, remedy);
        }
    }
    if level.volume.len() > usize::from(u8::MAX) {
        found.push(
            "second_level.volume",
            format!("{} volumes", level.volume.len()),
            "name no more than 255",
        );
    }
    let parts = level.part_bytes(n_workers);
    if let Err(error) = Geometry::new(&parts, level.batch.clamp(1, MAX_BATCH_LEN)) {
        found.push(
            "second_level.volume",
            format!("for each of {n_workers} workers, {error}"),
            "change the bytes of the volumes, or workers.max_threads",
        );
    }
}
