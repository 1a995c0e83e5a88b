//! A folder on the disk that is measured, with the stores in it, which is gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::fs::statvfs;
use tachonym_memory::IoBuffer;
use tachonym_store::Geometry;
use tachonym_store::device::{self, Backend, Device, DirectoryLock, HEAD_BYTES, Opened, Volume};
use tachonym_store::layout::{MAGIC, Superblock};

use tachonym_bench::random::fresh_seed;

/// How names of folders begin. The number of the process that made it and a number of its own
/// follow.
const FOLDER: &str = "tachonym-lab-ssd-";

/// Folders that this process has made.
static N_FOLDERS: AtomicU32 = AtomicU32::new(0);

/// What is left to others of the file system, in bytes.
const SPARE_BYTES: u64 = 256 << 20;

/// A folder of this process's own.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    lock: DirectoryLock,
}

impl Disk {
    /// A folder in `directory` with room for `needed_bytes`. Folders of processes that have
    /// ended are removed.
    pub(crate) fn new(directory: &Path, needed_bytes: u64) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        remove_left(directory);
        let needed = needed_bytes + SPARE_BYTES;
        let available = room(directory, needed)?;
        if needed > available {
            bail!(
                "{} has {} MiB free, but {} MiB are needed; use a smaller store_mib or l2, a larger \
                 shrink, or another directory",
                directory.display(),
                available >> 20,
                needed >> 20
            );
        }
        let number = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = directory.join(format!("{FOLDER}{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = DirectoryLock::acquire(&folder)?;
        Ok(Self { folder, lock })
    }

    /// Where the file of a store is.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens a file of `bytes`, which is made if there is none.
    pub(crate) fn volume(&self, file: &str, bytes: u64) -> anyhow::Result<Volume> {
        Ok(Volume::in_directory(&self.lock, file, bytes, &MAGIC)?)
    }

    /// Makes a new store on a file, with batches of `batch_len` chunks.
    pub(crate) fn format(
        &self,
        file: &str,
        bytes: u64,
        batch_len: usize,
    ) -> anyhow::Result<(Volume, Superblock)> {
        // If it is too little for long, the volume says so.
        room(&self.folder, bytes + SPARE_BYTES)?;
        let volume = self.volume(file, bytes)?;
        let geometry = Geometry::new(&[volume.bytes()], batch_len)?;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&fresh_seed().to_le_bytes());
        let superblock = Superblock {
            key,
            worker: 0,
            volume: 0,
            n_volumes: 1,
            batch_len: batch_len as u8,
            region_bytes: geometry.region_bytes,
            n_regions: geometry.n_regions[0],
            first_seq: 1,
            context: 0,
        };
        volume.write_head(0, &superblock.encode().repeat(2))?;
        Ok((volume, superblock))
    }

    /// Opens the store of a file again.
    pub(crate) fn reopen(&self, file: &str, bytes: u64) -> anyhow::Result<(Volume, Superblock)> {
        let volume = self.volume(file, bytes)?;
        let head = volume.read_head()?;
        let superblock = Superblock::decode(&head.as_slice()[..HEAD_BYTES])?;
        Ok((volume, superblock.context("the store is gone")?))
    }

    /// Removes a file.
    pub(crate) fn remove(&self, file: &str) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.path(file))?)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What stays is found by its name in a later run.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Bytes that a directory has room for. Of large files that were removed just now it may be some
/// time before their room is there again: if it is too little for `needed_bytes` and may become
/// enough, that is waited for.
fn room(directory: &Path, needed_bytes: u64) -> anyhow::Result<u64> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begun = Instant::now();
    loop {
        let system =
            statvfs(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let available = system.f_bavail.saturating_mul(system.f_frsize);
        let all = system.f_blocks.saturating_mul(system.f_frsize);
        let may_grow = needed_bytes <= all && begun.elapsed() < PATIENCE;
        if needed_bytes <= available || !may_grow {
            return Ok(available);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Removes the folders of processes that have ended.
fn remove_left(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(FOLDER));
        let pid = pid.and_then(|pid| pid.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Another user's stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A device on a volume, as the router opens one: by io_uring, or threads where there is none.
pub(crate) fn open(
    volume: Volume,
    buffers: &[IoBuffer],
    n_requests: usize,
) -> anyhow::Result<(Box<dyn Device>, Opened)> {
    let opened = device::open(vec![volume], buffers, n_requests as u32, Backend::Auto);
    opened.context("cannot open the device")
}

/// Bytes that this process has had written to disks, as the kernel counts.
pub(crate) fn written_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"));
    line?.trim().parse().ok()
}

/// Bytes that have been written to the block device below `path`, by whomever, as the kernel
/// counts. `None` if it lies on none.
pub(crate) fn device_written_bytes(path: &Path) -> Option<u64> {
    const SECTOR_BYTES: u64 = 512;
    let dev = rustix::fs::stat(path).ok()?.st_dev;
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    let sectors: u64 = text.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gone_afterwards_and_what_the_dead_left_too() {
        let directory = tempfile::tempdir().expect("a folder");
        let left = directory.path().join(format!("{FOLDER}{}-0", u32::MAX));
        fs::create_dir(&left).expect("made");
        let disk = Disk::new(directory.path(), 1 << 20).expect("room for a mebibyte");
        assert!(!left.exists() && disk.folder().exists());
        let (_, written) = disk.format("a", 8 << 20, 10).expect("room");
        let (_, read) = disk.reopen("a", 8 << 20).expect("there");
        assert_eq!(written, read);
        let folder = disk.folder().to_path_buf();
        drop(disk);
        assert!(!folder.exists());
    }

    #[test]
    fn a_disk_without_room_is_refused() {
        let directory = tempfile::tempdir().expect("a folder");
        let refused = Disk::new(directory.path(), 1 << 60).expect_err("no disk has as much");
        assert!(
            refused.to_string().contains("another directory"),
            "{refused}"
        );
    }
}
