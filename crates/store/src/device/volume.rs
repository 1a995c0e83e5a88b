//! What a store lies on: a file in a directory, or a part of a block device.
//!
//! Opening one takes it for this process, makes sure that its blocks are there, and refuses
//! what holds something else. It never removes or shortens anything. Reading and writing,
//! but for the first [`HEAD_BYTES`], is the devices' part.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags, fallocate, fdatasync, fstatvfs};
use rustix::io::{Errno, pread, pwrite};
use tachonym_memory::{IO_ALIGN, IoBuffer};

use super::lock::{BlockDevice, DirectoryLock, open_direct, refusal};
pub use super::volume_error::VolumeError;

/// Bytes at the beginning of a volume that can be read and written without a device.
pub const HEAD_BYTES: usize = 2 * IO_ALIGN;

/// So many bytes at the beginning of what is taken for empty are zeros: file systems, swap
/// space and the like have something there, but most of them nothing in the first 512. So it is
/// these that have to be overwritten with zeros to give up what a volume holds.
pub const EMPTY_BYTES: u64 = 256 << 10;

/// By the first bytes of a volume a store is known.
pub type Magic = [u8; 16];

/// An open file or block device, or a part of one, and what keeps others from it.
#[derive(Debug)]
pub struct Volume {
    file: File,
    path: PathBuf,
    /// Where it begins in the file, in bytes.
    offset: u64,
    bytes: u64,
    is_direct: bool,
    _held: Held,
}

