//! Whether what lies on the volumes of a worker is the store that is configured; if not, what
//! differs, how to go back, and how to give up what is there.

use std::path::{Path, PathBuf};

use tachonym_store::Geometry;
use tachonym_store::device::EMPTY_BYTES;
use tachonym_store::layout::{REGIONS_START, Superblock};

use super::{FILE_SUFFIX, path_key};
use crate::config::SecondLevel;

/// Most workers that a store is tried to be explained by.
const MAX_WORKERS: usize = 256;

/// A store as it is configured, of one of the workers.
pub(super) struct Belonging<'a> {
    pub(super) level: &'a SecondLevel,
    pub(super) n_workers: usize,
    pub(super) worker: usize,
    pub(super) geometry: &'a Geometry,
    /// Of its volumes: files and block devices.
    pub(super) paths: &'a [PathBuf],
    /// How to give up what is there.
    pub(super) anew: &'a str,
}

/// Why volumes are refused.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) key: String,
    pub(super) message: String,
    pub(super) remedy: String,
}

impl Belonging<'_> {
    /// What is wrong with volumes on which this was found, some of it being a store.
    pub(super) fn fault(&self, found: &[Option<Superblock>]) -> Option<Fault> {
        let (first, first_found) = found
            .iter()
            .enumerate()
            .find_map(|(i, it)| it.as_ref().map(|it| (i, it)))?;
        let first_path = self.paths[first].display();
        for (i, superblock) in found.iter().enumerate() {
            let path = self.paths[i].display();
            let message = format!("{path} is empty, but {first_path} is not");
            let empty = "put back the volume that was there, without which the others cannot be \
                         used; or, if its disk was replaced,";
            let Some(superblock) = superblock else {
                return Some(self.fault_of(path_key(i), message, empty));
            };
            if superblock.key != first_found.key {
                let message = format!("{path} is part of another store than {first_path}");
                let together = "name the volumes that belong together, in their order, or";
                return Some(self.fault_of(path_key(i), message, together));
            }
            let fault = self.fault_alone(i, superblock);
            if fault.is_some() {
                return fault;
            }
        }
        let of_volumes: Vec<&Superblock> = found.iter().flatten().collect();
        self.fault_of_geometry(&of_volumes)
    }

    fn fault_of(&self, key: String, message: String, back: &str) -> Fault {
        let remedy = format!("{back} start with an empty store: {}", self.anew);
        Fault {
            key,
            message,
            remedy,
        }
    }

    /// What a volume says of itself that it should not.
    fn fault_alone(&self, number: usize, found: &Superblock) -> Option<Fault> {
        let path = self.paths[number].display();
        let (was, is) = (usize::from(found.batch_len), self.level.batch);
        if was != is {
            let message =
                format!("{path} has batches of {was} segments, but second_level.batch is {is}");
            let back = format!("set second_level.batch = {was}, or");
            return Some(self.fault_of("second_level.batch".into(), message, &back));
        }
        let (was, is) = (usize::from(found.worker), self.worker);
        if was != is {
            let message = format!("{path} belongs to worker {was}, not to worker {is}");
            let back = "restore the names of the files, the number of workers and the bytes of \
                        the volume, or";
            return Some(self.fault_of(path_key(number), message, back));
        }
        let was = (usize::from(found.volume), usize::from(found.n_volumes));
        let is = (number, self.paths.len());
        if was != is {
            let message = format!(
                "{path} is volume {} of {}, but is configured as {} of {}",
                was.0, was.1, is.0, is.1
            );
            let back = match was.1 {
                1 => "name it alone, or".into(),
                n => format!("name all {n} volumes that belong together, in their order, or"),
            };
            return Some(self.fault_of(path_key(number), message, &back));
        }
        None
    }

    /// Whether the volumes, which are those of a store, are divided as configured.
    fn fault_of_geometry(&self, found: &[&Superblock]) -> Option<Fault> {
        let is = |i: usize| (self.geometry.n_regions[i], self.geometry.region_bytes);
        let was = |i: usize| (found[i].n_regions, found[i].region_bytes);
        let number = (0..found.len()).find(|&i| is(i) != was(i))?;
        let message = format!(
            "{} has {} regions of {} bytes for each worker, but the configuration asks for {} of \
             {}",
            self.paths[number].display(),
            was(number).0,
            was(number).1,
            is(number).0,
            is(number).1
        );
        let mut back = String::from("restore the bytes of the volumes and the number of workers");
        let explanations = [self.former_workers(found), self.former_bytes(found)];
        let explanations: Vec<String> = explanations.into_iter().flatten().collect();
        if !explanations.is_empty() {
            back = format!("{back} (it fits {})", explanations.join(", and also "));
        }
        back += ", or";
        let key = format!("second_level.volume[{number}].bytes");
        Some(self.fault_of(key, message, &back))
    }

    /// Another number of workers that the volumes are as configured with.
    fn former_workers(&self, found: &[&Superblock]) -> Option<String> {
        let fits = |n_workers: &usize| divides_as(&self.level.part_bytes(*n_workers), found);
        let n_workers = (1..=MAX_WORKERS).find(fits)?;
        Some(match n_workers {
            1 => "one worker".into(),
            n => format!("{n} workers at most"),
        })
    }

    /// Other bytes of the volumes that they are as configured with. Where several workers share
    /// a block device, these must be those from before, which volumes do not tell.
    fn former_bytes(&self, found: &[&Superblock]) -> Option<String> {
        if self.n_workers > 1 {
            return None;
        }
        let with = |n_more: u64, start: u64| -> Vec<u64> {
            let bytes_of = |it: &&Superblock| {
                start + (u64::from(it.n_regions) + n_more) * u64::from(it.region_bytes)
            };
            found.iter().map(bytes_of).collect()
        };
        // A round number, if it may have been one.
        let mut parts = [with(1, 0), with(0, REGIONS_START)].into_iter();
        let parts = parts.find(|parts| divides_as(parts, found))?;
        let parts: Vec<String> = parts.iter().map(u64::to_string).collect();
        Some(format!("bytes = {}", parts.join(" and bytes = ")))
    }
}

