//! What a second level is made with, and what it counts.

use tachonym_memory::PagePreference;

use crate::layout::{
    MAX_BATCH_LEN, MAX_REGIONS, REGION_BYTES, REGIONS_START, Superblock, max_record_bytes,
};

/// Limits and habits of a [`SecondLevel`](crate::SecondLevel).
#[derive(Clone, Debug)]
pub struct Config {
    /// Chunks of a batch, 1 to [`MAX_BATCH_LEN`]; 8 to 16 is usual (Mansilha 2017, 3.3.2).
    pub batch_len: usize,
    /// Most batches, and prefixes, in the index. When it is full, what is oldest goes early.
    pub max_batches: usize,
    /// Reads that may be under way, from 4; each has a buffer as large as a batch may be.
    pub max_reads: usize,
    /// Buffers for writing, from 2.
    pub n_write_buffers: usize,
    /// Bytes of each; more if all of them together would not hold a record.
    pub write_buffer_bytes: usize,
    /// Most bytes of batches that are being put together.
    pub assembly_bytes: usize,
    /// How long a batch waits for what is missing in it, in milliseconds.
    pub assembly_ms: u64,
    /// How long what is to be written waits for a full buffer, in milliseconds.
    pub write_delay_ms: u64,
    /// Most batches that are read ahead of a consumer; 0 reads none ahead.
    pub max_ahead: u32,
    /// A request that has taken so long, in milliseconds, shows that its device has stalled; a
    /// sync may take six times as long. Time in which nobody asked the store does not count.
    pub stall_ms: u64,
    /// Reads that fail one after another until a volume is out of service; a write that fails
    /// is enough.
    pub max_read_errors: u32,
    /// Which Data are written.
    pub admission: Admission,
    /// Pages for the index.
    pub pages: PagePreference,
    /// Random, and another one at each start: what a loss of power has left of regions that
    /// were begun since the start before is told by it from what is written from now on.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            batch_len: 10,
            max_batches: 1 << 20,
            max_reads: 64,
            n_write_buffers: 8,
            write_buffer_bytes: 512 << 10,
            assembly_bytes: 64 << 20,
            assembly_ms: 10_000,
            write_delay_ms: 2_000,
            max_ahead: 8,
            stall_ms: 5_000,
            max_read_errors: 8,
            admission: Admission::All,
            pages: PagePreference::Auto,
            seed: 0,
        }
    }
}

/// Which Data deserve to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admission {
    /// All.
    All,
    /// Each with this probability.
    Lcp {
        /// From 0 to 1.
        probability: f64,
        /// What is drawn from.
        seed: u64,
    },
    /// Those asked for so often among the last Interests that the first level could not
    /// answer with a Data that is here already (Takemasa et al. 2019, section 4.3).
    Filter {
        /// The least count, from 1.
        threshold: u32,
        /// Interests that are remembered.
        history_len: usize,
    },
    /// All as long as there is room, and then the same with a threshold that follows the
    /// traffic: such that about half as many names reach it as `capacity`, while it learns as
    /// many.
    FilterAuto {
        /// Names that there is room for, from 1. It remembers
        /// [so many times](tachonym_policy::admission::HISTORY_BY_LEN) as many Interests.
        capacity: usize,
    },
    /// All as long as there is room, and then those asked for more than once and more often than
    /// what had to go last (Einziger et al. 2017, section 3). Of a batch that is here, what
    /// counts is how often it was read.
    TinyLfu {
        /// Interests, and reads, after which all counts are halved, from 1.
        window_len: usize,
    },
}

/// How volumes are divided into regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of each.
    pub region_bytes: u32,
    /// How many each volume has.
    pub n_regions: Vec<u32>,
}

