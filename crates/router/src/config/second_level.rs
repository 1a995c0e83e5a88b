//! `[second_level]`: the SSD level of the content store.

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

use super::faults::Faults;
use super::machine::volume_fault;

/// The SSD level of the content store. It is on if there is a `[[second_level.volume]]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecondLevel {
    /// A directory or block device that holds Data. The SSD level is off without one. The
    /// number, order and size of volumes cannot be changed for a store that has Data.
    pub volume: Vec<Volume>,
    /// Segments of one object that are written and read together, 1 to 16. It cannot be
    /// changed for a store that has Data.
    pub batch: usize,
    /// Memory of the index of all workers, in bytes, 0 to 17592186044416: about 12 bytes for
    /// each batch and for each name prefix. 0: enough for packets of 2 KiB, which is four
    /// times too much for packets of 8 KiB. When the index is full, the oldest Data is
    /// forgotten early, and the log says so.
    pub index_bytes: usize,
    /// Most batches that are read ahead of a consumer, 0 to 64; 0 switches it off.
    pub read_ahead: u32,
    /// Most reads that each worker may have in progress, 4 to 4096. The faces share them. An
    /// Interest that finds none free is forwarded instead.
    pub reads: usize,
    /// Memory of each worker for batches that are being assembled, in bytes; 1048576 to
    /// 1099511627776.
    pub assembly_bytes: usize,
    /// Milliseconds for which a batch waits for its missing segments before it is written, 1
    /// to 3600000. Data that waits is lost in a crash.
    pub assembly_ms: u64,
    /// Which arriving Data is written to SSD. `none` writes everything; `lcp` each packet
    /// with `lcp_probability`; `filter` Data requested `filter_threshold` times among the
    /// last `filter_history` Interests that DRAM could not answer; `filter-auto` everything
    /// until the volumes are full, then as `filter` with a threshold that follows the
    /// traffic; `tinylfu` everything until the volumes are full, then Data requested more
    /// often than the Data it would replace. Every write wears the SSD: `filter` is a good
    /// choice for most sites.
    pub admission: Admission,
    /// With `filter`: how often a name must be requested, 1 to 15.
    pub filter_threshold: u32,
    /// With `filter`, `filter-auto` and `tinylfu`: Interests that are remembered by all
    /// workers, 1 to 4294967296. Each takes 5 to 24 bytes; they may take 64 MiB, or as much
    /// as the volumes hold if that is more.
    pub filter_history: usize,
    /// With `lcp`: probability with which a Data packet is written, 0 to 1.
    pub lcp_probability: f64,
    /// How the disks are read and written: with io_uring (`uring`), with threads
    /// (`threads`), or with io_uring if the kernel has it (`auto`).
    pub io: Io,
    /// Milliseconds after which a disk request has failed and its volume is taken out of
    /// service, 100 to 3600000; a sync may take six times as long.
    pub stall_ms: u64,
}

/// A directory or block device that holds Data.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Absolute path of a directory that exists, or of a block device. The router creates a
    /// file for each worker in a directory, and uses a device from its beginning.
    #[schemars(example = &"/var/cache/tachonym")]
    pub path: PathBuf,
    /// Bytes of the volume that all workers together use. All volumes need at least 5 MiB
    /// (5242880) for each worker.
    #[schemars(example = 1_073_741_824)]
    pub bytes: u64,
}

/// Which arriving Data is written to SSD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// Everything is written.
    #[default]
    None,
    /// Each packet with the same probability.
    Lcp,
    /// Data requested often enough lately.
    Filter,
    /// As `filter`, with a threshold that follows the traffic.
    FilterAuto,
    /// Data requested more often than the Data it would replace.
    #[serde(rename = "tinylfu")]
    TinyLfu,
}

/// How the disks are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// With io_uring if the kernel has it, otherwise with threads.
    #[default]
    Auto,
    /// With io_uring.
    Uring,
    /// With threads.
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

/// Memory that the admission policy may use even if the volumes are smaller.
const MIN_ADMISSION_BYTES: u64 = 64 << 20;

/// Size of a packet, in bytes, for which an index of no configured size is made.
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
    /// Whether the SSD level has a volume.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.volume.is_empty()
    }

    /// Bytes of each volume for one of `n_workers` workers.
    pub(crate) fn part_bytes(&self, n_workers: usize) -> Vec<u64> {
        let parts = self
            .volume
            .iter()
            .map(|it| it.bytes / n_workers.max(1) as u64);
        parts.map(|bytes| bytes - bytes % 4096).collect()
    }

    /// Configuration of the store of one of `n_workers` workers.
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

    /// Memory that the admission policies of `n_workers` workers take, in bytes.
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
            Admission::TinyLfu => tachonym_store::Admission::TinyLfu {
                window_len: history_len,
            },
        }
    }
}

/// Sum of all bytes; the greatest number if it is too large.
fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Checks `[second_level]`.
pub(super) fn check(level: &SecondLevel, n_workers: usize, found: &mut Faults) {
    let default = SecondLevel::default();
    if !level.is_on() {
        if *level != default {
            found.conflict(
                "second_level",
                "the SSD level has no volume, so these keys have no effect",
                "add [[second_level.volume]] with path and bytes, or remove [second_level]",
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
        found.conflict(
            "second_level.filter_history",
            format!(
                "{} Interests take {} MiB of memory, which is more than 64 MiB and more than \
                 the bytes of all volumes",
                level.filter_history,
                needed_bytes >> 20
            ),
            "write a lower number, or raise the bytes of the volumes",
        );
    }
    let mut paths = HashSet::new();
    for (i, volume) in level.volume.iter().enumerate() {
        if !volume.path.is_absolute() {
            found.push(
                format!("second_level.volume[{i}].path"),
                format!("{} is not an absolute path", volume.path.display()),
                "write a path that begins with a slash",
            );
        } else if !paths.insert(&volume.path) {
            found.push(
                format!("second_level.volume[{i}].path"),
                format!("{} is already a volume", volume.path.display()),
                "keep one [[second_level.volume]] for each path",
            );
        } else if let Some((message, remedy)) = volume_fault(&volume.path) {
            found.push(format!("second_level.volume[{i}].path"), message, remedy);
        }
    }
    if level.volume.len() > usize::from(u8::MAX) {
        found.push(
            "second_level.volume",
            format!("the file has {} volumes", level.volume.len()),
            "keep at most 255",
        );
    }
    let parts = level.part_bytes(n_workers);
    if let Err(error) = Geometry::new(&parts, level.batch.clamp(1, MAX_BATCH_LEN)) {
        found.conflict(
            "second_level.volume",
            format!("for each of {n_workers} workers: {error}"),
            "change the bytes of the volumes, or workers.max_threads",
        );
    }
}