/// Whether parts of so many bytes are divided as these volumes are.
fn divides_as(parts: &[u64], found: &[&Superblock]) -> bool {
    let batch_len = found.first().map_or(1, |it| usize::from(it.batch_len));
    Geometry::new(parts, batch_len).is_ok_and(|geometry| {
        let numbers = geometry.n_regions.iter().zip(found);
        numbers.into_iter().all(|(&n, it)| n == it.n_regions)
            && found
                .iter()
                .all(|it| it.region_bytes == geometry.region_bytes)
    })
}

/// How to give up the stores of all workers in a directory.
pub(super) fn anew_in_directory(dir: &Path, n_workers: usize) -> String {
    format!("rm {}/worker-*-of-{n_workers}{FILE_SUFFIX}", dir.display())
}

/// How to give up the stores of all workers on a block device of which each has `part_bytes`.
pub(super) fn anew_on_device(path: &Path, n_workers: usize, part_bytes: u64) -> String {
    let path = path.display();
    match n_workers {
        1 => format!("blkdiscard -z -l {EMPTY_BYTES} {path}"),
        n => format!(
            "for n in $(seq 0 {}); do blkdiscard -z -o $((n * {part_bytes})) -l {EMPTY_BYTES} \
             {path}; done",
            n - 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Volume;

    fn level(bytes: &[u64]) -> SecondLevel {
        let volumes = bytes.iter().enumerate().map(|(i, &bytes)| Volume {
            path: format!("/dev/disk{i}").into(),
            bytes,
        });
        SecondLevel {
            volume: volumes.collect(),
            ..SecondLevel::default()
        }
    }

    /// What a worker of so many finds on volumes of so many bytes.
    fn superblocks(level: &SecondLevel, n_workers: usize, worker: u16) -> Vec<Option<Superblock>> {
        let parts = level.part_bytes(n_workers);
        let geometry = Geometry::new(&parts, level.batch).expect("large enough");
        let of_volume = |(i, &n_regions): (usize, &u32)| {
            Some(Superblock {
                key: [7; 16],
                worker,
                volume: i as u8,
                n_volumes: parts.len() as u8,
                batch_len: level.batch as u8,
                region_bytes: geometry.region_bytes,
                n_regions,
                first_seq: 1,
                context: 0,
            })
        };
        geometry
            .n_regions
            .iter()
            .enumerate()
            .map(of_volume)
            .collect()
    }

    fn fault(level: &SecondLevel, n_workers: usize, found: &[Option<Superblock>]) -> Option<Fault> {
        let parts = level.part_bytes(n_workers);
        let geometry = Geometry::new(&parts, level.batch).expect("large enough");
        let paths: Vec<PathBuf> = level.volume.iter().map(|it| it.path.clone()).collect();
        let belonging = Belonging {
            level,
            n_workers,
            worker: 0,
            geometry: &geometry,
            paths: &paths,
            anew: "COMMANDS",
        };
        belonging.fault(found)
    }

    fn told(fault: Option<Fault>, key: &str, message: &str, remedy: &str) {
        let fault = fault.expect("it is refused");
        assert_eq!(fault.key, key, "{fault:?}");
        assert!(fault.message.contains(message), "{fault:?}");
        assert!(fault.remedy.starts_with(remedy), "{fault:?}");
        assert!(
            fault
                .remedy
                .ends_with("start with an empty store: COMMANDS"),
            "{fault:?}"
        );
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn volumes_as_configured_are_taken() {
        for n_workers in [1, 2, 3] {
            let level = level(&[GIB, 3 * GIB]);
            assert!(fault(&level, n_workers, &superblocks(&level, n_workers, 0)).is_none());
        }
    }

    #[test]
    fn another_batch_length_says_which_it_was() {
        let (was, mut is) = (level(&[GIB]), level(&[GIB]));
        is.batch = 8;
        let fault = fault(&is, 1, &superblocks(&was, 1, 0));
        let (message, remedy) = ("has batches of 10", "set second_level.batch = 10, or");
        told(fault, "second_level.batch", message, remedy);
    }

    #[test]
    fn other_bytes_and_another_number_of_workers_are_told_as_they_were() {
        let key = "second_level.volume[1].bytes";
        let (was, is) = (level(&[GIB, GIB]), level(&[GIB, 5 * GIB]));
        let found = superblocks(&was, 1, 0);
        let other_bytes = fault(&is, 1, &found).expect("it is refused");
        // What is told is taken.
        let bytes: Vec<u64> = other_bytes
            .remedy
            .split("bytes = ")
            .skip(1)
            .filter_map(|it| it.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
            .collect();
        assert!(
            fault(&level(&bytes), 1, &found).is_none(),
            "{other_bytes:?}"
        );
        let remedy = "restore the bytes of the volumes and the number of workers (it fits";
        told(
            Some(other_bytes),
            "second_level.volume[0].bytes",
            "regions of",
            remedy,
        );
        let is = level(&[GIB, 3 * GIB]);
        let other_workers = fault(&is, 2, &superblocks(&is, 4, 0)).expect("it is refused");
        assert!(
            other_workers
                .remedy
                .contains("(it fits 4 workers at most), or"),
            "{other_workers:?}"
        );
        let was = level(&[GIB, GIB + (1 << 23)]);
        let found = superblocks(&was, 3, 0);
        let unexplained = fault(&level(&[GIB, GIB + (1 << 25)]), 3, &found);
        told(unexplained, key, "regions of", "restore the bytes");
    }

    #[test]
    fn a_volume_of_another_worker_place_or_store_is_told_and_so_is_an_empty_one() {
        let level = level(&[GIB, GIB]);
        let (key, other) = ("second_level.volume[0].path", "second_level.volume[1].path");
        let found = superblocks(&level, 1, 3);
        told(
            fault(&level, 1, &found),
            key,
            "belongs to worker 3",
            "restore the names",
        );
        let mut found = superblocks(&level, 1, 0);
        found.reverse();
        let message = "is volume 1 of 2, but is configured as 0 of 2";
        told(fault(&level, 1, &found), key, message, "name all 2 volumes");
        let mut found = superblocks(&level, 1, 0);
        found[1].as_mut().expect("it is there").key = [8; 16];
        let message = "is part of another store than /dev/disk0";
        told(fault(&level, 1, &found), other, message, "name the volumes");
        found[1] = None;
        let message = "/dev/disk1 is empty, but /dev/disk0 is not";
        told(fault(&level, 1, &found), other, message, "put back");
        found.reverse();
        let message = "/dev/disk0 is empty, but /dev/disk1 is not";
        told(fault(&level, 1, &found), key, message, "put back");
    }
}