/// Why volumes cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// There are fewer than four regions.
    #[error("{total_bytes} bytes are too few: batches of this length need at least {min_bytes}")]
    TooSmall {
        /// How many there are.
        total_bytes: u64,
        /// How many there have to be.
        min_bytes: u64,
    },
    /// There are more than an index can tell apart.
    #[error(
        "{total_bytes} bytes are more than the {max_bytes} that the store of one worker may have; \
         use more workers"
    )]
    TooLarge {
        /// How many there are.
        total_bytes: u64,
        /// How many there may be.
        max_bytes: u64,
    },
}

/// Regions that a store has at least: one that is written, one that is emptied, and some to
/// read from.
const MIN_REGIONS: u64 = 4;

/// Regions that a store of middling size has. Of more, less would be forgotten at a time; but
/// the log waits for a sync in each.
const USUAL_REGIONS: u64 = 64;

impl Geometry {
    /// For volumes of so many bytes.
    ///
    /// # Errors
    /// See [`GeometryError`].
    pub fn new(volume_bytes: &[u64], batch_len: usize) -> Result<Self, GeometryError> {
        let largest_record = max_record_bytes(batch_len.clamp(1, MAX_BATCH_LEN)) as u64;
        let least = (4 * largest_record).next_power_of_two();
        let least = least.max(u64::from(*REGION_BYTES.start()));
        let most = u64::from(*REGION_BYTES.end());
        let total_bytes = volume_bytes.iter().copied().fold(0, u64::saturating_add);
        let usual = (total_bytes / USUAL_REGIONS + 1).next_power_of_two() / 2;
        let region_bytes = usual.clamp(least, most);
        let n_in = |&bytes: &u64| bytes.saturating_sub(REGIONS_START) / region_bytes;
        let n_all: u64 = volume_bytes.iter().map(n_in).sum();
        if n_all < MIN_REGIONS {
            let min_bytes = MIN_REGIONS * least + REGIONS_START * volume_bytes.len() as u64;
            return Err(GeometryError::TooSmall {
                total_bytes,
                min_bytes,
            });
        }
        if n_all > MAX_REGIONS as u64 {
            let max_bytes = MAX_REGIONS as u64 * most;
            return Err(GeometryError::TooLarge {
                total_bytes,
                max_bytes,
            });
        }
        Ok(Self {
            region_bytes: region_bytes as u32,
            n_regions: volume_bytes.iter().map(|it| n_in(it) as u32).collect(),
        })
    }

    /// That of the volumes of a store.
    #[must_use]
    pub fn of(volumes: &[Superblock]) -> Self {
        Self {
            region_bytes: volumes.first().map_or(0, |it| it.region_bytes),
            n_regions: volumes.iter().map(|it| it.n_regions).collect(),
        }
    }
}