/// What is locked as long as a volume lives.
#[derive(Debug)]
enum Held {
    Directory(#[expect(dead_code, reason = "held, not used")] DirectoryLock),
    Device(#[expect(dead_code, reason = "held, not used")] BlockDevice),
}

impl Volume {
    /// The file `file_name` in a directory, of `bytes` rounded down to [`IO_ALIGN`]. Creates
    /// it, for this user alone, or lets it grow; all its blocks are allocated before this
    /// returns. One that is there must begin with `magic`, or with 256 KiB of
    /// zeros.
    ///
    /// # Errors
    /// [`VolumeError::Foreign`], [`VolumeError::FileLarger`], [`VolumeError::NoSpace`],
    /// [`VolumeError::NotWritable`] or [`VolumeError::Io`]; what was there is unchanged.
    pub fn in_directory(
        directory: &DirectoryLock,
        file_name: &str,
        bytes: u64,
        magic: &Magic,
    ) -> Result<Self, VolumeError> {
        let path = directory.dir().join(file_name);
        let bytes = bytes - bytes % IO_ALIGN as u64;
        let before = match fs::metadata(&path) {
            Ok(found) if found.is_file() => Some(found),
            Ok(_) => return Err(foreign(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refusal(&path, "look at it", error)),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let opened = open_direct(&path, &options, OFlags::empty());
        let (file, is_direct) = opened.map_err(|error| refusal(&path, "open it", error))?;
        let volume = Self {
            file,
            path,
            offset: 0,
            bytes,
            is_direct,
            _held: Held::Directory(directory.clone()),
        };
        volume.refuse_foreign(magic)?;
        let had = before.as_ref().map_or(0, fs::Metadata::len);
        if had > bytes {
            return Err(VolumeError::FileLarger {
                path: volume.path,
                has_bytes: had,
                wants_bytes: bytes,
            });
        }
        if let Err(error) = volume.allocate(had) {
            // As it was: neither blocks nor a new file are left behind.
            let _ = match before {
                Some(_) => volume.file.set_len(had),
                None => fs::remove_file(&volume.path),
            };
            return Err(error);
        }
        Ok(volume)
    }

    /// A part of a block device. It must begin with `magic`, or with 256 KiB of
    /// zeros.
    ///
    /// # Errors
    /// [`VolumeError::DeviceSmaller`], [`VolumeError::Unaligned`], [`VolumeError::Foreign`] or
    /// [`VolumeError::Io`].
    pub fn on_block_device(
        device: &BlockDevice,
        part: Range<u64>,
        magic: &Magic,
    ) -> Result<Self, VolumeError> {
        let path = device.path().to_path_buf();
        if part.end > device.bytes() || part.start > part.end {
            return Err(VolumeError::DeviceSmaller {
                path,
                has_bytes: device.bytes(),
                wants_bytes: part.end.max(part.start),
            });
        }
        if !part.start.is_multiple_of(IO_ALIGN as u64) {
            let offset = part.start;
            return Err(VolumeError::Unaligned { path, offset });
        }
        let bytes = part.end - part.start;
        let file = device.file().try_clone();
        let volume = Self {
            file: file.map_err(|error| refusal(&path, "use it twice", error))?,
            path,
            offset: part.start,
            bytes: bytes - bytes % IO_ALIGN as u64,
            is_direct: device.is_direct(),
            _held: Held::Device(device.clone()),
        };
        volume.refuse_foreign(magic)?;
        Ok(volume)
    }

    /// Bytes that it has, a multiple of [`IO_ALIGN`].
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether reads and writes bypass the page cache.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// The file or block device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it begins in what [`Volume::as_fd`] gives, in bytes.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads its first [`HEAD_BYTES`], or as many as it has; zeros for the rest. Waits.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_head(&self) -> io::Result<IoBuffer> {
        let mut head = IoBuffer::new(HEAD_BYTES, 0).map_err(io::Error::other)?;
        self.read(&mut head.as_mut_slice()[..HEAD_BYTES])?;
        Ok(head)
    }

    /// Writes `bytes` at `at`, within the first [`HEAD_BYTES`]; both multiples of
    /// [`IO_ALIGN`]. Returns when they survive a loss of power.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// If the range is not as said.
    pub fn write_head(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let aligned = at.is_multiple_of(IO_ALIGN) && bytes.len().is_multiple_of(IO_ALIGN);
        assert!(aligned && at + bytes.len() <= HEAD_BYTES);
        let mut block = IoBuffer::new(bytes.len(), 0).map_err(io::Error::other)?;
        block.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        let mut done = 0;
        while done < bytes.len() {
            let rest = &block.as_slice()[done..bytes.len()];
            match pwrite(&self.file, rest, self.offset + (at + done) as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n_bytes) => done += n_bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(fdatasync(&self.file)?)
    }

    fn refuse_foreign(&self, magic: &Magic) -> Result<(), VolumeError> {
        let failed = |error| refusal(&self.path, "read it", error);
        let head = self.read_head().map_err(failed)?;
        if head.as_slice().starts_with(magic) || self.is_empty().map_err(failed)? {
            return Ok(());
        }
        match &self._held {
            Held::Directory(_) => Err(foreign(self.path.clone())),
            Held::Device(_) => Err(VolumeError::Foreign {
                path: self.path.clone(),
                remedy: format!(
                    "overwrite where the part that is configured begins (blkdiscard -z -o {} -l \
                     {EMPTY_BYTES} {})",
                    self.offset,
                    self.path.display()
                ),
            }),
        }
    }

    /// Whether it begins with zeros, if it begins at all.
    fn is_empty(&self) -> io::Result<bool> {
        let len = EMPTY_BYTES.min(self.bytes) as usize;
        let mut first = IoBuffer::new(len, 0).map_err(io::Error::other)?;
        self.read(&mut first.as_mut_slice()[..len])?;
        Ok(first.as_slice().iter().all(|&byte| byte == 0))
    }

    /// Reads from its beginning; what it does not have is left as it was.
    fn read(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match pread(&self.file, &mut bytes[done..], self.offset + done as u64) {
                Ok(0) => break,
                // A part of a block is the last one of a file: no more can follow, and no
                // direct read may begin there.
                Ok(n_bytes) if !n_bytes.is_multiple_of(IO_ALIGN) => break,
                Ok(n_bytes) => done += n_bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Has the file system set blocks aside for all of it; it had `had` bytes.
    fn allocate(&self, had: u64) -> Result<(), VolumeError> {
        let failed = |error| refusal(&self.path, "allocate its blocks", error);
        let found = self.file.metadata().map_err(failed)?;
        // Before any is taken from a file system that has not enough.
        let needed_bytes = self.bytes.saturating_sub(found.blocks() * 512);
        let available = || {
            let system = fstatvfs(&self.file)
                .map_err(io::Error::from)
                .map_err(failed)?;
            Ok(system.f_bavail.saturating_mul(system.f_frsize))
        };
        let no_space = |available_bytes| VolumeError::NoSpace {
            path: self.path.clone(),
            needed_bytes,
            available_bytes,
        };
        let available_bytes = available()?;
        if needed_bytes > available_bytes {
            return Err(no_space(available_bytes));
        }
        let allocated = loop {
            let done = match self.bytes {
                0 => Ok(()),
                bytes => fallocate(&self.file, FallocateFlags::empty(), 0, bytes),
            };
            match done {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => break self.write_zeros(had),
                done => break done.map_err(io::Error::from),
            }
        };
        let allocated = allocated.and_then(|()| self.file.sync_all());
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        match allocated {
            // A quota tells no figure, and others may have been quicker.
            Err(error) if full.contains(&error.kind()) => Err(no_space(available()?)),
            Err(error) => Err(failed(error)),
            Ok(()) => sync_parent(&self.path).map_err(failed),
        }
    }

    /// Allocates by writing, for file systems that cannot otherwise.
    fn write_zeros(&self, had: u64) -> io::Result<()> {
        const PIECE_BYTES: u64 = 1 << 20;
        let zeros = IoBuffer::new(PIECE_BYTES as usize, 0).map_err(io::Error::other)?;
        // A block that is there in part is left to the file system to fill.
        let mut at = had.next_multiple_of(IO_ALIGN as u64);
        while at < self.bytes {
            let len = PIECE_BYTES.min(self.bytes - at) as usize;
            match pwrite(&self.file, &zeros.as_slice()[..len], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n_bytes) => at += n_bytes as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.file.set_len(self.bytes)
    }
}

impl AsFd for Volume {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn foreign(path: PathBuf) -> VolumeError {
    let remedy = "remove it".into();
    VolumeError::Foreign { path, remedy }
}

/// Makes the name of a new file survive a loss of power.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
