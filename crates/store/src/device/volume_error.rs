//! Why a volume could not be opened, in words that say what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a volume could not be opened. Nothing on it has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// There is no such directory or device.
    #[error("{} does not exist: create it (mkdir -p), or correct the path in the configuration",
        .path.display())]
    Absent {
        /// What was looked for.
        path: PathBuf,
    },
    /// Something else has the name of the directory.
    #[error("{} is not a directory: configure a directory for the content store",
        .path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// Something else has the name of the block device.
    #[error("{} is not a block device: use one (lsblk lists them), or a directory",
        .path.display())]
    NotABlockDevice {
        /// What was named.
        path: PathBuf,
    },
    /// The user that the router runs as may not write there.
    #[error("{} is not writable ({source}): make the router's user its owner (chown), or \
             remount its file system writable", .path.display())]
    NotWritable {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system has not so much room.
    #[error("{} needs {} more, but its file system has {} free: free some space, use another \
             disk, or configure a smaller content store",
        .path.display(), Size(*.needed_bytes), Size(*.available_bytes))]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Bytes beyond those that it has already.
        needed_bytes: u64,
        /// Bytes that are free for this user.
        available_bytes: u64,
    },
    /// The file is larger than configured; cutting it would lose what is in it.
    #[error("{} has {}, but {} are configured: configure its size, or remove the file to start \
             with an empty one", .path.display(), Exact(*.has_bytes), Exact(*.wants_bytes))]
    FileLarger {
        /// The file.
        path: PathBuf,
        /// Bytes that it has.
        has_bytes: u64,
        /// Bytes that were asked for.
        wants_bytes: u64,
    },
    /// The block device ends before what was configured does.
    #[error("{} has {}, but {} are configured: configure no more than it has",
        .path.display(), Exact(*.has_bytes), Exact(*.wants_bytes))]
    DeviceSmaller {
        /// The block device.
        path: PathBuf,
        /// Bytes that it has.
        has_bytes: u64,
        /// Bytes that it should have: where the range ends.
        wants_bytes: u64,
    },
    /// A part of a block device does not begin at a block.
    #[error("the part of {} at byte {offset} does not begin at a multiple of 4096: configure \
             another size", .path.display())]
    Unaligned {
        /// The block device.
        path: PathBuf,
        /// Where the part was to begin.
        offset: u64,
    },
    /// Another process keeps its store there, or this one does already.
    #[error("{} is in use by {}: stop it, or configure another path for one of the two",
        .path.display(), Holder(*.pid))]
    Locked {
        /// The directory or the block device.
        path: PathBuf,
        /// Which process, if that can be told.
        pid: Option<u32>,
    },
    /// The block device is mounted, or part of something larger.
    #[error("{} is mounted, swapped on, or part of an array or volume group: unmount it (lsblk \
             shows where), or use another device", .path.display())]
    InUse {
        /// The block device.
        path: PathBuf,
    },
    /// What is there is no content store, and is left alone.
    #[error("{} holds other data than a content store of this version, and was not touched: \
             use another path, or, if the data may be lost, {remedy}", .path.display())]
    Foreign {
        /// The file or the block device.
        path: PathBuf,
        /// How to do away with it.
        remedy: String,
    },
    /// The system refused for another reason.
    #[error("{}: cannot {doing}: {source}; see dmesg for the cause",
        .path.display())]
    Io {
        /// The file, directory or block device.
        path: PathBuf,
        /// What was refused.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// A number of bytes as people read it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match UNITS.into_iter().find(|(_, shift)| self.0 >> shift > 0) {
            Some((unit, shift)) => {
                let tenths = (u128::from(self.0) * 10) >> shift;
                write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// A number of bytes that may have to be configured.
struct Exact(u64);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1024 => write!(f, "{} bytes", self.0),
            bytes => write!(f, "{bytes} bytes ({})", Size(bytes)),
        }
    }
}

/// Who has a lock.
struct Holder(Option<u32>);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) if pid == std::process::id() => {
                write!(f, "this process ({pid}), for another store")
            }
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_so_that_they_can_be_configured() {
        let error = VolumeError::FileLarger {
            path: "/cache/l2".into(),
            has_bytes: 3 << 30,
            wants_bytes: 512,
        };
        let text = error.to_string();
        assert!(
            text.contains("has 3221225472 bytes (3.0 GiB), but 512 bytes"),
            "{text}"
        );
    }

    #[test]
    fn a_lock_of_ones_own_is_said_to_be_so() {
        let text = |pid| {
            let path = "/cache".into();
            VolumeError::Locked { path, pid }.to_string()
        };
        assert!(text(Some(std::process::id())).contains("this process ("));
        assert!(text(Some(1)).contains("process 1:"), "{}", text(Some(1)));
        assert!(text(None).contains("another process"));
    }
}