/// What a [`SecondLevel`](crate::SecondLevel) counts, since it was made. A Data that is
/// offered is counted once more, when it is known what becomes of it: see [`Counters::n_ended`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that were looked for by [`find`](crate::SecondLevel::find).
    pub n_lookups: u64,
    /// Interests that found their batch where batches are put together or wait to be written.
    /// Like those that joined a read or found none, some may have been looked for by
    /// [`peek`](crate::SecondLevel::peek).
    pub n_found_in_memory: u64,
    /// Reads of batches for Interests, and of older records where one was of another batch.
    pub n_reads: u64,
    /// Reads of batches ahead of Interests.
    pub n_reads_ahead: u64,
    /// Interests that joined a read that was under way.
    pub n_joined: u64,
    /// Interests that got no read: no buffer was free, or none for their sharer, or
    /// too many waited for the read.
    pub n_busy: u64,
    /// Reads that brought another batch than one of those who waited looked for, or one whose
    /// region had been given up, or written again.
    pub n_false_reads: u64,
    /// Reads that brought a batch that was damaged.
    pub n_damaged: u64,
    /// Reads, writes and syncs that a device could not do, or not as a whole; and each time that
    /// a volume did not answer in time.
    pub n_device_errors: u64,
    /// Bytes of batches that were read, and of regions that were looked through.
    pub n_read_bytes: u64,
    /// Data that were offered.
    pub n_offered: u64,
    /// Of these, not wanted by the policy.
    pub n_not_admitted: u64,
    /// Of these, here already.
    pub n_known: u64,
    /// Of these, for which there was no room where batches are put together.
    pub n_no_room: u64,
    /// Of these, with a name that has no component or too many, or while no volume was in
    /// service.
    pub n_unsuited: u64,
    /// Data that were taken, and gave way to others of their names before they were written.
    pub n_replaced: u64,
    /// Data that were put into buffers to be written.
    pub n_written: u64,
    /// Their bytes.
    pub n_written_data_bytes: u64,
    /// Bytes that the devices were given to write.
    pub n_written_bytes: u64,
    /// Of those put into buffers, what was not written yet when its volume went out of service.
    pub n_lost: u64,
    /// Data that waited to be put into buffers when the last volume went out of service.
    pub n_dropped: u64,
    /// Batches, not Data, for which the index had no place when they were written, or found at
    /// the start: they are on the devices, and are not found. One that was written in parts
    /// counts once for each.
    pub n_not_indexed: u64,
    /// Parts of batches, not Data, that left the index early, or did not come into it: the batch
    /// was written in too many, or a newer one of them found no place.
    pub n_crowded_out: u64,
    /// Prefixes of batches, counted once for each batch, for which there was no place, in the
    /// index or in the table of contents of a region: below them the batch is not found, but it
    /// is by the names of its Data.
    pub n_prefixes_not_indexed: u64,
    /// Data that were erased before they were written.
    pub n_erased: u64,
    /// Times that a prefix was erased.
    pub n_erased_prefixes: u64,
    /// Erasures that were taken for those of everything, for there were too many to keep, here
    /// or with the store's owner.
    pub n_erasures_merged: u64,
    /// Regions whose batches were forgotten to make room.
    pub n_regions_emptied: u64,
    /// Regions of which that was begun early, for want of room in the index.
    pub n_regions_emptied_early: u64,
    /// Batches that were found on the devices at the start, and came into the index. One that
    /// was written in parts counts once for each.
    pub n_recovered: u64,
}

impl Counters {
    /// Data that were offered and of which it is known what became of them. The others
    /// [wait](crate::SecondLevel::n_waiting) where batches are put together.
    #[must_use]
    pub const fn n_ended(&self) -> u64 {
        self.n_unsuited
            + self.n_known
            + self.n_not_admitted
            + self.n_no_room
            + self.n_replaced
            + self.n_erased
            + self.n_dropped
            + self.n_written
    }

    /// Bytes written for each byte of Data; `None` before anything was written.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let n_data_bytes = self.n_written_data_bytes;
        (n_data_bytes > 0).then(|| self.n_written_bytes as f64 / n_data_bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_grow_with_the_store_and_hold_its_batches() {
        let of = |bytes: u64, len| Geometry::new(&[bytes], len);
        assert_eq!(of(1 << 30, 10).map(|it| it.region_bytes), Ok(16 << 20));
        assert_eq!(of(1 << 40, 10).map(|it| it.region_bytes), Ok(64 << 20));
        assert_eq!(of(1 << 28, 16).map(|it| it.region_bytes), Ok(4 << 20));
        assert!(matches!(
            of(1 << 20, 10),
            Err(GeometryError::TooSmall { .. })
        ));
        assert!(matches!(
            of(20 << 40, 10),
            Err(GeometryError::TooLarge { .. })
        ));
        assert!(matches!(
            Geometry::new(&[u64::MAX; 3], 10),
            Err(GeometryError::TooLarge { .. })
        ));
        let least = match of(1, 16) {
            Err(GeometryError::TooSmall { min_bytes, .. }) => min_bytes,
            other => panic!("{other:?}"),
        };
        assert!(of(least, 16).is_ok() && of(least - 1, 16).is_err());
        let two = Geometry::new(&[1 << 30, 3 << 30], 10).expect("enough");
        assert_eq!(two.n_regions, [15, 47]);
        assert_eq!(two.region_bytes, 64 << 20);
    }
}
