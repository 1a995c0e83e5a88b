//! That no two processes keep a store in one place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::volume_error::VolumeError;

/// Name of the file in a directory that is locked, and tells by whom.
const LOCK_FILE: &str = "tachonym.lock";

/// How often, and after what pause, a block device is tried again. The system looks at one under
/// a lock of its own whenever who wrote to it has closed it, and the kernel keeps one open that a
/// ring of io_uring had until it has taken the ring apart, some 30 ms after its process has ended.
const DEVICE_TRIES: u32 = 20;
const DEVICE_PAUSE: Duration = Duration::from_millis(25);

/// A directory that belongs to this process while this or a clone of it lives. The lock goes
/// with the process, however that ends.
#[derive(Clone, Debug)]
pub struct DirectoryLock {
    dir: Arc<Path>,
    /// Open as long as the lock is to be held.
    _file: Arc<File>,
}

impl DirectoryLock {
    /// Takes the directory, and leaves the number of this process in its file
    /// `tachonym.lock`.
    ///
    /// # Errors
    /// [`VolumeError::Absent`], [`VolumeError::NotADirectory`], [`VolumeError::NotWritable`],
    /// [`VolumeError::Locked`] or [`VolumeError::Io`].
    pub fn acquire(dir: &Path) -> Result<Self, VolumeError> {
        match fs::metadata(dir) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(VolumeError::NotADirectory { path: dir.into() }),
            Err(error) => return Err(refusal(dir, "look at it", error)),
        }
        let path = dir.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| refusal(dir, "create its lock file", error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut said = String::new();
                // Who cannot be named is another process.
                let _ = file.read_to_string(&mut said);
                let pid = said.trim().parse().ok();
                let path = dir.into();
                return Err(VolumeError::Locked { path, pid });
            }
            Err(error) => return Err(refusal(&path, "lock it", error.into())),
        }
        let mut said = String::new();
        let is_ours = (&file).take(64).read_to_string(&mut said).is_ok()
            && said.trim().bytes().all(|it| it.is_ascii_digit());
        if !is_ours {
            let remedy = "remove the file".into();
            return Err(VolumeError::Foreign { path, remedy });
        }
        file.rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|error| refusal(&path, "write to it", error))?;
        Ok(Self {
            dir: dir.into(),
            _file: Arc::new(file),
        })
    }

    /// Which directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// A whole block device that belongs to this process while this, a clone of it, or a volume
/// on it lives.
#[derive(Clone, Debug)]
pub struct BlockDevice {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Open as long as the lock is to be held.
    _lock: File,
    file: File,
    is_direct: bool,
    bytes: u64,
}

impl BlockDevice {
    /// Takes the device for this process alone. Reads and writes nothing.
    ///
    /// # Errors
    /// [`VolumeError::Absent`], [`VolumeError::NotABlockDevice`], [`VolumeError::NotWritable`],
    /// [`VolumeError::Locked`], [`VolumeError::InUse`] or [`VolumeError::Io`].
    pub fn open(path: &Path) -> Result<Self, VolumeError> {
        let found = fs::metadata(path).map_err(|error| refusal(path, "look at it", error))?;
        if !found.file_type().is_block_device() {
            return Err(VolumeError::NotABlockDevice { path: path.into() });
        }
        let lock = File::open(path).map_err(|error| refusal(path, "open it", error))?;
        if let Err(error) = again_while(
            |error| *error == Errno::WOULDBLOCK,
            || flock(&lock, FlockOperation::NonBlockingLockExclusive),
        ) {
            if error != Errno::WOULDBLOCK {
                return Err(refusal(path, "lock it", error.into()));
            }
            let pid = holder_of(found.dev(), found.ino());
            let path = path.into();
            return Err(VolumeError::Locked { path, pid });
        }
        // Exclusively: then the kernel refuses one that is mounted, and later mounts.
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
        let opened = again_while(is_busy, || open_direct(path, &options, OFlags::EXCL));
        let (file, is_direct) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => VolumeError::InUse { path: path.into() },
            _ => refusal(path, "open it", error),
        })?;
        let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
            .map_err(|error| refusal(path, "tell its size", error.into()))?;
        let inner = Inner {
            path: path.into(),
            _lock: lock,
            file,
            is_direct,
            bytes,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Which device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Bytes that it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    pub(super) fn file(&self) -> &File {
        &self.inner.file
    }

    pub(super) fn is_direct(&self) -> bool {
        self.inner.is_direct
    }
}

/// Tries until nothing fails in this way, or it has been tried often enough.
fn again_while<T, E>(
    is_passing: impl Fn(&E) -> bool,
    mut it: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    for _ in 1..DEVICE_TRIES {
        match it() {
            Err(error) if is_passing(&error) => thread::sleep(DEVICE_PAUSE),
            done => return done,
        }
    }
    it()
}

/// Opens past the page cache, or, where the file system has no such way, with it; says which.
pub(super) fn open_direct(
    path: &Path,
    options: &OpenOptions,
    flags: OFlags,
) -> io::Result<(File, bool)> {
    let mut options = options.clone();
    let direct = (flags | OFlags::DIRECT).bits() as i32;
    match options.custom_flags(direct).open(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let file = options.custom_flags(flags.bits() as i32).open(path)?;
            Ok((file, false))
        }
        opened => Ok((opened?, true)),
    }
}

/// The error for what the system says of `path`.
pub(super) fn refusal(path: &Path, doing: &'static str, source: io::Error) -> VolumeError {
    let path = path.into();
    match source.kind() {
        io::ErrorKind::NotFound => VolumeError::Absent { path },
        io::ErrorKind::NotADirectory => VolumeError::NotADirectory { path },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            VolumeError::NotWritable { path, source }
        }
        _ => VolumeError::Io {
            path,
            doing,
            source,
        },
    }
}

/// Which process holds an `flock` on a file, as `/proc/locks` tells (proc_locks(5)).
fn holder_of(dev: u64, inode: u64) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, of, ..] if of == file => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_direct_access_are_opened_all_the_same() {
        let mut options = OpenOptions::new();
        options.read(true);
        // No kernel has direct access to what it makes up.
        let (mut file, is_direct) =
            open_direct(Path::new("/proc/version"), &options, OFlags::empty()).unwrap();
        assert!(!is_direct);
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert!(text.contains("Linux"), "{text}");
    }
}
